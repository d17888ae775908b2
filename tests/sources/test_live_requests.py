"""Coordinators that move, refuse, are slow or answer in part: the rows, and the findings about missing ones."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources._brokers.requests_sent import (
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    LIST_GROUPS,
    METADATA,
    OFFSET_FETCH,
)
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.group_requests import GroupRequests
from kafka_records_engine.sources.live_requests import LiveRequests
from kafka_records_runtime.kafka.error_codes import ErrorCode
from kafka_records_tables import read_table
from tests.sources.fake_broker import FakeBroker, fake_brokers, silent

PATIENT = ClientConfig()
SHORT = ClientConfig(request_timeout_ms=1000, connect_timeout_ms=1000, patience_ms=1500)
"""A configuration for a broker that does not answer."""


def groups(*ids: str) -> dict[str, Any]:
    """An answer to ListGroups."""
    return {
        "error_code": 0,
        "groups": [{"group_id": each, "protocol_type": "", "group_state": "Empty"} for each in ids],
    }


def offsets(group: str, *partitions: dict[str, Any], code: int = 0) -> dict[str, Any]:
    """The answer of OffsetFetch about a group."""
    told = [{"committed_leader_epoch": -1, "metadata": "", "error_code": 0, **each} for each in partitions]
    return {"group_id": group, "error_code": code, "topics": [{"name": "orders", "partitions": told}]}


def committed(broker: FakeBroker, config: ClientConfig = PATIENT) -> tuple[list[tuple[Any, ...]], list[str]]:
    """The rows of `current_offsets`, and the findings."""
    answer = read_table("current_offsets", LiveRequests(broker.address, config))
    rows = answer.table.select(["group_id", "partition", "offset", "leader_epoch"]).to_pylist()
    return [tuple(row.values()) for row in rows], [str(each) for each in answer.findings]


def test_a_coordinator_that_has_moved_is_looked_for() -> None:
    with fake_brokers(FakeBroker(1), FakeBroker(2)) as (first, second):
        first.answers[LIST_GROUPS] = lambda asked: groups("moved")
        moved = [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
        first.answers[OFFSET_FETCH] = lambda asked: {"groups": [offsets("moved", code=moved[0])]}
        second.answers[OFFSET_FETCH] = lambda asked: {
            "groups": (
                [offsets("moved", {"partition_index": 1, "committed_offset": 7}, code=moved.pop())]
                if len(moved) > 1
                else [offsets("moved", {"partition_index": 1, "committed_offset": 7})]
            )
        }
        finders = [first, second]
        first.answers[FIND_COORDINATOR] = lambda asked: {
            "coordinators": [
                {
                    "key": "moved",
                    "node_id": 1,
                    "host": "127.0.0.1",
                    "port": (finders.pop(0) if len(finders) > 1 else second).port,
                }
            ]
        }
        assert committed(first) == ([("moved", 1, 7, None)], [])
        assert second.asked.count(OFFSET_FETCH) == 2


def test_coordinators_that_move_while_groups_are_listed_lose_none() -> None:
    """The first broker is asked before it coordinates the group, the second one when it no longer does."""
    with fake_brokers(FakeBroker(1), FakeBroker(2)) as (first, second):
        first.leaders = second.leaders = {0: 2}

        def listed_by_first(asked: dict[str, Any]) -> dict[str, Any]:
            return groups("moved") if first.leaders == {0: 1} else groups()

        def moves(asked: dict[str, Any]) -> dict[str, Any]:
            first.leaders = second.leaders = {0: 1}
            return groups()

        first.answers[LIST_GROUPS], second.answers[LIST_GROUPS] = listed_by_first, moves
        answer = read_table("groups", LiveRequests(first.address, PATIENT))
        assert answer.table["group_id"].to_pylist() == ["moved"]
        assert answer.findings == ()
        assert (first.asked.count(LIST_GROUPS), second.asked.count(LIST_GROUPS)) == (2, 2)


def test_coordinators_that_may_not_be_known_list_their_groups_twice() -> None:
    with fake_brokers(FakeBroker(1), FakeBroker(2)) as (first, second):
        hidden = first.metadata([first.topic() | {"error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED}])
        first.answers[METADATA] = second.answers[METADATA] = lambda asked: hidden if asked["topics"] else honest(asked)
        honest = first.answer_of(METADATA)
        first.answers[LIST_GROUPS] = lambda asked: groups("moved") if first.asked.count(LIST_GROUPS) > 1 else groups()
        answer = read_table("groups", LiveRequests(first.address, PATIENT))
        assert answer.table["group_id"].to_pylist() == ["moved"]
        assert second.asked.count(LIST_GROUPS) == 2


def test_groups_without_a_coordinator_are_named_by_their_partition() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.leaders = {0: 1, 1: -1}
        broker.answers[LIST_GROUPS] = lambda asked: groups("there")
        what = "partition 1 of __consumer_offsets has no leader, so no broker lists its groups, for 0.3 s"
        impact = "groups that are not listed have no row"
        hasty = ClientConfig(patience_ms=300)
        for group in (None, "elsewhere"):
            answer = read_table("groups", LiveRequests(broker.address, hasty), group=group)
            assert answer.table["group_id"].to_pylist() == ([] if group else ["there"])
            damage = [each for each in answer.findings if each.severity == "damage"]
            assert [(each.what, each.consequence) for each in damage] == [(what, impact)]
        assert read_table("groups", LiveRequests(broker.address, hasty), group="there").is_complete
        with pytest.raises(LogSourceError, match=what):
            GroupRequests(broker.address, hasty).groups()


def test_groups_are_asked_for_in_parts() -> None:
    ids = [f"group-{number:04}" for number in range(1203)]
    with fake_brokers(FakeBroker()) as (broker,):
        broker.answers[LIST_GROUPS] = lambda asked: groups(*ids)
        sizes: list[int] = []

        def fetched(asked: dict[str, Any]) -> dict[str, Any]:
            sizes.append(len(asked["groups"]))
            at = {"partition_index": 0, "committed_offset": 1}
            return {"groups": [offsets(each["group_id"], at) for each in asked["groups"]]}

        broker.answers[OFFSET_FETCH] = fetched
        rows, found = committed(broker)
        assert ([group for group, *_ in rows], found) == (ids, [])
        assert sizes == [500, 500, 203]


def test_a_group_is_named_that_nobody_answers_for() -> None:
    with fake_brokers(FakeBroker(1), FakeBroker(2)) as (broker, mute):
        broker.answers[LIST_GROUPS] = lambda asked: groups("there", "lost", "refused", "half")
        broker.answers[FIND_COORDINATOR] = lambda asked: {
            "coordinators": [
                {"key": key, "node_id": 1, "host": "127.0.0.1", "port": (mute if key == "lost" else broker).port}
                for key in asked["coordinator_keys"]
            ]
        }
        mute.answers[OFFSET_FETCH] = silent
        denied = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        hidden = {"partition_index": 1, "error_code": int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), "committed_offset": -1}
        broker.answers[OFFSET_FETCH] = lambda asked: {
            "groups": [
                offsets("there", {"partition_index": 0, "committed_offset": 3, "committed_leader_epoch": 2}),
                offsets("refused", code=denied),
                offsets("half", {"partition_index": 0, "committed_offset": 4}, hidden),
            ]
        }
        rows, found = committed(broker, SHORT)
        assert rows == [("half", 0, 4, None), ("there", 0, 3, 2)]
        who, needs = f"{broker.address}: this client may not describe", "grant it DESCRIBE on"
        assert f"{who} group refused: {needs} group refused (its committed offsets have no row)" in found
        assert f"{who} a topic of group half, orders-1: {needs} topic orders (the partition has no row)" in found
        assert len(found) == 3
        lost = next(each for each in found if "group lost" in each)
        assert mute.address in lost
        assert lost.endswith("(its committed offsets have no row)")


def test_a_group_that_ends_meanwhile_has_no_row() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        broker.answers[LIST_GROUPS] = lambda asked: groups("there", "dead", "gone")
        states = {"there": "Empty", "dead": "Dead", "gone": ""}
        broker.answers[DESCRIBE_GROUPS] = lambda asked: {
            "groups": [
                {
                    "group_id": each,
                    "error_code": int(ErrorCode.GROUP_ID_NOT_FOUND) if each == "gone" else 0,
                    "group_state": states[each],
                    "protocol_type": "",
                    "protocol_data": "",
                    "members": [],
                }
                for each in asked["groups"]
            ]
        }
        answer = read_table("groups", LiveRequests(broker.address, PATIENT))
        assert answer.table.select(["group_id", "state", "member_count"]).to_pylist() == [
            {"group_id": "there", "state": "Empty", "member_count": 0}
        ]
        assert answer.findings == ()


def test_every_answer_asks_anew() -> None:
    with fake_brokers(FakeBroker()) as (broker,):
        source = LiveRequests(broker.address, PATIENT)
        for listed in (["one"], ["one", "two"]):
            broker.answers[LIST_GROUPS] = lambda asked, listed=listed: groups(*listed)  # type: ignore[misc]
            assert read_table("groups", source).table["group_id"].to_pylist() == listed
        assert repr(source) == f"LiveRequests('{broker.address}')"
        with pytest.raises(LogSourceError, match="requests to coordinators return no records of __consumer_offsets"):
            source.partitions("__consumer_offsets")
