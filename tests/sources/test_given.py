"""From what a caller names to a source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources.arrow_rows import ArrowRows
from kafka_records_engine.sources.given import KINDS, SourceKind, source_of
from kafka_records_engine.sources.segment_files import Segments
from tests.log.logs import TOPICS, commit, write_log

CAPTURED = TOPICS / "kafka-4.3" / "segments"
NAMES = ["__consumer_offsets", "__share_group_state", "__transaction_state"]


@pytest.mark.parametrize("given", [CAPTURED, str(CAPTURED), [CAPTURED], (str(CAPTURED),)], ids=str)
def test_paths_are_segments(given: Any) -> None:
    source = source_of(given)
    assert isinstance(source, Segments)
    assert (source.name, source.topics()) == (str(CAPTURED), NAMES)
    assert [log.partition for log in source.partitions(NAMES[0])] == [0, 1, 2, 3, 4, 5]


def test_several_paths_are_one_source() -> None:
    source = source_of([CAPTURED / "__consumer_offsets-1", CAPTURED / "__transaction_state-0"])
    assert source.name == f"{CAPTURED / '__consumer_offsets-1'}, {CAPTURED / '__transaction_state-0'}"
    assert source.topics() == ["__consumer_offsets", "__transaction_state"]
    assert [log.partition for log in source.partitions("__consumer_offsets")] == [1]


def test_the_topic_is_that_of_files_whose_folder_does_not_say_it(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commit(0)}, "t-0")
    (tmp_path / "loose").mkdir()
    loose = tmp_path / "loose" / f"{0:020}.log"
    loose.write_bytes(commit(0))
    source = source_of([tmp_path / "t-0", loose], "u")
    assert source.topics() == ["t", "u"]
    assert [log.topic for name in source.topics() for log in source.partitions(name)] == ["t", "u"]
    with pytest.raises(LogSourceError, match="say which topic it holds"):
        source_of(loose).topics()


def test_arrow_data_are_rows() -> None:
    rows = pa.table(
        {"topic": ["b", "a", None], "partition": [0, 1, 2], "offset": [5, 6, 7], "key": [b"k"] * 3, "value": [b"v"] * 3}
    )
    source = source_of(rows, "c")
    assert isinstance(source, ArrowRows)
    assert (source.name, source.topics()) == ("the rows", ["a", "b", "c"])
    assert [log.partition for log in source.partitions("c")] == [2]
    assert source_of(rows.drop_columns("topic"), "d").topics() == ["d"]
    with pytest.raises(LogSourceError, match="no row has a topic: give the topic of the rows"):
        source_of(RAW_SCHEMA.empty_table()).topics()


def test_a_source_is_taken_as_it_is() -> None:
    source = Segments(CAPTURED)
    assert source_of(source, "t") is source


@pytest.mark.parametrize("given", [5, None, [], [5], b"bytes", ["a", 5]], ids=repr)
def test_anything_else_is_told_what_a_source_is(given: Any) -> None:
    with pytest.raises(TypeError) as raised:
        source_of(given)
    said = str(raised.value)
    assert said.startswith("a source must be a path or several (data directory, partition folder, .log file), ")
    assert said.endswith(f", raw rows in Arrow, or an object with partitions(topic), not {given!r}")
    assert all(kind.what in said for kind in KINDS)


def test_the_kinds_are_asked_in_order_and_the_last_takes_every_path() -> None:
    for given in ([CAPTURED], pa.table({}), Segments(CAPTURED)):
        assert sum(kind.is_mine(given) for kind in KINDS) <= 1
    assert isinstance(KINDS[-1], SourceKind)
    assert isinstance(source_of("no such file"), Segments)
