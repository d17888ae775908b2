"""Checks the notes of a folder against its messages, and resolves them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kafka_records_codegen.model.framings import framing_of
from kafka_records_codegen.model.naming import RESERVED_CLASSES, record_name
from kafka_records_codegen.model.notes import Enum, EnumValue, RetiredType, VersionNote, one_line
from kafka_records_codegen.spec.attributes import MessageSpec
from kafka_records_codegen.spec.element import Element
from kafka_records_codegen.spec.notes import EnumSpec, EnumValueSpec, NotesSpec
from kafka_records_codegen.spec.versions import Versions
from kafka_records_runtime.kafka.open_enum import OpenIntEnum
from kafka_records_runtime.records.framing import METADATA, Framing
from kafka_records_runtime.text.close_names import close_name

_WITH_PREFIX: Final = ("data", "metadata")
"""Types of messages preceded by an int16 version, so a reader may read them as another version."""

_NUMBERED: Final = re.compile(r"UNKNOWN_[0-9]+")


@dataclass(frozen=True)
class Notes:
    """The notes of a folder. Notes about messages are keyed by message name."""

    retired_types: tuple[RetiredType, ...] = ()
    version_notes: Mapping[str, tuple[VersionNote, ...]] = field(default_factory=dict)
    newer_as_highest: frozenset[str] = frozenset()
    enums: tuple[Enum, ...] = ()


def check_notes(
    notes: NotesSpec, path: str, specs: Sequence[MessageSpec], enums: dict[str, str], *, complete: bool
) -> None:
    """Report all problems of the `notes` in the file `path`.

    `specs` are the messages of the folder, all of them if `complete`. `enums` maps enums of other folders to their
    files. The enums of this folder are added to it, because all enums are in one module.
    """
    by_name = {spec.name: spec for spec in specs if spec.is_sound("name")}
    framing = framing_of(specs, notes)
    _check_retired_types(notes, by_name, framing, complete)
    _check_version_notes(notes, by_name, complete)
    _check_newer_as_highest(notes, by_name, framing, complete)
    for enum in notes.enums:
        if enum.is_sound("name"):
            if enum.name in enums:
                enum.report("name", f"there is already an enum {enum.name} in {enums[enum.name]}")
            elif enum.name in RESERVED_CLASSES or enum.name == OpenIntEnum.__name__:
                enum.report("name", f"{enum.name} is a name that the generated module uses itself")
            enums.setdefault(enum.name, path)
        _check_enum(enum)


def resolved_notes(notes: NotesSpec) -> Notes:
    """Convert the notes into the form that the generator uses. `check_notes` must have found no problem in them."""
    version_notes: dict[str, tuple[VersionNote, ...]] = {}
    for each in notes.version_notes:
        known = version_notes.get(each.message, ())
        version_notes[each.message] = (*known, VersionNote(each.versions, one_line(each.note)))
    return Notes(
        retired_types=tuple(
            sorted(
                (RetiredType(each.type or 0, each.name, one_line(each.why)) for each in notes.retired_types),
                key=lambda retired: retired.type,
            )
        ),
        version_notes=version_notes,
        newer_as_highest=frozenset(each.node.text for each in notes.newer_as_highest),
        enums=tuple(_resolved_enum(enum) for enum in notes.enums),
    )


# ---- notes about messages


def _check_retired_types(
    notes: NotesSpec, specs: Mapping[str, MessageSpec], framing: Framing | None, complete: bool
) -> None:
    numbered = "metadata" if framing == METADATA else "coordinator-key"
    keys = {spec.api_key: spec for spec in specs.values() if spec.type == numbered and not spec.is_retired}
    names = {spec.name if framing == METADATA else record_name(spec.name): spec for spec in keys.values()}
    if notes.retired_types and not keys and complete:
        notes.report("retiredTypes", "this folder has no specs of records, so it cannot retire types")
    taken: set[int] = set()
    for retired in notes.retired_types:
        if retired.type is None:
            continue
        if retired.type in keys:
            retired.report(
                "type", f"the type {retired.type} cannot be retired: the spec {keys[retired.type].name} has it"
            )
        elif retired.type in taken:
            retired.report("type", f"there is already a retired type {retired.type}")
        taken.add(retired.type)
        if retired.is_sound("name") and retired.name in names:
            retired.report(
                "name", f"{retired.name} cannot be retired: the spec {names[retired.name].name} describes it"
            )


def _check_version_notes(notes: NotesSpec, specs: Mapping[str, MessageSpec], complete: bool) -> None:
    noted: dict[str, list[Versions]] = {}
    for note in notes.version_notes:
        if not note.is_sound("message"):
            continue
        spec = specs.get(note.message)
        if spec is None:
            if complete:
                note.report("message", _unknown(note.message, specs))
            continue
        if not note.is_sound("versions") or not spec.is_sound("validVersions"):
            continue
        if note.versions.is_empty or not spec.versions.contains_all(note.versions):
            text = f"may name only versions of {note.message} ({spec.versions}), found {note.versions}"
            note.report("versions", text)
        before = noted.setdefault(note.message, [])
        for versions in before:
            both = versions.intersect(note.versions)
            if both:
                note.report("versions", f"there is already a note about versions {both} of {note.message}")
        before.append(note.versions)


def _check_newer_as_highest(
    notes: NotesSpec, specs: Mapping[str, MessageSpec], framing: Framing | None, complete: bool
) -> None:
    seen: set[str] = set()
    for element in notes.newer_as_highest:
        name = element.node.text
        spec = specs.get(name)
        if name in seen:
            _report(element, f"{name} is listed twice")
        elif spec is None:
            if complete:
                _report(element, _unknown(name, specs))
        elif spec.is_sound("type") and spec.type not in _WITH_PREFIX:
            types = " and ".join(_WITH_PREFIX)
            _report(element, f"{name} is a {spec.type}; a version precedes only messages of the types {types}")
        elif spec.type == "metadata" and framing == METADATA:
            _report(element, f"{name} is a metadata record, and its readers do not treat newer versions as known ones")
        seen.add(name)


def _unknown(name: str, specs: Mapping[str, MessageSpec]) -> str:
    meant = close_name(name, specs)
    hint = "" if meant is None else f"; did you mean {meant}?"
    return f"this folder has no message {name}{hint}"


def _report(element: Element, message: str) -> None:
    element.source.report(element.node.position, element.path, message)


# ---- enums


def _check_enum(enum: EnumSpec) -> None:
    if not enum.values and enum.is_sound("values") and enum.is_whole("values"):
        enum.report("values", "an enum must have at least one value")
    names: set[str] = set()
    numbers: dict[int, EnumValueSpec] = {}
    for value in enum.values:
        if value.is_sound("name"):
            if value.name in names:
                value.report("name", f"there is already a value {value.name}")
            elif _NUMBERED.fullmatch(value.name):
                value.report("name", f"{value.name} is reserved for numbers without a name")
            names.add(value.name)
        if value.value is not None:
            first = numbers.setdefault(value.value, value)
            if first is not value:
                value.report("value", f"{value.value} is already {first.name}")


def _resolved_enum(enum: EnumSpec) -> Enum:
    values = tuple(EnumValue(value.name, value.value or 0, value.about) for value in enum.values)
    return Enum(enum.name, enum.about, values)
