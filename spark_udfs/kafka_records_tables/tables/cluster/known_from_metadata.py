"""What the metadata log beside other logs tells of the topics of their cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_records_engine.log.discovery import LogSourceError
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.abilities import has
from kafka_records_engine.sources.known_topics import TellsTopics
from kafka_records_engine.sources.log_facts import KnownTopics
from kafka_records_tables.tables.cluster.metadata_records import READS
from kafka_records_tables.tables.cluster.topic_replay import TopicReplay
from kafka_records_tables.topics import METADATA

if TYPE_CHECKING:
    from kafka_records_engine.sources import Source


def topics_in_metadata(source: Source) -> KnownTopics:
    """Names by ids, those of deleted topics among them, and numbers of partitions; empty without a metadata log.

    A damaged metadata log tells nothing: what it lacks might be what is asked for. Whoever reads its own tables is told
    what is wrong with it. Raises LogSourceError for a source that cannot be read.
    """
    if not hasattr(source, "topics") or METADATA not in source.topics():
        return KnownTopics()
    context = Context(topic=METADATA)
    replay = TopicReplay(context)
    for log in source.partitions(METADATA):
        for batch in log.batches(context, READS):
            replay.take(batch)
    replay.finish()
    if any(finding.severity == "damage" for finding in context.findings):
        return KnownTopics()
    counts = replay.partition_counts()
    return KnownTopics(
        {topic.topic_id: topic.name for topic in replay.topics.values()},
        {topic.name: counts[topic.topic_id][0] for topic in replay.live_topics() if topic.topic_id in counts},
    )


def with_metadata(known: KnownTopics, source: Source) -> KnownTopics:
    """What is known of topics, and what the metadata log of the source adds to it. Brokers have told all of it, and
    are not asked for their topics once more."""
    knows_topics = has(source, TellsTopics)
    if known.asked_ms is not None or not knows_topics:
        return known
    try:
        more = topics_in_metadata(source)
    except LogSourceError:
        return known
    if not more.names:
        return known
    return KnownTopics({**more.names, **known.names}, {**more.partition_counts, **known.partition_counts})
