"""Each way in which the code reaches the workers of a cluster (docs/cluster.md), and the errors if it is missing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkRuntimeError

from tests.cluster.environments import ROOT
from tests.cluster.submitting import Cluster

pytestmark = pytest.mark.spark

NO_PACKAGE = "ModuleNotFoundError: No module named 'kafka_records_engine'"
NO_PYARROW = "ModuleNotFoundError: No module named 'pyarrow'"
NO_PYTHON = 'java.io.IOException: Cannot run program "environment/bin/python"'
NO_WHEEL = "kafka_records-0.1.0-py3-none-any.whl file format is not supported."
OTHER_PYTHON = (
    "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.11 than that in driver: 3.12, "
    "PySpark cannot run with different minor versions."
)

SERVER_PYTHON = "set:spark.sql.execution.pyspark.python"


def assert_decoded(outcome: dict[str, Any], expected_contents: dict[str, Any]) -> None:
    assert "failure" not in outcome, outcome["failure"]
    assert outcome["contents"] == expected_contents


def assert_runs_bare(worker: dict[str, Any], bare_python: Path) -> None:
    """Check that the worker is the interpreter with only numpy and pyarrow, and has the package from a zip that was
    sent to it."""
    assert worker["python"] == str(bare_python)
    assert worker["failures"] == {name: f"No module named '{name}'" for name in ("google_crc32c", "msgspec", "pandas")}
    assert worker["package"].endswith("/kafka_records.zip/kafka_records_engine/__init__.py")
    assert_in_its_folder(worker, worker["package"])
    assert "pyspark.sql.connect" not in worker["loaded"]


def assert_runs_in_environment(worker: dict[str, Any]) -> None:
    """Check that the worker is the interpreter of the unpacked environment, which has more libraries than decoding
    needs."""
    assert_in_its_folder(worker, worker["python"])
    prefix = f"{worker['folder']}/environment"
    assert (worker["python"], worker["prefix"]) == (f"{prefix}/bin/python", prefix)
    assert worker["package"].startswith(f"{prefix}/lib/python3.")
    assert worker["failures"] == {"pandas": "No module named 'pandas'"}
    assert not {"msgspec", "kafka_records.consumer_offsets", "pyspark.sql.connect"} & {*worker["loaded"]}


def assert_in_its_folder(worker: dict[str, Any], path: str) -> None:
    """Check that the executor has another folder than the driver, and that `path` is in it."""
    assert "/spark/work/app-" in worker["folder"]
    assert (Path(worker["folder"]) / path).is_relative_to(worker["folder"])


def test_the_wheel_by_py_files(
    cluster: Cluster, zipped_wheel: Path, bare_python: Path, expected_contents: dict[str, Any]
) -> None:
    (outcome,) = cluster.submit(["--py-files", str(zipped_wheel)], ["decode"], str(bare_python))
    assert_decoded(outcome, expected_contents)
    assert_runs_bare(outcome["worker"], bare_python)


@pytest.mark.matrix
def test_the_wheel_as_a_property_of_the_session(
    cluster: Cluster, zipped_wheel: Path, bare_python: Path, expected_contents: dict[str, Any]
) -> None:
    (outcome,) = cluster.run([f"set:spark.submit.pyFiles={zipped_wheel}", "decode"], str(bare_python))
    assert_decoded(outcome, expected_contents)
    assert_runs_bare(outcome["worker"], bare_python)


@pytest.mark.matrix
def test_the_wheel_sent_by_a_session_that_is_there(
    cluster: Cluster, wheel: Path, zipped_wheel: Path, bare_python: Path, expected_contents: dict[str, Any]
) -> None:
    """Without the package, workers report what is missing; also if the wheel keeps its name, because Spark ignores
    files with that suffix."""
    steps = ["decode", f"pyfile:{wheel}", "decode", f"pyfile:{zipped_wheel}", "decode"]
    without, with_its_own_name, zipped = cluster.run(steps, str(bare_python))
    assert NO_PACKAGE in without["failure"].splitlines()
    assert NO_PACKAGE in with_its_own_name["failure"].splitlines()
    assert_decoded(zipped, expected_contents)
    assert_runs_bare(zipped["worker"], bare_python)


@pytest.mark.matrix
def test_an_archived_environment(
    cluster: Cluster, archived_environment: Path, expected_contents: dict[str, Any]
) -> None:
    options = ["--archives", f"{archived_environment}#environment"]
    (outcome,) = cluster.submit(options, ["decode"], "./environment/bin/python")
    assert_decoded(outcome, expected_contents)
    assert_runs_in_environment(outcome["worker"])


@pytest.mark.matrix
def test_the_wheel_as_an_artifact(
    cluster: Cluster,
    connect_server: str,
    wheel: Path,
    zipped_wheel: Path,
    bare_python: Path,
    empty_python: Path,
    expected_contents: dict[str, Any],
) -> None:
    steps = [
        "decode",
        f"pyfile:{wheel}",
        f"pyfile:{zipped_wheel}",
        "decode",
        f"{SERVER_PYTHON}={empty_python}",
        "decode",
    ]
    without, with_its_own_name, zipped, without_libraries = cluster.connect(connect_server, steps)
    assert NO_PACKAGE in without["failure"].splitlines()
    assert with_its_own_name["failure"] == f"[UNSUPPORTED_OPERATION] {wheel} file format is not supported."
    assert_decoded(zipped, expected_contents)
    assert_runs_bare(zipped["worker"], bare_python)
    assert NO_PYARROW in without_libraries["failure"].splitlines()


@pytest.mark.matrix
def test_an_archived_environment_as_an_artifact(
    cluster: Cluster, connect_server: str, archived_environment: Path, expected_contents: dict[str, Any]
) -> None:
    python = f"{SERVER_PYTHON}=environment/bin/python"
    steps = [python, "decode", f"archive:{archived_environment}#environment", "decode"]
    without, unpacked = cluster.connect(connect_server, steps)
    assert f"{NO_PYTHON} (in directory" in without["failure"]
    assert_decoded(unpacked, expected_contents)
    assert_runs_in_environment(unpacked["worker"])


def test_another_python_in_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first thing that workers check, and their message."""
    from pyspark.worker_util import check_python_version

    monkeypatch.setattr("sys.version_info", (3, 11, 7))
    with pytest.raises(PySparkRuntimeError) as failure:
        check_python_version("3.12")
    assert str(failure.value).startswith(OTHER_PYTHON)


@pytest.mark.parametrize("message", [NO_PACKAGE, NO_PYARROW, NO_PYTHON, NO_WHEEL, OTHER_PYTHON])
def test_the_page_shows_what_goes_wrong(message: str) -> None:
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    assert message in page


def test_the_page_names_the_wheel(wheel: Path) -> None:
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    assert set(re.findall(r"kafka_records-[^/]*?\.whl", page)) == {wheel.name}


def test_the_page_tells_the_size_of_the_wheel(wheel: Path) -> None:
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    (size,) = re.findall(r"\| the package, (\S+) MB \|", page)
    assert wheel.stat().st_size / 1e6 == pytest.approx(float(size), abs=0.3)
