"""Rules that judge the causes of incidents when they find them: one function returns all incidents of a kind with their
verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafka_records_tables.report.case_columns import ranked
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Hypothesis, Question, ReportRule, Threshold, Verdict

if TYPE_CHECKING:
    from kafka_records_tables.report.facts.gone_offsets import GoneOffset
    from kafka_records_tables.report.rule_context import RuleContext


@dataclass(frozen=True, slots=True)
class Incident:
    """A finding, with the facts about its causes."""

    finding: ReportFinding
    rank: float = 0
    """The rank of the finding. Within a level, a higher rank is worse."""
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    """The verdicts by the names of hypotheses; a hypothesis without a verdict does not apply."""
    command: str | None = None
    """The command that answers the question of which cause is right."""
    gone: tuple[GoneOffset, ...] = ()
    """The deleted offsets that explain the incident. Findings about these deletions have the same entries in
    `gone_list`."""


Find = Callable[["RuleContext"], "list[Incident]"]


@dataclass(frozen=True, slots=True)
class PossibleCause:
    """A hypothesis without the function that judges it."""

    name: str
    about: str
    evidence: str


def command_of(find: Find) -> Callable[[RuleContext, dict[str, Any]], str | None]:
    """The `command` of an incident, for a `Question` of a rule."""
    return partial(_command, find)


def incident_rule(
    *,
    kind: str,
    title: str,
    about: str,
    tables: tuple[str, ...],
    levels: Mapping[Level, str],
    find: Find,
    listing: Rows,
    causes: tuple[PossibleCause, ...],
    thresholds: tuple[Threshold, ...] = (),
    questions: tuple[Question, ...] = (),
    folds: tuple[Folds, ...] = (),
    effect_title: str | None = None,
) -> ReportRule:
    """The rule whose cases are the results of `find`."""
    return ReportRule(
        kind=kind,
        title=title,
        about=about,
        tables=tables,
        levels=levels,
        cases=partial(_cases, find),
        tell=partial(_tell, find),
        listing=lambda _: listing,
        thresholds=thresholds,
        causes=tuple(
            Hypothesis(each.name, each.about, each.evidence, partial(_weigh, find, each.name)) for each in causes
        ),
        questions=questions,
        folds=folds,
        effect_title=effect_title,
    )


def _cases(find: Find, context: RuleContext) -> pa.Table:
    found = context.once(find)
    strings = pa.list_(pa.string())
    columns = {
        "at": pa.array(range(len(found)), pa.int64()),
        "group_id_list": pa.array([list(each.finding.group_ids) for each in found], strings),
        "topic_list": pa.array([list(each.finding.topics) for each in found], strings),
        "transactional_id_list": pa.array([list(each.finding.transactional_ids) for each in found], strings),
        "gone_list": pa.array([[gone.place for gone in each.gone] for each in found], strings),
        "since_ms": pa.array([each.finding.since_timestamp_ms for each in found], pa.int64()),
    }
    levels = [int(each.finding.level) for each in found]
    return ranked(pa.table(columns), levels, [each.rank for each in found])


def _tell(find: Find, context: RuleContext, case: dict[str, Any]) -> ReportFinding:
    incident: Incident = context.once(find)[case["at"]]
    return incident.finding


def _command(find: Find, context: RuleContext, case: dict[str, Any]) -> str | None:
    incident: Incident = context.once(find)[case["at"]]
    return incident.command


def _weigh(find: Find, name: str, context: RuleContext, case: dict[str, Any]) -> Verdict | None:
    incident: Incident = context.once(find)[case["at"]]
    return incident.verdicts.get(name)
