"""Every config that was set for a topic, a broker, a group or a client metrics subscription."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.declaration import SHOW_SECRETS, Column, Table
from kafka_records_tables.topics import METADATA

RESOURCE_WORDS: Final = ("topic", "broker", "client-metrics", "group")
"""The words of the column `resource_type`, as Kafka's tools spell them."""

TABLE = Table(
    name="configs",
    topic=METADATA,
    about="every config that was set for a topic, a broker, a group or a client metrics subscription",
    helper="fold",
    records=("TopicRecord", "RemoveTopicRecord", "ConfigRecord"),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("resource_type", "string", "what the config is of", RESOURCE_WORDS),
        Column("resource_name", "string", "its name; empty for the default of all brokers"),
        Column("name", "string", "name of the config"),
        Column("value", "string", "its value; (redacted) for a secret"),
        Column("is_sensitive", "bool", "whether it is a secret, or may be one because Kafka 4.4 does not know it"),
    ),
    sort=("resource_type", "resource_name", "name"),
    group=None,
    module=__name__,
    essential=("resource_type", "resource_name", "name", "value"),
    details=(),
    options=(SHOW_SECRETS,),
    rules="""\
The log is replayed from its beginning, or else from the earliest checkpoint that it still has after its beginning, in
the order of the log; records of a metadata transaction count once it has ended (KIP-868). The end of the log on a disk
may hold records that a quorum has not agreed on yet, which is a matter of milliseconds. Only configs that were set
while the cluster ran are in the log: what is in the properties of a broker, and defaults, are not. A deleted topic
takes its configs along.

A config is a secret where Kafka's own definitions say so, and where they do not know it: its value is `(redacted)`
unless secrets are asked for.

Of running brokers (`--bootstrap`) the rows are their answers of now: configs of topics that may be described, of
brokers that are up, and from Kafka 4.1 on those of groups. They never tell a secret: it is `(redacted)` always.
""",
)
