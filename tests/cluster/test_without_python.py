"""The functions in the JVM without an installation of this package: the jar, one setting, and Spark's own shells."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_records_engine.log.reading.segment_files import RAW_SCHEMA, find_logs, read_partition
from kafka_records_engine.spark.jvm import JAR
from tests.cluster.environments import ROOT
from tests.cluster.submitting import Cluster, process

pytestmark = pytest.mark.spark

SETTING = "spark.sql.catalog.kafka_records=kafkarecords.Catalog"
PAGE = ROOT / "docs" / "jvm.md"
WORKERS = 2
SECONDS = 120


@pytest.fixture(scope="module")
def raw(segments: Path, scratch: Path, built: None) -> Path:
    """`__consumer_offsets` as saved Parquet files, one per task."""
    batches = [batch for log in find_logs([segments], "__consumer_offsets") for batch in read_partition(log)]
    folder = scratch / "raw"
    folder.mkdir()
    for number in range(2 * WORKERS):
        pq.write_table(pa.Table.from_batches(batches[number :: 2 * WORKERS], RAW_SCHEMA), folder / f"{number}.parquet")
    return folder


@pytest.fixture(scope="module")
def master(cluster: Cluster, scratch: Path) -> Iterator[str]:
    """The address of a standalone cluster with two workers that have other folders than the driver."""
    with ExitStack() as running:

        def start(name: str, kind: str, *arguments: str) -> Path:
            folder = scratch / name
            folder.mkdir()
            command = [str(cluster.spark_home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
            environment = cluster.environment("no-python-at-all") | {
                "SPARK_DAEMON_JAVA_OPTS": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.io.tmpdir={folder}"
            }
            output = running.enter_context((folder / "log").open("wb"))
            running.enter_context(process([*command, *arguments], environment, output, folder))
            return folder / "log"

        places = ("--host", "127.0.0.1", "--webui-port", "0", "--port")
        log = start("master", "master.Master", *places, str(_free_port()))
        url = _found(log, r"Starting Spark master at (spark://\S+)")
        for number in range(WORKERS):
            work = str(scratch / f"worker-{number}" / "work")
            options = ("--cores", "1", "--memory", "1g", "--work-dir", work)
            log_of_worker = start(f"worker-{number}", "worker.Worker", *places, "0", *options, url)
            _found(log_of_worker, "(Successfully registered with master)")
        yield url


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _found(log: Path, pattern: str) -> str:
    end = monotonic() + SECONDS
    while monotonic() < end:
        match = re.search(pattern, log.read_text(encoding="utf-8", errors="replace"))
        if match:
            return match[1]
        sleep(0.2)
    raise AssertionError(log.read_text(encoding="utf-8", errors="replace"))


def shell(cluster: Cluster, name: str, lines: str, *options: str) -> str:
    """The output of one of Spark's shells with these lines on its standard input."""
    java = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.io.tmpdir={cluster.folder}"
    own = {
        "spark.driver.extraJavaOptions": f"{java} -Dderby.system.home={cluster.folder}",
        "spark.executor.extraJavaOptions": java,
        "spark.ui.enabled": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(cluster.folder / "warehouse"),
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.cores.max": str(WORKERS),
        "spark.sql.shuffle.partitions": str(WORKERS),
        # Both executors are registered before the first task, so that both get tasks.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    }
    command = [str(cluster.spark_home / "bin" / name)]
    command += [part for item in own.items() for part in ("--conf", "=".join(item))]
    done = subprocess.run(
        [*command, *options],
        input=lines,
        env=cluster.environment("no-python-at-all") | {"TERM": "dumb"},
        cwd=cluster.folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def commits(expected_contents: dict[str, Any]) -> list[str]:
    """Committed offsets by topic, as lines of a shell."""
    by_topic: dict[str, int] = {}
    for _, _, _, topic, _, offset in expected_contents["commits"]:
        by_topic[topic] = max(offset, by_topic.get(topic, -1))
    return [f"{topic}\t{offset}" for topic, offset in sorted(by_topic.items())]


def blocks(language: str) -> list[str]:
    """The blocks of code in this language on the page."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def of_page(text: str, raw: Path) -> str:
    return text.replace("/data/raw", str(raw))


@pytest.mark.matrix
def test_spark_sql_on_a_cluster_of_two_workers(
    cluster: Cluster, master: str, raw: Path, scratch: Path, expected_contents: dict[str, Any]
) -> None:
    """As described on the page: a file of statements, the jar, the setting."""
    (query,) = blocks("sql")
    statements = scratch / "statements.sql"
    statements.write_text(of_page(query, raw), encoding="utf-8")
    options = ["--master", master, "--jars", str(JAR), "--conf", SETTING, "-f", str(statements)]
    printed = shell(cluster, "spark-sql", "", *options)
    assert [line for line in printed.splitlines() if re.fullmatch(r"[\w.-]+\t\d+", line)] == commits(expected_contents)
    for number in range(WORKERS):
        copies = [*(scratch / f"worker-{number}" / "work").rglob(JAR.name)]
        assert copies, "each worker was sent the jar"


@pytest.mark.matrix
def test_a_job_whose_workers_have_no_python(
    cluster: Cluster, master: str, raw: Path, expected_contents: dict[str, Any]
) -> None:
    """Only the driver has the package. Without options from the administrator, the session adds the jar itself."""
    job = replace(cluster, master=master)
    for options in ([], ["--jars", str(JAR), "--conf", SETTING]):
        (outcome,) = job.submit(options, [f"rows:{raw}"], "no-python-at-all")
        assert outcome == {"contents": expected_contents}


@pytest.mark.matrix
def test_spark_shell(cluster: Cluster, raw: Path, expected_contents: dict[str, Any]) -> None:
    (code,) = blocks("scala")
    options = ["--master", "local[2]", "--jars", str(JAR), "--conf", SETTING]
    ending = 'println("FOUND " + commits.toJSON.collect().mkString("[", ",", "]"))\n:quit\n'
    printed = shell(cluster, "spark-shell", of_page(code, raw) + ending, *options)
    (found,) = re.findall(r"FOUND (\[.*\])", printed)
    assert [f"{row['topic']}\t{row['highest']}" for row in json.loads(found)] == commits(expected_contents)


def test_the_page_has_the_two_lines() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in ("spark-sql", "spark-shell"):
        assert re.search(rf"{name} +--jars kafka-records.jar \\\n +--conf {SETTING}", page)
