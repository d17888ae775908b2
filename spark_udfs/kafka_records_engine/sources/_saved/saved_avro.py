"""Avro, which needs the `fastavro` package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.sources._saved.saved_formats import open_stream, unreadable
from kafka_records_engine.sources._saved.tabular import Sequential, package_missing

_ROWS: Final = 10_000
"""The number of rows in a batch. Rows are Python objects until the batch is complete."""

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
            kind = _type(schema)
            least = _least_bytes(schema, {}, frozenset())
        except Exception as error:  # fastavro may raise any exception on hostile bytes
            raise unreadable(place, error) from None
        if not pa.types.is_struct(kind):
            raise LogSourceError(str(place), "the Avro schema is not a record, so there are no columns")
        if not least:
            raise LogSourceError(str(place), f"the Avro schema describes rows {_WITHOUT_BYTES}")
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
            raise LogSourceError(str(self._place), f"after row {first} the data is not Avro: {text}") from None


_BYTES: Final[Mapping[str, int]] = {"null": 0, "float": 4, "double": 8}
"""The minimum size of a value in bytes, by type; 1 for all other types."""

_WITHOUT_BYTES: Final = "that take no bytes: a few bytes of such a file can claim any number of them"


def _least_bytes(kind: Any, named: dict[str, int], around: frozenset[str]) -> int:
    """The minimum size of a value in bytes. Raises ValueError for schemas that fastavro cannot read safely: recursive
    types, whose depth depends on the file and can crash the process, and items that use no bytes.

    `named` are the named types defined so far, by full name, as in the schema that fastavro returns; `around` are the
    types whose definition encloses this one.
    """
    if isinstance(kind, list):
        for each in kind:
            _least_bytes(each, named, around)
        return 1  # the index of the type in the union
    if isinstance(kind, str):
        if kind in around:
            raise ValueError(
                f"the type {kind} in the Avro schema contains itself, so rows could be nested to any depth"
            )
        return named.get(kind, _BYTES.get(kind, 1))
    name, what = kind.get("name", ""), kind["type"]
    if what in ("record", "error"):
        inner = around | {name}
        named[name] = sum(_least_bytes(field["type"], named, inner) for field in kind["fields"])
        return named[name]
    if what in ("array", "map"):
        if what == "array" and not _least_bytes(kind["items"], named, around):
            raise ValueError(f"the Avro schema has items {_WITHOUT_BYTES}")
        if what == "map":
            _least_bytes(kind["values"], named, around)
        return 1
    if what in ("fixed", "enum"):
        named[name] = int(kind["size"]) if what == "fixed" else 1
        return named[name]
    return _least_bytes(what, named, around)


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
    return _TYPES.get(kind, pa.list_(pa.null()))  # nested types cannot be columns
