"""Compares the tables of committed offsets with answers to OffsetFetch."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any, Final

import pyarrow as pa

from tools.judge.answers import Difference, Loaded, asked, columns_of, differing
from tools.judge.histories import CLEANED, Question

Place = tuple[str, int]
UNSTABLE: Final = "UNSTABLE_OFFSET_COMMIT"
_PLACE: Final = ("group_id", "topic", "partition", "log_offset")
_FETCHES: Final = ("fetch_all_offsets", "fetch_offsets")


def current_offsets(loaded: Loaded) -> Iterator[Difference]:
    """Compare the answers to OffsetFetch: offset, leader epoch and metadata of partitions that are not refused."""
    yield from _committed(loaded, "current_offsets", loaded.read("current_offsets"))


def history(loaded: Loaded) -> Iterator[Difference]:
    """The same for the offsets that are current at the end."""
    rows = loaded.read("history")
    yield from _committed(loaded, "history", rows.filter(rows["is_current"]))


def _committed(loaded: Loaded, table: str, rows: pa.Table) -> Iterator[Difference]:
    committed: dict[str, dict[Place, Any]] = {}
    columns = ("group_id", "topic", "partition", "offset", "leader_epoch", "metadata")
    for group, topic, partition, offset, epoch, metadata in columns_of(rows, *columns):
        told = (offset, -1 if epoch is None else epoch, metadata)
        if (topic, partition) in committed.setdefault(group, {}):
            yield Difference(table, f"two rows of {group!r} {topic} {partition}", "one row", told)
        committed[group][topic, partition] = told
    for question in loaded.questions:
        if question["question"] in _FETCHES:
            offsets = committed.get(question["group"], {})
            left_out = _refused(question).keys() | _without_group(loaded, question["group"], offsets.keys())
            got = {place: told for place, told in offsets.items() if place not in left_out}
            yield from differing(table, asked(question), _fetched(question["answer"]), got)


def _without_group(loaded: Loaded, group: str, offsets: Set[Place]) -> Set[Place]:
    """The offsets of record type 0, if the group does not exist: their tombstones are of type 1, so a cleaned log may
    have lost the tombstones and kept these offsets. A coordinator of release 4.0 may also have deleted the group during
    an open transaction, which then committed."""
    (listed,) = (question["answer"] for question in loaded.questions if question["question"] == "list_groups")
    if any(each["groupId"] == group and each["groupType"] != "share" for each in listed):
        return set()
    commits = columns_of(loaded.read("offset_commits"), *_PLACE)
    records = {record["offset"]: record for record in loaded.history.records if "key" in record}
    of_group = [((topic, number), records[at]) for name, topic, number, at in commits if name == group]
    if loaded.history.is_before("4.1.0"):
        late = {place for place, record in of_group if record["transactional"]} & offsets
        if late:
            loaded.untold("an open transaction of a group without offsets", None)
            return late
    is_mixed = loaded.history.header.get("old_versions") and loaded.history.name.endswith(f"-{CLEANED}")
    left = {place for place, record in of_group if is_mixed or record["key"].startswith("0000")} & offsets
    return loaded.untold("offsets without their group", left) if left else left


def pending_offsets(loaded: Loaded) -> Iterator[Difference]:
    """Compare the partitions that OffsetFetch refuses because of an open transaction, if stable offsets are
    required."""
    waiting: dict[str, set[Place]] = {}
    for group, topic, partition in columns_of(loaded.read("pending_offsets"), "group_id", "topic", "partition"):
        waiting.setdefault(group, set()).add((topic, partition))
    yield from _unstable(loaded, "pending_offsets", waiting)


def offset_commits(loaded: Loaded) -> Iterator[Difference]:
    """The same as for `pending_offsets`, from the outcomes of commits."""
    yield from _unstable(loaded, "offset_commits", _open_commits(loaded.read("offset_commits")))


def _unstable(loaded: Loaded, table: str, waiting: dict[str, set[Place]]) -> Iterator[Difference]:
    for question in loaded.questions:
        # If all offsets are requested, the answer lacks partitions that have an open transaction and no earlier commit.
        if question["question"] == "fetch_offsets":
            got = waiting.get(question["group"], set()) if question["require_stable"] else set()
            yield from differing(table, asked(question), _refused(question), dict.fromkeys(got, UNSTABLE))


def _refused(question: Question) -> dict[Place, str]:
    return {(each["topic"], each["partition"]): each["error"] for each in question["answer"] if "error" in each}


def _fetched(answer: list[dict[str, Any]]) -> dict[Place, Any]:
    """The committed offsets by topic and partition."""
    return {
        (each["topic"], each["partition"]): (each["offset"], each["leader_epoch"], each["metadata"])
        for each in answer
        if each["offset"] != -1
    }


def _open_commits(commits: pa.Table) -> dict[str, set[Place]]:
    """The partitions of each group with a commit in an open transaction and no tombstone after it."""
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
