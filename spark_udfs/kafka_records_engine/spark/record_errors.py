"""Converts the error of a record to the `error` struct of its row."""

from __future__ import annotations

from typing import Any

from kafka_records_runtime.errors import DecodeError, FramingError, KafkaRecordsError


def fields_of_error(error: KafkaRecordsError, record_type: int | None) -> dict[str, Any]:
    """The fields of the `error` struct for an error of a record."""
    where = isinstance(error, DecodeError | FramingError)
    return {
        "reason": type(error).__name__,
        "record_type": record_type,
        "version": getattr(error, "version", None),
        "path": getattr(error, "path", None) if where else None,
        "byte_offset": getattr(error, "offset", None) if where else None,
        "message": str(error),
    }
