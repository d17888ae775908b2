"""Decodes malformed UTF-8 in the same way as Java.

`new String(bytes, UTF_8)` replaces malformed input with U+FFFD, like Python's `errors="replace"`, but not always with
the same number of replacements: an encoded surrogate (`ed a0 80`) becomes one U+FFFD in Java and three in Python. Kafka
reads every string this way.
"""

from __future__ import annotations

from typing import Final

REPLACEMENT: Final = "\ufffd"


def decode_replacing(data: bytes) -> str:
    """The text that Java's UTF-8 decoder returns for `data`. Never fails, and takes linear time."""
    pieces: list[str] = []
    start = 0
    while start < len(data):
        try:
            pieces.append(data[start : start + _STRIDE].decode("utf-8"))
            start += _STRIDE
        except UnicodeDecodeError as error:
            bad = start + error.start
            pieces.append(data[start:bad].decode("utf-8"))
            length = _character_length(data, bad)
            pieces.append(data[bad : bad + length].decode("utf-8") if length else REPLACEMENT)
            start = bad + (length or _malformed_length(data, bad))
    return "".join(pieces)


_STRIDE: Final = 64
"""The number of bytes to decode at once. Without a limit, each malformed byte would cost a copy of the remaining
text."""


def _character_length(data: bytes, at: int) -> int:
    """The length of the well-formed character at `at` (one that the end of a chunk split), or 0 if there is none."""
    for length in (2, 3, 4):
        try:
            if len(data[at : at + length].decode("utf-8")) == 1:
                return length
        except UnicodeDecodeError:
            continue
    return 0


def _malformed_length(data: bytes, at: int) -> int:
    """The number of bytes at `at` that Java replaces with a single U+FFFD, if no character can be read there."""
    lead = data[at]
    rest = data[at + 1 : at + 4]
    if 0xE0 <= lead <= 0xEF:
        return _malformed_three(lead, rest)
    if 0xF0 <= lead <= 0xF4:
        return _malformed_four(lead, rest)
    return 1


def _malformed_three(lead: int, rest: bytes) -> int:
    if not rest or not _continues(rest[0]) or (lead == 0xE0 and rest[0] < 0xA0):
        return 1
    if len(rest) == 1 or not _continues(rest[1]):
        return 2
    return 3  # a surrogate


def _malformed_four(lead: int, rest: bytes) -> int:
    if not rest or not _continues(rest[0]) or (lead == 0xF0 and rest[0] < 0x90) or (lead == 0xF4 and rest[0] > 0x8F):
        return 1
    if len(rest) == 1 or not _continues(rest[1]):
        return 2
    return 3


def _continues(byte: int) -> bool:
    return byte & 0xC0 == 0x80
