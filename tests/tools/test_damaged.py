"""Damaged copies of kept vectors of the newest records: the same lines each time, with Kafka's verdict on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from kafka_records_runtime.schema import MessageSchema
from tools.follow import damaged, rewritten, vectors
from tools.follow.vectors import MessageClasses
from tools.kafka_releases import DESCRIBED

KEPT = Path(__file__).resolve().parents[2] / rewritten.KEPT


def by_seed(folder: Path) -> list[dict[str, Any]]:
    return [line for line in vectors.read(folder / "negative.jsonl.gz") if line["how"].startswith(damaged.BY)]


def test_the_kept_lines_are_those_that_are_made() -> None:
    made, kept = [*damaged.damaged(vectors.read(KEPT / "messages.jsonl.gz"))], by_seed(KEPT)
    assert [{name: line[name] for name in made[0]} for line in kept] == made
    versions = set()
    for folder in damaged.FOLDERS:
        module: Any = import_module(f"kafka_records.schemas.{folder}")
        for schema in (getattr(module, name) for name in module.__all__):
            if isinstance(schema, MessageSchema) and schema.versions is not None:
                first, last = schema.versions
                versions |= {(schema.name, version) for version in range(first, last + 1)}
    assert {(line["message"], line["version"]) for line in kept} == versions
    assert {line["ok"] for line in kept} == {True, False}


class Refuses(MessageClasses):
    def asked(self, lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [{"ok": False, "error": "java.lang.RuntimeException", "detail": "no"} for _ in lines]


def test_lines_of_an_earlier_run_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [line for line in vectors.read(KEPT / "messages.jsonl.gz") if line["message"] == "TopicRecord"]
    other = {"message": "M", "module": "m", "version": 0, "how": "cut", "hex": "", "ok": False, "error": "e"}
    vectors.write(tmp_path / "messages.jsonl.gz", messages)
    vectors.write(tmp_path / "negative.jsonl.gz", [{**other, "how": f"{damaged.BY}cut"}, other])
    monkeypatch.setattr(damaged, "KEPT", tmp_path)
    monkeypatch.setattr(damaged, "read_spec_set", lambda release, specs: tmp_path)
    monkeypatch.setattr(damaged, "message_classes", lambda release, tell: nullcontext(Refuses()))
    assert damaged.main([]) == 0
    first, *made = vectors.read(tmp_path / "negative.jsonl.gz")
    assert first == other
    assert [(line["message"], line["ok"], line["release"]) for line in made] == [("TopicRecord", False, DESCRIBED)] * 6
    assert "no" not in made[0].values()
