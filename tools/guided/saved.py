"""Files of saved rows. The first byte of an input chooses the format; the others are the file."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from kafka_records_engine.log.files.source_error import LogSourceError
from tests.sources.saved_mutants import ORIGINALS, original
from tests.sources.saved_mutants import read as read_rows
from tools.guided.target import Target, scratch

_NAMES: Final = tuple(ORIGINALS)


def read(data: bytes) -> None:
    """Read a file, and check that its rows are in order. Raises AssertionError, or any error that a damaged file must
    not cause."""
    if data:
        read_file(*file_of(data))


def file_of(data: bytes) -> tuple[str, bytes]:
    """The name and the content of an input's file."""
    name = _NAMES[data[0] % len(_NAMES)]
    return f"{name}{ORIGINALS[name].ending}", data[1:]


def read_file(name: str, content: bytes) -> None:
    """`read` of a file."""
    path = scratch() / name
    path.write_bytes(content)
    try:
        with suppress(LogSourceError):
            read_rows(path, "nested" in name)
    finally:
        path.unlink()


TARGET: Final = Target(lambda: [bytes([number]) + original(name) for number, name in enumerate(_NAMES)], read)
