"""Takes real segments apart, and builds log partitions from their pieces."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from struct import pack, pack_into, unpack_from
from typing import Any

from kafka_records_engine.findings import Finding
from kafka_records_engine.log.format.batches import RawRecord, computed_crc
from kafka_records_engine.log.reading.segment_files import (
    FoundLog,
    LogRecord,
    find_logs,
    open_log,
    read_log,
    read_partition,
)

DATA = Path(__file__).resolve().parent.parent / "data"
TOPICS = DATA / "topics"
CAPTURES = ("kafka-2.8", "kafka-4.3", "kafka-4.3-expiry")


@cache
def segment_cases() -> Any:
    return json.loads((DATA / "kafka" / "segment-cases.json").read_text("utf-8"))


@cache
def case(name: str) -> bytes:
    """The bytes of a segment that Kafka's own builders wrote."""
    (found,) = (each for each in segment_cases()["segments"] if each["name"] == name)
    return bytes.fromhex(found["segment_hex"])


def captured_logs() -> list[FoundLog]:
    return [log for capture in CAPTURES for log in find_logs([TOPICS / capture / "segments"])]


def entries_of(data: bytes) -> list[bytes]:
    """A segment without damage, entry by entry."""
    entries = []
    at = 0
    while at < len(data):
        end = at + 12 + unpack_from(">i", data, at + 8)[0]
        entries.append(data[at:end])
        at = end
    return entries


def changed(entry: bytes, at: int, new: bytes, *, crc: bool = True) -> bytes:
    """`entry` with `new` at byte `at`; with a right CRC by default."""
    altered = entry[:at] + new + entry[at + len(new) :]
    return with_right_crc(altered) if crc else altered


def with_right_crc(entry: bytes) -> bytes:
    sized = bytearray(entry)
    pack_into(">i", sized, 8, len(entry) - 12)
    magic = sized[16]
    pack_into(">I", sized, 17 if magic == 2 else 12, computed_crc(magic, bytes(sized)))
    return bytes(sized)


def batch(
    records: bytes,
    count: int,
    *,
    offset: int = 0,
    last_delta: int | None = None,
    attributes: int = 0,
    producer_id: int = -1,
    timestamp: int = 1000,
) -> bytes:
    """A magic 2 batch around some record bytes, with a right CRC."""
    last = max(count - 1, 0) if last_delta is None else last_delta
    head = pack(">qiiBIhiqqqhii", offset, 0, 3, 2, 0, attributes, last, timestamp, timestamp, producer_id, 0, -1, count)
    return with_right_crc(head + records)


def record(delta: int, key: bytes | None, value: bytes | None) -> bytes:
    """A record of a magic 2 batch with small numbers."""
    body = b"\0\0" + zigzag(delta)
    for part in (key, value):
        body += zigzag(-1) if part is None else zigzag(len(part)) + part
    body += zigzag(0)
    return zigzag(len(body)) + body


def zigzag(value: int) -> bytes:
    unsigned = (value << 1) ^ (value >> 63)
    unsigned &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while unsigned >= 0x80:
        out.append(unsigned & 0x7F | 0x80)
        unsigned >>= 7
    out.append(unsigned)
    return bytes(out)


def marker(offset: int, producer_id: int, kind: int) -> bytes:
    """A control batch of type `kind`: 0 abort, 1 commit."""
    body = record(0, pack(">hh", 0, kind), pack(">hi", 0, 7))
    return batch(body, 1, offset=offset, attributes=0x30, producer_id=producer_id)


def commit(offset: int, producer_id: int = -1, value: bytes = b"v") -> bytes:
    """A batch with one record; part of a transaction if it has a producer."""
    attributes = 0 if producer_id < 0 else 0x10
    return batch(record(0, b"k%d" % offset, value), 1, offset=offset, attributes=attributes, producer_id=producer_id)


def write_log(folder: Path, files: Mapping[int, bytes], name: str = "__consumer_offsets-0") -> FoundLog:
    """Write a partition folder with these files, and find it."""
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    for base_offset, data in files.items():
        (place / f"{base_offset:020}.log").write_bytes(data)
    (log,) = find_logs([place])
    return log


def files_of(log: FoundLog) -> list[str]:
    """The names of the files that are read, in order."""
    with open_log(log) as opened:
        return [Path(segment.path).name for segment in opened.segments]


def read_both(log: FoundLog) -> tuple[list[dict[str, Any]], list[LogRecord], list[Finding]]:
    """All rows, all records, and the findings, on which both readers must agree."""
    findings: list[Finding] = []
    plain: list[Finding] = []
    batches = list(read_partition(log, below_log_start=True, on_finding=findings.append))
    for each in batches:
        each.validate(full=True)
    rows = [row for each in batches for row in each.to_pylist()]
    records = list(read_log(log, on_finding=plain.append))
    assert findings == plain
    assert [coordinates(row) for row in rows] == [as_row(record) for record in records if is_row(record)]
    return rows, records, findings


def is_row(record: LogRecord) -> bool:
    """Whether a record is a row: control records that end no transaction are not."""
    return not record.batch.is_control or record.control is not None


def coordinates(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(value for name, value in row.items() if name != "base_offset")


def as_row(each: LogRecord) -> tuple[Any, ...]:
    record: RawRecord = each.record
    return (
        each.topic,
        each.partition,
        record.offset,
        record.timestamp_ms,
        each.batch.timestamp_type,
        record.key,
        record.value,
        each.batch.leader_epoch,
        each.batch.producer_id,
        each.batch.producer_epoch,
        each.transaction,
        each.control,
    )


def lines(findings: Iterable[Finding], folder: Path) -> list[str]:
    """The printed findings, with paths below `folder`."""
    return [str(finding).replace(f"{folder}/", "") for finding in findings]
