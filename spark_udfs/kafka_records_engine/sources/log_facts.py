"""Facts about a log that its rows do not contain. The source, and code that observes the rows, set these facts; all
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
    """By the name of each known topic, including those that were never deleted: the times of its deletions, in
    milliseconds since 1970, ascending. Topics that were recreated under the same name count as one topic."""
    since_ms: int | None = None
    """The time from which the deletions are complete; None if they are complete from the beginning."""
    until_ms: int | None = None
    """The time of the last record; None if there is none."""
    topic_ids: frozenset[str] = frozenset()
    """The ids of the deleted topics. A topic that was recreated under the same name has another id."""


@dataclass(frozen=True, slots=True)
class KnownTopics:
    """Facts that a source has about the topics of its cluster. Empty if they are unknown."""

    names: Mapping[str, str] = field(default_factory=dict)
    """The names of topics by topic id, in Kafka's text form (22 characters)."""
    partition_counts: Mapping[str, int] = field(default_factory=dict)
    """The number of partitions of each topic in its cluster; keys are topic names."""
    retentions: Mapping[str, int] = field(default_factory=dict)
    """The `retention.ms`, where it is known, of each topic that deletes by time only; keys are topic names."""
    asked_ms: int | None = field(default=None, compare=False)
    """When brokers were asked, in milliseconds since 1970; None for stored data."""
    deletions: TopicDeletions = field(default_factory=TopicDeletions)


def _nothing_unread(asked: Sequence[Any]) -> Iterator[Any]:
    """The answer of a source that does not know what is left to read."""
    return iter(())


def _no_retentions(topics: Collection[str]) -> Mapping[str, int]:
    """The answer of a source that does not know how long topics are retained."""
    return {}


def _no_rights(topics: Collection[str]) -> Sequence[Any]:
    """The answer of a source that hides nothing."""
    return ()


@dataclass(slots=True)
class LogFacts:
    """Facts about the part of a log partition that was read so far. There is one object for each reading of a log,
    shared by all readers and never copied."""

    start: int | None = None
    """The offset at which the log starts; None if the source does not know it."""
    cleaned_up_to: int | None = None
    """The offset below which a cleaner may have removed records; None if the source does not know it."""
    whole_from: int | None = None
    """The offset after the last gap in the offsets that were read so far; None if there is none."""
    holes: list[int] = field(default_factory=list)
    """Offsets after which bytes could not be read, ascending. A marker may have been there."""
    checkpoint: Checkpoint | None = None
    """For a metadata log that does not begin at its first record: the state below `Checkpoint.end_offset`, which is
    above the log start. The source sets it before it returns the first rows."""
    topics: KnownTopics = field(default_factory=KnownTopics)
    """The topics of the cluster, if the source knows them and a table uses them."""
    missing_rights: Callable[[Collection[str]], Sequence[Any]] = _no_rights
    """For a view: a function that returns a `missing_rights.MissingRight` for each given topic that the user may not
    describe. It is called when the inputs are read."""
    unread: Callable[[Sequence[Any]], Iterator[Any]] = _nothing_unread
    """For a view: a function that returns the unread records of the given logs (`unread.UnreadAsked`), if the source
    can determine them."""

    retentions: Callable[[Collection[str]], Mapping[str, int]] = _no_retentions
    """For a view: a function that returns the `retention.ms` of given topics, which needs another request. `topics`
    contains the values that are known without this request."""

    def add_hole(self, after: int) -> None:
        """Note that something unreadable follows the record at offset `after`, before the rows after it are
        returned."""
        self.holes.append(after)
