"""Generates the statements that read a struct. A single unpack reads adjacent fixed-width fields and the length after
them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka_records_codegen.model.layouts import Layout
from kafka_records_codegen.python.formats import FORMATS, HEADS, PLURALS, Formats, width
from kafka_records_codegen.python.names import function, local
from kafka_records_codegen.python.statements import give_up_if, is_plain_string, make_uuids, read_by_table, unpacking
from kafka_records_codegen.python.uses import Uses
from kafka_records_codegen.text.lines import Lines
from kafka_records_runtime.schema import FIXED_SIZES, FieldSchema
from kafka_records_runtime.schema.layout import (
    UVARINT,
    ArrayValue,
    FixedRun,
    FixedValue,
    Member,
    SizedValue,
    StructValue,
    TagsLayout,
)

_NEXT_LENGTH: Final = {"n": "m", "m": "k", "k": "n"}
"""The variables for lengths, used in turn: one is in use while the next two are read."""


@dataclass(frozen=True)
class _Reach:
    """The part that can be read at once: a run of fixed-width fields and the length after it.

    If that length belongs to a nullable text, the code assumes that the text is null, and also reads what follows it.
    This never reads too far, because a non-null text has at least as many bytes.
    """

    run: FixedRun
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

    Positions are relative to the variable `pos`, which only grows. With `from_start`, they are numbers until something
    of variable length has been read.
    """

    def __init__(self, layout: Layout, lines: Lines, uses: Uses, *, from_start: bool = False) -> None:
        self._layout = layout
        self._runs = layout.wire.runs
        self._lines = lines
        self._uses = uses
        self._base = "" if from_start else "pos"
        self._skip = 0
        self._length = "n"
        self._has_guessed = False

    def read(self) -> None:
        """Write the statements. Afterwards, `end` is the position after the struct."""
        self.read_before_tags()
        if self._layout.wire.tags is not None:
            self._tags(self._layout.wire.tags)

    def read_before_tags(self) -> None:
        """Write the statements that read a struct up to and including the number of its tags, if it has one."""
        index = self._start(0)
        while isinstance(behind := self._runs[index].behind, Member):
            index = self._variable(index, behind)

    @property
    def end(self) -> str:
        """The current position, as an expression."""
        return self._place()

    # Code for positions

    def _arguments(self) -> str:
        """The arguments of an unpack function at this position."""
        place = self._place()
        return "data" if place == "0" else f"data, {place}"

    def _place(self, offset: int = 0) -> str:
        offset += self._skip
        if not self._base:
            return str(offset)
        return f"pos {'-' if offset < 0 else '+'} {abs(offset)}" if offset else "pos"

    def settle(self, extra: str = "") -> None:
        """Bring `pos` up to date: the position read so far, plus `extra`."""
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
        """What can be read starting at the run `index`, with `length` as the variable for the length at its end."""
        run = self._runs[index]
        names, formats = _targets(run, length)
        if guess and isinstance(run.behind, Member) and _is_nullable_text(run.behind):
            return _Reach(run, names, formats, *_targets(self._runs[index + 1], _NEXT_LENGTH[length]))
        return _Reach(run, names, formats, [], ())

    def _make_uuids(self, run: FixedRun) -> None:
        make_uuids(run.fixed, self._lines, self._uses)

    def _start(self, index: int) -> int:
        """Continue reading at the run `index`, of which no length has been read yet. Returns the run whose end was not
        read."""
        reach = self._reach(index, self._length)
        behind = reach.run.behind
        if isinstance(behind, Member) and isinstance(behind.value, SizedValue) and is_plain_string(behind.value):
            return self._leading_string(index, reach, behind.field, behind.value)
        self._read_fixed(reach)
        self._skip += width(reach.formats)
        self._has_guessed = bool(reach.guessed_formats)
        self._make_uuids(reach.run)
        return index

    def _read_fixed(self, reach: _Reach) -> None:
        if reach.all_formats == ("B",):
            self._lines.add(f"{reach.all_names[0]} = data[{self._place()}]")
        elif reach.all_formats:
            unpack = self._uses.unpack(reach.all_formats)
            self._lines.add(f"{unpacking(reach.all_names)} = {unpack}({self._arguments()})")

    # Values that start with their own length

    def _variable(self, index: int, member: Member) -> int:
        """Read the member at the end of the run `index`. Returns the run whose end was not read."""
        match member.value:
            case ArrayValue():
                self._array(member.field, member.value)
                return self._start(index + 1)
            case StructValue():
                self._struct(member.field, member.value)
                return self._start(index + 1)
            case SizedValue():
                return self._text(index, member.field, member.value)
            case FixedValue():
                raise AssertionError("a run is not followed by a value of fixed width")

    def _long_length(self, head: str) -> None:
        """Read the rest of a compact length of more than one byte. `pos` must be after the first byte."""
        if head == UVARINT:
            self.settle()
            with self._lines.block(f"if {self._length} > 127:"):
                self._lines.add(f"{self._length}, pos = {self._uses.runtime_name('read_uvarint')}(data, pos - 1)")
                if self._has_guessed:  # If a null needs more than one byte, the length was guessed at the wrong place.
                    give_up_if(f"not {self._length}", self._lines, self._uses)

    def read_tags(self, tags: TagsLayout) -> None:
        """Write the statement that reads the tagged fields, if the struct has any."""
        names = [*(local(member.field) for member in tags.known), "unknown", "pos"]
        reader = function("read", self._layout, "tags")
        self._lines.add(f"{', '.join(names)} = {reader}(data, {self._place()}, tags)")
        self._base, self._skip = "pos", 0

    def _tags(self, tags: TagsLayout) -> None:
        self.settle()
        with self._lines.block("if tags:"):
            self.read_tags(tags)
        with self._lines.block("else:"):
            for member in tags.known:
                self._lines.add(f"{local(member.field)} = {self._uses.literal(self._layout, member.field)}")
            self._lines.add("unknown = ()")

    def _struct(self, field: FieldSchema, value: StructValue) -> None:
        name, reader = local(field), function("read", self._layout.of(value))
        if not value.nullable:
            self._lines.add(f"{name}, pos = {reader}(data, {self._place()})")
            self._base, self._skip = "pos", 0
            return
        self.settle()
        with self._lines.block(f"if {self._length} == 1:"):
            self._lines.add(f"{name}, pos = {reader}(data, pos)")
        with self._lines.block(f"elif {self._length} == -1:"):
            self._lines.add(f"{name} = None")
        with self._lines.block("else:"):
            self._lines.add(self._uses.give_up)

    def _array(self, field: FieldSchema, value: ArrayValue) -> None:
        self.settle()
        self._long_length(value.head)
        count = self._length_of(value.head)
        if value.nullable:
            with self._lines.block(self._if_null(value.head)):
                self._lines.add(f"{local(field)} = None")
            with self._lines.block("else:"):
                self.elements(field, value, count)
        else:
            self.elements(field, value, count)

    def _length_of(self, head: str) -> str:
        """The length or count that was read, as an expression."""
        return f"{self._length} - 1" if head == UVARINT else self._length

    def _if_null(self, head: str) -> str:
        return f"if {self._length} == {'0' if head == UVARINT else '-1'}:"

    def elements(self, field: FieldSchema, value: ArrayValue, count: str) -> None:
        """Write the statements that read `count` elements at `pos`."""
        name, compact, element = local(field), value.head == UVARINT, value.element
        if isinstance(element, StructValue):
            reader = function("read", self._layout.of(element), "array")
            self._lines.add(f"{name}, pos = {reader}(data, pos, {count})")
        elif isinstance(element, FixedValue) and element.type != "uuid":
            form, size = FORMATS[element.type], FIXED_SIZES[element.type]
            table = self._uses.unpack_array(form, compact=compact)
            unpacker = self._uses.runtime_name("unpacker")
            make = f'{unpacker}({table}, ">{{}}{form}", {self._length}, {count})'
            read_by_table(self._lines, name, f"{table}[{self._length}]", make, "data, pos")
            grown = f"({count})" if compact else count
            self._lines.add(f"pos += {grown} * {size}" if size > 1 else f"pos += {count}")
        else:
            kind = "compact_" if element.head == UVARINT else ""
            reader = self._uses.runtime_name(f"read_{kind}{PLURALS[field.base]}")
            self._lines.add(f"{name}, pos = {reader}(data, pos, {count})")

    # Strings and bytes

    def _leading_string(self, index: int, before: _Reach, field: FieldSchema, value: SizedValue) -> int:
        """Read a string together with the length and the run before it. The low byte of the length selects the unpack.

        Longer strings are detected by the length once it has been read or, if it is a varint, by that low byte.
        """
        compact = value.head == UVARINT
        behind = self._reach(index + 1, _NEXT_LENGTH[self._length])
        formats = before.formats if compact else (*before.formats[:-1], "H")
        table = self._uses.unpack_text("compact_text" if compact else "text", behind.all_formats, formats)
        head, tail = "".join(formats), "".join(behind.all_formats)
        names = ", ".join([*before.names, local(field), *behind.all_names])
        n, arguments = self._length, self._arguments()
        self._lines.add(f"{n} = data[{self._place(width(formats) - 1)}]")
        if compact:
            layout = f'">{head[:-1]}{{}}{tail}"'
            make = f"{self._uses.runtime_name('compact_text_unpacker')}({table}, {layout}, {n})"
            read_by_table(self._lines, names, f"{table}[{n}]", make, arguments)
        else:
            layout = f'">{head}{{}}s{tail}"'
            make = f"{self._uses.runtime_name('text_unpacker')}({table}, {layout}, {n}, {n})"
            read_by_table(self._lines, names, f"{table}[{n}]", make, arguments)
            with self._lines.block(f"if {n} > 255:"):
                long = self._uses.runtime_name("long_text_unpacker")
                self._lines.add(f"{names} = {long}({table}, {layout}, {n})({arguments})")
        self._skip += width(formats)
        self._pass_text(value, behind)
        self._make_uuids(before.run)
        return self._finish_text(index, behind)

    def _text(self, index: int, field: FieldSchema, value: SizedValue) -> int:
        """Read a string or bytes together with what follows. Its length has already been read."""
        self._long_length(value.head)
        has_guessed = self._has_guessed
        behind = self._reach(index + 1, _NEXT_LENGTH[self._length], guess=not has_guessed)
        if not value.nullable:
            self._present_text(field, value, behind)
            return self._finish_text(index, behind)
        base, skip = self._base, self._skip
        with self._lines.block(self._if_null(value.head)):
            self._lines.add(f"{local(field)} = None")
            if not has_guessed:
                self._read_fixed(behind)
            self._skip += width(behind.formats)
            self.settle()
        self._base, self._skip = base, skip
        with self._lines.block("else:"):
            self._present_text(field, value, behind)
            if value.type == "string":
                self._lines.add(f"{local(field)} = {local(field)}.decode()")
        return self._finish_text(index, behind)

    def _present_text(self, field: FieldSchema, value: SizedValue, behind: _Reach) -> None:
        is_string = value.type == "string"
        kind = ("compact_" if value.head == UVARINT else "") + ("text" if is_string else "bytes")
        table = self._uses.unpack_text(kind, behind.all_formats)
        make = self._uses.runtime_name("text_unpacker" if is_string else "unpacker")
        layout = f'">{{}}s{"".join(behind.all_formats)}"'
        names = unpacking([local(field), *behind.all_names])
        otherwise = f"{make}({table}, {layout}, {self._length}, {self._length_of(value.head)})"
        read_by_table(self._lines, names, f"{table}[{self._length}]", otherwise, self._arguments())
        self._pass_text(value, behind)

    def _pass_text(self, value: SizedValue, behind: _Reach) -> None:
        """Move `pos` past a text and everything read together with it."""
        self._skip += width(behind.formats) - (1 if value.head == UVARINT else 0)
        self.settle(self._length)

    def _finish_text(self, index: int, behind: _Reach) -> int:
        self._make_uuids(behind.run)
        self._has_guessed = bool(behind.guessed_formats)
        self._length = _NEXT_LENGTH[self._length]
        return index + 1


def _is_nullable_text(member: Member) -> bool:
    return isinstance(member.value, SizedValue) and member.value.nullable


def _targets(run: FixedRun, length: str) -> tuple[list[str], Formats]:
    """The variables and formats of a run and the length after it."""
    names = [local(member.field) for member in run.fixed]
    formats = [FORMATS[member.field.base] for member in run.fixed]
    head = None
    if isinstance(run.behind, TagsLayout):
        length, head = "tags", run.behind.head
    elif run.behind is not None:
        head = run.behind.value.head
    if head is not None:
        names.append(length)
        formats.append(HEADS[head])
    return names, tuple(formats)
