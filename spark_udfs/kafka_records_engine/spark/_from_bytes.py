"""The part of the `from_…` functions that runs in workers: converts Arrow arrays of bytes to arrays of structs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns import Columns, arrow_type, decode_behind_int16, decode_column, decode_framed
from kafka_records_engine.columns.arrow_arrays import joined
from kafka_records_engine.numpy_types import INT16, INT64, INTEGERS
from kafka_records_engine.spark._secrets import without_secrets
from kafka_records_runtime.records.framing import KEY_VERSION, newer_as_highest, unframed_key, unframed_value
from kafka_records_runtime.schema import MessageSchema

_NEWEST: Final = np.iinfo(np.int16).max


class MessagePrefix(Protocol):
    """Handles the bytes before a message, and determines the version of the message. It decodes a column in pieces.
    `versions` is a second column with the versions, or None."""

    def __call__(
        self, message: MessageSchema, data: pa.Array, versions: pa.Array | None, unknown_tags: bool
    ) -> Iterator[Columns]: ...


@dataclass(frozen=True)
class Decoder:
    """Decodes a batch. With `fails_fast`, the first undecodable row raises its error; otherwise, such rows become
    null."""

    message: MessageSchema
    prefix: MessagePrefix
    fails_fast: bool
    unknown_tags: bool
    show_secrets: bool = False

    def __call__(self, data: pa.Array, versions: pa.Array | None = None) -> pa.StructArray:
        found = [pa.array([], arrow_type(self.message, self.unknown_tags))]
        for columns in self.prefix(self.message, data, versions, self.unknown_tags):
            if self.fails_fast and columns.errors:
                raise columns.errors[min(columns.errors)]
            found.append(columns.values)
        decoded = found[1] if len(found) == 2 else joined(found)
        return decoded if self.show_secrets else without_secrets(self.message, decoded)


@dataclass(frozen=True)
class Versioned:
    """Decodes messages preceded by an int16 version."""

    def __call__(
        self, message: MessageSchema, data: pa.Array, versions: pa.Array | None, unknown_tags: bool
    ) -> Iterator[Columns]:
        yield decode_column(message, data, unknown_tags=unknown_tags)


@dataclass(frozen=True)
class Bare:
    """Decodes messages without preceding bytes: all in `version` or, if it is None, each in the version of its row."""

    version: int | None

    def __call__(
        self, message: MessageSchema, data: pa.Array, versions: pa.Array | None, unknown_tags: bool
    ) -> Iterator[Columns]:
        yield decode_column(
            message, data, versions if self.version is None else self.version, unknown_tags=unknown_tags
        )


@dataclass(frozen=True)
class Capped:
    """Decodes messages preceded by an int16 version. Versions above the highest known one are read as the highest known
    one."""

    def __call__(
        self, message: MessageSchema, data: pa.Array, versions: pa.Array | None, unknown_tags: bool
    ) -> Iterator[Columns]:
        def choose(rows: INT64, numbers: INT16) -> tuple[INT64, INTEGERS]:
            return rows, np.minimum(numbers, newer_as_highest(message, _NEWEST))

        return decode_behind_int16(message, data, choose, unframed_value, unknown_tags=unknown_tags)


@dataclass(frozen=True)
class ReadAs:
    """Decodes messages in the version `version`, and ignores the int16 before each."""

    version: int

    def __call__(
        self, message: MessageSchema, data: pa.Array, versions: pa.Array | None, unknown_tags: bool
    ) -> Iterator[Columns]:
        def choose(rows: INT64, numbers: INT16) -> tuple[INT64, INTEGERS]:
            return rows, np.full(len(rows), self.version)

        return decode_behind_int16(message, data, choose, unframed_value, unknown_tags=unknown_tags)


@dataclass(frozen=True)
class Keys:
    """Decodes keys preceded by an int16 record type. Keys of other types become null without an error."""

    record_type: int

    def __call__(
        self, message: MessageSchema, data: pa.Array, versions: pa.Array | None, unknown_tags: bool
    ) -> Iterator[Columns]:
        def choose(rows: INT64, numbers: INT16) -> tuple[INT64, INTEGERS]:
            rows = rows[numbers == self.record_type]
            return rows, np.full(len(rows), KEY_VERSION)

        return decode_behind_int16(message, data, choose, unframed_key, unknown_tags=unknown_tags)


@dataclass(frozen=True)
class Framed:
    """Decodes messages preceded by a metadata frame. Records of other types become null without an error."""

    api_key: int

    def __call__(
        self, message: MessageSchema, data: pa.Array, versions: pa.Array | None, unknown_tags: bool
    ) -> Iterator[Columns]:
        return decode_framed(message, data, self.api_key, unknown_tags=unknown_tags)
