"""Why each record of offsets, groups and members was deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, cast

from kafka_records_tables.tables.committed.commits import COMMITS
from kafka_records_tables.tables.declaration import LOG_PLACE, RETENTION, Column, Option, Table, timestamps
from kafka_records_tables.tables.replay.records_of_groups import GROUP_RECORDS, PARTS
from kafka_records_tables.tables.words.causes import CAUSES

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema
    from kafka_records_tables.tables.tombstones.explained_tombstones import Explaining
    from kafka_records_tables.tables.words.causes import Explained, Shown

_ROWS: Final = 8192

_OF_KEYS: Final = ("group_id", "topic", "partition", "member_id", "regular_expression")
"""The columns that are fields of keys."""

TABLE: Final = Table(
    name="disappearances",
    topic="__consumer_offsets",
    about="every record that deletes an offset, a group or a member: why, and how sure that is",
    helper="fold",
    records=(*COMMITS, *GROUP_RECORDS, *PARTS),
    reads=(
        "offset",
        "timestamp_ms",
        "base_offset",
        "leader_epoch",
        "key",
        "value",
        "producer_id",
        "transaction",
        "control",
    ),
    columns=(
        Column("record_type", "int16", "record type of the tombstone"),
        Column("record", "string", "name of that type"),
        Column("group_id", "string", "the group"),
        Column("topic", "string", "topic of the offset; null for other records"),
        Column("partition", "int32", "partition of that topic; null for other records"),
        Column("member_id", "string", "the member; null for a record that is about none"),
        Column("regular_expression", "string", "the regular expression; null for other records"),
        Column(
            "cause",
            "string",
            "why it was written: one of the words below, or several of them with `or` between",
            tuple(CAUSES),
        ),
        Column("confidence", "string", "high, medium or low, see below", ("high", "medium", "low")),
        Column("possible_causes", "list<string>", "every cause that the log does not rule out, whatever is assumed"),
        Column(
            "evidence",
            "list<struct<shows: string, log_offset: int64>>",
            "what the log shows, see below, and the record that shows it; null where none does alone",
        ),
        *timestamps("log", "when it was written"),
        Column("write_offset", "int64", "offset of the first of the records that were written with it"),
        *LOG_PLACE,
    ),
    sort=("log_partition", "log_offset"),
    needs_transactions=True,
    group="group_id",
    module=__name__,
    is_history=True,
    needs_all_groups=True,
    form_of_kept=5,
    essential=("record", "group_id", "topic", "partition", "cause", "confidence"),
    details=(
        "record_type",
        "regular_expression",
        "possible_causes",
        "evidence",
        "log_timestamp",
        "write_offset",
        "log_partition",
        "log_offset",
    ),
    options=(
        RETENTION,
        Option(
            "session_timeout",
            "duration",
            "group.consumer.session.timeout.ms of the brokers, and those of share and streams groups",
            default="45s",
        ),
    ),
    rules="""\
One row per tombstone that the log still holds. A log says what was deleted and not why; much of it follows from what
stands around a tombstone, for a coordinator writes all that one request or timer does at once.

The causes, in the words of Kafka's own calls:

- `expired`, `group_expired`: a clean-up took an offset that was due, or a group that was empty and without offsets
  (`GroupCoordinatorShard.cleanupGroupMetadata`). The rules are those of `expirations`.
- `group_deleted`, `offset_deleted`: an administrator did (DeleteGroups, OffsetDelete; KIP-229, KIP-496).
- `topic_deleted`: the topic was deleted, and with it the offsets of all groups.
- `member_left`, `session_timeout`, `rebalance_timeout`: the member left or was removed, was not heard of, or did not
  give up partitions, join or sync in time (KIP-848).
- `member_replaced`: a static member came back under a new id, which the same write adds (KIP-345).
- `regex_unused`: no member subscribes by the regular expression any more.
- `conversion`: the group went over between the classic and the consumer protocol, with its members.
- `replaced_empty_group`: an empty group gave way to one of another kind; its offsets stay.
- `record_unused`: a newer broker has no use for the record (type 4 since Kafka 4.1).

How sure that is:

- `high`: the log rules out every other cause, whatever the retention and the timeouts are. A cause of several words is
  sure, too: it is one of them, and the log cannot tell which.
- `medium`: others are possible, but not with the given retention and timeouts, or only by chance: an administrator may
  delete just what the next clean-up would take.
- `low`: records around it are missing, nothing is known of what it deleted, or it is at odds with the rules.
  `possible_causes` says what else it may be.

At the end of a log, or at the moment that is asked for, more may follow. What stays is taken as proof when the clock of
the log has gone on by more than a minute (one record counts for 20 seconds of it at most, for clocks jump), and the
last records that were written are never `high`: what is said of these may still change.

What evidence shows:

- `not_due`: this offset could not expire yet, with the retention that was given; where `expired` is not among the
  possible causes, with none: its commit names a later time, or it is younger than a minute, the shortest retention
  there is. `due`: it could, with the one that was given. `subscribed`: the group subscribed to its topic. `members`:
  the group's members kept it. `open_transaction`: a transaction was open that commits it, or for the group.
- `stays`: this offset of the group was as due and stays, so no clean-up ran. `stays_in_topic`: this offset of the same
  topic stays, so the topic was not deleted. `several_groups`: the write is about several, a request about one.
- `group_ends`: the group ends in the same write, with this record. `other_kind`: there one of another kind begins.
- `same_instance`: the record of the member that takes the place under the same instance id.
- `seen_before`, `session_timeout_over`, `rebalance_timeout_over`: the last record that a heartbeat of the member made;
  the session timeout was not over since, or just was, or the rebalance timeout was.

A table is made of one log partition, so share state, which stands in a topic of its own, is not in this one:
`share_disappearances` has its tombstones.

What the log cannot know: heartbeats are in no record, so `member_left` and `session_timeout` are mostly one answer. A
classic group keeps its members in one record; that one leaves is no tombstone. Two requests that a coordinator carried
out within a millisecond and wrote into one batch look like one. Where a cleaner has been, or the log begins in the
middle, less is ruled out, and tombstones are gone that were there; a finding says from which offset on the log is
complete. A source without `timestamp_ms` shows no times, one without `base_offset` fewer writes.
""",
)


def rows(batches: Iterator[Any], context: Context) -> Iterator[Any]:
    """The rows; `TABLE.rules` says which."""
    from kafka_records_tables.tables.decoded.decoded_records import schemas

    known = schemas(context, "consumer_offsets")
    explaining = _explaining(known, context)
    yield from _batches(chain(_taken(explaining, batches), explaining.rest()), known, context)


def go_on(kept: bytes | None, batches: Iterator[Any], context: Context) -> tuple[bytes, list[Any]]:
    """What is to be kept behind the rows that came, and the rows of the table that nothing changes any more. `kept` is
    None at the start of the log."""
    from kafka_records_tables.tables.decoded.decoded_records import schemas
    from kafka_records_tables.tables.tombstones.kept_objects import from_bytes, to_bytes

    known = schemas(context, "consumer_offsets")
    outside = {"schemas": known, "context": context}
    explaining = _explaining(known, context) if kept is None else from_bytes(kept, outside)
    found = list(_batches(chain(_taken(explaining, batches), explaining.taken()), known, context))
    return to_bytes(explaining, outside), found


def still_open(kept: bytes, context: Context) -> Iterator[Any]:
    """The rows of the table that records may change which have not come: what is known so far."""
    from kafka_records_tables.tables.decoded.decoded_records import schemas
    from kafka_records_tables.tables.tombstones.kept_objects import from_bytes

    known = schemas(context, "consumer_offsets")
    explaining = from_bytes(kept, {"schemas": known, "context": context})
    yield from _batches(explaining.rest(), known, context)


def _explaining(known: Mapping[int, RecordSchema], context: Context) -> Explaining:
    from kafka_records_tables.tables.tombstones.explained_tombstones import Explaining

    asked = context.options
    return Explaining(known, context, retention_ms=asked["retention"], session_ms=asked["session_timeout"])


def _taken(explaining: Explaining, batches: Iterator[Any]) -> Iterator[Explained]:
    return chain.from_iterable(explaining.take(batch) for batch in batches)


def _batches(found: Iterator[Explained], known: Mapping[int, RecordSchema], context: Context) -> Iterator[Any]:
    while some := list(islice(found, _ROWS)):
        yield _batch(some, known, context)


def _batch(every: list[Explained], known: Mapping[int, RecordSchema], context: Context) -> Any:
    import pyarrow as pa

    from kafka_records_tables.tables.column_types import instants, record_batch
    from kafka_records_tables.tables.words.causes import Explained, as_text

    numbers = {schema.name: number for number, schema in known.items()}
    found = Explained(*cast("tuple[Any, ...]", zip(*every, strict=True)))  # a column of each member
    times = pa.array(found.timestamp_ms, pa.int64())
    schema = TABLE.schema
    columns = {
        "record_type": _mapped(found.record, numbers.__getitem__, schema.field("record_type").type),
        "record": _mapped(found.record, str, pa.string()),
        **_key_columns(found.record, found.key, known),
        "cause": _mapped(found.cause, as_text, pa.string()),
        "confidence": _mapped(found.confidence, str, pa.string()),
        "possible_causes": _mapped(found.possible, list, schema.field("possible_causes").type),
        "evidence": _evidence(found.evidence),
        "log_timestamp": instants(times),
        "log_timestamp_ms": times,
        "write_offset": pa.array(found.write_offset, pa.int64()),
        "log_partition": context.partition,
        "log_offset": pa.array(found.log_offset, pa.int64()),
    }
    return record_batch(schema, columns, len(every))


def _mapped(values: Iterable[Any], function: Callable[[Any], Any], kind: Any) -> Any:
    """A column with what `function` makes of each value; few values differ, and each is looked at once."""
    import pyarrow as pa

    places: dict[Any, int] = {}
    taken = pa.array([places.setdefault(value, len(places)) for value in values], pa.int32())
    return pa.array([function(value) for value in places], kind).take(taken)


def _key_columns(records: Iterable[str], keys: Iterable[Any], known: Mapping[int, RecordSchema]) -> dict[str, Any]:
    """The columns that are fields of keys, null where a record has no such field."""
    import pyarrow as pa

    rows: dict[str, list[int]] = {}
    of_record: dict[str, list[Any]] = {}
    for row, (record, key) in enumerate(zip(records, keys, strict=True)):
        rows.setdefault(record, []).append(row)
        of_record.setdefault(record, []).append(key)
    count = sum(map(len, rows.values()))
    columns: dict[str, list[Any]] = {name: [None] * count for name in _OF_KEYS}
    for schema in known.values():
        if schema.name in rows:
            names = ["group_id", *(field.name for field in schema.key.root.fields[1:])]
            for name, values in zip(names, zip(*of_record[schema.name], strict=True), strict=True):
                if name in columns:
                    column = columns[name]
                    for row, value in zip(rows[schema.name], values, strict=True):
                        column[row] = value
    return {name: pa.array(column, TABLE.schema.field(name).type) for name, column in columns.items()}


def _evidence(shown: Any) -> Any:
    import pyarrow as pa

    kind = TABLE.schema.field("evidence").type
    ends: list[int] = [0]
    every: list[Shown] = []
    for some in shown:
        every += some
        ends.append(len(every))
    shows = _mapped((each.shows for each in every), str, pa.string())
    offsets = pa.array([each.log_offset for each in every], pa.int64())
    elements = pa.StructArray.from_arrays([shows, offsets], fields=list(kind.value_type))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), elements, type=kind)
