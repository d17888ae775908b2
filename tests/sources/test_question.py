"""Question, facts about a log and findings: values of a context."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from kafka_records_engine.findings import Finding
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.question import Question, together
from kafka_records_tables.engines.checked_request import question_of, requests_of

OTHERS: dict[str, Any] = {
    "as_of_ms": 1,
    "assume": "committed",
    "groups": ("billing",),
    "topic": "copy",
    "package": "acme_messages",
}


@pytest.mark.parametrize("name", [each.name for each in fields(Context)])
def test_a_context_cannot_be_changed(name: str) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(Context(), name, None)


def test_a_context_apart_has_everything_but_findings_and_counts() -> None:
    context = Context("t", 3, Question(groups=("g",)), history=False, progress=print, shared={})
    apart = context.apart()
    same = {each.name for each in fields(Context) if getattr(apart, each.name) is getattr(context, each.name)}
    assert {each.name for each in fields(Context)} - same == {"findings", "counts"}


def test_facts_are_known_to_all_who_read_a_log() -> None:
    context = Context("t", 3)
    apart = context.apart()
    context.log.start, context.log.cleaned_up_to = 5, 7
    context.log.add_hole(6)
    assert (apart.log.start, apart.log.cleaned_up_to, apart.log.holes) == (5, 7, [6])
    apart.report(Finding("note", "Reason", "what", "consequence"))
    assert (len(apart.findings), len(context.findings)) == (1, 0)


def test_what_tables_share_depends_on_every_member_of_a_question_but_the_tables() -> None:
    assert {each.name for each in fields(Question)} == {"tables", "values", *OTHERS}
    question = Question(("module",), ((("retention", 5),),))
    of_rows = [question.of_rows(), *(replace(question, **{name: value}).of_rows() for name, value in OTHERS.items())]
    assert len(set(of_rows)) == len(of_rows)
    assert replace(question, tables=("another",)).of_rows() == question.of_rows()


def test_a_question_to_several_tables_is_one_to_each() -> None:
    question = question_of(["groups", "expirations"], group="billing", options={"retention": "2d"})
    parts = [request.question for request in requests_of(question)]
    assert [dict(part.options) for part in parts] == [
        {},
        {"at": None, "retention": 2 * 86_400_000, "within": None, "rules": "kafka-4.3"},
    ]
    assert {part.groups for part in parts} == {("billing",)}
    assert together(parts) == question
    assert question.options_of_all == parts[1].options


def test_workers_get_the_same_question() -> None:
    question = question_of(["expirations"], as_of=1_700_000_000_000, assume="committed", topic="copy")
    assert pickle.loads(pickle.dumps(question)) == question
    assert [request.table.name for request in requests_of(pickle.loads(pickle.dumps(question)))] == ["expirations"]
