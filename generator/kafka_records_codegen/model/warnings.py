"""Warnings about specs that Kafka's generator accepts but that probably contain a mistake."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kafka_records_codegen.model.structs import StructDefinition
from kafka_records_codegen.spec.attributes import FieldSpec, MessageSpec
from kafka_records_codegen.spec.suggestions import type_like
from kafka_records_codegen.spec.versions import Versions

_TYPE: Final = ("type", "fields")
_VERSIONS: Final = ("versions", "taggedVersions")


def warn_about(message: MessageSpec, structs: Mapping[str, StructDefinition]) -> None:
    """Warn about everything in a message that is probably a mistake. The message must have at least one version.
    `structs` are its structs."""
    for struct in structs.values():
        for field in struct.fields:
            used = structs.get(field.type.base) if field.type.is_struct and field.is_sound(*_TYPE) else None
            has_versions = field.is_sound(*_VERSIONS) and message.is_sound("validVersions")
            there = struct.reach(field.versions).intersect(message.versions)
            if used is not None and not used.is_common and not used.origin.has("fields"):
                if used.origin is field:
                    _warn_about_undefined(field, message, structs)
            elif used is not None and field.type.is_array and has_versions:
                _warn_about_elements(field, there, used)
            if has_versions:
                # A struct that exists in no version is reported as a violation, not here.
                if not there and (used is None or used.origin is not field):
                    _warn_about_versions(field, struct, message)
                _warn_about_null(field, message)


def _warn_about_undefined(field: FieldSpec, message: MessageSpec, structs: Mapping[str, StructDefinition]) -> None:
    # If reading stopped at an error, the definition may be in the unread part.
    if field.is_whole("fields") and message.is_whole("commonStructs"):
        meant = type_like(str(field.type), [name for name, struct in structs.items() if struct.is_common])
        hint = "" if meant is None else f"; did you mean {meant}?"
        field.warn("type", f"{field.type.base} is not defined, neither by fields here nor in commonStructs{hint}")


def _warn_about_elements(field: FieldSpec, there: Versions, used: StructDefinition) -> None:
    """Warn about elements without content. In non-flexible versions, a count of four bytes could claim two billion of
    them."""
    if not used.origin.is_whole("fields") or not used.origin.is_sound("fields", "versions"):
        return
    if not all(member.is_sound(*_VERSIONS) for member in used.fields):
        return
    empty: Iterable[Versions] = [there] if there else []
    for member in used.fields:
        empty = [part for versions in empty for part in versions.subtract(used.reach(member.versions))]
    if empty:
        where = f" in {_listed(list(empty))}" if used.fields else ""
        field.warn("type", f"the struct {used.name} has no fields{where}, so the elements of this array are empty")


def _warn_about_versions(field: FieldSpec, struct: StructDefinition, message: MessageSpec) -> None:
    around = struct.versions.intersect(message.versions)
    # Kafka retires a field by dropping the message versions that have it.
    is_retired = field.versions and field.versions.highest < message.versions.lowest
    if around and not is_retired:
        whose = "the message" if struct.name == message.name else f"the struct {struct.name}"
        field.warn("versions", f"the field exists in no version: it has versions {field.versions}, {whose} {around}")


def _warn_about_null(field: FieldSpec, message: MessageSpec) -> None:
    """Warn about versions that allow null but lack the field.

    An open range such as `0+` means the versions of the field. Versions that the message no longer has do not count.
    """
    lacking = [part for part in field.nullable.subtract(field.versions) if part.highest >= message.versions.lowest]
    if field.nullable.is_open and field.nullable.intersect(field.versions):
        lacking = [part for part in lacking if not part.is_open]
    if lacking:
        lacking[0] = Versions(max(lacking[0].lowest, message.versions.lowest), lacking[0].highest)
        field.warn(
            "nullableVersions",
            f"may be null in {_listed(lacking)}, where the field does not exist: it has versions {field.versions}",
        )


def _listed(parts: list[Versions]) -> str:
    word = "version" if len(parts) == 1 and len(parts[0]) == 1 else "versions"
    return f"{word} {' and '.join(map(str, parts))}"
