"""Messages that are larger than what can be generated, read or waited for."""

from __future__ import annotations

import ast
import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.generate import generate, generate_docs
from kafka_records_codegen.loader import load
from tests.generator.spec_files import field, refused, short, spec, write

pytestmark = pytest.mark.slow

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def nested(levels: int, prefix: str = "[]") -> str:
    """A message with so many structs inside each other, all but the body inline."""
    fields = [field("X")]
    for level in range(levels, 1, -1):
        fields = [field("X"), field(f"F{level}", f"{prefix}S{level}", fields=fields)]
    return spec(*fields)


def chained(levels: int, uses: int = 1, prefix: str = "", **attributes: Any) -> str:
    """The same with common structs, each of which uses the next one so many times."""
    names = [f"S{level}" for level in range(2, levels + 1)]
    common = [
        {"name": name, "versions": "0+", "fields": [field(f"U{use}", f"{prefix}{inner}") for use in range(uses)]}
        for name, inner in pairwise(names)
    ]
    common.append({"name": names[-1], "versions": "0+", "fields": [field("X")]})
    return spec(field("A", names[0]), commonStructs=common, **attributes)


# ---- names


def test_the_name_of_a_message_is_the_name_of_files() -> None:
    """A name that no file system accepts is refused, in a line that does not repeat it."""
    longest = "A" * 250
    model = load(write(Foo=spec(field("X"), name=longest)))
    for path in (*generate(model, "acme"), *generate_docs(model, "acme")):
        assert max(map(len, Path(path).parts)) <= 255
    (violation,) = refused(write(Foo=spec(field("X"), name="A" * 200_000))).violations
    assert (violation.path, len(str(violation)) < 1000) == ("name", True)
    assert violation.message == (
        "the file names of this message would be 200000 characters long; the limit is 250, because file systems "
        "do not accept longer names"
    )
    (humps,) = refused(write(Foo=spec(field("X"), name="Ab" * 84))).violations
    assert "would be 251 characters long" in humps.message


# ---- levels


@pytest.mark.parametrize("text", [nested(32), nested(32, ""), chained(32), chained(32, prefix="[]")])
def test_as_deep_as_may_be(text: str) -> None:
    """The generated code must be valid Python. Its Spark types have the deepest brackets."""
    model = load(write(Foo=text))
    for path, page in generate(model, "acme").items():
        if path.endswith(".py"):
            ast.parse(page)
        elif path.endswith(".avsc"):
            json.loads(page)
    assert len(generate_docs(model, "acme")) == 2


def too_deep(place: str, name: str) -> str:
    return (
        f"specs/Foo.json: {place}.type: the struct {name} would be 33 levels deep; the limit is 32, because "
        "Python cannot read the Spark type of a deeper struct"
    )


@pytest.mark.parametrize("levels", [33, 34, 80])
@pytest.mark.parametrize("prefix", ["[]", ""])
def test_structs_that_are_nested_too_deep(levels: int, prefix: str) -> None:
    """The field of the first struct that is too deep is named, and none below it."""
    assert short(write(Foo=nested(levels, prefix))) == [too_deep(".".join(["fields[1]"] * 32), "S33")]


@pytest.mark.parametrize("levels", [33, 300, 3000])
def test_chains_of_common_structs(levels: int) -> None:
    assert short(write(Foo=chained(levels))) == [too_deep("commonStructs[30].fields[0]", "S33")]


def test_the_longest_way_to_a_struct_counts() -> None:
    """Whether a struct is too deep does not depend on the field that leads to it first."""
    text = json.loads(chained(32))
    text["commonStructs"][5]["fields"].insert(0, field("Short", "S32"))
    load(write(Foo=json.dumps(text)))
    text["commonStructs"][-1]["fields"].append(field("Y", "Last"))
    text["commonStructs"].insert(0, {"name": "Last", "versions": "0+", "fields": [field("X")]})
    assert short(write(Foo=json.dumps(text))) == [too_deep("commonStructs[31].fields[1]", "Last")]


def test_the_excerpt_shows_the_struct() -> None:
    text = json.dumps(json.loads(chained(33)), indent=1)
    assert str(refused(write(Foo=text))).splitlines()[1:] == ['         "type": "S33",', "                 ^"]


def test_a_ring_of_very_many_structs() -> None:
    text = json.loads(chained(3000))
    text["commonStructs"][-1]["fields"] = [field("A", "S2")]
    assert short(write(Foo=json.dumps(text))) == [
        "specs/Foo.json: commonStructs[2998].fields[0].type: a struct cannot contain itself: "
        "S2 -> S3 -> S4 -> S5 -> S6 -> S7 -> … (2988 more) … -> S2996 -> S2997 -> S2998 -> S2999 -> S3000 -> S2"
    ]


# ---- fields


def too_many(count: int, together: str = "") -> str:
    return (
        f"specs/Foo.json: fields: {count} fields, counting those of a struct at each use{together}; the limit is "
        "10000, because Spark types, pages and wire layouts repeat them all"
    )


def test_structs_that_double() -> None:
    """In an earlier version, fourteen of them took a minute, and each further one another minute."""
    assert short(write(Foo=chained(15, uses=2))) == [too_many(24575, ", in 3 versions 73725")]
    assert short(write(Foo=chained(15, uses=2, validVersions="1"))) == [too_many(24575)]
    assert short(write(Foo=chained(32, uses=2))) == [too_many(3221225471, ", in 3 versions 9663676413")]


def test_too_many_of_them_are_not_counted() -> None:
    """Their count, a power of two, would have more digits than Python prints."""
    usual = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        found = short(write(Foo=chained(2300, uses=2)))
    finally:
        sys.set_int_max_str_digits(usual)
    assert found == [
        too_deep("commonStructs[30].fields[0]", "S33"),
        too_deep("commonStructs[30].fields[1]", "S33"),
    ]


@pytest.mark.parametrize(
    ("fields", "versions"), [pytest.param(10000, "0", marks=pytest.mark.matrix), (100, "0-99"), (5000, "7-8")]
)
def test_as_many_as_may_be(fields: int, versions: str) -> None:
    """A message that is large by itself or by its versions, exactly at the limit and one field above it."""
    names = [f"F{number}" for number in range(fields + 1)]
    model = load(write(Foo=spec(*(field(name) for name in names[:-1]), validVersions=versions)))
    assert len(model.messages[0].root.fields) == fields
    (problem,) = short(write(Foo=spec(*(field(name) for name in names), validVersions=versions)))
    count = len(model.messages[0].versions)
    together = f", in {count} versions {(fields + 1) * count}" if count > 1 else ""
    assert problem == too_many(fields + 1, together)


def test_an_open_range_is_reported_as_such_alone() -> None:
    assert short(write(Foo=spec(field("A"), validVersions="0+"))) == [
        "specs/Foo.json: validVersions: a message needs a highest version; write a closed range such as 0-2"
    ]


# ---- defaults


@pytest.mark.parametrize("letters", ["x" * 32767, "é" * 16383, "\N{GRINNING FACE}" * 8191])
def test_the_longest_default(letters: str) -> None:
    (message,) = load(write(Foo=spec(field("A", "string", default=letters)))).messages
    assert message.root.fields[0].default == letters


@pytest.mark.parametrize(("letters", "size"), [("x" * 32768, 32768), ("é" * 16384, 32768)])
def test_a_default_that_cannot_be_encoded(letters: str, size: int) -> None:
    assert short(write(Foo=spec(field("A", "string", default=letters)))) == [
        "specs/Foo.json: fields[0].default: the default of a string can have at most 32767 bytes of UTF-8, found "
        f"{size}"
    ]


@pytest.mark.parametrize("half", ["\\ud83d", "\\ude00", "\\ude00\\ud83d"])
def test_a_default_with_half_a_pair(half: str) -> None:
    text = spec(field("A", "string", default="?")).replace('"?"', f'"a{half}"')
    column = text.index(f'"a{half}"') + 1
    assert str(refused(write(Foo=text))) == (
        f"specs/Foo.json:1:{column}: fields[0].default: half of a surrogate pair without the other half; such a "
        "text cannot be "
        f"written as UTF-8\n{excerpt(text, column)}"
    )


def excerpt(line: str, column: int) -> str:
    """The piece of a long line around a column, as violations show it."""
    start = max(0, min(column - 1 - 60, len(line) - 120))
    return f"    {line[start : start + 120]}\n    {' ' * (column - 1 - start)}^"
