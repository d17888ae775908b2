"""In which batch of which file a record stands, for messages about records that came without their place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kafka_records_arrow.batches import read_batch
from kafka_records_arrow.scanning import read_chunks
from kafka_records_arrow.segments import LogPartition, SegmentProblem, open_log


class Place(NamedTuple):
    """A batch; prints as the start of a SegmentProblem does."""

    file: str
    position: int
    batch_offset: int

    def __str__(self) -> str:
        return f"{self.file}: byte {self.position}, batch at offset {self.batch_offset}"


def places_of(log: LogPartition, offsets: Iterable[int]) -> dict[int, Place]:
    """The batches that hold the records at `offsets`; a hop through the files, no batch is opened."""
    wanted = sorted(set(offsets), reverse=True)
    found: dict[int, Place] = {}
    if not wanted:
        return found
    with open_log(log) as opened:
        for segment in opened.segments:
            for chunk in read_chunks(segment, True, _ignore):
                for at in chunk.entries.tolist():
                    batch = read_batch(chunk.data, at, chunk.position + at)
                    while wanted and wanted[-1] <= batch.last_offset:
                        found[wanted.pop()] = Place(segment.path, batch.position, batch.offset)
    return found


def _ignore(problem: SegmentProblem) -> None:
    """What is wrong with the files is told by whoever reads their records."""
