"""Rights (ACLs) that the user who reads a cluster lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from kafka_records_engine.findings import ABSENT_TOPIC, MISSING_RIGHT, Finding, OnFinding
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources.abilities import has
from kafka_records_engine.sources.right_words import lacks_right

if TYPE_CHECKING:
    from kafka_records_engine.sources.protocol import LogPartition, Source

COORDINATOR_TOPICS: Final = ("__consumer_offsets", "__share_group_state", "__transaction_state")
"""The topics that brokers create when a client first needs them (`AutoTopicCreationManager`)."""

HIDDEN: Final = "the response contains nothing about it"


class MissingRight(LogSourceError):
    """A topic that this user may not read or describe. If it may not be described, brokers do not say whether it
    exists."""

    def __init__(self, place: str, who: str, operation: str, topic: str) -> None:
        super().__init__(place, lacks_right(who, operation, f"topic {topic}"))
        self.who = who
        self.operation = operation
        """The required ACL operation: READ or DESCRIBE."""
        self.resource_type = "TOPIC"
        self.resource_name = topic

    def __reduce__(self) -> tuple[type[MissingRight], tuple[str, ...]]:
        return MissingRight, (str(self.path), self.who, self.operation, self.resource_name)

    def finding(self, consequence: str = HIDDEN) -> Finding:
        """The finding about a result without the topic."""
        return Finding("damage", MISSING_RIGHT, self.detail, consequence, self.resource_name, file=str(self.path))


class AbsentTopic(LogSourceError):
    """A coordinator's topic does not exist yet in its cluster, because nothing was ever written to it."""

    def __init__(self, place: str, topic: str) -> None:
        super().__init__(place, f"there is no topic {topic}")
        self.topic = topic

    def __reduce__(self) -> tuple[type[AbsentTopic], tuple[str, ...]]:
        return AbsentTopic, (str(self.path), self.topic)

    def finding(self) -> Finding:
        """The finding, a note because an empty result is complete."""
        consequence = "brokers create it when a client first needs it, so there is nothing to report"
        return Finding("note", ABSENT_TOPIC, self.detail, consequence, self.topic, file=str(self.path))


class TellsMissingRights(Protocol):
    """A source that hides topics from users who lack a right."""

    def missing_rights(self, topics: Collection[str]) -> Sequence[MissingRight]:
        """The missing right for each given topic that exists but may not be described."""


def missing_rights(source: Source, topics: Collection[str]) -> Sequence[MissingRight]:
    """The missing right for each topic that may not be described; empty if the source does not check rights."""
    return source.missing_rights(topics) if topics and has(source, TellsMissingRights) else ()


def lacking_coordinator_topics(source: Source, there: Iterable[str]) -> list[MissingRight | AbsentTopic]:
    """For each coordinators' topic that a running cluster does not list, the reason; empty for stored data.

    Brokers silently omit topics that may not be described, so each of these is requested by name.
    """
    names = sorted({*COORDINATOR_TOPICS}.difference(there))
    may_hide = has(source, TellsMissingRights)
    if not may_hide:
        return []
    hidden = {right.resource_name: right for right in missing_rights(source, names)}
    return [hidden.get(name) or AbsentTopic(source.name, name) for name in names]


def logs_of_topics(
    source: Source, topics: Iterable[str], lacking: Iterable[MissingRight | AbsentTopic], tell: OnFinding
) -> list[LogPartition]:
    """The log partitions of several topics, except topics for which a right is missing or that do not exist yet.

    Missing rights and `lacking` are passed to `tell`. Topics that do not exist yet are passed too if no topic remains.
    Raises MissingRight if only rights are missing, and other LogSourceErrors.
    """
    logs: list[LogPartition] = []
    errors: list[MissingRight | AbsentTopic] = [*lacking]
    for topic in topics:
        try:
            logs += source.partitions(topic)
        except (MissingRight, AbsentTopic) as error:
            errors.append(error)
    rights = [each for each in errors if isinstance(each, MissingRight)]
    if rights and not logs:
        raise rights[0]
    for each in rights if logs else errors:
        tell(each.finding())
    return logs
