"""Lines of `kafka-records dump --bytes`, byte by byte."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kafka_records_runtime.explain import explain_message, explain_record, explain_text
from kafka_records_runtime.printable import printable
from kafka_records_tables.cli.failures import CommandError

if TYPE_CHECKING:
    from kafka_records_runtime.explain import Line
    from kafka_records_tables.cli.topics import Catalog

_PREFIX = 2


def explain_dumped(lines: Iterable[str], catalog: Catalog) -> Iterator[tuple[str, bool]]:
    """The explanation of each line under a heading that says where the record stands, and whether it breaks.

    Raises a CommandError for a line that is none of dump with the bytes.
    """
    is_first = True
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        record = _parsed(number, line)
        explained = [*_explained(number, record, catalog)]
        place = printable(f"{record['topic']}-{record['partition']}, offset {record['offset']}")
        yield f"{'' if is_first else chr(10)}{place}\n{explain_text(explained)}", _is_broken(explained)
        is_first = False


def _parsed(number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    if not isinstance(record, dict) or not {"topic", "partition", "offset", "control"} <= record.keys():
        raise CommandError(f"line {number} of standard input is no line of dump")
    if not {"raw_key", "raw_value"} <= record.keys():
        raise CommandError(f"line {number} of standard input has no raw_key and raw_value: dump --bytes adds them")
    return record


def _explained(number: int, record: dict[str, Any], catalog: Catalog) -> Iterator[Line]:
    try:
        key, value = (
            None if record[name] is None else bytes.fromhex(record[name]) for name in ("raw_key", "raw_value")
        )
    except (TypeError, ValueError):
        raise CommandError(f"line {number} of standard input has a raw_key or raw_value that is not hex") from None
    if record["control"] is not None:
        return _explained_marker(key or b"", value or b"")
    return explain_record(catalog.records(str(record["topic"])), key, value)


def _explained_marker(key: bytes, value: bytes) -> Iterator[Line]:
    """The two messages of a control record, each behind its int16 version."""
    from kafka_records.schemas.control import CONTROL_RECORD_TYPE_SCHEMA, END_TXN_MARKER

    for schema, data in ((CONTROL_RECORD_TYPE_SCHEMA, key), (END_TXN_MARKER, value)):
        version = int.from_bytes(data[:_PREFIX], "big", signed=True)
        yield from explain_message(schema, version, data, start=min(_PREFIX, len(data)))


def _is_broken(lines: list[Line]) -> bool:
    return any(line.type == "error" for line in lines)
