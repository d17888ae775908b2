"""The verdicts of Kafka's own generator and of ours on 120 small specs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.loader import load
from kafka_records_codegen.model.messages import Model
from kafka_records_codegen.spec.violations import SpecErrors

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).resolve().parents[1] / "data" / "kafka" / "spec-validation.json").read_text(encoding="utf-8")
)["cases"]

DIFFERENT: Mapping[str, str] = {
    # The driver after the data hands every message to the class generator; Kafka's MessageGenerator skips messages
    # without valid versions, and so do we.
    "validVersions none": "ok",
    # Kafka's generator accepts this, but javac rejects the generated code.
    "tagged zeroCopy bytes": "error",
}

REFUSED: Mapping[str, str] = {
    "no flexibleVersions": "flexibleVersions: is missing; write none, or an open range such as 0+",
    "open validVersions": "validVersions: a message needs a highest version; write a closed range such as 0-2",
    "validVersions negative": "validVersions: '-1' is not a version range; write none, a number, A-B or A+",
    "no type": "type: is missing",
    "no name": "name: is missing",
    "unknown top-level attribute": "foo: unknown attribute",
    "unknown field attribute": "fields[0].foo: unknown attribute",
    "top-level about is unknown": "about: unknown attribute",
    "listeners on data": "listeners: only requests have listeners, but this message is of type data",
    "listeners zkBroker on request": "listeners[0]: must be one of broker, controller; found 'zkBroker'",
    "latestVersionUnstable on data": "latestVersionUnstable: only requests have this attribute, but this message is "
    "of type data",
    "coordinator-key flexible": "flexibleVersions: a coordinator-key cannot have flexible versions, found 0+",
    "coordinator-key no apiKey": "apiKey: is missing; a message of type coordinator-key needs its number",
    "field name 'a-b'": "fields[0].name: 'a-b' is not a valid name; a name consists of letters and digits",
    "field name 'a_b'": "fields[0].name: 'a_b' is not a valid name; a name consists of letters and digits",
    "field name ''": "fields[0].name: '' is not a valid name; a name consists of letters and digits",
    "field without versions": "fields[0].versions: is missing; write a range such as 0+",
    "type 'uint8'": "fields[0].type: unknown type 'uint8'",
    "type 'uint64'": "fields[0].type: unknown type 'uint64'",
    "type 'varint'": "fields[0].type: unknown type 'varint'",
    "type '[]'": "fields[0].type: an array needs the type of its elements, such as []int32",
    "type '[][]int32'": "fields[0].type: arrays of arrays are not supported; use an array of structs that contain "
    "an array",
    "type '[]foo'": "fields[0].type: unknown type '[]foo'",
    "type 'foo2'": "fields[0].type: unknown type 'foo2'",
    "type '[]records'": "fields[0].type: arrays of records are not supported",
    "fields on int32": "fields[0].fields: only structs and arrays have fields, but this is int32",
    "same inline struct twice": "fields[1].type: the struct Bar is already defined by fields[0]",
    "common struct twice": "commonStructs[1].name: the common struct Bar is defined twice",
    "common struct without versions": "commonStructs[0].versions: is missing; write a range such as 0+",
    "recursive common struct": "commonStructs[0].fields[0].type: a struct cannot contain itself: Bar -> Bar",
    "nullable bool": "fields[0].nullableVersions: bool cannot be null; only string, bytes, records, arrays and",
    "nullable uint16": "fields[0].nullableVersions: uint16 cannot be null; only string, bytes, records, arrays and",
    "nullable int32": "fields[0].nullableVersions: int32 cannot be null; only string, bytes, records, arrays and",
    "nullable uint32": "fields[0].nullableVersions: uint32 cannot be null; only string, bytes, records, arrays and",
    "nullable int64": "fields[0].nullableVersions: int64 cannot be null; only string, bytes, records, arrays and",
    "nullable float64": "fields[0].nullableVersions: float64 cannot be null; only string, bytes, records, arrays and",
    "tag negative": "fields[0].tag: tags must start at 0, found -1",
    "tags not from 0": "fields[0].tag: the tags of a struct are 0, 1, 2 and so on without a gap; use 0 before 1",
    "taggedVersions outside versions": "fields[0].taggedVersions: the field is tagged "
    "in versions 1+, but exists only in versions",
    "partly nullable tagged": "fields[0].nullableVersions: a field may be "
    "null in all of its tagged versions or in none: it is tagged",
    "tagged records": "fields[0].tag: records cannot be tagged",
    "tagged mapKey": "fields[0].fields[0].mapKey: a tagged field cannot be a key",
    "mapKey at top level": "fields[0].mapKey: is allowed only in elements of an array, not in fields of the message",
    "field flexibleVersions on int32": "fields[0].flexibleVersions: only string and bytes fields can have their own",
    "field flexibleVersions below message": "fields[0].flexibleVersions: may contain only versions in which the",
    "tagged zeroCopy bytes": "fields[0].zeroCopy: a tagged field cannot be zeroCopy: the code Kafka generates",
    "entityType groupId on int32": "fields[0].entityType: groupId needs the type string or []string, but this is int32",
    "default bool '1'": "fields[0].default: the default of a bool must be true or false, found '1'",
    "default int8 '128'": "fields[0].default: the default of int8 must be between -128 and 127, found 128",
    "default int8 '-0x1'": "fields[0].default: the default of int8 must be a whole number, decimal or hexadecimal",
    "default int8 '1.0'": "fields[0].default: the default of int8 must be a whole number, decimal or hexadecimal",
    "default int8 ' 1'": "fields[0].default: the default of int8 must be a whole number, decimal or hexadecimal",
    "default uint16 '65536'": "fields[0].default: the default of uint16 must be between 0 and 65535, found 65536",
    "default uint32 '4294967296'": "fields[0].default: the default of uint32 must be between 0 and 4294967295, found",
    "default uint32 '-1'": "fields[0].default: the default of uint32 must be between 0 and 4294967295, found -1",
    "default int64 '9223372036854775808'": "fields[0].default: the default of int64 must be between",
    "default string 'null' nullable 1+ of versions 0+": "fields[0].default: null can be the default only if the field",
    "default bytes 'null'": "fields[0].default: null can be the default only if the field is nullable in all its "
    "versions",
    "default []int32 'null'": "fields[0].default: null can be the default only if the field is nullable in all its",
    "default []int32 '[]'": "fields[0].default: the default of an array must be empty (leave the attribute out) or",
    "ignorable as string maybe": "fields[0].ignorable: must be true or false, found 'maybe'",
    "hash comments": "$: comments start with // or are between /* and */; # is not allowed",
    "trailing comma": "$: there must be no comma before the closing }",
    "trailing content": "$: nothing may follow the end of the spec; one file holds one message",
    "single quotes": "type: texts must be in double quotes, not in single ones",
}
"""The path at which a spec is refused, and the beginning of our message. The reason is that of Kafka's generator."""

SEVERAL = {"single quotes"}
"""Cases with more mistakes than the one they are about: here all attributes but the type are missing too."""


def run(case: Mapping[str, Any], folder: Path) -> Model:
    """Load the spec of a case. A coordinator key gets a value, because a key without a value is refused."""
    spec = case.get("spec", {})
    text = case["spec_text"] if "spec_text" in case else json.dumps(spec)
    (folder / "Foo.json").write_text(text, encoding="utf-8")
    if spec.get("type") == "coordinator-key" and "apiKey" in spec:
        value = {"type": "coordinator-value", "name": "FooValue", "validVersions": "0", "flexibleVersions": "0+"}
        (folder / "FooValue.json").write_text(json.dumps({**value, "apiKey": spec["apiKey"]}), encoding="utf-8")
    return load(folder)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_verdict(case: Mapping[str, Any], tmp_path: Path) -> None:
    if DIFFERENT.get(case["name"], case["result"]) == "ok":
        run(case, tmp_path)
        return
    with pytest.raises(SpecErrors) as caught:
        run(case, tmp_path)
    texts = [f"{it.path}: {it.message}" for it in caught.value.violations]
    assert [text for text in texts if text.startswith(REFUSED[case["name"]])]
    assert len(texts) == 1 or case["name"] in SEVERAL
    for violation in caught.value.violations:
        assert violation.line >= 1
        assert violation.column >= 1
        assert violation.excerpt.endswith("^")


def test_the_data_is_complete() -> None:
    assert len(CASES) == 120
    assert {case["name"] for case in CASES} > set(DIFFERENT)
    verdicts = {case["name"]: DIFFERENT.get(case["name"], case["result"]) for case in CASES}
    assert {name for name, verdict in verdicts.items() if verdict == "error"} == set(REFUSED)


def test_a_retired_api_gives_nothing(tmp_path: Path) -> None:
    case = next(case for case in CASES if case["name"] == "validVersions none")
    assert run(case, tmp_path) == Model(())
