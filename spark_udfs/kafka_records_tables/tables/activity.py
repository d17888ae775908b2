"""How much each group does: commits, expirations, deletions, rebalances and bytes, by topic and window of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.tables.committed.commits import COMMITS
from kafka_records_tables.tables.declaration import RETENTION, Column, Option, Table, timestamps
from kafka_records_tables.tables.replay.records_of_groups import GROUP_RECORDS, PARTS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.replay.activity_sums import ActivitySums
    from kafka_records_tables.tables.replay.group_lives import Moment
    from kafka_records_tables.tables.words.causes import Explained

TABLE: Final = Table(
    name="activity",
    topic="__consumer_offsets",
    about="commits, expirations, deletions, rebalances and bytes of each group, by topic and window of time",
    helper="fold",
    records=(*COMMITS, *GROUP_RECORDS, *PARTS),
    reads=(
        "offset",
        "timestamp_ms",
        "base_offset",
        "leader_epoch",
        "key",
        "value",
        "producer_id",
        "transaction",
        "control",
    ),
    columns=(
        Column("group_id", "string", "the group"),
        Column("topic", "string", "topic of the offsets; null for what is about the group alone"),
        *timestamps("window_start", "beginning of the window; null for records without a time"),
        Column("commits", "int64", "committed offsets, as the meter offset-commits counts them"),
        Column("transactional_commits", "int64", "those of them that a transaction wrote, however it ended"),
        Column("repeated_commits", "int64", "those that took effect with the offset that was committed already"),
        Column(
            "commit_interval_ms",
            "int64",
            "milliseconds between two commits of a partition, the mean of those that end here; null for none",
        ),
        Column("longest_commit_interval_ms", "int64", "the longest of them; null for none"),
        Column("expirations", "int64", "expired offsets, as the meter offset-expirations counts them"),
        Column("deletions", "int64", "offsets deleted on request, alone or with their group or their topic"),
        Column(
            "offset_deletions",
            "int64",
            "those of them that a request for these offsets deleted, as the meter offset-deletions counts them",
        ),
        Column("likely_expirations", "int64", "offsets that expired if the retention is the given one"),
        Column("likely_deletions", "int64", "offsets deleted on request if the retention is the given one"),
        Column("unclear_deletions", "int64", "deleted offsets of which the log does not tell which of the two it was"),
        Column("completed_rebalances", "int64", "rebalances of the group that have completed; 0 for a topic"),
        Column(
            "classic_rebalances",
            "int64",
            "those of them while it was a classic group, as the meter group-completed-rebalances counts them",
        ),
        Column("records", "int64", "records in the log, tombstones too"),
        Column("key_bytes", "int64", "bytes of their keys"),
        Column("value_bytes", "int64", "bytes of their values"),
        Column("is_lower_bound", "bool", "whether records of the window may be missing in the log"),
        Column("log_partition", "int32", "partition of the topic that the records stand in"),
    ),
    sort=("group_id", "topic", "window_start_timestamp_ms", "log_partition"),
    needs_transactions=True,
    group="group_id",
    module=__name__,
    is_history=True,
    needs_all_groups=True,
    essential=("group_id", "topic", "window_start_timestamp", "commits"),
    details=(
        "transactional_commits",
        "offset_deletions",
        "classic_rebalances",
        "longest_commit_interval_ms",
        "likely_expirations",
        "likely_deletions",
        "unclear_deletions",
        "key_bytes",
        "value_bytes",
        "is_lower_bound",
        "log_partition",
    ),
    options=(
        Option("window", "duration", "how long a window is; windows begin at 1970 in UTC", default="1h", least_ms=1),
        RETENTION,
    ),
    rules="""\
One row per group, topic and window with a record; and one per group and window for the records of the group itself and
its rebalances, without a topic. The time of a record is that of its batch in the log.

The four meters of KIP-496 (`group-coordinator-metrics`), for each group: `offset-commits` counts every committed offset
whatever becomes of its transaction, `offset-expirations` every offset that a clean-up takes. `offset-deletions` counts
what a request for single offsets deletes (`OffsetMetadataManager.deleteOffsets`), and neither the offsets of a group
that is deleted nor those of a topic: `offset_deletions` is that meter, `deletions` has all three. Which of them a
tombstone was follows from `disappearances`: with high confidence it is in `expirations` or `deletions`, with medium
confidence in one of the likely ones, and otherwise in `unclear_deletions`; so each is in one.
`group-completed-rebalances` counts in classic groups, where the leader's assignment is written, and is
`classic_rebalances`; `completed_rebalances` has those of the other kinds too (`timeline`).

`repeated_commits` goes by what took effect, at its place or at the marker of its transaction: a commit of an aborted
transaction repeats nothing and is repeated by nothing. Intervals compare a commit with the one that stands before it in
the log, whatever became of their transactions. What waits for its marker is held until it comes: in a source without
markers everything behind the first commit of a transaction, to the end of the log.

The bytes are those of keys and values as they stand in batches when they are written: at least what a group costs the
topic. Heads of records and batches, markers of transactions and indexes come on top, and compression takes off.

What the log cannot know: commits that were refused, and requests that wrote nothing. A cleaner takes away what was
written over, and tombstones, in time: a window that begins before the log is whole (a finding says from which offset
on it is) is a lower bound. Two commits between which one is missing have a longer interval. A record whose key cannot
be read is not counted, and a finding names it.
""",
)

_CAUSES: Final = {
    "expirations": frozenset(["expired"]),
    "deletions": frozenset(["offset_deleted", "group_deleted", "topic_deleted"]),
}
"""The causes of `disappearances` that a column counts."""

_SESSION_MS: Final = 45_000
"""The default of `group.consumer.session.timeout.ms`. It tells causes of members apart, which are not asked for."""


def rows(batches: Iterator[Any], context: Context) -> Iterator[Any]:
    """The rows; `TABLE.rules` says which."""
    from kafka_records_engine.findings import OTHER_RETENTION
    from kafka_records_engine.sources import Counts
    from kafka_records_tables.tables.committed.commit_effects import with_clock
    from kafka_records_tables.tables.committed.commit_lots import in_lots
    from kafka_records_tables.tables.decoded.decoded_records import numbers_of, of_types, schemas
    from kafka_records_tables.tables.replay.activity_sums import ActivitySums
    from kafka_records_tables.tables.replay.group_events import GroupLog
    from kafka_records_tables.tables.replay.group_lives import GroupLives
    from kafka_records_tables.tables.replay.group_records import NOT_USED
    from kafka_records_tables.tables.tombstones.explained_tombstones import Explaining
    from kafka_records_tables.tables.tombstones.groups_known import MORE

    known, asked = schemas(context, "consumer_offsets"), context.options
    sums = ActivitySums(known, context, asked["window"])
    log = GroupLog(known, context, more=MORE, consequence="it is counted, and nothing that its value would tell")
    lives = GroupLives(log.picked, {}, of_epochs_alone=True)
    # What cannot be decoded is found once, where it is counted.
    quiet = replace(context, findings=[], finding_counts={}, counts=Counts())
    explaining = Explaining(known, quiet, retention_ms=asked["retention"], session_ms=_SESSION_MS, log=log)
    whole = _Whole(context)
    types = numbers_of(known, TABLE.records)
    for batch in in_lots(of_types(whole.watched(with_clock(batches)), types, context, NOT_USED)):
        sums.commits(batch)
        events = [*log.take(batch), *log.rest()]
        sums.records_of_groups(batch, events)
        _rebalances(sums, lives.moments(events))
        _tombstones(sums, explaining.take(batch, events))
    _rebalances(sums, lives.rest())
    _tombstones(sums, explaining.rest())
    for finding in quiet.findings:
        if finding.reason == OTHER_RETENTION:
            context.report(finding)
    yield from _batches(sums.sums(), whole.since_ms(), context)


def _rebalances(sums: ActivitySums, moments: Iterable[Moment]) -> None:
    from kafka_records_tables.tables.replay.group_replay import CLASSIC, SIMPLE
    from kafka_records_tables.tables.words.timeline_words import REBALANCE_COMPLETED

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
    from kafka_records_tables.tables.words.causes import HIGH, LOW

    causes = set(cause)
    of_one = next((what for what, words in _CAUSES.items() if causes <= words), None)
    if of_one is None or confidence == LOW:
        return ("unclear_deletions",)
    if confidence != HIGH:
        return (f"likely_{of_one}",)
    return (of_one, "offset_deletions") if causes == {"offset_deleted"} else (of_one,)


class _Whole:
    """Notes up to what time records may be missing (`completeness`)."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._whole_from: int | None = None
        self._since_ms: int | None = None
        self._last = self._last_ms = -1

    def watched(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The same rows, with CLOCK, of all groups."""
        import numpy as np

        for batch in batches:
            if batch.num_rows:
                offsets, clock = batch.column("offset").to_numpy(), batch.column("clock_ms").to_numpy()
                whole_from = self._context.whole_from
                if whole_from is not None and whole_from != self._whole_from:
                    self._whole_from = whole_from
                    at = int(np.searchsorted(offsets, whole_from))
                    self._since_ms = int(clock[min(at, len(clock) - 1)])
                self._last, self._last_ms = int(offsets[-1]), int(clock[-1])
            yield batch

    def since_ms(self) -> int | None:
        """A window that begins later is complete; None where all are."""
        limit = self._context.cleaned_up_to
        if limit is not None and self._context.as_of_ms is None and self._last + 1 < limit:
            return self._last_ms
        return self._since_ms


def _batches(sums: Any, since_ms: int | None, context: Context) -> Iterator[Any]:
    import pyarrow.compute as pc

    from kafka_records_tables.tables.column_types import instants, record_batch
    from kafka_records_tables.tables.decoded.decoded_records import nulled

    for batch in sums.combine_chunks().to_batches():
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        start = columns["window"]
        is_early = False if since_ms is None else pc.fill_null(pc.less_equal(start, since_ms), True)
        columns |= {"window_start_timestamp_ms": start, "window_start_timestamp": instants(start)}
        mean = pc.divide(columns["interval_sum"], nulled(columns["intervals"], 0))
        columns |= {"commit_interval_ms": mean, "longest_commit_interval_ms": nulled(columns["interval_max"], -1)}
        columns |= {"is_lower_bound": is_early, "log_partition": context.partition}
        yield record_batch(TABLE.schema, columns, batch.num_rows)
