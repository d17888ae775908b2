"""Open transactions, from two topics: which offsets they hold back, and which of them hang by the rules of KIP-664."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_records.transaction_state import encode_record
from kafka_records.transaction_state.transaction_log import PartitionsSchema, TransactionLogKey, TransactionLogValue
from kafka_records_engine.findings import JUDGED_AS_OF
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_tables import TABLES, read_table
from kafka_records_tables.tables.open_transactions import MARGIN_MS
from tests.tables.topic import OFFSETS_TOPIC, Topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
NAME = "open_transactions"
START_MS = 1_700_000_000_000
TIMEOUT_MS = 60_000
ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT = 1, 2, 4


class Cluster(Topic):
    """Synthetic topics of offsets and of transactions, with one partition each."""

    def entry(
        self,
        name: str,
        producer: int,
        state: int = ONGOING,
        offsets_partition: int | None = 0,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        """Write the entry of a transactional id."""
        topics = () if offsets_partition is None else (PartitionsSchema(OFFSETS_TOPIC, (offsets_partition,)),)
        value = TransactionLogValue(
            producer_id=producer,
            producer_epoch=0,
            transaction_timeout_ms=timeout_ms,
            transaction_status=state,
            transaction_partitions=topics,
            transaction_last_update_timestamp_ms=START_MS,
            transaction_start_timestamp_ms=START_MS,
        )
        self.add_bytes(*encode_record(TransactionLogKey(name), value), topic="__transaction_state")


@pytest.fixture
def cluster() -> Cluster:
    """Some transactions of every kind."""
    made = Cluster()
    made.entry("fine", 1)
    made.commit("g", 5, transaction="pending", producer=1)
    made.entry("ended", 2, COMPLETE_COMMIT)
    made.commit("h", 6, transaction="pending", producer=2)
    made.commit("h", 7, transaction="pending", producer=2)
    made.commit("i", 8, transaction="pending", producer=3)
    made.entry("elsewhere", 4, PREPARE_COMMIT, offsets_partition=1)
    made.commit("j", 9, transaction="pending", producer=4)
    made.entry("idle", 5, COMPLETE_COMMIT)
    made.commit("k", 9, transaction="pending", producer=5)
    made.marker("commit", producer=5)
    made.entry("begun", 6, offsets_partition=None)
    return made


def _rows(source: Any, **options: Any) -> list[Row]:
    result = read_table(NAME, source, **options)
    assert result.findings == ()
    rows: list[Row] = result.table.to_pylist()
    return rows


def _told(rows: list[Row]) -> set[tuple[Any, ...]]:
    names = ("transactional_id", "producer_id", "state", "hanging_rule")
    assert all(row["is_hanging"] == (row["hanging_rule"] is not None) for row in rows)
    return {(*(row[name] for name in names), tuple(each["group_id"] for each in row["holds_back"])) for row in rows}


EXPECTED = {
    ("fine", 1, "Ongoing", None, ("g",)),
    ("ended", 2, "CompleteCommit", "no_entry", ("h",)),
    (None, 3, None, "no_entry", ("i",)),
    ("elsewhere", 4, "PrepareCommit", None, ()),
    ("elsewhere", 4, "PrepareCommit", "no_entry", ("j",)),
    ("begun", 6, "Ongoing", None, ()),
}


def test_every_kind(cluster: Cluster) -> None:
    rows = _rows(cluster.table(), as_of=START_MS)
    assert len(rows) == 6
    assert _told(rows) == EXPECTED
    (ended,) = [row for row in rows if row["transactional_id"] == "ended"]
    assert ended == {
        "transactional_id": "ended",
        "producer_id": 2,
        "topic": OFFSETS_TOPIC,
        "partition": 0,
        "first_offset": 3,
        "last_timestamp": None,
        "last_timestamp_ms": None,
        "last_stable_offset": None,
        "held_back": None,
        "holds_cleaner": None,
        "state": "CompleteCommit",
        "since_timestamp": pa.scalar(START_MS, pa.timestamp("ms", tz="UTC")).as_py(),
        "since_timestamp_ms": START_MS,
        "timeout_ms": TIMEOUT_MS,
        "is_hanging": True,
        "hanging_rule": "no_entry",
        "partitions": None,
        "holds_back": [{"group_id": "h", "topic": "orders", "partition": 0, "log_partition": 0, "log_offset": 3}],
    }


def test_a_transaction_hangs_when_its_time_out_and_the_margin_have_passed(cluster: Cluster) -> None:
    late = START_MS + TIMEOUT_MS + MARGIN_MS
    assert _told(_rows(cluster.table(), as_of=late)) == EXPECTED
    rules = {row["transactional_id"]: row["hanging_rule"] for row in _rows(cluster.table(), as_of=late + 1)}
    assert (rules["fine"], rules["begun"]) == ("timeout", "timeout")
    # The default moment is the newest time in the source; by now, all of them are late.
    result = read_table(NAME, cluster.table())
    assert _told(result.table.to_pylist()) == EXPECTED
    (note,) = result.findings
    assert (note.severity, note.reason) == ("note", JUDGED_AS_OF)
    assert note.what == "the newest time in these logs is 2023-11-14T22:13:20.000Z: timeouts are judged as of then"
    assert note.consequence == "3 transactions would be late by now; to judge as of another moment, use --as-of"


def test_only_some_transactional_ids(cluster: Cluster) -> None:
    rows = _rows(cluster.table(), as_of=START_MS, group=["fine", "elsewhere"])
    assert _told(rows) == {row for row in EXPECTED if row[0] in ("fine", "elsewhere")}


def test_rows_in_any_order_and_each_twice(cluster: Cluster) -> None:
    rows = cluster.table()
    order = [*range(rows.num_rows), *range(rows.num_rows)]
    Random(1).shuffle(order)
    assert _rows(rows.take(order), as_of=START_MS) == _rows(rows, as_of=START_MS)


def test_open_transactions_are_those_the_broker_described(topics_dir: Path) -> None:
    truth = json.loads((topics_dir / "kafka-4.3" / "truth.json").read_text(encoding="utf-8"))
    expected = {
        (
            each["transactionalId"],
            each["producerId"],
            each["state"],
            each["transactionTimeoutMs"],
            each["transactionStartTimeMs"],
            *sorted(each["topicPartitions"]),
        )
        for each in truth["transactions"]
        if each["state"] == "Ongoing"
    }
    begins = {
        (each["producerId"], each["partition"], each["currentTransactionStartOffset"])
        for each in truth["openTransactionsOnConsumerOffsets"]
    }

    rows = _rows(topics_dir / "kafka-4.3" / "segments", as_of=truth["captureTimeMs"])

    assert {
        (
            *(row[name] for name in ("transactional_id", "producer_id", "state", "timeout_ms", "since_timestamp_ms")),
            *sorted(f"{each['topic']}-{number}" for each in row["partitions"] for number in each["partitions"]),
        )
        for row in rows
    } == expected
    assert {
        (row["producer_id"], row["holds_back"][0]["log_partition"], row["holds_back"][0]["log_offset"]) for row in rows
    } == begins
    assert not any(row["is_hanging"] for row in rows)


@pytest.mark.parametrize(("timeout_ms", "hangs"), [(2**31 - 1, False), (2**31 - 2, True)])
def test_a_transaction_of_a_two_phase_commit_is_open_on_purpose(timeout_ms: int, hangs: bool) -> None:
    """It never counts as late: its entry has the timeout that Kafka writes for such a producer, which does not end the
    transaction."""
    made = Cluster()
    made.entry("prepared", 1, timeout_ms=timeout_ms)
    made.commit("g", 5, transaction="pending", producer=1)
    (row,) = read_table(NAME, made.table(), as_of=START_MS + 2**31 + 600_000).table.to_pylist()
    assert (row["timeout_ms"], row["is_hanging"]) == (timeout_ms, hangs)


def test_a_source_without_one_of_the_topics_is_refused(cluster: Cluster) -> None:
    rows = cluster.table()
    offsets = rows.filter(pa.array([topic == OFFSETS_TOPIC for topic in rows["topic"].to_pylist()]))
    with pytest.raises(LogSourceError, match="there are no rows of topic __transaction_state"):
        read_table(NAME, offsets)


def test_progress_is_that_of_all_inputs(topics_dir: Path) -> None:
    moved: list[tuple[int, int]] = []
    read_table(NAME, topics_dir / "kafka-4.3" / "segments", on_progress=lambda *done: moved.append(done))
    assert moved == sorted(moved)
    assert moved[-1][0] == moved[-1][1]
    assert len({total for _, total in moved}) == 1


@pytest.mark.slow
def test_other_processes_read_the_same(topics_dir: Path) -> None:
    folder = topics_dir / "kafka-4.3" / "segments"
    assert read_table(NAME, folder, processes=2).table.equals(read_table(NAME, folder).table)


# -- in Spark ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    made = Cluster()
    for number in range(40):
        if number % 3:
            made.entry(f"id-{number}", number, COMPLETE_COMMIT if number % 5 == 0 else ONGOING)
        made.commit(f"g-{number % 7}", number, transaction="pending", producer=number)
    place = tmp_path_factory.mktemp("open") / "rows.parquet"
    pq.write_table(made.table(), place)
    return str(place)


def _sorted(rows: Any) -> pa.Table:
    return rows.cast(TABLES[NAME].schema).sort_by([(each, "ascending") for each in TABLES[NAME].sort])


@pytest.mark.spark
@pytest.mark.matrix
def test_spark_gives_the_same_rows(spark: SparkSession, saved: str) -> None:
    from kafka_records_tables import spark as tables

    expected = read_table(NAME, saved, as_of=START_MS).table
    assert expected.num_rows == 40
    tables.register(spark, engine="python")
    raw = spark.read.parquet(saved)
    source = spark.read.format("kafka-records").options(table=NAME, asOf=str(START_MS)).load(saved)
    for frame in (
        tables.read_table(spark, NAME, saved, as_of=START_MS),
        tables.table(raw.unionByName(raw), NAME, as_of=START_MS),
        source,
    ):
        assert _sorted(frame.toArrow()).equals(expected)
    some = tables.table(raw, NAME, as_of=START_MS, group="id-1", columns=["producer_id", "is_hanging"])
    assert [tuple(row) for row in some.collect()] == [(1, False)]
    assert read_table(NAME, saved, as_of=START_MS, spark=spark).table.equals(expected)
    # Without a moment, a note says that they would be late by now.
    (note,) = read_table(NAME, saved).findings
    for told in (tables.findings(raw, NAME), tables.read_findings(spark, NAME, saved)):
        assert [row["what"] for row in told.collect()] == [note.what]
