"""Tables over the topics of Kafka's coordinators.

from kafka_records_tables import read_table

result = read_table("current_offsets", "/var/lib/kafka/data")
result.table, result.findings
"""

# Import neither `__future__` nor `typing`, because the command loads this module before it can handle Ctrl-C.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_records_tables.deletion.aborting import OpenTransaction, abort_transaction
    from kafka_records_tables.read import read_table, read_tables, stream_table
    from kafka_records_tables.report.making import read_report
    from kafka_records_tables.results.offset_files import starting_offsets
    from kafka_records_tables.results.result import Result, Results, Stream
    from kafka_records_tables.tables import TABLES, Column, Table

__all__ = [
    "TABLES",
    "Column",
    "OpenTransaction",
    "Result",
    "Results",
    "Stream",
    "Table",
    "abort_transaction",
    "read_report",
    "read_table",
    "read_tables",
    "starting_offsets",
    "stream_table",
]

_LATER = {
    "abort_transaction": "kafka_records_tables.deletion.aborting",
    "OpenTransaction": "kafka_records_tables.deletion.aborting",
    "read_report": "kafka_records_tables.report.making",
    "read_table": "kafka_records_tables.read",
    "read_tables": "kafka_records_tables.read",
    "stream_table": "kafka_records_tables.read",
    "starting_offsets": "kafka_records_tables.results.offset_files",
    "Result": "kafka_records_tables.results.result",
    "Results": "kafka_records_tables.results.result",
    "Stream": "kafka_records_tables.results.result",
    "TABLES": "kafka_records_tables.tables",
    "Column": "kafka_records_tables.tables",
    "Table": "kafka_records_tables.tables",
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> "Any":
    """Import names on first use, so that a list of tables does not load pyarrow, and Ctrl-C works at once."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(_LATER[name]), name)
    except ModuleNotFoundError as missing:
        from kafka_records_runtime.text.installing import with_hint

        raise with_hint(missing, "tables") from None
