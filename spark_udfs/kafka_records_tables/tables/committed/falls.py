"""Committed offsets that are lower than the ones before them: each commit beside the one that it took the place of.

What has to be remembered of all commits so far is a few numbers for each group, topic and partition. So commits may
come in lots of any size, such as micro-batches, and the answer is the same.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.tables.committed.commit_order import begins, ends, in_effect
from kafka_records_tables.tables.committed.commit_steps import STEPS

_NONE: Final = np.iinfo(np.int64).min
"""Stands for null in vectors of offsets."""

_OF_RUNS: Final = ("fell_from", "fell_from_log_offset", "fell_to", "fell_to_log_offset", "low", "low_log_offset")

_TOLD_AT: Final = "id_log_offset"

HELD: Final = pa.schema([*STEPS, *((name, pa.int64()) for name in (*_OF_RUNS, _TOLD_AT))])
"""What is remembered: of each partition of a group the last commit that took effect, and the last tombstone where that
came later. `topic_id` is the last one that any commit told, the one at `id_log_offset`. Beside a commit stands what
`Runs` says of its run."""

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
"""A commit (`to_offset`, and what has no prefix) that is lower than the one before it (`from_…`).
`tombstone_log_offset` is where the offset was deleted between them. Of a sawtooth, `high_log_offset` is where the other
sequence stood at the fall before, and `low_log_offset` where this one was left."""


class Followed(NamedTuple):
    """What `follow` gives."""

    falls: pa.RecordBatch
    """As FALLS."""
    held: pa.RecordBatch
    """As HELD, for the next call."""


def follow(held: pa.RecordBatch | None, steps: pa.RecordBatch) -> Followed:
    """Compare `steps` (STEPS, as `CommitSteps.steps` gives them) with each other and with those of earlier calls, of
    which `held` is left."""
    rows = _with_held(held, steps)
    order, chain = in_effect(rows, rows.column("counted_at").to_numpy(), rows.column("log_offset").to_numpy())
    rows = rows.take(pa.array(order))
    is_value = rows.column("offset").is_valid().to_numpy(zero_copy_only=False)
    values = np.flatnonzero(is_value)
    commits, of_chain = rows.take(pa.array(values)), chain[values]
    commits = _with_known_ids(commits, of_chain)
    offsets = commits.column("offset").to_numpy()
    log_offsets = commits.column("log_offset").to_numpy()

    is_next = ~begins(of_chain)
    before = np.where(is_next, np.arange(len(values)) - 1, 0)
    is_lower = is_next & (offsets < offsets[before])
    was_deleted = is_next & (values - values[before] > 1)
    ids = commits.column("topic_id")
    is_recreated = is_next & _differ(ids, ids.take(pa.array(before)))
    is_apart = ~is_next | was_deleted | is_recreated

    runs = Runs(commits, offsets, log_offsets, is_apart, is_lower)
    lower = np.flatnonzero(is_lower)
    is_sawtooth = runs.is_sawtooth(lower, before[lower]) & ~is_apart[lower]
    deleted_at = np.where(was_deleted, rows.column("log_offset").to_numpy()[values - 1], _NONE)
    falls = _falls(commits, lower, before[lower], deleted_at[lower], is_sawtooth, runs)
    kept = runs.remembered(commits, ends(of_chain))
    tombstones = _with_runs(rows.select(STEPS.names).filter(pa.array(ends(chain) & ~is_value)))
    return Followed(falls, _one([kept, tombstones]))


class Runs:
    """Commits of a partition between one fall and the next, an element per commit that says which run it is of.

    Of each run: what the offset `fell_from` and `fell_to` where it began (_NONE where it began without a fall), and
    `low`, the last commit of it below what it fell from.
    """

    def __init__(
        self, commits: pa.RecordBatch, offsets: INT64, log_offsets: INT64, is_apart: FLAGS, is_lower: FLAGS
    ) -> None:
        self._offsets = offsets
        is_first = is_apart | is_lower
        self.of = np.cumsum(is_first) - 1
        starts = np.flatnonzero(is_first)
        fell = is_lower[starts] & ~is_apart[starts]
        told = {name: commits.column(name).fill_null(_NONE).to_numpy()[starts] for name in _OF_RUNS}
        self.fell_from = np.where(fell, offsets[starts - 1], told["fell_from"])
        self.fell_from_log_offset = np.where(fell, log_offsets[starts - 1], told["fell_from_log_offset"])
        self.fell_to = np.where(fell, offsets[starts], told["fell_to"])
        self.fell_to_log_offset = np.where(fell, log_offsets[starts], told["fell_to_log_offset"])
        self.low, self.low_log_offset = told["low"], told["low_log_offset"]
        is_low = offsets < self.fell_from[self.of]
        # Among equal indexes the last assignment wins.
        self.low[self.of[is_low]] = offsets[is_low]
        self.low_log_offset[self.of[is_low]] = log_offsets[is_low]

    def is_sawtooth(self, lower: INT64, before: INT64) -> FLAGS:
        """Whether the falls to the commits `lower`, from those `before` them, go on where a lower sequence was left.

        The run before began with a fall, it came back to where it had fallen from, most of the way in one step, and the
        offset is not below what was committed right before that step.
        """
        run = self.of[before]
        high, low, bottom = self.fell_from[run], self.low[run], self.fell_to[run]
        came_back = (high != _NONE) & (self._offsets[before] >= high)
        # Offsets of hostile records differ by more than an int64 holds.
        jumped = high.astype(np.float64) - low > low.astype(np.float64) - bottom
        goes_on: FLAGS = came_back & jumped & (self._offsets[lower] >= low)
        return goes_on

    def remembered(self, commits: pa.RecordBatch, which: FLAGS) -> pa.RecordBatch:
        """Some commits as HELD, each beside its run."""
        run = self.of[which]
        columns = commits.select(STEPS.names).filter(pa.array(which)).columns
        told = [_nullable(getattr(self, name)[run]) for name in _OF_RUNS]
        told_at = commits.column(_TOLD_AT).filter(pa.array(which))
        return pa.RecordBatch.from_arrays([*columns, *told, told_at], schema=HELD)


def _with_held(held: pa.RecordBatch | None, steps: pa.RecordBatch) -> pa.RecordBatch:
    steps = _with_runs(steps)
    return steps if held is None else _one([held, steps])


def _with_runs(steps: pa.RecordBatch) -> pa.RecordBatch:
    nothing = [pa.nulls(steps.num_rows, pa.int64()) for _ in HELD.names[len(STEPS) :]]
    return pa.RecordBatch.from_arrays([*steps.columns, *nothing], schema=HELD)


def _one(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    columns = [pa.concat_arrays([part.column(index) for part in parts]) for index in range(len(HELD))]
    return pa.RecordBatch.from_arrays(columns, schema=HELD)


def _with_known_ids(commits: pa.RecordBatch, chain: INT64) -> pa.RecordBatch:
    """The commits, those without the id of the topic with that of the last one before them that has one."""
    ids = commits.column("topic_id")
    own = pc.if_else(pc.is_valid(ids), commits.column("log_offset"), pa.scalar(None, pa.int64()))
    told_at = pc.coalesce(commits.column(_TOLD_AT), own)
    if ids.null_count:
        is_told = ids.is_valid().to_numpy(zero_copy_only=False)
        last = np.maximum.accumulate(np.where(is_told, np.arange(len(chain)), -1))
        same = (last >= 0) & (chain[np.maximum(last, 0)] == chain)
        known = pa.array(np.where(same, last, 0), mask=~same)
        ids, told_at = ids.take(known), told_at.take(known)
    names = commits.schema.names
    commits = commits.set_column(names.index("topic_id"), "topic_id", ids)
    return commits.set_column(names.index(_TOLD_AT), _TOLD_AT, told_at)


def _differ(one: pa.Array, other: pa.Array) -> FLAGS:
    differ: FLAGS = pc.fill_null(pc.not_equal(one, other), False).to_numpy(zero_copy_only=False)
    return differ


def _falls(
    commits: pa.RecordBatch, lower: INT64, before: INT64, deleted_at: INT64, is_sawtooth: FLAGS, runs: Runs
) -> pa.RecordBatch:
    to, since = commits.take(pa.array(lower)), commits.take(pa.array(before))
    run = runs.of[before]
    columns = {
        **{name: to.column(name) for name in to.schema.names},
        **{f"from_{name}": since.column(name) for name in STEPS.names},
        "to_offset": to.column("offset"),
        "tombstone_log_offset": _nullable(deleted_at),
        "is_sawtooth": pa.array(is_sawtooth),
        "high_log_offset": _nullable(np.where(is_sawtooth, runs.fell_from_log_offset[run], _NONE)),
        "low_log_offset": _nullable(np.where(is_sawtooth, runs.low_log_offset[run], _NONE)),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in FALLS.names], schema=FALLS)


def _nullable(numbers: INT64) -> pa.Array:
    return pa.array(numbers, mask=numbers == _NONE)
