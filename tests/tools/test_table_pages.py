"""The page about tables agrees with the declarations."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka_records_tables.tables import TABLES
from kafka_records_tables.tables.declaration import REPLAYED, Column
from tools import table_pages

SEVERAL = "Columns that several tables have"


def test_the_page_is_what_the_declarations_say() -> None:
    assert table_pages.PAGE.read_text(encoding="utf-8") == table_pages.page(TABLES.values())


def test_every_table_and_column_is_on_it() -> None:
    text = table_pages.page(TABLES.values())
    shared = " ".join(text.partition(f"\n## {SEVERAL}\n")[2].partition("\n## ")[0].split())
    described: set[tuple[str, str]] = set()
    for table in TABLES.values():
        assert f"\n## {table.name}\n\n" in text
        of_table = text.partition(f"\n## {table.name}\n")[2].partition("\n## ")[0]
        assert table.rules.removeprefix(REPLAYED) in of_table
        columns = " ".join(of_table.partition(table.rules.removeprefix(REPLAYED))[2].split())
        known = columns.partition(f"[Columns](#{SEVERAL.lower().replace(' ', '-')}): ")[2].partition(". ")[0]
        for column in table.columns:
            if column.name.endswith("_timestamp_ms"):
                continue  # The element of the other column of the moment is about both.
            is_known = (column.name, table_pages.own_words(column)) in described or is_described(column, shared)
            assert (f"`{column.name}`" in known) == is_known
            assert is_described(column, columns) != is_known
        described.update((column.name, table_pages.own_words(column)) for column in table.columns)


def is_described(column: Column, text: str) -> bool:
    """Whether a list has an element about this column."""
    name, about = f"- `{column.name}` {column.type}", table_pages.own_words(column)
    if column.type in ("timestamp", "string"):
        name = f"- `{column.name}`"
    return re.search(rf"{re.escape(f'{name}: {about}')}(?= - `|$)", text) is not None


def test_usual_reasons_for_nulls_are_named_once() -> None:
    text = table_pages.page(TABLES.values())
    assert "- `instance_id`: group.instance.id; null for dynamic members and in share groups\n" in text
    assert "- `client_id`: client.id\n" in text
    assert text.count("A column is null if the source does not show its value") == 1


def test_a_column_of_several_tables_is_described_once() -> None:
    text = table_pages.page(TABLES.values())
    assert text.count("- `group_id`: the group\n") == 1
    assert text.index(f"\n## {SEVERAL}\n") < text.index("- `group_id`: the group\n") < text.index("\n## groups\n")


def test_a_moment_is_one_element() -> None:
    text = table_pages.page([TABLES["open_transactions"]])
    assert "- `last_timestamp`: when its producer last wrote to this log\n" in text
    assert "last_timestamp_ms" not in text


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
