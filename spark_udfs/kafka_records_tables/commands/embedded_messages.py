"""Decodes messages embedded as bytes in the records of classic groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafka_records_runtime.records.classes import AnyRecord, PlainRecord
from kafka_records_tables.coordinator.groups import embedded


def opened(record: AnyRecord) -> dict[str, Any]:
    """The messages by the position of their bytes in the value: `{"members[0].subscription": {"version": 3, "data":
    {...}}}`.

    Bytes inside these messages follow them, as `members[0].subscription.userData`. Unparsable bytes are left out, and
    so are the bytes of protocols with a format private to their clients (`embedded`).
    """
    return {path: {"version": found.version, "data": found.json} for path, found in _parts(record) if found is not None}


def _parts(record: AnyRecord) -> Iterator[tuple[str, embedded.Opened | None]]:
    if not isinstance(record, PlainRecord) or record.value is None:
        return
    value = record.value
    if record.name == "GroupMetadata":
        kind = value["protocol_type"]
        for number, member in enumerate(value["members"]):
            path = f"members[{number}]"
            told = embedded.subscription(kind, value["protocol"], member["subscription"])
            yield from _told(f"{path}.subscription", told)
            yield f"{path}.assignment", embedded.assignment(kind, member["assignment"])
    elif record.name == "ConsumerGroupMemberMetadata" and value["classic_member_metadata"] is not None:
        for number, protocol in enumerate(value["classic_member_metadata"]["supported_protocols"]):
            path = f"classicMemberMetadata.supportedProtocols[{number}].metadata"
            yield from _told(path, embedded.subscription("consumer", protocol["name"], protocol["metadata"]))


def _told(path: str, told: embedded.Subscription) -> Iterator[tuple[str, embedded.Opened | None]]:
    yield path, told.message
    yield f"{path}.{told.inner_name}", told.inner
