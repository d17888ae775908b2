"""Definitions of a Declarative Pipeline, which `test_pipelines` adds to those of `examples/pipeline`.

Streaming tables of decoded records, and materialized views by column functions. The calls to Spark meanwhile are
recorded, and its error for a definition that reads columns. If the configuration has the catalog of the functions in
the JVM, these decode, and the definitions add their jar.
"""

from __future__ import annotations

import json
from pathlib import Path

from pyspark import pipelines as dp
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from kafka_records_engine.spark.errors import NoJvmFunctions
from kafka_records_engine.spark.jvm import add_functions, catalog_for
from kafka_records_engine.spark.raw import as_raw_rows
from tests.spark.ways import queries
from tests.spark.ways.calls import Calls
from tests.spark.ways.streams import stream_of
from tests.spark.ways.truth import OFFSETS, SHARE, TOPICS

spark = SparkSession.active()
FOLDER = Path(str(spark.conf.get("spark.ways.folder")))
REPORT = Path(str(spark.conf.get("spark.ways.report")))
refusals: list[str] = []
try:
    add_functions(spark)
except NoJvmFunctions as missing:
    refusals.append(str(missing))
CATALOG = catalog_for(spark, "kafka_records", None)
calls = Calls(spark.client)


def define(topic: str) -> None:
    @dp.temporary_view(name=f"raw{topic}")
    def raw() -> DataFrame:
        return spark.read.parquet(str(FOLDER / topic))

    @dp.table(name=f"decoded{topic}")
    def decoded() -> DataFrame:
        return queries.decoded(stream_of(spark, FOLDER / topic), topic, observation="decoded")


for name in TOPICS:
    define(name)


@dp.materialized_view
def ways_there_and_back() -> DataFrame:
    return queries.there_and_back(spark.read.table(f"raw{SHARE}"), SHARE)


@dp.materialized_view
def ways_markers() -> DataFrame:
    return queries.markers(spark.read.table(f"raw{OFFSETS}"))


@dp.materialized_view
def ways_members() -> DataFrame:
    return queries.members(spark.read.table(f"raw{OFFSETS}"))


@dp.materialized_view
def ways_saved() -> DataFrame:
    saved = spark.read.table(f"raw{SHARE}").select("key", "value", "partition", "offset")
    raw = as_raw_rows(saved, SHARE, columns=["key", "value", "partition", "offset"])
    rows = queries.decoded(raw, SHARE, records=["ShareSnapshot"], mode="DROPMALFORMED", observation="saved")
    return rows.select("partition", "offset", "share_snapshot")


called = calls.so_far()


@dp.temporary_view
def ways_refused() -> DataFrame:
    rows = spark.read.table(f"raw{SHARE}")
    try:
        as_raw_rows(rows, SHARE)
    except AnalysisException as error:
        refusals.append(str(error))
    return rows


REPORT.write_text(json.dumps({"calls": called, "refusals": refusals, "catalog": CATALOG}), encoding="utf-8")
