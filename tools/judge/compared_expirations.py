"""The table expirations, against the tombstones of the clean-up that would come next."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from kafka_records.consumer_offsets import decode_record
from tools.judge.answers import Difference, Loaded, asked, columns_of, differing

_FAILS = "a clean-up that fails"


def expirations(loaded: Loaded) -> Iterator[Difference]:
    """Every clean-up by when rows expire, and the one that writes most by its very tombstones."""
    questions = [
        question
        for question in loaded.questions
        if question["question"] == "next_cleanup" and not ("error" in question and loaded.untold(_FAILS, True))
    ]
    if not questions:
        return
    retention = loaded.history.header["offsets_retention_ms"]
    columns = ("group_id", "topic", "partition", "expires_timestamp_ms")
    rows = list(columns_of(loaded.read("expirations", retention=retention), *columns))
    for question in questions:
        got = Counter(tuple(place) for *place, when in rows if when is not None and when <= question["at_ms"])
        expected = Counter(dict.fromkeys(map(_expired, question["tombstones"]), 1))
        for place in [place for place in (*got, *expected) if place[0] in loaded.unsubscribed]:
            got.pop(place, None)
            expected.pop(place, None)
        yield from differing("expirations", asked(question), expected, got)
    if loaded.unsubscribed:
        return
    most = max(questions, key=lambda question: len(question["tombstones"]))
    written = loaded.read("expirations", at=most["at_ms"], retention=retention)
    exact = Counter(
        (number, json.dumps(decode_record(key, None).to_json()["key"]["data"]))
        for number, key in columns_of(written, "record_type", "key")
    )
    tombstones = Counter((each["type"], json.dumps(each["key"])) for each in most["tombstones"])
    yield from differing("expirations", asked(most), tombstones, exact)


def _expired(tombstone: dict[str, Any]) -> tuple[str, str | None, int | None]:
    """The group, topic and partition that a tombstone is about; the latter None for a group."""
    key = tombstone["key"]
    return key.get("group", key.get("groupId")), key.get("topic"), key.get("partition")
