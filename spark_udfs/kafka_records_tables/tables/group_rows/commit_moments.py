"""Finds, in columns, the events in the life of a group that commits and tombstones of offsets show."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from heapq import merge
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.groups.group_model import SIMPLE
from kafka_records_tables.coordinator.offsets.commit_lots import CommitLot, first_behind, first_of_each
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords
from kafka_records_tables.coordinator.transactions import NONE
from kafka_records_tables.tables.words import timeline_words as words

if TYPE_CHECKING:
    from kafka_records_runtime.schema import RecordSchema
    from kafka_records_tables.coordinator.groups.group_states import GroupState, GroupStates, Transition


class CommitMoments:
    """Finds events among commits, one batch at a time. Memory grows with the topics for which existing groups have
    commits."""

    def __init__(self, schemas: Mapping[int, RecordSchema]) -> None:
        self._schemas = schemas
        self._known: dict[str, set[str]] = {}

    def columns(self, lot: CommitLot, events: list[Transition], states: GroupStates) -> Iterator[dict[str, Any]]:
        """Some columns of `timeline` for the events in the batch. `events` are the group events between its rows;
        `states` include them."""
        if not lot.rows.num_rows:
            return
        pairs = lot.pair
        yield from self._first(lot, pairs, events, states)
        yield from self._reset(lot, pairs, states)
        deleted = np.flatnonzero(lot.is_tombstone & (lot.group >= 0))
        yield from _by_write(words.OFFSETS_DELETED, lot, deleted, pairs, states)

    # -- the first commit for a topic ----------------------------------------------------------------------------------

    def _first(
        self, lot: CommitLot, pairs: INT64, events: list[Transition], states: GroupStates
    ) -> Iterator[dict[str, Any]]:
        ends = _ends(events)
        rows = self._candidates(lot, np.where(lot.is_tombstone, -1, pairs), ends)
        found = []
        groups, topics = _names(lot, rows)
        commits = zip(lot.offsets[rows].tolist(), groups, topics, rows.tolist(), strict=True)
        for _, group, topic, row in merge(((at, group, None, -1) for at, group in ends), commits, key=itemgetter(0)):
            if topic is None:
                self._known.pop(group, None)
            elif topic not in self._known.setdefault(group, set()):
                self._known[group].add(topic)
                found.append(row)
        if found:
            rows = np.array(found, np.int64)
            detail = _text_of('{"topic": ', _in_json(lot, rows), "}")
            yield _columns(words.FIRST_COMMIT, lot, rows, states) | {"detail": detail}

    def _candidates(self, lot: CommitLot, pairs: INT64, ends: list[tuple[int, str]]) -> INT64:
        """The first commit of each group and topic that is not known yet, and the first one after each end of its
        group."""
        first = first_of_each(pairs)
        first = first[pairs[first] >= 0]
        first = first[lot.group[first] >= 0]
        groups, topics = _names(lot, first)
        is_new = [topic not in self._known.get(group, ()) for group, topic in zip(groups, topics, strict=True)]
        ended = {group for _, group in ends}
        of_group: dict[str, list[int]] = {}
        for group, pair in zip(groups, pairs[first].tolist(), strict=True):
            if group in ended:
                of_group.setdefault(group, []).append(pair)
        behind = [(pair, offset) for offset, group in ends for pair in of_group.get(group, ())]
        return np.union1d(first[np.array(is_new, np.bool_)], first_behind(behind, pairs, lot.offsets))

    # -- offsets that an administrator sets ----------------------------------------------------------------------------

    def _reset(self, lot: CommitLot, pairs: INT64, states: GroupStates) -> Iterator[dict[str, Any]]:
        # Most groups have no known empty state, so their commits can be skipped.
        may_be = {group for group, state in states.known() if _takes_resets(state)}
        of_group = np.array([*(group in may_be for group in lot.groups), False], np.bool_)
        rows = np.flatnonzero(of_group[lot.group] & ~lot.is_tombstone & _is_plain(lot))
        at = states.before(lot.group_names(rows), lot.offsets[rows])
        takes_resets = np.array([_takes_resets(state) for state in at.states], np.bool_)
        rows = rows[takes_resets[at.numbers]]
        if not len(rows):
            return
        found = DecodedRecords(lot.rows.take(pa.array(rows)), self._schemas)
        offsets = found.member(lot.types, "value", "offset")
        known = offsets.is_valid().to_numpy(zero_copy_only=False)
        values = offsets.fill_null(0).to_numpy()
        yield from _by_write(words.OFFSETS_RESET, lot, rows[known], pairs, states, values[known])


def _takes_resets(state: GroupState | None) -> bool:
    """Whether a commit for a group in this state was made by an administrator, because the group has no members that
    could commit and is not of the kind without members."""
    return state is not None and state.is_empty and state.kind != SIMPLE


def _ends(events: list[Transition]) -> list[tuple[int, str]]:
    """The offsets at which groups end, with the groups. A group that is converted in the same batch keeps its
    offsets."""
    ends: dict[int, str] = {}
    last: dict[tuple[str, int], tuple[int, str]] = {}
    for each in events:
        write = (each.group_id, each.batch_offset)
        if each.before is not None and each.after is None:
            ends[each.event.offset] = each.group_id
            last[write] = (each.event.offset, each.before.kind)
        elif each.before is None and each.after is not None and write in last:
            ended_at, kind = last.pop(write)
            if kind != each.after.kind:
                del ends[ended_at]
    return list(ends.items())


def _is_plain(lot: CommitLot) -> FLAGS:
    """Flags rows not written in a transaction, if the source reports it."""
    said = lot.rows.column("transaction")
    plain: FLAGS = pc.fill_null(pc.equal(said, NONE), True).to_numpy(zero_copy_only=False)
    return plain


def _by_write(
    word: str, lot: CommitLot, rows: INT64, pairs: INT64, states: GroupStates, offsets: INT64 | None = None
) -> Iterator[dict[str, Any]]:
    """An event for each batch, group and topic, at the first of its rows. `offsets` are the committed ones."""
    if not len(rows):
        return
    # Combine batch, group and topic into one number; batch offsets are too large for this, so use the index of the
    # batch.
    _, batch = np.unique(lot.batch_offsets()[rows], return_inverse=True)
    wrote = batch * (int(pairs.max()) + 1) + pairs[rows]
    _, first, write = np.unique(wrote, return_index=True, return_inverse=True)
    counts = np.bincount(write, minlength=len(first))
    parts: list[Any] = ['{"topic": ', _in_json(lot, rows[first]), ', "partitions": ', counts]
    if offsets is not None:
        lowest, highest = np.full(len(first), np.iinfo(np.int64).max), np.full(len(first), np.iinfo(np.int64).min)
        np.minimum.at(lowest, write, offsets)
        np.maximum.at(highest, write, offsets)
        parts += [', "lowest_offset": ', lowest, ', "highest_offset": ', highest]
    yield _columns(word, lot, rows[first], states) | {"detail": _text_of(*parts, "}")}


def _names(lot: CommitLot, rows: INT64) -> tuple[list[str], list[str]]:
    """The groups and topics of the rows whose keys can be read."""
    groups, topics = lot.groups, lot.topics
    of_rows = lot.group[rows].tolist(), lot.topic[rows].tolist()
    return [groups[place] for place in of_rows[0]], [topics[place] for place in of_rows[1]]


def _in_json(lot: CommitLot, rows: INT64) -> pa.Array:
    """The topics of the rows as JSON strings."""
    texts = pa.array([json.dumps(topic, ensure_ascii=False) for topic in lot.topics], pa.string())
    return texts.take(pa.array(lot.topic[rows]))


def _text_of(*parts: Any) -> pa.Array:
    """The concatenated strings of all parts: words, numbers and string columns."""
    columns = [pa.array(part).cast(pa.string()) if isinstance(part, np.ndarray) else part for part in parts]
    return pc.binary_join_element_wise(*columns, "")


def _columns(word: str, lot: CommitLot, rows: INT64, states: GroupStates) -> dict[str, Any]:
    groups, offsets = lot.group_names(rows), lot.offsets[rows]
    # Use the state just before a record that deletes the last trace of its group, or just after a record that creates
    # its group.
    at = states.after(groups, offsets)
    kinds = pc.coalesce(at.kind, states.before(groups, offsets).kind) if at.kind.null_count else at.kind
    return {
        "group_id": groups.dictionary_decode(),
        "group_kind": kinds,
        "event": pa.array([word] * len(rows)),
        "member_id": None,
        "epoch": at.epoch,
        "member_count": at.member_count,
        "duration_ms": None,
        "at_timestamp_ms": lot.rows.column("timestamp_ms").take(pa.array(rows)),
        "log_offset": pa.array(offsets),
    }
