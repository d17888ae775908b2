"""Records and messages for comparing decoders: random ones, and damaged copies."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from kafka_records_runtime.records.framing import framed
from kafka_records_runtime.text.casing import snake_case
from tools.hostile import mutated
from tools.random_messages import random_message

TOPICS: Final = ("consumer_offsets", "share_group_state", "transaction_state")
_UNFRAMED: Final = (None, b"", b"\x00", b"\x7f\x00nobody", b"\xff\xffnobody")


@dataclass(frozen=True)
class Raw:
    """A raw row, the input of the decoders."""

    key: bytes | None
    value: bytes | None
    control: str | None = None


def records_of(topic: str) -> Any:
    """The schemas of a topic's records, by type."""
    return importlib.import_module(f"kafka_records.schemas.{topic}").RECORDS


def raw_records(topic: str, count: int, seed: int, package: str = "kafka_records", schemas: Any = None) -> list[Raw]:
    """Records of all types and versions of a topic: valid, damaged in key or value, unframed, and markers."""
    random = Random(f"{topic} {seed}")
    schemas = schemas or records_of(topic)
    made = []
    for _ in range(count):
        number = random.choice(sorted(schemas))
        schema = schemas[number]
        module = importlib.import_module(".".join(filter(None, (package, topic, snake_case(schema.name)))))
        key: bytes | None = framed(number, _encoded(getattr(module, schema.key.name), 0, random))
        version = random.randint(*schema.value.versions)
        value: bytes | None = framed(version, _encoded(getattr(module, schema.value.name), version, random))
        kind = random.random()
        if kind < 0.1:
            value = None
        elif kind < 0.5:
            assert value is not None
            value = mutated(value, random)
        elif kind < 0.7:
            assert key is not None
            key = mutated(key, random)
        elif kind < 0.75:
            key = random.choice(_UNFRAMED)
        made.append(Raw(key, value, "commit" if kind > 0.99 else None))
    return made


def _encoded(cls: Any, version: int, random: Random) -> bytes:
    encoded: bytes = random_message(cls, version, random, plain=False).encode(version)
    return encoded


def messages_of(cls: Any, count: int, seed: int, prefix: int | None = None) -> list[bytes]:
    """Messages of a class, each after an int16 (`prefix`, or else the version); half of them damaged."""
    random = Random(f"{cls.__name__} {seed}")
    made = []
    for index in range(count):
        version = random.choice(cls.VERSIONS)
        whole = framed(version if prefix is None else prefix, _encoded(cls, version, random))
        made.append(mutated(whole, random) if index % 2 else whole)
    return made
