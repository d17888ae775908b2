"""What a page leaves out of large tables, and that it has no text of a record."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kafka_records_tables.report.page import cut_tables
from kafka_records_tables.report.page.cut_tables import CutTables, command_words
from kafka_records_tables.report.page.packed_columns import Dictionaries, packed_table
from kafka_records_tables.report.page.page_file import page_bytes
from tests.page.made_reports import DAY_MS, HOSTILE, findings_about, groups_of, hostile, report_of, request_of, table_of
from tools.page_scripts import main


def large_offsets(groups: int, partitions: int) -> pa.Table:
    chance = np.random.default_rng(7)
    count = groups * partitions
    return table_of(
        "current_offsets",
        {
            "group_id": [f"group-{index // partitions:05}" for index in range(count)],
            "topic": ["orders"] * count,
            "partition": [index % partitions for index in range(count)],
            "offset": chance.integers(0, 2**40, count).tolist(),
            "commit_timestamp_ms": chance.integers(0, 2**41, count).tolist(),
        },
    )


def test_small_tables_are_whole() -> None:
    tables = {"groups": groups_of(["a", "b"])}
    cut = CutTables(report_of(tables))
    assert cut.tables["groups"].equals(tables["groups"])
    assert cut.omissions == ()


def test_large_tables_lose_rows_and_say_so() -> None:
    tables = {"groups": groups_of(["group-00000"]), "current_offsets": large_offsets(500, 20)}
    cut = CutTables(report_of(tables), most_bytes=40_000)
    sizes = [len(content) for _, content in cut.packed.values()] + [len(content) for content in cut.texts.values()]
    assert 30_000 < sum(sizes) <= 40_000
    assert cut.tables["groups"].num_rows == 1
    (omission,) = cut.omissions
    assert omission.what == "current_offsets"
    assert omission.row_count == 10_000 - cut.tables["current_offsets"].num_rows
    assert omission.command == "kafka-records table current_offsets /var/lib/kafka/data"


def test_what_is_left_out_is_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    packed: list[int] = []

    def counting(table: pa.Table, dictionaries: Dictionaries) -> tuple[list[dict[str, Any]], bytes]:
        packed.append(table.num_rows)
        return packed_table(table, dictionaries)

    monkeypatch.setattr(cut_tables, "packed_table", counting)
    cut = CutTables(report_of({"current_offsets": large_offsets(15_000, 20)}), most_bytes=1_000_000)
    assert packed == [40_000, cut.tables["current_offsets"].num_rows]
    sizes = [len(content) for _, content in cut.packed.values()] + [len(content) for content in cut.texts.values()]
    assert 900_000 < sum(sizes) <= 1_000_000


def test_rows_about_groups_with_findings_are_kept_first() -> None:
    report = report_of({"current_offsets": large_offsets(500, 20)}, findings_about("group-00499", "orders"))
    kept = CutTables(report, most_bytes=20_000).tables["current_offsets"].column("group_id").to_pylist()
    assert kept.count("group-00499") == 20
    assert kept == sorted(kept)


def test_commands_ask_what_the_report_was_asked() -> None:
    request = request_of("/data/it's", retention_ms=14 * DAY_MS)
    assert command_words(request, "groups") == ["kafka-records", "table", "groups", "/data/it's"]
    assert command_words(request, "expirations")[-2:] == ["--retention", "PT1209600S"]
    asked = replace(request, as_of=True, assume="committed", package="acme_messages", topic_filter=("orders*",))
    said = ["--as-of", "2026-09-21T14:13:20.000Z", "--assume", "committed", "--package", "acme_messages"]
    assert command_words(asked, "groups") == ["kafka-records", "table", "groups", "/data/it's", *said]
    assert command_words(asked, "lag")[-2:] == ["--topic-filter", "orders*"]
    live = replace(request, source_arguments=("--bootstrap", "broker-1:9092", "--command-config", "it.properties"))
    assert command_words(live, "groups")[3:] == ["--bootstrap", "broker-1:9092", "--command-config", "it.properties"]


def test_no_text_of_a_record_stands_in_the_file() -> None:
    text = page_bytes(hostile()).decode()
    for name in HOSTILE:
        assert len(name) < 4 or name not in text
    blocks = re.findall(r'<script type="application/octet-stream" id="[\w-]+">([^<]*)</script>', text)
    assert len(blocks) > 10
    assert all(re.fullmatch(r"[A-Za-z0-9+/=]+", block) for block in blocks)
    assert text.count("<script") == len(blocks) + 1


def test_scripts_of_others_are_as_they_were_published() -> None:
    assert main(["--check"]) == 0


def test_a_page_of_a_few_groups_is_small(tmp_path: Path) -> None:
    assert len(page_bytes(report_of({"groups": groups_of(["a"])}))) < 600_000
