"""Sends requests to group coordinators with the generated schemas, and simulates members of classic groups with them.

No Kafka client is needed. kafka-python's consumer (3.0) loses a join that ends between two polls. Then it joins again,
so members that one thread polls in turn may rebalance for minutes. If it leads the group and joined again because
metadata had changed, it assumes that it is a member, sends no heartbeats, and its group never becomes stable.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

from kafka_records.consumer_protocol.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from kafka_records.consumer_protocol.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_records_runtime.text.casing import upper_snake_case
from kafka_records_runtime.wire import walker

CLIENT: Final = "every-client"
"""The client id of all requests."""

_KEYS: Final = {
    "OffsetCommit": 8,
    "JoinGroup": 11,
    "LeaveGroup": 13,
    "SyncGroup": 14,
    "ConsumerGroupHeartbeat": 68,
    "ShareGroupHeartbeat": 76,
    "StreamsGroupHeartbeat": 88,
    "AlterShareGroupOffsets": 91,
}
_FIND: Final = 10
_LOCATED: Final = 4
"""The version of FindCoordinator that is used."""
_PASSING: Final = frozenset({14, 15, 16})
"""Errors that pass: the coordinator is loading, is not available, or has moved."""
_PATIENCE: Final = 60
"""The maximum seconds until a coordinator has moved."""
_REBALANCES: Final = 27
_ID_REQUIRED: Final = 79
_SUBSCRIPTION: Final = 3
"""The version of a member's subscription."""
_SESSION: Final = 600_000
"""The session timeout in milliseconds: longer than a test, so that no heartbeats are needed."""


class Asking:
    """Sends requests to the coordinator of a group."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = [each.rsplit(":", 1) for each in bootstrap.split(",")]

    def __call__(self, name: str, version: int, *accepted: int, **fields: Any) -> dict[str, Any]:
        """The answer. Errors that are not `accepted` raise. If the coordinator moves, the request is repeated."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            with suppress(OSError, struct.error):  # the broker is gone
                host, port = self._coordinator(fields["group_id"])
                answer = self._answer(host, port, name, _KEYS[name], version, fields)
                errors = _errors(answer)
                if not errors & _PASSING:
                    assert errors <= {*accepted}, (name, answer)
                    return answer
            assert time.monotonic() < deadline, f"{name}: {fields['group_id']} has no coordinator"
            time.sleep(0.1)

    def _coordinator(self, group: str) -> tuple[str, int]:
        """The address of the coordinator of a group. Raises OSError if no broker answers."""
        asked = {"coordinator_keys": (group,)}
        for host, port in self._bootstrap:
            with suppress(OSError, struct.error):
                (found,) = self._answer(host, int(port), "FindCoordinator", _FIND, _LOCATED, asked)["coordinators"]
                if not found["error_code"]:
                    return found["host"], found["port"]
        raise ConnectionError(group)

    def _answer(
        self, host: str, port: int, name: str, key: int, version: int, fields: Mapping[str, Any]
    ) -> dict[str, Any]:
        request, response = (_schema(f"{name}{kind}") for kind in ("Request", "Response"))
        header = struct.pack(">hhih", key, version, 7, len(CLIENT)) + CLIENT.encode() + b"\0"
        body = header + walker.encode(request, fields, version)
        with socket.create_connection((host, port), 10) as connection:
            connection.sendall(struct.pack(">i", len(body)) + body)
            stream = connection.makefile("rb")
            (size,) = struct.unpack(">i", stream.read(4))
            data = stream.read(size)
        answer: dict[str, Any]
        answer, _ = walker.decode(response, data[5:], version)
        return answer


def _schema(name: str) -> Any:
    return getattr(import_module("kafka_records.schemas.rpc"), upper_snake_case(name))


def _errors(answer: Mapping[str, Any]) -> set[int]:
    of_partitions = [part["error_code"] for topic in answer.get("topics", ()) for part in topic["partitions"]]
    return {answer.get("error_code", 0), *of_partitions} - {0}


class ClassicMember:
    """A member of a classic group. It subscribes to topics with the given numbers of partitions."""

    def __init__(self, ask: Asking, group: str, topics: Mapping[str, int], instance: str | None = None) -> None:
        self._ask, self._topics, self._instance = ask, topics, instance
        self._group, self._member, self._generation = group, "", -1
        self.partitions: list[tuple[str, int]] = []
        """The partitions that it has been assigned."""

    def joins(self, follower: ClassicMember | None = None) -> None:
        """Join a group without members, and have the follower join it; or join a consumer group alone."""
        while not self.partitions:
            known = self._join()
            if follower is not None:
                with ThreadPoolExecutor(1) as threads:
                    # The answer to the follower waits for this member. The answer to this member names all members that
                    # have joined by then.
                    joining = threads.submit(follower._join)
                    while len(known["members"]) < 2:
                        assert not joining.done() or not joining.exception(), joining.exception()
                        time.sleep(0.02)
                        known = self._join()
                    joining.result()
            self._sync(self._assigned([each["member_id"] for each in known["members"]]))
        if follower is not None:
            follower._sync({})
            assert follower.partitions

    def _join(self) -> dict[str, Any]:
        subscription = ConsumerProtocolSubscription(topics=tuple(sorted(self._topics)))
        metadata = struct.pack(">h", _SUBSCRIPTION) + subscription.encode(_SUBSCRIPTION)
        while True:
            answer = self._ask(
                "JoinGroup",
                9,
                _ID_REQUIRED,
                group_id=self._group,
                session_timeout_ms=_SESSION,
                rebalance_timeout_ms=60_000,
                member_id=self._member,
                group_instance_id=self._instance,
                protocol_type="consumer",
                protocols=({"name": "range", "metadata": metadata},),
            )
            self._member = answer["member_id"]
            if not answer["error_code"]:
                self._generation = answer["generation_id"]
                return answer

    def _assigned(self, members: list[str]) -> dict[str, bytes]:
        """The assignments of members, in turn."""
        return {
            member: struct.pack(">h", 0)
            + ConsumerProtocolAssignment(
                tuple(
                    TopicPartition(topic, tuple(range(at, count, len(members))))
                    for topic, count in self._topics.items()
                )
            ).encode(0)
            for at, member in enumerate(members)
        }

    def _sync(self, assignments: Mapping[str, bytes]) -> None:
        given = [{"member_id": member, "assignment": data} for member, data in assignments.items()]
        answer = self._ask(
            "SyncGroup",
            5,
            _REBALANCES,
            **self._ids,
            protocol_type="consumer",
            protocol_name="range",
            assignments=given,
        )
        if answer["assignment"]:
            (version,) = struct.unpack_from(">h", answer["assignment"])
            found = ConsumerProtocolAssignment.decode(answer["assignment"][2:], version).assigned_partitions
            self.partitions = [(each.topic, partition) for each in found for partition in each.partitions]

    @property
    def _ids(self) -> dict[str, Any]:
        return {
            "group_id": self._group,
            "generation_id": self._generation,
            "member_id": self._member,
            "group_instance_id": self._instance,
        }

    def commit(self, offsets: Mapping[tuple[str, int], int], metadata: str = "") -> None:
        """Commit offsets by topic and partition."""
        ids = self._ids
        ids["generation_id_or_member_epoch"] = ids.pop("generation_id")
        topics = [
            {
                "name": topic,
                "partitions": [
                    {"partition_index": partition, "committed_offset": offset, "committed_metadata": metadata}
                ],
            }
            for (topic, partition), offset in offsets.items()
        ]
        self._ask("OffsetCommit", 9, **ids, topics=topics)

    def leaves(self) -> None:
        """Leave the group, if it is in one. This also works for a static member."""
        if self._member:
            identity = {"member_id": self._member, "group_instance_id": self._instance}
            self._ask("LeaveGroup", 5, group_id=self._group, members=[identity])
            self._member = ""
