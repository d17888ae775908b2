"""The offsets that exist at each point of a log, compared with the order in which commits take effect, and with the
coordinator's answers to OffsetFetch, with and without stable offsets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafka_records.schemas.consumer_offsets import RECORDS
from kafka_records_tables.coordinator.offsets.commit_order import in_effect_by_number, numbers_of_keys
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.offsets.live_offsets import LiveOffsets
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords, numbers_of
from tests.tables.histories import NAMES, Question, history
from tests.tables.topic import Topic
from tests.variants import one_in

Key = tuple[str, str, int]


def random_log(random: Random) -> list[tuple[str, int, Key]]:
    """Events, each with its producer and its offset."""
    words = ["commit", "wait", "wait", "delete", "committed", "aborted"]
    keys = [(group, topic, partition) for group in "gh" for topic in "tu" for partition in (0, 1)]
    return [(random.choice(words), random.randrange(3), random.choice(keys)) for _ in range(60)]


def taken(log: list[tuple[str, int, Key]]) -> dict[Key, int]:
    """The places of the commits of the offsets that exist after the log."""
    topic = Topic()
    for _, _, (group, name, partition) in log:
        named = {"group": group, "topic": name, "partition": partition}
        topic.add("OffsetCommit", named, {"offset": 7, "metadata": "", "commit_timestamp": 0})
    (rows,) = topic.table().combine_chunks().to_batches()
    live = LiveOffsets()
    commits = live.rows(DecodedRecords(rows, RECORDS), numbers_of(RECORDS, COMMITS))
    for at, (word, producer, key) in enumerate(log):
        one = commits.chosen(slice(at, at + 1))
        if word == "commit":
            live.commit(one)
        elif word == "wait":
            live.wait(producer, one)
        elif word == "delete":
            live.delete([key])
        else:
            live.end(producer, word == "committed")
    numbers = {key: live.number(key) for _, _, key in log}
    return {key: int(live.log_offset[number]) for key, number in numbers.items() if number is not None}


def expected(log: list[tuple[str, int, Key]]) -> dict[Key, int]:
    """The same according to `in_effect_by_number`."""
    found: list[tuple[Key, int, int, bool]] = []
    waiting: dict[int, list[tuple[Key, int]]] = {}
    for at, (word, producer, key) in enumerate(log):
        if word in ("commit", "delete"):
            found.append((key, at, at, word == "commit"))
        elif word == "wait":
            waiting.setdefault(producer, []).append((key, at))
        else:
            ended = waiting.pop(producer, [])
            found += [(of, at, stands, True) for of, stands in ended if word == "committed"]
    groups, topics, partitions = zip(*(key for key, *_ in found), strict=True)
    rows = pa.RecordBatch.from_pydict({"group_id": groups, "topic": topics, "partition": partitions})
    place, log_offset = (np.array([each[number] for each in found], np.int64) for number in (1, 2))
    order, _ = in_effect_by_number(numbers_of_keys(rows), place, log_offset)
    last = {found[row][0]: found[row] for row in order.tolist()}
    return {key: stands for key, (_, _, stands, is_there) in last.items() if is_there}


@pytest.mark.parametrize("seed", range(40))
def test_what_is_there_is_what_took_effect(seed: int) -> None:
    log = random_log(Random(seed))
    assert taken(log) == expected(log)


def test_commits_that_never_take_effect_keep_no_numbers() -> None:
    live = LiveOffsets()
    for lot in range(3):
        topic = Topic()
        for group in range(100):
            topic.commit(f"{lot}-{group}", 7, transaction="aborted")
        (rows,) = topic.table().combine_chunks().to_batches()
        live.rows(DecodedRecords(rows, RECORDS), numbers_of(RECORDS, COMMITS))
        live.forget()
    assert len(live.keys) == 100


def test_a_key_that_cannot_be_read_is_no_offset() -> None:
    topic = Topic()
    topic.commit("g", 7)
    topic.add_bytes(topic.rows[0][5][:-1], topic.rows[0][6])
    (rows,) = topic.table().combine_chunks().to_batches()
    live = LiveOffsets()
    commits = live.rows(DecodedRecords(rows, RECORDS), numbers_of(RECORDS, COMMITS))
    assert (commits.log_offset.tolist(), live.keys) == ([0], [("g", "orders", 0)])


def test_offsets_that_are_gone_keep_no_memory() -> None:
    """This applies to offsets of an aborted transaction and to deleted ones."""
    live, types = LiveOffsets(), numbers_of(RECORDS, COMMITS)
    for lot in range(3):
        topic = Topic()
        for group in range(100):
            topic.commit(f"{lot}-{group}", 7)
        (rows,) = topic.table().combine_chunks().to_batches()
        commits = live.rows(DecodedRecords(rows, RECORDS), types)
        live.wait(1, commits.chosen(slice(50)))
        live.commit(commits.chosen(slice(50, None)))
        live.forget()
        live.end(1, is_committed=False)
        live.delete([live.keys[number] for number in commits.keys[50:].tolist()])
        assert live._of_group == live._of_topic == {}
        live.forget()
    assert len(live.keys) == 100


# -- what the coordinator answers --------------------------------------------------------------------------------------

Offsets = dict[Key, int]


def moments(rows: pa.Table) -> Iterator[tuple[int, Offsets, Offsets]]:
    """After each row: its log offset, the committed offsets, and the places of pending commits."""
    (batch,) = rows.combine_chunks().to_batches()
    types = numbers_of(RECORDS, COMMITS)
    numbers = [
        -1 if control else int.from_bytes(key[:2])
        for key, control in zip(*columns(batch, "key", "control"), strict=True)
    ]
    is_commit = pc.is_in(pa.array(numbers), pa.array(types))
    found = DecodedRecords(batch.filter(is_commit), RECORDS)
    live = LiveOffsets()
    commits = live.rows(found, types)
    stands = dict(zip(found.offsets.tolist(), found.member(types, "value", "offset").to_pylist(), strict=True))
    places = {offset: at for at, offset in enumerate(commits.log_offset.tolist())}
    assert places.keys() == stands.keys()
    groups = sorted({live.keys[number][0] for number in commits.keys.tolist()})
    told = columns(batch, "offset", "producer_id", "transaction", "control", "value")
    for offset, producer, transaction, control, value in zip(*told, strict=True):
        if control is not None:
            live.end(producer, control == "commit")
        elif offset in places:
            one = commits.chosen(slice(places[offset], places[offset] + 1))
            if value is None:
                live.delete([live.keys[int(one.keys[0])]])
            elif transaction == "pending":
                live.wait(producer, one)
            else:
                live.commit(one)
        there = {
            live.keys[each]: stands[int(live.log_offset[each])] for group in groups for each in live.of_group(group)
        }
        yield offset, there, live.pending(groups, is_log_whole=True)


def columns(batch: pa.RecordBatch, *names: str) -> list[list[Any]]:
    return [batch.column(name).to_pylist() for name in names]


def answered(question: Question) -> tuple[Offsets, set[Key]]:
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
    for offset, there, waiting in moments(told.rows):
        for question in told.cuts.get(offset, ()):
            if not question["question"].startswith("fetch_"):
                continue
            offsets, refused = answered(question)
            group, is_stable = question["group"], question["require_stable"]
            unstable = {key for key in waiting if key[0] == group} if is_stable else set()
            if question["question"] == "fetch_offsets":
                assert refused == unstable
            assert offsets == {key: value for key, value in there.items() if key[0] == group and key not in unstable}
            compared[is_stable] += len(offsets)
    assert min(compared[False], compared[True]) > 0
