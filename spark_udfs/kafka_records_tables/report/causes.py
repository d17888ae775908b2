"""Determines the causes of a finding: evaluates each hypothesis of its rule, and keeps the causes that remain."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.report.report_parts import Cause, Confidence, Decision, Lack, NextStep, ReportFinding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_records_tables.report.rule import Hypothesis, Question, ReportRule, Verdict
    from kafka_records_tables.report.rule_context import RuleContext

_MOST: Final = 3
"""The maximum number of causes listed for a finding."""
_ORDER: Final[Mapping[Confidence, int]] = {"high": 2, "medium": 1, "low": 0}

Weighed = tuple["Hypothesis", "Verdict"]


def with_causes(context: RuleContext, rule: ReportRule, case: dict[str, Any], finding: ReportFinding) -> ReportFinding:
    """The finding with the remaining causes of its rule. A cause proven by records (`Verdict.is_certain`) rules out all
    others. If there is none, each cause that is not refuted remains. Its confidence is high if it is the only one, has
    evidence, and no decisive information is missing; medium if more evidence supports it than contradicts it; and low
    otherwise. Causes with the same confidence are ordered by whether anything contradicts them, then as in the rule."""
    weighed = [(each, verdict) for each in rule.causes if (verdict := each.weigh(context, case)) is not None]
    if not weighed:
        return finding
    refuted = {each.name: verdict.refuted_by for each, verdict in weighed if verdict.refuted_by is not None}
    left = [(each, verdict) for each, verdict in weighed if verdict.refuted_by is None]
    certain = [(each, verdict) for each, verdict in left if verdict.is_certain]
    if certain:
        proof = certain[0][1].evidence_for[:1]
        refuted |= {each.name: proof[0] for each, verdict in left if not verdict.is_certain and proof}
        left = certain
    likely = sorted(left, key=lambda each: (-_ORDER[_confidence(each[1], left)], bool(each[1].evidence_against)))[
        :_MOST
    ]
    causes = tuple(
        Cause(each.name, verdict.statement, _confidence(verdict, left), verdict.evidence_for, verdict.evidence_against)
        for each, verdict in likely
    )
    question = _question(rule, likely)
    decision = None if question is None else _decision(context, case, question)
    return replace(
        finding,
        causes=causes,
        refuted_by=refuted,
        decision=decision,
        lacked=_lacked(left),
        confidence=causes[0].confidence if causes else "low",
        next=_steps(likely, causes, question, decision, finding.next),
    )


def _confidence(verdict: Verdict, left: Sequence[Weighed]) -> Confidence:
    if verdict.is_certain:
        return "high"
    supported = len(verdict.evidence_for) > len(verdict.evidence_against)
    is_only = len(left) == 1 and not verdict.lacked and not verdict.evidence_against
    return "low" if not supported else "high" if is_only else "medium"


def _question(rule: ReportRule, likely: Sequence[Weighed]) -> Question | None:
    """The question that decides between the first two causes, if the rule has one."""
    names = {each.name for each, _ in likely[:2]}
    return next((each for each in rule.questions if {each.yes, each.no} == names), None)


def _decision(context: RuleContext, case: dict[str, Any], asked: Question) -> Decision:
    return Decision((asked.yes, asked.no), asked.question, asked.command(context, case))


def _lacked(left: Sequence[Weighed]) -> tuple[Lack, ...]:
    """The missing information, with the causes that it would have distinguished."""
    causes: dict[str, list[str]] = {}
    for each, verdict in left:
        for what in verdict.lacked:
            causes.setdefault(what, []).append(each.name)
    return tuple(Lack(what, tuple(names)) for what, names in causes.items())


def _steps(
    likely: Sequence[Weighed],
    causes: Sequence[Cause],
    question: Question | None,
    decision: Decision | None,
    others: tuple[NextStep, ...],
) -> tuple[NextStep, ...]:
    """The steps for the likeliest cause, the question that decides between two causes (`Question.asked` says when), and
    the other steps."""
    asks = () if decision is None else (NextStep(decision.question, decision.command),)
    own = likely[0][1].steps if likely else ()
    if question is not None and question.asked == "last":
        return tuple(dict.fromkeys((*others, *asks, *own)))
    is_decided = (
        question is not None and question.asked == "if_undecided" and causes[0].confidence != causes[1].confidence
    )
    return tuple(dict.fromkeys((*own, *asks, *others) if is_decided else (*asks, *own, *others)))
