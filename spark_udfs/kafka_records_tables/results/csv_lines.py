"""Writes a table as CSV (RFC 4180), with a difference between null and the empty text."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice
from typing import Final, TextIO

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_runtime.text.printable import printable
from kafka_records_tables.results.cell_texts import TEXT, joined, plain_texts, small_slices, write_lines
from kafka_records_tables.results.cells import can_be_cut

_LINE_END: Final = "\r\n"
_TO_QUOTE: Final = r'[",\r\n]|^[\s\pZ]|[\s\pZ]$|^$'
_FORMULA: Final = r'(^|[;\t\r\n])([\s\pZ"]*)([=+\-@＝＋－＠])'
"""Where a spreadsheet may see a formula: at the start of a cell, after blanks. Depending on the spreadsheet's locale or
the user who opens the file, cells also end at semicolons or tabs, and quotes do not help then."""


def write_csv(batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: TextIO, *, is_safe: bool = False) -> None:
    """Write the header, and then the rows as they arrive.

    Null is an empty field; the empty text is two quotes. Times are ISO 8601 in UTC, bytes are base64, and lists,
    structs and maps are JSON. On a terminal, non-printable characters are escaped. With `is_safe`, an apostrophe
    precedes each = + - or @ that would begin a formula in a spreadsheet, except in columns of numbers, times and
    booleans.
    """
    rows = iter(batches)
    # If a source fails, it fails before its first row. Read that row before writing the header, because a file with
    # only a header would look like a result.
    first = list(islice(rows, 1))
    _write([_quoted(pa.array([name], TEXT)) for name in schema.names], out, _LINE_END)
    write_rows(chain(first, rows), out, _LINE_END, is_safe=is_safe)


def write_rows(batches: Iterable[pa.RecordBatch], out: TextIO, line_end: str, *, is_safe: bool = False) -> None:
    """Write only the rows, each followed by `line_end`."""
    for batch in small_slices(batches):
        columns = ((_harmless if is_safe else plain_texts)(column) for column in batch.columns)
        _write([_quoted(texts).fill_null("") for texts in columns], out, line_end)


def _harmless(column: pa.Array) -> pa.LargeStringArray:
    texts = plain_texts(column)
    if not can_be_cut(column.type):
        return texts
    return pc.replace_substring_regex(texts, _FORMULA, r"\1\2'\3")


def _quoted(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    escaped = joined(['"', pc.replace_substring(texts, '"', '""'), '"'])
    return pc.if_else(pc.match_substring_regex(texts, _TO_QUOTE), escaped, texts)


def _write(fields: list[pa.LargeStringArray], out: TextIO, line_end: str) -> None:
    lines = pc.binary_join_element_wise(*fields, pa.scalar(",", TEXT))
    if out.isatty():
        out.writelines(f"{printable(line)}{line_end}" for line in lines.to_pylist())
    else:
        write_lines(joined([lines, line_end]), out)
