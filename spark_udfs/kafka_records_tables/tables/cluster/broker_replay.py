"""A cluster's brokers and features, according to the records of its metadata log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka_records.schemas.control import KRAFT_VERSION_RECORD
from kafka_records_runtime.wire import walker
from kafka_records_tables.tables.cluster.metadata_reader import MetadataReplay
from kafka_records_tables.tables.cluster.metadata_records import MetadataRecords, events

if TYPE_CHECKING:

    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords

BROKERS: Final = (
    "RegisterBrokerRecord",
    "UnregisterBrokerRecord",
    "FenceBrokerRecord",
    "UnfenceBrokerRecord",
    "BrokerRegistrationChangeRecord",
)
FEATURES: Final = ("FeatureLevelRecord",)


class ClusterReplay(MetadataReplay):
    """Replays some records one by one (`ClusterControlManager.replay`, `FeatureControlManager.replay`)."""

    def __init__(self, context: Context, names: tuple[str, ...]) -> None:
        super().__init__(MetadataRecords(context, names))
        self.brokers: dict[int, dict[str, Any]] = {}
        """The record of each registered broker, updated by later records, and `registered_ms`."""
        self.features: dict[str, tuple[int, int | None]] = {}
        """The level of each feature except kraft.version, and when it was set."""

    @property
    def kraft_version(self) -> tuple[int, int | None]:
        """The level of kraft.version, and when it was set; the level is 0 if there is no record of it. Raises
        DecodeError."""
        if self._records.kraft_version is None:
            return 0, None
        value, at = self._records.kraft_version
        message, _ = walker.decode(KRAFT_VERSION_RECORD, value, 0, allow_trailing=True)
        return message["kraft_version"], at

    def _add(self, decoded: DecodedRecords, is_checkpoint: bool) -> None:
        times = None if is_checkpoint else decoded.rows.column("timestamp_ms")
        for row, name, value in events(decoded, self._records.numbers):
            at = None if times is None else times[row].as_py()
            match name:
                case "FeatureLevelRecord":
                    self.features.pop(value["name"], None)
                    if value["feature_level"]:
                        self.features[value["name"]] = value["feature_level"], at
                case "RegisterBrokerRecord":
                    self.brokers[value["broker_id"]] = {**value, "registered_ms": at}
                case "UnregisterBrokerRecord":
                    self.brokers.pop(value["broker_id"], None)
                case "BrokerRegistrationChangeRecord":
                    self._change(value)
                case _:
                    broker = self.brokers.get(value["id"])
                    if broker is not None:
                        broker["fenced"] = name == "FenceBrokerRecord"

    def _change(self, value: dict[str, Any]) -> None:
        broker = self.brokers.get(value["broker_id"])
        if broker is None:
            return
        if value["fenced"]:
            broker["fenced"] = value["fenced"] > 0
        if value["in_controlled_shutdown"] > 0:
            broker["in_controlled_shutdown"] = True
        if value["log_dirs"]:
            broker["log_dirs"] = value["log_dirs"]
