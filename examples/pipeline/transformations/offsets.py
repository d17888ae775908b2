"""Every table of kafka-records as a materialized view, and two that are made from decoded records.

pip install '.[connect]'                                       # in a clone, once
export PYSPARK_PYTHON=$(which python)                          # the pipeline and its workers run in this environment
spark-pipelines run --spec examples/pipeline/spark-pipeline.yaml

Without a server of your own (`spark-pipelines --remote sc://host run …`) Spark starts one for the run, and the tables
are folders of Parquet files in ./spark-warehouse. Tables of topics that the data directory does not have are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records.spark.consumer_offsets import decode_records
from kafka_records.spark.consumer_protocol import (
    from_consumer_protocol_assignment,
    from_consumer_protocol_subscription,
)
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_engine.spark.segments import read_segments
from kafka_records_tables import TABLES, Table
from kafka_records_tables.spark import read_table, table
from kafka_records_tables.tables import is_of_records, tables_read

spark = SparkSession.active()
DATA = Path(str(spark.conf.get("spark.offsets.data"))).resolve()
CHOSEN = str(spark.conf.get("spark.offsets.tables", "") or ",".join(TABLES)).split(",")


def topics_of(tables: Iterable[Table]) -> set[str]:
    """The topics whose records tables are made of; one about the logs themselves has none."""
    return {each.topic for each in tables} - {""}


def is_there(name: str) -> bool:
    """Whether the data directory has the topics of a table; of a view, some of those that it may lack."""
    read, may_lack = tables_read(TABLES[name]), TABLES[name].optional_inputs
    needed = topics_of(each for each in read if each.name not in may_lack)
    return needed <= THERE and (bool(needed) or not may_lack or bool(topics_of(read) & THERE))


THERE = set(Segments(DATA).topics())
READ = topics_of(each for name in CHOSEN for each in tables_read(TABLES[name]))
TOPICS = sorted(READ & THERE | {"__consumer_offsets"})


@dp.materialized_view(comment="The topics as they are in the segment files, so that all tables read the same records.")
def raw_records() -> DataFrame:
    return reduce(DataFrame.unionAll, [read_segments(spark, DATA, topic=topic) for topic in TOPICS])


def define(name: str) -> None:
    """A table as a materialized view. One about the ends of logs reads the data directory itself."""

    @dp.materialized_view(name=name, comment=TABLES[name].about)
    def rows() -> DataFrame:
        if is_of_records(TABLES[name]):
            return table(spark.read.table("raw_records"), name)
        return read_table(spark, name, DATA)


for each in filter(is_there, CHOSEN):
    define(each)


@dp.materialized_view(comment="Every commit and every deleted offset (its value is null), with its place in the log.")
def commits_by_columns() -> DataFrame:
    raw = spark.read.table("raw_records").where("topic = '__consumer_offsets'")
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
def members_by_columns() -> DataFrame:
    raw = spark.read.table("raw_records").where("topic = '__consumer_offsets'")
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
