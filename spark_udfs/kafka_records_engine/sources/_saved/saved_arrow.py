"""Arrow files, with groups that can be read independently, and Arrow streams.

They are not read with Arrow's own code, because it trusts the metadata of a file, so one wrong byte can crash the
process (docs/design.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa

from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.sources._saved.arrow_batches import batch_of, dictionary_of, rows_of
from kafka_records_engine.sources._saved.arrow_layout import ArrowColumn, columns_of
from kafka_records_engine.sources._saved.arrow_messages import (
    BATCH,
    DICTIONARY,
    ArrowFooter,
    ArrowMessage,
    message_at,
    messages_of,
)
from kafka_records_engine.sources._saved.saved_formats import open_file, open_stream
from kafka_records_engine.sources._saved.tabular import Extremes, FileReader, Sequential, in_slices


def arrow_reader(place: Place) -> FileReader:
    """The reader for the format that the first bytes indicate."""
    with open_stream(place) as file:
        start = bytes(file.read(6))
    if start.startswith(b"FEA1"):
        raise LogSourceError(
            str(place),
            "this is a file in Feather format 1, which has not been the default since 2020: rewrite it with "
            "pyarrow.feather.write_feather(pyarrow.feather.read_table(path), path)",
        )
    return _FileReader(place) if start == b"ARROW1" else _StreamReader(place)


class _FileReader:
    def __init__(self, place: Place) -> None:
        self._place = place
        with open_file(place) as file:
            self._footer = ArrowFooter(file)
        self.fields = {column.name: column.type for column in self._footer.columns}
        self.groups: int | None = len(self._footer.batches)

    def rows_of_groups(self) -> Sequence[int]:
        with open_file(self._place) as file:
            return [rows_of(message_at(file, block, BATCH)) for block in self._footer.batches]

    def statistics(self, group: int, column: str) -> Extremes | None:
        return None

    def batches(self, columns: Sequence[str], group: int | None = None) -> Iterator[tuple[int, Any]]:
        first, footer = 0, self._footer
        with open_file(self._place) as file:
            dictionaries = _Dictionaries(footer.columns, columns)
            for block in footer.dictionaries if dictionaries.values else ():
                dictionaries.add(message_at(file, block, DICTIONARY), may_replace=False)
            for block in footer.batches if group is None else (footer.batches[group],):
                batch = batch_of(message_at(file, block, BATCH), footer.columns, columns, dictionaries.found)
                yield from in_slices(batch, first)
                first += batch.num_rows


class _StreamReader(Sequential):
    def __init__(self, place: Place) -> None:
        self._place = place
        with open_stream(place) as file:
            self._columns = _schema(messages_of(file))
        self.fields = {column.name: column.type for column in self._columns}

    def batches(self, columns: Sequence[str], group: int | None = None) -> Iterator[tuple[int, Any]]:
        first = 0
        with open_stream(self._place) as file:
            messages = messages_of(file)
            there = _schema(messages)
            dictionaries = _Dictionaries(there, columns)
            for message in messages:
                if message.kind == DICTIONARY:
                    dictionaries.add(message, may_replace=True)
                elif message.kind == BATCH:
                    batch = batch_of(message, there, columns, dictionaries.found)
                    yield from in_slices(batch, first)
                    first += batch.num_rows


def _schema(messages: Iterator[ArrowMessage]) -> tuple[ArrowColumn, ...]:
    message = next(messages, None)
    if message is None:
        raise pa.ArrowInvalid("there is no schema")
    return columns_of(message.header, message.version, message.metadata_size)


class _Dictionaries:
    """The values of the dictionaries that some columns have."""

    def __init__(self, columns: Sequence[ArrowColumn], names: Collection[str]) -> None:
        self.values: dict[int, ArrowColumn] = {}
        self.found: dict[int, Any] = {}
        self._add([column for column in columns if column.name in names])

    def _add(self, columns: Sequence[ArrowColumn]) -> None:
        for column in columns:
            self._add(column.children)
            if column.dictionary is not None and column.values is not None and column.is_read:
                known = self.values.setdefault(column.dictionary, column.values)
                if known.type != column.values.type:
                    raise pa.ArrowInvalid(f"dictionary {column.dictionary} has values of two types")

    def add(self, message: ArrowMessage, *, may_replace: bool) -> None:
        """Add the values of a message. In a stream, they may replace earlier ones."""
        number, is_delta, values = dictionary_of(message, self.values)
        if values is None:
            return
        if number in self.found and not is_delta and not may_replace:
            raise pa.ArrowInvalid(f"dictionary {number} appears twice")
        known = self.found.get(number) if is_delta else None
        self.found[number] = values if known is None else pa.concat_arrays([known, values])
