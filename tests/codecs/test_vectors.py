"""Generated codecs against the bytes that Kafka 4.3.1's own classes wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka_records import registry
from kafka_records_runtime import walker
from kafka_records_runtime.codec import Codec
from kafka_records_runtime.errors import TrailingBytes
from tests.conftest import VectorLoader

Line = dict[str, Any]


@pytest.fixture(scope="module")
def lines(load_vectors: VectorLoader) -> list[Line]:
    found = [line for line in load_vectors("messages.jsonl.gz") if line["message"] in registry.MESSAGES]
    assert len(found) > 1300
    return found


def test_every_message_with_a_spec_has_vectors(lines: list[Line]) -> None:
    control = {"ControlRecordTypeSchema", "EndTxnMarker"}
    assert {line["message"] for line in lines} == set(registry.MESSAGES) - control


def test_decode_then_to_json_is_what_kafka_prints(lines: list[Line]) -> None:
    for line in lines:
        message = registry.message_class(line["message"]).decode(bytes.fromhex(line["hex"]), line["version"])
        assert message.to_json(line["version"]) == line["json"], line


def test_decode_then_encode_gives_the_same_bytes(lines: list[Line]) -> None:
    for line in lines:
        data = bytes.fromhex(line["hex"])
        message = registry.message_class(line["message"]).decode(data, line["version"])
        assert message.encode(line["version"]) == data, line


def test_from_json_then_encode_gives_kafkas_bytes(lines: list[Line]) -> None:
    """JSON carries neither unknown tags nor the bytes of records fields."""
    plain = [line for line in lines if "tags" not in line and "records" not in line]
    assert len(plain) > 1000
    for line in plain:
        message = registry.message_class(line["message"]).from_json(line["json"], line["version"])
        assert message.encode(line["version"]).hex() == line["hex"], line


def test_unknown_tags_are_kept_where_they_stood(lines: list[Line]) -> None:
    tagged = [line for line in lines if "tags" in line]
    assert len(tagged) > 100
    for line in tagged:
        cls = registry.message_class(line["message"])
        message = cls.decode(bytes.fromhex(line["hex"]), line["version"])
        found = list(unknown_tags(cls.CODEC.schema, cls.CODEC.schema.root.name, message, line["version"], []))
        expected = [(tag["path"], tag["tag"], tag["hex"]) for tag in line["tags"]]
        assert sorted(found, key=repr) == sorted(expected, key=repr), line


def unknown_tags(schema: Any, struct: str, value: Any, version: int, path: list[Any]) -> Iterator[tuple[Any, int, str]]:
    for tag, payload in getattr(value, "unknown_tagged_fields", ()):
        yield path, tag, payload.hex()
    for field in schema.struct(struct).fields:
        member = getattr(value, field.name)
        if not field.is_struct or member is None:
            continue
        if field.is_array:
            for index, item in enumerate(member):
                yield from unknown_tags(schema, field.base, item, version, [*path, field.json_name, index])
        else:
            yield from unknown_tags(schema, field.base, member, version, [*path, field.json_name])


def test_the_fast_path_decodes_every_vector_by_itself(lines: list[Line], monkeypatch: pytest.MonkeyPatch) -> None:
    """The walker is the way back for odd bytes; what Kafka writes must not need it."""

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
