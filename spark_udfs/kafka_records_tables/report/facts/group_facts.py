"""Members of groups over time, individual commits, and the ends of logs at given times."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, grouped, kept
from kafka_records_tables.report.facts.log_samples import TABLE as SAMPLES
from kafka_records_tables.report.facts.log_times import TABLE as TIMES
from kafka_records_tables.report.facts.streams_tasks import sources_of_group, with_topics

if TYPE_CHECKING:
    from kafka_records_tables.report.rule_context import RuleContext

MOST_GROUPS: Final = 200
"""The number of groups that a rule examines more closely; the worst groups come first."""

Place = tuple[str, int]
"""Topic and partition."""
Offset = tuple[str, str, int]
"""Group, topic and partition."""


@dataclass(slots=True)
class MemberLife:
    """A member from when it joined until it left."""

    group_id: str
    member_id: str
    joined_ms: int | None
    joined_at: int
    """Offset of the first record in which the member exists."""
    log_partition: int
    client_id: str | None = None
    host: str | None = None
    instance_id: str | None = None
    rebalance_timeout_ms: int | None = None
    """Its max.poll.interval.ms, which clients use as the rebalance timeout."""
    session_timeout_ms: int | None = None
    left_ms: int | None = None
    left_at: int | None = None
    """Offset of the first record in which it no longer exists; None if it is still a member."""
    places: set[Place] = field(default_factory=set)
    """All partitions that were ever assigned to the member."""
    lost_ms: dict[Place, int] = field(default_factory=dict)
    """When it lost each partition that it did not get back."""
    gained_at: dict[Place, int] = field(default_factory=dict)
    """For each partition, the offset of the last record that assigned it to the member."""

    @property
    def topics(self) -> set[str]:
        return {topic for topic, _ in self.places}

    @property
    def name(self) -> str:
        """The name by which an operator recognizes the member, the client id."""
        return self.client_id or self.instance_id or self.member_id

    def was_there(self, at_ms: int) -> bool:
        """Whether it was a member at a given time."""
        joined = self.joined_ms if self.joined_ms is not None else at_ms
        return joined <= at_ms and (self.left_at is None or self.left_ms is None or self.left_ms > at_ms)


@dataclass(frozen=True, slots=True)
class Span:
    """A span of time in which a committed offset was valid (a row of `history`)."""

    offset: int
    from_ms: int | None
    to_ms: int | None
    ended_by: str | None
    log_partition: int
    log_offset: int
    topic_id: str | None
    commits: int


def member_lives(context: RuleContext, groups: Iterable[str]) -> dict[str, list[MemberLife]]:
    """The members of given groups, in the order in which they joined. Members that joined before the start of the log
    count from their first event."""
    rows = context.table("timeline")
    rows = kept(rows, equal(rows, "group_id", *groups), equal(rows, "event", *_EVENTS), pc.is_valid(rows["member_id"]))
    names = ("group_id", "log_partition", "log_offset", "sequence")
    rows = rows.sort_by([(name, "ascending") for name in names])
    lives: dict[str, list[MemberLife]] = {}
    there: dict[tuple[str, int, str], MemberLife] = {}
    for row in rows.to_pylist():
        key = row["group_id"], row["log_partition"], row["member_id"]
        detail = json.loads(row["detail"]) if row["detail"] else {}
        event = row["event"]
        if event == "member_replaced":
            former = there.pop((*key[:2], detail.get("former_member_id", "")), None)
            if former is not None:
                former.left_ms, former.left_at = row["at_timestamp_ms"], row["log_offset"]
        life = there.get(key)
        if life is None:
            life = there[key] = MemberLife(key[0], key[2], row["at_timestamp_ms"], row["log_offset"], key[1])
            lives.setdefault(key[0], []).append(life)
            if event == "member_replaced" and former is not None:
                life.client_id, life.host = former.client_id, former.host
        if event in ("member_joined", "member_replaced"):
            life.client_id = detail.get("client_id", life.client_id)
            life.host = detail.get("client_host", life.host)
            life.instance_id = detail.get("instance_id", life.instance_id)
            life.rebalance_timeout_ms = detail.get("rebalance_timeout_ms")
            life.session_timeout_ms = detail.get("session_timeout_ms")
        elif event == "member_left":
            life.left_ms, life.left_at = row["at_timestamp_ms"], row["log_offset"]
            del there[key]
        elif event == "assignment_changed":
            sources = sources_of_group(context, key[0]) if row["group_kind"] == "streams" else {}
            for place in places_of(with_topics(detail.get("lost", {}), sources)):
                life.lost_ms[place] = row["at_timestamp_ms"] or 0
            for place in places_of(with_topics(detail.get("gained", {}), sources)):
                life.places.add(place)
                life.gained_at[place] = row["log_offset"]
                life.lost_ms.pop(place, None)
    return lives


def gains_of(context: RuleContext, row: Mapping[str, Any]) -> list[Place]:
    """The partitions that a member gained in a row of `timeline`. In a streams group, those that its tasks read."""
    gained = json.loads(row["detail"] or "{}").get("gained", {})
    sources = sources_of_group(context, row["group_id"]) if row["group_kind"] == "streams" else {}
    return places_of(with_topics(gained, sources))


def places_of(changes: Mapping[str, Any]) -> list[Place]:
    """The partitions in the detail of an assignment change, by topic."""
    lists = ((topic, each) for topic, each in changes.items() if isinstance(each, list))
    return [(topic, number) for topic, partitions in lists for number in partitions]


def first_joined(lives: Iterable[MemberLife]) -> MemberLife:
    """The member that joined first. There must be at least one."""
    return min(lives, key=joined_at)


def joined_at(life: MemberLife) -> tuple[int, int]:
    """A sort key for members: when the member joined, and the offset of the record."""
    return life.joined_ms or 0, life.joined_at


def names_of(lives: Iterable[MemberLife]) -> list[str]:
    """The distinct names of members, in order."""
    return list(dict.fromkeys(each.name for each in lives))


def groups_with_departures(context: RuleContext, least: int) -> list[str]:
    """The groups that at least `least` members have left: at most MOST_GROUPS, those with the most departures first."""
    rows = context.table("timeline")
    left = grouped(
        kept(rows, equal(rows, "event", "member_left", "member_replaced")), ["group_id"], [("event", "count")]
    )
    left = left.filter(pc.greater_equal(left["event_count"], least))
    names: list[str] = left.sort_by([("event_count", "descending")]).slice(0, MOST_GROUPS)["group_id"].to_pylist()
    return names


_EVENTS: Final = ("member_joined", "member_replaced", "member_left", "assignment_changed")


def commit_spans(context: RuleContext, groups: Sequence[str]) -> dict[Offset, list[Span]]:
    """The commits of the given groups by group, topic and partition, in log order. None if no log is available."""
    found: dict[Offset, list[Span]] = {}
    for row in context.look("history", groups).to_pylist() if groups else ():
        span = Span(
            row["offset"],
            row["valid_from_timestamp_ms"],
            row["valid_to_timestamp_ms"],
            row["ended_by"],
            row["log_partition"],
            row["log_offset"],
            row["topic_id"],
            row["commits"],
        )
        found.setdefault((row["group_id"], row["topic"], row["partition"]), []).append(span)
    for spans in found.values():
        spans.sort(key=lambda each: (each.from_ms or 0, each.log_partition, each.log_offset))
    return found


def committed_at(spans: Sequence[Span], at_ms: int) -> int | None:
    """The offset that was committed at a given time; None if there was none."""
    at = bisect_right(spans, at_ms, key=lambda each: each.from_ms or 0)
    return spans[at - 1].offset if at else None


class LogEnds:
    """Where logs start and end, and where they ended earlier, from rows of `log_samples` or `log_times`."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._rows: dict[Place, Mapping[str, Any]] = {(row["topic"], row["partition"]): row for row in rows}
        self._times: dict[Place, list[int]] = {}
        # The first log of a topic decides.
        self._topic_ids = {topic: row.get("topic_id") for (topic, _), row in reversed(self._rows.items())}

    def start(self, place: Place) -> int | None:
        """The offset at which a log starts; None if the log is not available."""
        row = self._rows.get(place)
        return None if row is None else row["log_start_offset"]

    def end(self, place: Place) -> int | None:
        """The offset after the last record of a log."""
        row = self._rows.get(place)
        return None if row is None else row["log_end_offset"]

    def times(self, place: Place) -> list[int]:
        """The times at which the end of a log is known, in log order."""
        if place not in self._times:
            row = self._rows.get(place)
            self._times[place] = [each["timestamp_ms"] for each in (row["samples"] or () if row is not None else ())]
        return self._times[place]

    def known_from(self, place: Place) -> int | None:
        """The earliest time at which the end of a log is known; None if there is none."""
        return next(iter(self.times(place)), None)

    def topic_id(self, topic: str) -> str | None:
        """The id of a topic; None if it is unknown."""
        return self._topic_ids.get(topic)

    def end_at(self, place: Place, at_ms: int | None) -> int | None:
        """Where a log ended at a given time: after the last batch that existed, or interpolated between two samples;
        None if unknown."""
        row = self._rows.get(place)
        if row is None or at_ms is None or row["samples"] is None:
            return None
        samples = row["samples"]
        at = bisect_right(self.times(place), at_ms)
        if 0 < at < len(samples) and row["exact_from"] is None:
            before, after = samples[at - 1], samples[at]
            share = (at_ms - before["timestamp_ms"]) / (after["timestamp_ms"] - before["timestamp_ms"])
            return int(before["offset"]) + 1 + int(share * (after["offset"] - before["offset"]))
        if at:
            return int(samples[at - 1]["offset"]) + 1
        is_whole = row["exact_from"] is not None and row["exact_from"] <= (row["log_start_offset"] or 0)
        return row["log_start_offset"] if is_whole else None

    def most_at(self, place: Place, at_ms: int) -> int | None:
        """An upper bound for the end of a log at a given time. Before the first known batch, it is the end of that
        batch. None if no batch is known."""
        row, end = self._rows.get(place), self.end_at(place, at_ms)
        samples = () if row is None else row["samples"] or ()
        return int(samples[0]["offset"]) + 1 if end is None and samples else end

    def at_most(self, place: Place, at_ms: int) -> int | None:
        """An upper bound of where a log ended at a given time: its end then if all batches since are known, otherwise
        the end of the next known batch, or of the log. None if the log is not available."""
        row = self._rows.get(place)
        if row is None:
            return None
        samples, exact_from = row["samples"] or (), row["exact_from"]
        at = bisect_right(self.times(place), at_ms)
        if at == len(samples):
            return self.end(place)
        before = samples[at - 1]["offset"] + 1 if at else row["log_start_offset"] or 0
        return int(before if exact_from is not None and exact_from <= before else samples[at]["offset"] + 1)

    def last_ms_before(self, place: Place, offset: int) -> int | None:
        """The latest known time of the records below an offset; None if none of them is known."""
        row = self._rows.get(place)
        samples = () if row is None else row["samples"] or ()
        at = bisect_left(samples, offset, key=lambda each: each["offset"])
        return int(samples[at - 1]["timestamp_ms"]) if at else None

    def latest(self, place: Place) -> tuple[int, int] | None:
        """The latest timestamp among the samples of a log, and its offset; None if there are none."""
        row = self._rows.get(place)
        samples = () if row is None else row["samples"] or ()
        return max(((each["offset"], each["timestamp_ms"]) for each in samples), key=lambda each: each[1], default=None)

    def ends_batch(self, place: Place, offset: int) -> bool:
        """Whether a batch of records is known to end with an offset, so the offset has a record, not a marker or a
        gap."""
        return offset in self.batches(place)[0]

    def batches(self, place: Place) -> tuple[list[int], list[int]]:
        """The last offsets of the batches at the end of a log, as far back as all are known, and the times by which
        they existed."""
        row = self._rows.get(place)
        first = None if row is None else row["exact_from"]
        samples = () if row is None or first is None else row["samples"] or ()
        known = [each for each in samples if each["offset"] >= first]
        return [each["offset"] for each in known], [each["timestamp_ms"] for each in known]

    def written_ms(self, place: Place, offset: int) -> int | None:
        """The time by which the first record at or after an offset existed, from its batch; None if unknown."""
        row = self._rows.get(place)
        if row is None or row["samples"] is None or row["exact_from"] is None or row["exact_from"] > offset:
            return None
        samples = row["samples"]
        at = bisect_left(samples, offset, key=lambda each: each["offset"])
        return int(samples[at]["timestamp_ms"]) if at < len(samples) else None

    def share_after_writes(self, place: Place, from_ms: int, to_ms: int, within_ms: int) -> float | None:
        """The share of a time span that was within `within_ms` of the write of the previous batch; None if not every
        batch of the log is known."""
        row = self._rows.get(place)
        if row is None or row["samples"] is None or row["exact_from"] is None:
            return None
        if row["exact_from"] > (row["log_start_offset"] or 0):
            return None
        covered, until = 0, from_ms
        for each in sorted(each["timestamp_ms"] for each in row["samples"]):
            first, last = max(each, until), min(each + within_ms, to_ms)
            if last > first:
                covered, until = covered + last - first, last
        return covered / (to_ms - from_ms)


def log_ends(context: RuleContext) -> LogEnds:
    """The ends of all logs, which are read when a rule first needs them."""
    return context.once(_log_ends)


def _log_ends(context: RuleContext) -> LogEnds:
    return LogEnds(context.look(SAMPLES).to_pylist())


def asked_ends(context: RuleContext, groups: Sequence[str]) -> dict[str, LogEnds]:
    """By group, the ends over time of the logs that it consumes. Running brokers are asked when the records at
    committed offsets were written."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in context.look(TIMES, groups, times=True).to_pylist():
        found.setdefault(row["group_id"], []).append(row)
    return {group: LogEnds(rows) for group, rows in found.items()}


def ends_of_topic(context: RuleContext, group: str, topic: str) -> LogEnds:
    """The ends over time of a consumed topic's logs. In files, other topics are read too only if a rule needs them."""
    if not context.is_stored:
        return asked_ends(context, (group,)).get(group, LogEnds(()))
    if context.looked_up(SAMPLES.name) is not None:
        return log_ends(context)
    return LogEnds(context.look(SAMPLES, topic=topic).to_pylist())


def had_no_members(lives: Sequence[MemberLife], commit: Span) -> bool:
    """Whether a group had no members when a commit was written, although it had had some before. The order of records
    decides, because a member may leave in the same millisecond as its last commit."""
    at = commit.log_offset
    of_log = [each for each in lives if each.log_partition == commit.log_partition]
    there = any(each.joined_at < at and (each.left_at is None or each.left_at > at) for each in of_log)
    return not there and any(each.joined_at < at for each in of_log)


def stopped_quickly(life: MemberLife) -> int | None:
    """How long a member belonged to its group, in milliseconds; None if it is still a member or its times are
    unknown."""
    if life.left_at is None or life.left_ms is None or life.joined_ms is None:
        return None
    return life.left_ms - life.joined_ms
