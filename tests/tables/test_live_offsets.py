"""The offsets that exist at each point of a log, compared with a replay of one record after another, and with the
coordinator's answers to OffsetFetch, with and without stable offsets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from kafka_records.schemas.consumer_offsets import RECORDS
from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_engine.sources import Context
from kafka_records_tables.coordinator.offsets import live_offsets as module
from kafka_records_tables.coordinator.offsets.commit_lots import CommitLot
from kafka_records_tables.coordinator.offsets.live_offsets import LOG_OFFSET, NEVER, LiveOffsets
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords
from tests.tables.histories import NAMES, Question, history
from tests.tables.topic import Topic
from tests.variants import one_in

Key = tuple[str, str, int]
Places = dict[Key, int]
"""Where the commits of offsets are in the log, in the order in which the offsets were created."""

KEYS = [(group, topic, partition) for group in "gh" for topic in "tu" for partition in (0, 1)]


def taken(live: LiveOffsets, rows: pa.Table) -> None:
    """Add rows, with the commits among them decoded."""
    (batch,) = rows.combine_chunks().to_batches()
    lot = CommitLot(batch, RECORDS)
    live.take(batch, DecodedRecords(lot.rows, RECORDS), lot, Context("__consumer_offsets"))


def there(live: LiveOffsets, place: int) -> Places:
    """The offsets that exist right before a place in the rows."""
    numbers = np.arange(len(live.keys))
    exist, commits = live.lot.commits(numbers, np.full(len(numbers), place))
    stands = commits[:, LOG_OFFSET].tolist()
    return dict(zip([live.keys[each] for each in numbers[exist].tolist()], stands, strict=True))


def random_log(random: Random) -> pa.Table:
    """Commits in and outside of transactions, tombstones and markers."""
    topic = Topic()
    for _ in range(60):
        word = random.choice(["commit", "wait", "wait", "delete", "end"])
        producer, (group, name, partition) = random.randrange(3), random.choice(KEYS)
        if word == "end":
            topic.marker(random.choice(["commit", "abort"]), producer=producer)
            continue
        key = {"group": group, "topic": name, "partition": partition}
        value = {"offset": 7, "metadata": "", "commit_timestamp": 0}
        told = None if word == "delete" else value
        transaction = "pending" if word == "wait" else "none"
        topic.add("OffsetCommit", key, told, version=4, transaction=transaction, producer=producer)
    return topic.table()


def replayed(rows: pa.Table) -> list[tuple[Places, dict[Key, list[int]]]]:
    """The offsets before each row and after the last one, and the places of pending commits, as
    `OffsetMetadataManager.replay` and `replayEndTransactionMarker` find them."""
    offsets: Places = {}
    pending: dict[int, list[tuple[Key, int]]] = {}
    found = []

    def note() -> None:
        waiting = sorted((place, key) for some in pending.values() for key, place in some)
        by_key: dict[Key, list[int]] = {}
        for place, key in waiting:
            by_key.setdefault(key, []).append(place)
        found.append((dict(offsets), by_key))

    typed = DecodedRecords(rows.combine_chunks().to_batches()[0], RECORDS)
    keys = zip(*(typed.member((1,), "key", name).to_pylist() for name in ("group", "topic", "partition")), strict=True)
    for place, (row, key) in enumerate(zip(rows.to_pylist(), keys, strict=True)):
        note()
        if row["control"] is not None:
            for of, stands in pending.pop(row["producer_id"], []):
                if row["control"] == "commit" and offsets.get(of, -1) < stands:
                    offsets[of] = stands
        elif row["value"] is None:
            offsets.pop(key, None)
            pending = {each: [one for one in some if one[0] != key] for each, some in pending.items()}
        elif row["transaction"] == "pending":
            pending.setdefault(row["producer_id"], []).append((key, place))
        else:
            offsets[key] = place
    note()
    return found


@pytest.mark.parametrize("seed", range(60))
def test_what_is_there_is_what_a_replay_finds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each place, whether the rows come together or in several lots; also which offsets are the oldest."""
    random = Random(seed)
    monkeypatch.setattr(module, "_FIRST_LOOK", random.choice([2, 8]))
    monkeypatch.setattr(module, "_FEW", random.choice([1, 128]))
    rows = random_log(random)
    expected = replayed(rows)
    cuts = [0, *sorted(random.sample(range(1, 60), seed % 3)), 60]
    live = LiveOffsets()
    for start, end in pairwise(cuts):
        taken(live, rows.slice(start, end - start))
        for place in range(start, end + 1):
            offsets, pending = expected[place]
            live.up_to(place)
            assert there(live, place) == offsets
            for group in "gh":
                waiting = {key[1:]: places[-1] for key, places in pending.items() if key[0] == group}
                assert list(live.pending(group, is_log_whole=True).items()) == list(waiting.items())
        allowed, most = random.sample(KEYS, 6), random.randrange(1, 5)
        for kind, of in ((0, live.lot.group), (1, live.lot.topic)):
            assert oldest(live, of, range(start, end + 1), allowed, most, kind) == [
                [key for key in expected[place][0] if key in allowed and key[kind] == name][:most]
                for place in range(start, end + 1)
                for name in names(live, kind)
            ]
        deleted = deletions(rows, start, end)
        # A key that was forgotten may have another number now.
        numbers = np.repeat([each for each, key in enumerate(live.keys) if live._numbers._numbers.get(key) == each], 3)
        since, until = np.sort(np.array([random.sample(range(start, end + 1), 2) for _ in numbers]), axis=1).T
        assert live.lot.are_deleted(numbers, since, until).tolist() == [
            any(begin <= place < behind for place in deleted.get(live.keys[number], ()))
            for number, begin, behind in zip(numbers.tolist(), since.tolist(), until.tolist(), strict=True)
        ]
        live.forget()


def names(live: LiveOffsets, kind: int) -> list[str]:
    """The groups (0) or the topics (1) of all numbers, in the order of their codes."""
    return list(dict.fromkeys(str(key[kind]) for key in live.keys))


def oldest(
    live: LiveOffsets, of: INT64, places: range, allowed: Iterable[Key], most: int, kind: int
) -> list[list[Key]]:
    """The oldest offsets right before each place, for each group or topic."""
    count = len(names(live, kind))

    def allows(row: INT64, number: INT64) -> FLAGS:
        assert (of[number] == row % count).all()
        return np.array([live.keys[each] in allowed for each in number.tolist()], np.bool_)

    found: list[list[Key]] = [[] for _ in range(count * len(places))]
    wanted, offsets = np.tile(np.arange(count), len(places)), np.repeat(places, count)
    rows, numbers = live.lot.first_ones(of, wanted, offsets, allows, most)
    assert (np.diff(rows) >= 0).all()
    for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
        found[row].append(live.keys[number])
    return found


def deletions(rows: pa.Table, start: int, end: int) -> dict[Key, list[int]]:
    """The places of tombstones between two places."""
    typed = DecodedRecords(rows.combine_chunks().to_batches()[0], RECORDS)
    keys = zip(*(typed.member((1,), "key", name).to_pylist() for name in ("group", "topic", "partition")), strict=True)
    found: dict[Key, list[int]] = {}
    for place, (key, value) in enumerate(zip(keys, rows.column("value").to_pylist(), strict=True)):
        if value is None and start <= place < end:
            found.setdefault(key, []).append(place)
    return found


def test_the_oldest_offsets_of_no_group_are_none() -> None:
    live, topic = LiveOffsets(), Topic()
    topic.commit("g", 7)
    taken(live, topic.table())
    nothing = np.zeros(0, np.int64)
    found = live.lot.first_ones(live.lot.group, nothing, nothing, lambda row, number: number == number, 1)
    assert [each.tolist() for each in found] == [[], []]
    unknown = live.lot.first_ones(
        live.lot.group, np.array([-1, 0]), np.array([9, 9]), lambda row, number: number == number, 1
    )
    assert [each.tolist() for each in unknown] == [[1], [0]]


def test_commits_that_never_take_effect_keep_no_numbers() -> None:
    live = LiveOffsets()
    for lot in range(3):
        topic = Topic()
        for group in range(100):
            topic.commit(f"{lot}-{group}", 7, transaction="aborted")
        taken(live, topic.table())
        live.forget()
    assert len(live.keys) == 100


def test_a_key_that_cannot_be_read_is_no_offset() -> None:
    topic = Topic()
    topic.commit("g", 7)
    topic.add_bytes(topic.rows[0][5][:-1], topic.rows[0][6])
    live = LiveOffsets()
    taken(live, topic.table())
    assert (there(live, 2), live.keys) == ({("g", "orders", 0): 0}, [("g", "orders", 0)])


def test_offsets_that_are_gone_keep_no_memory() -> None:
    """This applies to offsets of an aborted transaction and to deleted ones."""
    live = LiveOffsets()
    for lot in range(3):
        topic = Topic()
        for group in range(100):
            topic.commit(f"{lot}-{group}", 7, **({"transaction": "pending"} if group < 50 else {}))
        topic.rows = [(*row[:2], row[2] + 200 * lot, *row[3:]) for row in topic.rows]
        taken(live, topic.table())
        live.up_to(NEVER)
        live.forget()
        assert len(live.pending(f"{lot}-0", is_log_whole=True)) == 1
        ended = Topic()
        ended.marker("abort")
        for group in range(50, 100):
            ended.commit(f"{lot}-{group}", None)
        ended.rows = [(*row[:2], row[2] + 200 * lot + 100, *row[3:]) for row in ended.rows]
        taken(live, ended.table())
        live.up_to(NEVER)
        assert (there(live, NEVER), live._waits) == ({}, {})
        live.forget()
    assert len(live.keys) == 100


# -- what the coordinator answers --------------------------------------------------------------------------------------


def answered(question: Question) -> tuple[Places, set[Key]]:
    """The committed offsets in the coordinator's answer, and those that it refuses because of an open transaction."""
    offsets, refused = {}, set()
    for each in question["answer"]:
        key = question["group"], each["topic"], each["partition"]
        if each.get("error") == "UNSTABLE_OFFSET_COMMIT":
            refused.add(key)
        elif each["offset"] != -1:
            offsets[key] = each["offset"]
    return offsets, refused


@pytest.mark.parametrize("name", one_in(12, NAMES))
def test_what_is_there_is_what_the_coordinator_answers(name: str) -> None:
    told, compared = history(name), Counter[bool]()
    live = LiveOffsets()
    taken(live, told.rows)
    (batch,) = told.rows.combine_chunks().to_batches()
    found = DecodedRecords(CommitLot(batch, RECORDS).rows, RECORDS)
    values = dict(zip(found.offsets.tolist(), found.member((0, 1), "value", "offset").to_pylist(), strict=True))
    for offset in sorted(told.cuts):
        live.up_to(offset + 1)
        exist = {key: values[place] for key, place in there(live, offset + 1).items()}
        for question in told.cuts[offset]:
            if not question["question"].startswith("fetch_"):
                continue
            offsets, refused = answered(question)
            group, is_stable = question["group"], question["require_stable"]
            waiting = live.pending(group, is_log_whole=True) if is_stable else {}
            unstable = {(group, *rest) for rest in waiting}
            if question["question"] == "fetch_offsets":
                assert refused == unstable
            assert offsets == {key: value for key, value in exist.items() if key[0] == group and key not in unstable}
            compared[is_stable] += len(offsets)
    assert min(compared[False], compared[True]) > 0
