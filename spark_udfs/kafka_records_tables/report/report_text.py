"""Prints a report as text: a few lines for each incident that needs attention, and all details on request."""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TextIO

from kafka_records_runtime.errors import plural
from kafka_records_runtime.text.printable import printable
from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.first_screen import (
    actor_words,
    incident_lines,
    needs_somebody,
    note_lines,
    scale_words,
)
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.rule_context import listed, moment
from kafka_records_tables.results.finding_lines import finding_lines
from kafka_records_tables.tables.lag import NO_LOG

if TYPE_CHECKING:
    from kafka_records_tables.report.report_parts import NextStep, Report, ReportFinding

_WIDEST: Final = 110
_NARROWEST: Final = 40
_INDENT: Final = "  "
_LONGEST_COMMAND: Final = 2000

_STYLES: Final = {
    Level.CRITICAL: "1;31",
    Level.HIGH: "31",
    Level.MODERATE: "33",
    Level.LOW: "36",
    Level.NOTE: "2",
}
_MOST_RECORDS: Final = 5
"""The maximum number of evidence records to name."""


def write_report_text(report: Report, out: TextIO, width: int | None = None, *, with_details: bool = False) -> None:
    """Print the incidents that need attention, the worst first, on lines of `width` cells. Non-printable characters are
    escaped.

    With details, print all findings including notes, each with its causes, effects, evidence, and all steps.
    """
    is_styled = out.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")
    wide = min(max(width or _WIDEST, _NARROWEST), _WIDEST)
    for line in _lines(report, wide, is_styled, with_details):
        out.write(f"{line}\n")


def _lines(report: Report, width: int, is_styled: bool, with_details: bool) -> Iterator[str]:
    diff = report.diff
    marks = {} if diff is None else diff.marks()
    shown = [
        (finding, f" ({marks[at]})" if at in marks else "")
        for at, finding in enumerate(report.findings)
        if with_details or needs_somebody(finding)
    ]
    gone = () if diff is None else diff.gone
    noted = {} if with_details else note_lines(report.findings)
    head = f"{report.request.source}, as of {moment(report.request.at_timestamp_ms)}"
    is_short = not shown and not gone and not noted
    yield from _wrapped(f"{head}: {in_short(report)}{_folded(report, with_details)}" if is_short else head, "", width)
    for note in () if diff is None else diff.notes:
        yield from _wrapped(f"note: {note}", "", width)
    for finding, mark in shown:
        yield ""
        if with_details:
            yield from _detailed(finding, width, is_styled, mark)
        else:
            yield from _first_lines(finding, width, is_styled, mark)
    if noted:
        yield ""
    for at, line in noted.items():
        yield from _head(report.findings[at], line, width - len(_INDENT), is_styled, "")
    for finding in gone:
        yield ""
        yield from _wrapped(_gone(finding), "", width)
    notes = list(_reading_notes(report, with_details))
    if notes:
        yield ""
    for note in notes:
        yield from _wrapped(note, "", width)
    if not is_short:
        yield ""
        yield from _wrapped(f"{in_short(report)}{_folded(report, with_details)}", "", width)


def _folded(report: Report, with_details: bool) -> str:
    """How many findings the first screen leaves out, and how to see them."""
    if with_details or not report.findings:
        return ""
    if not any(map(needs_somebody, report.findings)):
        return f" (no alarm; --details shows {'it' if len(report.findings) == 1 else 'them'})"
    return " (--details shows causes, evidence and all steps)"


def _reading_notes(report: Report, with_details: bool) -> Iterator[str]:
    """The findings of the reading that are not damage: a line for each reason, or all of them."""
    notes = [each for each in report.reading if each.severity == "note"]
    if with_details:
        yield from map(_met, finding_lines(notes, "--format json has them"))
        return
    for reason in dict.fromkeys(each.reason for each in notes):
        first, *others = finding_lines([each for each in notes if each.reason == reason], "", len(notes))
        more = f"; and {plural(len(others), 'more line')} of this kind: see --details" if others else ""
        yield _met(first) + more


def _met(line: str) -> str:
    """A line about a finding of the reading. It is not called a note, because here notes are a level of findings."""
    return f"while reading: {line.removeprefix('note: ')}"


def in_short(report: Report) -> str:
    """The number of findings of each level."""
    by_level = Counter(finding.level for finding in report.findings)
    what = not_judged(report)
    unjudged = "" if what is None else f"; {what}"
    if not by_level:
        until = " up to that moment" if report.request.as_of else ""
        is_empty = not report.counts.records and not report.counts.markers
        told = (
            f"there was nothing to read: the logs of coordinators have no records{until}"
            if is_empty
            else "nothing found"
        )
        return f"{told}{_changes(report)}{unjudged}"
    parts = ", ".join(f"{by_level[level]} {level.word}" for level in sorted(by_level, reverse=True))
    return f"{plural(len(report.findings), 'finding')}: {parts}{_changes(report)}{unjudged}"


def not_judged(report: Report) -> str | None:
    """A sentence about what the report cannot show: without log ends, it cannot tell whether groups keep up."""
    unjudged = "whether groups keep up is not judged"
    if "lag" not in report.tables:
        if not report.request.as_of:
            return None
        return f"{unjudged}, because the ends of logs are unknown for an earlier moment: leave out --as-of"
    rows = report.tables["lag"]
    lacking = kept(rows, equal(rows, "problem", NO_LOG)).num_rows
    if not lacking:
        return None
    of_all = f"the log of the topic is not in the source, for {lacking} of {rows.num_rows} committed partitions"
    return f"{unjudged} where {of_all}: read whole data directories, or use --bootstrap"


def _changes(report: Report) -> str:
    diff = report.diff
    if diff is None:
        return ""
    parts = (("new", diff.new), ("worse", diff.worse), ("better", diff.better), ("gone", diff.gone))
    told = ", ".join(f"{len(each)} {word}" for word, each in parts if each)
    return f"; since {moment(diff.old_at_timestamp_ms)}: {told or 'no change'}"


def _gone(finding: ReportFinding) -> str:
    """A finding of the earlier report that is gone: its level, its title, and whom it was about."""
    concerned = ", ".join(
        f"{noun}{'s' if len(names) > 1 else ''} {listed(names)}"
        for noun, names in (
            ("group", finding.group_ids),
            ("topic", finding.topics),
            ("transactional id", finding.transactional_ids),
        )
        if names
    )
    return f"GONE (was {finding.level.word})  {finding.title}{': ' if concerned else ''}{concerned}"


def _head(finding: ReportFinding, text: str, width: int, is_styled: bool, mark: str) -> Iterator[str]:
    word = finding.level.word.upper()
    first, *others = _wrapped(f"{word}{mark}  {text}", "", width)
    yield f"\x1b[{_STYLES[finding.level]}m{word}\x1b[0m{first.removeprefix(word)}" if is_styled else first
    yield from (f"{_INDENT}{line}" for line in others)


def _first_lines(finding: ReportFinding, width: int, is_styled: bool, mark: str) -> Iterator[str]:
    """What happened to whom; when it began and how bad it is; the likeliest causes; what to do first."""
    lines = incident_lines(finding)
    yield from _head(finding, lines.what, width - len(_INDENT), is_styled, mark)
    for line in (lines.how_bad, *lines.causes):
        yield from _wrapped(line, _INDENT, width)
    if lines.first_step is not None:
        yield from _step_lines(lines.first_step, "first: ", width)


def _detailed(finding: ReportFinding, width: int, is_styled: bool, mark: str) -> Iterator[str]:
    yield from _head(finding, finding.title, width - len(_INDENT), is_styled, mark)
    yield from _wrapped(finding.problem, _INDENT, width)
    times = [
        since_words(finding),
        {True: "it goes on", False: "it is over", None: ""}[finding.is_going_on],
        f"gets worse {moment(finding.until_timestamp_ms)}" if finding.until_timestamp_ms is not None else "",
        scale_words(finding.scale),
        actor_words(finding.who),
        f"not certain: {finding.why_not_sure}" if finding.why_not_sure else "",
    ]
    how_bad = "; ".join(filter(None, times))
    if how_bad or finding.impact:
        yield from _wrapped(f"{how_bad}{'. ' if how_bad and finding.impact else ''}{finding.impact}", _INDENT, width)
    for line in finding.cause_lines():
        yield from _wrapped(line, _INDENT, width)
    for effect in finding.effects:
        yield from _wrapped(f"it follows: {effect.title}. {effect.problem}", _INDENT, width)
    if any(each.topic is not None for each in finding.evidence):
        yield from _wrapped(f"shown by {_places(finding)}", _INDENT, width)
    for step in finding.next:
        yield from _step_lines(step, "- ", width)


def _step_lines(step: NextStep, start: str, width: int) -> Iterator[str]:
    colon = ":" if step.command and not step.what.endswith("?") else ""
    yield from _wrapped(f"{start}{step.what}{colon}", _INDENT, width)
    if step.command is not None:
        # Print a command on one line of any length, so that it can be copied.
        is_long = len(step.command) > _LONGEST_COMMAND
        yield f"{_INDENT * 3}{'(too long to show: --format json has it)' if is_long else printable(step.command)}"


def _places(finding: ReportFinding) -> str:
    """The positions of evidence records, as many as fit: `__consumer_offsets-4, offsets 7, 9`."""
    places = Counter((each.topic, each.partition, each.offset) for each in finding.evidence)
    of_logs: dict[str, list[str]] = {}
    for topic, partition, offset in list(places)[:_MOST_RECORDS]:
        if topic is None:
            continue
        log = topic if partition is None else f"{topic}-{partition}"
        of_logs.setdefault(log, []).extend([] if offset is None else [str(offset)])
    named = [
        f"{log}, offset{'' if len(offsets) == 1 else 's'} {', '.join(offsets)}" if offsets else log
        for log, offsets in of_logs.items()
    ]
    left = finding.evidence_count - sum(list(places.values())[:_MOST_RECORDS])
    return "; ".join(named) + (f"; and {left} more" if left > 0 else "")


def since_words(finding: ReportFinding) -> str:
    """When the problem began, and how exact this time is; empty if neither is known."""
    at, note = finding.since_timestamp_ms, finding.since_note
    if at is None:
        return "" if note is None else f"beginning: {note}"
    return f"since {moment(at)}" + ("" if note is None else f" ({note})")


def _wrapped(text: str, indent: str, width: int) -> list[str]:
    return textwrap.wrap(
        printable(text),
        width,
        initial_indent=indent,
        subsequent_indent=indent + ("  " if text.startswith(("- ", "first: ")) else ""),
        break_on_hyphens=False,
    )
