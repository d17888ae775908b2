"""Tables over coordinator topics, one module each: raw rows in, a DataFrame out, for batch, Connect and pipelines.

Whoever only prints finished tables (`report`) needs no Spark, so what does is loaded when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka_records_tables.builders import TABLES, Table

__all__ = ["TABLES", "Table"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kafka_records_tables import builders

    return getattr(builders, name)
