"""CSV files with columns separated by comma, semicolon, tab or bar, including files written by spreadsheets.

A spreadsheet may write a first line `sep=;` that names the delimiter, and pads lines with delimiters so that all have
the same number of columns.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.sources._saved.tabular import Sequential
from kafka_records_engine.sources._saved.taken_columns import raw_name
from kafka_records_engine.sources._saved.text_lines import BLOCK, first_lines, open_text

_SAYS_DELIMITER: Final = re.compile(r'"?sep=(.)"?[,;|\s]*')


class CsvReader(Sequential):
    """All columns are strings. Without a header line, columns are named 1, 2 and so on."""

    def __init__(self, place: Place) -> None:
        self._place = place
        lines = [line.rstrip(b"\r").decode("utf-8", "replace") for line in first_lines(place)]
        at = _next_line(lines, 0)
        said = _SAYS_DELIMITER.fullmatch(lines[at]) if at < len(lines) else None
        if said is not None:
            at = _next_line(lines, at + 1)
        head = lines[at] if at < len(lines) else ""
        self._delimiter = max(",;\t|", key=head.count) if said is None else said[1]
        try:
            names = [name.strip() for name in next(csv.reader([head], delimiter=self._delimiter), [])]
        except csv.Error as error:
            raise LogSourceError(str(place), f"line {at + 1} is not a valid header: {error}") from None
        has_names = any(map(raw_name, names)) and not any(name.isdigit() for name in names)
        self._before_rows = at + has_names
        # A delimiter at the end of a line creates a column without a name.
        self._names = [name if has_names and name else str(number) for number, name in enumerate(names, 1)]
        self.fields = {
            name: pa.string() for name, told in zip(self._names, names, strict=True) if told or not has_names
        }

    def batches(self, columns: Sequence[str], group: int | None = None) -> Iterator[tuple[int, Any]]:
        """See `FileReader`."""
        import pyarrow.csv as pv

        if not self.fields:
            return
        first = 0
        with open_text(self._place) as file:
            options = {
                "read_options": pv.ReadOptions(
                    use_threads=False, block_size=BLOCK, column_names=self._names, skip_rows=self._before_rows
                ),
                "parse_options": pv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
                # An unquoted empty value is null (a tombstone). A quoted empty value is an empty value.
                "convert_options": pv.ConvertOptions(
                    column_types=dict.fromkeys(self._names, pa.binary()),
                    null_values=["", "null", "NULL", "\\N"],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            }
            try:
                with pv.open_csv(file, **options) as reader:
                    for batch in reader:
                        for start, rows in _filled(batch):
                            yield first + start, rows.select(list(columns))
                        first += batch.num_rows
            except pa.ArrowInvalid as error:
                raise LogSourceError(str(self._place), " ".join(str(error).split())) from None


def _next_line(lines: Sequence[str], at: int) -> int:
    """The first line at or after `at` that is not blank."""
    return next((number for number in range(at, len(lines)) if lines[number].strip()), len(lines))


def _filled(batch: Any) -> Iterator[tuple[int, Any]]:
    """The rows of a batch except those with only delimiters, as consecutive runs, each with the number of its first row
    in the batch."""
    is_filled = np.zeros(batch.num_rows, np.bool_)
    for column in batch.columns:
        if not column.null_count:
            yield 0, batch
            return
        is_filled |= column.is_valid().to_numpy(zero_copy_only=False)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_filled, [False]]).astype(np.int8)))
    for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        yield start, batch.slice(start, end - start)
