"""Random messages of any generated class, made from its schema by a seeded generator: the same seed makes the same
message.

Hypothesis shrinks failing examples, and tests/codecs uses it. This module is faster: fast enough for all messages of a
Kafka release in all versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from kafka_records_runtime.kafka.uuids import ZERO_UUID, Uuid
from kafka_records_runtime.schema import FieldSchema, MessageSchema, covers
from kafka_records_runtime.wire.primitives import INTEGERS

_TEXTS: Final = ("", "a", "topic-1", "Grüße", "日本語", "\N{GRINNING FACE}\x00", "x" * 127, "y" * 128, "z" * 300)
_RAW: Final = (b"", b"\x00", b"\xff\xfe", bytes(range(126)), bytes(128), bytes(300))
_FLOATS: Final = (0.0, 1.5, -1e300, 5e-324)
_LONG_ARRAY: Final = 130
"""The number of elements of an array whose compact count takes two bytes."""


def random_message(cls: Any, version: int, random: Random, *, plain: bool) -> Any:
    """A message of a generated class with values for all fields of `version`; other fields keep their defaults.

    A `plain` message can be converted to Kafka's JSON form and back: that form has neither unknown tagged fields nor
    the bytes of `records`.
    """
    codec = cls.CODEC
    return _Maker(codec.schema, codec.classes, version, random, plain).struct(codec.schema.root.name)


class _Maker:
    def __init__(
        self, schema: MessageSchema, classes: Mapping[str, Any], version: int, random: Random, plain: bool
    ) -> None:
        self._schema = schema
        self._classes = classes
        self._version = version
        self._random = random
        self._plain = plain

    def struct(self, name: str) -> Any:
        fields = self._schema.struct(name).fields
        members: dict[str, Any] = {}
        for field in fields:
            left_out = covers(field.tagged, self._version) and self._random.random() < 0.3
            if covers(field.versions, self._version) and not left_out:
                members[field.name] = self._field(field)
        if self._schema.is_flexible(self._version) and not self._plain and self._random.random() < 0.5:
            known = max((field.tag for field in fields if field.tag is not None), default=-1)
            members["unknown_tagged_fields"] = self._unknown_tags(known + 1)
        return self._classes[name](**members)

    def _field(self, field: FieldSchema) -> Any:
        if covers(field.nullable, self._version) and self._random.random() < 0.2:
            return None
        if not field.is_array:
            return self._single(field)
        longest = 3 if field.is_struct or self._random.random() < 0.95 else _LONG_ARRAY
        count = longest if longest == _LONG_ARRAY else self._random.randint(0, longest)
        return tuple(self._single(field) for _ in range(count))

    def _single(self, field: FieldSchema) -> Any:
        if field.is_struct:
            return self.struct(field.base)
        random = self._random
        if field.base in INTEGERS:
            _, lowest, highest = INTEGERS[field.base]
            return random.choice((0, 1, lowest, highest, random.randint(lowest, highest)))
        match field.base:
            case "bool":
                return random.random() < 0.5
            case "float64":
                return random.choice((*_FLOATS, random.uniform(-1e6, 1e6)))
            case "uuid":
                return random.choice((ZERO_UUID, Uuid(random.randbytes(16))))
            case "string":
                return random.choice(_TEXTS)
            case "records":
                return b"" if self._plain else random.choice(_RAW)
            case _:
                return random.choice((*_RAW, random.randbytes(9)))

    def _unknown_tags(self, lowest: int) -> tuple[tuple[int, bytes], ...]:
        tags = self._random.sample(range(lowest, lowest + 300), self._random.randint(1, 3))
        return tuple((tag, self._random.choice(_RAW)) for tag in sorted(tags))
