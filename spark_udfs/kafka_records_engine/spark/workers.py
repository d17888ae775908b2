"""Checks whether the Python of local workers can import what they need.

PySpark starts workers with PYSPARK_PYTHON, or with the first `python3` on PATH if that is not set. A script that runs
as `.venv/bin/python script.py` gets another interpreter in its workers, where the first row fails with a
ModuleNotFoundError and a page of stack traces. docs/cluster.md explains how to ship code to the workers of a cluster.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING, Final

from kafka_records_engine.spark.errors import WorkerPython

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VARIABLE: Final = "PYSPARK_PYTHON"
_PROBE: Final = "import kafka_records_engine, numpy, pyarrow"
_ON_THIS_MACHINE: Final = re.compile(r"local(\[.*\])?")
"""Masters that start workers on this machine, as a shell would. `local-cluster[…]` has its own executors."""


def is_connect(spark: SparkSession) -> bool:
    """Whether `spark` is a Spark Connect client. (Its class is not imported, because that requires gRPC.)"""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def check_workers(spark: SparkSession) -> None:
    """Raise WorkerPython if `spark` runs on this machine and its workers cannot import this package.

    An interpreter in the same folder as the current one is assumed to work. Any other interpreter is tried once per
    process, with the archives from `--py-files` and `addPyFile`. Interpreters on other machines, or of a Spark Connect
    server, cannot be checked from here.
    """
    if is_connect(spark):
        return
    chosen = os.environ.get(_VARIABLE) or "python3"
    found = shutil.which(chosen)
    if found is not None and os.path.dirname(found) == os.path.dirname(sys.executable):
        return
    master = spark.conf.get("spark.master", "") or ""
    if not _ON_THIS_MACHINE.fullmatch(master) or _can_import(found, _archives()):
        return
    raise WorkerPython(found or chosen)


def _archives() -> tuple[str, ...]:
    """The archives on this process's path that Spark also sends to its workers, recognized by suffix.

    A wheel that was not renamed is only on the driver's path.
    """
    return tuple(place for place in sys.path if os.path.isfile(place) and place.endswith((".zip", ".egg", ".jar")))


@cache
def _can_import(python: str | None, archives: tuple[str, ...]) -> bool:
    if python is None:
        return False
    # An empty entry in the path would mean the current directory.
    places = [place for place in (*archives, os.environ.get("PYTHONPATH")) if place]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    try:
        return subprocess.run([python, "-c", _PROBE], capture_output=True, check=False, env=environment).returncode == 0
    except OSError:
        return False
