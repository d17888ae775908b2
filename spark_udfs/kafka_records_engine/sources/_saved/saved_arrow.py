"""Arrow's own files: with groups that can be read by themselves, as a stream, and Feather from before it was Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from kafka_records_engine.log.places import Place
from kafka_records_engine.sources._saved.saved_formats import open_file, open_stream
from kafka_records_engine.sources._saved.tabular import MOST_ROWS, Extremes, FileReader, Sequential, in_slices


def arrow_reader(place: Place) -> FileReader:
    """The reader of what the first bytes say it is."""
    with open_stream(place) as file:
        start = bytes(file.read(6))
    if start.startswith(b"FEA1"):
        return _FeatherReader(place)
    return _FileReader(place) if start == b"ARROW1" else _StreamReader(place)


class _FileReader:
    def __init__(self, place: Place) -> None:
        self._place = place
        with open_file(place, maps=True) as source, pa.ipc.open_file(source) as file:
            self.fields = {field.name: field.type for field in file.schema}
            self.groups: int | None = file.num_record_batches

    def rows_of_groups(self) -> Sequence[int]:
        with open_file(self._place, maps=True) as source, pa.ipc.open_file(source) as file:
            return [file.get_batch(group).num_rows for group in range(file.num_record_batches)]

    def statistics(self, group: int, column: str) -> Extremes | None:
        return None

    def batches(self, columns: Sequence[str], group: int | None = None) -> Iterator[tuple[int, Any]]:
        first = 0
        with open_file(self._place, maps=True) as source, pa.ipc.open_file(source) as file:
            for number in range(file.num_record_batches) if group is None else (group,):
                batch = file.get_batch(number).select(list(columns))
                yield from in_slices(batch, first)
                first += batch.num_rows


class _StreamReader(Sequential):
    def __init__(self, place: Place) -> None:
        self._place = place
        with open_stream(place) as file, pa.ipc.open_stream(file) as stream:
            self.fields = {field.name: field.type for field in stream.schema}

    def batches(self, columns: Sequence[str], group: int | None = None) -> Iterator[tuple[int, Any]]:
        first = 0
        with open_stream(self._place) as file, pa.ipc.open_stream(file) as stream:
            for whole in stream:
                batch = whole.select(list(columns))
                yield from in_slices(batch, first)
                first += batch.num_rows


class _FeatherReader(Sequential):
    def __init__(self, place: Place) -> None:
        self._place = place
        self.fields = {field.name: field.type for field in self._table(None).schema}

    def _table(self, columns: Sequence[str] | None) -> Any:
        import pyarrow.feather as feather

        return feather.read_table(open_file(self._place, maps=True), columns=columns)

    def batches(self, columns: Sequence[str], group: int | None = None) -> Iterator[tuple[int, Any]]:
        first = 0
        for batch in self._table(list(columns)).to_batches(MOST_ROWS):
            yield first, batch
            first += batch.num_rows
