"""Segment files as DataFrames: the rows, the findings, and the end of reading."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from kafka_records_engine.log.reading.segment_files import LogSourceError, find_logs
from kafka_records_engine.spark.decode import decode_records
from kafka_records_engine.spark.errors import WorkerPython
from kafka_records_engine.spark.raw import RAW_SCHEMA
from kafka_records_engine.spark.segments import read_segments, segment_report
from kafka_records_engine.spark.workers import check_workers

GIVE = "give the data directory of a broker (log.dirs), a folder in it, or a .log file"

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
    # One partition of the share state starts at offset 11; its file also has the earlier records.
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
    place = r"00000000000000000000\.log: byte \d+, batch at offset \d+: wrong CRC"
    remedy = r'; mode="PERMISSIVE" continues after damage, and segment_report lists all of it'
    with pytest.raises(Exception, match=f"DamagedLog: .*{place}.*{remedy}"):
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
    (finding,) = row.findings
    assert (finding.severity, finding.records) == ("damage", lost)
    assert finding.message.startswith(f"{row.file}: byte {finding.position}, batch at offset {finding.base_offset}: ")


def test_the_report_of_sound_files(spark: SparkSession, topics_dir: Path) -> None:
    rows = segment_report(spark, topics_dir / "kafka-2.8" / "segments", topic="__consumer_offsets").collect()

    assert len(rows) == 9
    assert not any(row.damaged for row in rows)
    assert sum(row.records for row in rows) == 496
    assert sum(row.control_batches for row in rows) == 15
    assert {number for row in rows for number in row.formats} == {0, 1, 2}
    assert {codec for row in rows for codec in row.codecs} == {"none", "gzip", "snappy", "lz4", "zstd"}
    # The segment that was open during the copy is pre-allocated: it ends with zeros.
    notes = [finding.severity for row in rows for finding in row.findings]
    assert set(notes) <= {"note"}


def test_a_place_without_logs_is_refused_at_once(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(LogSourceError) as failure:
        read_segments(spark, tmp_path)
    assert str(failure.value) == f"{tmp_path}: the directory is empty: {GIVE}"


@pytest.mark.parametrize(
    ("paths", "message"),
    [(None, "paths must be one path or several, not None"), (["x", 7], "paths contains 7, which is not a path")],
)
def test_what_is_no_path_is_refused_at_once(spark: SparkSession, paths: Any, message: str) -> None:
    with pytest.raises(TypeError) as failure:
        read_segments(spark, paths)
    assert str(failure.value) == message


def test_partitions_that_were_found_before(spark: SparkSession, topics_dir: Path) -> None:
    logs = find_logs([topics_dir / "kafka-4.3" / "segments"])
    assert {row.topic for row in segment_report(spark, logs, topic="__transaction_state").collect()} == {
        "__transaction_state"
    }
    assert read_segments(spark, logs[0]).select("partition").distinct().collect() == [(logs[0].partition,)]


def test_workers_without_this_package_are_told_of_at_once(
    spark: SparkSession, topics_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    message = (
        f"Spark's workers would run {python}, which cannot import kafka_records_engine, numpy and pyarrow: "
        'set os.environ["PYSPARK_PYTHON"] = sys.executable before the session starts'
    )
    raw = spark.createDataFrame([], RAW_SCHEMA)
    with pytest.raises(WorkerPython) as failure:
        read_segments(spark, topics_dir)
    assert str(failure.value) == message
    with pytest.raises(WorkerPython):
        decode_records(raw, {})
    python.write_text("#!/bin/sh\nexit 0\n")
    monkeypatch.setenv("PYSPARK_PYTHON", f"{tmp_path}/./python3")
    check_workers(spark)


def test_another_mode_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mode 'DROPMALFORMED' is not one of FAILFAST, PERMISSIVE"):
        read_segments(spark, tmp_path, mode="DROPMALFORMED")
