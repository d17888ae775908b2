"""Collects the names that the functions of a generated module use: runtime names, constants and classes.

The code that generates functions gets all such names from here, so the imports of the module are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Final

from kafka_records_codegen.model.layouts import Layout
from kafka_records_codegen.model.messages import Struct
from kafka_records_codegen.python.formats import Formats, array_kind, spell
from kafka_records_codegen.python.legend import legend
from kafka_records_codegen.text import literals
from kafka_records_runtime.schema import EMPTY_STRUCT, FieldSchema

RUNTIME_NAMES: Final = frozenset(
    [
        "GiveUp",
        "Pack",
        "UUIDS",
        "Unpack",
        "Whole",
        "array_packer",
        "compact_array_packer",
        "compact_text_unpacker",
        "long_text_unpacker",
        "read_byte_strings",
        "read_compact_byte_strings",
        "read_compact_strings",
        "read_strings",
        "read_unknown_tags",
        "read_uuids",
        "read_uvarint",
        "refuse_list",
        "require_list",
        "text_array_packer",
        "text_unpacker",
        "unpacker",
        "uvarint",
        "whole_pair_unpacker",
        "whole_unpacker",
        "write_bools",
        "write_byte_strings",
        "write_compact_bools",
        "write_compact_byte_strings",
        "write_compact_bytes",
        "write_compact_numbers",
        "write_compact_string",
        "write_compact_strings",
        "write_compact_uuids",
        "write_strings",
        "write_uuids",
    ]
)
"""All names that generated functions may import from `kafka_records_runtime.messages.codec`. In generated code, they
start with `_`."""


@dataclass
class Uses:
    """The names that the functions of one module use. Every method records a use and returns its source text."""

    runtime: set[str] = dataclass_field(default_factory=set)
    typing: set[str] = dataclass_field(default_factory=set)
    uuids: set[str] = dataclass_field(default_factory=set)
    classes: set[str] = dataclass_field(default_factory=set)
    needs_struct: bool = False
    _constants: dict[tuple[int, str], str] = dataclass_field(default_factory=dict)
    _kinds: set[str] = dataclass_field(default_factory=set)
    _letters: set[str] = dataclass_field(default_factory=set)

    def runtime_name(self, name: str) -> str:
        """A name of `kafka_records_runtime.messages.codec`."""
        assert name in RUNTIME_NAMES, f"{name} is not a name that generated code may import"
        self.runtime.add(name)
        return f"_{name}"

    @property
    def give_up(self) -> str:
        """The statement that gives up, so that the schema walker handles the message instead."""
        return f"raise {self.runtime_name('GiveUp')}"

    @property
    def any_type(self) -> str:
        """The name of `typing.Any` in the module."""
        self.typing.add("Any")
        return "Any"

    @property
    def uuid_class(self) -> str:
        """The class of uuids."""
        self.uuids.add("Uuid")
        return "Uuid"

    def struct_class(self, struct: Struct) -> str:
        """The class of a struct."""
        self.classes.add(struct.python_name)
        return struct.python_name

    def literal(self, layout: Layout, field: FieldSchema) -> str:
        """The default of a field."""
        if field.default is EMPTY_STRUCT:
            self.struct_class(layout.message.struct(field.base))
        self.uuids |= literals.uuid_names([field])
        return literals.literal(layout.message, field)

    # Functions for fixed-width values, and tables of functions by length. Their names say what they read or write.

    def unpack(self, formats: Formats) -> str:
        """The function that reads a run of fixed-width fields."""
        return self._function("unpack", formats, "unpack_from")

    def pack(self, formats: Formats) -> str:
        """The function that writes a run of fixed-width fields."""
        return self._function("pack", formats, "pack")

    def unpack_text(self, kind: str, behind: Formats, before: Formats = ()) -> str:
        """A table for a text and its neighbours. `kind` is `text`, `compact_text`, `bytes` or `compact_bytes`."""
        entries = self.runtime_name("Unpack")
        return self._table(1, f"leading {kind}" if before else kind, entries, (before, kind, behind))

    def unpack_array(self, form: str, *, compact: bool) -> str:
        """A table for the elements of an array of numbers."""
        kind = array_kind(compact)
        return self._table(1, kind, self.runtime_name("Unpack"), (kind, (form,)))

    def unpack_whole(self, before: Formats, behind: Formats) -> str:
        """A table for a whole message with one string in it."""
        return self._table(1, "whole", self.runtime_name("Whole"), ("whole", before, "text", behind))

    def unpack_whole_pair(self, before: Formats, between: Formats, behind: Formats) -> str:
        """A table for a whole message with two strings in it."""
        entries = f"dict[int, {self.runtime_name('Whole')}]"
        return self._table(1, "whole pair", entries, ("whole", before, "text", between, "text", behind))

    def pack_array(self, form: str, *, compact: bool) -> str:
        """A table for an array of numbers including its count."""
        kind = f"pack_{array_kind(compact)}"
        return self._table(2, kind, self.runtime_name("Pack"), (kind, (form,)))

    def pack_text_array(self, form: str) -> str:
        """A table for a string followed by an array of numbers, with length and count."""
        entries = f"dict[int, {self.runtime_name('Pack')}]"
        return self._table(2, "pack_text_array", entries, ("pack_text_array", (form,)))

    @property
    def constants(self) -> list[str]:
        """The statements that define all constants whose names were returned by the methods above."""
        return [self._constants[key] for key in sorted(self._constants)]

    @property
    def legend(self) -> list[str]:
        """The meanings of the constants' names, line by line."""
        return legend(self._kinds, self._letters)

    def _function(self, kind: str, formats: Formats, method: str) -> str:
        self.needs_struct = True
        source = f'_Struct(">{"".join(formats)}").{method}'
        return self._constant(0, kind, (kind, formats), lambda name: f"{name}: Final = {source}")

    def _table(self, order: int, kind: str, entries: str, parts: Sequence[str | Formats]) -> str:
        return self._constant(order, kind, parts, lambda name: f"{name}: Final[dict[int, {entries}]] = {{}}")

    def _constant(self, order: int, kind: str, parts: Sequence[str | Formats], statement: Callable[[str], str]) -> str:
        words = [part if isinstance(part, str) else spell(part) for part in parts if part]
        name = "".join(f"_{word}" for word in words)
        self._constants[order, name] = statement(name)
        self._kinds.add(kind)
        self._letters |= {letter for part in parts if not isinstance(part, str) for letter in spell(part)}
        return name
