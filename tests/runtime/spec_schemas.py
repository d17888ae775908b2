"""Schemas for the tests of the runtime.

The records and the embedded protocol come from the generated package. The four messages of Kafka's own suite, which use
all of the spec language, are built here from the form they have in tests/data/kafka/language-cases.json: the tests of
the runtime do not depend on the generator being right about them.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.schema import (
    EMPTY_STRUCT,
    FORMAT,
    PRIMITIVES,
    FieldSchema,
    MessageSchema,
    Range,
    RecordSchema,
    StructSchema,
)

_LANGUAGE_CASES = Path(__file__).parents[1] / "data" / "kafka" / "language-cases.json"
_FOLDERS = (
    "cluster_metadata",
    "consumer_offsets",
    "consumer_protocol",
    "control",
    "log_files",
    "remote_log_metadata",
    "share_group_state",
    "streams_protocol",
    "transaction_state",
)


@cache
def language_cases() -> dict[str, Any]:
    """The file with Kafka's four test messages and what Kafka does with them."""
    cases: dict[str, Any] = json.loads(_LANGUAGE_CASES.read_text(encoding="utf-8"))
    return cases


@cache
def language_schemas() -> dict[str, MessageSchema]:
    """The four test messages by name."""
    return {name: build(spec) for name, spec in language_cases()["specs"].items()}


@cache
def record_schemas() -> dict[str, MessageSchema]:
    """Every message of the generated schemas by name."""
    modules = [import_module(f"kafka_records.schemas.{folder}") for folder in _FOLDERS]
    values = [getattr(module, name) for module in modules for name in module.__all__]
    return {value.name: value for value in values if isinstance(value, MessageSchema)}


def topic_records(folder: str) -> dict[int, RecordSchema]:
    """The record types of one topic."""
    records: dict[int, RecordSchema] = import_module(f"kafka_records.schemas.{folder}").RECORDS
    return records


def all_schemas() -> dict[str, MessageSchema]:
    """Everything above, by name."""
    return record_schemas() | language_schemas()


def build(spec: dict[str, Any]) -> MessageSchema:
    """A schema from the data files' form of a spec (`message`, `valid_versions`, `flexible_versions`,
    `fields`)."""
    valid = _range(spec["valid_versions"], None)
    flexible = _range(spec["flexible_versions"], valid)
    structs: dict[str, StructSchema] = {}
    fields = _fields(spec["fields"], valid, flexible, structs)
    body = StructSchema(spec["message"], fields)
    return MessageSchema(FORMAT, spec["message"], valid, flexible, (*structs.values(), body))


def _fields(
    specs: list[dict[str, Any]], within: Range, flexible: Range, structs: dict[str, StructSchema]
) -> tuple[FieldSchema, ...]:
    return tuple(_field(spec, within, flexible, structs) for spec in specs)


def _field(spec: dict[str, Any], within: Range, flexible: Range, structs: dict[str, StructSchema]) -> FieldSchema:
    versions = _range(spec["versions"], within)
    base = spec["type"].removeprefix("[]")
    if base not in PRIMITIVES:
        structs[base] = StructSchema(base, _fields(spec["fields"], within, flexible, structs))
    sized = spec["type"].startswith("[]") or base in ("string", "bytes", "records")
    return FieldSchema(
        name=re.sub(r"(?<=[a-z])(?=[A-Z])", "_", spec["name"]).lower(),
        json_name=spec["json"],
        type=spec["type"],
        versions=versions,
        nullable=_range(spec.get("nullable", "none"), versions),
        flexible=_overlap(flexible, versions) if sized else None,
        tag=spec.get("tag"),
        tagged=_range(spec.get("tagged_versions", "none"), versions),
        default=_default(spec, base),
        ignorable=spec.get("ignorable", False),
    )


def _default(spec: dict[str, Any], base: str) -> object:
    default = spec["default"]
    if default is None:
        return None
    if spec["type"].startswith("[]"):
        return ()
    if base not in PRIMITIVES:
        return EMPTY_STRUCT
    if base == "uuid":
        return Uuid.from_string(default)
    return b64decode(default) if base == "bytes" else default


def _range(text: str, within: Range) -> Range:
    if text == "none":
        return None
    lowest, _, highest = text.replace("+", "-32767").partition("-")
    found = (int(lowest), int(highest or lowest))
    return found if within is None else _overlap(found, within)


def _overlap(left: Range, right: Range) -> Range:
    if left is None or right is None:
        return None
    lowest, highest = max(left[0], right[0]), min(left[1], right[1])
    return (lowest, highest) if lowest <= highest else None
