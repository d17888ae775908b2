"""Specs as Kafka wrote them before 4.0: refused by default, accepted on request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.cli import main
from kafka_records_codegen.loader import load
from kafka_records_codegen.spec.violations import SpecErrors

PLAIN: dict[str, Any] = {
    "apiKey": 7,
    "type": "request",
    "name": "BallRequest",
    "validVersions": "0-1",
    "fields": [{"name": "Size", "type": "int32", "versions": "0+"}],
}
NO_FLEXIBLE = json.dumps(PLAIN)
LISTENER = json.dumps({**PLAIN, "flexibleVersions": "1+", "listeners": ["zkBroker", "broker"]})
JUNK = json.dumps({**PLAIN, "flexibleVersions": "none"}) + "\n]\n}\n"

WHAT_IS_WRONG = [
    pytest.param(
        NO_FLEXIBLE, "1:1: flexibleVersions: is missing; write none, or an open range such as 0+", id="flexible"
    ),
    pytest.param(LISTENER, "listeners[0]: must be one of broker, controller; found 'zkBroker'", id="listener"),
    pytest.param(JUNK, "2:1: $: nothing may follow the end of the spec; one file holds one message", id="junk"),
]


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    (tmp_path / "specs").mkdir()
    return tmp_path / "specs"


@pytest.mark.parametrize(("text", "wrong"), WHAT_IS_WRONG)
def test_refused_as_a_rule(specs: Path, text: str, wrong: str) -> None:
    (specs / "BallRequest.json").write_text(text, encoding="utf-8")
    with pytest.raises(SpecErrors) as caught:
        load(specs)
    (violation,) = caught.value.violations
    assert str(violation).splitlines()[0].endswith(wrong)


@pytest.mark.parametrize(("text", "wrong"), WHAT_IS_WRONG)
def test_taken_when_asked_for(specs: Path, text: str, wrong: str) -> None:
    (specs / "BallRequest.json").write_text(text, encoding="utf-8")
    (message,) = load(specs, older_dialect=True).messages
    assert (message.name, [field.name for field in message.root.fields]) == ("BallRequest", ["Size"])
    assert bool(message.flexible) is (text is LISTENER)


def test_everything_else_is_refused_all_the_same(specs: Path) -> None:
    older = {**PLAIN, "listeners": ["zookeeper"], "validVersions": "0+"}
    (specs / "BallRequest.json").write_text(f"{json.dumps(older)} junk", encoding="utf-8")
    (specs / "Open.json").write_text('{"type": "data", } }', encoding="utf-8")
    with pytest.raises(SpecErrors) as caught:
        load(specs, older_dialect=True)
    assert [(Path(it.file).name, it.path, it.message) for it in caught.value.violations] == [
        (
            "BallRequest.json",
            "validVersions",
            "a message needs a highest version; write a closed range such as 0-2",
        ),
        ("BallRequest.json", "listeners[0]", "must be one of zkBroker, broker, controller; found 'zookeeper'"),
        ("Open.json", "name", "is missing"),
        ("Open.json", "validVersions", "is missing; write a closed range such as 0-2, or none for a retired API"),
        ("Open.json", "$", "there must be no comma before the closing }"),
    ]


def test_the_option_of_the_command(specs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (specs / "BallRequest.json").write_text(NO_FLEXIBLE, encoding="utf-8")
    command = ["generate", "--specs", str(specs), "--out", str(tmp_path / "balls"), "--package", "balls"]
    assert main(command) == 1
    assert capsys.readouterr().err.endswith("\n1 violation; nothing was written\n")
    assert main([*command, "--older-dialect"]) == 0
    assert main([*command, "--older-dialect", "--check"]) == 0
    (tmp_path / "balls" / "ball_request.py").unlink()
    capsys.readouterr()
    assert main([*command, "--older-dialect", "--check"]) == 1
    assert capsys.readouterr().err.splitlines()[-1].endswith(" --package balls --older-dialect")
