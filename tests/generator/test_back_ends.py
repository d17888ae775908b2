"""The products of the generator, and a second codec back end.

The back end here is a toy: it reads and writes messages of a few plain layouts and leaves all others to the schema
walker. It shows what a compiled one needs (docs/design.md, "A second codec back end"): the wire layouts of the model,
one line among the products, and the tables of `CODEC`. It must pass the checks of the generator's own codecs.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_records_codegen.generate import PRODUCTS, Product, generate
from kafka_records_codegen.loader import load
from kafka_records_codegen.model.layouts import Layout
from kafka_records_codegen.model.messages import Message, Model
from kafka_records_codegen.model.units import units
from kafka_records_codegen.text.lines import Lines
from kafka_records_codegen.text.page import Package, header
from kafka_records_codegen.tree import write
from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_runtime.messages.codec import Codec
from kafka_records_runtime.schema.layout import UVARINT, FixedValue, Member, SizedValue
from kafka_records_runtime.text.casing import snake_case
from kafka_records_runtime.wire import walker
from kafka_records_runtime.wire.primitives import INTEGERS
from tests.codecs.agreement import CHECKS
from tests.conftest import VectorLoader

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PACKAGE: Final = "toy_messages"

# -- the back end ------------------------------------------------------------------------------------------------------

FORMATS: Final = {name: code for name, (code, _, _) in INTEGERS.items()} | {"float64": "d"}


def generate_toy(model: Model, package: Package) -> dict[str, str]:
    """A module per codec module, which puts its functions into the tables of the classes when it is imported."""
    files = {}
    for folder in model.folders:
        for unit in units(folder):
            lines = Lines()
            lines.add(header(package, [message.source for message in unit.messages]))
            lines.add("from struct import pack, unpack_from")
            lines.add(f"import {package.module(folder.path, unit.name)} as codecs")
            for message in unit.messages:
                _add_message(message, lines)
            files[f"toy/{folder.path}/{unit.name}.py"] = lines.text() + "\n"
    return files


def _add_message(message: Message, lines: Lines) -> None:
    covered = [layout for layout in message.layouts.of_body if is_covered(layout)]
    for layout in covered:
        _add_reader(layout, lines)
        _add_writer(layout, lines)
    for verb, table in (("read", "readers"), ("write", "writers")):
        functions = ", ".join(f"{version}: {_name(verb, each)}" for each in covered for version in each.versions)
        lines.add(f"codecs.{message.root.python_name}.CODEC.{table}.clear()")
        lines.add(f"codecs.{message.root.python_name}.CODEC.{table}.update({{{functions}}})")


def is_covered(layout: Layout) -> bool:
    """Whether the toy supports this layout: numbers, strings and bytes with classic lengths, and no field that must not
    be lost."""
    if layout.wire.is_flexible or layout.message.type == "header":
        return False
    missed = [field for field in layout.wire.absent if not field.ignorable]
    return not missed and all(
        (
            member.value.type in FORMATS
            if isinstance(member.value, FixedValue)
            else isinstance(member.value, SizedValue) and member.value.length != UVARINT
        )
        for member in layout.wire.body
    )


def _name(verb: str, layout: Layout) -> str:
    return f"{verb}_{snake_case(layout.message.name)}_v{layout.version}"


def _add_reader(layout: Layout, lines: Lines) -> None:
    with lines.block(f"def {_name('read', layout)}(data):"):
        lines.add("members = {}")
        lines.add("pos = 0")
        for member in layout.wire.body:
            _read(member, lines)
        lines.add("assert pos == len(data)")
        lines.add(f"return codecs.{layout.struct.python_name}(**members)")


def _read(member: Member, lines: Lines) -> None:
    name, value = f"members[{member.field.name!r}]", member.value
    if isinstance(value, FixedValue):
        lines.add(f"({name},) = unpack_from('>{FORMATS[value.type]}', data, pos)")
        lines.add(f"pos += {value.size}")
        return
    assert isinstance(value, SizedValue)
    lines.add(f"(size,) = unpack_from('>{FORMATS[value.length]}', data, pos)")
    lines.add(f"pos += {INTEGERS[value.length][2].bit_length() // 8 + 1}")
    with lines.block("if size == -1:"):
        lines.add(f"{name} = None" if value.nullable else "raise ValueError")
    with lines.block("else:"):
        lines.add("assert 0 <= size <= len(data) - pos")
        lines.add(f"{name} = data[pos : pos + size]{'.decode()' if value.type == 'string' else ''}")
        lines.add("pos += size")


def _add_writer(layout: Layout, lines: Lines) -> None:
    with lines.block(f"def {_name('write', layout)}(value):"):
        if layout.message.flexible:
            lines.add("assert value.unknown_tagged_fields == ()")
        lines.add("parts = []")
        for member in layout.wire.body:
            _write(member, lines)
        lines.add("return b''.join(parts)")


def _write(member: Member, lines: Lines) -> None:
    name, value = f"value.{member.field.name}", member.value
    if isinstance(value, FixedValue):
        lines.add(f"parts.append(pack('>{FORMATS[value.type]}', {name}))")
        return
    assert isinstance(value, SizedValue)
    form = FORMATS[value.length]
    with lines.block(f"if {name} is None:"):
        lines.add(f"parts.append(pack('>{form}', -1))" if value.nullable else "raise ValueError")
    with lines.block("else:"):
        lines.add(f"raw = {name}.encode()" if value.type == "string" else f"raw = {name}")
        lines.add("assert type(raw) is bytes")
        lines.add(f"parts += (pack('>{form}', len(raw)), raw)")


TOY: Final = Product("toy codecs", generate_toy, ("toy/*.py",), "units, names, wire layouts")

# -- what it gives -----------------------------------------------------------------------------------------------------

TOPICS: Final = ("consumer_offsets", "share_group_state", "transaction_state")

MODEL: Final = Model(tuple(folder for folder in load(ROOT / "message_specs").folders if folder.path in TOPICS))
"""The topics of the coordinators. Other messages would only make the tests slower."""

NAMES: Final = [message.name for message in MODEL.messages]

COVERED: Final = {
    (message.name, version)
    for message in MODEL.messages
    for layout in message.layouts.of_body
    if is_covered(layout)
    for version in layout.versions
}

COMPARED: Final = sorted({"GroupMetadataValue", *(name for name, _ in COVERED)})
"""The compared messages: those of the model, which may have versions that are not covered, and one message without a
covered version."""


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return generate(MODEL, PACKAGE, products=[*PRODUCTS, TOY])


@pytest.fixture(scope="module")
def message_class(files: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Any]]:
    """Finds a class of the package by the name of its spec, with the functions of the toy in its tables."""
    home = tmp_path_factory.mktemp("generated")
    write(home / PACKAGE, files)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(home))
        for path in files:
            if path.startswith("toy/"):
                importlib.import_module(f"{PACKAGE}.{path.removesuffix('.py').replace('/', '.')}")
        yield importlib.import_module(f"{PACKAGE}.registry").message_class
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def test_the_toy_does_some_versions_of_some_messages() -> None:
    assert ("OffsetCommitKey", 0) in COVERED
    assert {version for name, version in COVERED if name == "OffsetCommitValue"} == {0, 1, 2, 3}
    assert not any(name == "GroupMetadataValue" for name, _ in COVERED)


def test_a_product_more_changes_nothing_else(files: dict[str, str]) -> None:
    few = Model(tuple(folder for folder in MODEL.folders if folder.path == "transaction_state"))
    alone, together = generate(few, PACKAGE), generate(few, PACKAGE, products=[*PRODUCTS, TOY])
    assert {path: text for path, text in together.items() if path in alone} == alone
    more = together.keys() - alone.keys()
    assert more
    assert all(fnmatch(path, "toy/*.py") for path in more)
    assert "toy/consumer_offsets/offset_commit.py" in files


def test_two_products_write_no_file_twice() -> None:
    again = Product("codecs again", TOY.generate, TOY.writes, TOY.made_from)
    with pytest.raises(AssertionError) as caught:
        generate(MODEL, PACKAGE, products=[TOY, again])
    first = "toy/consumer_offsets/legacy_offset_commit.py"
    assert str(caught.value) == f"the products toy codecs and codecs again both write {first}"


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_a_product_writes_what_its_line_says(product: Product) -> None:
    made = product.generate(MODEL, Package(PACKAGE))
    assert made
    assert [path for path in made if not any(fnmatch(path, pattern) for pattern in product.writes)] == []
    assert [pattern for pattern in product.writes if not any(fnmatch(path, pattern) for path in made)] == []


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("name", COMPARED)
@settings(max_examples=5)
@given(data=st.data())
def test_toy_and_walker_agree(
    message_class: Callable[[str], Any], name: str, check: Callable[[Any, st.DataObject], None], data: st.DataObject
) -> None:
    check(message_class(name), data)


def test_the_toy_reads_and_writes_what_kafka_wrote(
    message_class: Callable[[str], Any], load_vectors: VectorLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The walker is called only for layouts that the toy does not cover."""
    asked: list[str] = []
    for method in ("decode", "encode"):
        monkeypatch.setattr(Codec, method, _noting(method, getattr(Codec, method), asked))
    seen = set()
    for line in load_vectors("messages.jsonl.gz"):
        name, version, data = line["message"], line["version"], bytes.fromhex(line["hex"])
        if name not in NAMES:
            continue
        cls = message_class(name)
        asked.clear()
        message = cls.decode(data, version)
        assert message.encode(version) == data, line
        assert asked == ([] if (name, version) in COVERED else ["decode", "encode"]), line
        by_walker, _ = walker.decode(cls.CODEC.schema, data, version, classes=cls.CODEC.classes)
        assert message == by_walker, line
        seen.add((name, version))
    assert seen >= COVERED


def test_toy_and_walker_agree_on_bytes_that_kafka_judged(
    message_class: Callable[[str], Any], load_vectors: VectorLoader
) -> None:
    lines = [line for line in load_vectors("negative.jsonl.gz") if (line["message"], line["version"]) in COVERED]
    assert len(lines) > 100
    for line in lines:
        cls, data = message_class(line["message"]), bytes.fromhex(line["hex"])
        by_walker = _outcome(walker.decode, cls.CODEC.schema, data, line["version"], classes=cls.CODEC.classes)
        found = _outcome(cls.decode, data, line["version"])
        assert found == (by_walker if isinstance(by_walker, str) else by_walker[0]), line


def _noting(name: str, call: Callable[..., Any], asked: list[str]) -> Callable[..., Any]:
    def noted(*arguments: Any) -> Any:
        asked.append(name)
        return call(*arguments)

    return noted


def _outcome(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    try:
        return call(*arguments, **options)
    except KafkaRecordsError as error:
        return f"{type(error).__name__}: {error}"
