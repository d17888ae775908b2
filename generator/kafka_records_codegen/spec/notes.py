"""The notes of a folder of specs: facts about its messages that Kafka's spec language cannot express.

They are in a file `_notes.json` next to the specs, in the same JSON dialect, and are read just as strictly. This module
contains the grammar; `model.note_checks` checks the notes against the messages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from kafka_records_codegen.spec.element import INT16, INT32, MESSAGE_NAME, MESSAGE_NAME_RULE, AttributeReader, Element
from kafka_records_codegen.spec.json_text import Node, parse
from kafka_records_codegen.spec.versions import Versions
from kafka_records_codegen.spec.violations import SpecText

NOTES: Final = "_notes.json"
"""The name of the file that contains a folder's notes instead of a message."""

FRAMINGS: Final = ("coordinator", "metadata", "none")
"""How the records of a folder begin. With `none`, its messages are not topic records."""

_NOTES: Final = ("framing", "retiredTypes", "versionNotes", "newerAsHighest", "enums")
_ENUM_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_VALUE_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]*")


@dataclass(frozen=True)
class RetiredTypeSpec(Element):
    """A record type that no spec describes any more: its number, its name, and the reason in a few words."""

    type: int | None
    name: str
    why: str


@dataclass(frozen=True)
class VersionNoteSpec(Element):
    """A remark appended to errors about these versions of a message."""

    message: str
    versions: Versions
    note: str


@dataclass(frozen=True)
class EnumValueSpec(Element):
    """A number with a name."""

    name: str
    value: int | None
    about: str


@dataclass(frozen=True)
class EnumSpec(Element):
    """Names for the numbers in a field of some messages."""

    name: str
    about: str
    values: tuple[EnumValueSpec, ...]


@dataclass(frozen=True)
class NotesSpec(Element):
    """A folder's notes as written in the file. `framing` is None if the file does not contain it."""

    framing: str | None
    retired_types: tuple[RetiredTypeSpec, ...]
    version_notes: tuple[VersionNoteSpec, ...]
    newer_as_highest: tuple[Element, ...]
    enums: tuple[EnumSpec, ...]


def read_notes(source: SpecText) -> NotesSpec | None:
    """The notes in `source`, which receives any violations. None if there is no JSON object."""
    node = parse(source)
    if node is None:
        return None
    if node.kind != "object":
        source.report(node.position, "", f"the notes of a folder must be one JSON object, found {node.describe()}")
        return None
    reader = AttributeReader(source, node, "", _NOTES, "a file of notes")
    return NotesSpec(
        framing=reader.choice("framing", FRAMINGS),
        retired_types=reader.children("retiredTypes", _read_retired_type),
        version_notes=reader.children("versionNotes", _read_version_note),
        newer_as_highest=reader.texts("newerAsHighest"),
        enums=reader.children("enums", _read_enum),
        **reader.finish(),
    )


def _read_retired_type(source: SpecText, node: Node, path: str) -> RetiredTypeSpec:
    reader = AttributeReader(source, node, path, ("type", "name", "why"), "a retired type")
    return RetiredTypeSpec(
        type=reader.required_integer("type", INT16),
        name=reader.name(MESSAGE_NAME, MESSAGE_NAME_RULE),
        why=reader.required("why", "briefly why the type was retired"),
        **reader.finish(),
    )


def _read_version_note(source: SpecText, node: Node, path: str) -> VersionNoteSpec:
    reader = AttributeReader(source, node, path, ("message", "versions", "note"), "a version note")
    return VersionNoteSpec(
        message=reader.required("message", "the name of a message of this folder"),
        versions=reader.versions("versions", required="a range such as 0-2"),
        note=reader.required("note", "the remark that errors about these versions append"),
        **reader.finish(),
    )


def _read_enum(source: SpecText, node: Node, path: str) -> EnumSpec:
    reader = AttributeReader(source, node, path, ("name", "about", "values"), "an enum")
    return EnumSpec(
        name=reader.name(_ENUM_NAME, "letters and digits, starting with an upper-case letter"),
        about=reader.required("about", "what the numbers mean"),
        values=reader.children("values", _read_value),
        **reader.finish(),
    )


def _read_value(source: SpecText, node: Node, path: str) -> EnumValueSpec:
    reader = AttributeReader(source, node, path, ("name", "value", "about"), "a value")
    return EnumValueSpec(
        name=reader.name(_VALUE_NAME, "upper-case letters, digits and underscores, starting with a letter"),
        value=reader.required_integer("value", INT32),
        about=reader.text("about").strip(),
        **reader.finish(),
    )
