"""A table over a log that arrives in pieces: at every cut, its changes add up to the table over all pieces so far."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_tables import TABLES, read_table
from kafka_records_tables.engines.checked_request import request_of
from kafka_records_tables.engines.incremental import (
    AS_OF_OFFSET,
    CHANGE,
    DELETE,
    IncrementalTable,
    LogState,
    NewRows,
    OutOfOrder,
)
from kafka_records_tables.engines.spark_tasks import DamageFound, FailFast
from kafka_records_tables.tables.declaration import can_go_on
from tests.tables.histories import NAMES, history
from tests.tables.topic import Topic

GO_ON = [
    name
    for name, table in TABLES.items()
    if can_go_on(table) and table.reader.form_of_kept is None and table.topic == "__consumer_offsets"
]
"""`disappearances` has separate tests, because its intermediate rows may change."""
USUAL = ("offset_commits", "current_offsets", "groups")
Row = dict[str, Any]


class Followed:
    """The rows of a table, updated by changes."""

    def __init__(self, name: str, going_on: IncrementalTable | None = None) -> None:
        self.table = TABLES[name]
        self.going_on = going_on or IncrementalTable(request_of(name))
        self.columns = list(dict.fromkeys(("offset", "key", "value", "control", *self.table.reads)))
        self.state: LogState | None = None
        self.rows: dict[tuple[Any, ...], Row] = {}

    def take(self, came: pa.Table, seen: pa.Table | None = None, now_ms: int = 0) -> list[Row]:
        """The changes; each must really change something."""
        piece = NewRows(came.select(self.columns), seen, now_ms)
        self.state, told = self.going_on.step(0, self.state, piece)
        changes: list[Row] = told.to_pylist()
        for change in changes:
            row = {name: change[name] for name in self.table.names}
            identity = tuple(row[name] for name in self.table.identity)
            assert change[AS_OF_OFFSET] == self.state.read_to or (seen and change[AS_OF_OFFSET] < self.state.read_to)
            if change[CHANGE] == DELETE:
                assert self.rows.pop(identity) == row
            else:
                assert self.rows.get(identity) != row
                self.rows[identity] = row
        return changes

    def expected(self, log: pa.Table) -> dict[tuple[Any, ...], Row]:
        """The rows of the table over a log."""
        rows = read_table(self.table, log).table.to_pylist()
        found = {tuple(row[name] for name in self.table.identity): row for row in rows}
        assert len(found) == len(rows)
        return found


def pieces(log: pa.Table, seed: object, most: int = 6) -> Iterator[tuple[pa.Table, pa.Table]]:
    """A log in pieces, each shuffled and with rows twice, and the log up to its end."""
    chance = random.Random(str(seed))
    ends = sorted({*(chance.randrange(1, log.num_rows) for _ in range(most)), log.num_rows})
    begin = 0
    for end in ends:
        rows = [*range(begin, end), *chance.sample(range(begin, end), (end - begin) // 3)]
        chance.shuffle(rows)
        yield log.take(rows), log.slice(0, end)
        begin = end


def check(name: str, histories: list[str]) -> None:
    for each in histories:
        followed = Followed(name)
        for piece, log in pieces(history(each).rows, (name, each)):
            followed.take(piece)
            assert followed.rows == followed.expected(log), each


@pytest.mark.parametrize("name", USUAL)
def test_changes_add_up_to_the_table_at_every_cut(name: str) -> None:
    check(name, NAMES[::30])


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize("name", GO_ON)
def test_changes_of_all_histories_add_up(name: str) -> None:
    check(name, NAMES)


def test_the_usual_tables_go_on() -> None:
    assert set(USUAL) <= set(GO_ON)


# -- markers that come later -------------------------------------------------------------------------------------------


def test_a_commit_waits_for_its_marker() -> None:
    topic, followed, facts = Topic(), Followed("current_offsets"), Followed("offset_commits")
    topic.commit("g", 1)
    topic.commit("g", 2, transaction="open", producer=7)
    log = topic.table()
    assert [row["offset"] for row in followed.take(log)] == [1]
    assert [(row["offset"], row["transaction"]) for row in facts.take(log)] == [(1, "none"), (2, "open")]

    topic.commit("h", 5)
    came = topic.table().slice(2)
    assert [row["group_id"] for row in followed.take(came)] == ["h"]
    assert [row["group_id"] for row in facts.take(came)] == ["h"]
    assert facts.state is not None
    assert facts.state.rows["offset"].to_pylist() == [1]

    topic.marker("commit", producer=7)
    came = topic.table().slice(3)
    assert [(row["group_id"], row["offset"], row[CHANGE]) for row in followed.take(came)] == [("g", 2, "upsert")]
    assert [(row["offset"], row["transaction"]) for row in facts.take(came)] == [(2, "committed")]
    assert facts.state.rows.num_rows == 0
    assert followed.rows == followed.expected(topic.table())


def test_a_transaction_that_has_ended_is_not_decided_again() -> None:
    topic, followed = Topic(), Followed("current_offsets")
    topic.commit("g", 1, transaction="open", producer=7)
    topic.marker("commit", producer=7)
    followed.take(topic.table())
    topic.commit("g", 2, transaction="open", producer=7)
    topic.marker("abort", producer=7)
    assert followed.take(topic.table().slice(2)) == []
    assert followed.rows == followed.expected(topic.table())


def test_a_tombstone_goes_before_a_commit_that_waited_and_stands_before_it() -> None:
    topic, followed = Topic(), Followed("current_offsets")
    topic.commit("g", 1, transaction="open", producer=7)
    followed.take(topic.table())
    topic.commit("g", None)
    followed.take(topic.table().slice(1))
    topic.marker("commit", producer=7)
    assert followed.take(topic.table().slice(2)) == []
    assert followed.state is not None
    assert followed.state.rows.num_rows == 0


@pytest.mark.parametrize("seed", range(2))
def test_falls_are_told_whatever_stands_between_the_pieces(seed: int) -> None:
    """With random commits, interleaved sequences, deletions and transactions."""
    chance, topic, followed = random.Random(seed), Topic(), Followed("regressions")
    rising = [0, 0]
    for _ in range(150):
        group, what = chance.choice("gh"), chance.random()
        if what < 0.05:
            topic.commit(group, None)
        elif what < 0.15:
            topic.marker(chance.choice(["commit", "abort"]), producer=chance.choice([7, 8]))
        else:
            which = chance.randrange(2)
            rising[which] += chance.randrange(5)
            producer = chance.choice([None, None, 7, 8])
            offset = 100 * which + rising[which] if chance.random() < 0.9 else 0
            topic.commit(group, offset, transaction="none" if producer is None else "open", producer=producer)
    for piece, log in pieces(topic.table(), seed, most=30):
        followed.take(piece)
        assert followed.rows == followed.expected(log)
    assert {"sawtooth", "after_deletion"} <= {row["kind"] for row in followed.rows.values()}


def test_a_fall_is_told_by_what_the_group_was_when_its_commit_was_written() -> None:
    """The record of the group may be rewritten with other content before the marker comes."""
    topic, followed = Topic(), Followed("regressions")
    classic = {"protocol_type": "consumer", "generation": 1, "protocol": None, "leader": None, "members": ()}
    topic.add("GroupMetadata", {"group": "g"}, classic, version=3)
    topic.commit("g", 5)
    topic.commit("g", 3, transaction="open", producer=7)
    ends = [topic.add("GroupMetadata", {"group": "g"}, classic | {"protocol_type": ""}, version=3) + 1]
    topic.marker("commit", producer=7)
    ends.append(topic.add("GroupMetadata", {"group": "g"}, classic, version=3) + 1)
    for begin, end in zip([0, *ends], ends, strict=False):
        log = topic.table().slice(0, end)
        followed.take(log.slice(begin))
        assert followed.rows == followed.expected(log)
    assert [row["group_kind"] for row in followed.rows.values()] == ["classic"]


@pytest.mark.parametrize("between", [[("GroupMetadata", {"group": "g"})], []], ids=["its group has ended", "none"])
def test_a_tombstone_of_a_member_that_is_not_there_is_no_evidence(between: list[tuple[str, dict[str, str]]]) -> None:
    """The records through which the group existed before may be overwritten by then."""
    topic, followed = Topic(), Followed("regressions")
    topic.commit("g", 5)
    for record, key in between:
        topic.add(record, key, None)
        topic.commit("g", 5)
    topic.add("ConsumerGroupMemberMetadata", {"group_id": "g", "member_id": "m"}, None)
    topic.commit("g", 6)
    before = topic.table()
    followed.take(before)
    topic.commit("g", 7)
    followed.take(topic.table().slice(before.num_rows))
    topic.commit("g", 1)
    followed.take(topic.table().slice(before.num_rows + 1))
    assert followed.rows == followed.expected(topic.table())
    (row,) = followed.rows.values()
    assert row["evidence"] == []


# -- what is kept ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["current_offsets", "groups"])
def test_groups_that_are_over_leave_nothing(name: str) -> None:
    topic, followed = Topic(), Followed(name)
    topic.commit("stays", 1)
    for number in range(40):
        group = f"console-consumer-{number}"
        topic.add("GroupMetadata", {"group": group}, {"protocol_type": "consumer", "generation": 1, "members": []})
        topic.commit(group, number)
        topic.commit(group, None)
        topic.add("GroupMetadata", {"group": group}, None)
    for piece, log in pieces(topic.table(), name):
        followed.take(piece)
        assert followed.rows == followed.expected(log)
    assert followed.state is not None
    assert followed.state.rows["offset"].to_pylist() == [0]


def test_a_group_that_commits_for_ever_keeps_a_record_of_each_key() -> None:
    topic, followed = Topic(), Followed("groups")
    for number in range(50):
        topic.commit("g", number)
    for piece, _ in pieces(topic.table(), "for ever"):
        followed.take(piece)
    assert followed.state is not None
    assert followed.state.rows.num_rows == 1


# -- rows that come twice, or late -------------------------------------------------------------------------------------


def test_a_row_below_what_was_read_is_an_error_or_left_out() -> None:
    topic = Topic()
    topic.commit("g", 1)
    topic.commit("g", 2)
    request = request_of("current_offsets")
    strict, lenient = (
        Followed("current_offsets", IncrementalTable(request, is_lenient=each)) for each in (False, True)
    )
    for followed in (strict, lenient):
        followed.take(topic.table())
    topic.commit("g", 3)
    assert [row["offset"] for row in lenient.take(topic.table())] == [3]
    with pytest.raises(OutOfOrder) as caught:
        strict.take(topic.table())
    assert str(caught.value) == (
        "__consumer_offsets-0: a row of offset 0 came after the log was read up to 2: it was read twice, or comes too "
        'late. A stream must have each log partition in order, as brokers send it; mode "PERMISSIVE" leaves '
        "such rows out"
    )


# -- damage ------------------------------------------------------------------------------------------------------------


def test_damage_is_told_once_of_what_came() -> None:
    topic = Topic()
    topic.commit("g", 1)
    topic.commit("h", 1)
    topic.add_bytes(topic.rows[0][5], b"\x00\x03\x01")
    followed = Followed("current_offsets")
    followed.take(topic.table().slice(0, 2))
    assert [(row["group_id"], row[CHANGE]) for row in followed.take(topic.table().slice(2))] == [("g", "delete")]

    strict = Followed("current_offsets", IncrementalTable(request_of("current_offsets"), FailFast))
    strict.take(topic.table().slice(0, 2))
    with pytest.raises(DamageFound, match="its row is left out: an older offset would be wrong"):
        strict.take(topic.table().slice(2))
