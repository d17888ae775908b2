"""The page about tables says what the declarations say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka_records_tables.tables import TABLES
from tools import table_pages


def test_the_page_is_what_the_declarations_say() -> None:
    assert table_pages.PAGE.read_text(encoding="utf-8") == table_pages.page(TABLES.values())


def test_every_table_and_column_is_on_it() -> None:
    text = table_pages.page(TABLES.values())
    for table in TABLES.values():
        assert f"\n## {table.name}\n\n{table.rules}" in text
        of_table = text.partition(f"\n## {table.name}\n")[2].partition("\n## ")[0]
        for column in table.columns:
            own, of_moment = f"\n| `{column.name}` | ", rf"\n\| (`\w+`, )?`{column.name}`(, `\w+`)? \| timestamp, int64"
            assert of_table.count(own) + len(re.findall(of_moment, of_table)) == 1
            if "timestamp" not in column.name:
                assert f"\n| `{column.name}` | {column.type} | {column.about} |\n" in of_table


def test_a_moment_has_one_row() -> None:
    row = "| `last_timestamp`, `last_timestamp_ms` | timestamp, int64 | when its producer last wrote to this log;"
    assert f"\n{row} null if unknown |\n" in table_pages.page([TABLES["open_transactions"]])


def test_group_records_are_named_once() -> None:
    text = table_pages.page(TABLES.values())
    assert text.count("ShareGroupTargetAssignmentMember,") == 1
    assert "Records: OffsetCommit, the group records.\n" in text.replace("\n", " ").replace(".  ", ".\n")


def test_pages_have_no_long_lines() -> None:
    text = table_pages.page(TABLES.values())
    assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= 120


def test_check_names_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(table_pages, "PAGE", tmp_path / "tables.md")
    monkeypatch.setattr("sys.argv", ["table_pages", "--check"])
    assert table_pages.main() == 1
    assert capsys.readouterr().err == "docs/tables.md is not what the declarations say: run make generate\n"
    monkeypatch.setattr("sys.argv", ["table_pages"])
    assert table_pages.main() == 0
    monkeypatch.setattr("sys.argv", ["table_pages", "--check"])
    assert table_pages.main() == 0
