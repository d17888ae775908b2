"""Commits that brokers refuse because their metadata is too long, as a cause of offsets that do not move."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from kafka_records_tables.report.facts.group_facts import Place, joined_at, member_lives, names_of
from kafka_records_tables.report.incident_rule import PossibleCause
from kafka_records_tables.report.report_parts import Evidence, NextStep
from kafka_records_tables.report.rule import Question, Verdict
from kafka_records_tables.report.rule_context import RuleContext, counted, length, listed, moment, shown
from kafka_records_tables.topics import OFFSETS

NAME: Final = "metadata_too_large"
CAUSE: Final = PossibleCause(
    NAME,
    "brokers reject its commits: their metadata has grown beyond `offset.metadata.max.bytes`",
    "for: its last commit nearly reached the default limit; certain if it grew with each of ten commits",
)
QUESTION: Final = Question(
    NAME, "application_hangs", "Does the log of the application have errors of commits (OffsetMetadataTooLarge)?"
)
_LIMIT: Final = 4096
"""The default of `offset.metadata.max.bytes`. Brokers compare it with the number of UTF-16 units
(`OffsetMetadataManager.isMetadataInvalid`). No record contains the brokers' value."""
_NEARLY: Final = 0.95
"""Metadata is nearly too long from this share of the limit."""
_COMMITS: Final = 10
"""The minimum number of commits that show how metadata grows."""


@dataclass(frozen=True, slots=True)
class LongMetadata:
    """A group's commits whose metadata was nearly too long in the end."""

    verdict: Verdict
    later: int
    """The number of members that joined after the last commit."""


@dataclass(frozen=True, slots=True)
class _Growth:
    """How the metadata of commits grew, up to the last one."""

    last: Mapping[str, Any]
    """A row of `history`."""
    steps: tuple[int, ...]
    """How many characters longer each of the last commits was than the one before it."""

    @property
    def size(self) -> int:
        return _units(self.last)

    @property
    def is_certain(self) -> bool:
        return len(self.steps) >= _COMMITS and self.size + min(self.steps) > _LIMIT

    @property
    def is_possible(self) -> bool:
        if not self.steps:
            return self.size >= _NEARLY * _LIMIT
        return min(self.steps) > 0 and self.size + max(self.steps) > _LIMIT


def weigh_metadata(context: RuleContext, group: str, places: Iterable[Place]) -> LongMetadata | None:
    """Judges whether the commit metadata of partitions that stopped has become too long; None if it has not.

    An application may store the same text with all its partitions, or one for each. With the same text, the metadata of
    a partition that was committed earlier is shorter.
    """
    rows = [each for each in context.look("history", (group,)).to_pylist() if each["group_id"] == group]
    if not rows or any(_units(each) > _LIMIT for each in rows):
        return None
    rows.sort(key=lambda each: (each["valid_from_timestamp_ms"] or 0, each["log_partition"], each["log_offset"]))
    of_places: dict[Place, list[Mapping[str, Any]]] = {}
    for each in rows:
        of_places.setdefault((each["topic"], each["partition"]), []).append(each)
    stopped = set(places)
    newest = rows[-1]
    growth = _growth(rows) if (newest["topic"], newest["partition"]) in stopped else None
    if growth is None:
        own = [_growth(of_places.get(place, ())) for place in stopped]
        known = [each for each in own if each is not None]
        if len(known) < len(own) or not known:
            return None
        growth = min(known, key=lambda each: (each.is_certain, each.size))
    return _long_metadata(context, group, growth)


def _units(row: Mapping[str, Any]) -> int:
    return len((row["metadata"] or "").encode("utf-16-le", "surrogatepass")) // 2


def _growth(rows: Sequence[Mapping[str, Any]]) -> _Growth | None:
    """How metadata grew from commit to commit; None if it is not nearly too long at the end, or was shortened at that
    length."""
    if not rows or rows[-1]["ended_by"] is not None:
        return None
    sizes: dict[int | None, int] = {}
    for each in rows:
        # All partitions of a commit have the same time.
        sizes[each["commit_timestamp_ms"]] = _units(each)
    if any(before >= _NEARLY * _LIMIT and after < before for before, after in pairwise(sizes.values())):
        return None
    steps = [after - before for before, after in pairwise(sizes.values())]
    found = _Growth(rows[-1], tuple(steps[-_COMMITS:]))
    return found if found.is_possible else None


def _long_metadata(context: RuleContext, group: str, growth: _Growth) -> LongMetadata:
    last_ms = growth.last["valid_from_timestamp_ms"]
    lives = member_lives(context, [group]).get(group, [])
    later = sorted((each for each in lives if last_ms is not None and (each.joined_ms or 0) > last_ms), key=joined_at)
    size = counted(growth.size, "character")
    grows = (
        ""
        if not growth.steps
        else f", and each of the {counted(len(growth.steps), 'commit')} up to it had {_range(growth.steps)} more than "
        f"the one before: the next one would have had {growth.size + min(growth.steps)} or more"
    )
    shows = Evidence(
        f"the metadata of its last commit has {size}{grows}; brokers reject more than {_LIMIT} by default",
        OFFSETS,
        growth.last["log_partition"],
        growth.last["log_offset"],
        last_ms,
    )
    joined = tuple(
        Evidence(
            f"{shown(each.name)} joined {length((each.joined_ms or 0) - (last_ms or 0))} after the last commit, and "
            "has committed nothing either",
            OFFSETS,
            each.log_partition,
            each.joined_at,
            each.joined_ms,
        )
        for each in later[:1]
    )
    since = "" if last_ms is None else f" since {moment(last_ms)}"
    new = f", as {listed(names_of(later))} did" if later else ""
    verdict = Verdict(
        f"Brokers reject the commits of {shown(group)}{since} (OffsetMetadataTooLarge): the metadata that its "
        f"application stores with each commit has grown to {size}, and offset.metadata.max.bytes allows {_LIMIT} "
        f"unless the brokers have another value. Its members probably process records, but a new one begins at the "
        f"last commit again{new}.",
        evidence_for=(shows, *joined),
        is_certain=growth.is_certain,
        lacked=() if growth.steps else ("how the metadata grew: the log has only the last commits",),
        steps=(
            NextStep(
                f"Have the application of {shown(group)} store short metadata with its commits, or none, before any "
                "restart: each restart reads again from the last commit. To keep processed records from being read "
                "again, stop it, set the offsets of the group to what it has processed (kafka-consumer-groups "
                "--reset-offsets also empties the metadata), and then start the new version"
            ),
            NextStep(
                "As a stopgap, raise offset.metadata.max.bytes in the properties of all brokers, and restart them"
            ),
        ),
    )
    return LongMetadata(verdict, len(later))


def _range(steps: Sequence[int]) -> str:
    least, most = min(steps), max(steps)
    return str(least) if least == most else f"{least} to {most}"
