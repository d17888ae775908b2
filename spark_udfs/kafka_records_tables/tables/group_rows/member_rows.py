"""The members of replayed groups, as rows of the table `members`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records.enums import MemberState, StreamsMemberState
from kafka_records_tables.coordinator.groups.embedded import (
    Opened,
    Subscription,
    assignment,
    subscribed_topics,
    subscription,
)
from kafka_records_tables.coordinator.groups.group_model import (
    CLASSIC,
    CONSUMER,
    CURRENT,
    GROUP,
    LEFT,
    MEMBER,
    REGEX,
    SHARE,
    STREAMS,
    Group,
    picked_with,
)
from kafka_records_tables.tables.column_types import instants, record_batch

if TYPE_CHECKING:
    from kafka_records_tables.coordinator.records.named_records import Event, Picked

_CLIENT: Final = ("client_id", "client_host")

_METADATA: Final = {
    CONSUMER: (
        "instance_id",
        "rack_id",
        *_CLIENT,
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "rebalance_timeout_ms",
        "server_assignor",
        "classic_member_metadata",
    ),
    SHARE: ("rack_id", *_CLIENT, "subscribed_topic_names"),
    STREAMS: (
        "instance_id",
        "rack_id",
        *_CLIENT,
        "rebalance_timeout_ms",
        "topology_epoch",
        "process_id",
        "user_endpoint",
        "client_tags",
    ),
}
"""The required fields of a member's metadata, by kind of group."""

_PREVIOUS: Final = ("previous_member_epoch",)

PICKED: Final[Picked] = picked_with(
    {
        "GroupMetadata": ("members",),
        "ConsumerGroupMemberMetadata": _METADATA[CONSUMER],
        "ShareGroupMemberMetadata": _METADATA[SHARE],
        "StreamsGroupMemberMetadata": _METADATA[STREAMS],
        "ConsumerGroupCurrentMemberAssignment": _PREVIOUS,
        "ShareGroupCurrentMemberAssignment": _PREVIOUS,
        "StreamsGroupCurrentMemberAssignment": _PREVIOUS,
        "ConsumerGroupRegularExpression": ("topics",),
    }
)
"""The fields of each record that the replay and the rows of members need."""

_NO_PREVIOUS_EPOCH: Final = {CONSUMER: -1, SHARE: -1, STREAMS: 0}
"""The previous epoch of a member without a current assignment."""

_NO_REBALANCE_TIMEOUT: Final = -1
_ROWS: Final = 16_384

_Row = dict[str, Any]


def classic_rebalance_timeout(rebalance_ms: int, session_ms: int) -> int:
    """The rebalance timeout of a member in `GroupMetadata`. In the oldest version, which has none, it is the session
    timeout (`GroupMetadataManager.replay`)."""
    return session_ms if rebalance_ms == _NO_REBALANCE_TIMEOUT else rebalance_ms


def member_rows(groups: Mapping[str, Group], partition: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The members of the given groups of a log partition."""
    rows: list[_Row] = []
    for group_id, group in groups.items():
        of_group = {"group_id": group_id, "group_kind": group.shown_kind, "log_partition": partition}
        members = _classic_members(group) if group.kind == CLASSIC else _members(group)
        rows += [of_group | member for member in members]
        if len(rows) >= _ROWS:
            yield _batch(rows, schema)
            rows = []
    if rows:
        yield _batch(rows, schema)


def _batch(rows: list[_Row], schema: pa.Schema) -> pa.RecordBatch:
    columns: dict[str, Any] = {}
    for field in schema:
        if pa.types.is_timestamp(field.type):
            milliseconds = pa.array([row.get(f"{field.name}_ms") for row in rows], pa.int64())
            columns[field.name] = instants(milliseconds)
        else:
            columns[field.name] = pa.array([row.get(field.name) for row in rows], field.type)
    return record_batch(schema, columns, len(rows))


# -- classic groups ----------------------------------------------------------------------------------------------------


def _classic_members(group: Group) -> Iterator[_Row]:
    event = group.record(GROUP)
    if event is None or event.value is None:
        return
    # If a member id occurs twice, a coordinator keeps the last member.
    members = {member["member_id"]: member for member in event.value.members}
    for member in members.values():
        data, is_consumer = member["subscription"], group.protocol_type == CONSUMER
        told = subscription(group.protocol_type, group.protocol, data)
        rebalance, session = member["rebalance_timeout"], member["session_timeout"]
        yield {
            "member_id": member["member_id"],
            "instance_id": member["group_instance_id"],
            "client_id": member["client_id"],
            "client_host": member["client_host"],
            "rack_id": (is_consumer and told.message and told.message.value["rack_id"]) or None,
            "member_epoch": group.epoch,
            "uses_classic_protocol": True,
            "subscribed_topics": subscribed_topics(data) if is_consumer else None,
            "rebalance_timeout_ms": classic_rebalance_timeout(rebalance, session),
            "session_timeout_ms": session,
            "protocols": [_told(group.protocol, data, told)],
            "assignment": _shown(assignment(group.protocol_type, member["assignment"]), member["assignment"]),
            "log_timestamp_ms": event.timestamp_ms,
            "log_offset": event.offset,
        }


# -- what is in bytes ----------------------------------------------------------------------------------------------


def _told(protocol: str | None, data: bytes, told: Subscription) -> _Row:
    return {"name": protocol, **_shown(told.message, data), "user_data": _text(told.inner)}


def _shown(message: Opened | None, data: bytes) -> _Row:
    return {"version": message and message.version, "opened": _text(message), "bytes": data}


def _text(message: Opened | None) -> str | None:
    return message and json.dumps(message.json, ensure_ascii=False, separators=(",", ":"))


# -- the other kinds ---------------------------------------------------------------------------------------------------


def _members(group: Group) -> Iterator[_Row]:
    of_kind = _OF_KIND[group.kind]
    for member_id in group.members:
        metadata, current = group.records.get((MEMBER, member_id)), group.records.get((CURRENT, member_id))
        # Every member has one of these two records, or had an earlier record and an assignment that a tombstone
        # deleted.
        place = metadata or current
        row: _Row = {
            "member_id": member_id,
            "uses_classic_protocol": False,
            "log_timestamp_ms": place and place.timestamp_ms,
            "log_offset": place.offset if place else group.made_at,
        }
        row |= _reached(group, member_id, current)
        if metadata is not None and metadata.value is not None:
            row |= of_kind({name: getattr(metadata.value, name) for name in _METADATA[group.kind]}, group)
        yield row


def _reached(group: Group, member_id: str, current: Event | None) -> _Row:
    if current is not None and current.value is None:
        return {}
    member = group.members[member_id]
    if current is not None and current.value is not None:
        previous = current.value.previous_member_epoch
    else:
        previous = LEFT if member.epoch == LEFT else _NO_PREVIOUS_EPOCH[group.kind]
    states = StreamsMemberState if group.kind == STREAMS else MemberState
    return {
        "member_epoch": member.epoch,
        "previous_member_epoch": previous,
        "state": states(member.state).label,
        "epoch_timestamp_ms": current and current.timestamp_ms,
    }


def _of_consumer_group(metadata: _Row, group: Group) -> _Row:
    regex = metadata["subscribed_topic_regex"] or None
    resolved = group.records.get((REGEX, regex)) if regex else None
    classic = metadata["classic_member_metadata"]
    row = {name: metadata[name] for name in ("instance_id", "rack_id", *_CLIENT, "server_assignor")}
    row |= {
        "rebalance_timeout_ms": metadata["rebalance_timeout_ms"],
        "subscribed_topics": metadata["subscribed_topic_names"],
        "subscribed_regex": regex,
        "regex_topics": resolved.value.topics if resolved and resolved.value else None,
    }
    if classic is not None:
        row |= {
            "uses_classic_protocol": True,
            "session_timeout_ms": classic["session_timeout_ms"],
            "protocols": [
                _told(each["name"], each["metadata"], subscription(CONSUMER, each["name"], each["metadata"]))
                for each in classic["supported_protocols"]
            ]
            or None,
        }
    return row


def _of_share_group(metadata: _Row, group: Group) -> _Row:
    row = {name: metadata[name] for name in ("rack_id", *_CLIENT)}
    return row | {"subscribed_topics": metadata["subscribed_topic_names"]}


def _of_streams_group(metadata: _Row, group: Group) -> _Row:
    return metadata


_OF_KIND: Final[Mapping[str, Callable[[_Row, Group], _Row]]] = {
    CONSUMER: _of_consumer_group,
    SHARE: _of_share_group,
    STREAMS: _of_streams_group,
}
