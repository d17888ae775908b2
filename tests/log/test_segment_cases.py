"""Segments written by Kafka's own builders: every field that Kafka read back from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_records_engine.findings import Finding
from kafka_records_engine.log.format.batches import RawRecord
from tests.log.log_batches import LogBatch, read_batches
from tests.log.logs import read_both, segment_cases, write_log

CASES = segment_cases()["segments"]
TYPES = {"create": "CreateTime", "log_append": "LogAppendTime", None: "NoTimestampType"}


def hexed(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def batch_fields(each: LogBatch, expected: dict[str, Any]) -> dict[str, Any]:
    batch = each.batch
    fields = {
        "magic": batch.magic,
        "base_offset": each.base_offset,
        "last_offset": batch.last_offset,
        "next_offset": batch.last_offset + 1,
        "size_in_bytes": batch.size,
        "compression": batch.codec_name,
        "timestamp_type": TYPES[batch.timestamp_type],
        "max_timestamp": batch.max_timestamp,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "partition_leader_epoch": batch.leader_epoch,
        "is_transactional": batch.is_transactional,
        "is_control": batch.is_control,
        "crc": batch.crc,
        "count": batch.count,
        "delete_horizon_ms": batch.delete_horizon_ms,
        "is_valid": True,
        "records": [record_fields(each, number) for number in range(len(each.records))],
    }
    # Kafka's view of magic 0 and 1 has no such fields.
    return {name: value for name, value in fields.items() if name in expected or batch.magic == 2}


def record_fields(each: LogBatch, number: int) -> dict[str, Any]:
    record: RawRecord = each.records[number]
    fields: dict[str, Any] = {
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "sequence": record.sequence,
        "key_hex": hexed(record.key),
        "value_hex": hexed(record.value),
        "headers": [[header.key, hexed(header.value)] for header in record.headers],
    }
    if each.batch.is_control:
        marker = each.markers[number]
        fields["control_type"] = marker.control.upper() if marker and marker.control else None
    return fields


def test_all_cases_are_there() -> None:
    assert len(CASES) == 18
    assert all("records" in batch for case in CASES for batch in case["batches"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_every_field(case: dict[str, Any], tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: bytes.fromhex(case["segment_hex"])})
    findings: list[Finding] = []
    found = list(read_batches(log, on_finding=findings.append))
    assert findings == []
    assert [batch_fields(each, expected) for each, expected in zip(found, case["batches"], strict=True)] == case[
        "batches"
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_rows_hold_the_same(case: dict[str, Any], tmp_path: Path) -> None:
    rows, _, findings = read_both(write_log(tmp_path, {0: bytes.fromhex(case["segment_hex"])}))
    assert findings == []
    expected = [(batch, record) for batch in case["batches"] for record in batch["records"]]
    for row, (batch, record) in zip(rows, expected, strict=True):
        assert row["topic"] == "__consumer_offsets"
        assert row["partition"] == 0
        assert row["offset"] == record["offset"]
        assert row["timestamp_ms"] == record["timestamp"]
        assert TYPES[row["timestamp_type"]] == batch["timestamp_type"]
        assert hexed(row["key"]) == record["key_hex"]
        assert hexed(row["value"]) == record["value_hex"]
        assert row["base_offset"] == batch["base_offset"]
        assert row["leader_epoch"] == batch["partition_leader_epoch"]
        assert row["producer_id"] == batch["producer_id"]
        assert row["producer_epoch"] == batch["producer_epoch"]
        assert row["control"] == (record["control_type"].lower() if batch["is_control"] else None)


def test_transaction_states(tmp_path: Path) -> None:
    (case,) = (case for case in CASES if case["name"] == "transactional commit then abort")
    rows, _, _ = read_both(write_log(tmp_path, {0: bytes.fromhex(case["segment_hex"])}))
    assert [(row["transaction"], row["control"]) for row in rows] == [
        ("committed", None),
        ("committed", "commit"),
        ("aborted", None),
        ("aborted", "abort"),
    ]
