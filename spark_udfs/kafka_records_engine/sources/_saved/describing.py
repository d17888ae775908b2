"""Determines what saved files contain: which columns to use, how strings encode bytes, and the unit of times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from kafka_records_engine.findings import UNREAD_LOG, Finding
from kafka_records_engine.log.files.discovery import not_read
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources._saved.converting import SavedFile
from kafka_records_engine.sources._saved.file_readers import open_reader
from kafka_records_engine.sources._saved.listing import Found, SavedFiles
from kafka_records_engine.sources._saved.saved_formats import Format, asked_of, unreadable
from kafka_records_engine.sources._saved.tabular import FileReader, member, top_columns
from kafka_records_engine.sources._saved.taken_columns import (
    BYTES,
    TakenColumn,
    how_to_say,
    is_text,
    raw_name,
    taken_columns,
)
from kafka_records_engine.sources._saved.texts import Encoding, TooFew, Undecided, encoding_of, is_enough
from kafka_records_engine.sources._saved.times import MixedUnits, TimeUnit, is_named_for_milliseconds, unit_of
from kafka_records_runtime.text.printable import printable, some_names

GUESSED_COLUMNS: Final = "GuessedColumns"
"""The `reason` of a note about how columns of saved rows are interpreted."""

_SAID: Final = {"base64": "base64", "hex": "hex digits", "text": "bytes as they are in the text"}
_UNITS: Final = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_SAMPLED_ROWS: Final = 4096


@dataclass(frozen=True)
class SavedAsked:
    """The caller's settings for saved files. Everything else is determined from the files."""

    topic: str | None
    columns: Mapping[str, str | None]
    encodings: Mapping[str, Encoding]
    format: Format | None
    time_unit: TimeUnit | None


@dataclass(frozen=True)
class Described:
    """The files, and a reader for each file."""

    files: tuple[SavedFile, ...]
    readers: tuple[FileReader, ...]
    notes: tuple[Finding, ...]
    """Findings about the source as a whole."""


def described(name: str, listing: SavedFiles, asked: SavedAsked) -> Described:
    """What the saved files contain, with a reader for each. Notes call the source `name`. Raises LogSourceError."""
    columns = [column for column in asked.columns.values() if column is not None]
    readers = [open_reader(each.place, each.format, columns) for each in listing.files]
    taken = [_taken(each, reader, asked) for each, reader in zip(listing.files, readers, strict=True)]
    _check_alike([each.path for each in listing.files], taken)
    files = [_file(*each, asked) for each in zip(listing.files, readers, taken, strict=True)]
    files = _with_meanings(files, readers, asked)
    return Described(tuple(files), tuple(readers), tuple(_notes(name, listing, files, asked)))


# -- columns -----------------------------------------------------------------------------------------------------------


def _taken(found: Found, reader: FileReader, asked: SavedAsked) -> tuple[TakenColumn, ...]:
    if not reader.fields and found.format in ("csv", "json"):
        return ()  # the file has no lines
    known = {*found.folders, *found.name}
    columns = taken_columns(found.path, reader.fields, asked.columns, known)
    if "topic" not in columns and "topic" not in known and asked.topic is None:
        raise LogSourceError(
            found.path,
            "no column has the topic of the rows: set it with topic=…, --topic or, in Spark, the option 'topic'",
        )
    return tuple(columns.values())


def _file(found: Found, reader: FileReader, taken: tuple[TakenColumn, ...], asked: SavedAsked) -> SavedFile:
    size = asked_of(found.place, lambda files, path: files.size(path))
    fields = tuple(reader.fields.items()) if found.format == "json" else None
    return SavedFile(found.place, found.format, size, tuple(_given(found, taken, asked).items()), taken, fields=fields)


def _given(found: Found, taken: tuple[TakenColumn, ...], asked: SavedAsked) -> dict[str, Any]:
    """The values that all rows of a file share. The order of precedence is: a column, the folder name, the file name,
    the topic passed by the caller."""
    there = {each.raw for each in taken}
    told: dict[str, Any] = {} if asked.topic is None else {"topic": asked.topic}
    told |= found.name
    told |= found.folders
    given = {}
    for raw, value in told.items():
        if raw in there or (raw in asked.columns and raw != "topic"):
            continue
        kind = RAW_SCHEMA.field(raw).type
        try:
            given[raw] = pa.scalar(value).cast(kind).as_py()
        except pa.ArrowException:
            raise LogSourceError(found.path, f"{raw}={value} in its path is not of type {kind}") from None
    return given


def _check_alike(paths: Sequence[str], taken: Sequence[tuple[TakenColumn, ...]]) -> None:
    """Raise LogSourceError if files have different columns, because some rows would then lack values."""
    kept = [(path, {each.raw: each.column for each in columns}) for path, columns in zip(paths, taken, strict=True)]
    kept = [each for each in kept if each[1]]
    for path, columns in kept[1:]:
        first_path, first = kept[0]
        for raw in RAW_SCHEMA.names:
            if columns.get(raw) != first.get(raw):
                one, other = (
                    f"{printable(column)} is used as {raw}" if column else f"there is no {raw}"
                    for column in (columns.get(raw), first.get(raw))
                )
                raise LogSourceError(
                    path,
                    f"{one}, but in {printable(first_path)} {other}: read files of one kind at a time, or choose the "
                    f"column with {how_to_say(raw, '…')}",
                )


# -- what the values mean ----------------------------------------------------------------------------------------------


def _with_meanings(files: Sequence[SavedFile], readers: Sequence[FileReader], asked: SavedAsked) -> list[SavedFile]:
    """The files, with the encodings of their strings and the unit of their times filled in."""
    guesses = [_Guess(file, reader, asked) for file, reader in zip(files, readers, strict=True)]
    made = []
    for guess in guesses:
        encodings = {raw: guess.encoding(raw) or _of_others(raw, guess, guesses) for raw in guess.texts}
        file = replace(guess.file, encodings=tuple(encodings.items()), time_unit=guess.time_unit or "ms")
        made.append(file)
    return made


def _of_others(raw: str, guess: _Guess, guesses: Sequence[_Guess]) -> Encoding:
    """The encoding of a file that does not reveal it: the encoding of the other files, if they all agree. Raises
    LogSourceError if two encodings remain possible."""
    told = {found for each in guesses if raw in each.texts and (found := each.encoding(raw)) is not None}
    if len(told) == 1:
        return told.pop()
    undecided = guess.undecided.get(raw)
    if undecided is not None:
        raise guess.refused(raw, undecided)
    return "text"  # the file has no values


class _Guess:
    """Determines, from the first values of a file, what the caller did not specify."""

    def __init__(self, file: SavedFile, reader: FileReader, asked: SavedAsked) -> None:
        self.file = file
        self.texts = {taken.raw: taken for taken in file.taken if taken.raw in BYTES and is_text(taken.type)}
        self.undecided: dict[str, Undecided] = {}
        self.time_unit = asked.time_unit
        self._told: dict[str, Encoding | None] = {}
        time = next((taken for taken in file.taken if taken.raw == "timestamp_ms"), None)
        if time is not None and (self.time_unit is not None or is_named_for_milliseconds(time.column)):
            time = None
        open_texts = {}
        for raw, taken in self.texts.items():
            self._told[raw] = asked.encodings.get(raw) or taken.encoding
            if self._told[raw] is None:
                open_texts[raw] = taken
        sampled = [*open_texts.values(), *([] if time is None else [time])]
        samples = _samples(file, reader, sampled) if sampled else {}
        for raw in open_texts:
            self._told[raw] = self._encoding_of(raw, samples[raw])
        if time is not None:
            self.time_unit = self._unit_of(time, samples["timestamp_ms"])

    def encoding(self, raw: str) -> Encoding | None:
        """How the strings of a column encode bytes, if the file or the caller determines it."""
        return self._told[raw]

    def _encoding_of(self, raw: str, samples: Sequence[Any]) -> Encoding | None:
        try:
            return encoding_of(samples)
        except TooFew as undecided:
            self.undecided[raw] = undecided
            return None
        except Undecided as undecided:
            raise self.refused(raw, undecided) from None

    def refused(self, raw: str, undecided: Undecided) -> LogSourceError:
        """The message about strings whose encoding cannot be determined."""
        return LogSourceError(
            self.file.path,
            f"the texts of the column {printable(self.texts[raw].column)}, taken for {raw}, {undecided}; set how they "
            'encode bytes with encoding="base64", "hex" or "text" (--saved-encoding; savedEncoding in Spark)',
        )

    def _unit_of(self, time: TakenColumn, samples: Sequence[Any]) -> TimeUnit | None:
        try:
            return unit_of(samples)
        except MixedUnits as mixed:
            raise LogSourceError(
                self.file.path,
                f"the numbers of the column {printable(time.column)}, used as timestamp_ms, look like times since "
                f'1970 in {mixed}; set their unit with time_unit="s", "ms", "us" or "ns" (--saved-time-unit; '
                "savedTimeUnit in Spark)",
            ) from None


def _samples(file: SavedFile, reader: FileReader, sampled: Sequence[TakenColumn]) -> dict[str, list[Any]]:
    """The first values of some columns, by raw-row column. It reads as many batches as needed to have enough strings
    and a time."""
    samples: dict[str, list[Any]] = {taken.raw: [] for taken in sampled}
    try:
        for _, batch in reader.batches(top_columns(reader, [taken.column for taken in sampled])):
            for taken in sampled:
                values = member(batch, taken.column, reader.fields).drop_null()
                samples[taken.raw].append(values.slice(0, _SAMPLED_ROWS))
            if all(is_enough(found) if raw in BYTES else any(map(len, found)) for raw, found in samples.items()):
                break
    except (OSError, pa.ArrowException, EOFError) as error:
        raise unreadable(file.place, error) from None
    return samples


# -- what is told ------------------------------------------------------------------------------------------------------


def _notes(name: str, listing: SavedFiles, files: Sequence[SavedFile], asked: SavedAsked) -> list[Finding]:
    notes = [not_read(error) for error in listing.lost]
    if listing.left_out:
        what = f"{some_names(listing.left_out)}: of no known format"
        consequence = "not read; give their format with format=… (--saved-format; savedFormat in Spark)"
        notes.append(Finding("note", UNREAD_LOG, what, consequence, file=name))
    guesses = _guesses(files, asked)
    if guesses:
        consequence = (
            "to change this, use columns=…, encoding=…, time_unit=… (--saved-column …; savedColumns … in Spark)"
        )
        notes.append(Finding("note", GUESSED_COLUMNS, "; ".join(guesses), consequence, file=name))
    return notes


def _guesses(files: Sequence[SavedFile], asked: SavedAsked) -> list[str]:
    told: dict[str, None] = {}
    for file in files:
        for taken in file.taken:
            meaning = _meaning(file, taken, asked)
            if meaning or (taken.raw not in asked.columns and taken.column != taken.raw):
                told[f"column {printable(taken.column)} is used as {taken.raw}{meaning}"] = None
    for file in files:
        for raw, value in file.given:
            if not (raw == "topic" and value == asked.topic):
                which = "folders" if _is_by_folder(file, raw) else "files"
                told[f"names of {which} are taken for {raw}"] = None
    return list(told)


def _meaning(file: SavedFile, taken: TakenColumn, asked: SavedAsked) -> str:
    """The guessed meaning of the values of a column."""
    encoding = dict(file.encodings).get(taken.raw)
    if encoding is not None and taken.raw not in asked.encodings:
        return f", {_SAID[encoding]}"
    if taken.raw == "timestamp_ms" and file.time_unit != "ms" and asked.time_unit is None:
        return f", {_UNITS[file.time_unit]} since 1970"
    return ""


def _is_by_folder(file: SavedFile, raw: str) -> bool:
    return any(raw_name(part.partition("=")[0]) == raw for part in file.place.path.split("/") if "=" in part)
