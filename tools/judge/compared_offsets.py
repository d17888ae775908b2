"""The table current_offsets, against answers to OffsetFetch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from tools.judge.answers import Difference, Loaded, asked, columns_of, differing

Place = tuple[str, int]
UNSTABLE: Final = "UNSTABLE_OFFSET_COMMIT"


def current_offsets(loaded: Loaded) -> Iterator[Difference]:
    """The answers to OffsetFetch: offset, leader epoch and metadata, or that a transaction is open."""
    committed: dict[str, dict[Place, Any]] = {}
    columns = ("group_id", "topic", "partition", "offset", "leader_epoch", "metadata")
    for group, topic, partition, offset, epoch, metadata in columns_of(loaded.read("current_offsets"), *columns):
        told = (offset, -1 if epoch is None else epoch, metadata)
        if (topic, partition) in committed.setdefault(group, {}):
            yield Difference("current_offsets", f"two rows of {group!r} {topic} {partition}", "one row", told)
        committed[group][topic, partition] = told
    waiting = _open_commits(loaded.read("offset_commits"))
    for question in loaded.questions:
        if question["question"] in ("fetch_all_offsets", "fetch_offsets"):
            got = dict(committed.get(question["group"], {}))
            if question["require_stable"]:
                unstable = waiting.get(question["group"], set())
                if question["question"] == "fetch_all_offsets":
                    # Of partitions with an open transaction and nothing older it knows nothing.
                    unstable = unstable & got.keys()
                got |= dict.fromkeys(unstable, UNSTABLE)
            yield from differing("current_offsets", asked(question), _fetched(question["answer"]), got)


def _fetched(answer: list[dict[str, Any]]) -> dict[Place, Any]:
    """By topic and partition what is committed there; nothing is, where the offset is -1 and no error told."""
    return {
        (each["topic"], each["partition"]): each.get("error")
        or (each["offset"], each["leader_epoch"], each["metadata"])
        for each in answer
        if each["offset"] != -1 or "error" in each
    }


def _open_commits(commits: pa.Table) -> dict[str, set[Place]]:
    """The partitions of each group with a commit in an open transaction and no tombstone behind it."""
    deleted: dict[tuple[str, str, int], int] = {}
    pending: dict[tuple[str, str, int], int] = {}
    columns = ("group_id", "topic", "partition", "log_offset", "is_tombstone", "transaction")
    for group, topic, partition, place, is_tombstone, transaction in columns_of(commits, *columns):
        kept = deleted if is_tombstone else pending
        if is_tombstone or transaction == "open":
            kept[group, topic, partition] = max(place, kept.get((group, topic, partition), -1))
    found: dict[str, set[Place]] = {}
    for (group, topic, partition), place in pending.items():
        if place > deleted.get((group, topic, partition), -1):
            found.setdefault(group, set()).add((topic, partition))
    return found
