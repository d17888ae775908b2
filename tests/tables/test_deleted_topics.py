"""Deleted offsets, if a metadata log shows which topics were deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_records.cluster_metadata import encode_record as encode_metadata
from kafka_records.cluster_metadata.remove_topic_record import RemoveTopicRecord
from kafka_records.cluster_metadata.topic_record import TopicRecord
from kafka_records.consumer_offsets import encode_record
from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_tables import read_table
from tests.log.logs import batch, record

T0 = 1_700_000_000_000
SECOND = 1000
A, B, OTHER = (Uuid(bytes([number]) * 16) for number in (1, 2, 3))


def metadata(folder: Path, *told: tuple[int, Any]) -> None:
    """Write a metadata log: records with the seconds at which each was written."""
    parts = [
        batch(record(0, None, encode_metadata(None, value)[1]), 1, offset=number, timestamp=T0 + after * SECOND)
        for number, (after, value) in enumerate(told)
    ]
    write(folder / "__cluster_metadata-0", parts)


def commits(folder: Path, *told: tuple[int, dict[str, bool]]) -> None:
    """Write a coordinator's log: the second of each write, and for some topics whether it is a commit or a tombstone.
    Commits for another topic come later."""
    later = [(900 + 20 * number, {"zz": True}) for number in range(6)]
    offset, parts = 0, []
    for after, of_batch in (*told, *later):
        at, made = T0 + after * SECOND, b""
        for number, (topic, is_commit) in enumerate(of_batch.items()):
            value = OffsetCommitValue(offset=1, commit_timestamp=at) if is_commit else None
            made += record(number, *encode_record(OffsetCommitKey(group="g", topic=topic, partition=0), value))
        parts.append(batch(made, len(of_batch), offset=offset, timestamp=at))
        offset += len(of_batch)
    write(folder / "__consumer_offsets-0", parts)


def write(folder: Path, parts: list[bytes]) -> None:
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(b"".join(parts))


def told(folder: Path) -> list[tuple[str, str, list[str], list[str]]]:
    rows = read_table("disappearances", folder).table.to_pylist()
    return [
        (row["cause"], row["confidence"], row["possible_causes"], [each["shows"] for each in row["evidence"]])
        for row in rows
    ]


WITHOUT = ["expired", "offset_deleted", "topic_deleted"]


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "created again"])
def test_an_offset_that_goes_with_its_topic(tmp_path: Path, again: bool) -> None:
    more = [(301, TopicRecord("orders", B))] if again else []
    end = (2000, TopicRecord("other", OTHER))
    metadata(tmp_path, (0, TopicRecord("orders", A)), (300, RemoveTopicRecord(A)), *more, end)
    commits(tmp_path, (200, {"orders": True}), (302, {"orders": False}))
    assert told(tmp_path) == [("topic_deleted", "high", ["topic_deleted"], ["topic_deleted"])]


def test_an_offset_of_a_topic_that_was_never_deleted(tmp_path: Path) -> None:
    metadata(tmp_path, (0, TopicRecord("orders", A)), (2000, TopicRecord("other", OTHER)))
    commits(tmp_path, (200, {"orders": True}), (302, {"orders": False}))
    ((cause, _, possible, shows),) = told(tmp_path)
    assert cause == "offset_deleted"
    assert possible == ["expired", "offset_deleted"]
    assert "topic_there" in shows


def test_an_offset_that_goes_long_after_an_earlier_topic_of_the_name(tmp_path: Path) -> None:
    early = (0, TopicRecord("orders", A)), (10, RemoveTopicRecord(A)), (20, TopicRecord("orders", B))
    metadata(tmp_path, *early, (2000, TopicRecord("other", OTHER)))
    commits(tmp_path, (200, {"orders": True}), (302, {"orders": False}))
    ((cause, _, possible, _),) = told(tmp_path)
    assert (cause, possible) == ("offset_deleted", WITHOUT)


def test_a_deletion_of_two_topics_of_which_one_is_there_was_no_deletion_of_topics(tmp_path: Path) -> None:
    metadata(
        tmp_path,
        *((0, TopicRecord("orders", A)), (0, TopicRecord("stays", B)), (300, RemoveTopicRecord(A))),
        (2000, TopicRecord("other", OTHER)),
    )
    commits(tmp_path, (200, {"orders": True}), (201, {"stays": True}), (302, {"orders": False, "stays": False}))
    assert len(told(tmp_path)) == 2
    for cause, _, possible, _ in told(tmp_path):
        assert "topic_deleted" not in (cause, *possible)


@pytest.mark.parametrize("end", [None, 250], ids=["no metadata log", "one that ends before"])
def test_what_no_metadata_log_tells(tmp_path: Path, end: int | None) -> None:
    if end is not None:
        metadata(tmp_path, (0, TopicRecord("orders", A)), (end, TopicRecord("other", OTHER)))
    commits(tmp_path, (200, {"orders": True}), (302, {"orders": False}))
    assert [possible for _, _, possible, _ in told(tmp_path)] == [WITHOUT]
