"""When configs of topics, brokers and groups were set and removed: a table that only the report uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_records_tables.report.facts.metadata_changes import ChangeReader, ChangeReplay, times_of
from kafka_records_tables.tables.cluster.metadata_records import MetadataRecords, events
from kafka_records_tables.tables.declaration import REPLAYED, Column, Table
from kafka_records_tables.topics import METADATA

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords

TOPIC, BROKER, GROUP = "topic", "broker", "group"
_TYPES: Final = {2: TOPIC, 4: BROKER, 32: GROUP}
"""`ConfigResource.Type`."""
_CONFIG: Final = "ConfigRecord"
_SHOWN: Final = frozenset(
    (
        *("max.message.bytes", "message.max.bytes", "min.insync.replicas", "cleanup.policy", "compression.type"),
        *("message.timestamp.type", "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"),
        *("log.message.timestamp.before.max.ms", "log.message.timestamp.after.max.ms"),
        *("share.record.lock.duration.ms", "retention.ms", "log.retention.ms"),
    )
)
"""The configs that can make brokers reject records or acknowledgements, or delete records. The values of other configs
may be secrets."""

TABLE: Final = Table(
    name="config_changes",
    topic=METADATA,
    about="when configs that make brokers reject or delete records, or reject acknowledgements, were set and removed",
    helper="history",
    records=(_CONFIG,),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("resource_type", "string", "topic, broker or group"),
        Column("resource_name", "string", "the topic, the group, or the id of the broker; empty for all brokers"),
        Column("name", "string", "name of the config"),
        Column("value", "string", "the value; null if it was removed"),
        Column("before", "string", "the value before; null if there was none"),
        Column("at_timestamp_ms", "int64", "time of the change; null if only a checkpoint shows it"),
        Column("log_offset", "int64", "offset of the record in the metadata log"),
    ),
    sort=("log_offset",),
    group=None,
    module=__name__,
    rules=REPLAYED,
)


class ConfigReplay(ChangeReplay):
    """Collects config changes in log order."""

    def __init__(self, context: Context) -> None:
        super().__init__(MetadataRecords(context, (_CONFIG,)))
        self._values: dict[tuple[str, str, str], str | None] = {}

    def _add(self, decoded: DecodedRecords, is_checkpoint: bool) -> None:
        times = times_of(decoded, is_checkpoint)
        for at, _, value in events(decoded, self._records.numbers):
            kind = _TYPES.get(value["resource_type"])
            if kind is None or value["name"] not in _SHOWN:
                continue
            key = kind, value["resource_name"], value["name"]
            before = self._values.get(key)
            self._values[key] = value["value"]
            row = dict(zip(("resource_type", "resource_name", "name"), key, strict=True))
            row |= {"value": value["value"], "before": before}
            self.rows.append(row | {"at_timestamp_ms": times[at], "log_offset": int(decoded.offsets[at])})


class Reader(ChangeReader):
    table = TABLE

    def __init__(self, context: Context) -> None:
        super().__init__(ConfigReplay(context))
