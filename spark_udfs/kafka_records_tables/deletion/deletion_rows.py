"""Rows with offsets from a JSON lines, CSV or Parquet file. Each value is checked against its column's type."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from csv import reader
from typing import Any, Final, NamedTuple

from kafka_records_engine.sources.fetched_offsets import TopicPartition

_NEEDED: Final = ("group_id", "topic", "partition", "offset")
_PARQUET: Final = b"PAR1"
_NO_EPOCH: Final = -1
_INT32: Final = 31
_INT64: Final = 63
_GROUP: Final = "group"
_WHOLE: Final = re.compile(r"(-?[0-9]{1,19})(\.0*)?")
_EXACT: Final = 1 << 53
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class CommittedRow(NamedTuple):
    """A table row with a committed offset."""

    group_id: str
    place: TopicPartition
    topic_id: str | None
    offset: int | None
    """The committed offset; None if nothing was committed."""
    leader_epoch: int
    metadata: str


class ListedRow(NamedTuple):
    """A row of `deletable_offsets`. None means that the list lacks the value."""

    is_group: bool
    group_id: str
    place: TopicPartition
    """The topic and partition. Meaningless for a group, and for an offset that is not deletable."""
    offset: int | None
    """The committed offset; also None if nothing is committed."""
    leader_epoch: int | None
    metadata: str | None
    commit_timestamp_ms: int | None
    is_deletable: bool
    is_pending: bool
    reason: str | None


def listed_rows(content: bytes) -> Iterator[ListedRow]:
    """The rows of a file. Raises ValueError, which names the problem and its line (for CSV and Parquet, its row)."""
    for at, row in rows_of_content(content):
        missing = [name for name in _NEEDED if name not in row]
        if missing:
            raise ValueError(f"it has no column {missing[0]} (required: {', '.join(_NEEDED)})")
        try:
            yield _listed(row)
        except ValueError as error:
            raise ValueError(f"{at}: {error}") from None


def committed_row(row: Mapping[str, Any]) -> CommittedRow:
    """The committed offset in a table row, or in a line written by `delete-offsets`. Raises ValueError."""
    missing = [name for name in _NEEDED if name not in row]
    if missing:
        raise ValueError(f"it has no field {missing[0]} (required: {', '.join(_NEEDED)})")
    return CommittedRow(
        _of(row, "group_id", _text, ""),
        (_of(row, "topic", _text, ""), _of(row, "partition", _number(_INT32), 0)),
        _or_none(row, "topic_id", _text),
        _or_none(row, "offset", _number(_INT64, -(1 << _INT64))),
        _leader_epoch(row) if "leader_epoch" in row else _NO_EPOCH,
        _or_none(row, "metadata", _any_text) or "",
    )


def _leader_epoch(row: Mapping[str, Any]) -> int:
    found = _or_none(row, "leader_epoch", _number(_INT32, _NO_EPOCH))
    return _NO_EPOCH if found is None else int(found)


def _listed(row: Mapping[str, Any]) -> ListedRow:
    kind = _of(row, "kind", _text, "offset")
    if kind not in ("offset", _GROUP):
        raise ValueError(f"kind: {kind!r} is neither offset nor group")
    is_deletable = bool(_of(row, "is_deletable", _truth, True))
    is_group = kind == _GROUP
    # A group may have an empty name, which brokers can delete for compatibility, but such a group cannot have offsets.
    group = _of(row, "group_id", _text if is_deletable and not is_group else _any_text, "")
    place = "", 0
    if is_deletable and not is_group:
        place = _of(row, "topic", _text, ""), _of(row, "partition", _number(_INT32), 0)
    return ListedRow(
        is_group,
        group,
        place,
        # Coordinators accept any number as an offset, even a negative one.
        _or_none(row, "offset", _number(_INT64, -(1 << _INT64))),
        _leader_epoch(row) if "leader_epoch" in row else None,
        (_or_none(row, "metadata", _any_text) or "") if "metadata" in row else None,
        _or_none(row, "commit_timestamp_ms", _number(_INT64, -1)),
        is_deletable,
        bool(_of(row, "is_pending", _truth, False)),
        _of(row, "reason", _text, None),
    )


def _of(row: Mapping[str, Any], name: str, parse: Callable[[Any], Any], without: Any) -> Any:
    if name not in row:
        return without
    try:
        return parse(row[name])
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _or_none(row: Mapping[str, Any], name: str, parse: Callable[[Any], Any]) -> Any:
    return None if row.get(name) is None else _of(row, name, parse, None)


def _any_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{_shown(value)} is not a string")
    return value


def _text(value: Any) -> str:
    if not _any_text(value):
        raise ValueError("it is empty")
    return str(value)


def _truth(value: Any) -> bool | None:
    """Reads booleans in upper or lower case, because pandas writes `True`."""
    known = {"true": True, "false": False}
    if isinstance(value, str) and value.lower() in known:
        return known[value.lower()]
    if value is None or isinstance(value, bool):
        return value
    raise ValueError(f"{_shown(value)} is neither true nor false")


def _number(bits: int, least: int = 0) -> Callable[[Any], int]:
    """Reads whole numbers as in CSV, and as pandas writes them if other values in the column are null."""

    def number(value: Any) -> int:
        found = None if isinstance(value, bool) else _whole(value)
        if found is None:
            raise ValueError(f"{_shown(value)} is not a whole number")
        if not least <= found < 1 << bits:
            raise ValueError(f"{value} is out of range")
        return found

    return number


def _whole(value: Any) -> int | None:
    """The whole number that a value represents; None if it is not one. Raises ValueError for a float that may have been
    a different number before conversion."""
    if isinstance(value, int):
        return value
    is_whole = isinstance(value, float) and value.is_integer()
    match = _WHOLE.fullmatch(f"{value:.1f}" if is_whole else value) if is_whole or isinstance(value, str) else None
    if match is None:
        return None
    number = int(match[1])
    if match[2] and abs(number) > _EXACT:
        raise ValueError(f"{value} was a floating point number, which is not exact beyond {_EXACT}")
    return number


def _shown(value: Any) -> str:
    return "null" if value is None else repr(value)


def rows_of_content(content: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row of a file: the number of the line or row, and the values by column. Raises ValueError."""
    for at, row in _rows(content):
        if not isinstance(row, dict):
            raise ValueError(f"{at}: it is not an object")
        yield at, row


def _rows(content: bytes) -> Iterator[tuple[str, Any]]:
    content = content.removeprefix(_BYTE_ORDER_MARK)
    if content.startswith(_PARQUET):
        from pyarrow import parquet

        rows = parquet.read_table(io.BytesIO(content)).to_pylist()
        yield from ((f"row {number}", _with_nulls(row)) for number, row in enumerate(rows, 1))
    elif content.lstrip()[:1] == b"[":
        yield from ((f"row {number}", row) for number, row in enumerate(json.loads(content), 1))
    elif content.lstrip()[:1] == b"{":
        for number, line in enumerate(content.decode().split("\n"), 1):
            if line.strip():
                try:
                    row = json.loads(line)
                except json.JSONDecodeError as error:
                    raise ValueError(f"line {number}: {error}") from None
                yield f"line {number}", row
    elif content.strip():
        yield from ((f"row {number}", row) for number, row in enumerate(_of_csv(content), 1))


def _with_nulls(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with null in place of NaN, because pandas writes null as NaN."""
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}


def _of_csv(content: bytes) -> list[dict[str, Any]]:
    """All columns as strings. An empty field is null; two quotes are the empty string."""
    from pyarrow import csv, string

    header, _, _ = content.partition(b"\n")
    names = next(reader([header.decode()]))
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise ValueError(f"it has no column {missing[0]} (required: {', '.join(_NEEDED)})")
    texts = csv.ConvertOptions(
        column_types={name: string() for name in names},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    rows: list[dict[str, Any]] = csv.read_csv(
        io.BytesIO(content),
        # If a pyarrow thread is still running when the process exits with an error, it would abort the process.
        read_options=csv.ReadOptions(use_threads=False),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=texts,
    ).to_pylist()
    return rows
