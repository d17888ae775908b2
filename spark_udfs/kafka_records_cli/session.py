"""A local Spark session that keeps quiet."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from kafka_records_cli.failures import CommandError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG4J: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n%ex
"""

_SHUFFLE_PARTITIONS: Final = 16


@contextmanager
def local_session(settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session on all cores of this machine, stopped at the end; the session of this process if it has one already.

    `settings` are Spark properties that win over those chosen here. Whatever the JVM and the workers print goes into a
    file and is shown only when Spark does not start.
    """
    from pyspark.sql import SparkSession

    with _environment():
        active = SparkSession.getActiveSession()
        if active is not None:
            yield active
            return
        with tempfile.TemporaryDirectory(prefix="kafka-records-") as folder:
            scratch = Path(folder)
            with (scratch / "spark.log").open("w+b") as log:
                session = _started(scratch, log, settings)
                try:
                    yield session
                finally:
                    session.stop()


def _started(scratch: Path, log: IO[bytes], settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    log4j = scratch / "log4j2.properties"
    log4j.write_text(_LOG4J, encoding="utf-8")
    chosen = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log4j.as_uri()}",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(_SHUFFLE_PARTITIONS),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    try:
        builder = SparkSession.builder.appName("kafka-records").master("local[*]")
        for name, value in {**chosen, **settings}.items():
            builder = builder.config(name, value)
        with _output_into(log):
            return builder.getOrCreate()
    except Exception as error:
        log.seek(0)
        reason = gateway_reason(log.read().decode("utf-8", "replace")) if "JAVA_GATEWAY" in str(error) else None
        raise CommandError(f"Spark did not start: {reason or first_line(error)}") from error


@contextmanager
def _environment() -> Iterator[None]:
    """Workers run this interpreter, and Spark is the one this interpreter has, on this machine, whatever is set."""
    import pyspark

    before = dict(os.environ)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_SUBMIT_ARGS"):
        os.environ.pop(name, None)
    if (Path(pyspark.__file__).parent / "jars").is_dir():
        os.environ.pop("SPARK_HOME", None)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _output_into(log: IO[bytes]) -> Iterator[None]:
    """Processes started meanwhile inherit `log` as their standard output and error: the JVM greets and warns there, and
    only the result may go to ours."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [(descriptor, os.dup(descriptor)) for descriptor in (1, 2)]
    try:
        for descriptor, _ in saved:
            os.dup2(log.fileno(), descriptor)
        yield
    finally:
        for descriptor, copy in saved:
            os.dup2(copy, descriptor)
            os.close(copy)


def first_line(error: BaseException) -> str:
    """What an exception of Spark says, without the trace of the JVM."""
    text = str(error).strip() or type(error).__name__
    # Py4J says first that it called something, and behind it what went wrong there.
    called = re.match(r"An error occurred while calling .*\n: (?:[\w.$]+: )?(.+)", text)
    if called:
        return called[1]
    # An exception of a Python worker comes as its whole traceback, and the last line says what happened.
    worker = re.search(r"Traceback \(most recent call last\):\n(?: .*\n)+(\S.*)", text)
    return worker[1] if worker else text.splitlines()[0]


_CHATTER: Final = re.compile(r"\s*(?:at |\.\.\. \d+ more|WARNING|Picked up |NOTE:|Setting default |To adjust |$)")


def gateway_reason(said: str) -> str | None:
    """Why the JVM of a session ended before it was ready, out of what it printed; None when it printed nothing.

    The cause of an exception says more than the exception, and the first complaint more than those that follow it.
    """
    lines = [line for line in said.splitlines() if not _CHATTER.match(line)]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    if causes:
        return re.sub(r"^Caused by: (?:[\w.$]+: )?", "", causes[-1])
    thrown = [line for line in lines if line.startswith("Exception in thread ")]
    if thrown:
        return re.sub(r'^Exception in thread "[^"]*" (?:[\w.$]+: )?', "", thrown[0])
    return lines[0] if lines else None
