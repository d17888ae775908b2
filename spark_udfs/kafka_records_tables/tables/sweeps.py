"""What clean-ups, administrators and deleted topics take: offsets, and whole groups. Which of them it was.

The rules of a clean-up are those of `expirations`. A coordinator looks at all offsets of a group at once, so one that
is at least as due and stays tells that no clean-up took the others, whatever the retention is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.tables import causes
from kafka_records_tables.tables.causes import Shown
from kafka_records_tables.tables.commits import COMMITS
from kafka_records_tables.tables.group_replay import CLASSIC, CONSUMER, SHARE, SIMPLE, STREAMS
from kafka_records_tables.tables.live_offsets import NO_TIME
from kafka_records_tables.tables.member_causes import Said, said

if TYPE_CHECKING:
    from kafka_records_tables.tables.fold import Event
    from kafka_records_tables.tables.groups_known import GroupsKnown, KnownGroup
    from kafka_records_tables.tables.live_offsets import LiveOffsets
    from kafka_records_tables.tables.tombstone_writes import Write

_CLEAN_UP, _GROUPS, _OFFSETS, _TOPICS = "clean-up", "groups", "offsets", "topics"

_SHORTEST_RETENTION_MS: Final = 60_000
"""`offsets.retention.minutes` is one at least."""

_CHECKS_MS: Final = 600_000
"""`offsets.retention.check.interval.ms`, which hardly anybody changes."""

_LATE_MS: Final = 1_000

_MOST_STAYING: Final = 5
"""Offsets that are watched for whether they stay: one that does is enough."""


class Staying(NamedTuple):
    """An offset that is there behind a write, by its number and its commit."""

    number: int
    log_offset: int


@dataclass(slots=True)
class Part:
    """What a sweep takes of one group, and what is known about that."""

    group_id: str
    offsets: list[Event] = field(default_factory=list)
    ends: list[Event] = field(default_factory=list)
    """The tombstones of a whole group."""
    never: Shown | None = None
    """Why no clean-up took this."""
    not_yet: Shown | None = None
    """Why none did if the retention is what it is said to be."""
    is_late: bool = False
    """Whether a clean-up would have taken it long before."""
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


class Sweep:
    """Some tombstones of a write, and what is known about them."""

    def __init__(self, write: Write, tombstones: Iterable[Event], ended: Iterable[str]) -> None:
        """`ended` are the groups of which the write has the last tombstone."""
        self._write = write
        self._ended = frozenset(ended)
        self.parts: dict[str, Part] = {}
        self._whole: Said | None = None
        for event in tombstones:
            part = self.parts.setdefault(event.key[0], Part(event.key[0]))
            (part.offsets if event.record in COMMITS else part.ends).append(event)

    def look(
        self, groups: GroupsKnown, live: LiveOffsets, retention_ms: int, *, is_log_whole: bool, is_new_broker: bool
    ) -> Iterable[Staying]:
        """Note what is known before the write; gives the offsets to watch. `is_log_whole`: nothing is missing of the
        log, so that what was not told is not there. `is_new_broker`: every group that goes has a tombstone. Before
        Kafka 4.0 groups without a generation had none (`GroupMetadataManager.cleanupGroupMetadata`)."""
        gone = {number for part in self.parts.values() for number in _numbers(part, live).tolist()}
        topics: dict[str, list[Staying]] = {}
        pending = live.pending(list(self.parts))
        for part in self.parts.values():
            known = groups.group(part.group_id)
            if known is not None and (known.state.state is None or (known.is_by_commit and not is_log_whole)):
                known = None
            looked = _Look(part, known, live, self._write.timestamp_ms, retention_ms)
            looked.note({key[1:]: at for key, at in pending.items() if key[0] == part.group_id})
            if part.group_id not in self._ended:
                if not is_new_broker and (known is None or known.state.kind == SIMPLE):
                    part.may_end_unseen = set(live.of_group(part.group_id).tolist()) <= gone
                if is_log_whole:
                    looked.note_staying(gone, {key[1:] for key in pending if key[0] == part.group_id})
                for topic in dict.fromkeys(event.key[1] for event in part.offsets):
                    if topic not in topics:
                        topics[topic] = _staying(live, live.of_topic(topic, gone, _MOST_STAYING))
                    part.staying_in_topic[topic] = topics[topic]
        of_parts = (some for part in self.parts.values() for some in (part.staying, part.staying_due))
        return [each for some in (*topics.values(), *of_parts) for each in some]

    def goes(self, number: int) -> None:
        """An offset that was watched went with others, a little later: it did not stay."""
        for part in self.parts.values():
            for staying in part.all_staying():
                staying[:] = [each for each in staying if each.number != number]

    # -- the verdict ---------------------------------------------------------------------------------------------------

    def said_of(self, tombstones: Iterable[Event]) -> dict[int, Said]:
        """What is said of tombstones, by their offsets, when it is known what stayed."""
        return {event.offset: self._said(event) for event in tombstones}

    def said_so_far(self, tombstones: Iterable[Event]) -> dict[int, Said]:
        """The same while offsets that are there may still go: with what stands if all of them go."""
        events = list(tombstones)
        if_they_stay = self.said_of(events)
        for part in self.parts.values():
            for staying in part.all_staying():
                staying.clear()
        self._whole = None
        if_they_go = self.said_of(events)
        return {offset: _either(found, if_they_go[offset]) for offset, found in if_they_stay.items()}

    def _said(self, event: Event) -> Said:
        if self._whole is None:
            self._whole = self._verdict(list(self.parts.values()))
        whole = self._whole if self._whole.possible else self._verdict([self.parts[event.key[0]]])
        is_offset = event.record in COMMITS
        word = {_CLEAN_UP: causes.EXPIRED if is_offset else causes.GROUP_EXPIRED, _GROUPS: causes.GROUP_DELETED}
        word |= {_OFFSETS: causes.OFFSET_DELETED, _TOPICS: causes.TOPIC_DELETED}
        possible = tuple(word[way] for way in whole.possible)
        likely = tuple(word[way] for way in whole.cause) or possible
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
        return said(likely, whole.confidence, whole.evidence, possible)

    def _verdict(self, parts: list[Part]) -> Said:
        """Which ways are likely and possible, the latter without any where the parts contradict each other."""
        evidence: list[Shown] = []
        possible = self._possible(parts, evidence)
        likely = set(possible)
        is_several = sum(part.group_id not in self._ended for part in parts) > 1
        if is_several and _OFFSETS in likely:
            likely.discard(_OFFSETS)
            evidence.append(Shown("several_groups", None))
        if any(part.may_be_refused for part in parts):
            likely.discard(_OFFSETS)
        not_yet = [part.not_yet for part in parts if part.not_yet] + [
            Shown("stays", part.staying_due[0].log_offset) for part in parts if part.staying_due
        ]
        if not_yet and _CLEAN_UP in likely:
            likely.discard(_CLEAN_UP)
            evidence.append(not_yet[0])
        if len(possible) == 1:
            return Said(tuple(possible), tuple(possible), causes.HIGH, tuple(evidence))
        are_due = all(part.due for part in parts if part.offsets)
        if _CLEAN_UP in likely and are_due:
            evidence += [part.due for part in parts if part.due][:1]
        if likely == {_CLEAN_UP} and is_several and are_due and not any(part.is_late for part in parts):
            return Said((_CLEAN_UP,), tuple(possible), causes.HIGH, tuple(evidence))
        if _CLEAN_UP in likely and any(part.is_late for part in parts):
            return Said(tuple(likely), tuple(possible), causes.LOW, tuple(evidence))
        if _CLEAN_UP in likely:
            likely = {_CLEAN_UP}
        return Said(tuple(likely or possible), tuple(possible), causes.MEDIUM, tuple(evidence))

    def _possible(self, parts: list[Part], evidence: list[Shown]) -> list[str]:
        """The ways that nothing rules out, whatever the retention is."""
        never = [part.never for part in parts if part.never] + [
            Shown("stays", part.staying[0].log_offset) for part in parts if part.staying
        ]
        ended = [part for part in parts if part.group_id in self._ended]
        refused = [part.refused for part in parts if part.refused]
        staying = [some for part in parts for some in part.staying_in_topic.values() if some]
        possible = []
        if not never:
            possible.append(_CLEAN_UP)
        evidence += never[:1]
        if all(part.may_end_unseen or part.group_id in self._ended for part in parts):
            possible.append(_GROUPS)
        if ended:
            evidence.append(Shown("group_ends", next((part.ends[-1].offset for part in ended if part.ends), None)))
            return possible
        if not refused:
            possible.append(_OFFSETS)
        evidence += [each for each in refused[:1] if each not in evidence]
        if not staying:
            possible.append(_TOPICS)
        else:
            evidence.append(Shown("stays_in_topic", staying[0][0].log_offset))
        return possible


def _either(found: Said, otherwise: Said) -> Said:
    """What is said where either may turn out: high is what both are sure of."""
    is_sure = found.confidence == otherwise.confidence == causes.HIGH and found.cause == otherwise.cause
    confidence = causes.MEDIUM if found.confidence == causes.HIGH and not is_sure else found.confidence
    return said(found.cause, confidence, found.evidence, (*found.possible, *otherwise.possible))


def _numbers(part: Part, live: LiveOffsets) -> INT64:
    """The offsets that a part takes, as far as they are known to be there."""
    found = (live.number((event.key[0], event.key[1], event.key[2])) for event in part.offsets)
    return np.array([number for number in found if number is not None], np.int64)


def _staying(live: LiveOffsets, numbers: Iterable[int]) -> list[Staying]:
    return [Staying(number, int(live.log_offset[number])) for number in numbers]


class _Look:
    """Looks at what a sweep takes of one group."""

    def __init__(
        self, part: Part, known: KnownGroup | None, live: LiveOffsets, now_ms: int | None, retention_ms: int
    ) -> None:
        self._part = part
        self._known = known
        self._live = live
        self._now = now_ms
        self._retention = retention_ms
        self._taken = _numbers(part, live)
        self._is_stated = False
        """Whether the time of the group's state is the base of its offsets."""
        if known is not None:
            self._is_stated = known.state.kind == CLASSIC and known.state.is_empty

    def note(self, pending: dict[tuple[object, ...], int]) -> None:
        """Note what the group and the commits tell. `pending` is what open transactions commit, by topic and
        partition: where that stands."""
        part, known = self._part, self._known
        waiting = [pending[event.key[1:]] for event in part.offsets if event.key[1:] in pending]
        waiting += list(pending.values()) if part.ends else []
        if waiting:
            part.never = Shown("open_transaction", waiting[0])
        if known is not None:
            self._note_members(known)
        if self._now is not None:
            self._note_times(known, self._now)

    def _note_members(self, known: KnownGroup) -> None:
        part, state = self._part, known.state
        told = Shown("members", known.told_at)
        is_of_others = state.kind == CLASSIC and state.member_count and known.protocol_type != "consumer"
        if state.kind == SHARE or is_of_others:
            part.never = part.refused = told
        elif state.topics is None or any(event.key[1] in state.topics for event in part.offsets):
            shown = Shown("subscribed", known.told_at)
            if state.kind in (CONSUMER, STREAMS):
                part.never = part.never or shown
                part.refused = shown
            else:
                # A static member that comes back with other topics is in a record at once, and these count only when
                # the next generation begins (`ClassicGroup.computeSubscribedTopics`).
                part.not_yet, part.may_be_refused = shown, True

    def _note_times(self, known: KnownGroup | None, now: int) -> None:
        part, live, taken = self._part, self._live, self._taken
        is_explicit = live.is_known[taken] & (live.expire_ms[taken] != NO_TIME)
        self._not_due(is_explicit & (live.expire_ms[taken] > now), certain=True)
        if known is None:
            return
        base, has_base = self._base(known, taken)
        by_time = ~is_explicit & live.is_known[taken]
        if has_base:
            self._not_due(by_time & (now - base < _SHORTEST_RETENTION_MS), certain=True)
        self._not_due(by_time & (now - base < self._retention), certain=False)
        due = np.where(is_explicit, live.expire_ms[taken], base + self._retention)[live.is_known[taken]]
        since = known.told_ms or 0
        if len(due):
            part.is_late = now - max(int(due.max()), since) > _CHECKS_MS + _LATE_MS
            if int(due.max()) <= now:
                part.due = Shown("due", int(live.log_offset[taken[live.is_known[taken]][int(due.argmax())]]))
        elif part.ends:
            part.is_late = now - since > _CHECKS_MS + _LATE_MS

    def _not_due(self, which: FLAGS, *, certain: bool) -> None:
        if not which.any():
            return
        shown = Shown("not_due", int(self._live.log_offset[self._taken[int(which.argmax())]]))
        if certain:
            self._part.never = self._part.never or shown
        else:
            self._part.not_yet = self._part.not_yet or shown

    def _base(self, known: KnownGroup, numbers: INT64) -> tuple[INT64, bool]:
        """From when the retention counts, and whether that is certain."""
        if not self._is_stated:
            return self._live.commit_ms[numbers], True
        since = known.told_ms if known.since_ms is None else known.since_ms
        # A record of an older version does not tell, and the coordinator that wrote it knew.
        return np.full(len(numbers), since or 0, np.int64), known.since_ms is not None

    def note_staying(self, gone: set[int], pending: set[tuple[object, ...]]) -> None:
        """Note the offsets of the group that would have gone with these in a clean-up."""
        known, live, now = self._known, self._live, self._now
        if known is None or now is None:
            return
        others = live.of_group(self._part.group_id)
        is_explicit = live.expire_ms[others] != NO_TIME
        base, has_base = self._base(known, others)
        has_base &= known.state.kind != CLASSIC or known.state.is_empty
        taken = self._taken[live.is_known[self._taken] & (live.expire_ms[self._taken] == NO_TIME)]
        is_due = is_explicit & (live.expire_ms[others] <= now) & has_base
        if has_base and len(taken):
            is_due |= ~is_explicit & (base <= int(self._base(known, taken)[0].max()))
        is_due_if = np.where(is_explicit, live.expire_ms[others], base + self._retention) <= now

        def staying(which: FLAGS) -> list[Staying]:
            could = (number for number in others[which].tolist() if self._could_go(number, gone, pending))
            return _staying(live, islice(could, _MOST_STAYING))

        self._part.staying, self._part.staying_due = staying(is_due), staying(is_due_if)

    def _could_go(self, number: int, gone: set[int], pending: set[tuple[object, ...]]) -> bool:
        key = self._live.keys[number]
        topics = self._known.state.topics if self._known is not None else None
        is_protected = key[1:] in pending or topics is None or key[1] in topics
        return number not in gone and bool(self._live.is_known[number]) and not is_protected
