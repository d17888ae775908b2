"""The coordinators' records that each Kafka release reads, with the versions of their values.

The facts come from the message specs in the jars of the releases (`make matrix` compares them), and from the defaults
of their brokers: before 4.0, the group coordinator is `kafka.coordinator.group.GroupMetadataManager`, which knows only
commits and classic groups, even if its jars contain more specs. This module imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kafka_records_tables.topics import OFFSETS, SHARE_STATE, TRANSACTIONS

RELEASES: Final = ("2.8", "3.5", "3.7", "3.9", "4.0", "4.1", "4.2", "4.3", "4.4")
"""The known releases, oldest first."""

_LAST_OF: Final = {2: 8, 3: 9}
"""The last minor releases before 3.0 and 4.0."""


def known_release(release: str) -> str | None:
    """The last of RELEASES that is not newer than `release` (numbers separated by dots); None if all are newer."""
    return next((each for each in reversed(RELEASES) if _numbers(each) <= _numbers(release)), None)


def is_release(release: str) -> bool:
    """Whether the release exists and is between the first and the last of RELEASES."""
    numbers = _numbers(release)[:2]
    is_there = numbers[1] <= _LAST_OF.get(numbers[0], numbers[1])
    return is_there and _numbers(RELEASES[0]) <= numbers <= _numbers(RELEASES[-1])


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


_SINCE: Final[Mapping[str, Mapping[int, str]]] = {
    OFFSETS: {
        **dict.fromkeys((0, 1, 2), "2.8"),
        **dict.fromkeys((3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16), "4.0"),
        **dict.fromkeys((17, 19, 20, 21, 22, 23), "4.1"),
    },
    SHARE_STATE: dict.fromkeys((0, 1), "4.0"),
    TRANSACTIONS: {0: "2.8"},
}
"""By topic and record type, the first release whose coordinator reads such records by default."""

_UNTIL: Final = {(OFFSETS, 9): "4.0"}
"""The last release that reads such records, if it is not the latest."""

_HIGHEST: Final[Mapping[tuple[str, int], Mapping[str, int]]] = {
    (OFFSETS, 1): {"2.8": 3, "3.5": 4},
    (OFFSETS, 2): {"2.8": 3, "3.5": 4},
    (TRANSACTIONS, 0): {"2.8": 0, "3.5": 1},
}
"""The highest version of values, by the release in which it was introduced; 0 for all other records."""

_OTHER_LAYOUT: Final = {("4.0", OFFSETS, 11), ("4.0", OFFSETS, 15), ("4.0", SHARE_STATE, 0), ("4.0", SHARE_STATE, 1)}
"""Records of share groups. In 4.0 (early access), they had other fields under the same version than since 4.1."""

_PASSES_OVER_SINCE: Final = "3.5"
"""Since this release, a coordinator skips records of unknown types (KIP-915). Earlier ones stop loading."""


_STOPS_READING: Final = "stops reading there, and serves only the transactional ids before it"


class Unread(NamedTuple):
    """How a release reacts to a record that it cannot read."""

    stops: bool
    """Whether the coordinator of that release fails to load the log."""
    why: str
    """The release's reaction, as a phrase that follows its name."""


def unread_type(release: str, topic: str, record_type: int) -> Unread | None:
    """How a release reacts to records of a type that it does not know; None if it knows the type."""
    return None if record_type in reads_by_default(release, topic) else _unknown_type(release, topic)


def unread(release: str, topic: str, record_type: int, version: int) -> Unread | None:
    """How a release that knows the type reacts to a value of that version; None if it can read the value."""
    if version > highest_version(release, topic, record_type):
        if topic == TRANSACTIONS:
            return Unread(True, _STOPS_READING)
        return Unread(True, "does not know this version, so it does not load the log")
    if (release, topic, record_type) in _OTHER_LAYOUT:
        return Unread(True, "has other fields in this version, so it reads wrong values, or fails")
    return None


def reads_by_default(release: str, topic: str) -> frozenset[int]:
    """The record types that a release reads by default."""
    types = _SINCE[topic]
    return frozenset(
        number
        for number, since in types.items()
        if _order(since) <= _order(release) <= _order(_UNTIL.get((topic, number), RELEASES[-1]))
    )


def highest_version(release: str, topic: str, record_type: int) -> int:
    """The highest version of values of that type that a release reads."""
    found = 0
    for since, version in _HIGHEST.get((topic, record_type), {}).items():
        if _order(since) <= _order(release):
            found = version
    return found


def _unknown_type(release: str, topic: str) -> Unread:
    if topic == SHARE_STATE and not reads_by_default(release, topic):
        return Unread(False, "has no share coordinator, and does not read this topic")
    if _order(release) < _order(_PASSES_OVER_SINCE):
        stops = _STOPS_READING if topic == TRANSACTIONS else "does not load the log"
        return Unread(True, f"does not know this record type, and {stops}")
    return Unread(False, "skips this record type with a warning, and its content is lost")


def _order(release: str) -> int:
    return RELEASES.index(release)
