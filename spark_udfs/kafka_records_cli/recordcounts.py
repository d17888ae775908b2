"""Counting records by the first two bytes of key and value, without decoding any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_arrow.segments import LogPartition, read_partition
from kafka_records_cli.topics import record_schemas

if TYPE_CHECKING:
    from kafka_records_arrow.problems import OnProblem

COLUMNS: Final = ("topic", "record_type", "record", "records", "tombstones", "value_versions")

_NO_VERSION: Final = -1 << 15
"""Stands for a value too short for a version: no writer uses the lowest int16."""


class _Kind(NamedTuple):
    """What is counted together: transaction markers by `control`, other records by type (None: the key has none)."""

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


def count_records(logs: Iterable[LogPartition], on_problem: OnProblem) -> list[tuple[Any, ...]]:
    """Rows of COLUMNS by topic and record type, transaction markers behind them.

    `value_versions` maps the versions (`v4`) to their numbers of records; a value too short for a version counts under
    "none". Records below a raised log start count too.
    """
    topics: dict[str, dict[_Kind, _Tally]] = {}
    for log in logs:
        tallies = topics.setdefault(log.topic, {})
        for batch in read_partition(log, below_log_start=True, on_problem=on_problem):
            _count(batch, tallies)
    return [row for topic, tallies in sorted(topics.items()) for row in _rows(topic, tallies)]


def _count(batch: pa.RecordBatch, tallies: dict[_Kind, _Tally]) -> None:
    names = ["control", "key", "value"]
    columns = [
        batch.column("control").cast(pa.string()),
        *(pc.binary_slice(batch.column(name), 0, 2) for name in ("key", "value")),
    ]
    grouped = pa.Table.from_arrays(columns, names=names).group_by(names).aggregate([([], "count_all")])
    for row in grouped.to_pylist():
        control, count = row["control"], row["count_all"]
        kind = _Kind(control, None if control else _int16(row["key"]))
        tally = tallies.setdefault(kind, _Tally())
        tally.records += count
        if control is None and row["value"] is None:
            tally.tombstones += count
        elif control is None:
            version = _int16(row["value"])
            tally.versions[_NO_VERSION if version is None else version] += count


def _rows(topic: str, tallies: dict[_Kind, _Tally]) -> Iterator[tuple[Any, ...]]:
    schemas = record_schemas(topic)
    for kind in sorted(tallies, key=lambda kind: kind.order):
        tally = tallies[kind]
        schema = None if kind.record_type is None else schemas.get(kind.record_type)
        if kind.control is not None:
            name = f"({kind.control} marker)"
        elif kind.record_type is None:
            name = "(key without a type)"
        else:
            name = "(unknown type)" if schema is None else schema.name
        versions = {
            "none" if version == _NO_VERSION else f"v{version}": tally.versions[version]
            for version in sorted(tally.versions)
        }
        yield topic, kind.record_type, name, tally.records, tally.tombstones, versions or None


def _int16(start: bytes | None) -> int | None:
    return int.from_bytes(start, "big", signed=True) if start is not None and len(start) == 2 else None
