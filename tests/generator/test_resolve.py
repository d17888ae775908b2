"""From good specs to the model."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.loader import load
from kafka_records_codegen.model.messages import Field, Message, Model
from kafka_records_codegen.spec.versions import Versions
from kafka_records_runtime.kafka.uuids import ZERO_UUID, Uuid
from kafka_records_runtime.schema import EMPTY_STRUCT
from tests.generator.language_specs import write_language_specs

Loader = Callable[..., Model]


@pytest.fixture
def load_specs(tmp_path: Path) -> Loader:
    """Loads specs given as JSON values or text, by name (`folder/Foo` stands for folder/Foo.json)."""

    def load_all(specs: Mapping[str, Any]) -> Model:
        for name, spec in specs.items():
            path = tmp_path / f"{name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(spec if isinstance(spec, str) else json.dumps(spec), encoding="utf-8")
        return load(tmp_path)

    return load_all


def message(*fields: dict[str, Any], **attributes: Any) -> dict[str, Any]:
    base = {"type": "data", "name": "Foo", "validVersions": "0-3", "flexibleVersions": "2+"}
    return {**base, "fields": list(fields), **attributes}


def field(name: str, type_: str = "int32", versions: str = "0+", **attributes: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "versions": versions, **attributes}


def ranges(item: Field) -> tuple[str, str, str, str]:
    return str(item.versions), str(item.nullable), str(item.tagged), str(item.flexible)


def only(load_specs: Loader, spec: dict[str, Any]) -> Message:
    (result,) = load_specs({"Foo": spec}).messages
    return result


# ---- ranges


def test_ranges_are_clipped(load_specs: Loader) -> None:
    foo = only(
        load_specs,
        message(
            field("A", "string", "1+", nullableVersions="0+"),
            field("B", "string", "0-1", flexibleVersions="3+"),
            field("C", "[]int8", "0+", nullableVersions="2+", tag=0, taggedVersions="2+"),
            field("D", "int8", "7+", tag=1, taggedVersions="8+"),
            {"name": "E", "type": "records", "versions": "none"},
            {"name": "F", "type": "bytes", "tag": 2, "taggedVersions": "3+"},
            field("G", "string", flexibleVersions="none"),
            field(
                "H",
                "[]Bar",
                "1-2",
                nullableVersions="0-1",
                fields=[field("X", "string", "2+"), field("Y", "int8", "3")],
            ),
        ),
    )
    assert (foo.versions, foo.flexible) == (Versions(0, 3), Versions(2, 3))
    bar, root = foo.structs
    assert {item.name: ranges(item) for item in root.fields} == {
        "A": ("1-3", "1-3", "none", "2-3"),
        "B": ("0-1", "none", "none", "none"),
        "C": ("0-3", "2-3", "2-3", "2-3"),
        "D": ("none", "none", "none", "none"),
        "E": ("none", "none", "none", "none"),
        "F": ("3", "none", "3", "3"),
        "G": ("0-3", "none", "none", "none"),
        "H": ("1-2", "1", "none", "2"),
    }
    assert {item.name: ranges(item) for item in bar.fields} == {
        "X": ("2", "none", "none", "2"),
        "Y": ("none", "none", "none", "none"),
    }
    assert [item.spec_versions for item in root.fields][:6] == ["1+", "0-1", "0+", "7+", "none", "3+"]
    assert [item.tag for item in root.fields] == [None, None, 0, 1, None, 2, None, None]


def test_beyond_its_highest_version_a_common_struct_stays_as_it_is(load_specs: Loader) -> None:
    bar = {
        "name": "Bar",
        "versions": "0-1",
        "fields": [field("X", versions="0+"), field("Y", versions="0-1"), field("Z", versions="0")],
    }
    foo = only(load_specs, message(field("A", "Bar"), commonStructs=bar))
    assert [str(item.versions) for item in foo.struct("Bar").fields] == ["0-3", "0-3", "0"]


def test_structs_come_before_those_who_use_them(load_specs: Loader) -> None:
    common = [
        {"name": "Zed", "versions": "0+", "fields": [field("A", "[]Abc")]},
        {"name": "Abc", "versions": "0+", "fields": [field("B", "Inner", fields=[field("C")])]},
        {"name": "Unused", "versions": "0+", "fields": []},
    ]
    foo = only(
        load_specs,
        message(field("P", "Undefined"), field("Q", "[]Zed"), field("R", "Abc"), commonStructs=common),
    )
    assert [struct.name for struct in foo.structs] == ["Undefined", "Inner", "Abc", "Zed", "Foo"]
    assert foo.struct("Undefined").fields == ()
    assert foo.root.name == "Foo"


# ---- defaults


@pytest.mark.parametrize(
    ("type_", "default", "value"),
    [
        ("bool", "TRUE", True),
        ("bool", False, False),
        ("int8", "0x7f", 127),
        ("int8", "-128", -128),
        ("int16", "+5", 5),
        ("int32", -1, -1),
        ("int32", "", 0),
        ("uint16", "0xffff", 65535),
        ("uint32", "0xffffffff", 4294967295),
        ("int64", "-9223372036854775808", -(2**63)),
        ("float64", "12.34", 12.34),
        ("float64", 1.5, 1.5),
        ("float64", " -1e400 ", -math.inf),
        ("float64", "Infinity", math.inf),
        ("float64", "-0", -0.0),
        ("float64", ".5e1f", 5.0),
        ("float64", "1.D", 1.0),
        ("float64", "-0x1.8p1", -3.0),
        ("float64", "0X.8P-1d", 0.25),
        ("float64", "0x1p9999", math.inf),
        ("uuid", "H3KKO4NTRPaCWtEmm3vW7A", Uuid.from_string("H3KKO4NTRPaCWtEmm3vW7A")),
        ("uuid", "H3KKO4NTRPaCWtEmm3vW7A==", Uuid.from_string("H3KKO4NTRPaCWtEmm3vW7A")),
        ("string", ' a"\\\n', ' a"\\\n'),
        ("string", 5, "5"),
        ("string", "null", None),
        ("bytes", "null", None),
        ("bytes", "", b""),
        ("[]string", "null", None),
        ("[]string", "", ()),
        ("Bar", "null", None),
        ("Bar", "", EMPTY_STRUCT),
        ("records", "anything", None),
    ],
)
def test_defaults(load_specs: Loader, type_: str, default: object, value: object) -> None:
    may_be_null = type_ in ("string", "bytes", "[]string", "Bar")
    nullable = {"nullableVersions": "0+"} if may_be_null else {}
    result = only(load_specs, message(field("A", type_, default=default, **nullable))).root.fields[0].default
    assert result == value
    assert type(result) is type(value)
    if isinstance(value, float):
        assert math.copysign(1, value) == math.copysign(1, result)  # type: ignore[arg-type]


def test_not_a_number(load_specs: Loader) -> None:
    value = only(load_specs, message(field("A", "float64", default="NaN"))).root.fields[0].default
    assert isinstance(value, float)
    assert math.isnan(value)


@pytest.mark.parametrize("given", [{}, {"default": None}], ids=["absent", "null"])
def test_json_null_is_no_default(load_specs: Loader, given: dict[str, object]) -> None:
    values = {
        "bool": False,
        "int8": 0,
        "uint32": 0,
        "float64": 0.0,
        "uuid": ZERO_UUID,
        "string": "",
        "bytes": b"",
        "records": None,
        "[]uuid": (),
        "Bar": EMPTY_STRUCT,
    }
    may_be_null = ("string", "bytes", "records", "[]uuid", "Bar")
    fields = [
        field(f"F{number}", type_) | given | ({"nullableVersions": "0+"} if type_ in may_be_null else {})
        for number, type_ in enumerate(values)
    ]
    assert [item.default for item in only(load_specs, message(*fields)).root.fields] == list(values.values())


# ---- names


def test_names(load_specs: Loader) -> None:
    names = ["TopicId", "topicID", "X", "Class", "Type", "ToJson", "UnknownTaggedFields", "A1B", "HTTPPort"]
    common = [{"name": name, "versions": "0+", "fields": [field(n) for n in inner]} for name, inner in
              {"Any": names[:1], "None": names[1:]}.items()]  # fmt: skip
    foo = only(load_specs, message(field("A", "Any"), field("B", "[]None"), commonStructs=common))
    assert [struct.python_name for struct in foo.structs] == ["Any_", "None_", "Foo"]
    found = [(item.name, item.python_name, item.json_name) for struct in foo.structs[:2] for item in struct.fields]
    assert found == [
        ("TopicId", "topic_id", "topicId"),
        ("topicID", "topic_id", "topicID"),
        ("X", "x", "x"),
        ("Class", "class_", "class"),
        ("Type", "type_", "type"),
        ("ToJson", "to_json_", "toJson"),
        ("UnknownTaggedFields", "unknown_tagged_fields_", "unknownTaggedFields"),
        ("A1B", "a1b", "a1B"),
        ("HTTPPort", "httpport", "hTTPPort"),
    ]


def test_classes_of_one_module_have_different_names(load_specs: Loader) -> None:
    def half(name: str, type_: str) -> dict[str, Any]:
        flexible = "none" if type_ == "coordinator-key" else "0+"
        fields = [field("A", "TopicId"), field("B", "[]TopicID")]
        return message(*fields, type=type_, name=name, apiKey=4, validVersions="0", flexibleVersions=flexible)

    model = load_specs({"K": half("BarKey", "coordinator-key"), "V": half("BarValue", "coordinator-value")})
    key, value = model.messages
    assert [struct.python_name for struct in key.structs] == ["TopicId", "BarKeyTopicID", "BarKey"]
    assert [struct.python_name for struct in value.structs] == ["BarValueTopicId", "BarValueTopicID_", "BarValue"]


# ---- folders, records, whole messages


def test_folders_and_records(load_specs: Loader) -> None:
    def record(name: str, type_: str, api_key: int, **attributes: Any) -> dict[str, Any]:
        flexible = "none" if type_ == "coordinator-key" else "0+"
        base = {"type": type_, "name": name, "validVersions": "0", "flexibleVersions": flexible, "apiKey": api_key}
        return {**base, **attributes}

    model = load_specs(
        {
            "b/BarValue": record("BarValue", "coordinator-value", 1, validVersions="0-4"),
            "b/BarKey": record("BarKey", "coordinator-key", 1),
            "b/AKey": record("AKey", "coordinator-key", 2),
            "b/AValue": record("AValue", "coordinator-value", 2),
            "b/GoneKey": record("GoneKey", "coordinator-key", 9, validVersions="none"),
            "b/GoneValue": record("GoneValue", "coordinator-value", 9, validVersions="none"),
            "b/deep/FooKey": record("FooKey", "coordinator-key", 1),
            "b/deep/FooValue": record("FooValue", "coordinator-value", 1),
            "Plain": message(name="OldKey", validVersions="0-1"),
            "retired/Gone": message(name="GoneRequest", type="request", apiKey=4, validVersions="none"),
        }
    )
    assert [folder.path for folder in model.folders] == ["", "b", "b/deep"]
    top, b, deep = model.folders
    assert [it.source for it in b.messages] == ["b/AKey.json", "b/AValue.json", "b/BarKey.json", "b/BarValue.json"]
    assert [(it.type, it.name, it.key.name, it.value.name) for it in b.records] == [
        (1, "Bar", "BarKey", "BarValue"),
        (2, "A", "AKey", "AValue"),
    ]
    assert b.records[0].value.versions == Versions(0, 4)
    assert [it.name for it in deep.records] == ["Foo"]
    assert top.records == ()
    (plain,) = top.messages
    assert (plain.name, plain.type, plain.api_key, plain.folder) == ("OldKey", "data", None, "")


SHAPES: Mapping[str, str] = {
    "OffsetCommitKey": """\
// Licensed to the Apache Software Foundation (ASF) under one or more agreements; see the limitations under the License.

// Type 1 since 0.8.2.
// Type 0 was the same.
{ "type": "coordinator-key", "name": "OffsetCommitKey", "apiKey": "1", "validVersions": "0", "flexibleVersions": "none",
  "fields": [
    // Who commits.
    { "name": "Group", "type": "string", "versions": "0", "entityType": "groupId", "about": " The group. " } ] }
""",
    "OffsetCommitValue": """\
{ "type": "coordinator-value", "name": "OffsetCommitValue", "apiKey": 1, "validVersions": "0-4",
  "flexibleVersions": "4+", "fields": [
    { "name": "LeaderEpoch", "type": "int32", "versions": "3+", "default": -1, "ignorable": "true" },
    { "name": "TopicId", "type": "uuid", "versions": "4+", "taggedVersions": "4+", "tag": "0", "ignorable": true } ] }
""",
    "FooRequest": """\
{ "type": "request", "name": "FooRequest", "apiKey": 7, "validVersions": "1-3", "flexibleVersions": "2+",
  "listeners": ["broker", "controller"], "latestVersionUnstable": true, "deprecatedVersions": "1",
  "fields": { "name": "Topics", "type": "[]Topic", "versions": "0+", "fields": [
    { "name": "Name", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName" } ] } }
""",
    "FooResponse": """\
{ "type": "response", "name": "FooResponse", "apiKey": 7, "validVersions": "1-3", "flexibleVersions": "2+" }
""",
    "RequestHeader": """\
{ "type": "header", "name": "RequestHeader", "validVersions": "1-2", "flexibleVersions": "2+", "fields": [
    { "name": "ClientId", "type": "string", "versions": "1+", "nullableVersions": "1+", "ignorable": true,
      "flexibleVersions": "none" } ] }
""",
    "TopicRecord": """\
{ "type": "metadata", "name": "TopicRecord", "apiKey": 2, "validVersions": "0", "flexibleVersions": "0+",
  "fields": [ { "name": "Name", "type": "string", "versions": "0+" } ] }
""",
    "_notes": '{ "framing": "coordinator" }',
    "Retired": """\
{ "type": "request", "name": "RetiredRequest", "apiKey": 8, "validVersions": "none" }
""",
    "Data": """\
{ "type": "data", "name": "Data", "validVersions": "0-1", "flexibleVersions": "none", "apiKey": null,
  "commonStructs": { "name": "Pair", "versions": "0+", "fields": [] } }
""",
}


def test_the_shapes_that_kafka_writes(load_specs: Loader) -> None:
    model = load_specs(SHAPES)
    found = {it.name: it for it in model.messages}
    assert sorted(found) == sorted(set(SHAPES) - {"Retired", "_notes"})
    key = found["OffsetCommitKey"]
    assert key.history == "Type 1 since 0.8.2.\nType 0 was the same."
    assert (key.root.fields[0].about, key.root.fields[0].entity_type) == ("The group.", "groupId")
    epoch, topic_id = found["OffsetCommitValue"].root.fields
    assert (epoch.default, epoch.ignorable) == (-1, True)
    assert (topic_id.tag, topic_id.tagged) == (0, Versions(4, 4))
    request = found["FooRequest"]
    assert (request.api_key, request.latest_version_unstable) == (7, True)
    assert request.struct("Topic").fields[0].map_key
    assert not found["FooResponse"].latest_version_unstable
    client_id = found["RequestHeader"].root.fields[0]
    assert ranges(client_id) == ("1-2", "1-2", "none", "none")
    assert found["Data"].structs == (found["Data"].root,)
    assert [record.name for record in model.folders[0].records] == ["OffsetCommit"]


def test_loading_twice_gives_the_same(load_specs: Loader) -> None:
    assert load_specs(SHAPES) == load_specs({})


# ---- Kafka's own test messages


def expected_fields(fields: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Every field of the data, those of structs included, each struct once."""
    for item in fields:
        yield item
        yield from expected_fields(item.get("fields", []))


def expected_default(item: Mapping[str, Any]) -> object:
    natural: dict[str, object] = {"uuid": ZERO_UUID, "bytes": b"", "records": None}
    if item["default"] is None:
        return None
    if item["type"].startswith("[]"):
        return ()
    if item["type"][0].isupper():
        return EMPTY_STRUCT
    if item["type"] == "uuid":
        return Uuid.from_string(item["default"])
    return item["default"] or natural.get(item["type"], item["default"])


def test_kafkas_test_messages(data_dir: Path, tmp_path: Path) -> None:
    model = load(write_language_specs(data_dir, tmp_path / "specs"))
    specs = json.loads((data_dir / "kafka" / "language-cases.json").read_text(encoding="utf-8"))["specs"]
    assert [it.name for it in model.messages] == sorted(specs)
    for result in model.messages:
        spec = specs[result.name]
        assert result.versions == Versions.parse(spec["valid_versions"], Versions.NONE)
        assert [it.name for it in result.root.fields] == [it["name"] for it in spec["fields"]]
        by_place = {(it.name, it.type, it.spec_versions): it for struct in result.structs for it in struct.fields}
        for wanted in expected_fields(spec["fields"]):
            found = by_place[wanted["name"], wanted["type"], wanted["versions"]]
            assert (found.json_name, found.tag) == (wanted["json"], wanted.get("tag"))
            assert found.ignorable == wanted.get("ignorable", False)
            assert found.default == expected_default(wanted)
            nullable = Versions.parse(wanted.get("nullable"), Versions.NONE)
            assert found.nullable == nullable.intersect(found.versions)
            tagged = Versions.parse(wanted.get("tagged_versions"), Versions.NONE)
            assert found.tagged == tagged.intersect(found.versions)
