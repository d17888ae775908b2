"""One pass over a log partition for a snapshot. It stores new rows, and records which rows the log has lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_records_engine.findings import DAMAGED_LOG, Finding
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.files.source_error import NOT_READABLE, NotReadable
from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_engine.sources._stored.run_state import Added, RunState
from kafka_records_engine.sources._stored.stored_names import folder_of, gone_folder_of
from kafka_records_engine.sources._stored.stretches import Lost, StoredLog, Stretch, Survey, ranges_of, read_on, told_of
from kafka_records_engine.sources._stored.transaction_ends import PARTS, TransactionEnds
from kafka_records_engine.sources._stored.writing_files import COLUMNS, SCHEMA, TAIL, RecordsFile, write_survey
from kafka_records_engine.sources.abilities import HasHighWatermark, WasRead, has
from kafka_records_engine.sources.collected_findings import Findings
from kafka_records_engine.sources.protocol import Context, LogPartition
from kafka_records_engine.sources.time_limit import now_ms

_COMPARED: Final = ("timestamp_ms", "key", "value", "producer_id", "producer_epoch", "control")
_ELSEWHERE: Final = "Take the snapshot of this one into another directory"


class OtherLog(LogSourceError):
    """The log is not the one that was stored, so its records must not be mixed with the stored ones."""


class OtherTopic(OtherLog):
    """The id of the log's topic differs from the id of the stored topic."""


def high_watermark(log: LogPartition) -> int | None:
    """The end of the log when it was found, if a broker reported it. None for files, because their age is unknown."""
    return log.high_watermark if has(log, HasHighWatermark) else None


def read_at_ms(log: LogPartition) -> int:
    """The time at which the log itself was read: now or, for a log from a snapshot, the time of the snapshot."""
    known = log.read_at_ms() if has(log, WasRead) else None
    return now_ms() if known is None else known


class _WithoutForbidden(Findings):
    """Findings of a pass. A finding about a forbidden file ends the pass; the next run stores the records of that
    file."""

    def add(self, finding: Finding) -> None:
        """Keep a finding. Raises NotReadable."""
        if finding.what == NOT_READABLE and finding.topic is not None:
            raise NotReadable(finding.file or "")
        super().add(finding)


class Pass:
    """Reads one log partition, starting after the last stored rows or at the start of the log, and stores the new
    rows."""

    def __init__(
        self, run: RunState, log: LogPartition, stored: StoredLog, moved: Callable[[int], None], *, is_survey: bool
    ) -> None:
        self._run = run
        self._log = log
        self._stored = stored
        self._is_survey = is_survey
        findings = _WithoutForbidden()
        self._context = Context(log.topic, log.partition, findings=findings, history=not is_survey, progress=moved)
        self._folder = folder_of(run.root, log.topic, log.partition)
        self._tail = last_rows(stored)
        self._file: RecordsFile | None = None
        self._behind = stored.end - 1
        """The last stored offset."""
        self._seen = -1
        self._there: list[INT64] = []
        self._told_holes = self._told_findings = 0
        self._ends = TransactionEnds()
        self.rows = 0

    def run(self, added: Added) -> None:
        """Read and store the log. Raises OtherLog, before storing anything, if it is a different log."""
        log, context, stored = self._log, self._context, self._stored
        self._check_id()
        start = (
            None if self._is_survey or not stored.files else (self._tail[0]["offset"] if self._tail else stored.end - 1)
        )
        self._asked_from = start
        try:
            for batch in log.batches(context, COLUMNS, start):
                self._take(batch, added)
                self._tell()
            context.sum_up()
            self._tell()
            self._check_end()
            self._check_outcomes()
            if self._file is not None:
                self._close(added, is_last=True)
        except BaseException:
            if self._file is not None:
                self._file.abandon()
            raise
        if self._is_survey:
            self._survey()

    @property
    def ended_at_ms(self) -> int | None:
        """The time at which the log had no records beyond the stored rows, as reported by a broker that returned all
        rows."""
        is_whole = high_watermark(self._log) is not None and not any(
            hole >= self._behind for hole in self._context.log.holes
        )
        return self._run.started_ms if is_whole else None

    @property
    def has_log_start_risen(self) -> bool:
        """Whether stored rows are below the log start, and no earlier run has noticed."""
        start, stored = self._context.log.start, self._stored
        return bool(stored.files) and start is not None and start > max(stored.log_start, stored.files[0].first)

    # -- rows ----------------------------------------------------------------------------------------------------------

    def _take(self, batch: Any, added: Added) -> None:
        if not batch.num_rows:
            return
        self._ends.note(batch)
        offsets = batch.column("offset").to_numpy()
        self._seen = max(self._seen, int(offsets[-1]))
        if offsets[0] <= self._behind:
            is_old = offsets <= self._behind
            self._compare(batch, offsets)
            if self._is_survey:
                self._there.append(offsets[offsets < self._stored.end].copy())
            batch = batch.filter(pa.array(~is_old))
            if not batch.num_rows:
                return
        rows = self._plain(batch)
        if self._file is not None and self._file.size >= self._run.file_bytes:
            self._close(added, is_last=False)
        if self._file is None:
            self._file = RecordsFile(self._folder)
        self._file.write(rows)
        self._behind = self._file.last
        self.rows += rows.num_rows
        markers = rows.num_rows - rows.column("control").null_count
        added.records += rows.num_rows - markers
        added.markers += markers

    def _plain(self, batch: Any) -> Any:
        """The rows as stored. They do not contain the outcome of transactions, because the markers do."""
        arrays = []
        there = set(batch.schema.names)
        for name in COLUMNS:
            kind = SCHEMA.field(name).type
            if name not in there:  # sources may lack some position columns
                arrays.append(pa.nulls(batch.num_rows, kind))
                continue
            column = batch.column(name)
            if name == "transaction":
                is_part = pc.and_(pc.is_in(column, pa.array(PARTS)), batch.column("control").is_null())
                column = pc.if_else(is_part, pa.scalar("pending"), column)
            arrays.append(column.cast(kind))
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)

    def _check_outcomes(self) -> None:
        for offset in self._ends.without_marker():
            what = (
                f"the source says how the transaction of the record at offset {offset} ended, but has no control "
                f"record for it"
            )
            self._find(
                what,
                "it is stored without the outcome of its transaction: take the snapshot of a source with "
                "control records",
            )

    # -- whether it is the same log ------------------------------------------------------------------------------------

    def _check_id(self) -> None:
        known, here = self._stored.topic_id, self._run.topic_id(self._log)
        if known is not None and here is not None and known != here:
            raise OtherTopic(
                self._run.root,
                f"the snapshot has records of the topic with the id {known}, but {self._log.topic} now has the id "
                f"{here}: the topic was deleted and recreated. Take a snapshot of the new topic in another directory",
            )

    def _compare(self, batch: Any, offsets: INT64) -> None:
        if not self._tail or offsets[-1] < self._tail[0]["offset"]:
            return
        stored = {row["offset"]: row for row in self._tail}
        for at in np.flatnonzero((offsets >= self._tail[0]["offset"]) & (offsets <= self._tail[-1]["offset"])).tolist():
            row = stored.get(int(offsets[at]))
            here = {name: batch.column(name)[at].as_py() for name in _COMPARED}
            if row is not None and any(row[name] != here[name] for name in _COMPARED):
                raise OtherLog(
                    self._run.root,
                    f"the record at offset {row['offset']} of {self._log.topic}-{self._log.partition} differs from "
                    f"the stored one: the topic was recreated, or the end of the log was overwritten. {_ELSEWHERE}",
                )

    def _check_end(self) -> None:
        """Check that the log still has its last stored record.

        A cleaner never removes the last record of a log. If that record is missing, the log has lost records that are
        stored.
        """
        stored = self._stored
        if not stored.files or self._has_reached_end or self._context.log.holes:
            return
        ends = f"ends at offset {self._seen}" if self._seen >= 0 else "has no record after the stored ones"
        raise OtherLog(
            self._run.root,
            f"{self._log.topic}-{self._log.partition} {ends}, but records up to offset {stored.end - 1} are stored: "
            "this is an older copy of the log, or the topic was recreated, or the end of the log was cut off. "
            f"{_ELSEWHERE}",
        )

    @property
    def _has_reached_end(self) -> bool:
        """Whether the log was read up to the end of the stored rows, or has no rows left before that end."""
        log_start = self._context.log.start
        return self._seen >= self._stored.end - 1 or (log_start is not None and log_start >= self._stored.end)

    # -- what goes into the files --------------------------------------------------------------------------------------

    def _close(self, added: Added, *, is_last: bool) -> None:
        assert self._file is not None
        file, context, run = self._file, self._context, self._run
        holes = context.log.holes[self._told_holes :]
        known = [told for stretch in read_on(self._stored.stretches, run.id) for told in stretch.findings]
        # Findings without a topic are about other sources of this run, not about the log.
        damage = [told_of(found) for found in context.findings if found.severity == "damage" and found.topic]
        stretch = Stretch(
            run=run.id,
            source=run.name,
            read_at_ms=read_at_ms(self._log),
            topic_id=run.topic_id(self._log),
            first=file.first,
            last=file.last,
            rows=file.rows,
            latest_ms=file.latest_ms,
            asked_from=self._asked_from,
            log_start=context.log.start,
            cleaned_up_to=self._reach(is_last),
            is_last=is_last,
            ended_at_ms=self.ended_at_ms if is_last else None,
            quiet_until_ms=run.quiet_until_ms(self._stored),
            holes=tuple(holes),
            findings=tuple(told for told in damage[self._told_findings :] if told not in known),
        )
        self._told_holes, self._told_findings = len(context.log.holes), len(damage)
        file.close([stretch])
        self._file = None
        added.files += 1

    def _reach(self, is_complete: bool) -> int | None:
        """The offset below which a cleaner may have removed records."""
        reach = self._context.log.cleaned_up_to
        if reach is None:
            # Brokers report the end of the log. For other sources, it is known only when all rows have been read.
            reach = high_watermark(self._log)
        if reach is None and is_complete:
            reach = self._behind + 1
        if reach is not None and is_complete and self._asked_from is None:
            # A cleaner stops at the first record of an open transaction (LogCleanerManager).
            reach = min(reach, self._ends.last_stable(reach))
        return reach

    def _tell(self) -> None:
        for finding in self._context.findings:
            self._run.say(finding)

    def _find(self, what: str, consequence: str) -> None:
        found = Finding("damage", DAMAGED_LOG, what, consequence, self._log.topic, self._log.partition)
        self._context.report(found)
        self._tell()

    # -- what the log has lost -----------------------------------------------------------------------------------------

    def _survey(self) -> None:
        """Store which of the stored offsets the log has lost."""
        log, run, context = self._log, self._run, self._context
        if not self._has_reached_end:
            return  # some rows could not be read, which has already been reported
        there = np.concatenate([np.empty(0, np.int64), *self._there])
        unjudged = _behind_holes(context.log.holes, there)
        known = Lost(self._stored.surveys)
        firsts, lasts = [], []
        for file in self._stored.files:
            if file.trouble:
                continue
            with pq.ParquetFile(file.path) as opened:
                offsets = opened.read(columns=["offset"])["offset"].to_numpy()
            is_lost = ~np.isin(offsets, there, assume_unique=True) & ~known.among(offsets) & ~unjudged(offsets)
            first, last = ranges_of(offsets, is_lost)
            firsts.append(first)
            lasts.append(last)
        end, reach = self._behind + 1, self._reach(is_complete=True)
        assert reach is not None
        survey = Survey(
            run=run.id,
            source=run.name,
            read_at_ms=read_at_ms(self._log),
            end=end,
            log_start=context.log.start,
            cleaned_up_to=reach,
        )
        folder = gone_folder_of(run.root, log.topic, log.partition)
        write_survey(folder, survey, np.concatenate(firsts), np.concatenate(lasts))


def last_rows(stored: StoredLog) -> list[dict[str, Any]]:
    """The last stored rows, at most TAIL. They are compared with the source's records at the same offsets."""
    if not stored.files or stored.files[-1].trouble:
        return []
    try:
        with pq.ParquetFile(stored.files[-1].path, page_checksum_verification=True) as file:
            rows = file.read_row_group(file.num_row_groups - 1, columns=["offset", *_COMPARED])
    except (OSError, pa.ArrowInvalid):
        return []
    tail: list[dict[str, Any]] = rows.slice(max(rows.num_rows - TAIL, 0)).to_pylist()
    return tail


def _behind_holes(holes: Sequence[int], there: INT64) -> Callable[[INT64], FLAGS]:
    """A function that says which offsets are between an unreadable place and the next readable row."""

    def unjudged(offsets: INT64) -> FLAGS:
        found: FLAGS = np.zeros(len(offsets), np.bool_)
        for hole in holes:
            at = int(np.searchsorted(there, hole, side="right"))
            behind = int(there[at]) if at < len(there) else None
            found |= (offsets > hole) & ((offsets < behind) if behind is not None else True)
        return found

    return unjudged
