"""Reads `brokers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records_tables.tables.brokers import TABLE
from kafka_records_tables.tables.cluster.broker_replay import ClusterReplay
from kafka_records_tables.tables.cluster.metadata_reader import MetadataReader
from kafka_records_tables.tables.column_types import instants, record_batch

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


_PROTOCOLS: Final = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}


class Reader(MetadataReader[ClusterReplay]):
    def __init__(self, context: Context) -> None:
        super().__init__(ClusterReplay(context, TABLE.records))

    def _rows(self) -> pa.RecordBatch:
        brokers = [_known(each) for each in self._replay.brokers.values()]
        columns = {
            **{name: [each[name] for each in brokers] for name in _AS_THEY_ARE},
            "is_fenced": [each["fenced"] for each in brokers],
            "listeners": [[*map(_listener, sorted(each["end_points"], key=_name))] for each in brokers],
            "registered_timestamp_ms": [each["registered_ms"] for each in brokers],
        }
        arrays = {name: pa.array(values, TABLE.schema.field(name).type) for name, values in columns.items()}
        arrays["registered_timestamp"] = instants(arrays["registered_timestamp_ms"])
        return record_batch(TABLE.schema, arrays, len(brokers))


_AS_THEY_ARE: Final = ("broker_id", "broker_epoch", "rack", "in_controlled_shutdown", "log_dirs")


def _known(broker: dict[str, Any]) -> dict[str, Any]:
    """The row for a broker's record. A record without an offset comes from answers of brokers
    (`sources.cluster_answers`)."""
    if broker["broker_epoch"] >= 0:
        return broker
    return {**broker, "broker_epoch": None, "in_controlled_shutdown": None, "log_dirs": None}


def _name(listener: dict[str, Any]) -> str:
    """A sort key, because controllers list listeners in any order."""
    return str(listener["name"])


def _listener(end_point: dict[str, Any]) -> dict[str, Any]:
    protocol = end_point["security_protocol"]
    return {
        **end_point,
        "name": end_point["name"] or None,
        "security_protocol": _PROTOCOLS.get(protocol, str(protocol)),
    }
