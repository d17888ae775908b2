"""Segment files as DataFrames: what is read, what is reported, where reading ends."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from kafka_records_arrow.segments import LogSourceError
from kafka_records_spark.raw import RAW_SCHEMA
from kafka_records_spark.segments import read_segments, segment_report

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory, topics_dir: Path) -> Path:
    """One partition whose second batch has a flipped bit, so that its CRC is wrong."""
    folder = tmp_path_factory.mktemp("data") / "__consumer_offsets-3"
    shutil.copytree(topics_dir / "kafka-4.3-expiry" / "segments" / folder.name, folder)
    path = folder / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    second = 12 + int.from_bytes(data[8:12], "big")
    data[second + 61] ^= 1
    path.write_bytes(data)
    return folder.parent


def test_all_topics_of_a_data_directory(spark: SparkSession, topics_dir: Path) -> None:
    raw = read_segments(spark, topics_dir / "kafka-4.3" / "segments")

    counts = {row.topic: row["count"] for row in raw.groupBy("topic").count().collect()}

    assert raw.schema == RAW_SCHEMA
    # One partition of the share state starts at offset 11; its file holds the records before, too.
    assert counts == {"__consumer_offsets": 859, "__share_group_state": 84, "__transaction_state": 45}


def test_records_below_the_log_start_on_request(spark: SparkSession, topics_dir: Path) -> None:
    source = topics_dir / "kafka-4.3" / "segments"
    raw = read_segments(spark, [source], topic="__share_group_state", below_log_start=True)
    assert raw.count() == 95


def test_several_sources(spark: SparkSession, topics_dir: Path) -> None:
    segments = topics_dir / "kafka-4.3-expiry" / "segments"
    raw = read_segments(spark, [str(segments / "__consumer_offsets-0"), segments / "__consumer_offsets-3"])
    counts = {row.partition: row["count"] for row in raw.groupBy("partition").count().collect()}
    assert counts == {0: 29, 3: 56}


def test_failfast_ends_at_the_first_damage(spark: SparkSession, damaged: Path) -> None:
    with pytest.raises(Exception, match=r"00000000000000000000\.log: byte \d+, batch at offset \d+: wrong CRC"):
        read_segments(spark, damaged).collect()


def test_permissive_reads_on(spark: SparkSession, damaged: Path) -> None:
    rows = read_segments(spark, damaged, mode="PERMISSIVE").select("offset").collect()
    lost = sorted(set(range(56)) - {row.offset for row in rows})
    assert lost
    assert min(lost) > 0
    assert max(lost) < 55


def test_the_report_counts_what_is_lost(spark: SparkSession, damaged: Path) -> None:
    lost = 56 - read_segments(spark, damaged, mode="PERMISSIVE").count()

    (row,) = segment_report(spark, damaged).collect()

    assert (row.topic, row.partition, row.base_offset, row.damaged) == ("__consumer_offsets", 3, 0, True)
    assert row.records == 56 - lost
    (problem,) = row.problems
    assert (problem.severity, problem.records) == ("damage", lost)
    assert problem.message.startswith(f"{row.file}: byte {problem.position}, batch at offset {problem.batch_offset}: ")


def test_the_report_of_sound_files(spark: SparkSession, topics_dir: Path) -> None:
    rows = segment_report(spark, topics_dir / "kafka-2.8" / "segments", topic="__consumer_offsets").collect()

    assert len(rows) == 9
    assert not any(row.damaged for row in rows)
    assert sum(row.records for row in rows) == 496
    assert sum(row.control_batches for row in rows) == 15
    assert {number for row in rows for number in row.formats} == {0, 1, 2}
    assert {codec for row in rows for codec in row.codecs} == {"none", "gzip", "snappy", "lz4", "zstd"}
    # The segment that was open when it was copied is pre-allocated: zeros up to its end.
    notes = [problem.severity for row in rows for problem in row.problems]
    assert set(notes) <= {"note"}


def test_a_place_without_logs_is_refused_at_once(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(LogSourceError) as failure:
        read_segments(spark, tmp_path)
    assert str(failure.value) == f"{tmp_path}: the directory is empty"


def test_another_mode_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mode 'DROPMALFORMED' is none of FAILFAST, PERMISSIVE"):
        read_segments(spark, tmp_path, mode="DROPMALFORMED")
