"""Offsets that went backwards: in histories compared with a second implementation, planted ones of each kind, and
harmless ones."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_engine.findings import OUTSIDE_LOG
from kafka_records_engine.sources import Context
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_tables import TABLES, read_table
from kafka_records_tables.coordinator.offsets import commit_lots, commit_steps
from kafka_records_tables.tables.group_rows.regression_rows import Regressions
from tests.tables.histories import NAMES, history
from tests.tables.topic import Topic, struct
from tests.variants import one_in
from tools.judge.plain_regressions import plain_regressions

Row = dict[str, Any]
NAME = "regressions"
ID, OTHER_ID = "GbK1GQHFS4ymFPkmnUrzCQ", "t45nZMKZRXuARwA1OeCzdg"
TOLD = tuple(name for name in TABLES[NAME].names if name not in ("group_kind", "group_state", "log_partition"))
TIMES = ("commit_timestamp", "from_commit_timestamp")


def rows_of(source: Any, **options: Any) -> list[Row]:
    result = read_table(NAME, source, **options)
    assert {each.reason for each in result.findings} <= {OUTSIDE_LOG}
    rows: list[Row] = result.table.to_pylist()
    return rows


def told(rows: list[Row]) -> list[Row]:
    return [{name: row[name] for name in TOLD if name not in TIMES} for row in rows]


def in_lots(rows: pa.Table, chance: Random) -> list[Row]:
    """The rows of the table when raw rows come in lots of any size, and are compared at each."""
    found = Regressions(Context("__consumer_offsets"), TABLES[NAME].schema)
    batches: list[pa.RecordBatch] = []
    start = 0
    while start < rows.num_rows:
        count = chance.randrange(1, 40)
        (lot,) = rows.slice(start, count).combine_chunks().to_batches()
        batches += found.take(lot)
        start += count
    batches += found.finish()
    table = pa.Table.from_batches(batches, TABLES[NAME].schema)
    made: list[Row] = table.sort_by([(name, "ascending") for name in TABLES[NAME].sort]).to_pylist()
    return made


# -- histories ---------------------------------------------------------------------------------------------------------


def look_at_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (commit_lots, commit_steps):
        monkeypatch.setattr(module, "LOT_ROWS", 1)


@pytest.mark.slow
def test_histories_by_a_second_opinion(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: Counter[str] = Counter()
    for number, name in enumerate(NAMES):
        rows = history(name).rows
        found = rows_of(rows)
        assert told(found) == plain_regressions(rows.to_pylist()), name
        kinds.update(row["kind"] for row in found)
        for row in found:
            is_memberless = row["group_state"] in (None, "Empty")
            assert row["kind"] != ("rewind_by_member" if is_memberless else "reset_while_empty")
        if number % 4 == 0:
            look_at_few_rows(monkeypatch)
            assert in_lots(rows, Random(name)) == found, name
            monkeypatch.undo()
    assert kinds == {"rewind_by_member": 39, "after_deletion": 13, "reset_while_empty": 4, "sawtooth": 1}


# -- random commits ----------------------------------------------------------------------------------------------------


class Commits(Topic):
    """Commits for some partitions of one topic, and members of classic groups."""

    def put(
        self, offset: int | None, group: str = "g", partition: int = 0, topic_id: str | None = None, **options: Any
    ) -> int:
        """Commit an offset, or delete it."""
        key = {"group": group, "topic": "orders", "partition": partition}
        value: dict[str, Any] = {"offset": offset, "metadata": "", "commit_timestamp": 1_700_000_000_000}
        if topic_id is not None:
            value["topic_id"] = Uuid.from_string(topic_id)
        return self.add("OffsetCommit", key, None if offset is None else value, version=4, **options)

    def members(self, *names: str, group: str = "g") -> int:
        """Write a generation with these members; without members the group is Empty."""
        members = tuple(
            struct("group_metadata", "MemberMetadata", member_id=name, client_id="c", client_host="/10.0.0.1")
            for name in names
        )
        value = {"protocol_type": "consumer", "generation": 1, "protocol": "range", "leader": None, "members": members}
        return self.add("GroupMetadata", {"group": group}, value, version=3)


@pytest.mark.parametrize("seed", one_in(4, range(4)))
def test_random_commits_by_a_second_opinion(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, written = Random(seed), Commits()
    positions = {key: [50, 20] for key in (("g", 0), ("g", 1), ("h", 0), ("h", 2))}
    for _ in range(1500):
        (group, partition), tails = chance.choice([*positions.items()])
        what = chance.random()
        if what < 0.02:
            written.put(None, group, partition)
        elif what < 0.04:
            written.members(*["m"] * chance.randrange(2), group=group)
        elif what < 0.3:
            written.marker(chance.choice(["commit", "abort"]), producer=chance.randrange(3))
        else:
            tail = chance.randrange(2)
            tails[tail] = chance.randrange(60) if chance.random() < 0.03 else tails[tail] + chance.randrange(2)
            topic_id = chance.choices([None, ID, OTHER_ID], [5, 20, 1])[0]
            options = chance.choices([{}, {"transaction": "pending", "producer": chance.randrange(3)}], [4, 1])[0]
            written.put(tails[tail], group, partition, topic_id, **options)
    rows = written.table()
    found = rows_of(rows)
    assert told(found) == plain_regressions(rows.to_pylist())
    assert len({row["kind"] for row in found}) == 5
    assert any(row["producer_id"] is not None for row in found)

    order = [*range(rows.num_rows), *range(rows.num_rows)]
    chance.shuffle(order)
    assert rows_of(rows.take(order)) == found
    look_at_few_rows(monkeypatch)
    assert in_lots(rows, chance) == found


# -- each kind ---------------------------------------------------------------------------------------------------------


def falls(written: Topic, **options: Any) -> list[tuple[Any, ...]]:
    return [
        (
            row["from_offset"],
            row["to_offset"],
            row["kind"],
            {each["shows"]: each["log_offset"] for each in row["evidence"]},
        )
        for row in rows_of(written.table(), **options)
    ]


def test_an_administrator_resets_an_empty_group() -> None:
    written = Commits()
    written.members("m")
    before = written.put(58)
    emptied = written.members()
    written.members("m", group="another")
    after = written.put(3)
    (row,) = rows_of(written.table())
    assert row["evidence"] == [{"shows": "group", "log_offset": emptied}]
    names = ("kind", "group_kind", "group_state", "from_log_offset", "log_offset", "log_partition", "confidence")
    assert [row[name] for name in names] == ["reset_while_empty", "classic", "Empty", before, after, 0, "high"]


def test_a_member_goes_back() -> None:
    written = Commits()
    written.members("m")
    told_at = written.members("m")
    written.put(58)
    written.put(3)
    (row,) = rows_of(written.table())
    assert (row["kind"], row["group_state"]) == ("rewind_by_member", "Stable")
    assert row["evidence"] == [{"shows": "group", "log_offset": told_at}]


def test_a_group_of_offsets_alone_goes_back() -> None:
    written = Commits()
    written.put(58)
    written.put(3)
    (row,) = rows_of(written.table())
    assert (row["kind"], row["group_kind"]) == ("reset_while_empty", "simple")


def test_two_committers_take_turns() -> None:
    written = Commits()
    written.members("one", "two")
    places = [written.put(offset) for offset in (100, 40, 105, 42, 43, 110, 43, 112)]
    kinds = falls(written)
    assert [fall[:3] for fall in kinds] == [
        (100, 40, "rewind_by_member"),
        (105, 42, "sawtooth"),
        (110, 43, "sawtooth"),
    ]
    assert kinds[1][3] == {"high": places[0], "low": places[1]}
    assert kinds[2][3] == {"high": places[2], "low": places[4]}


def test_who_takes_turns_may_name_the_topic_id_later() -> None:
    """Then it is unknown whether it is another topic, and there is no fall."""
    written = Commits()
    written.members("one", "two")
    for offset, topic_id in ((100, None), (40, None), (105, ID), (42, ID)):
        written.put(offset, topic_id=topic_id)
    assert [fall[2] for fall in falls(written)] == ["rewind_by_member", "sawtooth"]


@pytest.mark.parametrize(
    "offsets",
    [
        (100, 0, 30, 60, 90, 105, 95),  # it has reached the higher offset before it goes back once more
        (100, 40, 105, 39),  # to less than where the lower one was left
        (100, 40, 60, 50, 70),  # never back to the offset from which it fell
    ],
)
def test_no_sawtooth(offsets: tuple[int, ...]) -> None:
    written = Commits()
    written.members("m")
    for offset in offsets:
        written.put(offset)
    assert {fall[2] for fall in falls(written)} == {"rewind_by_member"}


def test_a_deleted_offset_is_committed_anew() -> None:
    written = Commits()
    written.put(58)
    deleted = written.put(None)
    written.put(3)
    assert falls(written) == [(58, 3, "after_deletion", {"tombstone": deleted})]


def test_a_turn_does_not_begin_with_a_deletion() -> None:
    written = Commits()
    written.members("m")
    for offset in (100, None, 40, 105, 42):
        written.put(offset)
    assert [fall[2] for fall in falls(written)] == ["after_deletion", "rewind_by_member"]


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_topic_is_recreated(is_deleted: bool) -> None:
    """It is not a rewind, although members commit lower offsets: it is another topic."""
    written = Commits()
    written.members("m")
    written.put(58, topic_id=ID)
    if is_deleted:
        written.put(None)
    written.put(3, topic_id=OTHER_ID)
    ((*fall, _),) = falls(written)
    assert fall == [58, 3, "topic_recreated"]
    written.put(2, topic_id=OTHER_ID)
    assert [fall[:3] for fall in falls(written)][1:] == [(3, 2, "rewind_by_member")]


def test_a_topic_may_be_recreated_where_only_the_lower_commit_tells_an_id() -> None:
    """A cleaner may have removed a commit with another id before the one without an id."""
    written = Commits()
    written.put(90, topic_id=ID)
    written.put(100)
    written.put(5, topic_id=OTHER_ID)
    (whole,) = rows_of(written.table())
    (left,) = read_table(NAME, written.table().slice(1)).table.to_pylist()
    assert (whole["kind"], whole["confidence"]) == ("topic_recreated", "high")
    assert (left["kind"], left["confidence"]) == ("reset_while_empty", "low")
    # If the higher commit has an id, no earlier commit is needed.
    written.put(3)
    assert [row["confidence"] for row in read_table(NAME, written.table().slice(2)).table.to_pylist()] == ["high"]


def test_a_source_without_markers_tells_of_transactions_all_the_same() -> None:
    written = Commits()
    for offset in (20, 5):
        written.put(offset, transaction="committed", producer=7)
    (row,) = rows_of(written.table())
    assert (row["from_offset"], row["to_offset"], row["producer_id"], row["evidence"]) == (20, 5, 7, [])
    written.marker("commit", producer=7)
    assert rows_of(written.table()) == []


def test_commits_of_transactions_count_at_their_markers() -> None:
    written = Commits()
    written.members("m")
    written.put(50)
    in_transaction = written.put(20, transaction="pending", producer=1)
    written.put(60, partition=1)
    assert falls(written) == []
    marker = written.marker("commit", producer=1)
    assert falls(written) == [(50, 20, "rewind_by_member", {"marker": marker, "group": 0})]
    (row,) = rows_of(written.table())
    assert (row["log_offset"], row["producer_id"]) == (in_transaction, 1)
    # A pending commit before a plain one never takes effect, and neither does an aborted one.
    written.put(10, transaction="pending", producer=2)
    written.put(70)
    written.marker("commit", producer=2)
    written.put(1, transaction="pending", producer=3)
    written.marker("abort", producer=3)
    assert len(falls(written)) == 1


def test_the_older_record_of_a_commit_counts_too() -> None:
    written = Commits()
    key = {"group": "g", "topic": "orders", "partition": 0}
    written.add("LegacyOffsetCommit", key, {"offset": 9, "metadata": "", "commit_timestamp": 5}, version=0)
    written.put(4)
    assert falls(written) == [(9, 4, "reset_while_empty", {})]


# -- no alarm ----------------------------------------------------------------------------------------------------------


def test_what_is_no_fall() -> None:
    written = Commits()
    written.members("m")
    for offset in (0, 5, 5, 7):  # a member that starts again commits what it finds
        written.put(offset)
    written.put(3, partition=1)
    written.put(4, group="another")
    key = {"group": "g", "topic": "orders", "partition": 0}
    value = {"offset": 7, "metadata": "another", "commit_timestamp": 9, "leader_epoch": 8}
    written.add("OffsetCommit", key, value, version=3)
    assert falls(written) == []


@pytest.mark.parametrize("name", ["kafka-2.8", "kafka-4.3-expiry"])
def test_brokers_that_started_anew_moved_no_offset(topics_dir: Path, name: str) -> None:
    assert read_table(NAME, topics_dir / name / "segments").table.num_rows == 0


def test_what_happened_to_a_captured_topic(topics_dir: Path) -> None:
    """The journal of the capture: offsets of payments-settlement were altered while it was empty, and price-list was
    deleted and recreated."""
    found = read_table(NAME, topics_dir / "kafka-4.3" / "segments").table.to_pylist()
    assert [(row["group_id"], row["from_offset"], row["to_offset"], row["kind"]) for row in found] == [
        ("nightly-audit", 68, 55, "reset_while_empty"),
        ("payments-settlement", 58, 3, "reset_while_empty"),
        ("payments-settlement", 51, 4, "reset_while_empty"),
        ("price-checks", 44, 5, "topic_recreated"),
        ("заказы-экспорт", 64, 12, "rewind_by_member"),
    ]
    assert all(row["confidence"] == "high" for row in found)


# -- what cannot be read -----------------------------------------------------------------------------------------------


def test_a_commit_that_cannot_be_read_is_passed_over() -> None:
    written = Commits()
    written.put(50)
    key = written.rows[0][5]
    written.add_bytes(key, b"\x00\x04\x00")
    written.put(20)
    result = read_table(NAME, written.table())
    assert [(row["from_offset"], row["to_offset"]) for row in result.table.to_pylist()] == [(50, 20)]
    (finding,) = result.findings
    assert finding.consequence == "left out: the offsets before and after it are compared with each other"


def test_members_that_cannot_be_read_make_the_kind_uncertain() -> None:
    written = Commits()
    written.members("m")
    written.put(50)
    written.add_bytes(written.rows[0][5], b"\x00\x03\x00")
    written.put(20)
    result = read_table(NAME, written.table())
    (row,) = result.table.to_pylist()
    assert (row["group_state"], row["confidence"]) == (None, "low")
    (finding,) = result.findings
    assert finding.consequence == "the state of its group is not known"


def test_groups_are_forgotten_but_for_their_last_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state that a commit with a later marker needs is kept: its group had a member when it was written."""
    look_at_few_rows(monkeypatch)
    written = Commits()
    written.members("m")
    written.put(50)
    written.put(20, transaction="pending", producer=1)
    for number in range(300):
        written.members(*["m"] * (number % 2))
    written.marker("commit", producer=1)
    for number in range(300):
        written.members(*["m"] * (number % 2))
    found = Regressions(Context("__consumer_offsets"), TABLES[NAME].schema)
    rows = [row for lot in written.table().to_batches(max_chunksize=1) for row in found.take(lot)]
    rows += found.finish()
    (row,) = pa.Table.from_batches(rows).to_pylist()
    assert (row["kind"], row["evidence"][-1]) == ("rewind_by_member", {"shows": "group", "log_offset": 0})
    assert found.remembered == 1


def test_only_some_groups_and_up_to_a_moment() -> None:
    written = Commits()
    for group in ("a", "b"):
        written.put(9, group)
        written.put(4, group)
    assert [row["group_id"] for row in rows_of(written.table(), group="b")] == ["b"]
    assert rows_of(written.table(), as_of=1) == []
