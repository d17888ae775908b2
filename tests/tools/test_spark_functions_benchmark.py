"""The benchmark of functions in the JVM over more and more rows. No time is asserted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka_records_engine.spark.jvm import add_functions
from tests.spark.conftest import active
from tools import jar
from tools.benchmarks import spark_functions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ("many", "not numbers of rows: 'many'"),
        ("100000,", "not numbers of rows: '100000,'"),
        ("100000,250000", "not a positive multiple of 100000, the rows of a file: 250000"),
        ("1000,100000", "not a positive multiple of 100000, the rows of a file: 1000"),
        ("0,100000", "not a positive multiple of 100000, the rows of a file: 0"),
        ("-100000,100000", "not a positive multiple of 100000, the rows of a file: -100000"),
        ("100000", "not two or more numbers that increase: '100000'"),
        ("100000,100000", "not two or more numbers that increase: '100000,100000'"),
        ("200000,100000", "not two or more numbers that increase: '200000,100000'"),
    ],
)
def test_numbers_that_give_no_exponent(counts: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        spark_functions.main([f"--growth={counts}"])
    assert caught.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: argument --growth: {message}\n")


@pytest.mark.spark
@pytest.mark.matrix
def test_growth_over_one_file_and_two(spark: SparkSession, tmp_path: Path) -> None:
    assert jar.main([]) == 0
    session = spark.newSession()
    add_functions(session)
    with active(session):
        lines = spark_functions.growth(session, tmp_path, [100_000, 200_000], 1).splitlines()
    assert [line.split()[0] for line in lines] == ["rows", "100000", "200000", "exponent:"]
    assert re.fullmatch(r"exponent: -?\d+\.\d{3}, goal at most 1\.05", lines[-1])
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("tmp")]
