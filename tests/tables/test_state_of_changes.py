"""The state for a log that arrives in pieces: enough for everything that follows, and nothing that no longer
matters."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from tests.tables.test_changes import Followed, pieces
from tests.tables.topic import Topic
from tests.variants import mostly, one_in

OF_GROUPS = ("groups", "members", "assignments", "regressions")

KINDS: dict[str, dict[str, dict[str, Any]]] = {
    "Consumer": {
        "GroupMetadata": {"epoch": 1},
        "GroupTargetAssignmentMetadata": {"assignment_epoch": 1},
        "GroupMemberMetadata": {},
        "GroupCurrentMemberAssignment": {"member_epoch": 1},
        "GroupTargetAssignmentMember": {},
        "GroupRegularExpression": {},
        "GroupPartitionMetadata": {},
    },
    "Share": {
        "GroupMetadata": {"epoch": 1},
        "GroupTargetAssignmentMetadata": {"assignment_epoch": 1},
        "GroupMemberMetadata": {},
        "GroupCurrentMemberAssignment": {"member_epoch": 1},
        "GroupTargetAssignmentMember": {},
        "GroupStatePartitionMetadata": {},
    },
    "Streams": {
        "GroupMetadata": {"epoch": 1},
        "GroupTargetAssignmentMetadata": {"assignment_epoch": 1},
        "GroupMemberMetadata": {},
        "GroupCurrentMemberAssignment": {"member_epoch": 1},
        "GroupTargetAssignmentMember": {},
        "GroupTopology": {"epoch": 1},
    },
}
"""Records of the newer kinds of groups, by the prefix of their names, with their fields that differ from the
defaults."""

OF_MEMBERS = ("GroupMemberMetadata", "GroupTargetAssignmentMember", "GroupCurrentMemberAssignment")
EXPRESSION = "GroupRegularExpression"


def key_of(record: str, group: str, member: str) -> dict[str, str]:
    if record in OF_MEMBERS:
        return {"group_id": group, "member_id": member}
    return {"group_id": group, "regular_expression": member} if record == EXPRESSION else {"group_id": group}


class Groups(Topic):
    """Groups whose members join and leave, with the records of a coordinator in its order."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind
        self._epoch = 0

    def tell(self, record: str, group: str, member: str = "", *, is_gone: bool = False) -> None:
        """Write a record of a group, or its tombstone."""
        value = dict(KINDS[self._kind][record])
        for name in ("epoch", "assignment_epoch", "member_epoch"):
            if name in value:
                value[name] = self._epoch
        self.add(self._kind + record, key_of(record, group, member), None if is_gone else value)

    def join(self, group: str, member: str) -> None:
        self._epoch += 1
        self.tell("GroupMemberMetadata", group, member)
        self.tell("GroupMetadata", group)
        self.tell("GroupTargetAssignmentMember", group, member)
        self.tell("GroupTargetAssignmentMetadata", group)
        self.tell("GroupCurrentMemberAssignment", group, member)

    def leave(self, group: str, member: str) -> None:
        self._epoch += 1
        for record in reversed(OF_MEMBERS):
            self.tell(record, group, member, is_gone=True)
        self._reassign(group)

    def _reassign(self, group: str) -> None:
        self.tell("GroupMetadata", group)
        self.tell("GroupTargetAssignmentMetadata", group)

    def end(self, group: str) -> None:
        for record in ("GroupTargetAssignmentMetadata", "GroupMetadata"):
            self.tell(record, group, is_gone=True)


def kept(followed: Followed) -> int:
    """The number of stored rows or, for a table that stores its own state, the bytes of that state."""
    assert followed.state is not None
    rows = followed.state.rows
    return len(rows.column("kept")[0].as_py()) if "kept" in rows.schema.names else int(rows.num_rows)


# -- what is gone leaves -----------------------------------------------------------------------------------------------

COME_AND_GO = 2_000


def come_and_go(kind: str, members: int) -> pa.Table:
    """A group with a member that stays, and others that join one after another and leave when the next has joined."""
    log = Groups(kind)
    log.commit("g", 1)
    log.join("g", "stays")
    for number in range(members):
        log.join("g", f"member-{number}")
        if number:
            log.leave("g", f"member-{number - 1}")
    return log.table()


def even(log: pa.Table, count: int) -> Iterator[tuple[pa.Table, pa.Table]]:
    """A log in `count` pieces of similar size, and the log up to the end of each."""
    for begin, end in pairwise(log.num_rows * part // count for part in range(count + 1)):
        yield log.slice(begin, end - begin), log.slice(0, end)


@pytest.mark.parametrize("kind", one_in(3, ["Consumer", "Share", "Streams"]))
@pytest.mark.parametrize("name", mostly(((name,) for name in OF_GROUPS), lambda name: name == "groups"))
def test_members_that_come_and_go_leave_nothing(name: str, kind: str) -> None:
    followed, most = Followed(name), []
    log = come_and_go(kind, COME_AND_GO)
    for piece, _ in even(log, 10):
        followed.take(piece)
        most.append(kept(followed))
    assert followed.rows == followed.expected(log)
    # These are rows of the group, of the member that stays, of members that are joining or leaving, and of the first
    # and the last member.
    assert max(most) <= 24
    assert most[-1] <= most[1] + 6


def test_explained_members_that_come_and_go_leave_nothing() -> None:
    """Except for the members of the last minute, in which one record per second was written."""
    log, sizes = come_and_go("Consumer", 300), []
    at = log.schema.get_field_index("timestamp_ms")
    times = pa.array([number * 1000 for number in range(log.num_rows)], pa.int64())
    followed = Followed("disappearances")
    for piece, _ in even(log.set_column(at, log.schema.field(at), times), 6):
        followed.take(piece)
        sizes.append(kept(followed))
    assert sizes[-1] - sizes[1] < 200


@pytest.mark.parametrize("name", ["current_offsets", "pending_offsets", "groups"])
def test_offsets_that_come_and_go_leave_nothing(name: str) -> None:
    log, followed = Topic(), Followed(name)
    log.commit("g", 1)
    for number in range(300):
        key = {"group": "g", "topic": f"topic-{number}", "partition": 0}
        value = {"offset": number, "metadata": "", "commit_timestamp": 1_700_000_000_000}
        producer = 7 if number % 3 == 0 else None
        log.add("OffsetCommit", key, value, transaction="none" if producer is None else "open", producer=producer)
        if producer:
            log.marker("commit" if number % 2 else "abort", producer=producer)
        log.add("OffsetCommit", key, None)
    most = []
    for piece, so_far in even(log.table(), 7):
        followed.take(piece)
        assert followed.rows == followed.expected(so_far)
        most.append(kept(followed))
    assert max(most) <= 4


@pytest.mark.parametrize("kind", mostly(((kind,) for kind in KINDS), lambda kind: kind == "Consumer"))
def test_members_of_groups_that_are_over_leave_nothing(kind: str) -> None:
    """If a group may still be reported as rewound when it starts over, its commits and its last offset stay."""
    log, followed = Groups(kind), Followed("regressions")
    for number in range(8):
        log.commit("g", 100 - number)
        log.join("g", f"member-{number}")
        log.join("g", f"other-{number}")
        log.leave("g", f"member-{number}")
        log.leave("g", f"other-{number}")
        log.commit("g", None)
        log.end("g")
    rows = log.table()
    for piece, so_far in even(rows, 8):
        followed.take(piece)
        assert followed.rows == followed.expected(so_far)
    assert followed.state is not None
    assert len(followed.rows) == 7
    assert followed.state.rows["offset"].to_pylist()[-1] == rows.num_rows - 1
    assert kept(followed) <= 5


# -- what may still be needed stays ------------------------------------------------------------------------------------


def at_random(seed: int, count: int) -> pa.Table:
    """Records of two groups in any order, of all kinds, some of them deleted before they existed."""
    chance, log = random.Random(seed), Topic()
    # Each seed has few kinds and few records, because otherwise groups never end.
    kinds = chance.sample([*KINDS], chance.choice([1, 1, 2]))
    for _ in range(count):
        group, member, what = chance.choice("gh"), chance.choice("abc"), chance.random()
        value_comes = chance.random() < 0.55
        if what < 0.15:
            producer = chance.choice([None, 7, 8])
            transaction = "none" if producer is None else "open"
            offset = chance.randrange(9) if value_comes else None
            log.commit(group, offset, transaction=transaction, producer=producer)
        elif what < 0.2:
            log.marker(chance.choice(["commit", "abort"]), producer=chance.choice([7, 8]))
        elif what < 0.24:
            value = {"protocol_type": chance.choice(["", "consumer"]), "generation": 1, "members": []}
            log.add("GroupMetadata", {"group": group}, value if value_comes else None)
        else:
            kind = chance.choice(kinds)
            record = chance.choice([*KINDS[kind], *OF_MEMBERS, "GroupMetadata"])
            value = KINDS[kind][record] | {name: chance.randrange(3) for name in KINDS[kind][record]}
            log.add(kind + record, key_of(record, group, member), value if value_comes else None)
    return log.table()


def check_at_random(name: str, seed: int, count: int) -> None:
    followed, log = Followed(name), at_random(seed, count)
    for piece, so_far in pieces(log, (name, seed), most=count // 4):
        followed.take(piece)
        assert followed.rows == followed.expected(so_far), (name, seed)


@pytest.mark.parametrize("name", ["groups", "current_offsets"])
def test_what_left_is_never_missed(name: str) -> None:
    check_at_random(name, 1, 40)


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize("name", ["groups", "members", "assignments", "current_offsets", "pending_offsets"])
def test_what_left_is_never_missed_in_many_logs(name: str) -> None:
    for seed in range(20):
        check_at_random(name, seed, 80)


class Pieces(Groups):
    """Groups of the newer consumer protocol, with a table that is updated at every cut."""

    def __init__(self, name: str) -> None:
        super().__init__("Consumer")
        self._followed = Followed(name)
        self._told = 0

    def cut(self) -> list[dict[str, Any]]:
        """The rows of the table, which must be those over the whole log."""
        log = self.table()
        self._followed.take(log.slice(self._told))
        self._told = log.num_rows
        assert self._followed.rows == self._followed.expected(log)
        return [*self._followed.rows.values()]

    def come_and_go(self, *members: str) -> None:
        for member in members:
            self.tell("GroupMemberMetadata", "g", member)
            self.tell("GroupMemberMetadata", "g", member, is_gone=True)


def test_a_group_without_a_record_of_its_own_is_made_by_members_that_left() -> None:
    log = Pieces("groups")
    log.come_and_go("first", "between", "last")
    log.tell("GroupTargetAssignmentMetadata", "g")
    log.cut()
    log.come_and_go("first", "last")
    log.tell("GroupTargetAssignmentMetadata", "g", is_gone=True)
    (row,) = log.cut()
    assert row["log_offset"] == 2


def test_a_group_without_a_target_is_made_by_members_that_left() -> None:
    """The tombstone of the target matters if the group exists."""
    log = Pieces("groups")
    log.come_and_go("first", "between", "last")
    log.tell("GroupMetadata", "g")
    log.cut()
    log.tell("GroupTargetAssignmentMetadata", "g", is_gone=True)
    log.tell("GroupMemberMetadata", "g", "first")
    log.tell("GroupMemberMetadata", "g", "last")
    log.tell("GroupMetadata", "g")
    (row,) = log.cut()
    assert row["state"] == "Assigning"


def test_a_simple_group_lasts_when_its_offsets_are_deleted() -> None:
    log = Pieces("groups")
    log.commit("g", 1)
    log.commit("g", None)
    assert len(log.cut()) == 1
    log.add("GroupMetadata", {"group": "g"}, None)
    assert log.cut() == []


def test_evidence_names_the_last_record_of_members_that_left() -> None:
    for first in ("first", None):
        log = Pieces("regressions")
        if first:
            log.come_and_go(first)
        log.come_and_go("last")
        told_at = len(log.rows) - 1
        log.commit("g", 9)
        for _ in range(2):
            log.tell("GroupMetadata", "g")
            log.tell("GroupTargetAssignmentMetadata", "g")
            log.cut()
        log.commit("g", 3)
        (row,) = log.cut()
        shown = {"shows": "group", "log_offset": told_at}
        assert (row["kind"], row["evidence"]) == ("reset_while_empty", [shown])


@pytest.mark.parametrize("is_over", [False, True])
def test_a_fall_that_waits_for_its_marker_is_of_the_members_of_its_time(is_over: bool) -> None:
    log = Pieces("regressions")
    log.tell("GroupMetadata", "g")
    log.tell("GroupTargetAssignmentMetadata", "g")
    log.come_and_go("first")
    log.commit("g", 9)
    log.tell("GroupMemberMetadata", "g", "between")
    log.commit("g", 3, transaction="open", producer=7)
    log.tell("GroupMemberMetadata", "g", "between", is_gone=True)
    log.come_and_go("last")
    if is_over:
        log.end("g")
    log.cut()
    log.marker("commit", producer=7)
    (row,) = log.cut()
    assert (row["kind"], row["to_offset"]) == ("rewind_by_member", 3)


def test_a_tombstone_takes_along_what_waits_before_it() -> None:
    """So neither of them must be kept."""
    for name in ("current_offsets", "pending_offsets"):
        log = Pieces(name)
        log.commit("g", 1, transaction="open", producer=7)
        log.commit("g", None)
        key = {"group": "g", "topic": "other", "partition": 0}
        log.add("OffsetCommit", key, {"offset": 2, "metadata": "", "commit_timestamp": 0}, producer=None)
        log.cut()
        log.marker("commit", producer=7)
        assert {row["topic"] for row in log.cut()} <= {"other"}
