"""Checks that the fast paths of a generated class and the schema walker agree."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import strategies as st

from kafka_records_runtime.errors import DecodeError, EncodeError
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.wire import walker
from tests.codecs.strategies import messages


def check_round_trip(cls: Any, data: st.DataObject) -> None:
    """A message comes back from its bytes and from its JSON form, and both codecs write the same bytes."""
    version = data.draw(st.sampled_from(cls.VERSIONS))
    message = data.draw(messages(cls, version))
    encoded = message.encode(version)
    schema = cls.CODEC.schema
    assert encoded == walker.encode(schema, message, version)
    assert cls.decode(encoded, version) == message
    assert walker.decode(schema, encoded, version, classes=cls.CODEC.classes) == (message, len(encoded))
    assert cls.from_json(message.to_json(version), version) == message


def check_mutants(cls: Any, data: st.DataObject) -> None:
    """The fast path and the walker have the same result for broken bytes: the same value or the same error."""
    version = data.draw(st.sampled_from(cls.VERSIONS))
    mutant = _mutate(data.draw(messages(cls, version)).encode(version), data)
    schema, classes = cls.CODEC.schema, cls.CODEC.classes
    assert _decoded(lambda: cls.decode(mutant, version)) == _decoded(
        lambda: walker.decode(schema, mutant, version, classes=classes)[0]
    )
    assert _decoded(lambda: cls.decode_prefix(mutant, version)) == _decoded(
        lambda: walker.decode(schema, mutant, version, classes=classes, allow_trailing=True)
    )


def check_prefixes(cls: Any, data: st.DataObject) -> None:
    """Every prefix of a message is refused with a place inside it."""
    version = data.draw(st.sampled_from(cls.VERSIONS))
    encoded = data.draw(messages(cls, version)).encode(version)
    for size in _sizes(len(encoded), data):
        with pytest.raises(DecodeError) as caught:
            cls.decode(encoded[:size], version)
        error = caught.value
        assert 0 <= error.offset <= size
        assert error.path
        assert error.version == version
        assert str(error).startswith(f"{error.message_name} v{version} at byte {error.offset}: ")


def check_other_versions(cls: Any, data: st.DataObject) -> None:
    """Writing a message in another version than it was made for results in the same bytes or the same error."""
    made_for, written_as = data.draw(st.sampled_from(cls.VERSIONS)), data.draw(st.sampled_from(cls.VERSIONS))
    message = data.draw(messages(cls, made_for))
    assert _encoded(lambda: message.encode(written_as)) == _encoded(
        lambda: walker.encode(cls.CODEC.schema, message, written_as)
    )


def check_odd_values(cls: Any, data: st.DataObject) -> None:
    """A value of another type than the field's results in the same bytes or the same error in both codecs."""
    version = data.draw(st.sampled_from(cls.VERSIONS))
    if not cls.__struct_fields__:
        return
    members = {data.draw(st.sampled_from(cls.__struct_fields__)): data.draw(st.sampled_from(ODD_VALUES))}
    message = cls(**members)
    assert _encoded(lambda: message.encode(version)) == _encoded(
        lambda: walker.encode(cls.CODEC.schema, message, version)
    )


ODD_VALUES: tuple[Any, ...] = (
    *(True, False, 0, -1, 1.5, 2**70, math.nan, None),
    *("", "x", "\ud800", b"", b"x", bytearray(b"x" * 16), bytes(16), Uuid(bytes(16)), UUID(int=0), (UUID(int=1),)),
    *((), [], ["x"], (1,), (True,), (b"x",), (bytes(16),), (None,), {}, {"a": 1}, {1}, range(3), object()),
    *(((3, b"x"),), ((5, b"x"), (4, b"y")), ((True, b""),)),
)

CHECKS = (check_round_trip, check_mutants, check_prefixes, check_other_versions, check_odd_values)


def _mutate(encoded: bytes, data: st.DataObject) -> bytes:
    mutant = bytearray(encoded)
    for _ in range(data.draw(st.integers(1, 3))):
        if mutant:
            at = data.draw(st.integers(0, len(mutant) - 1))
            mutant[at] = data.draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF, mutant[at] ^ 1]))
    return bytes(mutant[: len(mutant) - data.draw(st.integers(0, 3))])


def _decoded(decode: Callable[[], Any]) -> str:
    try:
        return f"value {decode()!r}"
    except DecodeError as error:
        return f"{type(error).__name__}: {error}"


def _encoded(encode: Callable[[], bytes]) -> str:
    try:
        return encode().hex()
    except EncodeError as error:
        return f"{type(error).__name__}: {error}"


def _sizes(length: int, data: st.DataObject) -> list[int]:
    """The sizes of all proper prefixes of a short message, and of some of a long one."""
    if length <= 64:
        return list(range(length))
    middle = data.draw(st.lists(st.integers(16, length - 17), max_size=16, unique=True))
    return [*range(16), *sorted(middle), *range(length - 16, length)]
