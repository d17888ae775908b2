"""Decodes messages that clients embed as bytes in the records of their groups. A coordinator passes these bytes from
member to member. It parses only the topics of a subscription. The format of the bytes depends on the protocol type and
the protocol of the group."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import import_module
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from kafka_records_runtime.errors import DecodeError, MissingValueVersion
from kafka_records_runtime.messages.json_form import to_json
from kafka_records_runtime.records.framing import newer_as_highest, split_value
from kafka_records_runtime.wire.walker import decode

if TYPE_CHECKING:
    from kafka_records_runtime.schema import MessageSchema

_CONSUMER: Final = "consumer"
_CONNECT: Final = "connect"

_SUBSCRIPTIONS: Final = {
    _CONSUMER: ("consumer_protocol", "CONSUMER_PROTOCOL_SUBSCRIPTION"),
    _CONNECT: ("client_protocols", "CONNECT_PROTOCOL_SUBSCRIPTION"),
}
_ASSIGNMENTS: Final = {
    _CONSUMER: ("consumer_protocol", "CONSUMER_PROTOCOL_ASSIGNMENT"),
    _CONNECT: ("client_protocols", "CONNECT_PROTOCOL_ASSIGNMENT"),
}
_USER_DATA: Final = {
    "sticky": ("client_protocols", "STICKY_ASSIGNOR_USER_DATA"),
    "cooperative-sticky": ("client_protocols", "COOPERATIVE_STICKY_ASSIGNOR_USER_DATA"),
}
"""Schemas of user data, by the name of the assignor. Kafka's other consumer assignors have no user data. The format of
custom assignors is unknown."""
_STREAMS: Final = "stream"
"""The name of the assignor of Kafka Streams (`StreamsPartitionAssignor.name`)."""
_SUBSCRIPTION_INFO: Final = ("streams_protocol", "SUBSCRIPTION_INFO_DATA")
_NO_LATEST: Final = -1
_TELLS_NO_LATEST: Final = 2
"""The highest version without a field for the latest version that an instance supports."""


_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")

_KEPT: Final = 4096
_SHORT: Final = 1024
"""The limits of the cache of subscribed topics, in entries and bytes. A cache helps because a group writes the
subscriptions of all members whenever one joins or leaves."""


class Opened(NamedTuple):
    """A decoded embedded message."""

    version: int
    """The version number at the start of the bytes. It may be newer than `read_as`. If the bytes have no version
    number, it equals `read_as`."""
    value: Any
    """The message as the schema walker returns it."""
    schema: MessageSchema
    read_as: int
    """The version with which the bytes were decoded."""

    @property
    def json(self) -> dict[str, Any]:
        """The message as Kafka's JSON converter writes it."""
        return to_json(self.schema, self.value, self.read_as)


class Subscription(NamedTuple):
    """The subscription with which a member joined its group."""

    message: Opened | None
    """The decoded message; None if the bytes cannot be parsed, or if the format is known only to clients of this
    protocol type."""
    inner: Opened | None = None
    """Bytes inside the message: the user data of a sticky assignor or of Kafka Streams, or the allocation of a Connect
    worker."""
    inner_name: str = ""
    """The field of the message that holds `inner`: `userData` or `allocation`."""


def subscription(protocol_type: str | None, protocol: str | None, data: bytes) -> Subscription:
    """Decode `data`, the subscription with which a member joined a group with this protocol type and protocol."""
    schema = _schema(_SUBSCRIPTIONS.get(protocol_type or ""))
    message = None if schema is None else _framed(schema, data)
    if message is None:
        return Subscription(None)
    if protocol_type == _CONNECT:
        return Subscription(message, assignment(_CONNECT, message.value["allocation"]), "allocation")
    return Subscription(message, _user_data(protocol, message.value["user_data"]), "userData")


def assignment(protocol_type: str | None, data: bytes | None) -> Opened | None:
    """Decode `data`, the assignment that the leader of a group with this protocol type made for a member. Returns None
    in the same cases as `Subscription.message`."""
    schema = _schema(_ASSIGNMENTS.get(protocol_type or ""))
    return None if schema is None or data is None else _framed(schema, data)


def subscribed_topics(data: bytes) -> tuple[str, ...] | None:
    """The topics in a consumer's subscription; None if a coordinator cannot read the bytes.

    A coordinator reads every version as version 0 (`ClassicGroup.computeSubscribedTopics`; KIP-496).
    """
    return _kept_topics(data) if len(data) <= _SHORT else _topics(data)


def what_stops_loading(data: bytes) -> str | None:
    """The reason why a coordinator cannot replay a record with this consumer subscription; None if it can.

    `ClassicGroup.computeSubscribedTopics` tolerates bytes that end in the middle of a number (`ConsumerProtocol` turns
    a BufferUnderflowException into a SchemaException), and skips the members after such a subscription. Any other error
    of the generated reader stops the coordinator from loading the partition.
    """
    at = 2
    if len(data) < at + 4:
        return None
    (count,), at = _INT32.unpack_from(data, at), at + 4
    if count < 0 or count > len(data) - at:
        return f"it claims to have {count} topics, but {len(data) - at} bytes are left"
    for _ in range(count):
        if len(data) < at + 2:
            return None
        (length,), at = _INT16.unpack_from(data, at), at + 2
        if length < 0 or length > len(data) - at:
            return f"it claims to have a topic of {length} bytes, but {len(data) - at} are left"
        at += length
    if len(data) < at + 4:
        return None
    (length,), at = _INT32.unpack_from(data, at), at + 4
    return (
        f"it claims to have user data of {length} bytes, but {len(data) - at} are left"
        if length > len(data) - at
        else None
    )


def _topics(data: bytes) -> tuple[str, ...] | None:
    schema = _schema(_SUBSCRIPTIONS[_CONSUMER])
    try:
        message = None if schema is None else _read(schema, split_value(data)[1], 0, 0)
    except MissingValueVersion:
        return None
    return None if message is None else tuple(message.value["topics"])


_kept_topics = lru_cache(_KEPT)(_topics)


def _user_data(protocol: str | None, data: bytes | None) -> Opened | None:
    """Decode the bytes of sticky assignors, which have no version: use the newest version that fits, as
    `StickyAssignor` does."""
    if protocol == _STREAMS:
        return _subscription_info(data)
    schema = _schema(_USER_DATA.get(protocol or ""))
    if schema is None or schema.versions is None or not data:
        return None
    tried = (_read(schema, data, version, version) for version in range(schema.versions[1], -1, -1))
    return next((found for found in tried if found is not None), None)


def _subscription_info(data: bytes | None) -> Opened | None:
    """Decode the data that a Streams instance sends to the leader of its group. The version must be known and
    consistent with the latest version that the instance supports, as in `SubscriptionInfo.decode` and
    `validateVersions`."""
    schema = _schema(_SUBSCRIPTION_INFO)
    if schema is None or schema.versions is None or data is None or len(data) < _INT32.size:
        return None
    (version,) = _INT32.unpack_from(data)
    lowest, highest = schema.versions
    if not lowest <= version <= highest:
        return None
    found = _read(schema, data, version, version)
    if found is None:
        return None
    latest = found.value.get("latest_supported_version", _NO_LATEST)
    return found if version <= (_TELLS_NO_LATEST if latest == _NO_LATEST else latest) else None


def _framed(schema: MessageSchema, data: bytes) -> Opened | None:
    """Decode a message that starts with its version, an int16. A version above the highest known one is read as the
    highest, as in `ConsumerProtocol`."""
    try:
        version, message = split_value(data)
    except MissingValueVersion:
        return None
    return _read(schema, message, newer_as_highest(schema, version), version)


def _read(schema: MessageSchema, data: bytes, read_as: int, version: int) -> Opened | None:
    """Decode the message and ignore trailing bytes, as all readers of these messages do."""
    try:
        value, _ = decode(schema, data, read_as, lenient=True, allow_trailing=True)
    except DecodeError:
        return None
    return Opened(version, value, schema, read_as)


@cache
def _schema(place: tuple[str, str] | None) -> MessageSchema | None:
    if place is None:
        return None
    folder, name = place
    return cast("MessageSchema", getattr(import_module(f"kafka_records.schemas.{folder}"), name))
