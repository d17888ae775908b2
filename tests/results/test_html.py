"""What a notebook shows: rows, plot, findings and counts, and that no value gets into it as markup."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from kafka_records_engine.findings import Finding
from kafka_records_engine.sources import Counts
from kafka_records_tables import TABLES, Result, read_table
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.notebook_html import MOST_OF_A_LEVEL
from kafka_records_tables.report.report_parts import (
    LevelChange,
    NextStep,
    Number,
    Report,
    ReportDiff,
    ReportFinding,
    ReportRequest,
    Rows,
)
from kafka_records_tables.results.fitting import telling_columns
from kafka_records_tables.results.html_parts import LONGEST_CELL, MOST_ROWS, rows_html, text_html
from kafka_records_tables.results.time_plot import time_plot
from tests.results.html_read import HtmlRead
from tests.tables.names import COORDINATED, USUAL
from tests.variants import mostly

HOSTILE: Final = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</td></tr></table><style>*{display:none}</style>",
    "&lt;b&gt; &#x3c;i&#x3e;",
    "<!-- --><![CDATA[ ]]>",
    "a\u202egnilrid\u2066\u200f",
    "\u05d0\u05d1\u05d2 123",
    "line\nbreak\x00\x1b[2J\x7f",
    "' onmouseover='alert(1)",
    "`${alert(1)}` $\\LaTeX$",
)
SHOWN: Final = (
    *HOSTILE[:5],
    r"a\u202egnilrid\u2066\u200f",
    "\u05d0\u05d1\u05d2 123",
    r"line\nbreak\x00\x1b[2J\x7f",
    *HOSTILE[8:],
)
"""The values as users see them."""

COUNTS: Final = Counts(partitions=6, files=30, records=850, markers=9)


def of_groups(groups: tuple[str, ...], findings: tuple[Finding, ...] = ()) -> Result:
    """A result of `current_offsets` with a row per group."""
    declaration = TABLES["current_offsets"]
    row = dict.fromkeys(declaration.names)
    rows = [{**row, "group_id": group, "metadata": group} for group in groups]
    return Result(declaration, pa.Table.from_pylist(rows, declaration.schema), findings, COUNTS)


@pytest.mark.parametrize("name", mostly(((name,) for name in COORDINATED), lambda name: name in USUAL))
def test_every_table_shows_itself(name: str, topics_dir: Path) -> None:
    result = read_table(name, topics_dir / "kafka-4.3" / "segments")
    read = HtmlRead(result._repr_html_())
    columns = [result.table.column_names[at] for at in telling_columns(result.table)]
    assert len(read.cells) == min(len(result), MOST_ROWS) * len(columns)
    assert all(each in read.texts for each in columns)
    assert f"{TABLES[name].about}" in read.text
    rows = "1 row" if len(result) == 1 else f"{len(result)} rows"
    assert any(text.startswith(f"{MOST_ROWS} of {rows}") for text in read.texts) == (len(result) > MOST_ROWS)
    assert f"{rows} from " in read.text
    assert "0 findings of damage" in read.text


def test_hostile_values_are_text() -> None:
    read = HtmlRead(of_groups(HOSTILE)._repr_html_())
    width = len(read.cells) // len(HOSTILE)
    # A text that begins with a quote is in quotes itself.
    assert tuple(read.cells[::width]) == (SHOWN[0], r'"\"><img src=x onerror=alert(1)>"', *SHOWN[2:])
    assert "svg" not in read.found  # no row has a time


def test_values_are_isolated_from_what_stands_beside_them() -> None:
    html = of_groups(HOSTILE)._repr_html_()
    assert html.count("<bdi>") == html.count("</bdi>") == 2 * len(HOSTILE)


def test_long_values_are_cut_and_that_is_said() -> None:
    long = "x" * 1_000_000
    html = of_groups((long, "\u202e" * 1_000_000))._repr_html_()
    read = HtmlRead(html)
    assert len(html) < 20_000
    assert read.cells[0] == "x" * LONGEST_CELL + "…"
    assert "long texts cut in group_id, metadata: .table has all" in read.text


def test_names_of_columns_that_somebody_else_chose() -> None:
    table = pa.table({name: [1] for name in HOSTILE})
    read = HtmlRead(rows_html(table))
    assert [text for text in read.texts if text.strip()][: len(HOSTILE)] == list(SHOWN)


def test_no_rows_and_no_columns() -> None:
    assert HtmlRead(of_groups(())._repr_html_()).cells == []
    assert HtmlRead(rows_html(pa.table({}))).cells == []


def test_findings_stand_below_as_lines() -> None:
    finding = Finding("damage", "DamagedLog", "wrong CRC", HOSTILE[0], file=f"{HOSTILE[1]}.log", position=7)
    note = replace(finding, severity="note", reason="UnreadLog", what="\u202e" * 2000)
    many = tuple(replace(finding, position=position) for position in range(100))
    read = HtmlRead(of_groups(("g",), (note, *many))._repr_html_())
    assert f"{finding}" in read.text
    assert "note: " in read.text
    assert "…" in read.text
    assert "90 more findings of the kind DamagedLog: .findings has all of them" in read.text
    assert "1 row from 850 records and 9 transaction markers in 30 files of 6 partitions" in read.text
    assert "100 findings of damage" in read.text


# -- rows over time ----------------------------------------------------------------------------------------------------


def of_times(*times: int | None, unit: str = "us") -> pa.Table:
    return pa.table({"name": ["x"] * len(times), "at_timestamp": pa.array(times, pa.timestamp(unit, "UTC"))})


def test_rows_over_time_are_drawn_and_said() -> None:
    read = HtmlRead(time_plot(of_times(0, 0, 90_000_000, None)))
    said = (
        "3 rows by at_timestamp, from 1970-01-01T00:00:00.000Z to 1970-01-01T00:01:30.000Z, at most 2 per bar; "
        "1 row without it"
    )
    assert read.texts == [said, said]
    assert read.found == {"figure", "svg", "title", "path", "figcaption"}
    assert 'd="M0.0 72v-72.0h7.0V72zM712.0 72v-36.0h7.0V72z"' in time_plot(of_times(0, 0, 90_000_000, None))


def test_the_whole_range_of_times() -> None:
    last = 253_402_300_799_999_999
    assert "to 9999-12-31T23:59:59.999999Z" in time_plot(of_times(-62_135_596_800_000_000, last))


@pytest.mark.parametrize("times", [(), (None,), (5, 5), (5,)])
def test_no_drawing_where_times_tell_nothing_apart(times: tuple[Any, ...]) -> None:
    assert time_plot(of_times(*times)) == ""


def test_the_first_time_that_tells_rows_apart_is_drawn() -> None:
    same = of_times(1, 1).append_column("to_timestamp", pa.array([1, 2], pa.timestamp("us", "UTC")))
    assert "2 rows by to_timestamp, " in time_plot(same)


# -- reports -----------------------------------------------------------------------------------------------------------

REQUEST: Final = ReportRequest(
    "segments", ("segments",), 0, 1_795_227_301_659, False, 604_800_000, None, (), "0.1.0", "local"
)
FINDING: Final = ReportFinding(
    "offsets_expiring",
    Level.HIGH,
    "offsets expire soon",
    "Offsets of one group expire in an hour.",
    group_ids=HOSTILE,
    since_timestamp_ms=0,
    confidence="medium",
    why_not_sure="the log was cleaned",
    next=(NextStep("look at them", f"kafka-records table expirations --group '{HOSTILE[0]}'"),),
)


def of_findings(*findings: ReportFinding, **parts: Any) -> Report:
    given: dict[str, Any] = {"numbers": (), "tables": {}, "missing": {}, "reading": (), "counts": COUNTS, **parts}
    return Report(REQUEST, findings, **given)


def test_a_report_shows_its_findings_by_level_and_its_numbers() -> None:
    number = Number("groups", "groups", 33, None, Rows("groups"))
    lag = replace(number, label="lag <all>", value=None, unit="records")
    size = replace(number, label="size", value=1.5, unit="MB")
    report = of_findings(
        FINDING,
        replace(FINDING, title="another"),
        replace(FINDING, level=Level.NOTE, group_ids=()),
        numbers=(number, lag, size),
        missing={"transactions": "no <log> of __transaction_state"},
    )
    assert repr(report) == "<report of segments: 2 high, 1 note>"
    read = HtmlRead(report._repr_html_())
    assert "Report of segments, at 2026-11-21T02:15:01.659Z" in read.text
    assert read.text.index("high (2)") < read.text.index("another") < read.text.index("note (1)")
    assert "offsets expire soon (<script>alert(1)</script>, " in read.text
    assert f" and {len(HOSTILE) - 5} more)" in read.text
    assert "since 1970-01-01T00:00:00.000Zconfidence medium: the log was cleaned" in read.text
    assert "next: look at them: kafka-records table expirations --group '<script>" in read.text
    assert read.cells == ["33", "not known", "1.5 MB"]
    assert "transactions: no <log> of __transaction_state" in read.text
    assert "3 findings from 850 records and 9 transaction markers in 30 files of 6 partitions" in read.text


def test_a_report_shows_what_changed() -> None:
    gone = replace(FINDING, title="a transaction hangs", group_ids=("<b>",))
    diff = ReportDiff(0, 0, (1,), (LevelChange(0, Level.LOW),), (), (gone,), ("another <source>",))
    read = HtmlRead(of_findings(FINDING, replace(FINDING, title="another", group_ids=()), diff=diff)._repr_html_())
    assert "compared with the report of 1970-01-01T00:00:00.000Z:" in read.text
    assert "note: another <source>" in read.text
    assert "gone: a transaction hangs (<b>) – was high" in read.text
    assert " more) – was low" in read.text
    assert "another – new" in read.text


def test_a_report_of_many_findings_says_how_many_are_left() -> None:
    read = HtmlRead(of_findings(*[FINDING] * (MOST_OF_A_LEVEL + 3))._repr_html_())
    assert "3 more findings: .findings has all" in read.text
    assert read.text.count("offsets expire soon") == MOST_OF_A_LEVEL


def test_a_report_without_findings() -> None:
    read = HtmlRead(of_findings(reading=(Finding("note", "LaterRecords", HOSTILE[0], "read"),))._repr_html_())
    assert "no findings" in read.text
    assert repr(of_findings()) == "<report of segments: no findings>"
    assert f"note: the log: {HOSTILE[0]} (read)" in read.text


def test_any_text_is_text() -> None:
    for hostile, shown in zip(HOSTILE, SHOWN, strict=True):
        assert HtmlRead(text_html(hostile)).text == shown
    assert HtmlRead(text_html("x" * 1_000_000, 3)).text == "xxx…"
    assert HtmlRead(text_html("\u202e" * 1_000_000, 12)).text == r"\u202e\u202e…"
