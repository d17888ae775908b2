"""Groups whose clients commit the offsets of other partitions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from kafka_records_tables.report.facts.group_facts import LogEnds
from kafka_records_tables.report.facts.mixed_offsets import Batch, Logs
from kafka_records_tables.report.facts.mixed_offsets import mixed_offsets as mixed_offsets_of
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import ReportFinding
from kafka_records_tables.report.rule_context import RuleContext
from kafka_records_tables.report.rules import mixed_offsets
from tests.report.made_up_cluster import HOUR, MINUTE, SECOND
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found

Row = dict[str, Any]
Place = tuple[str, int]
Offsets = dict[Place, int]
Client = Callable[[Offsets, Place], Offsets]
"""What a client commits, given its positions, and the partition of the last record of a poll."""
KIND = "offsets_of_other_partitions"
BEGAN = END_MS - 3 * MINUTE
_POLL, _MOST = 200, 500
THREE: Mapping[Place, int] = {("orders", 0): 50, ("orders", 1): 100, ("orders", 2): 290}
"""The milliseconds between two records of a partition."""
EVEN: Mapping[Place, int] = dict.fromkeys(THREE, 100)
TWO_TOPICS: Mapping[Place, int] = {("a", 0): 50, ("a", 1): 110, ("b", 0): 170, ("b", 1): 290}


def right(positions: Offsets, _: Place) -> Offsets:
    return dict(positions)


def one_for_all(positions: Offsets, last: Place) -> Offsets:
    return dict.fromkeys(positions, positions[last])


def highest_for_all(positions: Offsets, _: Place) -> Offsets:
    return dict.fromkeys(positions, max(positions.values()))


def without_topic(positions: Offsets, last: Place) -> Offsets:
    return {place: positions[(last[0], place[1])] for place in positions}


def exchanged(positions: Offsets, _: Place) -> Offsets:
    places = [*positions]
    return {place: positions[places[at - 1]] for at, place in enumerate(places)}


@dataclass
class Life:
    """A cluster with one group, whose versions run one after another, each until a time."""

    versions: Sequence[tuple[str, Client, int]]
    rates: Mapping[Place, int] = field(default_factory=lambda: THREE)
    is_earliest: bool = True
    reads: Callable[[int], int] = lambda end: end
    """Up to where a poll may read, given the end of a log."""
    topic_id: str | None = None
    log_ids: str | None = None
    lost_end: Mapping[Place, int] = field(default_factory=dict)
    """Ends of logs that lost the records after them when everything was over."""

    def __post_init__(self) -> None:
        self.read = Counter[tuple[Place, int]]()
        self.commits: list[tuple[int, Offsets]] = []
        self.events: list[Row] = []
        committed: Offsets = dict.fromkeys(self.rates, 0)
        from_ms = BEGAN
        for number, (name, client, until_ms) in enumerate(self.versions):
            self._joins(name, number, from_ms, until_ms)
            positions = {place: self._begin(place, committed[place], from_ms) for place in self.rates}
            for turn, at_ms in enumerate(range(from_ms + _POLL, until_ms, _POLL)):
                committed = self._poll(client, positions, committed, turn, at_ms)
            from_ms = until_ms + 2 * SECOND

    @property
    def again(self) -> int:
        """The number of reads of records that had been read before."""
        return sum(count - 1 for count in self.read.values())

    def unread(self) -> int:
        """The number of records that were never read, below the last one that was."""
        last = {place: max(offset for at, offset in self.read if at == place) for place in self.rates}
        return sum((place, offset) not in self.read for place in last for offset in range(last[place]))

    def _end(self, place: Place, at_ms: int) -> int:
        return (at_ms - BEGAN) // self.rates[place] + 1

    def _begin(self, place: Place, offset: int, at_ms: int) -> int:
        end = self._end(place, at_ms)
        return offset if offset <= end else 0 if self.is_earliest else end

    def _poll(self, client: Client, positions: Offsets, committed: Offsets, turn: int, at_ms: int) -> Offsets:
        places, left, last = [*positions], _MOST, None
        for place in places[turn % len(places) :] + places[: turn % len(places)]:
            until = min(self.reads(self._end(place, at_ms)), positions[place] + left)
            if until > positions[place]:
                self.read.update((place, offset) for offset in range(positions[place], until))
                left -= until - positions[place]
                positions[place], last = until, place
        if last is None:
            return committed
        offsets = client(positions, last)
        # Clients commit some milliseconds after the poll.
        self.commits.append((at_ms + 10, offsets))
        return offsets

    def _joins(self, name: str, number: int, from_ms: int, until_ms: int) -> None:
        topics = {topic for topic, _ in self.rates}
        gained = {topic: [number for name, number in self.rates if name == topic] for topic in topics}
        row = {"group_id": "g", "member_id": f"{name}-{number}", "log_partition": 0}
        events = [
            ("member_joined", {"client_id": name}, from_ms, 0),
            ("assignment_changed", {"gained": gained}, from_ms, 0),
        ]
        if until_ms < END_MS:
            events.append(("member_left", {}, until_ms, 0))
        for event, detail, at_ms, after in events:
            place = {"at_timestamp_ms": at_ms, "log_offset": _log_offset(at_ms) + after}
            self.events.append(row | place | {"event": event, "detail": json.dumps(detail)})

    def context(self, *, has_members: bool = True, others: Sequence[Row] = ()) -> RuleContext:
        """The group with further rows of `lag`."""
        history: list[Row] = []
        falls: list[Row] = []
        lag: list[Row] = []
        logs: list[Row] = []
        ends: list[Row] = []
        for number, place in enumerate(self.rates):
            row = {"group_id": "g", "topic": place[0], "partition": place[1], "log_partition": 0}
            spans: list[Row] = []
            for at_ms, offsets in self.commits:
                if not spans or spans[-1]["offset"] != offsets[place]:
                    at = {"valid_from_timestamp_ms": at_ms, "log_offset": _log_offset(at_ms) + number, "commits": 1}
                    spans.append(row | at | {"offset": offsets[place], "topic_id": self.topic_id})
            for before, after in pairwise(spans):
                before |= {"valid_to_timestamp_ms": after["valid_from_timestamp_ms"], "ended_by": "commit"}
                if after["offset"] < before["offset"]:
                    fall = {"from_offset": before["offset"], "to_offset": after["offset"], "kind": "sawtooth"}
                    at_ms = after["valid_from_timestamp_ms"]
                    falls.append(row | fall | {"commit_timestamp_ms": at_ms, "log_offset": after["log_offset"]})
            history += spans
            end = min(self._end(place, END_MS), self.lost_end.get(place, 10**9))
            log = {"topic": place[0], "partition": place[1], "log_start_offset": 0, "log_end_offset": end}
            ends.append(log)
            samples = [{"offset": at, "timestamp_ms": BEGAN + at * self.rates[place]} for at in range(end)]
            logs.append(log | {"samples": samples, "exact_from": 0, "topic_id": self.log_ids})
            problem = "beyond_end" if spans[-1]["offset"] > end else None
            lag.append(row | {"offset": spans[-1]["offset"], "end_offset": end, "problem": problem})
        looks = {"history": history, "log_samples": logs}
        events = self.events if has_members else []
        return _context(looks, timeline=events, lag=[*lag, *others], regressions=falls, log_ends=ends)


def _log_offset(at_ms: int) -> int:
    return at_ms - END_MS + 10 * HOUR


def released(client: Client, *, stays: int | None = None, **options: Any) -> Life:
    """A release 60 seconds after the beginning, which is restarted after 30 and 60 seconds. It may stay until a time
    after the beginning, when the old version comes back."""
    times = [(BEGAN + 90 * SECOND), (BEGAN + 120 * SECOND)]
    ends = END_MS if stays is None else BEGAN + stays
    versions = [("app-3.1", right, BEGAN + 60 * SECOND), *(("app-3.2", client, at_ms) for at_ms in [*times, ends])]
    return Life(versions if stays is None else [*versions, ("app-3.1", right, END_MS)], **options)


def test_one_offset_for_all_partitions() -> None:
    life = released(one_for_all)
    (found,) = _found(life.context(), KIND)
    assert (found.level, found.consequence, found.group_ids) == (Level.HIGH, "work_repeated", ("g",))
    assert (found.topics, found.partitions, found.is_going_on) == (("orders",), (0, 1, 2), True)
    assert found.since_timestamp_ms == BEGAN + 62 * SECOND
    assert found.who[0].client_id == "app-3.2"
    assert found.scale["records_repeated"] == pytest.approx(life.again, rel=0.01)
    assert life.again > 1000
    assert "nothing was skipped" in found.impact
    assert "2 starts so far" in found.impact
    assert [each.name for each in found.causes] == ["one_offset_for_all"]
    assert {"written_by_tool", "two_committers", "log_lost_end"} == set(found.refuted_by)
    assert 'version of "app-3.1"' in found.next[0].what
    positions = dict(zip(THREE, _ends(life), strict=True))
    assert "; ".join(f"orders,{number},{at}" for (_, number), at in positions.items()) in found.next[1].what
    assert "--from-file offsets.csv" in (found.next[1].command or "")
    assert "the last commit with an offset for each partition" in found.evidence[0].shows


def _ends(life: Life) -> list[int]:
    at_ms = life.commits[-1][0]
    return [life._end(place, at_ms) for place in life.rates]


def test_offsets_by_the_number_of_the_partition() -> None:
    life = released(without_topic, rates=TWO_TOPICS)
    (found,) = _found(life.context(), KIND)
    assert [each.name for each in found.causes] == ["topic_ignored"]
    assert (found.topics, found.partitions) == (("a", "b"), ())
    assert "for the same partition of several topics" in found.problem
    assert _repeated(found) == pytest.approx(life.again, rel=0.02)


def _repeated(found: ReportFinding) -> int:
    return sum(number for name, number in found.scale.items() if name.endswith("repeated"))


def test_partitions_get_the_offset_of_a_certain_other_one() -> None:
    life = released(exchanged)
    (found,) = _found(life.context(), KIND)
    assert [each.name for each in found.causes] == ["partitions_exchanged"]
    assert "orders-1 got that of orders-0" in found.problem
    assert abs((found.since_timestamp_ms or 0) - BEGAN - 62 * SECOND) <= 5 * SECOND
    assert _repeated(found) == pytest.approx(life.again, rel=0.02)


def test_a_reset_to_the_end_skips_what_was_written_meanwhile() -> None:
    """No commit shows where it began, so that both are possible."""
    life = released(highest_for_all, is_earliest=False)
    (found,) = _found(life.context(), KIND)
    assert life.unread() > 0
    assert found.scale["records_possibly_lost"] == pytest.approx(life.unread(), abs=4)
    assert "auto.offset.reset latest" in found.impact


def test_the_earlier_version_is_back() -> None:
    life = released(one_for_all, stays=140_000)
    (found,) = _found(life.context(), KIND)
    assert (found.level, found.is_going_on) == (Level.MODERATE, False)
    assert "later ones are right" in found.problem
    assert _repeated(found) == pytest.approx(life.again, rel=0.02)
    assert not any("Go back" in each.what for each in found.next)


def test_even_partitions_prove_it_by_falls() -> None:
    """Another partition is always a few records ahead, and no offset is beyond an end for long."""
    rates = {("orders", 0): 100, ("orders", 1): 101, ("orders", 2): 102}
    life = released(one_for_all, rates=rates)
    (found,) = _found(life.context(), KIND)
    assert found.causes[0].name == "one_offset_for_all"
    assert found.measured["falls"] >= 5


def test_a_group_that_does_not_keep_up() -> None:
    """How far it had read is known only of the partition with the highest offsets."""
    life = released(one_for_all, reads=lambda end: end * 3 // 5)
    (found,) = _found(life.context(), KIND)
    assert "highest offsets known to have been read" in found.next[1].what
    least = sum(number for name, number in found.scale.items() if name.endswith("repeated_at_least"))
    assert 0 < least <= life.again


def by_tool(positions: Offsets, _: Place) -> Offsets:
    return dict.fromkeys(positions, 100_000)


@pytest.mark.parametrize(
    "context",
    [
        released(right).context(),
        released(right, rates=EVEN).context(),
        released(right, rates=EVEN, lost_end={("orders", 1): 900}).context(),
        released(right, lost_end={("orders", 1): 900}).context(),
        released(one_for_all).context(has_members=False),
        released(one_for_all, topic_id="old", log_ids="new").context(),
        Life(
            [("app", right, BEGAN + 60 * SECOND), ("tool", by_tool, BEGAN + 63 * SECOND), ("app", right, END_MS)]
        ).context(),
        Life(
            [("app", right, BEGAN + 60 * SECOND), ("new", one_for_all, BEGAN + 63 * SECOND), ("app", right, END_MS)]
        ).context(),
    ],
    ids=["right", "even", "even_and_cut", "cut", "no_members", "recreated", "tool", "nine_commits"],
)
def test_what_looks_alike(context: RuleContext) -> None:
    assert not _found(context, KIND)


def test_no_more_is_read_of_healthy_groups() -> None:
    assert not mixed_offsets._suspects(released(right).context())
    assert not mixed_offsets._suspects(released(right, rates=EVEN).context())


def test_only_commits_with_members_count() -> None:
    whole, life = released(one_for_all), released(one_for_all)
    life.events = [each for each in life.events if each["member_id"] != "app-3.2-2"]
    (every,), (found,) = (_found(each.context(), KIND) for each in (whole, life))
    assert every.measured["commits"] - found.measured["commits"] == pytest.approx(140, abs=10)


def test_a_member_that_never_had_all_partitions_is_not_named() -> None:
    life = released(one_for_all)
    joined, gained = (each for each in life.events if each["member_id"] == "app-3.2-1" and "left" not in each["event"])
    part = json.dumps({"gained": {"orders": [0]}})
    idle = {"member_id": "idle", "log_offset": joined["log_offset"] - 2}
    life.events += [joined | idle | {"detail": json.dumps({"client_id": "idle"})}, gained | idle | {"detail": part}]
    (found,) = _found(life.context(), KIND)
    assert [each.client_id for each in found.who] == ["app-3.2"]
    for each in life.events:
        if each["event"] == "assignment_changed":
            each["detail"] = part
    (found,) = _found(life.context(), KIND)
    assert found.who == ()
    assert 'members of the group "g" have committed the same offset' in found.problem
    assert "app-3.2" not in found.problem + found.next[0].what


def _below_start(topic: str, number: int) -> Row:
    row = {"group_id": "g", "topic": topic, "partition": number, "offset": 5, "log_start_offset": 90, "lost": 85}
    return row | {"problem": "below_log_start", "end_offset": 200, "lag": 110, "commit_timestamp_ms": END_MS - SECOND}


@pytest.mark.parametrize(
    ("stays", "topics"), [(None, [("payments",)]), (140_000, [("orders",), ("payments",)])], ids=["goes on", "is over"]
)
def test_other_losses_of_the_group_are_told(stays: int | None, topics: list[tuple[str, ...]]) -> None:
    """Only the present offsets of these partitions show nothing."""
    context = released(one_for_all, stays=stays).context(
        others=[_below_start("orders", 2), _below_start("payments", 0)]
    )
    assert sorted(each.topics for each in _found(context, "offsets_below_log_start")) == topics


def test_offsets_of_other_partitions_have_places_and_times() -> None:
    places = mixed_offsets.mixed_places(released(one_for_all, stays=140_000).context())
    times = [BEGAN + each * SECOND for each in (50, 100, 130, 170)]
    assert [places.was_at("g", "orders", 0, each) for each in times] == [False, True, True, False]
    assert not places.was_at("g", "payments", 0, times[1])
    assert not places.is_now("g", "orders", 0)
    assert mixed_offsets.mixed_places(released(one_for_all).context()).is_now("g", "orders", 0)


class _CountedLogs(Logs):
    """Logs that end at 100, and that count at which times they are asked."""

    def __init__(self) -> None:
        super().__init__({}, {})
        self.times = set[int]()

    def at_least(self, place: Place, at_ms: int) -> int | None:
        return 100

    def at_most(self, place: Place, at_ms: int) -> int | None:
        self.times.add(at_ms)
        return 100


def test_few_of_many_commits_show_that_partitions_are_not_exchanged() -> None:
    logs = _CountedLogs()
    offsets = [{("orders", number): 1000 * at + number for number in range(3)} for at in range(1, 8001)]
    batches = [Batch(at, 0, at, each) for at, each in enumerate(offsets)]
    assert mixed_offsets_of(batches, logs, [], 10, lambda _: True) is None
    assert len(logs.times) == 400


def test_the_first_log_tells_the_id_of_its_topic() -> None:
    ends = LogEnds([{"topic": "a", "partition": number, "topic_id": each} for number, each in enumerate(["x", "y"])])
    assert (ends.topic_id("a"), ends.topic_id("b")) == ("x", None)
