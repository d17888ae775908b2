"""The page about tables says what the declarations say."""

from __future__ import annotations

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
        for column in table.columns:
            assert f"\n| `{column.name}` | {column.type} | {column.about} |\n" in text
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
