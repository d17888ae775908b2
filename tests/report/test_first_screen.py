"""What the first screen of a report says, and what it leaves to the details."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any, Final

import pytest

from kafka_records_engine.findings import Finding
from kafka_records_engine.sources.arrow_rows import ArrowRows
from kafka_records_tables.report.first_screen import actor_words, first_sentence, incident_lines, scale_words
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.making import read_report
from kafka_records_tables.report.report_parts import Actor, Cause, Effect, Evidence, NextStep, Report, ReportFinding
from kafka_records_tables.report.report_text import write_report_text
from tests.cli.running import run
from tests.tables.topic import Topic

INCIDENT: Final = ReportFinding(
    kind="crash_loop",
    level=Level.HIGH,
    title="members fail on a record",
    problem="The members of one group fail.",
    impact="Records wait. They are read twice.",
    group_ids=("billing", "audit", "export"),
    topics=("orders",),
    partitions=(0, 1, 2),
    who=(Actor("left 2 times", "billing", None, "worker-0"), Actor("waits", "billing")),
    since_timestamp_ms=0,
    since_note="or earlier",
    is_going_on=True,
    scale={"records_waiting": 652, "records_lost": 0, "partitions": 1},
    causes=(Cause("poison", "The record at offset 7 cannot be decoded.", "high"),),
    evidence=(Evidence("a member leaves", "__consumer_offsets", 4, 9),),
    evidence_count=1,
    effects=(Effect("still", Level.HIGH, "a group reads nothing", "It waits."),),
    next=(NextStep("Look at the record", "kafka-console-consumer --offset 7"), NextStep("Restart it")),
)


@pytest.fixture(scope="module")
def empty() -> Report:
    """A report in which nothing was found."""
    topic = Topic()
    topic.commit("billing", 0)
    return replace(read_report(ArrowRows(topic.table()), source_arguments=("/data",)), findings=(), reading=())


def printed(report: Report, **options: Any) -> str:
    out = StringIO()
    write_report_text(report, out, 110, **options)
    return out.getvalue()


def test_an_incident_is_a_few_lines(empty: Report) -> None:
    first, blank, *lines, last, end = printed(replace(empty, tables={}, findings=(INCIDENT,))).split("\n")
    assert (first.startswith("the rows, as of "), blank, end) == (True, "", "")
    assert lines == [
        'HIGH  members fail on a record – groups "billing", "audit" and 1 more, topic "orders" (partitions 0-2)',
        '  since 1970-01-01 00:00:00 UTC; goes on; 652 records waiting, 1 partition; "worker-0" left 2 times',
        "  cause: The record at offset 7 cannot be decoded",
        "  first: Look at the record:",
        "      kafka-console-consumer --offset 7",
        "",
    ]
    assert last == "1 finding: 1 high (--details shows causes, evidence and all steps)"


def test_details_are_all_that_is_known(empty: Report) -> None:
    note = replace(INCIDENT, level=Level.NOTE, title="all is well")
    report = replace(empty, tables={}, findings=(INCIDENT, note))
    folded, detailed = printed(report), printed(report, with_details=True)
    for text in ("It waits.", "__consumer_offsets-4, offset 9", "- Restart it", "all is well"):
        assert text not in folded
        assert text in detailed
    assert detailed.endswith("2 findings: 1 high, 1 note\n")


def test_a_healthy_report_is_one_line(empty: Report) -> None:
    judged = replace(empty, tables={})
    assert printed(judged).count("\n") == 1
    assert printed(judged).endswith(": nothing found\n")
    noted = printed(replace(judged, findings=(replace(INCIDENT, level=Level.NOTE),)))
    assert noted.count("\n") == 1
    assert noted.endswith(": 1 finding: 1 note (no alarm; --details shows it)\n")


def test_notes_about_lost_or_repeated_records_have_a_line(empty: Report) -> None:
    """At most three of them; the others are with the details."""
    note = replace(
        INCIDENT, level=Level.NOTE, title="a group may have skipped records", scale={"records_possibly_lost": 7}
    )
    report = replace(empty, tables={}, findings=(note, replace(note, scale={"records_repeated": 0}), note, note, note))
    words = " ".join(printed(report).split())
    named = 'groups "billing", "audit" and 1 more, topic "orders" (partitions 0-2)'
    assert words.count(f"NOTE a group may have skipped records – {named}; 7 records possibly lost") == 3
    assert words.endswith("5 findings: 5 note (no alarm; --details shows them)")
    with_incident = printed(replace(report, findings=(INCIDENT, note)))
    assert with_incident.count("NOTE  a group may have skipped records") == 1


def test_a_report_says_what_it_could_not_judge(empty: Report) -> None:
    """For example, of a directory with only the topics of coordinators: groups may have stopped."""
    unjudged = (
        "; whether groups keep up is not judged where the log of the topic is not in the source, for 1 of 1 committed "
        "partitions: read whole data directories, or use --bootstrap"
    )
    assert " ".join(printed(empty).split()).endswith(f": nothing found{unjudged}")
    noted = printed(replace(empty, findings=(replace(INCIDENT, level=Level.NOTE),)))
    assert unjudged in " ".join(noted.split())
    assert unjudged in " ".join(printed(replace(empty, findings=(INCIDENT,))).split())


def test_what_was_met_while_reading_is_one_line_for_each_reason(empty: Report) -> None:
    reading = [
        Finding("note", "GapInLog", what, "it is told in part", topic="__consumer_offsets", partition=partition)
        for partition, what in enumerate(("some are missing", "others are missing", "the first are missing"))
    ]
    report = replace(empty, reading=(*reading, Finding("note", "Other", "a file is odd", "it is left alone")))
    notes = [
        line for line in printed(report).replace("see\n", "see ").split("\n") if line.startswith("while reading: ")
    ]
    assert [note.count("missing") for note in notes] == [1, 0]
    assert "; and 2 more lines of this kind: see --details" in notes[0]
    assert printed(report, with_details=True).count("while reading: ") == 4


def test_the_two_likeliest_causes_are_on_the_first_screen() -> None:
    causes = (
        Cause("skew", "One partition gets most records. It has one reader.", "medium"),
        Cause("slow", "The work became slow.", "low"),
        Cause("other", "Something else.", "low"),
    )
    lines = incident_lines(replace(INCIDENT, causes=causes))
    assert lines.causes == ("probable cause: One partition gets most records", "or: The work became slow")
    assert incident_lines(replace(INCIDENT, causes=causes[1:2])).causes == ("possible cause: The work became slow",)
    assert incident_lines(replace(INCIDENT, causes=())).causes == ()


def test_how_bad_it_is_falls_back_to_what_follows() -> None:
    lines = incident_lines(replace(INCIDENT, scale={}, who=(), until_timestamp_ms=60_000, is_going_on=None))
    assert lines.how_bad == "since 1970-01-01 00:00:00 UTC; gets worse 1970-01-01 00:01:00 UTC; Records wait"
    assert incident_lines(replace(INCIDENT, next=(), topics=(), group_ids=())).what == INCIDENT.title


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        ({"records_lost": 1, "transactional_ids": 1, "groups": 1}, "1 record lost, 1 transactional id, 1 group"),
        ({"records_lost": 0, "records_repeated_at_least": 245}, "at least 245 records repeated"),
        (
            {"records_lost_at_least": 30, "records_lost_in_jumps_at_most": 65, "jumps": 6},
            "30 to 65 records lost, 6 jumps",
        ),
        ({"records_lost_in_jumps_at_most": 65, "jumps": 1}, "at most 65 records lost, 1 jump"),
    ],
)
def test_words_of_a_scale(scale: dict[str, int], words: str) -> None:
    assert scale_words(scale) == words


def test_words_of_those_who_have_a_part_in_it() -> None:
    who = [Actor("left", "g", None, f"c-{number}") for number in range(4)]
    assert actor_words([*who, who[0]]) == '"c-0" left; "c-1" left; and 2 more'


def test_a_sentence_ends_at_its_mark() -> None:
    assert first_sentence("It is at 4.3.1 now; it was so. Then it ended.") == "It is at 4.3.1 now; it was so"
    assert first_sentence("One thing.") == "One thing"


def test_details_go_with_text(tmp_path: Path) -> None:
    ran = run("report", str(tmp_path), "--details", "--format", "json")
    assert ran.status == 2
    assert "--details is only for text" in ran.err
