"""`kafka-records abort-transaction`: aborts a hanging transaction on running brokers."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.commands.source_options import add_brokers
from kafka_records_tables.console.endings import DAMAGE, OK, CommandError, UsageError, require

if TYPE_CHECKING:
    from kafka_records_engine.sources.live import LiveBrokers
    from kafka_records_tables.deletion.aborting import OpenTransaction

_DESCRIPTION = """\
Abort a transaction that hangs in a partition on running brokers (KIP-664). No coordinator will
end it, and
read_committed consumers wait for it forever. Without --execute nothing is changed: the command prints what
it would
do.
"""

_DETAILS = """\
The command asks the leader of the partition for its open transactions, and the coordinators for their owners. It
refuses to abort a transaction that a transactional id owns (Ongoing, PrepareCommit, PrepareAbort), and says what ends
it. The records of any other transaction are lost: read_committed consumers never get them, and offsets that it
committed are dropped. The table open_transactions finds it (hanging_rule=no_entry), with the partition and first_offset
to pass here. Make sure that its producer does not come back: what it writes after the marker begins another hanging
transaction.

With --execute it asks for confirmation on a terminal; --yes confirms in advance, and is required without a terminal.
The leader writes one marker (WriteTxnMarkers), which needs the right ALTER on the cluster. The requests before it need
READ on the topic, DESCRIBE on transactional ids, and READ on __transaction_state if no id owns the producer. Afterwards
the leader is asked again, and its answer is printed. Nothing can restore the records.
"""

_EXAMPLES = """\
examples:
  kafka-records table open_transactions --bootstrap broker-1:9092 --where hanging_rule=no_entry
      find hanging transactions
  kafka-records abort-transaction --bootstrap broker-1:9092 --topic orders:0
      the open transactions of a partition, and which of them may be aborted
  kafka-records abort-transaction --bootstrap broker-1:9092 --topic orders:0 --start-offset 5
      show what aborting the transaction that begins at offset 5 would do
  kafka-records abort-transaction --bootstrap broker-1:9092 --topic orders:0 --start-offset 5 --execute
      abort it
"""

_EXIT_STATUS_HELP = """\
exit status:
  0    complete: the transaction is aborted, or would be
  1    the abort is refused, or the transaction is still open: the output says why
  2    no answer: wrong usage, no broker, no such transaction, or no terminal to ask on
  130  Ctrl-C
"""

_WHAT_IS_LOST: Final = "its records: read_committed consumers never get them"


def add_parser(commands: Any) -> None:
    """Add the subcommand to the subparsers `commands`."""
    parser = commands.add_parser(
        "abort-transaction",
        help="abort a hanging transaction that no coordinator will end",
        description=_DESCRIPTION,
        epilog=f"{_DETAILS}\n{_EXAMPLES}\n{_EXIT_STATUS_HELP}",
    )
    add_brokers(
        parser, "addresses of some brokers; the others are found through them", "the command ends with exit status 2"
    )
    parser.add_argument("--topic", metavar="NAME:P", help="topic and partition in which the transaction is open")
    parser.add_argument(
        "--start-offset", type=int, metavar="N", help="the offset at which the transaction begins (first_offset)"
    )
    parser.add_argument("--producer-id", type=int, metavar="N", help="the producer id of the transaction")
    parser.add_argument(
        "--execute",
        action="store_true",
        help="carry out the changes; without this option, only print what would be done",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Show the transaction or abort it, and return the exit status."""
    place = _checked(options)
    require("abort-transaction", "tables", "numpy", "pyarrow", "rich")
    from kafka_records_engine.log.files.discovery import LogSourceError
    from kafka_records_tables.console.asking import check_can_ask, confirmed
    from kafka_records_tables.deletion.aborting import abort_transaction, carry_out, open_transactions_of

    if options.execute and not options.yes:
        check_can_ask()
    source = _source(options)
    try:
        if options.start_offset is None and options.producer_id is None:
            found = open_transactions_of(source, *place)
            print_transactions(found)
            return OK
        named = {"start_offset": options.start_offset, "producer_id": options.producer_id}
        planned = abort_transaction(source, *place, **named)
        print_transactions([planned])
        if planned.refusal is not None:
            return DAMAGE
        if not options.execute:
            return OK
        if not options.yes and not confirmed(f"The transaction of producer {planned.producer_id} will be aborted."):
            raise CommandError("nothing was aborted")
        done = carry_out(source, planned)
        print_transactions([done], is_after=True)
        return OK if done.is_aborted else DAMAGE
    except LogSourceError as error:
        raise CommandError(str(error)) from None


def print_transactions(found: list[OpenTransaction], *, is_after: bool = False) -> None:
    """Print the open transactions with the effect of an abort: the expected effect or, with `is_after` (after the
    marker was requested), the actual one."""
    from kafka_records_runtime.text.printable import printable

    for each in found:
        lines = _after(each) if is_after else _before(each)
        sys.stdout.writelines(f"{printable(line)}\n" for line in lines)
    if not found:
        sys.stdout.write("no transaction is open in this partition\n")
    sys.stdout.flush()


def _before(each: OpenTransaction) -> list[str]:
    from kafka_records_tables.deletion.aborting import RIGHT
    from kafka_records_tables.tables.completeness import time_text

    owner = "no transactional id has this producer id"
    if each.transactional_id is not None:
        owner = f"transactional id {each.transactional_id} is in state {each.state}"
    held = "" if each.held_back is None else f"; {each.held_back} offsets are held back by it"
    lines = [
        f"{each.topic}-{each.partition}: producer {each.producer_id} (epoch {each.producer_epoch}) from offset "
        f"{each.first_offset}, last written to at {time_text(each.last_timestamp_ms)}: {owner}{held}"
    ]
    if each.refusal is not None:
        return [*lines, f"  refused: {each.refusal}"]
    dropped = ", and the offsets that it committed are dropped" if each.topic == "__consumer_offsets" else ""
    return [
        *lines,
        "  it hangs: nothing will end it",
        f"  what will be lost: {_WHAT_IS_LOST}{dropped}",
        f"  what it needs: {RIGHT}",
    ]


def _after(each: OpenTransaction) -> list[str]:
    if each.refusal is not None:
        return [f"  left alone: {each.refusal}"]
    if not each.is_aborted:
        return [f"  still open: {each.error}"]
    return [f"  aborted: consumers of committed records read up to offset {each.last_stable_offset} now"]


def _checked(options: argparse.Namespace) -> tuple[str, int]:
    """The topic and the partition. Raises UsageError for mutually exclusive options."""
    for name in ("bootstrap", "topic"):
        if getattr(options, name) is None:
            raise UsageError(f"the following arguments are required: --{name}")
    if options.execute and options.start_offset is None and options.producer_id is None:
        raise UsageError("--execute needs --start-offset or --producer-id: one transaction is aborted at a time")
    if options.yes and not options.execute:
        raise UsageError("--yes needs --execute")
    topic, colon, partition = options.topic.rpartition(":")
    if not colon or not topic or not (partition.isascii() and partition.isdigit()):
        raise UsageError(f"argument --topic: invalid partition {options.topic!r}: write NAME:P, such as orders:0")
    return topic, int(partition)


def _source(options: argparse.Namespace) -> LiveBrokers:
    from kafka_records_engine.log.files.discovery import LogSourceError
    from kafka_records_engine.sources.live import LiveBrokers
    from kafka_records_tables.console.waiting_notes import tell_waiting

    try:
        tell_waiting()
        return LiveBrokers(options.bootstrap, options.command_config, timeout=options.timeout)
    except LogSourceError as error:
        raise CommandError(str(error)) from None
    except ValueError as error:
        raise UsageError(f"argument --bootstrap: {error}") from None
