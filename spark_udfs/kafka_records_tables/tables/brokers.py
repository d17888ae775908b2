"""Every registered broker: its addresses, and whether it is fenced."""

from __future__ import annotations

from kafka_records_tables.tables.declaration import Column, Table, timestamps
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
        Column("rack", "string", "rack it is in; null if it has not said"),
        Column("is_fenced", "bool", "whether it leads nothing and takes no clients"),
        Column("in_controlled_shutdown", "bool", "whether it began a controlled shutdown"),
        Column(
            "listeners",
            "list<struct<name: string, host: string, port: int32, security_protocol: string>>",
            "where it listens",
        ),
        Column("log_dirs", "list<string>", "ids of its log directories, in Kafka's 22 characters"),
        *timestamps("registered", "when it registered last; null if the log does not go back so far"),
    ),
    sort=("broker_id",),
    group=None,
    module=__name__,
    essential=("broker_id", "is_fenced", "listeners"),
    details=("broker_epoch", "log_dirs"),
    rules="""\
The log is replayed from its beginning, or else from the earliest checkpoint that it still has after its beginning, in
the order of the log; records of a metadata transaction count once it has ended (KIP-868). The end of the log on a disk
may hold records that a quorum has not agreed on yet, which is a matter of milliseconds. A broker has a row until an
administrator unregisters it. One that was stopped is fenced.

Of running brokers (`--bootstrap`) the rows are their answers of now, with fenced brokers from Kafka 4.0 on. They show
one listener, that at which they are asked, without its name. The epoch, the log directories, whether a broker shuts
down and when it registered are null.
""",
)
