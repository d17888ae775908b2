"""`read_table` as users call it: its arguments, its result, and how other libraries use the result."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pytest

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.reading.segment_files import find_logs, read_partition
from kafka_records_tables import TABLES, Result, read_table, stream_table
from kafka_records_tables.near_names import UnknownColumn, UnknownTable
from kafka_records_tables.query import _MOMENTS
from tests.tables import willful_table


@pytest.fixture(scope="module")
def segments(topics_dir: Path) -> Path:
    return topics_dir / "kafka-4.3" / "segments"


@pytest.fixture(scope="module")
def result(segments: Path) -> Result:
    return read_table("current_offsets", segments)


def test_a_result_says_what_it_is(result: Result) -> None:
    assert repr(result) == "<current_offsets: 78 rows, 0 findings of damage>"
    assert len(result) == 78
    assert result.is_complete
    assert result.declaration is TABLES["current_offsets"]
    assert result.table.schema == result.declaration.schema
    counts = result.counts
    assert (counts.partitions, counts.files, counts.records, counts.markers) == (6, 30, 850, 9)


def test_rows_are_sorted_by_what_names_them(result: Result) -> None:
    names = [tuple(row.values()) for row in result.table.select(["group_id", "topic", "partition"]).to_pylist()]
    assert names == sorted(names)


def test_every_column_says_what_it_means(result: Result) -> None:
    for column in TABLES["current_offsets"].columns:
        assert result.table.schema.field(column.name).metadata == {b"comment": column.about.encode()}


def test_others_take_it_as_it_is(result: Result) -> None:
    assert result is not None  # DuckDB finds it by its name
    relation: Any = duckdb.sql("SELECT count(DISTINCT group_id) FROM result")
    ((count,),) = relation.fetchall()
    frame: Any = polars.DataFrame(result)

    assert count == len(set(result.table["group_id"].to_pylist()))
    assert frame["offset"].to_list() == result.table["offset"].to_pylist()
    assert pa.table(result).equals(result.table)


def test_a_stream_gives_the_same_rows_in_any_order(result: Result, segments: Path) -> None:
    with stream_table("current_offsets", segments) as stream:
        rows = pa.Table.from_batches(list(stream), schema=stream.schema)
        assert (stream.findings, stream.counts) == (result.findings, result.counts)

    assert sorted(rows.to_pylist(), key=repr) == sorted(result.table.to_pylist(), key=repr)


def test_a_stream_is_read_as_it_comes(segments: Path) -> None:
    stream = stream_table("groups", segments)
    assert stream is not None  # DuckDB finds it by its name
    relation: Any = duckdb.sql("SELECT count(*) FROM stream")
    assert relation.fetchall() == [(33,)]


def test_some_groups_only(result: Result, segments: Path) -> None:
    one = read_table("current_offsets", segments, group="fraud-scoring")
    two = read_table("current_offsets", segments, group=["fraud-scoring", "order-fulfilment"])

    assert one.table.equals(result.table.filter(pa.compute.equal(result.table["group_id"], "fraud-scoring")))
    assert set(two.table["group_id"].to_pylist()) == {"fraud-scoring", "order-fulfilment"}
    assert read_table("groups", segments, group="fraud-scoring").table["group_id"].to_pylist() == ["fraud-scoring"]
    assert len(read_table("groups", segments, group="fraud-scorin")) == 0


def test_some_columns_only(result: Result, segments: Path) -> None:
    chosen = read_table("current_offsets", segments, columns=["offset", "group_id"])
    assert chosen.table.equals(result.table.select(["offset", "group_id"]))


def test_progress_ends_with_all_bytes(segments: Path) -> None:
    seen: list[tuple[int, int]] = []
    read_table("groups", segments, on_progress=lambda done, total: seen.append((done, total)))
    total = sum(file.stat().st_size for file in segments.glob("__consumer_offsets-*/*.log"))
    assert seen[-1] == (total, total)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_an_instant_and_its_milliseconds_are_the_same_moment(segments: Path) -> None:
    middle = read_table("offset_commits", segments).table["log_timestamp_ms"].to_pylist()[200]
    instant = datetime.fromtimestamp(middle / 1000, UTC)
    assert read_table("groups", segments, as_of=instant).table.equals(
        read_table("groups", segments, as_of=middle).table
    )
    assert read_table("groups", segments, as_of=instant.isoformat()).table.equals(
        read_table("groups", segments, as_of=middle).table
    )


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (("current_ofsets",), UnknownTable, "no table is called 'current_ofsets'; did you mean current_offsets?"),
        (
            ("x",),
            UnknownTable,
            "no table is called 'x'; there are " + ", ".join(TABLES),
        ),
    ],
)
def test_names_that_are_none(segments: Path, arguments: tuple[str], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as failure:
        read_table(*arguments, segments)
    assert str(failure.value) == text


def test_a_column_that_is_none(segments: Path) -> None:
    with pytest.raises(UnknownColumn) as failure:
        read_table("groups", segments, columns=["group"])
    assert str(failure.value) == "groups has no column 'group'; did you mean group_id?"
    with pytest.raises(TypeError) as misused:
        read_table("groups", segments, columns="group_id")
    assert str(misused.value) == "columns must be a list of names: write ['group_id']"


def test_a_moment_without_time_zone_is_refused(segments: Path) -> None:
    with pytest.raises(ValueError) as failure:  # noqa: PT011 (the text is asserted whole)
        read_table("groups", segments, as_of=datetime(2026, 1, 2))
    assert str(failure.value) == "as_of: 2026-01-02T00:00:00 has no time zone: write datetime(…, tzinfo=UTC)"


def test_a_moment_in_words_that_is_none_is_told_as_the_command_does(segments: Path) -> None:
    with pytest.raises(ValueError) as failure:  # noqa: PT011 (the text is asserted whole)
        read_table("groups", segments, as_of="yesterday")
    assert str(failure.value) == f"as_of: 'yesterday' is not a moment: write {_MOMENTS}"


def test_sources_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(LogSourceError) as missing:
        read_table("groups", tmp_path / "nowhere")
    assert str(missing.value) == f"{tmp_path / 'nowhere'}: there is no such file or directory"
    with pytest.raises(TypeError) as foreign:
        read_table("groups", 5)
    assert str(foreign.value).startswith(
        "a source must be a path or several (data directory, partition folder, .log file), "
    )
    assert str(foreign.value).endswith(", or an object with partitions(topic), not 5")


def test_what_a_column_may_be_is_told() -> None:
    with pytest.raises(ValueError) as failure:  # noqa: PT011 (the text is asserted whole)
        read_table("groups", pa.table({"partition": [0], "offset": [1], "key": [b""]}))
    assert str(failure.value).startswith("the rows have no column value: raw rows have topic, partition, offset, ")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"as_of": 1.5}, "as_of must be a datetime with a time zone, milliseconds since 1970 or a string, not 1.5"),
        ({"group": b"g"}, "group must be a string or a list of strings, not b'g'"),
        ({"group": 3}, "group must be a string or a list of strings, not 3"),
        ({"group": ["g", 3]}, "group must be a string or a list of strings, but 3 is not"),
        ({"columns": 3}, "columns must be a list of names, not 3"),
        ({"columns": [3]}, "columns must be a list of names, but 3 is not"),
        ({"columns": []}, "no columns were requested; groups has group_id, "),
        ({"topic": ["t"]}, "topic must be a string, not ['t']"),
        ({"package": 3}, "package must be a string, not 3"),
        ({"package": "nope.nope"}, "there is no package 'nope.nope': "),
        ({"processes": "2"}, "processes must be a number of processes, not '2'"),
        ({"processes": True}, "processes must be a number of processes, not True"),
        ({"spark": "local"}, "spark must be a SparkSession, not 'local'"),
        ({"on_progress": 3}, "on_progress must be a function, not 3"),
        (
            {"package": "nope"},
            "there is no package 'nope': give one that kafka-records-codegen has generated, and add its directory to "
            "PYTHONPATH",
        ),
        ({"assume": "aborted"}, "assume must be \"committed\" or None, not 'aborted'"),
        ({"columns": ["state", "state"]}, "the column state is requested twice"),
        ({"processes": 0}, "processes must be a number of processes above 0, not 0"),
    ],
)
def test_arguments_that_do_not_fit(segments: Path, options: dict[str, Any], text: str) -> None:
    with pytest.raises((TypeError, ValueError)) as failure:
        read_table("groups", segments, **options)
    assert str(failure.value).startswith(text)


@pytest.mark.parametrize("table", [3, None, ["groups"]])
def test_what_is_no_table(segments: Path, table: Any) -> None:
    with pytest.raises(TypeError) as failure:
        read_table(table, segments)
    assert str(failure.value) == f"a table must be one of {', '.join(TABLES)}, or a Table of your own, not {table!r}"


def test_a_group_that_no_key_holds(segments: Path) -> None:
    assert len(read_table("groups", segments, group="g" * 70_000)) == 0


def test_a_table_that_other_processes_would_not_find(segments: Path) -> None:
    copied = replace(TABLES["groups"], name="mine")
    with pytest.raises(ValueError) as failure:  # noqa: PT011 (the text is asserted whole)
        read_table(copied, segments)
    assert str(failure.value) == (
        "the table mine is not TABLE of the module kafka_records_tables.tables.groups: a table of your own must be a "
        "module that can be imported, with its declaration in TABLE and a class Reader"
    )


def test_a_table_without_a_reader(segments: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("tests.tables.willful_table.Reader")
    with pytest.raises(ValueError) as failure:  # noqa: PT011 (the text is asserted whole)
        read_table(willful_table.TABLE, segments)
    assert str(failure.value) == (
        "the table willful cannot be read: write the class Reader in tests.tables.willful_table"
    )


def test_rows_of_a_polars_frame(result: Result, segments: Path) -> None:
    """Polars returns view types for texts and bytes."""
    batches = [rows for log in find_logs([segments], "__consumer_offsets") for rows in read_partition(log)]
    frame: Any = polars.DataFrame(pa.Table.from_batches(batches))
    found = read_table("current_offsets", frame)
    assert found.table.equals(result.table)


def test_a_first_file_that_is_missing_is_noted(segments: Path, tmp_path: Path) -> None:
    folder = tmp_path / "__consumer_offsets-1"
    copytree(segments / folder.name, folder)
    first, second = sorted(folder.glob("*.log"))[:2]
    first.unlink()
    result = read_table("current_offsets", tmp_path)
    assert str(result.findings[0]) == (
        f"{second}: no file has offsets 0 to {int(second.stem) - 1}, and the log starts before (a file is missing, "
        "or the log-start-offset-checkpoint beside the folder is)"
    )
    assert result.is_complete
