"""Reads `disappearances`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa

from kafka_records_tables.coordinator.records.decoded_records import schemas
from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.disappearances import TABLE
from kafka_records_tables.tables.reader import TableReader
from kafka_records_tables.tables.tombstones.kept_objects import from_bytes, to_bytes
from kafka_records_tables.tables.tombstones.tombstone_explainer import TombstoneExplainer
from kafka_records_tables.tables.words.causes import Evidence, Explained, as_text

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema


_ROWS: Final = 8192


_OF_KEYS: Final = ("group_id", "topic", "partition", "member_id", "regular_expression")
"""The columns that are fields of keys."""


class Reader(TableReader):
    needs_all_groups = uses_topics = True
    form_of_kept = 11

    def __init__(self, context: Context) -> None:
        self._context = context
        self._schemas = schemas(context, "consumer_offsets")
        self._explaining = _explaining(self._schemas, context)
        self._found: list[Explained] = []

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        self._found += self._explaining.take(batch)
        while len(self._found) >= _ROWS:
            some, self._found = self._found[:_ROWS], self._found[_ROWS:]
            yield _batch(some, self._schemas, self._context)

    def finish(self) -> Iterator[pa.RecordBatch]:
        return _batches(chain(self._found, self._explaining.rest()), self._schemas, self._context)


def go_on(kept: bytes | None, batches: Iterator[Any], context: Context) -> tuple[bytes, list[Any]]:
    """The state to keep after the rows so far, and the rows of the table that can no longer change. `kept` is None at
    the start of the log."""
    known = schemas(context, "consumer_offsets")
    outside = {"schemas": known, "context": context}
    explaining = _explaining(known, context) if kept is None else from_bytes(kept, outside)
    taken = chain.from_iterable(explaining.take(batch) for batch in batches)
    found = list(_batches(chain(taken, explaining.taken()), known, context))
    return to_bytes(explaining, outside), found


def still_open(kept: bytes, context: Context) -> Iterator[Any]:
    """The rows of the table that later records may still change, as far as known."""
    known = schemas(context, "consumer_offsets")
    explaining = from_bytes(kept, {"schemas": known, "context": context})
    yield from _batches(explaining.rest(), known, context)


def _explaining(known: Mapping[int, RecordSchema], context: Context) -> TombstoneExplainer:
    asked = context.question.options
    return TombstoneExplainer(known, context, retention_ms=asked["retention"], session_ms=asked["session_timeout"])


def _batches(found: Iterator[Explained], known: Mapping[int, RecordSchema], context: Context) -> Iterator[Any]:
    while some := list(islice(found, _ROWS)):
        yield _batch(some, known, context)


def _batch(every: list[Explained], known: Mapping[int, RecordSchema], context: Context) -> Any:
    numbers = {schema.name: number for number, schema in known.items()}
    found = Explained(*cast("tuple[Any, ...]", zip(*every, strict=True)))  # one column per field of the named tuple
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
    """A column with the results of `function`, which is called once per distinct value because there are few."""
    places: dict[Any, int] = {}
    taken = pa.array([places.setdefault(value, len(places)) for value in values], pa.int32())
    return pa.array([function(value) for value in places], kind).take(taken)


def _key_columns(records: Iterable[str], keys: Iterable[Any], known: Mapping[int, RecordSchema]) -> dict[str, Any]:
    """The columns that are fields of keys; null if a record has no such field."""
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
    kind = TABLE.schema.field("evidence").type
    ends: list[int] = [0]
    every: list[Evidence] = []
    for some in shown:
        every += some
        ends.append(len(every))
    shows = _mapped((each.shows for each in every), str, pa.string())
    offsets = pa.array([each.log_offset for each in every], pa.int64())
    elements = pa.StructArray.from_arrays([shows, offsets], fields=list(kind.value_type))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), elements, type=kind)
