"""One run of `kafka-records explain`, which shows a message, a record, or lines of `kafka-records dump --bytes` byte by
byte."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kafka_records_runtime.errors import UnsupportedVersion
from kafka_records_runtime.kafka.config_names import REDACTED
from kafka_records_runtime.records.explain import Line, explain_key, explain_message, explain_record, explain_text
from kafka_records_runtime.records.framing import COORDINATOR, PREFIX, framing_of, newer_as_highest, prefix_of
from kafka_records_runtime.schema import covers
from kafka_records_runtime.text.printable import printable
from kafka_records_tables.console.endings import DAMAGE, OK, CommandError
from kafka_records_tables.console.standard_error import say

if TYPE_CHECKING:
    from kafka_records_tables.commands.catalog import Catalog


def explain_one_message(catalog: Catalog, name: str, version: int, text: str, *, show_secrets: bool = False) -> int:
    """Print the bytes of a message, given in hex or as `-`, and return the exit status."""
    schema = catalog.message(name)
    if not covers(schema.versions, version):
        lowest, highest = schema.versions or (0, -1)
        raise CommandError(str(UnsupportedVersion(schema.name, version, range(lowest, highest + 1))))
    return _print(explain_message(schema, version, _bytes(text, "the message"), show_secrets=show_secrets))


def explain_one_record(
    catalog: Catalog, topic: str, key_text: str | None, value_text: str | None, *, show_secrets: bool = False
) -> int:
    """Print the key and value of a record of `topic`, and return the exit status. Each is in hex, `-`, or None if
    unknown. The value `null` means a tombstone."""
    schemas, retired = catalog.records(topic), catalog.retired(topic)
    key = None if key_text is None else _bytes(key_text, "--key")
    if key is not None and value_text is None:
        return _print(explain_key(schemas, key, retired))
    value = None if value_text is None or value_text == "null" else _bytes(value_text, "--value")
    if key is None and framing_of(schemas) == COORDINATOR:
        say("note: without --key, the record type is unknown, so the value is shown as bytes")
    return _print(explain_record(schemas, key, value, retired, show_secrets=show_secrets))


def explain_dumped_records(catalog: Catalog, *, show_secrets: bool = False) -> int:
    """Print the records in the lines of standard input, in order, and return the exit status."""
    status = OK
    try:
        for text, is_broken in explain_dumped(sys.stdin, catalog, show_secrets=show_secrets):
            sys.stdout.write(text)
            sys.stdout.flush()  # the next line may come much later, because dump can follow a log
            status = DAMAGE if is_broken else status
    except UnicodeDecodeError:
        raise CommandError("standard input contains no lines of dump: it is not text") from None
    return status


def _print(lines: Iterable[Line]) -> int:
    explained = [*lines]
    sys.stdout.write(explain_text(explained))
    return DAMAGE if _is_broken(explained) else OK


def _bytes(text: str, what: str) -> bytes:
    if text == "-":
        try:
            text = sys.stdin.read()
        except UnicodeDecodeError:
            raise CommandError(f"{what} is not hex: standard input is not text") from None
    digits = re.sub(r"[\s:]", "", text)
    digits = digits.removeprefix("0x").removeprefix("0X")
    wrong = re.search(r"[^0-9a-fA-F]", digits)
    if wrong:
        raise CommandError(f"{what} is not hex: {wrong[0]!r} after {wrong.start()} digits")
    if len(digits) % 2:
        raise CommandError(f"{what} is not hex: {len(digits)} digits, but each byte needs two")
    return bytes.fromhex(digits)


# -- lines of dump -----------------------------------------------------------------------------------------------------


def explain_dumped(lines: Iterable[str], catalog: Catalog, *, show_secrets: bool = False) -> Iterator[tuple[str, bool]]:
    """The explanation of each line, under a heading with the position of the record, and a flag that says whether the
    record is broken.

    Raises a CommandError for a line that `dump` did not write, or wrote without bytes.
    """
    is_first = True
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        record = _parsed(number, line)
        explained = [*_explained(number, record, catalog, show_secrets)]
        place = printable(f"{record['topic']}-{record['partition']}, offset {record['offset']}")
        yield f"{'' if is_first else chr(10)}{place}\n{explain_text(explained)}", _is_broken(explained)
        is_first = False


def _parsed(number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    if not isinstance(record, dict) or not {"topic", "partition", "offset", "control"} <= record.keys():
        raise CommandError(f"line {number} of standard input is not a line of dump")
    if not {"raw_key", "raw_value"} <= record.keys():
        raise CommandError(f"line {number} of standard input has no raw_key and raw_value: add them with dump --bytes")
    return record


def _explained(number: int, record: dict[str, Any], catalog: Catalog, show_secrets: bool) -> Iterator[Line]:
    try:
        key, value = (
            None if record[name] is None else bytes.fromhex(record[name]) for name in ("raw_key", "raw_value")
        )
    except (TypeError, ValueError):
        raise CommandError(f"line {number} of standard input has a raw_key or raw_value that is not hex") from None
    if value is None and record.get("value") is not None and not record.get("error"):
        return iter([Line(None, "", "", "", f"value {REDACTED}: dump --bytes --show-secrets has its bytes")])
    if record["control"] is not None:
        return _explained_marker(str(record["control"]), key or b"", value or b"")
    topic = str(record["topic"])
    return explain_record(catalog.records(topic), key, value, catalog.retired(topic), show_secrets=show_secrets)


def _explained_marker(control: str, key: bytes, value: bytes) -> Iterator[Line]:
    """The two messages of a control record, each after its int16 version. As in Kafka, a newer version is read as the
    highest known one. In the control records of a quorum, the message itself contains the version."""
    from kafka_records.schemas.control import CONTROL_RECORD_TYPE_SCHEMA, END_TXN_MARKER
    from kafka_records_tables.commands import quorum_records

    of_quorum = quorum_records.SCHEMAS.get(control)
    framed = ((CONTROL_RECORD_TYPE_SCHEMA, key), *([] if of_quorum else [(END_TXN_MARKER, value)]))
    for schema, data in framed:
        version = newer_as_highest(schema, prefix_of(data) or 0)
        yield from explain_message(schema, version, data[PREFIX.size :])
    if of_quorum is not None:
        yield from explain_message(of_quorum, quorum_records.VERSION, value)


def _is_broken(lines: list[Line]) -> bool:
    return any(line.type == "error" for line in lines)
