"""`kafka-records dump`: every record as one JSON object per line, without Spark."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from kafka_records_cli.failures import EXIT_STATUS_HELP, require
from kafka_records_cli.sources import add_sources, add_topic, coordinator_logs

_DESCRIPTION = """\
Print one JSON object per line and record, by topic, partition and offset. No Spark, no Java.
"""

_DETAILS = """\
fields of a line:
  topic, partition, offset
  timestamp          milliseconds since 1970 (UTC); -1 where the message format has none
  record_type        number at the start of the key; null for transaction markers and keys without one
  key                {"type":1,"data":{...}} as Kafka's console formatters print it
  value              {"version":4,"data":{...}}, null for a tombstone
  producer_id        -1 for none
  is_transactional   whether the record belongs to a transaction; it may have been aborted: see the markers
  control            "commit" or "abort" for a transaction marker, which has no key and no value here; else null
  error              null, or why a key or value could not be decoded: {"part":"value","reason":"BufferUnderflow",
                     "version":3,"path":"members[2].client_host","byte_offset":212,"message":"..."}; byte_offset counts
                     from behind the two bytes of type or version

Nothing is lost: what is not decoded has its bytes in "hex" where "data" would be, {"type":99,"hex":"0063..."} or
{"version":9,"hex":"0009..."}. That happens to records with an error, and to record types and value versions that this
build does not know, which are no errors. Text and lengths are read as leniently as Kafka reads them, bytes behind a key
or value are left alone; both are counted on standard error. (table cannot do without such a value version: a row that
an older record would give is wrong, so there it is told as an error.)

Records below a raised log start are shown, and so are those of aborted and open transactions.
"""

_EXAMPLES = """\
examples:
  kafka-records dump /var/lib/kafka/data
      all three topics of a broker's data directory
  kafka-records dump /var/lib/kafka/data/__consumer_offsets-12
      one partition
  kafka-records dump /backup/00000000000000000000.log --topic __transaction_state
      a file that is not in its folder
  kafka-records dump /var/lib/kafka/data --topic __consumer_offsets | jq -c 'select(.error != null)'
      what could not be decoded
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand to the subparsers `commands`."""
    parser = commands.add_parser(
        "dump",
        help="print every record as a JSON object, without Spark",
        description=_DESCRIPTION,
        epilog=f"{_DETAILS}\n{_EXAMPLES}\n{EXIT_STATUS_HELP}",
    )
    add_sources(parser)
    add_topic(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Dump, and return the exit status."""
    require("dump", "cli", "numpy", "pyarrow", "google_crc32c")
    from kafka_records_arrow.segments import open_log, read_log
    from kafka_records_cli.recordlines import RecordPrinter
    from kafka_records_cli.reporting import FileReport, RecordReport
    from kafka_records_runtime.jsontext import json_lines

    logs = coordinator_logs(options.sources, options.topic)
    files, records = FileReport(), RecordReport()
    printers: dict[str, RecordPrinter] = {}
    write, text = sys.stdout.write, json_lines(sys.stdout)
    file_count = 0
    for log in logs:
        printer = printers.setdefault(log.topic, RecordPrinter(log.topic, records))
        with open_log(log) as opened:
            file_count += len(opened.segments)
            for record in read_log(opened, on_problem=files.problem, settle=False):
                line = printer.line(record)
                if line is not None:
                    write(text(line))
    records.summary(len(logs), file_count)
    files.summary()
    return max(files.status, records.status)
