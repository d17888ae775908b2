"""Every config set for a topic, a broker, a group or a client metrics subscription."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.declaration import REPLAYED, SHOW_SECRETS, Column, Table
from kafka_records_tables.topics import METADATA

RESOURCE_WORDS: Final = ("topic", "broker", "client-metrics", "group")
"""The values of the column `resource_type`, as spelled by Kafka's tools."""

TABLE = Table(
    name="configs",
    topic=METADATA,
    about="every config that was set for a topic, a broker, a group or a client metrics subscription",
    helper="fold",
    records=("TopicRecord", "RemoveTopicRecord", "ConfigRecord"),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("resource_type", "string", "kind of resource that the config is set for", RESOURCE_WORDS),
        Column("resource_name", "string", "name of the resource; empty for the default of all brokers"),
        Column("name", "string", "name of the config"),
        Column("value", "string", "value of the config; (redacted) for a secret"),
        Column(
            "is_sensitive",
            "bool",
            "whether the value is a secret, or may be one",
        ),
    ),
    sort=("resource_type", "resource_name", "name"),
    group=None,
    module=__name__,
    essential=("resource_type", "resource_name", "name", "value"),
    details=(),
    options=(SHOW_SECRETS,),
    rules=REPLAYED + """\
The log has only configs that were set while the cluster ran, not those in the properties of a broker, and no defaults.
The configs of a topic are deleted with it.

As in `topics`, a possible secret is `(redacted)`.

Running brokers show configs of topics, of running brokers and, since Kafka 4.1, of groups. They never reveal a secret.
""",
)
