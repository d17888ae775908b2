"""Compacts the stored rows of a log partition: removes rows that no table about current state needs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from kafka_records_engine.sources._stored.log_passes import last_rows
from kafka_records_engine.sources._stored.stored_names import folder_of, gone_folder_of, set_aside, sync_folder
from kafka_records_engine.sources._stored.stretches import StoredLog, Stretch
from kafka_records_engine.sources._stored.writing_files import COLUMNS, RecordsFile
from kafka_records_engine.sources.protocol import Context
from kafka_records_engine.sources.snapshots import SnapshotPartition

NeededRows = Callable[[Iterator[Any], Context], Iterable[Any] | None]
"""A function that takes the raw rows of a log partition up to some offset, as batches in log order. It returns the rows
to keep, which suffice to interpret any later rows; None if it cannot determine them."""

_FEW_ROWS: Final = 4096


def is_due(stored: StoredLog) -> bool:
    """Whether to compact now, because as many rows were added as the last compaction left. So each row is rewritten
    only a few times."""
    stretches = stored.stretches
    if not stretches:
        return False
    kept = stretches[0].rows if _is_compacted(stretches[0]) else 0
    return sum(each.rows for each in stretches) - kept > max(_FEW_ROWS, kept)


def compact(root: str, stored: StoredLog, needed: NeededRows) -> None:
    """Replace the files of a log partition with one file. All rows are in complete files at all times, because the name
    of the new file covers the offsets of the others, which are removed last."""
    tail = last_rows(stored)
    if not tail or any(file.trouble for file in stored.files):
        return
    cut, size = tail[0]["offset"], sum(os.stat(file.path).st_size for file in stored.files)
    log = SnapshotPartition(root, stored.topic, stored.partition, size)
    context = Context(log.topic, log.partition, history=False)
    behind: list[Any] = []

    def before() -> Iterator[Any]:
        for batch in log.batches(context, COLUMNS):
            at = int((batch.column("offset").to_numpy() < cut).sum())
            if at:
                yield batch.slice(0, at)
            if at < batch.num_rows:
                behind.append(batch.slice(at))

    kept = needed(before(), context)
    if kept is None or context.log.holes or any(found.severity == "damage" for found in context.findings):
        return
    folder = folder_of(root, log.topic, log.partition)
    file = RecordsFile(folder)
    try:
        for batch in (*kept, *behind):
            if batch.num_rows:
                file.write(batch)
        stretch = _as_one(stored, file.rows)
        file.first = stretch.first
        written = file.close([stretch])
    except BaseException:
        file.abandon()
        raise
    for each in stored.files:
        if each.path != written.path:
            os.unlink(each.path)
    sync_folder(folder)
    # The merged file no longer contains the rows that surveys reported as removed from the log.
    shutil.rmtree(gone_folder_of(root, log.topic, log.partition), ignore_errors=True)


def forget(root: str, topic: str, partition: int) -> None:
    """Remove everything stored about a log partition, so that the next run reads it from its start."""
    for folder in (folder_of(root, topic, partition), gone_folder_of(root, topic, partition)):
        set_aside(folder)


def _as_one(stored: StoredLog, rows: int) -> Stretch:
    """The metadata of the file that replaces all others. It covers all their offsets, like a run that saw the log as of
    one point in time, so none of its gaps hides a deletion."""
    stretches = stored.stretches
    first, last = stretches[0], stretches[-1]
    return replace(
        first,
        topic_id=stored.topic_id,
        last=last.last,
        rows=rows,
        latest_ms=max(each.latest_ms for each in stretches),
        asked_from=_COMPACTED,
        log_start=stored.log_start,
        cleaned_up_to=last.last + 1,
        is_last=True,
        ended_at_ms=None,
        quiet_until_ms=None,
    )


_COMPACTED: Final = -1
"""Marks compacted rows. It is stored in place of the offset from which rows were requested; no run requests rows from
-1."""


def _is_compacted(stretch: Stretch) -> bool:
    return stretch.asked_from == _COMPACTED
