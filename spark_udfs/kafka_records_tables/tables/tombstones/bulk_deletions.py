"""Determines why a write removed offsets or whole groups: a clean-up, an administrator, or the deletion of a topic.

The rules of a clean-up are those of `expirations`. A coordinator checks all offsets of a group at once. So if an offset
remains that should have expired no later than the removed ones, they were not removed by a clean-up, regardless of the
retention.

The facts are in columns (`swept_columns`), and so are the proofs and signs derived from them, for many writes at once.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

import numpy as np

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.offsets.live_offsets import LiveOffsets
from kafka_records_tables.coordinator.records.named_records import Event
from kafka_records_tables.tables.tombstones.member_causes import Verdict, said
from kafka_records_tables.tables.tombstones.swept_columns import (
    NO_AGE,
    STAYS,
    STAYS_IF_DUE,
    STAYS_IN_TOPIC,
    Shown,
    Swept,
    first,
    shown,
    taken,
)
from kafka_records_tables.tables.tombstones.swept_groups import SweptGroups
from kafka_records_tables.tables.tombstones.swept_states import NOTHING, SHOWN
from kafka_records_tables.tables.words import causes
from kafka_records_tables.tables.words.causes import Evidence

_WAYS = _CLEAN_UP, _GROUPS, _OFFSETS, _TOPICS = "clean-up", "groups", "offsets", "topics"

_WORDS_OF_OFFSETS: Final = {
    _CLEAN_UP: causes.EXPIRED,
    _GROUPS: causes.GROUP_DELETED,
    _OFFSETS: causes.OFFSET_DELETED,
    _TOPICS: causes.TOPIC_DELETED,
}
_WORDS_OF_GROUPS: Final = {**_WORDS_OF_OFFSETS, _CLEAN_UP: causes.GROUP_EXPIRED}
"""The verdict on a record that was removed in one of these ways."""


class _Weight(NamedTuple):
    """The possible and likely ways, given the flags of proofs and signs."""

    cause: tuple[str, ...]
    possible: tuple[str, ...]
    confidence: str
    is_by_due: bool
    """Whether an offset that was due counts as evidence too."""


class Ways(NamedTuple):
    """How a write may have removed some groups or their offsets."""

    weight: _Weight
    evidence: tuple[Evidence, ...]


class BulkDeletion:
    """The verdicts on the tombstones of a write."""

    __slots__ = ("_is_whole", "_of_groups", "_said", "_ways")

    def __init__(self, ways: Ways, of_groups: dict[str, Ways], *, is_whole: bool) -> None:
        """`of_groups` has the ways by group, if the facts about all groups taken together contradict each other."""
        self._ways = ways
        self._of_groups = of_groups
        self._is_whole = is_whole
        self._said: dict[bool, Verdict] = {}
        """The verdicts shared by all tombstones, by whether they are tombstones of offsets."""

    def said(self, event: Event) -> Verdict:
        """The verdict on one of the tombstones."""
        is_offset = event.record in COMMITS
        if self._of_groups:
            return self._in_words(self._of_groups[event.group_id], is_offset)
        found = self._said.get(is_offset)
        if found is None:
            found = self._said[is_offset] = self._in_words(self._ways, is_offset)
        return found

    def _in_words(self, found: Ways, is_offset: bool) -> Verdict:
        """Converts a verdict with ways to one with causes."""
        weight = found.weight
        cause, possible, confidence, is_shown = _words(
            weight.cause, weight.possible, weight.confidence, is_offset=is_offset, is_whole=self._is_whole
        )
        return Verdict(cause, possible, confidence, found.evidence if is_shown else ())


class BulkDeletions(SweptGroups):
    """Tombstones of writes, and the verdicts on them."""

    def said(
        self, first_case: int, are_whole: list[bool], live: LiveOffsets, until: INT64 | None
    ) -> tuple[list[BulkDeletion], INT64]:
        """The verdicts on the first writes, and for each the longest retention that explains the removal of its offsets
        at that time; NO_AGE if any retention does. The groups of these writes are dropped.

        `first_case` is the number of the first write. `are_whole` says whether all records of each write are in the
        log. With `until`, each write has ended at this position, so the remaining offsets and groups are known."""
        cases = len(are_whole)
        rows = int(np.searchsorted(self.swept.case, first_case + cases))
        swept = Swept(*(each[:rows] for each in self.swept))
        watched = self.watched.of_rows(rows)
        case = swept.case - first_case
        is_there = watched.is_gone == 0
        if until is not None:
            is_there &= ~live.lot.are_deleted(watched.number, swept.begin[watched.row], until[case[watched.row]])
        is_over = until is not None
        staying = [
            (watched.row[which], watched.log_offset[which])
            for which in (is_there & (watched.kind == kind) for kind in (STAYS, STAYS_IF_DUE, STAYS_IN_TOPIC))
        ]
        ways = _Proofs(swept, staying, case, cases, is_over=is_over).ways()
        of_groups: list[dict[str, Ways]] = [{} for _ in ways]
        are_several = (np.bincount(case, minlength=cases) > 1).tolist()
        contradicts = [several and not each.weight.possible for each, several in zip(ways, are_several, strict=True)]
        if any(contradicts):
            alone = _Proofs(swept, staying, np.arange(rows), rows, is_over=is_over).ways()
            for number, group_id, its in zip(case.tolist(), self.group_ids[:rows], alone, strict=True):
                if contradicts[number]:
                    of_groups[number][group_id] = its
        longest = np.full(cases, NO_AGE)
        np.minimum.at(longest, case, swept.longest_ms)
        is_by_time = np.array([each.weight.possible == (_CLEAN_UP,) for each in ways], np.bool_)
        longest[~(is_by_time & np.array(are_whole, np.bool_))] = NO_AGE
        self.drop(rows)
        parts = zip(ways, of_groups, are_whole, strict=True)
        return [BulkDeletion(each, by_group, is_whole=is_whole) for each, by_group, is_whole in parts], longest


class _Proofs:
    """Proofs and signs against each way in which sets of groups may have been removed. Proofs rule out a cause for any
    retention, while signs only make it unlikely. Until a write has ended, it may still delete objects that exist
    now."""

    def __init__(
        self, swept: Swept, staying: list[tuple[INT64, INT64]], of: INT64, count: int, *, is_over: bool
    ) -> None:
        """`of` has the set number of each group; there are `count` sets. `staying` has, for each kind, the groups of
        the remaining offsets, and their log offsets."""
        self._of, self._count = of, count
        nothing = Shown(np.full(count, NOTHING), np.full(count, NOTHING))
        never, not_yet, refused = (
            each.taken(first(of, each.there, count)) for each in (swept.never, swept.not_yet, swept.refused)
        )
        stays, stays_due, in_topic = (
            shown(word, taken(log_offset, first(of[row], np.ones(len(row), np.bool_), count)))
            for word, (row, log_offset) in zip(("stays", "stays", "stays_in_topic"), staying, strict=True)
        )
        is_ended = swept.is_ended != 0
        group_ends = shown("group_ends", taken(swept.end, first(of, is_ended, count)))
        is_one = np.bincount(of[~is_ended], minlength=count) < 2
        several = Shown(np.where(is_one, NOTHING, SHOWN.index("several_groups")), nothing.log_offset)
        self._proofs = [
            never.otherwise(stays if is_over else nothing),
            nothing,
            group_ends.otherwise(refused),
            group_ends.otherwise(in_topic if is_over else nothing),
        ]
        self._signs = [
            not_yet.otherwise(stays_due).otherwise(nothing if is_over else stays),
            nothing,
            several,
            nothing if is_over else in_topic,
        ]
        if swept.has_topics.any():
            self._add_topics(swept)
        self._goes_on = self._any((swept.is_ended | swept.may_end_unseen) == 0)
        self._may_be_refused = self._any(swept.not_yet_word == SHOWN.index("subscribed"))
        self._is_due = ~self._any(swept.is_due == 0)
        self._due = shown("due", taken(swept.due_at, first(of, swept.due_at != NOTHING, count)))

    def ways(self) -> list[Ways]:
        """Which ways are likely and possible for each set. None is possible if the facts about its groups contradict
        each other."""
        proofs, signs = self._proofs, self._signs
        is_ruled_out = [each.there for each in proofs]
        is_ruled_out[1] = is_ruled_out[1] | self._goes_on
        is_unlikely = [each.there for each in signs]
        is_unlikely[2] = is_unlikely[2] | self._may_be_refused
        flags = np.stack([*is_ruled_out, *is_unlikely, self._is_due], axis=1).astype(np.int64)
        weights = [_weighed(number) for number in (flags << np.arange(flags.shape[1])).sum(axis=1).tolist()]
        is_by_due = np.array([weight.is_by_due for weight in weights], np.bool_)
        told = [proof.otherwise(sign.where(~out)) for proof, sign, out in zip(proofs, signs, is_ruled_out, strict=True)]
        told.append(self._due.where(is_by_due))
        columns = zip(*(zip(each.word.tolist(), each.log_offset.tolist(), strict=True) for each in told), strict=True)
        return [Ways(weight, _evidence(reasons)) for weight, reasons in zip(weights, columns, strict=True)]

    def _add_topics(self, swept: Swept) -> None:
        """Add the evidence from a metadata log to the proofs and signs against each way."""
        proofs, signs = self._proofs, self._signs
        nowhere = np.full(self._count, NOTHING)

        def topic(word: str, flags: FLAGS) -> Shown:
            return Shown(np.where(flags, SHOWN.index(word), NOTHING), nowhere)

        told = swept.has_topics != 0
        proofs[3] = proofs[3].otherwise(topic("topic_there", self._any(swept.have_stayed_always != 0)))
        signs[3] = signs[3].otherwise(topic("topic_there", self._any(swept.have_stayed != 0)))
        is_open = self._any(told) & ~proofs[3].there & ~signs[3].there
        deleted = topic("topic_deleted", is_open & ~self._any(told & (swept.are_deleted == 0)))
        near = topic("topic_deleted", is_open & ~self._any(told & (swept.are_near == 0)))
        for way in range(3):
            proofs[way], signs[way] = proofs[way].otherwise(deleted), signs[way].otherwise(near)

    def _any(self, flags: FLAGS) -> FLAGS:
        """For each set, whether any of its groups is flagged."""
        found: FLAGS = np.bincount(self._of[flags], minlength=self._count) > 0
        return found


def _evidence(reasons: tuple[tuple[int, int], ...]) -> tuple[Evidence, ...]:
    """Each reason once, in order."""
    return tuple(
        [
            Evidence(SHOWN[word], None if log_offset == NOTHING else log_offset)
            for word, log_offset in dict.fromkeys(reasons)
            if word != NOTHING
        ]
    )


@cache
def _weighed(flags: int) -> _Weight:
    """Which ways are likely and possible. The bits of `flags` say, for each of _WAYS, whether it is ruled out, then for
    each whether it is unlikely, and finally whether a clean-up would remove all groups and would not have done so long
    before."""
    is_ruled_out, is_unlikely = ([bool(flags >> bit & 1) for bit in range(begin, begin + 4)] for begin in (0, 4))
    is_due = bool(flags >> 8 & 1)
    possible = tuple(way for way, out in zip(_WAYS, is_ruled_out, strict=True) if not out)
    unlikely = {way for way, sign in zip(_WAYS, is_unlikely, strict=True) if sign}
    likely = tuple(way for way in possible if way not in unlikely) or possible
    if len(possible) == 1:
        return _Weight(possible, possible, causes.HIGH, False)
    if _CLEAN_UP not in likely or _CLEAN_UP in unlikely:
        return _Weight(likely, possible, causes.MEDIUM, False)
    if is_due:
        return _Weight((_CLEAN_UP,), possible, causes.MEDIUM, True)
    return _Weight(likely, possible, causes.LOW, True)


@cache
def _words(
    cause: tuple[str, ...], possible: tuple[str, ...], confidence: str, *, is_offset: bool, is_whole: bool
) -> tuple[tuple[str, ...], tuple[str, ...], str, bool]:
    """The causes and the confidence, given the likely and possible ways, and whether to show the evidence."""
    word = _WORDS_OF_OFFSETS if is_offset else _WORDS_OF_GROUPS
    all_possible = tuple(word[way] for way in possible)
    if not is_whole:
        more: tuple[str, ...] = (causes.GROUP_DELETED,)
        more += (
            (causes.OFFSET_DELETED, causes.TOPIC_DELETED)
            if is_offset
            else (causes.CONVERSION, causes.REPLACED_EMPTY_GROUP)
        )
        found = said((*all_possible, *more), causes.LOW)
    elif not all_possible:
        every = (causes.EXPIRED, causes.GROUP_DELETED, causes.OFFSET_DELETED, causes.TOPIC_DELETED)
        found = said(every if is_offset else (causes.GROUP_EXPIRED, causes.GROUP_DELETED), causes.LOW)
    else:
        found = said(tuple(word[way] for way in cause), confidence, (), all_possible)
    return found.cause, found.possible, found.confidence, bool(all_possible) or not is_whole
