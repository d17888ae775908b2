"""The topologies of streams groups, and how long they have not matched their topics: a table that only the report
uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords
from kafka_records_tables.coordinator.records.named_records import events
from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table
from kafka_records_tables.tables.record_reader import RecordReader
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

_GROUP, _TOPOLOGY = "StreamsGroupMetadata", "StreamsGroupTopology"
_PICKED: Final = {
    _GROUP: ("validated_topology_epoch",),
    _TOPOLOGY: (
        "epoch",
        "subtopologies.subtopology_id",
        "subtopologies.source_topics",
        "subtopologies.repartition_source_topics.name",
        "subtopologies.state_changelog_topics.name",
        "subtopologies.copartition_groups.source_topics",
        "subtopologies.copartition_groups.repartition_source_topics",
    ),
}

TABLE: Final = Table(
    name="stream_topologies",
    topic=OFFSETS,
    about="the topology of each streams group, and how long it has not matched its topics",
    helper="history",
    records=(_GROUP, _TOPOLOGY),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("group_id", "string", "the group"),
        Column(
            "subtopologies",
            "list<struct<subtopology_id: string, sources: list<string>, repartitions: list<string>, "
            "changelogs: list<string>, joined: list<struct<sources: list<string>, repartitions: list<string>>>>>",
            "its parts: the topics that they read, their changelogs, and topics that must have as many partitions as "
            "each other",
        ),
        Column(
            "was_valid",
            "bool",
            "whether an earlier record has a valid topology; null if the last one does too",
        ),
        Column(
            "invalid_timestamp_ms",
            "int64",
            "when the first of the last records without a valid topology was written; null if the last one has one",
        ),
        Column("invalid_log_offset", "int64", "offset of that record"),
        *LOG_PLACE,
    ),
    sort=("group_id",),
    group="group_id",
    module=__name__,
    rules="""\
One row per group whose topology is in the log and was not deleted. Since 4.2 the record of the group says which
topology the coordinator found to match its topics (`validatedTopologyEpoch`), or that there is none (-1).
""",
)


class Reader(RecordReader):
    def __init__(self, context: Context) -> None:
        super().__init__(context, "consumer_offsets", TABLE.records, "not used: its group is unknown")
        self._topologies: dict[str, Any] = {}
        self._groups: dict[str, dict[str, Any]] = {}

    def add(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        records = rows.filter(pc.is_null(rows.column("control")))
        for event in events(DecodedRecords(records, self.schemas), _PICKED) if records.num_rows else ():
            known = self._topologies if event.record == _TOPOLOGY else self._groups
            if event.is_tombstone:
                known.pop(event.group_id, None)
            elif event.value is not None:
                if event.record == _TOPOLOGY:
                    self._topologies[event.group_id] = event
                else:
                    self._take(event)
        return ()

    def _take(self, event: Any) -> None:
        known = self._groups.setdefault(event.group_id, {"was_valid": False, "invalid": None, "is_valid": False})
        if event.value.validated_topology_epoch >= 0:
            known.update(was_valid=True, is_valid=True, invalid=None)
        elif known["invalid"] is None:
            known.update(is_valid=False, invalid=event)

    def finish(self) -> Iterator[pa.RecordBatch]:
        rows = [self._row(*each) for each in self._topologies.items() if each[0] in self._groups]
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema=TABLE.schema)

    def _row(self, group_id: str, event: Any) -> dict[str, Any]:
        group, invalid = self._groups[group_id], self._groups[group_id]["invalid"]
        return {
            "group_id": group_id,
            "subtopologies": list(_subtopologies(event.value)),
            "was_valid": None if group["is_valid"] else group["was_valid"],
            "invalid_timestamp_ms": None if invalid is None else invalid.timestamp_ms,
            "invalid_log_offset": None if invalid is None else invalid.offset,
            "log_partition": self.context.partition,
            "log_offset": event.offset,
        }


def _subtopologies(value: Any) -> Iterator[dict[str, Any]]:
    for name, sources, repartitions, changelogs, of_sources, of_repartitions in zip(
        value.subtopologies_subtopology_id,
        value.subtopologies_source_topics,
        value.subtopologies_repartition_source_topics_name,
        value.subtopologies_state_changelog_topics_name,
        value.subtopologies_copartition_groups_source_topics,
        value.subtopologies_copartition_groups_repartition_source_topics,
        strict=True,
    ):
        yield {
            "subtopology_id": name,
            "sources": sources,
            "repartitions": repartitions,
            "changelogs": changelogs,
            "joined": [
                {"sources": _at(sources, first), "repartitions": _at(repartitions, second)}
                for first, second in zip(of_sources, of_repartitions, strict=True)
            ],
        }


def _at(names: Sequence[str], places: Iterable[int]) -> list[str]:
    """The names at the given indexes. A damaged record may contain indexes that do not exist."""
    return sorted(names[place] for place in places if 0 <= place < len(names))
