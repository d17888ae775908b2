"""Finds groups that continue the work of another group: they were created after its last member left, consume the same
topics, and their client ids look like those of the same application."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, grouped, kept
from kafka_records_tables.report.facts.beginnings import Beginning, agreed, beginning, first_member, started
from kafka_records_tables.report.facts.client_names import words_of
from kafka_records_tables.report.facts.group_facts import (
    MOST_GROUPS,
    LogEnds,
    MemberLife,
    Offset,
    Place,
    Span,
    commit_spans,
    first_joined,
    log_ends,
    member_lives,
)
from kafka_records_tables.report.facts.share_beginnings import TABLE as SHARE_BEGINNINGS
from kafka_records_tables.report.rule_context import MINUTE_MS, RuleContext

WITHIN_MS: Final = 30 * MINUTE_MS
"""The longest time between the last member leaving a group and the first member joining its successor. Redeploying an
application under a new group id takes less."""
_FIRST_EPOCHS: Final = 2
"""The highest epoch of a group in the first record of its first member."""
_MOST_TRIED: Final = 5
"""The maximum number of groups that are compared with a new one, those that stopped shortly before it started."""
_RETURNS: Final = 3
"""A group that was away before counts as stopped after this many times its longest absence."""


class Began(NamedTuple):
    """Where a group began in a partition that its predecessor had consumed."""

    place: Place
    before: Span
    """The last commit of the predecessor."""
    after: Span
    """The first commit of the group, or the record with the first start offset of a share group."""
    beginning: Beginning


@dataclass(frozen=True, slots=True)
class Succession:
    """A group that started without offsets after another group had stopped."""

    old: str
    new: str
    stopped_ms: int
    """When the last member of the old group left."""
    joined_ms: int
    """When the first member of the new group joined."""
    topics: tuple[str, ...]
    old_lives: Sequence[MemberLife]
    new_lives: Sequence[MemberLife]
    words: tuple[str, ...]
    """The words that the client ids or, failing those, the names of the two groups have in common."""
    began: tuple[Began, ...]
    is_share: bool
    """Whether the new group is a share group."""


def successions(context: RuleContext) -> list[Succession]:
    """All successions, in the order in which the new groups started. A new group has at most one predecessor, the last
    group that stopped before it started."""
    return context.once(_successions)


def _successions(context: RuleContext) -> list[Succession]:
    stopped, created = context.once(stopped_groups), _created(context)
    if not stopped or not created:
        return []
    topics = _topics(context, {*stopped, *created})
    of_topic: dict[str, list[tuple[int, str]]] = {}
    for group, at_ms in stopped.items():
        for topic in topics.get(group, ()):
            of_topic.setdefault(topic, []).append((at_ms, group))
    pairs: list[tuple[str, list[str]]] = []
    for group, at_ms in sorted(created.items(), key=lambda each: -each[1])[: 10 * MOST_GROUPS]:
        own = topics.get(group, frozenset())
        before = {
            (emptied_ms, other)
            for topic in own
            for emptied_ms, other in of_topic.get(topic, ())
            if other != group and 0 <= at_ms - emptied_ms <= WITHIN_MS and _are_same(own, topics[other])
        }
        if before:
            pairs.append((group, [other for _, other in sorted(before, reverse=True)[:_MOST_TRIED]]))
    pairs = pairs[:MOST_GROUPS]
    names = sorted({name for group, others in pairs for name in (group, *others)})
    share = tuple(group for group, _ in pairs if group in context.once(_share_groups))
    lives = member_lives(context, names)
    spans = _by_group({**commit_spans(context, names), **_starts(context, share)})
    found = []
    for group, others in reversed(pairs):
        each = _succession(context, group, others, lives, spans, is_share=group in share)
        found += [each] if each is not None else []
    return found


def _share_groups(context: RuleContext) -> frozenset[str]:
    groups = context.table("groups")
    return frozenset(kept(groups, equal(groups, "group_kind", "share"))["group_id"].to_pylist())


def _starts(context: RuleContext, groups: Sequence[str]) -> dict[Offset, list[Span]]:
    """The first start offsets of share groups, as commits."""
    found: dict[Offset, list[Span]] = {}
    for row in context.look(SHARE_BEGINNINGS, groups).to_pylist() if groups else ():
        place = row["log_partition"], row["log_offset"]
        span = Span(row["start_offset"], row["log_timestamp_ms"], None, None, *place, row["topic_id"], 1)
        found.setdefault((row["group_id"], row["topic"], row["partition"]), []).append(span)
    return found


def stopped_groups(context: RuleContext) -> dict[str, int]:
    """The groups without members, and when the last member of each left."""
    groups, events = context.table("groups"), context.table("timeline")
    empty = kept(groups, pc.equal(groups["member_count"], 0))["group_id"]
    events = kept(events, equal(events, "event", "emptied"), pc.is_in(events["group_id"], empty.combine_chunks()))
    rows = grouped(events, ["group_id"], [("at_timestamp_ms", "max")]).to_pylist()
    return {row["group_id"]: row["at_timestamp_ms_max"] for row in rows if row["at_timestamp_ms_max"] is not None}


def _created(context: RuleContext) -> dict[str, int]:
    """The groups whose creation is in the log, and when each was created. If a cleaner has removed the first records of
    a group, its epoch is higher."""
    events = context.table("timeline")
    events = kept(events, equal(events, "event", "created"), pc.less_equal(events["epoch"], _FIRST_EPOCHS))
    rows = grouped(events, ["group_id"], [("at_timestamp_ms", "max")]).to_pylist()
    return {row["group_id"]: row["at_timestamp_ms_max"] for row in rows if row["at_timestamp_ms_max"] is not None}


def _topics(context: RuleContext, groups: Iterable[str]) -> dict[str, frozenset[str]]:
    """The topics for which groups have commits or share groups have state, without internal topics of Kafka Streams
    applications, which have the application id in their names."""
    names = ["group_id", "topic"]
    rows = pa.concat_tables(context.table(each).select(names) for each in ("current_offsets", "share_group_topics"))
    rows = kept(rows, equal(rows, "group_id", *groups)).group_by(names).aggregate([])
    found: dict[str, set[str]] = {}
    for group, topic in zip(rows["group_id"].to_pylist(), rows["topic"].to_pylist(), strict=True):
        if topic is not None and not topic.startswith(f"{group}-"):
            found.setdefault(group, set()).add(topic)
    return {group: frozenset(each) for group, each in found.items()}


def _are_same(some: frozenset[str], others: frozenset[str]) -> bool:
    """Whether two groups consume the same topics. The new group has no commits for a topic without new records."""
    return 2 * len(some & others) >= len(some | others)


def _by_group(spans: Mapping[Offset, list[Span]]) -> dict[str, dict[Place, list[Span]]]:
    found: dict[str, dict[Place, list[Span]]] = {}
    for (group, topic, partition), each in spans.items():
        found.setdefault(group, {})[topic, partition] = each
    return found


def _succession(
    context: RuleContext,
    new: str,
    others: Sequence[str],
    lives: Mapping[str, Sequence[MemberLife]],
    spans: Mapping[str, Mapping[Place, list[Span]]],
    *,
    is_share: bool,
) -> Succession | None:
    own, commits = lives.get(new, ()), spans.get(new, {})
    joined = [each.joined_ms for each in own if each.joined_ms is not None]
    # `share_beginnings` excludes share partitions for which a start offset was set.
    if not joined or (not is_share and _were_set(own, commits)):
        return None
    for old in others:
        before = lives.get(old, ())
        words = common_words(old, before, new, own)
        left = [each.left_ms for each in before if each.left_ms is not None]
        if not words or not left or max(left) > min(joined) or may_return(context, before):
            continue
        ends = None if is_share else log_ends(context)
        began = _began(ends, spans.get(old, {}), commits, own, min(joined))
        if began:
            topics = tuple(sorted({each.place[0] for each in began}))
            return Succession(old, new, max(left), min(joined), topics, before, own, words, began, is_share)
    return None


def _were_set(lives: Sequence[MemberLife], commits: Mapping[Place, Sequence[Span]]) -> bool:
    """Whether offsets of a group were set before its first member joined."""
    first = first_joined(lives)
    return any(
        each.log_partition == first.log_partition and each.log_offset < first.joined_at
        for of_place in commits.values()
        for each in of_place[:1]
    )


def may_return(context: RuleContext, lives: Sequence[MemberLife]) -> bool:
    """Whether a group without members was once away so long that it may come back, as a job does."""
    ends: list[tuple[int, int]] = sorted(
        (each.joined_ms, each.left_ms) for each in lives if each.joined_ms is not None and each.left_ms is not None
    )
    latest, absences = 0, [0]
    for (_, left_ms), (joined_ms, _) in pairwise(ends):
        latest = max(latest, left_ms)
        absences.append(joined_ms - latest)
    last = max((left_ms for _, left_ms in ends), default=0)
    return context.at_ms - last <= _RETURNS * max(absences)


def common_words(old: str, before: Sequence[MemberLife], new: str, after: Sequence[MemberLife]) -> tuple[str, ...]:
    """The words that the client ids of two groups have in common. If client ids name no application, compares group
    names: the words of one name, if the other contains them all."""
    of_old, of_new = _words(before), _words(after)
    if of_old or of_new:
        return tuple(sorted(of_old & of_new))
    some, others = sorted((words_of(old), words_of(new)), key=len)
    return tuple(sorted(some)) if some <= others else ()


def _words(lives: Sequence[MemberLife]) -> frozenset[str]:
    return frozenset(word for each in lives for word in words_of(each.client_id))


def _began(
    ends: LogEnds | None,
    before: Mapping[Place, list[Span]],
    after: Mapping[Place, list[Span]],
    lives: Sequence[MemberLife],
    joined_ms: int,
) -> tuple[Began, ...]:
    """Where the new group began. `ends` is None for a share group, which began at its first start offset."""
    found = []
    for place in sorted(before.keys() & after.keys()):
        last, first = before[place][-1], after[place][0]
        is_same_topic = None in (last.topic_id, first.topic_id) or last.topic_id == first.topic_id
        if is_same_topic and last.ended_by != "tombstone":
            if ends is None:
                begins = started(last.offset, first.offset)
            else:
                begins = beginning(ends, place, last.offset, first.offset, joined_ms)
            found.append((place, last, first, begins, None if ends is None else first_member(place, first, lives)))
    begins_of_all = agreed([(begins, member) for *_, begins, member in found])
    return tuple(
        Began(place, last, first, begins)
        for (place, last, first, _, _), begins in zip(found, begins_of_all, strict=True)
    )
