"""A table as CSV by RFC 4180, with null and the empty text told apart."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice
from typing import Final, TextIO

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_runtime.printable import printable
from kafka_records_tables.report.cell_texts import TEXT, joined, plain_texts, small_slices, write_lines

_LINE_END: Final = "\r\n"
_TO_QUOTE: Final = r'[",\r\n]|^[\s\pZ]|[\s\pZ]$|^$'


def write_csv(batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: TextIO) -> None:
    """Write the header and then the rows as they come in.

    Null is an empty field, the empty text two quotes. Times are ISO 8601 in UTC, bytes base64, lists, structs and maps
    JSON. On a terminal, what is not printable is escaped.
    """
    is_terminal = out.isatty()
    slices = small_slices(batches)
    # What refuses to give rows does so before the first one, and a header alone would be an answer.
    first = list(islice(slices, 1))
    header = joined([_row([_quoted(pa.array([name], TEXT)) for name in schema.names]), _LINE_END])
    _write(header, out, is_terminal)
    for batch in chain(first, slices):
        fields = [_quoted(plain_texts(column)).fill_null("") for column in batch.columns]
        _write(joined([_row(fields), _LINE_END]), out, is_terminal)


def _row(fields: list[pa.LargeStringArray]) -> pa.LargeStringArray:
    return pc.binary_join_element_wise(*fields, pa.scalar(",", TEXT))


def _quoted(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    escaped = joined(['"', pc.replace_substring(texts, '"', '""'), '"'])
    return pc.if_else(pc.match_substring_regex(texts, _TO_QUOTE), escaped, texts)


def _write(lines: pa.LargeStringArray, out: TextIO, is_terminal: bool) -> None:
    if is_terminal:
        out.writelines(f"{printable(line.removesuffix(_LINE_END))}{_LINE_END}" for line in lines.to_pylist())
    else:
        write_lines(lines, out)
