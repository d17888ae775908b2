"""The report of the captured topics: its findings, its numbers, and the commands that it names."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kafka_records_tables.read import read_table
from kafka_records_tables.report.glance import rows_of
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.making import REPORTED, read_report
from kafka_records_tables.report.report_diff import earlier_report, report_diff
from kafka_records_tables.report.report_json import SCHEMA
from kafka_records_tables.report.report_parts import Report, ReportDiff
from tests.cli.running import run

LEVELS = tuple(level.name for level in Level)


@pytest.fixture(scope="module")
def segments(topics_dir: Path) -> Path:
    return topics_dir / "kafka-4.3" / "segments"


@pytest.fixture(scope="module")
def report(segments: Path) -> Report:
    return read_report(segments)


def test_the_captured_topic_has_what_its_readme_tells(report: Report) -> None:
    assert [(each.level, each.kind, each.group_ids) for each in report.findings if each.level > Level.NOTE] == [
        (Level.HIGH, "share_records_archived", ("ticket-classifiers",)),
        (Level.MODERATE, "share_offsets_reset", ("archive-pickers",)),
        (Level.MODERATE, "topic_recreated", ("price-checks",)),
        (Level.MODERATE, "offsets_reset", ("payments-settlement",)),
        (Level.MODERATE, "offsets_rewound", ("заказы-экспорт",)),
    ]
    assert sorted((each.kind, each.group_ids) for each in report.findings if each.level == Level.NOTE) == [
        ("offsets_reset", ("nightly-audit",)),
        ("offsets_unneeded", ("catalogue-search",)),
        ("share_groups_empty", ("archive-pickers",)),
        ("share_groups_empty", ("ticket-classifiers",)),
    ]


@pytest.mark.parametrize("topic", ["kafka-2.8", "kafka-4.3-expiry"])
def test_the_other_captured_topics_have_nothing_to_look_at(topics_dir: Path, topic: str) -> None:
    report = read_report(topics_dir / topic / "segments", retention="5m" if "expiry" in topic else None)
    assert {each.level for each in report.findings} <= {Level.NOTE}


def test_tables_are_those_that_read_table_gives(report: Report, segments: Path) -> None:
    assert tuple(report.tables) == REPORTED
    for name in ("groups", "expirations", "lag"):
        assert report.tables[name].equals(read_table(name, segments).table)


def test_every_number_counts_or_sums_rows(report: Report) -> None:
    for number in report.numbers:
        rows = rows_of(report.tables[number.rows.table], number.rows)
        counted = rows.num_rows if number.column is None else sum(filter(None, rows[number.column].to_pylist())) or None
        assert number.value == counted, number.name


def test_rows_of_findings_are_there_and_commands_run(report: Report, segments: Path) -> None:
    commands = [step.command for finding in report.findings for step in finding.next if step.command]
    assert len(set(commands)) > len(report.findings)
    for finding in report.findings:
        assert all(rows_of(report.tables[rows.table], rows).num_rows for rows in finding.rows), finding.kind
    one_of_a_kind = {tuple(shlex.split(command)[:3]): command for command in commands}
    ours = [command for command in one_of_a_kind.values() if command.startswith("kafka-records table")]
    assert len(ours) > 3
    for command in ours:
        ran = run(*shlex.split(command)[1:])
        assert (ran.status, len(ran.lines) > 2) == (0, True), (command, ran.err)


def test_the_command_prints_findings_by_level(segments: Path) -> None:
    ran = run("report", str(segments), "--fail-on", "critical")
    assert ran.status == 0
    start = ran.lines.index("") + 1
    assert ran.lines[start : start + 3] == [
        'HIGH  a share group archived records that no consumer accepted – group "ticket-classifiers", topic',
        '  "customer-tickets" (partitions 0-2)',
        "  since 2026-11-21 02:12:46 UTC; is over; 38 records lost, 3 partitions, 5 deliveries",
    ]
    assert [line.split()[0] for line in ran.lines if line.startswith(LEVELS)] == [
        "HIGH",
        "MODERATE",
        "MODERATE",
        "MODERATE",
        "MODERATE",
    ]
    assert " ".join(ran.lines).endswith(" or use --bootstrap (--details shows causes, evidence and all steps)")


def test_the_command_prints_details(segments: Path) -> None:
    ran = run("report", str(segments), "--details")
    assert ran.lines[ran.lines.index("") + 1] == "HIGH  a share group archived records that no consumer accepted"
    assert [line for line in ran.lines if line.startswith("  shown by ")][:2] == [
        "  shown by __share_group_state-0, offset 5; __share_group_state-2, offsets 5, 9, 10; and 28 more",
        "  shown by __share_group_state-1, offset 21; __share_group_state-2, offset 30",
    ]
    assert (
        "while reading: the log: the number of partitions is unknown for __consumer_offsets, __share_group_state,"
        in [*ran.lines]
    )
    assert " ".join(ran.lines).endswith(
        "9 findings: 1 high, 4 moderate, 4 note; whether groups keep up is not judged where the log of the topic is "
        "not in the source, for 78 of 78 committed partitions: read whole data directories, or use --bootstrap"
    )
    assert ran.err == "read 979 records and 9 transaction markers in 43 files of 11 partitions\n"


def test_json_has_all_of_it(report: Report, segments: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    assert run("report", str(segments), "--output", str(path), "--fail-on", "high").status == 3
    document = json.loads(path.read_text())
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    assert report_diff(report, earlier_report(path)) == ReportDiff(
        document["request"]["made_timestamp_ms"], report.request.at_timestamp_ms, (), (), (), ()
    )
    assert [each["kind"] for each in document["findings"]] == [each.kind for each in report.findings]
    printed = [json.loads(line) for line in run("table", "groups", str(segments), "--format", "json").lines]
    assert document["tables"]["groups"] == printed
    assert {name: len(rows) for name, rows in document["tables"].items()} == {
        name: table.num_rows for name, table in report.tables.items()
    }


def test_a_page_is_written_to_a_file(segments: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    assert run("report", str(segments), "--output", str(path)).status == 0
    assert path.read_bytes().startswith(b"<!doctype html>")
    ran = run("report", str(segments), "--format", "json", "--output", str(path), "--overwrite", "--no-tables")
    assert json.loads(path.read_text())["format"] == "kafka-records-report"
    assert ran.err.startswith(f"note: --output {path}: its name ends in html, but the format is json\n")
    ran = run("report", str(segments), "--format", "html")
    assert (ran.status, ran.out) == (2, "")
    assert "--format html writes a file: give its name with --output, as in --output report.html" in ran.err


def test_what_a_report_is_asked_about_moves_neither_its_moment_nor_its_counts(report: Report, segments: Path) -> None:
    for asked in (read_report(segments, topic_filter="orders"), read_report(segments, group="fraud-scoring")):
        assert asked.request.at_timestamp_ms == report.request.at_timestamp_ms
        assert asked.counts == report.counts
    assert report.counts.last_timestamp_ms == report.request.at_timestamp_ms


def test_files_show_nothing_after_their_last_record(report: Report, segments: Path, tmp_path: Path) -> None:
    """A report about a later moment would raise false alarms about missing activity since then."""
    told = (
        "the last record is of 2026-11-21T02:15:01.706Z, and nothing later is known, so the report is as of that time "
        "and not of 9000-01-01T00:00:00.000Z (kafka-records table expirations"
    )
    printed = run("report", str(segments), "--as-of", "9000-01-01T00:00")
    assert (told in " ".join(printed.lines), "without the tables" in printed.err) == (True, False)
    written = run("report", str(segments), "--as-of", "9000-01-01T00:00", "--output", str(tmp_path / "report.json"))
    assert told in written.err
    # A report prints its moment in whole seconds.
    of_end = read_report(segments, as_of="2026-11-21T02:15:01Z")
    assert of_end.findings == report.findings
    assert of_end.tables.keys() == report.tables.keys()
    assert of_end.reading == report.reading


def test_before_the_last_record_it_is_unknown_where_logs_ended(segments: Path) -> None:
    printed = run("report", str(segments), "--as-of", "2026-11-21T02:15:01.705")
    assert (
        "note: without the tables log_ends, lag, group_lag, progress: only the present starts and ends of logs are "
        "known, but the report is about an earlier moment, so groups that fall behind, stand still or fail on a record "
        "are not found: leave out --as-of to find them"
    ) in printed.err.split("\n")
    unjudged = "whether groups keep up is not judged, because the ends of logs are unknown for an earlier moment"
    assert f"; {unjudged}: leave out --as-of (" in " ".join(printed.lines)


def test_a_group_or_topic_that_is_not_there_is_told(segments: Path) -> None:
    """A report without findings would suggest that all is well, so there is no report. If another group exists, it is a
    note."""
    group = "no row is about 'payments-settlment'; did you mean payments-settlement?"
    topic = "no row is about a topic that"
    done = run("report", str(segments), "--group", "payments-settlment", "--topic-filter", "nope*")
    assert (done.status, done.lines) == (2, [])
    assert done.err == f"kafka-records: {group}; {topic} matches 'nope*'\n"
    done = run("report", str(segments), "--group", "payments-settlement", "--topic-filter", "paymets")
    assert (done.status, done.err) == (2, f"kafka-records: {topic} matches 'paymets'; did you mean payments?\n")
    done = run("report", str(segments), "--group", "payments-settlment", "--group", "payments-settlement")
    assert (done.status, f"note: {group}" in done.err.split("\n")) == (0, True)
    done = run("report", str(segments), "--group", "payments-settlement", "--topic-filter", "payments")
    assert "no row is about" not in done.err


def test_a_file_that_may_not_be_read_is_named_and_the_others_are_read(
    segments: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for a user without rights, which root is not."""
    original = os.open

    def refuse(path: str, *arguments: Any) -> int:
        if Path(path).match("__consumer_offsets-4/*.log"):
            raise PermissionError(13, "Permission denied")
        return original(path, *arguments)

    monkeypatch.setattr(os, "open", refuse)
    done = run("report", str(segments), "--details", "--processes", "1")
    text = " ".join(done.out.split())
    assert (done.status, text.count("the user of this report may not read some files")) == (1, 1)
    assert f"{segments}/__consumer_offsets-4/" in text
    assert ".log: permission denied: run this as a user who may read it (nothing in it is read)" in text
    assert "fetched again" not in text
    done = run("table", "groups", str(segments), "--processes", "1")
    assert (done.status, "permission denied: run this as a user who may read it" in done.err) == (1, True)
    assert "archive-pickers" in done.out


def test_a_source_with_nothing_to_read_is_a_finding(segments: Path, tmp_path: Path) -> None:
    done = run("report", str(segments), str(tmp_path / "gone"), "--details", "--processes", "1")
    text = " ".join(done.out.split())
    assert done.status == 1
    assert "HIGH there is nothing to read in some of the sources 1 source could not be read: " in text
    assert "gone: there is no such file or directory (nothing in it is read). Every answer about groups may be" in text
    assert "- Make the report again with the right path, or without it" in text
    assert "fetched again" not in text


def test_damage_names_the_file(segments: Path, tmp_path: Path) -> None:
    folder = tmp_path / "__consumer_offsets-4"
    shutil.copytree(segments / folder.name, folder)
    file = max(folder.glob("*.log"), key=lambda each: each.stat().st_size)
    file.write_bytes(file.read_bytes()[:4000] + b"X" + file.read_bytes()[4001:])
    (found,) = (each for each in read_report(folder).findings if each.kind == "damage")
    assert f"1 place of __consumer_offsets-4 could not be read: {file}: byte 3956, batch at offset" in found.problem
    assert (found.since_timestamp_ms, found.since_note) == (None, "bytes that cannot be read show no time")
