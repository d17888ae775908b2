"""A report as text for people: the findings by level, with what to do next."""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TextIO

from kafka_records_runtime.errors import plural
from kafka_records_runtime.printable import printable
from kafka_records_tables.report.report_parts import Level
from kafka_records_tables.report.rule_context import listed, moment
from kafka_records_tables.results.finding_lines import finding_lines

if TYPE_CHECKING:
    from kafka_records_tables.report.report_parts import Report, ReportFinding

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
_STEPS: Final = {Level.CRITICAL: 9, Level.HIGH: 9, Level.MODERATE: 1, Level.LOW: 1, Level.NOTE: 0}
"""How many of the next steps are shown; --format json and html have all of them."""
_MOST_SHOWN: Final = 3
"""Effects of a finding that are shown."""
_MOST_RECORDS: Final = 5
"""Records that are named of those that show a finding."""
_MOST_NOTES: Final = 1
"""Notes of a reason that are shown of those that were met while reading; a line counts the others."""


def write_report_text(report: Report, out: TextIO, width: int | None = None) -> None:
    """Print the findings, the worst first, on lines of `width` cells. What is not printable is escaped."""
    is_styled = out.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")
    wide = min(max(width or _WIDEST, _NARROWEST), _WIDEST)
    for line in _lines(report, wide, is_styled):
        out.write(f"{line}\n")


def _lines(report: Report, width: int, is_styled: bool) -> Iterator[str]:
    yield from _wrapped(f"{report.request.source}, as of {moment(report.request.at_timestamp_ms)}", "", width)
    diff = report.diff
    for note in () if diff is None else diff.notes:
        yield from _wrapped(f"note: {note}", "", width)
    marks = {} if diff is None else diff.marks()
    for at, finding in enumerate(report.findings):
        yield ""
        yield from _finding_lines(finding, width, is_styled, f" ({marks[at]})" if at in marks else "")
    for finding in () if diff is None else diff.gone:
        yield ""
        yield from _wrapped(_gone(finding), "", width)
    notes = [each for each in report.reading if each.severity == "note"]
    if notes:
        yield ""
    for line in finding_lines(notes, "--format json has them", _MOST_NOTES):
        yield from _wrapped(line, "", width)
    yield ""
    yield from _wrapped(in_short(report), "", width)


def in_short(report: Report) -> str:
    """How many findings there are of each level."""
    by_level = Counter(finding.level for finding in report.findings)
    if not by_level:
        return f"nothing found{_changes(report)}"
    parts = ", ".join(f"{by_level[level]} {level.word}" for level in sorted(by_level, reverse=True))
    return f"{plural(len(report.findings), 'finding')}: {parts}{_changes(report)}"


def _changes(report: Report) -> str:
    diff = report.diff
    if diff is None:
        return ""
    parts = (("new", diff.new), ("worse", diff.worse), ("better", diff.better), ("gone", diff.gone))
    told = ", ".join(f"{len(each)} {word}" for word, each in parts if each)
    return f"; since {moment(diff.old_at_timestamp_ms)}: {told or 'no change'}"


def _gone(finding: ReportFinding) -> str:
    """A finding of an earlier report that is none any more: its level, what it was, and whose."""
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


def _finding_lines(finding: ReportFinding, width: int, is_styled: bool, mark: str) -> Iterator[str]:
    """What; since when and how bad; what to do first. The causes follow, and the other steps."""
    word = finding.level.word.upper()
    head = f"\x1b[{_STYLES[finding.level]}m{word}\x1b[0m" if is_styled else word
    yield f"{head}{mark}  {printable(finding.title)}"
    yield from _wrapped(finding.problem, _INDENT, width)
    times = [
        since_words(finding),
        {True: "it goes on", False: "it is over", None: ""}[finding.is_going_on],
        f"until {moment(finding.until_timestamp_ms)}" if finding.until_timestamp_ms is not None else "",
        f"not certain: {finding.why_not_sure}" if finding.why_not_sure else "",
    ]
    how_bad = "; ".join(filter(None, times))
    if (how_bad or finding.impact) and finding.level > Level.NOTE:
        yield from _wrapped(f"{how_bad}{'. ' if how_bad and finding.impact else ''}{finding.impact}", _INDENT, width)
    for line in finding.cause_lines():
        yield from _wrapped(line, _INDENT, width)
    for effect in finding.effects[:_MOST_SHOWN]:
        yield from _wrapped(f"it follows: {effect.title}. {effect.problem}", _INDENT, width)
    if len(finding.effects) > _MOST_SHOWN:
        yield from _wrapped(f"and {len(finding.effects) - _MOST_SHOWN} more effects", _INDENT, width)
    if finding.evidence:
        yield from _wrapped(f"shown by {_places(finding)}", _INDENT, width)
    for step in finding.next[: _STEPS[finding.level]]:
        yield from _wrapped(f"- {step.what}:" if step.command else f"- {step.what}", _INDENT, width)
        if step.command is not None:
            # A command is one line, however long, so that it can be copied.
            is_long = len(step.command) > _LONGEST_COMMAND
            yield f"{_INDENT * 3}{'(too long to show: --format json has it)' if is_long else printable(step.command)}"


def _places(finding: ReportFinding) -> str:
    """Where records stand that show a finding, as far as there is room: `__consumer_offsets-4, offsets 7, 9`."""
    places = Counter((each.topic, each.partition, each.offset) for each in finding.evidence)
    of_logs: dict[str, list[str]] = {}
    for topic, partition, offset in list(places)[:_MOST_RECORDS]:
        log = topic or "the log" if partition is None else f"{topic}-{partition}"
        of_logs.setdefault(log, []).extend([] if offset is None else [str(offset)])
    named = [
        f"{log}, offset{'' if len(offsets) == 1 else 's'} {', '.join(offsets)}" if offsets else log
        for log, offsets in of_logs.items()
    ]
    left = finding.evidence_count - sum(list(places.values())[:_MOST_RECORDS])
    return "; ".join(named) + (f"; and {left} more" if left > 0 else "")


def since_words(finding: ReportFinding) -> str:
    """Since when it is so, and how exact that is; nothing where neither is known."""
    at, note = finding.since_timestamp_ms, finding.since_note
    if at is None:
        return "" if note is None else f"since when: {note}"
    return f"since {moment(at)}" + ("" if note is None else f" ({note})")


def _wrapped(text: str, indent: str, width: int) -> list[str]:
    return textwrap.wrap(
        printable(text),
        width,
        initial_indent=indent,
        subsequent_indent=indent + ("  " if text.startswith("- ") else ""),
        break_on_hyphens=False,
    )
