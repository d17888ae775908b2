"""The rows of `progress`, from the movements of offsets and the unread records at the ends of logs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.offsets.advances import PARTS, part_ms
from kafka_records_tables.coordinator.records.latest import codes_of_same
from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.moving.left_in_logs import left_in_logs
from kafka_records_tables.tables.moving.log_times import LATE, NONE, Samples, flattened, numbers
from kafka_records_tables.tables.moving.rates import caught_up_in_ms, commit_rate, produce_rate
from kafka_records_tables.tables.words.progress_words import (
    BEYOND_END,
    BY_COMMITS,
    BY_END,
    BY_LOG,
    END_UNKNOWN,
    FALLING_BEHIND,
    IDLE,
    LEFT,
    MOVED,
    NO_HISTORY,
    NO_LOG,
    OK,
    OPEN_TRANSACTION,
    REWOUND,
    STALLED,
    STOPPED,
    TIME_UNKNOWN,
    TOPIC_RECREATED,
)

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.declaration import Table

_PATIENCE: Final = 2
"""A wait counts as too long if it lasts longer than this many times the longest earlier wait of the group."""

_GROWTH: Final = 10
"""A group is falling behind only if at least one in this many new records remains unread."""

_PLACE: Final = ["topic", "partition"]

_ROWS: Final = 131_072
"""The number of rows to compute at a time."""


def rows(table: Table, parts: Mapping[str, Any], context: Context) -> Iterator[pa.RecordBatch]:
    """The rows of `progress`, as described in its rules."""
    options = context.question.options
    told = parts["commit_progress"]
    commits = _commits(told)
    if not commits.num_rows:
        return
    logs = Logs(commits, parts["log_ends"], context)
    report_hidden_topics(commits, logs, context)
    now = options["at"]
    is_asked = now is not None
    if now is None:
        now = logs.moment(pc.max(told["log_timestamp_ms"]).as_py())
    began = pc.min(told["first_log_timestamp_ms"]).as_py()
    history = now if began is None else max(now - began, 0)
    moved = _moved(commits)
    is_left = left_by_groups(commits, parts["assigned_partitions"])
    advances = _Advances(commits, logs)
    # A million commits in some fifty vectors would take more memory than the rows themselves.
    for start in range(0, commits.num_rows, _ROWS):
        some = slice(start, min(start + _ROWS, commits.num_rows))
        found = _States(commits, logs, advances, some, now, options["window"], history)
        columns = found.columns(moved[some], is_left[some], is_asked=is_asked) | found.pace()
        yield record_batch(table.schema, columns, some.stop - start)


def _commits(told: pa.Table) -> pa.Table:
    """The rows of `commit_progress` about commits. A batch with only such rows is not copied."""
    batches = [
        batch.filter(batch.column("group_id").is_valid()) if batch.column("group_id").null_count else batch
        for batch in told.to_batches()
    ]
    return pa.Table.from_batches([batch for batch in batches if batch.num_rows], told.schema)


def report_hidden_topics(commits: pa.Table, logs: Logs, context: Context) -> None:
    """Report a finding for each topic that may not be described."""
    without_log = commits["topic"].combine_chunks().filter(pa.array(logs.row < 0)).unique().drop_null()
    for right in context.log.missing_rights(sorted(without_log.to_pylist())):
        # Use the same text as `lag`, so that a report shows the finding only once.
        context.report(right.finding("its lag is unknown"))


class Logs:
    """The logs to which commits refer, numbered. Logs in `log_ends` come first."""

    def __init__(self, commits: pa.Table, ends: pa.Table, context: Context) -> None:
        both = pa.concat_tables([ends.select(_PLACE), commits.select(_PLACE)])
        number = codes_of_same(both.columns)
        self.of_commit = number[ends.num_rows :]
        self._row = np.full(int(number.max(initial=-1)) + 1, -1, np.int64)
        self._row[number[: ends.num_rows]] = np.arange(ends.num_rows)
        self.row = self._row[self.of_commit]
        """The row of `log_ends` of each commit; -1 if the source has no such log."""
        self.ends = ends
        self.is_of_brokers = ends.num_rows > 0 and pc.any(pc.is_valid(ends["last_stable_offset"])).as_py()
        stable, high, end = (self.of(name) for name in ("last_stable_offset", "high_watermark", "log_end_offset"))
        self.stable = stable
        self.end = np.where(stable != NONE, high, np.where(end != NONE, end, high))
        """The offset up to which consumers can read; NONE if unknown."""
        self.left = left_in_logs(commits, self.end, self.of("log_start_offset"), context)
        """How many records were unread after each commit, according to topic files; empty without files."""
        self._sampled = self.of_commit[self.left.log_of_sample]
        self._offset, self._ms = self.left.offset_of_sample, self.left.time_of_sample
        self.samples = Samples(self._sampled, self._offset, self._ms)

    def with_commits(self, commits: INT64, offset: INT64, ms: INT64) -> Samples:
        """The samples, extended by commits. The offset right before a commit may belong to a transaction marker, so the
        record before that one is used."""
        return Samples(
            np.concatenate([self._sampled, self.of_commit[commits]]),
            np.concatenate([self._offset, np.maximum(offset, 0) - 2]),
            np.concatenate([self._ms, ms]),
        )

    def of_commits(self, some: slice) -> Logs:
        """The same logs, restricted to some of the commits."""
        found, left = copy(self), self.left
        found.of_commit, found.row = self.of_commit[some], self.row[some]
        found.stable, found.end = self.stable[some], self.end[some]
        found.left = replace(
            left,
            unread=left.unread[some],
            held_back=left.held_back[some],
            first_ms=left.first_ms[some],
            exact_from=left.exact_from[some],
        )
        return found

    def of(self, name: str) -> INT64:
        """A column of `log_ends` for each commit, with NONE for null."""
        return np.append(numbers(self.ends[name]), NONE)[self.row]

    def has_true(self, name: str) -> FLAGS:
        """For each commit, whether a column of `log_ends` is true."""
        found: FLAGS = self.of(name) == 1
        return found

    def moment(self, last_commit_ms: int | None) -> int:
        """The time of the rows: now for brokers, and the latest time of a record or commit for stored logs."""
        clock = int(time.time() * 1000)
        if self.is_of_brokers:
            asked = pc.max(self.ends["high_watermark_timestamp_ms"]).as_py()
            return int(asked or clock)
        times = self._ms[self._ms <= clock]  # a producer may have written any timestamp
        return max(int(times.max(initial=0)), min(last_commit_ms or 0, clock))


def left_by_groups(commits: pa.Table, assigned: pa.Table) -> FLAGS:
    """For each commit, whether the group has left the topic, as in `lag`, and has members that consume other topics."""
    has_left = pc.fill_null(assigned["has_left"], False)
    group = ["group_id", "log_partition"]
    left = assigned.select([*group, "topic"]).filter(has_left)
    others = assigned.select(group).filter(pc.invert(has_left))
    return _is_in(commits, left.column_names, left) & _is_in(commits, group, others)


def _is_in(rows: pa.Table, names: list[str], others: pa.Table) -> FLAGS:
    """Flags rows whose values also occur in the same columns of another row."""
    if not others.num_rows:
        return np.zeros(rows.num_rows, np.bool_)
    both = codes_of_same(pa.concat_tables([rows.select(names), others.select(names)]).columns)
    found: FLAGS = np.isin(both[: rows.num_rows], both[rows.num_rows :])
    return found


def _moved(commits: pa.Table) -> FLAGS:
    """Whether a group has since committed in another partition of `__consumer_offsets`, where its coordinator is
    now."""
    commit_ms = numbers(commits["commit_timestamp_ms"])
    group, place = (
        codes_of_same(commits.select(names).columns) for names in (["group_id"], ["group_id", "log_partition"])
    )
    if not len(group) or int(group.max()) == int(place.max()):
        return np.zeros(len(group), np.bool_)
    latest, of_place = (np.full(int(codes.max()) + 1, NONE, np.int64) for codes in (group, place))
    np.maximum.at(latest, group, commit_ms)
    np.maximum.at(of_place, place, commit_ms)
    found: FLAGS = of_place[place] < latest[group]
    return found


class _Advances:
    """How the offsets of all commits advanced. Each vector has one element per advance."""

    def __init__(self, commits: pa.Table, logs: Logs) -> None:
        self.rows, (self.ms, self.after, self.before_ms, self.before) = flattened(
            commits["advances"], "timestamp_ms", "offset", "before_timestamp_ms", "before_offset"
        )
        # If there are files, their batch headers are more exact.
        without = logs.left.exact_from[self.rows] == NONE
        self.evidence = logs.with_commits(self.rows[without], self.after[without], self.ms[without])
        """When records existed: the samples of logs, and commits of groups in logs without samples."""


class _States:
    """The results for some commits, as vectors."""

    def __init__(
        self, commits: pa.Table, logs: Logs, advances: _Advances, some: slice, now: int, window: int, history: int
    ) -> None:
        self._commits = commits.slice(some.start, some.stop - some.start)
        self._logs, self._now, self._window = logs.of_commits(some), now, window
        self._part = part_ms(window, history)
        self._patience = min(window, history // PARTS)
        self.offset = numbers(self._commits["offset"])
        self.commit_ms, self.changed_ms = (
            numbers(self._commits[f"{name}_timestamp_ms"]) for name in ("commit", "changed")
        )
        own = slice(*np.searchsorted(advances.rows, [some.start, some.stop]).tolist())
        self._evidence = advances.evidence
        self._rows = advances.rows[own] - some.start
        self._ms, self._after = advances.ms[own], advances.after[own]
        self._before_ms, self._before = advances.before_ms[own], advances.before[own]
        self._exact_from = self._logs.left.exact_from
        self._unread()
        self.wait = np.where(
            self.has_time & self.is_unread, np.maximum(now - np.maximum(self.changed_ms, self._by_ms), 0), 0
        )
        self.longest_wait = self._longest_waits()
        self._look_for_falling_behind()

    def _unread(self) -> None:
        """Determine whether anything is left to read, and the time by which the first such record existed."""
        logs, offset = self._logs, self.offset
        of_log, left = logs.of_commit, logs.left
        self.has_tail = self._exact_from != NONE
        self.end = logs.end
        told = logs.stable != NONE
        readable = np.where(told, np.minimum(logs.stable, self.end), self.end)
        in_tail, _ = logs.samples.next_at(of_log, offset)
        seen, by_ms = self._evidence.next_at(of_log, offset)
        self.has_end = self.end != NONE
        is_left = np.where(left.unread != NONE, left.unread > 0, in_tail)
        self.is_unread = np.where(self.has_tail, is_left, np.where(self.has_end, readable > offset, seen))
        self.is_known = self.has_tail | self.has_end | seen
        # A single remaining offset may be a transaction marker.
        is_alone = ~self.has_tail & self.has_end & (readable - offset == 1)
        # The oldest message format has no timestamps.
        self.has_time = (by_ms != LATE) & (by_ms >= 0) & ~is_alone
        is_told = left.first_ms != NONE
        self.unread_ms = np.where(is_told, left.first_ms, by_ms)
        # If a producer's clock is ahead, a later record may have an earlier timestamp.
        self._by_ms = np.where(is_told & self.has_time, np.minimum(left.first_ms, by_ms), self.unread_ms)
        self.has_time |= is_told
        is_held = np.where(self.has_tail, left.held_back > 0, told & (offset >= logs.stable) & (self.end > offset))
        self.is_held = is_held & ~self.is_unread

    def _longest_waits(self) -> INT64:
        """The longest time that records waited before the group continued, as far as its earlier steps are known."""
        rows, is_step = self._rows, (self._before_ms != NONE) & (self._after > self._before)
        at = rows[is_step]
        ms, before_ms, before = self._ms[is_step], self._before_ms[is_step], self._before[is_step]
        is_there, arrived = self._logs.samples.next_at(self._logs.of_commit[at], before)
        is_exact = is_there & (self._exact_from[at] != NONE) & (before >= self._exact_from[at])
        since = np.where(is_exact & (arrived > before_ms), arrived, before_ms)
        longest = np.full(len(self.offset), NONE, np.int64)
        np.maximum.at(longest, at, np.maximum(ms - since, 0))
        return longest

    def _look_for_falling_behind(self) -> None:
        """Determine whether more and more records are left: more after the last advance in each part of the window than
        in the previous part, four times in a row up to now."""
        width = self._part
        part = self._ms // width
        closes = np.ones(len(part), np.bool_)
        closes[:-1] = (part[1:] != part[:-1]) | (self._rows[1:] != self._rows[:-1])
        at = np.flatnonzero(closes)
        row, part, ms, after = self._rows[at], part[at], self._ms[at], self._after[at]
        end = self._logs.samples.end_at(self._logs.of_commit[row], ms)
        lag = np.maximum(end - after, 0)
        is_known = (end != NONE) & (end >= self._exact_from[row])
        is_next = np.zeros(len(at), np.bool_)
        is_next[1:] = (row[1:] == row[:-1]) & (part[1:] == part[:-1] + 1) & is_known[1:] & is_known[:-1]
        grows = is_next.copy()
        grows[1:] &= lag[1:] > lag[:-1]
        places = np.arange(len(at))
        began = np.maximum.accumulate(np.where(grows, 0, places)) if len(at) else places
        is_last = np.ones(len(at), np.bool_)
        is_last[:-1] = row[1:] != row[:-1]
        last = np.flatnonzero(is_last & (places - began >= PARTS))
        is_recent = part[last] >= self._now // width - 1
        left_over = lag[last] - lag[began[last]]
        is_much = left_over * _GROWTH >= end[last] - end[began[last]]
        chosen = last[is_recent & is_much]
        self.falls_behind = np.zeros(len(self.offset), np.bool_)
        self.falls_behind[row[chosen]] = True
        self.behind_since = np.full(len(self.offset), NONE, np.int64)
        self.behind_since[row[chosen]] = ms[began[chosen]]

    def pace(self) -> dict[str, Any]:
        """The columns with the rates of groups and logs."""
        start, logs = self._now - self._window, self._logs
        commits = commit_rate(self._rows, self._ms, self._after, self.offset, start, self._now, self._part)
        produces = produce_rate(logs.samples, logs.of_commit, self.end, self._exact_from, start, self._now)
        left = np.where(self.has_end, self.end - self.offset, 0)
        return {
            "window_ms": pa.array(np.full(len(self.offset), self._patience, np.int64)),
            "commit_rate": commits,
            "produce_rate": produces,
            "caught_up_in_ms": caught_up_in_ms(left, commits, produces),
        }

    def columns(self, has_moved: FLAGS, is_left: FLAGS, *, is_asked: bool) -> dict[str, Any]:
        """The columns of the table, except those of `pace`. `is_asked` says whether the caller specified the time."""
        now, logs, commits = self._now, self._logs, self._commits
        start = now - self._patience
        has_log = logs.row >= 0
        ids = pc.fill_null(pc.not_equal(commits["topic_id"], _text_of_log(logs, "topic_id")), False).to_numpy()
        fell_ms, fell_from = numbers(commits["fell_timestamp_ms"]), numbers(commits["fell_from"])
        is_beyond = self.has_end & (self.offset > self.end)
        was_beyond = self.has_end & (fell_from > self.end)
        patience = np.maximum(np.where(self.longest_wait == NONE, 0, self.longest_wait) * _PATIENCE, self._patience)
        is_rewound = (fell_ms != NONE) & (fell_ms >= now - self._window) & (self.offset < fell_from) & ~was_beyond
        waits_too_long = self.is_unread & self.has_time & (self.wait > patience)
        is_moving = self.changed_ms >= start
        is_known = self.is_known | is_rewound
        reasons = {
            NO_HISTORY: (self.commit_ms > now) & is_asked,
            MOVED: has_moved,
            NO_LOG: ~has_log & ~is_known,
            TOPIC_RECREATED: has_log & ids,
            END_UNKNOWN: has_log & (~is_known | (is_beyond & logs.has_true("is_cut"))),
            BEYOND_END: is_beyond | (self.offset < 0),
            LEFT: is_left & ~is_rewound,
            TIME_UNKNOWN: self.is_unread & ~self.has_time & ~is_moving & ~is_rewound,
            OPEN_TRANSACTION: self.is_held & ~is_rewound & ~is_moving,
        }
        reason = first_word(reasons, len(self.offset))
        is_undecided = pc.is_in(
            reason, pa.array([NO_HISTORY, MOVED, NO_LOG, TOPIC_RECREATED, END_UNKNOWN, BEYOND_END, TIME_UNKNOWN])
        ).to_numpy(zero_copy_only=False)
        since_wait = np.maximum(self.changed_ms, np.where(self.has_time, self.unread_ms, NONE))
        since_stop = np.maximum(self.commit_ms, np.where(self.has_time, self.unread_ms, NONE))
        cases = {
            "": (is_undecided, self.changed_ms),
            LEFT: (is_left & ~is_rewound, self.changed_ms),
            REWOUND: (is_rewound, fell_ms),
            STALLED: (waits_too_long & (self.commit_ms >= start), since_wait),
            STOPPED: (waits_too_long, since_stop),
            FALLING_BEHIND: (self.is_unread & self.falls_behind, self.behind_since),
            IDLE: (~self.is_unread & ~is_moving, self.changed_ms),
            OK: (np.ones(len(self.offset), np.bool_), self.changed_ms),
        }
        words = {"": None, LEFT: IDLE}
        chosen = np.argmax(np.stack([applies for applies, _ in cases.values()]), axis=0)
        since = np.stack([when for _, when in cases.values()])[chosen, np.arange(len(chosen))]
        state = pa.array([words.get(each, each) for each in cases], pa.string()).take(pa.array(chosen))
        since_ms = pa.array(since, mask=is_undecided | (since == NONE))
        unread_ms = pa.array(self.unread_ms, mask=~(self.is_unread & self.has_time))
        known_by = {BY_LOG: self.has_tail, BY_END: self.has_end, BY_COMMITS: is_known}
        moment = pa.array(np.full(len(chosen), now, np.int64))
        plain = {name: commits[name].combine_chunks() for name in ("group_id", *_PLACE, "offset", "log_partition")}
        plain = {name: each.chunk(0) if isinstance(each, pa.ChunkedArray) else each for name, each in plain.items()}
        told: dict[str, Any] = {
            **plain,
            "state": state,
            "reason": reason,
            "end_offset": pa.array(self.end, mask=~self.has_end),
            "wait_ms": pa.array(self.wait, mask=is_undecided | ~self.has_time | ~self.is_unread),
            "longest_wait_ms": pa.array(self.longest_wait, mask=self.longest_wait == NONE),
            "fell_from": pa.array(fell_from, mask=~is_rewound),
            "known_by": first_word(known_by, len(chosen)),
        }
        of_times = {
            "since": since_ms,
            "unread": unread_ms,
            "changed": pa.array(self.changed_ms),
            "commit": pa.array(self.commit_ms),
            "moment": moment,
        }
        for name, ms in of_times.items():
            told |= {f"{name}_timestamp": instants(ms), f"{name}_timestamp_ms": ms}
        return told


def _text_of_log(logs: Logs, name: str) -> pa.Array:
    """A string column of `log_ends` for each commit."""
    column = logs.ends[name].combine_chunks()
    column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    return column.take(pa.array(logs.row, mask=logs.row < 0))


def first_word(cases: Mapping[str, FLAGS], count: int) -> pa.Array:
    """The first of the given words that applies to each row; null if none does."""
    words = pa.array([*cases], pa.string())
    applies = np.stack([*cases.values(), np.ones(count, np.bool_)])
    chosen = np.argmax(applies, axis=0)
    return words.take(pa.array(chosen, mask=chosen == len(cases)))
