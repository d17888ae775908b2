"""Messages that records of classic consumer groups carry as bytes, decoded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kafka_records_runtime.errors import DecodeError, MissingValueVersion
from kafka_records_runtime.framing import newer_as_highest, split_value
from kafka_records_runtime.jsonform import to_json
from kafka_records_runtime.walker import decode

if TYPE_CHECKING:
    from kafka_records_runtime.framing import Record
    from kafka_records_runtime.schema import MessageSchema


def opened(record: Record) -> dict[str, Any]:
    """`{"members[0].subscription": {"version": 3, "data": {...}}}`, by where the bytes stand in the value.

    Bytes are read as `ConsumerProtocol` reads them: an int16 version comes first, a version above the highest known one
    is read as that one, and bytes behind the message are left alone. Bytes that do not parse are left out, and so are
    those of other protocols than `consumer`, whose form only their clients know.
    """
    return {path: shown for path, schema, data in _parts(record) if (shown := _shown(schema, data)) is not None}


def _parts(record: Record) -> Iterator[tuple[str, MessageSchema, bytes]]:
    from kafka_records.schemas.consumer_protocol import CONSUMER_PROTOCOL_ASSIGNMENT, CONSUMER_PROTOCOL_SUBSCRIPTION

    value = record.value
    if not isinstance(value, dict):
        return
    if record.name == "GroupMetadata" and value["protocol_type"] == "consumer":
        for number, member in enumerate(value["members"]):
            yield f"members[{number}].subscription", CONSUMER_PROTOCOL_SUBSCRIPTION, member["subscription"]
            yield f"members[{number}].assignment", CONSUMER_PROTOCOL_ASSIGNMENT, member["assignment"]
    elif record.name == "ConsumerGroupMemberMetadata" and value["classic_member_metadata"] is not None:
        for number, protocol in enumerate(value["classic_member_metadata"]["supported_protocols"]):
            path = f"classicMemberMetadata.supportedProtocols[{number}].metadata"
            yield path, CONSUMER_PROTOCOL_SUBSCRIPTION, protocol["metadata"]


def _shown(schema: MessageSchema, data: bytes) -> dict[str, Any] | None:
    try:
        version, message = split_value(data)
    except MissingValueVersion:
        return None
    read_as = newer_as_highest(schema, version)
    try:
        value, _ = decode(schema, message, read_as, lenient=True, allow_trailing=True)
    except DecodeError:
        return None
    return {"version": version, "data": to_json(schema, value, read_as)}
