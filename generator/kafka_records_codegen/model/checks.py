"""Checks the rules of the spec language within one file: how attributes depend on each other.

The rules are those of Kafka's generator (FieldSpec, StructSpec, MessageSpec, StructRegistry, MessageDataGenerator).
That generator accepts some specs for which the Java compiler or the first use would fail, for example because of
colliding names. They are rejected here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kafka_records_codegen.model.default_texts import parse_default
from kafka_records_codegen.model.limits import check_limits
from kafka_records_codegen.model.naming import json_name, python_name
from kafka_records_codegen.model.structs import StructDefinition, collect_structs, cycles, uses
from kafka_records_codegen.model.warnings import warn_about
from kafka_records_codegen.spec.attributes import ENTITY_TYPES, FieldSpec, FieldType, MessageSpec, StructSpec
from kafka_records_codegen.spec.versions import Versions

_NULLABLE = "string, bytes, records, arrays and structs"
_SHOWN = 6
"""How many names an error message shows at each end of a long list."""


def check_message(message: MessageSpec) -> Mapping[str, StructDefinition]:
    """Report all violations and warnings about one message to its source, and return its structs.

    For a retired API (no valid versions), only the rules for single fields are checked. It has no structs, because
    nothing is generated for it.
    """
    for field in _all_fields(message):
        _check_field(field)
    _check_members(message)
    for struct in message.common_structs:
        _check_members(struct)
    _check_api_key(message)
    if message.is_retired:
        return {}
    _check_versions(message)
    _check_request_attributes(message)
    _check_coordinator_rules(message)
    structs = collect_structs(message)
    circles = list(cycles(structs))
    for field, names in circles:
        field.report("type", f"a struct cannot contain itself: {' -> '.join(_some(names))}")
    if not circles:
        check_limits(message, structs)
    for definition in structs.values():
        for field in definition.fields:
            _check_field_in_message(field, message)
        for field, used in uses(definition, structs):
            _check_reach(field, used, definition.reach(field.versions), message)
    for field in message.fields:
        if field.map_key:
            field.report("mapKey", "is allowed only in elements of an array, not in fields of the message itself")
    warn_about(message, structs)
    return structs


def _some(names: Sequence[str]) -> Sequence[str]:
    """All names if there are few; otherwise, the first and the last ones, and how many are in between."""
    left_out = len(names) - 2 * _SHOWN
    return names if left_out < 2 else (*names[:_SHOWN], f"… ({left_out} more) …", *names[-_SHOWN:])


def _all_fields(message: MessageSpec) -> Iterable[FieldSpec]:
    waiting = [*message.fields, *(field for struct in message.common_structs for field in struct.fields)]
    while waiting:
        field = waiting.pop()
        yield field
        waiting += field.fields


# ---- the message


def _check_versions(message: MessageSpec) -> None:
    if message.versions.is_open and message.is_sound("validVersions"):
        message.report("validVersions", "a message needs a highest version; write a closed range such as 0-2")
    if not message.has("flexibleVersions") and not message.source.older_dialect:
        if message.is_sound("flexibleVersions"):
            message.report("flexibleVersions", "is missing; write none, or an open range such as 0+")
    elif message.flexible and not message.flexible.is_open:
        message.report("flexibleVersions", f"must be none or an open range such as 0+, found {message.flexible}")


def _check_api_key(message: MessageSpec) -> None:
    optional = message.type in ("data", "header") or (message.is_retired and message.type.startswith("coordinator"))
    if not optional and message.api_key is None and message.is_sound("type", "apiKey"):
        message.report("apiKey", f"is missing; a message of type {message.type} needs its number")
    for kind, suffix in (("request", "Request"), ("response", "Response")):
        if message.type == kind and not message.name.endswith(suffix) and message.is_sound("type", "name"):
            message.report("name", f"the name of a {kind} must end with {suffix}, found {message.name!r}")


def _check_request_attributes(message: MessageSpec) -> None:
    if message.type == "request" or not message.is_sound("type"):
        return
    if message.listeners:
        message.report("listeners", f"only requests have listeners, but this message is of type {message.type}")
    if message.latest_version_unstable:
        message.report(
            "latestVersionUnstable", f"only requests have this attribute, but this message is of type {message.type}"
        )


def _check_coordinator_rules(message: MessageSpec) -> None:
    if message.type != "coordinator-key":
        return
    if message.versions != Versions(0, 0) and message.is_sound("validVersions"):
        message.report("validVersions", f"a coordinator-key can have only version 0, found {message.versions}")
    if message.flexible:
        message.report("flexibleVersions", f"a coordinator-key cannot have flexible versions, found {message.flexible}")


# ---- members of one struct


def _check_members(element: MessageSpec | StructSpec | FieldSpec) -> None:
    """Check the names and tags of the fields in `element`, and of the structs inside them."""
    fields = element.fields
    spellings: list[tuple[str, Callable[[str], str]]] = [
        ("name", str),
        ("name in Kafka's JSON form", json_name),
        ("Python name", python_name),
    ]
    named = [field for field in fields if field.is_sound("name")]
    reported: set[int] = set()
    for what, spell in spellings:
        first: dict[str, FieldSpec] = {}
        for index, field in enumerate(named):
            other = first.setdefault(spell(field.name), field)
            if other is not field and index not in reported:
                reported.add(index)
                field.report("name", f"{field.name} has the same {what} as {other.path}: {spell(field.name)}")
    _check_tags(fields, element.is_whole("fields"))
    for field in fields:
        if field.fields and field.type.is_struct:
            _check_members(field)


def _check_tags(fields: Sequence[FieldSpec], are_all: bool) -> None:
    first: dict[int, FieldSpec] = {}
    for field in fields:
        if field.tag is not None and field.tag >= 0:
            other = first.setdefault(field.tag, field)
            if other is not field:
                field.report("tag", f"tag {field.tag} is already used by {other.path}; every field needs its own")
    for expected, (tag, field) in enumerate(sorted(first.items()) if are_all else ()):
        if tag != expected:
            field.report(
                "tag", f"the tags of a struct are 0, 1, 2 and so on without a gap; use {expected} before {tag}"
            )
            break


# ---- a field on its own


def _check_field(field: FieldSpec) -> None:
    kind = field.type
    if field.is_sound("type"):
        if field.nullable and not _can_be_null(kind):
            field.report("nullableVersions", f"{kind} cannot be null; only {_NULLABLE} can")
        if field.fields and not kind.is_array and not kind.is_struct:
            field.report("fields", f"only structs and arrays have fields, but this is {kind}")
        if field.flexible is not None and str(kind) not in ("string", "bytes"):
            field.report(
                "flexibleVersions",
                f"only string and bytes fields can have their own flexibleVersions, but this is {kind}",
            )
        if field.zero_copy and str(kind) != "bytes":
            field.report("zeroCopy", f"only bytes can be zeroCopy, but this is {kind}")
        wanted = ENTITY_TYPES.get(field.entity_type or "")
        if wanted and kind.base != wanted:
            field.report("entityType", f"{field.entity_type} needs the type {wanted} or []{wanted}, but this is {kind}")
        if field.is_sound("default", "versions", "nullableVersions", "taggedVersions"):
            try:
                parse_default(field)
            except ValueError as error:
                field.report("default", str(error))
    _check_tag(field)


def _can_be_null(kind: FieldType) -> bool:
    return kind.is_array or kind.is_struct or kind.base in ("string", "bytes", "records")


def _check_tag(field: FieldSpec) -> None:
    if not field.is_sound("tag", "taggedVersions"):
        return
    if field.tag is None:
        if field.tagged:
            field.report("taggedVersions", "a field with taggedVersions needs a tag")
        return
    if field.tag < 0:
        field.report("tag", f"tags must start at 0, found {field.tag}")
    if field.tagged.is_empty:
        field.report("tag", "a field with a tag needs taggedVersions, an open range such as 0+")
    else:
        _check_tagged_versions(field)
    if field.map_key:
        field.report("mapKey", "a tagged field cannot be a key")
    if field.zero_copy:
        field.report("zeroCopy", "a tagged field cannot be zeroCopy: the code Kafka generates for it does not compile")
    if str(field.type) == "records":
        field.report("tag", "records cannot be tagged")


def _check_tagged_versions(field: FieldSpec) -> None:
    if not field.tagged.is_open:
        field.report("taggedVersions", f"must be an open range such as 0+, found {field.tagged}")
    if not field.versions.contains_all(field.tagged) and field.is_sound("versions"):
        field.report(
            "taggedVersions",
            f"the field is tagged in versions {field.tagged}, but exists only in versions {field.versions}",
        )
    if field.nullable.intersect(field.tagged) not in (Versions.NONE, field.tagged):
        field.report(
            "nullableVersions",
            f"a field may be null in all of its tagged versions or in none: it is tagged in {field.tagged}, and "
            f"may be null in {field.nullable}",
        )


# ---- a field inside its message


def _check_field_in_message(field: FieldSpec, message: MessageSpec) -> None:
    if not message.is_sound("flexibleVersions") or not message.has("flexibleVersions"):
        return
    override = field.flexible
    if override is not None and not message.flexible.contains_all(override):
        field.report(
            "flexibleVersions",
            f"may contain only versions in which the message is flexible ({message.flexible}), found {override}",
        )
    flexible = message.flexible if override is None else override
    if field.tag is not None and not flexible.contains_all(field.tagged):
        whose = "message" if override is None else "field"
        field.report(
            "taggedVersions",
            f"only flexible versions have tags: the field is tagged in {field.tagged}, but the {whose} is flexible in "
            f"{flexible}",
        )


def _check_reach(field: FieldSpec, used: StructDefinition, versions: Versions, message: MessageSpec) -> None:
    """Check that a common struct exists in the first version that uses it. Otherwise, Kafka's generator fails."""
    available = used.versions.intersect(message.versions)
    versions = versions.intersect(message.versions)
    if not used.is_common or used.versions.is_empty or versions.is_empty or not field.is_sound("versions"):
        return
    if available.is_empty or versions.lowest < available.lowest:
        field.report(
            "type",
            f"the field exists from version {versions.lowest} on, "
            f"but the common struct {used.name} exists only in {used.versions}",
        )
