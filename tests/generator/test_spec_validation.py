"""The verdict of Kafka's own generator on 120 small specs, and ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.loader import load
from kafka_records_codegen.model import Model
from kafka_records_codegen.violations import SpecErrors

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).resolve().parents[1] / "data" / "kafka" / "spec-validation.json").read_text(encoding="utf-8")
)["cases"]

DIFFERENT: Mapping[str, str] = {
    # The driver behind the data hands every message to the class generator; Kafka's MessageGenerator passes over
    # messages without valid versions, and so do we.
    "validVersions none": "ok",
    # Accepted by the generator, but javac refuses what comes out.
    "tagged zeroCopy bytes": "error",
}


def run(case: Mapping[str, Any], folder: Path) -> Model:
    """Load the case's spec, with a value at the side of a coordinator key: a key alone is an orphan."""
    spec = case.get("spec", {})
    text = case["spec_text"] if "spec_text" in case else json.dumps(spec)
    (folder / "Foo.json").write_text(text, encoding="utf-8")
    if spec.get("type") == "coordinator-key" and "apiKey" in spec:
        value = {"type": "coordinator-value", "name": "FooValue", "validVersions": "0", "flexibleVersions": "0+"}
        (folder / "FooValue.json").write_text(json.dumps({**value, "apiKey": spec["apiKey"]}), encoding="utf-8")
    return load(folder)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_verdict(case: Mapping[str, Any], tmp_path: Path) -> None:
    if DIFFERENT.get(case["name"], case["result"]) == "ok":
        run(case, tmp_path)
        return
    with pytest.raises(SpecErrors) as caught:
        run(case, tmp_path)
    first = caught.value.violations[0]
    assert first.line >= 1
    assert first.column >= 1
    assert first.path
    assert first.excerpt.endswith("^")


def test_the_data_is_complete() -> None:
    assert len(CASES) == 120
    assert {case["name"] for case in CASES} > set(DIFFERENT)


def test_a_retired_api_gives_nothing(tmp_path: Path) -> None:
    case = next(case for case in CASES if case["name"] == "validVersions none")
    assert run(case, tmp_path) == Model(())
