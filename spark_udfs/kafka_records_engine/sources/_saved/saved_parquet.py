"""Parquet files: row groups, with statistics that often show the log partition and offsets of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa

from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.sources._saved.saved_formats import open_file
from kafka_records_engine.sources._saved.tabular import MOST_ROWS, OF_A_SNAPSHOT, Extremes


class ParquetReader:
    """See `FileReader`."""

    def __init__(self, place: Place) -> None:
        import pyarrow.parquet as pq

        from kafka_records_engine.sources._stored.stretches import METADATA_KEY

        self._place = place
        with open_file(place) as file, pq.ParquetFile(file) as opened:
            self._metadata = opened.metadata
            self.fields = {field.name: field.type for field in opened.schema_arrow}
        if METADATA_KEY in (self._metadata.metadata or {}):
            raise LogSourceError(str(place), OF_A_SNAPSHOT)
        self.groups: int | None = self._metadata.num_row_groups
        self._starts = [0, *accumulate(self.rows_of_groups())]
        schema = self._metadata.schema
        self._numbers = {schema.column(at).path: at for at in range(len(schema.names))}

    def rows_of_groups(self) -> Sequence[int]:
        """See `FileReader`."""
        return [self._metadata.row_group(group).num_rows for group in range(self._metadata.num_row_groups)]

    def statistics(self, group: int, column: str) -> Extremes | None:
        """See `FileReader`."""
        at = self._numbers.get(column)
        if at is None:
            return None
        chunk, column_type = self._metadata.row_group(group).column(at), self._metadata.schema.column(at).physical_type
        if chunk.physical_type != column_type:
            return None  # reading the statistics of such a column crashes the process
        told = chunk.statistics
        if told is None or not told.has_min_max or not told.has_null_count or told.null_count:
            return None
        try:
            return Extremes(told.min, told.max)
        except UnicodeDecodeError:
            return None

    def batches(self, columns: Sequence[str], group: int | None = None) -> Iterator[tuple[int, Any]]:
        """See `FileReader`."""
        import pyarrow.parquet as pq

        first = self._starts[group or 0]
        if not columns:
            end = self._starts[-1] if group is None else self._starts[group + 1]
            yield first, pa.record_batch([pa.nulls(end - first)], names=[""]).select([])
            return
        groups = None if group is None else [group]
        with (
            open_file(self._place) as file,
            pq.ParquetFile(file, metadata=self._metadata, page_checksum_verification=True) as opened,
        ):
            for batch in opened.iter_batches(MOST_ROWS, row_groups=groups, columns=list(columns), use_threads=False):
                yield first, batch
                first += batch.num_rows
