"""Notes about groups with rows from several log partitions in tables of current state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kafka_records_engine.findings import OTHER_PARTITIONS, Finding
from kafka_records_runtime.errors import plural

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_tables.tables import Table

_TABLES: Final = ("current_offsets", "groups")
_CONSEQUENCE: Final = (
    "its coordinator reads one of them, and other rows are copies from before partitions were added: the table checks "
    "lists them as wrong_partition"
)


class RepeatedGroups:
    """The groups of a table with rows from several log partitions."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._places: dict[str, int] = {}
        """The log partition of each group's first row."""
        self._found: dict[str, None] = {}

    def watched(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pass on the rows as they arrive, and record their groups."""
        import pyarrow as pa

        if self._table.name not in _TABLES:
            yield from rows
            return
        for batch in rows:
            pairs = pa.table(batch.select(["group_id", "log_partition"])).group_by(["group_id", "log_partition"])
            for group, place in zip(*(each.to_pylist() for each in pairs.aggregate([]).columns), strict=True):
                if place is not None and self._places.setdefault(group, place) != place:
                    self._found[group] = None
            yield batch

    def notes(self) -> list[Finding]:
        """A note about all these groups. Call this after the last row."""
        if not self._found:
            return []
        first, more = min(self._found), len(self._found) - 1
        others = f", and so {'has' if more == 1 else 'have'} {plural(more, 'other group')}" if more else ""
        what = f"the group {first!r} has rows of more than one log partition{others}"
        return [Finding("note", OTHER_PARTITIONS, what, _CONSEQUENCE, self._table.topic)]
