"""Compares the table `deletable_offsets` with answers to OffsetDelete and DeleteGroups, and with their tombstones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tools.judge.answers import Difference, Loaded, asked, columns_of, differing
from tools.judge.histories import Question

_DELETED: Final = "NONE"
_OFFSET_COMMIT: Final = 1

Place = tuple[str, int]


def deletable_offsets(loaded: Loaded) -> Iterator[Difference]:
    """For each group, compare what a coordinator answers about its partitions and about the group, and what it
    writes."""
    questions = [question for question in loaded.questions if question["question"].startswith("delete_")]
    if not questions:
        return  # the stored histories do not have these questions
    offsets: dict[str, dict[Place, str]] = {}
    groups: dict[str, str] = {}
    columns = ("kind", "group_id", "topic", "partition", "is_deletable", "error")
    for kind, group, topic, partition, is_deletable, error in columns_of(loaded.read("deletable_offsets"), *columns):
        if is_deletable is not (error is None):
            yield Difference(
                "deletable_offsets", f"{kind} of {group!r}", "an error or a deletion", (is_deletable, error)
            )
        if kind == "group":
            groups[group] = error or _DELETED
        elif (topic, partition) in offsets.setdefault(group, {}):
            yield Difference("deletable_offsets", f"two rows of {group!r} {topic} {partition}", "one row", error)
        else:
            offsets[group][topic, partition] = error or _DELETED
    for question in questions:
        group = question["group"]
        if group in loaded.unsubscribed:
            continue
        if question["question"] == "delete_group":
            got = _group(groups.get(group), offsets.get(group, {}))
            yield from differing("deletable_offsets", asked(question), _answered(loaded, question), got)
        else:
            yield from _of_offsets(loaded, question, offsets.get(group, {}))


def _answered(loaded: Loaded, question: Question) -> dict[str, Any]:
    offsets = _tombstones(question)
    if loaded.history.is_before("4.1.0") and len(set(offsets)) < len(offsets):
        offsets = loaded.untold("an offset in several transactions", list(dict.fromkeys(offsets)))
    return {"error": question["answer"], "offsets": sorted(offsets)}


def _group(error: str | None, offsets: Mapping[Place, str]) -> dict[str, Any]:
    """The rows about a group in the form of an answer: the error, and the offsets that would be deleted with the
    group."""
    if error is None:
        return {"error": "GROUP_ID_NOT_FOUND", "offsets": []}
    return {"error": error, "offsets": sorted(offsets) if error == _DELETED else []}


def _of_offsets(loaded: Loaded, question: Question, rows: Mapping[Place, str]) -> Iterator[Difference]:
    """Compare every offset with the answer about it. Partitions without an answer must have no row."""
    answer = question["answer"]
    if isinstance(answer, dict):
        yield from differing("deletable_offsets", asked(question), dict.fromkeys(rows, answer["error"]), rows)
        return
    answered = {(each["topic"], each["partition"]): each["error"] for each in answer}
    there = _there(loaded, question["group"])
    refused = {place: error for place, error in answered.items() if error != _DELETED and place in there}
    yield from differing(
        "deletable_offsets", asked(question), refused | dict.fromkeys(_tombstones(question), _DELETED), rows
    )


def _there(loaded: Loaded, group: str) -> set[Place]:
    """The partitions with an offset, or with one that waits for the end of a transaction."""
    fetches = (each for each in loaded.questions if each["question"] == "fetch_offsets" and each["group"] == group)
    return {
        (each["topic"], each["partition"])
        for question in fetches
        for each in question["answer"]
        if "error" in each or each["offset"] != -1
    }


def _tombstones(question: Question) -> list[Place]:
    """The offsets that a request deletes."""
    keys = (each["key"] for each in question.get("tombstones", ()) if each["type"] == _OFFSET_COMMIT)
    return [(key["topic"], key["partition"]) for key in keys]
