"""The first screen of an incident: what happened to whom; when it began and how bad it is; its cause; what to do first.

The text and the page of a report show these lines, and fold everything else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import AT_LEAST
from kafka_records_tables.report.rule_context import listed, moment, partitions_shown, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from kafka_records_tables.report.report_parts import Actor, Cause, Confidence, NextStep, ReportFinding

_MOST_NAMES: Final = 2
"""The maximum number of groups, topics, transactional ids or clients to name; the others are only counted."""
_MOST_CAUSES: Final = 2
_MOST_NOTES: Final = 3
_CAUSE_WORDS: Final[Mapping[Confidence, str]] = {
    "high": "cause",
    "medium": "probable cause",
    "low": "possible cause",
}
_OF_RECORDS: Final = re.compile("records_.*(lost|repeated|skipped|missed)")
_SENTENCE_END: Final = re.compile(r"(?<=[.])\s+(?=[A-Z\"0-9])")
_PLURAL: Final = re.compile(r"^(transactional )?(\w+)s\b")


@dataclass(frozen=True, slots=True)
class IncidentLines:
    """The lines of an incident, without indentation."""

    what: str
    how_bad: str
    """When it began, whether it continues, how much was affected, and who is involved."""
    causes: tuple[str, ...]
    """The two likeliest causes, each in a sentence."""
    first_step: NextStep | None


def needs_somebody(finding: ReportFinding) -> bool:
    """Whether a finding belongs on the first screen."""
    return finding.level > Level.NOTE


def note_lines(findings: Iterable[ReportFinding]) -> dict[int, str]:
    """The lines for the first notes that have one, by the index of the finding."""
    lines = ((at, _note_line(each)) for at, each in enumerate(findings))
    return dict(islice(((at, line) for at, line in lines if line is not None), _MOST_NOTES))


def _note_line(finding: ReportFinding) -> str | None:
    """A line about a note if records were, or may have been, lost or read twice, because somebody should know that even
    if it can be normal. None for other notes."""
    if finding.level > Level.NOTE or not any(
        number and _OF_RECORDS.search(name) for name, number in finding.scale.items()
    ):
        return None
    concerned = _concerned(finding)
    return f"{finding.title}{f' – {concerned}' if concerned else ''}; {scale_words(finding.scale)}"


def incident_lines(finding: ReportFinding) -> IncidentLines:
    """The first lines of a finding."""
    concerned = _concerned(finding)
    how_bad = [
        "" if finding.since_timestamp_ms is None else f"since {moment(finding.since_timestamp_ms)}",
        {True: "goes on", False: "is over", None: ""}[finding.is_going_on],
        "" if finding.until_timestamp_ms is None else f"gets worse {moment(finding.until_timestamp_ms)}",
        scale_words(finding.scale) or first_sentence(finding.impact or finding.problem),
        actor_words(finding.who),
    ]
    return IncidentLines(
        f"{finding.title} – {concerned}" if concerned else finding.title,
        "; ".join(filter(None, how_bad)),
        tuple(_short_cause_lines(finding.causes)),
        finding.next[0] if finding.next else None,
    )


def _short_cause_lines(causes: Sequence[Cause]) -> Iterator[str]:
    """The two likeliest causes as `probable cause: …` and `or: …`, with the first sentence of each statement."""
    for at, cause in enumerate(causes[:_MOST_CAUSES]):
        yield f"{'or' if at else _CAUSE_WORDS[cause.confidence]}: {first_sentence(cause.statement)}"


def _concerned(finding: ReportFinding) -> str:
    """The groups, topics and transactional ids that a finding is about."""
    parts = [
        f"{noun}{'s' if len(names) > 1 else ''} {listed(names, _MOST_NAMES)}"
        for noun, names in (
            ("group", finding.group_ids),
            ("topic", finding.topics),
            ("transactional id", finding.transactional_ids),
        )
        if names
    ]
    if finding.partitions and len(finding.topics) == 1:
        parts[-1 if not finding.transactional_ids else -2] += f" ({partitions_shown(finding.partitions)})"
    return ", ".join(parts)


def scale_words(scale: Mapping[str, int]) -> str:
    """The scale of a finding in words: `870 records lost, at least 7 records repeated`; zeros are left out."""
    told = []
    least, most = scale.get("records_lost_at_least"), scale.get("records_lost_in_jumps_at_most")
    if most:
        told.append(f"{least} to {most} records lost" if least else f"at most {most} records lost")
    for name, number in scale.items():
        if most and name.startswith("records_lost"):
            continue
        # "28 groups stopped" already says that there are 28 groups.
        if any(other.startswith(f"{name}_") and count == number for other, count in scale.items()):
            continue
        words = name.removesuffix(AT_LEAST).replace("_", " ")
        bound = "at least " if name.endswith(AT_LEAST) else ""
        if number:
            told.append(f"{bound}{number} {_PLURAL.sub(_singular, words) if number == 1 else words}")
    return ", ".join(told)


def _singular(plural: re.Match[str]) -> str:
    return f"{plural[1] or ''}{'delivery' if plural[2] == 'deliverie' else plural[2]}"


def actor_words(who: Iterable[Actor]) -> str:
    """The first clients involved, each with what it did, and the number of others."""
    told = list(
        dict.fromkeys(
            f"{shown(name)} {each.did}"
            for each in who
            # The event already names the group.
            if (name := each.client_id or each.member_id) is not None
        )
    )
    more = len(told) - _MOST_NAMES
    return "; ".join(told[:_MOST_NAMES]) + (f"; and {more} more" if more > 0 else "")


def first_sentence(text: str) -> str:
    """The first sentence of a text, without the full stop."""
    return _SENTENCE_END.split(text, maxsplit=1)[0].rstrip(".")
