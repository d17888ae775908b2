"""CSV, with commas, semicolons, tabs or bars between columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from kafka_records_engine.log.places import LogSourceError, Place
from kafka_records_engine.sources._saved.tabular import Sequential
from kafka_records_engine.sources._saved.taken_columns import raw_name
from kafka_records_engine.sources._saved.text_lines import BLOCK, first_lines, open_text


class CsvReader(Sequential):
    """All columns are texts. A file without a line of names has columns that are called 1, 2 and so on."""

    def __init__(self, place: Place) -> None:
        self._place = place
        lines = [line for line in first_lines(place) if line.strip()]
        head = lines[0].rstrip(b"\r").decode("utf-8", "replace") if lines else ""
        self._delimiter = max(",;\t|", key=head.count)
        names = [name.strip().strip('"') for name in head.split(self._delimiter)]
        self._has_names = any(raw_name(name) for name in names) and not any(name.isdigit() for name in names)
        self._names = names if self._has_names else [str(at + 1) for at in range(len(names))]
        self.fields = dict.fromkeys(self._names if lines else (), pa.string())

    def batches(self, columns: Sequence[str], group: int | None = None) -> Iterator[tuple[int, Any]]:
        """See `FileReader`."""
        import pyarrow.csv as pv

        if not self.fields:
            return
        first = 0
        with open_text(self._place) as file:
            options = {
                "read_options": pv.ReadOptions(
                    use_threads=False, block_size=BLOCK, column_names=None if self._has_names else self._names
                ),
                "parse_options": pv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
                # What is not quoted and empty is null, what is quoted and empty is not: a tombstone and an empty value.
                "convert_options": pv.ConvertOptions(
                    column_types=dict.fromkeys(self._names, pa.binary()),
                    include_columns=list(columns),
                    null_values=["", "null", "NULL", "\\N"],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            }
            try:
                with pv.open_csv(file, **options) as reader:
                    for batch in reader:
                        yield first, batch
                        first += batch.num_rows
            except pa.ArrowInvalid as error:
                raise LogSourceError(str(self._place), " ".join(str(error).split())) from None
