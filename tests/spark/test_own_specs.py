"""examples/own_specs: a package generated from specs that are not Kafka's, decoded by the same Spark functions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_records_codegen.generate import generate
from kafka_records_codegen.loader import load
from kafka_records_codegen.tree import write

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "own_specs"

pytestmark = pytest.mark.spark


@pytest.mark.matrix
def test_the_example_decodes_its_own_records(tmp_path: Path) -> None:
    write(tmp_path / "acme_messages", generate(load(EXAMPLE / "message_specs"), "acme_messages"))
    path = [str(tmp_path), *(str(ROOT / home) for home in ("generated", "generator", "spark_udfs"))]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    environment.pop("SPARK_HOME", None)

    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "accounts.py")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert done.stdout == (
        "+----------------------+-----+-------------+-----------------+\n"
        "|account               |owner|balance_cents|limits           |\n"
        "+----------------------+-----+-------------+-----------------+\n"
        "|YWNjb3VudCBvZiBBbm4uLg|Ann  |900          |[{7, 3000000000}]|\n"
        "+----------------------+-----+-------------+-----------------+\n"
        "\n"
    ), done.stderr
    assert done.stderr.splitlines()[-2:] == [
        "offset 4: AccountValue v1 at byte 4: balance_cents needs 8 bytes, but 4 are left",
        "5 rows, 4 decoded, 1 tombstone, 1 corrupt",
    ]
    assert done.returncode == 1
