"""What could bring `decode_records` closer to an identity over the same columns, each step measured by itself.

A step is a decoder and the identity it is compared with: both get the same columns under the same settings. Decoders of
other shapes than `decode_records` has are made here from the engine, so that the shape is all that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey
from kafka_records.schemas.consumer_offsets import RECORDS
from kafka_records.spark.consumer_offsets import decode_records
from kafka_records_engine.columns import decode_record_columns, record_arrow_type
from kafka_records_engine.log.reading.segment_files import RAW_SCHEMA
from kafka_records_engine.spark.spark_types import spark_schema
from tools.benchmarks._figures import pair, table, three_digits
from tools.benchmarks._spark_contenders import COORDINATES, RECORD, Batches, column_functions, identity, ours
from tools.benchmarks._spark_runs import Timing, measure_in_turn

Build = Callable[[DataFrame], DataFrame]
Columns = list[pa.Array]

_TYPE: Final = OffsetCommitKey.RECORD_TYPE
_SCHEMAS: Final = {_TYPE: RECORDS[_TYPE]}
_FEW: Final = ("topic", "partition", "offset")
_COORDINATES: Final = ("partition", "offset")

_ARROW: Final = "spark.sql.execution.arrow."
_NO_LIMIT: Final = {f"{_ARROW}maxBytesPerBatch": str(2**31 - 1)}
"""Spark 4.1 and later ask after every row how many bytes the batch has, unless there is no limit to it."""


@dataclass(frozen=True)
class Step:
    """A way to decode and the settings it is tried under.

    `sent` are the columns that go to Python, all raw ones when empty. What is in `session` has to be set before a
    session starts.
    """

    name: str
    build: Build
    settings: Mapping[str, str] = field(default_factory=dict)
    sent: Sequence[str] = ()
    session: Mapping[str, str] = field(default_factory=dict)

    def baseline(self, raw: DataFrame) -> DataFrame:
        """The identity over the same columns."""
        return identity(raw.select(*self.sent) if self.sent else raw)


# ------------------------------------------------------------------------------------------------------------- shapes


def whole(record: pa.StructArray) -> Columns:
    """struct<key, value>, as `decode_records` has it."""
    return [record]


def apart(record: pa.StructArray) -> Columns:
    """A struct for the key, and one for the value."""
    return [*record.flatten()]


def flat(record: pa.StructArray) -> Columns:
    """A column for every field."""
    return [column for part in record.flatten() for column in part.flatten()]


class ShapedDecoder:
    """Some coordinates as they are, and after them the record in the form that `shape` gives it; nothing else."""

    def __init__(self, coordinates: Sequence[str], shape: Callable[[pa.StructArray], Columns]) -> None:
        self.coordinates = tuple(coordinates)
        self.shape = shape

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            found = decode_record_columns(_SCHEMAS, batch.column("key"), batch.column("value"))
            yield self._batch(batch, found.records[_TYPE])

    def decode(self, raw: DataFrame) -> DataFrame:
        """The step's query."""
        empty = pa.RecordBatch.from_pylist([], schema=RAW_SCHEMA)
        schema = self._batch(empty, pa.array([], record_arrow_type(RECORDS[_TYPE]))).schema
        return raw.select(*self.coordinates, "key", "value").mapInArrow(self, spark_schema(schema))

    def _batch(self, batch: pa.RecordBatch, record: pa.StructArray) -> pa.RecordBatch:
        decoded = {f"decoded_{number}": column for number, column in enumerate(self.shape(record))}
        columns = {**{name: batch.column(name) for name in self.coordinates}, **decoded}
        return pa.RecordBatch.from_arrays([*columns.values()], names=[*columns])


def _shaped(name: str, coordinates: Sequence[str], shape: Callable[[pa.StructArray], Columns]) -> Step:
    return Step(name, ShapedDecoder(coordinates, shape).decode, sent=(*coordinates, "key", "value"))


def _all_records(raw: DataFrame) -> DataFrame:
    return decode_records(raw)


def _with_place(raw: DataFrame) -> DataFrame:
    return decode_records(raw, records=[RECORD], coordinates=_COORDINATES)


STEPS: Final = (
    Step("decode_records", ours),
    *(
        Step(f"batch of {rows}", ours, {f"{_ARROW}maxRecordsPerBatch": str(rows)})
        for rows in (1_000, 2_000, 5_000, 20_000, 50_000, 100_000)
    ),
    Step("no limit to bytes", ours, _NO_LIMIT),
    Step("no limit to bytes, batch of 50000", ours, {**_NO_LIMIT, f"{_ARROW}maxRecordsPerBatch": "50000"}),
    Step("no limit to bytes, coordinates stay in the JVM", column_functions, _NO_LIMIT),
    Step("no limit to bytes, partition and offset", _with_place, _NO_LIMIT, sent=(*_COORDINATES, "key", "value")),
    Step("buffer of 1 MiB", ours, {"spark.sql.execution.pandas.udf.buffer.size": str(2**20)}),
    Step("large var types", ours, {f"{_ARROW}useLargeVarTypes": "true"}),
    Step("columns of all 22 records", _all_records),
    Step("column functions, coordinates stay in the JVM", column_functions),
    _shaped("11 coordinates, struct<key, value>, no status", COORDINATES, whole),
    _shaped("11 coordinates, key and value apart, no status", COORDINATES, apart),
    _shaped("11 coordinates, flat, no status", COORDINATES, flat),
    _shaped("3 coordinates, struct<key, value>, no status", _FEW, whole),
    _shaped("no coordinates, struct<key, value>, no status", (), whole),
    Step("unix socket", ours, session={"spark.python.unix.domain.socket.enabled": "true"}),
    Step("pipelined", ours, session={"spark.python.udf.pipelined.enabled": "true"}),
)
"""In the order of the table."""


# ------------------------------------------------------------------------------------------------------------- timing


@dataclass(frozen=True)
class MeasuredStep:
    """A step with its own timing and that of its identity."""

    step: Step
    decoder: Timing
    identity: Timing

    @property
    def ratio(self) -> tuple[float, float]:
        """Rate of the decoder divided by that of the identity: best, median."""
        (best, middle), (other_best, other_middle) = self.decoder.rates, self.identity.rates
        return best / other_best, middle / other_middle

    @property
    def added(self) -> float:
        """Processor seconds per row that decoding takes on top of the identity: best."""
        return self.decoder.costs[0] - self.identity.costs[0]


def measure_steps(
    spark: SparkSession, raw: DataFrame, steps: Sequence[Step], rounds: int, tell: Callable[[str], None]
) -> list[MeasuredStep]:
    """Time steps that share a session: one untimed round, then `rounds` over all of them and their identities."""
    rows = raw.count()
    measured = [
        MeasuredStep(
            step,
            Timing(step.name, rows, partial(step.build, raw), step.settings),
            Timing(f"{step.name}, identity", rows, partial(step.baseline, raw), step.settings),
        )
        for step in steps
    ]
    timings = [timing for each in measured for timing in (each.identity, each.decoder)]
    measure_in_turn(spark, timings, 1 + rounds, tell)
    for timing in timings:
        timing.forget_first()
    return measured


def steps_table(measured: Sequence[MeasuredStep]) -> str:
    lines = [["", "identity, million rows/s", "decoded", "ratio", "identity, processor µs/row", "decoding adds"]]
    for each in measured:
        rates = pair(each.identity.rates, 1e-6), pair(each.decoder.rates, 1e-6), pair(each.ratio)
        costs = pair(each.identity.costs, 1e6), three_digits(each.added * 1e6)
        lines.append([each.step.name, *rates, *costs])
    return table(lines)
