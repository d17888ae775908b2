"""Converts what brokers report about their cluster to the rows that a checkpoint of the metadata log would have.

Clients may not read `__cluster_metadata`, but brokers report most of its content. The answers are converted to records
and processed like a log. Like a checkpoint, they contain neither times nor deleted objects. Fields that brokers do not
report have default values: epochs are -1, listener names are empty.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from kafka_records_engine.findings import DAMAGED_LOG, MISSING_RIGHT, Finding
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources._brokers import description
from kafka_records_engine.sources._brokers.cluster import Address, Cluster, named
from kafka_records_engine.sources._brokers.failures import BrokerFailure, ConnectionLost
from kafka_records_engine.sources._brokers.requests_sent import metadata_records
from kafka_records_engine.sources._brokers.session import Session
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.protocol import Context
from kafka_records_engine.sources.time_limit import now_ms
from kafka_records_engine.sources.unreachable import UnreachableBrokers
from kafka_records_runtime.records.framing import in_frame
from kafka_records_runtime.wire import walker

TOPIC: Final = "__cluster_metadata"

_ROWS: Final = 4096
_NO_ID: Final = bytes(16)
_REDACTED: Final = "(redacted)"
_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}

_TOPICS: Final = frozenset({"TopicRecord", "PartitionRecord"})
_CONFIGS: Final = "ConfigRecord"

Described = tuple[str, Mapping[str, Any]]
"""A record as its name and its fields."""


@dataclass(frozen=True)
class ClusterAnswers:
    """The only partition of a metadata log that is built from answers.

    `records` are the names of the wanted records; nothing else is requested. Topic configs are requested only together
    with partitions, because only a table about topics needs them.
    """

    bootstrap: Sequence[Address]
    config: ClientConfig
    records: Collection[str]
    session: Session = field(default_factory=Session, compare=False, repr=False)
    topic: str = TOPIC
    partition: int = 0
    size: int = 0
    in_memory: bool = True
    """Always True, because only one process sends the requests."""

    def batches(
        self, context: Context, columns: Collection[str], start: int | None = None, end: int | None = None
    ) -> Iterator[Any]:
        """See `protocol.LogPartition.batches`. Raises LogSourceError if no broker answers, or if a time in the past is
        requested."""
        name = named(self.bootstrap)
        if context.question.as_of_ms is not None:
            raise LogSourceError(name, "brokers know only the present state of their cluster: leave out --as-of")
        context.counts.partitions += 1
        context.counts.note_moment("topics", now_ms())
        records = metadata_records()
        offset = 1
        yield _rows(0, [None], columns)
        try:
            told = self._told(context)
            while lot := list(islice(told, _ROWS)):
                values = []
                for record, fields in lot:
                    schema = records[record]
                    assert schema.value.versions is not None
                    version = schema.value.versions[1]
                    values.append(in_frame(schema.type, version, walker.encode(schema.value, fields, version)))
                yield _rows(offset, values, columns)
                offset += len(values)
        except ConnectionLost as lost:
            raise UnreachableBrokers(lost.address, lost.detail) from None
        except BrokerFailure as failed:
            raise LogSourceError(failed.address, failed.detail) from None
        context.counts.note_moment("topics", now_ms())

    def _told(self, context: Context) -> Iterator[Described]:
        cluster = Cluster(self.bootstrap, self.config, self.session)
        wanted = {*self.records}
        topics = cluster.listed_topics() if wanted & {*_TOPICS, _CONFIGS} else []
        if wanted & _TOPICS:
            yield from self._topics(topics)
        if "PartitionRecord" in wanted:
            # Tables that need configs do not need the eligible leaders.
            leaders = {} if _CONFIGS in wanted else self._eligible_leaders(cluster)
            yield from _partitions(topics, leaders)
        if _CONFIGS in wanted:
            only_topics = "PartitionRecord" in wanted
            yield from _configs(cluster, [each["name"] for each in topics], context, only_topics=only_topics)
        if "RegisterBrokerRecord" in wanted:
            protocol = _PROTOCOLS[self.config.security_protocol]
            yield from (_broker(each, protocol) for each in description.brokers(cluster))
        if "FeatureLevelRecord" in wanted:
            for name, level in description.features(cluster).items():
                yield "FeatureLevelRecord", {"name": name, "feature_level": level}

    def _topics(self, topics: Iterable[Mapping[str, Any]]) -> Iterator[Described]:
        for each in topics:
            if bytes(each["topic_id"]) == _NO_ID:
                what = (
                    "these brokers do not report topic ids, which Kafka has had since 2.8: there is no table of topics"
                )
                raise LogSourceError(named(self.bootstrap), what)
            yield "TopicRecord", {"name": each["name"], "topic_id": each["topic_id"]}

    @staticmethod
    def _eligible_leaders(cluster: Cluster) -> Mapping[tuple[str, int], Sequence[int]]:
        has_some = description.features(cluster).get(description.ELIGIBLE_LEADERS, 0)
        return description.eligible_leaders(cluster) if has_some else {}


def _partitions(
    topics: Iterable[Mapping[str, Any]], leaders: Mapping[tuple[str, int], Sequence[int]]
) -> Iterator[Described]:
    for topic in topics:
        for each in topic["partitions"] or ():
            number = each["partition_index"]
            yield (
                "PartitionRecord",
                {
                    "partition_id": number,
                    "topic_id": topic["topic_id"],
                    "replicas": each["replica_nodes"],
                    "isr": each["isr_nodes"],
                    "leader": each["leader_id"],
                    "leader_epoch": each.get("leader_epoch", -1),
                    "eligible_leader_replicas": leaders.get((topic["name"], number)),
                },
            )


def _broker(told: Mapping[str, Any], protocol: int) -> Described:
    end_point = {"name": "", "host": told["host"], "port": told["port"], "security_protocol": protocol}
    return (
        "RegisterBrokerRecord",
        {
            "broker_id": told["broker_id"],
            "broker_epoch": -1,
            "rack": told["rack"],
            "fenced": told.get("is_fenced", False),
            "end_points": [end_point] if told["host"] else [],
        },
    )


def _configs(cluster: Cluster, topics: Iterable[str], context: Context, *, only_topics: bool) -> Iterator[Described]:
    resources = [(description.TOPIC, name) for name in topics]
    refusals = []
    if not only_topics:
        resources += [(description.BROKER, description.ALL_BROKERS)]
        resources += [(description.BROKER, str(each["broker_id"])) for each in description.brokers(cluster)]
        listed, refusal = description.listed_resources(cluster)
        resources += listed
        refusals += [] if refusal is None else [refusal]
    for told in description.configs(cluster, resources):
        if isinstance(told, description.Refusal):
            refusals.append(told)
            continue
        kind, name = told.resource
        value = _REDACTED if told.value is None else told.value
        yield _CONFIGS, {"resource_type": kind, "resource_name": name, "name": told.name, "value": value}
    for each in refusals:
        reason = MISSING_RIGHT if each.is_right else DAMAGED_LOG
        what = description.words_of(each, cluster.who)
        place = named(cluster.bootstrap)
        context.report(Finding("damage", reason, what, "they are missing from the response", TOPIC, file=place))


def _rows(first: int, values: Sequence[bytes | None], columns: Collection[str]) -> pa.RecordBatch:
    """Raw rows, starting at an offset. Offset 0 is the place of a checkpoint's header."""
    count = len(values)
    made = {
        "topic": pa.array([TOPIC] * count),
        "partition": pa.array([0] * count, pa.int32()),
        "offset": pa.array(range(first, first + count), pa.int64()),
        "timestamp_ms": pa.array([-1] * count, pa.int64()),
        "value": pa.array(values, pa.binary()),
        "control": pa.array(["snapshot_header" if value is None else None for value in values], pa.string()),
    }
    chosen = [each for each in RAW_SCHEMA if each.name in columns]
    arrays = [made.get(each.name, pa.nulls(count, each.type)) for each in chosen]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(chosen))
