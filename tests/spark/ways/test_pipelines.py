"""In Declarative Pipelines: Spark's own command runs a project, and the tests read its tables."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from kafka_records_tables import TABLES, read_table
from tests.spark.ways import queries
from tests.spark.ways.conftest import ROOT
from tests.spark.ways.truth import BROKEN_PARTITION, OFFSETS, SHARE, TOPICS, in_order
from tests.tables.names import COORDINATED

if TYPE_CHECKING:
    from tests.spark.across_releases.reading import Record
    from tests.spark.ways.conftest import Inputs, Server

pytestmark = [pytest.mark.spark, pytest.mark.matrix]  # other tests run the same queries in a batch and in a stream

EXAMPLE = ROOT / "examples" / "pipeline"
REFUSED = (
    "[ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION] Operations that trigger DataFrame analysis or execution are not "
    "allowed in pipeline query functions. Move code outside of the pipeline query function. SQLSTATE: 0A000"
)


@dataclass(frozen=True)
class Run:
    """A pipeline that has run: what the command printed, and where its tables are."""

    printed: str
    report: Mapping[str, Any]
    warehouse: Path
    engine: str

    def table(self, name: str) -> list[Record]:
        rows: list[Record] = pq.read_table(self.warehouse / name).to_pylist()
        return rows


_CREATE = """\
import sys
from pyspark.sql import SparkSession
SparkSession.builder.remote(sys.argv[1]).getOrCreate().sql(f"CREATE DATABASE {sys.argv[2]}").collect()
"""
NO_CATALOG = (
    "no functions in the JVM: only the configuration of a Declarative Pipeline can set "
    "spark.sql.catalog.kafka_records: add 'spark.sql.catalog.kafka_records: kafkarecords.Catalog' to it; "
    "engine='python' decodes without them"
)


@pytest.fixture(scope="module", params=["python", "jvm"])
def pipeline(
    request: pytest.FixtureRequest,
    server: Server,
    inputs: Inputs,
    topics_dir: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    """The project of examples/pipeline, with two of its tables, another place for what it keeps, more definitions.

    One decodes in Python, the other has the functions in the JVM by its configuration.
    """
    request.getfixturevalue("built")
    project = tmp_path_factory.mktemp("pipeline")
    shutil.copytree(EXAMPLE / "transformations", project / "transformations")
    shutil.copy(Path(__file__).with_name("pipeline_definitions.py"), project / "transformations")
    report = project / "report.json"
    own = f"\n  spark.ways.folder: {inputs.folder}\n  spark.ways.report: {report}"
    if request.param == "jvm":
        own += "\n  spark.sql.catalog.kafka_records: kafkarecords.Catalog"
    return _run(server, project, topics_dir, ",".join(queries.TABLES), own, report, request.param)


def _run(server: Server, project: Path, topics_dir: Path, tables: str, own: str, report: Path, engine: str) -> Run:
    """Run a project with Spark's own command, into a separate database; `own` are more lines of its configuration."""
    database = f"ways_{engine}"
    spec = f"{_spec(project, topics_dir, tables, own)}\ndatabase: {database}\n"
    (project / "spark-pipeline.yaml").write_text(spec, encoding="utf-8")
    server.client([sys.executable, "-c", _CREATE, server.remote, database])
    command = [str(_script()), "--remote", server.remote, "run", "--spec", str(project / "spark-pipeline.yaml")]
    try:
        printed = server.client(command)
    except AssertionError as failed:
        # On a busy machine, Spark's runner sometimes gives up; a second run continues where the first one stopped. An
        # error in a definition fails twice, with both messages.
        print(failed)
        printed = server.client(command)
    return Run(printed, json.loads(report.read_text(encoding="utf-8")), server.warehouse / f"{database}.db", engine)


def _spec(project: Path, topics_dir: Path, tables: str, own: str) -> str:
    """The configuration of the example, with other paths."""
    places = {
        "storage: ": (project / "storage").as_uri(),
        "  spark.offsets.data: ": f"{topics_dir / 'kafka-4.3' / 'segments'}",
        "  spark.offsets.tables: ": f'"{tables}"',
        "configuration:": own,
    }
    lines = []
    for line in (EXAMPLE / "spark-pipeline.yaml").read_text(encoding="utf-8").splitlines():
        start = next((start for start in places if line.startswith(start)), None)
        lines.append(line if start is None else start + places.pop(start))
    assert places == {}
    return "\n".join(lines)


@pytest.mark.parametrize("topic", TOPICS)
def test_records_are_decoded_by_a_streaming_table(pipeline: Run, inputs: Inputs, topic: str) -> None:
    assert in_order(pipeline.table(f"decoded{topic}")) == in_order(inputs.topics[topic].decoded)


def test_the_configuration_chooses_the_engine(pipeline: Run) -> None:
    assert pipeline.report["catalog"] == ("kafka_records" if pipeline.engine == "jvm" else None)


def test_column_functions_there_and_back(pipeline: Run, inputs: Inputs) -> None:
    assert in_order(pipeline.table("ways_there_and_back")) == in_order(inputs.topics[SHARE].there_and_back())


def test_messages_inside_of_records(pipeline: Run, inputs: Inputs) -> None:
    assert in_order(pipeline.table("ways_markers")) == in_order(inputs.topics[OFFSETS].markers())
    assert in_order(pipeline.table("ways_members")) == in_order(inputs.topics[OFFSETS].members())


def test_raw_rows_of_a_saved_topic(pipeline: Run, inputs: Inputs) -> None:
    expected = [
        {name: row[name] for name in ("partition", "offset", "share_snapshot")}
        for row in inputs.topics[SHARE].decoded
        if row["record_type"] == 0 and row["error"] is None
    ]
    assert in_order(pipeline.table("ways_saved")) == in_order(expected)


def test_definitions_look_at_no_columns(pipeline: Run) -> None:
    """Spark does not allow it. Our definitions only define, and look up a property of the session."""
    assert set(pipeline.report["calls"]) <= {"ExecutePlan", "Config"}
    refusals = [REFUSED] if pipeline.engine == "jvm" else [NO_CATALOG, REFUSED]
    assert [text.splitlines()[0] for text in pipeline.report["refusals"]] == refusals


@pytest.mark.parametrize("name", queries.TABLES)
def test_the_example_has_the_tables_of_the_broker(pipeline: Run, inputs: Inputs, name: str) -> None:
    rows = [tuple(row[column] for column in queries.TABLES[name]) for row in pipeline.table(name)]
    assert sorted(rows) == inputs.tables[name]


def test_the_example_has_every_commit(pipeline: Run, inputs: Inputs) -> None:
    expected = [
        {
            "log_partition": row["partition"],
            "log_offset": row["offset"],
            "transaction": row["transaction"],
            **row["offset_commit"]["key"],
            "value": row["offset_commit"]["value"],
        }
        for row in inputs.topics[OFFSETS].decoded
        if row["offset_commit"] is not None and row["partition"] != BROKEN_PARTITION
    ]
    found = sorted(pipeline.table("commits_by_columns"), key=lambda row: (row["log_partition"], row["log_offset"]))
    assert found == sorted(expected, key=lambda row: (row["log_partition"], row["log_offset"]))


def test_the_example_knows_what_members_read(pipeline: Run, inputs: Inputs) -> None:
    names = ("member_id", "topics", "assigned")
    expected = sorted(
        (row["partition"], row["offset"], *(str(row[name]) for name in names))
        for row in inputs.topics[OFFSETS].members()
    )
    found = sorted(
        (row["log_partition"], row["log_offset"], *(str(row[name]) for name in names))
        for row in pipeline.table("members_by_columns")
    )
    assert found == expected


@pytest.mark.slow
def test_the_example_has_every_table(topics_dir: Path, tmp_path: Path) -> None:
    """The tables have the rows of the local engine, and the command is that of the example."""
    shutil.copytree(EXAMPLE / "transformations", tmp_path / "transformations")
    (tmp_path / "spark-pipeline.yaml").write_text(_spec(tmp_path, topics_dir, "", ""), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = [str(_script()), "run", "--spec", "spark-pipeline.yaml"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in COORDINATED:
        table = TABLES[name]
        expected = read_table(name, topics_dir / "kafka-4.3" / "segments").table
        if len(expected):  # Spark writes no file if there are no rows
            sort = [(each, "ascending") for each in table.identity]
            found = pq.read_table(tmp_path / "spark-warehouse" / name).select(table.names).cast(table.schema)
            assert found.sort_by(sort).equals(expected.sort_by(sort)), name


def _script() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent / "bin" / "spark-pipelines"
