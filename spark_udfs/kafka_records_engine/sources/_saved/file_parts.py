"""Parts of saved files in file order, for readers that do not need log order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kafka_records_engine.findings import OnFinding
from kafka_records_engine.log.reading.raw_rows import raw_column
from kafka_records_engine.sources._saved.converting import SavedFile
from kafka_records_engine.sources._saved.file_pieces import IN_LOG, Wrong, usable_rows
from kafka_records_engine.sources._saved.saved_formats import unreadable
from kafka_records_engine.sources._saved.tabular import FileReader, top_columns


@dataclass(frozen=True)
class FilePart:
    """Some rows of a file, in file order."""

    file: SavedFile
    group: int | None
    size: int
    """The approximate size of these rows in the file, in bytes."""

    def batches(self, columns: Sequence[str], on_finding: OnFinding) -> Iterator[Any]:
        """The rows, as record batches with these columns of raw rows. Columns that the file lacks are null."""
        reader = self.file.open()
        wanted = {*columns, *IN_LOG}
        wrong: list[Wrong] = []
        try:
            for first, batch in reader.batches(top_columns(reader, self.file.columns(wanted)), self.group):
                rows = usable_rows(self.file, reader, batch, first, wanted, wrong)
                for each in wrong:
                    on_finding(each.finding)
                wrong.clear()
                yield pa.RecordBatch.from_arrays([raw_column(rows, name) for name in columns], names=columns)
        except (OSError, pa.ArrowException, EOFError) as error:
            raise unreadable(self.file.place, error) from None


def parts_of(file: SavedFile, reader: FileReader) -> Iterator[FilePart]:
    """The parts of a file that can be read in parallel."""
    groups: Sequence[int | None] = [None] if reader.groups is None else range(reader.groups)
    rows = reader.rows_of_groups()
    total = sum(rows)
    for group in groups:
        size = file.size if group is None else file.size * rows[group] // max(total, 1)
        yield FilePart(file, group, size)
