"""Which worker gets which tests with `-n`: tests that need the same costly thing go to one worker."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.sharing import FIRST, SERVER, SPARK, home_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("path", "home"),
    [
        ("tests/spark/test_decode.py", SPARK),
        ("tests/cli/test_table_spark.py", SPARK),
        ("tests/tools/test_demo.py", SPARK),
        ("tests/spark/test_workers.py", SPARK),
        ("tests/spark/ways/test_streaming.py", SPARK),
        ("tests/spark/ways/test_connect.py", SERVER),
        ("tests/broker/test_offset_admin.py", "tests/broker/"),
        ("tests/broker/test_live_spark.py", SPARK),
        ("tests/cluster/test_cluster.py", "tests/cluster/"),
        ("tests/generator/test_tree.py", "tests/generator/"),
        ("tests/log/test_crc.py", "tests/log/test_crc.py"),
        ("tests/spark/test_four_spellings.py", "tests/spark/test_four_spellings.py"),
        ("tests/house/test_messages.py", "all texts"),
    ],
)
def test_the_home_of_a_file(path: str, home: str) -> None:
    assert home_of(path) == home


@pytest.mark.parametrize(
    ("path", "test", "home"),
    [
        ("tests/cli/test_table_spark.py", "test_spark_and_processes_agree", SPARK),
        ("tests/cli/test_table_spark.py", "test_no_pyspark", "tests/cli/test_table_spark.py"),
        ("tests/tables/test_open_transactions.py", "test_spark_gives_the_same_rows", SPARK),
        ("tests/spark/test_workers.py", "test_a_wheel_that_was_not_renamed_is_not_with_the_workers", SPARK),
    ],
)
def test_the_home_of_a_test(path: str, test: str, home: str) -> None:
    assert home_of(path, test) == home


def test_what_is_begun_first_is_a_home_of_files() -> None:
    files = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))
    homes = {home_of(path) for path in files} | {home_of(path, "a test without Spark") for path in files}
    assert [home for home in FIRST if home not in homes] == []


def test_every_test_with_the_shared_session_is_at_its_home(request: pytest.FixtureRequest) -> None:
    """Only tests that were collected in this run count."""
    strangers = {
        (item.path.relative_to(ROOT).as_posix(), re.split(r"::|\[", item.nodeid.partition("::")[2])[0])
        for item in request.session.items
        if isinstance(item, pytest.Function) and "spark" in item.fixturenames
    }
    assert {each for each in strangers if home_of(*each) != SPARK} == set()
