"""Thresholds, command lines, what is summed up, and what changed since an earlier report."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kafka_records_engine.sources.arrow_rows import ArrowRows
from kafka_records_tables.query import query_of
from kafka_records_tables.report.command_lines import command_line, condition_of, quoted
from kafka_records_tables.report.glance import rows_of
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.making import read_report
from kafka_records_tables.report.report_diff import DiffError, earlier_report, report_diff
from kafka_records_tables.report.report_json import SCHEMA, report_object
from kafka_records_tables.report.report_parts import LevelChange, Report, ReportDiff, Rows
from kafka_records_tables.report.report_text import write_report_text
from kafka_records_tables.report.rule_context import HOUR_MS, RuleContext, length
from kafka_records_tables.report.rules import RULES
from kafka_records_tables.report.thresholds import (
    ThresholdsError,
    thresholds_file,
    thresholds_of,
    usual_thresholds,
)
from kafka_records_tables.tables import TABLES
from tests.cli.running import run
from tests.tables.topic import Topic
from tools import report_page

HOSTILE = '<script>alert(1)</script>\'; rm -rf / #\n\x1b[31m\u202e "quoted" -x'


@pytest.fixture(scope="module")
def falls() -> Topic:
    """Thirty groups with hostile names that went backwards while they had no members."""
    topic = Topic()
    for number in range(30):
        group = f"{number} {HOSTILE}"
        topic.add("GroupMetadata", {"group": group}, {"protocol_type": "consumer", "generation": 2, "members": ()})
        topic.commit(group, number * 100 + 500)
        topic.commit(group, 0)
    return topic


@pytest.fixture(scope="module")
def report(falls: Topic) -> Report:
    """The report about them."""
    return read_report(ArrowRows(falls.table()), source_arguments=("/data",))


def test_commands_of_findings_ask_what_the_report_was_asked(report: Report) -> None:
    request = replace(report.request, assume="committed", package="acme_messages", retention_ms=86_400_000)
    request = replace(request, partitions={"__consumer_offsets": 50})
    context = RuleContext(request, report.tables, (), usual_thresholds())
    said = "/data --assume committed --package acme_messages"
    assert context.command(Rows("groups", ("state=Empty",))) == f"kafka-records table groups {said} --where state=Empty"
    assert context.command(Rows("expirations")) == f"kafka-records table expirations {said} --retention PT86400S"
    assert context.command(Rows("checks")) == f"kafka-records table checks {said} --partitions __consumer_offsets=50"
    assert context.reading_command("counts") == "kafka-records counts /data --package acme_messages"


def test_rows_of_a_group(report: Report) -> None:
    rows = report.tables["current_offsets"]
    backwards = rows.take(list(range(rows.num_rows))[::-1])
    names = {"current_offsets": rows, "expirations": backwards}
    context = RuleContext(report.request, names, (), usual_thresholds())
    for group in ["", "~", *rows["group_id"].to_pylist()]:
        own = [row for row in rows.to_pylist() if row["group_id"] == group]
        assert context.rows_of_group("current_offsets", group).to_pylist() == own
        assert context.rows_of_group("expirations", group).to_pylist() == own


def test_records_in_the_wrong_partition_are_found_where_their_number_is_said(falls: Topic, report: Report) -> None:
    said = read_report(ArrowRows(falls.table()), partitions=50, source_arguments=("/data",))
    (moved,) = [finding for finding in said.findings if finding.kind == "groups_in_two_partitions"]
    assert "has 50 partitions" in moved.problem
    assert [each.kind for each in moved.effects] == ["records_misplaced"]
    assert moved.effects[0].rows[0].table == "checks"
    assert "records_misplaced" not in [finding.kind for finding in report.findings]


# -- what is too much of the same --------------------------------------------------------------------------------------


def test_the_worst_of_a_kind_stand_by_themselves_and_the_others_are_one(report: Report) -> None:
    falls = [finding for finding in report.findings if finding.kind == "offsets_reset"]
    assert [len(each.group_ids) for each in falls] == [*[1] * 20, 10]
    assert [each.measured["offsets"] for each in falls[:2]] == [3400, 3300]
    assert falls[-1].measured == {"findings": 10, "groups": 10}
    assert rows_of(report.tables["regressions"], falls[-1].rows[0]).num_rows == 30


def test_rows_of_a_hostile_name_are_found_by_its_condition(report: Report) -> None:
    (rows,) = report.findings[0].rows
    found = rows_of(report.tables["regressions"], rows).to_pylist()
    assert [row["group_id"] for row in found] == list(report.findings[0].group_ids)


def test_text_shows_no_character_that_a_terminal_obeys(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    with path.open("w") as out:
        write_report_text(report, out, 60)
    text = path.read_text()
    assert "<script>" in text
    assert text.replace("\n", "").isprintable()


def test_a_document_of_hostile_names_is_by_the_schema(report: Report) -> None:
    document = json.loads(json.dumps(report_object(report)))
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    assert [tuple(each["group_ids"]) for each in document["findings"]] == [each.group_ids for each in report.findings]


# -- command lines -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "", "it's", HOSTILE, "\\n", "\x011", "ünï 🧾", "'\"", " spaced "])
def test_a_shell_and_the_command_read_a_name_as_it_is(name: str) -> None:
    line = f"printf '%s\\0' {quoted(name)} {command_line([name, 'end'])}"
    told = subprocess.run(["bash", "-c", line], capture_output=True, check=True).stdout
    assert told.decode().split("\0")[:-1] == [name, name, "end"]
    (condition,) = query_of(TABLES["groups"], where=[condition_of("group_id", name)]).conditions
    assert (condition.operator, condition.value) == ("=", name)


# -- thresholds --------------------------------------------------------------------------------------------------------


def test_the_file_of_thresholds_has_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "thresholds.toml"
    path.write_text(run("report", "--print-thresholds").out)
    assert thresholds_of(path) == usual_thresholds()
    assert path.read_text() == thresholds_file()
    names = {rule.named(each) for rule in RULES for each in rule.thresholds}
    general = {f"report.{name}" for name in ("most_of_a_kind", "most_notes_of_a_kind", "group_settles_within")}
    assert names | general == set(usual_thresholds())


def test_a_report_goes_by_the_thresholds_that_it_is_given(report: Report, falls: Topic) -> None:
    """They are given as a mapping or a file; the finding names the threshold that decided."""
    assert {each.level for each in report.findings if each.kind == "offsets_reset"} == {Level.MODERATE}
    others = {"offsets_reset": {"lately": "1h", "of_the_past": "3h"}, "report.most_of_a_kind": 3}
    later = Topic()
    topic, partition, _, at_ms, *others_of_row = falls.rows[0]
    later.rows = [*falls.rows, (topic, partition, len(falls.rows), at_ms + 2 * HOUR_MS, *others_of_row)]
    findings = read_report(ArrowRows(later.table()), thresholds=others).findings
    told = [each for each in findings if each.kind == "offsets_reset"]
    assert [(each.level, len(each.group_ids)) for each in told] == [*[(Level.LOW, 1)] * 3, (Level.LOW, 27)]
    assert told[0].thresholds == {"offsets_reset.lately": HOUR_MS, "offsets_reset.of_the_past": 3 * HOUR_MS}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"offsets_expirin": {"within": "7d"}}, "no threshold is called 'offsets_expirin.within'; did you mean"),
        ({"offsets_expiring": {"withn": "7d"}}, "offsets_expiring has no threshold 'withn'; did you mean within?"),
        ({"offsets_expiring": 3}, "offsets_expiring names a kind of finding: write offsets_expiring.within"),
        ({"offsets_expiring.within": "soon"}, "offsets_expiring.within: 'soon' is not a duration"),
        ({"commits_flooding": {"share": 2}}, "commits_flooding.share: 2 is not a share: write a number from 0 to 1"),
        ({"report": {"most_of_a_kind": -1}}, "report.most_of_a_kind: -1 is not a count"),
        ({"report": {"most_of_a_kind": float("inf")}}, "report.most_of_a_kind: inf is not a count"),
        ({"report": {"most_of_a_kind": float("nan")}}, "report.most_of_a_kind: nan is not a count"),
        ({"times_mean": -1}, "no threshold is called 'times_mean'; did you mean uneven_assignments.times_mean?"),
        ({"offsets_expirin": {}}, "no threshold is called 'offsets_expirin'; did you mean"),
        (
            {"offsets_expiring": {"within": "12h"}},
            "high_within (1 d, the default) must not be above offsets_expiring.within (12 h): set both",
        ),
        (
            {"offsets_expiring": {"high_within": "90m"}},
            "critical_within (2 h, the default) must not be above offsets_expiring.high_within (1 h 30 min)",
        ),
        (
            {"commits_flooding": {"moderate_rate": 7, "high_rate": 6}},
            "commits_flooding.moderate_rate (7) must not be above commits_flooding.high_rate (6): set both",
        ),
        (
            {"commits_flooding": {"moderate_bytes": 6_000_000_000}},
            "moderate_bytes (6000000000) must not be above commits_flooding.high_bytes (5000000000, the",
        ),
        (
            {"offsets_reset": {"lately": "8d"}},
            "offsets_reset.lately (8 d) must not be above offsets_reset.of_the_past (7 d, the",
        ),
        ({"members_unsettled": {"high_after": "5m"}}, "moderate_after (10 min, the default) must not be above"),
        (
            {"uneven_assignments": {"difference": 21}},
            "difference (21) must not be above uneven_assignments.moderate_difference",
        ),
        ({"transaction_open": {"critical_after": "1m"}}, "settled_after (5 min, the default) must not be above"),
    ],
)
def test_thresholds_that_are_none_are_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ThresholdsError) as error:
        thresholds_of(given)
    assert why in str(error.value)


def test_a_file_of_thresholds_says_the_unit_of_a_duration(tmp_path: Path) -> None:
    path = tmp_path / "thresholds.toml"
    path.write_text("[offsets_expiring]\nwithin = 72\n")
    ran = run("report", "/nowhere", "--thresholds", str(path))
    assert (ran.status, "offsets_expiring.within: 72 is not a duration" in ran.err) == (2, True)


# -- changes -----------------------------------------------------------------------------------------------------------


def test_what_is_new_gone_worse_and_better(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    worse, better, *others = report.findings
    earlier = replace(
        report,
        findings=(replace(worse, level=Level.LOW), replace(better, level=Level.CRITICAL), *others[1:]),
    )
    path.write_text(json.dumps(report_object(earlier)))
    diff = report_diff(report, earlier_report(path))
    assert (diff.new, diff.gone) == ((2,), ())
    assert diff.worse == (LevelChange(0, Level.LOW),)
    assert diff.better == (LevelChange(1, Level.CRITICAL),)
    back = report_diff(earlier, earlier_report(written(replace(report, diff=diff), tmp_path / "new.json")))
    assert (back.new, [each.group_ids for each in back.gone]) == ((), [report.findings[2].group_ids])


def test_what_is_summed_up_in_one_report_is_not_new_in_the_other(report: Report) -> None:
    """Which of many findings are shown separately may change from one second to the next."""
    alone, *others = report.findings
    (summary,) = (each for each in report.findings if "findings" in each.measured)
    assert set(summary.group_ids).isdisjoint(alone.group_ids)
    summed_up = replace(summary, group_ids=(*summary.group_ids, *alone.group_ids))
    earlier = replace(report, findings=(*others[: others.index(summary)], summed_up))
    there, back = report_diff(report, earlier_report(earlier)), report_diff(earlier, earlier_report(report))
    assert (there.new, there.worse, there.better, there.gone) == ((), (), (), ())
    assert (back.new, back.worse, back.better, back.gone) == ((), (), (), ())
    low = replace(summed_up, level=Level.LOW)
    was_low = report_diff(report, earlier_report(replace(earlier, findings=(*earlier.findings[:-1], low))))
    assert (0 in was_low.new, was_low.worse[:1]) == (False, (LevelChange(0, Level.LOW),))


def test_a_summary_that_appears_is_new_only_for_a_group_that_had_no_finding(report: Report) -> None:
    (summary,) = (each for each in report.findings if "findings" in each.measured)
    parts = [
        replace(
            summary,
            group_ids=(group,),
            measured={},
            level=Level.LOW,
            rows=(replace(summary.rows[0], where=(f"group_id={group}",)),),
        )
        for group in summary.group_ids
    ]
    others = [each for each in report.findings if each is not summary]
    earlier = replace(report, findings=(*others, *parts))
    at = report.findings.index(summary)
    there, back = report_diff(report, earlier_report(earlier)), report_diff(earlier, earlier_report(report))
    assert (there.new, there.gone, there.worse) == ((), (), (LevelChange(at, Level.LOW),))
    assert (back.new, back.gone) == ((), ())
    fewer = replace(report, findings=(*others, *parts[1:]))
    assert report_diff(report, earlier_report(fewer)).new == (at,)
    assert report_diff(fewer, earlier_report(report)).gone == (summary,)


def test_notes_say_what_else_two_reports_differ_in(report: Report, tmp_path: Path) -> None:
    others = {"offsets_reset.lately": HOUR_MS}
    earlier = replace(
        report,
        request=replace(
            report.request, source="/old", at_timestamp_ms=2**42, retention_ms=HOUR_MS, partitions={"t": 3}
        ),
        findings=tuple(replace(each, thresholds=others) for each in report.findings),
        missing={**report.missing, "lag": "it was not there"},
    )
    diff = report_diff(report, earlier_report(written(earlier, tmp_path / "old.json")))
    lately = length(report.findings[0].thresholds["offsets_reset.lately"])
    assert diff.notes == (
        f"the earlier report is about another source, /old, and this one about {report.request.source}",
        "the earlier report is about a later moment, 2109-05-15 07:35:11 UTC: findings called new were over by then, "
        "and findings called gone came later",
        "findings may have changed only because of this: retention was 1 h and is 7 d; partitions was t=3 and is not "
        "given; "
        f"offsets_reset.lately was 1 h and is {lately}",
        "one of the two reports lacks tables (lag): findings from them are new or gone for that reason only",
    )
    assert report_diff(report, earlier_report(report)).notes == ()


def test_reports_of_two_clusters_are_not_compared(report: Report, tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("#\nnode.id=1\ncluster.id=kavzyxpYTP2M0nh6TvtaoA\n")
    other = replace(report, request=replace(report.request, cluster_id="4L6g3nShT-eMCtK--X86sw"))
    ran = run("report", str(tmp_path), "--diff", str(written(other, tmp_path / "other.json")))
    assert (ran.status, ran.out, ran.err) == (
        2,
        "",
        "kafka-records: --diff: the earlier report is of the cluster 4L6g3nShT-eMCtK--X86sw, but this one is of the "
        "cluster kavzyxpYTP2M0nh6TvtaoA: give an earlier report of the same cluster\n",
    )
    ran = run("report", str(tmp_path), "--diff", str(written(report, tmp_path / "unknown.json")))
    assert "the earlier report" not in ran.err


def test_a_directory_without_logs_is_called_that_if_it_has_other_files(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"a": 1}\n')
    ran = run("report", str(tmp_path))
    assert ran.status == 2
    assert ran.err.startswith(
        f"kafka-records: {tmp_path}: there are no logs here (folders <topic>-<partition> with .log files), and its "
        f"other files are not saved rows: give a broker's data directory; {tmp_path}/settings.json: there "
    )


def test_reports_about_other_groups_or_topics_are_not_compared(report: Report, falls: Topic, tmp_path: Path) -> None:
    old = written(replace(report, request=replace(report.request, groups=("a", "b"))), tmp_path / "old.json")
    ran = run("report", "/nowhere", "--diff", str(old), "--group", "b", "--group", "a")
    assert "the earlier report" not in ran.err
    ran = run("report", str(tmp_path), "--diff", str(old), "--topic-filter", "orders*")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == (
        'kafka-records: --diff: the earlier report is about the groups "a", "b", but this one is about all groups: '
        "findings about what only one of them covers would count as new or gone; make both with the same selection\n"
    )
    with pytest.raises(DiffError, match=r'about all topics, but this one is about the topic "orders\*"'):
        read_report(ArrowRows(falls.table()), topic_filter="orders*", diff=report)


def test_the_text_says_what_changed(report: Report) -> None:
    new, worse = report.findings[:2]
    lost = replace(new, topics=("orders", "returns"), group_ids=(), transactional_ids=("tx-1",), level=Level.MODERATE)
    diff = ReportDiff(0, 0, (0,), (LevelChange(1, Level.LOW),), (), (lost,), ("the earlier report is another",))
    out = StringIO()
    write_report_text(replace(report, findings=(new, worse), diff=diff), out)
    lines = out.getvalue().split("\n")
    assert lines[1] == "note: the earlier report is another"
    heads = [line.partition(" – ")[0] for line in lines if line.startswith(("MODERATE", "GONE"))]
    assert heads == [
        f"MODERATE (new)  {new.title}",
        f"MODERATE (was low)  {worse.title}",
        f'GONE (was moderate)  {new.title}: topics "orders", "returns",',
    ]
    assert 'transactional id "tx-1"' in lines
    told = " ".join(out.getvalue().rpartition("\n\n")[2].split())
    assert told.startswith("2 findings: 2 moderate; since 1970-01-01 00:00:00 UTC: 1 new, 1 worse, 1 gone; whether")


def test_a_report_is_compared_while_it_is_made(report: Report, falls: Topic, tmp_path: Path) -> None:
    path = written(replace(report, findings=report.findings[1:]), tmp_path / "old.json")
    for earlier in (path, replace(report, findings=report.findings[1:])):
        diff = read_report(ArrowRows(falls.table()), diff=earlier).diff
        assert diff is not None
        assert (diff.new, diff.worse, diff.better, diff.gone, diff.notes) == ((0,), (), (), (), ())


def written(report: Report, path: Path) -> Path:
    document = json.loads(json.dumps(report_object(report)))
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is not a JSON document"),
        ("\n", "is empty"),
        ("[]", "is not a report"),
        (
            '{"format": "kafka-records-report", "format_version": 2}',
            "its format version is 2, but this build reads only 3",
        ),
        ('{"format": "kafka-records-report", "format_version": 3}', "missing required field `request`"),
        (
            '{"format": "kafka-records-report", "format_version": 3, "findings": [{"level": "dire"}]}',
            r"`findings\[0\]\.level` is 'dire', none of note, low, moderate, high, critical;",
        ),
    ],
)
def test_a_document_that_is_none_is_refused(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(text)
    with pytest.raises(DiffError, match=why):
        earlier_report(path)


def test_the_page_is_what_the_declarations_say() -> None:
    assert report_page.PAGE.read_text(encoding="utf-8") == report_page.page(RULES)


def test_wrong_usage_is_told() -> None:
    for arguments, why in (
        (("--fail-on", "hig"), "'hig' is not a level; did you mean high?"),
        (("--output", "report.xls"), "its extension does not name a format"),
        (("--no-tables",), "--no-tables needs --format json"),
        (("--diff", "/nowhere.json"), "--diff: /nowhere.json: No such file or directory"),
        (("--retention", "long"), "'long' is not a duration"),
    ):
        ran = run("report", "/nowhere", *arguments)
        assert (ran.status, why in ran.err) == (2, True), ran.err
