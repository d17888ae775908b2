"""The functions that are fuzzed, the initial inputs, and the arguments that an input represents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from random import Random
from typing import Any, Final

from kafka_records.registry import MESSAGES, message_class
from kafka_records_engine.spark.jvm import schemas_text
from kafka_records_runtime.records.framing import framed
from kafka_records_runtime.text.casing import snake_case
from tools.random_messages import random_message

_PACKAGE: Final = "kafka_records"
_WITH_KEYS: Final = ("consumer_offsets", "share_group_state", "transaction_state")
"""The topics whose records have keys. Records of other topics are read from their values."""
_NULL: Final = 0xFF
_DECODE: Final = "decode_"
_FROM: Final = "from_"


@cache
def names() -> tuple[str, ...]:
    """The functions, in the order of the numbers at the start of inputs."""
    topics, messages, folder = set(), set(), ""
    for line in schemas_text(_PACKAGE).splitlines():
        match line.split("\t"):
            case ["folder", place, *_]:
                folder = place.replace("/", "_")
            case ["record", *_]:
                topics.add(_DECODE + folder)
            case ["message", _, function, *_]:
                messages.add(_FROM + function)
    return (*sorted(topics), *sorted(messages))


def seeds() -> Iterator[bytes]:
    """One input for each version of each message and record, the same in every run."""
    random = Random("functions")
    by_function = {_FROM + snake_case(name): message_class(name) for name in MESSAGES}
    for number, name in enumerate(names()):
        prefix = number.to_bytes(2, "big")
        if name in by_function:
            cls = by_function[name]
            type_ = getattr(cls, "RECORD_TYPE", None)
            is_key = type_ is not None and cls.__name__.endswith("Key")
            for version in cls.VERSIONS:
                message = random_message(cls, version, random, plain=False).encode(version)
                yield prefix + framed(type_ if is_key and type_ is not None else version, message)
        elif name.removeprefix(_DECODE) in _WITH_KEYS:
            yield from (prefix + pair for pair in _pairs(name.removeprefix(_DECODE), random))


def _pairs(topic: str, random: Random) -> Iterator[bytes]:
    records: Mapping[int, Any] = import_module(f"{_PACKAGE}.schemas.{topic}").RECORDS
    for number, schema in records.items():
        key = framed(number, random_message(message_class(schema.key.name), 0, random, plain=False).encode(0))
        if len(key) >= _NULL:
            continue
        yield bytes([len(key)]) + key
        cls = message_class(schema.value.name)
        for version in cls.VERSIONS:
            value = framed(version, random_message(cls, version, random, plain=False).encode(version))
            yield bytes([len(key)]) + key + value


def described(data: bytes) -> dict[str, str | None]:
    """An input as a line of fuzzed-functions.jsonl.gz: the function, and its arguments in hex."""
    name, rest = names()[int.from_bytes(data[:2], "big") % len(names())], data[2:]
    if name.startswith(_FROM):
        return {"function": name, "hex": rest.hex()}
    if rest[0] == _NULL:
        key, value = None, rest[1:]
    else:
        key, value = rest[1 : 1 + rest[0]], rest[1 + rest[0] :]
    return {"function": name, "key": None if key is None else key.hex(), "value": value.hex() or None}
