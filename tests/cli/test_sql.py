"""`kafka-records sql`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_records_tables.read import read_table
from tests.cli.running import run

SEGMENTS = str(Path(__file__).parents[2] / "tests/data/topics/kafka-4.3/segments")


_NO_QUERY = "the query must be a single SELECT: it can only read tables, and its result goes to --output"


def test_rows_of_a_view_are_those_of_its_table() -> None:
    ran = run("sql", SEGMENTS, "SELECT * FROM groups ORDER BY group_id", "--format", "json")
    table = run("table", "groups", SEGMENTS, "--format", "json", "--sort", "group_id")
    assert (ran.status, ran.out, ran.err) == (0, table.out, table.err)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS n FROM group_lag g JOIN Lag l USING (group_id)",
        'WITH x AS (SELECT * FROM "lag") SELECT count(*) AS n FROM x',
        "SELECT (SELECT count(*) FROM lag) AS n",
        "SELECT sum(1) AS n FROM lag;",
    ],
)
def test_tables_are_found_wherever_the_query_names_them(query: str) -> None:
    ran = run("sql", SEGMENTS, query, "--format", "json")
    assert ran.status == 0
    assert [json.loads(line) for line in ran.lines] == [{"n": read_table("lag", SEGMENTS).table.num_rows}]


def test_only_what_is_named_is_read(tmp_path: Path) -> None:
    ran = run("sql", str(tmp_path / "gone"), "SELECT 1 AS one, interval 2 day AS two, 2::hugeint ** 100 AS big")
    assert (ran.status, ran.err) == (0, "")
    assert ran.lines[2].split()[:3] == ["1", "2", "days"]


def test_options_of_tables_and_files_with_types(tmp_path: Path) -> None:
    path = tmp_path / "soon.parquet"
    query = "SELECT min(expires_timestamp) AS soonest, sum(1) AS n FROM expirations"
    assert run("sql", SEGMENTS, query, "--retention", "1d", "--output", str(path)).status == 0
    (row,) = pq.read_table(path).to_pylist()
    rows = read_table("expirations", SEGMENTS, retention="1d").table
    assert (row["n"], row["soonest"]) == (len(rows), min(rows["expires_timestamp"].drop_null().to_pylist()))
    arrow = tmp_path / "soon.arrow"
    assert run("sql", SEGMENTS, query, "--as-of", "2026-11-21T02:14", "--output", str(arrow)).status == 0
    assert pa.ipc.open_file(arrow).read_all().column_names == ["soonest", "n"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT * FROM grups",
            "no table is called 'grups'; did you mean groups?; kafka-records table --list lists them all",
        ),
        ("SELECT grup_id FROM groups", "no table of the query has a column grup_id; there are group_id, "),
        ("SELCT group_id FROM groups", 'the query: syntax error at or near "SELCT"'),
        (
            "SELECT count(group_id, 1) FROM groups",
            "the query: No function matches the given name and argument types 'count(VARCHAR, INTEGER_LITERAL)'.",
        ),
        ("DROP TABLE groups", _NO_QUERY),
        ("SELECT 1; SELECT 2", _NO_QUERY),
        (
            "COPY groups TO 'x.csv'",
            _NO_QUERY,
        ),
        ("SELECT * FROM read_csv('/etc/passwd')", "the query: Cannot access file"),
        ("SELECT * FROM '/etc/passwd'", "no table is called '/etc/passwd'; kafka-records table --list"),
        ("SELECT * FROM query_table('groups')", "the query: "),
        ("SELECT * FROM topics", f"{SEGMENTS}: there is no log of topic __cluster_metadata here"),
    ],
)
def test_errors_are_one_line(query: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run("sql", SEGMENTS, query)
    assert (ran.status, ran.out) == (2, "")
    (line,) = ran.err.splitlines()
    assert line.startswith(f"kafka-records: {message}")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "the following arguments are required: QUERY"),
        (
            (SEGMENTS,),
            f"the last argument must be the query, but {SEGMENTS!r} is not one: write 'SELECT … FROM groups'",
        ),
        (("SELECT 1",), "the following arguments are required: SOURCE (or --bootstrap)"),
    ],
)
def test_usage(arguments: tuple[str, ...], message: str) -> None:
    ran = run("sql", *arguments)
    assert (ran.status, ran.err.splitlines()[0]) == (2, f"kafka-records sql: error: {message}")
