"""Decoding functions: adjacent fixed-width fields and the length behind them become one `struct` unpack."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Final

from kafka_records_codegen.model.layouts import FORMATS, PLURALS, WIDTHS, Layout, spell, width
from kafka_records_codegen.model.messages import Field
from kafka_records_codegen.python.names import function, local
from kafka_records_codegen.text.lines import Lines
from kafka_records_codegen.text.literals import literal

Formats = tuple[str, ...]

_NEXT_LENGTH: Final = {"n": "m", "m": "k", "k": "n"}
"""The variables that hold lengths take turns: one is in use while the next two are read."""


@dataclass
class Tables:
    """The unpack functions and tables that a module's functions use, by name."""

    structs: dict[str, str] = dataclass_field(default_factory=dict)
    tables: dict[str, str] = dataclass_field(default_factory=dict)

    def fixed(self, formats: Formats) -> str:
        name = f"_unpack_{spell(formats)}"
        self.structs[name] = f'_Struct(">{"".join(formats)}").unpack_from'
        return name

    def table(self, *parts: str, entries: str = "_Unpack") -> str:
        """A table of unpack functions by length; the parts of its name tell what is read."""
        name = "".join(f"_{part}" for part in parts if part)
        self.tables[name] = f"dict[int, {entries}]"
        return name


@dataclass(frozen=True)
class Atom:
    """A field, or (`field` None) the tagged section, with the format of the length or count before it."""

    field: Field | None
    prefix: str
    is_compact: bool = False
    is_nullable: bool = False

    @property
    def is_fixed(self) -> bool:
        return self.field is not None and not self.field.is_array and self.field.base in FORMATS

    @property
    def is_text(self) -> bool:
        """Whether this is a string or bytes."""
        return self.field is not None and not (self.field.is_array or self.field.is_struct or self.is_fixed)

    @property
    def is_plain_string(self) -> bool:
        """Whether this is a string that cannot be null."""
        return self.is_text and self.field is not None and self.field.base == "string" and not self.is_nullable


def atoms_of(layout: Layout) -> list[Atom]:
    """What a struct has on the wire, in order."""
    atoms = [_atom(layout, field) for field in layout.untagged]
    if layout.is_flexible:
        atoms.append(Atom(None, "B"))
    return atoms


def _atom(layout: Layout, field: Field) -> Atom:
    compact, nullable = layout.is_compact(field), layout.is_nullable(field)
    if field.is_array:
        return Atom(field, "B" if compact else "i", compact, nullable)
    if field.is_struct:
        return Atom(field, "b" if nullable else "", is_nullable=nullable)
    if field.base in FORMATS:
        return Atom(field, "")
    return Atom(field, "B" if compact else "h" if field.base == "string" else "i", compact, nullable)


def unpacking(names: list[str]) -> str:
    """The left side of an assignment from a tuple."""
    return f"({names[0]},)" if len(names) == 1 else ", ".join(names)


def construction(layout: Layout, *, with_tags: bool = True) -> str:
    """The expression that builds the value from the local variables.

    Strings that cannot be null are still bytes up to here; all others were decoded where they were read.
    """
    arguments = [_argument(layout, field, with_tags) for field in layout.struct.fields]
    defaults = [literal(layout.message, field) for field in layout.struct.fields]
    if layout.message.flexible:
        arguments.append("unknown" if layout.is_flexible and with_tags else "()")
        defaults.append("()")
    while arguments and arguments[-1] == defaults[-1]:
        arguments.pop()
        defaults.pop()
    return f"{layout.struct.python_name}({', '.join(arguments)})"


def _argument(layout: Layout, field: Field, with_tags: bool) -> str:
    is_tagged = layout.version in field.tagged
    if layout.version not in field.versions or (is_tagged and not with_tags):
        return literal(layout.message, field)
    if not is_tagged and _atom(layout, field).is_plain_string:
        return f"{local(field)}.decode()"
    return local(field)


@dataclass(frozen=True)
class _Reach:
    """What can be read in one go: a run of fixed-width fields and the length behind it.

    When that length is the one of a nullable text, the guess is that the text is null: what follows it is read as
    well. The bytes are there in any case, because a text that is not null has as many behind itself.
    """

    run: list[Atom]
    names: list[str]
    formats: Formats
    guessed_names: list[str]
    guessed_formats: Formats

    @property
    def all_names(self) -> list[str]:
        return [*self.names, *self.guessed_names]

    @property
    def all_formats(self) -> Formats:
        return (*self.formats, *self.guessed_formats)


class StructReader:
    """Writes the statements that read one struct into local variables.

    Places are relative to the variable `pos`, which only ever grows; or, as long as nothing of variable length has
    been read `from_start`, they are numbers.
    """

    def __init__(self, layout: Layout, lines: Lines, tables: Tables, *, from_start: bool = False) -> None:
        self._layout = layout
        self._lines = lines
        self._tables = tables
        self._atoms = atoms_of(layout)
        self._base = "" if from_start else "pos"
        self._skip = 0
        self._length = "n"
        self._has_guessed = False

    def read(self) -> None:
        """Write the statements; afterwards `end` is the place behind the struct."""
        index = self._start(0)
        while index < len(self._atoms):
            index = self._variable(index)

    def read_before_tags(self) -> None:
        """Write the statements that read a flexible struct up to and with the number of its tags."""
        index = self._start(0)
        while index < len(self._atoms) - 1:
            index = self._variable(index)

    @property
    def end(self) -> str:
        """The place reached, as an expression."""
        return self._place()

    # Places

    def _arguments(self) -> str:
        """What an unpack function is called with here."""
        place = self._place()
        return "data" if place == "0" else f"data, {place}"

    def _place(self, offset: int = 0) -> str:
        offset += self._skip
        if not self._base:
            return str(offset)
        return f"pos {'-' if offset < 0 else '+'} {abs(offset)}" if offset else "pos"

    def settle(self, extra: str = "") -> None:
        """Move `pos` to the place reached, plus `extra`."""
        sign = "-" if self._skip < 0 else "+"
        size = str(abs(self._skip)) if self._skip else ""
        if extra and size:
            extra = f"{extra} {sign} {size}"
        if not self._base:
            self._lines.add(f"pos = {extra or size or 0}")
        elif extra:
            self._lines.add(f"pos += {extra}")
        elif size:
            self._lines.add(f"pos {sign}= {size}")
        self._base, self._skip = "pos", 0

    # Fixed-width fields

    def _reach(self, index: int, length: str, *, guess: bool = True) -> _Reach:
        """What can be read from the atom `index` on, with `length` as the variable for the length at its end."""
        run, behind = self._run(index)
        names, formats = _targets(run, behind, length)
        if not guess or behind is None or not (behind.is_text and behind.is_nullable):
            return _Reach(run, names, formats, [], ())
        next_run, next_behind = self._run(index + len(run) + 1)
        return _Reach(run, names, formats, *_targets(next_run, next_behind, _NEXT_LENGTH[length]))

    def _run(self, index: int) -> tuple[list[Atom], Atom | None]:
        """The fixed-width fields from `index` on and the variable one behind them."""
        run = []
        while index < len(self._atoms) and self._atoms[index].is_fixed:
            run.append(self._atoms[index])
            index += 1
        return run, self._atoms[index] if index < len(self._atoms) else None

    def _finish_run(self, run: list[Atom]) -> None:
        make_uuids(run, self._lines)

    def _start(self, index: int) -> int:
        """Read on at `index`, where no length has been read yet; return the index of what was not read."""
        reach = self._reach(index, self._length)
        following = index + len(reach.run)
        if following < len(self._atoms) and self._atoms[following].is_plain_string:
            return self._leading_string(reach, following)
        self._read_fixed(reach)
        self._skip += width(reach.formats)
        self._has_guessed = bool(reach.guessed_formats)
        self._finish_run(reach.run)
        return following

    def _read_fixed(self, reach: _Reach) -> None:
        if reach.all_formats == ("B",):
            self._lines.add(f"{reach.all_names[0]} = data[{self._place()}]")
        elif reach.all_formats:
            unpack = self._tables.fixed(reach.all_formats)
            self._lines.add(f"{unpacking(reach.all_names)} = {unpack}({self._arguments()})")

    # Everything with a length of its own

    def _variable(self, index: int) -> int:
        atom = self._atoms[index]
        if atom.field is None:
            self._tags()
            return index + 1
        if atom.field.is_array:
            self._array(atom, atom.field)
            return self._start(index + 1)
        if atom.field.is_struct:
            self._struct(atom, atom.field)
            return self._start(index + 1)
        return self._text(index, atom, atom.field)

    def _long_length(self, atom: Atom) -> None:
        """Read the rest of a compact length of more than one byte; `pos` must stand behind that byte."""
        if atom.is_compact:
            self.settle()
            with self._lines.block(f"if {self._length} > 127:"):
                self._lines.add(f"{self._length}, pos = _read_uvarint(data, pos - 1)")
                if self._has_guessed:  # a null of more than one byte: the guess was read from the wrong place
                    with self._lines.block(f"if not {self._length}:"):
                        self._lines.add("raise _GiveUp")

    def read_tags(self) -> None:
        """Write the statement that reads the tagged section, when there is one."""
        names = [*(local(field) for field in self._layout.tagged), "unknown", "pos"]
        reader = function("read", self._layout, "tags")
        self._lines.add(f"{', '.join(names)} = {reader}(data, {self._place()}, tags)")
        self._base, self._skip = "pos", 0

    def _tags(self) -> None:
        self.settle()
        with self._lines.block("if tags:"):
            self.read_tags()
        with self._lines.block("else:"):
            for field in self._layout.tagged:
                self._lines.add(f"{local(field)} = {literal(self._layout.message, field)}")
            self._lines.add("unknown = ()")

    def _struct(self, atom: Atom, field: Field) -> None:
        name, reader = local(field), function("read", self._layout.of(field))
        if not atom.is_nullable:
            self._lines.add(f"{name}, pos = {reader}(data, {self._place()})")
            self._base, self._skip = "pos", 0
            return
        self.settle()
        with self._lines.block(f"if {self._length} == 1:"):
            self._lines.add(f"{name}, pos = {reader}(data, pos)")
        with self._lines.block(f"elif {self._length} == -1:"):
            self._lines.add(f"{name} = None")
        with self._lines.block("else:"):
            self._lines.add("raise _GiveUp")

    def _array(self, atom: Atom, field: Field) -> None:
        self.settle()
        self._long_length(atom)
        count = f"{self._length} - 1" if atom.is_compact else self._length
        if atom.is_nullable:
            with self._lines.block(f"if {self._length} == {'0' if atom.is_compact else '-1'}:"):
                self._lines.add(f"{local(field)} = None")
            with self._lines.block("else:"):
                self.elements(field, atom.is_compact, count)
        else:
            self.elements(field, atom.is_compact, count)

    def elements(self, field: Field, is_compact: bool, count: str) -> None:
        """Write the statements that read `count` elements at `pos`."""
        name = local(field)
        if field.is_struct:
            reader = function("read", self._layout.of(field), "array")
            self._lines.add(f"{name}, pos = {reader}(data, pos, {count})")
        elif field.base in FORMATS and field.base != "uuid":
            form, size = FORMATS[field.base], WIDTHS[field.base]
            table = self._tables.table("compact_array" if is_compact else "array", spell((form,)))
            make = f'_unpacker({table}, ">{{}}{form}", {self._length}, {count})'
            read_by_table(self._lines, name, f"{table}[{self._length}]", make, "data, pos")
            grown = f"({count})" if is_compact else count
            self._lines.add(f"pos += {grown} * {size}" if size > 1 else f"pos += {count}")
        else:
            kind = "compact_" if is_compact and field.base != "uuid" else ""
            self._lines.add(f"{name}, pos = _read_{kind}{PLURALS[field.base]}(data, pos, {count})")

    # Strings and bytes

    def _leading_string(self, before: _Reach, index: int) -> int:
        """A string together with the length and the run before it: the low byte of the length chooses the unpack.

        Longer strings are noticed by the length once it is read or, where it is a varint, by that low byte.
        """
        atom = self._atoms[index]
        behind = self._reach(index + 1, _NEXT_LENGTH[self._length])
        formats = before.formats if atom.is_compact else (*before.formats[:-1], "H")
        kind = "compact_text" if atom.is_compact else "text"
        table = self._tables.table(spell(formats), kind, spell(behind.all_formats))
        head, tail = "".join(formats), "".join(behind.all_formats)
        names = ", ".join([*before.names, _name(atom), *behind.all_names])
        n, arguments = self._length, self._arguments()
        self._lines.add(f"{n} = data[{self._place(width(formats) - 1)}]")
        if atom.is_compact:
            layout = f'">{head[:-1]}{{}}{tail}"'
            make = f"_compact_text_unpacker({table}, {layout}, {n})"
            read_by_table(self._lines, names, f"{table}[{n}]", make, arguments)
        else:
            layout = f'">{head}{{}}s{tail}"'
            make = f"_text_unpacker({table}, {layout}, {n}, {n})"
            read_by_table(self._lines, names, f"{table}[{n}]", make, arguments)
            with self._lines.block(f"if {n} > 255:"):
                self._lines.add(f"{names} = _long_text_unpacker({table}, {layout}, {n})({arguments})")
        self._skip += width(formats)
        self._pass_text(atom, behind)
        self._finish_run(before.run)
        return self._finish_text(index, behind)

    def _text(self, index: int, atom: Atom, field: Field) -> int:
        """A string or bytes together with what follows; its length has been read."""
        self._long_length(atom)
        has_guessed = self._has_guessed
        behind = self._reach(index + 1, _NEXT_LENGTH[self._length], guess=not has_guessed)
        if not atom.is_nullable:
            self._present_text(atom, field, behind)
            return self._finish_text(index, behind)
        base, skip = self._base, self._skip
        with self._lines.block(f"if {self._length} == {'0' if atom.is_compact else '-1'}:"):
            self._lines.add(f"{local(field)} = None")
            if not has_guessed:
                self._read_fixed(behind)
            self._skip += width(behind.formats)
            self.settle()
        self._base, self._skip = base, skip
        with self._lines.block("else:"):
            self._present_text(atom, field, behind)
            if field.base == "string":
                self._lines.add(f"{local(field)} = {local(field)}.decode()")
        return self._finish_text(index, behind)

    def _present_text(self, atom: Atom, field: Field, behind: _Reach) -> None:
        is_string = field.base == "string"
        kind = ("compact_" if atom.is_compact else "") + ("text" if is_string else "bytes")
        table = self._tables.table(kind, spell(behind.all_formats))
        make = "_text_unpacker" if is_string else "_unpacker"
        count = f"{self._length} - 1" if atom.is_compact else self._length
        layout = f'">{{}}s{"".join(behind.all_formats)}"'
        names = unpacking([local(field), *behind.all_names])
        otherwise = f"{make}({table}, {layout}, {self._length}, {count})"
        read_by_table(self._lines, names, f"{table}[{self._length}]", otherwise, self._arguments())
        self._pass_text(atom, behind)

    def _pass_text(self, atom: Atom, behind: _Reach) -> None:
        """Move `pos` behind a text and what was read with it."""
        self._skip += width(behind.formats) - (1 if atom.is_compact else 0)
        self.settle(self._length)

    def _finish_text(self, index: int, behind: _Reach) -> int:
        self._finish_run(behind.run)
        self._has_guessed = bool(behind.guessed_formats)
        self._length = _NEXT_LENGTH[self._length]
        return index + 1 + len(behind.run)


def _name(atom: Atom) -> str:
    return "tags" if atom.field is None else local(atom.field)


def _targets(run: list[Atom], behind: Atom | None, length: str) -> tuple[list[str], Formats]:
    """The variables and formats of a run and of the length behind it."""
    names = [_name(atom) for atom in run]
    formats = [FORMATS[atom.field.base] for atom in run if atom.field]
    if behind is not None and behind.prefix:
        names.append("tags" if behind.field is None else length)
        formats.append(behind.prefix)
    return names, tuple(formats)


def make_uuids(run: list[Atom], lines: Lines) -> None:
    """Turn the 16 bytes of each uuid into its value."""
    for atom in run:
        if atom.is_fixed and atom.field and atom.field.base == "uuid":
            lines.add(f"{local(atom.field)} = _UUIDS[{local(atom.field)}]")


def read_by_table(lines: Lines, names: str, entry: str, otherwise: str, arguments: str = "") -> None:
    """Take `names` from an entry of a table, which is made when it is missing; with `arguments` it is called.

    Plain dicts and calls on the spot are what Python does fastest here.
    """
    call = f"({arguments})" if arguments else ""
    with lines.block("try:"):
        lines.add(f"{names} = {entry}{call}")
    with lines.block("except KeyError:"):
        lines.add(f"{names} = {otherwise}{call}")


def read_struct_function(layout: Layout, tables: Tables) -> str:
    """`(data, pos) -> (value, position behind it)` for a struct inside a message."""
    lines = Lines()
    name = layout.struct.python_name
    with lines.block(f"def {function('read', layout)}(data: bytes, pos: int) -> tuple[{name}, int]:"):
        reader = StructReader(layout, lines, tables)
        reader.read()
        lines.add(f"return {construction(layout)}, {reader.end}")
    return lines.text()


def read_array_function(layout: Layout, tables: Tables) -> str:
    """`(data, pos, count) -> (tuple of values, position behind them)`; gives up on a count the bytes can't hold."""
    lines = Lines()
    name = layout.struct.python_name
    head = f"def {function('read', layout, 'array')}(data: bytes, pos: int, count: int)"
    with lines.block(f"{head} -> tuple[tuple[{name}, ...], int]:"):
        smallest = layout.min_size()
        if not smallest:
            # How many elements without bytes a message may have is a question for all its arrays together.
            with lines.block("if count:"):
                lines.add("raise _GiveUp")
            lines.add("return (), pos")
            return lines.text()
        with lines.block(f"if count < 0 or count * {smallest} > len(data) - pos:"):
            lines.add("raise _GiveUp")
        lines.add(f"items: list[{name}] = []")
        lines.add("append = items.append")
        with lines.block("for _ in range(count):"):
            reader = StructReader(layout, lines, tables)
            reader.read()
            reader.settle()
            lines.add(f"append({construction(layout)})")
        lines.add("return tuple(items), pos")
    return lines.text()
