"""`mapInArrow` for DataFrames whose columns are known in advance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyspark.sql.types import StructType

from kafka_records_engine.spark.workers import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_batches(df: DataFrame, columns: StructType, function: BatchFunction, returned: StructType) -> DataFrame:
    """Run `function` over the `columns` of `df`, in that order. The function returns rows with the schema `returned`.

    Under Spark Connect, `mapInArrow` requests the columns from the server, which costs a round trip and which a
    Declarative Pipeline rejects (ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION). No public call avoids this request, so
    the columns are stored where Connect caches the server's answer. `DataFrame.to` would make the server check the
    input instead, and fails for a table of the same pipeline.
    """
    chosen = df.select(*columns.names)
    if is_connect(df.sparkSession):
        cast(Any, chosen)._cached_schema = columns
    return chosen.mapInArrow(function, returned)
