"""Decoding functions: adjacent fixed-width fields and the length behind them become one `struct` unpack."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field

from kafka_records_codegen.emit.layouts import FORMATS, PLURALS, WIDTHS, Layout, spell, width
from kafka_records_codegen.emit.lines import Lines
from kafka_records_codegen.emit.names import function, literal, local
from kafka_records_codegen.model import Field


@dataclass
class Tables:
    """The unpack functions and tables that a module's functions use, by name."""

    structs: dict[str, str] = dataclass_field(default_factory=dict)
    tables: set[str] = dataclass_field(default_factory=set)

    def fixed(self, formats: tuple[str, ...]) -> str:
        name = f"_unpack_{spell(formats)}"
        self.structs[name] = f'_Struct(">{"".join(formats)}").unpack_from'
        return name

    def table(self, kind: str, formats: tuple[str, ...]) -> str:
        name = f"_{kind}_{spell(formats)}" if formats else f"_{kind}"
        self.tables.add(name)
        return name


@dataclass(frozen=True)
class _Atom:
    """A field, or (`field` None) the tagged section, with the format of the length or count before it."""

    field: Field | None
    prefix: str
    is_compact: bool = False

    @property
    def is_fixed(self) -> bool:
        return self.field is not None and not self.field.is_array and self.field.base in FORMATS


class StructReader:
    """Writes the statements that read one struct into local variables.

    `position` is the text of the place reached; all places are relative to the variable `pos`, which only ever grows.
    """

    def __init__(self, layout: Layout, lines: Lines, tables: Tables) -> None:
        self._layout = layout
        self._lines = lines
        self._tables = tables
        self._skip = 0
        self._length = "n"
        self._uuids: list[Field] = []

    def read(self) -> None:
        """Write the statements; afterwards `pos` stands behind the struct."""
        atoms = self._atoms()
        index = self._fixed_run(atoms, 0)
        while index < len(atoms):
            index = self._variable(atoms, index)
        self._settle()

    def construction(self) -> str:
        """The expression that builds the value."""
        arguments = [self._argument(field) for field in self._layout.struct.fields]
        defaults = [literal(self._layout.message, field) for field in self._layout.struct.fields]
        if self._layout.message.flexible:
            arguments.append("unknown" if self._layout.is_flexible else "()")
            defaults.append("()")
        while arguments and arguments[-1] == defaults[-1]:
            arguments.pop()
            defaults.pop()
        return f"{self._layout.struct.python_name}({', '.join(arguments)})"

    def _argument(self, field: Field) -> str:
        if self._layout.version in field.versions:
            return local(field)
        return literal(self._layout.message, field)

    def _atoms(self) -> list[_Atom]:
        atoms = [self._atom(field) for field in self._layout.untagged]
        if self._layout.is_flexible:
            atoms.append(_Atom(None, "B"))
        return atoms

    def _atom(self, field: Field) -> _Atom:
        compact = self._layout.is_compact(field)
        if field.is_array:
            return _Atom(field, "B" if compact else "i", compact)
        if field.is_struct:
            return _Atom(field, "b" if self._layout.is_nullable(field) else "")
        if field.base in FORMATS:
            return _Atom(field, "")
        return _Atom(field, "B" if compact else "h" if field.base == "string" else "i", compact)

    # Positions

    @property
    def _position(self) -> str:
        return f"pos + {self._skip}" if self._skip else "pos"

    def _settle(self, extra: str = "") -> None:
        """Move `pos` to the position reached, plus `extra`."""
        moves = [text for text in (extra, str(self._skip) if self._skip > 0 else "") if text]
        if moves:
            self._lines.add(f"pos += {' + '.join(moves)}")
        elif self._skip < 0:
            self._lines.add(f"pos -= {-self._skip}")
        self._skip = 0

    def _other(self) -> str:
        return "m" if self._length == "n" else "n"

    # Fixed-width fields

    def _run(self, atoms: list[_Atom], index: int) -> tuple[list[_Atom], _Atom | None]:
        """The fixed-width fields from `index` on and the variable one behind them."""
        run = []
        while index < len(atoms) and atoms[index].is_fixed:
            run.append(atoms[index])
            index += 1
        return run, atoms[index] if index < len(atoms) else None

    def _targets(self, run: list[_Atom], behind: _Atom | None, length: str) -> tuple[list[str], tuple[str, ...]]:
        names = [local(atom.field) for atom in run if atom.field]
        formats = [FORMATS[atom.field.base] for atom in run if atom.field]
        if behind is not None and behind.prefix:
            names.append("tags" if behind.field is None else length)
            formats.append(behind.prefix)
        return names, tuple(formats)

    def _finish_run(self, run: list[_Atom]) -> None:
        for atom in run:
            if atom.field and atom.field.base == "uuid":
                self._lines.add(f"{local(atom.field)} = _UUIDS[{local(atom.field)}]")

    def _fixed_run(self, atoms: list[_Atom], index: int) -> int:
        """Read the fixed-width fields at `index` with the length that follows; return the index behind them."""
        run, behind = self._run(atoms, index)
        names, formats = self._targets(run, behind, self._length)
        if formats:
            self._lines.add(f"{_unpacking(names)} = {self._tables.fixed(formats)}(data, {self._position})")
            self._skip += width(formats)
        self._finish_run(run)
        return index + len(run)

    # Everything with a length of its own

    def _variable(self, atoms: list[_Atom], index: int) -> int:
        atom = atoms[index]
        if atom.field is None:
            self._tags()
            return index + 1
        if atom.field.is_array:
            self._array(atom, atom.field)
            return self._fixed_run(atoms, index + 1)
        if atom.field.is_struct:
            self._struct(atom.field)
            return self._fixed_run(atoms, index + 1)
        return self._text(atoms, index, atom.field)

    def _long_length(self, atom: _Atom) -> None:
        """A compact length of more than one byte: read the rest of it and move on by as much."""
        if atom.is_compact:
            with self._lines.block(f"if {self._length} > 127:"):
                back = self._skip - 1
                at = f"pos + {back}" if back > 0 else "pos" if back == 0 else f"pos - {-back}"
                self._lines.add(f"{self._length}, shift = _long_uvarint(data, {at})")
                self._lines.add("pos += shift")

    def _tags(self) -> None:
        known = [local(field) for field in self._layout.tagged]
        reader = function("read", self._layout, "tags")
        with self._lines.block("if tags:"):
            names = ", ".join([*known, "unknown", "pos"])
            self._lines.add(f"{names} = {reader}(data, {self._position}, tags)")
            if self._skip:
                self._lines.add(f"pos -= {self._skip}")
        with self._lines.block("else:"):
            for field in self._layout.tagged:
                self._lines.add(f"{local(field)} = {literal(self._layout.message, field)}")
            self._lines.add("unknown = ()")

    def _struct(self, field: Field) -> None:
        name, reader = local(field), function("read", self._layout.of(field))
        if not self._layout.is_nullable(field):
            self._lines.add(f"{name}, pos = {reader}(data, {self._position})")
            self._skip = 0
            return
        self._settle()
        with self._lines.block(f"if {self._length} == 1:"):
            self._lines.add(f"{name}, pos = {reader}(data, pos)")
        with self._lines.block(f"elif {self._length} == -1:"):
            self._lines.add(f"{name} = None")
        with self._lines.block("else:"):
            self._lines.add("raise _GiveUp")

    def _array(self, atom: _Atom, field: Field) -> None:
        self._long_length(atom)
        self._settle()
        count = f"{self._length} - 1" if atom.is_compact else self._length
        if self._layout.is_nullable(field):
            null = "0" if atom.is_compact else "-1"
            with self._lines.block(f"if {self._length} == {null}:"):
                self._lines.add(f"{local(field)} = None")
            with self._lines.block("else:"):
                self._elements(field, atom.is_compact, count)
        else:
            self._elements(field, atom.is_compact, count)

    def _elements(self, field: Field, is_compact: bool, count: str) -> None:
        name = local(field)
        if field.is_struct:
            reader = function("read", self._layout.of(field), "array")
            self._lines.add(f"{name}, pos = {reader}(data, pos, {count})")
        elif field.base in FORMATS and field.base != "uuid":
            form = FORMATS[field.base]
            kind = "compact_array" if is_compact else "array"
            table = self._tables.table(kind, (form,))
            self._lookup(table, "_unpacker", f">{{}}{form}", count)
            self._lines.add(f"{name} = unpack(data, pos)")
            size = WIDTHS[field.base]
            grown = f"({count})" if is_compact else count
            self._lines.add(f"pos += {grown} * {size}" if size > 1 else f"pos += {count}")
        else:
            kind = "compact_" if is_compact and field.base != "uuid" else ""
            self._lines.add(f"{name}, pos = _read_{kind}{PLURALS[field.base]}(data, pos, {count})")

    def _lookup(self, table: str, make: str, layout: str, count: str) -> None:
        with self._lines.block("try:"):
            self._lines.add(f"unpack = {table}[{self._length}]")
        with self._lines.block("except KeyError:"):
            self._lines.add(f'unpack = {make}({table}, "{layout}", {self._length}, {count})')

    def _text(self, atoms: list[_Atom], index: int, field: Field) -> int:
        """A string or bytes, read together with the fixed-width fields and the length that follow it."""
        atom = atoms[index]
        run, behind = self._run(atoms, index + 1)
        following, formats = self._targets(run, behind, self._other())
        self._long_length(atom)
        count = f"{self._length} - 1" if atom.is_compact else self._length
        if self._layout.is_nullable(field):
            null = "0" if atom.is_compact else "-1"
            with self._lines.block(f"if {self._length} == {null}:"):
                self._null_text(field, following, formats)
            with self._lines.block("else:"):
                self._present_text(atom, field, following, formats, count)
        else:
            self._present_text(atom, field, following, formats, count)
        self._skip = 0
        self._finish_run(run)
        self._length = self._other()
        return index + 1 + len(run)

    def _null_text(self, field: Field, following: list[str], formats: tuple[str, ...]) -> None:
        if formats:
            self._lines.add(f"{_unpacking(following)} = {self._tables.fixed(formats)}(data, {self._position})")
        self._lines.add(f"{local(field)} = None")
        grown = self._skip + width(formats)
        if grown:
            self._lines.add(f"pos += {grown}")

    def _present_text(
        self, atom: _Atom, field: Field, following: list[str], formats: tuple[str, ...], count: str
    ) -> None:
        name = local(field)
        is_string = field.base == "string"
        kind = ("compact_" if atom.is_compact else "") + ("text" if is_string else "bytes")
        table = self._tables.table(kind, formats)
        make = "_text_unpacker" if is_string else "_unpacker"
        self._lookup(table, make, f">{{}}s{''.join(formats)}", count)
        self._lines.add(f"{_unpacking([name, *following])} = unpack(data, {self._position})")
        if is_string:
            self._lines.add(f"{name} = {name}.decode()")
        grown = self._skip + width(formats) - (1 if atom.is_compact else 0)
        sign = "-" if grown < 0 else "+"
        self._lines.add(f"pos += {self._length}" + (f" {sign} {abs(grown)}" if grown else ""))


def _unpacking(names: list[str]) -> str:
    return f"({names[0]},)" if len(names) == 1 else ", ".join(names)


def read_function(layout: Layout, tables: Tables) -> str:
    """`(data, pos) -> (value, position behind it)` for a message body or a struct that stands by itself."""
    lines = Lines()
    name = layout.struct.python_name
    with lines.block(f"def {function('read', layout)}(data: bytes, pos: int) -> tuple[{name}, int]:"):
        reader = StructReader(layout, lines, tables)
        reader.read()
        lines.add(f"return {reader.construction()}, pos")
    return lines.text()


def read_array_function(layout: Layout, tables: Tables) -> str:
    """`(data, pos, count) -> (tuple of values, position behind them)`; gives up on a count the bytes can't hold."""
    lines = Lines()
    name = layout.struct.python_name
    head = f"def {function('read', layout, 'array')}(data: bytes, pos: int, count: int)"
    with lines.block(f"{head} -> tuple[tuple[{name}, ...], int]:"):
        with lines.block(f"if count < 0 or count * {max(1, layout.min_size())} > len(data) - pos:"):
            lines.add("raise _GiveUp")
        lines.add(f"items: list[{name}] = []")
        lines.add("append = items.append")
        with lines.block("for _ in range(count):"):
            reader = StructReader(layout, lines, tables)
            reader.read()
            lines.add(f"append({reader.construction()})")
        lines.add("return tuple(items), pos")
    return lines.text()


def read_tags_function(layout: Layout, tables: Tables) -> str:
    """`(data, pos, number of tags) -> (known tagged fields…, unknown ones, position behind them)`."""
    lines = Lines()
    known = layout.tagged
    head = f"def {function('read', layout, 'tags')}(data: bytes, pos: int, count: int)"
    result = ", ".join(["Any"] * len(known) + ["tuple[tuple[int, bytes], ...]", "int"])
    with lines.block(f"{head} -> tuple[{result}]:"):
        for field in known:
            lines.add(f"{local(field)}: Any = {literal(layout.message, field)}")
        if known:
            lines.add("unknown: tuple[tuple[int, bytes], ...] = ()")
            lines.add("last = -1")
            with lines.block("if count > 127:"):
                lines.add("raise _GiveUp")
            with lines.block("for _ in range(count):"):
                lines.add("tag, pos = _read_uvarint(data, pos)")
                lines.add("size, pos = _read_uvarint(data, pos)")
                lines.add("end = pos + size")
                with lines.block("if tag <= last or end > len(data):"):
                    lines.add("raise _GiveUp")
                lines.add("last = tag")
                for number, field in enumerate(known):
                    with lines.block(f"{'elif' if number else 'if'} tag == {field.tag}:"):
                        _tag_payload(layout, field, lines, tables)
                with lines.block("else:"):
                    lines.add("unknown += ((tag, data[pos:end]),)")
                    lines.add("pos = end")
                with lines.block("if pos != end:"):
                    lines.add("raise _GiveUp")
        else:
            lines.add("unknown, pos = _read_unknown_tags(data, pos, count)")
        lines.add(f"return {', '.join([*(local(field) for field in known), 'unknown', 'pos'])}")
    return lines.text()


def _tag_payload(layout: Layout, field: Field, lines: Lines, tables: Tables) -> None:
    """The payload of a known tag: lengths are compact, a nullable struct is marked by a varint."""
    name = local(field)
    if not field.is_array and field.base in FORMATS:
        lines.add(f"({name},) = {tables.fixed((FORMATS[field.base],))}(data, pos)")
        if field.base == "uuid":
            lines.add(f"{name} = _UUIDS[{name}]")
        lines.add(f"pos += {WIDTHS[field.base]}")
    elif field.is_struct and not field.is_array:
        reader = function("read", layout.of(field))
        if layout.is_nullable(field):
            lines.add("n, pos = _read_uvarint(data, pos)")
            with lines.block("if n == 1:"):
                lines.add(f"{name}, pos = {reader}(data, pos)")
            with lines.block("elif n == 0:"):
                lines.add(f"{name} = None")
            with lines.block("else:"):
                lines.add("raise _GiveUp")
        else:
            lines.add(f"{name}, pos = {reader}(data, pos)")
    else:
        lines.add("n, pos = _read_uvarint(data, pos)")
        if layout.is_nullable(field):
            with lines.block("if n == 0:"):
                lines.add(f"{name} = None")
            with lines.block("else:"):
                _compact_payload(layout, field, lines, tables)
        else:
            _compact_payload(layout, field, lines, tables)


def _compact_payload(layout: Layout, field: Field, lines: Lines, tables: Tables) -> None:
    name = local(field)
    if field.is_array:
        StructReader(layout, lines, tables)._elements(field, True, "n - 1")
        return
    limit = " or n > 32768" if field.base == "string" else ""
    with lines.block(f"if n < 1{limit} or pos + n - 1 > len(data):"):
        lines.add("raise _GiveUp")
    decode = ".decode()" if field.base == "string" else ""
    lines.add(f"{name} = data[pos : pos + n - 1]{decode}")
    lines.add("pos += n - 1")
