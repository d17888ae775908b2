"""Log segment files as a source: data directories of brokers, folders of single partitions, `.log` files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Any

import pyarrow as pa

from kafka_records_engine.findings import UNREAD_LOG, Finding
from kafka_records_engine.log import reading as reader
from kafka_records_engine.sources.protocol import Context

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


class Segments:
    """The logs in some directories or files. They are found anew at each call, and opened when they are read.

    Parameters
    ----------
    paths
        Data directories of a broker, partition folders (`<topic>-<partition>`) or `.log` files, one or several.
    topic
        The topic of files that do not stand in a folder `<topic>-<partition>`.
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

    log: reader.FoundLog

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
        """See `protocol.LogPartition.batches`: the files are read once, as they were when they were opened."""
        with reader.open_log(self.log) as opened:
            _tell_about(opened, context)
            rows = reader.read_partition(
                opened,
                below_log_start=True,
                on_finding=lambda finding: context.report(replace(finding, topic=self.topic, partition=self.partition)),
                batch_rows=None,
                settle=False,
                columns=[name for name in columns if name in reader.RAW_SCHEMA.names],
                places=any(field.name in columns for field in reader.PLACE_FIELDS),
                on_hole=context.add_hole,
            )
            for batch in rows:
                kept = _from_log_start(batch, opened.log_start, context)
                if kept.num_rows:
                    yield kept
                context.progress(opened.bytes_read)
            context.counts.bytes += opened.bytes_read


def _tell_about(opened: reader.OpenLog, context: Context) -> None:
    context.counts.partitions += 1
    context.counts.files += len(opened.segments)
    context.log_start = opened.log_start
    if opened.is_part or not opened.segments:
        context.log_start = None
    else:
        # A cleaner never touches the newest file, to which the broker appends.
        context.cleaned_up_to = opened.segments[-1].base_offset
        _tell_of_start(opened, context)


def _tell_of_start(opened: reader.OpenLog, context: Context) -> None:
    """Report offsets missing at the start. A cleaner merges files into the first of them, so the name of the first file
    of a complete log is not above the log start."""
    first = opened.segments[0]
    if first.base_offset is None or first.base_offset <= opened.log_start:
        return
    last = first.base_offset - 1
    which = f"offset {last} is" if last == opened.log_start else f"offsets {opened.log_start} to {last} are"
    what = f"{which} in no file, and the log starts before"
    consequence = "a file is missing, or the log-start-offset-checkpoint beside the folder is"
    context.report(Finding("note", UNREAD_LOG, what, consequence, context.topic, context.partition, file=first.path))


def _from_log_start(batch: Any, log_start: int, context: Context) -> Any:
    """The rows from the log start on; the others are counted."""
    if not log_start:
        return batch
    is_kept = batch.column("offset").to_numpy() >= log_start
    if is_kept.all():
        return batch
    context.counts.below_log_start += int((~is_kept).sum())
    return batch.filter(pa.array(is_kept))
