"""The transactions that are open, by whom, since when, and which committed offsets wait for them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.tables.declaration import EVERY_TOPIC, Column, Table, timestamps
from kafka_records_tables.tables.transactions import STATES
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


_LIVE: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")
"""The states in which a coordinator has yet to write markers."""

MARGIN_MS: Final = 300_000
"""How much longer than its time-out a transaction may be open before Kafka calls it late
(`ProducerStateManager.LATE_TRANSACTION_BUFFER_MS`, KIP-664)."""

_Row = dict[str, Any]

_OF_PENDING: Final = (
    "producer_id",
    "group_id",
    "topic",
    "partition",
    "since_timestamp_ms",
    "log_partition",
    "since_log_offset",
)

TIMED_OUT: Final = "timeout"
NO_ENTRY: Final = "no_entry"

TABLE: Final = Table(
    name="open_transactions",
    topic=EVERY_TOPIC,
    about="every open transaction, whether it hangs, and the offsets that wait for it",
    helper="view",
    inputs=("pending_offsets", "transactions"),
    join_keys=("producer_id",),
    records=(),
    reads=(),
    columns=(
        Column("transactional_id", "string", "the transactional id; null if none has this producer id"),
        Column("producer_id", "int64", "its producer id"),
        Column(
            "state", "string", "state of the transactional id: Ongoing, PrepareCommit, …; null if none has it", STATES
        ),
        *timestamps("since", "when the transaction began; of one without an entry, log timestamp of its first commit"),
        Column("timeout_ms", "int32", "milliseconds after which the coordinator aborts it; null without an entry"),
        Column("is_hanging", "bool", "whether it may stay open until somebody aborts it (KIP-664)"),
        Column(
            "hanging_rule",
            "string",
            "timeout: it is open for longer than its time-out and five minutes. no_entry: no transactional id has it "
            "open in this partition. Null where it does not hang",
        ),
        Column(
            "partitions",
            "list<struct<topic: string, partitions: list<int32>>>",
            "partitions that wait for its marker, as its entry says; null without an entry",
        ),
        Column(
            "holds_back",
            "list<struct<group_id: string, topic: string, partition: int32, log_partition: int32, log_offset: int64>>",
            "pending offsets, with the place of its first commit of each: no cleaner goes behind that",
        ),
    ),
    sort=("since_timestamp_ms", "producer_id", "is_hanging"),
    group="transactional_id",
    module=__name__,
    essential=("transactional_id", "producer_id", "state", "since_timestamp", "is_hanging"),
    details=("partitions", "holds_back", "timeout_ms", "hanging_rule"),
    rules="""\
One row per transactional id in state Ongoing, PrepareCommit or PrepareAbort, and one per producer with pending offsets
that no such transactional id answers for.

A transaction in a partition of `__consumer_offsets` is answered for if the transactional id with its producer id is in
one of these states and names this partition (`TransactionsCommand.FindHangingTransactionsCommand`; KIP-664): then the
coordinator will write a marker there. Nobody will end any other one: it hangs by the rule `no_entry`. By the rule
`timeout` hangs what is open for longer than `timeout_ms` and a margin of five minutes, after which Kafka counts it as
late (`ProducerStateManager.LATE_TRANSACTION_BUFFER_MS`); the coordinator aborts it after `timeout_ms`, so either no
coordinator is at work or its markers do not arrive. Both count up to now, or to the moment of `as_of`: name that of a
copy.

What the logs cannot know: partitions of other topics are not read, so a transaction that hangs only there is seen by
its entry alone. Read all partitions of both topics: an entry that was not read is missing. Of running brokers and live
directories not all logs are read at one moment, and a transaction that begins or ends in between seems to have no
entry; with `as_of` some seconds ago both topics are as of that moment.
""",
)


def joined(parts: Mapping[str, Any], context: Context) -> Iterator[Any]:
    """The rows; `TABLE.rules` says which."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from kafka_records_tables.tables.column_types import instants

    pending, entries = parts["pending_offsets"], parts["transactions"]
    is_live = pc.is_in(entries["state"], pa.array(_LIVE))
    has_pending = pc.is_in(entries["producer_id"], pending["producer_id"].unique())
    by_producer: dict[int, tuple[list[_Row], list[_Row]]] = {}
    for number, table in enumerate((pending.select(_OF_PENDING), entries.filter(pc.or_(is_live, has_pending)))):
        for row in table.to_pylist():
            by_producer.setdefault(row["producer_id"], ([], []))[number].append(row)
    now = int(time.time() * 1000) if context.question.as_of_ms is None else context.question.as_of_ms
    rows = [row for waiting, known in by_producer.values() for row in _of_producer(waiting, known, now)]
    if rows:
        columns = {name: [row.get(name) for row in rows] for name in TABLE.names if name != "since_timestamp"}
        made = {name: pa.array(told, TABLE.schema.field(name).type) for name, told in columns.items()}
        made["since_timestamp"] = instants(made["since_timestamp_ms"])
        yield pa.RecordBatch.from_arrays([made[name] for name in TABLE.names], schema=TABLE.schema)


def _of_producer(waiting: list[_Row], known: list[_Row], now: int) -> Iterator[_Row]:
    """The open transactions of one producer id: its pending offsets, and the transactional ids that have it."""
    for entry in known:
        if entry["state"] in _LIVE:
            named = {
                number
                for each in entry["partitions"] or ()
                if each["topic"] == OFFSETS
                for number in each["partitions"]
            }
            held = [row for row in waiting if row["log_partition"] in named]
            waiting = [row for row in waiting if row["log_partition"] not in named]
            since = entry["start_timestamp_ms"]
            is_late = since is not None and now - since > entry["timeout_ms"] + MARGIN_MS
            yield {
                **entry,
                "since_timestamp_ms": since,
                "is_hanging": is_late,
                "hanging_rule": TIMED_OUT if is_late else None,
                "holds_back": _held(held),
            }
    if waiting:
        entry = known[0] if known else {}
        since = [row["since_timestamp_ms"] for row in waiting if row["since_timestamp_ms"] is not None]
        yield {
            **entry,
            "partitions": None,
            "producer_id": waiting[0]["producer_id"],
            "since_timestamp_ms": min(since, default=None),
            "is_hanging": True,
            "hanging_rule": NO_ENTRY,
            "holds_back": _held(waiting),
        }


def _held(pending: list[_Row]) -> list[_Row]:
    held = [
        {
            **{name: row[name] for name in ("group_id", "topic", "partition", "log_partition")},
            "log_offset": row["since_log_offset"],
        }
        for row in pending
    ]
    return sorted(held, key=lambda row: (row["log_partition"], row["log_offset"], row["group_id"], row["topic"]))
