"""Maps columns of saved rows to columns of raw rows: by their names, or as the caller specifies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from kafka_records_engine.log.files.source_error import LacksColumns, LogSourceError
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources._saved.texts import Encoding
from kafka_records_runtime.text.close_names import close_name
from kafka_records_runtime.text.printable import printable

NEEDED: Final = ("partition", "offset", "key", "value")
"""Required columns; the caller may give the topic instead."""

BYTES: Final = ("key", "value")

_SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "topic": ("topic", "topicname", "kafkatopic", "recordtopic"),
    "partition": ("partition", "partitionid", "kafkapartition", "recordpartition", "topicpartition"),
    "offset": ("offset", "kafkaoffset", "recordoffset", "messageoffset", "logoffset"),
    "timestamp_ms": ("timestampms", "timestamp", "ts", "kafkatimestamp", "recordtimestamp", "logtimestamp"),
    "timestamp_type": ("timestamptype", "tstype"),
    "key": ("key", "rawkey", "keybytes", "recordkey", "kafkakey", "messagekey"),
    "value": ("value", "payload", "rawvalue", "valuebytes", "recordvalue", "kafkavalue", "messagevalue", "message"),
    "leader_epoch": ("leaderepoch",),
    "base_offset": ("baseoffset", "batchoffset"),
    "producer_id": ("producerid",),
    "producer_epoch": ("producerepoch",),
    "transaction": ("transaction", "istransactional"),
    "control": ("control",),
}
"""Names without underscores, more common ones first, as used by Spark's Kafka source, kcat, sink connectors and
`dump`."""

_ENCODED: Final[tuple[tuple[str, Encoding], ...]] = (("base64", "base64"), ("b64", "base64"), ("hex", "hex"))
"""Name suffixes that say how a string encodes bytes."""


@dataclass(frozen=True, slots=True)
class TakenColumn:
    """A file's column that is used for a column of raw rows."""

    raw: str
    column: str
    """The name of the column in the file; dots separate nested members."""
    type: Any
    encoding: Encoding | None = None
    """How the strings in the column encode bytes, if the column name says so."""


def taken_columns(
    file: str, fields: Mapping[str, Any], asked: Mapping[str, str | None], given: Iterable[str]
) -> dict[str, TakenColumn]:
    """The file's columns to use, by their names in raw rows.

    Parameters
    ----------
    file
        The file, for messages.
    fields
        The types of its columns by name.
    asked
        The caller's choice: for a column of raw rows, the column of the file; None if there is no such column.
    given
        The columns of raw rows that are known without the file (from folder names or the caller).

    Raises
    ------
    LogSourceError
        If a given column does not exist or has an unsuitable type, if a required column is missing, or if several
        columns match.
    """
    found: dict[str, TakenColumn] = {}
    names = _by_plain_name(fields)
    for raw in RAW_SCHEMA.names:
        if raw in asked:
            column = asked[raw]
            if column is not None:
                found[raw] = _asked(file, raw, column, fields)
            continue
        taken = _guessed(file, raw, fields, names)
        if taken is not None:
            found[raw] = taken
    missing = [raw for raw in NEEDED if raw not in found and raw not in given and asked.get(raw, "") is not None]
    if missing:
        raise LacksColumns(file, _lacking(missing, fields, given))
    return found


def _asked(file: str, raw: str, column: str, fields: Mapping[str, Any]) -> TakenColumn:
    kind = type_of(column, fields)
    if kind is None:
        close = close_name(column, fields)
        there = f"did you mean {close}?" if close else f"there are {_listed(fields)}"
        raise LogSourceError(file, f"there is no column {printable(column)} to use for {raw}; {there}")
    if raw in BYTES and not holds_bytes(kind):
        raise LogSourceError(file, f"the column {printable(column)} is of type {kind}; {raw} takes bytes or text")
    return TakenColumn(raw, column, kind, _encoding_in(column))


def type_of(column: str, fields: Mapping[str, Any]) -> Any:
    """The type of a column or of a nested member; None if there is no such column."""
    if column in fields:
        return fields[column]
    name, dot, rest = column.partition(".")
    while dot:
        kind = fields.get(name)
        if kind is not None and pa.types.is_struct(kind):
            inner = type_of(rest, {field.name: field.type for field in kind})
            if inner is not None:
                return inner
        more, dot, rest = rest.partition(".")
        name = f"{name}.{more}"
    return None


def _guessed(file: str, raw: str, fields: Mapping[str, Any], names: Mapping[str, list[str]]) -> TakenColumn | None:
    if raw in fields and _fits(raw, fields[raw]):
        return TakenColumn(raw, raw, fields[raw])
    for spelling in _SPELLINGS[raw]:
        ends = [("", None), *_ENCODED] if raw in BYTES else [("", None)]
        fitting = [
            (column, encoding)
            for end, encoding in ends
            for column in names.get(spelling + end, ())
            if _fits(raw, fields[column])
        ]
        if len(fitting) > 1:
            columns = ", ".join(printable(column) for column, _ in fitting)
            raise LogSourceError(
                file, f"the columns {columns} could all be {raw}: choose one with {how_to_say(raw, fitting[0][0])}"
            )
        if fitting:
            return TakenColumn(raw, fitting[0][0], fields[fitting[0][0]], fitting[0][1])
    return None


def _fits(raw: str, kind: Any) -> bool:
    if raw in BYTES:
        return holds_bytes(kind)
    return not pa.types.is_nested(kind)


def holds_bytes(kind: Any) -> bool:
    """Whether values of an Arrow type are bytes or strings, or all null."""
    return is_text(kind) or is_bytes(kind) or bool(pa.types.is_null(kind))


def is_text(kind: Any) -> bool:
    """Whether values of an Arrow type are strings."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_bytes(kind: Any) -> bool:
    """Whether values of an Arrow type are bytes."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
    )


def plain(name: str) -> str:
    """A name in lower case, without underscores and similar characters."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def raw_name(name: str) -> str | None:
    """The column of raw rows to which a name refers; None if there is none."""
    return next((raw for raw, spellings in _SPELLINGS.items() if plain(name) in spellings), None)


def plain_names() -> list[str]:
    """All plain names that refer to a column of raw rows."""
    ends = ("", *(end for end, _ in _ENCODED))
    return [
        name + end
        for raw, spellings in _SPELLINGS.items()
        for name in spellings
        for end in (ends if raw in BYTES else ("",))
    ]


def _by_plain_name(fields: Iterable[str]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name in fields:
        names.setdefault(plain(name), []).append(name)
    return names


def _encoding_in(column: str) -> Encoding | None:
    name = plain(column)
    return next((encoding for end, encoding in _ENCODED if name.endswith(end)), None)


def _lacking(missing: list[str], fields: Mapping[str, Any], given: Iterable[str]) -> str:
    what = "is no column" if len(missing) == 1 else "are no columns"
    text = f"there {what} for {', '.join(missing)}, but {_listed(fields) or 'none at all'}"
    known = [name for name in given if name in RAW_SCHEMA.names]
    if known:
        text += f" (and {', '.join(known)} by the place of the file)"
    text += f"; choose it with {how_to_say(missing[0], 'NAME')}"
    if missing == ["partition"]:
        text += ", or put the file into a folder partition=N"
    return text


def how_to_say(raw: str, column: str) -> str:
    """The hint in messages on how to choose the file's column for a raw-row column: in Python, on the command line, and
    in Spark."""
    name = printable(column)
    python = f'columns={{"{raw}": "{name}"}}'
    return f"{python}, --saved-column {raw}={name}, or the option 'savedColumns' in Spark"


def _listed(fields: Mapping[str, Any]) -> str:
    return ", ".join(f"{printable(name)} ({kind})" for name, kind in fields.items())
