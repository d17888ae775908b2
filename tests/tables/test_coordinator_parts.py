"""Parts of the coordinator package separately: behavior that a table over a small log would not show."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kafka_records.schemas.consumer_offsets import RECORDS
from kafka_records_engine.sources import Context
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_tables.coordinator.groups.group_model import CONSUMER, MEMBER, REGEX, Group
from kafka_records_tables.coordinator.groups.loading_groups import _are, _as_java_maps_them
from kafka_records_tables.coordinator.groups.subscriptions import topics_of
from kafka_records_tables.coordinator.offsets import commit_order
from kafka_records_tables.coordinator.offsets.commit_effects import CLOCK, NO_TIME, Clock
from kafka_records_tables.coordinator.offsets.commit_order import running_maximum
from kafka_records_tables.coordinator.offsets.commit_steps import CommitSteps
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.offsets.committed_topics import CommittedTopics
from kafka_records_tables.coordinator.offsets.falls import follow
from kafka_records_tables.coordinator.offsets.key_numbers import KeyNumbers
from kafka_records_tables.coordinator.offsets.repeated_commits import COMMITS as TO_COMPARE
from kafka_records_tables.coordinator.offsets.repeated_commits import RepeatedCommits
from kafka_records_tables.coordinator.records import latest
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords, numbers_of
from kafka_records_tables.coordinator.records.named_records import Event, _in_python, events, value_of
from kafka_records_tables.coordinator.transactions import (
    TransactionResolver,
    UnknownOutcome,
    UnknownTransactions,
    next_markers,
)
from kafka_records_tables.tables.removal.expiry_rows import _later
from tests.tables.topic import Topic

MEMBERS = [
    *("c", "b", "q", "a", "consumer-1-3f2a", "consumer-2-77b1", "rdkafka-9c", "rdkafka-9d", "sarama", "Aa", "BB"),
    *("AaBB", "BBAa", "ä", "\N{GRINNING FACE}", "", "0", "1", "12", "123", "connect-1", "connect-2"),
    *("member-with-a-long-name-0", "member-with-a-long-name-1", "z"),
]


@pytest.mark.parametrize(
    ("count", "places"),
    [
        (12, "9 10 2 3 1 4 0 8 6 5 7 11"),
        (13, "9 10 3 1 4 0 6 5 7 2 8 11 12"),
        (25, "9 10 15 4 22 8 11 12 3 18 1 0 13 6 5 7 16 2 17 19 21 20 14 23 24"),
    ],
)
def test_members_come_in_the_order_of_javas_hash_map(count: int, places: str) -> None:
    """`places` is the result of `java.util.HashMap.values` of Java 17 after each member was put with its place."""
    members = MEMBERS[:count]
    assert [members.index(each) for each in _as_java_maps_them(members)] == [int(place) for place in places.split()]


def test_what_is_left_is_counted() -> None:
    told = [_are(count, *words) for count in (1, 2) for words in (("member",), ("member's target", "members' targets"))]
    assert told == ["1 member is", "1 member's target is", "2 members are", "2 members' targets are"]


@pytest.mark.parametrize("at_once", [1, 2, 7])
def test_the_clock_is_the_latest_time_so_far(at_once: int) -> None:
    """A table as of a moment ends before the first record with a later timestamp."""
    times = pa.array([None, 5, 3, None, 9, 9, 2], pa.int64())
    rows = pa.RecordBatch.from_arrays([times], names=["timestamp_ms"])
    clock = Clock()
    added = [clock.added(rows.slice(first, at_once)) for first in range(0, rows.num_rows, at_once)]
    added.append(clock.added(rows.slice(0, 0)))
    assert pa.Table.from_batches(added)[CLOCK].to_pylist() == [NO_TIME, 5, 5, 5, 9, 9, 9]


@pytest.mark.parametrize("far", [1, 2**40, 2**60])
def test_the_largest_offset_so_far_is_that_of_a_key_alone(far: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if key and offset do not fit into one number."""
    codes, values = np.array([0, 0, 0, 1, 1, 5, 5, 5]), np.array([3, 1, 4, -2, -3, 0, 2, 1]) * far
    expected = (np.array([3, 3, 4, -2, -2, 0, 2, 2]) * far).tolist()
    assert running_maximum(codes, values).tolist() == expected
    monkeypatch.setattr(commit_order, "_MOST", 48)
    assert running_maximum(codes, values).tolist() == expected
    assert running_maximum(codes[:0], values[:0]).tolist() == []


def test_the_largest_offset_so_far_may_be_far_below_zero() -> None:
    values = np.arange(-(2**62) - 1, -(2**62) + 2)
    assert running_maximum(np.zeros(3, np.int64), values).tolist() == values.tolist()


@pytest.mark.parametrize("also", ["nothing", "an old key", "a cut key", "a cut value", "a long key", "a long value"])
def test_a_tombstone_names_no_topic_id(also: str) -> None:
    """The lot has topic ids of other commits. If not all rows are plain commits, they are decoded one by one."""
    topic = Topic()
    key = {"group": "g", "topic": "orders", "partition": 0}
    for topic_id in (Uuid(b"a" * 16), None, Uuid(b"b" * 16)):
        value = None if topic_id is None else {"offset": 1, "metadata": "", "commit_timestamp": 5, "topic_id": topic_id}
        topic.add("OffsetCommit", key, value, version=4)
    whole_key, whole_value = topic.rows[-1][5:7]
    match also:
        case "an old key":
            topic.commit("g", 2, record="LegacyOffsetCommit")
        case "a cut key":
            topic.add_bytes(whole_key[:-1], whole_value)
        case "a cut value":
            topic.add_bytes(whole_key, whole_value[:-1])
        case "a long key":
            topic.add_bytes(whole_key + b"\0", None)
        case "a long value":
            topic.add_bytes(whole_key, whole_value + b"\0")
    context = Context("__consumer_offsets")
    found = CommitSteps(RECORDS, context)
    (batch,) = topic.table().combine_chunks().to_batches()
    (lot,) = [*found.take(batch), *found.rest()]
    steps = lot.steps
    assert steps is not None
    named = [None if at < 0 else steps.ids[int(at)].as_py() for at in steps.topic_id]
    more = {"an old key": [True], "a long key": [False], "a long value": [True]}.get(also, [])
    last = str(Uuid(b"b" * 16))
    assert named == [str(Uuid(b"a" * 16)), None, last, *[last if also == "a long value" else None] * len(more)]
    assert steps.is_value.tolist() == [True, False, True, *more]
    assert len(context.findings) == (also in ("a cut key", "a cut value"))
    assert context.counts.bytes_left == (also in ("a long key", "a long value"))


def test_a_later_fall_may_name_the_commit_that_named_the_topic_id() -> None:
    topic = Topic()
    key, value = {"group": "g", "topic": "orders", "partition": 0}, {"metadata": "", "commit_timestamp": 5}
    topic.add("OffsetCommit", key, value | {"offset": 1, "topic_id": Uuid(b"a" * 16)}, version=4)
    topic.commit("g", 2)
    topic.commit("g", 3)
    topic.add("OffsetCommit", key, value | {"offset": 2, "topic_id": Uuid(b"b" * 16)}, version=4)
    held, places = None, []
    for batch in topic.table().to_batches(max_chunksize=1):
        found = CommitSteps(RECORDS, Context("__consumer_offsets"))
        for lot in (*found.take(batch), *found.rest()):
            falls, held = follow(held, lot.steps)
            assert held is not None
            places.append((held.places(), held.count))
    assert places == [({0}, 1), ({0, 1}, 1), ({0, 2}, 1), ({3}, 1)]
    ids = [falls.column(name).to_pylist() for name in ("from_topic_id", "topic_id")]
    assert ids == [[str(Uuid(b"a" * 16))], [str(Uuid(b"b" * 16))]]


def test_a_lot_without_a_commit_that_can_be_read_has_no_falls() -> None:
    topic = Topic()
    topic.commit("g", 1)
    *_, key, value = topic.rows.pop()[:7]
    topic.add_bytes(key, value[:-1])
    (batch,) = topic.table().combine_chunks().to_batches()
    found = CommitSteps(RECORDS, Context("__consumer_offsets"))
    (lot,) = [*found.take(batch), *found.rest()]
    falls, held = follow(None, lot.steps)
    assert held is not None
    assert (falls.num_rows, held.count) == (0, 0)


def test_topics_are_those_of_any_partition() -> None:
    topic = Topic()
    for group, partition in (("g", 0), ("h", 0), ("g", 2**24), ("g", 0)):
        topic.add("OffsetCommit", {"group": group, "topic": "orders", "partition": partition}, None)
    topic.add("GroupMetadata", {"group": "g"}, None)
    found = CommittedTopics(RECORDS)
    left = [found.taken(batch).column("offset").to_pylist() for batch in topic.table().to_batches(max_chunksize=3)]
    assert left == [[], [4]]
    assert list(found.found()) == [("g", "orders"), ("h", "orders")]


def test_events_are_in_the_order_of_the_log() -> None:
    topic = Topic()
    for epoch in (7, 8):
        topic.add("ConsumerGroupMetadata", {"group_id": "g"}, {"epoch": epoch})
    (batch,) = topic.table().take([1, 0]).combine_chunks().to_batches()
    found = events(DecodedRecords(batch, RECORDS), {"ConsumerGroupMetadata": ("epoch",)})
    # As in a stored state.
    values = [value_of("ConsumerGroupMetadata", ("epoch",), (epoch,)) for epoch in (7, 8)]
    assert [(each.offset, each.value) for each in found] == list(enumerate(values))
    assert values[1].epoch == 8


@pytest.mark.parametrize(
    "values",
    [[[[1], [2, 3]], None, []], [{"a": ["x", None], "b": None}, None], [True, None], [1, None], [], ["", None], [b"a"]],
)
def test_objects_of_an_array_are_those_that_arrow_makes(values: list[Any]) -> None:
    assert list(_in_python(pa.array(values))) == values


def test_a_number_that_is_not_kept_is_given_to_another_key() -> None:
    numbers, types = KeyNumbers(), numbers_of(RECORDS, COMMITS)
    found = []
    for groups in ("abc", "dac"):
        topic = Topic()
        for group in groups:
            topic.commit(group, 1)
        (batch,) = topic.table().combine_chunks().to_batches()
        found.append((numbers.of_rows(DecodedRecords(batch, RECORDS), types).tolist(), numbers.taken_again()))
        numbers.keep(np.array([True, False, True]))
    assert found == [([0, 1, 2], [0, 1, 2]), ([1, 0, 2], [1])]
    assert sorted(group for group, _, _ in numbers._numbers) == ["a", "c"]


def test_a_source_without_producer_ids_has_one_producer() -> None:
    def batch(offsets: list[int], producers: list[int | None]) -> pa.RecordBatch:
        columns = [pa.array(offsets, pa.int64()), pa.array(producers, pa.int64())]
        return pa.RecordBatch.from_arrays(columns, names=["offset", "producer_id"])

    rows, markers = batch([1, 2, 3, 6], [None, 5, 1, 5]), batch([4, 5], [5, None])
    assert next_markers(rows, markers).tolist() == [1, 0, -1, -1]


@pytest.mark.parametrize("producer", [7, None])
def test_a_marker_counts_although_something_unreadable_follows_it(producer: int | None) -> None:
    """A hole hides markers after the record at its offset, and not that record."""
    topic = Topic()
    topic.commit("g", 1, transaction="pending", producer=producer)
    topic.commit("g", 2, transaction="pending", producer=producer)
    topic.add_bytes(b"\x00\x00\x00\x01", b"\x00" * 6, control="commit", producer=producer)
    (batch,) = topic.table().combine_chunks().to_batches()
    context = Context("__consumer_offsets")
    resolver = TransactionResolver(context, tombstones_at_once=True, last_of_key=False)
    assert list(resolver.take(batch.slice(0, 2))) == []
    assert (resolver.waits, resolver.waits_from) == (True, 0)
    assert [offset for part in resolver.waiting("offset") for offset in part.to_pylist()] == [0, 1]
    context.log.add_hole(2)
    ended = [(each.outcome, each.rows.num_rows) for each in resolver.take(batch.slice(2))]
    assert (ended, resolver.waits) == ([("committed", 2)], False)


def test_a_transaction_is_open_if_a_source_knows_only_its_producer() -> None:
    topic = Topic()
    topic.add("OffsetCommit", {"group": "g", "topic": "orders", "partition": 0}, None, transaction="unknown")
    rows = topic.table()
    at = rows.schema.get_field_index("transaction")
    (batch,) = rows.set_column(at, "transaction", pa.nulls(1, pa.string())).combine_chunks().to_batches()
    resolver = TransactionResolver(Context("__consumer_offsets"), tombstones_at_once=False, last_of_key=False)
    assert list(resolver.take(batch)) == []
    assert [each.outcome for each in resolver.rest()] == ["open"]


def test_a_commit_of_an_aborted_transaction_is_no_step() -> None:
    topic = Topic()
    for number, control in enumerate(("abort", "commit")):
        topic.commit("g", number, transaction="pending")
        topic.marker(control)
    topic.commit("g", 9, transaction="pending")
    (batch,) = topic.table().combine_chunks().to_batches()
    found = CommitSteps(RECORDS, Context("__consumer_offsets"))
    (lot,) = [*found.take(batch), *found.rest()]
    assert lot.steps is not None
    assert (lot.steps.offset.tolist(), lot.steps.counted_at.tolist()) == ([1], [3])


def test_a_commit_may_repeat_one_of_an_earlier_call() -> None:
    repeats = RepeatedCommits(Context("__consumer_offsets"))
    found, kept = [], []
    for at, (key, committed) in enumerate([(0, 5), (1, 5), (0, 5), (0, None), (0, 5)]):
        told = {"value": None if committed is None else True, "committed": -1 if committed is None else committed}
        row = {"offset": at, "producer_id": -1, "transaction": "none", "control": None, "key": key, "time": at} | told
        found += repeats.take(pa.RecordBatch.from_pylist([row], TO_COMPARE)).column("offset").to_pylist()
        kept.append(sorted(repeats.keys().tolist()))
    assert (found, kept) == ([2], [[0], [0, 1], [0, 1], [1], [0, 1]])


@pytest.mark.parametrize("limit", ["LOT_ROWS", "LOT_BYTES"])
def test_records_of_one_key_do_not_gather(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after Kafka's cleaner, memory depends on the number of keys."""
    monkeypatch.setattr(latest, limit, 10 if limit == "LOT_ROWS" else 200)
    kept = latest.Latest(("offset", "key"))
    for offset in range(100):
        kept.add(pa.RecordBatch.from_pydict({"offset": [offset], "key": [b"k"], "value": [None]}))
        assert sum(rows.num_rows for rows in kept._rows) <= 20
    assert kept.rows() == pa.RecordBatch.from_pydict({"offset": [99], "key": [b"k"]})


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        (UnknownTransactions, ("__consumer_offsets",)),
        (UnknownTransactions, ("__consumer_offsets", 3, 14)),
        (UnknownOutcome, ("__consumer_offsets", 3, 14, "maybe")),
    ],
)
def test_an_error_says_the_same_in_another_process(kind: type[Exception], args: tuple[Any, ...]) -> None:
    error = kind(*args)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert [str(each) in str(error) for each in args] == [True] * len(args)


def test_what_expires_later_than_any_clock_never_does() -> None:
    """Kafka subtracts the time of the commit from that of the clock; the sum may leave the range of an int64."""
    retention, most = 86_400_000, 2**63 - 1
    base = np.array([5, most - retention - 1, most - retention, most - retention + 1, most])
    assert _later(base, retention).tolist() == [5 + retention, most - 1, most, most, most]


def test_the_topics_of_a_consumer_group_are_those_that_its_records_name() -> None:
    chance = random.Random(5)
    group, fields = Group("g", CONSUMER, 0), {MEMBER: "subscribed_topic_names", REGEX: "topics"}
    for offset in range(2000):
        role, of = chance.choice([*fields]), chance.choice("abc")
        if chance.random() < 0.3:
            group.drop_record(role, of)
        else:
            topics = chance.choices("xyz", k=chance.randrange(3))
            value = None if chance.random() < 0.2 else value_of("Record", (fields[role],), [topics])
            group.set_record(role, Event(offset, "Record", ("g", of), value, value is None, False, None))
        values = [(role, event.value) for (role, _), event in group.records.items() if event.value is not None]
        assert topics_of(group) == frozenset(topic for role, value in values for topic in getattr(value, fields[role]))
