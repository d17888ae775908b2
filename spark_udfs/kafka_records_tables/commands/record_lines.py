"""Records as lines of `kafka-records dump`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kafka_records_engine.findings import said_of
from kafka_records_runtime.errors import DecodeError, FramingError, UnsupportedVersion
from kafka_records_runtime.kafka.config_names import REDACTED
from kafka_records_runtime.kafka.secrets import MAY_HOLD_SECRETS, without_secrets
from kafka_records_runtime.messages.json_form import to_json
from kafka_records_runtime.records.classes import (
    PlainRecord,
    UnknownApiKeyRecord,
    UnknownTypeRecord,
    UnknownVersionRecord,
)
from kafka_records_runtime.records.framing import KEY_VERSION, METADATA, framing_of, numbers_of_frame, prefix_of
from kafka_records_runtime.records.json_form import key_in_hex, value_in_hex
from kafka_records_runtime.records.reading import read_record, schema_record_types
from kafka_records_tables.commands import quorum_records
from kafka_records_tables.commands.embedded_messages import opened
from kafka_records_tables.commands.totals import RecordTotals

if TYPE_CHECKING:
    from kafka_records_tables.commands.catalog import Catalog
    from kafka_records_tables.commands.topic_names import TopicNames

Record: TypeAlias = PlainRecord | UnknownVersionRecord[Any] | UnknownTypeRecord | UnknownApiKeyRecord

COLUMNS: Final = (
    "topic",
    "partition",
    "offset",
    "timestamp_ms",
    "key",
    "value",
    "base_offset",
    "producer_id",
    "transaction",
    "control",
)
"""The columns of raw rows that a line needs, before the columns for the position."""


_ENDS: Final = frozenset({"commit", "abort"})


class FoundRecord(NamedTuple):
    """A raw row."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    base_offset: int | None
    producer_id: int | None
    transaction: str | None
    control: str | None
    file: str
    position: int | None


def found_records(rows: Any) -> Iterator[FoundRecord]:
    """The rows of a record batch of COLUMNS, with their positions."""
    return map(FoundRecord._make, zip(*(column.to_pylist() for column in rows.columns), strict=True))


class RecordPrinter:
    """Converts the records of one topic to lines, counts them in `totals`, and reports undecodable ones."""

    def __init__(
        self,
        topic: str,
        catalog: Catalog,
        names: TopicNames,
        totals: RecordTotals,
        with_bytes: bool = False,
        *,
        show_secrets: bool = False,
    ) -> None:
        self._schemas = catalog.records(topic)
        self._retired = catalog.retired(topic)
        self._framing = framing_of(self._schemas)
        self._types = schema_record_types(self._schemas)
        self._is_kafka = catalog.is_kafka
        self._names = names
        self._totals = totals
        self._with_bytes = with_bytes
        self._may_hide = not show_secrets and any(each.name in MAY_HOLD_SECRETS for each in self._schemas.values())

    def line(self, found: FoundRecord) -> dict[str, Any]:
        """The content of the line of a record."""
        if found.control is not None:
            if found.control not in _ENDS:
                self._totals.counts.records += 1
                return self._of_quorum(found)
            self._totals.counts.markers += 1
            return self._line(found, None, None, None)
        self._totals.counts.records += 1
        try:
            record = read_record(self._types, found.key, found.value, framing=self._framing)
            if record.error is not None:
                raise record.error
        except (DecodeError, FramingError) as error:
            return self._undecodable(found, error)
        self._count(record)
        key, value = self._shown_key(record), self._shown_value(record)
        if self._may_hide and value is not None:
            found, value = self._without_secrets(found, record, value)
        return self._line(found, record.record_type, key, value, record=record)

    def _of_quorum(self, found: FoundRecord) -> dict[str, Any]:
        """The line of a control record in the metadata log."""
        try:
            data = quorum_records.shown(str(found.control), found.value)
        except DecodeError as error:
            said = f"{_place(found)}record at offset {found.offset}: {said_of(error)} (shown with its bytes)"
            self._totals.undecodable_record(type(error).__name__, lambda: said)
            shown = None if found.value is None else value_in_hex(found.value)
            return self._line(found, None, None, shown, error=_described(error, "value"))
        return self._line(found, None, None, {"version": quorum_records.VERSION, "data": data})

    def _without_secrets(
        self, found: FoundRecord, record: Record, value: dict[str, Any]
    ) -> tuple[FoundRecord, dict[str, Any]]:
        """The record without bytes, and its value without secrets."""
        data = without_secrets(self._schemas[record.record_type].name, value["data"])
        return (found, value) if data is value["data"] else (found._replace(value=None), {**value, "data": data})

    def _shown_key(self, record: Record) -> dict[str, Any] | None:
        if isinstance(record, UnknownTypeRecord):
            return key_in_hex(record.key)
        schema = self._schemas[record.record_type].key_or_none
        if schema is None:
            return None
        data = to_json(schema, record.key, KEY_VERSION, lossy=True)
        return {"type": record.record_type, "data": data}

    def _shown_value(self, record: Record) -> dict[str, Any] | None:
        if record.value is None:
            return None
        if isinstance(record, UnknownTypeRecord):
            return value_in_hex(record.value)
        assert record.value_version is not None
        data = to_json(self._schemas[record.record_type].value, record.value, record.value_version, lossy=True)
        number = {"type": record.record_type} if self._framing == METADATA else {}
        return {**number, "version": record.value_version, "data": data}

    def _undecodable(self, found: FoundRecord, error: DecodeError | FramingError) -> dict[str, Any]:
        key, value = found.key, found.value
        shown_key = None if key is None else key_in_hex(key)
        record_type, part, record = prefix_of(key), "key", None
        if self._framing == METADATA:
            part = "value" if key is None else "key"
            record_type = numbers_of_frame(value)[0] if key is None else None
            shown_key = None if key is None else {"type": None, "hex": key.hex()}
        elif record_type is not None:
            try:
                record = read_record(self._types, key, None)
                shown_key, part = self._shown_key(record), "value"
            except DecodeError:
                pass
        self._totals.has_newer |= isinstance(error, UnsupportedVersion)
        self._totals.undecodable_record(
            type(error).__name__,
            lambda: f"{_place(found)}record at offset {found.offset}: {said_of(error)} (shown with its bytes)",
        )
        shown_value = None if value is None else value_in_hex(value, self._framing)
        described = _described(error, part)
        if self._may_hide and shown_value is not None and self._may_be_secret(value):
            found, shown_value = found._replace(value=None), {**shown_value, "hex": REDACTED}
        return self._line(found, record_type, shown_key, shown_value, record=record, error=described)

    def _may_be_secret(self, value: bytes | None) -> bool:
        """Whether undecodable bytes may contain a secret. The bytes of a record of an unknown type may."""
        schema = self._schemas.get(-1 if (number := numbers_of_frame(value)[0]) is None else number)
        return schema is None or schema.name in MAY_HOLD_SECRETS

    def _line(
        self,
        found: FoundRecord,
        record_type: int | None,
        key: dict[str, Any] | None,
        value: dict[str, Any] | None,
        *,
        record: Record | None = None,
        error: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        line = {
            "topic": found.topic,
            "partition": found.partition,
            "offset": found.offset,
            "timestamp": found.timestamp_ms,
            "record_type": record_type,
            "key": key,
            "value": value,
            "producer_id": found.producer_id,
            "is_transactional": None if found.transaction is None else found.transaction != "none",
            "control": found.control,
            "opened": opened(record) if record is not None and self._is_kafka else {},
            "topic_names": {} if record is None else self._names.of(record.key, record.value),
        }
        if self._with_bytes:
            line["raw_key"] = None if found.key is None else found.key.hex()
            line["raw_value"] = None if found.value is None else found.value.hex()
        line["error"] = error
        return line

    def _count(self, record: Record) -> None:
        totals = self._totals
        if isinstance(record, UnknownTypeRecord):
            retired = self._retired.get(record.record_type)
            note = "" if retired is None else f" {retired.name}, {retired.why}"
            totals.unknown_types[f"{record.record_type}{note}"] += 1
        totals.leniency(record.key_bytes_left + record.value_bytes_left, record.leniencies)


def _described(error: DecodeError | FramingError, part: str) -> dict[str, Any]:
    where = error if isinstance(error, DecodeError) else None
    return {
        "part": part,
        "reason": type(error).__name__,
        "version": where and where.version,
        "path": where and where.path,
        "byte_offset": error.offset,
        "message": str(error),
    }


def _place(found: FoundRecord) -> str:
    place = f"{found.file}: " if found.position is None else f"{found.file}: byte {found.position}, "
    return place if found.base_offset is None else f"{place}batch at offset {found.base_offset}: "
