"""Measures what could bring `decode_records` closer to an identity over the same columns, one step at a time.

A step is a decoder and the identity with which it is compared. Both get the same columns under the same settings.
Decoders with another form of output than `decode_records` are built here from the engine, so that only the form
differs.
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
"""Spark 4.1 and later compute the bytes of a batch after every row, unless the batch has no limit."""


@dataclass(frozen=True)
class Step:
    """A way to decode, and the settings with which it is tried.

    `sent` are the columns that are passed to Python; if empty, all raw columns. The settings in `session` must be set
    before a session starts.
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
    """struct<key, value>, as `decode_records` returns it."""
    return [record]


def apart(record: pa.StructArray) -> Columns:
    """One struct for the key, and one for the value."""
    return [*record.flatten()]


def flat(record: pa.StructArray) -> Columns:
    """A column for every field."""
    return [column for part in record.flatten() for column in part.flatten()]


class ShapedDecoder:
    """A decoder that returns some coordinates unchanged, then the record in the form that `shape` makes, and nothing
    else."""

    def __init__(self, coordinates: Sequence[str], shape: Callable[[pa.StructArray], Columns]) -> None:
        self.coordinates = tuple(coordinates)
        self.shape = shape

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            found = decode_record_columns(_SCHEMAS, batch.column("key"), batch.column("value"))
            yield self._batch(batch, found.records[_TYPE])

    def decode(self, raw: DataFrame) -> DataFrame:
        """The query of the step."""
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
"""The steps in the order of the table."""


# ------------------------------------------------------------------------------------------------------------- timing


@dataclass(frozen=True)
class MeasuredStep:
    """A step with its own timing and that of its identity."""

    step: Step
    decoder: Timing
    identity: Timing

    @property
    def ratio(self) -> tuple[float, float]:
        """The rate of the decoder divided by that of the identity: best and median."""
        (best, middle), (other_best, other_middle) = self.decoder.rates, self.identity.rates
        return best / other_best, middle / other_middle

    @property
    def added(self) -> float:
        """The additional processor seconds per row of decoding, compared with the identity: best."""
        return self.decoder.costs[0] - self.identity.costs[0]


def measure_steps(
    spark: SparkSession, raw: DataFrame, steps: Sequence[Step], rounds: int, tell: Callable[[str], None]
) -> list[MeasuredStep]:
    """Time steps that share a session: one round without timing, then `rounds` rounds over all steps and their
    identities."""
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
