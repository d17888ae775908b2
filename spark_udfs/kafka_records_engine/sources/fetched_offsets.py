"""Requests the offsets of groups from coordinators: committed offsets, and the progress of share groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kafka_records_engine.sources._brokers.connection import Connection
from kafka_records_engine.sources._brokers.failures import Refused
from kafka_records_engine.sources._brokers.requests_sent import DESCRIBE_SHARE_GROUP_OFFSETS, OFFSET_FETCH
from kafka_records_runtime.kafka.error_codes import ErrorCode

TopicPartition = tuple[str, int]
"""Topic and partition."""

UNSTABLE: Final = ErrorCode.UNSTABLE_OFFSET_COMMIT.name
"""The error of a partition with an offset commit in an open transaction."""


WITH_NAMES: Final = 9
"""The newest version of OffsetFetch and OffsetCommit with topic names. Later ones contain topic ids."""
_WITH_GROUPS: Final = 8
"""The oldest version of OffsetFetch that supports several groups (Kafka 3.0)."""


class CommittedOffset(NamedTuple):
    """The committed offset of a partition, according to the coordinator."""

    offset: int
    leader_epoch: int
    """The leader epoch in the commit; -1 if there was none."""
    metadata: str


class FetchedOffsets(NamedTuple):
    """The committed offsets of a group."""

    offsets: Mapping[TopicPartition, CommittedOffset]
    errors: Mapping[TopicPartition, str]
    """For each partition with an error, the name of the error: UNSTABLE, or a missing right."""
    error: str | None = None
    """The name of the group's error."""


class ShareOffset(NamedTuple):
    """The progress of a share group in a partition."""

    topic_id: str
    """The topic id in Kafka's text form, 22 characters."""
    partition: int
    start_offset: int
    """The start offset of the share partition; -1 until it is decided."""
    leader_epoch: int
    lag: int
    """The number of unfinished offsets up to the end, as counted by the coordinator; -1 if it does not report the
    number (before Kafka 4.2)."""


class FetchedShares(NamedTuple):
    """The share partitions of a group."""

    offsets: Sequence[ShareOffset]
    errors: Mapping[TopicPartition, str]
    """For each partition with an error, the name of the error."""
    error: str | None = None
    """The name of the group's error."""


def at_least(connection: Connection, name: str, version: int, at_most: int = 0x7FFF) -> int:
    """The version of a request to use with this broker. Raises Refused for brokers older than Kafka 3.0."""
    found = connection.version(name, at_most)
    if found < version:
        raise Refused(connection.address, "this broker is too old to ask about groups: Kafka 3.0 or later is needed")
    return found


def by_topic(places: Collection[TopicPartition] | None, partitions: str) -> list[dict[str, Any]] | None:
    """Topics as used in requests, with partition numbers in the field `partitions`; None for None."""
    if places is None:
        return None
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(places):
        found.setdefault(topic, []).append(partition)
    return [{"name": topic, partitions: numbers} for topic, numbers in found.items()]


def fetch(
    connection: Connection, groups: list[str], wanted: Mapping[str, Collection[TopicPartition] | None], stable: bool
) -> dict[str, tuple[int, FetchedOffsets]]:
    """The offsets of the given partitions of each group (None: all). Returns the error code and the offsets by
    group."""
    asked = [{"group_id": group, "topics": by_topic(wanted[group], "partition_indexes")} for group in groups]
    version = at_least(connection, OFFSET_FETCH, _WITH_GROUPS, WITH_NAMES)
    answer = connection.ask(OFFSET_FETCH, {"groups": asked, "require_stable": stable}, version)
    return {
        each["group_id"]: (each["error_code"], _fetched(each, is_all=wanted.get(each["group_id"]) is None))
        for each in answer["groups"]
    }


def _fetched(group: Mapping[str, Any], *, is_all: bool) -> FetchedOffsets:
    offsets: dict[TopicPartition, CommittedOffset] = {}
    errors: dict[TopicPartition, str] = {}
    for topic in group["topics"]:
        for each in topic["partitions"]:
            place = topic["name"], each["partition_index"]
            if each["error_code"]:
                errors[place] = ErrorCode(each["error_code"]).name
            # -1 means no offset; a response with all offsets omits such partitions
            elif each["committed_offset"] >= 0 or is_all:
                epoch, metadata = each["committed_leader_epoch"], each["metadata"] or ""
                offsets[place] = CommittedOffset(each["committed_offset"], epoch, metadata)
    code = group["error_code"]
    return FetchedOffsets(offsets, errors, ErrorCode(code).name if code else None)


def fetch_shares(connection: Connection, groups: list[str]) -> dict[str, tuple[int, FetchedShares]]:
    """The progress of share groups. Returns the error code and the offsets by group."""
    asked = [{"group_id": group, "topics": None} for group in groups]
    answer = connection.ask(DESCRIBE_SHARE_GROUP_OFFSETS, {"groups": asked})
    return {each["group_id"]: (each["error_code"], _fetched_shares(each)) for each in answer["groups"]}


def _fetched_shares(group: Mapping[str, Any]) -> FetchedShares:
    offsets: list[ShareOffset] = []
    errors: dict[TopicPartition, str] = {}
    for topic in group["topics"]:
        for each in topic["partitions"]:
            number = each["partition_index"]
            if each["error_code"]:
                errors[topic["topic_name"], number] = ErrorCode(each["error_code"]).name
            else:
                told = each["start_offset"], each["leader_epoch"], each["lag"]
                offsets.append(ShareOffset(str(topic["topic_id"]), number, *told))
    code = group["error_code"]
    return FetchedShares(offsets, errors, ErrorCode(code).name if code else None)
