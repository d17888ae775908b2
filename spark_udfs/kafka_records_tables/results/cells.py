"""Formats the cells of a printed table: makes text printable, and measures, cuts, folds or pads it for a terminal.

Nearly all text is ASCII, in which a character is one cell wide, so Arrow functions can be used. Other text is handled
character by character.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from json import dumps
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_runtime.text.printable import printable
from kafka_records_tables.results.cell_texts import (
    joined,
    joined_items,
    json_texts,
    map_lists,
    plain_texts,
    replaced,
)

NULL: Final = "null"
CUT: Final = "…"

_UNUSUAL: Final = r"[^\x20-\x7e]"

_TO_QUOTE: Final = f'^$|^ | $|^{NULL}$|^"'
"""Texts that are shown in quotes: invisible ones, and those that could be mistaken for null or for text in quotes."""

_PIECE: Final = re.compile(r"[^\s_./:,;=-]*(?:[\s_./:,;=-]+|$)")
"""A piece that stays on one line if possible: up to the next blank or punctuation mark."""


_HUMP: Final = re.compile("(?<=[a-z])(?=[A-Z])")
"""Where names such as `ShareGroupMemberMetadata` may be broken."""


def holds_numbers(kind: pa.DataType) -> bool:
    """Whether values of this type are right-aligned and never cut."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def holds_texts(kind: pa.DataType) -> bool:
    """Whether values of this type are texts, as opposed to values that are shown as text."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _quoted(text: str) -> str:
    return dumps(text, ensure_ascii=False)


def can_be_cut(kind: pa.DataType) -> bool:
    """Whether the beginning of a text is useful on its own. For numbers and times, it is not."""
    return not (holds_numbers(kind) or pa.types.is_temporal(kind) or pa.types.is_boolean(kind))


def cell_texts(column: pa.Array) -> pa.LargeStringArray:
    """Values as printable text. A map of numbers is `name: 1, other: 2`; other structures are JSON. A text is quoted,
    as in JSON, if it is empty, begins or ends with a blank, begins with a quote, or is `null`."""
    kind = column.type
    if pa.types.is_map(kind) and pa.types.is_integer(kind.item_type):
        lists = map_lists(column)
        names, numbers = lists.flatten().flatten()
        texts = joined_items(lists, joined([plain_texts(names), ": ", json_texts(numbers)]), ", ")
    else:
        texts = plain_texts(column)
        if holds_texts(kind):
            texts = replaced(texts, pc.match_substring_regex(texts, _TO_QUOTE), _quoted)
    texts = texts.fill_null(NULL)
    return replaced(texts, pc.match_substring_regex(texts, _UNUSUAL), printable)


def widest(texts: pa.LargeStringArray, most: int | None = None) -> int:
    """The width of the widest text, in terminal cells; with `most`, of the widest text that is not wider than that."""
    if not len(texts):
        return 0
    is_ascii = pc.string_is_ascii(texts)
    lengths = pc.binary_length(texts.filter(is_ascii))
    others = [width_of(text) for text in texts.filter(pc.invert(is_ascii)).to_pylist()]
    if most is not None:
        lengths = lengths.filter(pc.less_equal(lengths, most))
        others = [width for width in others if width <= most]
    return max([pc.max(lengths).as_py() or 0, *others])


def width_of(text: str) -> int:
    """The width of a text in terminal cells: two for wide East Asian characters and pictures, none for combining
    marks."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(character: str) -> int:
    if unicodedata.east_asian_width(character) in ("W", "F"):
        return 2
    return 0 if unicodedata.category(character) in ("Mn", "Me") else 1


def fitted(texts: pa.LargeStringArray, width: int, is_number: bool, cuts: bool = True) -> pa.LargeStringArray:
    """The texts, cut or padded to exactly `width` cells. Without `cuts`, longer texts are unchanged."""
    is_ascii = pc.string_is_ascii(texts)
    is_long = pc.greater(pc.binary_length(texts), width)
    made = texts
    if cuts and pc.any(is_long).as_py():
        made = pc.if_else(is_long, joined([pc.utf8_slice_codeunits(texts, 0, max(width - 1, 0)), CUT]), texts)
    pad = pc.utf8_lpad if is_number else pc.utf8_rpad
    made = pad(made, width, " ")
    return replaced(made, pc.invert(is_ascii), lambda text: _fitted(text, width, is_number, cuts), texts)


def _fitted(text: str, width: int, is_number: bool, cuts: bool) -> str:
    is_whole = not cuts or width_of(text) <= width
    return padded(text if is_whole else cut(text, width - 1) + CUT, width, is_number)


def padded(text: str, width: int, is_number: bool) -> str:
    """The text, padded to at least `width` cells. Numbers are right-aligned."""
    padding = " " * (width - width_of(text))
    return padding + text if is_number else text + padding


def cut(text: str, width: int) -> str:
    """The longest start of `text` that is no wider than `width`."""
    if text.isascii():
        return text[: max(width, 0)]
    ends = np.cumsum([_cells(character) for character in text])
    return text[: int(np.searchsorted(ends, width, "right"))]


def folded(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` cells, broken after blanks and punctuation where possible."""
    if width_of(text) <= width:
        return [text]
    pieces = [part for piece in _PIECE.findall(text) if piece for part in _parts(piece, width)]
    return in_lines(pieces, width)


def _parts(piece: str, width: int) -> Iterable[str]:
    while width_of(piece.rstrip()) > width:
        start = cut(piece, width) or piece[0]
        humps = [match.start() for match in _HUMP.finditer(start)]
        start = start[: humps[-1]] if humps else start
        yield start
        piece = piece[len(start) :]
    if piece:
        yield piece


def in_lines(pieces: Iterable[str], width: int) -> list[str]:
    """Join the pieces into lines of at most `width` cells, unless a single piece is wider. Trailing blanks are
    removed."""
    lines = [""]
    for piece in pieces:
        if lines[-1] and width_of((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines]


def styled(texts: pa.LargeStringArray, style: str, where: Any = None) -> pa.LargeStringArray:
    """The texts between escape sequences that set a style: all texts, or those selected by `where`."""
    made = joined([f"\x1b[{style}m", texts, "\x1b[0m"])
    return made if where is None else pc.if_else(where, made, texts)
