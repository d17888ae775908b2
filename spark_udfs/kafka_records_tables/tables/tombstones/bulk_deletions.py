"""Determines why a write removed offsets or whole groups: a clean-up, an administrator, or the deletion of a topic.

The rules of a clean-up are those of `expirations`. A coordinator checks all offsets of a group at once. So if an offset
remains that should have expired no later than the removed ones, no clean-up removed these, regardless of the retention.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from kafka_records_engine.numpy_types import FLAGS
from kafka_records_tables.coordinator.groups.group_model import CLASSIC, CONSUMER, SHARE, SIMPLE, STREAMS
from kafka_records_tables.coordinator.groups.subscriptions import are_offsets_kept
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.offsets.live_offsets import (
    COMMIT_MS,
    EXPIRE_MS,
    FARTHEST_MS,
    IS_KNOWN,
    IS_LEGACY,
    NO_TIME,
)
from kafka_records_tables.tables.declaration import RETENTION
from kafka_records_tables.tables.tombstones.deleted_topics import OfTopics, of_topics
from kafka_records_tables.tables.tombstones.member_causes import Verdict, said
from kafka_records_tables.tables.words import causes
from kafka_records_tables.tables.words.causes import Evidence

if TYPE_CHECKING:
    from kafka_records_engine.sources.log_facts import TopicDeletions
    from kafka_records_tables.coordinator.groups.groups_before import GroupBefore, GroupsBefore
    from kafka_records_tables.coordinator.offsets.live_offsets import LiveOffsets
    from kafka_records_tables.coordinator.records.named_records import Event
    from kafka_records_tables.tables.tombstones.tombstone_writes import Write

_WAYS = _CLEAN_UP, _GROUPS, _OFFSETS, _TOPICS = "clean-up", "groups", "offsets", "topics"

_WORDS_OF_OFFSETS: Final = {
    _CLEAN_UP: causes.EXPIRED,
    _GROUPS: causes.GROUP_DELETED,
    _OFFSETS: causes.OFFSET_DELETED,
    _TOPICS: causes.TOPIC_DELETED,
}
_WORDS_OF_GROUPS: Final = {**_WORDS_OF_OFFSETS, _CLEAN_UP: causes.GROUP_EXPIRED}
"""The verdict on a record that was removed in one of these ways."""

_CHECKS_MS: Final = 600_000
"""The default of `offsets.retention.check.interval.ms`, which is rarely changed."""

_LATE_CLEAN_UP_MS: Final = 1_000
"""How much later than due a clean-up may write: it checks the groups of a partition one after another. A timer of a
member is less late (`member_causes`)."""

_MOST_STAYING: Final = 5
"""The number of offsets that are watched to see whether they stay: one that stays is enough."""


Staying = tuple[tuple[int, ...], tuple[int, ...]]
"""Offsets that remain after a write: their numbers, and where their commits are in the log."""

_NONE: Final[Staying] = ((), ())

_NO_IDS: Final = frozenset([0])
"""The topic ids of offsets that did not exist."""


@dataclass(slots=True)
class SweptGroup:
    """The offsets or the group that a write removes, and the facts about this removal."""

    group_id: str
    offsets: Sequence[Event]
    ends: Sequence[Event]
    """The tombstones of a whole group."""
    never: Evidence | None = None
    """Why no clean-up removed this group."""
    not_yet: Evidence | None = None
    """Why no clean-up removed this group if the given retention is right."""
    longest_ms: int | None = None
    """The longest retention with which a clean-up would have removed this group, if records show it."""
    is_late: bool = False
    """Whether a clean-up would have removed this group long before this write."""
    is_due: bool = False
    """Whether a clean-up would have removed this group, if this is known."""
    due: Evidence | None = None
    """An offset that was due to expire."""
    refused: Evidence | None = None
    """Why a coordinator does not delete these offsets for an administrator."""
    may_be_refused: bool = False
    may_end_unseen: bool = False
    """Whether the group may have been deleted with these offsets without a tombstone of its own."""
    staying: Staying = _NONE
    """Remaining offsets of the group that should have expired no later than one of the removed ones."""
    staying_due: Staying = _NONE
    """Offsets of the group that are due if the given retention is right."""
    staying_in_topics: Sequence[Staying] = ()
    """For each topic of the removed offsets, the remaining offsets of any group."""


class _Weight(NamedTuple):
    """The possible and likely ways that follow from flags of proofs and signs."""

    cause: tuple[str, ...]
    possible: tuple[str, ...]
    confidence: str
    is_by_due: bool
    """Whether an offset that was due is evidence, too."""


class BulkDeletion:
    """Tombstones of a write, and the facts about them."""

    def __init__(self, write: Write, tombstones: Iterable[Event], ended: frozenset[str]) -> None:
        """`ended` are the groups of which the write has the last tombstone."""
        self._write = write
        self._ended = ended
        self.groups: dict[str, SweptGroup] = {}
        self._verdict_before: Verdict | None = None
        self._verdict_after: Verdict | None = None
        self._said: dict[tuple[bool, bool], Verdict] = {}
        """The verdicts that are the same for all tombstones: whether they are of offsets, and `is_over`."""
        self._deleted_by: list[int] = []
        self._deletions = 0
        self._topics: dict[str, OfTopics] = {}
        """By group, what a metadata log shows about the topics of its offsets."""
        of_groups: dict[str, tuple[list[Event], list[Event]]] = {}
        for event in tombstones:
            group_id = event.group_id
            if group_id not in of_groups:
                of_groups[group_id] = [], []
            of_groups[group_id][event.record not in COMMITS].append(event)
        for group_id, (offsets, ends) in of_groups.items():
            self.groups[group_id] = SweptGroup(group_id, offsets or (), ends or ())

    def look(
        self,
        groups: GroupsBefore,
        live: LiveOffsets,
        retention_ms: int,
        *,
        is_log_whole: bool,
        is_new_broker: bool,
        deletions: TopicDeletions,
    ) -> None:
        """Set the facts before the write, including the `deletions` of topics. `is_log_whole` means that nothing is
        missing in the log, so that offsets without a record do not exist. `is_new_broker` means that every deleted
        group has a tombstone. Before Kafka 4.0 groups without a generation had none
        (`GroupMetadataManager.cleanupGroupMetadata`)."""
        self._deleted_by, self._deletions = live.deleted_by, live.deletions
        if deletions.times:
            self._note_topics(deletions)
        taken = [_numbers(swept, live) for swept in self.groups.values()]
        gone = set(chain.from_iterable(taken))
        ids = live.topic_ids(gone)
        topics: dict[str, Staying] = {}
        every_pending = live.pending(list(self.groups), is_log_whole=is_log_whole)
        for swept, numbers in zip(self.groups.values(), taken, strict=True):
            group_id = swept.group_id
            known = _known(groups, group_id, is_log_whole=is_log_whole)
            looked = _SweepEvidence(swept, known, live, numbers, self._write.timestamp_ms, retention_ms, is_log_whole)
            pending: dict[tuple[object, ...], int] = {}
            if every_pending:
                pending = {key[1:]: at for key, at in every_pending.items() if key[0] == group_id}
            looked.note(pending)
            if group_id in self._ended:
                continue
            if not is_new_broker and (known is None or known.state.kind == SIMPLE):
                swept.may_end_unseen = live.of_group(group_id) <= gone
            if is_log_whole and swept.never is None:
                looked.note_staying(gone, pending)
            of_offsets = dict.fromkeys([event.key[1] for event in swept.offsets])
            for topic in of_offsets:
                if topic not in topics:
                    there = live.of_topic(
                        topic, ids.get(topic, _NO_IDS), gone, _MOST_STAYING, is_log_whole=is_log_whole
                    )
                    topics[topic] = there, live.log_offsets(there)
            swept.staying_in_topics = tuple([topics[topic] for topic in of_offsets])

    def _note_topics(self, deletions: TopicDeletions) -> None:
        now_ms = self._write.timestamp_ms
        for group_id, swept in self.groups.items():
            if swept.offsets:
                self._topics[group_id] = of_topics({event.key[1] for event in swept.offsets}, now_ms, deletions)

    # -- the verdict ---------------------------------------------------------------------------------------------------

    def said(self, event: Event, *, is_over: bool) -> Verdict:
        """The verdict on one of the tombstones. `is_over` means that the write has ended, so that the remaining offsets
        and groups are known."""
        is_offset = event.record in COMMITS
        found = self._said.get((is_offset, is_over))
        if found is None:
            whole = self._verdict(is_over)
            if not whole.possible:
                return self._in_words(self._of_groups([self.groups[event.group_id]], is_over=is_over), is_offset)
            found = self._said[is_offset, is_over] = self._in_words(whole, is_offset)
        return found

    def _in_words(self, found: Verdict, is_offset: bool) -> Verdict:
        """A verdict with ways, as a verdict with causes."""
        cause, possible, confidence, is_shown = _words(
            found.cause, found.possible, found.confidence, is_offset=is_offset, is_whole=self._write.is_whole
        )
        return Verdict(cause, possible, confidence, found.evidence if is_shown else ())

    def longest_ms(self, *, is_over: bool) -> int | None:
        """The longest retention that explains why these offsets were removed at that time; None if any retention
        does."""
        if not self._write.is_whole or self._verdict(is_over).possible != (_CLEAN_UP,):
            return None
        told = [group.longest_ms for group in self.groups.values() if group.longest_ms is not None]
        return min(told, default=None)

    def _verdict(self, is_over: bool) -> Verdict:
        """The verdict on all tombstones of the write, which is the same for each."""
        found = self._verdict_after if is_over else self._verdict_before
        if found is None:
            found = self._of_groups(self.groups.values(), is_over=is_over)
            if is_over:
                self._verdict_after = found
            else:
                self._verdict_before = found
        return found

    def _of_groups(self, groups: Collection[SweptGroup], *, is_over: bool) -> Verdict:
        """Which ways are likely and possible; none is possible if the facts about the groups contradict each other."""
        never = not_yet = refused = due = stays = stays_due = in_topic = end = None
        of_topics = [self._topics[group.group_id] for group in groups if group.group_id in self._topics]
        may_be_refused = False
        goes_on, is_due, ended = False, True, 0
        for group in groups:
            never = never or group.never
            not_yet = not_yet or group.not_yet
            refused = refused or group.refused
            due = due or group.due
            may_be_refused |= group.may_be_refused
            is_due &= group.is_due and not group.is_late
            if group.group_id in self._ended:
                ended += 1
                if end is None and group.ends:
                    end = group.ends[-1].offset
            elif not group.may_end_unseen:
                goes_on = True
            stays = stays or self._shown("stays", group.staying)
            stays_due = stays_due or self._shown("stays", group.staying_due)
            for staying in group.staying_in_topics:
                in_topic = in_topic or self._shown("stays_in_topic", staying)
        group_ends = Evidence("group_ends", end) if ended else None
        several = Evidence("several_groups", None) if len(groups) - ended > 1 else None
        # Proofs rule out a cause for any retention. Signs only make a cause unlikely. Until the write has ended, it may
        # still delete objects that exist now.
        proofs = [never or (stays if is_over else None), None, group_ends or refused, group_ends]
        proofs[3] = proofs[3] or (in_topic if is_over else None)
        signs = [not_yet or stays_due or (None if is_over else stays), None, several, None if is_over else in_topic]
        self._add_topics(of_topics, proofs, signs)
        is_ruled_out = (
            proofs[0] is not None,
            goes_on or proofs[1] is not None,
            proofs[2] is not None,
            proofs[3] is not None,
        )
        by_signs = (sign is not None for sign in signs)
        is_unlikely = tuple(
            flag or (may_be_refused and way == _OFFSETS) for way, flag in zip(_WAYS, by_signs, strict=True)
        )
        weight = _weighed(is_ruled_out, is_unlikely, is_due)
        shown = [proof or (None if out else sign) for proof, out, sign in zip(proofs, is_ruled_out, signs, strict=True)]
        shown = [*dict.fromkeys(shown), due if weight.is_by_due else None]
        return Verdict(weight.cause, weight.possible, weight.confidence, tuple(filter(None, shown)))

    @staticmethod
    def _add_topics(told: Sequence[OfTopics], proofs: list[Evidence | None], signs: list[Evidence | None]) -> None:
        """Add the evidence from a metadata log to the proofs and signs against each way."""
        stays = next((each.stays for each in told if each.stays), None)
        stayed = next((each.stayed for each in told if each.stayed), None)
        proofs[3], signs[3] = proofs[3] or stays, signs[3] or stayed
        if not told or proofs[3] is not None or signs[3] is not None:
            return
        deleted = told[0].deleted if all(each.deleted for each in told) else None
        near = told[0].near if all(each.near for each in told) else None
        for way in range(3):
            proofs[way], signs[way] = proofs[way] or deleted, signs[way] or near

    def _shown(self, word: str, staying: Staying) -> Evidence | None:
        """The first of these offsets that did not disappear with the others, a little later."""
        for number, log_offset in zip(*staying, strict=True):
            if self._deleted_by[number] <= self._deletions:
                return Evidence(word, log_offset)
        return None


_Flags = tuple[bool, bool, bool, bool]
"""One flag for each of _WAYS."""


@cache
def _weighed(is_ruled_out: _Flags, is_unlikely: _Flags, is_due: bool) -> _Weight:
    """Which ways are likely and possible. `is_due`: a clean-up would remove all groups, and would not have done so long
    before."""
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
    """The causes and the confidence if these ways are likely and possible, and whether to show the evidence."""
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


def _known(groups: GroupsBefore, group_id: str, *, is_log_whole: bool) -> GroupBefore | None:
    """The group; None if there is none, or if records of it may be missing or cannot be decoded: if only commits show a
    group, a cleaner may have removed its own records."""
    group = groups.get(group_id)
    if group is None or group.state.state is None:
        return None
    return group if group.has_record or is_log_whole else None


def _numbers(swept: SweptGroup, live: LiveOffsets) -> list[int]:
    """The removed offsets of a group, as far as they are known to have existed."""
    found = [live.number(event.key) for event in swept.offsets]
    return [number for number in found if number is not None]


class _SweepEvidence:
    """Checks what a bulk deletion removes of one group."""

    def __init__(
        self,
        swept: SweptGroup,
        known: GroupBefore | None,
        live: LiveOffsets,
        taken: list[int],
        now_ms: int | None,
        retention_ms: int,
        is_log_whole: bool,
    ) -> None:
        """`taken` are the removed offsets that existed; in an incomplete log a cleaner may have left them."""
        self._swept = swept
        self._known = known
        self._live = live
        self._now = None if now_ms is None else min(now_ms, FARTHEST_MS)
        self._retention = min(retention_ms, FARTHEST_MS)
        commits = [live.values[number].tolist() for number in taken]
        self._taken = [each for each in commits if each[IS_KNOWN] and (is_log_whole or not each[IS_LEGACY])]
        self._since, self._has_base = _base(known)

    def note(self, pending: dict[tuple[object, ...], int]) -> None:
        """Note the facts from the group and its commits. `pending` has the offsets of the commits in open transactions,
        by topic and partition."""
        swept, known = self._swept, self._known
        if pending:
            waiting = [pending[event.key[1:]] for event in swept.offsets if event.key[1:] in pending]
            # A clean-up of 4.0 looks for transactions only where offsets are committed. DeleteGroups of 4.0 and later
            # also deletes pending offsets (`OffsetMetadataManager.cleanupExpiredOffsets`, `deleteAllOffsets`).
            if swept.ends and (swept.offsets or self._live.of_group(swept.group_id)):
                waiting += list(pending.values())
            if waiting:
                swept.never = Evidence("open_transaction", waiting[0])
        if known is not None:
            self._note_members(known)
        # One reason against a clean-up is enough.
        if self._now is not None and swept.never is None:
            self._note_times(known, self._now)

    def _note_members(self, known: GroupBefore) -> None:
        swept, state = self._swept, known.state
        if state.kind == SHARE or (state.member_count and are_offsets_kept(state.kind, known.protocol_type)):
            swept.never = swept.refused = Evidence("members", known.told_at)
        elif state.topics is None or any(event.key[1] in state.topics for event in swept.offsets):
            shown = Evidence("subscribed", known.told_at)
            if state.kind in (CONSUMER, STREAMS):
                swept.never = swept.never or shown
                swept.refused = shown
            else:
                # A static member that returns with other topics is recorded at once, but the topics count only from the
                # next generation (`ClassicGroup.computeSubscribedTopics`).
                swept.not_yet, swept.may_be_refused = shown, True

    def _note_times(self, known: GroupBefore | None, now: int) -> None:
        swept, least, retention, since = self._swept, RETENTION.least_ms or 0, self._retention, self._since
        late = young = not_due = longest = last = due_at = None
        for log_offset, commit_ms, expire_ms, *_ in self._taken:
            if expire_ms != NO_TIME:
                end = expire_ms
                if end > now and late is None:
                    late = log_offset
            else:
                base = commit_ms if since is None else since
                age, end = now - base, base + retention
                if age < least and young is None:
                    young = log_offset
                if age < retention and not_due is None:
                    not_due = log_offset
                longest = age if longest is None else min(longest, age)
            if last is None or end > last:
                last, due_at = end, log_offset
        if self._has_base:
            swept.longest_ms = longest
        else:
            young = None
        certain = young if late is None else late
        if certain is not None:
            swept.never = Evidence("not_due", certain)
        if not_due is not None and swept.not_yet is None:
            swept.not_yet = Evidence("not_due", not_due)
        if known is None:
            return
        told_ms = known.told_ms or 0
        if last is not None:
            swept.is_late = now - max(last, told_ms) > _CHECKS_MS + _LATE_CLEAN_UP_MS
            swept.is_due = last <= now
            if swept.is_due:
                swept.due = Evidence("due", due_at)
        elif swept.ends:
            swept.is_late = now - told_ms > _CHECKS_MS + _LATE_CLEAN_UP_MS
            swept.is_due = known.state.is_empty and not swept.offsets and not self._live.of_group(swept.group_id)

    def note_staying(self, gone: set[int], pending: Collection[tuple[object, ...]]) -> None:
        """Note the offsets of the group that a clean-up would have removed with these."""
        known, live, now = self._known, self._live, self._now
        if known is None or now is None:
            return
        topics = known.state.topics
        others = np.fromiter(live.of_group(self._swept.group_id), np.int64)
        values = live.values[others]
        is_known = values[:, IS_KNOWN] != 0
        if not is_known.all():
            others, values = others[is_known], values[is_known]
        if topics is None or not len(others):
            return
        expire = values[:, EXPIRE_MS]
        is_explicit = expire != NO_TIME
        base = values[:, COMMIT_MS] if self._since is None else np.full(len(others), self._since, np.int64)
        is_due = np.zeros(len(others), np.bool_)
        if self._has_base and (known.state.kind != CLASSIC or known.state.is_empty):
            is_due = is_explicit & (expire <= now)
            by_time = [
                each[COMMIT_MS] if self._since is None else self._since
                for each in self._taken
                if each[EXPIRE_MS] == NO_TIME
            ]
            if by_time:
                is_due |= ~is_explicit & (base <= max(by_time))
        is_due_if = np.where(is_explicit, expire, base + self._retention) <= now

        def staying(which: FLAGS) -> Staying:
            there = ((number, live.keys[number]) for number in others[which].tolist() if number not in gone)
            could = (number for number, key in there if key[1] not in topics and key[1:] not in pending)
            first = tuple(islice(could, _MOST_STAYING))
            return first, live.log_offsets(first)

        self._swept.staying, self._swept.staying_due = staying(is_due), staying(is_due_if)


def _base(known: GroupBefore | None) -> tuple[int | None, bool]:
    """The time from which the retention of the offsets of a group counts, None if from each commit, and whether that is
    certain. A group of which nothing is known may have been empty for longer than its offsets are old."""
    if known is None or known.state.kind != CLASSIC or not known.state.is_empty:
        return None, known is not None
    since_ms = known.since_ms
    since = known.told_ms if since_ms is None else since_ms
    # Records of older versions lack this time, although the coordinator that wrote them knew it.
    return min(max(since or 0, -FARTHEST_MS), FARTHEST_MS), since_ms is not None
