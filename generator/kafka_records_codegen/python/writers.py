"""Encoding functions: fixed-width runs become one `struct` pack, the pieces are joined once."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field

from kafka_records_codegen.model.layouts import FORMATS, PLURALS, WIDTHS, Layout, spell
from kafka_records_codegen.model.messages import Field
from kafka_records_codegen.python.names import annotation, function, local
from kafka_records_codegen.text.lines import Lines
from kafka_records_codegen.text.literals import literal
from kafka_records_runtime.codec import uvarint
from kafka_records_runtime.schema import EMPTY_STRUCT


@dataclass
class Packs:
    """The pack functions and tables that a module's functions use, by name."""

    structs: dict[str, str] = dataclass_field(default_factory=dict)
    tables: dict[str, str] = dataclass_field(default_factory=dict)

    def fixed(self, formats: tuple[str, ...]) -> str:
        name = f"_pack_{spell(formats)}"
        self.structs[name] = f'_Struct(">{"".join(formats)}").pack'
        return name

    def table(self, kind: str, form: str, entries: str = "_Pack") -> str:
        name = f"_{kind}_{spell((form,))}"
        self.tables[name] = f"dict[int, {entries}]"
        return name


class StructWriter:
    """Writes the statements that turn the struct in `value` into a list of byte expressions."""

    def __init__(self, layout: Layout, lines: Lines, packs: Packs) -> None:
        self._layout = layout
        self._lines = lines
        self._packs = packs
        self._pieces: list[str] = []
        self._run: list[tuple[str, str]] = []

    def write(self) -> list[str]:
        """Write the statements and return the expressions whose bytes make up the struct."""
        self._refuse()
        fields = self._layout.untagged
        while fields:
            if len(fields) > 1 and self._is_string_with_numbers(*fields[:2]):
                self._string_with_numbers(*fields[:2])
                fields = fields[2:]
            else:
                self._field(fields[0])
                fields = fields[1:]
        if self._layout.is_flexible:
            self._flush()
            self._tags()
        self._flush()
        return self._pieces

    def _refuse(self) -> None:
        """Values the version cannot carry are left to the walker, which knows how to say so."""
        for field in self._layout.untagged:
            if annotation(self._layout.message, field).endswith("None") and not self._layout.is_nullable(field):
                with self._lines.block(f"if value.{field.python_name} is None:"):
                    self._lines.add("raise _GiveUp")
        for field in self._layout.absent:
            if not field.ignorable:
                with self._lines.block(f"if {self._differs(field)}:"):
                    self._lines.add("raise _GiveUp")
        if self._layout.message.flexible:
            with self._lines.block("if value.unknown_tagged_fields != ():"):
                self._lines.add("raise _GiveUp")

    def _differs(self, field: Field) -> str:
        """The condition under which `field` is not at its default."""
        name = f"value.{field.python_name}"
        if field.default is None:
            return f"{name} is not None"
        if field.default is EMPTY_STRUCT:
            return f"{name} != {literal(self._layout.message, field)}"
        if field.base == "bool" and not field.is_array:
            return f"{name} is not {literal(self._layout.message, field)}"
        return f"{name} != {literal(self._layout.message, field)}"

    def _flush(self) -> None:
        if self._run:
            formats = tuple(item for item, _ in self._run)
            arguments = ", ".join(expression for _, expression in self._run)
            self._pieces.append(f"{self._packs.fixed(formats)}({arguments})")
            self._run = []

    def _piece(self, expression: str) -> None:
        self._flush()
        self._pieces.append(expression)

    def _field(self, field: Field) -> None:
        name = f"value.{field.python_name}"
        if field.is_array:
            self._array(field, name)
        elif field.is_struct:
            self._struct(field, name)
        elif field.base in FORMATS:
            self._check_fixed(field, name)
            self._run.append((FORMATS[field.base], name))
        elif self._layout.is_nullable(field):
            self._nullable_text(field, name)
        else:
            self._text(field, name)

    def _check_fixed(self, field: Field, name: str) -> None:
        """`struct` would cut or pad what is no uuid and take anything for a bool."""
        if field.base == "uuid":
            condition = f"type({name}) is not Uuid"
        elif field.base == "bool":
            condition = f"type({name}) is not bool"
        else:
            return
        with self._lines.block(f"if {condition}:"):
            self._lines.add("raise _GiveUp")

    def _raw(self, field: Field, name: str) -> None:
        """Put the bytes of a string or bytes field into its local variable. An int16 length limits itself."""
        if field.base == "string":
            self._lines.add(f"{local(field)} = {name}.encode()")
            if self._layout.is_compact(field):
                with self._lines.block(f"if len({local(field)}) > 32767:"):
                    self._lines.add("raise _GiveUp")
        else:
            self._lines.add(f"{local(field)} = {name}")
            with self._lines.block(f"if type({local(field)}) is not bytes:"):
                self._lines.add("raise _GiveUp")

    def _text(self, field: Field, name: str) -> None:
        self._raw(field, name)
        if self._layout.is_compact(field):
            self._piece(f"_uvarint(len({local(field)}) + 1)")
        else:
            self._run.append(("h" if field.base == "string" else "i", f"len({local(field)})"))
        self._piece(local(field))

    def _nullable_text(self, field: Field, name: str) -> None:
        compact = self._layout.is_compact(field)
        form = "h" if field.base == "string" else "i"
        null = 'b"\\x00"' if compact else 'b"\\xff\\xff"' if form == "h" else 'b"\\xff\\xff\\xff\\xff"'
        with self._lines.block(f"if {name} is None:"):
            self._lines.add(f"{local(field)} = {null}")
        with self._lines.block("else:"):
            self._raw(field, name)
            length = (
                f"_uvarint(len({local(field)}) + 1)"
                if compact
                else f"{self._packs.fixed((form,))}(len({local(field)}))"
            )
            self._lines.add(f"{local(field)} = {length} + {local(field)}")
        self._piece(local(field))

    def _struct(self, field: Field, name: str) -> None:
        call = f"{function('write', self._layout.of(field))}({name})"
        if self._layout.is_nullable(field):
            self._piece(f'(b"\\xff" if {name} is None else b"\\x01" + {call})')
        else:
            self._piece(call)

    def _array(self, field: Field, name: str) -> None:
        compact = self._layout.is_compact(field)
        null = 'b"\\x00"' if compact else 'b"\\xff\\xff\\xff\\xff"'
        if _is_number(field):
            if self._layout.is_nullable(field):
                with self._lines.block(f"if {name} is None:"):
                    self._lines.add(f"{local(field)} = {null}")
                with self._lines.block("else:"):
                    self._numbers(field, name, compact)
            else:
                self._numbers(field, name, compact)
            self._piece(local(field))
        elif self._layout.is_nullable(field):
            self._piece(f"({null} if {name} is None else {self._elements(field, name, compact)})")
        else:
            self._piece(self._elements(field, name, compact))

    def _is_string_with_numbers(self, first: Field, second: Field) -> bool:
        """Whether a topic and its partitions, or the like, can be one pack: both present, both with plain lengths."""
        return (
            first.type == "string"
            and second.is_array
            and _is_number(second)
            and not any(self._layout.is_compact(each) or self._layout.is_nullable(each) for each in (first, second))
        )

    def _string_with_numbers(self, first: Field, second: Field) -> None:
        form = FORMATS[second.base]
        numbers = f"value.{second.python_name}"
        table = self._packs.table("pack_text_array", form, entries="dict[int, _Pack]")
        check_array(numbers, self._lines)
        self._lines.add(f"{local(first)} = value.{first.python_name}.encode()")
        self._lines.add(f"n = len({local(first)})")
        self._lines.add(f"count = len({numbers})")
        with self._lines.block("try:"):
            self._lines.add(f"pack = {table}[n][count]")
        with self._lines.block("except KeyError:"):
            self._lines.add(f'pack = _text_array_packer({table}, "{form}", n, count)')
        self._lines.add(f"{local(second)} = pack(n, {local(first)}, count, *{numbers})")
        self._piece(local(second))

    def _numbers(self, field: Field, name: str, compact: bool) -> None:
        """Put an array of numbers, its count included, into the local variable of the field: one pack by the count."""
        kind = _array_kind(compact)
        form = FORMATS[field.base]
        table = self._packs.table(f"pack_{kind}", form)
        check_array(name, self._lines)
        self._lines.add(f"count = len({name})")
        with self._lines.block("try:"):
            self._lines.add(f"pack = {table}[count]")
        with self._lines.block("except KeyError:"):
            self._lines.add(f'pack = _{kind}_packer({table}, "{form}", count)')
        self._lines.add(f"{local(field)} = pack(count{' + 1' if compact else ''}, *{name})")

    def _elements(self, field: Field, name: str, compact: bool) -> str:
        """The expression for an array that is not null, its count included."""
        if field.is_struct:
            return f"{function('write', self._layout.of(field), _array_kind(compact))}({name})"
        if _is_number(field):
            table = self._packs.table(f"pack_{_array_kind(True)}", FORMATS[field.base])
            return f'_write_compact_numbers({table}, "{FORMATS[field.base]}", {name})'
        return f"_write_{'compact_' if compact else ''}{PLURALS[field.base]}({name})"

    def _tags(self) -> None:
        known = self._layout.tagged
        if not known:
            self._pieces.append('b"\\x00"')
            return
        self._lines.add("count = 0")
        self._lines.add('tags = b""')
        for field in known:
            with self._lines.block(f"if {self._differs(field)}:"):
                self._lines.add("count += 1")
                self._tag(field, f"value.{field.python_name}")
        self._pieces.append('(_uvarint(count) + tags if count else b"\\x00")')

    def _tag(self, field: Field, name: str) -> None:
        tag = uvarint(field.tag or 0)
        if not field.is_array and field.base in FORMATS:
            self._check_fixed(field, name)
            head = tag + uvarint(WIDTHS[field.base])
            pack = self._packs.fixed((FORMATS[field.base],))
            self._lines.add(f"tags += {head!r} + {pack}({name})")
            return
        if field.is_array:
            # A list may be empty and yet not equal to the default: the walker tells.
            self._lines.add(f"_refuse_list({name})")
        self._lines.add(f"raw = {self._payload(field, name)}")
        self._lines.add(f"tags += {tag!r} + _uvarint(len(raw)) + raw")

    def _payload(self, field: Field, name: str) -> str:
        nullable = self._layout.is_nullable(field)
        if field.is_array:
            text = self._elements(field, name, True)
        elif field.is_struct:
            call = f"{function('write', self._layout.of(field))}({name})"
            text = f'b"\\x01" + {call}' if nullable else call
        else:
            text = f"_write_compact_{'string' if field.base == 'string' else 'bytes'}({name})"
        is_null_written = nullable and field.default is not None
        return f'b"\\x00" if {name} is None else {text}' if is_null_written else text


def _is_number(field: Field) -> bool:
    return field.base in FORMATS and field.base not in ("uuid", "bool")


def _array_kind(compact: bool) -> str:
    return "compact_array" if compact else "array"


def _unwrapped(piece: str) -> str:
    """An expression that stands alone; among others it needs the brackets which a condition has."""
    return piece[1:-1] if piece.startswith("(") else piece


def _joined(pieces: list[str]) -> str:
    if not pieces:
        return 'b""'
    if len(pieces) == 1:
        return _unwrapped(pieces[0])
    if len(pieces) <= 3:
        return " + ".join(pieces)
    return f'b"".join(({", ".join(pieces)}))'


def write_function(layout: Layout, packs: Packs) -> str:
    """`value -> bytes` for a message body or a struct that stands by itself."""
    lines = Lines()
    head = f"def {function('write', layout)}(value: {layout.struct.python_name}) -> bytes:"
    with lines.block(head):
        pieces = StructWriter(layout, lines, packs).write()
        lines.add(f"return {_joined(pieces)}")
    return lines.text()


def check_array(name: str, lines: Lines) -> None:
    """A text or a dict could be taken for a sequence of items."""
    with lines.block(f"if type({name}) is not tuple:"):
        lines.add(f"_require_list({name})")


def write_array_function(layout: Layout, packs: Packs, *, compact: bool) -> str:
    """`items -> bytes`, the count included."""
    lines = Lines()
    name = layout.struct.python_name
    head = f"def {function('write', layout, _array_kind(compact))}(items: tuple[{name}, ...]) -> bytes:"
    with lines.block(head):
        check_array("items", lines)
        count = "_uvarint(len(items) + 1)" if compact else f"{packs.fixed(('i',))}(len(items))"
        lines.add(f"parts = [{count}]")
        with lines.block("for value in items:"):
            pieces = StructWriter(layout, lines, packs).write()
            lines.add(
                f"parts.append({_unwrapped(pieces[0])})" if len(pieces) == 1 else f"parts += ({', '.join(pieces)})"
            )
        lines.add('return b"".join(parts)')
    return lines.text()
