"""Warnings: specs that Kafka's generator silently accepts although they are surely wrong, and specs that may be
intended."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.cli import main
from kafka_records_codegen.loader import load
from kafka_records_codegen.spec.violations import SpecErrors, Violation
from tests.generator.spec_files import field, refused, short, spec, write
from tests.generator.test_spec_validation import CASES, DIFFERENT
from tests.generator.test_violations import TYPES

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def warnings_of(folder: Path) -> list[Violation]:
    """The warnings of a run. With --strict, exactly these are the reasons to refuse the specs."""
    found: list[Violation] = []
    load(folder, warnings=found)
    assert all(warning.is_warning for warning in found)
    if found:
        with pytest.raises(SpecErrors) as caught:
            load(folder, strict=True)
        assert [texts([it])[0] for it in caught.value.violations] == texts(found)
        assert not any(it.is_warning for it in caught.value.violations)
        assert caught.value.warnings == ()
    else:
        load(folder, strict=True)
    return found


def texts(found: Iterable[Violation]) -> list[str]:
    return [f"{it.path}: {it.message}" for it in found]


def warned(*fields: dict[str, Any], **attributes: Any) -> list[str]:
    return texts(warnings_of(write(Foo=spec(*fields, **attributes))))


def common(name: str, *fields: dict[str, Any], versions: str = "0+") -> dict[str, Any]:
    return {"name": name, "versions": versions, "fields": list(fields)}


# ---- the four kinds


@pytest.mark.parametrize(
    ("type_", "hint"),
    [
        ("Bar", ""),
        ("[]Bar", ""),
        ("Int32", "; did you mean int32?"),
        ("[]Long", "; did you mean []int64?"),
        ("String", "; did you mean string?"),
        ("Strng", "; did you mean string?"),
        ("UUID", "; did you mean uuid?"),
        ("[]Boolean", "; did you mean []bool?"),
        ("Topik", "; did you mean Topic?"),
        ("[]Topics", "; did you mean []Topic?"),
        ("Records", "; did you mean records?"),
        ("[]Records", ""),
    ],
)
def test_types_that_are_defined_nowhere(type_: str, hint: str) -> None:
    base = type_.removeprefix("[]")
    assert warned(field("A", type_), commonStructs=[common("Topic", field())]) == [
        f"fields[0].type: {base} is not defined, neither by fields here nor in commonStructs{hint}"
    ]


def test_types_that_are_defined() -> None:
    fields = [
        field("A", "Empty", fields=[]),
        field("B", "[]Bar", fields=[field()]),
        field("C", "[]Baz"),
        field("D", "Hollow"),
    ]
    assert warned(*fields, commonStructs=[common("Baz", field()), common("Hollow")]) == []


EMPTY = "so the elements of this array are empty"


@pytest.mark.parametrize(
    ("fields", "structs", "where"),
    [
        ([field("A", "[]Bar", fields=[])], [], ""),
        ([field("A", "[]Bar")], [common("Bar")], ""),
        ([field("A", "[]Bar", fields=[field("X", versions="1+")])], [], " in version 0"),
        ([field("A", "[]Bar", "1+", fields=[field("X", versions="0-1")])], [], " in version 2"),
        (
            [field("A", "[]Bar")],
            [common("Bar", field("X", versions="1"), field("Y", versions="1"))],
            " in versions 0 and 2",
        ),
        (
            [field("A", "[]Bar", tag=0, taggedVersions="1+", fields=[field("X", versions="2+")])],
            [],
            " in versions 0-1",
        ),
    ],
)
def test_arrays_of_nothing(fields: list[dict[str, Any]], structs: list[dict[str, Any]], where: str) -> None:
    assert warned(*fields, commonStructs=structs) == [f"fields[0].type: the struct Bar has no fields{where}, {EMPTY}"]


def test_arrays_of_something() -> None:
    """Elements must have content in every version of the array, but not always the same."""
    fields = [
        field("A", "[]Bar", fields=[field("X", versions="0-1"), field("Y", versions="2+")]),
        field("B", "[]Baz", "1+"),
        field("C", "[]Old", fields=[field("X", versions="0"), field("Y", versions="1+")]),
    ]
    assert warned(*fields, commonStructs=[common("Baz", field("X", versions="1+"))]) == []


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (field(versions="3+"), "it has versions 3+, the message 0-2"),
        (field(versions="5"), "it has versions 5, the message 0-2"),
        (field(versions="none"), "it has versions none, the message 0-2"),
        (field(type_="[]string", versions="9-12"), "it has versions 9-12, the message 0-2"),
        (field(type_="[]Bar", versions="3+"), "it has versions 3+, the message 0-2"),
    ],
)
def test_fields_outside_the_message(wrong: dict[str, Any], problem: str) -> None:
    assert warned(wrong, commonStructs=[common("Bar", field())]) == [
        f"fields[0].versions: the field exists in no version: {problem}"
    ]


def test_fields_outside_the_struct_around_them() -> None:
    fields = [field("A", "[]Bar", "1+", fields=[field("X"), field("Y", versions="0")]), field("B", "Baz")]
    assert warned(*fields, commonStructs=[common("Baz", field("Z", versions="7+"))]) == [
        "commonStructs[0].fields[0].versions: the field exists in no version: it has versions 7+, the struct Baz 0-2",
        "fields[0].fields[1].versions: the field exists in no version: it has versions 0, the struct Bar 1-2",
    ]


def test_fields_of_versions_that_a_message_no_longer_has() -> None:
    """ShareFetchRequest of Kafka 4.1 has versions 1 and up, and a field of version 0 that decoding never sees."""
    assert warned(field("A", versions="0-2"), field("B", versions="3+"), validVersions="3-4") == []


def test_a_struct_that_exists_in_no_version_is_a_violation_and_nothing_more() -> None:
    (violation,) = refused(write(Foo=spec(field("A", "Bar", "3+", fields=[field()])))).violations
    assert violation.message.startswith("the struct Bar would exist in no version")
    assert refused(Path("specs")).warnings == ()


@pytest.mark.parametrize(
    ("versions", "nullable", "where"),
    [
        ("1+", "0+", "version 0"),
        ("2+", "0+", "versions 0-1"),
        ("1", "0-2", "versions 0 and 2"),
        ("0-1", "1-2", "version 2"),
        ("0-1", "2+", "versions 2+"),
        ("0-1", "2", "version 2"),
    ],
)
def test_null_in_versions_without_the_field(versions: str, nullable: str, where: str) -> None:
    assert warned(field("A", "string", versions, nullableVersions=nullable)) == [
        f"fields[0].nullableVersions: may be null in {where}, where the field does not exist: "
        f"it has versions {versions}"
    ]


@pytest.mark.parametrize(
    ("versions", "nullable", "valid"),
    [
        ("0+", "0+", "0-2"),
        ("0+", "2", "0-2"),
        ("0-1", "1+", "0-2"),  # from 1 on, as long as it is there
        ("1+", "0+", "1-2"),  # the message no longer has version 0
        ("0-4", "0-3", "0-2"),
        ("0+", "none", "0-2"),
    ],
)
def test_null_in_versions_with_the_field(versions: str, nullable: str, valid: str) -> None:
    assert warned(field("A", "string", versions, nullableVersions=nullable), validVersions=valid) == []


def test_retired_messages_are_left_alone() -> None:
    fields = [field("A", "[]Bar"), field("B", "string", "1+", nullableVersions="0+"), field("C", versions="3+")]
    assert warned(*fields, validVersions="none") == []


# ---- whose specs


def test_our_own_specs_are_meant() -> None:
    for folder in ("message_specs", "examples/own_specs/message_specs"):
        assert warnings_of(ROOT / folder) == []


def test_what_kafka_accepts_is_accepted() -> None:
    """These are the small specs that Kafka's generator silently accepts."""
    found = {}
    for case in CASES:
        message = case.get("spec", {})
        if DIFFERENT.get(case["name"], case["result"]) == "ok" and message.get("type") != "coordinator-key":
            text = case["spec_text"] if "spec_text" in case else json.dumps(message)
            found[case["name"]] = texts(warnings_of(write(Foo=text)))
    assert {name: warnings for name, warnings in found.items() if warnings} == {
        "array of undefined struct": [
            "fields[0].type: Bar is not defined, neither by fields here nor in commonStructs"
        ],
        "field versions disjoint from message": [
            "fields[0].versions: the field exists in no version: it has versions 5+, the message 0-2"
        ],
    }


# ---- as people see them

TWO = """\
{ "type": "data", "name": "Foo", "validVersions": "0-2", "flexibleVersions": "none",
  "fields": [
    { "name": "Old", "type": "int32", "versions": "3+" },
    { "name": "Items", "type": "[]Itme", "versions": "0+" } ],
  "commonStructs": [
    { "name": "Item", "versions": "0+", "fields": [ { "name": "Id", "type": "int32", "versions": "0+" } ] } ] }
"""
SHOWN = """\
specs/Foo.json:3:51: {0}fields[0].versions: the field exists in no version: it has versions 3+, the message 0-2
        {{ "name": "Old", "type": "int32", "versions": "3+" }},
                                                      ^
specs/Foo.json:4:32: {0}fields[1].type: Itme is not defined, {1}
        {{ "name": "Items", "type": "[]Itme", "versions": "0+" }} ],
                                   ^
"""
NOWHERE = "neither by fields here nor in commonStructs"


@pytest.mark.parametrize("command", ["generate", "docs"])
def test_warnings_do_not_stop_a_run(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [command, "--specs", str(write(Foo=TWO)), "--out", "acme", "--package", "acme"]
    shown = (
        SHOWN.format("warning: ", f"{NOWHERE}; did you mean []Item?") + "2 warnings; --strict makes them violations\n"
    )
    assert main(arguments) == 0
    count = sum(path.is_file() for path in Path("acme").rglob("*"))
    assert capsys.readouterr().err == (
        f"{shown}1 message, {count} files in acme: {count} written, 0 deleted, 0 unchanged\n"
    )
    assert main([*arguments, "--check"]) == 0
    assert capsys.readouterr().err == f"{shown}acme matches the specs\n"


@pytest.mark.parametrize("command", ["generate", "docs"])
def test_strict_makes_them_violations(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(Foo=TWO)
    for options in ((), ("--check",)):
        assert main([command, "--specs", str(folder), "--out", "acme", "--package", "acme", "--strict", *options]) == 1
        assert (
            capsys.readouterr().err
            == SHOWN.format("", f"{NOWHERE}; did you mean []Item?") + "2 violations; nothing was written\n"
        )
        assert not Path("acme").exists()


def test_strict_has_nothing_against_specs_that_are_meant(capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(Foo=spec(field()))
    assert main(["generate", "--specs", str(folder), "--out", "acme", "--package", "acme", "--strict"]) == 0
    capsys.readouterr()
    assert main(["generate", "--specs", str(folder), "--out", "other", "--package", "acme", "--strict", "--check"]) == 1
    assert capsys.readouterr().err == (
        "other does not match the specs. To fix it: kafka-records-codegen generate --specs specs --out other "
        "--package acme --strict\n"
    )


def test_one_warning_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(Foo=spec(field(versions="3+")))
    assert main(["generate", "--specs", str(folder), "--out", "acme", "--package", "acme"]) == 0
    assert "\n1 warning; --strict makes it a violation\n" in capsys.readouterr().err


def test_violations_and_warnings_come_together_in_the_order_of_the_files(capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(
        A=spec(field("X", "int31"), field("Y", versions="3+"), field("my_field"), name="A"),
        B=spec(field("Y", "Nothing"), name="B"),
    )
    assert main(["generate", "--specs", str(folder), "--out", "acme", "--package", "acme"]) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith(" ")]
    assert lines == [
        "specs/A.json:1:114: fields[0].type: unknown type 'int31'; did you mean int32?",
        "specs/A.json:1:185: warning: fields[1].versions: the field exists in no version: it has versions 3+, "
        "the message 0-2",
        "specs/A.json:1:201: fields[2].name: 'my_field' is not a valid name; a name consists of letters and digits, "
        "starting with a letter; did you mean MyField?",
        f"specs/B.json:1:114: warning: fields[0].type: Nothing is not defined, {NOWHERE}",
        "2 violations, 2 warnings; nothing was written",
    ]
    error = refused(folder)
    assert [it.is_warning for it in error.violations] == [False, False]
    assert [it.is_warning for it in error.warnings] == [True, True]
    assert pickle.loads(pickle.dumps(error)).warnings == error.warnings


# ---- did you mean


@pytest.mark.parametrize(
    ("type_", "meant"),
    [
        *(("int", "int32"), ("integer", "int32"), ("long", "int64"), ("short", "int16"), ("byte", "int8")),
        *(("float", "float64"), ("double", "float64"), ("boolean", "bool"), ("str", "string"), ("guid", "uuid")),
        *(("int31", "int32"), ("uint8", "int8"), ("uint64", "int64"), ("strng", "string"), ("byts", "bytes")),
        *(("[]int", "[]int32"), ("int32[]", "[]int32"), ("[string]", "[]string"), ("[] long", "[]int64")),
        *(("int-32", "int32"), ("topic", "Topic"), ("[]topic_partition", "[]TopicPartition"), ("topic[]", "[]Topic")),
    ],
)
def test_types(type_: str, meant: str) -> None:
    structs = [common("Topic", field()), common("TopicPartition", field())]
    assert short(write(Foo=spec(field("A", type_), commonStructs=structs))) == [
        f"specs/Foo.json: fields[0].type: unknown type {type_!r}; did you mean {meant}?"
    ]


def test_a_struct_in_small_letters() -> None:
    assert short(write(Foo=spec(field("A", "[]item", fields=[field("B", "inner_part", fields=[field()])])))) == [
        "specs/Foo.json: fields[0].type: unknown type '[]item'; did you mean []Item?",
        "specs/Foo.json: fields[0].fields[0].type: unknown type 'inner_part'; did you mean InnerPart?",
    ]


@pytest.mark.parametrize("type_", ["Item[]", "item[]", "[Item]", "[] item"])
def test_an_array_of_a_struct_in_other_brackets(type_: str) -> None:
    fields = [field("A", type_, fields=[field()])]
    assert short(write(Foo=spec(*fields))) == [
        f"specs/Foo.json: fields[0].type: unknown type {type_!r}; did you mean []Item?"
    ]


@pytest.mark.parametrize(
    "type_", ["varint", "foo2", "[]foo", "[]record", "Bar-Baz", "map", "optional", "[]", "x" * 5000]
)
def test_types_like_nothing(type_: str) -> None:
    (problem,) = short(write(Foo=spec(field("A", type_))))
    rule = f"unknown type {type_!r}; it is {TYPES}"
    if type_ == "[]":
        rule = "an array needs the type of its elements, such as []int32"
    assert problem == f"specs/Foo.json: fields[0].type: {rule}"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("my_field", "; did you mean MyField?"),
        ("group-id", "; did you mean GroupId?"),
        ("groupInstance id", "; did you mean GroupInstanceId?"),
        ("a.b", "; did you mean AB?"),
        ("1st_field", ""),
        ("größe", ""),
        ("_", ""),
        ("a$", ""),
    ],
)
def test_names_of_fields(name: str, hint: str) -> None:
    assert short(write(Foo=spec(field(name)))) == [
        f"specs/Foo.json: fields[0].name: {name!r} is not a valid name; a name consists of letters and digits, "
        f"starting with a letter{hint}"
    ]


@pytest.mark.parametrize(
    ("neighbours", "meant"),
    [
        (["group", "topic"], "myField"),
        (["group", "topic", "Partition"], "myField"),
        (["group", "Topic"], "MyField"),
        (["Group"], "MyField"),
        (["group", "other_field", "third_field"], "myField"),
        (["other_field", "third_field"], "MyField"),
    ],
)
def test_names_of_fields_follow_their_neighbours(neighbours: list[str], meant: str) -> None:
    """Records of coordinators spell `group`, requests and responses `GroupId`. Invalid names do not count."""
    rule = "is not a valid name; a name consists of letters and digits, starting with a letter; did you mean"
    fields = [field("my_field"), *(field(name) for name in neighbours)]
    expected = f"specs/Foo.json: {{}}fields[0].name: 'my_field' {rule} {meant}?"
    assert short(write(Foo=spec(*fields)))[0] == expected.format("")
    assert short(write(Foo=spec(field("A", "Part", fields=fields))))[0] == expected.format("fields[0].")
    shared = spec(field("A", "Part"), commonStructs=[common("Part", *fields)])
    assert short(write(Foo=shared))[0] == expected.format("commonStructs[0].")


def test_names_of_structs_and_messages() -> None:
    assert short(write(Foo=spec(commonStructs=[common("my_struct", field())], name="my-message"))) == [
        "specs/Foo.json: name: 'my-message' is not a valid name; a name consists of letters, digits and underscores, "
        "starting with a letter; did you mean MyMessage?",
        "specs/Foo.json: commonStructs[0].name: 'my_struct' is not a valid name; a name consists of letters, digits "
        "and underscores, starting with an upper-case letter; did you mean MyStruct?",
    ]
