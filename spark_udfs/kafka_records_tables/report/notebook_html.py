"""Shows a report in a notebook: the findings by level, the numbers, and what could not be read."""

from __future__ import annotations

from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kafka_records_runtime.errors import plural
from kafka_records_tables.results.cell_texts import plain_texts
from kafka_records_tables.results.count_words import read_words
from kafka_records_tables.results.html_parts import findings_html, text_html

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_records_tables.report.report_parts import Number, Report, ReportFinding

MOST_OF_A_LEVEL: Final = 20
"""The maximum number of findings per level in a notebook."""
_MOST_NAMES: Final = 5
"""The maximum number of groups, topics or transactional ids to name in one finding."""


def report_html(report: Report) -> str:
    """The head of the report, its findings from the worst level down, its numbers, and how much data was read."""
    request = report.request
    marks = {} if report.diff is None else report.diff.marks()
    told = [(finding, marks.get(at)) for at, finding in enumerate(report.findings)]
    levels = [_level_html(list(each)) for _, each in groupby(told, lambda each: each[0].level)]
    missing = "".join(f"<li>{text_html(name)}: {text_html(why)}</li>\n" for name, why in report.missing.items())
    read = read_words(report.counts, has_files=report.counts.files > 0)
    return (
        f"<div><p><strong>Report</strong> of {text_html(request.source)}, at {_moment(request.at_timestamp_ms)}</p>\n"
        f"{_changes_html(report)}{''.join(levels) or '<p>no findings</p>'}\n{_numbers_html(report.numbers)}\n"
        + (f"<p>not there:</p><ul>\n{missing}</ul>\n" if missing else "")
        + f"{findings_html(report.reading)}<p>{plural(len(report.findings), 'finding')} from {read}</p></div>"
    )


def _changes_html(report: Report) -> str:
    """Other differences between the two reports, and the findings that are gone."""
    if report.diff is None:
        return ""
    diff = report.diff
    told = [f"note: {text_html(each)}" for each in diff.notes]
    told += [f"gone: {_head_html(each)} – was {each.level.word}" for each in diff.gone[:MOST_OF_A_LEVEL]]
    left = len(diff.gone) - MOST_OF_A_LEVEL
    told += [f"{plural(left, 'more finding')} gone: <code>.diff.gone</code> has all"] if left > 0 else []
    lines = "".join(f"<li>{each}</li>\n" for each in told) or "<li>nothing is gone</li>\n"
    return f"<p>compared with the report of {_moment(diff.old_at_timestamp_ms)}:</p><ul>\n{lines}</ul>\n"


def _level_html(findings: Sequence[tuple[ReportFinding, str | None]]) -> str:
    shown = "".join(_finding_html(*each) for each in findings[:MOST_OF_A_LEVEL])
    left = len(findings) - MOST_OF_A_LEVEL
    more = f"<p>{plural(left, 'more finding')}: <code>.findings</code> has all</p>" if left > 0 else ""
    return f"<p><strong>{findings[0][0].level.word}</strong> ({len(findings)})</p>\n<ul>\n{shown}</ul>{more}\n"


def _finding_html(finding: ReportFinding, mark: str | None) -> str:
    head = _head_html(finding)
    lines = [head if mark is None else f"{head} – {mark}"]
    lines.append(text_html(finding.problem))
    lines += [text_html(each) for each in (finding.impact, *finding.cause_lines()) if each]
    since = "" if finding.since_timestamp_ms is None else f"since {_moment(finding.since_timestamp_ms)}"
    note = "" if finding.since_note is None else f"({text_html(finding.since_note)})"
    if since or note:
        lines.append(f"{since or 'beginning'} {note}".rstrip())
    sure = f"confidence {finding.confidence}"
    lines.append(sure if finding.why_not_sure is None else f"{sure}: {text_html(finding.why_not_sure)}")
    for step in finding.next:
        command = "" if step.command is None else f": <code>{text_html(step.command)}</code>"
        lines.append(f"next: {text_html(step.what)}{command}")
    return f"<li>{'<br>'.join(lines)}</li>\n"


def _head_html(finding: ReportFinding) -> str:
    about = (finding.group_ids, finding.topics, finding.transactional_ids)
    names = "; ".join(_names_html(each) for each in about if each)
    return f"<strong>{text_html(finding.title)}</strong>" + (f" ({names})" if names else "")


def _names_html(names: Sequence[str]) -> str:
    shown = ", ".join(text_html(name, 80) for name in names[:_MOST_NAMES])
    left = len(names) - _MOST_NAMES
    return f"{shown} and {left} more" if left > 0 else shown


def _numbers_html(numbers: Sequence[Number]) -> str:
    rows = "".join(
        f'<tr><th scope="row" style="text-align:left">{escape(each.label)}</th>'
        f'<td style="text-align:right">{_value(each)}</td></tr>\n'
        for each in numbers
    )
    return f"<table>\n<tbody>\n{rows}</tbody></table>" if rows else ""


def _value(number: Number) -> str:
    if number.value is None:
        return "not known"
    return f"{number.value}" if number.unit is None else f"{number.value} {escape(number.unit)}"


def _moment(timestamp_ms: int) -> str:
    """A time as in tables, or its milliseconds if it is outside the years 1 to 9999."""
    text = plain_texts(pa.array([timestamp_ms], pa.timestamp("ms", "UTC")))[0].as_py()
    return text if text is not None else f"{timestamp_ms} ms"
