"""Facts about a log other than its rows: written by its source and by observers of its rows, available to all
readers."""

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
    milliseconds since 1970, ascending. Recreated topics of the same name count as one topic."""
    since_ms: int | None = None
    """The time from which the deletions are complete; None if they are complete from the beginning."""
    until_ms: int | None = None
    """The time of the last record; None if there is none."""


@dataclass(frozen=True, slots=True)
class KnownTopics:
    """What a source knows about the topics of its cluster. Empty if unknown."""

    names: Mapping[str, str] = field(default_factory=dict)
    """By the ids of the topics, as Kafka writes them (22 characters)."""
    partition_counts: Mapping[str, int] = field(default_factory=dict)
    """The number of partitions of each topic in its cluster; keys are topic names."""
    retentions: Mapping[str, int] = field(default_factory=dict)
    """The `retention.ms`, where it is known, of each topic that deletes by time only; keys are topic names."""
    asked_ms: int | None = field(default=None, compare=False)
    """When brokers were asked, in milliseconds since 1970; None for what is stored."""
    deletions: TopicDeletions = field(default_factory=TopicDeletions)


def _nothing_unread(asked: Sequence[Any]) -> Iterator[Any]:
    """For sources that cannot tell what is left to read."""
    return iter(())


def _no_retentions(topics: Collection[str]) -> Mapping[str, int]:
    """For sources that are not asked how long topics are kept."""
    return {}


def _no_rights(topics: Collection[str]) -> Sequence[Any]:
    """For sources that hide nothing."""
    return ()


@dataclass(slots=True)
class LogFacts:
    """Facts about one log partition, as far as it was read. There is one object for each reading of a log, shared by
    all readers and never copied."""

    start: int | None = None
    """The offset at which the log starts; None when the source does not know."""
    cleaned_up_to: int | None = None
    """The offset below which a cleaner may have removed records; None when the source does not know."""
    whole_from: int | None = None
    """The offset after the last gap in the offsets that were read so far; None if there is none."""
    holes: list[int] = field(default_factory=list)
    """Offsets after which something could not be read, ascending: a marker may have been there."""
    checkpoint: Checkpoint | None = None
    """Of a metadata log that does not begin at its first record: the state below `Checkpoint.end_offset`, which is
    above the log start. A source that has it sets it before it gives the first rows."""
    topics: KnownTopics = field(default_factory=KnownTopics)
    """The topics of the cluster, if the source knows them and a table uses them."""
    missing_rights: Callable[[Collection[str]], Sequence[Any]] = _no_rights
    """Of a view: a `missing_rights.MissingRight` for each of some topics that the source may not describe. It is asked
    when the inputs are read."""
    unread: Callable[[Sequence[Any]], Iterator[Any]] = _nothing_unread
    """Of a view: the unread records of some logs (`unread.UnreadAsked`), as far as the source knows."""

    retentions: Callable[[Collection[str]], Mapping[str, int]] = _no_retentions
    """Of a view: the `retention.ms` of some topics, which needs another request to the source; `topics` has those known
    without it."""

    def add_hole(self, after: int) -> None:
        """Report that something unreadable comes after the record at offset `after`, before the rows after it come."""
        self.holes.append(after)
