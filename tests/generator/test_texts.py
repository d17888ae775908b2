"""Texts and names of a spec in generated modules: with any text, the module is valid Python and has the text
unchanged."""

from __future__ import annotations

import ast
import builtins
import importlib
import json
import keyword
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_records_codegen.generate import generate, generate_docs
from kafka_records_codegen.loader import load
from kafka_records_codegen.model.messages import Field, Folder, Message, Model, Struct
from kafka_records_codegen.python import codecs
from kafka_records_codegen.spec.versions import Versions
from kafka_records_codegen.spec.violations import SpecErrors
from kafka_records_codegen.text.page import Package, docstring
from kafka_records_codegen.tree import write
from kafka_records_runtime.text.casing import upper_snake_case
from tests.generator.markdown_pages import read_page

HOSTILE = st.lists(
    st.sampled_from(['"', "'", "\\", "\n", "\r", " ", "\x00", "\x0c", "\x85", "\u2028", "\ufeff", "N{x}"])
)
TEXTS = st.one_of(st.text(), HOSTILE.map("".join), st.characters(categories=["Cs", "Cc", "Cf"]))
QUOTES = ['say """', '"""', '""', 'a""""', '\\"', 'x\\"""', "it's", "a\\", 'ends with "', "\u2028import os", "\x00"]


def page(about: str, history: str, source: str = "Foo.json") -> str:
    none, versions = Versions.NONE, Versions(0, 0)
    field = Field(
        name="A",
        python_name="a",
        json_name="a",
        base="int8",
        is_array=False,
        is_struct=False,
        versions=versions,
        nullable=none,
        tagged=none,
        tag=None,
        flexible=none,
        default=0,
        ignorable=False,
        map_key=False,
        entity_type=None,
        about=about,
        spec_versions="0+",
    )
    message = Message("Foo", "data", None, versions, none, (Struct("Foo", "Foo", (field,)),), "", source, history)
    return codecs.generate(Model((Folder("", (message,), ()),)), Package("acme"))["foo.py"]


def visible(text: str) -> str:
    """The text without blanks, and without characters that a Python file must not contain literally."""
    return "".join(char for char in text if char.isprintable() and not char.isspace())


def said(text: str) -> str:
    """The same for a text in which such characters are escaped."""
    return visible(re.sub(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4})", lambda match: ast.literal_eval(f'"{match.group()}"'), text))


@example("", "")
@given(TEXTS, TEXTS)
def test_any_text_gives_a_module_that_says_it(about: str, history: str) -> None:
    tree = ast.parse(page(about, history).encode())
    (cls,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    document = ast.get_docstring(cls)
    assert document is not None
    assert visible(document) == visible(history or "The message Foo.")
    texts = [it.value.value for it in cls.body if isinstance(it, ast.Expr) and isinstance(it.value, ast.Constant)]
    if about.strip():
        assert visible(about) in [visible(str(text)) for text in texts]


@pytest.mark.parametrize("text", QUOTES)
def test_quotes_and_what_is_no_text(text: str) -> None:
    test_any_text_gives_a_module_that_says_it.hypothesis.inner_test(text, text)  # type: ignore[attr-defined]
    assert ast.literal_eval(f'"""{docstring(text)}"""') == text.strip()


@given(TEXTS)
def test_any_file_name_stays_in_its_comment(name: str) -> None:
    tree = ast.parse(page("", "", f"{name}.json").encode())
    assert [type(node) for node in tree.body[:2]] == [ast.Expr, ast.ImportFrom]


# ---- names


def load_as(package: str, home: Path, monkeypatch: pytest.MonkeyPatch, *specs: dict[str, Any]) -> Any:
    """The registry of a package generated from `specs`."""
    folder = home / "specs"
    folder.mkdir()
    for spec in specs:
        (folder / f"{spec['name']}.json").write_text(json.dumps(spec), encoding="utf-8")
    write(home / package, generate(load(folder), package))
    monkeypatch.syspath_prepend(str(home))
    return importlib.import_module(f"{package}.registry")


def field(name: str, type_: str, **attributes: object) -> dict[str, object]:
    return {"name": name, "type": type_, "versions": "0+", **attributes}


def check_fast_paths(message: Any, constant: str, version: int) -> None:
    """Check the generated functions without their fallback, the codec."""
    module = sys.modules[type(message).__module__]
    data = getattr(module, f"_WRITERS_{constant}")[version](message)
    assert data == message.CODEC.encode(message, version)
    assert getattr(module, f"_READERS_{constant}")[version](data) == message
    assert type(message).decode(message.encode(version), version) == message


@pytest.mark.slow
def test_fields_may_have_any_name_that_generated_code_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used = {name for name in dir(builtins) if name.islower()} | {*keyword.kwlist, *keyword.softkwlist}
    package = Path(__file__).parents[2] / "generated" / "kafka_records"
    # Other modules use the same names, with the names of their messages.
    for some in ("consumer_offsets/*.py", "spark/*.py", "spark/consumer_protocol/*.py"):
        for path in sorted(package.glob(some)):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Name):
                    used.add(node.id)
                elif isinstance(node, ast.arg):
                    used.add(node.arg)
                elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                    used.add(node.name)
    spelled = {name.strip("_").title().replace("_", "") for name in used if name.islower()}
    names = sorted(name for name in spelled if re.fullmatch("[A-Z][A-Za-z0-9]*", name))
    assert {"DecodePrefix", "UnknownTaggedFields", "Data", "Tuple", "Cls"} <= set(names)
    kinds = ("string", "[]int32", "int16", "bytes", "Inner", "[]uuid", "[]string")
    fields = []
    for number, name in enumerate(names):
        kind = kinds[number % len(kinds)]
        inner = {"type": f"Inner{number}", "fields": [field(name, "string")]} if kind == "Inner" else {"type": kind}
        fields.append({**field(name, kind), **inner})
    common = {"type": "data", "validVersions": "0-1", "flexibleVersions": "1+"}
    registry = load_as("acme_named", tmp_path, monkeypatch, {**common, "name": "Named", "fields": fields})
    named = registry.message_class("Named")
    for version in named.VERSIONS:
        message = named()
        check_fast_paths(message, "NAMED", version)
        assert named.decode_prefix(message.encode(version) + b"x", version)[0] == message
        assert named.from_json(message.to_json(version), version) == message


def test_a_message_may_start_with_a_lower_case_letter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("lower", "init", "data", "value", "pos", "cls", "int", "class", "foo")
    common = {"type": "data", "validVersions": "0", "flexibleVersions": "none"}
    fields = [field("A", "Foo", fields=[field("B", "int8")])]
    specs = [{**common, "name": name, "fields": fields if name == "foo" else [field("A", "int8")]} for name in names]
    registry = load_as("acme_lower", tmp_path, monkeypatch, *specs)
    for name in names:
        cls = registry.message_class(name)
        assert cls.__name__ == name.title()
        check_fast_paths(cls(), upper_snake_case(name), 0)
        assert cls.CODEC.schema.name == name


def test_structs_whose_functions_would_have_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = [
        field("A", "[]Part", fields=[field("X", "int8")]),
        field("B", "PartArray", fields=[field("Y", "string")]),
        field("C", "PartTags", fields=[field("Z", "int16")]),
        field("D", "PartCompactArray", fields=[field("W", "int64")]),
    ]
    spec = {"type": "data", "name": "Whole", "validVersions": "0-1", "flexibleVersions": "1+", "fields": fields}
    whole = load_as("acme_parts", tmp_path, monkeypatch, spec).message_class("Whole")
    data = {"a": [{"x": 1}, {"x": 2}], "b": {"y": "text"}, "c": {"z": 3}, "d": {"w": 4}}
    for version in (0, 1):
        check_fast_paths(whole.from_json(data, version), "WHOLE", version)


TURNS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""What Unicode calls explicit directional formatting (UAX 9): CVE-2021-42574 is about the last nine."""


def test_marks_that_turn_the_writing_stand_nowhere_as_they_are(tmp_path: Path) -> None:
    """They do not appear literally in modules, schemas, Avro files or pages, whichever text of a spec they come
    from."""
    text = f"if admin{TURNS}: pass"
    fields = [{**field("A", "string", default=text), "about": text}, field("B", "[]Bar", fields=[], about=text)]
    spec = {"type": "data", "name": "Foo", "validVersions": "0", "flexibleVersions": "0+", "fields": fields}
    (tmp_path / f"Foo{TURNS}.json").write_text(f"// {text}\n{json.dumps(spec)}", encoding="utf-8")
    model = load(tmp_path)
    escaped = ascii(text)[1:-1]
    files = {**generate(model, "acme"), **generate_docs(model, "acme")}
    for name, made in files.items():
        assert not set(made) & set(TURNS), name
    assert f'"""{escaped}"""' in files["foo.py"]
    assert f'"{escaped}"' in files["foo.py"]
    assert f"# Specs: Foo{ascii(TURNS)[1:-1]}.json" in files["foo.py"]
    page = read_page(files["foo.md"])
    assert escaped in page.paragraphs
    table, *_ = page.tables_with("Field in JSON", "Type")
    assert table[0][-3:] == [f'"{escaped}"', "", escaped]
    assert json.loads(files["foo.avsc"])["doc"].startswith(text)


def test_a_violation_reaches_the_terminal_as_text(tmp_path: Path) -> None:
    """Escape sequences and marks that turn the writing, in names of files and attributes, are shown, and have no
    effect."""
    spec = {"type": "data", "name": "Foo", "validVersions": "0", "flexibleVersions": "0+", "\x1b[31m\u202e": 1}
    (tmp_path / "\x1b[2JFoo\u202e.json").write_text(json.dumps(spec, ensure_ascii=False), encoding="utf-8")
    with pytest.raises(SpecErrors) as caught:
        load(tmp_path)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(
        f"{tmp_path}/\\x1b[2JFoo\\u202e.json:1:81: \\x1b[31m\\u202e: unknown attribute; a message takes type, name, "
    )
    assert lines[1].endswith('"flexibleVersions": "0+", "\\u001b[31m\N{REPLACEMENT CHARACTER}": 1}')
