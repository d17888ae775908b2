"""The few requests a reader sends, by the schemas of the generated package that knows them.

This package knows no message. Which fields a Fetch has in which version says the generated package, as it does for the
records; it is looked up by its name when the first request is sent.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple

from kafka_records_runtime import walker
from kafka_records_runtime.schema import FieldSchema, MessageSchema, StructSchema

PACKAGE: Final = "kafka_records"
"""The package with the schemas of Kafka's protocol."""


class Api(NamedTuple):
    """A request and its response."""

    name: str
    key: int
    request: MessageSchema
    response: MessageSchema

    @property
    def versions(self) -> range:
        """The versions that the schemas have."""
        assert self.request.versions is not None
        first, last = self.request.versions
        return range(first, last + 1)


API_VERSIONS: Final = "ApiVersions"
FETCH: Final = "Fetch"
LIST_OFFSETS: Final = "ListOffsets"
METADATA: Final = "Metadata"
SASL_AUTHENTICATE: Final = "SaslAuthenticate"
SASL_HANDSHAKE: Final = "SaslHandshake"

_KEYS: Final = {
    FETCH: 1,
    LIST_OFFSETS: 2,
    METADATA: 3,
    SASL_HANDSHAKE: 17,
    API_VERSIONS: 18,
    SASL_AUTHENTICATE: 36,
}


def _plain(name: str, versions: tuple[int, int], fields: tuple[FieldSchema, ...]) -> MessageSchema:
    return MessageSchema(1, name, versions, None, (StructSchema(name, fields),))


# Version 1 of both (Kafka 1.0, KIP-152; 2.2, KIP-368) is all it takes, and every broker has it.
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
def api(name: str) -> Api:
    """The API of that name. Raises ModuleNotFoundError where the generated package is not installed."""
    if name in _SASL:
        return Api(name, _KEYS[name], *_SASL[name])
    request, response = _schema(f"{name}Request"), _schema(f"{name}Response")
    return Api(name, _KEYS[name], request, response)


@cache
def _schema(name: str) -> MessageSchema:
    schema = getattr(import_module(f"{PACKAGE}.schemas.rpc"), re.sub("(?<=[a-z])(?=[A-Z])", "_", name).upper())
    assert isinstance(schema, MessageSchema)
    return schema


def encoded(asked: Api, version: int, correlation: int, client_id: str, fields: dict[str, Any]) -> bytes:
    """The bytes of a request with its header, without the size before it."""
    header = {
        "request_api_key": asked.key,
        "request_api_version": version,
        "correlation_id": correlation,
        "client_id": client_id,
    }
    # `ApiKeys.requestHeaderVersion`
    head = walker.encode(_schema("RequestHeader"), header, 2 if asked.request.is_flexible(version) else 1)
    return head + walker.encode(asked.request, fields, version)


def decoded(asked: Api, version: int, data: bytes) -> tuple[int, dict[str, Any]]:
    """The correlation id and the fields of a response. Raises DecodeError."""
    # `ApiKeys.responseHeaderVersion`: who asks for versions does not know yet what the broker can (KIP-511).
    header_version = 1 if asked.request.is_flexible(version) and asked.name != API_VERSIONS else 0
    header, end = walker.decode(_schema("ResponseHeader"), data, header_version, lenient=True, allow_trailing=True)
    fields, _ = walker.decode(asked.response, data[end:], version, lenient=True)
    return header["correlation_id"], fields
