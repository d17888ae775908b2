"""Slow brokers: the time is limited for each of them, for each answer, and for a whole command."""

from __future__ import annotations

import pickle
import re
import time
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kafka_records_engine.findings import UNREACHABLE_LOG
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources._brokers import log_bounds, patience
from kafka_records_engine.sources._brokers.patience import GivenUp, Patience
from kafka_records_engine.sources._brokers.requests_sent import FETCH, LIST_OFFSETS, METADATA
from kafka_records_engine.sources._brokers.session import Session
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.group_requests import GroupRequests
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_engine.sources.protocol import Context
from kafka_records_engine.sources.time_limit import TimeLimit, limit_of
from kafka_records_tables import read_report, read_table, stream_table
from kafka_records_tables.commands.main import main
from tests.cli.segment_bytes import batch, commit
from tests.sources.fake_broker import (
    QUICK,
    TOPIC,
    Dripping,
    FakeBroker,
    fake_brokers,
    meet,
    read,
    records,
    silent,
    within,
)

FETCHES = ClientConfig(request_timeout_ms=1000, connect_timeout_ms=1000, patience_ms=1000)


@pytest.fixture(name="properties")
def _properties(tmp_path: Path) -> str:
    path = tmp_path / "client.properties"
    path.write_text("request.timeout.ms=20000\ndefault.api.timeout.ms=20000\n")
    return str(path)


@pytest.fixture(name="loaded", scope="module")
def _loaded() -> None:
    """Load the modules that a report needs, so that no time limit is over before a broker is asked."""
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end, broker.records = 3, records
        read_report(LiveBrokers(broker.address))


# -- one deadline per broker -------------------------------------------------------------------------------------------


def test_partitions_of_a_broker_that_sends_no_records_share_one_deadline() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end, broker.leaders = 3, dict.fromkeys(range(6), 1)
        broker.answers[FETCH] = silent
        logs = LiveBrokers(broker.address, FETCHES).partitions(TOPIC)
        found = [read(log) for log in logs]
        waits = [context.findings[0].what.rpartition(", for ")[2] for _, context in found]
        assert waits == ["1 s", *["0.1 s"] * 5]
        for number, (offsets, context) in enumerate(found):
            (finding,) = context.findings
            assert (offsets, context.log.holes) == ([], [-1])
            assert (finding.severity, finding.reason, finding.partition) == ("damage", UNREACHABLE_LOG, number)
            assert finding.file == f"{broker.address} {TOPIC}-{number}"
            assert finding.consequence == "offsets 0 to 2 are not read"


def test_a_partition_after_one_that_was_given_up_is_read_if_its_broker_sends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patience, "_SHORTEST_WAIT", 1.0)  # a busy machine is slow
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end, broker.leaders = 3, dict.fromkeys(range(3), 1)
        honest = broker.answer_of(FETCH)
        broker.records = records

        def fetch(asked: dict[str, Any]) -> Any:
            return None if asked["topics"][0]["partitions"][0]["partition"] == 0 else honest(asked)

        broker.answers[FETCH] = fetch
        logs = LiveBrokers(broker.address, FETCHES).partitions(TOPIC)
        assert [read(log)[0] for log in logs] == [[], [0, 1, 2], [0, 1, 2]]


def test_a_leader_is_waited_for_once() -> None:
    config, session = ClientConfig(patience_ms=6000), Session()
    one, other, elsewhere = (Patience(config, session, leader=leader) for leader in (1, 1, 2))
    assert one.limit == other.limit == elsewhere.limit == 6
    session.note_timeout(1)
    assert (one.limit, elsewhere.limit) == (0.1, 6)
    other.begin()
    time.sleep(0.1)
    with pytest.raises(GivenUp, match=r"^no answer, for 0\.1 s$"):
        other.wait("no answer")


def test_bootstrap_brokers_that_say_nothing_are_asked_last_from_then_on() -> None:
    with fake_brokers(FakeBroker(1), FakeBroker(2)) as (mute, broker):
        mute.answers[METADATA] = silent
        broker.leaders = {0: 2}
        live = LiveBrokers(f"{mute.address},{broker.address}", ClientConfig(request_timeout_ms=200, patience_ms=20_000))
        live.partitions(TOPIC)
        for _ in range(3):
            live.topics()
        assert mute.asked.count(METADATA) == 1


# -- answers without an end --------------------------------------------------------------------------------------------


def test_an_answer_that_drips_is_given_up() -> None:
    with fake_brokers(Dripping()) as (broker,):
        broker.end = 3
        broker.records = lambda partition, offset: records(partition, offset)[:60] * 100
        (log,) = LiveBrokers(broker.address, QUICK).partitions(TOPIC)
        with within(10):
            offsets, context = read(log)
        (finding,) = context.findings
        assert (offsets, finding.reason) == ([], UNREACHABLE_LOG)
        assert "no response within" in finding.what


def test_after_an_answer_that_came_in_part_less_is_asked_for() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end = 3
        asked: list[int] = []

        def fetch(fields: dict[str, Any]) -> Any:
            asked.append(fields["max_bytes"])
            return b"\0\0\1\0" + bytes(100) if len(asked) == 1 else broker.fetched(records(0, 0))

        broker.answers[FETCH] = fetch
        config = ClientConfig(request_timeout_ms=100, patience_ms=5000, fetch_bytes=1 << 20)
        (log,) = LiveBrokers(broker.address, config).partitions(TOPIC)
        assert read(log)[0] == [0, 1, 2]
        assert asked == [1 << 20, 1 << 18]


@pytest.mark.parametrize("named", [1, 2, 9])
def test_a_broker_that_names_replicas_for_ever_is_given_up(named: int) -> None:
    with fake_brokers(FakeBroker(1), FakeBroker(2)) as brokers:
        for broker in brokers:
            broker.end = 3
            broker.answers[FETCH] = lambda asked: brokers[0].fetched(b"", preferred_read_replica=named)
        config = ClientConfig(patience_ms=400, client_rack="a")
        log, _ = LiveBrokers(brokers[0].address, config).partitions(TOPIC)
        with within(10):
            offsets, context = read(log)
        (finding,) = context.findings
        assert (offsets, finding.severity) == ([], "damage")
        assert f"it sends no records, but refers to broker {named}, for 0.4 s" in finding.what
        assert sum(broker.asked.count(FETCH) for broker in brokers) < 20


def test_a_follower_is_still_read() -> None:
    with fake_brokers(FakeBroker(1), FakeBroker(2)) as (leader, follower):
        leader.end = follower.end = 3
        follower.records = records
        leader.answers[FETCH] = lambda asked: leader.fetched(b"", preferred_read_replica=2)
        log, _ = LiveBrokers(leader.address, ClientConfig(client_rack="a")).partitions(TOPIC)
        assert read(log)[0] == [0, 1, 2]
        assert (leader.asked.count(FETCH), follower.asked.count(FETCH)) == (1, 1)


# -- quotas ------------------------------------------------------------------------------------------------------------


def test_a_pause_is_kept_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end = 3
        times: list[float] = []

        def fetch(asked: dict[str, Any]) -> Any:
            times.append(time.monotonic())
            offset = asked["topics"][0]["partitions"][0]["fetch_offset"]
            return {**broker.fetched(batch(offset, [commit("g", offset)])), "throttle_time_ms": 100}

        broker.answers[FETCH] = fetch
        (log,) = LiveBrokers(broker.address).partitions(TOPIC)
        assert read(log)[0] == [0, 1, 2]
        assert all(later - earlier >= 0.1 for earlier, later in pairwise(times))
        assert caplog.messages == [
            f"{broker.address}: the broker throttles this client because of a quota: it asks for a pause of 0.1 s"
        ]


def test_a_pause_of_weeks_is_not_waited_for() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end = 3
        broker.answers[FETCH] = lambda asked: {
            **broker.fetched(batch(0, [commit("g", 0)])),
            "throttle_time_ms": 0x7FFFFFFF,
        }
        (log,) = LiveBrokers(broker.address).partitions(TOPIC)
        with within(10):
            offsets, context = read(log)
        (finding,) = context.findings
        assert offsets == [0]
        assert "it asks for a pause of 21474" in finding.what
        assert finding.consequence == "offsets 1 to 2 are not read"


def test_a_broker_that_only_asks_for_pauses_is_given_up() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end = 3
        broker.answers[FETCH] = lambda asked: {"responses": [], "throttle_time_ms": 1}
        (log,) = LiveBrokers(broker.address, QUICK).partitions(TOPIC)
        with within(10):
            _, context = read(log)
        assert "the broker sends nothing and asks for a pause" in context.findings[0].what


# -- side by side ------------------------------------------------------------------------------------------------------


def test_brokers_are_asked_for_ends_at_the_same_time() -> None:
    brokers = [FakeBroker(number) for number in range(1, 5)]
    with fake_brokers(*brokers):
        meet(brokers, LIST_OFFSETS)
        logs = LiveBrokers(brokers[0].address, ClientConfig(patience_ms=10_000)).partitions(TOPIC)
        assert [log.trouble for log in logs] == [None] * 4


def test_a_leader_that_hangs_takes_one_question_of_the_time_for_log_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_bounds, "_PAUSE", 0.0)
    brokers = [FakeBroker(number) for number in range(1, 4)]
    with fake_brokers(*brokers):
        for broker in brokers:
            broker.end = 3
        brokers[1].answers[LIST_OFFSETS] = silent
        context = Context()
        live = LiveBrokers(brokers[0].address, ClientConfig(request_timeout_ms=500, patience_ms=1000))
        ends = list(live.log_ends([TOPIC, "another"], context))
        assert [(each.partition, each.log_end_offset) for each in ends] == [(0, 3), (1, None), (2, 3)] * 2
        assert [each.partition for each in context.findings] == [1, 1]
        # After the first request, there is only a little time left.
        within_ms = re.findall(r"no response within (\d+) ms", context.findings[0].what)
        assert [int(each) <= 100 for each in within_ms] == [True]


def test_logs_of_several_brokers_are_read_at_the_same_time() -> None:
    brokers = [FakeBroker(number) for number in range(1, 6)]
    with fake_brokers(*brokers):
        for broker in brokers:
            broker.end, broker.records = 3, records
        meet(brokers, FETCH)
        rows = read_table("current_offsets", LiveBrokers(brokers[0].address)).table.to_pylist()
        assert sorted(row["group_id"] for row in rows) == [f"g{number}" for number in range(5)]


def test_a_broker_that_hangs_keeps_nobody_from_the_others() -> None:
    brokers = [FakeBroker(number) for number in range(1, 4)]
    with fake_brokers(*brokers):
        for broker in brokers:
            broker.end, broker.records = 3, records
        brokers[1].answers[FETCH] = brokers[2].answers[FETCH] = silent
        with within(10):
            result = read_table("current_offsets", LiveBrokers(brokers[0].address, FETCHES))
        assert [row["group_id"] for row in result.table.to_pylist()] == ["g0"]
        assert [finding.partition for finding in result.findings if finding.severity == "damage"] == [1, 2]


def test_an_error_of_one_broker_ends_the_reading_of_all() -> None:
    brokers = [FakeBroker(number) for number in range(1, 4)]
    with fake_brokers(*brokers):
        for broker in brokers:
            broker.end, broker.records = 3, records
        brokers[1].answers[FETCH] = silent
        brokers[2].answers[FETCH] = lambda asked: brokers[2].fetched(b"", 2, error_code=42)
        with within(10), pytest.raises(LogSourceError, match="cannot fetch __consumer_offsets-2: INVALID_REQUEST"):
            read_table("current_offsets", LiveBrokers(brokers[0].address))


def test_who_wants_no_more_rows_stops_all_readers() -> None:
    brokers = [FakeBroker(number) for number in range(1, 4)]
    with fake_brokers(*brokers):
        for broker in brokers:
            broker.end, broker.records = 3, records
        brokers[1].answers[FETCH] = silent
        with within(10), stream_table("offset_commits", LiveBrokers(brokers[0].address)) as rows:
            next(iter(rows))


# -- the time limit ----------------------------------------------------------------------------------------------------


def test_what_was_read_before_the_limit_is_given_and_the_rest_is_damage() -> None:
    with fake_brokers(FakeBroker(1), FakeBroker(2)) as (broker, mute):
        broker.end = mute.end = 3
        broker.records = records
        mute.answers[FETCH] = silent
        live = LiveBrokers(broker.address, timeout=timedelta(milliseconds=500))
        with within(10):
            first, second = (read(log) for log in live.partitions(TOPIC))
        assert first[0] == [0, 1, 2]
        (finding,) = second[1].findings
        assert (second[0], finding.severity, finding.reason) == ([], "damage", UNREACHABLE_LOG)
        assert "the time limit of 0.5 s has passed" in finding.what


def test_a_broker_that_makes_progress_for_ever_ends_at_the_limit() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end, broker.delay = 1_000_000, 0.02
        broker.records = lambda partition, offset: batch(offset, [commit("g", offset)])
        live = LiveBrokers(broker.address, timeout=0.3)
        with within(10):
            offsets, context = read(live.partitions(TOPIC)[0])
        (finding,) = context.findings
        assert offsets == list(range(len(offsets)))
        assert "the time limit of 0.3 s has passed" in finding.what
        assert (finding.base_offset, finding.consequence) == (
            len(offsets),
            f"offsets {len(offsets)} to 999999 are not read",
        )


def test_nobody_is_asked_after_the_limit() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        live = LiveBrokers(broker.address, timeout=0.001)
        groups = GroupRequests(broker.address, timeout=0.001)
        time.sleep(0.01)
        for ask in (live.topics, lambda: live.partitions(TOPIC), groups.groups, lambda: groups.fetch({"g": None})):
            with pytest.raises(LogSourceError, match=r"the time limit of 0\.001 s has passed"):
                ask()
        assert broker.asked == []
        context = Context()
        assert list(live.log_ends(["a", "b"], context)) == []
        (finding,) = context.findings
        assert (finding.severity, finding.consequence) == ("damage", "topics without a response have no row")


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize(
    "command", [["table", "current_offsets", "--format", "json"], ["dump"], ["counts"], ["report", "--format", "json"]]
)
def test_commands_end_at_the_limit_with_status_1(
    command: list[str], properties: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_brokers(FakeBroker(1), FakeBroker(2)) as (broker, mute):
        broker.end = mute.end = 3
        broker.records = records
        mute.answers[FETCH] = silent
        started = time.monotonic()
        place = ["--bootstrap", broker.address, "--command-config", properties]
        status = main([*command, *place, "--timeout", "1s"])
        assert time.monotonic() - started < 10
        printed = capsys.readouterr()
        assert status == 1, printed.err
        # The report has the part that was read.
        assert "the time limit of 1 s has passed" in (printed.out if command[0] == "report" else printed.err)
        assert "g0" in printed.out or command == ["counts"]


@pytest.mark.usefixtures("loaded")
def test_a_report_without_topics_for_want_of_time_is_damaged(
    properties: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.end, broker.records = 3, records
        honest = broker.answer_of(METADATA)

        def metadata(asked: dict[str, Any]) -> Any:
            names = [each["name"] for each in asked["topics"] or ()]
            return None if "__share_group_state" in names else honest(asked)

        broker.answers[METADATA] = metadata
        place = ["--bootstrap", broker.address, "--command-config", properties, "--timeout", "1s"]
        assert main(["report", *place, "--format", "json"]) == 1
        printed = capsys.readouterr()
        assert "the response of that broker is missing" in printed.out
        assert "offsets 0 to 2 are not read" in printed.out


def test_the_option_goes_with_brokers_and_not_with_follow(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, why in (
        (["table", "groups", "somewhere", "--timeout", "5s"], "--timeout works only with --bootstrap"),
        (["dump", "--bootstrap", "b:1", "--follow", "--timeout", "5s"], "leave one of them out"),
        (["dump", "--bootstrap", "b:1", "--timeout", "soon"], "'soon' is not a duration"),
        (["dump", "--bootstrap", "b:1", "--timeout", "0s"], "invalid timeout: 0 s; give more than 0 seconds"),
    ):
        assert main(arguments) == 2
        assert why in capsys.readouterr().err


def test_limits_are_the_same_in_other_processes() -> None:
    limit = TimeLimit(100)
    copy = pickle.loads(pickle.dumps(limit))
    assert (copy.seconds, str(copy)) == (100, "the time limit of 100 s")
    assert copy.end == pytest.approx(limit.end, abs=0.1)
    session = Session(limit)
    one, other = (pickle.loads(pickle.dumps(session)) for _ in range(2))
    assert one is other
    one.note_timeout(3)
    assert pickle.loads(pickle.dumps(session)).has_timed_out(3, 60)


@pytest.mark.parametrize(("given", "error"), [(0, ValueError), (-1, ValueError), (True, TypeError), ("5s", TypeError)])
def test_what_is_no_time_limit_is_refused(given: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="timeout"):
        limit_of(given)
    with pytest.raises(error, match="timeout"):
        LiveBrokers("b:1", timeout=given)
