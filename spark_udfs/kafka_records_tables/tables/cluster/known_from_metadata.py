"""Gets facts about the topics of a cluster from a metadata log next to other logs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.abilities import has
from kafka_records_engine.sources.known_topics import TellsTopics, retention_of
from kafka_records_engine.sources.log_facts import KnownTopics
from kafka_records_tables.tables.cluster.metadata_records import READS
from kafka_records_tables.tables.cluster.topic_replay import TopicReplay
from kafka_records_tables.topics import METADATA

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_records_engine.findings import Finding
    from kafka_records_engine.sources import Source

_TOPIC: Final = "topic"
_NOT_TAKEN: Final = (
    "names, numbers of partitions, settings and deletions of topics are not taken from this log; the table topics "
    "lists everything that is wrong with it"
)


def topics_in_metadata(source: Source, report: Callable[[Finding], object] | None = None) -> KnownTopics:
    """Topic names by id (including deleted topics), partition counts, retentions and deletions, from one replay of the
    metadata log; empty if there is no metadata log.

    A damaged metadata log is not used, because it may lack the needed records. `report` is called with the first
    damaged place. Raises LogSourceError for a source that cannot be read.
    """
    replay = _replayed(source, report)
    if replay is None:
        return KnownTopics()
    counts = replay.partition_counts()
    return KnownTopics(
        {topic.topic_id: topic.name for topic in replay.topics.values()},
        {topic.name: counts[topic.topic_id][0] for topic in replay.live_topics() if topic.topic_id in counts},
        _retentions(replay),
        deletions=replay.deletions(),
    )


def _retentions(replay: TopicReplay) -> dict[str, int]:
    """The `retention.ms` of topics that set it themselves and delete only by time. Brokers' defaults are in their own
    files, which are not read."""
    found = {}
    for topic in replay.live_topics():
        retention = retention_of(replay.configs.get((_TOPIC, topic.name), {}))
        if retention is not None:
            found[topic.name] = retention
    return found


def _replayed(source: Source, report: Callable[[Finding], object] | None = None) -> TopicReplay | None:
    """The metadata log of the source; None if there is none, if it is damaged, or if the source is running brokers,
    which report its content."""
    knows_topics = has(source, TellsTopics)
    if not knows_topics or METADATA not in source.topics():
        return None
    context = Context(topic=METADATA)
    replay = TopicReplay(context)
    for log in source.partitions(METADATA):
        for batch in log.batches(context, READS):
            replay.take(batch)
    replay.finish()
    damage = next((finding for finding in context.findings if finding.severity == "damage"), None)
    if damage is not None and report is not None:
        report(replace(damage, consequence=_NOT_TAKEN))
    return replay if damage is None else None


def with_metadata(known: KnownTopics, source: Source, report: Callable[[Finding], object] | None = None) -> KnownTopics:
    """The known facts about topics, extended with those from the metadata log of the source."""
    try:
        more = topics_in_metadata(source, report)
    except LogSourceError:
        return known
    if not more.names:
        return known
    counts = {**more.partition_counts, **known.partition_counts}
    return KnownTopics({**more.names, **known.names}, counts, more.retentions, deletions=more.deletions)
