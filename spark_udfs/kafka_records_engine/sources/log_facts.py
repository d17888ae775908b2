"""Facts about a log that its rows do not contain. The source and code that observes the rows set these facts, and all
readers can use them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka_records_engine.log.reading.metadata_checkpoints import Checkpoint


@dataclass(frozen=True, slots=True)
class TopicDeletions:
    """When topics were deleted, according to the records of a metadata log. Empty if unknown."""

    times: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """By name of each known topic, including those never deleted: the times of its deletions, in milliseconds since
    1970, ascending. Topics recreated under the same name count as one topic."""
    since_ms: int | None = None
    """The time from which deletions are complete; None if they are complete from the beginning."""
    until_ms: int | None = None
    """The time of the last record; None if there is none."""
    topic_ids: frozenset[str] = frozenset()
    """The ids of the deleted topics. A topic recreated under the same name has another id."""


@dataclass(frozen=True, slots=True)
class KnownTopics:
    """Facts that a source has about the topics of its cluster. Empty if they are unknown."""

    names: Mapping[str, str] = field(default_factory=dict)
    """The names of topics by topic id, in Kafka's text form (22 characters)."""
    partition_counts: Mapping[str, int] = field(default_factory=dict)
    """The partition count of each topic in its cluster, by topic name."""
    retentions: Mapping[str, int] = field(default_factory=dict)
    """The known `retention.ms` of each topic that deletes only by time, by topic name."""
    asked_ms: int | None = field(default=None, compare=False)
    """When brokers were asked, in milliseconds since 1970; None for stored data."""
    deletions: TopicDeletions = field(default_factory=TopicDeletions)


def _nothing_unread(asked: Sequence[Any]) -> Iterator[Any]:
    """The answer of a source that does not know what is unread."""
    return iter(())


def _no_retentions(topics: Collection[str]) -> Mapping[str, int]:
    """The answer of a source that does not know how long topics are retained."""
    return {}


def _no_rights(topics: Collection[str]) -> Sequence[Any]:
    """The answer of a source that hides nothing."""
    return ()


@dataclass(slots=True)
class LogFacts:
    """Facts about the part of a log partition that was read so far. Each reading of a log has one such object, which
    all readers share and which is never copied."""

    start: int | None = None
    """The offset at which the log starts; None if the source does not know."""
    cleaned_up_to: int | None = None
    """The offset below which a cleaner may have removed records; None if the source does not know."""
    whole_from: int | None = None
    """The offset after the last gap in the offsets read so far; None if there is none."""
    holes: list[int] = field(default_factory=list)
    """Offsets after which bytes could not be read, ascending. A marker may have been there."""
    checkpoint: Checkpoint | None = None
    """For a metadata log that does not begin at its first record: the state below `Checkpoint.end_offset`, which is
    above the log start. The source sets it before it returns the first rows."""
    topics: KnownTopics = field(default_factory=KnownTopics)
    """The topics of the cluster, if the source knows them and a table uses them."""
    missing_rights: Callable[[Collection[str]], Sequence[Any]] = _no_rights
    """For a view: a function that returns a `missing_rights.MissingRight` for each given topic that the user may not
    describe. It is called when inputs are read."""
    unread: Callable[[Sequence[Any]], Iterator[Any]] = _nothing_unread
    """For a view: a function that returns the unread records of the given logs (`unread.UnreadAsked`), if the source
    can determine them."""

    retentions: Callable[[Collection[str]], Mapping[str, int]] = _no_retentions
    """For a view: a function that returns the `retention.ms` of given topics with another request. `topics` contains
    the values known without that request."""

    def add_hole(self, after: int) -> None:
        """Record that an unreadable region follows the record at offset `after`. Call this before returning later
        rows."""
        self.holes.append(after)
