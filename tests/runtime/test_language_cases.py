"""Kafka's four test messages, which use the whole spec language, written and read by Kafka's own code."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafka_records_runtime.errors import DecodeError, EncodeError, FieldNotInVersion, JsonError, NullNotAllowed
from kafka_records_runtime.messages import json_form
from kafka_records_runtime.schema import MessageSchema
from kafka_records_runtime.wire import walker
from tests.runtime.spec_schemas import language_cases, language_schemas

CASES: list[dict[str, Any]] = language_cases()["cases"]
WRITES = [case for case in CASES if "hex" not in case]
READS = [case for case in CASES if "hex" in case]

ERRORS = {
    "UnsupportedVersionException": "FieldNotInVersion",
    "NullPointerException": "NullNotAllowed",
    "RuntimeException": "TextTooLong",
}

BEYOND_THE_VERSIONS = "read at a version above validVersions: top level is not checked"
"""Kafka's readers leave checking the version to their callers; ours check it."""


def schema_of(case: dict[str, Any]) -> MessageSchema:
    return language_schemas()[case["message"]]


def input_of(case: dict[str, Any]) -> Any:
    """The value Kafka wrote: read from JSON at `json_version`, with the long texts put back in."""
    schema = schema_of(case)
    if case["input"] is None:
        return walker.default_value(schema)
    value = json_form.from_json(schema, case["input"], case.get("json_version", case["version"]))
    for key, (character, count) in ((k, v) for k, v in case.items() if k.endswith("_repeat")):
        if key == "myString_repeat":
            value["my_string"] = character * count
        else:
            value["nullable_struct3"]["my_string"] = character * count
    return value


def test_there_are_55_cases() -> None:
    assert (len(WRITES), len(READS)) == (43, 12)


@pytest.mark.parametrize("case", WRITES, ids=lambda case: f"{case['message']}-v{case['version']}")
def test_write(case: dict[str, Any]) -> None:
    schema, version = schema_of(case), case["version"]
    if "does not fit" in str(case.get("error")):
        with pytest.raises(JsonError, match=r"^SimpleExampleMessage v2: myUint(16|32) is outside the range 0 to"):
            input_of(case)
        return
    value = input_of(case)
    if "error" in case:
        with pytest.raises(EncodeError) as caught:
            walker.encode(schema, value, version)
        assert type(caught.value).__name__ == ERRORS[case["error"]["class"]]
        return
    data = walker.encode(schema, value, version)
    assert len(data) == case["size"]
    if "wire_hex" in case:
        assert data.hex() == case["wire_hex"]
    else:
        assert data.hex().startswith(case["wire_hex_prefix"])
    decoded, used = walker.decode(schema, data, version)
    assert used == len(data)
    assert walker.encode(schema, decoded, version) == data
    if "json" in case:
        printed = json_form.to_json(schema, value, version, lossy=True)
        assert json.dumps(printed) == json.dumps(case["json"])
        assert json.dumps(json_form.to_json(schema, decoded, version, lossy=True)) == json.dumps(case["json"])


@pytest.mark.parametrize("case", READS, ids=lambda case: f"{case['message']}-{case['hex']}")
@pytest.mark.parametrize("lenient", [False, True], ids=["strict", "lenient"])
def test_read(case: dict[str, Any], lenient: bool) -> None:
    schema, version = schema_of(case), case["version"]
    data = bytes.fromhex(case["hex"])
    if "error" in case or case.get("note") == BEYOND_THE_VERSIONS:
        with pytest.raises(DecodeError):
            walker.decode(schema, data, version, lenient=lenient)
        return
    value, used = walker.decode(schema, data, version, lenient=lenient)
    assert len(data) - used == case["bytes_left"]
    assert json_form.to_json(schema, value, version, lossy=True) == case["json"]
    assert walker.encode(schema, value, version).hex() == case["wire_hex"]


def test_the_paths_of_refused_writes() -> None:
    arrays = language_schemas()["SimpleArraysMessage"]
    value = json_form.from_json(arrays, {"goats": [{"color": 1, "name": "g"}], "sheep": []}, 2)
    with pytest.raises(FieldNotInVersion) as nested:
        walker.encode(arrays, value, 1)
    assert str(nested.value) == ("SimpleArraysMessage v1: goats[0].name is set, but this version has no such field")
    structs = language_schemas()["NullableStructMessage"]
    with pytest.raises(NullNotAllowed) as null:
        walker.encode(structs, {"nullable_struct2": None}, 0)
    assert str(null.value) == ("NullableStructMessage v0: nullable_struct2 is None, which this version does not allow")
