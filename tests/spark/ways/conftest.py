"""The inputs of every way to run Spark: topics as raw rows in Parquet files, and a Connect server if needed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_records_engine.spark.jvm import add_functions
from tests.cluster.submitting import Cluster, process
from tests.spark.conftest import active
from tests.spark.ways.truth import TOPICS, Topic, read_topic, tables_of_the_broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 900


@dataclass(frozen=True)
class Inputs:
    """A folder of raw rows per topic, the expected decoded rows, and the broker's answers about the tables."""

    folder: Path
    topics: Mapping[str, Topic]
    tables: Mapping[str, list[tuple[Any, ...]]]

    def read(self, spark: SparkSession, topic: str) -> DataFrame:
        return spark.read.parquet(str(self.folder / topic))


@dataclass(frozen=True)
class Server:
    """A Connect server on this machine: its address, the folder of its tables, and a way to run its clients."""

    remote: str
    warehouse: Path
    client: Callable[[Sequence[str]], str]


@pytest.fixture(scope="module", params=[pytest.param("python", marks=pytest.mark.matrix), "jvm"])
def quick(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A session of the classic kind that compiles nothing, like the shared one. One decodes in Python, the other has
    the functions in the JVM."""
    session = spark.newSession()
    if request.param == "jvm":
        request.getfixturevalue("built")
        add_functions(session)
    with active(session):
        yield session


@pytest.fixture(scope="session")
def inputs(topics_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    capture = topics_dir / "kafka-4.3"
    topics = {name: read_topic(name, capture / "segments") for name in TOPICS}
    folder = tmp_path_factory.mktemp("raw")
    for topic in topics.values():
        topic.write(folder / topic.name)
    return Inputs(folder, topics, tables_of_the_broker(capture))


@pytest.fixture(scope="session")
def server(topics_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests of this folder. Its workers import the installed package."""
    import pyspark

    folder = tmp_path_factory.mktemp("server")
    cluster = Cluster(Path(pyspark.__file__).parent, topics_dir, folder, master="local[2]")

    def client(command: Sequence[str]) -> str:
        environment = cluster.environment(sys.executable) | {"PYTHONPATH": str(ROOT)}
        with (folder / "client.log").open("w+b") as output:
            with process(command, environment, output, folder) as running:
                running.wait(SECONDS)
            output.seek(0)
            text = output.read().decode("utf-8", "replace")
        # The error is in the client's output, but its cause is often only in the server's.
        logged = (folder / cluster.CONNECT_LOG).read_text("utf-8", "replace")[-10_000:]
        assert running.returncode == 0, f"{' '.join(command)}\n{text}\nThe end of the server's log:\n{logged}"
        return text

    with cluster.connect_server(sys.executable) as remote:
        yield Server(remote, folder / "warehouse", client)
