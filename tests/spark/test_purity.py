"""The functions on the raw schema work in batch, Connect and pipelines, because they never read a DataFrame's schema or
rows."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import kafka_records_engine.log
import kafka_records_engine.spark
import kafka_records_tables

FORBIDDEN = {
    *("rdd", "sparkContext", "_jvm", "_jdf", "_sc"),
    *("collect", "toPandas", "toLocalIterator", "first", "take", "head", "foreach", "cache", "persist"),
    *("columns", "dtypes", "printSchema"),
}

ALLOWED = {("raw.py", "columns"), ("saved_records.py", "sparkContext"), ("jvm.py", "first")}
"""The exceptions: code for rows of other forms, which `columns=` avoids; the number of cores, by which saved files are
distributed (not on Connect); and the stamp of a catalog, once per session."""

LOGS = {"saved_records.py", "jvm.py"}
"""The allowed log messages: unusable saved rows have no bytes and no row, so only a line in the log of the task shows
them; and the driver logs why it does not decode in the JVM."""


_TABLES = Path(kafka_records_tables.__path__[0])

SOURCES = [
    *sorted(Path(kafka_records_engine.spark.__path__[0]).glob("*.py")),
    _TABLES / "spark.py",
    *(_TABLES / "engines" / f"spark_{name}.py" for name in ("rows", "schema", "source")),
]


WORKERS = [*SOURCES, *sorted(Path(kafka_records_engine.log.__path__[0]).rglob("*.py"))]


@pytest.mark.parametrize("path", WORKERS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_nothing_is_logged(path: Path) -> None:
    """Records that cannot be read are counted and kept; a line for each of them would fill the workers' disks."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not imported & ({"warnings"} if path.name in LOGS else {"logging", "warnings"})
    assert not used & {"print", "stdout", "stderr"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_nothing_runs_or_inspects_a_query(path: Path) -> None:
    used = {
        node.attr for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Attribute)
    }
    assert {(path.name, name) for name in used & FORBIDDEN} <= ALLOWED
