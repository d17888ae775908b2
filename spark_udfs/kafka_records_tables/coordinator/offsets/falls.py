"""Finds commits that lowered a committed offset, each with the commit that it replaced. For each group, topic and
partition, only a few numbers about earlier commits are kept. The result does not depend on how many commits are added
at a time, so micro-batches give the same rows."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.offsets.commit_order import begins, ends, in_effect_by_number, numbers_of_keys
from kafka_records_tables.coordinator.offsets.commit_steps import Steps
from kafka_records_tables.coordinator.records.latest import joined

_NONE: Final = np.iinfo(np.int64).min
"""The value that represents null in vectors of offsets."""

_OF_RUNS: Final = ("fell_from", "fell_from_log_offset", "fell_to", "fell_to_log_offset", "low", "low_log_offset")

_OF_STEPS: Final = tuple(each.name for each in fields(Steps) if each.name not in ("keys", "ids"))


@dataclass(frozen=True, slots=True)
class HeldSteps:
    """The state kept between calls: for each partition of a group, the last commit that took effect, and the last
    tombstone if it is later."""

    steps: Steps
    """The remembered commits. The topic id of each is the last id that any commit for the partition named."""
    id_log_offset: INT64
    """The log offset of the commit that named that id; _NONE if there is none."""
    of_runs: dict[str, INT64]
    """The state that `Runs` keeps about the run of each commit, by the names _OF_RUNS."""

    @property
    def count(self) -> int:
        """The number of remembered commits and tombstones."""
        return self.steps.count

    def places(self) -> set[int]:
        """The log offsets of records to which later falls may refer."""
        named = (self.of_runs[name] for name in _OF_RUNS if name.endswith("log_offset"))
        places = np.concatenate([self.steps.log_offset, self.id_log_offset, *named])
        return set(places[places != _NONE].tolist())


FALLS: Final = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("from_offset", pa.int64()),
        ("to_offset", pa.int64()),
        ("from_topic_id", pa.string()),
        ("topic_id", pa.string()),
        ("from_commit_timestamp_ms", pa.int64()),
        ("commit_timestamp_ms", pa.int64()),
        ("producer_id", pa.int64()),
        ("from_log_offset", pa.int64()),
        ("log_offset", pa.int64()),
        ("counted_at", pa.int64()),
        ("tombstone_log_offset", pa.int64()),
        ("is_sawtooth", pa.bool_()),
        ("high_log_offset", pa.int64()),
        ("low_log_offset", pa.int64()),
    ]
)
"""A commit (`to_offset`, and the columns without a prefix) to an offset lower than the previous one (`from_…`).
`tombstone_log_offset` is the offset of the tombstone between them, if any. For a sawtooth, `high_log_offset` is the
last commit of the other sequence before the fall, and `low_log_offset` is the last earlier commit of this sequence."""


class Followed(NamedTuple):
    """The result of `follow`."""

    falls: pa.RecordBatch
    """The falls, with the columns FALLS."""
    held: HeldSteps | None
    """The state to pass to the next call."""


def follow(held: HeldSteps | None, steps: Steps | None) -> Followed:
    """Compare `steps` (from `CommitSteps`) with each other and with the steps of earlier calls, which are in `held`."""
    if steps is None:
        return Followed(pa.RecordBatch.from_pylist([], FALLS), held)
    start = _with_runs(steps)
    whole = start if held is None else _joined(held, start)
    steps = whole.steps
    numbers = numbers_of_keys(steps.keys)[steps.key]
    order, chain = in_effect_by_number(numbers, steps.counted_at, steps.log_offset)
    is_value = steps.is_value[order]
    values = np.flatnonzero(is_value)
    commits, of_chain = order[values], chain[values]
    offsets, log_offsets = steps.offset[commits], steps.log_offset[commits]
    ids, told_at = _known_ids(whole, commits, of_chain)

    is_next = ~begins(of_chain)
    before = np.arange(len(values)) - 1
    is_lower = is_next & (offsets < offsets[before])
    was_deleted = is_next & (values - values[before] > 1)
    is_recreated = is_next & (ids >= 0) & (ids[before] >= 0) & (ids != ids[before])
    is_apart = ~is_next | was_deleted | is_recreated

    told = {} if held is None else {name: vector[commits] for name, vector in whole.of_runs.items()}
    runs = Runs(told, offsets, log_offsets, is_apart, is_lower)
    lower = np.flatnonzero(is_lower)
    falls = pa.RecordBatch.from_pylist([], FALLS)
    if len(lower):
        is_sawtooth = runs.is_sawtooth(lower, before[lower]) & ~is_apart[lower]
        deleted_at = np.where(was_deleted[lower], steps.log_offset[order[values[lower] - 1]], _NONE)
        pairs = _Pairs(commits[lower], commits[before[lower]], ids[lower], ids[before[lower]])
        falls = _falls(steps, pairs, deleted_at, is_sawtooth, runs, runs.of[before[lower]])
    last = np.flatnonzero(ends(of_chain))
    tombstones = order[ends(chain) & ~is_value]
    return Followed(falls, _left(whole, commits[last], ids[last], told_at[last], runs.remembered(last), tombstones))


class Runs:
    """The runs of commits. A run is all commits of a partition from one fall to the next. The vectors have one element
    per commit, and describe its run.

    `fell_from` and `fell_to` are the offsets of the fall that began the run (_NONE if no fall did). `low` is the run's
    last commit below `fell_from`.
    """

    def __init__(
        self, told: dict[str, INT64], offsets: INT64, log_offsets: INT64, is_apart: FLAGS, is_lower: FLAGS
    ) -> None:
        """`told` contains the state of the runs from earlier calls, by the names _OF_RUNS; it is empty if there were no
        earlier calls."""
        self._offsets = offsets
        is_first = is_apart | is_lower
        self.of = np.cumsum(is_first) - 1
        starts = np.flatnonzero(is_first)
        fell = is_lower[starts] & ~is_apart[starts]
        if told:
            told = {name: vector[starts] for name, vector in told.items()}
        else:
            told = {name: np.full(len(starts), _NONE, np.int64) for name in _OF_RUNS}
        self.fell_from = np.where(fell, offsets[starts - 1], told["fell_from"])
        self.fell_from_log_offset = np.where(fell, log_offsets[starts - 1], told["fell_from_log_offset"])
        self.fell_to = np.where(fell, offsets[starts], told["fell_to"])
        self.fell_to_log_offset = np.where(fell, log_offsets[starts], told["fell_to_log_offset"])
        self.low, self.low_log_offset = told["low"], told["low_log_offset"]
        is_low = offsets < self.fell_from[self.of]
        # numpy keeps the last assignment to an index.
        self.low[self.of[is_low]] = offsets[is_low]
        self.low_log_offset[self.of[is_low]] = log_offsets[is_low]

    def is_sawtooth(self, lower: INT64, before: INT64) -> FLAGS:
        """Whether each fall continues a lower sequence of commits that the partition had left: a sawtooth. `before` are
        the commits before the falls, and `lower` the commits after them.

        It does if the previous run began with a fall and returned to the offset before that fall, mostly in one step,
        and if the new offset is not below the offset committed right before that step.
        """
        run = self.of[before]
        high, low, bottom = self.fell_from[run], self.low[run], self.fell_to[run]
        came_back = (high != _NONE) & (self._offsets[before] >= high)
        # The difference between two corrupt offsets may not fit into an int64.
        jumped = high.astype(np.float64) - low > low.astype(np.float64) - bottom
        goes_on: FLAGS = came_back & jumped & (self._offsets[lower] >= low)
        return goes_on

    def remembered(self, which: INT64) -> dict[str, INT64]:
        """The state to keep about the runs of some commits, by the names _OF_RUNS."""
        run = self.of[which]
        return {name: getattr(self, name)[run] for name in _OF_RUNS}


def _with_runs(steps: Steps) -> HeldSteps:
    """The state before any step."""
    nothing = np.full(steps.count, _NONE, np.int64)
    return HeldSteps(steps, nothing, dict.fromkeys(_OF_RUNS, nothing))


def _joined(held: HeldSteps, new: HeldSteps) -> HeldSteps:
    one, other = held.steps, new.steps
    vectors = {name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in _OF_STEPS}
    vectors["key"][one.count :] += one.keys.num_rows
    ids = vectors["topic_id"][one.count :]
    ids[ids >= 0] += len(one.ids)
    steps = Steps(joined([one.keys, other.keys]), pa.concat_arrays([one.ids, other.ids]), **vectors)
    of_runs = {name: np.concatenate([held.of_runs[name], new.of_runs[name]]) for name in _OF_RUNS}
    return HeldSteps(steps, np.concatenate([held.id_log_offset, new.id_log_offset]), of_runs)


def _known_ids(whole: HeldSteps, commits: INT64, chain: INT64) -> tuple[INT64, INT64]:
    """For each commit, its topic id as an index in `Steps.ids`, and the offset of the commit that named it. A commit
    without an id gets the id of the last commit before it that has one. Equal ids have the same index."""
    steps = whole.steps
    encoded = steps.ids.dictionary_encode()
    codes = encoded.indices.to_numpy()
    # Codes are numbered by first occurrence, so each new id has the highest code so far.
    first = np.flatnonzero(begins(np.maximum.accumulate(codes)))
    same = np.append(first[codes], -1)
    ids = same[steps.topic_id[commits]]
    is_told = ids >= 0
    told_at = whole.id_log_offset[commits]
    told_at = np.where((told_at == _NONE) & is_told, steps.log_offset[commits], told_at)
    last = np.maximum.accumulate(np.where(is_told, np.arange(len(chain)), -1))
    is_known = (last >= 0) & (chain[last] == chain)
    return np.where(is_known, ids[last], -1), np.where(is_known, told_at[last], _NONE)


def _left(
    whole: HeldSteps, commits: INT64, ids: INT64, told_at: INT64, of_runs: dict[str, INT64], tombstones: INT64
) -> HeldSteps:
    """The chosen commits and tombstones, with only the keys and topic ids they need."""
    steps = whole.steps
    rows = np.concatenate([commits, tombstones])
    vectors = {name: getattr(steps, name)[rows] for name in _OF_STEPS}
    vectors["topic_id"][: len(commits)] = ids
    nothing = np.full(len(tombstones), _NONE, np.int64)
    keys, vectors["key"] = np.unique(vectors["key"], return_inverse=True)
    needed, numbers = np.unique(vectors["topic_id"], return_inverse=True)
    # -1 means no topic id, and sorts first.
    without = int(len(needed) > 0 and needed[0] < 0)
    vectors["topic_id"] = numbers - without
    left = Steps(steps.keys.take(pa.array(keys)), steps.ids.take(pa.array(needed[without:])), **vectors)
    of_runs = {name: np.concatenate([vector, nothing]) for name, vector in of_runs.items()}
    return HeldSteps(left, np.concatenate([told_at, nothing]), of_runs)


class _Pairs(NamedTuple):
    """Commits, each with the one before it, as indexes of steps; their topic ids are indexes in `Steps.ids`."""

    to: INT64
    since: INT64
    to_id: INT64
    since_id: INT64


def _falls(
    steps: Steps, pairs: _Pairs, deleted_at: INT64, is_sawtooth: FLAGS, runs: Runs, run: INT64
) -> pa.RecordBatch:
    """The falls; `run` contains the runs of the commits before them."""
    to, since = pairs.to, pairs.since
    keys = steps.keys.take(pa.array(steps.key[to]))
    columns = {
        **{name: keys.column(name) for name in keys.schema.names},
        "from_offset": pa.array(steps.offset[since]),
        "to_offset": pa.array(steps.offset[to]),
        "from_topic_id": steps.ids.take(pa.array(pairs.since_id, mask=pairs.since_id < 0)),
        "topic_id": steps.ids.take(pa.array(pairs.to_id, mask=pairs.to_id < 0)),
        "from_commit_timestamp_ms": pa.array(steps.commit_timestamp_ms[since]),
        "commit_timestamp_ms": pa.array(steps.commit_timestamp_ms[to]),
        "producer_id": pa.array(steps.producer_id[to], mask=~steps.is_transactional[to]),
        "from_log_offset": pa.array(steps.log_offset[since]),
        "log_offset": pa.array(steps.log_offset[to]),
        "counted_at": pa.array(steps.counted_at[to]),
        "tombstone_log_offset": _nullable(deleted_at),
        "is_sawtooth": pa.array(is_sawtooth),
        "high_log_offset": _nullable(np.where(is_sawtooth, runs.fell_from_log_offset[run], _NONE)),
        "low_log_offset": _nullable(np.where(is_sawtooth, runs.low_log_offset[run], _NONE)),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in FALLS.names], schema=FALLS)


def _nullable(numbers: INT64) -> pa.Array:
    return pa.array(numbers, mask=numbers == _NONE)
