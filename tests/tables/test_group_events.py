"""Events and states of groups, over logs that Kafka's coordinator classes wrote."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from kafka_records.schemas.consumer_offsets import RECORDS
from kafka_records_engine.sources import Context
from kafka_records_tables.coordinator.groups.group_log import GroupLog
from kafka_records_tables.coordinator.groups.group_model import ROLES
from kafka_records_tables.coordinator.groups.group_states import GroupState, GroupStates, Transition
from kafka_records_tables.coordinator.groups.groups_before import GroupsBefore
from kafka_records_tables.coordinator.groups.record_names import GROUP_RECORDS, PARTS
from kafka_records_tables.coordinator.offsets.commit_lots import CommitLot
from tests.tables.coordinator_state import held
from tests.tables.histories import NAMES, history
from tests.tables.topic import Topic

SOME = NAMES[::12]


def _events(rows: pa.Table, at_once: int | None = None) -> list[Transition]:
    """The events; `at_once` rows are replayed at a time, or all together."""
    context = Context(topic="__consumer_offsets")
    log = GroupLog(RECORDS)
    found = []
    for batch in rows.combine_chunks().to_batches(max_chunksize=at_once):
        lot = log.add(batch, CommitLot(batch, RECORDS))
        lot.report(context, "")
        found += lot.transitions
    assert not context.findings
    return found


@cache
def _of_history(name: str) -> list[Transition]:
    return _events(history(name).rows)


def _groups(found: list[Transition], last: int) -> dict[str, GroupState]:
    """The groups that exist after the record at the offset `last`."""
    groups = {each.group_id: each.after for each in found if each.event.offset <= last}
    return {name: state for name, state in groups.items() if state is not None}


@pytest.mark.parametrize("name", NAMES)
def test_groups_are_those_of_the_coordinator_at_every_cut(name: str) -> None:
    kinds = {"Classic": ("classic", "simple"), "Consumer": ("consumer",), "Share": ("share",), "Streams": ("streams",)}
    for cut, questions in history(name).cuts.items():
        (listed,) = (question["answer"] for question in questions if question["question"] == "list_groups")
        groups = _groups(_of_history(name), cut)

        assert {each["groupId"]: each["groupState"] for each in listed} == {
            group_id: group.state for group_id, group in groups.items()
        }
        assert all(groups[each["groupId"]].kind in kinds[each["groupType"].capitalize()] for each in listed)


@pytest.mark.parametrize("name", SOME)
def test_what_happened_does_not_depend_on_how_many_rows_come_at_once(name: str) -> None:
    assert _events(history(name).rows, at_once=7) == _of_history(name)


@pytest.mark.parametrize("name", SOME)
def test_every_record_of_a_group_is_an_event_and_of_commits_those_that_make_one(name: str) -> None:
    records = history(name).records
    of_groups = [each["offset"] for each in records if each.get("key", "0000")[:4] not in ("0000", "0001")]
    found = _of_history(name)

    assert [each.event.offset for each in found if each.event.record in ROLES] == of_groups
    for each in found:
        assert records[each.event.offset]["batch"] == each.batch_offset
        assert records[each.event.offset]["timestamp_ms"] == each.event.timestamp_ms
        if each.event.record not in ROLES:
            assert each.before is None
            assert each.after == GroupState("simple", "Empty", None, 0, frozenset(), is_settled=False)


@pytest.mark.parametrize("name", SOME)
def test_topics_are_those_that_protect_offsets(name: str) -> None:
    """`expirations` is compared with the coordinator's clean-ups by these topics."""
    context = Context(topic="__consumer_offsets")
    kept = held(history(name).rows, context, ("OffsetCommit", *GROUP_RECORDS, *PARTS))
    groups = _groups(_of_history(name), len(history(name).records))

    assert any(each.after is not None and each.after.topics for each in _of_history(name))
    assert {group_id: group.topics for group_id, group in kept.groups.items() if group.kind != "simple"} == {
        group_id: group.topics for group_id, group in groups.items() if group.kind != "simple"
    }


@pytest.mark.parametrize("name", SOME)
def test_states_are_looked_up_for_many_places_at_once(name: str) -> None:
    found = _of_history(name)
    states = GroupStates(found)
    names = sorted({each.group_id for each in found})
    places = [(group, at) for at in range(len(history(name).records)) for group in (*names, "nobody", None)]
    groups, offsets = pa.array([group for group, _ in places], pa.string()), np.array([at for _, at in places])
    before, after = states.before(groups, offsets), states.after(groups, offsets)

    there: dict[str, GroupState | None] = {}
    by_offset = {each.event.offset: each for each in found}
    expected_before, expected_after = [], []
    for at in range(len(history(name).records)):
        expected_before += [there.get(group) for group in (*names, "nobody", "nobody")]
        if at in by_offset:
            there[by_offset[at].group_id] = by_offset[at].after
        expected_after += [there.get(group) for group in (*names, "nobody", "nobody")]
    assert [before.states[number] for number in before.numbers] == expected_before
    assert [after.states[number] for number in after.numbers] == expected_after
    assert after.exists.tolist() == [state is not None for state in expected_after]
    assert after.is_empty.tolist() == [state is not None and state.state == "Empty" for state in expected_after]
    for column in ("kind", "state", "epoch", "member_count"):
        told = [state and getattr(state, column) for state in expected_after]
        assert getattr(after, column).to_pylist() == told


def test_what_is_forgotten_does_not_change_later_answers() -> None:
    name = SOME[1]
    found, records = _of_history(name), history(name).records
    names = pa.array(sorted({each.group_id for each in found}))
    whole, states = GroupStates(found), GroupStates()
    live: set[str] = set()
    for each in found:
        states.add(each)
        live = live - {each.group_id} if each.after is None else live | {each.group_id}
        states.forget(each.event.offset + 1)
        assert states.remembered == len(live)
        places = np.full(len(names), each.event.offset)
        got, expected = states.after(names, places), whole.after(names, places)
        assert [got.states[number] for number in got.numbers] == [expected.states[at] for at in expected.numbers]
        assert got.told_at == expected.told_at
    assert len(records) > len(found) > len(live) > 0


def test_a_log_without_records_has_no_groups() -> None:
    assert _events(Topic().table()) == []
    assert GroupStates().before(pa.array(["g"]), np.array([3])).exists.tolist() == [False]


def test_a_group_that_was_deleted_is_made_again_by_the_next_commit() -> None:
    topic = Topic()
    topic.commit("g", 1)
    topic.commit("g", 2)
    topic.commit("h", 2)
    topic.add("GroupMetadata", {"group": "g"}, None)
    topic.commit("g", None)
    topic.commit("g", 3)
    topic.commit("g", 4)

    for at_once in (None, 1, 3):
        found = _events(topic.table(), at_once)
        assert [(each.event.offset, each.group_id, each.event.record) for each in found] == [
            (0, "g", "OffsetCommit"),
            (2, "h", "OffsetCommit"),
            (3, "g", "GroupMetadata"),
            (5, "g", "OffsetCommit"),
        ]
        assert [each.after is None for each in found] == [False, False, True, False]
        assert found[3].event.key == ("g", "orders", 0)


def test_a_tombstone_that_a_cleaner_left_of_another_group_makes_none() -> None:
    """The coordinator that wrote it had a group of that kind before, so the events differ from what a load would result
    in."""
    topic = Topic()
    topic.commit("g", 1)
    topic.add("ConsumerGroupMemberMetadata", {"group_id": "g", "member_id": "m"}, None)
    made, left = _events(topic.table())
    assert (made.after, left.before, left.after) == (left.before, left.after, made.after)
    assert left.after is not None
    assert left.after.kind == "simple"
    assert GroupStates([made, left]).remembered == 1


def test_a_share_group_is_settled_when_every_member_has_its_epoch() -> None:
    topic = Topic()
    topic.add("ShareGroupMetadata", {"group_id": "g"}, {"epoch": 2})
    for member in "mn":
        key = {"group_id": "g", "member_id": member}
        told = {"rack_id": None, "client_id": "c", "client_host": "/h", "subscribed_topic_names": ("orders",)}
        topic.add("ShareGroupMemberMetadata", key, told)
    for member, epoch in (("m", 1), ("m", 2), ("n", 2)):
        value = {"member_epoch": epoch, "previous_member_epoch": epoch - 1, "state": 0, "assigned_partitions": ()}
        topic.add("ShareGroupCurrentMemberAssignment", {"group_id": "g", "member_id": member}, value)
    # The key of a member's record cannot be read.
    topic.add_bytes(topic.rows[-1][5][:-1] + b"o", b"\x00\x00\x00")
    (batch,) = topic.table().combine_chunks().to_batches()
    log = GroupLog(RECORDS)
    after = [each.after for each in log.add(batch, CommitLot(batch, RECORDS)).transitions[-4:]]
    assert [state and (state.state, state.is_settled) for state in after] == [
        ("Stable", False),
        ("Stable", False),
        ("Stable", True),
        (None, True),
    ]
    group = log._groups.get("g")
    assert group is not None
    assert dict(group.reached) == {(2, 0): 2, (0, 0): 1}


def test_where_a_member_last_came_or_went() -> None:
    topic = Topic()
    member = {"client_id": "c", "client_host": "/h", "subscribed_topic_names": ("orders",)}
    topic.add("ConsumerGroupMemberMetadata", {"group_id": "g", "member_id": "m"}, member)
    topic.add("ConsumerGroupMetadata", {"group_id": "g"}, {"epoch": 1})
    topic.add("ConsumerGroupMetadata", {"group_id": "g"}, None)
    topic.commit("g", 1)
    states = GroupStates(_events(topic.table())).after(pa.array(["g"] * 4), np.arange(4))
    assert states.told_at.to_pylist() == [0, 0, None, None]


@pytest.mark.parametrize(("since_ms", "known_ms"), [(7, 7), (-1, None)])
def test_since_when_a_classic_group_is_in_its_state(since_ms: int, known_ms: int | None) -> None:
    topic = Topic()
    value = {"protocol_type": "consumer", "generation": 1, "protocol": None, "leader": None, "members": ()}
    value["current_state_timestamp"] = since_ms
    topic.add("GroupMetadata", {"group": "g"}, value, version=3)
    (batch,) = topic.table().combine_chunks().to_batches()
    log, groups = GroupLog(RECORDS), GroupsBefore()
    groups.add(log.add(batch, CommitLot(batch, RECORDS)).transitions)
    groups.up_to(1)
    group, whole = groups.get("g"), log._groups.get("g")
    assert group is not None
    assert whole is not None
    assert (group.since_ms, group.protocol_type, group.has_record) == (known_ms, "consumer", True)
    assert whole.state_since_ms == known_ms


def test_rows_without_batches_are_batches_of_their_own() -> None:
    topic = Topic()
    topic.commit("g", 1)
    topic.add("GroupMetadata", {"group": "g"}, None)

    found = _events(topic.table().drop_columns(["base_offset"]))
    assert [each.batch_offset for each in found] == [0, 1]
