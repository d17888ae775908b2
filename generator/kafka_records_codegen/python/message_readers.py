"""Decoding functions for whole messages: `bytes -> value`, giving up on bytes left over.

A message of an inflexible version whose only variable parts are one or two strings is read by a single `struct`
unpack. With one string the size of the message decides the format, with two the size and the first length do. All
other messages are read piece by piece.
"""

from __future__ import annotations

from kafka_records_codegen.model.layouts import FORMATS, Layout, spell, width
from kafka_records_codegen.python.names import function, local
from kafka_records_codegen.python.readers import StructReader, Tables, atoms_of, construction, make_uuids, read_by_table
from kafka_records_codegen.text.lines import Lines


def read_message_function(layout: Layout, tables: Tables) -> str:
    """`bytes -> value`."""
    lines = Lines()
    with lines.block(f"def {function('read', layout)}(data: bytes) -> {layout.struct.python_name}:"):
        whole = _WholeReader(layout, lines, tables)
        if whole.is_possible:
            whole.read()
        else:
            _read_by_pieces(layout, lines, tables)
        lines.add(f"return {construction(layout)}")
    return lines.text()


def _read_by_pieces(layout: Layout, lines: Lines, tables: Tables) -> None:
    reader = StructReader(layout, lines, tables, from_start=True)
    if layout.is_flexible:
        reader.read_before_tags()
        with lines.block("if not tags:"):
            _check_end(reader, lines)
            lines.add(f"return {construction(layout, with_tags=False)}")
        reader.read_tags()
    else:
        reader.read()
    _check_end(reader, lines)


def _check_end(reader: StructReader, lines: Lines) -> None:
    with lines.block(f"if len(data) != {reader.end}:"):
        lines.add("raise _GiveUp")


class _WholeReader:
    """Writes the statements that read a message by one unpack."""

    def __init__(self, layout: Layout, lines: Lines, tables: Tables) -> None:
        self._layout = layout
        self._lines = lines
        self._tables = tables
        self._atoms = atoms_of(layout)
        self._strings = [atom for atom in self._atoms if atom.is_plain_string]

    @property
    def is_possible(self) -> bool:
        others = [atom for atom in self._atoms if not (atom.is_fixed or atom.is_plain_string)]
        return not self._layout.is_flexible and not others and len(self._strings) in (1, 2)

    def read(self) -> None:
        if len(self._strings) == 1:
            self._one_string()
        else:
            self._two_strings()
        make_uuids(self._atoms, self._lines)

    def _unpack(self) -> None:
        self._lines.add(f"{', '.join(self._names())} = unpack(data)")

    def _choose(self, entry: str, otherwise: str) -> None:
        """Take the unpack function and the length of the last string."""
        read_by_table(self._lines, "unpack, rest", entry, otherwise)

    def _check_rest(self, length: str) -> None:
        with self._lines.block(f"if {length} != rest:"):
            self._lines.add("raise _GiveUp")

    def _one_string(self) -> None:
        before, behind = self._runs(("h",))
        table = self._tables.table("whole", spell(before), "text", spell(behind), entries="_Whole")
        layout = f'">{"".join(before)}{{}}s{"".join(behind)}"'
        fixed = width((*before, *behind))
        self._choose(f"{table}[len(data)]", f"_whole_unpacker({table}, {layout}, len(data), {fixed})")
        self._unpack()
        self._check_rest("n")

    def _two_strings(self) -> None:
        """The low byte of the first length stands for all of it, until it is read as an unsigned number."""
        before, between, behind = self._runs(("H", "h"))
        name = ("whole", spell(before), "text", spell(between), "text", spell(behind))
        table = self._tables.table(*name, entries="dict[int, _Whole]")
        layout = f'">{"".join(before)}{{}}s{"".join(between)}{{}}s{"".join(behind)}"'
        fixed = width((*before, *between, *behind))
        low_byte = f"data[{width(before) - 1}]"
        make = f"_whole_pair_unpacker({table}, {layout}, len(data), {fixed}"
        self._choose(f"{table}[len(data)][{low_byte}]", f"{make}, {low_byte})")
        self._unpack()
        with self._lines.block("if n > 255:"):
            self._lines.add(f"unpack, rest = {make}, n)")
            self._unpack()
        self._check_rest("m")

    def _runs(self, prefixes: tuple[str, ...]) -> list[tuple[str, ...]]:
        """The formats around the strings, the lengths of the strings included."""
        runs: list[tuple[str, ...]] = []
        run: list[str] = []
        for atom in self._atoms:
            if atom.is_plain_string:
                runs.append((*run, prefixes[len(runs)]))
                run = []
            elif atom.field:
                run.append(FORMATS[atom.field.base])
        return [*runs, tuple(run)]

    def _names(self) -> list[str]:
        lengths = iter("nm")
        names = []
        for atom in self._atoms:
            if atom.is_plain_string:
                names.append(next(lengths))
            if atom.field:
                names.append(local(atom.field))
        return names
