"""Tracks how committed offsets moved: for each group, topic and partition, the present offset, the time at which it was
first committed, and the times at which it advanced.

Memory per partition of a group is limited to a few numbers and at most twenty earlier commits. The result does not
depend on how many commits are added at a time.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.offsets.commit_order import (
    begins,
    ends,
    in_effect_by_number,
    numbers_of_keys,
    running_maximum,
    stable_order,
)
from kafka_records_tables.coordinator.offsets.commit_steps import Steps
from kafka_records_tables.coordinator.records.latest import joined

NONE: Final = np.iinfo(np.int64).min
"""The value that represents null in vectors."""

PARTS: Final = 4
"""The number of parts into which a window is divided. The last advance in each part is kept."""

_KEPT_PARTS: Final = 3 * PARTS
"""The number of parts whose last advance is kept. If the length of a part doubles, half as many parts remain."""
_LAST: Final = 4
_LONGEST: Final = 4
_STATE: Final = (
    "is_value",
    "offset",
    "log_offset",
    "counted_at",
    "commit_ms",
    "changed_ms",
    "commits",
    "peak",
    "fell_ms",
    "fell_from",
    "topic_id",
    "known_id",
)
"""The columns of a key's state. `is_value` is 0 after a tombstone; `changed_ms` is the time of the first commit of the
present offset; `peak` is the highest offset since the first commit or the last deletion; `fell_ms` and `fell_from`
describe the last commit since then that was below the previous one; `topic_id` is the index in `Advances.ids` of the
last commit's topic id, or -1; `known_id` is that of the last commit with a topic id since the last deletion."""

_NOTHING: Final = {"log_offset": -1, "commits": 0}
"""The initial values for a new key; the other columns are NONE until its first commit."""

_ADVANCE: Final = ("key", "ms", "offset", "before_ms", "before_offset")
"""The columns of a commit that changed the offset; the last two are NONE if no commit preceded it."""


def part_ms(window_ms: int, history_ms: int) -> int:
    """The length of one part of the window: about a quarter of the window, or a sixteenth of the history if that is
    shorter. Lengths are powers of two, so a longer part consists of whole shorter parts."""
    longest = max(min(window_ms // PARTS, history_ms // PARTS**2), 1)
    return 1 << longest.bit_length() - 1


class Advances:
    """Tracks commits that took effect."""

    def __init__(self, window_ms: int) -> None:
        self._window = window_ms
        self.keys: pa.RecordBatch | None = None
        """The keys, with the columns `decoded_commits.KEY`. The number of a key is its row in this table."""
        self.ids: list[str] = []
        self._id_numbers: dict[str, int] = {}
        self.state: dict[str, INT64] = {name: np.zeros(0, np.int64) for name in _STATE}
        """The columns _STATE, with one row per key number."""
        self.advances: dict[str, INT64] = {name: np.zeros(0, np.int64) for name in _ADVANCE}
        """The columns _ADVANCE, sorted by key and, within a key, by when the commits took effect."""
        self._first_ms: int | None = None
        self._latest_ms = NONE

    @property
    def count(self) -> int:
        """The number of advances that are kept in memory."""
        return len(self.state["offset"]) + len(self.advances["key"])

    def add(self, steps: Steps) -> None:
        """Add steps that took effect after all steps added before."""
        numbers = self._numbers(steps)
        topic_ids = self._ids_of(steps)
        state = self.state
        touched = np.flatnonzero(
            (np.bincount(numbers, minlength=len(state["offset"])) > 0) & (state["log_offset"] >= 0)
        )

        def both(name: str, new: INT64) -> INT64:
            return np.concatenate([state[name][touched], new])

        code = np.concatenate([touched, numbers])
        log_offset, counted_at = both("log_offset", steps.log_offset), both("counted_at", steps.counted_at)
        order, chain = in_effect_by_number(code, counted_at, log_offset)
        vectors = {
            "is_value": both("is_value", steps.is_value.astype(np.int64)),
            "offset": both("offset", steps.offset),
            "log_offset": log_offset,
            "counted_at": counted_at,
            "ms": both("commit_ms", steps.commit_timestamp_ms),
            "topic_id": both("topic_id", topic_ids),
            "known_id": both("known_id", topic_ids),
        }
        self._follow(chain, {name: vector[order] for name, vector in vectors.items()}, order < len(touched))

    # -- inside --------------------------------------------------------------------------------------------------------

    def _numbers(self, steps: Steps) -> INT64:
        """The number of each step's key; new keys get numbers."""
        known = 0 if self.keys is None else self.keys.num_rows
        both = steps.keys if self.keys is None else joined([self.keys, steps.keys])
        codes = numbers_of_keys(both)
        # Codes are numbered by first occurrence, so the codes of known keys equal their numbers, and a new key has the
        # highest code so far.
        self.keys = both.take(pa.array(np.flatnonzero(begins(np.maximum.accumulate(codes)))))
        new = self.keys.num_rows - known
        for name, vector in self.state.items():
            self.state[name] = np.concatenate([vector, np.full(new, _NOTHING.get(name, NONE), np.int64)])
        found: INT64 = codes[known:][steps.key]
        return found

    def _ids_of(self, steps: Steps) -> INT64:
        """For each step, the index of its topic id in `ids`."""
        numbers = []
        for text in steps.ids.to_pylist():
            if text not in self._id_numbers:
                self._id_numbers[text] = len(self.ids)
                self.ids.append(text)
            numbers.append(self._id_numbers[text])
        return np.array([*numbers, -1], np.int64)[steps.topic_id]

    def _follow(self, chain: INT64, rows: dict[str, INT64], is_held: FLAGS) -> None:
        """Compute the state after `rows`, which are sorted by key and, within a key, by when they took effect; rows
        with `is_held` were added in earlier calls."""
        state, count = self.state, len(chain)
        if not count:
            return
        places = np.arange(count)
        is_first, is_value, offset, ms = begins(chain), rows["is_value"] > 0, rows["offset"], rows["ms"]
        before = places - 1
        ids = _known_before(chain, rows["known_id"], is_value)
        is_other_topic = (ids >= 0) & (ids[before] >= 0) & (ids != ids[before])
        is_fresh = is_value & (is_first | ~is_value[before] | is_other_topic)
        is_held_value = is_held & is_value
        is_next = is_value & ~is_fresh
        is_fall = is_next & (offset < offset[before])
        is_change = (is_fresh | (is_next & (offset != offset[before]))) & ~is_held
        # Find the first commit with this offset. If a row was kept from an earlier call, that commit is not among these
        # rows.
        changed = np.maximum.accumulate(np.where(is_change | is_first, places, 0))
        changed_ms = np.where(is_held_value[changed], state["changed_ms"][chain[changed]], ms[changed])
        segment = np.cumsum(is_fresh | is_first | ~is_value) - 1
        peak = running_maximum(segment, np.where(is_held_value, state["peak"][chain], offset))

        self._note_advances(chain, rows, is_change, is_fresh, changed_ms[before])

        last = np.flatnonzero(ends(chain))
        key = chain[last]
        fell = np.maximum.accumulate(np.where(is_fall, places, -1))
        has_fallen = (fell[last] >= 0) & (segment[fell[last]] == segment[last])
        began = np.flatnonzero(begins(segment))[segment[last]]
        stands = is_held_value[began]
        state["fell_ms"][key] = np.where(has_fallen, ms[fell[last]], np.where(stands, state["fell_ms"][key], NONE))
        from_ = peak[np.maximum(fell[last] - 1, 0)]
        state["fell_from"][key] = np.where(has_fallen, from_, np.where(stands, state["fell_from"][key], NONE))
        state["peak"][key] = peak[last]
        for name in ("is_value", "offset", "log_offset", "counted_at", "topic_id"):
            state[name][key] = rows[name][last]
        state["commit_ms"][key] = ms[last]
        state["changed_ms"][key] = changed_ms[last]
        state["known_id"][key] = ids[last]
        state["commits"] += np.bincount(chain[is_value & ~is_held], minlength=len(state["commits"]))

    def _note_advances(
        self, chain: INT64, rows: dict[str, INT64], is_change: FLAGS, is_fresh: FLAGS, before_ms: INT64
    ) -> None:
        at = np.flatnonzero(is_change)
        if not len(at):
            return
        fresh = is_fresh[at]
        new = {
            "key": chain[at],
            "ms": rows["ms"][at],
            "offset": rows["offset"][at],
            "before_ms": np.where(fresh, NONE, before_ms[at]),
            "before_offset": np.where(fresh, NONE, rows["offset"][at - 1]),
        }
        self._latest_ms = max(self._latest_ms, int(new["ms"].max()))
        if self._first_ms is None:
            self._first_ms = int(new["ms"].min())
        whole = new
        if len(self.advances["key"]):
            whole = {name: np.concatenate([self.advances[name], new[name]]) for name in _ADVANCE}
            order = stable_order(whole["key"])
            whole = {name: vector[order] for name, vector in whole.items()}
        kept = self._needed(whole)
        self.advances = {name: vector[kept] for name, vector in whole.items()}

    def _needed(self, rows: dict[str, INT64]) -> INT64:
        """Which advances to keep: for each key the latest ones, those after the longest pauses, and the last one in
        each part of the window."""
        key, ms = rows["key"], rows["ms"]
        count = len(key)
        closes = np.flatnonzero(ends(key))
        sizes = np.diff(np.concatenate([[-1], closes]))
        is_kept = np.repeat(closes, sizes) - np.arange(count) < _LAST
        width = part_ms(self._window, self._latest_ms - (self._first_ms or 0))
        part = ms // width
        is_recent = part > self._latest_ms // width - _KEPT_PARTS
        is_kept |= is_recent & (ends(key) | ends(part))
        has_pause = rows["before_ms"] != NONE
        # Invalid times may be further apart than an int64 can express. Rows without a pause come last.
        pause = np.where(has_pause, np.maximum(ms.astype(np.float64) - rows["before_ms"], 0), -1)
        longest = np.argsort(-pause, kind="stable")
        longest = longest[stable_order(key[longest])]
        rank = np.empty(count, np.int64)
        rank[longest] = np.arange(count)
        is_kept |= (rank - np.repeat(closes - sizes + 1, sizes) < _LONGEST) & has_pause
        return np.flatnonzero(is_kept)


def _known_before(chain: INT64, ids: INT64, is_value: FLAGS) -> INT64:
    """The topic id of each row or, if it has none, of the last row of its key before it that has one, unless the offset
    was deleted in between; -1 if there is none."""
    # A tombstone has no topic id, and commits after it may refer to a recreated topic with another id.
    last = np.maximum.accumulate(np.where((ids >= 0) | ~is_value, np.arange(len(ids)), -1))
    is_known = (last >= 0) & (chain[last] == chain)
    return np.where(is_known, ids[last], -1)
