"""The offsets that are there as a log goes on, against the order in which commits take effect."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from kafka_records.schemas.consumer_offsets import RECORDS
from kafka_records_tables.tables.committed.commit_order import in_effect
from kafka_records_tables.tables.committed.commits import COMMITS
from kafka_records_tables.tables.committed.live_offsets import LiveOffsets
from kafka_records_tables.tables.decoded.decoded_records import DecodedRecords, numbers_of
from tests.tables.topic import Topic

Key = tuple[str, str, int]


def random_log(random: Random) -> list[tuple[str, int, Key]]:
    """What happens, to which producer, and to which offset."""
    words = ["commit", "wait", "wait", "delete", "committed", "aborted"]
    keys = [(group, topic, partition) for group in "gh" for topic in "tu" for partition in (0, 1)]
    return [(random.choice(words), random.randrange(3), random.choice(keys)) for _ in range(60)]


def taken(log: list[tuple[str, int, Key]]) -> dict[Key, int]:
    """Where the commits stand of the offsets that are there behind it."""
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
    """The same by `in_effect`."""
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
    order, _ = in_effect(rows, place, log_offset)
    last = {found[row][0]: found[row] for row in order.tolist()}
    return {key: stands for key, (_, _, stands, is_there) in last.items() if is_there}


@pytest.mark.parametrize("seed", range(40))
def test_what_is_there_is_what_took_effect(seed: int) -> None:
    log = random_log(Random(seed))
    assert taken(log) == expected(log)
