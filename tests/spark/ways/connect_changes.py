"""The client of a Connect server that follows a table.

    python -m tests.spark.ways.connect_changes REMOTE FOLDER SCRATCH

FOLDER holds raw rows of `__consumer_offsets`. The results go into the pickle SCRATCH/outcome: the number of
micro-batches, and the rows of the table, from the changes in a sink and from `foreachBatch`.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records_tables.spark import changes, merged
from tests.spark.ways.streams import SECONDS, run, stream_of
from tests.spark.ways.truth import BROKEN_PARTITION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NAME = "current_offsets"
CUT = 100
"""The offset at which each log partition is divided into two micro-batches."""


def main(remote: str, folder: str, scratch: str) -> None:
    spark = SparkSession.builder.remote(remote).getOrCreate()
    place = Path(scratch)
    raw = spark.read.parquet(folder).where(F.col("partition") < BROKEN_PARTITION)
    for piece in (raw.where(F.col("offset") < CUT), raw.where(F.col("offset") >= CUT)):
        piece.coalesce(1).write.mode("append").parquet(str(place / "raw"))
    told = changes(stream_of(spark, place / "raw"), NAME)
    run(told, place / "changes", place / "checkpoint")
    batches = len(list(place.glob("checkpoint/commits/[0-9]*")))
    by_sink = merged(spark.read.parquet(str(place / "changes")), NAME)

    def keep(changed: DataFrame, number: int) -> None:
        session = changed.sparkSession
        before = session.read.parquet(f"{scratch}/rows-{number - 1}") if number else None
        merged(changed, NAME, before).write.mode("overwrite").parquet(f"{scratch}/rows-{number}")

    writer = told.writeStream.foreachBatch(keep).option("checkpointLocation", f"{scratch}/checkpoint-of-rows")
    assert writer.trigger(availableNow=True).start().awaitTermination(SECONDS)
    by_batch = spark.read.parquet(f"{scratch}/rows-{batches - 1}")
    rows = {"sink": by_sink, "foreachBatch": by_batch}
    outcome = {name: [row.asDict(recursive=True) for row in frame.collect()] for name, frame in rows.items()}
    (place / "outcome").write_bytes(pickle.dumps((batches, outcome)))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
