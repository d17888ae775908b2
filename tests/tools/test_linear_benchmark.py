"""The rows of the column benchmarks, and the benchmark over increasing numbers of rows. No time is asserted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_records.consumer_offsets import OffsetCommit, decode_record, encode_record
from kafka_records_engine.log.reading.segment_files import RAW_SCHEMA
from tools.benchmarks import linear
from tools.benchmarks._offset_commits import FILE_ROWS, Mix, offset_commits, raw_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TestRows:
    def test_they_are_what_our_codecs_write(self) -> None:
        rows = raw_rows(3, 2_000, Mix())
        assert rows.schema == RAW_SCHEMA
        versions, metadata, topic_ids = [], set(), set()
        for key, value in zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True):
            record = decode_record(key, value)
            assert isinstance(record, OffsetCommit)
            assert record.value is not None
            assert record.value_version is not None
            assert encode_record(record.key, record.value, record.value_version) == (key, value)
            versions.append(record.value_version)
            metadata.add(record.value.metadata)
            topic_ids.add(record.value.topic_id)
        assert {3, 4} == set(versions)
        assert 900 < versions.count(4) < 1_100
        assert metadata == {"", "geprüft", "checkpoint=7;node=eu-west-1a"}
        assert len(topic_ids) == 6

    @pytest.mark.parametrize(("share", "version"), [(0.0, 3), (1.0, 4)])
    def test_one_version(self, share: float, version: int) -> None:
        values = raw_rows(0, 300, Mix(share))["value"].to_pylist()
        assert {value[:2] for value in values} == {version.to_bytes(2, "big")}

    def test_they_are_the_same_every_time_and_differ_from_file_to_file(self) -> None:
        assert raw_rows(1, 500, Mix()).equals(raw_rows(1, 500, Mix()))
        assert not raw_rows(1, 500, Mix())["value"].equals(raw_rows(2, 500, Mix())["value"])

    def test_offsets_go_on_over_the_files(self, tmp_path: Path) -> None:
        files = offset_commits(tmp_path, FILE_ROWS + 20, Mix())
        assert [file.name for file in files] == ["00000-100000.parquet", "00001-20.parquet"]
        assert pq.read_table(files)["offset"].to_pylist() == list(range(FILE_ROWS + 20))

    def test_files_are_written_once(self, tmp_path: Path) -> None:
        (file,) = offset_commits(tmp_path, 50, Mix())
        written = file.stat().st_mtime_ns
        assert offset_commits(tmp_path, 50, Mix()) == [file]
        assert file.stat().st_mtime_ns == written
        assert offset_commits(tmp_path, 50, Mix(0.25))[0].parent.name == "offset-commits-1-v4-025"
        assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_table_and_a_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures, plot = tmp_path / "linear.json", tmp_path / "img" / "linear.svg"
    tiny = ("--rows", "3000,500", "--rounds", "2", "--batch-rows", "400", "--engine-only", "--data", str(tmp_path))
    assert linear.main([*tiny, "--plot", str(plot), "--json", str(figures)]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    found = json.loads(figures.read_text(encoding="utf-8"))
    assert lines[0] == found["machine"]
    assert lines[2] == "best of 2 rounds, batches of 400 rows"
    assert [line.split("  ")[0] for line in lines[4:]] == ["rows", "500", "3,000"]
    assert [line.rpartition(":")[0] for line in printed.err.splitlines()] == [
        f"[{number}/2] engine, one core, {rows} rows" for number in (1, 2) for rows in (500, 3000)
    ]
    assert {rows: len(rounds) for rows, rounds in found["lines"]["engine, one core"].items()} == {"500": 2, "3000": 2}
    drawn = plot.read_text(encoding="utf-8")
    assert drawn.startswith("<?xml")
    assert "<dc:date>" not in drawn


@pytest.mark.spark
@pytest.mark.matrix
def test_spark_reads_the_same_rows(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {rows: offset_commits(tmp_path, rows, Mix()) for rows in (20, 300)}
    counted: list[int] = []
    monkeypatch.setattr(linear, "evaluate", lambda df: counted.append(df.where("error IS NULL").count()))
    line = linear.measure_spark(spark, files, 2, 50)
    assert counted == [20, 20, 300, 20, 300]
    assert {rows: len(rounds) for rows, rounds in line.rounds.items()} == {20: 2, 300: 2}


def test_rows_that_are_not_decoded_are_not_timed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = offset_commits(tmp_path, 30, Mix())
    rows = pq.read_table(file)
    values = rows["value"].to_pylist()
    values[7] = values[7][:-4] + b"\xff" if len(values[7]) > 40 else values[7][:9]
    pq.write_table(rows.set_column(6, "value", pa.array(values, pa.binary())), file)
    options = ("--rows", "30", "--rounds", "1", "--engine-only", "--data", str(tmp_path))
    assert linear.main(options) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "29 of 30 rows were decoded\n"


def test_growth_is_one_when_time_is_linear() -> None:
    line = linear.Curve("engine")
    for rows, seconds in ((10, 3.0), (10, 2.0), (40, 8.0), (80, 24.0)):
        line.add(rows, seconds)
    assert line.growth(40, 10) == 1.0
    assert line.growth(80, 40) == 1.5
    table = linear.lines_table([line], [10, 40, 80]).splitlines()
    assert [row.split()[-1] for row in table] == ["rows", "-", "1.00", "1.50"]


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        linear.main(["--help"])
    assert caught.value.code == 0
    assert "tools/benchmarks/linear.py --plot docs/img/linear.svg" in capsys.readouterr().out
