"""Requests descriptions of groups from coordinators: members with their subscriptions and assignments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kafka_records_engine.sources._brokers.connection import Connection
from kafka_records_engine.sources._brokers.requests_sent import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    SHARE_GROUP_DESCRIBE,
    STREAMS_GROUP_DESCRIBE,
)
from kafka_records_runtime.kafka.error_codes import ErrorCode

_DESCRIBED_BY: Final = {
    "consumer": CONSUMER_GROUP_DESCRIBE,
    "share": SHARE_GROUP_DESCRIBE,
    "streams": STREAMS_GROUP_DESCRIBE,
}


class GroupDescription(NamedTuple):
    """The coordinator's description of a group."""

    fields: Mapping[str, Any]
    """The fields of DescribedGroup in the response for its kind (`message_specs/rpc`); empty after an error."""
    error: str | None = None
    """The name of the error; None if there is none."""


def request_of(kind: str) -> str:
    """The name of the request that describes groups of this kind (`ListedGroup.kind`)."""
    return _DESCRIBED_BY.get(kind, DESCRIBE_GROUPS)


def describe(connection: Connection, groups: list[str], name: str) -> dict[str, tuple[int, GroupDescription]]:
    """Send the request `name`. Returns the error code and the description by group."""
    answer = connection.ask(name, {"groups" if name == DESCRIBE_GROUPS else "group_ids": tuple(groups)})
    # Kafka 4.0.0 returns a description for each partition of its topic that has the group, and only one of them is
    # right.
    told = sorted(answer["groups"], key=lambda each: each["error_code"] == 0)
    return {each["group_id"]: (each["error_code"], _read(each)) for each in told}


def _read(group: Mapping[str, Any]) -> GroupDescription:
    code = group["error_code"]
    return GroupDescription({}, ErrorCode(code).name) if code else GroupDescription(group)
