"""The effect of `make follow` on the vectors, with message classes that have prepared answers."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tools.follow import vectors
from tools.follow.vectors import MessageClasses, Reason, differences, revise

Line = dict[str, Any]

CHANGED = "StreamsGroupMetadataValue"
OTHER = "ShareGroupMetadataValue"
TOUCHED: dict[str, frozenset[int]] = {CHANGED: frozenset()}
READ: Line = {"ok": True, "json": {"epoch": 1}, "left": 0}
REFUSED: Line = {"ok": False, "error": "java.nio.BufferUnderflowException"}


class Told(MessageClasses):
    """Answers by the bytes of a line."""

    def __init__(self, answers: Mapping[str, Line]) -> None:
        super().__init__()
        self.answers = answers

    def asked(self, lines: Sequence[Mapping[str, Any]]) -> list[Line]:
        return [dict(self.answers[line["hex"]]) for line in lines]


def damaged(message: str, data: str, verdict: Line) -> Line:
    return {"message": message, "module": "m", "version": 0, "how": "flip", "hex": data, **verdict}


def whole(message: str, data: str, tags: Sequence[Line] = ()) -> Line:
    line = {"message": message, "module": "m", "version": 0, "hex": data, "json": {"epoch": 1}}
    return line | ({"tags": list(tags)} if tags else {})


def tag(number: int, *path: str | int) -> Line:
    return {"path": list(path), "tag": number, "hex": "e9"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("messages.jsonl.gz", "negative.jsonl.gz"):
        (tmp_path / name).write_bytes(gzip.compress(b""))
    return tmp_path


def put(folder: Path, *lines: Line) -> None:
    for name, mine in (("messages", False), ("negative", True)):
        vectors.write(folder / f"{name}.jsonl.gz", [line for line in lines if ("how" in line) is mine])


def messages(folder: Path) -> list[Line]:
    return vectors.read(folder / "messages.jsonl.gz")


def negative(folder: Path) -> list[Line]:
    return vectors.read(folder / "negative.jsonl.gz")


def counts(folder: Path, release: str) -> dict[str, int]:
    return {verdict: differences(folder, release).total(verdict) for verdict in ("refused", "read", "otherwise")}


@pytest.mark.parametrize("message", [CHANGED, OTHER])
def test_both_verdicts_are_kept_and_counted(folder: Path, message: str) -> None:
    lines = [damaged(message, "01", READ), damaged(message, "02", REFUSED), damaged(message, "03", REFUSED)]
    put(folder, *lines)
    words = {**REFUSED, "detail": "in other words"}
    assert revise(folder, Told({"01": REFUSED, "02": READ, "03": words}), TOUCHED, "5") == []
    assert negative(folder) == [
        {**lines[0], "later": [{"release": "5", **REFUSED}]},
        {**lines[1], "later": [{"release": "5", **READ}]},
        lines[2],
    ]
    assert counts(folder, "5") == {"refused": 1, "read": 1, "otherwise": 0}
    assert differences(folder, "5").were_whole == 0


@pytest.mark.parametrize(
    "other",
    [{"json": {"epoch": 2}}, {"left": 1}, {"tags": [tag(9)]}, {"reencode_hex": "00"}, {"reencode_error": "E"}],
    ids=lambda other: next(iter(other)),
)
def test_what_is_read_otherwise_needs_a_change(folder: Path, other: Line) -> None:
    put(folder, damaged(CHANGED, "01", READ), damaged(OTHER, "02", READ))
    now = {**READ, **other}
    odd = revise(folder, Told({"01": now, "02": now}), TOUCHED, "5")
    assert [line.split(":")[:2] for line in odd] == [[f"{OTHER} version 0", " 02"]]
    assert [line["later"] for line in negative(folder)] == [[{"release": "5", **now}]] * 2
    assert counts(folder, "5")["otherwise"] == 2


def test_what_is_judged_otherwise_has_its_reason(folder: Path) -> None:
    too_many = [{**REFUSED, "error": "a.b.RuntimeException", "detail": f"{n} tags, 3 bytes"} for n in (-1, 70)]
    otherwise = {**READ, "json": {"epoch": 2}, "tags": [tag(9)], "reencode_hex": "00"}
    answers = {"01": too_many[0], "02": too_many[1], "03": READ, "04": otherwise}
    put(
        folder,
        *(damaged(message, data, READ) for message, data in ((CHANGED, "01"), (OTHER, "02"), (OTHER, "01"))),
        damaged(OTHER, "03", REFUSED),
        damaged(CHANGED, "04", READ),
    )
    revise(folder, Told(answers), TOUCHED, "5")
    assert differences(folder, "5").reasons == (
        Reason("otherwise", "other fields, other bytes when written again, other unknown tags", (CHANGED,), 1),
        Reason("read", "BufferUnderflowException", (OTHER,), 1),
        Reason("refused", "RuntimeException: N tags, N bytes", (OTHER, CHANGED), 3),
    )


def test_a_message_of_another_name_keeps_its_vectors(folder: Path) -> None:
    put(folder, whole("Sphere", "01"), damaged("Sphere", "02", REFUSED))
    for _ in range(2):
        assert revise(folder, Told({"01": READ, "02": REFUSED}), TOUCHED, "5", {"Sphere": CHANGED}) == []
        assert messages(folder) == [whole(CHANGED, "01")]
        assert negative(folder) == [damaged(CHANGED, "02", REFUSED)]
        assert not (folder / "given_up.jsonl.gz").exists()


def test_the_order_of_tags_says_nothing(folder: Path) -> None:
    line = damaged(OTHER, "01", {**READ, "tags": [tag(8), tag(9)]})
    put(folder, line)
    assert revise(folder, Told({"01": {**READ, "tags": [tag(9), tag(8)]}}), TOUCHED, "5") == []
    assert negative(folder) == [line]


@pytest.mark.parametrize("message", [CHANGED, OTHER])
def test_the_next_release_counts_what_it_changes_itself(folder: Path, message: str) -> None:
    put(folder, damaged(message, "01", READ), damaged(message, "02", READ))
    revise(folder, Told({"01": REFUSED, "02": REFUSED}), TOUCHED, "5")
    before = negative(folder)
    revise(folder, Told({"01": REFUSED, "02": READ}), TOUCHED, "6")
    lines = negative(folder)
    assert lines[0] == before[0]
    assert lines[1]["later"] == [{"release": "5", **REFUSED}, {"release": "6", **READ}]
    assert counts(folder, "5") == {"refused": 2, "read": 0, "otherwise": 0}
    assert counts(folder, "6") == {"refused": 0, "read": 1, "otherwise": 0}


def test_a_second_run_and_one_that_has_nothing_more_to_say(folder: Path) -> None:
    line = damaged(CHANGED, "01", READ)
    put(folder, line, whole(CHANGED, "02", [tag(2)]))
    answers = {"01": REFUSED, "02": REFUSED}
    revise(folder, Told(answers), TOUCHED, "5")
    once = negative(folder)
    revise(folder, Told(answers), TOUCHED, "5")
    assert negative(folder) == once
    revise(folder, Told({**answers, "01": READ}), TOUCHED, "5")
    assert negative(folder)[0] == line


@pytest.mark.parametrize(
    "answer", [REFUSED, {**READ, "left": 2}, {**READ, "reencode_hex": "03"}], ids=["refused", "left", "reencode"]
)
def test_a_tag_that_became_a_field_moves_the_line(folder: Path, answer: Line) -> None:
    put(folder, whole(CHANGED, "01", [tag(9), tag(2)]))
    assert revise(folder, Told({"01": answer}), TOUCHED, "5") == []
    assert messages(folder) == []
    [moved] = negative(folder)
    later = [{"release": "5", **answer}]
    assert moved == {
        **damaged(CHANGED, "01", READ),
        **{"how": "whole, but tag 2 became a field", "tags": [tag(9), tag(2)], "later": later},
    }
    assert differences(folder, "5").were_whole == 1


@pytest.mark.parametrize("tags", [[], [tag(9)], [tag(2, "lastAssignmentConfigs", 0)], [tag(2, "nowhere", 0)]])
def test_what_cannot_be_read_without_such_a_tag_is_odd(folder: Path, tags: list[Line]) -> None:
    line = whole(CHANGED, "01", tags)
    put(folder, line)
    [odd] = revise(folder, Told({"01": REFUSED}), TOUCHED, "5")
    assert odd.startswith(f"{CHANGED} version 0: 01: ")
    assert (messages(folder), negative(folder)) == ([line], [])


def test_a_whole_message_gets_the_names_of_the_release(folder: Path) -> None:
    put(folder, whole(CHANGED, "01", [tag(2)]))
    now = {"epoch": 1, "storedDescriptionTopologyEpoch": 7}
    assert revise(folder, Told({"01": {**READ, "json": now}}), TOUCHED, "5") == []
    assert [line["json"] for line in messages(folder)] == [now]


def test_other_whole_messages_stay_as_they_are(folder: Path) -> None:
    lines = [whole(OTHER, data) for data in ("01", "02", "03")]
    put(folder, *lines)
    odd = revise(folder, Told({"01": READ, "02": {"unknown": True}, "03": REFUSED}), TOUCHED, "5")
    assert [line.split(":")[1] for line in odd] == [" 03"]
    assert messages(folder) == lines


def test_versions_that_are_given_up_are_kept_and_counted_and_come_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [whole(CHANGED, "01"), damaged(CHANGED, "02", READ), whole(OTHER, "03")]
    put(folder, *lines)
    told = Told({line["hex"]: READ for line in lines})
    monkeypatch.setattr(vectors, "_is_ours", lambda line: line["message"] == OTHER)
    for _ in range(2):
        assert revise(folder, told, {}, "5") == []
        assert (messages(folder), negative(folder)) == ([lines[2]], [])
        assert vectors.read(folder / "given_up.jsonl.gz") == [{"given_up": "5", **line} for line in lines[:2]]
        assert differences(folder, "5").given_up == 2
    assert revise(folder, told, {}, "6") == []
    assert (differences(folder, "5").given_up, differences(folder, "6").given_up) == (2, 0)
    monkeypatch.undo()
    assert revise(folder, told, {}, "7") == []
    assert sorted(line["hex"] for line in messages(folder)) == ["01", "03"]
    assert (negative(folder), vectors.read(folder / "given_up.jsonl.gz")) == ([lines[1]], [])
