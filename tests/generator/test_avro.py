"""The generated Avro schemas: their content, that readers of Avro accept them, and that nothing in a spec breaks
one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_records_codegen.cli import main
from kafka_records_codegen.generate import generate
from kafka_records_codegen.loader import load
from kafka_records_codegen.model.messages import Field, Folder, Message, Model, Struct
from kafka_records_codegen.model.units import units
from kafka_records_codegen.products import avro
from kafka_records_codegen.spec.versions import Versions
from kafka_records_codegen.text.page import Package
from kafka_records_runtime.schema import PRIMITIVES
from tests.generator.spec_files import field, message, spec, write

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
ACME = ROOT / "tests" / "data" / "specs" / "acme"
TEXTS = st.text() | st.lists(st.sampled_from(['"', "\\", "\n", "\x00", "\u2028", "\ud800", "}", "é"])).map("".join)

Json = dict[str, Any]


@pytest.fixture(scope="module")
def ours(our_files: dict[str, str]) -> dict[str, Json]:
    return {name: json.loads(text) for name, text in our_files.items() if name.endswith(".avsc")}


def schemas(specs: Path, package: str = "acme") -> dict[str, Json]:
    texts = avro.generate(load(specs), Package(package))
    return {name: json.loads(text) for name, text in texts.items()}


def foo(*fields: Json, **attributes: Any) -> Json:
    """The schema of one message Foo with these fields. fastavro parses it, to check that it is valid."""
    (schema,) = schemas(write(Foo=spec(*fields, **attributes))).values()
    fastavro.parse_schema(schema)
    return schema


def members(schema: Json) -> dict[str, Json]:
    return {each["name"]: each for each in schema["fields"]}


def together(schemas: dict[str, Json]) -> Json:
    """One schema with all of them. A union would not do, because fastavro does not detect duplicate names there."""
    fields = [{"name": f"f{number}", "type": schema} for number, schema in enumerate(schemas.values())]
    return {"type": "record", "name": "All", "fields": fields}


@pytest.fixture
def specs_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# ---- the whole package


def test_a_schema_stands_beside_every_public_module(ours: dict[str, Json]) -> None:
    home = ROOT / "generated" / "kafka_records"
    top = {"enums", "registry", "schemas", "spark"}
    modules = [path.relative_to(home) for path in home.rglob("*.py") if not path.name.startswith("_")]
    wanted = {path.with_suffix(".avsc").as_posix() for path in modules if path.parts[0].removesuffix(".py") not in top}
    assert ours.keys() == wanted
    assert len(ours) > 100


def test_texts_are_plain_and_end_with_a_line(ours: dict[str, Json]) -> None:
    for name in ours:
        text = (ROOT / "generated" / "kafka_records" / name).read_bytes().decode("ascii")
        assert text.endswith("\n}\n"), name
        assert "\r" not in text, name


def test_fastavro_takes_each_and_all_together(ours: dict[str, Json]) -> None:
    for schema in ours.values():
        fastavro.parse_schema(schema)
    fastavro.parse_schema(together(ours))
    with pytest.raises(fastavro.schema.SchemaParseException, match="redefined named type"):
        fastavro.parse_schema(together({"one": ours["rpc/fetch_request.avsc"], "two": ours["rpc/fetch_request.avsc"]}))


def test_types_are_called_as_the_classes_are(ours: dict[str, Json]) -> None:
    for folder in load(ROOT / "message_specs").folders:
        for unit in units(folder):
            schema = ours[f"{folder.path}/{unit.name}.avsc"]
            assert schema["namespace"] == f"kafka_records.{folder.path}.{unit.name}"
            wanted = [struct.python_name for one in unit.messages for struct in one.structs]
            wanted += [unit.title.partition(":")[0]] if len(unit.messages) == 2 else []
            wanted += ["UnknownTaggedField"] if any(one.flexible for one in unit.messages) else []
            assert sorted(each["name"] for each in types(schema)) == sorted(wanted)


@pytest.mark.parametrize("package", ["acme_messages", "kafka_records"])
def test_every_default_is_one_of_its_type(package: str, ours: dict[str, Json]) -> None:
    """fastavro ignores defaults, but other readers refuse a schema with a wrong one."""
    checked = 0
    for name, schema in (schemas(ACME) if package == "acme_messages" else ours).items():
        known = {each["name"]: each for each in types(schema)}
        for each in known.values():
            for member in each["fields"]:
                if "default" in member:
                    first = member["type"][0] if isinstance(member["type"], list) else member["type"]
                    assert fits(member["default"], first, known), f"{name}: {each['name']}.{member['name']}"
                    checked += 1
    assert checked > (50 if package == "acme_messages" else 700)


def test_a_default_of_another_type_is_noticed() -> None:
    leaf = {"type": "record", "name": "Leaf", "fields": [{"name": "a", "type": ["null", "int"], "default": None}]}
    known = {"Leaf": leaf}
    for good, kind in (("\xff", "bytes"), ([], {"type": "array", "items": "Leaf"}), ({"a": None}, "Leaf"), (2, "int")):
        assert fits(good, kind, known)
    for bad, kind in (
        (None, "bytes"),
        ("\u0100", "bytes"),
        ([1], "int"),
        ({}, "Leaf"),
        ({"a": 1}, "Leaf"),
        (True, "int"),
    ):
        assert not fits(bad, kind, known)
    assert not fits(2**31, "int", known)
    assert not fits("x", "string-like", known)


def types(schema: Any) -> Iterator[Json]:
    """Every record type that is defined in a schema."""
    if isinstance(schema, list):
        for each in schema:
            yield from types(each)
    elif isinstance(schema, dict):
        if schema["type"] == "record":
            yield schema
            for member in schema["fields"]:
                yield from types(member["type"])
        else:
            yield from types(schema["items"])


def fits(value: object, kind: Any, known: dict[str, Json]) -> bool:
    """Whether a default is valid by the Avro specification: it must have the type, or the first type of a union."""
    if isinstance(kind, list):
        return fits(value, kind[0], known)
    if isinstance(kind, dict) and kind["type"] == "array":
        return isinstance(value, list) and all(fits(item, kind["items"], known) for item in value)
    record = kind if isinstance(kind, dict) else known.get(kind)
    if record is not None:
        wanted = members(record)
        return (
            isinstance(value, dict)
            and value.keys() == wanted.keys()
            and all(fits(value[name], member["type"], known) for name, member in wanted.items())
        )
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            bits = 31 if kind == "int" else 63
            return type(value) is int and -(2**bits) <= value < 2**bits
        case "double":
            return type(value) is float and math.isfinite(value)
        case "bytes":
            return isinstance(value, str) and all(ord(char) < 256 for char in value)
        case _:
            return kind == "string" and isinstance(value, str)


# ---- what a schema says


@pytest.mark.parametrize("name", ["audit/trail_entry.avsc", "everything.avsc"])
def test_kept_schemas(name: str) -> None:
    """If a schema differs from its file, the file is rewritten, and the test fails: check the difference."""
    text = generate(load(ACME), "acme_messages", "docs")[name]
    kept = Path(__file__).parent / "golden" / name.replace("/", "-")
    before = kept.read_text("utf-8") if kept.is_file() else None
    if before != text:
        kept.write_text(text, "utf-8")
        pytest.fail(f"{kept.name} was {'written' if before is None else 'changed'}: look at the difference")


def test_every_primitive_has_an_avro_type() -> None:
    assert avro.AVRO_TYPES.keys() == PRIMITIVES


@pytest.mark.usefixtures("specs_folder")
@pytest.mark.parametrize(
    ("attributes", "kind", "default"),
    [
        ({"type": "int32", "default": "-5"}, "int", -5),
        ({"type": "uint16", "default": "0xffff"}, "int", 65535),
        ({"type": "uint32", "default": "4294967295"}, "long", 4294967295),
        ({"type": "int64", "default": "-9223372036854775808"}, "long", -(2**63)),
        ({"type": "bool", "default": "true"}, "boolean", True),
        ({"type": "float64", "default": "1e300"}, "double", 1e300),
        ({"type": "uuid"}, "string", "AAAAAAAAAAAAAAAAAAAAAA"),
        ({"type": "uuid", "default": "H3KKO4NTRPaCWtEmm3vW7A"}, "string", "H3KKO4NTRPaCWtEmm3vW7A"),
        ({"type": "string", "default": 'é"\\'}, "string", 'é"\\'),
        ({"type": "string", "nullableVersions": "1+"}, ["string", "null"], ""),
        ({"type": "string", "nullableVersions": "0+", "default": "null"}, ["null", "string"], None),
        ({"type": "bytes"}, "bytes", ""),
        ({"type": "records"}, ["null", "bytes"], None),
        ({"type": "[]uuid"}, {"type": "array", "items": "string"}, []),
        ({"type": "[]bool", "nullableVersions": "0+"}, [{"type": "array", "items": "boolean"}, "null"], []),
        (
            {"type": "[]int8", "nullableVersions": "0+", "default": "null"},
            ["null", {"type": "array", "items": "int"}],
            None,
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_type_and_default_of_a_field(attributes: Json, kind: Any, default: object) -> None:
    made = members(foo({"name": "A", "versions": "0+", **attributes}, flexibleVersions="none"))["a"]
    assert made == {"name": "a", "doc": f"A: {attributes['type']}, versions 0+", "type": kind, "default": default}


@pytest.mark.usefixtures("specs_folder")
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_a_default_that_json_cannot_say_is_left_out(number: str) -> None:
    inner = [field("N", "float64", default=number)]
    schema = members(foo(field("A", "float64", default=number), field("B", "Inner", fields=inner), field("C", "int8")))
    assert "default" not in schema["a"]
    assert "default" not in schema["b"]
    assert schema["c"]["default"] == 0


@pytest.mark.usefixtures("specs_folder")
def test_the_default_of_a_struct_holds_those_of_its_members() -> None:
    inner = [
        field("N", "int8", default="7"),
        field("S", "string", nullableVersions="0+", default="null"),
        field("U", "uuid"),
        field("D", "Deep", fields=[field("X", "[]int8")]),
    ]
    plain = foo(field("A", "Inner", fields=inner), flexibleVersions="none")
    values: Json = {"n": 7, "s": None, "u": "A" * 22, "d": {"x": []}}
    assert members(plain)["a"]["default"] == values

    flexible = foo(field("A", "Inner", nullableVersions="0+", fields=inner))
    tags: Json = {"unknown_tagged_fields": []}
    assert members(flexible)["a"]["default"] == {**values, "d": {"x": [], **tags}, **tags}
    assert members(flexible)["a"]["type"][1] == "null"


@pytest.mark.usefixtures("specs_folder")
def test_a_struct_is_defined_once_and_then_named() -> None:
    common = [{"name": "Leaf", "versions": "0+", "fields": [field("N", "int8")]}]
    inner = [field("B", "[]Leaf")]
    schema = foo(
        field("A", "[]Inner", fields=inner),
        field("C", "Leaf", nullableVersions="0+", default="null"),
        commonStructs=common,
        flexibleVersions="none",
    )
    assert [each["name"] for each in types(schema)] == ["Foo", "Inner", "Leaf"]
    assert members(schema)["c"]["type"] == ["null", "Leaf"]


@pytest.mark.usefixtures("specs_folder")
def test_what_the_spec_says_is_the_doc() -> None:
    leader = "// The purpose.\n"
    text = spec(field("A", "string", about='Says "this".\n  And that.', tag=0, taggedVersions="1+", versions="1+"))
    doc = schemas(write(Foo=leader + text))["foo.avsc"]
    assert doc["doc"] == "The purpose.\n\nVersions 0-2."
    assert members(doc)["a"]["doc"] == 'Says "this". And that. (A: string, versions 1+, tag 0)'
    assert foo(validVersions="1", flexibleVersions="none")["doc"] == "Foo.\n\nVersion 1."


@pytest.mark.usefixtures("specs_folder")
def test_a_struct_that_holds_itself_is_refused_before_anything_is_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    common = [{"name": "Node", "versions": "0+", "fields": [field("Next", "[]Node")]}]
    write(Foo=spec(field("A", "Node"), commonStructs=common))
    assert main(["generate", "--specs", "specs", "--out", "acme", "--package", "acme"]) == 1
    assert "a struct cannot contain itself: Node -> Node" in capsys.readouterr().err
    assert not Path("acme").exists()


# ---- names that clash


@pytest.mark.usefixtures("specs_folder")
def test_names_of_our_own_give_way_to_those_of_the_spec() -> None:
    """A struct with the name of the record, and one with the name of the type for unknown tagged fields."""
    inner = [field("N", "int8", "0")]
    fields = [field("A", "Note", "0", fields=inner), field("B", "UnknownTaggedField", "0", fields=inner)]
    write(NoteKey=message("NoteKey", "coordinator-key", apiKey=1, fields=[field("A", "Note", "0", fields=inner)]))
    write(NoteValue=message("NoteValue", "coordinator-value", apiKey=1, fields=fields))
    schema = schemas(Path("specs"))["note.avsc"]
    fastavro.parse_schema(schema)
    assert [each["name"] for each in types(schema)] == [
        *("Note_", "NoteKey", "Note", "NoteValue", "NoteValueNote"),
        *("UnknownTaggedField_", "UnknownTaggedField"),
    ]


@pytest.mark.usefixtures("specs_folder")
def test_one_struct_name_in_two_messages_of_a_folder() -> None:
    one = [field("A", "Topic", fields=[field("N", "int8")])]
    two = [field("A", "Topic", fields=[field("S", "string")])]
    write(Foo=message("Foo", fields=one), Bar=message("Bar", fields=two))
    found = schemas(Path("specs"))
    fastavro.parse_schema(together(found))
    assert {schema["namespace"] for schema in found.values()} == {"acme.foo", "acme.bar"}


@pytest.mark.usefixtures("specs_folder")
def test_a_package_whose_name_avro_does_not_take() -> None:
    (schema,) = schemas(write(Foo=spec(field())), "größe.paket").values()
    assert schema["namespace"] == "gr_uf6_udfe.paket.foo"
    fastavro.parse_schema(schema)


# ---- hostile texts


def hostile(about: str, history: str, default: str) -> Json:
    none, versions = Versions.NONE, Versions(0, 0)
    only = Field(
        name="A",
        python_name="a",
        json_name="a",
        base="string",
        is_array=False,
        is_struct=False,
        versions=versions,
        nullable=none,
        tagged=none,
        tag=None,
        flexible=none,
        default=default,
        ignorable=False,
        map_key=False,
        entity_type=None,
        about=about,
        spec_versions="0+",
    )
    body = (Struct("Foo", "Foo", (only,)),)
    one = Message("Foo", "data", None, versions, none, body, "", f"{about}.json", history)
    text = avro.generate(Model((Folder("", (one,), ()),)), Package("acme"))["foo.avsc"]
    assert text.isascii()
    schema: Json = json.loads(text)
    return schema


@example("", "", "")
@given(TEXTS, TEXTS, TEXTS)
def test_any_text_gives_a_schema_that_says_it(about: str, history: str, default: str) -> None:
    def said(text: str) -> str:
        return text.encode("utf-8", "backslashreplace").decode()

    schema = hostile(about, history, default)
    assert schema["fields"][0]["default"] == default
    assert schema["doc"] == said((history or "Foo.") + "\n\nVersion 0.").strip()
    line = said(" ".join(about.split()))
    assert schema["fields"][0]["doc"] == (f"{line} (A: string, versions 0+)" if line else "A: string, versions 0+")


# ---- the tree


@pytest.mark.usefixtures("specs_folder")
def test_a_stale_schema_is_deleted_and_a_strangers_stops_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["generate", "--specs", str(write(Foo=spec(field()))), "--out", "acme", "--package", "acme"]
    assert main(command) == 0
    Path("acme/stale.avsc").write_bytes(Path("acme/foo.avsc").read_bytes())
    assert main([*command, "--check"]) == 1
    assert "extra: acme/stale.avsc\n" in capsys.readouterr().out
    assert main(command) == 0
    assert not Path("acme/stale.avsc").exists()

    Path("acme/mine.avsc").write_text('{"type": "record", "name": "Mine", "fields": []}', encoding="utf-8")
    assert main(command) == 1
    assert "  acme/mine.avsc\n" in capsys.readouterr().err
    assert Path("acme/mine.avsc").exists()
