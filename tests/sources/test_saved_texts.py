"""Saved rows in text files as spreadsheets and shells write them, and files without rows."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources.saved_rows import SavedRows
from tests.sources.saved_files import FORMATS, captured, in_hex, offsets_of, simple_rows, table_of, tables_of

HEAD = ["topic", "partition", "offset", "key", "value", "control"]
ROWS = [["t", "0", str(at), f"6b3{at}", f"763{at}", ""] for at in range(3)]


def sheet(path: Path, encoding: str, delimiter: str, before: str = "", behind: str = "") -> Path:
    """Write the rows as a spreadsheet saves them."""
    with open(path, "w", encoding=encoding, newline="") as out:
        out.write(before)
        csv.writer(out, delimiter=delimiter).writerows([HEAD, *ROWS])
        out.write(behind)
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("before", ["", "sep=|\r\n", "\r\n"])
def test_csv_of_spreadsheets(encoding: str, delimiter: str, before: str, tmp_path: Path) -> None:
    before = before.replace("|", delimiter)
    path = sheet(tmp_path / "rows.csv", encoding, delimiter, before)
    (log,) = SavedRows(path, encoding="hex").partitions("t")
    found, context = table_of(log)
    assert found["key"].to_pylist() == [b"k0", b"k1", b"k2"]
    assert not context.findings


def test_lines_that_are_padded_with_delimiters(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    blank, another = [""] * 6, ["t", "0", "3", "6b33", "7633", ""]
    lines = [";".join(cells) + ";;;" for cells in [HEAD, *ROWS, blank, another, blank]]
    path.write_text("sep=;;;;;;;;;\r\n" + "\r\n".join(lines) + "\r\n")
    (log,) = SavedRows(path, encoding="hex").partitions("t")
    assert offsets_of(table_of(log)[0]) == [0, 1, 2, 3]
    # Skipped lines count for the number of a row in messages.
    path.write_text("\r\n".join(lines).replace("t;0;3", "t;0;"))
    with pytest.raises(LogSourceError, match="row 5 has no offset"):
        SavedRows(path, encoding="hex").topics()


def test_names_in_quotes_and_with_blanks(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('"topic", "partition", "offset","a,key", value \nt,0,0,6b,76\n')
    (log,) = SavedRows(path, columns={"key": "a,key"}, encoding="hex").partitions("t")
    assert table_of(log)[0]["value"].to_pylist() == [b"v"]


def test_json_lines_of_a_shell(tmp_path: Path) -> None:
    """PowerShell writes redirected output in UTF-16."""
    rows = [{**dict(zip(HEAD, row, strict=True)), "control": None} for row in ROWS]
    path = tmp_path / "rows.json"
    path.write_text("\r\n".join(map(json.dumps, rows)), "utf-16")
    (log,) = SavedRows(path, encoding="hex").partitions("t")
    assert table_of(log)[0]["value"].to_pylist() == [b"v0", b"v1", b"v2"]


def test_what_spark_and_pandas_call_csv(tmp_path: Path) -> None:
    """Truth values in capitals, numbers of an enumeration, an index in front."""
    path = tmp_path / "rows.csv"
    path.write_text(",topic,partition,offset,timestampType,key,value,control\n0,t,0,0,0,6b,,False\n1,t,0,1,1,6b,76,\n")
    (log,) = SavedRows(path, encoding="hex").partitions("t")
    found, _ = table_of(log)
    assert found["timestamp_type"].to_pylist() == ["create", "log_append"]
    assert found["control"].to_pylist() == [None, None]


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("Parquet in folders", "Delta")])
def test_files_without_a_row(name: str, tmp_path: Path) -> None:
    path = FORMATS[name](captured().slice(0, 0), tmp_path)
    source = SavedRows(path, topic="t")
    for ask in (source.topics, lambda: source.partitions("t")):
        with pytest.raises(LogSourceError) as raised:
            ask()
        assert raised.value.detail == "no rows were found"


@pytest.mark.parametrize(("name", "text"), [("a.jsonl", ""), ("a.jsonl", "\n\n"), ("a.csv", ""), ("a.csv", "sep=;\n")])
def test_texts_without_a_line(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(LogSourceError, match="no rows were found"):
        SavedRows(tmp_path).topics()


def _offset_of_another_kind(rows: pa.Table, path: Path) -> None:
    texts = [*map(str, rows["offset"].to_pylist())]
    texts[130] = "131x"
    pq.write_table(rows.set_column(2, "offset", pa.array(texts)), path, row_group_size=50)


def _place_below_zero(rows: pa.Table, path: Path) -> None:
    offsets = rows["offset"].to_pylist()
    offsets[130] = -5
    pq.write_table(rows.set_column(2, "offset", pa.array(offsets)), path, row_group_size=50)


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (_offset_of_another_kind, r"row 131: offset \('131x'\) is of type string and cannot be offset, .*: '131x'"),
        (_place_below_zero, "row 131 has the offset -5"),
    ],
)
def test_rows_are_named_by_their_number_in_the_file(
    write: Callable[[Any, Path], None], said: str, tmp_path: Path
) -> None:
    write(in_hex(simple_rows(list(range(200)))), tmp_path / "rows.parquet")
    with pytest.raises(LogSourceError, match=said):
        tables_of(SavedRows(tmp_path, encoding="hex"))
