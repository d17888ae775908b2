"""Deleting and restoring offsets while answers are lost, others commit, and runs are interrupted; with coordinators in
memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from kafka_records_engine.sources.fetched_offsets import UNSTABLE, CommittedOffset, FetchedOffsets, TopicPartition
from kafka_records_engine.sources.group_requests import AnswerLost, DescribedTopic, GroupRequests, ListedGroup
from kafka_records_tables.commands import restore_run
from kafka_records_tables.commands.restore_run import RestoreRun
from kafka_records_tables.console.endings import CommandError
from kafka_records_tables.deletion import deletion_run
from kafka_records_tables.deletion.carrying_out import UNKNOWN
from kafka_records_tables.deletion.deleted_file import deleted_of
from kafka_records_tables.deletion.deletion_list import DeletionList, of_arguments, of_file
from kafka_records_tables.deletion.deletion_run import DeletionRun

A, B = ("a", 0), ("b", 0)
SUBSCRIBED = "GROUP_SUBSCRIBED_TO_TOPIC"


def at(offset: int) -> CommittedOffset:
    return CommittedOffset(offset, -1, "")


class Coordinators:
    """Groups in memory. `lose` is the number of requests whose answers are lost; `heard` says whether the requests
    still arrive."""

    def __init__(self, *groups: str) -> None:
        self.held: dict[str, dict[TopicPartition, CommittedOffset]] = {
            group: {A: at(5), B: at(6)} for group in groups or ("g",)
        }
        self.pending: set[TopicPartition] = set()
        self.refused: dict[TopicPartition, str] = {}
        self.errors: dict[str, str] = {}
        self.hidden = False
        self.lose = 0
        self.heard = True
        self.then: Callable[[], object] = lambda: None
        """Called after a request whose answer is lost."""
        self.changes: list[str] = []
        self.stops_at: str | None = None

    def groups(self) -> dict[str, ListedGroup]:
        return {} if self.hidden else dict.fromkeys(self.held, ListedGroup("consumer", "Empty", "classic"))

    def topics(self, names: Collection[str]) -> dict[str, DescribedTopic]:
        return {name: DescribedTopic("x" * 22, frozenset({0, 1})) for name in names}

    def fetch(self, wanted: Mapping[str, Collection[TopicPartition] | None]) -> dict[str, FetchedOffsets]:
        return {group: self._fetched(group, places) for group, places in wanted.items()}

    def _fetched(self, group: str, places: Collection[TopicPartition] | None) -> FetchedOffsets:
        held = self.held.get(group, {})
        asked = set(held) if places is None else set(places)
        return FetchedOffsets(
            {place: held[place] for place in asked & held.keys() - self.pending},
            dict.fromkeys(asked & self.pending, UNSTABLE),
            self.errors.get(group),
        )

    def _change(self, group: str, change: Callable[[], Any]) -> Any:
        if group == self.stops_at:
            raise KeyboardInterrupt
        self.changes.append(group)
        self.lose -= 1
        answer = change() if self.heard or self.lose < 0 else None
        if self.lose >= 0:
            self.then()
            raise AnswerLost("the connection broke")
        return answer

    def delete_offsets(self, group: str, places: Collection[TopicPartition]) -> dict[TopicPartition, str | None]:
        def change() -> dict[TopicPartition, str | None]:
            for place in places:
                if place not in self.refused:
                    self.held[group].pop(place, None)
            return {place: self.refused.get(place) for place in places}

        return cast("dict[TopicPartition, str | None]", self._change(group, change))

    def delete_group(self, group: str) -> str | None:
        def change() -> str | None:
            return None if self.held.pop(group, None) is not None else "GROUP_ID_NOT_FOUND"

        return cast("str | None", self._change(group, change))

    def commit(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> dict[TopicPartition, str | None]:
        def change() -> dict[TopicPartition, str | None]:
            taken = {place: offset for place, offset in offsets.items() if place not in self.refused}
            self.held.setdefault(group, {}).update(taken)
            return {place: self.refused.get(place) for place in offsets}

        return cast("dict[TopicPartition, str | None]", self._change(group, change))


@pytest.fixture
def deleted(tmp_path: Path) -> Path:
    """The file to which a run writes what it deletes."""
    return tmp_path / "deleted.jsonl"


def delete(brokers: Coordinators, deletions: DeletionList, output: Path, *, yes: bool = True) -> int:
    requests = cast("GroupRequests", brokers)
    return DeletionRun(requests, deletions, execute=True, yes=yes, output=output).run()


def restore(brokers: Coordinators, path: Path, **options: Any) -> int:
    requests = cast("GroupRequests", brokers)
    return RestoreRun(requests, str(path), **{"execute": True, "yes": True, "overwrite": False} | options).run()


def both(*groups: str) -> DeletionList:
    return of_arguments(groups or ("g",), ["a:0", "b:0"], whole=False)


def restorable(path: Path) -> dict[str, dict[TopicPartition, CommittedOffset]]:
    return {group: dict(each.offsets) for group, each in deleted_of(str(path)).by_group.items()}


# -- nothing done ------------------------------------------------------------------------------------------------------


def test_a_run_that_deletes_nothing_leaves_no_file(deleted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    brokers = Coordinators()
    brokers.refused = {A: SUBSCRIBED, B: SUBSCRIBED}
    assert delete(brokers, both(), deleted) == 1
    assert capsys.readouterr().err == "0 offsets of 0 groups deleted, 2 offsets left out\n"
    assert not deleted.exists()


def test_what_nobody_answered_stays_in_the_file(deleted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    brokers = Coordinators()
    brokers.refused = {A: UNKNOWN, B: UNKNOWN}
    assert delete(brokers, both(), deleted) == 1
    assert f"{deleted} has their old values: --restore {deleted} restores them" in capsys.readouterr().err
    assert restorable(deleted) == {"g": {A: at(5), B: at(6)}}


def test_a_run_that_writes_over_nothing_leaves_no_file(
    deleted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    brokers, over = Coordinators(), tmp_path / "over.jsonl"
    assert delete(brokers, both(), deleted) == 0
    brokers.held["g"] = {A: at(7), B: at(8)}
    brokers.refused = {A: "UNKNOWN_MEMBER_ID", B: "UNKNOWN_MEMBER_ID"}
    capsys.readouterr()
    assert restore(brokers, deleted, overwrite=True, output=over) == 1
    assert "has what was overwritten" not in capsys.readouterr().err
    assert not over.exists()


# -- lost answers ------------------------------------------------------------------------------------------------------


def test_what_was_deleted_before_its_answer_was_lost_can_be_restored(
    deleted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    brokers = Coordinators()
    brokers.refused, brokers.lose = {B: SUBSCRIBED}, 1
    assert delete(brokers, both(), deleted) == 1
    assert (brokers.held, brokers.changes) == ({"g": {B: at(6)}}, ["g", "g"])
    assert restorable(deleted) == {"g": {A: at(5)}}
    out = capsys.readouterr().out
    assert "a               0            Successful (offset 5)" in out
    assert "b               0            Error: GROUP_SUBSCRIBED_TO_TOPIC" in out


def test_what_others_commit_behind_a_lost_answer_is_left_and_the_former_offset_kept(deleted: Path) -> None:
    """It was deleted before or overwritten. It is unknown which, so it stays in the file."""
    brokers = Coordinators()
    brokers.lose, brokers.then = 1, lambda: brokers.held["g"].update({A: at(9)})
    assert delete(brokers, both(), deleted) == 1
    assert brokers.held == {"g": {A: at(9)}}
    assert restorable(deleted) == {"g": {A: at(5), B: at(6)}}


def test_what_nobody_may_see_any_more_stays_in_the_file(deleted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    brokers = Coordinators()
    brokers.lose, brokers.then = 1, lambda: brokers.errors.update(g="GROUP_AUTHORIZATION_FAILED")
    assert delete(brokers, both(), deleted) == 1
    assert restorable(deleted) == {"g": {A: at(5), B: at(6)}}
    assert "it is unknown whether it was deleted" in capsys.readouterr().out


@pytest.mark.parametrize("is_heard", [True, False])
def test_that_no_broker_lists_a_group_does_not_mean_that_it_is_deleted(deleted: Path, is_heard: bool) -> None:
    brokers = Coordinators()
    brokers.lose, brokers.heard, brokers.then = 1, is_heard, lambda: setattr(brokers, "hidden", True)
    assert delete(brokers, of_arguments(["g"], [], whole=True), deleted) == 0
    assert (brokers.held, brokers.changes) == ({}, ["g", "g"])
    assert restorable(deleted) == {"g": {A: at(5), B: at(6)}}


def test_a_group_that_changed_behind_a_lost_answer_stays(deleted: Path) -> None:
    brokers = Coordinators()
    brokers.lose, brokers.heard, brokers.then = 1, False, lambda: brokers.held["g"].update({A: at(9)})
    assert delete(brokers, of_arguments(["g"], [], whole=True), deleted) == 1
    assert brokers.changes == ["g"]
    assert restorable(deleted) == {"g": {A: at(5)}}


def test_five_lost_answers_end_the_run(deleted: Path) -> None:
    brokers = Coordinators()
    brokers.lose, brokers.heard = 9, False
    with pytest.raises(CommandError, match="group g: no response to 5 requests"):
        delete(brokers, both(), deleted)
    assert restorable(deleted) == brokers.held


# -- transactions ------------------------------------------------------------------------------------------------------


def listing(path: Path, *rows: Mapping[str, Any]) -> Path:
    usual = {"kind": "offset", "group_id": "g", "topic": None, "partition": None, "offset": None, "is_deletable": True}
    path.write_text("".join(f"{json.dumps(usual | dict(row))}\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("is_marked", [True, False])
def test_a_group_that_an_open_transaction_commits_to_is_not_deleted(
    tmp_path: Path, deleted: Path, is_marked: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list says so for the group, or the coordinator's answer for the partition. If all offsets of the group are
    requested, the coordinator leaves it out."""
    brokers = Coordinators()
    brokers.held = {"g": {A: at(5)}}
    brokers.pending = set() if is_marked else {B}
    rows: list[dict[str, Any]] = [
        {"topic": "a", "partition": 0, "offset": 5},
        {"topic": "b", "partition": 0, "is_pending": True},
        {"kind": "group", "is_pending": is_marked},
    ]
    wanted = of_file(str(listing(tmp_path / "list", *rows)), whole=True)
    assert delete(brokers, wanted, deleted) == 1
    assert brokers.changes == []
    assert "Deletion of the group failed due to: UNSTABLE_OFFSET_COMMIT" in capsys.readouterr().out


def test_a_transaction_that_begins_while_somebody_is_asked_keeps_its_group(
    tmp_path: Path, deleted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers = Coordinators()
    brokers.held = {"g": {A: at(5)}}
    rows: list[dict[str, Any]] = [
        {"topic": "a", "partition": 0, "offset": 5},
        {"topic": "b", "partition": 0},
        {"kind": "group"},
    ]
    wanted = of_file(str(listing(tmp_path / "list", *rows)), whole=True)

    def answer(question: str) -> bool:
        brokers.pending = {B}
        return bool(question)

    monkeypatch.setattr(deletion_run, "confirmed", answer)
    assert delete(brokers, wanted, deleted, yes=False) == 1
    assert brokers.changes == []


# -- runs that break off -----------------------------------------------------------------------------------------------


def test_results_are_printed_of_what_was_done_before_a_run_breaks_off(
    deleted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    brokers = Coordinators("g", "h", "i")
    brokers.stops_at = "i"
    with pytest.raises(KeyboardInterrupt):
        delete(brokers, both("g", "h", "i"), deleted)
    out, err = capsys.readouterr()
    assert (out.count("GROUP "), out.count("Successful")) == (2, 4)
    assert err.splitlines()[-1] == f"interrupted; {deleted} has what was deleted until now, or was about to be"

    brokers.held, brokers.stops_at = {}, "h"
    with pytest.raises(KeyboardInterrupt):
        restore(brokers, deleted)
    out, err = capsys.readouterr()
    assert (out.count("GROUP "), out.count("Successful")) == (1, 2)
    assert err.splitlines()[-1] == "interrupted; run it again: it skips what is already restored"
    brokers.stops_at = None
    assert restore(brokers, deleted) == 0
    assert brokers.held == Coordinators("g", "h", "i").held


# -- restoring ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def emptied(deleted: Path) -> Coordinators:
    """A group whose offsets are only in `deleted`."""
    brokers = Coordinators()
    assert delete(brokers, both(), deleted) == 0
    brokers.changes.clear()
    return brokers


@pytest.mark.parametrize("overwrite", [True, False])
def test_what_is_committed_while_somebody_is_asked_is_not_written_over(
    emptied: Coordinators,
    deleted: Path,
    overwrite: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def answer(question: str) -> bool:
        assert capsys.readouterr().out.count("to be restored") == 2
        emptied.held["g"][A] = at(1000)
        return question == "2 offsets will be committed again."

    monkeypatch.setattr(restore_run, "confirmed", answer)
    assert restore(emptied, deleted, yes=False, overwrite=overwrite) == 1
    assert emptied.held == {"g": {A: at(1000), B: at(6)}}
    assert "(offset 1000 now, nothing before)" in capsys.readouterr().out


def test_what_is_written_over_is_kept(emptied: Coordinators, deleted: Path, tmp_path: Path) -> None:
    emptied.held["g"] = {A: at(8), B: at(9)}
    emptied.refused = {B: "INVALID_COMMIT_OFFSET_SIZE"}
    over = tmp_path / "over.jsonl"
    assert restore(emptied, deleted, overwrite=True, output=over) == 1
    assert emptied.held == {"g": {A: at(5), B: at(9)}}
    assert restorable(over) == {"g": {A: at(8)}}
    assert restore(emptied, over, overwrite=True, output=tmp_path / "again.jsonl") == 0
    assert emptied.held == {"g": {A: at(8), B: at(9)}}


@pytest.mark.parametrize("is_heard", [True, False])
def test_restoring_looks_after_lost_answers(emptied: Coordinators, deleted: Path, is_heard: bool) -> None:
    """It does not overwrite what somebody else has committed meanwhile."""
    emptied.lose, emptied.heard, emptied.then = 1, is_heard, lambda: emptied.held["g"].update({A: at(9)})
    assert restore(emptied, deleted) == 1
    assert emptied.held == {"g": {A: at(9), B: at(6)}}


def test_a_group_that_may_not_be_described_ends_nothing(deleted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    brokers = Coordinators("g", "h")
    assert delete(brokers, both("g", "h"), deleted) == 0
    brokers.errors = {"g": "GROUP_AUTHORIZATION_FAILED"}
    assert restore(brokers, deleted) == 1
    assert brokers.held == {"g": {}, "h": {A: at(5), B: at(6)}}
    out, err = capsys.readouterr()
    assert "Error: Restoring offsets failed due to: GROUP_AUTHORIZATION_FAILED" in out
    assert "2 offsets restored, 2 offsets left out, 1 group refused" in err


def test_a_line_that_is_cut_is_told(emptied: Coordinators, deleted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deleted.write_text(deleted.read_text(encoding="utf-8")[:-5], encoding="utf-8")
    assert restore(emptied, deleted) == 1
    assert emptied.held == {"g": {A: at(5)}}
    assert f"{deleted}: line 2 is incomplete: its offset is not restored" in capsys.readouterr().err
