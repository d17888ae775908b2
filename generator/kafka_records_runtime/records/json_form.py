"""Records as JSON in the form of Kafka's console formatters, plus the bytes that the formatters omit.

The formatters (`CoordinatorRecordMessageFormatter`) print nothing for a record of an unknown type or value version.
Here and in the output of `kafka-records dump`, such a key or value is shown in hex: `{"type": 9, "hex": "0009..."}`.

In metadata framing, the key is null and the value contains the type: `{"type": 2, "version": 0, "data": {...}}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar, cast

from kafka_records_runtime.errors import JsonError
from kafka_records_runtime.records.classes import (
    JsonRecord,
    KnownRecord,
    UnknownApiKeyRecord,
    UnknownTypeRecord,
    UnknownVersionRecord,
)
from kafka_records_runtime.records.framing import (
    COORDINATOR,
    KEY_VERSION,
    METADATA,
    Framing,
    framed,
    numbers_of_frame,
    prefix_of,
)
from kafka_records_runtime.records.reading import CodecRecordType, RecordType, read_record

K = TypeVar("K", bound=KnownRecord)

_NUMBERS: Final = {"key": "type", "value": "version"}
"""The JSON names of the numbers at the start of a key and a value."""


# -- writing -----------------------------------------------------------------------------------------------------------


def key_in_hex(key: bytes) -> dict[str, Any]:
    """A key shown as bytes. `type` is null if the key has too few bytes."""
    return {"type": prefix_of(key), "hex": key.hex()}


def value_in_hex(value: bytes, framing: Framing = COORDINATOR) -> dict[str, Any]:
    """A value shown as bytes. Numbers are null if there are too few bytes."""
    if framing == METADATA:
        number, version = numbers_of_frame(value)
        return {"type": number, "version": version, "hex": value.hex()}
    return {"version": prefix_of(value), "hex": value.hex()}


def to_json(record: JsonRecord) -> dict[str, Any]:
    """See `JsonRecord.to_json`."""
    value: dict[str, Any] | None = None
    key: dict[str, Any] | None
    match record:
        case UnknownTypeRecord():
            key = key_in_hex(record.key)
            value = None if record.value is None else value_in_hex(record.value)
        case UnknownApiKeyRecord():
            key = None
            value = value_in_hex(record.value, METADATA)
        case UnknownVersionRecord():
            key = _key(record)
            value = value_in_hex(record.value, METADATA if key is None else COORDINATOR)
        case _:
            key = _key(record)
            typed: Any = record
            if typed.value is not None:
                version = typed.VALUE_CLASS.VERSIONS[-1] if record.value_version is None else record.value_version
                value = {"version": version, "data": typed.value.to_json(version)}
                if key is None:
                    value = {"type": typed.record_type, **value}
    shown: dict[str, Any] = {"key": key, "value": value}
    if record.raw_key is not None or record.raw_value is not None:
        raw_key, raw_value = (None if each is None else each.hex() for each in (record.raw_key, record.raw_value))
        shown["raw"] = {"key": raw_key, "value": raw_value}
    return shown


def _key(record: Any) -> dict[str, Any] | None:
    if record.key is None:
        return None
    return {"type": record.record_type, "data": record.key.to_json(KEY_VERSION)}


# -- reading -----------------------------------------------------------------------------------------------------------


def from_json(data: Any, types: Mapping[int, Any], retired: Mapping[int, str], framing: Framing = COORDINATOR) -> Any:
    """The record in `data`, of one of the `types` (`CodecRecordType`) or an unknown one. Raises JsonError."""
    members = _members(data, "", ("key", "value"), ("raw",))
    if "raw" in members:
        return _from_raw(members, types, retired, framing)
    if framing == METADATA:
        return _from_metadata(members, types, retired)
    number = _number("key", members["key"])
    value = members["value"]
    if "hex" in members["key"]:
        key_bytes = _framed_bytes("key", members["key"])
        if value is not None and "hex" not in value:
            raise _wrong("value", "is not in hex, but the key is: give both as data or both as hex")
        return read_record(types, key_bytes, None if value is None else _framed_bytes("value", value), retired)
    if number not in types:
        raise _wrong("key.type", f"is {number}, an unknown record type: give key and value as hex")
    cls = types[number].record
    key = cls.KEY_CLASS.from_json(_members(members["key"], "key", ("type", "data"))["data"], KEY_VERSION)
    if value is None:
        return cls(key, None)
    version = _number("value", value)
    if "hex" in value:
        return read_record(types, framed(number, key.encode(KEY_VERSION)), _framed_bytes("value", value), retired)
    return cls(key, _message(cls, value, version, ("version", "data")), value_version=version)


def _from_metadata(members: Mapping[str, Any], types: Mapping[int, Any], retired: Mapping[int, str]) -> Any:
    if members["key"] is not None:
        raise _wrong("key", "is not null, but the records of this topic have no key")
    value = members["value"]
    number, version = _number("value", value, "type"), _number("value", value)
    if "hex" in value:
        found = _bytes("value.hex", _members(value, "value", ("type", "version", "hex"))["hex"])
        if numbers_of_frame(found) != (number, version):
            raise _wrong("value.hex", f"is not a value of type {number} and version {version}")
        return read_record(types, None, found, retired, METADATA)
    if number not in types:
        raise _wrong("value.type", f"is {number}, an unknown record type: give the value as hex")
    cls = types[number].record
    return cls(_message(cls, value, version, ("type", "version", "data")), value_version=version)


def _message(cls: Any, value: Any, version: int, names: tuple[str, ...]) -> Any:
    """The message in `value` for a record of the class `cls`. `value` must have the members `names`."""
    known = cls.VALUE_CLASS.VERSIONS
    if version not in known:
        raise _wrong(
            "value.version",
            f"is {version}, but only versions {known[0]} to {known[-1]} of {cls.name} are known: give the value as hex",
        )
    return cls.VALUE_CLASS.from_json(_members(value, "value", names)["data"], version)


def known_from_json(cls: type[K], data: Any) -> K:
    """The record of type `cls` in `data`. Raises JsonError."""
    members = _members(data, "", ("key", "value"), ("raw",))
    framing: Framing = METADATA if cls.KEY_CLASS is None else COORDINATOR
    part = "value" if framing == METADATA else "key"
    number = _number(part, members[part], "type")
    if number != cls.record_type:
        raise _wrong(f"{part}.type", f"is {number}, but {cls.name} has the record type {cls.record_type}")
    record = from_json(data, {cls.record_type: CodecRecordType(cls.__module__, cls.__name__)}, {}, framing)
    if not isinstance(record, cls):
        raise _wrong("value.version", f"is {record.value_version}, an unknown version of {cls.name}")
    return record


def _from_raw(
    members: Mapping[str, Any], types: Mapping[int, RecordType[Any]], retired: Mapping[int, str], framing: Framing
) -> Any:
    raw = _members(members["raw"], "raw", ("key", "value"))
    key = None if raw["key"] is None and framing == METADATA else _bytes("raw.key", raw["key"])
    value = None if raw["value"] is None else _bytes("raw.value", raw["value"])
    record = read_record(types, key, value, retired, framing)
    if to_json(record) != members:
        raise _wrong("raw", "does not match the bytes of key and value: leave it out to use key and value as they are")
    return record


def _members(data: Any, path: str, needed: tuple[str, ...], optional: tuple[str, ...] = ()) -> Mapping[str, Any]:
    """Check that `data` is an object with the members `needed`, and no others except those in `optional`."""
    if not isinstance(data, Mapping):
        raise _wrong(path, f"is of type {type(data).__name__}, expected an object")
    for name in needed:
        if name not in data:
            raise _wrong(f"{path}.{name}".lstrip("."), "is missing")
    for name in data:
        if name not in needed and name not in optional:
            raise _wrong(path, f"has the key {name!r}, which is not one of {', '.join((*needed, *optional))}")
    return data


def _number(part: str, data: Any, name: str = "") -> int:
    """The number in a key or value, which is an object with that number and `data` or `hex`."""
    name = name or _NUMBERS[part]
    if not isinstance(data, Mapping):
        raise _wrong(part, f"is of type {type(data).__name__}, expected an object")
    if "data" not in data and "hex" not in data:
        raise _wrong(part, "has neither data nor hex")
    number = data.get(name)
    if (not isinstance(number, int) or isinstance(number, bool)) and not (number is None and "hex" in data):
        raise _wrong(f"{part}.{name}", "is missing, or is not a whole number")
    return cast(int, number)


def _framed_bytes(part: str, data: Any) -> bytes:
    """The bytes of a key or value that is shown in hex."""
    name = _NUMBERS[part]
    members = _members(data, part, (name, "hex"))
    found = _bytes(f"{part}.hex", members["hex"])
    if prefix_of(found) != members[name]:
        raise _wrong(f"{part}.hex", f"starts with {name} {prefix_of(found)}, but {part}.{name} is {members[name]}")
    return found


def _bytes(path: str, data: Any) -> bytes:
    try:
        return bytes.fromhex(data)
    except (TypeError, ValueError):
        raise _wrong(path, "is not a hexadecimal string") from None


def _wrong(path: str, detail: str) -> JsonError:
    return JsonError("record", None, path, detail)
