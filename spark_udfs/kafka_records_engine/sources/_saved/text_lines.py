"""Reads lines of text from files as UTF-8, for any file encoding, without a byte order mark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from kafka_records_engine.log.files.places import Place
from kafka_records_engine.sources._saved.saved_formats import open_stream

BLOCK: Final = 8 * 1024 * 1024
SAMPLED_LINES: Final = 1000
"""The number of lines at the start of a file from which columns and separator are determined."""

_PIECE: Final = 1024 * 1024
_UTF8: Final = b"\xef\xbb\xbf"
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")


def open_text(place: Place) -> Any:
    """The text of a file as a stream of UTF-8 without a byte order mark. UTF-16 with a byte order mark, as written by
    Excel and PowerShell, is converted. Other bytes that are not UTF-8 stay unchanged. Raises OSError."""
    with open_stream(place) as file:
        start = bytes(file.read(len(_UTF8)))
    file = open_stream(place)
    if start.startswith(_UTF16):
        return _without_mark(pa.transcoding_input_stream(file, "utf-16", "utf-8"), b"")
    return _without_mark(file, _UTF8) if start == _UTF8 else file


def _without_mark(file: Any, mark: bytes) -> Any:
    file.read(len(mark))
    return file


def first_lines(place: Place) -> list[bytes]:
    """The first lines of a text, including blank ones."""
    data = more = b""
    with open_text(place) as file:
        while data.count(b"\n") < SAMPLED_LINES and len(data) < BLOCK:
            more = bytes(file.read(_PIECE))
            if not more:
                break
            data += more
    lines = data.split(b"\n")
    if more:
        lines = lines[:-1] or lines
    return lines[:SAMPLED_LINES]


def blocks_of_lines(place: Place) -> Iterator[bytes]:
    """Split a text into pieces of whole lines. Each piece has about BLOCK bytes, or is a single longer line."""
    left = b""
    with open_text(place) as file:
        while more := bytes(file.read(BLOCK)):
            end = more.rfind(b"\n") + 1
            if end:
                yield left + more[:end]
                left = more[end:]
            else:
                left += more
    if left.strip():
        yield left
