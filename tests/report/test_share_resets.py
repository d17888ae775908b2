"""Start offsets of share groups that were altered by request: what was skipped, and what is delivered again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kafka_records_tables import read_table
from kafka_records_tables.report.facts.offset_ranges import merged, offset_count, within, without
from kafka_records_tables.report.facts.share_initializations import TABLE as INITIALIZATIONS
from kafka_records_tables.report.facts.share_resets import TABLE
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.making import read_report
from kafka_records_tables.report.report_parts import ReportFinding
from tests.report.data_directory import SHARE_STATE
from tests.report.made_up_cluster import DAY, HOUR, MINUTE, SECOND, MadeCluster
from tests.report.modern_lives import ShareLife
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found
from tests.tables.share_topic import ShareTopic

Row = dict[str, Any]
KIND = "share_offsets_reset"
UNDECIDED = -1
AHEAD = "the start offsets of a share group were moved ahead, so that it skipped records"


def test_ranges_of_offsets() -> None:
    assert merged([(5, 9), (1, 2), (3, 3), (8, 12), (4, 3)]) == [(1, 3), (5, 12)]
    assert within([(1, 3), (5, 12)], 2, 6) == [(2, 3), (5, 6)]
    assert within([(1, 3), (5, 12)], 6) == [(6, 12)]
    assert without([(1, 12), (20, 21)], [(0, 1), (4, 5), (12, 30)]) == [(2, 3), (6, 11)]
    assert offset_count([(2, 3), (6, 6)]) == 3


def _resets(topic: ShareTopic) -> list[dict[str, Any]]:
    """The rows without what is the same in all tests, with ranges as pairs."""
    rows = read_table(TABLE, topic.table()).table.to_pylist()
    epochs = read_table(INITIALIZATIONS, topic.table()).table
    assert bool(rows) <= bool(epochs.num_rows)
    names = ("old_start_offset", "start_offset", "recovered", "attempted", "is_beginning_known", "state_log_offset")
    ranges = ("skipped", "repeated")
    return [
        {name: row[name] for name in names}
        | {name: [(each["first_offset"], each["last_offset"]) for each in row[name]] for name in ranges}
        for row in rows
    ]


def _consumed(snapshot_epoch: int = 0, begin: int = 100) -> ShareTopic:
    """A share partition that began at an offset (100) and has its start offset at 500. From there on, five records are
    acknowledged, two were released and one is archived."""
    topic = ShareTopic()
    start = UNDECIDED if not snapshot_epoch else 400
    topic.snapshot(start_offset=start, state_epoch=2, snapshot_epoch=snapshot_epoch)
    topic.update((begin, begin + 9, 2, 1), start_offset=begin)
    topic.update((500, 501, 0, 1), (502, 506, 2, 1), start_offset=500)
    topic.update((510, 510, 4, 1))
    return topic


def _row(**given: Any) -> dict[str, Any]:
    usual = {"old_start_offset": 500, "recovered": 0, "attempted": 0, "is_beginning_known": True, "state_log_offset": 3}
    return {**usual, "skipped": [], "repeated": [], **given}


def test_what_was_acknowledged_or_archived_is_not_skipped() -> None:
    topic = _consumed()
    topic.snapshot(start_offset=600, state_epoch=6, snapshot_epoch=1)
    topic.update((600, 609, 2, 1), start_offset=600)
    skipped = [(500, 501), (507, 509), (511, 599)]
    assert _resets(topic) == [_row(start_offset=600, skipped=skipped, attempted=2)]


def test_a_start_offset_may_lag_behind_what_was_acknowledged() -> None:
    """A broker writes the start offset that it had before these acknowledgements."""
    topic = _consumed()
    topic.update((500, 501, 2, 2), (507, 509, 2, 1))
    topic.snapshot(start_offset=505, state_epoch=6, snapshot_epoch=1)
    repeated = [(505, 510)]
    assert _resets(topic) == [_row(old_start_offset=511, start_offset=505, repeated=repeated, state_log_offset=4)]


@pytest.mark.parametrize(
    ("start", "skipped", "repeated"),
    [
        (300, [], [(300, 499), (502, 506), (510, 510)]),
        (0, [], [(100, 499), (502, 506), (510, 510)]),
        (500, [], [(502, 506), (510, 510)]),
        (505, [(500, 501)], [(505, 506), (510, 510)]),
    ],
)
def test_what_was_finished_is_repeated(
    start: int, skipped: list[tuple[int, int]], repeated: list[tuple[int, int]]
) -> None:
    """Below the offset at which the group began, nothing was delivered before."""
    topic = _consumed()
    topic.snapshot(start_offset=start, state_epoch=6, snapshot_epoch=1)
    attempted = offset_count(skipped)
    assert _resets(topic) == [_row(start_offset=start, skipped=skipped, repeated=repeated, attempted=attempted)]


def test_without_the_beginning_the_group_may_have_begun_at_any_offset() -> None:
    topic = _consumed(snapshot_epoch=3, begin=450)
    topic.snapshot(start_offset=0, state_epoch=6, snapshot_epoch=4)
    repeated = [(0, 499), (502, 506), (510, 510)]
    assert _resets(topic) == [_row(start_offset=0, repeated=repeated, is_beginning_known=False)]


def test_a_later_request_moves_back_to_what_was_skipped() -> None:
    """The ten records after the reset are repeated, and so are the ones that had been acknowledged before it."""
    topic = _consumed()
    topic.snapshot(start_offset=600, state_epoch=6, snapshot_epoch=1)
    topic.update((600, 609, 2, 1), start_offset=610)
    topic.snapshot(start_offset=508, state_epoch=9, snapshot_epoch=2)
    first, second = _resets(topic)
    assert (first["skipped"], first["recovered"], first["attempted"]) == ([(500, 501), (507, 507)], 91, 2)
    assert (second["skipped"], second["repeated"]) == ([], [(510, 510), (600, 609)])
    topic.update((508, 604, 2, 1), start_offset=605)
    topic.snapshot(start_offset=700, state_epoch=12, snapshot_epoch=3)
    first, second, third = _resets(topic)
    assert (first["skipped"], first["recovered"]) == ([(500, 501), (507, 507)], 91)
    assert second["repeated"] == [(510, 510), (600, 604)]
    assert third["skipped"] == [(610, 699)]


def test_requests_between_which_no_member_joined_are_one() -> None:
    """An administrator who sees the mistake at once has skipped nothing."""
    topic = _consumed()
    topic.snapshot(start_offset=600, state_epoch=6, snapshot_epoch=1)
    topic.snapshot(start_offset=500, state_epoch=6, snapshot_epoch=2)
    repeated = [(502, 506), (510, 510)]
    assert _resets(topic) == [_row(start_offset=500, repeated=repeated)]
    topic.snapshot(start_offset=700, state_epoch=6, snapshot_epoch=3)
    assert _resets(topic)[0]["skipped"] == [(500, 501), (507, 509), (511, 699)]


def test_other_snapshots_are_no_requests() -> None:
    """A snapshot after many updates, one that repeats the state, a deleted state, and one that is initialized without
    a start offset, or had none."""
    topic = _consumed()
    topic.snapshot((511, 520, 2, 1), start_offset=502, state_epoch=2, snapshot_epoch=1)
    topic.snapshot(start_offset=530, state_epoch=2, snapshot_epoch=2)
    topic.delete()
    topic.snapshot(start_offset=900, state_epoch=9)
    topic.snapshot(start_offset=UNDECIDED, state_epoch=10, snapshot_epoch=1)
    topic.snapshot(start_offset=2000, state_epoch=11, snapshot_epoch=2)
    topic.update((2000, 2009, 2, 1), start_offset=2010)
    topic.snapshot((2010, 2010, 0, 1), start_offset=2010, state_epoch=11, snapshot_epoch=3)
    assert _resets(topic) == []
    topic.snapshot(start_offset=0, state_epoch=12, snapshot_epoch=4)
    (row,) = _resets(topic)
    assert (row["repeated"], row["is_beginning_known"]) == ([(2000, 2009)], True)


def test_an_update_without_its_snapshot_tells_no_epoch() -> None:
    topic = ShareTopic()
    topic.update((5, 9, 2, 1), start_offset=5)
    topic.snapshot(start_offset=100, state_epoch=4, snapshot_epoch=1)
    assert _resets(topic) == []


# ------------------------------------------------------------------------------------------------- a whole report


class _Reset(ShareLife):
    """A share group whose start offsets somebody alters while it has no members."""

    def alter(self, at_ms: int, starts: dict[int, int]) -> None:
        """Set start offsets of partitions of its topic."""
        for number, start in starts.items():
            place = self.topics[0], number
            self._epochs[place] += 1
            times = {"create_timestamp": at_ms, "write_timestamp": at_ms, "state_epoch": self.epoch}
            value = {"leader_epoch": 0, "start_offset": start, "delivery_complete_count": 0, **times}
            self._state(at_ms, place, "ShareSnapshot", value, ())
            self.starts[place] = start


RESET_MS = END_MS - 2 * HOUR


def _cluster(at_ms: int = RESET_MS, *, days: int = 2) -> tuple[MadeCluster, _Reset]:
    """A share group that lost its members ten minutes before a time, with 100 records per minute and partition."""
    cluster = MadeCluster("share resets", END_MS, days=days)
    cluster.cleaned_until_ms = None
    cluster.needs(SHARE_STATE, 2)
    cluster.topic("orders", 2, 6000)
    life = _Reset(cluster, "senders", ["orders"])
    life.start(cluster.start_ms, 2)
    life.consumes(cluster.start_ms + HOUR, at_ms - 11 * MINUTE)
    life.consume(at_ms - 10 * MINUTE - SECOND)
    life.stop(at_ms - 10 * MINUTE)
    return cluster, life


def _comes_back(life: _Reset) -> None:
    for number in range(2):
        life.join(RESET_MS + MINUTE + number * 8 * SECOND)
    life.consumes(RESET_MS + 2 * MINUTE, END_MS)


def _report(cluster: MadeCluster, folder: Path) -> list[ReportFinding]:
    cluster.write(folder)
    return list(read_report(folder, source_arguments=["data"], processes=1).findings)


def test_records_are_skipped_if_the_start_offsets_are_moved_to_the_end(tmp_path: Path) -> None:
    cluster, life = _cluster()
    topic = cluster.topics["orders"]
    old = {number: life.starts["orders", number] for number in range(2)}
    new = {number: topic.end(number, RESET_MS) for number in range(2)}
    life.alter(RESET_MS, new)
    _comes_back(life)
    (found,) = [each for each in _report(cluster, tmp_path / "data") if each.level > Level.NOTE]
    skipped = sum(new[number] - old[number] for number in range(2))
    assert (found.kind, found.level, found.title) == (KIND, Level.HIGH, AHEAD)
    assert (found.group_ids, found.topics, found.partitions) == (("senders",), ("orders",), (0, 1))
    assert (found.since_timestamp_ms, found.is_going_on, found.consequence) == (RESET_MS, False, "data_lost")
    assert found.scale == {"records_lost": skipped, "records_repeated": 0, "partitions": 2}
    assert skipped > 1500
    assert "were moved ahead" in found.problem
    assert f"orders-0 from {old[0]} to {new[0]}" in found.problem
    assert "Its members have continued from there since" in found.problem
    assert found.impact.startswith(f"{skipped} records that no member had finished were skipped: the group will not")
    assert [(each.name, each.confidence) for each in found.causes] == [("altered_by_request", "high")]
    assert set(found.refuted_by) == {"began_at_latest", "records_deleted"}
    assert f"{new[0]} after {old[0]}; {new[0] - old[0]} records skipped ({old[0]} to {new[0] - 1})" in " ".join(
        each.shows for each in found.evidence
    )
    read, back = found.next[:2]
    assert f"orders-0 {old[0]} to {new[0] - 1}; orders-1 {old[1]} to {new[1] - 1}" in read.what
    assert f"--partition 0 --offset {old[0]} --max-messages {new[0] - old[0]}" in str(read.command)
    assert back.what.startswith("Or stop the members, and move the start offsets back")


def test_before_members_start_nothing_is_lost_yet(tmp_path: Path) -> None:
    cluster, life = _cluster()
    life.alter(RESET_MS, {0: cluster.topics["orders"].end(0, RESET_MS)})
    (found,) = [each for each in _report(cluster, tmp_path / "data") if each.kind == KIND]
    assert "Its members have continued" not in found.problem
    back = found.next[0].what
    assert back.startswith("If these records must be processed, move the start offsets back before members start")


def test_records_are_delivered_again_if_the_start_offsets_are_moved_back(tmp_path: Path) -> None:
    cluster, life = _cluster()
    old = {number: life.starts["orders", number] for number in range(2)}
    life.alter(RESET_MS, {0: old[0] - 700, 1: old[1]})
    (waits,) = [each for each in _report(cluster, tmp_path / "empty") if each.kind == KIND]
    assert "set the old start offsets before members start" in waits.next[0].what
    assert f"orders-0 to {old[0]}" in waits.next[0].what
    assert "700 records that had been acknowledged or archived will be delivered again." in waits.impact
    _comes_back(life)
    (found,) = [each for each in _report(cluster, tmp_path / "data") if each.level > Level.NOTE]
    assert (found.kind, found.level) == (KIND, Level.MODERATE)
    assert found.title == "the start offsets of a share group were moved back"
    assert (found.scale["records_repeated"], found.scale["records_lost"]) == (700, 0)
    assert (found.consequence, found.is_going_on) == ("work_repeated", False)
    assert found.next[0].what.startswith("Ask who altered the start offsets")


def test_a_request_without_a_backlog_is_no_finding(tmp_path: Path) -> None:
    cluster, life = _cluster()
    life.alter(RESET_MS, {number: life.starts["orders", number] for number in range(2)})
    _comes_back(life)
    assert not [each for each in _report(cluster, tmp_path / "data") if each.kind == KIND]


# --------------------------------------------------------------------------------------------------- the rule alone

TOPIC_ID = "wpIKykfmTR6vUYsARjcjhA"


def _told(
    skipped: tuple[int, int] | None = None,
    repeated: tuple[int, int] | None = None,
    *,
    log: tuple[int, int] | None = (0, 5000),
    log_id: str = TOPIC_ID,
    at_ms: int = END_MS - HOUR,
    recovered: int = 0,
    is_known: bool = True,
    changes: Sequence[str] = (),
) -> list[ReportFinding]:
    """The findings about one share partition whose start offset was moved from 500 to 600 or to 300."""
    ranges = {
        name: [{"first_offset": each[0], "last_offset": each[1]}] if each else []
        for name, each in (("skipped", skipped), ("repeated", repeated))
    }
    place = {"group_id": "g", "topic_id": TOPIC_ID, "partition": 0, "log_partition": 1}
    row = {**place, "topic": "orders", "state_epoch": 6, "log_offset": 9, "log_timestamp_ms": at_ms, **ranges}
    row |= {"old_start_offset": 500, "start_offset": 300 if repeated else 600, "state_log_offset": 8}
    row |= {"state_timestamp_ms": at_ms - MINUTE, "attempted": 0, "recovered": recovered}
    row["is_beginning_known"] = is_known
    samples = [] if log is None else [{"topic": "orders", "partition": 0, "topic_id": log_id, "samples": None}]
    for each in samples:
        each |= {"log_start_offset": log and log[0], "log_end_offset": log and log[1]}
    looks: dict[str, list[Row]] = {
        "share_initializations": [{"group_id": "g", "log_partition": 1}],
        "share_resets": [row],
        "log_samples": samples,
        "topic_changes": [
            {"topic": "orders", "topic_id": TOPIC_ID, "event": each, "at_timestamp_ms": at_ms, "log_offset": number}
            for number, each in enumerate(changes)
        ],
    }
    state = {**place, "snapshot_epoch": 1}
    return _found(_context(looks, share_partitions=[state], members=[]), KIND)


@pytest.mark.parametrize(
    ("given", "level", "lost", "text"),
    [
        ({}, Level.HIGH, 100, "They are still in the topic."),
        ({"log": None}, Level.HIGH, 100, "(partition 0) are still in the topic is unknown."),
        ({"log": (570, 5000)}, Level.HIGH, 30, "70 other offsets in between are not in the logs now"),
        ({"log": (570, 5000), "log_id": "AAAAAAAAAAAAAAAAAAAAAQ"}, Level.HIGH, 100, "because the topic was recreated"),
        ({"log": None, "changes": ["created", "deleted"]}, Level.HIGH, 100, "because the topic was deleted"),
        ({"log": (0, 510)}, Level.MODERATE, 10, "10 records that no member had finished were skipped"),
        ({"log": (0, 0)}, Level.NOTE, 0, "100 other offsets in between"),
        ({"log": (600, 5000)}, Level.NOTE, 0, "whether the records were deleted before is unknown"),
        ({"at_ms": END_MS - 2 * DAY}, Level.MODERATE, 100, "100 records"),
        ({"skipped": None, "recovered": 100}, Level.NOTE, 0, "A later request has moved back to 100 skipped records."),
    ],
)
def test_the_level_depends_on_what_was_skipped(given: dict[str, Any], level: Level, lost: int, text: str) -> None:
    (found,) = _told(**{"skipped": (500, 599), **given})
    assert (found.level, found.scale["records_lost"]) == (level, lost)
    assert text in found.impact
    assert found.symptom_confidence == "medium"
    assert (found.title == AHEAD) is (lost > 0 or "A later request" in text)


@pytest.mark.parametrize(
    ("given", "level", "text"),
    [
        ({}, Level.MODERATE, "200 records that had been acknowledged or archived will be delivered again."),
        ({"log": (400, 5000)}, Level.MODERATE, "100 records that had been"),
        ({"at_ms": END_MS - 2 * DAY}, Level.NOTE, "200 records"),
        ({"is_known": False}, Level.MODERATE, "Up to 200 records"),
    ],
)
def test_the_level_depends_on_what_is_repeated(given: dict[str, Any], level: Level, text: str) -> None:
    (found,) = _told(repeated=(300, 499), **given)
    assert (found.level, found.consequence) == (level, "work_repeated")
    assert text in found.impact


def test_nothing_between_is_no_finding() -> None:
    assert _told() == []


@pytest.mark.parametrize("given", [{"log": None}, {"log_id": "AAAAAAAAAAAAAAAAAAAAAQ"}, {"changes": ["deleted"]}])
def test_records_that_may_be_gone_are_not_to_be_read(given: dict[str, Any]) -> None:
    (found,) = _told((500, 599), **given)
    assert "still in the topic." not in found.impact
    assert not any("kafka-console-consumer" in str(each.command) or "move the" in each.what for each in found.next)
    assert "have the producing systems send them again: orders-0 500 to 599" in found.next[0].what
    (again,) = _told(repeated=(300, 499), **given)
    assert "delivered again, if they are still in the topic." in again.impact
