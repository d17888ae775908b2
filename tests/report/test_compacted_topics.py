"""A topic that is compacted while one group is two files behind, and another one is in the newest file."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_records.cluster_metadata import encode_record as encode_metadata
from kafka_records.cluster_metadata.config_record import ConfigRecord
from kafka_records.cluster_metadata.topic_record import TopicRecord
from kafka_records.consumer_offsets import encode_record
from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.making import read_report
from tests.log.logs import batch, record

T0 = 1_700_000_000_000
SECOND = 1000
END = 350
KEPT = [40, 90, 130, 199, 240, *range(300, END)]
"""The offsets that a cleaner has left; a record is written each second, so they are seconds too."""


def _write(folder: Path, *batches: tuple[int, int, bytes], starts: tuple[int, ...] = (0,)) -> None:
    """A log of batches with one record each: offset, second and record; its files begin at `starts`."""
    folder.mkdir(parents=True)
    for start, end in zip(starts, (*starts[1:], 2**62), strict=True):
        parts = [batch(made, 1, offset=at, timestamp=T0 + s * SECOND) for at, s, made in batches if start <= at < end]
        (folder / f"{start:020}.log").write_bytes(b"".join(parts))


def _directory(folder: Path, policies: list[tuple[int, str]], slow: list[int]) -> Path:
    """A data directory: `slow` commits at these offsets, and `fast` at each tenth, each when it is written."""
    configs = [(at, ConfigRecord(2, "orders", "cleanup.policy", policy)) for at, policy in policies]
    told: list[tuple[int, TopicRecord | ConfigRecord]] = [(0, TopicRecord("orders", Uuid(bytes([1]) * 16))), *configs]
    values = [(s, encode_metadata(None, value)[1]) for s, value in told]
    _write(folder / "__cluster_metadata-0", *((at, s, record(0, None, each)) for at, (s, each) in enumerate(values)))
    commits = sorted([(at, "slow") for at in slow] + [(at, "fast") for at in range(10, END + 1, 10)])
    made = []
    for number, (at, group) in enumerate(commits):
        value = OffsetCommitValue(offset=at, commit_timestamp=T0 + at * SECOND)
        made.append((number, at, record(0, *encode_record(OffsetCommitKey(group=group, topic="orders"), value))))
    _write(folder / "__consumer_offsets-0", *made)
    _write(folder / "orders-0", *((at, at, record(0, b"k", b"v")) for at in KEPT), starts=(0, 100, 200, 300))
    return folder


@pytest.mark.parametrize(
    ("policies", "slow", "is_found"),
    [
        ([(100, "compact")], [40, 60, 320], True),
        ([(100, "compact"), (330, "delete")], [40, 60, 320], True),
        ([(0, "compact")], [40, 60, 320], False),
        ([(100, "compact"), (200, "delete")], [40, 60, 320], False),
        ([(100, "compact")], [40, *range(60, 320, 30)], False),
    ],
    ids=["behind", "over", "from_the_beginning", "not_at_that_time", "in_the_newest_file"],
)
def test_a_group_that_is_files_behind_may_miss_what_is_compacted(
    tmp_path: Path, policies: list[tuple[int, str]], slow: list[int], is_found: bool
) -> None:
    folder = _directory(tmp_path / "data", policies, slow)
    found = [each for each in read_report(folder, processes=1).findings if each.kind == "compacted_before_read"]
    assert len(found) == is_found
    for each in found:
        assert (each.level, each.group_ids, each.since_timestamp_ms) == (Level.MODERATE, ("slow",), T0 + 100 * SECOND)
        # It went from 60 to 320, and its commit there shows that it read one record.
        assert each.scale == {"records_possibly_lost": 320 - 60 - 1, "groups": 1}
        assert each.measured["removed"] == END - len(KEPT)
        assert [cause.confidence for cause in each.causes] == ["high"]
        assert '"fast" stayed in the newest file' in each.problem
        assert each.is_going_on is (len(policies) == 1)
        assert ("cleanup.policy=delete" in str(each.next[0].command)) is (len(policies) == 1)
