"""`kafka-records dump`: prints every record as one JSON object per line, without Spark."""

from __future__ import annotations

import argparse
from typing import Any

from kafka_records_tables.commands.record_options import add_record_options
from kafka_records_tables.commands.source_options import (
    NO_REQUESTS,
    SHOW_SECRETS_HELP,
    add_package,
    add_sources,
    add_topic,
    given_source,
)
from kafka_records_tables.console.endings import EXIT_STATUS_HELP, UsageError, require

_DESCRIPTION = """\
Print each record as a JSON object on one line, by topic, partition and offset. Needs neither Spark nor Java.
"""

_DETAILS = """\
fields of a line:
  topic, partition, offset
  timestamp          milliseconds since 1970 (UTC); -1 where the message format has none
  record_type        number at the start of the key; null for transaction markers and keys without one
  key                {"type":1,"data":{...}} as Kafka's console formatters print it
  value              {"version":4,"data":{...}}, null for a tombstone; of a topic with metadata framing (--package)
                     {"type":2,"version":0,"data":{...}}, and the key is null
  producer_id        -1 for none
  is_transactional   whether the record belongs to a transaction; it may have been aborted: see the markers
  control            "commit" or "abort" for a transaction marker, which has no key and no value here; in the metadata
                     log "leader_change", "snapshot_header", "snapshot_footer", "kraft_version" or "kraft_voters" for
                     records of its quorum, which have a value; otherwise null
  opened             the bytes that members of classic groups carry (base64 in value), decoded if possible:
                     {"members[0].subscription":{"version":3,"data":{...}},"members[0].assignment":...}
  topic_names        {"aK3dGfTcSs2cLAnzYBkzXg":"orders"}: names of the topic ids in this record, from files
                     partition.metadata next to the logs
  raw_key, raw_value with --bytes only: all bytes in hex, as they are in the log
  error              null, or why a key or value could not be decoded: {"part":"value","reason":"BufferUnderflow",
                     "version":3,"path":"members[2].client_host","byte_offset":212,"message":"..."}; byte_offset counts
                     from the first byte after the record type or version, and in a broken frame from the start of the
                     value

Nothing is lost: what is not decoded has its bytes in "hex" instead of "data", {"type":99,"hex":"0063..."} or
{"version":9,"hex":"0009..."}. This applies to records with an error, and to record types that this build does not know.
These types are no errors, because brokers skip them. A value version that this build does not know is an error, as in
tables and in Spark, because brokers stop loading the partition there. Strings and lengths are read as leniently as in
Kafka, and bytes after a key or value are ignored; both are counted on standard error.

Keys of SCRAM credentials, ids of delegation tokens and values of configs that are secret, or that this build does not
know, are "(redacted)" unless --show-secrets is given. Such a record has no raw_value either, and if it cannot be
decoded its "hex" is hidden.

Records below a raised log start are shown, and so are those of aborted and open transactions. Control characters,
escape sequences and marks that change the direction of text are shown as \\uXXXX on a terminal; in a file or a pipe the
JSON contains what the records contain.

--follow continues with new records, also when files are rolled and while the log cleaner works. Brokers are asked for
their high watermarks every second. Ctrl-C ends it; then the counts are printed, and the exit status is the same as
without --follow.
"""

_EXAMPLES = """\
examples:
  kafka-records dump /var/lib/kafka/data
      the coordinators' topics and the metadata log of a broker's data directory
  kafka-records dump /var/lib/kafka/data/__consumer_offsets-12
      one partition
  kafka-records dump --bootstrap broker-1:9092 --command-config client.properties --topic __consumer_offsets
      what brokers have now
  kafka-records dump /var/lib/kafka/data/__cluster_metadata-0/00000000000000001404-0000000004.checkpoint
      a checkpoint of the metadata log
  kafka-records dump /backup/00000000000000000000.log --topic __transaction_state
      a file outside the folder of its partition
  kafka-records dump /var/lib/kafka/data --type OffsetCommit --type GroupMetadata --group inventory-sync
      the commits and the members of a group
  kafka-records dump /var/lib/kafka/data/__consumer_offsets-12 --offset 10.. --bytes | kafka-records explain -
      records byte by byte
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
    add_package(parser)
    parser.add_argument(
        "--bytes", action="store_true", help="add the bytes of keys and values, which `kafka-records explain` reads"
    )
    parser.add_argument("--show-secrets", action="store_true", help=SHOW_SECRETS_HELP)
    parser.add_argument(
        "--follow",
        action="store_true",
        help="at the end of the logs, wait for new records and print them as they are appended, until Ctrl-C",
    )
    add_record_options(parser)
    parser.without = {
        "--source": NO_REQUESTS,
        "--format": "dump prints JSON lines and nothing else: leave it out",
        "--output": "dump writes to standard output: redirect it with > FILE",
    }
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Print the records, and return the exit status."""
    if options.follow and options.timeout is not None:
        raise UsageError("--follow runs until Ctrl-C, but --timeout would end it earlier: leave one of them out")
    require("dump", "tables", "numpy", "pyarrow", "google_crc32c")
    from kafka_records_tables.commands.catalog import catalog_of
    from kafka_records_tables.commands.dump_run import DumpRun
    from kafka_records_tables.commands.record_choice import RecordChoice

    catalog = catalog_of(options.package)
    choice = RecordChoice(catalog, options.type, options.group, options.transactional_id, options.offset)
    dump = DumpRun(
        given_source(options),
        options.topic,
        catalog,
        choice,
        with_bytes=options.bytes,
        show_secrets=options.show_secrets,
    )
    return dump.follow() if options.follow else dump.run()
