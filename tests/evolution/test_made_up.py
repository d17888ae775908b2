"""Synthetic changes: which changes are listed, and whether bytes, Avro files and Kafka's own checker agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.evolution.change_rules import RULES, Rank
from kafka_records_codegen.evolution.changes import Change, SpecComparison
from kafka_records_codegen.evolution.comparing import compare
from kafka_records_codegen.evolution.spec_sets import SpecSet, read_spec_set
from kafka_records_codegen.model.messages import Message
from tests.evolution.judging import (
    Values,
    avro_resolves,
    avro_schemas,
    has_unknown_tags,
    messages_of,
    read_by,
    survives,
)
from tests.evolution.made_up import CASES, Case

VERDICTS = json.loads(Path("tests/data/evolution/verdicts.json").read_text(encoding="utf-8"))
MESSAGES = 25
"""The number of messages of each version that are read in the other state."""

BREAKS = (Rank.BYTES, Rank.READERS)

every_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def sets(folder: Path, case: Case) -> tuple[SpecSet, SpecSet]:
    made = []
    for side, spec in zip(("older", "newer"), case.specs(), strict=True):
        (folder / side).mkdir()
        (folder / side / f"{spec['name']}.json").write_text(json.dumps(spec, indent=2), encoding="utf-8")
        made.append(read_spec_set(str(folder / side), ""))
    return made[0], made[1]


@every_case
def test_every_change_is_listed_and_no_other(tmp_path: Path, case: Case) -> None:
    comparison = compare(*sets(tmp_path, case))
    assert {(change.rule.name, change.field) for change in comparison.changes} == case.found
    assert len(comparison.changes) == len(case.found)


@every_case
def test_bytes_say_the_same(tmp_path: Path, case: Case) -> None:
    older, newer = sets(tmp_path, case)
    comparison = compare(older, newer)
    old, new = older.loaded.model.messages[0], newer.loaded.model.messages[0]
    heads = {"api-key", "message-type"}
    for version in set(old.versions) & set(new.versions):
        broken = {change.rank for change in about(comparison, version) if change.rule.name not in heads}
        read = [survives_whole(old, new, version, values) for values in messages_of(old, version, MESSAGES)]
        assert all(read) == (Rank.BYTES not in broken), (version, read)
        back = [survives(new, old, version, version, values) for values in messages_of(new, version, MESSAGES)]
        if not broken & set(BREAKS):
            assert all(back), version
        if Rank.READERS in broken:
            assert not all(back), version


def about(comparison: SpecComparison, version: int) -> list[Change]:
    return [change for change in comparison.changes if any(version in each for each in change.versions)]


def survives_whole(old: Message, new: Message, version: int, values: Values) -> bool:
    """Whether existing bytes are read without a field that becomes an unknown tag."""
    return survives(old, new, version, version, values) and not has_unknown_tags(
        read_by(new, version, old, version, values)
    )


@every_case
def test_fastavro_says_the_same(tmp_path: Path, case: Case) -> None:
    older, newer = sets(tmp_path, case)
    comparison = compare(older, newer)
    backward = {change.downstream.avro_backward.kind for change in comparison.changes}
    forward = {change.downstream.avro_forward.kind for change in comparison.changes}
    for written, read, kinds in ((older, newer, backward), (newer, older, forward)):
        message, other = written.loaded.model.messages[0], read.loaded.model.messages[0]
        schema = avro_schemas(written.loaded.model)[message.name]
        other_schema = avro_schemas(read.loaded.model)[other.name]
        found = [
            avro_resolves(schema, other_schema, values)
            for version in message.versions
            for values in messages_of(message, version, MESSAGES)
        ]
        if "no" in kinds:
            assert not all(found)
        elif "partly" in kinds:
            assert set(found) == {True, False}
        else:
            assert all(found)


@every_case
def test_kafkas_own_checker_says_the_same(tmp_path: Path, case: Case) -> None:
    comparison = compare(*sets(tmp_path, case))
    breaks = any(change.rank in BREAKS for change in comparison.changes)
    accepted = VERDICTS["verdicts"][case.name] == "accepts"
    assert (breaks == (not accepted)) == (not case.kafka_differs), VERDICTS["verdicts"][case.name]


def test_every_verdict_is_of_a_case() -> None:
    assert list(VERDICTS["verdicts"]) == [case.name for case in CASES]


@every_case
def test_places_are_right(tmp_path: Path, case: Case) -> None:
    """Line and column lead to the value that the path names."""
    older, newer = sets(tmp_path, case)
    for change in compare(older, newer).changes:
        for place in (change.older_place, change.newer_place):
            if place is not None:
                text = Path(place.file).read_text(encoding="utf-8")
                found: Any = json.JSONDecoder().raw_decode(
                    "\n".join(text.split("\n")[place.line - 1 :])[place.column - 1 :]
                )[0]
                assert found == value_at(json.loads(text), place.path)


def value_at(spec: Any, path: str) -> Any:
    for step in path.replace("[", ".[").split("."):
        if step.startswith("["):
            spec = spec[int(step[1:-1])]
        elif step and step != "$":
            spec = spec[step]
    return spec


def test_rules_have_names_of_their_own() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    ranks = [list(Rank).index(rule.rank) for rule in RULES]
    assert ranks == sorted(ranks)
