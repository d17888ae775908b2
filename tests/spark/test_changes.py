"""Changes of tables with Structured Streaming: after every micro-batch they add up to the table over all raw rows so
far, also after restarts and a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA as ARROW_SCHEMA
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_engine.spark.raw import RAW_SCHEMA, as_raw_rows
from kafka_records_engine.spark.spark_types import spark_schema
from kafka_records_tables import TABLES, read_table
from kafka_records_tables import spark as tables
from kafka_records_tables.engines.checked_request import request_of
from kafka_records_tables.engines.incremental import IncrementalTable, LogState, NewRows
from kafka_records_tables.engines.spark_changes import NoStream
from kafka_records_tables.tables.declaration import can_go_on
from tests.tables.names import COORDINATED
from tests.tables.topic import Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SECONDS = 300
PARTS = 4
OTHERS = [
    name
    for name, table in TABLES.items()
    if can_go_on(table) and table.reader.form_of_kept is None and name != "current_offsets" and name in COORDINATED
]
GONE = "disappearances"


@pytest.fixture(scope="module")
def log(topics_dir: Path) -> pa.Table:
    """The raw rows of a captured data directory, as in a stream whose micro-batches end before the markers."""
    source = Segments(topics_dir / "kafka-4.3" / "segments")
    logs = [each for topic in source.topics() for each in source.partitions(topic)]
    rows = pa.Table.from_batches(
        batch.select(ARROW_SCHEMA.names) for each in logs for batch in each.batches(Context(), ARROW_SCHEMA.names)
    )
    words = pc.if_else(pc.equal(rows["transaction"], "none"), rows["transaction"], pa.scalar("open"))
    return rows.set_column(rows.schema.get_field_index("transaction"), ARROW_SCHEMA.field("transaction"), words)


@pytest.fixture(scope="module")
def parts(log: pa.Table) -> list[pa.Table]:
    """The log in parts, each with some offsets of each log partition. A part ends inside a transaction."""
    numbers = pc.divide(pc.multiply(log["offset"], PARTS), 400)
    found = [log.filter(pc.equal(pc.min_element_wise(numbers, PARTS - 1), each)) for each in range(PARTS)]
    assert all(part.num_rows for part in found)
    assert any(waits_at_the_end(part) for part in found[:-1])
    return found


def waits_at_the_end(part: pa.Table) -> bool:
    """Whether a commit of some rows has its marker after them."""
    rows = part.filter(pc.equal(part["topic"], "__consumer_offsets")).to_pylist()
    ends = {(row["partition"], row["producer_id"]): row["offset"] for row in rows if row["control"] is not None}
    waiting = [row for row in rows if row["control"] is None and row["transaction"] != "none"]
    return any(ends.get((row["partition"], row["producer_id"]), -1) < row["offset"] for row in waiting)


def add(folder: Path, number: int, rows: pa.Table) -> None:
    """Add a file of raw rows to a stream. Streams read files in the order of their times."""
    folder.mkdir(exist_ok=True)
    part = folder / f".{number}"
    pq.write_table(rows, part)
    os.utime(part, (1_700_000_000 + number, 1_700_000_000 + number))
    part.rename(folder / f"{number}.parquet")


def stream_of(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema(RAW_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))


def drain(rows: DataFrame, place: Path) -> None:
    """Write the changes of all available rows into files, and wait for it."""
    writer = rows.writeStream.format("parquet").option("checkpointLocation", str(place / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(place / "changes"))
    assert query.awaitTermination(SECONDS)


def rows_of(frame: DataFrame, name: str) -> pa.Table:
    sort = [(each, "ascending") for each in TABLES[name].identity]
    return frame.toArrow().cast(TABLES[name].schema).sort_by(sort)


def expected(name: str, parts: Sequence[pa.Table]) -> pa.Table:
    sort = [(each, "ascending") for each in TABLES[name].identity]
    return read_table(name, pa.concat_tables(parts)).table.sort_by(sort)


def check(spark: SparkSession, name: str, parts: Sequence[pa.Table], place: Path, runs: Sequence[int]) -> None:
    """Run a query once for each number in `runs`, each time with this number of additional parts."""
    place.mkdir()
    came = 0
    for more in runs:
        for number in range(came, came + more):
            add(place / "raw", number, parts[number])
        came += more
        drain(tables.changes(stream_of(spark, place / "raw"), name), place)
        assert len(list(place.glob("checkpoint/commits/[0-9]*"))) == came
        told = spark.read.parquet(str(place / "changes"))
        assert rows_of(tables.merged(told, name), name).equals(expected(name, parts[:came]))


def test_a_stream_gives_the_rows_of_the_table_at_every_restart(
    spark: SparkSession, parts: Sequence[pa.Table], tmp_path: Path
) -> None:
    check(spark, "current_offsets", parts, tmp_path / "place", [2, 2])
    with pytest.raises(NoStream, match=r'kafka_records_tables.spark.table\(raw, "groups"\) returns the rows'):
        tables.changes(spark.read.parquet(str(tmp_path / "place" / "raw")), "groups")


def test_what_is_merged_is_what_was_told_last(spark: SparkSession) -> None:
    """In any order, and with repetitions: the result has the change of each row with the highest offset, and no deleted
    rows."""
    rows = [
        ("upsert", 10, "g", "t", 0, 1),
        ("upsert", 30, "g", "t", 0, 3),
        ("upsert", 20, "g", "t", 0, 2),
        ("upsert", 10, "g", "t", 1, 1),
        ("delete", 20, "g", "t", 1, 1),
        ("delete", 10, "h", "t", 0, 1),
        ("upsert", 20, "h", "t", 0, 9),
    ]
    names = ["change", "as_of_offset", "group_id", "topic", "partition", "offset"]

    def changes(chosen: Sequence[tuple[Any, ...]]) -> DataFrame:
        schema = pa.schema([("change", pa.string()), ("as_of_offset", pa.int64()), *TABLES["current_offsets"].schema])
        told = [dict(zip(names, row, strict=True)) | {"log_partition": 0} for row in chosen]
        return spark.createDataFrame([tuple(map(row.get, schema.names)) for row in told], spark_schema(schema))

    def offsets(found: DataFrame) -> set[tuple[Any, ...]]:
        return {tuple(row) for row in found.select("group_id", "topic", "partition", "offset").collect()}

    expected = {("g", "t", 0, 3), ("h", "t", 0, 9)}
    twice = changes([*rows[::-1], *rows])
    assert offsets(tables.merged(twice, "current_offsets")) == expected
    assert offsets(tables.merged(twice.where("as_of_offset <= 10"), "current_offsets")) == {
        ("g", "t", 0, 1),
        ("g", "t", 1, 1),
    }
    before = tables.merged(changes(rows[:1] + rows[3:4]), "current_offsets")
    assert offsets(tables.merged(changes(rows[1:3] + rows[4:]), "current_offsets", before)) == expected
    assert offsets(tables.merged(changes(rows[4:6]), "current_offsets", before)) == {("g", "t", 0, 1)}


@pytest.mark.parametrize("name", ["timeline", "expirations", "open_transactions", "share_partitions"])
def test_a_table_that_needs_a_whole_log_is_refused(name: str) -> None:
    with pytest.raises(
        ValueError, match=rf"^{name} cannot be computed from its changes, .* or request one of .*current_off"
    ):
        tables.changes(None, name)  # type: ignore[arg-type]


@pytest.mark.matrix
@pytest.mark.parametrize("name", OTHERS)
def test_every_table_that_can_be_followed(
    spark: SparkSession, parts: Sequence[pa.Table], tmp_path: Path, name: str
) -> None:
    check(spark, name, parts, tmp_path / "place", [1, 3])


@pytest.mark.matrix
def test_tombstones_are_explained_through_a_restart(
    spark: SparkSession, parts: Sequence[pa.Table], tmp_path: Path
) -> None:
    """As in one process, which tests/tables/test_disappearances_followed.py compares with the table."""
    for begin, end in ((0, 1), (1, PARTS)):
        for number in range(begin, end):
            add(tmp_path / "raw", number, parts[number])
        drain(tables.changes(stream_of(spark, tmp_path / "raw"), GONE), tmp_path)
    told = spark.read.parquet(str(tmp_path / "changes"))
    found = by_place(rows_of(tables.merged(told, GONE), GONE))
    assert found == followed(parts)
    assert found.keys() == by_place(expected(GONE, parts)).keys()


def by_place(rows: pa.Table) -> dict[tuple[int, int], dict[str, Any]]:
    return {(row["log_partition"], row["log_offset"]): row for row in rows.to_pylist()}


def followed(parts: Sequence[pa.Table]) -> dict[tuple[int, int], dict[str, Any]]:
    """Explained tombstones by their places, after the parts of each log partition."""
    columns = list(dict.fromkeys(("offset", "key", "value", "control", *TABLES[GONE].reads)))
    going_on = IncrementalTable(request_of(GONE))
    found: dict[tuple[int, int], dict[str, Any]] = {}
    states: dict[int, LogState] = {}
    for part in parts:
        part = part.filter(pc.equal(part["topic"], "__consumer_offsets"))
        for number in pc.unique(part["partition"]).to_pylist():
            came = part.filter(pc.equal(part["partition"], number)).select(columns)
            states[number], told = going_on.step(number, states.get(number), NewRows(came))
            found |= by_place(pa.Table.from_batches([told]).select(TABLES[GONE].names))
    return found


@pytest.mark.matrix
def test_each_micro_batch_merged_into_the_rows_before(
    spark: SparkSession, parts: Sequence[pa.Table], tmp_path: Path
) -> None:
    for number, part in enumerate(parts):
        add(tmp_path / "raw", number, part)
    seen = []

    def merge(told: DataFrame, number: int) -> None:
        session = told.sparkSession
        before = session.read.parquet(str(tmp_path / f"rows-{number - 1}")) if number else None
        tables.merged(told, "groups", before).write.mode("overwrite").parquet(str(tmp_path / f"rows-{number}"))
        seen.append(number)

    told = tables.changes(stream_of(spark, tmp_path / "raw"), "groups")
    query = told.writeStream.foreachBatch(merge).option("checkpointLocation", str(tmp_path / "checkpoint"))
    assert query.trigger(availableNow=True).start().awaitTermination(SECONDS)
    assert seen == [*range(PARTS)]
    for number in seen:
        rows = rows_of(spark.read.parquet(str(tmp_path / f"rows-{number}")), "groups")
        assert rows.equals(expected("groups", parts[: number + 1]))


@pytest.mark.matrix
def test_a_checkpoint_goes_with_the_question(spark: SparkSession, parts: Sequence[pa.Table], tmp_path: Path) -> None:
    add(tmp_path / "raw", 0, parts[0])
    drain(tables.changes(stream_of(spark, tmp_path / "raw"), "groups"), tmp_path)
    add(tmp_path / "raw", 1, parts[1])
    with pytest.raises(Exception, match="give the query a new checkpointLocation, and it reads the log from its start"):
        drain(tables.changes(stream_of(spark, tmp_path / "raw"), "groups", group="inventory-sync"), tmp_path)


@pytest.mark.matrix
def test_a_query_that_was_down_for_too_long_ends(spark: SparkSession, tmp_path: Path) -> None:
    """A query that finds all offsets continues, including offsets of records that its table ignores."""
    topic = Topic()
    for number in range(4):
        topic.commit("g", number)
    topic.add("ShareGroupStatePartitionMetadata", {"group_id": "s"}, {})
    topic.commit("g", 9)
    rows, name = topic.table(), "share_group_topics"

    def go_on(mode: str) -> None:
        drain(tables.changes(stream_of(spark, tmp_path / "raw"), name, mode=mode, delete_retention="0s"), tmp_path)

    for number, part in enumerate((rows.slice(0, 2), rows.slice(2, 2), rows.slice(5))):
        add(tmp_path / "raw", number, part)
        if number < 2:
            go_on("FAILFAST")
    with pytest.raises(Exception, match="was read up to 4, and offset 4 is missing in records that come later than"):
        go_on("FAILFAST")
    go_on("PERMISSIVE")


@pytest.mark.matrix
@pytest.mark.parametrize(("name", "assume"), [("current_offsets", "committed"), ("members", None)])
def test_a_source_without_transactions_lost_nothing(
    spark: SparkSession, tmp_path: Path, name: str, assume: Any
) -> None:
    """The columns of Spark's own Kafka source, which has no markers. `members` needs no `assume`."""
    topic = Topic()
    for number in range(3):
        topic.commit("g", number, transaction="committed", producer=7)
        topic.marker("commit", producer=7)
    rows = topic.table().select(["topic", "partition", "offset", "timestamp_ms", "key", "value"])
    for number in range(3):
        add(tmp_path / "raw", number, rows.slice(2 * number, 1))
        stream = spark.readStream.schema(spark_schema(rows.schema)).parquet(str(tmp_path / "raw"))
        drain(tables.changes(as_raw_rows(stream), name, assume=assume, delete_retention="0s"), tmp_path)
    told = spark.read.parquet(str(tmp_path / "changes"))
    found = [row["offset"] for row in tables.merged(told, name).collect()] if assume else told.collect()
    assert found == ([2] if assume else [])


_KILLED = """\
import sys
from pyspark.sql import SparkSession
from kafka_records_engine.spark.raw import RAW_SCHEMA
from kafka_records_tables.spark import changes

folder = sys.argv[1]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
raw = spark.readStream.schema(RAW_SCHEMA).option("maxFilesPerTrigger", 1).parquet(folder + "/raw")
writer = changes(raw, "offset_commits").writeStream.format("parquet")
writer.option("checkpointLocation", folder + "/checkpoint").start(folder + "/changes").awaitTermination()
"""


@pytest.mark.matrix
def test_a_query_that_is_killed_goes_on(spark: SparkSession, parts: Sequence[pa.Table], tmp_path: Path) -> None:
    for number, part in enumerate(parts):
        add(tmp_path / "raw", number, part)
    script = tmp_path / "killed.py"
    script.write_text(_KILLED, encoding="utf-8")
    with open(tmp_path / "said", "wb") as said:
        process = subprocess.Popen(
            [sys.executable, str(script), str(tmp_path)],
            stdout=said,
            stderr=said,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            start_new_session=True,
        )
    try:
        wait_for(lambda: (tmp_path / "checkpoint" / "offsets" / "1").exists(), process, tmp_path / "said")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert len(list(tmp_path.glob("checkpoint/commits/[0-9]*"))) < PARTS
    drain(tables.changes(stream_of(spark, tmp_path / "raw"), "offset_commits"), tmp_path)

    told = spark.read.parquet(str(tmp_path / "changes"))
    assert rows_of(tables.merged(told, "offset_commits"), "offset_commits").equals(expected("offset_commits", parts))
    decided = told.where("transaction != 'open'")
    assert rows_of(decided.select(*TABLES["offset_commits"].names), "offset_commits").equals(
        expected("offset_commits", parts).filter(pc.field("transaction") != "open")
    )


def wait_for(happened: Callable[[], Any], process: subprocess.Popen[bytes], said: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while not happened():
        assert process.poll() is None, said.read_text()
        assert time.monotonic() < deadline, said.read_text()
        time.sleep(0.02)
