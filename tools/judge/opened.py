"""The decoded bytes of members in the table `members`, in the form of the judge's `Opened.java`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

Json = dict[str, Any]

NOTHING_OPENED: Final = {"subscription": None, "user_data": None, "assignment": None}
"""For a member with a protocol type that no client of Kafka uses."""

_NO_GENERATION: Final = -1


def shown_opened(row: Mapping[str, Any]) -> Json:
    """The decoded bytes in a row of a classic group. Lists are sorted. Missing values are replaced by those that
    clients assume."""
    (protocol,) = row["protocols"]
    subscription, user_data = _read(protocol["opened"]), _read(protocol["user_data"])
    assignment = _read(row["assignment"]["opened"])
    if subscription is not None and "url" in subscription:
        worker = {"url": subscription["url"], "config_offset": subscription["configOffset"]}
        return {
            "subscription": worker | {"allocation": _allocation(user_data)},
            "user_data": None,
            "assignment": _allocation(assignment),
        }
    return {
        "subscription": subscription and _consumer(subscription),
        "user_data": subscription and _sticky(protocol["name"], user_data),
        "assignment": assignment and (_assigned if "assignedPartitions" in assignment else _allocation)(assignment),
    }


def _read(text: str | None) -> Json | None:
    return None if text is None else json.loads(text)


def _consumer(told: Json) -> Json:
    return {
        "user_data": told["userData"],
        "generation": told.get("generationId", _NO_GENERATION),
        "rack": told.get("rackId"),
        "topics": sorted(told["topics"]),
        "owned": _partitions(told.get("ownedPartitions", ())),
    }


def _sticky(assignor: str | None, told: Json | None) -> Json | None:
    """The user data of a sticky assignor, which treats unreadable bytes as empty."""
    generation = {"generation": _NO_GENERATION if told is None else told.get("generation", _NO_GENERATION)}
    if assignor == "cooperative-sticky":
        return generation
    if assignor == "sticky":
        return generation | {"partitions": _partitions(told["previousAssignment"] if told else ())}
    return None


def _assigned(told: Json) -> Json:
    return {"user_data": told["userData"], "partitions": _partitions(told["assignedPartitions"])}


def _allocation(told: Json | None) -> Json | None:
    if told is None:
        return None
    return {
        "error": told["error"],
        "leader": told["leader"],
        "leader_url": told["leaderUrl"],
        "config_offset": told["configOffset"],
        "delay": told.get("delay", 0),
        "assigned": _tasks(told["assignment"]),
        "revoked": _tasks(told.get("revoked")),
    }


def _partitions(told: Iterable[Json]) -> list[list[Any]]:
    return _sorted([each["topic"], number] for each in told for number in each["partitions"])


def _tasks(told: Iterable[Json] | None) -> list[list[Any]]:
    return _sorted([each["connector"], number] for each in told or () for number in each["tasks"])


def _sorted(pairs: Iterable[list[Any]]) -> list[list[Any]]:
    """The pairs in the order of the judge's output: by their JSON text."""
    return sorted(pairs, key=lambda pair: json.dumps(pair, ensure_ascii=False, separators=(",", ":")))
