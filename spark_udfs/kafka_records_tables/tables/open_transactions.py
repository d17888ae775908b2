"""The open transactions: their logs and producers, their start times, and the offsets that wait for them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.coordinator.rules.open_on_purpose import has_timeout
from kafka_records_tables.tables.declaration import EVERY_TOPIC, Column, Table, timestamps
from kafka_records_tables.tables.transactions import STATES
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


LIVE_STATES: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")
"""The states in which a coordinator still has to write markers."""

MARGIN_MS: Final = 300_000
"""How much longer than its timeout a transaction may be open before Kafka calls it late
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
_OF_LOG: Final = ("first_offset", "last_timestamp_ms", "last_stable_offset", "held_back", "holds_cleaner")
_OF_ENTRY: Final = ("transactional_id", "producer_id", "state", "timeout_ms", "start_timestamp_ms", "partitions")

TIMED_OUT: Final = "timeout"
NO_ENTRY: Final = "no_entry"

MOST_TIMEOUT_MS: Final = 900_000
"""The longest timeout that coordinators grant by default (`transaction.max.timeout.ms`)."""

TABLE: Final = Table(
    name="open_transactions",
    topic=EVERY_TOPIC,
    about="every open transaction in every log, and whether it hangs",
    helper="view",
    inputs=("pending_offsets", "transactions", "open_producers"),
    optional_inputs=("pending_offsets", "transactions", "open_producers"),
    needed_without_details=True,
    records=(),
    reads=(),
    columns=(
        Column("transactional_id", "string", "the transactional id; null if none has this producer id"),
        Column("producer_id", "int64", "producer of the transaction"),
        Column("topic", "string", "name of the topic; null if no log in the source shows it open"),
        Column("partition", "int32", "partition of the topic; null if topic is null"),
        Column(
            "state",
            "string",
            "state of the transactional id: Ongoing, PrepareCommit, …; null without a transactional id",
            STATES,
        ),
        *timestamps(
            "since",
            "when the transaction began; without an entry in __transaction_state, the time of its first known record",
        ),
        Column("first_offset", "int64", "offset at which the transaction begins in this log; null if topic is null"),
        *timestamps("last", "when its producer last wrote to this log; null if unknown"),
        Column(
            "last_stable_offset",
            "int64",
            "start of the first open transaction, or else the high watermark; null if unknown",
        ),
        Column(
            "held_back",
            "int64",
            "number of offsets from last_stable_offset on, which read_committed consumers cannot read yet; 0 if an "
            "earlier transaction holds them back; null if unknown",
        ),
        Column(
            "holds_cleaner",
            "bool",
            "whether it keeps the log cleaner from cleaning older files; null if the source has no files",
        ),
        Column(
            "timeout_ms",
            "int32",
            "milliseconds after which the coordinator aborts the transaction; null without an entry in "
            "__transaction_state",
        ),
        Column(
            "is_hanging",
            "bool",
            "whether it hangs: it may stay open until somebody aborts it (KIP-664); null if unknown without "
            "__transaction_state",
        ),
        Column(
            "hanging_rule",
            "string",
            "timeout or no_entry; null if it does not hang",
        ),
        Column(
            "partitions",
            "list<struct<topic: string, partitions: list<int32>>>",
            "partitions in which its marker is still to be written; null without an entry in __transaction_state",
        ),
        Column(
            "holds_back",
            "list<struct<group_id: string, topic: string, partition: int32, log_partition: int32, log_offset: int64>>",
            "offsets that the transaction commits, pending until it ends, each with the log offset of its first commit",
        ),
    ),
    sort=("since_timestamp_ms", "producer_id", "is_hanging", "topic", "partition"),
    group="transactional_id",
    module=__name__,
    follows_clock=True,
    essential=(
        "transactional_id",
        "producer_id",
        "topic",
        "partition",
        "first_offset",
        "since_timestamp",
        "is_hanging",
    ),
    details=(
        "partitions",
        "holds_back",
        "timeout_ms",
        "last_timestamp",
        "last_stable_offset",
        "holds_cleaner",
        "hanging_rule",
        "held_back",
        "state",
    ),
    rules="""\
One row per open transaction and log: a producer has begun to write to a partition of any topic, and the partition has
no marker yet. A transaction that only its transactional id shows has one row without a topic.

Files and running brokers show all of them (KIP-664). Other sources, and an earlier `as_of`, show only transactions
with pending offsets. A transaction hangs by one of two rules (`TransactionsCommand.FindHangingTransactionsCommand`):

- `no_entry`: no transactional id has it. It stays open until an administrator aborts it (`kafka-records
  abort-transaction`).
- `timeout`: it is open for longer than `timeout_ms` and five minutes, after which Kafka counts it as late. A two-phase
  commit (KIP-939) has no timeout.

Timeouts are measured now for running brokers and for a directory that a broker writes to, and for a copy at the time
when it was made; `as_of` sets another moment. Without `__transaction_state`, `timeout` is 15 minutes
(`transaction.max.timeout.ms`) plus these five.

What the logs do not show: an entry in a partition of `__transaction_state` that was not read seems to be missing, so
read all partitions. A transaction that begins or ends while a live directory is read seems to have no entry: look
again, or pass a moment some seconds ago as `as_of`. Brokers leave out transactional ids on which the client lacks
DESCRIBE.
""",
)


def joined(parts: Mapping[str, Any], context: Context) -> Iterator[Any]:
    """The rows described in `TABLE.rules`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from kafka_records_tables.tables.column_types import instants

    pending, entries, in_logs = parts["pending_offsets"], parts["transactions"], parts.get("open_producers")
    producers = pending["producer_id"].unique().to_pylist()
    open_rows = [] if in_logs is None else [row for row in in_logs.to_pylist() if row["topic"] is not None]
    producers += [row["producer_id"] for row in open_rows]
    is_live = pc.is_in(entries["state"], pa.array(LIVE_STATES))
    is_open = pc.is_in(entries["producer_id"], pa.array(producers, pa.int64()))
    known = entries.filter(pc.or_(is_live, is_open))
    by_producer: dict[int, _Producer] = {}
    for row in pending.select(_OF_PENDING).to_pylist():
        _of(by_producer, row).pending.append(row)
    for row in known.to_pylist():
        _of(by_producer, row).add(row)
    for row in open_rows:
        _of(by_producer, row).opened.append(row)
    now = int(time.time() * 1000)
    moment = _moment(pending, entries, in_logs, now) if context.question.as_of_ms is None else context.question.as_of_ms
    rows = [row for producer in by_producer.values() for row in producer.rows(moment)]
    if context.question.as_of_ms is None:
        late = sum(1 for producer in by_producer.values() for row in producer.rows(now) if row["is_hanging"])
        _say_moment(late - sum(1 for row in rows if row["is_hanging"]), moment, context)
    if rows:
        made = {
            name: pa.array([row.get(name) for row in rows], TABLE.schema.field(name).type)
            for name in TABLE.names
            if name not in ("since_timestamp", "last_timestamp")
        }
        for name in ("since", "last"):
            made[f"{name}_timestamp"] = instants(made[f"{name}_timestamp_ms"])
        yield pa.RecordBatch.from_arrays([made[name] for name in TABLE.names], schema=TABLE.schema)


def _moment(pending: Any, entries: Any, in_logs: Any | None, now: int) -> int:
    """The newest time that the source reports for a copy; the current time for running brokers and data directories."""
    import pyarrow.compute as pc

    columns = [pending["since_timestamp_ms"], entries["start_timestamp_ms"], entries["last_update_timestamp_ms"]]
    columns += [] if in_logs is None else [in_logs["moment_ms"]]
    known = [newest for newest in (pc.max(column).as_py() for column in columns) if newest is not None]
    return min(max(known, default=now), now)


def _say_moment(late: int, moment: int, context: Context) -> None:
    """Report a note if transactions are late now that were not late at that time."""
    from kafka_records_engine.findings import JUDGED_AS_OF, Finding
    from kafka_records_runtime.errors import plural
    from kafka_records_tables.tables.completeness import time_text

    if late > 0:
        what = f"the newest time in these logs is {time_text(moment)}: timeouts are judged as of then"
        impact = f"{plural(late, 'transaction')} would be late by now; to judge as of another moment, use --as-of"
        context.report(Finding("note", JUDGED_AS_OF, what, impact))


def _of(by_producer: dict[int, _Producer], row: _Row) -> _Producer:
    return by_producer.setdefault(row["producer_id"], _Producer(row["producer_id"]))


@dataclass(slots=True)
class _Producer:
    """What is known about a producer id."""

    producer_id: int
    pending: list[_Row] = field(default_factory=list)
    opened: list[_Row] = field(default_factory=list)
    entries: dict[str, _Row] = field(default_factory=dict)
    """By transactional id."""

    def add(self, entry: _Row) -> None:
        """Replace what is known about a transactional id."""
        self.entries[entry["transactional_id"]] = {name: entry[name] for name in _OF_ENTRY}

    def rows(self, now: int) -> Iterator[_Row]:
        """The rows of its open transactions."""
        for row in self.opened:
            if row["transactional_id"] is not None:
                self.add(row)  # the coordinator's state is more reliable than an earlier record
        logs: dict[tuple[str, int], tuple[list[_Row], list[_Row]]] = {}
        for row in self.opened:
            logs.setdefault((row["topic"], row["partition"]), ([], []))[0].append(row)
        for row in self.pending:
            logs.setdefault((OFFSETS, row["log_partition"]), ([], []))[1].append(row)
        live = [entry for entry in self.entries.values() if entry["state"] in LIVE_STATES]
        answered_for = {place: entry for entry in live for place in _places(entry["partitions"])}
        shown = set()
        for place, (opened, waiting) in sorted(logs.items()):
            log = _of_log(place, opened, waiting)
            if place in answered_for:
                shown.add(answered_for[place]["transactional_id"])
                yield log | _answered_for(answered_for[place], now)
            else:
                yield log | self._left(log, opened, now)
        for entry in live:
            if entry["transactional_id"] not in shown:
                yield {"holds_back": [], **_answered_for(entry, now)}

    def _left(self, log: _Row, opened: list[_Row], now: int) -> _Row:
        """The columns of a transaction without a transactional id, as far as they are known."""
        entry: _Row = next(iter(self.entries.values()), {})
        is_known = not opened or any(row["has_entries"] for row in opened) or bool(self.entries)
        rule: str | None = NO_ENTRY
        if not is_known:
            since = log["since_timestamp_ms"]
            is_late = since is not None and now - since > MOST_TIMEOUT_MS + MARGIN_MS
            rule = TIMED_OUT if is_late else None
        return {
            **entry,
            "producer_id": self.producer_id,
            "partitions": None,
            "is_hanging": True if rule is not None else None,
            "hanging_rule": rule,
        }


def _answered_for(entry: _Row, now: int) -> _Row:
    since = entry["start_timestamp_ms"]
    is_late = since is not None and has_timeout(entry["timeout_ms"]) and now - since > entry["timeout_ms"] + MARGIN_MS
    return {
        **entry,
        "since_timestamp_ms": since,
        "is_hanging": is_late,
        "hanging_rule": TIMED_OUT if is_late else None,
    }


def _of_log(place: tuple[str, int], opened: list[_Row], pending: list[_Row]) -> _Row:
    """The columns about one log."""
    topic, partition = place
    began = [row["since_timestamp_ms"] for row in (*opened, *pending) if row["since_timestamp_ms"] is not None]
    lasts = [row["last_timestamp_ms"] for row in opened if row["last_timestamp_ms"] is not None]
    return {
        "topic": topic,
        "partition": partition,
        "first_offset": min((row["since_log_offset"] for row in pending), default=None),
        **({name: opened[0][name] for name in _OF_LOG} if opened else {}),
        "since_timestamp_ms": min(began or lasts, default=None),
        "holds_back": _held(pending),
    }


def _places(partitions: list[_Row] | None) -> Iterator[tuple[str, int]]:
    for each in partitions or ():
        for number in each["partitions"]:
            yield each["topic"], number


def _held(pending: list[_Row]) -> list[_Row]:
    held = [
        {
            **{name: row[name] for name in ("group_id", "topic", "partition", "log_partition")},
            "log_offset": row["since_log_offset"],
        }
        for row in pending
    ]
    return sorted(held, key=lambda row: (row["log_partition"], row["log_offset"], row["group_id"], row["topic"]))
