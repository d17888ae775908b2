"""The few requests that this package sends, with their schemas from the generated package.

The fields of each version of a request come from `kafka_records`, as do the fields of records. This is the only
generated package that this package uses, and only in this module (docs/design.md, Five packages). It is imported when
the first request is sent, so reading files does not need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple

from kafka_records_runtime.kafka.apis import Api
from kafka_records_runtime.schema import FieldSchema, MessageSchema, RecordSchema, StructSchema
from kafka_records_runtime.text.casing import upper_snake_case
from kafka_records_runtime.wire import walker

PACKAGE: Final = "kafka_records"
"""The package with the schemas of Kafka's protocol."""


class Exchange(NamedTuple):
    """A request and its response, with their schemas."""

    api: Api
    request: MessageSchema
    response: MessageSchema


API_VERSIONS: Final = "ApiVersions"
CONSUMER_GROUP_DESCRIBE: Final = "ConsumerGroupDescribe"
DELETE_GROUPS: Final = "DeleteGroups"
DESCRIBE_CLUSTER: Final = "DescribeCluster"
DESCRIBE_CONFIGS: Final = "DescribeConfigs"
DESCRIBE_GROUPS: Final = "DescribeGroups"
DESCRIBE_PRODUCERS: Final = "DescribeProducers"
DESCRIBE_SHARE_GROUP_OFFSETS: Final = "DescribeShareGroupOffsets"
DESCRIBE_TOPIC_PARTITIONS: Final = "DescribeTopicPartitions"
DESCRIBE_TRANSACTIONS: Final = "DescribeTransactions"
FETCH: Final = "Fetch"
FETCH_SNAPSHOT: Final = "FetchSnapshot"
FIND_COORDINATOR: Final = "FindCoordinator"
LIST_CONFIG_RESOURCES: Final = "ListConfigResources"
LIST_GROUPS: Final = "ListGroups"
LIST_OFFSETS: Final = "ListOffsets"
LIST_TRANSACTIONS: Final = "ListTransactions"
METADATA: Final = "Metadata"
OFFSET_COMMIT: Final = "OffsetCommit"
OFFSET_DELETE: Final = "OffsetDelete"
OFFSET_FETCH: Final = "OffsetFetch"
SASL_AUTHENTICATE: Final = "SaslAuthenticate"
SASL_HANDSHAKE: Final = "SaslHandshake"
SHARE_GROUP_DESCRIBE: Final = "ShareGroupDescribe"
STREAMS_GROUP_DESCRIBE: Final = "StreamsGroupDescribe"
WRITE_TXN_MARKERS: Final = "WriteTxnMarkers"

_KEYS: Final = {
    FETCH: 1,
    LIST_OFFSETS: 2,
    METADATA: 3,
    OFFSET_COMMIT: 8,
    OFFSET_FETCH: 9,
    FIND_COORDINATOR: 10,
    DESCRIBE_GROUPS: 15,
    LIST_GROUPS: 16,
    SASL_HANDSHAKE: 17,
    API_VERSIONS: 18,
    WRITE_TXN_MARKERS: 27,
    DESCRIBE_CONFIGS: 32,
    SASL_AUTHENTICATE: 36,
    DELETE_GROUPS: 42,
    OFFSET_DELETE: 47,
    FETCH_SNAPSHOT: 59,
    DESCRIBE_CLUSTER: 60,
    DESCRIBE_PRODUCERS: 61,
    DESCRIBE_TRANSACTIONS: 65,
    LIST_TRANSACTIONS: 66,
    CONSUMER_GROUP_DESCRIBE: 69,
    LIST_CONFIG_RESOURCES: 74,
    DESCRIBE_TOPIC_PARTITIONS: 75,
    SHARE_GROUP_DESCRIBE: 77,
    STREAMS_GROUP_DESCRIBE: 89,
    DESCRIBE_SHARE_GROUP_OFFSETS: 90,
}


def _plain(name: str, versions: tuple[int, int], fields: tuple[FieldSchema, ...]) -> MessageSchema:
    return MessageSchema(1, name, versions, None, (StructSchema(name, fields),))


# Version 1 of both requests (Kafka 1.0, KIP-152; 2.2, KIP-368) is sufficient, and every broker supports it.
_SASL: Final = {
    SASL_HANDSHAKE: (
        _plain("SaslHandshakeRequest", (1, 1), (FieldSchema("mechanism", "mechanism", "string", (1, 1)),)),
        _plain(
            "SaslHandshakeResponse",
            (1, 1),
            (
                FieldSchema("error_code", "errorCode", "int16", (1, 1)),
                FieldSchema("mechanisms", "mechanisms", "[]string", (1, 1)),
            ),
        ),
    ),
    SASL_AUTHENTICATE: (
        _plain("SaslAuthenticateRequest", (0, 1), (FieldSchema("auth_bytes", "authBytes", "bytes", (0, 1)),)),
        _plain(
            "SaslAuthenticateResponse",
            (0, 1),
            (
                FieldSchema("error_code", "errorCode", "int16", (0, 1)),
                FieldSchema("error_message", "errorMessage", "string", (0, 1), nullable=(0, 1)),
                FieldSchema("auth_bytes", "authBytes", "bytes", (0, 1)),
                FieldSchema("session_lifetime_ms", "sessionLifetimeMs", "int64", (1, 1)),
            ),
        ),
    ),
}


@cache
def exchange(name: str) -> Exchange:
    """The request with this name. Raises ModuleNotFoundError if the generated package is not installed."""
    request, response = _SASL.get(name) or (_schema(f"{name}Request"), _schema(f"{name}Response"))
    assert request.versions is not None
    first, last = request.versions
    flexible_from = None if request.flexible is None else request.flexible[0]
    api = Api(_KEYS[name], name, request.name, response.name, range(first, last + 1), flexible_from)
    return Exchange(api, request, response)


@cache
def _schema(name: str) -> MessageSchema:
    schema = getattr(import_module(f"{PACKAGE}.schemas.rpc"), upper_snake_case(name))
    assert isinstance(schema, MessageSchema)
    return schema


@cache
def metadata_records() -> Mapping[str, RecordSchema]:
    """The records of a metadata log by name, with the schemas from the generated package."""
    records = import_module(f"{PACKAGE}.schemas.cluster_metadata").RECORDS
    return {each.name: each for each in records.values()}


def encoded(asked: Exchange, version: int, correlation: int, client_id: str, fields: dict[str, Any]) -> bytes:
    """The bytes of a request with its header, without the size prefix."""
    header = {
        "request_api_key": asked.api.key,
        "request_api_version": version,
        "correlation_id": correlation,
        "client_id": client_id,
    }
    head = walker.encode(_schema("RequestHeader"), header, asked.api.request_header_version(version))
    return head + walker.encode(asked.request, fields, version)


def decoded(asked: Exchange, version: int, data: bytes) -> tuple[int, dict[str, Any]]:
    """The correlation id and the fields of a response. Raises DecodeError."""
    header_version = asked.api.response_header_version(version)
    header, end = walker.decode(_schema("ResponseHeader"), data, header_version, lenient=True, allow_trailing=True)
    fields, _ = walker.decode(asked.response, data[end:], version, lenient=True)
    return header["correlation_id"], fields
