"""Merges a spec of a release into ours. What determines bytes comes from the release; words and spelling stay ours.

A field is identified by its struct and its name; a field that `compare` calls renamed, by its older name. An attribute
that means the same in all versions of the release keeps our spelling. A field without a description of ours gets
`UNWRITTEN` as its `about`. Kafka's descriptions are never copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Final

from kafka_records_codegen.evolution import change_rules as rules
from kafka_records_codegen.evolution.changes import Change, SpecPlace
from kafka_records_codegen.spec.attributes import FieldSpec, FieldType, MessageSpec
from kafka_records_codegen.spec.element import Element
from kafka_records_codegen.spec.json_text import Node
from tools.follow.spec_form import FIELD_ATTRIBUTES, MESSAGE_ATTRIBUTES, Json

UNWRITTEN: Final = "?"
"""Marks a missing text of ours: the `about` of a field, or a leading comment after its `//`."""

_LEFT_OUT: Final = frozenset({"deprecatedVersions"})
"""Attributes of Kafka's specs that do not affect anything we generate."""

_NATURAL: Final = {"": "", "bool": "false", "float64": "0.0", "string": "", "uuid": "AAAAAAAAAAAAAAAAAAAAAA"}
"""The default of a type if the spec has none. Types that are not listed are integers, whose default is 0."""


def merged(theirs: MessageSpec, ours: MessageSpec | None, changes: Iterable[Change] = ()) -> Json:
    """The spec of a message in the release, as JSON. `ours` is our spec of it, if we have one, and `changes` lead from
    ours to that of the release."""
    found: Json = {}
    for name in MESSAGE_ATTRIBUTES:
        same = ours is not None and _message_meaning(ours, name) == _message_meaning(theirs, name)
        source = ours if same and ours is not None else theirs
        if name in source.node.members and not (source is theirs and name in _LEFT_OUT):
            found[name] = plain(source.node.members[name].value)
    merger = _Merger(theirs, ours, changes)
    found["fields"] = merger.fields(theirs.name, theirs.fields)
    if theirs.common_structs:
        found["commonStructs"] = [
            {
                "name": struct.name,
                "versions": plain(struct.node.members["versions"].value),
                "fields": merger.fields(struct.name, struct.fields),
            }
            for struct in theirs.common_structs
        ]
    return found


def plain(node: Node) -> object:
    """A JSON value without the positions of its parts."""
    match node.kind:
        case "object":
            return {name: plain(member.value) for name, member in node.members.items()}
        case "array":
            return [plain(item) for item in node.items]
        case "number":
            return int(node.text) if node.text.lstrip("-").isdigit() else float(node.text)
        case "boolean":
            return node.text == "true"
        case "null":
            return None
        case "string":
            return node.text


def _message_meaning(spec: MessageSpec, name: str) -> object:
    match name:
        case "apiKey":
            return spec.api_key
        case "validVersions":
            return spec.versions
        case "flexibleVersions":
            return spec.flexible.intersect(spec.versions)
        case "latestVersionUnstable":
            return spec.latest_version_unstable
        case "listeners":
            return frozenset(spec.listeners)
        case _:
            return plain(spec.node.members[name].value) if spec.has(name) else None


def _by_place(spec: MessageSpec | None) -> Mapping[tuple[str, str], FieldSpec]:
    """The fields of a message by struct and name."""
    if spec is None:
        return {}
    structs = [(spec.name, spec.fields), *((struct.name, struct.fields) for struct in spec.common_structs)]
    return {place: field for struct, fields in structs for place, field in _places(struct, fields)}


def _places(struct: str, fields: Iterable[FieldSpec]) -> Iterator[tuple[tuple[str, str], FieldSpec]]:
    for field in fields:
        yield (struct, field.name), field
        yield from _places(field.type.base, field.fields)


def _owner(place: SpecPlace) -> str:
    """The JSON path of a field whose attribute is at `place`."""
    return place.path.rpartition(".")[0]


class _Merger:
    def __init__(self, theirs: MessageSpec, ours: MessageSpec | None, changes: Iterable[Change]) -> None:
        self._versions = theirs.versions
        self._ours = _by_place(ours)
        self._structs = {} if ours is None else {theirs.name: ours.name}
        self._older: dict[str, FieldSpec] = {}
        by_path = {each.path: each for each in self._ours.values()}
        for change in changes:
            if change.rule is rules.STRUCT_RENAMED:
                self._structs[change.newer] = change.older
            elif change.rule in (rules.FIELD_RENAMED, rules.NAME_SPELLED):
                assert change.older_place is not None
                self._older[_owner(change.place)] = by_path[_owner(change.older_place)]

    def fields(self, struct: str, theirs: Sequence[FieldSpec]) -> list[Json]:
        mine = self._structs.get(struct, struct)
        names = {each.name for each in theirs}
        return [self._field(each, self._ours.get((mine, each.name)) or self._renamed(each, names)) for each in theirs]

    def _renamed(self, theirs: FieldSpec, names: Set[str]) -> FieldSpec | None:
        """Our field with the older name, unless another field of the same struct has that name, and its description,
        now."""
        ours = self._older.get(theirs.path)
        return None if ours is None or ours.name in names else ours

    def _field(self, theirs: FieldSpec, ours: FieldSpec | None) -> Json:
        found: Json = {}
        for name in FIELD_ATTRIBUTES:
            if ours is not None and self._meaning(ours, name) == self._meaning(theirs, name):
                if name in ours.node.members:
                    found[name] = plain(ours.node.members[name].value)
            elif name in theirs.node.members and not _says_nothing(theirs, name):
                found[name] = _tidy(theirs, name)
        found["about"] = ours.about if ours is not None else UNWRITTEN
        if theirs.fields:
            found["fields"] = self.fields(theirs.type.base, theirs.fields)
        return found

    def _meaning(self, field: FieldSpec, name: str) -> object:
        match name:
            case "name":
                return field.name
            case "type":
                return field.type
            case "versions":
                return field.versions.intersect(self._versions)
            case "nullableVersions":
                return field.nullable.intersect(field.versions.intersect(self._versions))
            case "flexibleVersions":
                return None if field.flexible is None else field.flexible.intersect(self._versions)
            case "tag":
                return field.tag
            case "taggedVersions":
                return field.tagged.intersect(self._versions)
            case "default":
                return _default(field)
            case "ignorable":
                return field.ignorable
            case "mapKey":
                return field.map_key
            case _:
                # zeroCopy and entityType only matter for Java, so ours stay.
                return None


def _default(field: FieldSpec) -> object:
    """The default in a canonical form. The text `null` means null; without quotes it means that there is no default."""
    natural = _natural(field.type)
    return field.default if field.default not in ("", natural) else natural


def _natural(kind: FieldType) -> str:
    return "" if kind.is_array or kind.is_struct or kind.base in ("bytes", "records") else _NATURAL.get(kind.base, "0")


def _says_nothing(field: FieldSpec, name: str) -> bool:
    """Whether an attribute of Kafka's spec can be left out, because its value is the default."""
    if name == "default":
        return field.node.members[name].value.kind != "null" and _default(field) == _natural(field.type)
    return _raw(field, name) is False or (name == "entityType" and field.entity_type == "unknown")


def _tidy(field: FieldSpec, name: str) -> object:
    """An attribute of Kafka's spec in our spelling: numbers without quotes."""
    value = _raw(field, name)
    is_number = name == "default" and isinstance(value, str) and value.lstrip("-").isdigit()
    if is_number and field.type.base != "string" and isinstance(value, str):
        return int(value)
    return value


def _raw(element: Element, name: str) -> object:
    return plain(element.node.members[name].value) if name in element.node.members else None
