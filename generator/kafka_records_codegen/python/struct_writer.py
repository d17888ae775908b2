"""Generates encoding functions. Each run of fixed-width fields is one `struct` pack, and all pieces are joined at the
end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka_records_codegen.model.layouts import Layout
from kafka_records_codegen.python.formats import FORMATS, HEADS, PLURALS, array_kind, is_number
from kafka_records_codegen.python.names import function, local
from kafka_records_codegen.python.statements import give_up_if
from kafka_records_codegen.python.uses import Uses
from kafka_records_codegen.text.lines import Lines
from kafka_records_runtime.messages.codec import uvarint
from kafka_records_runtime.schema import FieldSchema
from kafka_records_runtime.schema.layout import (
    UVARINT,
    ArrayValue,
    FixedValue,
    Member,
    SizedValue,
    StructValue,
    TagsLayout,
)
from kafka_records_runtime.wire.string_limit import MAX_STRING

_NULLS: Final = {
    "int8": 'b"\\xff"',
    "int16": 'b"\\xff\\xff"',
    "int32": 'b"\\xff\\xff\\xff\\xff"',
    UVARINT: 'b"\\x00"',
}
"""The bytes written for null, by the type of the length, count or marker in that place."""


@dataclass(frozen=True)
class Piece:
    """An expression for bytes. A conditional expression needs parentheses."""

    alone: str
    is_condition: bool = False

    @property
    def among_others(self) -> str:
        return f"({self.alone})" if self.is_condition else self.alone


class StructWriter:
    """Writes the statements that convert the struct in `value` to a list of byte expressions."""

    def __init__(self, layout: Layout, lines: Lines, uses: Uses) -> None:
        self._layout = layout
        self._lines = lines
        self._uses = uses
        self._pieces: list[Piece] = []
        self._run: list[tuple[str, str]] = []

    def write(self) -> list[Piece]:
        """Write the statements, and return the expressions whose bytes make up the struct."""
        self._refuse()
        members = self._layout.wire.body
        while members:
            if len(members) > 1 and _is_string_with_numbers(*members[:2]):
                self._string_with_numbers(*members[:2])
                members = members[2:]
            else:
                self._member(members[0])
                members = members[1:]
        self._flush()
        if self._layout.wire.tags is not None:
            self._tags(self._layout.wire.tags)
        return self._pieces

    def _refuse(self) -> None:
        """Write checks that leave values that the version cannot contain to the schema walker, because its errors name
        the field."""
        for member in self._layout.wire.body:
            if member.field.can_be_null and not member.value.nullable:
                self._give_up_if(f"value.{member.field.name} is None")
        for field in self._layout.wire.absent:
            if not field.ignorable:
                self._give_up_if(self._differs(field))
        if self._layout.message.flexible:
            self._give_up_if("value.unknown_tagged_fields != ()")

    def _give_up_if(self, condition: str) -> None:
        give_up_if(condition, self._lines, self._uses)

    def _differs(self, field: FieldSchema) -> str:
        """The condition under which `field` does not have its default."""
        name = f"value.{field.name}"
        if field.default is None:
            return f"{name} is not None"
        operator = "is not" if field.type == "bool" else "!="
        return f"{name} {operator} {self._uses.literal(self._layout, field)}"

    def _flush(self) -> None:
        if self._run:
            formats = tuple(item for item, _ in self._run)
            arguments = ", ".join(expression for _, expression in self._run)
            self._pieces.append(Piece(f"{self._uses.pack(formats)}({arguments})"))
            self._run = []

    def _piece(self, expression: str, *, null: str | None = None, value: str = "") -> None:
        """Add an expression. With `null`, the bytes of null, it is used only if `value` is not None."""
        self._flush()
        if null is None:
            self._pieces.append(Piece(expression))
        else:
            self._pieces.append(Piece(f"{null} if {value} is None else {expression}", is_condition=True))

    def _member(self, member: Member) -> None:
        name = f"value.{member.field.name}"
        match member.value:
            case FixedValue() as value:
                self._check_fixed(value, name)
                self._run.append((FORMATS[value.type], name))
            case SizedValue() as value if value.nullable:
                self._nullable_text(member.field, value, name)
            case SizedValue() as value:
                self._text(member.field, value, name)
            case ArrayValue() as value:
                self._array(member.field, value, name)
            case StructValue() as value:
                self._struct(value, name)

    def _check_fixed(self, value: FixedValue, name: str) -> None:
        """Check the type, because `struct` would cut or pad bytes that are not a uuid, and accept any value as a
        bool."""
        if value.type == "uuid":
            self._give_up_if(f"type({name}) is not {self._uses.uuid_class}")
        elif value.type == "bool":
            self._give_up_if(f"type({name}) is not bool")

    def _raw(self, field: FieldSchema, value: SizedValue, name: str) -> None:
        """Assign the bytes of a string or bytes field to its local variable. (With an int16 length, `struct` checks the
        limit.)"""
        if value.type == "string":
            self._lines.add(f"{local(field)} = {name}.encode()")
            if value.length == UVARINT:
                self._give_up_if(f"len({local(field)}) > {MAX_STRING}")
        else:
            self._lines.add(f"{local(field)} = {name}")
            self._give_up_if(f"type({local(field)}) is not bytes")

    def _compact_length(self, field: FieldSchema) -> str:
        return f"{self._uses.runtime_name('uvarint')}(len({local(field)}) + 1)"

    def _text(self, field: FieldSchema, value: SizedValue, name: str) -> None:
        self._raw(field, value, name)
        if value.length == UVARINT:
            self._piece(self._compact_length(field))
        else:
            self._run.append((HEADS[value.length], f"len({local(field)})"))
        self._piece(local(field))

    def _nullable_text(self, field: FieldSchema, value: SizedValue, name: str) -> None:
        with self._lines.block(f"if {name} is None:"):
            self._lines.add(f"{local(field)} = {_NULLS[value.length]}")
        with self._lines.block("else:"):
            self._raw(field, value, name)
            if value.length == UVARINT:
                length = self._compact_length(field)
            else:
                length = f"{self._uses.pack((HEADS[value.length],))}(len({local(field)}))"
            self._lines.add(f"{local(field)} = {length} + {local(field)}")
        self._piece(local(field))

    def _struct(self, value: StructValue, name: str) -> None:
        call = f"{function('write', self._layout.of(value))}({name})"
        if value.marker is None:
            self._piece(call)
        else:
            self._piece(f'b"\\x01" + {call}', null=_NULLS[value.marker], value=name)

    def _array(self, field: FieldSchema, value: ArrayValue, name: str) -> None:
        null = _NULLS[value.count]
        if is_number(value.element):
            if value.nullable:
                with self._lines.block(f"if {name} is None:"):
                    self._lines.add(f"{local(field)} = {null}")
                with self._lines.block("else:"):
                    self._numbers(field, value, name)
            else:
                self._numbers(field, value, name)
            self._piece(local(field))
        elif value.nullable:
            self._piece(self._elements(value, name), null=null, value=name)
        else:
            self._piece(self._elements(value, name))

    def _string_with_numbers(self, first: Member, second: Member) -> None:
        """Write a string and an array of numbers, such as a topic and its partitions, with a single pack."""
        form = FORMATS[second.field.base]
        text, array = local(first.field), local(second.field)
        numbers = f"value.{second.field.name}"
        table = self._uses.pack_text_array(form)
        check_array(numbers, self._lines, self._uses)
        self._lines.add(f"{text} = value.{first.field.name}.encode()")
        self._lines.add(f"n = len({text})")
        self._lines.add(f"count = len({numbers})")
        with self._lines.block("try:"):
            self._lines.add(f"pack = {table}[n][count]")
        with self._lines.block("except KeyError:"):
            packer = self._uses.runtime_name("text_array_packer")
            self._lines.add(f'pack = {packer}({table}, "{form}", n, count)')
        self._lines.add(f"{array} = pack(n, {text}, count, *{numbers})")
        self._piece(array)

    def _numbers(self, field: FieldSchema, value: ArrayValue, name: str) -> None:
        """Assign the bytes of an array of numbers, including its count, to the field's local variable, with a single
        pack."""
        compact = value.count == UVARINT
        form = FORMATS[field.base]
        table = self._uses.pack_array(form, compact=compact)
        check_array(name, self._lines, self._uses)
        self._lines.add(f"count = len({name})")
        with self._lines.block("try:"):
            self._lines.add(f"pack = {table}[count]")
        with self._lines.block("except KeyError:"):
            packer = self._uses.runtime_name(f"{array_kind(compact)}_packer")
            self._lines.add(f'pack = {packer}({table}, "{form}", count)')
        self._lines.add(f"{local(field)} = pack(count{' + 1' if compact else ''}, *{name})")

    def _elements(self, value: ArrayValue, name: str) -> str:
        """The expression for a non-null array, including its count."""
        element = value.element
        compact = value.count == UVARINT
        if isinstance(element, StructValue):
            return f"{function('write', self._layout.of(element), array_kind(compact))}({name})"
        assert isinstance(element, FixedValue | SizedValue)
        if is_number(element):
            form = FORMATS[element.type]
            table = self._uses.pack_array(form, compact=True)
            return f'{self._uses.runtime_name("write_compact_numbers")}({table}, "{form}", {name})'
        kind = "compact_" if compact else ""
        return f"{self._uses.runtime_name(f'write_{kind}{PLURALS[element.type]}')}({name})"

    def _tags(self, tags: TagsLayout) -> None:
        if not tags.known:
            self._pieces.append(Piece('b"\\x00"'))
            return
        self._lines.add("count = 0")
        self._lines.add('tags = b""')
        for member in tags.known:
            with self._lines.block(f"if {self._differs(member.field)}:"):
                self._lines.add("count += 1")
                self._tag(member, f"value.{member.field.name}")
        written = f"{self._uses.runtime_name('uvarint')}(count) + tags"
        self._pieces.append(Piece(f'{written} if count else b"\\x00"', is_condition=True))

    def _tag(self, member: Member, name: str) -> None:
        value, tag = member.value, uvarint(member.field.tag or 0)
        if isinstance(value, FixedValue):
            self._check_fixed(value, name)
            head = tag + uvarint(value.size)
            self._lines.add(f"tags += {head!r} + {self._uses.pack((FORMATS[value.type],))}({name})")
            return
        if isinstance(value, ArrayValue):
            # The default is an empty tuple, which an empty list does not equal, so the general writer decides whether
            # the field is written.
            self._lines.add(f"{self._uses.runtime_name('refuse_list')}({name})")
        self._lines.add(f"raw = {self._payload(member, value, name)}")
        self._lines.add(f"tags += {tag!r} + {self._uses.runtime_name('uvarint')}(len(raw)) + raw")

    def _payload(self, member: Member, value: SizedValue | ArrayValue | StructValue, name: str) -> str:
        match value:
            case ArrayValue():
                text = self._elements(value, name)
            case StructValue():
                call = f"{function('write', self._layout.of(value))}({name})"
                text = f'b"\\x01" + {call}' if value.nullable else call
            case SizedValue():
                kind = "string" if value.type == "string" else "bytes"
                text = f"{self._uses.runtime_name(f'write_compact_{kind}')}({name})"
        # A field with null as its default is omitted if it is null.
        is_null_written = value.nullable and member.field.default is not None
        return f"{_NULLS[UVARINT]} if {name} is None else {text}" if is_null_written else text


def _is_string_with_numbers(first: Member, second: Member) -> bool:
    """Whether two members can be written by a single pack: a string and an array of numbers, neither nullable, with
    non-compact lengths."""
    text, array = first.value, second.value
    return (
        text == SizedValue("string", "int16", nullable=False)
        and isinstance(array, ArrayValue)
        and is_number(array.element)
        and array.count != UVARINT
        and not array.nullable
    )


def _joined(pieces: list[Piece]) -> str:
    if not pieces:
        return 'b""'
    if len(pieces) == 1:
        return pieces[0].alone
    if len(pieces) <= 3:
        return " + ".join(piece.among_others for piece in pieces)
    return f'b"".join(({_listed(pieces)}))'


def _listed(pieces: list[Piece]) -> str:
    return ", ".join(piece.among_others for piece in pieces)


def write_function(layout: Layout, uses: Uses) -> str:
    """The source of a function `value -> bytes` for a message body or a single struct."""
    lines = Lines()
    head = f"def {function('write', layout)}(value: {uses.struct_class(layout.struct)}) -> bytes:"
    with lines.block(head):
        pieces = StructWriter(layout, lines, uses).write()
        lines.add(f"return {_joined(pieces)}")
    return lines.text()


def check_array(name: str, lines: Lines, uses: Uses) -> None:
    """Write a type check, because a text or a dict could be mistaken for a sequence of items."""
    with lines.block(f"if type({name}) is not tuple:"):
        lines.add(f"{uses.runtime_name('require_list')}({name})")


def write_array_function(layout: Layout, uses: Uses, *, compact: bool) -> str:
    """The source of a function `items -> bytes`, which also writes the count."""
    lines = Lines()
    name = uses.struct_class(layout.struct)
    head = f"def {function('write', layout, array_kind(compact))}(items: tuple[{name}, ...]) -> bytes:"
    with lines.block(head):
        check_array("items", lines, uses)
        count = f"{uses.runtime_name('uvarint')}(len(items) + 1)" if compact else f"{uses.pack(('i',))}(len(items))"
        lines.add(f"parts = [{count}]")
        with lines.block("for value in items:"):
            pieces = StructWriter(layout, lines, uses).write()
            lines.add(f"parts.append({pieces[0].alone})" if len(pieces) == 1 else f"parts += ({_listed(pieces)})")
        lines.add('return b"".join(parts)')
    return lines.text()
