"""Tracks the transactions that no control record has ended yet, while the rows of a log partition are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

PARTS: Final = ("committed", "aborted", "open", "pending")
"""Values of `transaction` for a record whose transaction ends with a control record."""

_ENDED: Final = PARTS[:2]


class TransactionEnds:
    """Finds open transactions, and those whose marker is missing, from the rows of one log partition."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        """The first record of each producer's open transaction."""
        self._said: dict[int, int] = {}
        """For each producer, the last record whose transaction has ended according to the source."""
        self._markers: dict[int, int] = {}
        """The last marker of each producer."""

    def note(self, rows: Any) -> None:
        """Process rows with the columns `offset`, `producer_id`, `transaction` and `control`."""
        words, is_marker = rows.column("transaction"), rows.column("control").is_valid()
        is_part = pc.and_(pc.is_in(words, pa.array(PARTS)), pc.invert(is_marker))
        if not pc.any(is_part).as_py() and not (self._open and pc.any(is_marker).as_py()):
            return
        markers = _offsets(rows, is_marker, "max")
        self._markers.update(markers)
        self._said.update(_offsets(rows, pc.and_(is_part, pc.is_in(words, pa.array(_ENDED))), "max"))
        for producer in markers:
            self._open.pop(producer, None)
        for producer, offset in self._begun(rows.filter(is_part), markers).items():
            self._open.setdefault(producer, offset)

    @staticmethod
    def _begun(records: Any, markers: dict[int, int]) -> dict[int, int]:
        """The first record of each producer after its last marker."""
        if markers and records.num_rows:
            ended = pa.table({"producer_id": [*markers], "end": [*markers.values()]}).cast(
                pa.schema([("producer_id", pa.int64()), ("end", pa.int64())])
            )
            at = pc.index_in(records.column("producer_id"), ended["producer_id"].combine_chunks())
            ends = ended["end"].combine_chunks().take(at)
            records = records.filter(pc.fill_null(pc.greater(records.column("offset"), ends), True))
        return _offsets(records, None, "min")

    def last_stable(self, end: int) -> int:
        """The offset of the first record in an open transaction; `end` if none is open."""
        return min(self._open.values(), default=end)

    def without_marker(self) -> Iterator[int]:
        """For each producer whose transaction ended according to the source but has no marker: the offset of a record
        of the transaction."""
        for producer, offset in self._said.items():
            if self._markers.get(producer, -1) < offset:
                yield offset


def _offsets(rows: Any, chosen: Any, which: str) -> dict[int, int]:
    """The first (`min`) or last (`max`) offset of each producer among the chosen rows."""
    kept = rows.select(["producer_id", "offset"])
    table = pa.Table.from_batches([kept if chosen is None else kept.filter(chosen)])
    found = table.group_by("producer_id").aggregate([("offset", which)])
    return dict(zip(found["producer_id"].to_pylist(), found[f"offset_{which}"].to_pylist(), strict=True))
