"""The results of the row reader for raw rows, in the form of Spark's rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kafka_records_engine.spark.raw import RAW_COLUMNS
from kafka_records_runtime.schema import RecordSchema
from kafka_records_runtime.schema.layout import UNKNOWN_TAGS
from kafka_records_runtime.text.casing import snake_case
from tests.row_reader import DecodedRow, RowReader, error_fields

Record = dict[str, Any]
Schemas = Mapping[int, RecordSchema]

COORDINATES = tuple(name for name in RAW_COLUMNS if name not in ("key", "value"))


def key_and_value(case: Mapping[str, Any]) -> tuple[bytes | None, bytes | None]:
    """The bytes of a line of `framed.jsonl`."""
    key, value = (None if case[name] is None else bytes.fromhex(case[name]) for name in ("key_hex", "value_hex"))
    return key, value


def decoded_rows(raw: Iterable[Mapping[str, Any]], schemas: Schemas, unknown_tags: bool = False) -> Iterator[Record]:
    """The expected result of `decode_records` for each raw row, by column."""
    reader = RowReader(schemas, unknown_tags)
    for each in raw:
        is_record = each["control"] is None
        row = reader.read(each["key"], each["value"]) if is_record else DecodedRow()
        says_all = row.is_decoded and not (row.leniencies or row.key_bytes_left or row.value_bytes_left)
        keeps_bytes = is_record and not (says_all and (unknown_tags or not row.has_unknown_tags))
        yield {
            **{name: each[name] for name in COORDINATES},
            "record_type": row.record_type,
            "value_version": row.value_version,
            "is_tombstone": each["value"] is None if is_record else None,
            "key_bytes_left": row.key_bytes_left,
            "value_bytes_left": row.value_bytes_left,
            "has_unknown_tags": row.has_unknown_tags,
            "leniencies": row.leniencies,
            "error": error_fields(row),
            "raw_key": each["key"] if keeps_bytes else None,
            "raw_value": each["value"] if keeps_bytes else None,
            **{
                snake_case(schema.name): (
                    None
                    if row.key is None or row.record_type != number
                    else {"key": in_columns(row.key, unknown_tags), "value": in_columns(row.value, unknown_tags)}
                )
                for number, schema in schemas.items()
            },
        }


def in_columns(value: Any, unknown_tags: bool = False) -> Any:
    """A value of the row reader in the form of columns: arrays are lists, and unknown tagged fields are kept or not."""
    if isinstance(value, dict):
        return {
            name: in_columns(item, unknown_tags) for name, item in value.items() if unknown_tags or name != UNKNOWN_TAGS
        }
    return [in_columns(item, unknown_tags) for item in value] if isinstance(value, list | tuple) else value
