"""Generates functions that decode whole messages: `bytes -> value`. They give up if bytes are left over.

In a non-flexible version, a message whose only variable parts are one or two strings is read by a single `struct`
unpack. With one string, the size of the message determines the format. With two strings, the size and the length of the
first string determine it. All other messages are read piece by piece.
"""

from __future__ import annotations

from kafka_records_codegen.model.layouts import Layout
from kafka_records_codegen.python.formats import FORMATS, Formats, width
from kafka_records_codegen.python.names import function, local
from kafka_records_codegen.python.statements import construction, give_up_if, is_plain_string, make_uuids, read_by_table
from kafka_records_codegen.python.struct_reader import StructReader
from kafka_records_codegen.python.uses import Uses
from kafka_records_codegen.text.lines import Lines
from kafka_records_runtime.schema.layout import Member


def read_message_function(layout: Layout, uses: Uses) -> str:
    """The source of a function `bytes -> value`."""
    lines = Lines()
    with lines.block(f"def {function('read', layout)}(data: bytes) -> {uses.struct_class(layout.struct)}:"):
        whole = _WholeReader(layout, lines, uses)
        if whole.is_possible:
            whole.read()
        else:
            _read_by_pieces(layout, lines, uses)
        lines.add(f"return {construction(layout, uses)}")
    return lines.text()


def _read_by_pieces(layout: Layout, lines: Lines, uses: Uses) -> None:
    reader = StructReader(layout, lines, uses, from_start=True)
    reader.read_before_tags()
    if layout.wire.tags is not None:
        with lines.block("if not tags:"):
            give_up_if(f"len(data) != {reader.end}", lines, uses)
            lines.add(f"return {construction(layout, uses, with_tags=False)}")
        reader.read_tags(layout.wire.tags)
    give_up_if(f"len(data) != {reader.end}", lines, uses)


class _WholeReader:
    """Writes the statements that read a message with a single unpack."""

    def __init__(self, layout: Layout, lines: Lines, uses: Uses) -> None:
        self._layout = layout
        self._lines = lines
        self._uses = uses
        self._runs = layout.wire.runs
        self._behind = [run.behind for run in self._runs]

    @property
    def is_possible(self) -> bool:
        """Whether the message has a fixed width, apart from one or two strings that are never null."""
        *strings, last = self._behind
        are_plain = all(isinstance(each, Member) and is_plain_string(each.value) for each in strings)
        return last is None and are_plain and len(strings) in (1, 2)

    def read(self) -> None:
        if len(self._runs) == 2:
            self._one_string()
        else:
            self._two_strings()
        make_uuids(self._layout.wire.body, self._lines, self._uses)

    def _unpack(self) -> None:
        self._lines.add(f"{', '.join(self._names())} = unpack(data)")

    def _choose(self, entry: str, otherwise: str) -> None:
        """Write the statements that choose the unpack function and the length of the last string."""
        read_by_table(self._lines, "unpack, rest", entry, otherwise)

    def _check_rest(self, length: str) -> None:
        give_up_if(f"{length} != rest", self._lines, self._uses)

    def _one_string(self) -> None:
        before, behind = self._formats("h")
        table = self._uses.unpack_whole(before, behind)
        layout = f'">{"".join(before)}{{}}s{"".join(behind)}"'
        make = self._uses.runtime_name("whole_unpacker")
        self._choose(f"{table}[len(data)]", f"{make}({table}, {layout}, len(data), {width((*before, *behind))})")
        self._unpack()
        self._check_rest("n")

    def _two_strings(self) -> None:
        """Read two strings. The low byte of the first length is taken for the whole length, which is checked after it
        has been read."""
        before, between, behind = self._formats("H", "h")
        table = self._uses.unpack_whole_pair(before, between, behind)
        layout = f'">{"".join(before)}{{}}s{"".join(between)}{{}}s{"".join(behind)}"'
        fixed = width((*before, *between, *behind))
        low_byte = f"data[{width(before) - 1}]"
        make = f"{self._uses.runtime_name('whole_pair_unpacker')}({table}, {layout}, len(data), {fixed}"
        self._choose(f"{table}[len(data)][{low_byte}]", f"{make}, {low_byte})")
        self._unpack()
        with self._lines.block("if n > 255:"):
            self._lines.add(f"unpack, rest = {make}, n)")
            self._unpack()
        self._check_rest("m")

    def _formats(self, *lengths: str) -> list[Formats]:
        """The formats around the strings, including the lengths of the strings."""
        fixed = [tuple(FORMATS[member.field.base] for member in run.fixed) for run in self._runs]
        return [(*run, *length) for run, length in zip(fixed, [*lengths, ""], strict=True)]

    def _names(self) -> list[str]:
        names = []
        for run, length in zip(self._runs, "nm ", strict=False):
            names += [local(member.field) for member in run.fixed]
            if isinstance(run.behind, Member):
                names += [length, local(run.behind.field)]
        return names
