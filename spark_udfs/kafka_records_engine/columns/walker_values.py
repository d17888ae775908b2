"""Converts values that the schema walker returns, for use in columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kafka_records_engine.columns.type_mapping import TypeMapping, mapped
from kafka_records_runtime.schema import MessageSchema
from kafka_records_runtime.schema.layout import UNKNOWN_TAGS

ToPlain = Callable[[Any], Any]
"""A function that converts values; None in a mapping if the values need no conversion."""


def _plain_array(item: ToPlain | None) -> ToPlain | None:
    if item is None:
        return None
    return lambda values: None if values is None else [item(value) for value in values]


def _plain_struct(fields: list[tuple[str, bool, ToPlain | None]]) -> ToPlain | None:
    changed = [(name, plain) for name, _, plain in fields if plain is not None]
    if not changed:
        return None

    def convert(value: Any) -> Any:
        if value is None:
            return None
        copy = dict(value)
        for name, plain in changed:
            if name in copy:
                copy[name] = plain(copy[name])
        return copy

    return convert


def _plain_tags(tags: Any) -> Any:
    return [{"tag": tag, "data": data} for tag, data in tags]


def _mapping(tags: ToPlain | None) -> TypeMapping[ToPlain | None]:
    return TypeMapping(
        primitive=lambda name: str if name == "uuid" else None, array=_plain_array, struct=_plain_struct, tags=tags
    )


_PLAIN_VALUES: Final = _mapping(None)
_PLAIN_VALUES_WITH_TAGS: Final = _mapping(_plain_tags)


def plain_values(message: MessageSchema, unknown_tags: bool = False) -> ToPlain:
    """A function that converts a decoded value of `message` (a tree of dicts, from `walker.decode`) for a column.

    Uuids become text, and with `unknown_tags` the (tag, bytes) pairs become dicts. Values without either are returned
    unchanged.
    """
    return mapped(message, _PLAIN_VALUES_WITH_TAGS if unknown_tags else _PLAIN_VALUES) or _unchanged


def _unchanged(value: Any) -> Any:
    return value


def holds_unknown_tags(value: Any) -> bool:
    """Whether a decoded value (a tree of dicts, as returned by `walker.decode`) has unknown tagged fields at any
    depth."""
    if isinstance(value, dict):
        return bool(value.get(UNKNOWN_TAGS)) or any(map(holds_unknown_tags, value.values()))
    return isinstance(value, tuple) and any(map(holds_unknown_tags, value))
