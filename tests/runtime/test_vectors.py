"""The walker and the JSON form, compared with what Kafka's classes wrote and read (tests/data/vectors)."""

from __future__ import annotations

import json
from base64 import b64decode
from collections import Counter
from hashlib import sha256
from typing import Any

import pytest

from kafka_records_runtime.errors import (
    CountTooLarge,
    DecodeError,
    DuplicateTag,
    EncodeError,
    FieldNotInVersion,
    InvalidMarker,
    InvalidTag,
    InvalidUtf8,
    InvalidVarint,
    NegativeLength,
    NullNotAllowed,
    TagClash,
    TagOrder,
    TagSizeMismatch,
    TagsNotSupported,
    TagsUnsorted,
    TextTooLong,
    TrailingBytes,
    UnsupportedVersion,
    ValueOutOfRange,
)
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.messages import json_form
from kafka_records_runtime.schema import MessageSchema
from kafka_records_runtime.schema.layout import UNKNOWN_TAGS
from kafka_records_runtime.wire import walker
from kafka_records_runtime.wire.leniency import Leniency
from tests.conftest import VectorLoader
from tests.runtime.outcomes import outcome
from tests.runtime.spec_schemas import record_schemas
from tests.verdicts import is_refused_since_4_4, verdict

STRICTER: dict[type[DecodeError], Leniency] = {
    CountTooLarge: Leniency.TAG_COUNT,
    DuplicateTag: Leniency.REPEATED_TAG,
    InvalidMarker: Leniency.STRUCT_MARKER,
    InvalidTag: Leniency.TAG_NUMBER,
    InvalidUtf8: Leniency.INVALID_UTF8,
    InvalidVarint: Leniency.VARINT_BITS,
    NegativeLength: Leniency.NEGATIVE_LENGTH,
    TagOrder: Leniency.TAG_ORDER,
    TagSizeMismatch: Leniency.TAG_SIZE,
    TrailingBytes: Leniency.TRAILING_BYTES,
}
"""Every reason for which the strict decoder may refuse what Kafka reads, and what the lenient one calls it."""

REFUSALS: dict[str, type[EncodeError]] = {
    "ignorable": FieldNotInVersion,
    "non-ignorable field absent": FieldNotInVersion,
    "null array element": NullNotAllowed,
    "null in a non-nullable": NullNotAllowed,
    "string of": TextTooLong,
    "uint16 out of range": ValueOutOfRange,
    "unknown tag number": ValueOutOfRange,
    "unknown tag with the number of a defined one": TagClash,
    "unknown tagged field at a non-flexible version": TagsNotSupported,
    "unknown tags": TagsUnsorted,
    "version out of range": UnsupportedVersion,
}
"""What each kind of line in encode-errors.jsonl must be refused with, if it is refused."""

STRICTER_ENCODING = {TagClash, UnsupportedVersion}
"""Kafka writes these: a raw tag with the number of a defined one, and most versions it does not have."""

STRICTER_JSON = {NullNotAllowed, UnsupportedVersion, TextTooLong, ValueOutOfRange}
"""Kafka's JSON converter prints null for a string that must not be null, and at any version."""


def ours(lines: list[dict[str, Any]]) -> list[tuple[MessageSchema, dict[str, Any]]]:
    schemas = record_schemas()
    return [(schemas[line["message"]], line) for line in lines if line["message"] in schemas]


def text(value: object) -> str:
    """JSON text: the order of keys counts."""
    return json.dumps(value, ensure_ascii=False)


def tags_in(schema: MessageSchema, name: str, value: dict[str, Any], path: list[Any]) -> list[dict[str, Any]]:
    """The unknown tags of a value in the vectors' form, depth first."""
    found: list[dict[str, Any]] = []
    for field in schema.struct(name).fields:
        held = value[field.name]
        if not field.is_struct or held is None:
            continue
        if field.is_array:
            for index, item in enumerate(held):
                found += tags_in(schema, field.base, item, [*path, field.json_name, index])
        else:
            found += tags_in(schema, field.base, held, [*path, field.json_name])
    own = [{"path": path, "tag": tag, "hex": payload.hex()} for tag, payload in value.get(UNKNOWN_TAGS, ())]
    return own + found


def sorted_tags(tags: list[dict[str, Any]]) -> list[str]:
    return sorted(text(tag) for tag in tags)


def test_the_vectors_cover_our_messages(load_vectors: VectorLoader) -> None:
    """Every version of each, and no damaged message of anything else."""
    there = {(schema.name, line["version"]) for schema, line in ours(load_vectors("messages.jsonl.gz"))}
    known = {
        (name, version)
        for name, schema in record_schemas().items()
        for first, last in [schema.versions or (0, 0)]
        for version in range(first, last + 1)
    }
    assert known - there == set()
    damaged = load_vectors("negative.jsonl.gz")
    assert len(ours(damaged)) == len(damaged) > 0
    others = {line["message"] for line in load_vectors("encode-errors.jsonl")} - record_schemas().keys()
    assert {name for name in others if not name.endswith(("Request", "Response"))} == set()


def test_messages(load_vectors: VectorLoader) -> None:
    for schema, line in ours(load_vectors("messages.jsonl.gz")):
        version, data = line["version"], bytes.fromhex(line["hex"])
        value, used = walker.decode(schema, data, version)
        assert used == len(data)
        assert text(json_form.to_json(schema, value, version, lossy=True)) == text(line["json"]), line
        assert sorted_tags(tags_in(schema, schema.root.name, value, [])) == sorted_tags(line.get("tags", []))
        assert walker.encode(schema, value, version) == data, line


def test_messages_from_json(load_vectors: VectorLoader) -> None:
    for schema, line in ours(load_vectors("messages.jsonl.gz")):
        if "tags" not in line and "records" not in line:
            value = json_form.from_json(schema, line["json"], line["version"])
            assert walker.encode(schema, value, line["version"]).hex() == line["hex"], line


def test_messages_read_leniently_are_the_same_and_need_no_leniency(load_vectors: VectorLoader) -> None:
    for schema, line in ours(load_vectors("messages.jsonl.gz")):
        data = bytes.fromhex(line["hex"])
        leniencies: list[str] = []
        found = walker.decode(schema, data, line["version"], lenient=True, leniencies=leniencies)
        assert found == walker.decode(schema, data, line["version"])
        assert leniencies == []


def test_every_byte_of_a_message_is_one_step(load_vectors: VectorLoader) -> None:
    for schema, line in ours(load_vectors("messages.jsonl.gz")):
        data = bytes.fromhex(line["hex"])
        position = 0
        for step in walker.walk(schema, line["version"], data):
            assert step.offset == position, line
            position += step.length
        assert position == len(data)


def leniencies_of(schema: MessageSchema, line: dict[str, Any]) -> list[str]:
    leniencies: list[str] = []
    walker.decode(schema, bytes.fromhex(line["hex"]), line["version"], lenient=True, leniencies=leniencies)
    return leniencies


def test_what_kafka_refuses_since_4_4_is_lenient_here(load_vectors: VectorLoader) -> None:
    """These are only counts of tags above 2147483647: bytes that older brokers accepted can still be read, with a named
    leniency."""
    refused = [
        (schema, line)
        for schema, line in ours(load_vectors("negative.jsonl.gz"))
        if any(map(is_refused_since_4_4, line.get("later", ())))
    ]
    assert refused
    for schema, line in refused:
        assert verdict(line)["ok"], line
        assert Leniency.TAG_COUNT in leniencies_of(schema, line), line


def test_lenient_is_what_kafka_accepts(load_vectors: VectorLoader) -> None:
    for schema, line in ours(load_vectors("negative.jsonl.gz")):
        version, data, judged = line["version"], bytes.fromhex(line["hex"]), verdict(line)
        if not judged["ok"]:
            with pytest.raises(DecodeError):
                walker.decode(schema, data, version, lenient=True)
            continue
        value, used = walker.decode(schema, data, version, lenient=True)
        assert text(json_form.to_json(schema, value, version, lossy=True)) == text(judged["json"]), line
        assert len(data) - used == judged["left"], line
        assert sorted_tags(tags_in(schema, schema.root.name, value, [])) == sorted_tags(judged.get("tags", []))
        if "reencode_error" in judged:
            with pytest.raises(EncodeError):
                walker.encode(schema, value, version)
        else:
            wanted = judged.get("reencode_hex", line["hex"][: 2 * used])
            assert walker.encode(schema, value, version).hex() == wanted, line


def test_strict_refuses_only_by_the_documented_rules(load_vectors: VectorLoader) -> None:
    refused: Counter[type[DecodeError]] = Counter()
    for schema, line in ours(load_vectors("negative.jsonl.gz")):
        version, data = line["version"], bytes.fromhex(line["hex"])
        leniencies: list[str] = []
        lenient, broken = outcome(
            DecodeError, walker.decode, schema, data, version, lenient=True, leniencies=leniencies
        )
        strict, error = outcome(DecodeError, walker.decode, schema, data, version)
        if broken is not None:
            assert error is not None, line
        elif error is not None:
            refused[type(error)] += 1
            assert STRICTER[type(error)] in leniencies, (line, error)
        else:
            assert leniencies == [], line
            assert strict == lenient
    assert set(refused) == set(STRICTER)
    assert {rule.value for rule in Leniency} == {rule.value for rule in STRICTER.values()}


def test_what_strict_accepts_encodes_to_the_same_bytes(load_vectors: VectorLoader) -> None:
    others: set[str] = set()
    for schema, line in ours(load_vectors("negative.jsonl.gz")):
        data = bytes.fromhex(line["hex"])
        decoded, _ = outcome(DecodeError, walker.decode, schema, data, line["version"])
        if decoded is not None and walker.encode(schema, decoded[0], line["version"]) != data:
            others.add("explicit default" if "explicit" in line["how"] else line["how"].partition("@")[0])
    assert others == {"uvarint-overlong", "explicit default"}


def encodable(load_vectors: VectorLoader) -> list[tuple[MessageSchema, dict[str, Any], dict[str, Any]]]:
    return [(schema, line, loose(schema, line)) for schema, line in ours(load_vectors("encode-errors.jsonl"))]


def loose(schema: MessageSchema, line: dict[str, Any]) -> dict[str, Any]:
    """The object of a line as a dict tree: unchecked, as Kafka's setters would take it."""
    value = _loose_struct(schema, schema.root.name, line["json"])
    for tag in line.get("tags", []):
        place: Any = value
        for name in tag["path"]:
            place = place[name] if isinstance(name, int) else place[_python_name(schema, name)]
        place[UNKNOWN_TAGS] = (*place.get(UNKNOWN_TAGS, ()), (tag["tag"], bytes.fromhex(tag["hex"])))
    return value


def _python_name(schema: MessageSchema, json_name: str) -> str:
    fields = (field for struct in schema.structs for field in struct.fields)
    return next(field.name for field in fields if field.json_name == json_name)


def _loose_struct(schema: MessageSchema, name: str, data: dict[str, Any]) -> dict[str, Any]:
    fields = {field.json_name: field for field in schema.struct(name).fields}
    return {
        fields[key].name: (
            tuple(_loose(schema, fields[key].base, item) for item in held)
            if isinstance(held, list)
            else _loose(schema, fields[key].base, held)
        )
        for key, held in data.items()
    }


def _loose(schema: MessageSchema, base: str, data: Any) -> Any:
    if isinstance(data, dict) and "$repeat" in data:
        character, count = data["$repeat"]
        return character * count
    if isinstance(data, dict):
        return _loose_struct(schema, base, data)
    if data is not None and base == "uuid":
        return Uuid.from_string(data)
    if data is not None and base == "bytes":
        return b64decode(data)
    return data


def refusal(line: dict[str, Any]) -> type[EncodeError]:
    return next(error for why, error in REFUSALS.items() if line["why"].startswith(why))


def test_encoding_at_the_limits(load_vectors: VectorLoader) -> None:
    for schema, line, value in encodable(load_vectors):
        data, error = outcome(EncodeError, walker.encode, schema, value, line["version"])
        if data is None:
            assert type(error) is refusal(line), line
            assert line["error"] is not None or type(error) in STRICTER_ENCODING, line
            continue
        assert line["error"] is None, line
        if "hex" in line:
            assert data.hex() == line["hex"]
        else:
            assert (len(data), sha256(data).hexdigest()) == (line["size"], line["sha256"])


def test_encode_errors_name_the_field(load_vectors: VectorLoader) -> None:
    for schema, line, value in encodable(load_vectors):
        if line["error"] is None or not line.get("field"):
            continue
        with pytest.raises(EncodeError) as caught:
            walker.encode(schema, value, line["version"])
        parts = [part for part in line["field"].split(".") if part]
        assert caught.value.path.count(".") == len(parts) - 1 or UNKNOWN_TAGS in caught.value.path
        assert caught.value.path.startswith(_python_name(schema, parts[0].partition("[")[0])), line


def kafkas_json(schema: MessageSchema, value: Any, version: int) -> dict[str, Any]:
    return json_form.to_json(schema, value, version, lossy=True)


def test_json_at_the_limits(load_vectors: VectorLoader) -> None:
    for schema, line, value in encodable(load_vectors):
        _, error = outcome(EncodeError, kafkas_json, schema, value, line["version"])
        if error is None:
            assert line["json_writer_error"] is None, line
        else:
            assert line["json_writer_error"] is not None or type(error) in STRICTER_JSON, line
