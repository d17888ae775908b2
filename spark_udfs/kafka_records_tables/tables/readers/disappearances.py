"""Reads `disappearances`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafka_records_tables.tables.reader import TableReader

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema
    from kafka_records_tables.tables.tombstones.explained_tombstones import Explaining
    from kafka_records_tables.tables.words.causes import Explained

from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.decoded.decoded_records import schemas
from kafka_records_tables.tables.disappearances import _ROWS, TABLE
from kafka_records_tables.tables.tombstones.explained_tombstones import Explaining
from kafka_records_tables.tables.tombstones.kept_objects import from_bytes, to_bytes
from kafka_records_tables.tables.words.causes import as_text


def reader(context: Context) -> TableReader:
    """A reader of one log partition."""
    return _Reader(context)


class _Reader(TableReader):
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
    """What is to be kept behind the rows that came, and the rows of the table that nothing changes any more. `kept` is
    None at the start of the log."""
    known = schemas(context, "consumer_offsets")
    outside = {"schemas": known, "context": context}
    explaining = _explaining(known, context) if kept is None else from_bytes(kept, outside)
    taken = chain.from_iterable(explaining.take(batch) for batch in batches)
    found = list(_batches(chain(taken, explaining.taken()), known, context))
    return to_bytes(explaining, outside), found


def still_open(kept: bytes, context: Context) -> Iterator[Any]:
    """The rows of the table that records may change which have not come: what is known so far."""
    known = schemas(context, "consumer_offsets")
    explaining = from_bytes(kept, {"schemas": known, "context": context})
    yield from _batches(explaining.rest(), known, context)


def _explaining(known: Mapping[int, RecordSchema], context: Context) -> Explaining:
    asked = context.options
    return Explaining(known, context, retention_ms=asked["retention"], session_ms=asked["session_timeout"])


def _batches(found: Iterator[Explained], known: Mapping[int, RecordSchema], context: Context) -> Iterator[Any]:
    while some := list(islice(found, _ROWS)):
        yield _batch(some, known, context)


def _batch(every: list[Explained], known: Mapping[int, RecordSchema], context: Context) -> Any:
    numbers = {schema.name: number for number, schema in known.items()}
    names = {
        schema.name: ["group_id", *(field.name for field in schema.key.root.fields[1:])] for schema in known.values()
    }
    keys = [dict(zip(names[each.record], each.key, strict=True)) for each in every]
    times = pa.array([each.timestamp_ms for each in every], pa.int64())
    evidence = [[shown._asdict() for shown in each.evidence] for each in every]
    schema = TABLE.schema

    def column(name: str, values: Iterable[Any]) -> Any:
        return pa.array(values, schema.field(name).type)

    of_keys = ("group_id", "topic", "partition", "member_id", "regular_expression")
    columns = {
        "record_type": column("record_type", (numbers[each.record] for each in every)),
        "record": column("record", (each.record for each in every)),
        **{name: column(name, (key.get(name) for key in keys)) for name in of_keys},
        "cause": column("cause", (as_text(each.cause) for each in every)),
        "confidence": column("confidence", (each.confidence for each in every)),
        "possible_causes": column("possible_causes", (list(each.possible) for each in every)),
        "evidence": column("evidence", evidence),
        "log_timestamp": instants(times),
        "log_timestamp_ms": times,
        "write_offset": column("write_offset", (each.write_offset for each in every)),
        "log_partition": context.partition,
        "log_offset": column("log_offset", (each.log_offset for each in every)),
    }
    return record_batch(schema, columns, len(every))
