"""Brokers through Spark: they have the rows of their segments, streams neither lose nor repeat an offset, and reading
leaves no trace."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_tables import TABLES, read_table
from tests.broker.clients import annotated, commit, create_topics, wait_until
from tests.broker.test_live_brokers import INTERNAL, TOPICS, ends_of
from tests.kafka_needed import skipped_without_kafka
from tools.broker import Broker
from tools.serving import serving

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.broker, pytest.mark.spark]

FORMAT = "kafka-records"
STREAM = "spark_stream"


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    from kafka_records_tables.spark import register

    register(spark, engine="python")
    return spark


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that serves the segments captured from 4.3."""
    segments = TOPICS / "kafka-4.3" / "segments"
    with skipped_without_kafka(), serving(segments, folder=tmp_path_factory.mktemp("served")) as broker:
        yield broker


def in_order(frame: DataFrame, *columns: str) -> pa.Table:
    rows: pa.Table = frame.toArrow().sort_by([(name, "ascending") for name in columns])
    return rows


# -- as a batch --------------------------------------------------------------------------------------------------------


def test_raw_rows_and_tables_are_those_of_the_segments(session: SparkSession, served: Broker) -> None:
    segments = TOPICS / "kafka-4.3" / "segments"
    live = {"bootstrap": served.bootstrap, "topic": INTERNAL[0]}
    files = in_order(
        session.read.format(FORMAT).option("topic", INTERNAL[0]).load(str(segments)), "partition", "offset"
    )
    assert files.num_rows > 400
    assert {"committed", "aborted"} <= set(files["transaction"].to_pylist())
    last = {log.partition: 0 for log in Segments(segments).partitions(INTERNAL[0])}
    for row in files.select(["partition", "offset"]).to_pylist():
        last[row["partition"]] = row["offset"] + 1
    # The coordinator may have appended to this log after loading it.
    end = json.dumps({INTERNAL[0]: last})
    for more in ({}, {"bytesPerTask": "2000"}):
        brokers = session.read.format(FORMAT).options(**live, **more, endingOffsets=end).load()
        assert in_order(brokers, "partition", "offset").equals(files), more
    assert brokers.rdd.getNumPartitions() > len(last)

    table = TABLES["offset_commits"]
    expected = read_table(table, LiveBrokers(served.bootstrap))
    for more in ({}, {"bytesPerTask": "2000"}):
        found = session.read.format(FORMAT).options(bootstrap=served.bootstrap, table=table.name, **more).load()
        assert in_order(found, *table.sort).cast(table.schema).equals(expected.table), more
    by_spark = read_table("current_offsets", LiveBrokers(served.bootstrap), spark=session)
    assert by_spark.table.equals(read_table("current_offsets", LiveBrokers(served.bootstrap)).table)
    assert by_spark.counts.records > 400

    topics = TABLES["topics"]  # this topic has no log to read
    found = session.read.format(FORMAT).options(bootstrap=served.bootstrap, table=topics.name).load()
    expected = read_table(topics, LiveBrokers(served.bootstrap))
    assert len(expected) >= 3
    assert in_order(found, *topics.sort).cast(topics.schema).equals(expected.table)


def test_offsets_that_are_not_there_are_named(session: SparkSession, broker: Broker, admin: KafkaAdminClient) -> None:
    create_topics(admin, spark_offsets=2)
    send(broker, "spark_offsets", 20)
    admin.delete_records({TopicPartition("spark_offsets", 0): 4})
    end = ends_of(broker, ["spark_offsets"])
    (first, _), (_, behind) = [
        (log.start, log.end) for log in LiveBrokers(broker.bootstrap).partitions("spark_offsets")
    ]
    assert first == 4
    for option, offsets, sentence in (
        (
            "startingOffsets",
            '{"spark_offsets": {"0": 3}}',
            "startingOffsets is 3 for spark_offsets-0, whose log starts at 4",
        ),
        (
            "endingOffsets",
            f'{{"spark_offsets": {{"1": {behind + 1}}}}}',
            f"endingOffsets is {behind + 1} for spark_offsets-1, whose log ends at {behind}",
        ),
        (
            "startingOffsets",
            '{"spark_offsets": {"2": 0}}',
            "startingOffsets has partition 2, but the topic has the partitions 0, 1",
        ),
    ):
        options = {"bootstrap": broker.bootstrap, "topic": "spark_offsets", option: offsets}
        with pytest.raises(Exception, match=f"BadOption: {FORMAT}: {sentence}"):
            session.read.format(FORMAT).options(**options).load().count()
    some = {"startingOffsets": '{"spark_offsets": {"0": 5}}', "endingOffsets": '{"spark_offsets": {"1": 2}}'}
    rows = session.read.format(FORMAT).options(bootstrap=broker.bootstrap, topic="spark_offsets", **some).load()
    found = sorted((row["partition"], row["offset"]) for row in rows.collect())
    assert found == [(0, at) for at in range(5, end[TopicPartition("spark_offsets", 0)])] + [(1, 0), (1, 1)]


def test_reading_leaves_no_trace(
    session: SparkSession, broker: Broker, admin: KafkaAdminClient, tmp_path: Path
) -> None:
    create_topics(admin, spark_traced=1)
    commit(admin, "spark-trace", {("spark_traced", 0): 1})
    topics = LiveBrokers(broker.bootstrap).topics()
    groups, ends = sorted(map(str, admin.list_groups())), ends_of(broker, topics)
    assert session.read.format(FORMAT).options(bootstrap=broker.bootstrap, topic=INTERNAL[0]).load().count()
    assert session.read.format(FORMAT).options(bootstrap=broker.bootstrap, table="groups").load().count()
    stream = session.readStream.format(FORMAT).options(bootstrap=broker.bootstrap, topic=INTERNAL[0]).load()
    drained(stream, tmp_path)
    assert rows_in(session, tmp_path)
    assert ends_of(broker, topics) == ends
    assert sorted(map(str, admin.list_groups())) == groups


# -- as a stream -------------------------------------------------------------------------------------------------------


def send(broker: Broker, topic: str, count: int) -> None:
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=0)) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, key=b"%d" % number)
        producer.flush()


def drained(stream: DataFrame, folder: Path) -> list[Any]:
    """Run a stream up to the present ends of the logs. Returns the progress of its batches."""
    query = (
        stream.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "rows"))
    )
    query.awaitTermination()
    return [json.loads(progress.json) for progress in query.recentProgress if progress.numInputRows]


def rows_in(session: SparkSession, folder: Path) -> Counter[tuple[int, int]]:
    rows = session.read.parquet(str(folder / "rows")).select("partition", "offset").collect()
    return Counter((row["partition"], row["offset"]) for row in rows)


def test_a_stream_takes_so_many_offsets_and_goes_on(
    session: SparkSession, broker: Broker, admin: KafkaAdminClient, tmp_path: Path
) -> None:
    create_topics(admin, spark_stream=2)
    send(broker, STREAM, 40)
    options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": STREAM, "maxOffsetsPerTrigger": "15"}
    stream = session.readStream.format(FORMAT).options(**options).load()
    progress = drained(stream, tmp_path)
    assert [batch["numInputRows"] <= 16 for batch in progress] == [True] * len(progress)
    assert len(progress) == 3
    ended = progress[-1]["sources"][0]["endOffset"][STREAM]
    log, _ = LiveBrokers(broker.bootstrap).partitions(STREAM)
    assert ended.pop("id")
    assert sum(ended.values()) == 40
    assert drained(stream, tmp_path) == []
    send(broker, STREAM, 7)
    assert sum(batch["numInputRows"] for batch in drained(stream, tmp_path)) == 7
    rows = rows_in(session, tmp_path)
    assert set(rows.values()) == {1}
    assert len(rows) == 47
    assert log.start == 0


@pytest.mark.matrix
def test_a_batch_that_failed_is_given_again_and_the_same(
    session: SparkSession, broker: Broker, admin: KafkaAdminClient, tmp_path: Path
) -> None:
    """A stream from `latest` leaves out everything before its first start, regardless of failures."""
    create_topics(admin, spark_again=1)
    send(broker, "spark_again", 5)
    options = {"bootstrap": broker.bootstrap, "topic": "spark_again", "startingOffsets": "latest"}
    stream = session.readStream.format(FORMAT).options(**options).load()
    seen: list[tuple[int, list[int]]] = []
    fails = {0, 1}

    def take(rows: DataFrame, number: int) -> None:
        seen.append((number, sorted(row["offset"] for row in rows.collect())))
        if number in fails:
            fails.remove(number)
            raise RuntimeError("a sink that fails once")

    def run() -> None:
        writer = stream.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()

    with pytest.raises(Exception, match="a sink that fails once"):
        run()
    send(broker, "spark_again", 3)
    with pytest.raises(Exception, match="a sink that fails once"):
        run()
    send(broker, "spark_again", 2)
    run()
    send(broker, "spark_again", 1)
    run()
    assert seen == [(0, []), (0, []), (1, [5, 6, 7]), (1, [5, 6, 7]), (2, [8, 9]), (3, [10])]


_KILLED = """\
import sys
from pyspark.sql import SparkSession
from kafka_records_tables.spark import register

bootstrap, folder = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
register(spark)
options = {"bootstrap": bootstrap, "topic": "spark_killed", "maxOffsetsPerTrigger": "20"}
stream = spark.readStream.format("kafka-records").options(**options).load()
writer = stream.writeStream.format("parquet").option("checkpointLocation", folder + "/checkpoint")
writer.start(folder + "/rows").awaitTermination()
"""


@pytest.mark.slow
@pytest.mark.matrix
def test_a_killed_stream_goes_on_with_each_offset_once(
    session: SparkSession, broker: Broker, admin: KafkaAdminClient, tmp_path: Path
) -> None:
    create_topics(admin, spark_killed=3)
    send(broker, "spark_killed", 400)
    script = tmp_path / "killed.py"
    script.write_text(_KILLED)
    with open(tmp_path / "said", "wb") as said:
        process = subprocess.Popen(
            [sys.executable, str(script), broker.bootstrap, str(tmp_path)],
            stdout=said,
            stderr=said,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + 120
        while len(list(tmp_path.glob("checkpoint/commits/[0-9]*"))) < 3:
            assert process.poll() is None, (tmp_path / "said").read_text()
            assert time.monotonic() < deadline, (tmp_path / "said").read_text()
            time.sleep(0.05)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    before = rows_in(session, tmp_path)
    assert 0 < len(before) < 400
    send(broker, "spark_killed", 10)
    options = {"bootstrap": broker.bootstrap, "topic": "spark_killed"}
    drained(session.readStream.format(FORMAT).options(**options).load(), tmp_path)
    rows = rows_in(session, tmp_path)
    assert set(rows.values()) == {1}
    ends = ends_of(broker, ["spark_killed"])
    assert set(rows) == {(place.partition, at) for place, end in ends.items() for at in range(end)}
    assert len(rows) == 410


@pytest.mark.slow
@pytest.mark.matrix
def test_a_table_is_followed(session: SparkSession, served: Broker, tmp_path: Path) -> None:
    """Micro-batches end inside transactions, and their markers come with a later batch."""
    from kafka_records_tables.spark import changes, merged

    live = {"bootstrap": served.bootstrap, "topic": INTERNAL[0]}
    stream = session.readStream.format(FORMAT).options(**live, maxOffsetsPerTrigger="250").load()
    progress = drained(changes(stream, "offset_commits"), tmp_path)
    assert len(progress) > 2
    # The coordinator may append to this log at any time after loading it.
    end = progress[-1]["sources"][0]["endOffset"]
    del end[INTERNAL[0]]["id"]
    raw = session.read.format(FORMAT).options(**live, endingOffsets=json.dumps(end)).load()
    table = TABLES["offset_commits"]
    expected = read_table(table, raw.toArrow()).table
    found = merged(session.read.parquet(str(tmp_path / "rows")), table.name)
    by_identity = [(each, "ascending") for each in table.identity]
    assert in_order(found, *table.identity).cast(table.schema).equals(expected.sort_by(by_identity))
    assert {"committed", "aborted"} <= set(expected["transaction"].to_pylist())


# -- what a stream does between two batches, without a session ---------------------------------------------------------


def reader_of(broker: Broker, **options: str) -> Any:
    from kafka_records_tables.engines.spark_options import asked
    from kafka_records_tables.engines.spark_stream import stream_reader

    return stream_reader(asked({"bootstrap": broker.bootstrap, **options}).for_stream())


def read_all(reader: Any, start: Any, end: Any) -> list[dict[str, Any]]:
    rows = [row for task in reader.partitions(start, end) for batch in reader.read(task) for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


def all_there_is(reader: Any, start: Any) -> Any:
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    return reader.latestOffset(start, ReadAllAvailable())


def once_it_goes_on(reader: Any, start: Any) -> Any:
    """Wait until more has been written, because markers come after the answer to the client. Returns the ends of the
    logs."""
    wait_until(lambda: all_there_is(reader, start) != start, "there is nothing new")
    return all_there_is(reader, start)


def test_a_range_tells_what_it_knows_of_a_transaction(broker: Broker, admin: KafkaAdminClient) -> None:
    create_topics(admin, spark_txn=1)
    reader = reader_of(broker, topic="spark_txn")
    start = reader.initialOffset()
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="spark-txn")) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("spark_txn", b"one").get(10)
        producer.commit_transaction()
        producer.begin_transaction()
        producer.send("spark_txn", b"two").get(10)
        middle = all_there_is(reader, start)
        producer.abort_transaction()
    end = once_it_goes_on(reader, middle)
    told = [(row["offset"], row["transaction"], row["control"]) for row in read_all(reader, start, middle)]
    assert told == [(0, "committed", None), (1, "committed", "commit"), (2, "open", None)]
    told = [(row["offset"], row["transaction"], row["control"]) for row in read_all(reader, middle, end)]
    assert told == [(3, "aborted", "abort")]
    # Tables resolve the transactions of the saved rows by their markers.
    saved = pa.Table.from_pylist(read_all(reader, start, middle) + read_all(reader, middle, end), RAW_SCHEMA)
    assert saved.num_rows == 4
    assert all_there_is(reader, end) == end
    assert reader.partitions(end, end) == []


def test_lost_records_end_a_stream_unless_it_may_go_on(
    broker: Broker, admin: KafkaAdminClient, caplog: pytest.LogCaptureFixture
) -> None:
    from kafka_records_tables.engines.spark_offsets import DataLost

    create_topics(admin, spark_lost=1)
    send(broker, "spark_lost", 10)
    strict = reader_of(broker, topic="spark_lost")
    lenient = reader_of(broker, topic="spark_lost", failOnDataLoss="false")
    start = strict.initialOffset()
    seen = {"spark_lost": {**all_there_is(strict, start)["spark_lost"], "0": 2}}
    planned = strict.partitions(seen, all_there_is(strict, seen))
    admin.delete_records({TopicPartition("spark_lost", 0): 6})
    end = all_there_is(strict, seen)
    sentence = "spark_lost-0: offsets 2 to 5 were deleted before they were read: the log starts at 6 now"
    with pytest.raises(
        DataLost, match=f"^{sentence}. To continue without them, set the option 'failOnDataLoss' to 'false'$"
    ):
        strict.partitions(seen, end)
    # The topic is deleted between the plan and its task.
    with pytest.raises(DataLost, match="offsets 2 to 5 are deleted while the log was read: it starts at 6 now"):
        list(strict.read(planned[0]))
    with caplog.at_level(logging.WARNING):
        assert [row["offset"] for row in read_all(lenient, seen, end)] == [6, 7, 8, 9]
        assert [row["offset"] for batch in lenient.read(planned[0]) for row in batch.to_pylist()] == [6, 7, 8, 9]
    assert caplog.messages[0] == sentence
    assert "offsets 2 to 5 are deleted while the log was read" in caplog.messages[1]

    ahead = {"spark_lost": {**end["spark_lost"], "0": 50}}
    with pytest.raises(DataLost, match="spark_lost-0 was read up to offset 50 and ends at 10 now: its log was cut off"):
        all_there_is(strict, ahead)
    assert all_there_is(lenient, ahead) == end

    admin.delete_topics(["spark_lost"])
    create_topics(admin, spark_lost=1)
    send(broker, "spark_lost", 30)
    with pytest.raises(DataLost, match="topic spark_lost was deleted and recreated since it was read"):
        all_there_is(strict, end)
    again = all_there_is(lenient, end)
    assert [row["offset"] for row in read_all(lenient, end, again)] == list(range(30))
    with pytest.raises(DataLost, match="topic spark_lost was deleted or recreated after its offsets were planned"):
        strict.partitions(seen, end)


def test_a_partition_that_is_added_is_read_from_its_start(broker: Broker, admin: KafkaAdminClient) -> None:
    create_topics(admin, spark_more=1)
    send(broker, "spark_more", 4)
    reader = reader_of(broker, topic="spark_more", startingOffsets="latest")
    start = reader.initialOffset()
    assert start == {"starting offsets": "latest"}
    first = all_there_is(reader, start)
    assert read_all(reader, start, first) == []
    admin.create_partitions({"spark_more": 2})
    for _ in range(100):
        if len(LiveBrokers(broker.bootstrap).partitions("spark_more")) == 2:
            break
        time.sleep(0.05)
    send(broker, "spark_more", 40)
    second = all_there_is(reader, first)
    found = Counter(row["partition"] for row in read_all(reader, first, second))
    assert found[0] + found[1] == 40
    assert found[1]


def test_a_broker_that_is_away_fails_the_batch_and_is_never_skipped(broker: Broker, admin: KafkaAdminClient) -> None:
    create_topics(admin, spark_away=1)
    send(broker, "spark_away", 3)
    patience = {"kafka.default.api.timeout.ms": "400"}
    for mode in ("FAILFAST", "PERMISSIVE"):
        reader = reader_of(broker, topic="spark_away", mode=mode, failOnDataLoss="false", **patience)
        start = reader.initialOffset()
        end = all_there_is(reader, start)
        beyond = {"spark_away": {**end["spark_away"], "0": 9}}
        (task,) = reader.partitions(start, beyond)
        with pytest.raises(
            ValueError, match=r"the log ends at 3 now, and ended at 9 before, for 0.4 s \(offsets 3 to 8 are"
        ):
            list(reader.read(task))


def test_the_offsets_of_older_sparks(broker: Broker, admin: KafkaAdminClient, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka_records_tables.engines import spark_stream
    from kafka_records_tables.engines.spark_offsets import BadOption

    monkeypatch.setattr(spark_stream, "_CAN_LIMIT", False)
    create_topics(admin, spark_older=1)
    send(broker, "spark_older", 3)
    reader = reader_of(broker, topic="spark_older")
    end = reader.latestOffset()
    assert [row["offset"] for row in read_all(reader, reader.initialOffset(), end)] == [0, 1, 2]
    with pytest.raises(BadOption, match=r"maxOffsetsPerTrigger needs PySpark 4\.2 or later"):
        reader_of(broker, topic="spark_older", maxOffsetsPerTrigger="3")


def test_a_transaction_of_a_saved_stream_is_settled_by_its_marker(broker: Broker, admin: KafkaAdminClient) -> None:
    """An open commit in one batch, its marker in a later one."""
    create_topics(admin, spark_late=1)
    reader = reader_of(broker, topic=INTERNAL[0])
    ranges = [reader.initialOffset()]
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="spark-late")) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_offsets_to_transaction(annotated({("spark_late", 0): 11}), "spark-late")
        ranges.append(all_there_is(reader, ranges[-1]))
        producer.commit_transaction()
    ranges.append(once_it_goes_on(reader, ranges[-1]))
    parts = [read_all(reader, *each) for each in pairwise(ranges)]
    assert any(row["transaction"] == "open" for row in parts[0])
    saved = pa.Table.from_pylist([row for part in parts for row in part], RAW_SCHEMA)
    found = read_table("current_offsets", saved, group="spark-late").table.to_pylist()
    assert [(row["topic"], row["offset"]) for row in found] == [("spark_late", 11)]
