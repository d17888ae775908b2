"""Reads `activity`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.findings import OTHER_RETENTION
from kafka_records_tables.coordinator.groups.group_model import CLASSIC, SIMPLE
from kafka_records_tables.coordinator.groups.last_group_records import NOT_USED
from kafka_records_tables.coordinator.offsets.commit_effects import CLOCK, Clock
from kafka_records_tables.coordinator.offsets.commit_lots import Lots
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.records.decoded_records import filter_record_types, nulled, numbers_of, schemas
from kafka_records_tables.tables.activity import TABLE
from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.group_rows.activity_sums import ActivitySums
from kafka_records_tables.tables.group_rows.shared_groups import SharedGroups
from kafka_records_tables.tables.reader import TableReader
from kafka_records_tables.tables.tombstones.member_causes import MORE
from kafka_records_tables.tables.tombstones.tombstone_explainer import TombstoneExplainer
from kafka_records_tables.tables.words.causes import HIGH, LOW
from kafka_records_tables.tables.words.timeline_words import REBALANCE_COMPLETED

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.group_rows.group_history import Moment
    from kafka_records_tables.tables.group_rows.shared_groups import LogLot
    from kafka_records_tables.tables.words.causes import Explained


_CAUSES: Final = {
    "expirations": frozenset(["expired"]),
    "deletions": frozenset(["offset_deleted", "group_deleted", "topic_deleted"]),
}
"""The causes of `disappearances` that have a column with their count."""

_SESSION_MS: Final = 45_000
"""The default of `group.consumer.session.timeout.ms`. It only distinguishes causes about members, which are not
requested here."""


class Reader(TableReader):
    needs_all_groups = uses_topics = True

    def __init__(self, context: Context) -> None:
        known, asked = schemas(context, "consumer_offsets"), context.question.options
        self._context = context
        self._types = numbers_of(known, TABLE.records)
        self._clock, self._whole, self._lots = Clock(), _Whole(context), Lots()
        self._sums = ActivitySums(known, context, asked["window"])
        self._groups = SharedGroups(context, more=[MORE], needs_all_groups=True, with_moments=True)
        # Report undecodable records only once, in the place where they are counted.
        self._quiet = context.apart()
        self._explaining = TombstoneExplainer(
            known,
            self._quiet,
            retention_ms=asked["retention"],
            session_ms=_SESSION_MS,
            is_told_of_groups=True,
        )

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._follow(self._groups.take(batch))
        batch = self._clock.added(batch)
        self._whole.watch(batch)
        rows = filter_record_types(batch, self._types, self._context, NOT_USED)
        if rows.num_rows:
            self._add(self._lots.take(rows))
            _tombstones(self._sums, self._explaining.take(rows))
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        self._follow(self._groups.rest())
        self._add(self._lots.rest())
        _tombstones(self._sums, self._explaining.rest())
        for finding in self._quiet.findings:
            if finding.reason == OTHER_RETENTION:
                self._context.report(finding)
        return _batches(self._sums.sums(), self._whole.since_ms(), self._context)

    def _follow(self, lots: Iterable[LogLot]) -> None:
        for lot in lots:
            self._explaining.tell(lot.transitions, lot.end)
            _rebalances(self._sums, lot.moments)

    def _add(self, batches: Iterable[pa.RecordBatch]) -> None:
        for batch in batches:
            self._sums.commits(batch)
            self._sums.records_of_groups(batch)


def _rebalances(sums: ActivitySums, moments: Iterable[Moment]) -> None:
    completed = [each for each in moments if each.event == REBALANCE_COMPLETED]
    for name, kinds in (("completed_rebalances", None), ("classic_rebalances", (CLASSIC, SIMPLE))):
        chosen = [each for each in completed if kinds is None or each.group_kind in kinds]
        sums.happened(name, [(each.group_id, None, each.at_timestamp_ms) for each in chosen])


def _tombstones(sums: ActivitySums, explained: Iterable[Explained]) -> None:
    found: dict[str, list[Any]] = {}
    for each in explained:
        if each.record in COMMITS:
            place = each.key[0], each.key[1], each.timestamp_ms
            for what in _columns(each.cause, each.confidence):
                found.setdefault(what, []).append(place)
    for what, places in found.items():
        sums.happened(what, places)


@cache
def _columns(cause: tuple[str, ...], confidence: str) -> tuple[str, ...]:
    """The columns that count a tombstone of an offset."""
    causes = set(cause)
    of_one = next((what for what, words in _CAUSES.items() if causes <= words), None)
    if of_one is None or confidence == LOW:
        return ("unclear_deletions",)
    if confidence != HIGH:
        return (f"likely_{of_one}",)
    return (of_one, "offset_deletions") if causes == {"offset_deleted"} else (of_one,)


class _Whole:
    """Reports up to what time records may be missing (`completeness`)."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._whole_from: int | None = None
        self._since_ms: int | None = None
        self._last = self._last_ms = -1

    def watch(self, batch: pa.RecordBatch) -> None:
        """Check rows of all groups, with CLOCK."""
        if batch.num_rows:
            offsets, clock = batch.column("offset").to_numpy(), batch.column(CLOCK).to_numpy()
            whole_from = self._context.log.whole_from
            if whole_from is not None and whole_from != self._whole_from:
                self._whole_from = whole_from
                at = int(np.searchsorted(offsets, whole_from))
                self._since_ms = int(clock[min(at, len(clock) - 1)])
            self._last, self._last_ms = int(offsets[-1]), int(clock[-1])

    def since_ms(self) -> int | None:
        """Windows that begin later are complete; None if all are."""
        limit = self._context.log.cleaned_up_to
        if limit is not None and self._context.question.as_of_ms is None and self._last + 1 < limit:
            return self._last_ms
        return self._since_ms


def _batches(sums: Any, since_ms: int | None, context: Context) -> Iterator[Any]:
    for batch in sums.combine_chunks().to_batches():
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        start = columns["window"]
        is_early = False if since_ms is None else pc.fill_null(pc.less_equal(start, since_ms), True)
        columns |= {"window_start_timestamp_ms": start, "window_start_timestamp": instants(start)}
        mean = pc.divide(columns["interval_sum"], nulled(columns["intervals"], 0))
        columns |= {"commit_interval_ms": mean, "longest_commit_interval_ms": nulled(columns["interval_max"], -1)}
        columns |= {"is_lower_bound": is_early, "log_partition": context.partition}
        yield record_batch(TABLE.schema, columns, batch.num_rows)
