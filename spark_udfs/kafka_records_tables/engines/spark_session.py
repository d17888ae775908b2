"""Starts a local Spark session that prints nothing."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_tables.engines.java import check_java
from kafka_records_tables.engines.spark_failures import first_line, gateway_detail, memory_ran_out

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


class SparkNotStarted(KafkaRecordsError, RuntimeError):
    """Spark did not start; `detail` says why."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    def __str__(self) -> str:
        return f"Spark did not start: {self.detail}"


@contextmanager
def local_session(settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session on all cores of this machine, which is stopped at the end, or the existing session of this process.

    `settings` are Spark properties, including `spark.master`, that override those chosen here. The output of the JVM
    and the workers goes to a file and is shown only if Spark does not start. Raises JavaMissing and SparkNotStarted.
    """
    from pyspark.sql import SparkSession

    with _environment():
        active = SparkSession.getActiveSession()
        if active is not None:
            yield active
            return
        check_java()
        with tempfile.TemporaryDirectory(prefix="kafka-records-") as folder:
            scratch = Path(folder)
            with (scratch / "spark.log").open("w+b") as log:
                session = _started(scratch, log, settings)
                try:
                    yield session
                finally:
                    _stop(session, log)


def _stop(session: SparkSession, log: IO[bytes]) -> None:
    """Stop a session, without a traceback if Ctrl-C is pressed again in the meantime or the JVM has already ended."""
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with _output_into(log):
            session.stop()
    except Exception as error:
        if not memory_ran_out(error):
            raise
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, previous)


def _started(scratch: Path, log: IO[bytes], settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    log4j = scratch / "log4j2.properties"
    log4j.write_text(_LOG4J, encoding="utf-8")
    chosen = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log4j.as_uri()}",
        "spark.driver.host": "127.0.0.1",
        # The result has to fit into this process's memory anyway.
        "spark.driver.maxResultSize": "0",
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
        detail = gateway_detail(log.read().decode("utf-8", "replace")) if "JAVA_GATEWAY" in str(error) else None
        raise SparkNotStarted(detail or first_line(error)) from error


@contextmanager
def _environment() -> Iterator[None]:
    """Workers run this interpreter and use its Spark on this machine, regardless of the environment."""
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
    """Redirects the standard output and error of processes started within the context to `log`.

    The JVM prints greetings and warnings there, but our standard output must contain only the result.
    """
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
