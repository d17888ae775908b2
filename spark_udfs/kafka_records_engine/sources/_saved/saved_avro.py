"""Avro, which needs the package fastavro."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from kafka_records_engine.log.places import LogSourceError, Place
from kafka_records_engine.sources._saved.saved_formats import open_stream, unreadable
from kafka_records_engine.sources._saved.tabular import Sequential, package_missing

_ROWS: Final = 10_000
"""The rows of a batch: objects of Python until they are in it."""

_TYPES: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_TIMES: Final = {
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
}


class AvroReader(Sequential):
    """See `FileReader`."""

    def __init__(self, place: Place) -> None:
        try:
            import fastavro
        except ModuleNotFoundError:
            raise package_missing(place, "Avro", "fastavro", "avro") from None
        self._place = place
        self._fastavro = fastavro
        try:
            with open_stream(place) as file:
                schema: Any = fastavro.block_reader(file).writer_schema
        except Exception as error:  # fastavro raises whatever hostile bytes lead it into
            raise unreadable(place, error) from None
        kind = _type(schema)
        if not pa.types.is_struct(kind):
            raise LogSourceError(str(place), "the Avro schema is no record: rows have columns")
        self.fields = {field.name: field.type for field in kind}

    def batches(self, columns: Sequence[str], group: int | None = None) -> Iterator[tuple[int, Any]]:
        """See `FileReader`."""
        names = list(dict.fromkeys(name.partition(".")[0] for name in columns))
        first = 0
        try:
            with open_stream(self._place) as file:
                rows: Iterator[Any] = (row for block in self._fastavro.block_reader(file) for row in block)
                while some := list(islice(rows, _ROWS)):
                    arrays = [pa.array([row[name] for row in some], self.fields[name]) for name in names]
                    yield first, pa.record_batch(arrays, names=names)
                    first += len(some)
        except Exception as error:
            text = " ".join(str(error).split()) or "the file ends in the middle of a block"
            raise LogSourceError(str(self._place), f"behind row {first} this is no Avro: {text}") from None


def _type(kind: Any) -> Any:
    if isinstance(kind, list):
        kinds = [each for each in kind if each != "null"]
        return _type(kinds[0]) if len(kinds) == 1 else pa.null() if not kinds else pa.list_(pa.null())
    if isinstance(kind, dict):
        if kind.get("logicalType") in _TIMES:
            return _TIMES[kind["logicalType"]]
        if kind["type"] == "record":
            return pa.struct([(field["name"], _type(field["type"])) for field in kind["fields"]])
        return _type(kind["type"])
    return _TYPES.get(kind, pa.list_(pa.null()))  # what is nested can stand for no column
