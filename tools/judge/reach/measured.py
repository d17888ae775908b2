"""A stored measurement: how much of each class was reached, and which parts of replay and clean-up were not reached."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

PHASES: Final = ("WRITING", "LOADING", "ANSWERING", "ALL")
"""The phases of `Phase.java`, and all of them together."""

_GROUP: Final = "org/apache/kafka/coordinator/group/"
_SHARE: Final = "org/apache/kafka/coordinator/share/"

CLASSES: Final = (
    f"{_GROUP}GroupCoordinatorShard",
    f"{_GROUP}GroupMetadataManager",
    f"{_GROUP}OffsetMetadataManager",
    f"{_GROUP}OffsetMetadataManager$Offsets",
    f"{_GROUP}OffsetMetadataManager$OpenTransactions",
    f"{_GROUP}OffsetAndMetadata",
    f"{_GROUP}OffsetExpirationConditionImpl",
    f"{_GROUP}classic/ClassicGroup",
    f"{_GROUP}classic/ClassicGroupMember",
    f"{_GROUP}modern/ModernGroup",
    f"{_GROUP}modern/ModernGroupMember",
    f"{_GROUP}modern/consumer/ConsumerGroup",
    f"{_GROUP}modern/consumer/ConsumerGroupMember",
    f"{_GROUP}modern/share/ShareGroup",
    f"{_GROUP}modern/share/ShareGroupMember",
    f"{_GROUP}streams/StreamsGroup",
    f"{_GROUP}streams/StreamsGroupMember",
    f"{_SHARE}ShareCoordinatorShard",
    f"{_SHARE}PersisterStateBatchCombiner",
    f"{_SHARE}ShareCoordinatorOffsetsManager",
    f"{_SHARE}ShareGroupOffset",
)
"""The classes that interpret a log, in the order of the page."""

_CLEAN_UP: Final = re.compile(
    r"(lambda\$)?(cleanupGroupMetadata|cleanupExpiredOffsets|onTopicsDeleted|maybeCleanupShareGroupState"
    r"|maybeDeleteGroup|maybeDeleteEmpty\w*|createGroupTombstoneRecords\w*|deleteAllOffsets|deleteOffsets|deleteGroups"
    r"|offsetExpirationCondition|isOffsetExpired|isSubscribedToTopic|shouldExpire|replayEndTransactionMarker"
    r"|maybeCleanupShareState|snapshotColdPartitions|listStreamsGroupsNeedingTopologyCleanup)(\$\d+)?"
)
_BESIDE: Final = frozenset({"equals", "hashCode", "toString"})

Line = Sequence[int]
"""Its number, the counts of missed and executed instructions, and the same for branches."""


def kept(report: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """By the simple name of each class: its `counts` by phase, and its `unreached` parts.

    Counts are executed lines, lines, taken branches and branches. The unreached parts are those of clean-up and of
    replay (every method that a loading coordinator enters): their `lines`, and the number of `branches` there.
    """
    found: dict[str, Any] = {}
    for name in CLASSES:
        if name in report["ALL"]:
            counts = {phase: _counts(report[phase][name]) for phase in PHASES}
            found[name.rpartition("/")[2]] = {
                "counts": counts,
                "unreached": list(_unreached(report["LOADING"][name], report["ALL"][name])),
            }
    return found


def _counts(methods: Iterable[Mapping[str, Any]]) -> list[int]:
    # Methods share a line if one is inside another.
    lines: dict[int, bool] = {}
    taken = branches = 0
    for method in methods:
        for number, _, run, missed_branches, taken_branches in method["lines"]:
            lines[number] = lines.get(number, False) or run > 0
            taken += taken_branches
            branches += taken_branches + missed_branches
    return [sum(lines.values()), len(lines), taken, branches]


def _unreached(loading: Sequence[Mapping[str, Any]], ever: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    entered = {_identity(method) for method in loading if any(run for _, _, run, *_ in method["lines"])}
    for method in ever:
        is_told = _identity(method) in entered or _CLEAN_UP.fullmatch(method["name"])
        if not is_told or method["name"] in _BESIDE:
            continue
        missed = [line for line in method["lines"] if line[1] or line[3]]
        if missed:
            branches = sum(line[3] for line in missed)
            lines = [line[0] for line in missed]
            yield {"method": _shown(method), "lines": lines, "branches": branches}


def _identity(method: Mapping[str, Any]) -> tuple[str, str]:
    return method["name"], method["signature"]


def _shown(method: Mapping[str, Any]) -> str:
    """The name of a method; an overloaded `replay` is followed by the key of its records."""
    (key,) = re.findall(r"/(\w+Key);", method["signature"]) or [""]
    return f"{method['name']}({key})" if key and method["name"] == "replay" else str(method["name"])
