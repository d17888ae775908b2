"""Converts checked specs to the model: limits ranges, converts defaults to values, sorts structs and chooses names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kafka_records_codegen.model.default_texts import parse_default
from kafka_records_codegen.model.messages import Field, Message, RecordPair, Struct
from kafka_records_codegen.model.naming import (
    RESERVED_MODULES,
    class_name,
    free_name,
    json_name,
    python_name,
    record_name,
)
from kafka_records_codegen.model.structs import StructDefinition, leaves_first
from kafka_records_codegen.spec.attributes import FieldSpec, MessageSpec
from kafka_records_codegen.spec.versions import Versions
from kafka_records_runtime.text.casing import snake_case

_FUNCTION_KINDS = ("", "_array", "_compact_array", "_tags")
_HAVE_LENGTH = frozenset({"string", "bytes", "records"})


@dataclass(frozen=True)
class SpecFile:
    """A spec that passed all checks: its file, its content, and its structs by name."""

    folder: str
    path: str
    spec: MessageSpec
    structs: Mapping[str, StructDefinition]


def resolve_module(files: Sequence[SpecFile]) -> tuple[Message, ...]:
    """The messages that share one generated module: a record's key and value, or a single message."""
    taken = {function for file in files for function in _functions(class_name(file.spec.name))}
    return tuple(_message(file, taken) for file in files)


def record_pairs(pairs: Iterable[tuple[Message | None, Message]], subfolders: Iterable[str]) -> tuple[RecordPair, ...]:
    """The records of a folder by type, each with its class. A metadata record has no key.

    A record's class name ends with `_` if a struct in the key or value, a subpackage, or anything else in the folder's
    package has that name. A metadata record has the same name as its message, so its class name begins with `Framed`.
    """
    taken = {*RESERVED_MODULES, *subfolders}
    records = []
    for key, value in sorted(pairs, key=lambda pair: pair[1].api_key or 0):
        assert value.api_key is not None
        name = value.name if key is None else record_name(key.name)
        pair = RecordPair(
            value.api_key, name, class_name(f"Framed{class_name(name)}" if key is None else name), key, value
        )
        structs = {struct.python_name for message in pair.messages for struct in message.structs}
        pair = replace(pair, python_name=free_name(pair.python_name, taken | structs))
        taken.add(pair.python_name)
        records.append(pair)
    return tuple(records)


def _message(file: SpecFile, taken: set[str]) -> Message:
    spec = file.spec
    structs = []
    for definition in leaves_first(file.structs[spec.name], file.structs):
        is_root = definition.origin is spec
        name = class_name(spec.name) if is_root else _free_name((definition.name, spec.name + definition.name), taken)
        structs.append(Struct(definition.name, name, tuple(_fields(definition, spec))))
    return Message(
        name=spec.name,
        type=spec.type,
        api_key=spec.api_key,
        versions=spec.versions,
        flexible=spec.flexible.intersect(spec.versions),
        structs=tuple(structs),
        folder=file.folder,
        source=file.path,
        history=spec.history,
        latest_version_unstable=spec.latest_version_unstable,
    )


def _free_name(candidates: Sequence[str], taken: set[str]) -> str:
    """A class name that is free in the module, as are the names of its functions.

    Names clash if a key and its value both have a struct `Topic`, if there are both `TopicID` and `TopicId`, or if
    there is a `TopicArray` in addition to the array functions of `Topic`.
    """
    names = [class_name(candidate) for candidate in candidates]
    while not taken.isdisjoint(_functions(names[0])):
        names = names[1:] if len(names) > 1 else [f"{names[0]}_"]
    taken.update(_functions(names[0]))
    return names[0]


def _functions(name: str) -> Iterable[str]:
    """The function names for the class `name` in a generated module, without verb and version."""
    return [snake_case(name) + kind for kind in _FUNCTION_KINDS]


def _fields(struct: StructDefinition, message: MessageSpec) -> Iterable[Field]:
    for spec in struct.fields:
        versions = struct.reach(spec.versions).intersect(message.versions)
        yield Field(
            name=spec.name,
            python_name=python_name(spec.name),
            json_name=json_name(spec.name),
            base=spec.type.base,
            is_array=spec.type.is_array,
            is_struct=spec.type.is_struct,
            versions=versions,
            nullable=struct.reach(spec.nullable).intersect(versions),
            tagged=spec.tagged.intersect(versions),
            tag=spec.tag,
            flexible=_flexible(spec, message).intersect(versions),
            default=parse_default(spec),
            ignorable=spec.ignorable,
            map_key=spec.map_key,
            entity_type=spec.entity_type,
            about=spec.about,
            spec_versions=str(spec.versions),
        )


def _flexible(field: FieldSpec, message: MessageSpec) -> Versions:
    """The versions in which the length of `field` is compact; empty if it has no length."""
    if not field.type.is_array and field.type.base not in _HAVE_LENGTH:
        return Versions.NONE
    return message.flexible if field.flexible is None else field.flexible
