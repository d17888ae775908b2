"""Fixtures for the data in tests/data, a local Spark session, the Hypothesis profiles, and what workers share."""

from __future__ import annotations

import gc
import gzip
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck, settings

from kafka_records_engine.lean import collect_rarely
from tests.ci import count_skip_as_failure
from tools.class_archives import spark_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Texts are fitted to the width in these variables, and xdist sets one.
for _name in ("COLUMNS", "LINES"):
    os.environ.pop(_name, None)

# Most JVMs of tests end before their second compiler is worth its cost. Spark's scripts pass these options on silently.
for _name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS", "MAVEN_OPTS"):
    os.environ[_name] = f"{os.environ.get(_name, '')} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC".strip()
os.environ["SPARK_SUBMIT_OPTS"] = " ".join([os.environ["SPARK_SUBMIT_OPTS"], *spark_options(shutil.which("java"))])

# Processes that a shell starts in the background ignore Ctrl-C, and so would all processes that tests start and
# interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The objects of thirteen thousand tests stay in memory. Searching them for garbage would take a tenth of the time.
gc.disable()

DATA_DIR = Path(__file__).resolve().parent / "data"

settings.register_profile("quick", max_examples=5, deadline=None)
settings.register_profile("usual", max_examples=12, deadline=None)
settings.register_profile("exhaustive", max_examples=5_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("usual")

VectorLoader = Callable[[str], list[dict[str, Any]]]

_QUIET_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with everything that Kafka wrote: `vectors`, `kafka`, `topics`."""
    return DATA_DIR


@pytest.fixture(scope="session")
def topics_dir() -> Path:
    """The folder with a captured data directory per broker: `kafka-4.3`, `kafka-4.3-expiry`, `kafka-2.8`."""
    return DATA_DIR / "topics"


@pytest.fixture(scope="session")
def load_vectors() -> VectorLoader:
    """Reads a file of JSON lines from tests/data/vectors, packed or not, once per session."""
    loaded: dict[str, list[dict[str, Any]]] = {}

    def load(name: str) -> list[dict[str, Any]]:
        if name not in loaded:
            raw = (DATA_DIR / "vectors" / name).read_bytes()
            text = gzip.decompress(raw) if name.endswith(".gz") else raw
            loaded[name] = [json.loads(line) for line in text.splitlines()]
        return loaded[name]

    return load


@pytest.fixture(scope="session")
def kafka_cases() -> Callable[[str], Any]:
    """Reads a JSON file from tests/data/kafka."""
    return lambda name: json.loads((DATA_DIR / "kafka" / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local session for all tests: two threads, no web server, errors only on standard error.

    It compiles no queries, which takes longer than it saves for so few rows; sessions with the functions in the JVM do.
    """
    from pyspark.sql import SparkSession

    scratch = tmp_path_factory.mktemp("spark")
    log4j = scratch / "log4j2.properties"
    log4j.write_text(_QUIET_LOG4J, encoding="utf-8")
    with pytest.MonkeyPatch.context() as environment:
        # Without these variables, workers find neither this interpreter nor the source roots.
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        environment.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        environment.delenv("SPARK_HOME", raising=False)
        session = (
            SparkSession.builder.master("local[2]")
            .appName("kafka-records tests")
            .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={log4j.as_uri()}")
            .config("spark.driver.memory", "1g")
            .config("spark.python.daemon.module", "tests.spark_daemon")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.codegen.wholeStage", "false")
            .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
            .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .getOrCreate()
        )
        _shared.append(session)
        yield session
        _shared.clear()
        session.stop()


_shared: list[SparkSession] = []
"""The session of the fixture `spark`, once there is one."""

_SESSIONS: Final = ("in_jvm", "registered", "quick", "session", "spark")
"""The fixtures that are Spark sessions. Those that fewer tests use come first."""


def pytest_collection_finish() -> None:
    """Enable garbage collection from now on, as rarely as in this project's programs, and only of objects that tests
    make."""
    gc.freeze()
    collect_rarely()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Column functions use the active session, that of the last DataFrame. So each test begins with its own session or
    with the shared one as the active session. The shared one decodes in Python, regardless of what earlier tests have
    registered in it."""
    given = getattr(item, "funcargs", {})
    own = [given[name] for name in _SESSIONS if hasattr(given.get(name), "_jsparkSession")]
    session = next(iter([*own, *_shared]), None)
    if session is not None and session in _shared:
        session.conf.unset("spark.sql.catalog.kafka_records")
    if session is not None:
        type(session)._activeSession = session  # the session that PySpark returns, regardless of the JVM's
        session._jvm.SparkSession.setActiveSession(session._jsparkSession)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """With `-n`, tests are distributed to workers by what they need."""
    from tests.sharing import ByHome

    return ByHome(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI, a test is not skipped if Maven (which fetches Kafka's jars), the Python version of PySpark 3.5 or a
    browser is missing."""
    report = yield
    if any(item.get_closest_marker(name) for name in ("maven", "releases", "browser")):
        count_skip_as_failure(report)
    return report
