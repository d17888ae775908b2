"""`check_workers` reports workers on this machine that cannot import the package, and no others."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest
from pyspark.sql import SparkSession as ClassicSession
from pyspark.sql.connect.session import SparkSession as ConnectSession

from kafka_records.spark.consumer_offsets import from_offset_commit_value
from kafka_records_engine.spark import functions
from kafka_records_engine.spark.errors import WorkerPython
from kafka_records_engine.spark.workers import _archives, check_workers

NEEDED = ("kafka_records_engine", "numpy", "pyarrow")


def session(master: str) -> Any:
    """The part of a classic session that `check_workers` uses."""
    return SimpleNamespace(conf=SimpleNamespace(get=lambda name, default: {"spark.master": master}.get(name, default)))


@pytest.fixture
def bare_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PYSPARK_PYTHON: this interpreter, but without its site-packages."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return python


def add_archive(path: Path, modules: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The effect of `--py-files` and `addPyFile` on the driver: a zip comes first on its path."""
    with ZipFile(path, "w") as archive:
        for module in modules:
            archive.writestr(f"{module}.py", "")
    monkeypatch.syspath_prepend(str(path))


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,3]"])
def test_workers_of_this_machine_are_asked(master: str, bare_python: Path) -> None:
    with pytest.raises(WorkerPython) as failure:
        check_workers(session(master))
    assert str(failure.value) == (
        f"Spark's workers would run {bare_python}, which cannot import kafka_records_engine, numpy and pyarrow: "
        'set os.environ["PYSPARK_PYTHON"] = sys.executable before the session starts'
    )


@pytest.mark.parametrize("master", ["local-cluster[1,1,1024]", "yarn", "spark://head:7077", "k8s://https://head", ""])
def test_workers_of_a_cluster_are_not(master: str, bare_python: Path) -> None:
    check_workers(session(master))


def test_neither_are_those_of_a_connect_server(bare_python: Path) -> None:
    # It has no `conf` to ask.
    never_connected: Any = object.__new__(ConnectSession)
    check_workers(never_connected)


def test_an_interpreter_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """It belongs to an archived environment, which a master on this machine does not unpack for its workers."""
    monkeypatch.setenv("PYSPARK_PYTHON", "./environment/bin/python")
    with pytest.raises(WorkerPython, match=r"would run \./environment/bin/python, which cannot import"):
        check_workers(session("local[2]"))
    check_workers(session("yarn"))


def test_the_package_may_be_in_a_zip_that_workers_get(
    bare_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_archive(tmp_path / "kafka_records.zip", NEEDED, monkeypatch)
    check_workers(session("local[2]"))


def test_a_zip_does_not_make_up_for_numpy_and_pyarrow(
    bare_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_archive(tmp_path / "kafka_records.zip", ("kafka_records_engine",), monkeypatch)
    with pytest.raises(WorkerPython):
        check_workers(session("local[2]"))


@pytest.mark.spark
def test_column_functions_ask_too(spark: ClassicSession, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(functions, "check_workers", asked.append)
    from_offset_commit_value("value")
    assert [type(session) for session in asked] == [type(spark)]


def test_a_wheel_that_was_not_renamed_is_not_with_the_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python on the driver imports from it; Spark sends it to workers, but does not put it on their path."""
    for name, is_found in (("package.whl", False), ("package.zip", True)):
        archive = tmp_path / name
        archive.touch()
        monkeypatch.setattr(sys, "path", [*sys.path, str(archive)])
        assert (str(archive) in _archives()) is is_found
