"""examples/offset_admin.py on a real broker, with groups of each kind that has offsets."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient

from examples import offset_admin
from examples.offset_admin import Connection
from kafka_records.rpc.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from kafka_records.rpc.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kafka_records.rpc.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_records.rpc.offset_commit_response import OffsetCommitResponse
from kafka_records_runtime.kafka.error_codes import ErrorCode
from tests.broker.clients import PATIENCE, commit, create_topics
from tests.broker.members import Asking, ClassicMember
from tools.broker import HOST, Broker

pytestmark = pytest.mark.broker

DELETED = ErrorCode.NONE

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "offset_admin.py"

Connect = Callable[[str], Connection]


@pytest.fixture(scope="module", autouse=True)
def topics(admin: KafkaAdminClient) -> None:
    create_topics(admin, orders=2, returns=1)


@pytest.fixture
def connect(broker: Broker) -> Iterator[Connect]:
    """Connects to the coordinator of a group until the test is over."""
    with ExitStack() as opened:
        yield lambda group: opened.enter_context(closing(offset_admin.coordinator(HOST, broker.port, group)))


@pytest.fixture
def offline(admin: KafkaAdminClient) -> str:
    """A group that consists only of its offsets."""
    commit(admin, "offline", {("orders", 0): 5, ("orders", 1): 7})
    return "offline"


@pytest.fixture
def classic(broker: Broker) -> Iterator[str]:
    """A classic group whose one member subscribes to `orders` and commits for `returns` as well."""
    member = ClassicMember(Asking(broker.bootstrap), "classic", {"orders": 2})
    member.joins()
    member.commit({("orders", 0): 1, ("returns", 0): 2})
    yield "classic"
    member.leaves()


@pytest.fixture
def modern(connect: Connect) -> Iterator[str]:
    """A group of the consumer protocol (KIP-848) whose only member uses our codecs.

    It subscribes to `orders`, owns both partitions of it, and has committed for `returns` as well.
    """
    connection = connect("modern")
    member = "IPWC4fkBSHODAVDJfQJyTA"

    def heartbeat(epoch: int, owned: tuple[TopicPartitions, ...] | None) -> ConsumerGroupHeartbeatResponse:
        joining = epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id="modern",
            member_id=member,
            member_epoch=epoch,
            rebalance_timeout_ms=10_000 if joining else -1,
            subscribed_topic_names=("orders",) if joining else None,
            topic_partitions=owned,
        )
        response = connection.ask(request, ConsumerGroupHeartbeatResponse.decode)
        assert response.error_code == 0, response.error_message
        return response

    owned: tuple[TopicPartitions, ...] = ()
    told = heartbeat(0, owned)
    deadline = time.monotonic() + PATIENCE
    # The broker may assign partitions later, sends only changes, and expects a confirmation.
    while told.assignment or not owned:
        assert time.monotonic() < deadline, "the group did not settle"
        if told.assignment:
            assigned = told.assignment.topic_partitions
            owned = tuple(TopicPartitions(topic.topic_id, topic.partitions) for topic in assigned)
        told = heartbeat(told.member_epoch, owned)
    epoch = told.member_epoch
    request = OffsetCommitRequest(
        group_id="modern",
        generation_id_or_member_epoch=epoch,
        member_id=member,
        topics=tuple(
            OffsetCommitRequestTopic(name, partitions=(OffsetCommitRequestPartition(0, offset),))
            for name, offset in (("orders", 3), ("returns", 4))
        ),
    )
    committed = connection.ask(request, OffsetCommitResponse.decode, at_most=9)
    assert [partition.error_code for topic in committed.topics for partition in topic.partitions] == [0, 0]
    yield "modern"
    heartbeat(-1, None)


def test_offsets_without_members_are_deleted(connect: Connect, offline: str) -> None:
    connection = connect(offline)
    assert offset_admin.committed(connection, offline) == {("orders", 0): 5, ("orders", 1): 7}
    assert offset_admin.delete(connection, offline, [("orders", 0)]) == {("orders", 0): DELETED}
    assert offset_admin.committed(connection, offline) == {("orders", 1): 7}


def test_each_partition_has_its_own_outcome(connect: Connect, offline: str) -> None:
    asked = [("orders", 1), ("nowhere", 0), ("orders", 9)]
    assert offset_admin.delete(connect(offline), offline, asked) == {
        ("orders", 1): DELETED,
        ("orders", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


@pytest.mark.parametrize("kind", ["classic", "modern"])
def test_what_a_live_member_subscribes_to_stays(kind: str, request: pytest.FixtureRequest, connect: Connect) -> None:
    group = request.getfixturevalue(kind)
    connection = connect(group)
    before = offset_admin.committed(connection, group)
    assert before.keys() == {("orders", 0), ("returns", 0)}
    assert offset_admin.delete(connection, group, before) == {
        ("orders", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ("returns", 0): DELETED,
    }
    assert offset_admin.committed(connection, group) == {("orders", 0): before["orders", 0]}


def test_nobody_knows_a_group_that_never_was(connect: Connect) -> None:
    connection = connect("nobody")
    partitions = [("orders", 0), ("returns", 0)]
    assert offset_admin.delete(connection, "nobody", partitions) == dict.fromkeys(
        partitions, ErrorCode.GROUP_ID_NOT_FOUND
    )
    assert offset_admin.committed(connection, "nobody") == {}
    described = offset_admin.describe(connection, "nobody")
    assert (described.error_code, described.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group nobody not found.")


def test_a_group_of_the_consumer_protocol_is_described(connect: Connect, modern: str) -> None:
    described = offset_admin.describe(connect(modern), modern)
    assert (described.error_code, described.group_state, described.assignor_name) == (0, "Stable", "uniform")
    (member,) = described.members
    assert (member.client_id, member.subscribed_topic_names) == ("offset-admin", ("orders",))
    (topic,) = member.assignment.topic_partitions
    assert (topic.topic_name, sorted(topic.partitions)) == ("orders", [0, 1])
    assert member.assignment == member.target_assignment
    assert member.member_epoch == described.group_epoch == described.assignment_epoch


def test_a_classic_group_is_not_described(connect: Connect, classic: str) -> None:
    described = offset_admin.describe(connect(classic), classic)
    assert (described.error_code, described.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group classic is not a consumer group.",
    )


def test_the_command(
    broker: Broker, modern: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", [str(EXAMPLE), broker.bootstrap, *arguments])
        return offset_admin.main(), capsys.readouterr().out

    assert run(modern) == (0, "modern: Stable\norders:0 3\nreturns:0 4\n")
    assert run(modern, "orders:0", "returns:0") == (1, "orders:0 GROUP_SUBSCRIBED_TO_TOPIC\nreturns:0 deleted\n")
    assert run(modern, "returns:0") == (0, "returns:0 deleted\n")
    assert run("nobody", "orders:0") == (1, "orders:0 GROUP_ID_NOT_FOUND\n")


def test_the_example_stays_short() -> None:
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 150
