"""Several tables in one reading: each has the same result as if it were read alone."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafka_records_engine.findings import ABSENT_GROUP
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.reading.segment_files import find_logs, read_partition
from kafka_records_engine.sources.collected_findings import MOST_OF_A_KIND
from kafka_records_engine.sources.given import source_of
from kafka_records_engine.sources.protocol import Context, LogPartition
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_engine.sources.snapshot_runs import take_snapshot
from kafka_records_tables import TABLES, Results, read_table, read_tables
from kafka_records_tables.coordinator.transactions import UnknownTransactions
from kafka_records_tables.near_names import UnknownOption, UnknownTable
from kafka_records_tables.tables.removal import held_offsets
from tests.tables import willful_table
from tests.tables.names import COORDINATED, OF_RECORDS
from tests.tables.topic import OFFSETS_TOPIC, Topic
from tests.tables.willful_table import WillfulError

FEW = ("groups", "pending_offsets", "expirations", "timeline", "transactions", "open_transactions", "lag")
"""Tables of two topics and all helpers, some of them inputs of others."""
OF_RECORDS_ALONE = tuple(name for name in FEW if name != "lag")
CUT_MS = 1795227270000
"""A moment in the middle of the captured topic's time span."""


def _same(found: Results, source: Any, **asked: Any) -> None:
    """Check that each answer is that of `read_table`."""
    options = asked.pop("options", {})
    for name, result in found.items():
        own = {each.name: options[each.name] for each in TABLES[name].options if each.name in options}
        expected = read_table(name, source, **asked, **own)
        assert result.table.equals(expected.table), name
        said, alone = (
            [each for each in answer.findings if each.reason != ABSENT_GROUP] for answer in (result, expected)
        )
        assert (said, result.counts) == (alone, expected.counts), name
        assert result.declaration is expected.declaration


@pytest.fixture
def segments(topics_dir: Path) -> Path:
    return topics_dir / "kafka-4.3" / "segments"


# -- the answers -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_table_over_files(segments: Path) -> None:
    found = read_tables(list(COORDINATED), segments)

    assert list(found) == list(COORDINATED)
    assert (found.missing, found.reading, found.is_complete) == ({}, (), True)
    _same(found, segments)


@pytest.mark.matrix
@pytest.mark.parametrize("capture", ["kafka-2.8", "kafka-4.3", "kafka-4.3-expiry"])
@pytest.mark.parametrize(
    "asked",
    [
        {"processes": 2},
        {"group": ["loyalty-points", "fraud-scoring"]},
        {"as_of": CUT_MS},
        {"options": {"retention": "1d", "window": "1h"}},
    ],
    ids=lambda asked: next(iter(asked)),
)
def test_every_table_of_records(topics_dir: Path, capture: str, asked: dict[str, Any]) -> None:
    source = topics_dir / capture / "segments"
    found = read_tables(list(OF_RECORDS), source, **asked)

    topics = Segments(source).topics()
    assert {*found.missing} == {name for name in OF_RECORDS if TABLES[name].topic not in topics}
    _same(found, source, **asked)


@pytest.mark.matrix
def test_every_table_over_rows_in_any_order_and_each_twice(segments: Path) -> None:
    rows = _shuffled(segments)
    _same(read_tables(list(OF_RECORDS), rows), rows)


@pytest.mark.parametrize(
    "asked",
    [
        {"group": ["loyalty-points", "fraud-scoring"]},
        pytest.param({"as_of": CUT_MS, "options": {"at": CUT_MS}}, marks=pytest.mark.matrix),
        pytest.param({"processes": 2}, marks=pytest.mark.matrix),
    ],
    ids=lambda asked: next(iter(asked)),
)
def test_tables_of_two_topics(segments: Path, asked: dict[str, Any]) -> None:
    found = read_tables(OF_RECORDS_ALONE, segments, **asked)

    assert len(found["groups"]) > 1
    _same(found, segments, **asked)


def test_rows_in_any_order_and_each_twice(segments: Path) -> None:
    rows = _shuffled(segments)
    _same(read_tables(OF_RECORDS_ALONE, rows), rows)


def _shuffled(segments: Path) -> pa.Table:
    logs = find_logs([str(segments)])
    rows = pa.Table.from_batches([batch for log in logs for batch in read_partition(log, settle=False, batch_rows=100)])
    order = [*range(rows.num_rows), *range(rows.num_rows)]
    Random(14).shuffle(order)
    return rows.take(order)


@pytest.fixture
def damaged(segments: Path, tmp_path: Path) -> Path:
    """A copy of two partitions; in one of them two batches are damaged."""
    for name in ("__consumer_offsets-5", "__consumer_offsets-4"):
        shutil.copytree(segments / name, tmp_path / name)
    for file, byte in (("00000000000000000231.log", 230), ("00000000000000000167.log", 300)):
        path = tmp_path / "__consumer_offsets-5" / file
        content = bytearray(path.read_bytes())
        content[byte] ^= 1
        path.write_bytes(content)
    return tmp_path


def test_damage_is_found_once_and_by_each(damaged: Path) -> None:
    names = [name for name in OF_RECORDS_ALONE if "transactions" not in name]
    found = read_tables(names, damaged)

    assert [finding.severity for finding in found.reading].count("damage") == 2
    for name in names:
        assert Counter(found.reading) <= Counter(found[name].findings)
    assert not found.is_complete
    assert Counter(found.findings).most_common(1)[0][1] == 1
    assert {*found.findings} == {finding for result in found.values() for finding in result.findings}
    assert found.counts == read_table("activity", damaged).counts
    _same(found, damaged)


def test_more_damage_than_is_listed_is_counted_for_each() -> None:
    """The reading finds more than it lists, before and after the first batch."""
    count = MOST_OF_A_KIND + 7
    source = _Logged(damage=count)
    found = read_tables(["groups", "current_offsets"], source)

    more = [finding for finding in found["groups"].findings if "more of the kind" in finding.what]
    assert [finding.what for finding in more] == [f"{2 * count - MOST_OF_A_KIND} more of the kind DamagedLog"]
    assert len(found.reading) == MOST_OF_A_KIND + 1
    _same(found, source)


def test_what_a_coordinator_holds_is_made_once(segments: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each table also has the findings of the reading, including the number of those that are not listed."""
    logs = [log for log in find_logs([str(segments)]) if log.topic == OFFSETS_TOPIC]
    rows = pa.Table.from_batches([batch for log in logs for batch in read_partition(log, settle=False, batch_rows=100)])
    # A key of one byte has no type; one of four has a type, and ends in the middle of the group.
    bad = [[b"\0", b"\0\1\0\7"][number % 2] if number % 3 == 0 else None for number in range(rows.num_rows)]
    is_record = pc.is_null(rows["control"])
    keys = pc.if_else(is_record, pc.coalesce(pa.chunked_array([pa.array(bad, pa.binary())]), rows["key"]), rows["key"])
    damaged = rows.set_column(rows.schema.get_field_index("key"), "key", keys)
    many = _repeated(damaged, 60)
    made: list[int] = []
    make = held_offsets._Maker

    def counted(context: Context, names: Any) -> Any:
        made.append(context.partition)
        return make(context, names)

    monkeypatch.setattr(held_offsets, "_Maker", counted)
    for source in (damaged, many):
        made.clear()
        found = read_tables(["expirations", "deletable_offsets", "groups"], source)

        assert sorted(made) == sorted({log.partition for log in logs})
        assert len(found["expirations"]) > 1
        assert any("more of the kind" in each.what for each in found["expirations"].findings) == (source is many)
        _same(found, source)


def _repeated(rows: pa.Table, times: int) -> pa.Table:
    """The rows, repeated with higher and higher offsets."""
    width = pc.max(rows["offset"]).as_py() + 1
    column = rows.schema.get_field_index("offset")
    return pa.concat_tables(
        [rows.set_column(column, "offset", pc.add(rows["offset"], width * time)) for time in range(times)]
    )


# -- what is read ------------------------------------------------------------------------------------------------------


@dataclass
class _Logged:
    """A source that records how often each of its log partitions was read, and how far."""

    damage: int = 0

    def __post_init__(self) -> None:
        self.taken: list[str] = []
        topic = Topic()
        for number in range(30):
            topic.commit(f"g{number % 3}", number)
        self.rows = topic.table()
        self.size, self.in_memory, self.partition, self.topic = 1000, True, 0, OFFSETS_TOPIC

    def partitions(self, topic: str) -> list[LogPartition]:
        if topic != OFFSETS_TOPIC:
            raise LogSourceError("here", f"there is no log of {topic}")
        return [self]

    def batches(
        self, context: Context, columns: Collection[str], start: int | None = None, end: int | None = None
    ) -> Iterator[Any]:
        self.taken.append("begun")
        (log,) = source_of(self.rows).partitions(OFFSETS_TOPIC)
        (whole,) = log.batches(context, columns)
        try:
            self._find_damage(context)
            for at in range(0, whole.num_rows, 10):
                self.taken.append(f"{at}")
                yield whole.slice(at, 10)
            self._find_damage(context)
        finally:
            self.taken.append("closed")

    def _find_damage(self, context: Context) -> None:
        from kafka_records_engine.findings import DAMAGED_LOG, Finding

        for number in range(self.damage):
            context.report(
                Finding("damage", DAMAGED_LOG, f"byte {number}", "not read", self.topic, 0, records=1, bytes=10)
            )


def test_a_log_partition_is_read_once_for_tables_and_the_inputs_of_views() -> None:
    source = _Logged()
    found = read_tables(["current_offsets", "groups", "expirations"], source)

    assert source.taken == ["begun", "0", "10", "20", "closed"]
    assert found.counts.partitions == 1
    assert found.counts.records == found["groups"].counts.records == 30


def test_tables_that_want_other_rows_of_a_snapshot_read_it_for_themselves(segments: Path, tmp_path: Path) -> None:
    take_snapshot(Segments(segments), tmp_path)
    names = ["groups", "regressions", "timeline"]
    found = read_tables(names, tmp_path)

    _same(found, tmp_path)
    once = read_table("groups", tmp_path).counts
    assert (found.counts.records, found.counts.partitions) == (once.records, once.partitions)


def test_progress_is_that_of_one_reading(segments: Path) -> None:
    told: list[tuple[int, int]] = []
    read_tables(["groups", "lag", "transactions"], segments, on_progress=lambda *moved: told.append(moved))

    size = sum(
        log.size for topic in (OFFSETS_TOPIC, "__transaction_state") for log in Segments(segments).partitions(topic)
    )
    assert told[-1] == (size, size)
    assert told == sorted(told)


def test_a_table_whose_topic_is_not_there_is_missing(segments: Path, tmp_path: Path) -> None:
    only = shutil.copytree(segments / "__consumer_offsets-5", tmp_path / "__consumer_offsets-5").parent
    found = read_tables(["transactions", "groups", "open_transactions", "checks", "log_ends"], only)

    assert list(found) == ["groups", "open_transactions", "checks", "log_ends"]
    assert list(found.missing) == ["transactions"]
    with pytest.raises(LogSourceError) as alone:
        read_table("transactions", only)
    assert found.missing["transactions"] == str(alone.value)
    assert not found.is_complete
    with pytest.raises(LogSourceError):
        read_tables(["transactions", "share_partitions"], only)


def test_rows_without_a_topic_are_of_the_one_that_all_tables_have() -> None:
    topic = Topic()
    topic.commit("g", 1)
    rows = topic.table().drop_columns(["topic"])

    assert len(read_tables(["current_offsets", "groups"], rows)["current_offsets"]) == 1
    found = read_tables(["current_offsets", "transactions"], rows, topic=OFFSETS_TOPIC)
    assert (list(found), list(found.missing)) == (["current_offsets"], ["transactions"])
    with pytest.raises(ValueError, match="the rows have no column 'topic': give their topic"):
        read_tables(["current_offsets", "transactions"], rows)


@pytest.mark.parametrize(
    ("tables", "asked", "error", "text"),
    [
        ("groups", {}, TypeError, r"tables is a list of tables: write \['groups'\]"),
        ([], {}, ValueError, "no table is requested"),
        (["groups", "groups"], {}, ValueError, "the table groups is requested twice"),
        (["group"], {}, UnknownTable, "no table is called 'group'"),
        (
            ["groups", "members"],
            {"options": {"retention": "1d"}},
            UnknownOption,
            "none of groups, members has an option",
        ),
        (["expirations"], {"options": {"retentoin": "1d"}}, UnknownOption, "did you mean retention"),
        (["groups", "lag"], {"as_of": CUT_MS}, ValueError, "lag shows logs as they are now"),
        (["groups"], {"processes": 0}, ValueError, "processes must be a number of processes above 0"),
    ],
)
def test_what_cannot_be_asked(tables: Any, asked: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        read_tables(tables, "nowhere", **asked)


# -- tables that do as they like ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("does", ["ends", "stops", "asks nothing"])
def test_a_table_that_ends_early_does_not_end_others(does: str) -> None:
    source, before = _Logged(), threading.active_count()
    found = read_tables([willful_table.TABLE, "groups", "current_offsets"], source, options={"does": does})

    rows = {"ends": [0, 1, 2], "stops": [0], "asks nothing": [-1]}[does]
    assert found["willful"].table["batch_number"].to_pylist() == rows
    assert len(found["groups"]) == 3
    assert source.taken[-1] == "closed"
    assert threading.active_count() == before


def test_nothing_is_read_for_tables_that_want_no_more() -> None:
    source = _Logged()
    read_tables([willful_table.TABLE], source, options={"does": "stops"})

    assert source.taken == ["begun", "0", "closed"]


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_table_that_fails(segments: Path, processes: int) -> None:
    before = set(threading.enumerate())
    with pytest.raises(WillfulError, match="no more of this"):
        read_tables(
            ["groups", willful_table.TABLE, "members"], segments, processes=processes, options={"does": "raises"}
        )
    assert not set(threading.enumerate()) - before


def test_a_source_that_a_table_refuses() -> None:
    topic = Topic()
    topic.commit("g", 1)
    rows = topic.table().drop_columns(["transaction", "producer_id"])

    with pytest.raises(UnknownTransactions):
        read_tables(["groups", "current_offsets"], rows)
    assert len(read_tables(["groups", "current_offsets"], rows, assume="committed")["current_offsets"]) == 1
