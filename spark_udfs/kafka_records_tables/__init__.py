<<<<<<< HEAD
"""Tables over the topics of Kafka's coordinators.

from kafka_records_tables import read_table

result = read_table("current_offsets", "/var/lib/kafka/data")
result.table, result.findings
=======
"""Tables over coordinator topics, one module each: raw rows in, a DataFrame out, for batch, Connect and pipelines.

Whoever only prints finished tables (`report`) needs no Spark, so what does is loaded when it is asked for.
>>>>>>> main
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
<<<<<<< HEAD

from kafka_records_tables.tables import TABLES, Column, Table

if TYPE_CHECKING:
    from kafka_records_tables.read import read_table, stream_table
    from kafka_records_tables.report.result import Result, Stream
=======

if TYPE_CHECKING:
    from kafka_records_tables.builders import TABLES, Table
>>>>>>> main

__all__ = ["TABLES", "Column", "Result", "Stream", "Table", "read_table", "stream_table"]

<<<<<<< HEAD
_LATER = {
    "read_table": "kafka_records_tables.read",
    "stream_table": "kafka_records_tables.read",
    "Result": "kafka_records_tables.report.result",
    "Stream": "kafka_records_tables.report.result",
}


def __getattr__(name: str) -> Any:
    """What needs pyarrow is imported when it is asked for: a list of tables does without."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)
=======

def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kafka_records_tables import builders

    return getattr(builders, name)
>>>>>>> main
