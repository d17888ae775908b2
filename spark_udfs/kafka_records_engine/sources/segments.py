"""Log segment files as a source: data directories of brokers, folders of single partitions, `.log` files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

from kafka_records_arrow import segments as reader
from kafka_records_arrow.problems import SegmentProblem
from kafka_records_engine.findings import found_in_file
from kafka_records_engine.sources.protocol import Context

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


class Segments:
    """The logs in some places, found anew at each call and opened when they are read.

    Parameters
    ----------
    paths
        Data directories of a broker, partition folders (`<topic>-<partition>`) or `.log` files, one or several.
    topic
        What files hold that do not stand in a folder `<topic>-<partition>`.
    """

    def __init__(self, paths: Paths, topic: str | None = None) -> None:
        given = [paths] if isinstance(paths, str | PathLike) else paths
        self._paths = [fspath(path) for path in given]
        self._topic = topic

    def partitions(self, topic: str) -> list[SegmentPartition]:
        """The log partitions of `topic`. Raises LogSourceError when there is none."""
        return [SegmentPartition(log) for log in reader.find_logs(self._paths, topic)]


@dataclass(frozen=True, slots=True)
class SegmentPartition:
    """One log partition in segment files."""

    log: reader.LogPartition

    @property
    def topic(self) -> str:
        """The topic."""
        return self.log.topic

    @property
    def partition(self) -> int:
        """The partition."""
        return self.log.partition

    @property
    def size(self) -> int:
        """Bytes of its files when they were found."""
        return self.log.size

    @property
    def in_memory(self) -> bool:
        """Never."""
        return False

    def batches(self, context: Context, columns: Collection[str]) -> Iterator[Any]:
        """See `protocol.LogPartition.batches`: the files are read once, as of one moment."""

        def on_problem(problem: SegmentProblem) -> None:
            context.find(found_in_file(problem, self.topic, self.partition))

        return reader.read_partition(
            self.log,
            settle=False,
            places=any(name in columns for name in ("file", "position")),
            columns=[name for name in columns if name in reader.RAW_SCHEMA.names],
            on_problem=on_problem,
            on_hole=context.hole,
        )
