"""When topics were created, deleted, given more partitions, or compacted: a table that only the report uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.report.facts.metadata_changes import ChangeReader, ChangeReplay, times_of
from kafka_records_tables.tables.cluster.metadata_records import MetadataRecords, events, values_of
from kafka_records_tables.tables.declaration import REPLAYED, Column, Table
from kafka_records_tables.topics import METADATA

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords
    from kafka_records_tables.report.rule_context import RuleContext

_CREATED, _DELETED, _CONFIG, _PARTITION = "TopicRecord", "RemoveTopicRecord", "ConfigRecord", "PartitionRecord"
_TOPIC_CONFIG: Final = 2
"""The resource type of topic configs (`ConfigResource.Type.TOPIC`)."""
_POLICY: Final = "cleanup.policy"

TABLE: Final = Table(
    name="topic_changes",
    topic=METADATA,
    about="when topics were created, deleted or given more partitions, and when compaction began and ended",
    helper="history",
    records=(_CREATED, _DELETED, _CONFIG, _PARTITION),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("topic", "string", "name of the topic"),
        Column("topic_id", "string", "id of the topic"),
        Column(
            "event",
            "string",
            "what happened",
            words=("created", "deleted", "partitions_added", "compaction_began", "compaction_ended"),
        ),
        Column("partition_count", "int32", "number of partitions afterwards; for a deletion, the number before it"),
        Column("configs", "list<string>", "names of the configs that were set at its creation; null for other events"),
        Column(
            "changed",
            "list<string>",
            "names of the configs that were set or removed after its creation; null for other events",
        ),
        Column(
            "at_timestamp_ms", "int64", "time of the change; null if only a checkpoint or a running broker shows it"
        ),
        Column("log_offset", "int64", "offset of the record in the metadata log"),
    ),
    sort=("log_offset",),
    group=None,
    module=__name__,
    rules=REPLAYED + """\
The records of a creation are one batch, with one time: configs with the time of their topic were set at its creation.
Compaction begins and ends with `cleanup.policy`, if that changes later.
""",
)


class TopicChangeReplay(ChangeReplay):
    """Collects topic changes in log order."""

    def __init__(self, context: Context) -> None:
        super().__init__(MetadataRecords(context, (_CREATED, _DELETED, _CONFIG, _PARTITION), (_PARTITION,)))
        self._by_id: dict[str, dict[str, Any]] = {}
        """The creation of each topic."""
        self._by_name: dict[str, dict[str, Any]] = {}
        self._counts: dict[str, int] = {}
        self._compacted: set[str] = set()
        """The ids of topics that are compacted."""

    def _add(self, decoded: DecodedRecords, is_checkpoint: bool) -> None:
        numbers = self._records.numbers
        times = times_of(decoded, is_checkpoint)
        for at, name, value in events(decoded, {each: numbers[each] for each in (_CREATED, _DELETED, _CONFIG)}):
            if name == _CREATED:
                row = self._row(value["topic_id"], value["name"], "created", times[at], int(decoded.offsets[at]))
                row["configs"], row["changed"] = [], []
                self._by_id[value["topic_id"]] = self._by_name[value["name"]] = row
            elif name == _DELETED:
                made = self._by_id.get(value["topic_id"])
                if made is not None:
                    self._row(value["topic_id"], made["topic"], "deleted", times[at], int(decoded.offsets[at]))
            elif value["resource_type"] == _TOPIC_CONFIG:
                self._set(value, times[at], int(decoded.offsets[at]))
        made_partitions = values_of(decoded, numbers[_PARTITION])
        if made_partitions is not None:
            rows, values = made_partitions
            # Few batches have partitions of many topics, but a batch may have many partitions of one topic.
            ids = values.field("topic_id").dictionary_encode()
            firsts: dict[tuple[str, int | None], int] = {}
            counts: dict[tuple[str, int | None], int] = {}
            names = ids.dictionary.to_pylist()
            for code, at in zip(ids.indices.to_pylist(), rows.tolist(), strict=True):
                key = names[code], times[at]
                firsts.setdefault(key, at)
                counts[key] = counts.get(key, 0) + 1
            for (topic_id, at_ms), count in counts.items():
                self._grow(topic_id, at_ms, count, int(decoded.offsets[firsts[topic_id, at_ms]]))

    def _set(self, value: Any, at_ms: int | None, offset: int) -> None:
        """Add a config of a topic."""
        made = self._by_name.get(value["resource_name"])
        if made is None:
            return
        is_new = made["at_timestamp_ms"] == at_ms
        made["configs" if is_new and value["value"] is not None else "changed"].append(value["name"])
        if value["name"] == _POLICY:
            is_compacted = "compact" in (value["value"] or "")
            if not is_new and is_compacted != (made["topic_id"] in self._compacted):
                event = "compaction_began" if is_compacted else "compaction_ended"
                self._row(made["topic_id"], made["topic"], event, at_ms, offset)
            (self._compacted.add if is_compacted else self._compacted.discard)(made["topic_id"])

    def _grow(self, topic_id: str, at_ms: int | None, count: int, offset: int) -> None:
        made = self._by_id.get(topic_id)
        if made is None:
            return
        self._counts[topic_id] = self._counts.get(topic_id, 0) + count
        if at_ms == made["at_timestamp_ms"]:
            made["partition_count"] = self._counts[topic_id]
        else:
            self._row(topic_id, made["topic"], "partitions_added", at_ms, offset)

    def complete(self) -> list[dict[str, Any]]:
        """The rows, at the end of the log. The partitions of a batch follow the deletions in it."""
        for row in self.rows:
            if row["event"] == "deleted":
                row["partition_count"] = self._counts.get(row["topic_id"])
        return self.rows

    def _row(self, topic_id: str, topic: str, event: str, at_ms: int | None, offset: int) -> dict[str, Any]:
        row = {"topic": topic, "topic_id": topic_id, "event": event, "partition_count": self._counts.get(topic_id)}
        row |= {"configs": None, "changed": None, "at_timestamp_ms": at_ms, "log_offset": offset}
        self.rows.append(row)
        return row


class Reader(ChangeReader):
    table = TABLE

    def __init__(self, context: Context) -> None:
        super().__init__(TopicChangeReplay(context))


def changes_of(context: RuleContext, topic: str) -> list[dict[str, Any]]:
    """The changes of a topic in the order of the metadata log; empty if there is no such log."""
    return context.once(changes).get(topic, [])


def changes(context: RuleContext) -> dict[str, list[dict[str, Any]]]:
    """The changes of all topics, by topic."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in context.look(TABLE).to_pylist():
        found.setdefault(row["topic"], []).append(row)
    return found
