"""Large records that no longer arrive since a limit was lowered."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from kafka_records.cluster_metadata import encode_record
from kafka_records.cluster_metadata.config_record import ConfigRecord
from kafka_records_tables.report.facts import config_changes, last_batches
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import ReportFinding
from tests.log.logs import batch, marker, record
from tests.report.made_up_cluster import MINUTE, SECOND
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found, _read

KIND: Final = "large_records_refused"
THEN: Final = END_MS - 2 * MINUTE
OWN, OF_BROKERS = "max.message.bytes", "message.max.bytes"
Row = dict[str, Any]


def _set(value: str | None, name: str = OWN, *, before: str | None = None, at_ms: int | None = THEN) -> Row:
    kind, resource = ("topic", "images") if name == OWN else ("broker", "")
    row = {"resource_type": kind, "resource_name": resource, "name": name, "value": value, "before": before}
    return row | {"at_timestamp_ms": at_ms, "log_offset": 9}


def _batches(*sizes: tuple[int, int, int]) -> Row:
    """Time, records and bytes of each."""
    names = ("timestamp_ms", "records", "bytes")
    batches = [dict(zip(names, each, strict=True)) | {"offset": at} for at, each in enumerate(sizes)]
    return {"topic": "images", "partition": 0, "batches": batches}


def _of(
    rows: list[Row], *, records: int = 1, every_ms: int = SECOND, also: tuple[int, int] | None = None
) -> list[ReportFinding]:
    """A small batch each second, and a large one each `every_ms` for a minute before the change; `also` is the time and
    size of one more."""
    small = [(at, 1, 500) for at in range(THEN - MINUTE, END_MS, SECOND)]
    large = [(at, records, 6000) for at in range(THEN - MINUTE, THEN, every_ms)]
    more = [] if also is None else [(also[0], 1, also[1])]
    looks = {"config_changes": rows, "last_batches": [_batches(*sorted(small + large + more))]}
    ends = [{"topic": name, "partition": 0} for name in ("images", "__consumer_offsets")]
    return _found(_context(looks, log_ends=ends), KIND)


def test_large_records_do_not_come_since_the_limit_was_lowered() -> None:
    (found,) = _of([_set("4096")])
    assert (found.level, found.topics, found.since_timestamp_ms) == (Level.HIGH, ("images",), THEN)
    assert found.scale == {"large_batches_before": 60, "records_possibly_refused": 120}
    assert [(each.name, each.confidence) for each in found.causes] == [
        ("limit_lowered", "medium"),
        ("sent_no_more", "low"),
    ]
    assert "from 1048588 to 4096" in found.problem
    assert str(found.next[0].command).endswith("--entity-name images --delete-config max.message.bytes")


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        ([_set("4096", before="8192")], 1),
        ([_set("8192", before="4096")], 0),
        ([_set("8192")], 0),
        ([_set("4096", at_ms=None)], 0),
        ([_set("4096", at_ms=THEN - SECOND), _set("8192", before="4096")], 0),
        ([_set(None, before="4096")], 0),
        ([_set("4096", OF_BROKERS)], 1),
        ([_set("4096", OF_BROKERS), _set("8192", at_ms=None)], 0),
        ([_set("4096", OF_BROKERS, at_ms=None), _set(None, before="8192")], 1),
        ([_set("1", "min.insync.replicas")], 0),
    ],
    ids=[
        "lowered",
        "raised",
        "nothing_was_larger",
        "in_a_checkpoint",
        "set_right_again",
        "removed",
        "of_brokers",
        "of_brokers_but_the_topic_has_its_own",
        "back_to_that_of_brokers",
        "another_config",
    ],
)
def test_which_changes_refuse_records(rows: list[Row], count: int) -> None:
    assert len(_of(rows)) == count


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ({"records": 2}, 0),
        ({"every_ms": 30 * SECOND}, 0),
        ({"every_ms": 20 * SECOND}, 1),
        ({"also": (THEN + MINUTE, 6000)}, 0),
        ({"also": (THEN + SECOND, 6000)}, 1),
        ({"records": 2, "also": (THEN - SECOND, 5000)}, 0),
    ],
    ids=[
        "producers_split_batches",
        "too_rare_to_tell",
        "just_often_enough",
        "one_came_later",
        "one_came_before_brokers_applied_it",
        "one_of_one_record_is_rare",
    ],
)
def test_which_batches_show_it(given: dict[str, Any], count: int) -> None:
    assert len(_of([_set("4096")], **given)) == count


def test_configs_and_batches_are_read_from_files(tmp_path: Path) -> None:
    told = [
        ConfigRecord(2, "images", OWN, "4096"),
        ConfigRecord(2, "images", "segment.ms", "1"),
        ConfigRecord(2, "images", OWN, None),
        ConfigRecord(32, "scalers", "share.record.lock.duration.ms", "1500"),
        ConfigRecord(32, "scalers", "share.auto.offset.reset", "earliest"),
    ]
    values = [encode_record(None, each)[1] for each in told]
    large = record(0, b"k", bytes(5000)) + record(1, b"k", b"")
    logs = {
        "__cluster_metadata-0": [
            batch(record(0, None, each), 1, offset=at, timestamp=THEN + at) for at, each in enumerate(values)
        ],
        "images-0": [
            batch(record(0, b"k", b"v"), 1, timestamp=THEN),
            marker(1, 5, 1),
            batch(large, 2, offset=2, timestamp=END_MS),
        ],
    }
    for name, parts in logs.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{0:020}.log").write_bytes(b"".join(parts))
    changes = _read(config_changes.TABLE, tmp_path)
    assert [(each["resource_name"], each["value"], each["before"], each["at_timestamp_ms"]) for each in changes] == [
        ("images", "4096", None, THEN),
        ("images", None, "4096", THEN + 2),
        ("scalers", "1500", None, THEN + 3),
    ]
    (batches,) = [each["batches"] for each in _read(last_batches.TABLE, tmp_path) if each["topic"] == "images"]
    sizes = [len(logs["images-0"][at]) for at in (0, 2)]
    assert [(each["offset"], each["timestamp_ms"], each["records"], each["bytes"]) for each in batches] == [
        (0, THEN, 1, sizes[0]),
        (2, END_MS, 2, sizes[1]),
    ]
