"""Messages about a spec that cannot be used: the rules of one file."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.loader import load
from tests.generator.spec_files import field, refused, short, spec, write

TYPES = (
    "one of bool, int8, int16, uint16, int32, uint32, int64, float64, uuid, string, bytes, records, "
    "the name of a struct (which starts with an upper-case letter), or [] and one of these for an array"
)
NULLABLE = "string, bytes, records, arrays and structs"
KINDS = "request, response, header, metadata, data, coordinator-key, coordinator-value"


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_everything_of_every_file_at_once() -> None:
    folder = write(
        Foo="""\
// Version 1 is the first one.
{
  "type": "date", "name": "Foo",
  "validVersions": "0+", "flexibleVersions": "1-2",
  "fields": [
    { "name": "Items", "type": "[]Item", "versions": "0+", "fields": [
\t{ "name": "Id", "type": "int31", "versions": "0+" },
      { "name": "id", "type": "int8", "versions": "0+", "default": "128", "abuot": "x" } ]},
    { "name": "Bad", "type": "bool", "versions": "0 +", "tag": 0, "nullableVersions": "0+" }
  ]
}
""",
        sub__Broken='{"type": "data", "name": "Bar",\n "validVersions": }',
        sub__Bar='{"type": "data", "name": "Bar", "validVersions": "0", "flexibleVersions": "none",}',
    )
    # The quoted spec has a tab in front of a field, and so has the line with the caret.
    assert str(refused(folder)) == f"""\
specs/Foo.json:3:11: type: must be one of {KINDS}; found 'date'
      "type": "date", "name": "Foo",
              ^
specs/Foo.json:4:20: validVersions: a message needs a highest version; write a closed range such as 0-2
      "validVersions": "0+", "flexibleVersions": "1-2",
                       ^
specs/Foo.json:4:46: flexibleVersions: must be none or an open range such as 0+, found 1-2
      "validVersions": "0+", "flexibleVersions": "1-2",
                                                 ^
specs/Foo.json:7:26: fields[0].fields[0].type: unknown type 'int31'; did you mean int32?
    \t{{ "name": "Id", "type": "int31", "versions": "0+" }},
    \t                        ^
specs/Foo.json:8:17: fields[0].fields[1].name: id has the same name in Kafka's JSON form as fields[0].fields[0]: id
          {{ "name": "id", "type": "int8", "versions": "0+", "default": "128", "abuot": "x" }} ]}},
                    ^
specs/Foo.json:8:68: fields[0].fields[1].default: the default of int8 must be between -128 and 127, found 128
          {{ "name": "id", "type": "int8", "versions": "0+", "default": "128", "abuot": "x" }} ]}},
                                                                       ^
specs/Foo.json:8:75: fields[0].fields[1].abuot: unknown attribute; did you mean about?
          {{ "name": "id", "type": "int8", "versions": "0+", "default": "128", "abuot": "x" }} ]}},
                                                                              ^
specs/Foo.json:9:50: fields[1].versions: '0 +' is not a version range; write none, a number, A-B or A+
        {{ "name": "Bad", "type": "bool", "versions": "0 +", "tag": 0, "nullableVersions": "0+" }}
                                                     ^
specs/Foo.json:9:64: fields[1].tag: a field with a tag needs taggedVersions, an open range such as 0+
        {{ "name": "Bad", "type": "bool", "versions": "0 +", "tag": 0, "nullableVersions": "0+" }}
                                                                   ^
specs/Foo.json:9:87: fields[1].nullableVersions: bool cannot be null; only {NULLABLE} can
        {{ "name": "Bad", "type": "bool", "versions": "0 +", "tag": 0, "nullableVersions": "0+" }}
                                                                                          ^
specs/sub/Bar.json:1:81: $: there must be no comma before the closing }}
    {{"type": "data", "name": "Bar", "validVersions": "0", "flexibleVersions": "none",}}
                                                                                    ^
specs/sub/Broken.json:1:26: name: there is already a message Bar in sub/Bar.json
    {{"type": "data", "name": "Bar",
                             ^
specs/sub/Broken.json:2:19: validVersions: expected a value, found '}}'
     "validVersions": }}
                      ^"""


@pytest.mark.parametrize("lost", ["]", "}", '"}]}', '"versions": "0+"}]}'])
def test_what_stands_before_a_syntax_error_is_checked(lost: str) -> None:
    text = spec(field("A", "int31"), field("A", "int8", abuot="x"), field("B", tag=0), type="date")
    text = text.removesuffix("]}") + ', {"name": "C", "type": "string", "versions": "0+"}]}'
    found = short(write(Foo=text.removesuffix(lost) if lost != "]" else text.removesuffix("]}") + "}"))
    assert found[:-1] == [
        f"specs/Foo.json: type: must be one of {KINDS}; found 'date'",
        "specs/Foo.json: fields[0].type: unknown type 'int31'; did you mean int32?",
        "specs/Foo.json: fields[1].name: A has the same name as fields[0]: A",
        "specs/Foo.json: fields[1].abuot: unknown attribute; did you mean about?",
        "specs/Foo.json: fields[2].tag: a field with a tag needs taggedVersions, an open range such as 0+",
    ]


@pytest.mark.parametrize("at", range(40, 380, 1))
def test_nothing_is_missed_behind_a_syntax_error(at: int) -> None:
    """A valid spec that is cut anywhere has one mistake: the cut."""
    fields = [
        field("A", "string", tag=1, taggedVersions="1+", default="null", nullableVersions="0+"),
        field("B", "Bar"),
        field("C", "[]Bar"),
        field("D", tag=0, taggedVersions="1+"),
    ]
    text = spec(*fields, commonStructs={"name": "Bar", "versions": "0+", "fields": [field()]})
    ending = text[text.index(', "commonStructs"') :].partition(', "fields": [{"name": "A", "type": "string"')[0]
    text = text.replace(ending, "").removesuffix("}") + ending + "}"
    load(write(Foo=text))
    error = refused(write(Foo=text[:at]))
    assert error.warnings == ()
    (problem,) = [violation.message for violation in error.violations]
    assert "expected" in problem or "does not end" in problem


def test_the_error_holds_its_violations_and_pickles() -> None:
    error = refused(write(Foo=spec(field(name="a-b"))))
    (violation,) = error.violations
    assert (violation.file, violation.line, violation.column) == ("specs/Foo.json", 1, 103)
    assert violation.path == "fields[0].name"
    assert violation.message == (
        "'a-b' is not a valid name; a name consists of letters and digits, starting with a letter; did you mean AB?"
    )
    assert pickle.loads(pickle.dumps(error)).violations == error.violations


def test_a_long_line_is_cut_around_the_place() -> None:
    (violation,) = refused(
        write(Foo=spec(*[field(name=f"A{n}") for n in range(50)], field(name="B", type_="x")))
    ).violations
    shown, caret = violation.excerpt.split("\n")
    assert len(shown) == 124
    assert shown[caret.index("^") :].startswith('"x", "versions": "0+"}]}')


def test_control_characters_do_not_reach_the_terminal() -> None:
    (violation,) = refused(write(Foo='{"\x1b[31m": 1' + spec().replace("{", ", ", 1))).violations[:1]
    assert "\x1b" not in violation.excerpt


# ---- rules of one file, by the attribute they are reported at


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "$: a spec must be one JSON object, found an array"),
        (spec(type="request", name="FooRequest"), "apiKey: is missing; a message of type request needs its number"),
        (spec(type="metadata", apiKey=""), "apiKey: is missing; a message of type metadata needs its number"),
        (spec(type="request", apiKey=1), "name: the name of a request must end with Request, found 'Foo'"),
        (spec(type="response", apiKey=1), "name: the name of a response must end with Response, found 'Foo'"),
        (spec(apiKey=32768), "apiKey: must be a whole number between -32768 and 32767, found the number 32768"),
        (spec(apiKey="1x"), "apiKey: must be a whole number between -32768 and 32767, found '1x'"),
        (spec(apiKey=True), "apiKey: must be a whole number between -32768 and 32767, found true"),
        (spec(apiKey=[1]), "apiKey: must be a whole number, found an array"),
        (
            spec(validVersions=None),
            "validVersions: is missing; write a closed range such as 0-2, or none for a retired API",
        ),
        (
            spec(deprecatedVersions="x"),
            "deprecatedVersions: 'x' is not a version range; write none, a number, A-B or A+",
        ),
        (spec(listeners="broker"), "listeners: only requests have listeners, but this message is of type data"),
        (
            spec(latestVersionUnstable="true"),
            "latestVersionUnstable: only requests have this attribute, but this message is of type data",
        ),
        (
            spec(name="a-b"),
            "name: 'a-b' is not a valid name; a name consists of letters, digits and underscores, starting with a "
            "letter; did you mean AB?",
        ),
        (
            spec(validVersions="1-0"),
            "validVersions: '1-0' is an empty range; write the lower version first, or none for a retired API",
        ),
        (
            spec(commonStructs={}),
            "commonStructs: an empty object counts as a list with one element; write [] for an empty list",
        ),
        (
            spec().replace('"fields": []', '"fields": {}'),
            "fields: an empty object counts as a list with one element; write [] for an empty list",
        ),
        (spec(name={}), "name: must be a string, found an object"),
        (spec(None), "fields[0]: must be an object, found null"),  # type: ignore[arg-type]
        (spec(commonStructs="x"), "commonStructs: must be an object, found 'x'"),
        (
            spec(commonStructs={"name": "bar", "versions": "0+"}),
            "commonStructs.name: 'bar' is not a valid name; a name consists of letters, digits and underscores, "
            "starting with an upper-case letter; did you mean Bar?",
        ),
        (
            spec(commonStructs={"name": "Bar", "versions": "0+", "about": "x"}),
            "commonStructs.about: unknown attribute; a common struct takes name, versions, deprecatedVersions, fields",
        ),
        (
            spec(commonStructs={"name": "Bar", "versions": "none"}),
            "commonStructs.versions: a common struct exists in at least one version; write a range such as 0+",
        ),
        (
            spec(commonStructs={"name": "Foo", "versions": "0+"}),
            "commonStructs.name: a struct cannot have the same name as its message",
        ),
    ],
)
def test_message_rules(text: str, problem: str) -> None:
    assert short(write(Foo=text)) == [f"specs/Foo.json: {problem}"]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (field(type_="[]"), "type: an array needs the type of its elements, such as []int32"),
        (
            field(type_="[][]int8"),
            "type: arrays of arrays are not supported; use an array of structs that contain an array",
        ),
        (field(type_="[]records"), "type: arrays of records are not supported"),
        (field(type_="Bar-Baz"), f"type: unknown type 'Bar-Baz'; it is {TYPES}"),
        ({"name": "A", "versions": "0"}, f"type: is missing; it must be {TYPES}"),
        ({"name": "A", "type": "int8"}, "versions: is missing; write a range such as 0+"),
        ({"type": "int8", "versions": "0"}, "name: is missing"),
        (field(fields=[field()]), "fields: only structs and arrays have fields, but this is int32"),
        (field(zeroCopy=True), "zeroCopy: only bytes can be zeroCopy, but this is int32"),
        (field(ignorable=1), "ignorable: must be true or false, found the number 1"),
        (
            field(entityType="topic"),
            "entityType: must be one of unknown, transactionalId, producerId, groupId, topicName, "
            "brokerId; found 'topic'",
        ),
        (
            field(type_="[]int32", entityType="producerId"),
            "entityType: producerId needs the type int64 or []int64, but this is []int32",
        ),
        (
            field(flexibleVersions="1+"),
            "flexibleVersions: only string and bytes fields can have their own flexibleVersions, but this is int32",
        ),
        (
            field(type_="string", flexibleVersions="0+"),
            "flexibleVersions: may contain only versions in which the message is flexible (1+), found 0+",
        ),
        (field(taggedVersions="1+"), "taggedVersions: a field with taggedVersions needs a tag"),
        (field(tag=0, taggedVersions="1-2"), "taggedVersions: must be an open range such as 0+, found 1-2"),
        (
            field(tag=0, taggedVersions="0+"),
            "taggedVersions: only flexible versions have tags: the field is tagged in 0+, but the message is "
            "flexible in 1+",
        ),
        (
            field(type_="string", flexibleVersions="none", tag=0, taggedVersions="1+"),
            "taggedVersions: only flexible versions have tags: the field is tagged in 1+, but the field is "
            "flexible in none",
        ),
        (
            field(versions="2+", tag=0, taggedVersions="1+"),
            "taggedVersions: the field is tagged in versions 1+, but exists only in versions 2+",
        ),
        (
            field(type_="string", tag=0, taggedVersions="1+", nullableVersions="2+"),
            "nullableVersions: a field may be null in all of its tagged versions or in none: it is tagged in "
            "1+, and may be null in 2+",
        ),
        (field(type_="records", tag=0, taggedVersions="1+"), "tag: records cannot be tagged"),
        (field(tag=-1, taggedVersions="1+"), "tag: tags must start at 0, found -1"),
        (
            field(tag=2**31, taggedVersions="1+"),
            "tag: must be a whole number between -2147483648 and 2147483647, found the number 2147483648",
        ),
        (field(mapKey=True), "mapKey: is allowed only in elements of an array, not in fields of the message itself"),
        (field(type_="Foo"), "type: a struct cannot have the same name as its message"),
        (
            field(type_="Bar", versions="3+"),
            "versions: the struct Bar would exist in no version: the field has versions 3+, but Foo around it has 0-2",
        ),
    ],
)
def test_field_rules(wrong: dict[str, Any], problem: str) -> None:
    assert short(write(Foo=spec(wrong))) == [f"specs/Foo.json: fields[0].{problem}"]


FLOAT64 = "the default of a float64 must be a number such as 1.5, 1e3, NaN or -Infinity, found"
INT8 = "the default of int8 must be a whole number, decimal or hexadecimal with 0x, found"


@pytest.mark.parametrize(
    ("type_", "default", "problem"),
    [
        ("int8", "-0x1", f"{INT8} '-0x1'"),
        ("int8", "0x", f"{INT8} '0x'"),
        ("int8", "1_0", f"{INT8} '1_0'"),
        ("int8", "\u0661", f"{INT8} '\u0661'"),
        ("int8", "0xff", "the default of int8 must be between -128 and 127, found 0xff"),
        ("int8", "9" * 5000, f"the default of int8 must be between -128 and 127, found {'9' * 5000}"),
        *(
            (
                "int32",
                octal,
                f"{octal!r} starts with a zero: Kafka checks it as decimal and then compiles it as octal; "
                "write the number without the zero, or in hexadecimal with 0x",
            )
            for octal in ("010", "-08", "00")
        ),
        ("bool", "yes", "the default of a bool must be true or false, found 'yes'"),
        *(("float64", text, f"{FLOAT64} {text!r}") for text in ("inf", "nan", "1_0", "1.5x", "0x1.8", ".")),
        *(
            (
                "uuid",
                text,
                "the default of a uuid must be 16 bytes as 22 characters of URL-safe base64 (A-Z a-z 0-9 - _), "
                f"found {text!r}",
            )
            for text in ("AAAA", "AAAAAAAAAAAAAAAAAAAA+A", "AAAAAAAAAAAAAAAAAAAAAA=", "A" * 24)
        ),
        ("bytes", "AA", "the default of bytes must be empty (leave the attribute out) or 'null', found 'AA'"),
        ("Bar", "{}", "the default of a struct must be empty (leave the attribute out) or 'null', found '{}'"),
        (
            "string",
            "null",
            "null can be the default only if the field is nullable in all its versions: it has versions 0+, but "
            "nullableVersions none",
        ),
    ],
)
def test_defaults(type_: str, default: str, problem: str) -> None:
    text = spec(field(type_=type_, default=default))
    assert short(write(Foo=text)) == [f"specs/Foo.json: fields[0].default: {problem}"]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ([field("A"), field("A")], "fields[1].name: A has the same name as fields[0]: A"),
        (
            [field("FooBar"), field("fooBar")],
            "fields[1].name: fooBar has the same name in Kafka's JSON form as fields[0]: fooBar",
        ),
        (
            [field("TopicID"), field("TopicId")],
            "fields[1].name: TopicId has the same Python name as fields[0]: topic_id",
        ),
        (
            [field("A", tag=0, taggedVersions="1+"), field("B", tag=0, taggedVersions="1+")],
            "fields[1].tag: tag 0 is already used by fields[0]; every field needs its own",
        ),
        (
            [field("A", tag=0, taggedVersions="1+"), field("B", tag=2, taggedVersions="1+")],
            "fields[1].tag: the tags of a struct are 0, 1, 2 and so on without a gap; use 1 before 2",
        ),
        (
            [field("A", "Bar"), field("B", "[]Bar")],
            "fields[1].type: the struct Bar is already defined by fields[0]; give this one another name, "
            "or define it once in commonStructs",
        ),
        (
            [field("A", "Bar", fields=[field("B", "[]Bar")])],
            "fields[0].fields[0].type: a struct cannot contain itself: Bar -> Bar",
        ),
        (
            [field("A", "Bar", fields=[field("B", "Baz", fields=[field("C", "Bar")])])],
            "fields[0].fields[0].fields[0].type: a struct cannot contain itself: Bar -> Baz -> Bar",
        ),
        (
            [field("A", "Bar", "1", fields=[field("B", "Baz", "2+")])],
            "fields[0].fields[0].versions: the struct Baz would exist in no version: "
            "the field has versions 2+, but Bar around it has 1",
        ),
    ],
)
def test_fields_side_by_side(fields: list[dict[str, Any]], problem: str) -> None:
    assert short(write(Foo=spec(*fields))) == [f"specs/Foo.json: {problem}"]


def test_common_structs() -> None:
    common = [
        {"name": "Bar", "versions": "1+", "fields": [field("B", "[]Baz")]},
        {"name": "Baz", "versions": "0+", "fields": [field("C", "Bar", "1+")]},
        {"name": "Bar", "versions": "0+"},
    ]
    text = spec(field("A", "Bar", fields=[field("X")]), commonStructs=common)
    assert short(write(Foo=text)) == [
        "specs/Foo.json: commonStructs[1].fields[0].type: a struct cannot contain itself: Bar -> Baz -> Bar",
        "specs/Foo.json: commonStructs[2].name: the common struct Bar is defined twice",
        "specs/Foo.json: fields[0].type: the field exists from version 0 on, but the common struct Bar exists only in "
        "1+",
        "specs/Foo.json: fields[0].fields: Bar is a common struct; its fields belong only in commonStructs",
    ]
