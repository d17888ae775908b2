"""The client of a Connect server, in a separate process: a process cannot have sessions of both kinds.

    python -m tests.spark.ways.connect_client REMOTE FOLDER SEGMENTS SCRATCH ENGINE

FOLDER holds the raw rows of each topic, SEGMENTS is a data directory, ENGINE decodes (jvm or python). The results go
into the pickle SCRATCH/outcome; for the JVM without those of tables.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import Observation, SparkSession

from kafka_records_engine.spark.raw import as_raw_rows
from kafka_records_tables import read_table
from kafka_records_tables import spark as tables
from kafka_records_tables.engines.spark_rows import StreamGiven
from kafka_records_tables.spark import register
from tests.spark.ways import queries
from tests.spark.ways.calls import Calls
from tests.spark.ways.streams import run, stream_of
from tests.spark.ways.truth import BROKEN_PARTITION, CUT_VALUE, OFFSETS, SHARE, TOPICS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]


class Client:
    def __init__(self, spark: SparkSession, folder: Path, segments: str, scratch: Path) -> None:
        self.spark = spark
        self.calls = Calls(spark.client)
        self.raw = {topic: spark.read.parquet(str(folder / topic)) for topic in TOPICS}
        self.folder = folder
        self.segments = segments
        self.scratch = scratch

    def everything(self) -> dict[str, Any]:
        self.calls.so_far()
        frames = self.frames()
        tables = self.tables()
        called = self.calls.so_far()
        return self.decoded(frames | tables) | {
            "calls": called,
            "saved": self.saved(),
            "over files": self.over_files(),
        }

    def in_jvm(self) -> dict[str, Any]:
        names = register(self.spark)
        self.calls.so_far()
        frames = self.frames()
        called = self.calls.so_far()
        frames["sql"] = self.sql("kafka_records.from_share_snapshot_value")
        return self.decoded(frames) | {"calls": called, "functions": names}

    def decoded(self, frames: dict[str, DataFrame]) -> dict[str, Any]:
        return {
            "rows": {name: _rows(frame) for name, frame in frames.items()},
            "counted": {topic: self.counted(topic) for topic in TOPICS},
            "dropped": self.dropped(),
            "streamed": self.streamed(),
            "failures": self.failures(),
        }

    def frames(self) -> dict[str, DataFrame]:
        """Every query over records, defined but not run."""
        frames = {"markers": queries.markers(self.raw[OFFSETS]), "members": queries.members(self.raw[OFFSETS])}
        for topic, raw in self.raw.items():
            frames[f"decoded {topic}"] = queries.decoded(raw, topic, observation="decoded")
            frames[f"there and back {topic}"] = queries.there_and_back(raw, topic)
        return frames

    def tables(self) -> dict[str, DataFrame]:
        """Every query for a table, defined but not run."""
        frames = {f"table {name}": queries.table(name, self.raw[OFFSETS]) for name in queries.TABLES}
        frames["findings"] = tables.findings(self.raw[OFFSETS], "current_offsets")
        return frames

    def sql(self, function: str) -> DataFrame:
        """Epochs of share snapshots by a function in SQL, registered under any name."""
        self.spark.read.parquet(str(self.folder / SHARE)).createOrReplaceTempView("share")
        return self.spark.sql(
            f"SELECT partition, offset, {function}(value).snapshot_epoch AS epoch FROM share"
            f" WHERE control IS NULL AND record_type(key) = 0 AND partition < {BROKEN_PARTITION}"
        )

    def over_files(self) -> dict[str, Any]:
        """A table over segment files: in one run, as a frame, and by its name in SQL."""
        names = register(self.spark, engine="python")
        found = read_table("groups", self.segments, spark=self.spark)
        self.calls.so_far()
        frames = {
            "frame": tables.read_table(self.spark, "groups", self.segments),
            "source": self.spark.read.format("kafka-records").option("table", "groups").load(self.segments),
        }
        try:
            tables.groups(stream_of(self.spark, self.folder / OFFSETS))
        except StreamGiven as error:
            refused = str(error)
        called = self.calls.so_far()
        return {
            "functions": len(names),
            "run": found.table.to_pylist(),
            **{name: [row.asDict() for row in frame.collect()] for name, frame in frames.items()},
            "calls": called,
            "refused": refused,
            "sql": _rows(self.sql("from_share_snapshot_value")),
        }

    def counted(self, topic: str) -> dict[str, int]:
        observation = Observation()
        queries.decoded(self.raw[topic], topic, observation=observation).count()
        return dict(observation.get)

    def dropped(self) -> tuple[list[dict[str, Any]], dict[str, int]]:
        observation = Observation("with a name")
        rows = queries.decoded(self.raw[SHARE], SHARE, mode="DROPMALFORMED", observation=observation)
        return _rows(rows), dict(observation.get)

    def saved(self) -> dict[str, Any]:
        """A topic whose keys and values were saved, and the cost of making raw rows from it."""
        saved = self.raw[SHARE].select("key", "value", "partition", "offset")
        self.calls.so_far()
        asked = as_raw_rows(saved, SHARE)
        calls_to_ask = self.calls.so_far()
        told = as_raw_rows(saved, SHARE, columns=["key", "value", "partition", "offset"])
        calls_when_told = self.calls.so_far()
        decoded = [queries.decoded(raw, SHARE, coordinates=["partition", "offset"]) for raw in (asked, told)]
        return {
            "calls to ask": calls_to_ask,
            "calls when told": calls_when_told,
            "rows": [_rows(frame.select("partition", "offset", "record_type", "error")) for frame in decoded],
        }

    def streamed(self) -> dict[str, Any]:
        stream = stream_of(self.spark, self.folder / SHARE)
        rows = queries.decoded(stream, SHARE, observation="decoded")
        query = run(rows, self.scratch / "sink", self.scratch / "checkpoint")
        observed = [progress.observedMetrics["decoded"].asDict() for progress in query.recentProgress]
        return {"rows": _rows(self.spark.read.parquet(str(self.scratch / "sink"))), "observed": observed}

    def failures(self) -> dict[str, str]:
        # It is undefined which of several rows is read first.
        broken = self.raw[SHARE].where(f"partition < {BROKEN_PARTITION} or offset = {CUT_VALUE}")
        value = queries.functions_of(SHARE).from_share_snapshot_value("value", mode="FAILFAST")
        frames = {
            "failfast": queries.decoded(broken, SHARE, mode="FAILFAST"),
            "failfast in a column": broken.where(f"partition = {BROKEN_PARTITION}").select(value),
            "failfast of rows in the driver": self.spark.createDataFrame([(b"\0\0",)], "value binary").select(value),
            "no raw rows": queries.decoded(self.spark.range(1), SHARE),
            "no raw rows for a table": queries.table("groups", self.spark.range(1)),
        }
        return {name: _failure(frame) for name, frame in frames.items()}


def _failure(frame: DataFrame) -> str:
    try:
        frame.collect()
    except PySparkException as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main(remote: str, folder: str, segments: str, scratch: str, engine: str) -> None:
    spark = SparkSession.builder.remote(remote).getOrCreate()
    client = Client(spark, Path(folder), segments, Path(scratch))
    outcome = client.in_jvm() if engine == "jvm" else client.everything()
    (Path(scratch) / "outcome").write_bytes(pickle.dumps(outcome))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
