"""Optional abilities of sources and log partitions, in addition to the common `protocol`. Two more are defined
elsewhere: `known_topics.TellsTopics`, `missing_rights.TellsMissingRights`.

Each ability is a protocol; check for it with `has`.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, TypeVar

if TYPE_CHECKING:
    from kafka_records_engine.log.reading.missing_end import MissingEnd
    from kafka_records_engine.log.reading.unread import Unread, UnreadAsked
    from kafka_records_engine.sources.protocol import Context, LogEnds, LogPartition, LogStarts

_Ability = TypeVar("_Ability")


def has(thing: object, ability: type[_Ability]) -> TypeGuard[_Ability]:
    """Whether a source or a log partition has an ability, directly or through `__getattr__`.

    `isinstance` does not recognize the latter from Python 3.12 on.
    """
    return all(hasattr(thing, name) for name in vars(ability) if not name.startswith("_"))


# -- sources -----------------------------------------------------------------------------------------------------------


class SearchesForLogs(Protocol):
    """A source that searches for its logs on every request for them."""

    def searched_once(self) -> AbstractContextManager[None]:
        """Within this context, the source searches once. Logs created later are not read."""


def search_of(source: object) -> AbstractContextManager[None]:
    """Within this context, a source searches for its logs only once, if it searches at all."""
    return source.searched_once() if has(source, SearchesForLogs) else nullcontext()


class TellsLogStarts(Protocol):
    """A source whose log starts may move while the logs are read."""

    def log_starts(self, topics: Sequence[str] | None) -> LogStarts:
        """The current log starts of the given topics, or of all. Raises LogSourceError."""


class TellsLogEnds(Protocol):
    """A source that can determine the ends of logs without reading records."""

    def log_ends(self, topics: Sequence[str], context: Context) -> Iterator[LogEnds]:
        """The ends of all logs of the given topics. Findings go to the context. Raises LogSourceError."""


class TellsMissingEnds(Protocol):
    """A source that can detect that the last records of its logs are missing."""

    def missing_ends(self, topics: Collection[str]) -> Iterator[MissingEnd]:
        """The logs of the given topics whose end is missing. Raises LogSourceError."""


class TellsUnread(Protocol):
    """A source that can determine, without reading records, which records of its logs are unread, and how long they
    have been."""

    def unread(self, asked: Sequence[UnreadAsked], context: Context) -> Iterator[tuple[UnreadAsked, Unread]]:
        """The unread records after the given offsets, for logs about which they are known. Findings go to the
        context."""


class TellsFirstUnread(Protocol):
    """A source that can, on request, read batches to determine how long records have been unread."""

    def first_unread(self, asked: Sequence[UnreadAsked], context: Context) -> Iterator[tuple[UnreadAsked, Unread]]:
        """The time of the first record at or after the given offsets. Findings go to the context."""


class TellsCluster(Protocol):
    """A source without a metadata log that knows most of what the log would contain."""

    def cluster_answers(self, records: Collection[str]) -> LogPartition:
        """A log partition with the records of these names, as in a checkpoint."""


class TellsRetentions(Protocol):
    """A source that can determine the retention of topics."""

    def retentions(self, topics: Collection[str]) -> Mapping[str, int]:
        """The effective `retention.ms` of each given topic. Topics that are compacted or limited by size, or that have
        an unknown `retention.ms`, are left out. Raises LogSourceError."""


class AnswersForCoordinators(Protocol):
    """A source without coordinators' records that requests the information in them from the coordinators."""

    def coordinator_answers(self) -> Any:
        """A new `live_requests.CoordinatorAnswers`, whose answers belong to one result."""


class KeepsAnswers(Protocol):
    """A source that keeps the rows of its logs between runs, and the answers based on them."""

    @property
    def answers(self) -> str:
        """The folder of kept answers."""

    def asked_meanwhile(self) -> AskedMeanwhile:
        """The requests to the source since the last call, except requests for its logs."""

    def note_answer(self) -> None:
        """Record that an answer was stored or found. The answer is valid until a log changes."""


@dataclass(slots=True)
class AskedMeanwhile:
    """The requests to a source while a view was being computed."""

    rights: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    """The requested topics, and those of them for which a right is missing."""
    of_now: bool = False
    """Whether unread records or retention times were requested."""


# -- log partitions ----------------------------------------------------------------------------------------------------


class HasLeader(Protocol):
    """A log partition that has a leader."""

    @property
    def leader(self) -> Hashable:
        """The broker that leads the partition; None if it has no leader."""


class HasHighWatermark(Protocol):
    """A log partition whose end was reported by a broker."""

    @property
    def high_watermark(self) -> int | None:
        """The offset after the last record that consumers may read; None if unknown."""


class HasEnd(Protocol):
    """A log partition whose end is known before it is read."""

    @property
    def end(self) -> int | None:
        """The offset after the last record; None if unknown."""


class HasStart(Protocol):
    """A log partition whose start is known before it is read."""

    @property
    def start(self) -> int | None:
        """The log start; None if unknown."""


class MayBeInTrouble(Protocol):
    """A log partition that may be unreadable."""

    @property
    def trouble(self) -> str | None:
        """Why the log partition cannot be read; None if it can be read."""


class HasTopicId(Protocol):
    """A log partition whose broker reported the id of its topic."""

    @property
    def topic_id(self) -> bytes:
        """The id: 16 bytes, all zero if the topic has no id."""


class HasHistory(Protocol):
    """A log partition that may return different rows with `Context.history`. Tables with and without history cannot
    share a reading of such a partition."""

    @property
    def has_history(self) -> bool:
        """Whether the rows differ with `Context.history`."""


class MayHaveLostRows(Protocol):
    """A log partition that may contain rows the log no longer has."""

    def has_lost_rows(self) -> bool:
        """Whether the log has lost rows that this copy still has."""


class WasRead(Protocol):
    """A log partition that is a copy of an earlier state of a log."""

    def read_at_ms(self) -> int | None:
        """The time of the copy, in milliseconds since 1970; None if unknown."""


class HasIdentity(Protocol):
    """A log partition whose rows have an identity. Equal identities mean equal rows."""

    @property
    def identity(self) -> str:
        """The identity of the rows as a string."""

    @property
    def found_ms(self) -> int | None:
        """When brokers reported the end of the log, in milliseconds since 1970."""


class KnowsTransactions(Protocol):
    """A log partition that says, before it is read, whether its rows show which records are transactional."""

    @property
    def tells_transactions(self) -> bool:
        """False if no record has `transaction` or `producer_id`, so tables can reject the log partition before it is
        read."""


def tell_transactions(logs: Iterable[Any]) -> bool:
    """Whether all of these log partitions show which records are transactional, if this is known before they are
    read."""
    return all(log.tells_transactions for log in logs if has(log, KnowsTransactions))


class CanBeCut(Protocol):
    """A log partition in which a range can be read without reading the records before it."""

    def cuts(self, size: int) -> Sequence[int]:
        """Offsets at which the log partition can be cut into ranges of about `size` bytes."""
