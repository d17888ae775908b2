"""Kafka's classes write the same kept vectors again from their JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.evolution.spec_sets import read_spec_set
from tests.kafka_needed import skipped_without_kafka
from tools.broker import class_jars
from tools.follow import rewritten, vectors
from tools.follow.classes import message_classes
from tools.follow.vectors import MessageClasses
from tools.kafka_releases import DESCRIBED

KEPT = Path(__file__).resolve().parents[2] / rewritten.KEPT
LINE = {"message": "M", "module": "m", "version": 0, "hex": "01", "json": {"epoch": 1}}


class Told(MessageClasses):
    """Answers in the order of the lines."""

    def __init__(self, *answers: Mapping[str, Any]) -> None:
        super().__init__()
        self.answers = [dict(answer) for answer in answers]

    def asked(self, lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return self.answers[: len(lines)]


@pytest.mark.maven
@pytest.mark.matrix
def test_a_sample_is_written_and_judged_as_it_is_kept() -> None:
    messages, negative = (vectors.read(KEPT / f"{name}.jsonl.gz") for name in ("messages", "negative"))
    messages = [line for number, line in enumerate(messages) if number % 60 == 0 or "records" in line]
    with skipped_without_kafka():
        class_jars()
    with message_classes(read_spec_set(DESCRIBED, "message_specs"), lambda line: None) as classes:
        assert rewritten.rewritten(messages, classes) == messages
        assert rewritten.judged_anew(negative[::60], classes, DESCRIBED) == negative[::60]


def test_what_differs_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    later = {**LINE, "release": "4.4.0"}
    vectors.write(kept / "messages.jsonl.gz", [LINE, LINE, LINE, later])
    vectors.write(kept / "negative.jsonl.gz", [])
    told = Told(LINE, {**LINE, "hex": "02"}, {"error": "java.lang.RuntimeException"})
    monkeypatch.setattr(rewritten, "KEPT", kept)
    monkeypatch.setattr(rewritten, "read_spec_set", lambda release, specs: kept)
    monkeypatch.setattr(rewritten, "message_classes", lambda release, tell: nullcontext(told))
    assert rewritten.main(["4.3.1", "--out", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "M version 0: differs",
        "M version 0: {'error': 'java.lang.RuntimeException'}",
        f"1 of 3 are as they are kept, by Kafka 4.3.1, in {tmp_path / 'out'}",
    ]
    assert [line["hex"] for line in vectors.read(tmp_path / "out" / "messages.jsonl.gz")] == ["01", "02", "01"]
