"""Decides which columns of a table fit on a terminal, how wide they are, and what is printed about the others."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from json import dumps
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_runtime.errors import plural
from kafka_records_runtime.text.printable import printable
from kafka_records_tables.results.cell_texts import small_slices
from kafka_records_tables.results.cells import can_be_cut, cell_texts, holds_numbers, in_lines, widest, width_of

GAP: Final = "   "
_NARROW_GAP: Final = "  "
"""The gap between columns if any are left out or cut."""

NARROWEST: Final = 12
"""The minimum width of a text column, in cells."""
_ROOMY: Final = 20
"""Other columns are left out before an `essential` column gets fewer cells than this."""
_WIDEST_WHOLE: Final = 64
"""Texts up to this width make their column wider. Nearly all names of groups, topics and clients are shorter, but they
may have 249 characters."""
_LONGEST_SAME: Final = 40
_MOST_FOLDED: Final = 20_000
"""In tables with more rows, long texts are cut instead of folded, because folding works one row at a time."""
_WORD: Final = re.compile(r"[\w.:/+-]+")


@dataclass(frozen=True)
class ShownColumn:
    """A column of the printed table."""

    at: int
    name: str
    header: tuple[str, ...]
    """The column name, in lines."""
    is_number: bool
    least: int
    """The minimum width in which it can be printed, in cells."""
    natural: int
    """The width in cells at which no text is cut."""
    width: int
    is_folded: bool = False
    """Whether a text that is too long continues on the next line. Otherwise, it is cut."""


class ShownTable(NamedTuple):
    """The columns to print, and the gap between them."""

    columns: list[ShownColumn]
    gap: str
    left_out: list[str]
    """The names of the columns left out, except those in `same`."""
    same: dict[str, str | None]
    """Columns left out because all rows have the same value, with that value; None means null."""
    cuts: bool = True
    """Whether a text wider than its column is cut. Otherwise, it runs over the next columns."""


def whole(table: pa.Table) -> ShownTable:
    """All columns, with their complete texts. A column is as wide as its widest text of at most `_WIDEST_WHOLE` cells.
    A longer text makes only its own row longer."""
    columns = [_column(table, at, is_folded=False, most=_WIDEST_WHOLE) for at in range(table.num_columns)]
    return ShownTable(columns, GAP, [], {}, cuts=False)


def fitting(
    table: pa.Table, room: int, details: Collection[str] = (), essential: Collection[str] = ()
) -> ShownTable | None:
    """The columns that fit into `room` cells; None if fewer than two columns fit, or the `essential` ones do not.

    Columns are left out in this order: milliseconds of a time that is also shown as text; columns with null or the same
    value in every row, except `essential` ones; `details`; `essential` columns with the same value in every row; all
    others from the right. The remaining space is divided so that the widest columns are equally wide. Texts of
    `essential` columns are folded unless there are very many rows.
    """
    columns = [_column(table, at, is_folded=True) for at in telling_columns(table)]
    for each in ([_unfolded(column) for column in columns], columns):
        if _total(GAP, (column.natural for column in each)) <= room:
            return ShownTable(each, GAP, [], {})
    if table.num_rows <= _MOST_FOLDED:
        columns = [replace(each, is_folded=each.name in essential and each.least < each.natural) for each in columns]
    same = _same(table, columns)
    kept = _kept(columns, room, details, essential, same)
    if kept is None:
        return None
    names = [column.name for column in columns if column not in kept]
    told = {name: same[name] for name in names if name in same}
    return ShownTable(_widened(kept, room), _NARROW_GAP, [name for name in names if name not in told], told)


def _column(table: pa.Table, at: int, is_folded: bool, most: int | None = None) -> ShownColumn:
    field = table.schema.field(at)
    slices = small_slices(table.to_batches())
    values = max((widest(cell_texts(batch.column(at)), most) for batch in slices), default=0)
    name = printable(field.name)
    header = tuple(in_lines(re.findall(r"[^_]*_|[^_]+", name), values) if is_folded else [name])
    header_width = max(map(width_of, header))
    natural = max(values, header_width)
    least = min(natural, max(NARROWEST, header_width)) if can_be_cut(field.type) else natural
    return ShownColumn(at, name, header, holds_numbers(field.type), least, natural, natural)


def _unfolded(column: ShownColumn) -> ShownColumn:
    natural = max(column.natural, width_of(column.name))
    return replace(column, header=(column.name,), least=natural, natural=natural, width=natural)


def _total(gap: str, widths: Iterable[int]) -> int:
    taken = list(widths)
    return sum(taken) + len(gap) * (len(taken) - 1)


# -- what is left out --------------------------------------------------------------------------------------------------


def telling_columns(table: pa.Table) -> Iterator[int]:
    """The indexes of the columns to show, except milliseconds of a time that is also shown as text."""
    names = table.schema.names
    for at, name in enumerate(names):
        time = name.removesuffix("_ms")
        if time != name and time in names:
            column = table.column(time)
            if pa.types.is_timestamp(column.type) and column.null_count == table.column(at).null_count:
                continue
        yield at


def _same(table: pa.Table, columns: Iterable[ShownColumn]) -> dict[str, str | None]:
    """By name, the value of each column with the same value in every row. With only one row, only nulls count."""
    found: dict[str, str | None] = {}
    for each in columns:
        column = table.column(each.at)
        if table.num_rows and column.null_count == table.num_rows:
            found[each.name] = None
        elif table.num_rows > 1 and each.natural <= _LONGEST_SAME and _is_one_value(column):
            found[each.name] = cell_texts(column.slice(0, 1).combine_chunks())[0].as_py()
    return found


def _is_one_value(column: pa.ChunkedArray) -> bool:
    if column.null_count or pa.types.is_nested(column.type):
        return False
    return bool(pc.all(pc.equal(column, column[0])).as_py())


def _kept(
    columns: Sequence[ShownColumn],
    room: int,
    details: Collection[str],
    essential: Collection[str],
    same: Mapping[str, str | None],
) -> list[ShownColumn] | None:
    nulls = {name for name, text in same.items() if text is None}

    def comfortable(column: ShownColumn) -> int:
        return max(column.least, min(column.natural, _ROOMY))

    def narrow(column: ShownColumn) -> int:
        return comfortable(column) if column.name in essential else column.least

    kept = list(columns)
    steps: tuple[tuple[Callable[[ShownColumn], int], Callable[[str], bool]], ...] = (
        (comfortable, lambda name: name in nulls and name not in essential),
        (comfortable, lambda name: name in same and name not in essential),
        (narrow, lambda name: name in details),
        (narrow, lambda name: name in nulls),
        (narrow, lambda name: name in same),
        (narrow, lambda name: name not in essential),
    )
    for need, can_go in steps:
        for column in reversed(columns):
            if _total(_NARROW_GAP, map(need, kept)) <= room:
                break
            if column in kept and can_go(column.name) and len(kept) > (1 if essential else min(2, len(columns))):
                kept.remove(column)
    return kept if _total(_NARROW_GAP, (column.least for column in kept)) <= room else None


def _widened(kept: Sequence[ShownColumn], room: int) -> list[ShownColumn]:
    room -= len(_NARROW_GAP) * (len(kept) - 1)
    lowest, highest = 0, max((column.natural for column in kept), default=0)
    while lowest < highest:
        limit = (lowest + highest + 1) // 2
        if sum(_limited(column, limit) for column in kept) <= room:
            lowest = limit
        else:
            highest = limit - 1
    left = room - sum(_limited(column, lowest) for column in kept)
    found = []
    for column in kept:
        width = _limited(column, lowest)
        more = min(left, 1, column.natural - width)
        left -= more
        found.append(replace(column, width=width + more))
    return found


def _limited(column: ShownColumn, limit: int) -> int:
    return max(column.least, min(column.natural, limit))


# -- what is said ------------------------------------------------------------------------------------------------------


def missing(layout: ShownTable, cut: Collection[str]) -> str | None:
    """A sentence about the columns and texts that are not shown; `cut` names the columns in which texts were cut."""
    nulls = [name for name, text in layout.same.items() if text is None]
    same = [f"{name}={_quoted(text)}" for name, text in layout.same.items() if text is not None]
    is_cut = [column.name for column in layout.columns if column.name in cut]
    parts = []
    if same:
        parts.append(f"the same in every row: {', '.join(same)}")
    if nulls:
        parts.append(f"null in every row: {', '.join(nulls)}")
    if is_cut:
        parts.append(f"long texts cut in {', '.join(is_cut)}")
    if layout.left_out:
        parts.append(f"{plural(len(layout.left_out), 'column')} left out: {', '.join(layout.left_out)}")
    return f"{'; '.join(parts)}; --wide shows all" if parts else None


def _quoted(text: str) -> str:
    """The value, in quotes if it could be mistaken for something else. Some texts are already quoted in their cells."""
    return text if _WORD.fullmatch(text) or text.startswith('"') else dumps(text, ensure_ascii=False)
