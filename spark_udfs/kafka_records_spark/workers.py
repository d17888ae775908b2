"""Whether the Python that local workers run can import what they need.

PySpark starts workers with PYSPARK_PYTHON, or with the first `python3` on PATH when that is not set: a script that runs
as `.venv/bin/python script.py` gets another interpreter in its workers, where the first row fails with a
ModuleNotFoundError and a page of traces.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING, Final

from kafka_records_spark.errors import WorkerPython

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VARIABLE: Final = "PYSPARK_PYTHON"
_PROBE: Final = "import kafka_records_spark, numpy, pyarrow"


def check_workers(spark: SparkSession) -> None:
    """Raise WorkerPython when `spark` runs on this machine and its workers cannot import this package.

    An interpreter beside the one that runs this is taken to be fine; another one is asked, once per process. What
    workers on other machines run cannot be seen from here.
    """
    chosen = os.environ.get(_VARIABLE) or "python3"
    found = shutil.which(chosen)
    if found is not None and os.path.dirname(found) == os.path.dirname(sys.executable):
        return
    if not (spark.conf.get("spark.master", "") or "").startswith("local") or _can_import(found):
        return
    raise WorkerPython(found or chosen)


@cache
def _can_import(python: str | None) -> bool:
    if python is None:
        return False
    try:
        return subprocess.run([python, "-c", _PROBE], capture_output=True, check=False).returncode == 0
    except OSError:
        return False
