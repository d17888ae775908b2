"""The part of the `to_…` functions that runs in workers: converts Arrow arrays of structs to arrays of bytes.

The schema walker writes the messages one by one. Fields and types of a struct column are checked once per batch and
version, so a mistake in the query raises an error in every mode, instead of counting as an error of each row.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import Any

import pyarrow as pa

from kafka_records_engine.spark._secrets import may_hold_secrets, refuse_redacted
from kafka_records_engine.spark._struct_columns import Convert, check_fields, walker_values
from kafka_records_runtime.errors import EncodeError, WrongType
from kafka_records_runtime.records.framing import COORDINATOR, METADATA, Framing, framed, in_frame
from kafka_records_runtime.schema import MessageSchema
from kafka_records_runtime.schema.layout import versions_of
from kafka_records_runtime.wire import walker
from kafka_records_runtime.wire.failure import WriteFailure


@dataclass(frozen=True)
class Encoder:
    """Encodes a batch of structs in `version` or, if that is None, each struct in the version of its row. Before a
    message, it writes the `record_type`, if any, or, with `version_prefix`, the version. A metadata frame (`framing`)
    contains both. With `fails_fast`, the first value that cannot be written raises its error; otherwise, such values
    become null."""

    message: MessageSchema
    version: int | None
    record_type: int | None
    version_prefix: bool
    fails_fast: bool
    framing: Framing = COORDINATOR

    def __call__(self, values: pa.Array, versions: pa.Array | None = None) -> pa.BinaryArray:
        self._check(values, versions)
        convert = walker_values(self.message, values.type)
        numbers = repeat(self.version, len(values)) if versions is None else versions.to_pylist()
        rows = zip(values.to_pylist(), numbers, strict=True)
        return pa.array([self._row(value, version, convert) for value, version in rows], pa.binary())

    def _check(self, values: pa.Array, versions: pa.Array | None) -> None:
        used = [self.version] if versions is None else versions.filter(values.is_valid()).unique().to_pylist()
        if values.null_count < len(values):
            for version in versions_of(self.message):
                if version in used:
                    check_fields(self.message, values.type, version)

    def _row(self, value: Any, version: int | None, convert: Convert) -> bytes | None:
        if value is None:
            return None
        try:
            return self._encode(value, version, convert)
        except EncodeError:
            if self.fails_fast:
                raise
            return None

    def _encode(self, value: Any, version: int | None, convert: Convert) -> bytes:
        name = self.message.name
        if version is None:
            raise WrongType(name, None, "version", "a number", "null")
        try:
            converted = convert(value)
        except WriteFailure as failure:
            raise failure.located(name, version) from None
        if may_hold_secrets(self.message):
            refuse_redacted(self.message, version, value)
        encoded = walker.encode(self.message, converted, version)
        if self.framing == METADATA and self.record_type is not None:
            return in_frame(self.record_type, version, encoded)
        if self.record_type is not None:
            return framed(self.record_type, encoded)
        return framed(version, encoded) if self.version_prefix else encoded
