"""Generated codecs, compared with the bytes that Kafka's own classes wrote."""

from __future__ import annotations

import json
from base64 import b64decode
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from kafka_records import registry
from kafka_records_runtime.errors import DecodeError, KafkaRecordsError, TrailingBytes
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.messages.codec import Codec
from kafka_records_runtime.schema import FieldSchema
from kafka_records_runtime.wire import walker
from tests.conftest import VectorLoader
from tools.follow.vectors import unknown_tags

Line = dict[str, Any]


@pytest.fixture(scope="module")
def lines(load_vectors: VectorLoader) -> list[Line]:
    return load_vectors("messages.jsonl.gz")


def test_every_message_with_a_spec_has_vectors(lines: list[Line]) -> None:
    without = {"ConsumerGroupPrepareAssignmentResponse"}
    # Kafka has no specs of these; test_client_protocols.py has what its classes write.
    without |= {
        "ConnectProtocolAssignment",
        "ConnectProtocolSubscription",
        "CooperativeStickyAssignorUserData",
        "StickyAssignorUserData",
    }
    assert {line["message"] for line in lines} == set(registry.MESSAGES) - without


def test_decode_then_to_json_is_what_kafka_prints(lines: list[Line]) -> None:
    for line in lines:
        message = registry.message_class(line["message"]).decode(bytes.fromhex(line["hex"]), line["version"])
        assert message.to_json(line["version"], lossy=True) == line["json"], line


def test_decode_then_encode_gives_the_same_bytes(lines: list[Line]) -> None:
    for line in lines:
        data = bytes.fromhex(line["hex"])
        message = registry.message_class(line["message"]).decode(data, line["version"])
        assert message.encode(line["version"]) == data, line


def test_from_json_then_encode_gives_kafkas_bytes(lines: list[Line]) -> None:
    """Kafka's JSON has neither unknown tags nor the bytes of `records` fields."""
    plain = [line for line in lines if "tags" not in line and "records" not in line]
    assert {line["message"] for line in plain} == {line["message"] for line in lines}
    for line in plain:
        message = registry.message_class(line["message"]).from_json(line["json"], line["version"])
        assert message.encode(line["version"]).hex() == line["hex"], line


def test_our_json_carries_every_byte(lines: list[Line]) -> None:
    """Our form is Kafka's form wherever that loses nothing."""
    more = Counter[str]()
    for line in lines:
        cls, version = registry.message_class(line["message"]), line["version"]
        shown = json.loads(json.dumps(cls.decode(bytes.fromhex(line["hex"]), version).to_json(version)))
        assert cls.from_json(shown, version).encode(version).hex() == line["hex"], line
        more["tags" if "tags" in line else "records" if "records" in line else "plain"] += 1
        assert "tags" in line or "records" in line or shown == line["json"]
    assert min(more["tags"], more["records"], more["plain"]) > 0


def test_unknown_tags_are_kept_where_they_stood(lines: list[Line]) -> None:
    tagged = [line for line in lines if "tags" in line]
    assert tagged
    for line in tagged:
        cls = registry.message_class(line["message"])
        assert cls.CODEC.schema.is_flexible(line["version"])
        message = cls.decode(bytes.fromhex(line["hex"]), line["version"])
        found = list(unknown_tags(cls.CODEC.schema, cls.CODEC.schema.root.name, message))
        assert sorted(found, key=repr) == sorted(line["tags"], key=repr), line


def test_the_fast_path_decodes_every_vector_by_itself(lines: list[Line], monkeypatch: pytest.MonkeyPatch) -> None:
    """The walker is the fallback for odd bytes. Bytes that Kafka writes must not need it."""

    def fail(self: Codec[Any], data: bytes, version: int) -> Any:
        raise AssertionError("the fast path gave up")

    monkeypatch.setattr(Codec, "decode", fail)
    for line in lines:
        registry.message_class(line["message"]).decode(bytes.fromhex(line["hex"]), line["version"])


def test_fast_path_and_walker_agree_on_every_vector(lines: list[Line]) -> None:
    for line in lines:
        data, version = bytes.fromhex(line["hex"]), line["version"]
        cls = registry.message_class(line["message"])
        schema = cls.CODEC.schema
        by_walker, used = walker.decode(schema, data, version, classes=cls.CODEC.classes)
        assert cls.decode(data, version) == by_walker
        assert used == len(data)
        assert walker.encode(schema, by_walker, version) == data


def test_bytes_left_over_are_refused_or_counted(lines: list[Line]) -> None:
    for line in lines[::7]:
        data, version = bytes.fromhex(line["hex"]), line["version"]
        cls = registry.message_class(line["message"])
        message, used = cls.decode_prefix(data + b"\x00\x01\x02", version)
        assert (message, used) == (cls.decode(data, version), len(data))
        with pytest.raises(TrailingBytes) as caught:
            cls.decode(data + b"\x00\x01\x02", version)
        assert (caught.value.count, caught.value.offset) == (3, len(data))


def test_every_prefix_of_a_vector_is_refused_with_path_and_place(lines: list[Line]) -> None:
    shortest = {(line["message"], line["version"]): line for line in sorted(lines, key=lambda line: -len(line["hex"]))}
    for (name, version), line in shortest.items():
        data = bytes.fromhex(line["hex"])
        for size in range(len(data)):
            with pytest.raises(DecodeError) as caught:
                registry.message_class(name).decode(data[:size], version)
            assert caught.value.path
            assert 0 <= caught.value.offset <= size


def test_classes_and_walker_agree_on_bytes_that_kafka_judged(load_vectors: VectorLoader) -> None:
    """The walker is compared with Kafka's verdicts in tests/runtime; here the classes are compared with the walker."""
    judged = load_vectors("negative.jsonl.gz")
    for line in judged:
        cls, data = registry.message_class(line["message"]), bytes.fromhex(line["hex"])
        schema, version = cls.CODEC.schema, line["version"]
        by_class = outcome(cls.decode_prefix, data, version)
        by_walker = outcome(walker.decode, schema, data, version, classes=cls.CODEC.classes, allow_trailing=True)
        assert by_class == by_walker, line


def test_classes_and_walker_agree_on_values_that_kafka_judged(load_vectors: VectorLoader) -> None:
    judged = load_vectors("encode-errors.jsonl")
    for line in judged:
        cls, version = registry.message_class(line["message"]), line["version"]
        message = cls.CODEC.classes[line["message"]](**arguments(cls.CODEC, line["message"], line["json"]))
        by_class = outcome(message.encode, version)
        assert by_class == outcome(walker.encode, cls.CODEC.schema, message, version), line
        if line["error"] is None and isinstance(by_class, bytes) and "tags" not in line:
            assert "hex" not in line or by_class == bytes.fromhex(line["hex"])


def outcome(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The result of `call`, or the KafkaRecordsError that it raises, as text."""
    try:
        return call(*arguments, **options)
    except KafkaRecordsError as error:
        return f"{type(error).__name__}: {error}"


def arguments(codec: Codec[Any], struct: str, json: dict[str, Any]) -> dict[str, Any]:
    """The constructor's arguments for an object of encode-errors.jsonl, which may have values that no version
    allows."""
    fields = {field.json_name: field for field in codec.schema.struct(struct).fields}
    return {fields[name].name: argument(codec, fields[name], value) for name, value in json.items()}


def argument(codec: Codec[Any], field: FieldSchema, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(argument(codec, field, item) for item in value)
    if isinstance(value, dict) and "$repeat" in value:
        return value["$repeat"][0] * value["$repeat"][1]
    if isinstance(value, dict) and "$hex" in value:
        return bytes.fromhex(value["$hex"])
    if field.is_struct and isinstance(value, dict):
        return codec.classes[field.base](**arguments(codec, field.base, value))
    if isinstance(value, str) and field.base == "uuid":
        return Uuid.from_string(value)
    if isinstance(value, str) and field.base in ("bytes", "records"):
        return b64decode(value)
    return value
