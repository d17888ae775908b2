"""Reads the attributes of a JSON object strictly, but with the same leniency about scalars as Kafka.

A missing or unreadable attribute gets a neutral value, and `Element.broken` notes that it was reported, so that no
other rule reports it again. The same applies to everything after a mistake that makes the rest of the file unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from kafka_records_codegen.spec.json_text import Node
from kafka_records_codegen.spec.suggestions import camel_case
from kafka_records_codegen.spec.versions import Versions
from kafka_records_codegen.spec.violations import SpecText
from kafka_records_runtime.text.close_names import close_name

MESSAGE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
MESSAGE_NAME_RULE: Final = "letters, digits and underscores, starting with a letter"
INT16: Final = range(-(2**15), 2**15)
INT32: Final = range(-(2**31), 2**31)

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_SCALARS: Final = ("string", "number", "boolean")

T = TypeVar("T")


@dataclass(frozen=True)
class Element:
    """A message, struct or field: its JSON object, its path, and its unreadable attributes."""

    source: SpecText
    node: Node
    path: str
    broken: frozenset[str]

    def has(self, attribute: str) -> bool:
        """Whether the attribute is present. JSON's null counts as absent."""
        member = self.node.members.get(attribute)
        return member is not None and member.value.kind != "null"

    def is_sound(self, *attributes: str) -> bool:
        """Whether none of the attributes was reported as missing or unreadable."""
        return self.broken.isdisjoint(attributes)

    def is_whole(self, attribute: str) -> bool:
        """Whether the attribute was read completely, so that reading did not stop before or inside it."""
        member = self.node.members.get(attribute)
        return self.node.is_whole if member is None else member.value.is_whole

    def path_to(self, attribute: str) -> str:
        return f"{self.path}.{attribute}" if self.path else attribute

    def report(self, attribute: str, message: str) -> None:
        """Report `message` at the attribute's value, or at the object if the attribute is missing."""
        member = self.node.members.get(attribute)
        position = self.node.position if member is None else member.value.position
        self.source.report(position, self.path_to(attribute), message)

    def warn(self, attribute: str, message: str) -> None:
        """Report a warning instead of a violation, at the same place as `report`."""
        member = self.node.members.get(attribute)
        position = self.node.position if member is None else member.value.position
        self.source.warn(position, self.path_to(attribute), message)


class AttributeReader:
    """Reads the attributes of one object."""

    def __init__(self, source: SpecText, node: Node, path: str, allowed: Sequence[str], what: str) -> None:
        self._element = Element(source, node, path, frozenset())
        self._broken: set[str] = set() if node.is_whole else {name for name in allowed if name not in node.members}
        for name, member in node.members.items():
            if name not in allowed:
                near = close_name(name, allowed)
                hint = f"did you mean {near}?" if near else f"{what} takes {', '.join(allowed)}"
                source.report(member.position, self._element.path_to(name), f"unknown attribute; {hint}")

    def finish(self, *ranges_to_check: str) -> dict[str, Any]:
        """Read the attributes that all elements share. Version ranges without meaning here are also read, to check
        their grammar."""
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

    def has(self, attribute: str) -> bool:
        return self._element.has(attribute)

    # ---- attributes by kind

    def text(self, attribute: str) -> str:
        """The text of a string, number or boolean; empty if absent."""
        node = self._scalar(attribute, "a string")
        return "" if node is None else node.text

    def boolean(self, attribute: str) -> bool:
        node = self._scalar(attribute, "true or false")
        if node is None:
            return False
        if node.kind == "number" or node.text not in ("true", "True", "TRUE", "false", "False", "FALSE"):
            self.refuse(attribute, f"must be true or false, found {node.describe()}")
        return node.text in ("true", "True", "TRUE")

    def integer(self, attribute: str, allowed: range) -> int | None:
        node = self._scalar(attribute, "a whole number")
        if node is None or (node.kind == "string" and not node.text.strip()):
            return None
        text = node.text.strip()
        if node.kind != "boolean" and _INTEGER.fullmatch(text) and int(text) in allowed:
            return int(text)
        limits = f"between {allowed[0]} and {allowed[-1]}"
        self.refuse(attribute, f"must be a whole number {limits}, found {node.describe()}")
        return None

    def required_integer(self, attribute: str, allowed: range) -> int | None:
        """A required whole number. Reported if it is missing."""
        number = self.integer(attribute, allowed)
        if number is None and self.is_sound(attribute):
            self.refuse(attribute, f"is missing; write a whole number between {allowed[0]} and {allowed[-1]}")
        return number

    def versions(self, attribute: str, *, default: Versions = Versions.NONE, required: str | None = None) -> Versions:
        """The version range of an attribute. `required` says what to write if a missing range is a mistake."""
        text = self.text(attribute)
        if required and not text.strip() and self.is_sound(attribute):
            self.refuse(attribute, f"is missing; write {required}")
        try:
            return Versions.parse(text, default)
        except ValueError as error:
            self.refuse(attribute, str(error))
            return default

    def name(self, pattern: re.Pattern[str], rule: str, neighbours: Iterable[str] = ()) -> str:
        """The name of the object. For an invalid name, a suggestion follows the style of its `neighbours`."""
        text = self.text("name")
        if not self._element.has("name"):
            if self.is_sound("name"):
                self.refuse("name", "is missing")
        elif self.is_sound("name") and pattern.fullmatch(text) is None:
            meant = camel_case(text, [name for name in neighbours if pattern.fullmatch(name)])
            hint = f"; did you mean {meant}?" if pattern.fullmatch(meant) else ""
            self.refuse("name", f"{text!r} is not a valid name; a name consists of {rule}{hint}")
        return text

    def choice(self, attribute: str, allowed: Sequence[str], *, required: bool = False) -> str | None:
        node = self._element.node.members.get(attribute)
        listed = ", ".join(allowed)
        if node is not None and node.value.kind == "string" and node.value.text in allowed:
            return node.value.text
        if node is not None and node.value.kind != "null":
            self.refuse(attribute, f"must be one of {listed}; found {node.value.describe()}")
        elif required and self.is_sound(attribute):
            self.refuse(attribute, f"is missing; it must be one of {listed}")
        return None

    def choices(self, attribute: str, allowed: Sequence[str]) -> tuple[str, ...]:
        listed = ", ".join(allowed)
        for node, path in self._list(attribute):
            if node.kind != "string" or node.text not in allowed:
                message = f"must be one of {listed}; found {node.describe()}"
                self._element.source.report(node.position, path, message)
                self._broken.add(attribute)
        return tuple(node.text for node, _ in self._list(attribute))

    def required(self, attribute: str, rule: str) -> str:
        """A required text that must not be blank. `rule` says what to write."""
        text = self.text(attribute).strip()
        if not text and self.is_sound(attribute):
            self.refuse(attribute, f"is missing; write {rule}")
        return text

    def texts(self, attribute: str) -> tuple[Element, ...]:
        """The texts in a list, each with its place. Anything else in the list is a violation."""
        found = []
        source = self._element.source
        for node, path in self._list(attribute):
            if node.kind == "string":
                found.append(Element(source, node, path, frozenset()))
            else:
                source.report(node.position, path, f"must be a string, found {node.describe()}")
                self._broken.add(attribute)
        return tuple(found)

    def children(self, attribute: str, read: Callable[[SpecText, Node, str], T]) -> tuple[T, ...]:
        """The objects in a list. A single object counts as a list of one."""
        found = []
        source = self._element.source
        for node, path in self._list(attribute):
            if (
                node.kind == "object"
                and not node.members
                and node.is_whole
                and path == self._element.path_to(attribute)
            ):
                self.refuse(attribute, "an empty object counts as a list with one element; write [] for an empty list")
            elif node.kind == "object":
                found.append(read(source, node, path))
            else:
                source.report(node.position, path, f"must be an object, found {node.describe()}")
                self._broken.add(attribute)
        return tuple(found)

    def names_in(self, attribute: str) -> Iterator[str]:
        """The names of the objects in a list, as far as readable."""
        for node, _ in self._list(attribute):
            if "name" in node.members:
                yield node.members["name"].value.text

    # ---- underneath

    def _scalar(self, attribute: str, wanted: str) -> Node | None:
        if not self._element.has(attribute) or not self.is_sound(attribute):
            return None
        node = self._element.node.members[attribute].value
        if node.kind in _SCALARS:
            return node
        self.refuse(attribute, f"must be {wanted}, found {node.describe()}")
        return None

    def _list(self, attribute: str) -> list[tuple[Node, str]]:
        if not self._element.has(attribute):
            return []
        node = self._element.node.members[attribute].value
        path = self._element.path_to(attribute)
        if node.kind != "array":
            return [(node, path)]
        return [(item, f"{path}[{index}]") for index, item in enumerate(node.items)]

    def refuse(self, attribute: str, message: str) -> None:
        self._element.report(attribute, message)
        self._broken.add(attribute)
