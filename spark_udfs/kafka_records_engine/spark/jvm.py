"""Spark's functions in the JVM: the jar of this package, and whether a session can use it.

Rows decoded in Python are sent from the JVM to a worker and back, which takes longer than decoding. The functions in
the jar (`java/` in the repository) form a Spark catalog: Catalyst calls them from generated code, and no row leaves the
JVM. The setting `spark.sql.catalog.<package>`, which `register` or `engine="jvm"` sets, enables them.
"""

from __future__ import annotations

import logging
from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast
from urllib.parse import quote
from weakref import WeakKeyDictionary
from zlib import compress

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafka_records_engine.spark.errors import NoJvmFunctions
from kafka_records_engine.spark.workers import is_connect

if TYPE_CHECKING:
    from collections.abc import Mapping

Engine = Literal["jvm", "python"]
"""The engine that decodes rows. None means the JVM if the session has the functions, and Python otherwise."""

ENGINES: Final = ("jvm", "python")

JAR: Final = Path(__file__).with_name("kafka-records.jar")
"""The jar with the functions, for every Spark release since 3.5. Wheels contain it; in a clone, `make jar` builds
it."""

FORMAT: Final = 3
"""The format number. It increases with every change in what functions accept or return; `Stamp.java` has the same
number."""

_CLASS: Final = "kafkarecords.Catalog"
_IN_THE_JAR: Final = "kafka_records"
"""The package whose schemas are in the jar. The schemas of other packages are passed in a setting."""

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Answer:
    """The answer of a catalog: its `problem` (empty if there is none), and whether the session may lack the jar."""

    problem: str = ""
    may_lack_jar: bool = False


_answers: Final[WeakKeyDictionary[Any, dict[str, _Answer]]] = WeakKeyDictionary()
"""The answers of catalogs by session and name."""
_on_servers: Final[WeakKeyDictionary[Any, dict[str, bool]]] = WeakKeyDictionary()
"""By catalog name, whether the session of a Connect client has the catalog's setting."""


def catalog_name(package: str) -> str:
    """The SQL name of a generated package's catalog."""
    return package.replace(".", "_")


def checked_engine(engine: str | None) -> Engine | None:
    """`engine`, if it is valid. Raises ValueError for any other value."""
    if engine is not None and engine not in ENGINES:
        raise ValueError(f"engine must be 'jvm', 'python' or None, not {engine!r}")
    return cast("Engine | None", engine)


def schemas_text(package: str) -> str:
    """The schemas of a generated package in the form that the JVM functions read. Raises NoJvmFunctions if the package
    has no such schemas."""
    try:
        return (files(f"{package}.spark") / "jvm_schemas.txt").read_text(encoding="utf-8")
    except (FileNotFoundError, ModuleNotFoundError):
        raise NoJvmFunctions(
            f"the package {package} has no spark/jvm_schemas.txt: generate it again with kafka-records-codegen generate"
        ) from None


def stamp(package: str) -> str:
    """The expected result of a catalog's function `stamp()`: the format, and the SHA-256 of the schemas."""
    return f"{FORMAT} {sha256(schemas_text(package).encode()).hexdigest()}"


def settings(package: str = "kafka_records") -> Mapping[str, str]:
    """The settings that enable the functions of `package` in a session with the jar on its class path."""
    setting = f"spark.sql.catalog.{catalog_name(package)}"
    if package == _IN_THE_JAR:
        return {setting: _CLASS}
    return {setting: _CLASS, f"{setting}.schemas": b64encode(compress(schemas_text(package).encode(), 9)).decode()}


def add_functions(spark: SparkSession, package: str = "kafka_records") -> str:
    """Enable the functions of `package` in a session. Returns the name of their catalog.

    Sets `settings(package)` and adds the jar of this package, unless the session already has both. Raises
    NoJvmFunctions if there is no jar, if the session has the jar of another version, or in the definitions of a
    Declarative Pipeline whose configuration lacks the settings.
    """
    catalog = catalog_name(package)
    if not _is_set(spark, catalog):
        if not JAR.is_file():
            raise NoJvmFunctions(
                "this installation has no kafka-records.jar: build it with make jar, which needs a JDK, then "
                "install again"
            )
        _set(spark, settings(package))
        _add_jar(spark)
        _answers.pop(spark, None)
        _on_servers.pop(spark, None)
    elif _answer(spark, package).may_lack_jar and JAR.is_file():
        _add_jar(spark)
        again = _asked(spark, package, catalog)
        _answers[spark][catalog] = _Answer(again.problem)
    problem = _answer(spark, package).problem
    if problem:
        raise NoJvmFunctions(problem)
    return catalog


def _is_set(spark: SparkSession, catalog: str) -> bool:
    """Whether a session has a catalog's setting. A server is asked only once, for any number of columns."""
    known = _on_servers.setdefault(spark, {}) if is_connect(spark) else {}
    if catalog not in known:
        known[catalog] = spark.conf.get(f"spark.sql.catalog.{catalog}", None) is not None
    return known[catalog]


def _set(spark: SparkSession, values: Mapping[str, str]) -> None:
    for name, value in values.items():
        try:
            spark.conf.set(name, value)
        except PySparkException as error:
            if "SESSION_MUTATION_IN_DECLARATIVE_PIPELINE" not in str(error):
                raise
            raise NoJvmFunctions(
                f"only the configuration of a Declarative Pipeline can set {name}: add '{name}: {value}' to it"
            ) from None


def _add_jar(spark: SparkSession) -> None:
    if is_connect(spark):
        cast(Any, spark).addArtifacts(str(JAR))
    else:
        path = str(JAR).replace("\\", "\\\\").replace("'", "\\'")
        spark.sql(f"ADD JAR '{path}'")


def catalog_for(spark: SparkSession | None, package: str | None, engine: Engine | None) -> str | None:
    """The catalog whose functions decode the rows. None if Python decodes them; a log line then says why.

    Raises NoJvmFunctions for `engine="jvm"` if they are not available.
    """
    if engine == "python":
        return None
    if package is None or spark is None:
        why = "schemas were passed without a generated package" if package is None else "there is no session yet"
        if engine == "jvm":
            raise NoJvmFunctions(why)
        _log.info("decoding in Python: %s", why)
        return None
    if engine == "jvm":
        return add_functions(spark, package)
    catalog = catalog_name(package)
    if not _is_set(spark, catalog):
        _log.info(
            "decoding in Python: the session has no catalog %s; kafka_records_tables.spark.register(spark) "
            'or engine="jvm" adds it',
            catalog,
        )
        return None
    problem = _answer(spark, package).problem
    if problem:
        _log.warning("decoding in Python: %s", problem)
        return None
    return catalog


def _answer(spark: SparkSession, package: str) -> _Answer:
    """The answer of the catalog in a session, which is asked only once."""
    known = _answers.setdefault(spark, {})
    catalog = catalog_name(package)
    if catalog not in known:
        known[catalog] = _asked(spark, package, catalog)
    return known[catalog]


def _asked(spark: SparkSession, package: str, catalog: str) -> _Answer:
    try:
        row = spark.sql(f"SELECT {catalog}.stamp()").first()
    except Exception as error:
        text = str(error).strip() or type(error).__name__
        if "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION" in text:
            return _Answer(may_lack_jar=True)  # queries cannot run while a Declarative Pipeline is being defined
        problem = f"the catalog {catalog} is not usable: {text.splitlines()[0]}"
        return _Answer(problem, may_lack_jar=_CLASS in text)
    found = None if row is None else row[0]
    if found != stamp(package):
        return _Answer(
            f"the catalog {catalog} belongs to another version of {package}: "
            "use the jar and the Python package of the same wheel, or build the jar again with make jar"
        )
    return _Answer()


def function_name(catalog: str, function: str, options: Mapping[str, object]) -> str:
    """The name with which `call_function` and SQL call a function with options. Options that are None are left out.

    When planning a call, Spark passes a JVM function only the types of its arguments, so options are part of the
    function name: ``kafka_records.`from_offset_commit_value?mode=FAILFAST` ``.
    """
    written = "&".join(f"{name}={_option(value)}" for name, value in options.items() if value is not None)
    return f"{catalog}.{function}" if not written else f"{catalog}.`{function}?{written}`"


def _option(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else quote(str(value), safe=",")


def functions_in(catalog: str, package: str) -> tuple[str, ...]:
    """The qualified names of the functions in the catalog of a package."""
    names, folder = set(), ""
    for line in schemas_text(package).splitlines():
        keyword, *values = line.split("\t")
        if keyword == "folder":
            folder = values[0].replace("/", "_")
        elif keyword == "message":
            names |= {f"from_{values[1]}", f"to_{values[1]}"}
        elif keyword == "record":
            names |= {f"from_{values[2]}", f"decode_{folder}"}
    return tuple(sorted(f"{catalog}.{name}" for name in names))
