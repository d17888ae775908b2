"""Determines which fields of records are secrets. Code that prints records hides secrets unless the user requests them.

Kafka's own tools hide the keys of SCRAM credentials and the values of sensitive configs (`RecordRedactor`). The id of a
delegation token is also hidden here, because the token can be computed from it and the cluster's secret key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kafka_records_runtime.kafka.config_names import REDACTED, RESOURCE_TYPES, is_sensitive
from kafka_records_runtime.text.casing import snake_case

_FIELDS: Final = {
    "UserScramCredentialRecord": frozenset({"salt", "storedKey", "serverKey"}),
    "DelegationTokenRecord": frozenset({"tokenId"}),
    "RemoveDelegationTokenRecord": frozenset({"tokenId"}),
}
_CONFIG: Final = "ConfigRecord"
_VALUE: Final = frozenset({"value"})
_NONE: Final[frozenset[str]] = frozenset()

MAY_HOLD_SECRETS: Final = frozenset({*_FIELDS, _CONFIG})
"""The messages with a field that may be a secret. If such a message cannot be decoded, any of its bytes may be
secret."""


_CONFIG_FIELDS: Final = frozenset({"resourceType", "name", "value"})


def may_hold_secrets(message: str, fields: Iterable[str]) -> bool:
    """Whether a message has fields that may be secrets.

    `fields` are the names of all its fields in snake case. They matter because a user's own package may have a message
    with the same name.
    """
    named = frozenset(fields)
    if message == _CONFIG:
        return named >= {snake_case(name) for name in _CONFIG_FIELDS}
    return any(snake_case(name) in named for name in _FIELDS.get(message, _NONE))


def secret_columns(message: str) -> frozenset[str]:
    """The fields of a message that are secrets in every value, by name in snake case."""
    return frozenset(map(snake_case, _FIELDS.get(message, _NONE)))


def is_secret_config(resource_type: int, name: str) -> bool:
    """Whether the value in a ConfigRecord is a secret."""
    return is_sensitive(RESOURCE_TYPES.get(resource_type, ""), name)


def secret_fields(message: str, value: Mapping[str, Any]) -> frozenset[str]:
    """The JSON names of the fields of a decoded message that are secrets. `value` also has JSON names."""
    if message != _CONFIG:
        return _FIELDS.get(message, _NONE)
    if not value.keys() >= _CONFIG_FIELDS:
        return _NONE  # this is a user's own message with the same name
    is_secret = value["value"] is not None and is_secret_config(value["resourceType"], value["name"])
    return _VALUE if is_secret else _NONE


def without_secrets(message: str, data: dict[str, Any]) -> dict[str, Any]:
    """The JSON form of a message with `(redacted)` in place of each secret, and without unknown fields."""
    hidden = secret_fields(message, data)
    if not hidden:
        return data
    return {
        name: REDACTED if name in hidden else value for name, value in data.items() if name != "unknown_tagged_fields"
    }
