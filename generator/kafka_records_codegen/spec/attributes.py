"""A spec file as values: every attribute read strictly, with Kafka's tolerance for loosely written scalars.

Reading knows the grammar of each attribute and nothing of how attributes depend on each other; that is
`checks`. An attribute that is missing or cannot be read gets its neutral value, and `Element.broken`
remembers that it was reported, so that no rule complains about it again. The same goes for what would stand behind a
mistake after which the file cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, Literal, TypeVar, cast, get_args

from kafka_records_codegen.spec.json_text import Node, leading_comment, parse
from kafka_records_codegen.spec.versions import Versions
from kafka_records_codegen.spec.violations import Source
from kafka_records_runtime.schema import PRIMITIVES

MessageType = Literal["request", "response", "header", "metadata", "data", "coordinator-key", "coordinator-value"]
MESSAGE_TYPES: Final[tuple[MessageType, ...]] = get_args(MessageType)
LISTENERS: Final = ("broker", "controller")
OLDER_LISTENERS: Final = ("zkBroker", *LISTENERS)
ENTITY_TYPES: Final = {
    "unknown": "",
    "transactionalId": "string",
    "producerId": "int64",
    "groupId": "string",
    "topicName": "string",
    "brokerId": "int32",
}
"""Each entity type and the field type it goes with; `unknown` goes with all."""

_MESSAGE: Final = (
    *("type", "name", "validVersions", "flexibleVersions", "apiKey", "deprecatedVersions", "listeners"),
    *("latestVersionUnstable", "fields", "commonStructs"),
)
_STRUCT: Final = ("name", "versions", "deprecatedVersions", "fields")
_FIELD: Final = (
    *(
        "name",
        "type",
        "versions",
        "fields",
        "nullableVersions",
        "default",
        "ignorable",
        "tag",
        "taggedVersions",
    ),
    *("mapKey", "entityType", "flexibleVersions", "zeroCopy", "about"),
)
_FIELD_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_MESSAGE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_STRUCT_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9_]*")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_SCALARS: Final = ("string", "number", "boolean")
_INT16: Final = range(-(2**15), 2**15)
_INT32: Final = range(-(2**31), 2**31)

T = TypeVar("T")


@dataclass(frozen=True)
class Element:
    """A message, struct or field: its JSON object, its path, and the attributes that could not be read."""

    source: Source
    node: Node
    path: str
    broken: frozenset[str]

    def has(self, attribute: str) -> bool:
        """Whether the attribute is there; JSON's null is the same as an absent one."""
        member = self.node.members.get(attribute)
        return member is not None and member.value.kind != "null"

    def is_sound(self, *attributes: str) -> bool:
        """Whether none of the attributes has been reported as missing or unreadable."""
        return self.broken.isdisjoint(attributes)

    def is_whole(self, attribute: str) -> bool:
        """Whether all of the attribute is known: reading did not stop inside it or before it."""
        member = self.node.members.get(attribute)
        return self.node.is_whole if member is None else member.value.is_whole

    def path_to(self, attribute: str) -> str:
        return f"{self.path}.{attribute}" if self.path else attribute

    def report(self, attribute: str, message: str) -> None:
        """Report `message` at the attribute's value, or at the object when it has none."""
        member = self.node.members.get(attribute)
        position = self.node.position if member is None else member.value.position
        self.source.report(position, self.path_to(attribute), message)


@dataclass(frozen=True)
class FieldType:
    """`base` is a primitive or the name of a struct; of the elements when `is_array`."""

    base: str
    is_array: bool

    @property
    def is_struct(self) -> bool:
        return self.base not in PRIMITIVES

    def __str__(self) -> str:
        return f"[]{self.base}" if self.is_array else self.base


@dataclass(frozen=True)
class FieldSpec(Element):
    """A field as the file has it; `flexible` is `None` when it follows the message, `default` is a text."""

    name: str
    type: FieldType
    versions: Versions
    nullable: Versions
    tag: int | None
    tagged: Versions
    flexible: Versions | None
    default: str
    ignorable: bool
    map_key: bool
    zero_copy: bool
    entity_type: str | None
    about: str
    fields: tuple[FieldSpec, ...]


@dataclass(frozen=True)
class StructSpec(Element):
    """A common struct as the file has it."""

    name: str
    versions: Versions
    fields: tuple[FieldSpec, ...]


@dataclass(frozen=True)
class MessageSpec(Element):
    """A message as its file has it. Without `versions` the API is retired: nothing is generated for it."""

    type: MessageType
    name: str
    versions: Versions
    flexible: Versions
    api_key: int | None
    listeners: tuple[str, ...]
    latest_version_unstable: bool
    fields: tuple[FieldSpec, ...]
    common_structs: tuple[StructSpec, ...]
    history: str

    @property
    def is_retired(self) -> bool:
        return self.versions.is_empty and self.is_sound("validVersions")


def read_message(source: Source) -> MessageSpec | None:
    """The message in `source`; what is wrong is reported there. `None` if there is no JSON object."""
    node = parse(source)
    if node is None:
        return None
    if node.kind != "object":
        source.report(node.position, "", f"a spec is one JSON object, found {node.describe()}")
        return None
    reader = _Reader(source, node, "", _MESSAGE, "a message")
    kind = reader.choice("type", MESSAGE_TYPES, required=True)
    return MessageSpec(
        type=cast(MessageType, kind or "data"),
        name=reader.name(_MESSAGE_NAME, "letters, digits and underscores, starting with a letter"),
        versions=reader.valid_versions(),
        flexible=reader.versions("flexibleVersions"),
        api_key=reader.integer("apiKey", _INT16),
        listeners=reader.choices("listeners", OLDER_LISTENERS if source.older_dialect else LISTENERS),
        latest_version_unstable=reader.boolean("latestVersionUnstable"),
        fields=reader.children("fields", _read_field),
        common_structs=reader.children("commonStructs", _read_struct),
        history=leading_comment(source.text),
        **reader.finish("deprecatedVersions"),
    )


def _read_struct(source: Source, node: Node, path: str) -> StructSpec:
    reader = _Reader(source, node, path, _STRUCT, "a common struct")
    return StructSpec(
        name=reader.name(_STRUCT_NAME, "letters, digits and underscores, starting with an upper-case letter"),
        versions=reader.versions("versions", required="a range such as 0+"),
        fields=reader.children("fields", _read_field),
        **reader.finish("deprecatedVersions"),
    )


def _read_field(source: Source, node: Node, path: str) -> FieldSpec:
    reader = _Reader(source, node, path, _FIELD, "a field")
    tagged = reader.versions("taggedVersions")
    if tagged.is_empty and reader.is_sound("taggedVersions"):
        versions = reader.versions("versions", required="a range such as 0+")
    else:
        versions = reader.versions("versions", default=tagged)
    return FieldSpec(
        name=reader.name(_FIELD_NAME, "letters and digits, starting with a letter"),
        type=reader.field_type(),
        versions=versions,
        nullable=reader.versions("nullableVersions"),
        tag=reader.integer("tag", _INT32),
        tagged=tagged,
        flexible=reader.versions("flexibleVersions") if reader.text("flexibleVersions") else None,
        default=reader.text("default"),
        ignorable=reader.boolean("ignorable"),
        map_key=reader.boolean("mapKey"),
        zero_copy=reader.boolean("zeroCopy"),
        entity_type=reader.choice("entityType", tuple(ENTITY_TYPES)),
        about=reader.text("about").strip(),
        fields=reader.children("fields", _read_field),
        **reader.finish(),
    )


class _Reader:
    """Reads the attributes of one object."""

    def __init__(self, source: Source, node: Node, path: str, allowed: Sequence[str], what: str) -> None:
        self._element = Element(source, node, path, frozenset())
        self._broken: set[str] = set() if node.is_whole else {name for name in allowed if name not in node.members}
        for name, member in node.members.items():
            if name not in allowed:
                near = get_close_matches(name, allowed, 1, 0.75)
                hint = f"did you mean {near[0]}?" if near else f"{what} takes {', '.join(allowed)}"
                source.report(member.position, self._element.path_to(name), f"unknown attribute; {hint}")

    def finish(self, *ranges_to_check: str) -> dict[str, Any]:
        """The part that all elements share; also reads ranges that mean nothing here, for their grammar."""
        for attribute in ranges_to_check:
            self.versions(attribute)
        element = self._element
        return {
            "source": element.source,
            "node": element.node,
            "path": element.path,
            "broken": frozenset(self._broken),
        }

    def is_sound(self, attribute: str) -> bool:
        return attribute not in self._broken

    # ---- attributes by kind

    def text(self, attribute: str) -> str:
        """The text of a string, number or boolean; empty when absent."""
        node = self._scalar(attribute, "a text")
        return "" if node is None else node.text

    def boolean(self, attribute: str) -> bool:
        node = self._scalar(attribute, "true or false")
        if node is None:
            return False
        if node.kind == "number" or node.text not in ("true", "True", "TRUE", "false", "False", "FALSE"):
            self._refuse(attribute, f"takes true or false, found {node.describe()}")
        return node.text in ("true", "True", "TRUE")

    def integer(self, attribute: str, allowed: range) -> int | None:
        node = self._scalar(attribute, "a whole number")
        if node is None or (node.kind == "string" and not node.text.strip()):
            return None
        text = node.text.strip()
        if node.kind != "boolean" and _INTEGER.fullmatch(text) and int(text) in allowed:
            return int(text)
        limits = f"between {allowed[0]} and {allowed[-1]}"
        self._refuse(attribute, f"takes a whole number {limits}, found {node.describe()}")
        return None

    def versions(self, attribute: str, *, default: Versions = Versions.NONE, required: str | None = None) -> Versions:
        """The range of an attribute. `required` says what to write when a missing one is a mistake."""
        text = self.text(attribute)
        if required and not text.strip() and self.is_sound(attribute):
            self._refuse(attribute, f"is missing; write {required}")
        try:
            return Versions.parse(text, default)
        except ValueError as error:
            self._refuse(attribute, str(error))
            return default

    def valid_versions(self) -> Versions:
        """The versions of a message; there are none for a retired API, and for that takes the word `none`."""
        versions = self.versions("validVersions", required="a closed range such as 0-2, or none for a retired API")
        text = self.text("validVersions").strip()
        if versions.is_empty and text != "none" and self.is_sound("validVersions"):
            self._refuse(
                "validVersions", f"{text!r} holds no version; write the lower one first, or none for a retired API"
            )
        return versions

    def name(self, pattern: re.Pattern[str], rule: str) -> str:
        text = self.text("name")
        if not self._element.has("name"):
            if self.is_sound("name"):
                self._refuse("name", "is missing")
        elif self.is_sound("name") and pattern.fullmatch(text) is None:
            self._refuse("name", f"{text!r} is no name; a name here consists of {rule}")
        return text

    def choice(self, attribute: str, allowed: Sequence[str], *, required: bool = False) -> str | None:
        node = self._element.node.members.get(attribute)
        listed = ", ".join(allowed)
        if node is not None and node.value.kind == "string" and node.value.text in allowed:
            return node.value.text
        if node is not None and node.value.kind != "null":
            self._refuse(attribute, f"takes one of {listed}; found {node.value.describe()}")
        elif required and self.is_sound(attribute):
            self._refuse(attribute, f"is missing; it is one of {listed}")
        return None

    def choices(self, attribute: str, allowed: Sequence[str]) -> tuple[str, ...]:
        listed = ", ".join(allowed)
        for node, path in self._list(attribute):
            if node.kind != "string" or node.text not in allowed:
                message = f"takes one of {listed}; found {node.describe()}"
                self._element.source.report(node.position, path, message)
                self._broken.add(attribute)
        return tuple(node.text for node, _ in self._list(attribute))

    def children(self, attribute: str, read: Callable[[Source, Node, str], T]) -> tuple[T, ...]:
        """The objects of a list; a single object stands for a list of one."""
        found = []
        source = self._element.source
        for node, path in self._list(attribute):
            if (
                node.kind == "object"
                and not node.members
                and node.is_whole
                and path == self._element.path_to(attribute)
            ):
                self._refuse(
                    attribute, "an empty object stands for a list of one element without attributes; write [] for none"
                )
            elif node.kind == "object":
                found.append(read(source, node, path))
            else:
                source.report(node.position, path, f"takes an object, found {node.describe()}")
                self._broken.add(attribute)
        return tuple(found)

    def field_type(self) -> FieldType:
        text = self.text("type").strip()
        if not text:
            if self.is_sound("type"):
                self._refuse("type", f"is missing; it is {_TYPE_RULE}")
            return FieldType("int32", False)
        is_array = text.startswith("[]")
        base = text.removeprefix("[]").strip()
        if is_array and not base:
            self._refuse("type", "an array needs the type of its elements, such as []int32")
        elif base.startswith("[]"):
            self._refuse("type", "there are no arrays of arrays; use an array of structs that hold an array")
        elif base == "records" and is_array:
            self._refuse("type", "there are no arrays of records")
        elif base not in PRIMITIVES and _STRUCT_NAME.fullmatch(base) is None:
            self._refuse("type", f"unknown type {text!r}; it is {_TYPE_RULE}")
        return FieldType(base, is_array)

    # ---- underneath

    def _scalar(self, attribute: str, wanted: str) -> Node | None:
        if not self._element.has(attribute) or not self.is_sound(attribute):
            return None
        node = self._element.node.members[attribute].value
        if node.kind in _SCALARS:
            return node
        self._refuse(attribute, f"takes {wanted}, found {node.describe()}")
        return None

    def _list(self, attribute: str) -> list[tuple[Node, str]]:
        if not self._element.has(attribute):
            return []
        node = self._element.node.members[attribute].value
        path = self._element.path_to(attribute)
        if node.kind != "array":
            return [(node, path)]
        return [(item, f"{path}[{index}]") for index, item in enumerate(node.items)]

    def _refuse(self, attribute: str, message: str) -> None:
        self._element.report(attribute, message)
        self._broken.add(attribute)


_TYPE_RULE: Final = (
    f"one of {', '.join(PRIMITIVES)}, the name of a struct (which starts with an upper-case letter), "
    "or [] and one of these for an array"
)
