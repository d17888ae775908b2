"""Saved rows on the command line: recognised, or described by --saved-column, --saved-encoding and --saved-format."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kafka_records_tables.commands.main import main
from tests.log.logs import CAPTURES
from tests.sources.saved_files import captured, in_hex, segments, shuffled, write_csv, write_lines

CAPTURE = segments(CAPTURES[0])


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A file of all captured rows, with names and encodings that are recognized."""
    return write_csv(in_hex(shuffled(captured())), tmp_path / "rows.csv.gz", "gzip")


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = main([*map(str, arguments)])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_table_prints_what_it_prints_of_the_segments(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("current_offsets", "groups", "transactions"):
        _, expected, _ = run(capsys, "table", name, CAPTURE, "--format", "json")
        status, found, said = run(capsys, "table", name, saved, "--format", "json")
        assert (status, found) == (0, expected)
        assert f"note: {saved}: column key is used as key, hex digits; column value is used as value, hex" in said
        assert "in 1 file of " in said


def test_counts_and_dump_print_what_they_print_of_the_segments(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, expected, _ = run(capsys, "counts", CAPTURE, "--format", "json")
    assert run(capsys, "counts", saved, "--format", "json")[:2] == (0, expected)

    def lines(source: Path, *options: str) -> list[object]:
        status, out, _ = run(capsys, "dump", source, *options)
        assert status == 0
        return [{**json.loads(line), "topic_names": None} for line in out.splitlines()]

    for options in ([], ["--topic", "__consumer_offsets", "--offset", "10..20", "--bytes"]):
        assert lines(saved, *options) == lines(CAPTURE, *options)


def test_columns_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = in_hex(captured())
    names = {"key": "k", "value": "v", "partition": "p", "offset": "o"}
    path = tmp_path / "rows.bin"
    write_lines(rows.rename_columns([names.get(name, name) for name in rows.column_names]), path)
    status, _, said = run(capsys, "table", "groups", path)
    assert status == 2
    assert "there are no columns for partition, offset, key, value, but topic (string), p (int64), o (int64)" in said
    named = [option for raw, name in names.items() for option in ("--saved-column", f"{raw}={name}")]
    _, expected, _ = run(capsys, "table", "groups", CAPTURE, "--format", "csv")
    described = [*named, "--saved-encoding", "hex", "--saved-format", "json"]
    status, found, said = run(capsys, "table", "groups", path, "--format", "csv", *described)
    assert (status, found) == (0, expected)
    assert "is used as" not in said


def test_rows_that_tell_of_no_transactions_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    untold = ["transaction", "control", "producer_id", "producer_epoch"]
    path = tmp_path / "rows.parquet"
    pq.write_table(captured().filter(captured()["control"].is_null()).drop_columns(untold), path)
    for form in ("table", "json", "csv"):  # only a header would look like an answer
        status, out, said = run(capsys, "table", "current_offsets", path, "--format", form)
        assert (status, out) == (2, "")
        assert "To count such records as committed" in said
    status, out, _ = run(capsys, "table", "current_offsets", path, "--assume", "committed", "--format", "json")
    assert status == 0
    # Now the rows include offsets of aborted and open transactions.
    _, told, _ = run(capsys, "table", "current_offsets", CAPTURE, "--format", "json")
    assert len(out.splitlines()) > len(told.splitlines())
    status, out, _ = run(capsys, "dump", path, "--offset", "0..0", "--topic", "__consumer_offsets")
    assert {json.loads(line)["is_transactional"] for line in out.splitlines()} == {None}


def test_undecodable_records_are_named_by_file_and_offset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"topic": "__consumer_offsets", "partition": 0, "offset": 7, "key": "0001000", "value": None}
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({**row, "key": "000100"}) + "\n" + json.dumps({**row, "offset": 8, "key": "0001x"}))
    status, _, said = run(capsys, "dump", path, "--saved-encoding", "hex")
    assert status == 1
    assert f"{path}: record at offset 8: row 2: key is not hex (the record is left out)" in said
    assert "__consumer_offsets-0: record at offset 7: OffsetCommitKey v0 at byte 0 after its type: " in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--saved-column", "value"], "argument --saved-column: 'value' is not RAW=NAME, as value=payload"),
        (["--saved-column", "valeu=x"], "raw rows have no column 'valeu', only topic, partition, offset"),
        (
            ["--saved-encoding", "base32"],
            "'base32' is not one of base64, hex, text, or key=… or value=… with one of these",
        ),
        (["--saved-format", "excel"], "invalid choice: 'excel'; choose one of parquet"),
        (["--saved-time-unit", "min"], "invalid choice: 'min'; choose one of s, ms, us, ns"),
        (["--bootstrap", "h:1", "--saved-format", "csv"], "--bootstrap reads brokers, and SOURCE reads files"),
    ],
)
def test_options_that_make_no_sense(
    options: list[str], said: str, saved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, error = run(capsys, "table", "groups", saved, *options)
    assert status == 2
    assert said in error


def test_times_are_in_the_unit_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"topic": "__consumer_offsets", "partition": 0, "offset": 7, "key": "0001", "value": None}
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({**row, "ts": 1_700_000_000}))
    for options, read in (([], 1_700_000_000_000), (["--saved-time-unit", "ms"], 1_700_000_000)):
        _, out, said = run(capsys, "dump", path, "--saved-encoding", "hex", *options)
        assert json.loads(out)["timestamp"] == read
        assert ("seconds since 1970" in said) is not bool(options)


def test_brokers_are_not_saved(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, said = run(capsys, "counts", "--bootstrap", "localhost:1", "--saved-format", "csv")
    assert status == 2
    assert "--saved-column and all other --saved-… options are for files: leave them out with --bootstrap" in said


def test_a_wrong_encoding_is_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_lines(in_hex(captured()), tmp_path / "rows.jsonl")
    for name in ("groups", "offset_commits", "transactions"):
        status, _, said = run(capsys, "table", name, path, "--saved-encoding", "base64")
        assert status == 1
        assert "records is of a type that kafka_records knows (none of them has rows; check the topic" in said
