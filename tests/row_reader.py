"""Reads one record, key and value, into plain values: the same as `decode_records` with columns, row by row.

Columns are compared with it. Nothing else reads records like this.

Unlike `kafka_records_runtime.records.reading.read_record`, a record whose value cannot be read still has its key: a
table must know *which* key's last record is broken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kafka_records_engine.columns.walker_values import ToPlain, holds_unknown_tags, plain_values
from kafka_records_engine.spark.record_errors import fields_of_error
from kafka_records_runtime.errors import DecodeError, FramingError, KafkaRecordsError, UnsupportedVersion
from kafka_records_runtime.records.framing import (
    METADATA,
    SchemaRecordType,
    bytes_behind,
    end_frame,
    framing_of,
    split_key,
    split_value,
    start_frame,
    unknown_api_key,
)
from kafka_records_runtime.schema import RecordSchema


@dataclass(slots=True)
class DecodedRow:
    """The readable parts of a record.

    `record_type` is None if the key has none, `value_version` for tombstones and unknown types. `key` and `value` are
    dict trees, None if there is nothing or where `error` says why. `key_bytes_left` and `value_bytes_left` count the
    bytes after the messages, `leniencies` names the reasons for which a strict reader would have refused it.
    `has_unknown_tags` says that there were tagged fields, at any depth, which the schemas do not define.
    """

    record_type: int | None = None
    known: bool = False
    value_version: int | None = None
    key: Any = None
    value: Any = None
    key_bytes_left: int = 0
    value_bytes_left: int = 0
    leniencies: list[str] = field(default_factory=list)
    has_unknown_tags: bool = False
    error: KafkaRecordsError | None = None

    @property
    def is_decoded(self) -> bool:
        return self.known and self.error is None


class RowReader:
    """Reads records by the schemas of their types, as leniently as Kafka's own readers (for example, bytes after a
    message are ignored)."""

    def __init__(self, schemas: Mapping[int, RecordSchema], unknown_tags: bool = False) -> None:
        """`unknown_tags` keeps tagged fields that the schemas do not define."""
        self._is_metadata: Final = framing_of(schemas) == METADATA
        self._types: Final = {
            number: _TypeReader(
                SchemaRecordType(schema),
                plain_values(schema.key_or_none or schema.value, unknown_tags),
                plain_values(schema.value, unknown_tags),
            )
            for number, schema in schemas.items()
        }

    def read(self, key: bytes | None, value: bytes | None) -> DecodedRow:
        """Never raises because of the bytes: `DecodedRow.error` has the error.

        A value version outside the range of its type is an UnsupportedVersion there, as it is for the broker, which
        stops loading the partition; a record type without schema is not an error, unless it is an api key.
        """
        row = DecodedRow()
        read = self._read_metadata if self._is_metadata else self._read
        try:
            read(row, key, value)
        except (DecodeError, FramingError) as error:
            row.error = error
        return row

    def _read(self, row: DecodedRow, key: bytes | None, value: bytes | None) -> None:
        row.record_type, message = split_key(key)
        kind = self._types.get(row.record_type)
        if kind is None:
            return
        row.known = True
        typed, used = kind.reader.read_key(message, row.leniencies)
        row.key, row.key_bytes_left = kind.plain_key(typed), len(message) - used
        row.has_unknown_tags = holds_unknown_tags(typed)
        if value is None:
            return
        row.value_version, message = split_value(value)
        if row.value_version not in kind.reader.value_versions:
            raise UnsupportedVersion(kind.reader.value_name, row.value_version, kind.reader.value_versions)
        typed, used = kind.reader.read_value(message, row.value_version, row.leniencies)
        row.value, row.value_bytes_left = kind.plain_value(typed), len(message) - used
        row.has_unknown_tags |= holds_unknown_tags(typed)

    def _read_metadata(self, row: DecodedRow, key: bytes | None, value: bytes | None) -> None:
        row.record_type, at = start_frame(key, value)
        assert value is not None
        kind = self._types.get(row.record_type)
        if kind is None:
            raise unknown_api_key(value)
        row.known = True
        version, at = end_frame(value, at)
        row.value_version = version
        if version not in kind.reader.value_versions:
            raise UnsupportedVersion(kind.reader.value_name, version, kind.reader.value_versions)
        message = value[at:]
        typed, used = kind.reader.read_value(message, version, row.leniencies)
        if used < len(message):
            raise bytes_behind(kind.reader.value_schema, version, used, len(message) - used)
        row.value, row.has_unknown_tags = kind.plain_value(typed), holds_unknown_tags(typed)


@dataclass(frozen=True, slots=True)
class _TypeReader:
    reader: SchemaRecordType
    plain_key: ToPlain
    plain_value: ToPlain


def error_fields(row: DecodedRow) -> dict[str, Any] | None:
    """The `error` struct of a row, None for one without."""
    return None if row.error is None else fields_of_error(row.error, row.record_type)
