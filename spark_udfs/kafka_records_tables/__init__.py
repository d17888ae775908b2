"""Tables over the topics of Kafka's coordinators.

from kafka_records_tables import read_table

result = read_table("current_offsets", "/var/lib/kafka/data")
result.table, result.findings
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_records_tables.tables import TABLES, Column, Table

if TYPE_CHECKING:
    from kafka_records_tables.read import read_table, stream_table
    from kafka_records_tables.report.result import Result, Stream

__all__ = ["TABLES", "Column", "Result", "Stream", "Table", "read_table", "stream_table"]

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
