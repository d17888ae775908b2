"""Codecs for specs that are not our own, under another package name: the whole language and hostile texts."""

from __future__ import annotations

import ast
import importlib
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_records_runtime.errors import DecodeError, EncodeError, JsonError, KafkaRecordsError
from tests.codecs.agreement import CHECKS

EVERYTHING = ("acme_messages", "Everything")
TRAIL = ("acme_messages", "TrailEntryValue")
LANGUAGE = [
    ("kafka_language", name)
    for name in ("SimpleExampleMessage", "NullableStructMessage", "SimpleArraysMessage", "SimpleRecordsMessage")
]

pytestmark = pytest.mark.usefixtures("generated_home")


def message_class(package: str, name: str) -> Any:
    return importlib.import_module(f"{package}.registry").message_class(name)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("message", [EVERYTHING, TRAIL, *LANGUAGE], ids=lambda message: message[1])
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_agreement(message: tuple[str, str], check: Callable[[Any, st.DataObject], None], data: st.DataObject) -> None:
    check(message_class(*message), data)


def test_every_case_of_kafkas_own_test_messages(kafka_cases: Callable[[str], Any]) -> None:
    cases = kafka_cases("language-cases.json")["cases"]
    assert len(cases) == 55
    for case in cases:
        cls, version = message_class("kafka_language", case["message"]), case["version"]
        if "hex" in case:
            read(cls, version, case)
        else:
            write(cls, version, case)


def write(cls: Any, version: int, case: dict[str, Any]) -> None:
    if "error" in case:
        with pytest.raises((EncodeError, JsonError)):
            made_from(cls, case).encode(version)
        return
    message = made_from(cls, case)
    encoded = message.encode(version)
    assert len(encoded) == case["size"]
    assert encoded.hex().startswith(case.get("wire_hex", case.get("wire_hex_prefix")))
    assert cls.decode(encoded, version).encode(version) == encoded
    if "json" in case:
        assert json.dumps(message.to_json(version, lossy=True)) == json.dumps(case["json"])


def made_from(cls: Any, case: dict[str, Any]) -> Any:
    if case["input"] is None:
        return cls()
    return cls.from_json(given_input(case), case.get("json_version", case["version"]))


def given_input(case: dict[str, Any]) -> Any:
    """The input of a case. The file has long texts as (character, count)."""
    data = json.loads(json.dumps(case["input"]))
    if "myString_repeat" in case:
        data["myString"] = case["myString_repeat"][0] * case["myString_repeat"][1]
    if "nullableStruct3_myString_repeat" in case:
        character, count = case["nullableStruct3_myString_repeat"]
        data["nullableStruct3"]["myString"] = character * count
    return data


def read(cls: Any, version: int, case: dict[str, Any]) -> None:
    data = bytes.fromhex(case["hex"])
    if "error" in case or version not in cls.VERSIONS:
        with pytest.raises(DecodeError):
            cls.decode(data, version)
        return
    message, used = cls.decode_prefix(data, version)
    assert len(data) - used == case["bytes_left"]
    assert message.to_json(version, lossy=True) == case["json"]
    assert message.encode(version).hex() == case["wire_hex"]


def test_texts_of_a_spec_cannot_leave_their_docstrings(generated_home: Path) -> None:
    source = (generated_home / "acme_messages" / "everything.py").read_text(encoding="utf-8")
    everything = next(
        node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == "Everything"
    )
    document = ast.get_docstring(everything)
    assert document is not None
    assert 'that try to end a docstring: """ \\""" \\' in document
    assert "A second comment" in document
    texts = [
        node.value.value
        for node in everything.body
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    assert 'A name the reader uses itself; ends with a quote "' in texts
    assert 'C:\\new """ and a trailing backslash \\' in texts


def test_names_that_python_needs_get_an_underscore() -> None:
    everything = message_class(*EVERYTHING)(int_=1, class_=None, tuple_=(1, 2), decode_=3, data=b"x", pos=9)
    assert everything.decode(everything.encode(1), 1) == everything
    assert everything.to_json(1)["class"] is None


def test_equal_struct_names_in_key_and_value_become_two_classes() -> None:
    key, value = message_class("acme_messages", "TrailEntryKey"), message_class(*TRAIL)
    assert key.CODEC.classes["Who"] is not value.CODEC.classes["Who"]
    audit = importlib.import_module("acme_messages.audit")
    record_key = key(key.CODEC.classes["Who"]("ann"))
    record_value = value("login", value.CODEC.classes["Who"]("bob", (1, 2)))
    record = audit.decode_record(*audit.encode_record(record_key, record_value))
    assert (record.key, record.value, record.value_version) == (record_key, record_value, 1)


def test_a_registry_knows_its_package_only() -> None:
    with pytest.raises(KafkaRecordsError, match="OffsetCommitValue"):
        message_class("acme_messages", "OffsetCommitValue")


def test_messages_are_values() -> None:
    everything = message_class(*EVERYTHING)
    message = everything(items=(everything.CODEC.classes["Leaf"](texts=("a",)),))
    assert pickle.loads(pickle.dumps(message)) == message
    assert hash(message) == hash(everything(items=(everything.CODEC.classes["Leaf"](texts=("a",)),)))
    assert {message, everything()} == {everything(), message}
    assert "texts=('a',)" in repr(message)
    with pytest.raises(AttributeError):
        message.pos = 3


@pytest.mark.parametrize("data", [3, "text", [1], None])
def test_decode_takes_bytes_only(data: object) -> None:
    with pytest.raises(TypeError, match="takes bytes, bytearray or memoryview, not "):
        message_class(*EVERYTHING).decode(data, 0)


def test_other_buffers_decode_to_the_same_values() -> None:
    everything = message_class(*EVERYTHING)
    encoded = everything(data=b"abc", blobs=(b"x",)).encode(3)
    for buffer in (bytearray(encoded), memoryview(encoded)):
        message = everything.decode(buffer, 3)
        assert message == everything.decode(encoded, 3)
        assert type(message.data) is bytes
