"""How classes of an older release read the kept vectors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.evolution import change_rules as rules
from kafka_records_codegen.evolution.change_rules import Rank, Rule
from kafka_records_codegen.evolution.changes import Change, Downstream, DownstreamEffect
from kafka_records_codegen.evolution.spec_sets import read_spec_set
from tests.kafka_needed import skipped_without_kafka
from tools.follow import vectors
from tools.follow.release_vectors import Agreement, agreement, compared

ROOT = Path(__file__).resolve().parents[2]
LINE = {"message": "M", "version": 1, "hex": "01", "json": {"epoch": 1}}
READ: Mapping[str, Any] = {"ok": True, "json": {"epoch": 1}, "left": 0, "tags": [], "records": []}
OLDER_NAME = {**READ, "json": {"generation": 1}}
SAME = DownstreamEffect("same", "")


def change(rule: Rule, rank: Rank | None = None, message: str = "M") -> Change:
    downstream = Downstream(SAME, SAME, SAME, SAME, SAME)
    return Change(rule, rank or rule.rank, message, "Epoch", (), "older", "newer", None, None, downstream)


def one(answer: Mapping[str, Any], *changes: Change) -> Agreement:
    return compared([LINE], [dict(answer)], changes)


def test_bytes_and_json_are_the_same() -> None:
    assert one(READ) == Agreement(the_same=1)


def test_tags_may_come_in_another_order() -> None:
    tags: list[Any] = [{"path": [], "tag": number, "hex": "00"} for number in (7, 9)]
    assert compared([{**LINE, "tags": tags}], [{**READ, "tags": tags[::-1]}], ()) == Agreement(the_same=1)


def test_bytes_without_json() -> None:
    answer = {name: value for name, value in READ.items() if name != "json"}
    assert one({**answer, "json_error": "java.lang.ClassNotFoundException"}) == Agreement(without_json=1)


@pytest.mark.parametrize("rule", [rules.FIELD_RENAMED, rules.TAG_ADDED], ids=lambda rule: rule.name)
def test_a_change_says_why_the_json_is_another(rule: Rule) -> None:
    assert one(OLDER_NAME, change(rule)) == Agreement(other_names=1)
    assert one(OLDER_NAME, change(rule, message="N")).differing == [
        "M version 1 has another JSON, and no change says why"
    ]


@pytest.mark.parametrize(
    "answer",
    [
        {"unknown": True},
        {"ok": False, "error": "java.lang.RuntimeException", "detail": "no"},
        {**READ, "left": 1},
        {**READ, "reencode_hex": "02"},
        {**READ, "reencode_error": "java.lang.RuntimeException"},
    ],
)
def test_other_bytes_differ_unless_the_layout_was_early_access(answer: Mapping[str, Any]) -> None:
    assert one(answer, change(rules.FIELD_RENAMED)).differing == ["M version 1 is not written as it is read"]
    assert one(answer, change(rules.FIELD_INSERTED, Rank.EARLY_ACCESS)) == Agreement(early_access=1)


def test_what_is_told() -> None:
    assert Agreement(the_same=3, early_access=2).told == "3 in bytes and JSON; 2 of early access"


@pytest.mark.maven
@pytest.mark.slow
@pytest.mark.matrix
def test_classes_of_2_8() -> None:
    """The oldest release, whose classes lack most."""
    lines = vectors.read(ROOT / "tests" / "data" / "vectors" / "messages.jsonl.gz")
    ours = read_spec_set(str(ROOT / "message_specs"), "")
    with skipped_without_kafka():
        found = agreement(lines, read_spec_set("2.8.2", ""), ours)
    assert found.differing == []
    assert found.the_same > 800
    broken = [{**line, "hex": line["hex"] + "00"} for line in lines if line["message"] == "OffsetFetchRequest"]
    assert len(agreement(broken, read_spec_set("2.8.2", ""), ours).differing) > 10
