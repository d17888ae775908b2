"""Computes views in Spark. Rows of the inputs that belong together are brought into one task, which joins them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)
from pyspark.sql.types import IntegerType, StructField, StructType

from kafka_records_engine.sources.collected_findings import Findings
from kafka_records_engine.spark.mapping import map_batches
from kafka_records_engine.spark.spark_types import spark_schema
from kafka_records_tables.engines.joined_tables import joined
from kafka_records_tables.engines.spark_schema import schema_of
from kafka_records_tables.engines.spark_tasks import FINDINGS, FailFast, rows_of_findings
from kafka_records_tables.tables import inputs_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_records_engine.sources import Source
    from kafka_records_tables.engines.request import TableRequest
    from kafka_records_tables.tables.declaration import Table

_INPUT: Final = "input"
"""The column with the number of the input that a row comes from, followed by a struct for each input."""


def joined_frames(
    frames: Mapping[str, DataFrame],
    request: TableRequest,
    names: Sequence[str],
    source: Source | None = None,
    *,
    is_failfast: bool = False,
) -> DataFrame:
    """The columns `names` of a view from the rows of its inputs. Spark does not do the join, so that its rules are
    implemented only once. `source` is asked for missing rights; with `is_failfast`, such findings end the query."""
    rows, given = _together(frames, request.table)
    function = JoinedRows(request, tuple(names), source, is_failfast)
    return map_batches(rows, given, function, schema_of(request.table, names))


def joined_findings(frames: Mapping[str, DataFrame], request: TableRequest, source: Source | None = None) -> DataFrame:
    """The findings of a view that joins rows of its inputs, with the columns FINDINGS."""
    rows, given = _together(frames, request.table)
    return map_batches(rows, given, JoinedFindings(request, source), spark_schema(FINDINGS))


def _together(frames: Mapping[str, DataFrame], view: Table) -> tuple[DataFrame, StructType]:
    """The rows of all inputs, with those that belong together in one task, and their type."""
    given = StructType([StructField(_INPUT, IntegerType())])
    for each in inputs_of(view):
        given.add(f"of_{each.name}", schema_of(each, each.names))
    parts = []
    for number, each in enumerate(inputs_of(view)):
        if each.name not in frames:
            continue
        own = f"of_{each.name}"
        structs = [
            (F.struct(*each.names) if field.name == own else F.lit(None)).cast(field.dataType).alias(field.name)
            for field in given.fields[1:]
        ]
        parts.append(frames[each.name].select(*view.join_keys, F.lit(number).alias(_INPUT), *structs))
    together = reduce(lambda one, other: one.unionAll(other), parts)
    # Without join keys, one task joins all rows. That task must not also read all logs.
    return together.repartition(*(view.join_keys or [1])), given


@dataclass(frozen=True)
class JoinedRows:
    """View rows with the columns `names`, from rows of its inputs that belong together."""

    request: TableRequest
    names: Sequence[str]
    source: Source | None = None
    is_failfast: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = _by_input(batches, self.request.table)
        if any(parts.values()):
            found = FailFast() if self.is_failfast else Findings()
            for rows in joined(self.request, parts, found, self.source):
                yield rows.select(self.names)


@dataclass(frozen=True)
class JoinedFindings:
    """Findings of a view, with the columns FINDINGS, from the rows of its inputs."""

    request: TableRequest
    source: Source | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = Findings()
        for _ in joined(self.request, _by_input(batches, self.request.table), found, self.source):
            pass
        yield rows_of_findings(found)


def _by_input(batches: Iterator[pa.RecordBatch], view: Table) -> dict[str, list[pa.RecordBatch]]:
    inputs = inputs_of(view)
    parts: dict[str, list[pa.RecordBatch]] = {each.name: [] for each in inputs}
    for batch in batches:
        for number, each in enumerate(inputs):
            of_input = batch.filter(pc.equal(batch.column(0), number)).column(1 + number)
            if len(of_input):
                columns = [
                    column.cast(field.type) for column, field in zip(of_input.flatten(), each.schema, strict=True)
                ]
                parts[each.name].append(pa.RecordBatch.from_arrays(columns, schema=each.schema))
    return parts
