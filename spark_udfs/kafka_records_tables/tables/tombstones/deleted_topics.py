"""Determines, from a metadata log, whether the topics of deleted offsets were deleted just before the offsets.

A coordinator deletes the offsets of a topic when it applies the records that delete the topic, in one write
(`GroupCoordinatorService.onPartitionsDeleted`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_records_tables.tables.words.causes import Evidence

if TYPE_CHECKING:
    from kafka_records_engine.sources.log_facts import TopicDeletions

_SOON_MS: Final = 60_000
"""A running coordinator applies a deletion within this time. One that is not running has not loaded its groups."""

_CLOCKS_MS: Final = 5_000
"""By how much the clocks of a controller and a coordinator may differ."""


class OfTopics(NamedTuple):
    """Facts about topics that rule out a cause or make it unlikely."""

    deleted: Evidence | None = None
    """Evidence that all topics were deleted just before the write, so that nothing else deleted the offsets."""
    near: Evidence | None = None
    """Evidence that all topics were deleted before the write or shortly after it, by a controller's clock."""
    stays: Evidence | None = None
    """Evidence that a topic had never been deleted before the write."""
    stayed: Evidence | None = None
    """Evidence that a topic was not deleted just before the write."""


_NOTHING: Final = OfTopics()
_DELETED: Final = Evidence("topic_deleted", None)
_STAYS: Final = Evidence("topic_there", None)


def of_topics(topics: Iterable[str], now_ms: int | None, known: TopicDeletions) -> OfTopics:
    """The facts about the given topics at the time of a write."""
    if now_ms is None or known.until_ms is None:
        return _NOTHING
    are_deleted = are_near = True
    stays = stayed = None
    for topic in topics:
        times = known.times.get(topic)
        before = [now_ms - each for each in times or () if now_ms - each >= -_CLOCKS_MS]
        latest = min(before, default=None)
        are_near &= latest is not None and latest <= _SOON_MS
        are_deleted &= latest is not None and any(0 <= each <= _SOON_MS for each in before)
        if times is None or known.until_ms < now_ms:
            continue
        if latest is None and known.since_ms is None:
            stays = _STAYS
        elif (latest is None or latest > _SOON_MS) and (known.since_ms is None or known.since_ms + _SOON_MS < now_ms):
            stayed = _STAYS
    if stays is not None or stayed is not None:
        return OfTopics(stays=stays, stayed=stayed)
    return OfTopics(_DELETED if are_deleted else None, _DELETED if are_near else None)
