"""Records as the lines of `kafka-records dump`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka_records_cli.reporting import RecordReport, say
from kafka_records_cli.topics import record_schemas, retired_records
from kafka_records_runtime.errors import DecodeError, FramingError
from kafka_records_runtime.jsonform import to_json
from kafka_records_runtime.records import (
    KEY_VERSION,
    Record,
    read_record,
    record_type_of,
    schema_record_types,
    value_version_of,
)

if TYPE_CHECKING:
    from kafka_records_arrow.segments import LogRecord

_PREFIX: Final = 2


class RecordPrinter:
    """Turns the records of one topic into lines, counts them in `report`, and says which could not be decoded."""

    def __init__(self, topic: str, report: RecordReport) -> None:
        self._schemas = record_schemas(topic)
        self._retired = retired_records(topic)
        self._types = schema_record_types(self._schemas)
        self._report = report

    def line(self, found: LogRecord) -> dict[str, Any] | None:
        """What the line of a record says; None for a control record that does not end a transaction."""
        if found.batch.is_control:
            if found.control is None:
                return None
            self._report.markers += 1
            return self._line(found, None, None, None, None)
        self._report.records += 1
        key, value = found.record.key, found.record.value
        try:
            record = read_record(self._types, key, value)
        except (DecodeError, FramingError) as error:
            return self._undecodable(found, error)
        self._count(record)
        return self._line(found, record.record_type, self._shown_key(record), self._shown_value(record), None)

    def _shown_key(self, record: Record) -> dict[str, Any]:
        if record.name is None:
            return {"type": record.record_type, "hex": record.key.hex()}
        data = to_json(self._schemas[record.record_type].key, record.key, KEY_VERSION)
        return {"type": record.record_type, "data": data}

    def _shown_value(self, record: Record) -> dict[str, Any] | None:
        if record.value is None:
            return None
        if record.value_version is None or not record.is_known_version:
            return _raw_value(record.value)
        data = to_json(self._schemas[record.record_type].value, record.value, record.value_version)
        return {"version": record.value_version, "data": data}

    def _undecodable(self, found: LogRecord, error: DecodeError | FramingError) -> dict[str, Any]:
        self._report.undecodable += 1
        key, value = found.record.key, found.record.value
        shown_key, record_type, part = _raw_key(key), None, "key"
        if key is not None and len(key) >= _PREFIX:
            record_type = record_type_of(key)
            try:
                shown_key = self._shown_key(read_record(self._types, key, None))
                part = "value"
            except DecodeError:
                pass
        batch = found.batch
        say(
            f"{found.file}: byte {batch.position}, batch at offset {batch.offset}: "
            f"record at offset {found.record.offset}: {error} (shown with its bytes)"
        )
        shown_value = None if value is None else _raw_value(value)
        return self._line(found, record_type, shown_key, shown_value, _described(error, part))

    def _line(
        self,
        found: LogRecord,
        record_type: int | None,
        key: dict[str, Any] | None,
        value: dict[str, Any] | None,
        error: dict[str, Any] | None,
    ) -> dict[str, Any]:
        return {
            "topic": found.topic,
            "partition": found.partition,
            "offset": found.record.offset,
            "timestamp": found.record.timestamp_ms,
            "record_type": record_type,
            "key": key,
            "value": value,
            "producer_id": found.batch.producer_id,
            "is_transactional": found.batch.is_transactional,
            "control": found.control,
            "error": error,
        }

    def _count(self, record: Record) -> None:
        report = self._report
        if record.name is None:
            retired = self._retired.get(record.record_type)
            note = "" if retired is None else f" {retired}, early access"
            report.unknown_types[f"{record.record_type}{note}"] += 1
        elif not record.is_known_version:
            report.unknown_versions[f"{record.name} v{record.value_version}"] += 1
        report.leniency(record.key_left + record.value_left, record.leniencies)


def _raw_key(key: bytes | None) -> dict[str, Any] | None:
    if key is None:
        return None
    return {"type": record_type_of(key) if len(key) >= _PREFIX else None, "hex": key.hex()}


def _raw_value(value: bytes) -> dict[str, Any]:
    return {"version": value_version_of(value) if len(value) >= _PREFIX else None, "hex": value.hex()}


def _described(error: DecodeError | FramingError, part: str) -> dict[str, Any]:
    where = error if isinstance(error, DecodeError) else None
    return {
        "part": part,
        "reason": type(error).__name__,
        "version": where and where.version,
        "path": where and where.path,
        "byte_offset": where and where.offset,
        "message": str(error),
    }
