"""Submits `job.py` to a cluster on this machine: with spark-submit, as a plain script, or to a Connect server."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from tools.class_archives import spark_options

JOB: Final = Path(__file__).with_name("job.py")

_SECONDS: Final = 600
_CONNECT: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"

_LOG4J: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n%ex
"""


@dataclass(frozen=True)
class Cluster:
    """A cluster with one executor with one core and separate folders: it only has what is sent to it.

    With a `local[*]` master, the workers would be in the driver's folder, next to its files. That starts faster, and is
    used if this does not matter.
    """

    spark_home: Path
    segments: Path
    folder: Path
    master: str = "local-cluster[1,1,1024]"

    CONNECT_LOG: ClassVar = "connect-server.log"

    def submit(self, options: Sequence[str], steps: Sequence[str], python: str) -> list[Any]:
        """The report of `job.py`, submitted with spark-submit. `python` is PYSPARK_PYTHON."""
        properties = [argument for item in self._properties() for argument in ("--conf", item)]
        command = [str(self.spark_home / "bin" / "spark-submit"), *properties, *options, str(JOB)]
        return self._report(command, steps, self.environment(python))

    def run(self, steps: Sequence[str], python: str) -> list[Any]:
        """The report of `job.py` as a script that makes its own session."""
        properties = [f"set:{item}" for item in self._properties()]
        return self._report([sys.executable, str(JOB)], [*properties, *steps], self.environment(python))

    def connect(self, remote: str, steps: Sequence[str]) -> list[Any]:
        """The report of `job.py` as a client of the Connect server at `remote`, which has the workers."""
        # The server ignores the client's choice of an interpreter.
        environment = self.environment("python-of-the-client") | {"SPARK_REMOTE": remote}
        return self._report([sys.executable, str(JOB)], steps, environment)

    @contextmanager
    def connect_server(self, python: str) -> Iterator[str]:
        """The address of a Connect server, which runs within the context."""
        port = _free_port()
        binding = [f"spark.connect.grpc.binding.{name}" for name in ("address=127.0.0.1", f"port={port}")]
        properties = [argument for item in (*self._properties(), *binding) for argument in ("--conf", item)]
        command = [str(self.spark_home / "bin" / "spark-submit"), "--class", _CONNECT, *properties, "spark-internal"]
        log = self.folder / self.CONNECT_LOG
        with log.open("wb") as output, process(command, self.environment(python), output, self.folder) as server:
            _wait_for(port, server, log)
            yield f"sc://127.0.0.1:{port}"

    def _properties(self) -> list[str]:
        log4j = self.folder / "log4j2.properties"
        log4j.write_text(_LOG4J, encoding="utf-8")
        # Jobs end before Java's optimizing compiler would be worth its cost.
        options = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *spark_options(shutil.which("java")))
        java = f"{' '.join(options)} -Djava.io.tmpdir={self.folder}"
        return [
            f"spark.master={self.master}",
            f"spark.driver.extraJavaOptions={java} -Dlog4j2.configurationFile={log4j.as_uri()}",
            f"spark.executor.extraJavaOptions={java}",
            "spark.driver.memory=1g",
            f"spark.local.dir={self.folder}",
            "spark.sql.shuffle.partitions=1",
            f"spark.sql.warehouse.dir={self.folder / 'warehouse'}",
            # The first failure must be visible.
            "spark.task.maxFailures=1",
            "spark.ui.enabled=false",
            "spark.ui.showConsoleProgress=false",
        ]

    def environment(self, python: str) -> dict[str, str]:
        """The environment variables of this process, without those through which workers would find this checkout."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if name != "PYTHONPATH" and not name.startswith(("PYSPARK_", "SPARK_"))
        }
        return kept | {
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_PYTHON": python,
            "SPARK_HOME": str(self.spark_home),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def _report(self, command: Sequence[str], steps: Sequence[str], environment: dict[str, str]) -> list[Any]:
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        with (self.folder / "job.log").open("w+b") as output:
            arguments = [*command, str(report), str(self.segments), *steps]
            with process(arguments, environment, output, self.folder) as job:
                job.wait(_SECONDS)
            output.seek(0)
            assert job.returncode == 0, output.read().decode("utf-8", "replace")
        outcomes: list[Any] = json.loads(report.read_text(encoding="utf-8"))
        return outcomes


@contextmanager
def process(
    command: Sequence[str], environment: dict[str, str], output: Any, folder: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process in a new process group. At the end of the context, the whole group is killed, including
    executors."""
    process = subprocess.Popen(
        command,
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"The Connect server does not listen:\n{log.read_text(encoding='utf-8', errors='replace')}")
