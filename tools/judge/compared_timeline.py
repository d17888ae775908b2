"""Compares the groups that follow from the events of the table `timeline` with the groups that a coordinator
describes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tools.judge.answers import Difference, Loaded, asked, differing, first_share_epoch, is_described

_NAME = "timeline"

_WITH_STATES: Final = ("consumer", "streams")
"""The kinds of groups whose state shows whether all members have reached the target. The state of share groups only
shows whether there are members; that of classic groups changes when the log is loaded."""

_UNSETTLED: Final = ("Assigning", "Reconciling", "NotReady")


@dataclass
class _GroupBetweenBatches:
    """A group as it follows from the events so far."""

    kind: str
    epoch: int | None = None
    members: set[str] = field(default_factory=set)
    away: set[str] = field(default_factory=set)
    """Static members that are temporarily away: the other members do not change, and the group is not stable."""
    rebalances_since: int | None = None
    is_rebalancing: bool = False


def timeline(loaded: Loaded) -> Iterator[Difference]:
    """Compare the groups, with their kinds, epochs, members and rebalances, that follow from events with those that are
    listed and described."""
    found: dict[str, _GroupBetweenBatches] = {}
    for row in loaded.read(_NAME).to_pylist():
        if not _follows(found, row):
            yield Difference(_NAME, "an event that cannot follow those before it", found.get(row["group_id"]), row)
    for question in loaded.questions:
        if question["question"] == "list_groups":
            kinds = {name: _listed_kind(loaded, life) for name, life in found.items()}
            listed = {each["groupId"]: each["groupType"] for each in question["answer"]}
            yield from differing(_NAME, asked(question), listed, kinds)
        elif is_described(loaded, question) and question["group"] in found:
            life, answer = found[question["group"]], question["answer"]
            expected = {"members": {each["memberId"] for each in answer["members"]}, "epoch": life.epoch}
            if question["group_type"] == "classic":
                loaded.untold("the generation of a classic group", None)
            elif life.epoch is None and answer["groupEpoch"] == first_share_epoch(loaded):
                loaded.untold("a share group's first epoch", None)
            else:
                expected["epoch"] = answer["groupEpoch"]
            got: dict[str, Any] = {"members": life.members, "epoch": life.epoch}
            if question["group_type"] in _WITH_STATES:
                expected["is_unsettled"] = answer["groupState"] in _UNSETTLED
                got["is_unsettled"] = life.is_rebalancing or bool(life.away)
            yield from differing(_NAME, asked(question), expected, got)


def _listed_kind(loaded: Loaded, life: _GroupBetweenBatches) -> Any:
    return loaded.untold("a simple group is classic", "classic") if life.kind == "simple" else life.kind


def _follows(found: dict[str, _GroupBetweenBatches], row: dict[str, Any]) -> bool:
    """Apply an event. Returns whether it is possible: no member joins twice, only members leave, and only a rebalance
    that began ends."""
    group_id, event, member_id = row["group_id"], row["event"], row["member_id"]
    if event == "created":
        is_new = group_id not in found
        found[group_id] = _GroupBetweenBatches(row["group_kind"])
        return is_new
    if event == "deleted":
        # The tombstone may be the only record that is left of a group, or a clean-up wrote it for a group without
        # records.
        life = found.pop(group_id, None)
        return life is None or row["group_kind"] is not None
    if group_id not in found:
        return event in ("offsets_deleted",)
    life = found[group_id]
    life.kind = row["group_kind"]
    detail = json.loads(row["detail"] or "{}")
    if event in ("converted", "emptied"):
        life.is_rebalancing = False
    if event == "member_away":
        life.away.add(member_id)
    elif event in ("member_returned", "member_left"):
        life.away.discard(member_id)
    if event.startswith("rebalance_") and life.kind != "classic":
        return _rebalances(life, row)
    if event == "converted" and row["epoch"] is None:
        life.epoch = None  # no record shows an epoch of the new kind yet
    if event == "epoch":
        life.epoch, former = detail["to"], life.epoch
        return bool(detail.get("from") == former)
    if event in ("member_joined", "member_replaced"):
        gone = {detail.get("former_member_id")} if event == "member_replaced" else set()
        is_possible = member_id not in life.members and gone <= life.members
        life.members = life.members - gone | {member_id}
        life.away -= gone
        return is_possible
    if event == "member_left":
        was_there = member_id in life.members
        life.members.discard(member_id)
        return was_there
    return member_id is None or member_id in life.members


def _rebalances(life: _GroupBetweenBatches, row: dict[str, Any]) -> bool:
    """Start or complete a rebalance. Returns whether that is possible."""
    was_rebalancing, life.is_rebalancing = life.is_rebalancing, row["event"] == "rebalance_started"
    if life.is_rebalancing:
        life.rebalances_since = row["at_timestamp_ms"]
        return not was_rebalancing
    return was_rebalancing and row["duration_ms"] == row["at_timestamp_ms"] - life.rebalances_since
