"""Compares the table `expirations` with the tombstones of the next clean-up."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from kafka_records.consumer_offsets import decode_record
from tools.judge.answers import Difference, Loaded, asked, columns_of, differing
from tools.judge.histories import COMMITS

_FAILS = "a clean-up that fails"


def expirations(loaded: Loaded) -> Iterator[Difference]:
    """Compare every clean-up with the times at which rows expire, and the largest clean-up also with its exact
    tombstones."""
    questions = [
        question
        for question in loaded.questions
        if question["question"] == "next_cleanup" and not ("error" in question and loaded.untold(_FAILS, True))
    ]
    if not questions:
        return
    retention = loaded.history.header["offsets_retention_ms"]
    columns = ("group_id", "topic", "partition", "expires_timestamp_ms")
    found = loaded.read("expirations", retention=retention)
    rows = list(columns_of(found, *columns))
    left_out = loaded.unsubscribed | _without_offsets(loaded, found) | _never_ended(loaded)
    for question in questions:
        got = Counter(tuple(place) for *place, when in rows if when is not None and when <= question["at_ms"])
        expected = Counter(dict.fromkeys(map(_expired, question["tombstones"]), 1))
        for place in [place for place in (*got, *expected) if place[0] in left_out]:
            got.pop(place, None)
            expected.pop(place, None)
        yield from differing("expirations", asked(question), expected, got)
    if left_out:
        return
    most = max(questions, key=lambda question: len(question["tombstones"]))
    written = loaded.read("expirations", at=most["at_ms"], retention=retention)
    exact = Counter(
        (number, json.dumps(decode_record(key, None).to_json()["key"]["data"]))
        for number, key in columns_of(written, "record_type", "key")
    )
    tombstones = Counter((each["type"], json.dumps(each["key"])) for each in most["tombstones"])
    yield from differing("expirations", asked(most), tombstones, exact)


def _without_offsets(loaded: Loaded, rows: pa.Table) -> frozenset[str]:
    """The groups whose only offsets are in open transactions, if the coordinator is of release 4.0."""
    if not loaded.history.is_before("4.1.0"):
        return frozenset()
    found = list(columns_of(rows, "group_id", "kind", "protected_by"))
    waiting = {group for group, kind, protected_by in found if (kind, protected_by) == ("group", "transaction")}
    waiting -= {group for group, kind, _ in found if kind == "offset"}
    if waiting:
        loaded.untold("an open transaction of a group without offsets", None)
    return frozenset(waiting)


def _never_ended(loaded: Loaded) -> frozenset[str]:
    """The groups for which tombstones removed all offsets that a transaction would have committed, if the coordinator
    is of release 4.0."""
    if not loaded.history.is_before("4.1.0"):
        return frozenset()
    waiting: dict[int, set[tuple[str, str, int]]] = {}
    found = set()
    for record in loaded.history.records:
        if record["offset"] > loaded.cut:
            break
        if "control" in record:
            waiting.pop(record["producer_id"], None)
        elif record["key"].startswith(COMMITS):
            key: Any = decode_record(bytes.fromhex(record["key"]), None).key
            place = key.group, key.topic, key.partition
            if record["transactional"]:
                waiting.setdefault(record["producer_id"], set()).add(place)
            elif record["value"] is None:
                for places in waiting.values():
                    if place in places:
                        places.remove(place)
                        found |= {key.group} - {group for group, *_ in places}
    if found:
        loaded.untold("a transaction whose offsets were deleted", None)
    return frozenset(found)


def _expired(tombstone: dict[str, Any]) -> tuple[str, str | None, int | None]:
    """The group, topic and partition of a tombstone; topic and partition are None for a group."""
    key = tombstone["key"]
    return key.get("group", key.get("groupId")), key.get("topic"), key.get("partition")
