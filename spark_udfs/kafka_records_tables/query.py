"""A query on the rows of a table: which rows and columns to return, and in which order.

User input (`offset>=100`, `-commit_timestamp`, `2h ago`) is parsed here and compared with the declaration of the table.
This module imports neither numpy nor pyarrow, so that a command can report a mistake at once. `selection` applies the
query to rows.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, cast

from kafka_records_runtime.text.printable import is_utf_8
from kafka_records_tables.near_names import check_columns

if TYPE_CHECKING:
    from kafka_records_tables.tables.declaration import Column, Table

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "~", "is null", "is not null"]

_CONDITION: Final = re.compile(
    r"\s*(\w+)\s*(?:\s(is\s+(?:not\s+)?null)\s*|(==|<>|!=|<=|>=|=|<|>|~)\s*(.*?)\s*)", re.DOTALL | re.IGNORECASE
)
_SAME: Final = {"==": "=", "<>": "!="}
_ORDERED: Final = ("string", "int8", "int16", "int32", "int64", "float64", "timestamp")
_BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}

_SHORTEST_MS: Final = 12
_AGO: Final = re.compile(r"([0-9]{1,9})\s*(s|m|min|h|d|w)(?:\s+ago)?")
_MOST_DIGITS: Final = 9
_SHORT_DURATION: Final = re.compile(r"([0-9]+)\s*(s|m|min|h|d|w)")
_ISO_DURATION: Final = re.compile(
    r"P(?=[0-9T])(?:([0-9]{1,9})W)?(?:([0-9]{1,9})D)?(?:T(?=[0-9])(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9})S)?)?"
)
_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LAST_MS: Final = 253_402_300_799_999


class QueryError(ValueError):
    """A query that a table cannot answer. The message says what to write instead."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a column. Rows for which it is not true are left out.

    As in SQL, no comparison with null is true, except `is null`. Strings are compared by code points; `~` is true if
    the string contains `value`. A `timestamp` is compared with an aware datetime.
    """

    column: str
    operator: Operator
    value: str | int | float | bool | datetime | None = None


class Key(NamedTuple):
    """A column to sort by."""

    column: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A query on rows. `query_of` creates one from texts."""

    columns: tuple[str, ...]
    conditions: tuple[Condition, ...] = ()
    """The conditions, all of which must be true."""
    topics: tuple[str, ...] = ()
    """Patterns with `*`, `?` and `[…]`: only rows about a matching topic are returned. If empty, all rows are
    returned."""
    order: tuple[Key, ...] = ()
    limit: int | None = None


def query_of(
    table: Table,
    *,
    columns: Sequence[str] | None = None,
    where: Iterable[str] = (),
    topics: Iterable[str] = (),
    sort: Sequence[str] = (),
    limit: int | None = None,
) -> Query:
    """The query for rows of `table`.

    Parameters
    ----------
    columns
        The names of the columns to return, in this order; None for all.
    where
        Conditions, `COLUMN OPERATOR VALUE`, `COLUMN is null` or `COLUMN is not null`.
    topics
        Patterns for the names of the topics that rows are about.
    sort
        Names of columns, preceded by `-` for descending order. Rows with equal values are in the order of the table.
    limit
        The maximum number of rows.

    Raises
    ------
    UnknownColumn
        For a name that no column has.
    QueryError
        For any other query that the table cannot answer.
    """
    where = tuple(where)
    compared = [match[1] for text in where if (match := _CONDITION.fullmatch(text)) is not None]
    check_columns(table.name, (*(columns or ()), *compared, *(each.removeprefix("-") for each in sort)), table.names)
    chosen = table.names if columns is None else tuple(columns)
    if not chosen:
        raise QueryError("no columns are given: give at least one")
    twice = next((name for name in chosen if chosen.count(name) > 1), None)
    if twice is not None:
        raise QueryError(f"the column {twice} is given twice")
    conditions = tuple(condition(table, text) for text in where)
    patterns = tuple(topics)
    if patterns and not topic_columns(table):
        raise QueryError(f"rows of {table.name} do not belong to a topic")
    if limit is not None and limit < 0:
        raise QueryError(f"{limit} is not a valid limit: it must be 0 or more")
    return Query(chosen, conditions, patterns, _order(table, sort), limit)


def column_called(table: Table, name: str) -> Column:
    """The column of a table with this name. Raises UnknownColumn."""
    check_columns(table.name, (name,), table.names)
    return next(column for column in table.columns if column.name == name)


def topic_columns(table: Table) -> tuple[str, ...]:
    """The columns with the topic, or a list of topics, that a row is about; empty if the table's rows are not about
    topics."""
    return tuple(
        column.name
        for column in table.columns
        if column.name == "topic" or (column.type.startswith("list<struct<") and "topic: string" in column.type)
    )


def _order(table: Table, sort: Sequence[str]) -> tuple[Key, ...]:
    keys = [Key(column_called(table, each.removeprefix("-")).name, each.startswith("-")) for each in sort]
    for key in keys:
        kind = column_called(table, key.column).type
        if kind not in (*_ORDERED, "bool"):
            raise QueryError(f"rows cannot be sorted by {key.column}, because it is a {_kind(kind)}")
    named = {key.column for key in keys}
    return (*keys, *(Key(name) for name in table.sort if name not in named))


# -- conditions --------------------------------------------------------------------------------------------------------


def condition(table: Table, text: str) -> Condition:
    """Parse a condition.

    A value may be in quotes, `"…"` or `'…'`. Raises UnknownColumn and QueryError.
    """
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise QueryError(
            f"{text!r} is not a valid condition: write COLUMN OPERATOR VALUE, as in offset>=100, with one of = != < "
            "<= > >= and ~ (contains), or COLUMN is null, or COLUMN is not null"
        )
    column = column_called(table, match[1])
    if match[2]:
        return Condition(column.name, cast(Operator, " ".join(match[2].lower().split())))
    operator = cast(Operator, _SAME.get(match[3], match[3]))
    _check_operator(column, operator)
    return Condition(column.name, operator, _value(column, _unquoted(match[4])))


def _check_operator(column: Column, operator: Operator) -> None:
    kind = column.type
    if kind not in (*_ORDERED, "bool"):
        raise QueryError(f"{column.name} is a {_kind(kind)}: it can be compared with null only ({column.name} is null)")
    if operator == "~" and kind != "string":
        raise QueryError(f"{column.name} is {_article(kind)}: ~ searches only strings")
    if kind == "bool" and operator not in ("=", "!="):
        raise QueryError(f"{column.name} is a bool: compare it with = or !=")


def _value(column: Column, text: str) -> str | int | float | bool | datetime:
    kind = column.type
    if kind == "string":
        if not is_utf_8(text):
            raise QueryError(f"{text!r} is not UTF-8, so no {column.name} can be equal to it")
        return text
    if kind == "bool":
        if text.lower() not in ("true", "false"):
            raise QueryError(f"{column.name} is a bool: {text!r} is neither true nor false")
        return text.lower() == "true"
    if kind == "timestamp":
        try:
            return _moment(text)
        except ValueError:
            raise QueryError(
                f"{column.name} is a timestamp, but {text!r} is not one: write 2026-01-31, 2026-01-31T12:00 (UTC) or "
                "2026-01-31T12:00+02:00"
            ) from None
    if kind == "float64":
        if re.fullmatch(r"[+-]?[0-9]{1,30}([.][0-9]{1,30})?", text) is None:
            raise QueryError(f"{column.name} is a {kind}, and {text!r} is not a number: write it as 12 or 0.5")
        return float(text)
    if re.fullmatch(r"[+-]?[0-9]{1,30}", text) is None:
        raise QueryError(f"{column.name} is an {kind}, and {text!r} is not a whole number")
    number, most = int(text), 1 << (_BITS[kind] - 1)
    if not -most <= number < most:
        raise QueryError(f"{column.name} is an {kind}, and {text} is outside its range")
    return number


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _kind(kind: str) -> str:
    return kind.partition("<")[0]


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


# -- durations ---------------------------------------------------------------------------------------------------------


def duration(text: str) -> int:
    """Parse a duration into milliseconds: `90s`, `30m`, `24h`, `7d`, `2w`, or `P7D` and `PT24H` as in ISO 8601.

    Raises QueryError.
    """
    short = _SHORT_DURATION.fullmatch(text.strip())
    if short:
        if len(short[1]) > _MOST_DIGITS:
            raise QueryError(f"{text!r} is too long: write a number of at most {_MOST_DIGITS} digits")
        return int(short[1]) * _SECONDS[short[2]] * 1000
    parts = _ISO_DURATION.fullmatch(text.strip())
    if parts is None or not any(parts.groups()):
        raise QueryError(f"{text!r} is not a duration: write 90s, 30m, 24h, 7d or 2w, or as in ISO 8601 P7D or PT24H")
    return sum(int(count) * _SECONDS[unit] for count, unit in zip(parts.groups(), "wdhms", strict=True) if count) * 1000


# -- moments -----------------------------------------------------------------------------------------------------------


def milliseconds(text: str, now_ms: int | None = None) -> int:
    """Parse a time into milliseconds since 1970.

    The time is in ISO 8601 (in UTC if it names no zone); milliseconds since 1970 with at least twelve digits; `now`; or
    a duration before now: `90s`, `30m`, `2h`, `7d`, `1w`, optionally followed by `ago`. Raises QueryError.
    """
    text = text.strip()
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    if text == "now":
        return now
    ago = _AGO.fullmatch(text)
    if ago:
        return now - int(ago[1]) * _SECONDS[ago[2]] * 1000
    if re.fullmatch(r"[0-9]+", text):
        if len(text) < _SHORTEST_MS:
            raise QueryError(f"{text} is before 1974 if taken as milliseconds since 1970: write {_MOMENTS}")
        if len(text) > len(str(_LAST_MS)) or int(text) > _LAST_MS:
            raise QueryError(f"{text} is after the year 9999 if taken as milliseconds since 1970: write {_MOMENTS}")
        return int(text)
    try:
        moment = _moment(text)
    except ValueError:
        raise QueryError(f"{text!r} is not a moment: write {_MOMENTS}") from None
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


_MOMENTS: Final = (
    "2026-01-31, 2026-01-31T12:00 (UTC), 2026-01-31T12:00+02:00, 1769860800000 (milliseconds since 1970), now, or 90s, "
    "30m, 2h, 7d or 1w for a time before now"
)


def _moment(text: str) -> datetime:
    if text.isdigit():
        raise ValueError(text)
    moment = datetime.fromisoformat(text)
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(text) from None
