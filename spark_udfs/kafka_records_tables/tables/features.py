"""The level of every feature of the cluster, such as metadata.version."""

from __future__ import annotations

from kafka_records_tables.tables.declaration import REPLAYED, Column, Table, timestamps
from kafka_records_tables.topics import METADATA

TABLE = Table(
    name="features",
    topic=METADATA,
    about="the level of every feature of the cluster, such as metadata.version",
    helper="fold",
    records=("FeatureLevelRecord",),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("feature", "string", "name of the feature"),
        Column("level", "int16", "level of the feature; a feature of level 0 has no row"),
        *timestamps("changed", "when it got this level; null if the log does not go back that far"),
    ),
    sort=("feature",),
    group=None,
    module=__name__,
    essential=("feature", "level"),
    details=(),
    rules=REPLAYED + """\
The level of metadata.version is a number: 30 is 4.3-IV0 (`MetadataVersion`). The level of kraft.version is 0 if the
voters are in the files of controllers.
""",
)
