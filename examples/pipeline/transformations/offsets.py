"""What groups have committed, how far they are and what their members read: the offsets topic as a pipeline of tables.

pip install '.[connect]'                                       # in a clone, once
export PYSPARK_PYTHON=$(which python)                          # the pipeline and its workers run in this environment
spark-pipelines run --spec examples/pipeline/spark-pipeline.yaml

Without a server of your own (`spark-pipelines --remote sc://host run …`) Spark starts one for the run, and the tables
are folders of Parquet files in ./spark-warehouse.
"""

from __future__ import annotations

from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records.spark.consumer_offsets import decode_records
from kafka_records.spark.consumer_protocol import (
    from_consumer_protocol_assignment,
    from_consumer_protocol_subscription,
)
from kafka_records_engine.spark.segments import read_segments
from kafka_records_tables import TABLES
from kafka_records_tables.spark import table

spark = SparkSession.active()
DATA = Path(str(spark.conf.get("spark.offsets.data"))).resolve()


@dp.materialized_view(comment="The topic as it stands in the segment files, so that all tables read the same records.")
def raw_records() -> DataFrame:
    return read_segments(spark, DATA, topic="__consumer_offsets")


@dp.materialized_view(comment="Every commit and every deleted offset (its value is null), with its place in the log.")
def commits() -> DataFrame:
    raw = spark.read.table("raw_records")
    rows = decode_records(raw, records=["OffsetCommit"], coordinates=["partition", "offset", "transaction"])
    return rows.where("error is null").select(
        F.col("partition").alias("log_partition"),
        F.col("offset").alias("log_offset"),
        "transaction",
        "offset_commit.key.group",
        "offset_commit.key.topic",
        "offset_commit.key.partition",
        "offset_commit.value",
    )


@dp.materialized_view(comment="The members of classic groups: what they asked for, and what they were given.")
def members() -> DataFrame:
    raw = spark.read.table("raw_records")
    groups = decode_records(raw, records=["GroupMetadata"], coordinates=["partition", "offset"])
    return (
        groups.where("group_metadata.value.protocol_type = 'consumer'")
        .select("partition", "offset", "group_metadata.key.group", F.explode("group_metadata.value.members").alias("m"))
        .select(
            F.col("partition").alias("log_partition"),
            F.col("offset").alias("log_offset"),
            *("group", "m.member_id", "m.client_id", "m.client_host"),
            from_consumer_protocol_subscription("m.subscription").getField("topics").alias("topics"),
            from_consumer_protocol_assignment("m.assignment").getField("assigned_partitions").alias("assigned"),
        )
    )


@dp.materialized_view(comment=TABLES["current_offsets"].about)
def current_offsets() -> DataFrame:
    return table(spark.read.table("raw_records"), "current_offsets")


@dp.materialized_view(comment=TABLES["groups"].about)
def groups() -> DataFrame:
    return table(spark.read.table("raw_records"), "groups")
