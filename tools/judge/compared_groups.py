"""Compares the table `groups` with answers to ListGroups and to the requests that describe a group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tools.judge.answers import (
    Difference,
    Loaded,
    asked,
    columns_of,
    differing,
    first_share_epoch,
    is_described,
)
from tools.judge.histories import Question


class _Group(NamedTuple):
    """The facts about a group that are both in the table and in a description."""

    kind: str
    protocol_type: str
    state: str
    epoch: int | None
    protocol: str | None
    members: int


def groups(loaded: Loaded) -> Iterator[Difference]:
    """Compare the answers to ListGroups and to the requests that describe a group."""
    columns = ("group_id", "group_kind", "protocol_type", "state", "epoch", "protocol", "member_count")
    rows = [(group, _Group(*row)) for group, *row in columns_of(loaded.read("groups"), *columns)]
    found = dict(rows)
    if len(found) < len(rows):
        yield Difference("groups", "several rows of a group", len(found), len(rows))
    for question in loaded.questions:
        if question["question"] == "list_groups":
            got = {group: (_listed_kind(loaded, row), row.protocol_type, row.state) for group, row in found.items()}
            yield from differing("groups", asked(question), _listed(question["answer"]), got)
        elif is_described(loaded, question) and question["group"] in found:
            row = found[question["group"]]
            yield from differing("groups", asked(question), _described(loaded, question, row), row._asdict())


def _listed(answer: list[dict[str, str]]) -> dict[str, tuple[str, str, str]]:
    return {each["groupId"]: (each["groupType"], each["protocolType"], each["groupState"]) for each in answer}


def _listed_kind(loaded: Loaded, row: _Group) -> Any:
    return loaded.untold("a simple group is classic", "classic") if row.kind == "simple" else row.kind


def _described(loaded: Loaded, question: Question, row: _Group) -> dict[str, Any]:
    """The row in the form of the answer; the kind is as in ListGroups."""
    answer = question["answer"]
    described = row._asdict() | {"state": answer["groupState"], "members": len(answer["members"])}
    if question["group_type"] == "classic":
        loaded.untold("the generation of a classic group", None)
        return described | {"protocol_type": answer["protocolType"], "protocol": answer["protocolData"] or None}
    loaded.untold("the protocol of a group that is not classic", None)
    epoch = answer["groupEpoch"]
    if row.epoch is None and epoch == first_share_epoch(loaded):
        epoch = loaded.untold("a share group's first epoch", None)
    return described | {"protocol": None, "epoch": epoch}
