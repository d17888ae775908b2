"""`read_kafka`: Spark's own Kafka source over internal topics, without a trace and without transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from kafka_records_codegen.evolution.kafka_releases import cache_folder
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_tables import read_table
from kafka_records_tables.coordinator.transactions import UnknownTransactions
from tests.broker.clients import annotated, commit, create_topics
from tests.broker.test_live_brokers import INTERNAL, ends_of
from tests.kafka_needed import skipped_without_kafka
from tools.broker import Broker, jars_by_maven

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.maven]

CONNECTOR = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    # The newest release in Maven's central repository.
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)


@pytest.fixture(scope="module")
def connected(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with the connector."""
    with skipped_without_kafka():
        jars = jars_by_maven(cache_folder() / "spark-connector" / "4.2.0", "Spark's connector", CONNECTOR, alone=True)
    for jar in sorted(jars.glob("*.jar")):
        spark.sql(f"ADD JAR '{jar}'")
    yield spark
    spark.conf.unset("spark.sql.streaming.kafka.useDeprecatedOffsetFetching")


def test_internal_topics_have_rows_that_tables_refuse(
    connected: SparkSession, broker: Broker, admin: KafkaAdminClient, tmp_path: Path
) -> None:
    from kafka_records_engine.spark.kafka_source import read_kafka
    from kafka_records_tables.spark import current_offsets

    create_topics(admin, sparks_own=1)
    commit(admin, "sparks-own", {("sparks_own", 0): 5}, "")
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="sparks-own")) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_offsets_to_transaction(annotated({("sparks_own", 0): 6}), "sparks-own-txn")
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send_offsets_to_transaction(annotated({("sparks_own", 0): 7}), "sparks-own-txn")
        producer.commit_transaction()
        topics = LiveBrokers(broker.bootstrap).topics()
        groups, ends = sorted(map(str, admin.list_groups())), ends_of(broker, topics)

        def offset_of(level: str, group: str) -> list[int]:
            raw = read_kafka(connected, broker.bootstrap, INTERNAL[0], isolation_level=level)  # type: ignore[arg-type]
            rows = current_offsets(raw, group=group, assume="committed").collect()
            return [row["offset"] for row in rows]

        for level in ("read_uncommitted", "read_committed"):
            assert offset_of(level, "sparks-own") == [5]
            assert offset_of(level, "sparks-own-txn") == [7]
        raw = read_kafka(connected, broker.bootstrap, INTERNAL[0], isolation_level="read_uncommitted")
        commits = [row["offset"] for row in raw.where("contains(key, 'sparks-own-txn')").collect()]
        assert len(commits) >= 2
        with pytest.raises(UnknownTransactions, match="the source has neither transaction nor producer"):
            current_offsets(raw)
        stream = read_kafka(
            connected,
            broker.bootstrap,
            INTERNAL[0],
            isolation_level="read_committed",
            stream=True,
            partitions=[0, 1, 2],
        )
        query = (
            stream.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "rows"))
        )
        query.awaitTermination()
        saved = connected.read.parquet(str(tmp_path / "rows"))
        rows = current_offsets(saved, group="sparks-own", assume="committed").collect()
        assert [row["offset"] for row in rows] == [5]
        assert ends_of(broker, topics) == ends
        lag = read_table("lag", LiveBrokers(broker.bootstrap), spark_checkpoint=f"own={tmp_path / 'checkpoint'}").table
        of_query = {row["partition"]: row for row in lag.to_pylist() if row["group_id"] == "own"}
        assert {number: row["offset"] for number, row in of_query.items()} == {
            n: ends[INTERNAL[0], n] for n in range(3)
        }
        assert {(row["lag"], row["problem"]) for row in of_query.values()} == {(0, None)}
        assert sorted(map(str, admin.list_groups())) == groups


def test_what_is_set_here_is_no_option(spark: SparkSession) -> None:
    from kafka_records_engine.spark.kafka_source import read_kafka

    for name in ("subscribe", "assign", "kafka.bootstrap.servers", "kafka.isolation.level"):
        with pytest.raises(ValueError, match=f"^the option {name} is set by read_kafka"):
            read_kafka(spark, "b:1", "t", isolation_level="read_committed", options={name: "t"})
    with pytest.raises(
        ValueError, match=r"^isolation_level must be read_uncommitted or read_committed, not 'serializable'$"
    ):
        read_kafka(spark, "b:1", "t", isolation_level="serializable")  # type: ignore[arg-type]
