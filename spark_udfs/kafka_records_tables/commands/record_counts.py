"""Counts records by record type and value version without decoding them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from kafka_records_engine.columns.framing_in_columns import frame_numbers, prefix_bytes
from kafka_records_runtime.records.framing import METADATA, framing_of, prefix_of

if TYPE_CHECKING:
    from kafka_records_tables.commands.catalog import Catalog

SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("record_type", pa.int16()),
        ("record", pa.string()),
        ("records", pa.int64()),
        ("tombstones", pa.int64()),
        ("value_versions", pa.map_(pa.string(), pa.int64())),
    ]
)

COLUMNS: Final = ("control", "key", "value")

KEY_WITHOUT_TYPE: Final = "(key without a type)"
NO_FRAME: Final = "(no frame)"

_NO_VERSION: Final = -1 << 15
"""The version of a value that is too short to have one. No writer uses the lowest int16."""


class _Kind(NamedTuple):
    """What is counted together: transaction markers by `control`, and other records by type (None: the key has
    none)."""

    control: str | None
    record_type: int | None

    @property
    def order(self) -> tuple[bool, bool, int, str]:
        return self.control is not None, self.record_type is None, self.record_type or 0, self.control or ""


@dataclass(slots=True)
class _Tally:
    records: int = 0
    tombstones: int = 0
    versions: Counter[int] = field(default_factory=Counter)


def count_records(logs: Iterable[tuple[str, Iterable[Any]]], catalog: Catalog) -> list[dict[str, Any]]:
    """Rows of SCHEMA by topic and record type, followed by transaction markers.

    `logs` are pairs of a topic and the raw rows of one of its partitions, with the columns COLUMNS.

    `value_versions` maps versions (`v4`) to record counts; values too short for a version count as "none". Records
    below a raised log start count too.
    """
    topics: dict[str, dict[_Kind, _Tally]] = {}
    for topic, rows in logs:
        tallies = topics.setdefault(topic, {})
        count = _count_framed if framing_of(catalog.records(topic)) == METADATA else _count
        for batch in rows:
            count(batch, tallies)
    return [row for topic, tallies in sorted(topics.items()) for row in _rows(topic, catalog, tallies)]


def _count(batch: pa.RecordBatch, tallies: dict[_Kind, _Tally]) -> None:
    names = [*COLUMNS]
    columns = [
        batch.column("control").cast(pa.string()),
        *(prefix_bytes(batch.column(name)) for name in ("key", "value")),
    ]
    grouped = pa.Table.from_arrays(columns, names=names).group_by(names).aggregate([([], "count_all")])
    for row in grouped.to_pylist():
        control, count = row["control"], row["count_all"]
        kind = _Kind(control, None if control else prefix_of(row["key"]))
        tally = tallies.setdefault(kind, _Tally())
        tally.records += count
        if control is None and row["value"] is None:
            tally.tombstones += count
        elif control is None:
            version = prefix_of(row["value"])
            tally.versions[_NO_VERSION if version is None else version] += count


def _count_framed(batch: pa.RecordBatch, tallies: dict[_Kind, _Tally]) -> None:
    """Like `_count`, for metadata records."""
    names = ["control", "type", "version", "is_null"]
    numbers = frame_numbers(batch.column("key"), batch.column("value"))
    columns = [batch.column("control").cast(pa.string()), *numbers, batch.column("value").is_null()]
    grouped = pa.Table.from_arrays(columns, names=names).group_by(names).aggregate([([], "count_all")])
    for row in grouped.to_pylist():
        control, count = row["control"], row["count_all"]
        tally = tallies.setdefault(_Kind(control, None if control else row["type"]), _Tally())
        tally.records += count
        if control is None and row["is_null"]:
            tally.tombstones += count
        elif control is None:
            tally.versions[_NO_VERSION if row["version"] is None else row["version"]] += count


def _rows(topic: str, catalog: Catalog, tallies: dict[_Kind, _Tally]) -> Iterator[dict[str, Any]]:
    schemas, retired = catalog.records(topic), catalog.retired(topic)
    for kind in sorted(tallies, key=lambda kind: kind.order):
        tally = tallies[kind]
        if kind.control is not None:
            name = f"({kind.control} marker)" if kind.control in ("commit", "abort") else f"({kind.control})"
        elif kind.record_type is None:
            name = NO_FRAME if framing_of(schemas) == METADATA else KEY_WITHOUT_TYPE
        elif kind.record_type in schemas:
            name = schemas[kind.record_type].name
        else:
            known = retired.get(kind.record_type)
            name = "(unknown type)" if known is None else f"({known.name}, {known.why})"
        versions = {
            "none" if version == _NO_VERSION else f"v{version}": tally.versions[version]
            for version in sorted(tally.versions)
        }
        row = (topic, kind.record_type, name, tally.records, tally.tombstones, versions or None)
        yield dict(zip(SCHEMA.names, row, strict=True))
