"""Checkpoints of Spark's queries as rows of lag: checkpoints that Spark wrote, and damaged ones."""

from __future__ import annotations

import json
import pickle
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_records_engine.findings import SPARK_CHECKPOINT
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.protocol import LogEnds, LogStarts
from kafka_records_engine.sources.spark_checkpoints import (
    CheckpointError,
    GivenCheckpoint,
    QueryProgress,
    read_checkpoint,
)
from kafka_records_tables import read_table, read_tables
from kafka_records_tables.near_names import UnknownOption
from tests.cli.running import run
from tests.log.logs import DATA
from tests.tables.consumed import Brokers, Commit, told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDED = DATA / "spark"
LOGS, BILLING = RECORDED / "data", RECORDED / "billing"
TRUTH = json.loads((RECORDED / "truth.json").read_text())

Row = dict[str, Any]


def progress(folder: Path, name: str = "") -> QueryProgress:
    return read_checkpoint(GivenCheckpoint(name, str(folder)))


def lag_rows(source: Any, *checkpoints: Any, **asked: Any) -> dict[tuple[str, str, int], Row]:
    result = read_table("lag", source, spark_checkpoint=checkpoints, **asked)
    return {(row["group_id"], row["topic"], row["partition"]): row for row in result.table.to_pylist()}


def produced(topic: str, partition: int) -> list[tuple[int, int]]:
    """Offset and time of each record, from the answers to the producer."""
    return [(offset, stamp) for name, number, offset, stamp in TRUTH["records"] if (name, number) == (topic, partition)]


# -- what Spark wrote --------------------------------------------------------------------------------------------------


def test_the_committed_batch_decides_and_the_planned_one_is_told_apart() -> None:
    offsets = {("orders", 0): 15, ("orders", 1): 4, ("payments", 0): 3}
    found = progress(BILLING)
    assert (found.query, found.batch, found.planned, found.other_sources) == (TRUTH["id"], 1, 2, 1)
    assert {(each.topic, each.partition): each.offset for each in found.offsets} == offsets
    rows = lag_rows(LOGS, BILLING)
    assert {key[1:]: row["offset"] for key, row in rows.items()} == offsets
    for (query, topic, partition), row in rows.items():
        left = [(offset, stamp) for offset, stamp in produced(topic, partition) if offset >= offsets[topic, partition]]
        assert query == TRUTH["id"]
        assert (row["lag"], row["unread"], row["problem"], row["log_partition"]) == (len(left), len(left), None, None)
        assert row["unread_timestamp_ms"] == left[0][1]
        assert row["known_by"] == "record"
        assert row["commit_timestamp_ms"] == found.timestamp_ms


def test_no_committed_batch_is_no_offset() -> None:
    found = progress(RECORDED / "first_batch")
    assert (found.query, found.batch, found.planned) == (TRUTH["first_id"], None, 0)
    rows = lag_rows(LOGS, RECORDED / "first_batch")
    told = {key[1:]: (row["offset"], row["lag"], row["problem"]) for key, row in rows.items()}
    assert told == {("orders", 0): (None, None, "no_commit"), ("orders", 1): (None, None, "no_commit")}


def test_the_newer_form_and_sources_that_are_not_kafka() -> None:
    rows = lag_rows(LOGS, RECORDED / "v2", RECORDED / "rate")
    assert {key: (row["offset"], row["lag"]) for key, row in rows.items()} == {
        (TRUTH["v2_id"], "orders", 0): (19, 0),
        (TRUTH["v2_id"], "orders", 1): (6, 0),
    }
    found = progress(RECORDED / "rate")
    assert (found.batch, found.planned, found.offsets, found.other_sources) == (6, 7, (), 1)


def test_notes_say_what_offsets_lack() -> None:
    result = read_table("lag", LOGS, spark_checkpoint=[BILLING, RECORDED / "first_batch"])
    assert {each.reason for each in result.findings} == {SPARK_CHECKPOINT}
    assert [str(each).replace(str(RECORDED), "") for each in result.findings] == [
        "/billing: 1 source of the query is not Kafka (left out)",
        "/billing: the batch 2 of the query is planned but not committed (the offsets come from the batch 1)",
        "/first_batch: 1 source of the query is not Kafka (left out)",
        "/first_batch: the query has committed no batch yet (its offsets are null)",
    ]


# -- beside groups -----------------------------------------------------------------------------------------------------


def test_a_query_is_called_by_its_name_and_sums_up_beside_groups() -> None:
    brokers = Brokers(
        [Commit("g", "orders", 0, 5)], {("orders", 0): told(0, 20), ("orders", 1): told(6, 9)}, {"g": [("orders", 1)]}
    )
    asked = {"spark_checkpoint": {"billing": BILLING}}
    results = read_tables(["lag", "group_lag"], brokers, options=asked)
    rows = {(row["group_id"], row["topic"], row["partition"]): row for row in results["lag"].table.to_pylist()}
    assert {key: (row["offset"], row["lag"], row["lost"], row["problem"]) for key, row in rows.items()} == {
        ("g", "orders", 0): (5, 15, 0, None),
        ("g", "orders", 1): (None, None, None, "no_commit"),
        ("billing", "orders", 0): (15, 5, 0, None),
        ("billing", "orders", 1): (4, 5, 2, "below_log_start"),
        ("billing", "payments", 0): (3, None, None, "no_log"),
    }
    assert rows["g", "orders", 1]["member_id"] == "m-1"
    assert {rows[key]["member_id"] for key in rows if key[0] == "billing"} == {None}
    sums = {row["group_id"]: (row["lag"], row["unknown"]) for row in results["group_lag"].table.to_pylist()}
    assert sums == {"g": (15, 1), "billing": (10, 1)}
    assert {key[0] for key in lag_rows(brokers, f"billing={BILLING}", group="billing")} == {"billing"}
    assert {row["group_id"] for row in read_table("lag", brokers).table.to_pylist()} == {"g"}


def advance(folder: Path, batch: int, offsets: dict[str, dict[str, int]]) -> None:
    """Plan and commit a batch as Spark does, without checksums, as in an object store."""
    (folder / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{json.dumps(offsets)}\n-")
    (folder / "commits" / str(batch)).write_text("v1\n{}")


def test_checkpoints_are_read_after_log_starts_and_before_log_ends(tmp_path: Path) -> None:
    """A query that continues meanwhile is neither beyond an end nor below a start."""
    folder = shutil.copytree(BILLING, tmp_path / "query")

    def move(moment: int) -> LogEnds:
        """Another 100 records are written, read and deleted, up to the moment."""
        advance(folder, 10 + moment, {"orders": {"0": 100 * moment}})
        return replace(told(100 * moment, 100 * moment), topic="orders")

    class Moving(Brokers):
        def log_starts(self, topics: Sequence[str] | None) -> LogStarts:
            return LogStarts({("orders", 0): (None, move(1).log_start_offset or 0)}, asked_ms=1)

        def log_ends(self, topics: Sequence[str], context: Context) -> Iterator[LogEnds]:
            yield move(2)

    (row,) = lag_rows(Moving([], {}), folder).values()
    assert (row["log_start_offset"], row["offset"], row["end_offset"]) == (100, 100, 200)
    assert (row["problem"], row["lag"]) == (None, 100)


def test_two_sources_of_one_topic_are_one_row_with_the_lower_offset(tmp_path: Path) -> None:
    folder = shutil.copytree(BILLING, tmp_path / "query")
    advance(folder, 3, {"orders": {"0": 17}})
    file = folder / "offsets" / "3"
    file.write_text(file.read_text() + '\n{"orders":{"0":16}}')
    assert [tuple(each) for each in progress(folder).offsets] == [("orders", 0, 16)]


# -- what is refused ---------------------------------------------------------------------------------------------------


def written(name: str, content: bytes) -> Callable[[Path], None]:
    """Write a file of the checkpoint with other content, and the right checksum."""

    def write(folder: Path) -> None:
        file = folder / name
        file.write_bytes(content)
        sums = b"".join(zlib.crc32(content[at : at + 512]).to_bytes(4, "big") for at in range(0, len(content), 512))
        file.with_name(f".{file.name}.crc").write_bytes(b"crc\0\0\0\2\0" + sums)

    return write


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def flipped(folder: Path) -> None:
    file = folder / "offsets" / "1"
    file.write_bytes(file.read_bytes().replace(b'"0":15', b'"0":16'))


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (written("offsets/1", b""), "empty: {}/offsets/1. Copy"),
    "zeros": (written("commits/1", b"\0" * 30), "empty: {}/commits/1. Copy"),
    "half": (
        written("offsets/1", b'v1\n{"batchWat'),
        "cut short: it has no line for any source: {}/offsets/1. Copy",
    ),
    "half a line": (
        written("offsets/2", b'v1\n{}\n{"orders":{"0'),
        "damaged in line 3, which is not JSON: {}/offsets/2. Copy",
    ),
    "no version": (written("offsets/1", b"{}\n{}"), "damaged: the file does not begin with a version: {}/offsets/1. "),
    "newer": (
        written("offsets/1", b"v3\n{}\n{}"),
        "unknown format v3; the known ones are v1 and v2: {}/offsets/1. Use a newer release",
    ),
    "no source": (
        written("offsets/1", b'v2\n{}\n{"a"}'),
        "damaged in line 3, which does not name a source: {}/offsets/1. ",
    ),
    "bytes": (written("commits/1", b"v1\n\xff"), "damaged: byte 3 is not UTF-8: {}/commits/1. Copy"),
    "half a commit": (written("commits/1", b'v1\n{"next'), "damaged in line 2, which is not JSON: {}/commits/1. Copy"),
    "changed": (flipped, "the content does not match the checksums in .1.crc: {}/offsets/1. Copy the checkpoint again"),
    "sums": (
        lambda folder: (folder / "offsets" / ".1.crc").write_bytes(b"crc\0\0\0"),
        "damaged checksums: {}/offsets/.1.crc. Copy",
    ),
    "lost offsets": (
        without("offsets/1"),
        "the batch 1 is committed, but its offsets are missing: {}/offsets/1. Copy",
    ),
    "no id": (without("metadata"), "the file with the id of the query is missing: {}/metadata. Name the query"),
    "other metadata": (written("metadata", b"[]"), "the file has no query id: {}/metadata. Copy"),
    "no directory": (shutil.rmtree, "there is no such directory: {}. Give the checkpointLocation of a query"),
    "no checkpoint": (
        lambda folder: shutil.rmtree(folder / "offsets"),
        "not a checkpoint of a Spark query: it has no directory 'offsets': {}. Give a local directory, the ",
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_refused_with_place_and_advice(case: str, tmp_path: Path) -> None:
    folder = shutil.copytree(BILLING, tmp_path / "query")
    damage, message = DAMAGE[case]
    damage(folder)
    with pytest.raises(CheckpointError) as caught:
        read_table("lag", LOGS, spark_checkpoint=folder)
    assert str(caught.value).startswith(message.format(folder)), caught.value
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_files_that_spark_has_not_finished_do_not_count(tmp_path: Path) -> None:
    folder = shutil.copytree(BILLING, tmp_path / "query")
    for name in ("commits/.2.6a0f.tmp", "offsets/.3.6a0f.tmp", "offsets/..3.6a0f.tmp.crc"):
        (folder / name).write_bytes(b"v")
    assert progress(folder) == replace(progress(BILLING), place=str(folder))
    shutil.rmtree(folder / "commits")
    for file in (folder / "offsets").glob("[0-9]"):
        file.unlink()
    assert (progress(folder).batch, progress(folder).planned, progress(folder).offsets) == (None, None, ())


def test_two_checkpoints_of_one_query_need_names(tmp_path: Path) -> None:
    copy = shutil.copytree(BILLING, tmp_path / "copy")
    with pytest.raises(CheckpointError, match=f"^two checkpoints belong to the query {TRUTH['id']}: .*NAME=DIR"):
        read_table("lag", LOGS, spark_checkpoint=[BILLING, copy])
    assert {key[0] for key in lag_rows(LOGS, f"a={BILLING}", f"b={copy}")} == {"a", "b"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("=x", "'=x' lacks a name or a directory: write NAME=DIR, or ./=x for a directory"),
        ([], "the list of directories is empty: give at least one, or leave out the option"),
        ("", "a directory has an empty name: write . for the current one"),
        (7, "spark_checkpoint must be a directory, several directories, or a mapping of names to them, not 7"),
    ],
)
def test_what_is_no_checkpoint(given: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        read_table("lag", LOGS, spark_checkpoint=given)
    with pytest.raises(UnknownOption, match="it is one of lag, group_lag"):
        read_table("groups", LOGS, spark_checkpoint=str(BILLING))


# -- the command, and Spark --------------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path) -> None:
    asked = ("--spark-checkpoint", f"billing={BILLING}", "--spark-checkpoint", str(RECORDED / "v2"))
    ran = run("table", "lag", str(LOGS), *asked, "--format", "json", "--columns", "group_id,topic,partition,lag")
    assert ran.status == 0, ran.err
    rows = [json.loads(line) for line in ran.lines]
    assert {(row["group_id"], row["topic"], row["partition"]): row["lag"] for row in rows} == {
        ("billing", "orders", 0): 4,
        ("billing", "orders", 1): 2,
        ("billing", "payments", 0): 6,
        (TRUTH["v2_id"], "orders", 0): 0,
        (TRUTH["v2_id"], "orders", 1): 0,
    }
    assert "the batch 2 of the query is planned but not committed" in ran.err
    ran = run("table", "lag", str(LOGS), "--spark-checkpoint", str(tmp_path))
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("kafka-records: not a checkpoint of a Spark query: it has no directory 'offsets'")


@pytest.mark.spark
def test_spark_reads_it_as_a_source_and_not_as_a_frame(spark: SparkSession) -> None:
    from kafka_records_tables import spark as tables

    tables.register(spark, engine="python")
    asked = {"table": "lag", "sparkCheckpoint": f"billing={BILLING}", "columns": "topic,partition,lag"}
    found = spark.read.format("kafka-records").options(**asked).load(str(LOGS)).collect()
    assert sorted(map(tuple, found)) == [("orders", 0, 4), ("orders", 1, 2), ("payments", 0, 6)]
    with pytest.raises(ValueError, match=r"^spark_checkpoint is not for DataFrames: use kafka_records_tables\.read_"):
        tables.read_table(spark, "lag", str(LOGS), spark_checkpoint=str(BILLING))
