"""The formats of results, and files that appear only when they are complete."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_records_cli.failures import CommandError
from kafka_records_cli.output import FORMATS, write_result
from kafka_records_cli.tabletext import write_table
from tests.cli.running import run
from tests.cli.segment_bytes import batch, commit, write_segment

COLUMNS = ("name", "number", "extra")
ROWS: list[tuple[Any, ...]] = [
    ("plain", 1, None),
    ("", -20, ""),
    ('quoted "text", with a comma', None, {"a": [1, None]}),
    ("two\r\nlines", 3, "größe ✓ 🚚"),
    ("\x1b[31mred\u202e", 4, True),
]


def written(name: str, rows: list[tuple[Any, ...]] = ROWS) -> str:
    out = io.StringIO(newline="")
    FORMATS[name](COLUMNS, rows, out)
    return out.getvalue()


class Terminal(io.StringIO):
    """A stream that takes itself for a terminal."""

    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch, width: int, rows: list[tuple[Any, ...]]) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    write_table(COLUMNS, rows, out)
    assert "\x1b[1m" in out.getvalue()
    return re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())


def test_json_is_one_object_per_line() -> None:
    lines = written("json").split("\n")[:-1]
    assert [tuple(json.loads(line).values()) for line in lines] == ROWS
    assert lines[0] == '{"name":"plain","number":1,"extra":null}'
    assert lines[3] == '{"name":"two\\r\\nlines","number":3,"extra":"größe ✓ 🚚"}'


def test_csv_is_that_of_rfc_4180_and_tells_null_from_nothing() -> None:
    assert written("csv") == (
        "name,number,extra\r\n"
        "plain,1,\r\n"
        '"",-20,""\r\n'
        '"quoted ""text"", with a comma",,"{""a"":[1,null]}"\r\n'
        '"two\r\nlines",3,größe ✓ 🚚\r\n'
        "\x1b[31mred\u202e,4,true\r\n"
    )


def test_csv_is_read_back() -> None:
    read = [*csv.reader(io.StringIO(written("csv"), newline=""))]
    assert read[0] == list(COLUMNS)
    assert [row[0] for row in read[1:]] == [row[0] for row in ROWS]


def test_a_table_elsewhere_than_on_a_terminal_has_a_line_per_row_and_no_escapes() -> None:
    assert written("table").split("\n") == [
        "name                          number   extra",
        "─────────────────────────────────────────────────────",
        "plain                              1   null",
        "                                 -20",
        'quoted "text", with a comma     null   {"a":[1,null]}',
        r"two\r\nlines                       3   größe ✓ 🚚",
        r"\x1b[31mred\u202e                  4   true",
        "",
    ]


def test_nothing_is_cut_off_however_wide_it_is() -> None:
    wide = "x" * 5000
    assert wide in written("table", [(wide, 1, wide)])


def test_no_rows() -> None:
    assert written("json", []) == ""
    assert written("csv", []) == "name,number,extra\r\n"
    assert written("table", []).split("\n")[0] == "name   number   extra"


def test_wide_values_are_folded_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"{number:03}" for number in range(40))
    shown = on_terminal(monkeypatch, 60, [(text, 7, "end")])
    lines = shown.split("\n")
    assert max(map(len, lines)) <= 60
    assert "".join(line.split(" ")[0] for line in lines[2:]) == text


def test_names_are_folded_behind_their_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    row = ("payments-settlement-service.eu_west", 1234567, "orders-enriched")
    lines = [line.rstrip() for line in on_terminal(monkeypatch, 47, [row]).split("\n")]
    assert lines == [
        "name                   number   extra",
        "───────────────────────────────────────────────",
        "payments-             1234567   orders-enriched",
        "settlement-service.",
        "eu_west",
        "",
    ]


def test_names_that_cannot_be_folded_make_blocks_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    row = ("paymentssettlementservice", 1234567, "ordersenriched")
    lines = [line.rstrip() for line in on_terminal(monkeypatch, 50, [row]).split("\n")]
    assert lines[1:] == ["name    paymentssettlementservice", "number  1234567", "extra   ordersenriched", ""]


def test_names_of_columns_are_folded_at_their_underscores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "COLUMNS", ("commit_timestamp_ms", "log_offset", "_x"))
    shown = on_terminal(monkeypatch, 40, [(1795227217139, 7, "y")])
    assert [line.rstrip() for line in shown.split("\n")[:3]] == [
        "      commit_     log_   _",
        " timestamp_ms   offset   x",
        "──────────────────────────",
    ]


def test_a_row_too_wide_for_the_terminal_becomes_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = on_terminal(monkeypatch, 24, [("a long name, longer than twenty", 7, "another long text")])
    lines = [line.rstrip() for line in shown.split("\n")]
    assert lines[0].startswith("1 of 1 ")
    assert lines[1:] == [
        "name    a long name,",
        "        longer than",
        "        twenty",
        "number  7",
        "extra   another long",
        "        text",
        "",
    ]


# -- files -------------------------------------------------------------------------------------------------------------


def options(path: Path, name: str = "csv") -> Any:
    return SimpleNamespace(output=path, format=name, overwrite=True)


def test_a_file_replaces_another_at_once_and_gets_usual_permissions(tmp_path: Path) -> None:
    path = tmp_path / "result.csv"
    path.write_text("before")

    def rows() -> Iterator[tuple[Any, ...]]:
        assert path.read_text() == "before"
        yield ("a", 1, None)

    write_result(options(path), COLUMNS, rows())
    assert path.read_bytes() == b"name,number,extra\r\na,1,\r\n"
    (tmp_path / "usual").touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "usual").stat().st_mode)


def test_a_file_is_left_alone_when_the_rows_break_off(tmp_path: Path) -> None:
    path = tmp_path / "result.csv"
    path.write_text("before")

    def rows() -> Iterator[tuple[Any, ...]]:
        yield ("a", 1, None)
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        write_result(options(path), COLUMNS, rows())
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
    message = f"kafka-records: {path}: there is a file already; --overwrite replaces it\n"
    assert run("counts", source, "--output", str(path)) == (2, "", message)
    assert path.read_text() == first
    assert run("counts", source, "--output", str(path), "--overwrite") == (0, "", "")
    assert path.read_text().startswith("topic  ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--output", "."), ".: is a directory, --output names a file"),
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
        (("--overwrite",), "--overwrite goes with --output"),
        (("--output", ""), "argument --output: is empty, and names no file or directory"),
    ],
)
def test_usage_of_outputs(arguments: tuple[str, ...], message: str) -> None:
    status, out, err = run("counts", "anything", *arguments)
    assert (status, out) == (2, "")
    assert err.startswith("usage: kafka-records counts ")
    assert err.splitlines()[-1] == f"kafka-records counts: error: {message}"


def test_a_disk_that_is_full_is_told_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "result.csv"

    def rows() -> Iterator[tuple[Any, ...]]:
        yield ("a", 1, None)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(CommandError) as failure:
        write_result(options(path), COLUMNS, rows())
    assert str(failure.value) == f"{path}: cannot be written: No space left on device"
    assert [*tmp_path.iterdir()] == []
