"""From rules to findings: the worst first, and what is too much of the same summed up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from kafka_records_tables.report.report_parts import Level, ReportFinding
from kafka_records_tables.report.rule_context import counted, listed
from kafka_records_tables.report.rules import RULES
from kafka_records_tables.report.topic_choice import about_topics

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_tables.report.rule import ReportRule
    from kafka_records_tables.report.rule_context import RuleContext

_NAMED = 100
"""Groups that a summary has in `group_ids`, or topics where it is about no groups; `measured` counts all."""
_SHOWN = 8
"""Groups that its sentence names."""


def findings_of(sight: RuleContext) -> tuple[ReportFinding, ...]:
    """All findings, the worst first; of one level in the order of the rules, and the worst of each kind first."""
    found = [finding for rule in RULES for finding in findings_of_rule(sight, rule)]
    return tuple(sorted(found, key=lambda finding: -finding.level))


def findings_of_rule(sight: RuleContext, rule: ReportRule) -> Iterator[ReportFinding]:
    """Those of one rule, the worst first."""
    cases = about_topics(sight, rule.cases(sight))
    for level in sorted(Level, reverse=True):
        most = sight.limit("report.most_notes_of_a_kind" if level == Level.NOTE else "report.most_of_a_kind")
        of_level = cases.filter(pc.equal(cases["level"], int(level)))
        if not of_level.num_rows:
            continue
        of_level = of_level.take(_worst(of_level))
        for case in of_level.slice(0, most).to_pylist():
            yield rule.tell(sight, case)
        if of_level.num_rows > most:
            yield _summary(sight, rule, level, of_level.slice(most))


def _worst(cases: pa.Table) -> Any:
    return pc.sort_indices(cases, sort_keys=[("rank", "descending")])


def _summary(sight: RuleContext, rule: ReportRule, level: Level, others: pa.Table) -> ReportFinding:
    rows = rule.listing(sight)
    groups: tuple[str, ...] = ()
    number = 0
    if "group_id" in others.column_names:
        distinct = others["group_id"].unique()
        number, groups = len(distinct), tuple(filter(None, distinct.slice(0, _NAMED).to_pylist()))
    more = f" and {number - _SHOWN} more" if number > _SHOWN else ""
    of_groups = f", of {counted(number, 'group')} ({listed(groups[:_SHOWN], _SHOWN)}{more})" if number else ""
    return ReportFinding(
        kind=rule.kind,
        level=level,
        title=f"{rule.title}: {others.num_rows} more",
        what=(
            f"{counted(others.num_rows, 'more finding')} of this kind and level{of_groups}, each less urgent than those"
            " that stand by themselves."
        ),
        group_ids=groups,
        topics=() if groups else _topics(others),
        rows=(rows,),
        next=(sight.see("See all of them", rows),),
        measured={"findings": others.num_rows, "groups": number},
        thresholds=sight.limits_of("report.most_of_a_kind", "report.most_notes_of_a_kind"),
    )


def _topics(others: pa.Table) -> tuple[str, ...]:
    if "topic" not in others.column_names:
        return ()
    return tuple(filter(None, others["topic"].unique().slice(0, _NAMED).to_pylist()))
