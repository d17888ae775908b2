"""Messages. Two bytes of an input choose the message, one its version; the checks of `tools/fuzz.py` read the
others."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from kafka_records import registry
from tools import fuzz
from tools.guided.target import Target
from tools.hostile import watched

_NAMES: Final = tuple(sorted(registry.MESSAGES))


@cache
def _reader(number: int) -> Any:
    return fuzz.target(registry.message_class(_NAMES[number]))


def read(data: bytes) -> None:
    """Read a message in every way. Raises RuleBroken."""
    if len(data) > 2:
        reader = _reader(struct.unpack_from(">H", data)[0] % len(_NAMES))
        with watched():
            reader(data[2:])


def described(data: bytes) -> dict[str, Any]:
    """An input as a line of vectors."""
    name = _NAMES[struct.unpack_from(">H", data.ljust(3, b"\0"))[0] % len(_NAMES)]
    versions = registry.message_class(name).VERSIONS
    number = data[2] if len(data) > 2 else 0
    return {"message": name, "version": versions[number % len(versions)], "hex": data[3:].hex()}


def _seeds() -> Iterator[bytes]:
    for number, name in enumerate(_NAMES):
        for each in fuzz.starting_inputs(registry.message_class(name))[:2]:
            yield struct.pack(">H", number) + each


TARGET: Final = Target(lambda: list(_seeds()), read)
