"""Offsets in the forms that Kafka's tool and Spark take. tests/broker/test_rescue.py gives them to Kafka's tool."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka_records_tables import read_table, starting_offsets
from kafka_records_tables.query import QueryError
from tests.cli.running import run
from tests.cli.segment_bytes import batch, commit, write_segment


def written(tmp_path: Path, *groups: str, folder: str = "__consumer_offsets-0") -> str:
    """A data directory in which each group has committed an offset for t-0, the first 1, the next 2."""
    write_segment(tmp_path, batch(0, [commit(group, offset) for offset, group in enumerate(groups, 1)]), folder=folder)
    return str(tmp_path)


def test_a_line_per_offset(topics_dir: Path) -> None:
    source = str(topics_dir / "kafka-4.3" / "segments")
    lines = run("table", "current_offsets", source, "--format", "reset-offsets").out.splitlines()
    rows = read_table("current_offsets", source).table.to_pylist()
    assert lines == [f"{row['group_id']},{row['topic']},{row['partition']},{row['offset']}" for row in rows]
    assert len(lines) == 78


def test_names_are_quoted_as_kafkas_tool_reads_them(tmp_path: Path) -> None:
    source = written(tmp_path, 'odd, "group"', "", " blank")
    ran = run("table", "current_offsets", source, "--format", "reset-offsets")
    assert ran.out == '"",t,0,2\n" blank",t,0,3\n"odd, ""group""",t,0,1\n'


def test_a_name_that_is_two_lines_is_left_out(tmp_path: Path) -> None:
    source, path = written(tmp_path, "plain", "two\nlines"), tmp_path / "offsets.csv"
    ran = run("table", "current_offsets", source, "--format", "reset-offsets", "--output", str(path))
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.splitlines()[0] == (
        "the log: the group 'two\\nlines' has a line break in its name, which Kafka's tool reads as the end of a line "
        "(its offsets are left out; --format json has them)"
    )
    assert "could not be decoded" not in ran.err
    assert path.read_text(encoding="utf-8") == "plain,t,0,1\n"


def test_where_spark_starts(topics_dir: Path) -> None:
    source = str(topics_dir / "kafka-4.3" / "segments")
    asked = ("table", "current_offsets", source, "--group", "payment-enricher")
    assert run(*asked, "--format", "starting-offsets").out == '{"payments":{"0":140,"1":100,"2":108}}\n'
    rows = read_table("current_offsets", source, group="payment-enricher").table
    assert starting_offsets(rows) == '{"payments":{"0":140,"1":100,"2":108}}'


def test_partitions_without_a_commit_begin_at_their_start(tmp_path: Path) -> None:
    source = written(tmp_path, "billing")
    for folder in ("t-0", "t-1", "t-10", "other-0"):
        write_segment(tmp_path, batch(0, [(b"key", b"value")]), folder=folder)
    ran = run("table", "current_offsets", source, "--format", "starting-offsets")
    assert (ran.status, json.loads(ran.out)) == (0, {"t": {"0": 1, "1": -2, "10": -2}})


def test_what_is_wrong_with_the_ends_of_these_logs_is_told(tmp_path: Path) -> None:
    source = written(tmp_path, "billing")
    write_segment(tmp_path, batch(0, [(b"key", b"value")]), folder="t-0")
    (tmp_path / "replication-offset-checkpoint").write_text("garbage")
    ran = run("table", "current_offsets", source, "--format", "starting-offsets")
    ends = run("table", "log_ends", source)
    assert (ran.status, ran.out) == (ends.status, '{"t":{"0":1}}\n')
    assert "replication-offset-checkpoint" in ends.err
    assert ran.err.splitlines()[0] == ends.err.splitlines()[0]


@pytest.mark.parametrize(
    ("groups", "about"),
    [
        ((), "none"),
        (("b", "a"), "2 groups ('a', 'b')"),
        (("d", "c", "b", "a"), "4 groups ('a', 'b', 'c', …)"),
    ],
)
def test_starting_offsets_are_those_of_one_group(tmp_path: Path, groups: tuple[str, ...], about: str) -> None:
    rows = read_table("current_offsets", written(tmp_path, "x", *groups)).table.slice(0, 0)
    if groups:
        rows = read_table("current_offsets", written(tmp_path, *groups)).table
    with pytest.raises(QueryError) as caught:
        starting_offsets(rows)
    assert (
        str(caught.value)
        == f"starting offsets are for one group, but these rows are about {about}: choose one with --group NAME"
    )


def test_an_offset_that_spark_reads_otherwise_is_refused(tmp_path: Path) -> None:
    write_segment(tmp_path, batch(0, [commit("billing", -1)]))
    ran = run("table", "current_offsets", str(tmp_path), "--format", "starting-offsets")
    assert (ran.status, ran.err) == (
        2,
        "kafka-records: t-0 of the group 'billing' has the offset -1, which Spark reads as the end or the start: "
        "leave it out with --where 'offset>=0'\n",
    )


@pytest.mark.parametrize(
    ("form", "written_out"), [("starting-offsets", '{"t":{"0":2}}\n'), ("reset-offsets", "billing,t,0,2\n")]
)
def test_a_group_in_two_partitions_of_the_log_has_two_offsets(tmp_path: Path, form: str, written_out: str) -> None:
    written(tmp_path, "billing")
    source = written(tmp_path, "other", "billing", folder="__consumer_offsets-3")
    asked = ("table", "current_offsets", source, "--group", "billing", "--format", form)
    ran = run(*asked)
    assert (ran.status, ran.out, ran.err) == (
        2,
        "",
        "kafka-records: the offset of t-0 of the group 'billing' is in log partitions 0 and 3: choose one with "
        "--where log_partition=N, or pass the moment before partitions were added to __consumer_offsets with --as-of\n",
    )
    assert run(*asked, "--where", "log_partition=3").out == written_out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("groups",), "--format reset-offsets works only with current_offsets, not with groups"),
        (
            ("current_offsets", "--columns", "topic"),
            "--columns: --format reset-offsets has its own columns: leave out --columns",
        ),
    ],
)
def test_what_has_no_such_form(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    ran = run("table", *arguments, written(tmp_path, "a"), "--format", "reset-offsets")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith(f"kafka-records table: error: {message}\n")
