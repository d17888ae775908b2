"""The wire layouts of a message: for each struct, one per set of versions with the same layout.

The runtime derives struct layouts from the compact schema in the generated package, so code generated from a layout
agrees with the schema walker.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_records_runtime.schema.layout import StructLayout, StructValue, struct_layouts

if TYPE_CHECKING:
    from kafka_records_codegen.model.messages import Message, Struct


@dataclass(frozen=True)
class Layout:
    """A struct of a message, or its body, in the `versions` (ascending) that have the layout `wire`."""

    message: Message
    struct: Struct
    wire: StructLayout
    versions: tuple[int, ...]

    @property
    def version(self) -> int:
        """The lowest of the versions. It is part of all names generated for the layout."""
        return self.versions[0]

    def of(self, value: StructValue) -> Layout:
        """The layout of a struct inside this one."""
        return self.message.layouts.of(value.layout)


class Layouts:
    """Every layout of every struct of a message."""

    def __init__(self, message: Message) -> None:
        self._message = message
        versions: dict[str, list[tuple[StructLayout, list[int]]]] = {struct.name: [] for struct in message.structs}
        for version in message.versions:
            for name, wire in struct_layouts(message.schema, version).items():
                alike = next((found for known, found in versions[name] if known is wire), None)
                if alike is None:
                    versions[name].append((wire, [version]))
                else:
                    alike.append(version)
        self._of = {
            name: [Layout(message, message.struct(name), wire, tuple(found)) for wire, found in each]
            for name, each in versions.items()
        }

    def of_struct(self, name: str) -> Iterable[Layout]:
        """The layouts of the struct with this name in the spec, ordered by lowest version."""
        return self._of[name]

    @property
    def of_body(self) -> Iterable[Layout]:
        """The layouts of the message itself, ordered by lowest version."""
        return self._of[self._message.root.name]

    def of(self, wire: StructLayout) -> Layout:
        """The layout with the given `wire` object."""
        return next(layout for layout in self._of[wire.name] if layout.wire is wire)

    def at(self, version: int) -> Layout:
        """The layout of the message itself in a version that it has."""
        return next(layout for layout in self.of_body if version in layout.versions)
