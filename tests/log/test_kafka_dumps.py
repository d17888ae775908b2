"""Captured topics, compared line by line with the output of Kafka's own dump tools."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka_records_engine.log.format.batches import RawRecord
from kafka_records_engine.log.reading.segment_files import FoundLog, find_logs
from tests.log.log_batches import LogBatch, read_batches
from tests.log.logs import CAPTURES, TOPICS

FOLDERS = [(capture, folder) for capture in CAPTURES for folder in ("dump", "dump-4.3")]
DUMPS = [(capture, file) for capture, folder in FOLDERS for file in sorted((TOPICS / capture / folder).glob("*.txt"))]
LINE = re.compile(r"(\w+): (\[[^]]*]|\S+)")
TIMES = {"create": "CreateTime", "log_append": "LogAppendTime", None: "NoTimestampType"}


def batch_line(each: LogBatch) -> dict[str, str]:
    """Everything that any of the two tools prints for a batch."""
    batch = each.batch
    horizon = batch.delete_horizon_ms
    fields: dict[str, object] = {
        "baseOffset": batch.offset,
        "offset": batch.offset,
        "lastOffset": batch.last_offset,
        "count": batch.count,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "partitionLeaderEpoch": batch.leader_epoch,
        "isTransactional": str(batch.is_transactional).lower(),
        "isControl": str(batch.is_control).lower(),
        "deleteHorizonMs": "OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]",
        "position": batch.position,
        TIMES[batch.timestamp_type]: batch.max_timestamp,
        "size": batch.size,
        "magic": batch.magic,
        "compresscodec": batch.codec_name,
        "crc": batch.crc,
        "isvalid": "true",
    }
    return {name: str(value) for name, value in fields.items()}


def record_line(each: LogBatch, number: int) -> dict[str, str]:
    """Everything that any of the two tools prints for a record, key and payload aside."""
    batch, record = each.batch, each.records[number]
    fields: dict[str, object] = {
        "offset": record.offset,
        TIMES[batch.timestamp_type]: record.timestamp_ms,
        "keySize": size(record.key),
        "valueSize": size(record.value),
        "sequence": record.sequence,
        "headerKeys": f"[{','.join(header.key for header in record.headers)}]",
        "isValid": "true",
        "isvalid": "true",
        "baseOffset": each.base_offset,
        "lastOffset": batch.last_offset,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "producerEpoch": batch.producer_epoch,
        "partitionLeaderEpoch": batch.leader_epoch,
        "batchSize": batch.size,
        "magic": batch.magic,
        "compressType": batch.codec_name,
        "position": batch.position,
    }
    if batch.is_control:
        marker = each.markers[number]
        assert marker is not None
        fields["endTxnMarker"] = str(marker.control).upper()
        fields["coordinatorEpoch"] = marker.coordinator_epoch
    return {name: str(value) for name, value in fields.items()}


def size(part: bytes | None) -> int:
    return -1 if part is None else len(part)


def check(printed: str, ours: dict[str, str], optional: set[str]) -> None:
    """Check that every pair on the line is one of ours, and that only `optional` pairs of ours are missing from it."""
    pairs = dict(LINE.findall(printed.partition(" key: ")[0].removeprefix("| ")))
    for name in ("compresscodec", "compressType"):
        if name in pairs:
            pairs[name] = pairs[name].lower()
    if printed.startswith("|"):
        pairs.pop("crc", None)  # that of an inner message, or null
    assert pairs.items() <= ours.items(), printed
    assert ours.keys() - pairs.keys() <= optional, printed


def segment_log(capture: str, dump: Path) -> FoundLog:
    partition, offset = dump.name.removesuffix(".txt").split(".")
    (log,) = find_logs([TOPICS / capture / "segments" / partition / f"{offset}.log"])
    return log


@pytest.mark.parametrize(("capture", "dump"), DUMPS, ids=[f"{c}-{d.parent.name}-{d.stem}" for c, d in DUMPS])
def test_every_line(capture: str, dump: Path) -> None:
    found = list(read_batches(segment_log(capture, dump)))
    printed = iter(dump.read_text("utf-8").splitlines()[2:])
    lines = 0
    for each in found:
        line = next(printed)
        old = {"offset"} if each.batch.magic == 2 else set(batch_line(each)) - {"offset", "position", "size", "crc"}
        check(line, batch_line(each), {"deleteHorizonMs", *old})
        for number, record in enumerate(each.records):
            line = next(printed)
            check(line, record_line(each, number), optional_of(record_line(each, number), line, record))
            lines += 1
    assert next(printed, None) is None
    assert lines == sum(len(each.records) for each in found)


def optional_of(ours: dict[str, str], line: str, record: RawRecord) -> set[str]:
    """The fields that this tool does not print for records of this format."""
    always = {"offset", "keySize", "valueSize"} | ({"endTxnMarker", "coordinatorEpoch"} & ours.keys())
    if "sequence" in line.partition(" key: ")[0]:
        always |= {"sequence", "headerKeys"}
    return set(ours) - always


def test_every_segment_has_its_dump() -> None:
    dumped = {(capture, dump.name.removesuffix(".txt")) for capture, dump in DUMPS if dump.parent.name == "dump"}
    segments = {
        (capture, f"{file.parent.name}.{file.stem}")
        for capture in CAPTURES
        for file in (TOPICS / capture / "segments").glob("*/*.log")
    }
    assert dumped == segments
    assert len([1 for _, dump in DUMPS if dump.parent.name == "dump-4.3"]) == 11


def test_dumps_of_all_lines_were_compared() -> None:
    text = [line for _, dump in DUMPS for line in dump.read_text("utf-8").splitlines()[2:]]
    assert sum(line.startswith("| offset: ") for line in text) == 2215
    assert sum("endTxnMarker: " in line for line in text) == 39
