"""Logs that change between requests, hidden topics, and topics that no coordinator has created yet."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kafka_records_engine.findings import ABSENT_TOPIC, MISSING_RIGHT, READ_MOMENTS
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.arrow_rows import ArrowRows
from kafka_records_engine.sources.collected_findings import Findings
from kafka_records_engine.sources.log_facts import KnownTopics
from kafka_records_engine.sources.missing_rights import AbsentTopic, MissingRight
from kafka_records_engine.sources.protocol import LogEnds, LogPartition, LogStarts
from kafka_records_engine.sources.snapshot_runs import take_snapshot
from kafka_records_engine.sources.unreachable import UnreachableBrokers
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_tables import read_table, read_tables
from kafka_records_tables.engines.checked_request import request_of
from kafka_records_tables.engines.joined_tables import read_here
from kafka_records_tables.report.making import read_report
from tests.tables.consumed import Brokers, Commit, told
from tests.tables.topic import OFFSETS_TOPIC, Topic, struct

ID, LATER_ID = "GbK1GQHFS4ymFPkmnUrzCQ", "t45nZMKZRXuARwA1OeCzdg"
TRANSACTIONS, SHARES = "__transaction_state", "__share_group_state"


@dataclass
class MovingCluster:
    """A repartition topic of Kafka Streams: its group continuously commits, and deletes the records before its commits.

    Between any two requests, ten records are produced, committed and deleted. A partition is added at the request
    `grows_at`, and the topic is recreated at the request `recreated_at`.
    """

    grows_at: int = 99
    recreated_at: int = 99
    asked: list[str] = field(default_factory=list)

    name = "moving"

    def _moved(self, question: str) -> int:
        self.asked.append(question)
        return len(self.asked)

    def topics(self) -> list[str]:
        self._moved("topics")
        return [OFFSETS_TOPIC, "repartition"]

    def _topic(self, now: int) -> tuple[str, int, range]:
        """The id of the topic, the offset up to which its records are consumed and deleted, and its partitions."""
        is_later = now >= self.recreated_at
        offset = 10 * (now - self.recreated_at if is_later else now) + 5
        return LATER_ID if is_later else ID, offset, range(2 if now >= self.grows_at else 1)

    def partitions(self, topic: str) -> Sequence[LogPartition]:
        topic_id, offset, partitions = self._topic(self._moved(topic))
        written = Topic()
        for partition in partitions:
            written.add_bytes(*Commit("streams", "repartition", partition, offset, topic_id).record)
        return ArrowRows(written.table()).partitions(topic)

    def log_starts(self, topics: Sequence[str] | None) -> LogStarts:
        now = self._moved("starts")
        if topics is not None and "repartition" not in topics:
            return LogStarts({}, asked_ms=now)
        topic_id, offset, partitions = self._topic(now)
        return LogStarts({("repartition", each): (topic_id, offset) for each in partitions}, asked_ms=now)

    def log_ends(self, topics: Sequence[str], context: Context) -> Iterator[LogEnds]:
        now = self._moved("ends")
        context.counts.note_moment("log_ends", now)
        topic_id, offset, partitions = self._topic(now)
        for each in partitions if "repartition" in topics else ():
            yield LogEnds("repartition", each, topic_id, offset, offset + 3, offset + 3, now, offset + 3)


def lag_of(cluster: MovingCluster) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_table("lag", cluster).table.to_pylist()
    return rows


def test_a_purged_topic_has_lost_nothing() -> None:
    cluster = MovingCluster()
    (row,) = lag_of(cluster)
    assert cluster.asked == ["starts", OFFSETS_TOPIC, "topics", "ends"]
    names = ("log_start_offset", "offset", "end_offset", "lag", "lost", "problem")
    assert [row[name] for name in names] == [15, 25, 48, 23, 0, None]


@pytest.mark.parametrize("name", ["lag", "group_lag"])
def test_every_way_to_a_view_asks_in_this_order(name: str) -> None:
    """Alone, among other tables, in one task of Spark."""
    ways: list[Any] = [
        lambda source: read_table(name, source).table.to_pylist(),
        lambda source: read_tables(["groups", "log_ends", name], source)[name].table.to_pylist(),
        lambda source: [row for rows in read_here(request_of(name), source, Findings) for row in rows.to_pylist()],
    ]
    for way in ways:
        cluster = MovingCluster()
        (row,) = way(cluster)
        assert row["lost"] == 0
        assert [each for each in cluster.asked if each != "topics"] == ["starts", OFFSETS_TOPIC, "ends"]


def test_a_report_accuses_nobody() -> None:
    report = read_report(MovingCluster())
    assert [finding.kind for finding in report.findings if "offsets" in finding.kind] == []
    assert report.tables["lag"]["problem"].to_pylist() == [None]
    assert report.counts.moments == {"log_starts": (1, 1), "log_ends": (6, 6)}


@pytest.mark.parametrize("question", [2, 3, 4])
def test_a_partition_that_is_added_meanwhile(question: int) -> None:
    """Its log start is requested later, so a loss is unknown."""
    rows = lag_of(MovingCluster(grows_at=question))
    starts = [row["log_start_offset"] for row in rows]
    assert starts == ([15, None] if question == 2 else [15])
    assert [row["problem"] for row in rows] == [None] * len(rows)


def test_a_topic_that_is_recreated_meanwhile() -> None:
    (row,) = lag_of(MovingCluster(recreated_at=2))
    # The log start was that of the earlier topic; the group has committed for the later one.
    assert (row["topic_id"], row["log_start_offset"], row["problem"], row["lost"]) == (LATER_ID, None, None, None)
    (row,) = lag_of(MovingCluster(recreated_at=3))
    assert (row["topic_id"], row["problem"]) == (ID, "topic_recreated")  # it is recreated by now


def test_the_moments_are_in_the_result() -> None:
    result = read_table("lag", MovingCluster())
    assert result.counts.moments == {"log_starts": (1, 1), "log_ends": (4, 4)}
    (found,) = result.findings
    assert (found.severity, found.reason) == ("note", READ_MOMENTS)
    assert str(found) == (
        "moving: log starts asked for at 1970-01-01T00:00:00.001Z; log ends asked for at 1970-01-01T00:00:00.004Z "
        "(logs change while they are read, so the answer is about several moments)"
    )
    assert read_table("current_offsets", MovingCluster()).counts.moments == {}


def test_topics_are_asked_for_behind_the_ends_of_what_is_read() -> None:
    """A topic was created before a record that names it was written."""
    asked: list[str] = []

    class Source(Brokers):
        def known_topics(self) -> KnownTopics:
            asked.extend(self.asked)
            return KnownTopics()

    for name in ("assignments", "timeline", "checks"):
        asked.clear()
        read_table(name, Source([Commit("g", "orders", 0, 1)], {}))
        assert asked[:1] == [OFFSETS_TOPIC], name


# -- rights ------------------------------------------------------------------------------------------------------------


class Guarded(Brokers):
    """Brokers that hide the topic `secret` and the transactions."""

    def missing_rights(self, topics: Collection[str]) -> list[MissingRight]:
        hidden = [topic for topic in topics if topic in ("secret", TRANSACTIONS)]
        return [MissingRight("brokers", "user reader", "DESCRIBE", topic) for topic in hidden]

    def partitions(self, topic: str) -> Sequence[LogPartition]:
        if topic == TRANSACTIONS:
            raise MissingRight("brokers", "user reader", "DESCRIBE", topic)
        if topic == SHARES:
            raise AbsentTopic("brokers", topic)
        return super().partitions(topic)


COMMITS = [Commit("g", "orders", 0, 5), Commit("g", "secret", 0, 7), Commit("g", "gone", 1, 9)]
ENDS = {("orders", 0): told(0, 8)}
NEEDS = "grant it DESCRIBE on topic"


def test_a_hidden_topic_is_no_deleted_one() -> None:
    source = Guarded(COMMITS, ENDS, {"g": [("secret", 1), ("orders", 0)]})
    for name in ("lag", "group_lag"):
        result = read_table(name, source)
        assert not result.is_complete
        (found,) = [each for each in result.findings if each.severity == "damage"]
        assert (found.reason, found.topic) == (MISSING_RIGHT, "secret")
        assert str(found) == f"brokers: user reader may not describe topic secret: {NEEDS} secret (its lag is unknown)"
    problems = {(row["topic"], row["partition"]): row["problem"] for row in read_table("lag", source).table.to_pylist()}
    assert problems == {
        ("orders", 0): None,
        ("secret", 0): "not_authorized",
        ("secret", 1): "not_authorized",
        ("gone", 1): "no_log",
    }


@dataclass(frozen=True)
class NewerGroups(Guarded):
    """The same, with a member of a consumer group (KIP-848) that has partitions and never commits."""

    subscribed: tuple[str, ...] = ("orders", "secret")
    regex: tuple[str, ...] = ()
    member: str = "m"

    def partitions(self, topic: str) -> Sequence[LogPartition]:
        written = Topic()
        written.add("ConsumerGroupMetadata", {"group_id": "new"}, {"epoch": 5})
        names: dict[str, Any] = {"instance_id": None, "rack_id": None, "client_id": "c", "client_host": "h"}
        names |= {"subscribed_topic_names": self.subscribed, "subscribed_topic_regex": "s.*" if self.regex else None}
        names |= {"rebalance_timeout_ms": 1, "server_assignor": None}
        key = {"group_id": "new", "member_id": self.member}
        written.add("ConsumerGroupMemberMetadata", key, names)
        if self.regex:
            told = {"topics": self.regex, "version": 1, "timestamp": 1}
            written.add("ConsumerGroupRegularExpression", {"group_id": "new", "regular_expression": "s.*"}, told)
        message = "consumer_group_current_member_assignment"
        has = tuple(
            struct(message, "TopicPartitions", topic_id=Uuid.from_string(known), partitions=partitions)
            for known, partitions in ((ID, (0,)), (LATER_ID, (3, 4)))
        )
        value = {"member_epoch": 5, "previous_member_epoch": 4, "state": 0, "assigned_partitions": has}
        written.add("ConsumerGroupCurrentMemberAssignment", key, value)
        return ArrowRows(written.table()).partitions(topic)

    def known_topics(self) -> KnownTopics:
        return KnownTopics(names={ID: "orders"})


@pytest.mark.parametrize("given", [{}, {"subscribed": (), "regex": ("secret", "orders")}])
def test_a_member_that_never_commits_to_a_hidden_topic_has_a_row(given: dict[str, Any]) -> None:
    """The newer protocol names topics by ids, and it is unknown which topic this id is."""
    source = NewerGroups((), ENDS, **given)
    result = read_table("lag", source)
    rows = [(row["topic"], row["partition"], row["problem"]) for row in result.table.to_pylist()]
    assert rows == [("orders", 0, "no_commit"), ("secret", None, "not_authorized")]
    (found,) = [each for each in result.findings if each.severity == "damage"]
    assert (found.reason, found.topic) == (MISSING_RIGHT, "secret")
    (row,) = read_table("group_lag", source).table.to_pylist()
    assert (row["topics"], row["partitions"], row["unknown"]) == (2, 2, 2)
    # If no topic is hidden, an id without a name belongs to a deleted topic.
    seen = read_table("lag", NewerGroups((), ENDS, subscribed=("orders", "gone")))
    assert ([row["topic"] for row in seen.table.to_pylist()], seen.is_complete) == (["orders"], True)


def test_what_lacks_a_hidden_topic_of_a_coordinator_says_so() -> None:
    source = Guarded(COMMITS, ENDS)
    told_of = [(MISSING_RIGHT, TRANSACTIONS)]
    for name in ("checks", "log_ends"):
        found = read_table(name, source).findings
        assert [(each.reason, each.topic) for each in found if each.severity == "damage"] == told_of, name
    # Lag is about other topics.
    assert TRANSACTIONS not in {each.topic for each in read_table("lag", source).findings}
    results = read_tables(["groups", "transactions", "share_partitions"], source)
    assert not results.is_complete
    assert [(each.reason, each.topic) for each in results.reading if each.severity == "damage"] == told_of
    assert list(results.missing) == ["transactions"]
    with pytest.raises(MissingRight, match=f"may not describe topic {TRANSACTIONS}: {NEEDS}"):
        read_table("transactions", source)


def test_a_report_names_the_rights_that_are_missing() -> None:
    report = read_report(Guarded(COMMITS, ENDS))
    (finding,) = [each for each in report.findings if each.kind == "right_missing"]
    assert finding.topics == (TRANSACTIONS, "secret")
    assert "damage" not in {each.kind for each in report.findings}
    assert {each.topic for each in report.reading if each.severity == "damage"} == {TRANSACTIONS, "secret"}


def test_a_snapshot_goes_on_without_a_hidden_topic(tmp_path: Path) -> None:
    report = take_snapshot(Guarded(COMMITS, ENDS), tmp_path / "kept", [OFFSETS_TOPIC, TRANSACTIONS])
    assert [*report.topics] == [OFFSETS_TOPIC]
    assert [(each.severity, each.topic) for each in report.findings] == [("damage", TRANSACTIONS)]
    whole = take_snapshot(Guarded(COMMITS, {}), tmp_path / "whole")
    assert [(each.severity, each.topic) for each in whole.findings] == [("damage", TRANSACTIONS)]
    with pytest.raises(MissingRight):
        take_snapshot(Guarded(COMMITS, ENDS), tmp_path / "none", [TRANSACTIONS])
    assert not (tmp_path / "none").exists()


# -- topics that are not there yet -------------------------------------------------------------------------------------


def test_a_topic_that_no_coordinator_has_made_is_an_empty_answer() -> None:
    source = Guarded(COMMITS, ENDS)
    result = read_table("share_partitions", source)
    assert (len(result), result.is_complete) == (0, True)
    (found,) = result.findings
    assert str(found) == (
        f"brokers: there is no topic {SHARES} (brokers create it when a client first needs it, so there is nothing "
        "to report)"
    )
    results = read_tables(["groups", "share_partitions"], source)
    assert (dict(results.missing), len(results["share_partitions"])) == ({}, 0)
    assert [each.reason for each in results.reading] == [ABSENT_TOPIC]


def test_brokers_that_stop_answering_before_topics_are_asked_for_are_damage() -> None:
    class Lost(Brokers):
        def known_topics(self) -> KnownTopics:
            raise UnreachableBrokers("brokers", "the time limit of 5 s (--timeout) is over")

    for name in ("assignments", "timeline"):
        found = read_table(name, Lost([Commit("g", "orders", 0, 1)], {})).findings
        assert [(each.severity, each.file) for each in found] == [("damage", "brokers")], name
    assert read_table("current_offsets", Lost([Commit("g", "orders", 0, 1)], {})).is_complete
