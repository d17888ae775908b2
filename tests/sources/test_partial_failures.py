"""Failures of one partition, one topic or one broker: only that part is missing in the result, with the true reason."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from kafka_records_engine.findings import DAMAGED_LOG, MISSING_RIGHT, UNREACHABLE_LOG
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources._brokers import log_bounds
from kafka_records_engine.sources._brokers.cluster import Cluster, Topic
from kafka_records_engine.sources._brokers.failures import ConnectionLost, TopicUnavailable
from kafka_records_engine.sources._brokers.log_bounds import AskingEnds
from kafka_records_engine.sources._brokers.patience import Patience
from kafka_records_engine.sources._brokers.requests_sent import FETCH, LIST_OFFSETS, METADATA
from kafka_records_engine.sources._brokers.session import Session
from kafka_records_engine.sources.broker_logs import _ANY_BROKER, BrokerPartition
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_engine.sources.missing_rights import MissingRight
from kafka_records_engine.sources.protocol import Context
from kafka_records_engine.sources.unreachable import UnreachableBrokers
from kafka_records_tables import read_table
from kafka_records_tables.commands import broker_follower
from kafka_records_tables.commands.catalog import catalog_of
from kafka_records_tables.commands.dump_run import DumpRun
from kafka_records_tables.commands.given_source import GivenSource
from kafka_records_tables.commands.main import main
from kafka_records_tables.commands.record_choice import RecordChoice
from kafka_records_tables.engines.raw_outcomes import raw_rows
from tests.cli.segment_bytes import batch, commit
from tests.sources.fake_broker import QUICK, TOPIC, FakeBroker, fake_brokers, read, records

NO_LEADER = 5
STORAGE_ERROR = 56
NOT_ALLOWED = 29

READ_TOPIC = f"this client may not read topic {TOPIC}: grant it READ on topic {TOPIC}"


def partition_of(asked: dict[str, Any]) -> int:
    """The partition that a Fetch asks for."""
    number: int = asked["topics"][0]["partitions"][0]["partition"]
    return number


# -- which waits are short ---------------------------------------------------------------------------------------------


def test_a_partition_without_a_leader_does_not_shorten_the_wait_for_another_topic() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.leaders = {0: 1, 1: -1}
        live = LiveBrokers(broker.address, QUICK)
        for topic in (TOPIC, "another"):
            assert [log.trouble for log in live.partitions(topic)] == [None, "it has no leader, for 0.4 s"]
            # A partition that has timed out is asked for only once.
            assert [log.trouble for log in live.partitions(topic)] == [None, "it has no leader"]


def test_a_leader_that_does_not_answer_shortens_the_wait_for_its_partitions_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with fake_brokers(FakeBroker(1), FakeBroker(2), FakeBroker(3)) as (broker, mute, _):
        for each in (broker, mute):
            each.leaders = {0: 1, 1: 2, 2: -1}
        mute.answers[LIST_OFFSETS] = lambda asked: None
        live = LiveBrokers(broker.address, QUICK)
        waits = [
            [log.trouble and log.trouble.rpartition(", for ")[2] for log in live.partitions(topic)]
            for topic in (TOPIC, "another")
        ]
        assert waits == [[None, "0.4 s", "0.4 s"], [None, "0.1 s", "0.4 s"]]


@pytest.mark.parametrize(
    "answer",
    [
        lambda broker: broker.fetched(b"", error_code=STORAGE_ERROR),
        lambda broker: broker.fetched(b"", partition=7),
        lambda broker: broker.fetched(b"", preferred_read_replica=1),
        lambda broker: broker.fetched(b"", high_watermark=0),
    ],
    ids=["an error", "another partition", "another replica", "no records"],
)
def test_trouble_with_one_partition_does_not_shorten_the_wait_for_others(
    answer: Callable[[FakeBroker], dict[str, Any]],
) -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end, broker.leaders, broker.records = 3, {0: 1, 1: 1}, records
        honest = broker.answer_of(FETCH)

        def fetch(asked: dict[str, Any]) -> Any:
            if partition_of(asked) == 0:
                return answer(broker)
            time.sleep(0.4)  # more than a short wait
            return honest(asked)

        broker.answers[FETCH] = fetch
        config = ClientConfig(request_timeout_ms=1200, connect_timeout_ms=1200, patience_ms=1200)
        damaged, sound = LiveBrokers(broker.address, config).partitions(TOPIC)
        assert read(damaged)[0] == []
        assert read(sound)[0] == [0, 1, 2]
        # The next wait for the partition itself is short.
        assert read(damaged)[1].findings[0].what.endswith(", for 0.1 s")


@pytest.mark.parametrize("fault", ["error code", "no records", "another replica"])
def test_a_leader_with_trouble_in_two_partitions_does_not_cost_a_whole_wait_for_each(fault: str) -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end, broker.leaders, broker.records = 3, dict.fromkeys(range(6), 1), records

        def fetch(asked: dict[str, Any]) -> Any:
            given: dict[str, dict[str, Any]] = {
                "error code": {"error_code": STORAGE_ERROR},
                "no records": {"high_watermark": 0},
                "another replica": {"preferred_read_replica": 1},
            }
            return broker.fetched(b"", partition_of(asked), **given[fault])

        broker.answers[FETCH] = fetch
        config = ClientConfig(request_timeout_ms=1000, connect_timeout_ms=1000, patience_ms=1000)
        found = [read(log)[1].findings[0].what for log in LiveBrokers(broker.address, config).partitions(TOPIC)]
        assert [each.rpartition(", for ")[2] for each in found] == ["1 s", "1 s", *4 * ["0.1 s"]]


def test_a_wrong_answer_about_one_topic_does_not_shorten_the_wait_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def lies(cluster: Cluster, name: str) -> Topic:
        raise TopicUnavailable("b:1", f"its response to Metadata lacks topic {name}")

    monkeypatch.setattr(Cluster, "topic", lies)
    session, config = Session(), ClientConfig(patience_ms=200)
    for expected in ("0.2 s", "0.1 s"):
        context = Context("a", 0)
        log = BrokerPartition((("b", 1),), config, "a", bytes(16), 0, 0, 5, session=session)
        assert list(log.batches(context, ["offset"])) == []
        assert context.findings[0].what.endswith(f", for {expected}")
    assert Patience(config, session, "z-0", target=_ANY_BROKER).limit == 0.2


def test_brokers_that_are_lost_while_hidden_topics_are_looked_for_do_not_leave_nulls() -> None:
    class Lost(Cluster):
        def described(self, names: Collection[str] | None) -> list[Topic]:
            return [Topic("a", bytes(16), {0: 1})]

        def hidden(self, names: Collection[str]) -> list[str]:
            raise ConnectionLost("b:1", "the connection is lost")

    asking = AskingEnds(Lost((("b", 1),), QUICK), ["a", "hidden"])
    with pytest.raises(ConnectionLost):
        asking.ask()


def test_a_lost_connection_shortens_the_wait_for_all_partitions_of_the_leader() -> None:
    with fake_brokers(FakeBroker(1), FakeBroker(2)) as (broker, lost):
        broker.end = lost.end = 3
        for each in (broker, lost):
            each.leaders = {0: 2, 1: 2, 2: 2}
        logs = LiveBrokers(broker.address, QUICK).partitions(TOPIC)
        lost.close()
        found = [read(log)[1].findings[0].what.rpartition(", for ")[2] for log in logs]
        assert found == ["0.4 s", "0.1 s", "0.1 s"]


# -- pauses ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patience_ms", "timeout", "limit"),
    [
        (60_000, None, "60 s are left of default.api.timeout.ms"),
        (60_000, 30.0, "the time limit of 30 s ends before that"),
    ],
)
def test_a_pause_that_is_too_long_names_the_limit(patience_ms: int, timeout: float | None, limit: str) -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end = 3
        broker.answers[FETCH] = lambda asked: {
            **broker.fetched(batch(0, [commit("g", 0)])),
            "throttle_time_ms": 100_000,
        }
        config = ClientConfig(patience_ms=patience_ms)
        (log,) = LiveBrokers(broker.address, config, timeout=timeout).partitions(TOPIC)
        (finding,) = read(log)[1].findings
        assert finding.what == f"it asks for a pause of 100 s because of a quota, and {limit}"


# -- the end of a reading ----------------------------------------------------------------------------------------------


class Leaving(FakeBroker):
    """Answers Metadata a limited number of times."""

    metadata_answers = 1_000_000

    def _metadata(self, asked: dict[str, Any]) -> Any:
        return super()._metadata(asked) if self.asked.count(METADATA) <= self.metadata_answers else None


def test_brokers_that_are_lost_before_log_ends_are_asked_are_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_bounds, "_PAUSE", 0.0)
    broker = Leaving()
    with fake_brokers(broker):
        live = LiveBrokers(broker.address, QUICK)
        live.topics()
        broker.metadata_answers = 1
        context = Context()
        assert list(live.log_ends(["a", "b"], context)) == []
        (finding,) = context.findings
        assert (finding.severity, finding.reason, finding.file) == ("damage", UNREACHABLE_LOG, broker.address)
        assert finding.what.startswith("where logs end is unknown: ")
        # Brokers that have never answered are an error.
        with pytest.raises(UnreachableBrokers):
            list(LiveBrokers(broker.address, QUICK).log_ends(["a"], Context()))


def test_a_broker_that_is_lost_after_a_first_answer_costs_its_own_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_bounds, "_PAUSE", 0.0)
    broker, lost = Leaving(1), FakeBroker(2)
    with fake_brokers(broker, lost):
        broker.end = lost.end = 3
        broker.metadata_answers = 2  # the second try of log_ends finds no broker
        live = LiveBrokers(broker.address, QUICK)
        live.topics()
        lost.close()
        context = Context()
        ends = list(live.log_ends(["a", "b"], context))
        assert [(each.topic, each.partition, each.high_watermark) for each in ends] == [
            ("a", 0, 3),
            ("a", 1, None),
            ("b", 0, 3),
            ("b", 1, None),
        ]
        assert [(each.topic, each.partition) for each in context.findings] == [("a", 1), ("b", 1)]


def test_rows_that_were_read_before_a_broker_was_lost_are_kept() -> None:
    broker = Leaving()
    with fake_brokers(broker):
        broker.end, broker.records = 3, records
        honest = broker.answer_of(FETCH)

        def fetch(asked: dict[str, Any]) -> Any:
            broker.metadata_answers = broker.asked.count(METADATA) + 1  # the list of topics
            return honest(asked)

        broker.answers[FETCH] = fetch
        result = read_table("lag", LiveBrokers(broker.address, QUICK), processes=1)
        assert [row["group_id"] for row in result.table.to_pylist()] == ["g0"]
        assert not result.is_complete
        assert {each.reason for each in result.findings if each.severity == "damage"} == {UNREACHABLE_LOG}


@pytest.mark.parametrize(
    ("code", "error", "what"),
    [
        (NOT_ALLOWED, MissingRight, "may not describe topic a"),
        (3, LogSourceError, "there is no topic a"),
    ],
)
def test_the_reason_is_not_called_a_time_out(
    code: int, error: type[Exception], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.answers[METADATA] = lambda asked: broker.metadata([{**broker.topic("a"), "error_code": code}])
        live = LiveBrokers(broker.address, QUICK, timeout=0.3)
        ask = Cluster.topic

        def topic(cluster: Cluster, name: str) -> Topic:
            try:
                return ask(cluster, name)
            finally:
                time.sleep(0.4)

        monkeypatch.setattr(Cluster, "topic", topic)
        with pytest.raises(error, match=what):
            list(live.log_ends(["a"], Context()))
        assert live.is_over


# -- rights that are taken away ----------------------------------------------------------------------------------------


class Revoking(FakeBroker):
    """Sends the first batch of each log, and then that a right is missing."""

    def _fetch(self, asked: dict[str, Any]) -> Any:
        offset = asked["topics"][0]["partitions"][0]["fetch_offset"]
        if offset == 0:
            return self.fetched(batch(0, [commit(f"g{partition_of(asked)}", 0)]), partition_of(asked))
        return self.fetched(b"", partition_of(asked), error_code=NOT_ALLOWED)


def test_a_right_that_is_taken_away_leaves_the_rows_that_were_read() -> None:
    with fake_brokers(Revoking()) as (broker,):
        broker.end = 3
        (log,) = LiveBrokers(broker.address, QUICK).partitions(TOPIC)
        offsets, context = read(log)
        (finding,) = context.findings
        assert (offsets, context.log.holes) == ([0], [0])
        assert (finding.severity, finding.reason, finding.topic, finding.partition, finding.base_offset) == (
            "damage",
            MISSING_RIGHT,
            TOPIC,
            0,
            1,
        )
        assert (finding.what, finding.consequence) == (READ_TOPIC, "offsets 1 to 2 are not read")


def test_commands_name_a_right_that_is_taken_away_and_end_with_status_1(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with fake_brokers(Revoking(1), FakeBroker(2)) as (revoking, broker):
        revoking.end = broker.end = 3
        broker.records = records
        at = ["--bootstrap", revoking.address]
        for command in (
            ["table", "current_offsets", "--format", "json"],
            ["dump"],
            ["counts"],
            ["snapshot", "--output", str(tmp_path / "kept")],
        ):
            assert main([*command, *at]) == 1, command
            printed = capsys.readouterr()
            assert READ_TOPIC in printed.err, command
            assert "1 topic left out, or not read to the end" in printed.err or command[0] == "table"
            assert "g0" in printed.out or command[0] in ("counts", "snapshot"), command
            assert "g1" in printed.out or command[0] in ("counts", "snapshot"), command
        assert main(["report", *at, "--format", "json"]) == 1
        report = json.loads(capsys.readouterr().out)
        assert [TOPIC in each["topics"] for each in report["findings"] if each["kind"] == "right_missing"] == [True]


def test_a_stream_does_not_pass_over_what_a_missing_right_hides() -> None:
    with fake_brokers(Revoking()) as (broker,):
        broker.end = 3
        (log,) = LiveBrokers(broker.address, QUICK).partitions(TOPIC)
        with pytest.raises(LogSourceError, match="grant it READ on topic "):
            list(raw_rows(log, is_failfast=False))


def test_dump_follow_asks_again_for_what_a_missing_right_hides(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(broker_follower, "INTERVAL", 0)
    with fake_brokers(Revoking()) as (broker,):
        broker.end = 3
        live = LiveBrokers(broker.address, QUICK)
        questions = 0

        class Source:
            name = "brokers"

            def partitions(self, topic: str) -> list[BrokerPartition]:
                nonlocal questions
                questions += 1
                if questions == 2:  # the right is given back
                    broker.answers[FETCH] = lambda asked: broker.fetched(records(0, 1))
                if questions == 3:
                    raise KeyboardInterrupt
                return live.partitions(topic)

        source: Any = Source()
        monkeypatch.setattr(GivenSource, "source", lambda given, topic: source)
        catalog = catalog_of("kafka_records")
        assert DumpRun(GivenSource(bootstrap="h:1"), TOPIC, catalog, RecordChoice(catalog)).follow() == 1
        printed = capsys.readouterr()
        assert [json.loads(line)["offset"] for line in printed.out.splitlines()] == [0, 1, 2]
        assert f"note: {TOPIC}-0: records are requested again from offset 1 on" in printed.err.splitlines()


def test_lag_without_the_right_to_describe_the_only_topic_keeps_its_rows() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end, broker.records = 3, records
        answers = broker.answer_of(METADATA)
        listed = 0

        def metadata(asked: dict[str, Any]) -> Any:
            nonlocal listed
            answer = answers(asked)
            assert isinstance(answer, dict)
            if FETCH in broker.asked and asked["topics"] is None:
                listed += 1
            elif listed:
                for each in answer["topics"]:
                    each["error_code"] = NOT_ALLOWED
            return answer

        broker.answers[METADATA] = metadata
        result = read_table("lag", LiveBrokers(broker.address, QUICK), processes=1)
        assert [row["group_id"] for row in result.table.to_pylist()] == ["g0"]
        assert TOPIC in {each.topic for each in result.findings if each.reason == MISSING_RIGHT}


def test_a_right_on_log_ends_that_is_taken_away_costs_its_topic_only() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end = 3
        honest = broker.answer_of(LIST_OFFSETS)

        def list_offsets(asked: dict[str, Any]) -> Any:
            answer = honest(asked)
            assert isinstance(answer, dict)
            for topic in answer["topics"]:
                for each in topic["partitions"] if topic["name"] == "secret" else ():
                    each["error_code"] = NOT_ALLOWED
            return answer

        broker.answers[LIST_OFFSETS] = list_offsets
        context = Context()
        live = LiveBrokers(broker.address, QUICK)
        assert live.log_starts(["orders", "secret"]).offsets.keys() == {("orders", 0)}
        ends = list(live.log_ends(["orders", "secret"], context))
        assert [(each.topic, each.high_watermark) for each in ends] == [("orders", 3), ("secret", None)]
        (finding,) = context.findings
        assert (finding.reason, finding.topic) == (MISSING_RIGHT, "secret")
        assert "grant it DESCRIBE on topic " in finding.what


def test_a_topic_that_is_hidden_since_it_was_listed_is_named() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end = 3

        def metadata(asked: dict[str, Any]) -> Any:
            names = [each["name"] for each in asked["topics"]]
            codes = {"secret": NOT_ALLOWED, "deleted": 3}
            return broker.metadata([{**broker.topic(name), "error_code": codes.get(name, 0)} for name in names])

        broker.answers[METADATA] = metadata
        context = Context()
        ends = list(LiveBrokers(broker.address, QUICK).log_ends(["deleted", "orders", "secret"], context))
        assert [each.topic for each in ends] == ["orders"]
        assert [(each.reason, each.topic) for each in context.findings] == [(MISSING_RIGHT, "secret")]


# -- topics with a lie -------------------------------------------------------------------------------------------------


def lying(broker: FakeBroker, faults: Sequence[str]) -> Callable[[dict[str, Any]], Any]:
    """Metadata with three topics, with faults: a partition with a negative number, or a topic that is left out."""

    def metadata(asked: dict[str, Any]) -> Any:
        names = ["a", "b", "c"] if asked["topics"] is None else [each["name"] for each in asked["topics"]]
        topics = [broker.topic(name) for name in names]
        for each in topics:
            if each["name"] in faults:
                each["partitions"] = [*each["partitions"], {"partition_index": -3, "leader_id": 1}]
        return broker.metadata([each for each in topics if each["name"] != "c" or "c" not in faults])

    return metadata


def test_a_lie_about_one_topic_costs_this_topic_only() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end = 3
        broker.answers[METADATA] = lying(broker, ["b", "c"])
        live = LiveBrokers(broker.address, QUICK)
        context = Context()
        ends = list(live.log_ends(["a", "b", "c"], context))
        assert [(each.topic, each.high_watermark) for each in ends] == [("a", 3)]
        assert [(each.severity, each.reason, each.topic) for each in context.findings] == [
            ("damage", DAMAGED_LOG, "b"),
            ("damage", DAMAGED_LOG, "c"),
        ]
        assert "a partition with a negative number in topic b" in context.findings[0].what
        assert "lacks topic c" in context.findings[1].what
        starts = live.log_starts(["a", "b", "c"])
        assert {*starts.offsets} == {("a", 0)}
        assert {*starts.trouble} == {("b", 0)}


def test_a_list_of_all_topics_is_checked_too() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.answers[METADATA] = lying(broker, ["b"])
        live = LiveBrokers(broker.address, QUICK)
        assert live.log_starts(None).offsets.keys() == {("a", 0), ("c", 0)}
        assert live.known_topics().partition_counts == {"a": 1, "b": 1, "c": 1}
        with pytest.raises(LogSourceError, match="a partition with a negative number in topic b"):
            live.partitions("b")


def test_another_broker_that_does_not_lie_is_believed() -> None:
    with fake_brokers(FakeBroker(1), FakeBroker(2)) as (liar, honest):
        liar.answers[METADATA] = lying(liar, ["b"])
        context = Context()
        live = LiveBrokers(f"{liar.address},{honest.address}", QUICK)
        ends = list(live.log_ends(["a", "b"], context))
        assert [(each.topic, each.partition) for each in ends] == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
        assert not context.findings
