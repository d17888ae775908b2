"""Which causes of a finding remain, with which confidence, and which findings are effects of others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa
import pytest

from kafka_records_tables.report.causes import with_causes
from kafka_records_tables.report.folding import folded
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Decision, Evidence, Lack, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Hypothesis, Question, ReportRule, Verdict

Asked = Literal["first", "if_undecided", "last"]

_FACT = Evidence("a fact")
_NO_METADATA = "__cluster_metadata is not in the source"


def _rule(kind: str, *verdicts: Verdict | None, folds: tuple[Folds, ...] = (), asked: Asked = "first") -> ReportRule:
    """A rule with a hypothesis for each verdict: `a`, `b`, …"""
    causes = tuple(
        Hypothesis(name, f"it is {name}", "", lambda *_, verdict=verdict: verdict)
        for name, verdict in zip("abcd", verdicts, strict=False)
    )
    questions = (Question("b", "a", "Is it b?", lambda *_: "ask", asked),)
    nothing: Any = None
    return ReportRule(kind, kind, "", (), {}, nothing, nothing, lambda _: Rows("groups"), (), causes, questions, folds)


def _weighed(*verdicts: Verdict | None, asked: Asked = "first") -> ReportFinding:
    finding = ReportFinding("kind", Level.HIGH, "title", "problem", next=(NextStep("look"),))
    return with_causes(None, _rule("kind", *verdicts, asked=asked), {}, finding)  # type: ignore[arg-type]


def test_a_cause_that_a_fact_refutes_is_not_named() -> None:
    found = _weighed(Verdict("a", (_FACT,)), Verdict("b", refuted_by=_FACT), None)
    assert [(each.name, each.confidence) for each in found.causes] == [("a", "high")]
    assert (found.refuted_by, found.confidence, found.decision) == ({"b": _FACT}, "high", None)


def test_a_cause_that_records_show_refutes_the_others() -> None:
    proof = Evidence("a record")
    found = _weighed(Verdict("a", (_FACT,)), Verdict("b", (proof,), is_certain=True, steps=(NextStep("fix b"),)))
    assert [each.name for each in found.causes] == ["b"]
    assert found.refuted_by == {"a": proof}
    assert [each.what for each in found.next] == ["fix b", "look"]


def test_between_two_causes_a_question_decides_and_comes_first() -> None:
    lacks = Verdict("b", (_FACT,), lacked=(_NO_METADATA,))
    found = _weighed(Verdict("a", lacked=(_NO_METADATA,)), lacks)
    assert [(each.name, each.confidence) for each in found.causes] == [("b", "medium"), ("a", "low")]
    assert found.decision == Decision(("b", "a"), "Is it b?", "ask")
    assert found.lacked == (Lack(_NO_METADATA, ("a", "b")),)
    assert [each.what for each in found.next] == ["Is it b?", "look"]
    assert _weighed(replace(lacks, evidence_against=(_FACT,))).causes[0].confidence == "low"


@pytest.mark.parametrize(
    ("asked", "steps"),
    [
        ("first", ["Is it b?", "fix b", "look"]),
        ("if_undecided", ["fix b", "Is it b?", "look"]),
        ("last", ["look", "Is it b?", "fix b"]),
    ],
)
def test_a_question_is_asked_where_its_rule_wants_it(asked: Asked, steps: list[str]) -> None:
    likely = Verdict("b", (_FACT,), steps=(NextStep("fix b"),))
    assert [each.what for each in _weighed(Verdict("a"), likely, asked=asked).next] == steps
    undecided = _weighed(Verdict("a", (_FACT,)), likely, asked=asked)
    assert [each.confidence for each in undecided.causes] == ["medium", "medium"]
    assert (undecided.next[0].what == "Is it b?") == (asked != "last")


def _cases(**columns: Any) -> pa.Table:
    count = len(next(iter(columns.values())))
    level = columns.pop("level", [int(Level.LOW)] * count)
    return pa.table({**columns, "level": pa.array(level, pa.int8()), "rank": [0.0] * count})


def test_effects_are_folded_into_the_first_cause_of_all() -> None:
    """Also over two steps. The incident has the highest level of its effects."""
    rules = [
        _rule("first", folds=(Folds("second", ("group_id", "topic"), if_later=True),)),
        _rule("second", folds=(Folds("third"), Folds("first"))),
        _rule("third"),
    ]
    cases = {
        "first": _cases(group_id_list=[["a", "b"]], topic_list=[["t", "t"]], since_ms=[5]),
        "second": _cases(group_id=["a", "b", "c"], topic=["t", "t", "t"], since_ms=[5, 4, 9]),
        "third": _cases(group_id=["c", "a"], level=[int(Level.NOTE), int(Level.HIGH)]),
    }
    parted = folded(rules, cases)
    (first,) = parted.cases["first"].to_pylist()
    assert first["level"] == Level.HIGH
    told = [(parted.effects[number].kind, parted.effects[number].place) for number in first["effects"]]
    assert sorted(told) == [("second", 0), ("third", 1)]
    assert parted.cases["second"]["group_id"].to_pylist() == ["b", "c"]
    assert parted.cases["third"].num_rows == 0
