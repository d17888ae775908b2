"""When quotas of clients were set or removed: a table that only the report uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_records_tables.report.facts.metadata_changes import ChangeReader, ChangeReplay, times_of
from kafka_records_tables.tables.cluster.metadata_records import MetadataRecords, events
from kafka_records_tables.tables.declaration import REPLAYED, Column, Table
from kafka_records_tables.topics import METADATA

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords

_QUOTA: Final = "ClientQuotaRecord"
_ENTITIES: Final = {"user": "user", "client-id": "client_id", "ip": "ip"}
"""The columns for the entity types (`ClientQuotaEntity`)."""

TABLE: Final = Table(
    name="quota_changes",
    topic=METADATA,
    about="when quotas of clients were set and removed",
    helper="history",
    records=(_QUOTA,),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column(
            "user", "string", "the user; empty for the default of all users, null if the quota applies to all users"
        ),
        Column(
            "client_id", "string", "the client id; empty for the default, null if the quota applies to all client ids"
        ),
        Column("ip", "string", "the IP address; empty for the default, null if the quota applies to all addresses"),
        Column("name", "string", "name of the quota"),
        Column("value", "float64", "the limit; null if the quota was removed"),
        Column(
            "at_timestamp_ms", "int64", "time of the change; null if only a checkpoint or a running broker shows it"
        ),
        Column("log_offset", "int64", "offset of the record in the metadata log"),
    ),
    sort=("log_offset",),
    group=None,
    module=__name__,
    rules=REPLAYED,
)


class QuotaReplay(ChangeReplay):
    """Collects quota changes in log order."""

    def __init__(self, context: Context) -> None:
        super().__init__(MetadataRecords(context, (_QUOTA,)))

    def _add(self, decoded: DecodedRecords, is_checkpoint: bool) -> None:
        times = times_of(decoded, is_checkpoint)
        for at, _, value in events(decoded, self._records.numbers):
            entity = {each["entity_type"]: each["entity_name"] or "" for each in value["entity"]}
            row = {column: entity.get(kind) for kind, column in _ENTITIES.items()}
            row |= {"name": value["key"], "value": None if value["remove"] else value["value"]}
            self.rows.append(row | {"at_timestamp_ms": times[at], "log_offset": int(decoded.offsets[at])})


class Reader(ChangeReader):
    table = TABLE

    def __init__(self, context: Context) -> None:
        super().__init__(QuotaReplay(context))
