"""The measurement of the branches that the judge's histories reach, and the page that is made from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kafka_needed import skipped_without_kafka
from tools.judge.reach import __main__ as command
from tools.judge.reach.measured import kept
from tools.judge.reach.page import page, without_reason

_SHARD = "org/apache/kafka/coordinator/group/GroupCoordinatorShard"


def _method(name: str, *lines: list[int], signature: str = "()V") -> dict[str, Any]:
    return {"name": name, "signature": signature, "lines": list(lines)}


def _report(*, loading: list[dict[str, Any]], ever: list[dict[str, Any]]) -> dict[str, Any]:
    phases = {"WRITING": ever, "LOADING": loading, "ANSWERING": ever, "ALL": ever}
    return {phase: {_SHARD: methods} for phase, methods in phases.items()}


def test_the_kept_page_is_what_the_kept_results_give(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--check"]) == 0
    assert capsys.readouterr().err == ""


def test_replay_is_what_a_loading_coordinator_enters() -> None:
    entered = _method("replay", [10, 0, 3, 1, 1], [12, 4, 0, 0, 0], signature="(JLorg/apache/FooKey;Lorg/Foo;)V")
    never_loading = _method("joins", [20, 0, 0, 0, 0])
    ever = [entered, _method("joins", [20, 5, 1, 1, 1])]
    (told,) = kept(_report(loading=[entered, never_loading], ever=ever)).values()
    assert told["unreached"] == [{"method": "replay(FooKey)", "lines": [10, 12], "branches": 1}]
    assert told["counts"]["ALL"] == [2, 3, 2, 4]
    assert told["counts"]["LOADING"] == [1, 3, 1, 2]


def test_clean_up_is_told_though_no_coordinator_enters_it_while_it_loads() -> None:
    cleaning = [
        _method("cleanupGroupMetadata", [30, 2, 0, 0, 0]),
        _method("lambda$cleanupGroupMetadata$0", [31, 1, 0, 0, 0]),
    ]
    (told,) = kept(_report(loading=[], ever=cleaning)).values()
    assert [each["method"] for each in told["unreached"]] == [each["name"] for each in cleaning]


def test_what_is_not_reached_without_a_reason_is_told_and_shown() -> None:
    classes = kept(_report(loading=[], ever=[_method("cleanupGroupMetadata", [30, 2, 0, 0, 0], [31, 1, 0, 0, 0])]))
    results = {"9.9.9": {"first": 1, "last": 3, "day": "2026-01-01", "classes": classes}}
    assert list(without_reason(results)) == ["9.9.9, GroupCoordinatorShard.cleanupGroupMetadata, lines 30–31"]
    text = page(results)
    assert "3 histories, seeds 1 to 3, 2026-01-01." in text
    assert "- **No reason is written down.** `GroupCoordinatorShard.cleanupGroupMetadata`\n" in text


def test_the_page_is_written_from_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept_page = command.PAGE.read_bytes()
    monkeypatch.setattr(command, "PAGE", tmp_path / "page.md")
    assert command.main([]) == 0
    assert (tmp_path / "page.md").read_bytes() == kept_page
    for wrong in ("5-1", "x", "7"):
        with pytest.raises(SystemExit):
            command.main([wrong])
        assert f"not a range of seeds, as 1-400: {wrong}" in capsys.readouterr().err


def test_a_page_that_was_edited_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    edited = tmp_path / "page.md"
    edited.write_text(command.PAGE.read_text("utf-8") + "more\n", encoding="utf-8")
    monkeypatch.setattr(command, "PAGE", edited)
    assert command.main(["--check"]) == 1
    assert capsys.readouterr().err.startswith("docs/judge-reach.md is not what docs/judge-reach.json gives")


@pytest.mark.maven
@pytest.mark.slow
@pytest.mark.matrix
def test_one_history_is_measured() -> None:
    """Each phase has its own lines: no calls are made while a coordinator loads."""
    with skipped_without_kafka():
        classes = command.measure([3], 1)
    shard = classes["GroupCoordinatorShard"]["counts"]
    assert 0 < shard["LOADING"][0] < shard["WRITING"][0] <= shard["ALL"][0] < shard["ALL"][1]
    assert any(each["method"].startswith("replay(") for each in classes["GroupMetadataManager"]["unreached"])


def test_static_members_of_streams_groups_are_made() -> None:
    """They are new in 4.4.0. Histories take all branches of their replay."""
    streams = json.loads(command.RESULTS.read_text("utf-8"))["4.4.0"]["classes"]["StreamsGroup"]
    assert [each["method"] for each in streams["unreached"] if "StaticMember" in each["method"]] == []
