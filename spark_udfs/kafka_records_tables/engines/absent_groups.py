"""Notes about requested groups without rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kafka_records_engine.findings import ABSENT_GROUP, Finding

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_tables.tables import Table


def absence_of(group: str) -> str:
    """The text of the note about an absent group."""
    return f"no row is about {group!r}"


class AbsentGroups:
    """The requested groups that have had no row so far. `groups` are the requested names; None means all groups."""

    def __init__(self, groups: Sequence[str] | None) -> None:
        self._left = dict.fromkeys(groups or ())
        self._can_tell = False

    def watched(self, table: Table, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pass on the rows of a table as they arrive, and mark their groups as present."""
        names_groups = table.group in table.names
        self._can_tell |= names_groups
        for batch in rows:
            if self._left and names_groups:
                for group in batch.column(table.group).unique().to_pylist():
                    self._left.pop(group, None)
            yield batch

    def notes(self, topic: str | None = None) -> list[Finding]:
        """A note for each absent group. Call this after the last row."""
        return [
            Finding(
                "note",
                ABSENT_GROUP,
                absence_of(group),
                "the group has no rows, or does not exist: look for its name in the groups table",
                topic,
            )
            for group in (self._left if self._can_tell else ())
        ]
