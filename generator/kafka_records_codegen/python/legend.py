"""The comment that explains names such as `_whole_H_text_h_text_i`."""

from __future__ import annotations

from typing import Final

_LETTERS: Final = {
    "t": "bool",
    "b": "int8",
    "B": "the first byte of a varint",
    "h": "int16",
    "H": "uint16",
    "i": "int32",
    "I": "uint32",
    "q": "int64",
    "d": "float64",
    "u": "uuid",
}
"""The letters of `struct` formats, and two of our own for `?` and `16s`."""

_KINDS: Final = {
    "unpack": ("_unpack_…", "fixed-width fields, and the length, count or marker after them"),
    "array": ("_array_…[n]", "the n numbers of an array"),
    "compact_array": ("_compact_array_…[n]", "the n - 1 numbers of a compact array"),
    "text": ("_text_…[n]", "a string of n bytes, and what is after it"),
    "compact_text": ("_compact_text_…[n]", "a compact string of n - 1 bytes, and what is after it"),
    "bytes": ("_bytes_…[n]", "n bytes, and what is after them"),
    "compact_bytes": ("_compact_bytes_…[n]", "n - 1 compact bytes, and what is after them"),
    "leading text": ("_…_text_…[n]", "a string, its length (H, its low byte is n), and what is around both"),
    "leading compact_text": ("_…_compact_text_…[n]", "a string of n - 1 bytes, n (B), and what is around both"),
    "whole": ("_whole_…_text_…[size]", "a message of that size with one string, and the length that it must have"),
    "whole pair": (
        "_whole_…_text_…_text_…[size][n]",
        "a message with two strings, the first of n bytes, and the length of the other",
    ),
    "pack": ("_pack_…", "fixed-width fields and lengths"),
    "pack_array": ("_pack_array_…[n]", "an array of n numbers and its count"),
    "pack_compact_array": ("_pack_compact_array_…[n]", "a compact array of n numbers and its count"),
    "pack_text_array": ("_pack_text_array_…[n][m]", "a string of n bytes and an array of m numbers, length and count"),
}
"""For each kind of constant, its name and what it reads or writes."""


def legend(kinds: set[str], letters: set[str]) -> list[str]:
    """Lines of text about constants of these kinds with names that contain these letters."""
    shown = [_KINDS[kind] for kind in _KINDS if kind in kinds]
    width = max((len(name) for name, _ in shown), default=0)
    said = ", ".join(f"{letter} {meaning}" for letter, meaning in _LETTERS.items() if letter in letters)
    head = "What one call of `struct` reads or writes; tables by length grow as lengths are met. Letters:"
    return [head, f"{said}.", *(f"  {name:{width}}  {what}" for name, what in shown)]
