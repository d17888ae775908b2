"""Where results go: files appear only when they are complete."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_records_tables.commands.output_options import FORMATS
from kafka_records_tables.commands.written_output import Output, write_batches
from kafka_records_tables.console.endings import CommandError
from tests.cli.running import run
from tests.cli.segment_bytes import batch, commit, write_segment

SCHEMA = pa.schema([("name", pa.string()), ("number", pa.int64())])


def rows(count: int = 1) -> pa.RecordBatch:
    return pa.record_batch({"name": ["a"] * count, "number": pa.array([1] * count, pa.int64())})


def test_a_file_replaces_another_at_once_and_gets_usual_permissions(tmp_path: Path) -> None:
    path = tmp_path / "result.csv"
    path.write_text("before")

    def batches() -> Iterator[pa.RecordBatch]:
        assert path.read_text() == "before"
        yield rows()

    write_batches(Output("csv", path), SCHEMA, batches())
    assert path.read_bytes() == b"name,number\r\na,1\r\n"
    (tmp_path / "usual").touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "usual").stat().st_mode)


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_is_left_alone_when_the_rows_break_off(tmp_path: Path, name: str) -> None:
    path = tmp_path / "result.csv"
    path.write_text("before")

    def batches() -> Iterator[pa.RecordBatch]:
        yield rows(200_000)
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        write_batches(Output(name, path), SCHEMA, batches())
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"result.csv": "before"}


def test_an_output_that_is_there_is_kept_unless_asked_otherwise(tmp_path: Path) -> None:
    source = str(write_segment(tmp_path, batch(0, [commit("a", 1)])).parent)
    path = tmp_path / "counts.json"
    assert run("counts", source, "--format", "json", "--output", str(path)) == (0, "", "")
    first = path.read_text()
    assert json.loads(first) == {
        "topic": "__consumer_offsets",
        "record_type": 1,
        "record": "OffsetCommit",
        "records": 1,
        "tombstones": 0,
        "value_versions": {"v3": 1},
    }
    message = f"kafka-records: {path}: the file already exists: replace it with --overwrite\n"
    assert run("counts", source, "--output", str(path)) == (2, "", message)
    assert path.read_text() == first
    other = f"note: --output {path}: its name ends in json, but the format is table\n"
    assert run("counts", source, "--output", str(path), "--overwrite") == (0, "", other)
    assert path.read_text().startswith("topic  ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--output", "."), ".: is a directory, but --output needs a file"),
        (("--output", "gone/result.csv"), "gone/result.csv: there is no directory gone"),
    ],
)
def test_outputs_that_cannot_be(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("counts", "anything", *arguments) == (2, "", f"kafka-records: {message}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--overwrite",), "--overwrite needs --output"),
        (("--format", "parquet"), "--format parquet needs --output: a Parquet file is not text"),
        (("--format", "csv", "--wide"), "--wide needs --format table; csv leaves nothing out"),
        (("--output", ""), "argument --output: must not be empty"),
    ],
)
def test_usage_of_outputs(arguments: tuple[str, ...], message: str) -> None:
    status, out, err = run("counts", "anything", *arguments)
    assert (status, out) == (2, "")
    assert err.splitlines()[0] == f"kafka-records counts: error: {message}"


@pytest.mark.parametrize("name", FORMATS)
def test_a_disk_that_is_full_is_told_with_the_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / "result.csv"

    def batches() -> Iterator[pa.RecordBatch]:
        yield rows()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(CommandError) as failure:
        write_batches(Output(name, path), SCHEMA, batches())
    assert str(failure.value) == f"{path}: cannot be written: No space left on device"
    assert [*tmp_path.iterdir()] == []


def test_counts_as_a_parquet_file(tmp_path: Path) -> None:
    source = str(write_segment(tmp_path, batch(0, [commit("a", 1)])).parent)
    path = tmp_path / "counts.parquet"
    assert run("counts", source, "--format", "parquet", "--output", str(path)) == (0, "", "")
    assert pq.read_table(path).to_pylist() == [
        {
            "topic": "__consumer_offsets",
            "record_type": 1,
            "record": "OffsetCommit",
            "records": 1,
            "tombstones": 0,
            "value_versions": [("v3", 1)],
        }
    ]
