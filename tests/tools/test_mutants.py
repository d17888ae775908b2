"""Mutants of the coordinator's rules: what is changed, how a change is installed in a process, and what is counted."""

from __future__ import annotations

import json
import os
import signal
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kafka_records_tables.coordinator.rules import expiry_rules
from kafka_records_tables.coordinator.shares import share_batches, share_replay
from tools.judge.comparing import COMPARISONS
from tools.mutants import drawing, operators, running
from tools.mutants.drawing import Mutant
from tools.mutants.installing import install
from tools.mutants.nets import NETS, by_histories, net_of, recorded_logs
from tools.mutants.results import REASONS, Kept, Result, Share, figures, reasons, survivor_lines

_parse: Any = import_module("parso").parse

RULES = "kafka_records_tables/coordinator/rules/expiry_rules.py"


def _all_of(operator: Any, source: str) -> list[str]:
    """The source with each change that an operator can make."""
    found = []
    count = sum(len(list(operator.mutation_positions(node))) for node in _nodes(_parse(source)))
    for occurrence in range(count):
        tree = _parse(source)
        places = [(node, index) for node in _nodes(tree) for index, _ in enumerate(operator.mutation_positions(node))]
        node, index = places[occurrence]
        assert operator.mutate(node, index) is node
        found.append(tree.get_code())
    return found


def _nodes(node: Any) -> list[Any]:
    return [node, *(below for child in getattr(node, "children", ()) for below in _nodes(child))]


@pytest.mark.parametrize(
    ("operator", "source", "changed"),
    [
        (operators.SwapMinMax, "a = min(b, max)\n", ["a = max(b, max)\n"]),
        (operators.SwapMinMax, "pc.less(a, b)\n", ["pc.less_equal(a, b)\n"]),
        (operators.SwapIn, "[a in b for a in c]\n", ["[a not in b for a in c]\n"]),
        (operators.DeleteNotIn, "a not in b\n", ["a in b\n"]),
        (operators.ReturnNothing, "def f():\n    return a\n", ["def f():\n    return None\n"]),
        (operators.ReturnNothing, "def f():\n    return a == b\n", ["def f():\n    return False\n"]),
        (operators.ReturnNothing, "def f():\n    return None\n", []),
        (operators.SwapArguments, "f(a, b, c=d)\n", ["f(b, a, c=d)\n"]),
        (operators.SwapArguments, "f(a, b=c)\n", []),
        (operators.SwapArguments, "np.maximum(a, b)\n", []),
        (operators.DropStatement, "def f():\n    a = 1\n    a += 2\n", ["def f():\n    a = 1\n    pass\n"]),
        (operators.DropStatement, "def f():\n    self.g(1)\n", ["def f():\n    pass\n"]),
        (operators.DropStatement, "a += 1\nclass A:\n    b: int\n", []),
    ],
)
def test_what_an_operator_changes(operator: type[Any], source: str, changed: list[str]) -> None:
    assert [
        text.replace("not  in", "not in").replace("a  in", "a in") for text in _all_of(operator(), source)
    ] == changed


def test_annotations_and_texts_of_errors_are_not_changed() -> None:
    source = 'def f(a: int = 1) -> "b | c":\n    d: e | f = 2\nclass A:\n    def __str__(self):\n        return g\n'
    left_out = list(drawing._not_run(source))
    places = {"a: int": (1, 10), "b | c": (1, 22), "e | f": (2, 7), "g": (5, 15)}
    assert all(any(first <= place <= last for first, last in left_out) for place in places.values())
    assert not any(first <= place <= last for first, last in left_out for place in ((1, 15), (2, 15)))


class _Changed(Mutant):
    """A mutant with a given change, made without cosmic-ray."""

    def source(self) -> str:
        before, after = self.operator.split(" -> ")
        text = self.file.read_text("utf-8")
        assert text.count(before) >= 1
        return text.replace(before, after, 1)


def _in_child(change: str, see: Any, path: str = RULES) -> Any:
    """The result of `see` in a child with a changed module."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            install(_Changed(path, change, 0, 1, ""))
            os.write(writing, json.dumps(see()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text)


def test_a_changed_function_is_run_by_those_that_hold_it() -> None:
    held = expiry_rules.kafka_rule
    assert held(None).rule == "no_group"
    change = "return GroupRule(NO_GROUP) -> return GroupRule(UNREADABLE)"
    assert _in_child(change, lambda: held(None).rule) == "unreadable"
    assert held(None).rule == "no_group"


def test_a_changed_method_and_a_changed_constant() -> None:
    rule = expiry_rules.GroupRule("commit_timestamp")
    assert rule.is_by_time
    assert not _in_child("return self.rule in (COMMIT -> return self.rule not in (COMMIT", lambda: rule.is_by_time)

    def imported_again() -> str:
        from kafka_records_tables.coordinator.rules.expiry_rules import kafka_rule

        return str(kafka_rule(None).rule)

    assert _in_child('NO_GROUP: Final = "no_group" -> NO_GROUP: Final = "other"', imported_again) == "other"


def _fails(*_: object, **__: object) -> None:
    raise OSError("no room for the tests")


def test_what_fails_besides_the_tables_kills_no_mutant(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running, "install", lambda mutant: None)
    mutant = Mutant(RULES, "AddNot", 3, 7, "")
    monkeypatch.setattr(running, "caught", lambda net, logs, is_quick: (None, ""))
    assert running.outcome_of(mutant, []) == running.Outcome(None, "")
    monkeypatch.setattr(running, "caught", lambda net, logs, is_quick: os.kill(os.getpid(), signal.SIGKILL))
    assert running.outcome_of(mutant, []).killer == "crash"
    monkeypatch.setattr(running, "caught", _fails)
    with pytest.raises(RuntimeError, match=r"A mutant could not be tried: .*expiry_rules\.py:7, AddNot"):
        running.outcome_of(mutant, [])
    assert "OSError: no room for the tests" in capfd.readouterr().err


def test_a_mutant_that_does_not_end_is_tried_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def slow_at_first(mutant: Mutant) -> None:
        if not (tmp_path / "tried").exists():
            (tmp_path / "tried").touch()
            os.kill(os.getpid(), signal.SIGXCPU)

    monkeypatch.setattr(running, "install", slow_at_first)
    monkeypatch.setattr(running, "caught", lambda net, logs, is_quick: ("tests", "the second time"))
    assert running.outcome_of(Mutant(RULES, "AddNot", 3, 7, ""), []) == running.Outcome("tests", "the second time")
    monkeypatch.setattr(running, "install", lambda mutant: os.kill(os.getpid(), signal.SIGXCPU))
    assert running.outcome_of(Mutant(RULES, "AddNot", 3, 7, ""), []).killer == "time"


def test_each_module_has_a_net_of_tests_and_tables_that_are_there() -> None:
    nets = [net_of(path) for path in drawing.modules()]
    assert len(nets) == len(NETS)
    tests = {path.stem.removeprefix("test_") for path in (drawing.ROOT / "tests" / "tables").glob("test_*.py")}
    assert {test for net in nets for test in net.tests} <= tests
    assert {table for net in nets for table in net.tables} <= {table for each in COMPARISONS.values() for table in each}


def test_the_histories_that_are_recorded_catch_a_wrong_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = [log for log in recorded_logs() if log.whole.topic == "__share_group_state"][:3]
    assert by_histories(logs, ["share_partitions"], is_whole=True) is None
    nothing = np.zeros(0, np.int64), np.zeros((4, 0), np.int64), np.zeros(1, np.bool_)
    monkeypatch.setattr(share_replay, "combined_at_once", lambda *_: nothing)
    assert "share_partitions" in str(by_histories(logs, ["share_partitions"], is_whole=True))


def test_the_share_of_a_sample_has_its_interval() -> None:
    # Wilson's interval for 95 of 100, as in Brown, Cai and DasGupta (2001).
    low, high = Share(95, 100).interval
    assert (round(low, 4), round(high, 4)) == (0.8882, 0.9785)
    assert Share(0, 0).interval == (0.0, 1.0)
    assert Share(20, 20).interval[1] == 1.0
    assert str(Share(95, 100)) == "95 of 100 (95.0%; 95 % confidence: 88.8% to 97.8%)"


def _result(killer: str | None, before: str = "a") -> Result:
    return Result(RULES, 7, "AddNot", before, "b", killer, "")


def test_equivalent_mutants_are_not_counted_and_survivors_without_a_reason_are_told() -> None:
    results = [*[_result("histories")] * 6, _result("tests"), _result("time"), *map(_result, [None] * 3, "xyz")]
    listed = {
        (RULES, "AddNot", "x", "b"): {"kind": "equivalent", "reason": "…"},
        (RULES, "AddNot", "y", "b"): {"kind": "accepted", "reason": "…"},
    }
    found = figures(results, 4000, 26, listed)
    assert found["killed"].startswith("8 of 10 (80.0%;")
    assert found["sample"] == "11 mutants, drawn by seed 26 from 4000 that are possible"
    assert found["survivors without a case or reason"] == "1"
    assert list(survivor_lines(results, listed)) == [f"{RULES}:7: AddNot\n  - z\n  + b"]


def test_what_was_killed_is_kept_until_its_module_changes(tmp_path: Path) -> None:
    mutant = Mutant(RULES, "AddNot", 3, 7, "")
    kept = Kept(tmp_path / "results.jsonl")
    kept.add(mutant, _result("tests"))
    kept.add(Mutant(RULES, "AddNot", 4, 7, "another"), _result(None))
    again = Kept(tmp_path / "results.jsonl")
    assert again.of(mutant) == _result("tests")
    assert again.of(Mutant(RULES, "AddNot", 4, 7, "another")) is None
    other = Mutant(share_batches.__name__.replace(".", "/") + ".py", "AddNot", 3, 7, "")
    assert again.of(other) is None


def test_each_reason_is_about_lines_that_are_there() -> None:
    for (path, _, before, after), listed in reasons().items():
        text = " ".join(line.strip() for line in (drawing.SOURCES / path).read_text("utf-8").split("\n"))
        assert before in text, (path, before)
        assert before != after
        assert listed["kind"] in ("equivalent", "accepted")
        assert len(listed["reason"]) > 20
    assert len(reasons()) == len(json.loads(REASONS.read_text("utf-8")))
