"""Every registered broker: its addresses, and whether it is fenced."""

from __future__ import annotations

from kafka_records_tables.tables.declaration import REPLAYED, Column, Table, timestamps
from kafka_records_tables.topics import METADATA

TABLE = Table(
    name="brokers",
    topic=METADATA,
    about="every registered broker: where it listens, whether it is fenced",
    helper="fold",
    records=(
        "RegisterBrokerRecord",
        "UnregisterBrokerRecord",
        "FenceBrokerRecord",
        "UnfenceBrokerRecord",
        "BrokerRegistrationChangeRecord",
    ),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("broker_id", "int32", "id of the broker"),
        Column("broker_epoch", "int64", "offset of the record that registered it"),
        Column("rack", "string", "rack of the broker; null if not set"),
        Column("is_fenced", "bool", "whether it is fenced"),
        Column("in_controlled_shutdown", "bool", "whether it has begun a controlled shutdown"),
        Column(
            "listeners",
            "list<struct<name: string, host: string, port: int32, security_protocol: string>>",
            "addresses at which it listens",
        ),
        Column("log_dirs", "list<string>", "ids of its log directories, 22 characters each"),
        *timestamps("registered", "when it last registered; null if the log does not go back that far"),
    ),
    sort=("broker_id",),
    group=None,
    module=__name__,
    essential=("broker_id", "is_fenced", "listeners"),
    details=("broker_epoch", "log_dirs"),
    rules=REPLAYED + """\
A broker has a row until an administrator unregisters it. One that was stopped is fenced.

Running brokers show fenced brokers since Kafka 4.0, and only the listener that was queried, without its name. Epoch,
log directories, shutdown and time of registration are null.
""",
)
