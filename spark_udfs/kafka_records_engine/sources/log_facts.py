"""Facts about a log other than its rows: written by its source and by observers of its rows, read by everybody."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka_records_engine.log.reading.metadata_checkpoints import Checkpoint


@dataclass(frozen=True, slots=True)
class TopicDeletions:
    """When topics were deleted, by the records of a metadata log. Empty if nothing tells it."""

    times: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """By the name of each topic that is known, those that were never deleted among them: the times of its deletions, in
    milliseconds since 1970, ascending. A topic that was created again under its name is the same here."""
    since_ms: int | None = None
    """From when on no deletion is missing; None for all times."""
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
    """As far as the source knows topics and a table uses that."""
    missing_rights: Callable[[Collection[str]], Sequence[Any]] = _no_rights
    """Of a view: a `missing_rights.MissingRight` for each of some topics that the source may not describe. It is asked
    when the inputs are read."""
    unread: Callable[[Sequence[Any]], Iterator[Any]] = _nothing_unread
    """Of a view: what is left to read in some logs (`unread.UnreadAsked`), as far as the source can tell."""

    retentions: Callable[[Collection[str]], Mapping[str, int]] = _no_retentions
    """Of a view: the `retention.ms` of some topics, for which a source is asked again; `topics` has those that are
    known without."""

    def add_hole(self, after: int) -> None:
        """Report that something unreadable comes after the record at offset `after`, before the rows after it come."""
        self.holes.append(after)
