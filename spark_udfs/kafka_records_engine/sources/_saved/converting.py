"""Converts the columns of a saved file to the columns of raw rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA, TIMESTAMP_TYPES
from kafka_records_engine.sources._saved.file_readers import open_reader
from kafka_records_engine.sources._saved.saved_formats import Format
from kafka_records_engine.sources._saved.tabular import FileReader, member
from kafka_records_engine.sources._saved.taken_columns import BYTES, TakenColumn, holds_bytes, is_bytes, is_text
from kafka_records_engine.sources._saved.texts import Encoding, decoded
from kafka_records_engine.sources._saved.times import TimeUnit, timestamps_ms
from kafka_records_engine.sources.plain_arrays import plain_array
from kafka_records_engine.sources.row_words import UnknownWord, as_controls, as_transactions

_TIMESTAMP_WORDS: Final = {"0": 0, "1": 1, "create": 0, "createtime": 0, "logappend": 1, "logappendtime": 1}
_NUMBER: Final = r"^[A-Za-z ]*:?\s*(-?[0-9]+)$"
"""A number, optionally after a word, as `kafka-console-consumer` prints it: `Partition:3`."""

OnWrong = Callable[[int, str], None]
"""Called with the number of a row in its file and a description of the problem."""


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A file of saved rows, and how to convert it to raw rows. Small, picklable."""

    place: Place
    format: Format
    size: int
    given: tuple[tuple[str, Any], ...]
    """The raw-row columns that have one value for the whole file, with these values."""
    taken: tuple[TakenColumn, ...]
    encodings: tuple[tuple[str, Encoding], ...] = ()
    """How strings encode bytes, by column of raw rows."""
    time_unit: TimeUnit = "ms"
    """The unit of times stored as numbers."""
    fields: tuple[tuple[str, Any], ...] | None = None
    """The columns with their types, for a file that must be read completely to find them."""

    @property
    def path(self) -> str:
        """The name of the file in messages."""
        return str(self.place)

    @property
    def raws(self) -> list[str]:
        """The columns of raw rows that the file has, in order."""
        there = {name for name, _ in self.given} | {taken.raw for taken in self.taken}
        return [name for name in RAW_SCHEMA.names if name in there]

    def open(self) -> FileReader:
        """Open the file for reading. Raises LogSourceError."""
        return open_reader(self.place, self.format, known=None if self.fields is None else dict(self.fields))

    def columns(self, raws: Collection[str]) -> list[str]:
        """The file's columns that are needed for the raw-row columns `raws`, in the form that a reader accepts."""
        wanted = {*raws, "key"} if "control" in raws and self._asks_keys else raws
        fields = {taken.column: None for taken in self.taken if taken.raw in wanted}
        return list(fields)

    @property
    def _asks_keys(self) -> bool:
        """Whether `control` may contain booleans; the key of the marker is then needed to tell a commit from an
        abort."""
        control = next((taken for taken in self.taken if taken.raw == "control"), None)
        return control is not None and (pa.types.is_boolean(control.type) or self.format == "csv")

    def converted(self, reader: FileReader, batch: Any, first: int, raws: Collection[str], on_wrong: OnWrong) -> Any:
        """The raw-row columns of `raws` that the file has, for a batch that begins with row number `first`.

        A value that cannot be converted becomes null. Raises LogSourceError for an unreadable column.
        """
        given: Mapping[str, Any] = dict(self.given)
        encodings = dict(self.encodings)
        by_raw = {taken.raw: taken for taken in self.taken}
        names = [name for name in self.raws if name in raws]
        arrays = []
        for raw in names:
            kind = RAW_SCHEMA.field(raw).type
            if raw in given:
                arrays.append(pa.repeat(pa.scalar(given[raw], kind), batch.num_rows))
                continue
            taken = by_raw[raw]
            array = member(batch, taken.column, reader.fields)
            if raw in BYTES:
                arrays.append(self._bytes(taken, array, encodings.get(raw), first, on_wrong))
            elif raw in ("control", "transaction"):
                arrays.append(self._words(taken, reader, batch, array, first))
            else:
                arrays.append(self._plain(taken, array, first))
        return pa.record_batch(arrays, names=names)

    def _bytes(self, taken: TakenColumn, array: Any, encoding: Encoding | None, first: int, on_wrong: OnWrong) -> Any:
        if not holds_bytes(array.type):
            raise LogSourceError(
                self.path, f"the column {taken.column} is of type {array.type}, which is neither bytes nor text"
            )
        if encoding is None or pa.types.is_null(array.type):
            return plain_array(array).cast(pa.binary())
        made = decoded(array, encoding)
        if made.wrong is not None:
            for row in np.flatnonzero(made.wrong).tolist():
                on_wrong(first + row, f"{taken.column} is not {encoding}")
        return made.array

    def _words(self, taken: TakenColumn, reader: FileReader, batch: Any, array: Any, first: int) -> Any:
        def keys() -> Any:
            key = next((each for each in self.taken if each.raw == "key"), None)
            if key is None or not self._asks_keys:
                return None
            found = member(batch, key.column, reader.fields)
            return self._bytes(key, found, dict(self.encodings).get("key"), first, lambda row, what: None)

        texts = array if pa.types.is_boolean(array.type) else self._plain(taken, array, first)
        try:
            return as_controls(texts, keys) if taken.raw == "control" else as_transactions(texts)
        except UnknownWord as unknown:
            raise LogSourceError(self.path, f"row {first + unknown.row + 1}: {unknown}") from None

    def _plain(self, taken: TakenColumn, array: Any, first: int) -> Any:
        made = self._maker(taken.raw)
        try:
            return made(array)
        except (pa.ArrowException, TypeError) as error:
            raise self._impossible(taken, array, first, made, error) from None

    def _maker(self, raw: str) -> Callable[[Any], Any]:
        if raw == "timestamp_ms":
            return partial(timestamps_ms, unit=self.time_unit)
        return _PLAIN[raw] if raw in _PLAIN else partial(_number, kind=RAW_SCHEMA.field(raw).type)

    def _impossible(
        self, taken: TakenColumn, array: Any, first: int, made: Callable[[Any], Any], error: Exception
    ) -> LogSourceError:
        """The error about an unreadable column. It names the first row that fails on its own."""
        where, value = f"rows {first + 1} to {first + len(array)}", ""
        for row in range(len(array)):
            try:
                made(array.slice(row, 1))
            except (pa.ArrowException, TypeError) as of_row:
                where, value, error = f"row {first + row + 1}", _shown(array[row]), of_row
                break
        return LogSourceError(
            self.path,
            f"{where}: {taken.column}{value} is of type {array.type} and cannot be {taken.raw}, which is "
            f"{RAW_SCHEMA.field(taken.raw).type}: {' '.join(str(error).split())}",
        )


def _shown(scalar: Any) -> str:
    """A value as shown in a message, if Python can represent it (not possible for invalid UTF-8 or a time in the year
    290 000)."""
    try:
        return f" ({scalar.as_py()!r})"
    except Exception:  # pyarrow, datetime and zoneinfo may raise anything on invalid bytes
        return ""


def _text(array: Any) -> Any:
    """A column as strings. Strings of JSON, CSV and Arrow are read as bytes; strings of Parquet may be invalid
    UTF-8."""
    array = plain_array(array)
    return (array.cast(pa.binary()) if is_text(array.type) else array).cast(pa.string())


def _number(array: Any, kind: Any) -> Any:
    array = plain_array(array)
    if is_text(array.type) or is_bytes(array.type):
        array = pc.replace_substring_regex(_text(array), pattern=_NUMBER, replacement=r"\1")
    return array.cast(kind)


def _timestamp_type(array: Any) -> Any:
    if pa.types.is_integer(array.type):
        known = pc.is_in(array, pa.array([0, 1], array.type))
        numbers = pc.if_else(known, array, pa.scalar(None, array.type))
    else:
        words = pc.replace_substring(pc.utf8_lower(_text(array)), pattern="_", replacement="")
        places = pc.index_in(words, pa.array(list(_TIMESTAMP_WORDS)))
        numbers = pa.array(list(_TIMESTAMP_WORDS.values())).take(places)
    return pa.array(TIMESTAMP_TYPES).take(numbers)


_PLAIN: Final[Mapping[str, Callable[[Any], Any]]] = {
    "topic": _text,
    "timestamp_type": _timestamp_type,
    "transaction": _text,
    "control": _text,
}
