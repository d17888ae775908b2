"""The table `timeline`, compared with the reasons for which Kafka's coordinator classes wrote the records of the
histories."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafka_records.consumer_offsets import decode_record
from kafka_records_tables import read_table
from kafka_records_tables.coordinator.offsets import commit_lots
from kafka_records_tables.tables.words.timeline_words import MEANINGS
from tests.conftest import DATA_DIR
from tests.tables.histories import NAMES, history
from tests.tables.topic import Topic, struct
from tools.judge.cleaner import CleanedLog, cleaned_at_random, table_of

Row = dict[str, Any]

SOME = NAMES[::10]

OF_MEMBERS = (5, 10, 19)
"""The record types of the metadata of members."""
GROUPS = (2, 3, 11, 17)
"""The record types of groups."""


@cache
def _rows(name: str) -> list[Row]:
    result = read_table("timeline", history(name).rows)
    assert result.findings == ()
    rows: list[Row] = result.table.to_pylist()
    return rows


def _type(name: str, offset: int) -> int:
    return int.from_bytes(bytes.fromhex(history(name).records[offset]["key"])[:2], "big")


def _places(name: str, *events: str, kinds: tuple[str, ...] = ()) -> list[int]:
    return [
        row["log_offset"] for row in _rows(name) if row["event"] in events and (not kinds or row["group_kind"] in kinds)
    ]


def _because(name: str, *reasons: str, types: tuple[int, ...]) -> list[int]:
    """The offsets of tombstones of some types that were written for some reasons."""
    why = history(name).why
    return sorted(at for at, told in why.items() if told.get("why") in reasons and _type(name, at) in types)


@pytest.mark.parametrize("name", NAMES)
def test_who_left_is_who_the_coordinator_let_go(name: str) -> None:
    left = _because(name, "member_left", "session_timeout", "rebalance_timeout", types=OF_MEMBERS)
    assert sorted(_places(name, "member_left", kinds=("consumer", "share", "streams"))) == left

    replaced = {history(name).records[at]["batch"] for at in _because(name, "member_replaced", types=(5,))}
    told = _places(name, "member_replaced", kinds=("consumer",))
    assert {history(name).records[at]["batch"] for at in told} == replaced


@pytest.mark.parametrize("name", NAMES)
def test_a_group_ends_where_the_coordinator_deleted_it(name: str) -> None:
    ended = _because(name, "group_deleted", "group_expired", types=GROUPS)
    assert sorted(_places(name, "deleted")) == ended


@dataclass(frozen=True)
class _Plain:
    """A group that is replayed record by record, only from the types of records."""

    kind: str | None = None
    is_recorded: bool = False
    """Whether a record of the group itself exists."""
    members: frozenset[str] = frozenset()

    def behind(self, key: Any, value: Any, of: int) -> _Plain:
        """The group after a record of type `of`."""
        kind = {3: "consumer", 5: "consumer", 10: "share", 11: "share", 17: "streams", 19: "streams"}.get(of)
        if of in (0, 1):
            return _Plain("simple") if self.kind is None and value is not None else self
        if of == 2:
            kind = "classic" if value is None or value.protocol_type else "simple"
        if kind is None:
            return self
        if of in GROUPS:
            if value is None:
                return _Plain() if kind == self.kind or (kind, self.kind) == ("classic", "simple") else self
            members = {each.member_id for each in value.members} if of == 2 else self.members
            return _Plain(kind, True, frozenset(members))
        members = self.members - {key.member_id} if value is None else self.members | {key.member_id}
        return _Plain(kind if value is not None else self.kind, self.is_recorded, frozenset(members))


@cache
def _steps(name: str) -> dict[tuple[int, str], tuple[_Plain, _Plain]]:
    """By batch and group, the group before and after the batch."""
    groups: dict[str, _Plain] = {}
    steps: dict[tuple[int, str], tuple[_Plain, _Plain]] = {}
    for record in history(name).records:
        if "control" in record:
            continue
        decoded: Any = decode_record(bytes.fromhex(record["key"]), bytes.fromhex(record["value"] or "") or None)
        group = decoded.key.group if hasattr(decoded.key, "group") else decoded.key.group_id
        was = groups.get(group, _Plain())
        groups[group] = was.behind(decoded.key, decoded.value, int(record["key"][:4], 16))
        before, _ = steps.get((record["batch"], group), (was, was))
        steps[record["batch"], group] = before, groups[group]
    return steps


def _by_batch(name: str, event: str, told: Callable[[Row], Any]) -> dict[tuple[int, str], set[Any]]:
    found: dict[tuple[int, str], set[Any]] = {}
    for row in _rows(name):
        if row["event"] == event:
            found.setdefault((history(name).records[row["log_offset"]]["batch"], row["group_id"]), set()).add(told(row))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_group_is_converted_where_one_of_another_kind_takes_its_place(name: str) -> None:
    expected = {
        place: {(before.kind, after.kind)}
        for place, (before, after) in _steps(name).items()
        if None not in (before.kind, after.kind) and before.kind != after.kind
        # The first generation of a classic group is written before its members.
        and not (before.kind == "simple" and before.is_recorded and after.kind == "classic")
    }
    assert _by_batch(name, "converted", lambda row: (json.loads(row["detail"])["from"], row["group_kind"])) == expected


@pytest.mark.parametrize("name", NAMES)
def test_members_come_and_go_where_their_records_do(name: str) -> None:
    replaced = _by_batch(name, "member_replaced", lambda row: (row["member_id"], _former(row)))
    came = {place: {new for new, _ in pairs} for place, pairs in replaced.items()}
    gone = {place: {former for _, former in pairs} for place, pairs in replaced.items()}
    for event, members in (("member_joined", came), ("member_left", gone)):
        for place, names in _by_batch(name, event, lambda row: row["member_id"]).items():
            members.setdefault(place, set()).update(names)
    steps = _steps(name).items()
    assert came == {place: joined for place, (was, now) in steps if (joined := set(now.members - was.members))}
    assert gone == {place: left for place, (was, now) in steps if (left := set(was.members - now.members))}


def _former(row: Row) -> str:
    former: str = json.loads(row["detail"])["former_member_id"]
    return former


@pytest.mark.parametrize("name", NAMES)
def test_a_classic_rebalance_completes_where_the_leader_hands_in_its_assignment(name: str) -> None:
    records, why = history(name).records, history(name).why
    synced = [at for at, told in why.items() if told["call"] == "sync" and records[at]["key"].startswith("0002")]
    assert sorted(_places(name, "rebalance_completed", kinds=("classic",))) == sorted(synced)


@pytest.mark.parametrize("name", SOME)
def test_offsets_are_deleted_where_their_tombstones_stand(name: str) -> None:
    tombstones = Counter(
        (record["batch"], json.dumps([key["group"], key["topic"]]))
        for record in history(name).records
        if "key" in record and record["value"] is None and (key := _commit_key(record["key"])) is not None
    )
    told = {}
    for row in _rows(name):
        if row["event"] == "offsets_deleted":
            detail = json.loads(row["detail"])
            batch = history(name).records[row["log_offset"]]["batch"]
            told[batch, json.dumps([row["group_id"], detail["topic"]])] = detail["partitions"]
    assert told == dict(tombstones)


@pytest.mark.parametrize("name", SOME)
def test_the_first_commit_for_a_topic_is_told_once_in_a_life(name: str) -> None:
    known: set[tuple[str, str]] = set()
    expected = []
    ended = {row["log_offset"]: row["group_id"] for row in _rows(name) if row["event"] == "deleted"}
    for record in history(name).records:
        if record["offset"] in ended:
            known = {(group, topic) for group, topic in known if group != ended[record["offset"]]}
        key = _commit_key(record["key"]) if record.get("value") else None
        if key is not None and (key["group"], key["topic"]) not in known:
            known.add((key["group"], key["topic"]))
            expected.append((record["offset"], key["group"], key["topic"]))
    told = [
        (row["log_offset"], row["group_id"], json.loads(row["detail"])["topic"])
        for row in _rows(name)
        if row["event"] == "first_commit"
    ]
    assert sorted(told) == expected


def _commit_key(key: str) -> dict[str, Any] | None:
    data = bytes.fromhex(key)
    if data[:2] not in (b"\x00\x00", b"\x00\x01"):
        return None
    decoded: Any = decode_record(data, None).key
    return {"group": decoded.group, "topic": decoded.topic}


@pytest.mark.parametrize("name", SOME)
def test_what_happened_does_not_change_when_more_happens(name: str) -> None:
    for cut in history(name).cuts:
        found = read_table("timeline", history(name).up_to(cut)).table.to_pylist()
        assert found == [row for row in _rows(name) if row["log_offset"] <= cut]


def test_of_a_cleaned_log_everything_is_told_of_groups_that_no_cleaner_has_reached() -> None:
    compared = 0
    for name in SOME:
        left, active = cleaned_at_random(history(name).rows.to_pylist(), Random(name))
        result = read_table("timeline", CleanedLog(table_of(left), "__consumer_offsets", active))
        (finding,) = result.findings
        assert finding.complete_from is not None
        reached = {row["group_id"] for row in _rows(name) if row["log_offset"] < finding.complete_from}
        expected = [row for row in _rows(name) if row["group_id"] not in reached]
        assert [row for row in result.table.to_pylist() if row["group_id"] not in reached] == expected
        compared += len(expected)
    assert compared > 20


def test_every_event_happens_in_the_histories() -> None:
    told = {row["event"] for name in NAMES for row in _rows(name)}
    assert told == set(MEANINGS) - {"member_returned"}


# -- a real broker -----------------------------------------------------------------------------------------------------


def test_the_life_of_a_group_of_a_real_broker() -> None:
    rows = read_table("timeline", DATA_DIR / "topics" / "kafka-4.3" / "segments", group="inventory-sync").table
    told = [(row["epoch"], row["event"], row["duration_ms"]) for row in rows.to_pylist()]
    assert [each for each in told if each[1] not in ("member_joined", "assignment_changed", "first_commit")] == [
        (0, "created", None),
        (0, "epoch", None),
        (2, "epoch", None),
        (2, "rebalance_completed", 18),
        (3, "epoch", None),
        (3, "rebalance_completed", 5),
        (4, "epoch", None),
        (4, "rebalance_completed", 6),
    ]
    moved = rows.filter(pc.equal(rows["event"], "assignment_changed"))["detail"].to_pylist()
    assert moved[2:] == ['{"lost": {"shipments": [2]}}', '{"gained": {"shipments": [2]}}']


# -- made up -----------------------------------------------------------------------------------------------------------


def _told(topic: Topic, *names: str) -> list[tuple[Any, ...]]:
    rows = read_table("timeline", topic.table()).table.to_pylist()
    return [tuple(row[name] for name in names or ("log_offset", "event")) for row in rows]


def test_offsets_are_reset_where_a_group_that_had_members_has_none() -> None:
    topic = Topic()
    topic.commit("g", 1)
    empty = {"protocol_type": "consumer", "generation": 2, "protocol": None, "leader": None, "members": ()}
    topic.add("GroupMetadata", {"group": "g"}, empty, version=3)
    topic.commit("g", 7)
    topic.commit("g", 9, transaction="pending")

    assert _told(topic)[-2:] == [(1, "epoch"), (2, "offsets_reset")]
    assert _told(topic, "event", "detail")[-1] == (
        "offsets_reset",
        '{"topic": "orders", "partitions": 1, "lowest_offset": 7, "highest_offset": 7}',
    )


def test_a_static_member_may_leave_for_a_time() -> None:
    topic = Topic()
    key = {"group_id": "g", "member_id": "m"}
    client = {"instance_id": "i", "client_id": "c", "client_host": "/h", "subscribed_topic_names": ()}
    of_member = {"server_assignor": None, "rack_id": None, "rebalance_timeout_ms": 300}
    topic.add("ConsumerGroupMemberMetadata", key, client | of_member)
    for epoch in (1, -2, 2):
        topic.add("ConsumerGroupCurrentMemberAssignment", key, {"member_epoch": epoch, "previous_member_epoch": 0})
    told = _told(topic, "log_offset", "event", "member_id")
    assert told == [
        (0, "created", None),
        (0, "member_joined", "m"),
        (2, "member_away", "m"),
        (3, "member_returned", "m"),
    ]
    (detail,) = [each for event, each in _told(topic, "event", "detail") if event == "member_joined"]
    assert json.loads(detail) == {
        "instance_id": "i",
        "client_id": "c",
        "client_host": "/h",
        "rebalance_timeout_ms": 300,
    }


@pytest.mark.parametrize(("version", "rebalance_ms"), [(0, 45), (1, 300)])
def test_a_member_of_a_classic_group_has_its_timeouts(version: int, rebalance_ms: int) -> None:
    """The oldest version of the record has no rebalance timeout, and the session timeout counts."""
    topic = Topic()
    member = struct(
        "group_metadata",
        "MemberMetadata",
        member_id="m",
        client_id="c",
        client_host="/h",
        rebalance_timeout=300 if version else -1,
        session_timeout=45,
        subscription=b"",
        assignment=b"",
    )
    value = {"protocol_type": "consumer", "generation": 1, "protocol": "range", "leader": "m", "members": (member,)}
    topic.add("GroupMetadata", {"group": "g"}, value, version=version)
    (detail,) = [each for event, each in _told(topic, "event", "detail") if event == "member_joined"]
    timeouts = {"rebalance_timeout_ms": rebalance_ms, "session_timeout_ms": 45}
    assert json.loads(detail) == {"client_id": "c", "client_host": "/h"} | timeouts


_OF_M = {"group_id": "g", "member_id": "m"}
_CLIENT = {"client_id": "c", "client_host": "/h", "subscribed_topic_names": (), "server_assignor": None}


def _member(topic: Topic, state: int | None, epoch: int = 2) -> None:
    """A member that joins, unless there is one, and its current assignment."""
    if state is None:
        topic.add("ConsumerGroupMemberMetadata", _OF_M, _CLIENT | {"instance_id": None, "rack_id": None})
        state = 0
    current = {"member_epoch": epoch, "previous_member_epoch": 1, "state": state}
    topic.add("ConsumerGroupCurrentMemberAssignment", _OF_M, current)


def _epochs(topic: Topic, epoch: int, target: int) -> None:
    topic.add("ConsumerGroupMetadata", {"group_id": "g"}, {"epoch": epoch})
    topic.add("ConsumerGroupTargetAssignmentMetadata", {"group_id": "g"}, {"assignment_epoch": target})


def test_a_member_that_gives_up_partitions_within_its_epoch_rebalances() -> None:
    """A coordinator asks for this if the member no longer subscribes to their topic: the group is Reconciling."""
    topic = Topic()
    _epochs(topic, 2, 2)
    _member(topic, None)
    _member(topic, 1)
    _member(topic, 0)
    assert [told for told in _told(topic) if told[0] >= 4] == [(4, "rebalance_started"), (5, "rebalance_completed")]


def test_who_joins_a_group_that_waits_for_its_assignment_rebalances() -> None:
    """The epoch rose when the last member left; a new member may have to wait until an expression is resolved."""
    topic = Topic()
    _epochs(topic, 3, 2)
    _member(topic, None)
    topic.add("ConsumerGroupTargetAssignmentMetadata", {"group_id": "g"}, {"assignment_epoch": 3})
    _member(topic, 0, epoch=3)
    assert [told for told in _told(topic) if told[1].startswith("rebalance")] == [
        (2, "rebalance_started"),
        (5, "rebalance_completed"),
    ]


def test_a_converted_group_may_begin_with_the_generation_it_had() -> None:
    topic = Topic()
    empty = {"protocol_type": "consumer", "generation": 2, "protocol": None, "leader": None, "members": ()}
    topic.add("GroupMetadata", {"group": "g"}, empty, version=3)
    _member(topic, None)
    _epochs(topic, 2, 1)
    in_one_write = [(*row[:8], 1, *row[9:]) for row in topic.rows[1:]]
    topic.rows[1:] = in_one_write
    assert [event for _, event in _told(topic)][-3:] == ["converted", "member_joined", "rebalance_started"]


def test_a_group_may_begin_and_end_in_one_batch() -> None:
    topic = Topic()
    topic.commit("g", 1)
    topic.commit("g", None)
    topic.add("GroupMetadata", {"group": "g"}, None)
    topic.rows = [(*row[:8], 0, *row[9:]) for row in topic.rows]

    assert _told(topic) == [(0, "created"), (0, "first_commit"), (1, "offsets_deleted"), (2, "deleted")]


def test_a_group_may_end_and_begin_in_one_batch() -> None:
    topic = Topic()
    topic.commit("g", 1)
    topic.commit("h", 1)
    topic.add("GroupMetadata", {"group": "g"}, None)
    topic.commit("g", 3)
    for number in (2, 3):
        topic.rows[number] = (*topic.rows[number][:8], 2, *topic.rows[number][9:])

    assert [each for each in _told(topic, "log_offset", "group_id", "event") if each[1] == "g"] == [
        (0, "g", "created"),
        (0, "g", "first_commit"),
        (2, "g", "deleted"),
        (3, "g", "created"),
        (3, "g", "first_commit"),
    ]


# -- requests in several writes, and epochs of the same target ---------------------------------------------------------


def _as_classic(topic: Topic) -> None:
    members = tuple(
        struct("group_metadata", "MemberMetadata", member_id=name, client_id="c", client_host="/h",
               session_timeout=1, subscription=b"\0\0\0\0\0\0\xff\xff\xff\xff", assignment=b"")
        for name in "ab"
    )  # fmt: skip
    value = {"protocol_type": "consumer", "generation": 2, "protocol": "range", "leader": "a", "members": members}
    topic.add("GroupMetadata", {"group": "g"}, value, version=3)


def _as_consumers(topic: Topic, *, are_tombstones: bool = False) -> None:
    """The records of the group, in the order of a conversion; tombstones in the order of the one back."""

    def add(record: str, key: dict[str, Any], value: dict[str, Any]) -> None:
        topic.add(record, {"group_id": "g"} | key, None if are_tombstones else value)

    members = [{"member_id": name} for name in "ab"]
    current = {"member_epoch": 2, "previous_member_epoch": 2, "state": 0}
    steps: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        *(("ConsumerGroupMemberMetadata", key, _CLIENT | {"instance_id": None, "rack_id": None}) for key in members),
        ("ConsumerGroupMetadata", {}, {"epoch": 2}),
        ("ConsumerGroupTargetAssignmentMetadata", {}, {"assignment_epoch": 2}),
        *(("ConsumerGroupTargetAssignmentMember", key, {"topic_partitions": ()}) for key in members),
        *(("ConsumerGroupCurrentMemberAssignment", key, current) for key in members),
    ]
    if are_tombstones:
        steps = [*steps[:1:-1], *steps[:2]]
        steps.append(steps.pop(next(at for at, step in enumerate(steps) if step[0] == "ConsumerGroupMetadata")))
    for step in steps:
        add(*step)


def _in_batches(topic: Topic, *begins: int) -> Topic:
    """The same records, with batches that begin at these offsets."""
    topic.rows = [
        (*row[:8], max(begin for begin in begins if begin <= offset), *row[9:]) for offset, row in enumerate(topic.rows)
    ]
    return topic


def _converted(is_upgrade: bool) -> tuple[Topic, int]:
    """A group that is converted, and the offset of the first record of the conversion."""
    topic = Topic()
    (_as_classic if is_upgrade else _as_consumers)(topic)
    first = len(topic.rows)
    if is_upgrade:
        topic.add("GroupMetadata", {"group": "g"}, None)
        _as_consumers(topic)
    else:
        _as_consumers(topic, are_tombstones=True)
        _as_classic(topic)
    return topic, first


@pytest.mark.parametrize("is_upgrade", [True, False])
def test_a_conversion_in_two_writes_is_told_once(is_upgrade: bool) -> None:
    """If the steps of a request are chained, each is a separate write, and a batch may end after it."""
    topic, first = _converted(is_upgrade)
    kinds = ("classic", "consumer") if is_upgrade else ("consumer", "classic")
    for split in range(first + 1, len(topic.rows)):
        told = _told(_in_batches(_converted(is_upgrade)[0], 0, first, split), "event", "detail", "member_id")
        converted = [detail for event, detail, _ in told if event == "converted"]
        # The batch that ends with the end of the group is about a group that no longer exists.
        is_cut_at_end = topic.rows[split - 1][5][:2] == (b"\0\2" if is_upgrade else b"\0\3")
        assert converted == (
            [] if is_cut_at_end else [json.dumps(dict(zip(("from", "to"), kinds, strict=True)))]
        ), split
        joined = Counter(member for event, _, member in told if event == "member_joined")
        left = Counter(member for event, _, member in told if event == "member_left")
        assert joined - left == Counter("ab"), split


def test_a_member_that_joins_in_the_write_after_a_conversion_converts_nothing_again() -> None:
    topic, first = _converted(is_upgrade=True)
    second = len(topic.rows)
    _member(topic, None)
    _epochs(topic, 3, 3)
    _member(topic, 0, epoch=3)
    events = [event for event, _ in _told(_in_batches(topic, 0, first, second), "event", "log_offset")]
    assert events.count("converted") == 1
    assert events[-3:] == ["member_joined", "epoch", "rebalance_started"]


def test_two_conversions_in_one_batch_are_two() -> None:
    topic, first = _converted(is_upgrade=False)
    topic.add("GroupMetadata", {"group": "g"}, None)
    _as_consumers(topic)
    told = _told(_in_batches(topic, 0, first), "event", "detail")
    assert [json.loads(detail)["to"] for event, detail in told if event == "converted"] == ["classic", "consumer"]
    assert not [event for event, _ in told if event in ("member_left", "deleted", "emptied")]


def test_an_epoch_of_a_streams_group_may_leave_the_target_as_it_is() -> None:
    """As with a step of warm-up tasks: only the epochs are new (KAFKA-20665)."""
    topic = Topic()
    client = {"process_id": "p", "client_id": "c", "client_host": "/h", "topology_epoch": 0, "rebalance_timeout_ms": 1}
    client |= {"instance_id": None, "rack_id": None, "user_endpoint": None, "client_tags": ()}
    tasks = {"active_tasks": (), "standby_tasks": (), "warmup_tasks": ()}
    begins: list[int] = []
    topic.add("StreamsGroupMemberMetadata", _OF_M, client)
    for epoch, has_new_target in ((2, True), (3, False), (4, True)):
        begins.append(len(topic.rows) if begins else 0)
        topic.add("StreamsGroupMetadata", {"group_id": "g"}, {"epoch": epoch, "metadata_hash": 7})
        if has_new_target:
            topic.add("StreamsGroupTargetAssignmentMember", _OF_M, tasks)
        topic.add("StreamsGroupTargetAssignmentMetadata", {"group_id": "g"}, {"assignment_epoch": epoch})
    details = [detail for event, detail in _told(_in_batches(topic, *begins), "event", "detail") if event == "epoch"]
    assert [json.loads(detail).get("target") for detail in details] == [None, "unchanged", None]


def test_names_stay_data() -> None:
    topic = Topic()
    hostile = 'a"\\\n{"topic": "\u202e'
    topic.add(
        "OffsetCommit",
        {"group": hostile, "topic": hostile, "partition": 0},
        {"offset": 1, "metadata": "", "commit_timestamp": 1},
        version=4,
    )
    (first,) = [row for row in _told(topic, "event", "group_id", "detail") if row[0] == "first_commit"]
    assert first[1] == hostile
    assert json.loads(first[2]) == {"topic": hostile}


def test_a_record_that_cannot_be_decoded_tells_nothing_and_is_found() -> None:
    topic = Topic()
    at = topic.add("ConsumerGroupMetadata", {"group_id": "g"}, {"epoch": 3})
    topic.rows[at] = (*topic.rows[at][:6], b"\x00\x00\x01", *topic.rows[at][7:])
    result = read_table("timeline", topic.table())

    (finding,) = result.findings
    assert finding.consequence == "its events have no rows"
    assert [(row["event"], row["epoch"]) for row in result.table.to_pylist()] == [("created", None)]


@pytest.mark.parametrize("lot_rows", [1, 4, 1000])
def test_damaged_keys_are_counted_per_record(lot_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_lots, "LOT_ROWS", lot_rows)
    topic = Topic()
    for change in (bytes, lambda key: key[:-2], lambda key: key + b"left"):
        for _ in range(3):
            at = topic.commit("g", 1)
            topic.rows[at] = (*topic.rows[at][:5], change(topic.rows[at][5]), *topic.rows[at][6:])
    table = pa.Table.from_batches(topic.table().to_batches(max_chunksize=2))
    found, expected = (read_table(name, table) for name in ("timeline", "activity"))
    assert [each.offset for each in found.findings] == [each.offset for each in expected.findings] == [3, 4, 5]
    assert (found.counts.with_bytes_left, found.counts.bytes_left) == (3, 12)
    assert found.counts == expected.counts
