"""Turns the cases of rules into findings, with the worst first. Many findings of the same kind are combined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from kafka_records_tables.report.causes import with_causes
from kafka_records_tables.report.facts.known_logs import with_known_counts, with_known_present
from kafka_records_tables.report.folding import FoldedCases, folded
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Effect, ReportFinding
from kafka_records_tables.report.rule_context import counted, listed
from kafka_records_tables.report.rules import RULES
from kafka_records_tables.report.topic_choice import about_topics
from kafka_records_tables.report.whole_logs import seen_by

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_tables.report.rule import ReportRule
    from kafka_records_tables.report.rule_context import RuleContext

_NAMED = 100
"""The maximum number of groups in a summary's `group_ids`, or of topics if it is about no groups. `measured` counts all
of them."""
_SHOWN = 8
"""The maximum number of groups that the sentence of a summary names."""
_MOST_EFFECTS = 20
"""The maximum number of effects of a finding that are listed."""


def findings_of(context: RuleContext, rules: Sequence[ReportRule] = RULES) -> tuple[ReportFinding, ...]:
    """All findings, the worst first: by level, then in the order of the rules, then the worst of each kind. A finding
    that follows from another is listed among that finding's effects."""
    cases = {rule.kind: about_topics(context, rule.cases(seen_by(context, rule.kind))) for rule in rules}
    parted = folded(rules, cases)
    told = [finding for rule in rules for finding in _told(context, rule, rules, parted)]
    return tuple(sorted(told, key=lambda finding: -finding.level))


def _told(
    context: RuleContext, rule: ReportRule, rules: Sequence[ReportRule], parted: FoldedCases
) -> Iterator[ReportFinding]:
    cases = parted.cases[rule.kind]
    seen = seen_by(context, rule.kind)
    for level in sorted(Level, reverse=True):
        most = context.limit("report.most_notes_of_a_kind" if level == Level.NOTE else "report.most_of_a_kind")
        of_level = cases.filter(pc.equal(cases["level"], int(level)))
        if not of_level.num_rows:
            continue
        of_level = of_level.take(_worst(of_level))
        for case in of_level.slice(0, most).to_pylist():
            finding = with_known_counts(context, with_causes(seen, rule, case, rule.tell(seen, case)))
            finding = with_known_present(context, finding)
            effects = (*finding.effects, *_effects(context, rules, parted, case["effects"]))
            yield replace(finding, effects=effects[:_MOST_EFFECTS])
        if of_level.num_rows > most:
            yield _summary(context, rule, level, of_level.slice(most))


def _effects(
    context: RuleContext, rules: Sequence[ReportRule], parted: FoldedCases, numbers: Sequence[int]
) -> tuple[Effect, ...]:
    """The findings that follow from one finding, each in short."""
    by_kind = {rule.kind: rule for rule in rules}
    effects = []
    for each in (parted.effects[number] for number in numbers[:_MOST_EFFECTS]):
        (case,) = parted.all_cases[each.kind].slice(each.place, 1).to_pylist()
        rule = by_kind[each.kind]
        told = rule.tell(seen_by(context, each.kind), case)
        effects.append(Effect.of(told, rule.effect_title))
    return tuple(effects)


def _worst(cases: pa.Table) -> Any:
    return pc.sort_indices(cases, sort_keys=[("rank", "descending")])


def _summary(context: RuleContext, rule: ReportRule, level: Level, others: pa.Table) -> ReportFinding:
    rows = rule.listing(context)
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
        problem=(
            f"{counted(others.num_rows, 'more finding')} of this kind and level{of_groups}, each less urgent than "
            "those that are shown one by one."
        ),
        group_ids=groups,
        topics=() if groups else _topics(others),
        rows=(rows,),
        next=(context.see("See all of them", rows),),
        measured={"findings": others.num_rows, "groups": number},
        thresholds=context.limits_of("report.most_of_a_kind", "report.most_notes_of_a_kind"),
    )


def _topics(others: pa.Table) -> tuple[str, ...]:
    if "topic" not in others.column_names:
        return ()
    return tuple(filter(None, others["topic"].unique().slice(0, _NAMED).to_pylist()))
