"""Collects the structs of a message with the versions in which they exist, and sorts them by use.

A struct is either common, so any field of the message may use it, or defined inline by the one field that uses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kafka_records_codegen.spec.attributes import FieldSpec, MessageSpec, StructSpec
from kafka_records_codegen.spec.element import Element
from kafka_records_codegen.spec.versions import MAX_VERSION, Versions


@dataclass(frozen=True)
class StructDefinition:
    """A struct, with the versions in which it exists. `origin` is the spec element that defines it."""

    name: str
    versions: Versions
    fields: tuple[FieldSpec, ...]
    origin: Element
    is_common: bool = False

    def reach(self, versions: Versions) -> Versions:
        """The versions of a member that matter inside this struct.

        Kafka's code never checks the upper end of a common struct. A later version of the message is read like the
        struct's highest version, so a member of that version continues to exist.
        """
        inside = versions.intersect(self.versions)
        if self.is_common and inside and inside.highest == self.versions.highest:
            return Versions(inside.lowest, MAX_VERSION)
        return inside


def collect_structs(message: MessageSpec) -> Mapping[str, StructDefinition]:
    """Every struct of the message by name, including the message itself. Contradictions are reported."""
    root = StructDefinition(message.name, message.versions, message.fields, message)
    return _Registry(message, root).collect()


class _Registry:
    def __init__(self, message: MessageSpec, root: StructDefinition) -> None:
        self._message = message
        self._root = root
        self._found: dict[str, StructDefinition] = {}
        self._common: dict[str, StructSpec] = {}
        self._open: set[str] = set()

    def collect(self) -> Mapping[str, StructDefinition]:
        for struct in self._message.common_structs:
            self._add_common(struct)
        for struct in self._message.common_structs:
            if struct is self._common.get(struct.name):
                self._add_inline(self._found[struct.name])
        self._add_inline(self._root)
        return {**self._found, self._root.name: self._root}

    def _add_common(self, struct: StructSpec) -> None:
        if not struct.is_sound("name"):
            return
        if struct.name == self._message.name:
            struct.report("name", "a struct cannot have the same name as its message")
        elif struct.name in self._common:
            struct.report("name", f"the common struct {struct.name} is defined twice")
        else:
            if struct.versions.is_empty and struct.is_sound("versions"):
                struct.report("versions", "a common struct exists in at least one version; write a range such as 0+")
            self._common[struct.name] = struct
            self._found[struct.name] = StructDefinition(struct.name, struct.versions, struct.fields, struct, True)

    def _add_inline(self, parent: StructDefinition) -> None:
        for field in parent.fields:
            if not field.type.is_struct or not field.is_sound("type"):
                continue
            name = field.type.base
            if name == self._message.name:
                field.report("type", "a struct cannot have the same name as its message")
            elif name in self._common:
                if field.fields:
                    field.report("fields", f"{name} is a common struct; its fields belong only in commonStructs")
            elif name in self._open:
                continue  # the struct contains itself, which `cycles` reports
            elif name in self._found:
                if not self._message.is_whole("commonStructs"):
                    continue  # the type may be a common struct
                first = self._found[name].origin.path
                field.report(
                    "type",
                    f"the struct {name} is already defined by {first}; give this one another name, "
                    "or define it once in commonStructs",
                )
            else:
                self._define(parent, field)

    def _define(self, parent: StructDefinition, field: FieldSpec) -> None:
        versions = parent.reach(field.versions)
        sound = parent.origin.is_sound("versions", "validVersions") and field.is_sound("versions", "taggedVersions")
        if versions.is_empty and parent.versions and sound:
            field.report(
                "versions" if field.has("versions") else "taggedVersions",
                f"the struct {field.type.base} would exist in no version: "
                f"the field has versions {field.versions}, but {parent.name} around it has {parent.versions}",
            )
        definition = StructDefinition(field.type.base, versions, field.fields, field)
        self._found[definition.name] = definition
        self._open.add(definition.name)
        self._add_inline(definition)
        self._open.remove(definition.name)


def leaves_first(root: StructDefinition, structs: Mapping[str, StructDefinition]) -> tuple[StructDefinition, ...]:
    """All structs that `root` uses, each after those it uses, with `root` last. There must be no cycle."""
    order: dict[str, StructDefinition] = {}
    # Use a stack instead of recursion, because the nesting depth is checked only later.
    path = [(root, uses(root, structs))]
    while path:
        struct, below = path[-1]
        used = next((used for _, used in below if used.name not in order), None)
        if used is None:
            order[struct.name] = struct
            path.pop()
        else:
            path.append((used, uses(used, structs)))
    return tuple(order.values())


def uses(
    struct: StructDefinition, structs: Mapping[str, StructDefinition]
) -> Iterator[tuple[FieldSpec, StructDefinition]]:
    """The fields of `struct` whose type is a struct, each paired with the struct that is its type."""
    for field in struct.fields:
        used = structs.get(field.type.base) if field.type.is_struct else None
        if used is not None and not isinstance(used.origin, MessageSpec):
            yield field, used


def cycles(structs: Mapping[str, StructDefinition]) -> Iterator[tuple[FieldSpec, tuple[str, ...]]]:
    """Every field that leads back to an enclosing struct, with the names of the structs in between."""
    done: set[str] = set()
    for root in structs.values():
        path = {} if root.name in done else {root.name: uses(root, structs)}
        while path:
            name, below = next(reversed(path.items()))
            for field, used in below:
                if used.name in path:
                    names = list(path)
                    yield field, (*names[names.index(used.name) :], used.name)
                elif used.name not in done:
                    path[used.name] = uses(used, structs)
                    break
            else:
                done.add(name)
                del path[name]
