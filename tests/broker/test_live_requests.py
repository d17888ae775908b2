"""Tables from answers of coordinators: the rows of the log of the same broker, except for values that no answer has."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from kafka.admin import KafkaAdminClient

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources import live_requests
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_engine.sources.live_requests import LiveRequests
from kafka_records_engine.sources.waiting import pause
from kafka_records_tables import TABLES, read_table, read_tables
from kafka_records_tables.tables.requested.what_requests_tell import UNKNOWN, why_not
from tests.broker.clients import commit, wait_for_coordinators
from tests.broker.every_group import GONE, HOSTILE, PREFIX, every_group
from tests.cli.running import run
from tests.kafka_needed import skipped_without_kafka
from tools.broker import Broker

pytestmark = pytest.mark.broker

_Row = dict[str, Any]


@pytest.fixture(scope="module")
def groups(broker: Broker, admin: KafkaAdminClient) -> Iterator[list[str]]:
    """Groups of every kind, whose members do not change."""
    with every_group(broker.bootstrap, admin) as ids:
        yield ids


def _is_classic(row: _Row) -> bool:
    return bool(row["group_kind"] in ("classic", "simple"))


def _is_in_a_consumer_group(row: _Row) -> bool:
    return bool(row["group_kind"] == "consumer")


def _has_no_epoch(row: _Row) -> bool:
    """Describe has the epoch of an assignment for targets, and for share groups that of the member."""
    return _is_classic(row) or (row["role"] == "current" and row["group_kind"] != "share")


NULL_IN_SOME: Final[dict[tuple[str, str], Callable[[_Row], bool]]] = {
    ("groups", "epoch"): _is_classic,
    ("members", "member_epoch"): _is_classic,
    ("members", "protocols"): _is_in_a_consumer_group,
    ("assignments", "assignment_epoch"): _has_no_epoch,
}
"""Columns that are unknown in some rows of requests: the rows, by table and column."""

KEYS: Final = {
    "open_transactions": ("producer_id", "topic", "partition"),
    "progress": ("group_id", "topic", "partition"),
    "lag": ("group_id", "topic", "partition"),
    "group_lag": ("group_id",),
}
ONLY_ASKED: Final = {"coordinator_lag"}
"""The columns that no log has."""
ASKED_LATER: Final = {"lag_ms", "high_watermark_timestamp", "high_watermark_timestamp_ms"}


def _by_key(table: str, rows: list[_Row]) -> dict[tuple[Any, ...], _Row]:
    names = KEYS.get(table, TABLES[table].sort)
    found = {tuple(row[name] for name in names): row for row in rows}
    assert len(found) == len(rows), table
    return found


def differences(table: str, logs: list[_Row], asked: list[_Row], *, all_known: bool = False) -> list[object]:
    """The differences between the two, except for values that requests cannot know; with `all_known` these too."""
    by_log, by_request = _by_key(table, logs), _by_key(table, asked)
    found: list[object] = [*(by_log.keys() ^ by_request.keys())]
    for key in by_log.keys() & by_request.keys():
        for name, value in by_log[key].items():
            told, is_null = by_request[key][name], NULL_IN_SOME.get((table, name))
            is_unknown = name in UNKNOWN[table] or (is_null is not None and is_null(by_log[key]))
            is_unknown &= not all_known
            is_other = told is not None if is_unknown else told != value and name not in ASKED_LATER | ONLY_ASKED
            if is_other:
                found.append((key, name, value, told))
    return found


def is_seen_by_requests(row: _Row) -> bool:
    """Whether requests can show this row: descriptions have no target of share groups."""
    return row.get("group_kind") != "share" or row.get("role") != "target"


def _compare(bootstrap: str, groups: list[str], without: Collection[str] = ()) -> int:
    """Compare all tables with each other. Returns the number of rows."""
    of_groups = [name for name in UNKNOWN if TABLES[name].group == "group_id" and name != "progress"]
    others = [name for name in UNKNOWN if name not in (*of_groups, "progress")]
    compared = 0
    for names, group in ((of_groups, groups), (others, None)):
        names = [name for name in names if name not in without]
        logs = read_tables(names, LiveBrokers(bootstrap), group=group)
        asked = read_tables(names, LiveRequests(bootstrap), group=group)
        assert [each for each in asked.findings if each.severity == "damage"] == []
        for name in names:
            expected = [row for row in logs[name].table.to_pylist() if is_seen_by_requests(row)]
            assert expected, name
            assert differences(name, expected, asked[name].table.to_pylist()) == []
            compared += len(expected)
    return compared


def test_rows_are_those_of_the_log(broker: Broker, groups: list[str]) -> None:
    assert len(groups) == 13
    assert _compare(broker.bootstrap, groups) > 90


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("release", "kinds", "count"),
    [("3.9.1", (), 5), ("4.0.0", ("consumer",), 9), ("4.4.0", ("consumer", "share", "streams"), 13)],
)
def test_other_releases(release: str, kinds: tuple[str, ...], count: int, tmp_path: Path) -> None:
    settings = {"group.coordinator.rebalance.protocols": ",".join(("classic", *kinds))}
    without = {"configs", "features"} if "share" in kinds else {"share_partitions", "share_lag", "configs", "features"}
    with (
        skipped_without_kafka(),
        Broker(tmp_path, settings=settings, release=release) as broker,
        closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as admin,
    ):
        wait_for_coordinators(admin)
        with every_group(broker.bootstrap, admin, kinds) as groups:
            assert len(groups) == count
            assert _compare(broker.bootstrap, groups, without) > 30


def test_all_kinds_and_states_are_compared(broker: Broker, groups: list[str]) -> None:
    found = read_tables(["groups", "members", "assignments", "share_partitions"], LiveRequests(broker.bootstrap))
    mine = [row for row in found["groups"].table.to_pylist() if row["group_id"] in groups]
    kinds = {(row["group_kind"], row["state"] == "Empty") for row in mine}
    assert kinds == {(kind, True) for kind in ("simple", "classic", "consumer", "share", "streams")} | {
        (kind, False) for kind in ("classic", "consumer", "share", "streams")
    }
    assert GONE not in {row["group_id"] for row in found["groups"].table.to_pylist()}
    members = [row for row in found["members"].table.to_pylist() if row["group_id"] in groups]
    assert {row["instance_id"] for row in members} >= {"static-1", "static-2"}
    assert {row["subscribed_regex"] for row in members} == {None, "every_[ab]"}
    assert {row["uses_classic_protocol"] for row in members if row["group_kind"] == "consumer"} == {True, False}
    roles = {(row["group_kind"], row["role"]) for row in found["assignments"].table.to_pylist()}
    assert roles >= {("classic", "current"), ("share", "current"), ("streams", "target"), ("consumer", "target")}
    shares = [row for row in found["share_partitions"].table.to_pylist() if row["group_id"].startswith(PREFIX)]
    assert {row["group_id"]: row["start_offset"] for row in shares}[f"{PREFIX}share-emptied"] == 1
    behind = read_table("share_lag", LiveRequests(broker.bootstrap), group=f"{PREFIX}share-emptied").table.to_pylist()
    (row,) = behind
    assert row["lag"] == row["end_offset"] - 1 > 0


def test_a_group_of_any_name_is_found(broker: Broker, groups: list[str]) -> None:
    for name in ("groups", "current_offsets", "lag", "group_lag"):
        rows = read_table(name, LiveRequests(broker.bootstrap), group=HOSTILE).table.to_pylist()
        assert {row["group_id"] for row in rows} == {HOSTILE}, name
    ran = run("table", "groups", "--bootstrap", broker.bootstrap, "--source", "requests", "--group", HOSTILE)
    assert ran.status == 0
    assert "\x1b" not in ran.out
    assert "\u202e" not in ran.out
    absent = read_table("groups", LiveRequests(broker.bootstrap), group=[f"{PREFIX}simple", "nobody"])
    assert absent.table["group_id"].to_pylist() == [f"{PREFIX}simple"]
    assert [each.reason for each in absent.findings] == ["AbsentGroup"]


def test_progress_is_of_two_polls(
    broker: Broker, admin: KafkaAdminClient, groups: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {"every-moves": 1, "every-falls": 9}
    for group, offset in places.items():
        commit(admin, group, {("every_a", 1): offset})

    def move_and_pause(seconds: float) -> None:
        for group in places:
            commit(admin, group, {("every_a", 1): 5})
        pause(seconds)

    monkeypatch.setattr(live_requests, "pause", move_and_pause)
    started = time.monotonic()
    try:
        asked = read_table("progress", LiveRequests(broker.bootstrap), interval="2s")
        took = time.monotonic() - started
        logs = read_table("progress", LiveBrokers(broker.bootstrap))
    finally:
        admin.delete_groups([*places])
    rows, by_log = (
        _by_key("progress", [row for row in each.table.to_pylist() if row["group_id"].startswith(PREFIX)])
        for each in (asked, logs)
    )
    assert rows.keys() == by_log.keys()
    for key, row in rows.items():
        same = ("offset", "end_offset", "known_by", "fell_from")
        assert [row[name] for name in same] == [by_log[key][name] for name in same], key
        assert {name for name in UNKNOWN["progress"] if row[name] is not None} == set()
        if "left" in (row["reason"], by_log[key]["reason"]):
            assert (row["state"], row["reason"]) == (by_log[key]["state"], by_log[key]["reason"]), key
    states = {key: (row["state"], row["reason"]) for key, row in rows.items()}
    assert states["every-moves", "every_a", 1] == ("ok", None)
    assert states["every-falls", "every_a", 1] == ("rewound", None)
    assert states[f"{PREFIX}simple", "every_a", 0] == ("stalled or stopped", None)
    assert states[f"{PREFIX}classic", "every_b", 0] == ("idle", "left")
    assert 4 / took <= rows["every-moves", "every_a", 1]["commit_rate"] <= 4 / 1.99


def test_what_requests_cannot_fill_says_why(broker: Broker, groups: list[str]) -> None:
    source = LiveRequests(broker.bootstrap)
    for name, table in TABLES.items():
        why = why_not(table)
        if why is not None:
            with pytest.raises(LogSourceError, match="requests cannot fill") as error:
                read_table(name, source)
            assert str(error.value) == f"{source.name}: requests cannot fill {name}: {why}"
    results = read_tables(["groups", "timeline"], source)
    assert [*results] == ["groups"]
    assert results.missing == {
        "timeline": f"{source.name}: requests cannot fill timeline: {why_not(TABLES['timeline'])}"
    }
    with pytest.raises(LogSourceError, match="requests return no history of commits"):
        read_table("lag", source, window="10m")
    with pytest.raises(LogSourceError, match="requests return only the current state"):
        read_table("groups", source, as_of="1h")
    with pytest.raises(LogSourceError, match="requests return only the current state"):
        read_table("progress", source, at="1h")
    at = ("--bootstrap", broker.bootstrap, "--source", "requests")
    for words in (("report",), ("dump",), ("counts",), ("snapshot", "--output", "kept")):
        ran = run(*words, *at)
        assert ran.status == 2, words
        assert "table and sql take --source requests" in ran.err
    assert "leave out --engine spark" in run("table", "groups", *at, "--engine", "spark").err
