"""A group's topics that were deleted just before it rebalanced. Clients rejoin when the metadata of their topics
changes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.topic_changes import changes_of
from kafka_records_tables.report.report_parts import Evidence
from kafka_records_tables.report.rule_context import MINUTE_MS, RuleContext, length, moment
from kafka_records_tables.topics import METADATA

_NOTICED_MS: Final = 10 * MINUTE_MS
"""Clients notice within this time that a topic is gone, because they refresh metadata every five minutes
(`metadata.max.age.ms`; `topic.metadata.refresh.interval.ms` of librdkafka)."""
_SHARE: Final = 4
"""At most one in this many rebalances of a series may precede the deletion."""


@dataclass(frozen=True, slots=True)
class DeletedTopic:
    """A topic of a group that was deleted before its rebalances."""

    topic: str
    at_ms: int
    log_offset: int
    later: int
    """Rebalances after the deletion."""
    every: int
    """All rebalances of the series."""

    @property
    def evidence(self) -> Evidence:
        """The record that deleted the topic."""
        shows = f"{self.topic} was deleted at {moment(self.at_ms)}"
        return Evidence(shows, METADATA, 0, self.log_offset, self.at_ms)


def deleted_topics(context: RuleContext, group: str, times: Sequence[int]) -> list[DeletedTopic]:
    """The topics of a group that were deleted before most of the given rebalances (`times`, ascending), and not long
    before the first of these."""
    found = []
    for topic in sorted(_topics_of(context, group)):
        for row in changes_of(context, topic):
            at_ms = row["at_timestamp_ms"]
            if row["event"] != "deleted" or at_ms is None:
                continue
            later = [each for each in times if each >= at_ms]
            if _SHARE * len(later) >= (_SHARE - 1) * len(times) and later[0] - at_ms <= _NOTICED_MS:
                found.append(DeletedTopic(topic, at_ms, row["log_offset"], len(later), len(times)))
    return found


def _topics_of(context: RuleContext, group: str) -> set[str]:
    """The topics for which a group has committed offsets, or that were assigned to its members."""
    topics: set[str] = set()
    for name in ("current_offsets", "assignments"):
        rows = context.table(name)
        # The name of an assigned topic may be unknown.
        topics.update(filter(None, kept(rows, equal(rows, "group_id", group))["topic"].to_pylist()))
    events = context.table("timeline")
    events = kept(events, equal(events, "group_id", group), equal(events, "event", *_EVENTS))
    for text in events["detail"].to_pylist():
        detail: dict[str, Any] = json.loads(text) if text else {}
        topics.update(filter(None, (detail.get("topic"), *detail.get("lost", ()))))
    return topics


_EVENTS: Final = ("offsets_deleted", "assignment_changed")


def shares_words(deleted: DeletedTopic, times: Sequence[int]) -> str:
    """How many of some rebalances followed a deletion, and how soon after it the first one did."""
    first = next(each for each in times if each >= deleted.at_ms)
    return (
        f"{deleted.later} of {deleted.every} rebalances came after that, the first {length(first - deleted.at_ms)} "
        "later"
    )
