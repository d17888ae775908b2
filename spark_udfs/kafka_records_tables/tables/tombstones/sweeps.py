"""What clean-ups, administrators and deleted topics take: offsets, and whole groups. Which of them it was.

The rules of a clean-up are those of `expirations`. A coordinator looks at all offsets of a group at once, so one that
is at least as due and stays tells that no clean-up took the others, whatever the retention is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from kafka_records_engine.numpy_types import FLAGS
from kafka_records_tables.tables.committed.commits import COMMITS
from kafka_records_tables.tables.committed.live_offsets import FARTHEST_MS, NO_TIME
from kafka_records_tables.tables.declaration import RETENTION
from kafka_records_tables.tables.replay.group_replay import CLASSIC, CONSUMER, SHARE, SIMPLE, STREAMS
from kafka_records_tables.tables.tombstones.member_causes import Said, said
from kafka_records_tables.tables.words import causes
from kafka_records_tables.tables.words.causes import Shown

if TYPE_CHECKING:
    from kafka_records_tables.tables.committed.live_offsets import LiveOffsets
    from kafka_records_tables.tables.decoded.fold import Event
    from kafka_records_tables.tables.tombstones.groups_known import GroupsKnown, KnownGroup
    from kafka_records_tables.tables.tombstones.tombstone_writes import Write

_CLEAN_UP, _GROUPS, _OFFSETS, _TOPICS = "clean-up", "groups", "offsets", "topics"

_WORDS_OF_OFFSETS: Final = {
    _CLEAN_UP: causes.EXPIRED,
    _GROUPS: causes.GROUP_DELETED,
    _OFFSETS: causes.OFFSET_DELETED,
    _TOPICS: causes.TOPIC_DELETED,
}
_WORDS_OF_GROUPS: Final = {**_WORDS_OF_OFFSETS, _CLEAN_UP: causes.GROUP_EXPIRED}
"""What is said of a record that went in one of these ways."""

_CHECKS_MS: Final = 600_000
"""`offsets.retention.check.interval.ms`, which hardly anybody changes."""

_LATE_CLEAN_UP_MS: Final = 1_000
"""How much later than that a clean-up may write: it looks at the groups of a partition one after another. A timer of a
member is less late (`member_causes`)."""

_MOST_STAYING: Final = 5
"""Offsets that are watched for whether they stay: one that does is enough."""


class Staying(NamedTuple):
    """An offset that is there behind a write, by its number and its commit."""

    number: int
    log_offset: int


@dataclass(slots=True)
class SweptGroup:
    """What a sweep takes of one group, and what is known about that."""

    group_id: str
    offsets: list[Event] = field(default_factory=list)
    ends: list[Event] = field(default_factory=list)
    """The tombstones of a whole group."""
    never: Shown | None = None
    """Why no clean-up took this."""
    not_yet: Shown | None = None
    """Why none did if the retention is what it is said to be."""
    longest_ms: int | None = None
    """The longest retention with which a clean-up takes this, where records tell it."""
    is_late: bool = False
    """Whether a clean-up would have taken it long before."""
    is_due: bool = False
    """Whether a clean-up would take this, as far as anything is known of it."""
    due: Shown | None = None
    """An offset that was due."""
    refused: Shown | None = None
    """Why a coordinator does not delete these offsets for an administrator."""
    may_be_refused: bool = False
    may_end_unseen: bool = False
    """Whether the group may have gone with these offsets without a tombstone of its own."""
    staying: list[Staying] = field(default_factory=list)
    """Offsets of the group that are at least as due as one of these."""
    staying_due: list[Staying] = field(default_factory=list)
    """Offsets of the group that are due if the retention is what it is said to be."""
    staying_in_topic: dict[str, list[Staying]] = field(default_factory=dict)
    """By topic, offsets of any group."""

    def all_staying(self) -> tuple[list[Staying], ...]:
        """Every list of offsets that are watched."""
        return self.staying, self.staying_due, *self.staying_in_topic.values()


class _Against(NamedTuple):
    """What is held against a way in which records go; None where no record shows it."""

    proofs: list[Shown | None]
    """What rules it out, whatever the retention is."""
    signs: list[Shown | None]
    """What makes it unlikely."""


class Sweep:
    """Some tombstones of a write, and what is known about them."""

    def __init__(self, write: Write, tombstones: Iterable[Event], ended: Iterable[str]) -> None:
        """`ended` are the groups of which the write has the last tombstone."""
        self._write = write
        self._ended = frozenset(ended)
        self.groups: dict[str, SweptGroup] = {}
        self._verdicts: dict[bool, Said] = {}
        for event in tombstones:
            swept = self.groups.setdefault(event.key[0], SweptGroup(event.key[0]))
            (swept.offsets if event.record in COMMITS else swept.ends).append(event)

    def look(
        self, told: GroupsKnown, live: LiveOffsets, retention_ms: int, *, is_log_whole: bool, is_new_broker: bool
    ) -> Iterable[Staying]:
        """Note what is known before the write; gives the offsets to watch. `is_log_whole`: nothing is missing of the
        log, so that what was not told is not there. `is_new_broker`: every group that goes has a tombstone. Before
        Kafka 4.0 groups without a generation had none (`GroupMetadataManager.cleanupGroupMetadata`)."""
        taken = {group_id: _numbers(swept, live) for group_id, swept in self.groups.items()}
        gone = {number for numbers in taken.values() for number in numbers}
        topics: dict[str, list[Staying]] = {}
        pending = live.pending(list(self.groups), is_log_whole=is_log_whole)
        for swept in self.groups.values():
            known = told.group(swept.group_id)
            if known is not None and (known.state.state is None or (known.is_by_commit and not is_log_whole)):
                known = None
            counted = [n for n in taken[swept.group_id] if is_log_whole or not live.is_legacy[n]]
            looked = _Look(swept, known, live, counted, self._write.timestamp_ms, retention_ms)
            looked.note({key[1:]: at for key, at in pending.items() if key[0] == swept.group_id})
            if swept.group_id not in self._ended:
                if not is_new_broker and (known is None or known.state.kind == SIMPLE):
                    swept.may_end_unseen = live.of_group(swept.group_id) <= gone
                if is_log_whole and swept.never is None:
                    looked.note_staying(gone, {key[1:] for key in pending if key[0] == swept.group_id})
                for topic in dict.fromkeys(event.key[1] for event in swept.offsets):
                    if topic not in topics:
                        there = live.of_topic(topic, gone, _MOST_STAYING, is_log_whole=is_log_whole)
                        topics[topic] = _staying(live, there)
                    swept.staying_in_topic[topic] = topics[topic]
        of_groups = (some for swept in self.groups.values() for some in (swept.staying, swept.staying_due))
        return [each for some in (*topics.values(), *of_groups) for each in some]

    def goes(self, number: int) -> None:
        """An offset that was watched went with others, a little later: it did not stay."""
        for swept in self.groups.values():
            for staying in swept.all_staying():
                staying[:] = [each for each in staying if each.number != number]

    # -- the verdict ---------------------------------------------------------------------------------------------------

    def said(self, event: Event, *, is_over: bool) -> Said:
        """What is said of one of the tombstones: when it `is_over`, known what stays, or before."""
        whole = self._verdict(is_over)
        if not whole.possible:
            whole = self._of_groups([self.groups[event.key[0]]], is_over=is_over)
        is_offset = event.record in COMMITS
        word = _WORDS_OF_OFFSETS if is_offset else _WORDS_OF_GROUPS
        possible = tuple(word[way] for way in whole.possible)
        if not self._write.is_whole:
            more: tuple[str, ...] = (causes.GROUP_DELETED,)
            more += (
                (causes.OFFSET_DELETED, causes.TOPIC_DELETED)
                if is_offset
                else (causes.CONVERSION, causes.REPLACED_EMPTY_GROUP)
            )
            return said((*possible, *more), causes.LOW, whole.evidence)
        if not possible:
            every = (causes.EXPIRED, causes.GROUP_DELETED, causes.OFFSET_DELETED, causes.TOPIC_DELETED)
            return said(every if is_offset else (causes.GROUP_EXPIRED, causes.GROUP_DELETED), causes.LOW)
        return said(tuple(word[way] for way in whole.cause), whole.confidence, whole.evidence, possible)

    def longest_ms(self, *, is_over: bool) -> int | None:
        """The longest retention with which these go as they went; None where they may go with any."""
        told = [group.longest_ms for group in self.groups.values() if group.longest_ms is not None]
        is_sure = self._write.is_whole and self._verdict(is_over).possible == (_CLEAN_UP,)
        return min(told) if told and is_sure else None

    def _verdict(self, is_over: bool) -> Said:
        """What is said of all of them together, the same for each."""
        if is_over not in self._verdicts:
            self._verdicts[is_over] = self._of_groups(list(self.groups.values()), is_over=is_over)
        return self._verdicts[is_over]

    def _of_groups(self, groups: list[SweptGroup], *, is_over: bool) -> Said:
        """Which ways are likely and possible; none is possible where what is known of the groups contradicts itself."""
        ways = self._ways(groups, is_over=is_over)
        possible = tuple(way for way, against in ways.items() if not against.proofs)
        likely = tuple(way for way in possible if not ways[way].signs) or possible
        shown = [next(filter(None, against.proofs or against.signs), None) for against in ways.values()]
        evidence = tuple(dict.fromkeys(filter(None, shown)))
        if len(possible) == 1:
            return Said(possible, possible, causes.HIGH, evidence)
        if _CLEAN_UP not in likely or ways[_CLEAN_UP].signs:
            return Said(likely, possible, causes.MEDIUM, evidence)
        evidence += tuple(group.due for group in groups if group.due)[:1]
        if all(group.is_due for group in groups) and not any(group.is_late for group in groups):
            return Said((_CLEAN_UP,), possible, causes.MEDIUM, evidence)
        return Said(likely, possible, causes.LOW, evidence)

    def _ways(self, groups: list[SweptGroup], *, is_over: bool) -> dict[str, _Against]:
        """What is held against each way in which records like these go."""
        stays = [Shown("stays", group.staying[0].log_offset) for group in groups if group.staying]
        stays_due = [Shown("stays", group.staying_due[0].log_offset) for group in groups if group.staying_due]
        in_topics = [some[0] for group in groups for some in group.staying_in_topic.values() if some]
        ended = [group for group in groups if group.group_id in self._ended]
        ends = next((group.ends[-1].offset for group in ended if group.ends), None)
        group_ends = [Shown("group_ends", ends)] if ended else []
        goes_on = not all(group.may_end_unseen or group.group_id in self._ended for group in groups)
        several = [Shown("several_groups", None)] if len(groups) - len(ended) > 1 else []
        ways = {
            _CLEAN_UP: _Against(
                [group.never for group in groups if group.never],
                [*(group.not_yet for group in groups if group.not_yet), *stays_due],
            ),
            _GROUPS: _Against([None] if goes_on else [], []),
            _OFFSETS: _Against(
                [*group_ends, *(group.refused for group in groups if group.refused)],
                [*several, *(None for group in groups if group.may_be_refused)],
            ),
            _TOPICS: _Against([*group_ends], []),
        }
        # What stays as yet may still go with these.
        stay_in_topics = [Shown("stays_in_topic", each.log_offset) for each in in_topics]
        for way, shown in ((_CLEAN_UP, stays), (_TOPICS, stay_in_topics)):
            (ways[way].proofs if is_over else ways[way].signs).extend(shown)
        return ways


def _numbers(swept: SweptGroup, live: LiveOffsets) -> list[int]:
    """The offsets that are taken of a group, as far as they are known to be there."""
    found = (live.number((event.key[0], event.key[1], event.key[2])) for event in swept.offsets)
    return [number for number in found if number is not None]


def _staying(live: LiveOffsets, numbers: Iterable[int]) -> list[Staying]:
    return [Staying(number, live.log_offset.item(number)) for number in numbers]


class _Look:
    """Looks at what a sweep takes of one group."""

    def __init__(
        self,
        swept: SweptGroup,
        known: KnownGroup | None,
        live: LiveOffsets,
        taken: list[int],
        now_ms: int | None,
        retention_ms: int,
    ) -> None:
        """`taken` are the offsets that are taken and known to be there."""
        self._swept = swept
        self._known = known
        self._live = live
        self._now = None if now_ms is None else min(now_ms, FARTHEST_MS)
        self._retention = min(retention_ms, FARTHEST_MS)
        self._taken = [number for number in taken if live.is_known[number]]
        self._since, self._has_base = _base(known)

    def note(self, pending: dict[tuple[object, ...], int]) -> None:
        """Note what the group and the commits tell. `pending` is what open transactions commit, by topic and
        partition: where that stands."""
        swept, known = self._swept, self._known
        waiting = [pending[event.key[1:]] for event in swept.offsets if event.key[1:] in pending]
        waiting += list(pending.values()) if swept.ends else []
        if waiting:
            swept.never = Shown("open_transaction", waiting[0])
        if known is not None:
            self._note_members(known)
        # What no clean-up took needs no second reason.
        if self._now is not None and swept.never is None:
            self._note_times(known, self._now)

    def _note_members(self, known: KnownGroup) -> None:
        swept, state = self._swept, known.state
        told = Shown("members", known.told_at)
        is_of_others = state.kind == CLASSIC and state.member_count and known.protocol_type != "consumer"
        if state.kind == SHARE or is_of_others:
            swept.never = swept.refused = told
        elif state.topics is None or any(event.key[1] in state.topics for event in swept.offsets):
            shown = Shown("subscribed", known.told_at)
            if state.kind in (CONSUMER, STREAMS):
                swept.never = swept.never or shown
                swept.refused = shown
            else:
                # A static member that comes back with other topics is in a record at once, and these count only when
                # the next generation begins (`ClassicGroup.computeSubscribedTopics`).
                swept.not_yet, swept.may_be_refused = shown, True

    def _note_times(self, known: KnownGroup | None, now: int) -> None:
        swept, least, retention = self._swept, RETENTION.least_ms or 0, self._retention
        ends = [(number, self._live.expire_ms.item(number)) for number in self._taken]
        explicit = [(number, end) for number, end in ends if end != NO_TIME]
        ages = [(number, now - self._base_of(number)) for number, end in ends if end == NO_TIME]
        self._not_due((number for number, end in explicit if end > now), certain=True)
        if self._has_base:
            self._not_due((number for number, age in ages if age < least), certain=True)
            swept.longest_ms = min((age for _, age in ages), default=None)
        self._not_due((number for number, age in ages if age < retention), certain=False)
        if known is None:
            return
        since = known.told_ms or 0
        if ends:
            due = [end if end != NO_TIME else self._base_of(number) + retention for number, end in ends]
            last = max(due)
            swept.is_late = now - max(last, since) > _CHECKS_MS + _LATE_CLEAN_UP_MS
            swept.is_due = last <= now
            if swept.is_due:
                swept.due = Shown("due", int(self._live.log_offset[ends[due.index(last)][0]]))
        elif swept.ends:
            swept.is_late = now - since > _CHECKS_MS + _LATE_CLEAN_UP_MS
            swept.is_due = known.state.is_empty and not swept.offsets and not self._live.of_group(swept.group_id)

    def _not_due(self, numbers: Iterator[int], *, certain: bool) -> None:
        first = next(numbers, None)
        if first is None:
            return
        shown = Shown("not_due", int(self._live.log_offset[first]))
        if certain:
            self._swept.never = self._swept.never or shown
        else:
            self._swept.not_yet = self._swept.not_yet or shown

    def _base_of(self, number: int) -> int:
        """From when the retention of an offset counts."""
        return self._live.commit_ms.item(number) if self._since is None else self._since

    def note_staying(self, gone: set[int], pending: set[tuple[object, ...]]) -> None:
        """Note the offsets of the group that would have gone with these in a clean-up."""
        known, live, now = self._known, self._live, self._now
        if known is None or now is None:
            return
        topics = known.state.topics
        others = np.fromiter(live.of_group(self._swept.group_id), np.int64)
        others = others[live.is_known[others]]
        if topics is None or not len(others):
            return
        expire = live.expire_ms[others]
        is_explicit = expire != NO_TIME
        base = live.commit_ms[others] if self._since is None else np.full(len(others), self._since, np.int64)
        is_due = np.zeros(len(others), np.bool_)
        if self._has_base and (known.state.kind != CLASSIC or known.state.is_empty):
            is_due = is_explicit & (expire <= now)
            by_time = [self._base_of(number) for number in self._taken if live.expire_ms[number] == NO_TIME]
            if by_time:
                is_due |= ~is_explicit & (base <= max(by_time))
        is_due_if = np.where(is_explicit, expire, base + self._retention) <= now

        def staying(which: FLAGS) -> list[Staying]:
            there = ((number, live.keys[number]) for number in others[which].tolist() if number not in gone)
            could = (number for number, key in there if key[1] not in topics and key[1:] not in pending)
            return _staying(live, islice(could, _MOST_STAYING))

        self._swept.staying, self._swept.staying_due = staying(is_due), staying(is_due_if)


def _base(known: KnownGroup | None) -> tuple[int | None, bool]:
    """From when the retention of the offsets of a group counts, None for when each was committed, and whether that is
    certain. A group of which nothing is known may have been empty for longer than its offsets are old."""
    if known is None or known.state.kind != CLASSIC or not known.state.is_empty:
        return None, known is not None
    since = known.told_ms if known.since_ms is None else known.since_ms
    # A record of an older version does not tell, and the coordinator that wrote it knew.
    return min(max(since or 0, -FARTHEST_MS), FARTHEST_MS), known.since_ms is not None
