"""Streams over the files of a topic, one file to a micro-batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kafka_records_engine.spark.raw import RAW_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SECONDS = 300


def stream_of(spark: SparkSession, folder: Path, files: int = 1) -> DataFrame:
    return spark.readStream.schema(RAW_SCHEMA).option("maxFilesPerTrigger", files).parquet(str(folder))


def run(rows: DataFrame, sink: Path, checkpoint: Path) -> StreamingQuery:
    """Write all available rows into Parquet files, and wait for it."""
    query = (
        rows.writeStream.format("parquet")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start(str(sink))
    )
    assert query.awaitTermination(SECONDS)
    return query


def counts(query: StreamingQuery, name: str) -> list[dict[str, int]]:
    """The counts of the observation `name` in each micro-batch, without those that are 0."""
    observed = [progress.observedMetrics[name] for progress in query.recentProgress if progress.numInputRows]
    return [{name: count for name, count in each.asDict().items() if count} for each in observed]
