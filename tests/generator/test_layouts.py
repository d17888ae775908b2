"""The layouts of a message, from which readers, writers, schemas and pages are made."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_records_codegen.loader import load
from kafka_records_codegen.model.messages import Message
from kafka_records_runtime.schema.layout import FixedValue, StructValue, message_layout
from tests.generator.spec_files import field, spec, write

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Message:
    """Versions 0-2, flexible from 1 on; a struct that grows in version 2, and a field that comes and goes."""
    monkeypatch.chdir(tmp_path)
    inner = [field("X", "int8"), field("Y", "int8", "2+")]
    folder = write(Foo=spec(field("A", "[]Inner", fields=inner), field("B", "int16", "1")))
    (found,) = load(folder).messages
    return found


def test_a_layout_for_each_set_of_versions_that_look_alike(message: Message) -> None:
    assert [layout.versions for layout in message.layouts.of_body] == [(0,), (1,), (2,)]
    assert [layout.versions for layout in message.layouts.of_struct("Inner")] == [(0,), (1,), (2,)]
    assert [message.layouts.at(version).version for version in (0, 1, 2)] == [0, 1, 2]


def test_a_layout_is_named_for_the_lowest_of_its_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A field that existed only in between: the layout after it is equal to that before it."""
    monkeypatch.chdir(tmp_path)
    (found,) = load(write(Foo=spec(field("A"), field("B", "int16", "1"), flexibleVersions="none"))).messages
    assert [layout.versions for layout in found.layouts.of_body] == [(0, 2), (1,)]
    assert found.layouts.at(2).version == 0


def test_layouts_are_those_of_the_schema_that_the_package_carries(message: Message) -> None:
    for version in message.versions:
        assert message.layouts.at(version).wire == message_layout(message.schema, version)


def test_a_struct_inside(message: Message) -> None:
    body = message.layouts.at(2)
    element = body.wire.body[0].value.element  # type: ignore[union-attr]
    assert isinstance(element, StructValue)
    inner = body.of(element)
    assert (inner.struct.name, inner.versions) == ("Inner", (2,))
    assert [member.value for member in inner.wire.body] == [FixedValue("int8"), FixedValue("int8")]


def test_every_version_of_every_message_has_one_layout() -> None:
    for message in load(ROOT / "message_specs").messages:
        covered = [version for layout in message.layouts.of_body for version in layout.versions]
        assert sorted(covered) == list(message.versions)
        assert len({layout.version for layout in message.layouts.of_body}) == len(list(message.layouts.of_body))
