"""`decode_records`: raw rows in, typed columns out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)
from pyspark.sql.types import StructField, StructType

from kafka_records_arrow.segments import RAW_SCHEMA as RAW_ARROW_SCHEMA
from kafka_records_runtime.schema import RecordSchema
from kafka_records_spark.errors import ColumnClash, UndecodableRecord, UnknownRecord
from kafka_records_spark.modes import DROPMALFORMED, FAILFAST, PERMISSIVE, Mode, checked_mode
from kafka_records_spark.raw import RAW_COLUMNS, has_record_type, is_unframed, raw_rows
from kafka_records_spark.rows import Row, RowReader, error_fields
from kafka_records_spark.types import column_name, record_arrow_type, record_spark_type, spark_schema
from kafka_records_spark.workers import check_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

_ERROR: Final = pa.struct(
    [
        ("reason", pa.string()),
        ("record_type", pa.int16()),
        ("version", pa.int16()),
        ("path", pa.string()),
        ("byte_offset", pa.int32()),
        ("message", pa.string()),
    ]
)

ERROR_SCHEMA: Final = spark_schema(pa.schema(_ERROR))
"""Why a record could not be decoded.

`reason` is the name of an error of `kafka_records_runtime.errors`, `message` its text; `path` and `byte_offset`
(counted from behind the int16 that the key or value starts with) are null when the record is not even framed.
"""

_COORDINATES: Final = tuple(name for name in RAW_COLUMNS if name not in ("key", "value"))

_DECODED: Final = pa.schema(
    [
        *(RAW_ARROW_SCHEMA.field(name) for name in _COORDINATES),
        ("record_type", pa.int16()),
        ("value_version", pa.int16()),
        ("is_tombstone", pa.bool_()),
        ("key_bytes_left", pa.int32()),
        ("value_bytes_left", pa.int32()),
        ("leniencies", pa.list_(pa.string())),
        ("error", _ERROR),
        ("raw_key", pa.binary()),
        ("raw_value", pa.binary()),
    ]
)

DECODED_SCHEMA: Final = spark_schema(_DECODED)
"""What every decoded row starts with; one struct column per record follows.

`record_type` is null for control records and for keys that hold none, `value_version` for tombstones and unknown record
types. `key_bytes_left` and `value_bytes_left` count the bytes behind key and value that Kafka leaves alone, and
`leniencies` names what was accepted because Kafka accepts it (`invalid_utf8`, for instance): 0, 0 and empty for nearly
every record. `raw_key` and `raw_value` are the bytes of a record whose columns may not give them back: one that was
not decoded (its `error` says why, or there is none because this build does not know its type), or that was read as
leniently as Kafka reads.
"""


def decoded_schema(records: Iterable[RecordSchema]) -> StructType:
    """The schema of `decode_records` over `records`. Raises ColumnClash when two columns would share a name."""
    fields = [*DECODED_SCHEMA.fields]
    for record in records:
        fields.append(StructField(column_name(record.name), record_spark_type(record)))
    names: set[str] = set()
    for item in fields:
        if item.name in names:
            raise ColumnClash(item.name)
        names.add(item.name)
    return StructType(fields)


def chosen_records(
    schemas: Mapping[int, RecordSchema], records: Iterable[str] | None = None
) -> dict[int, RecordSchema]:
    """The schemas of the records called `records`, or all. Raises UnknownRecord for a name that is not among them."""
    if records is None:
        return dict(schemas)
    numbers = {schema.name: number for number, schema in schemas.items()}
    chosen = {}
    for name in records:
        if name not in numbers:
            raise UnknownRecord(name, numbers)
        chosen[numbers[name]] = schemas[numbers[name]]
    return chosen


def decode_records(
    df: DataFrame,
    schemas: Mapping[int, RecordSchema],
    records: Iterable[str] | None = None,
    mode: str = PERMISSIVE,
    observation: Observation | str | None = None,
) -> DataFrame:
    """Decode the records of one topic.

    Parameters
    ----------
    df
        Raw rows (`kafka_records_spark.raw.RAW_SCHEMA`) of one topic: record types are numbered per topic, so rows of
        other topics have to be left out before.
    schemas
        The records by type: `RECORDS` of a generated `schemas.<folder>` module.
    records
        Names of records (`"OffsetCommit"`). Rows of other types are left out before they reach Python, control records
        too. By default every row stays, and there is a column for every record in `schemas`.
    mode
        `PERMISSIVE` keeps rows that cannot be decoded, with their bytes and `error`; `FAILFAST` ends the query at the
        first; `DROPMALFORMED` leaves them out, and needs an `observation` to count them.
    observation
        A `pyspark.sql.Observation`, or a name for one, that gets the counts `rows`, `malformed`, `with_bytes_left` and
        `bytes_left` (records with bytes behind key or value, and those bytes), and `lenient` (records with leniencies).

    Returns
    -------
    DataFrame
        `DECODED_SCHEMA` and one column `struct<key, value>` per record, named as the record in snake case. It is null
        in rows of other types. When only the value could not be decoded, the key is there.

    Raises
    ------
    UnknownRecord, ColumnClash, UnsupportedType
        At once, for arguments that do not fit.
    MissingColumn
        At once (under Spark Connect a message of Spark's when the query runs), for rows that are no raw rows:
        `as_raw_records` makes some of them.
    WorkerPython
        At once, when local workers would run a Python without this package.
    UndecodableRecord
        In a worker, under FAILFAST; its text names topic, partition, offset, field path and byte.

    Notes
    -----
    Read as leniently as Kafka itself reads (`CoordinatorRecordSerde`): bytes behind a message are left alone. A value
    version this build does not know is an error, `UnsupportedVersion`; an unknown record type is not.

    Examples
    --------
    >>> from kafka_records.schemas.consumer_offsets import RECORDS
    >>> decoded = decode_records(raw, RECORDS, records=["OffsetCommit"])
    >>> decoded.select("offset", "offset_commit.key.group", "offset_commit.value.offset")
    DataFrame[offset: bigint, group: string, offset: bigint]
    """
    known = checked_mode(mode)
    chosen = chosen_records(schemas, records)
    schema = decoded_schema(chosen.values())
    if known == DROPMALFORMED and observation is None:
        raise ValueError("DROPMALFORMED leaves rows out: pass an observation that counts them")
    check_workers(df.sparkSession)
    rows = raw_rows(df)
    if records is not None:
        rows = rows.where(has_record_type(chosen) | is_unframed())
    decoded = rows.mapInArrow(BatchDecoder(chosen, known), schema)
    malformed = F.col("error").isNotNull()
    if observation is not None:
        bytes_left = F.col("key_bytes_left") + F.col("value_bytes_left")
        decoded = decoded.observe(
            observation,
            F.count(F.lit(1)).alias("rows"),
            F.count(F.when(malformed, 1)).alias("malformed"),
            F.count(F.when(bytes_left > 0, 1)).alias("with_bytes_left"),
            F.coalesce(F.sum(bytes_left), F.lit(0)).alias("bytes_left"),
            F.count(F.when(F.size("leniencies") > 0, 1)).alias("lenient"),
        )
    return decoded.where(~malformed) if known == DROPMALFORMED else decoded


@dataclass
class BatchDecoder:
    """What a worker runs: Arrow batches of raw rows in, of decoded rows out."""

    schemas: Mapping[int, RecordSchema]
    mode: Mode

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = RowReader(self.schemas)
        records = [(number, record_arrow_type(schema)) for number, schema in self.schemas.items()]
        names = [item.name for item in decoded_schema(self.schemas.values()).fields]
        for batch in batches:
            columns = self._columns(batch, reader, records)
            yield pa.RecordBatch.from_arrays(columns, names=names)

    def _columns(
        self, batch: pa.RecordBatch, reader: RowReader, records: list[tuple[int, pa.DataType]]
    ) -> list[pa.Array]:
        keys, values = batch.column("key").cast(pa.binary()), batch.column("value").cast(pa.binary())
        data = _Columns([number for number, _ in records])
        control = batch.column("control").is_valid().to_pylist()
        for index, (is_control, key, value) in enumerate(
            zip(control, keys.to_pylist(), values.to_pylist(), strict=True)
        ):
            row = Row() if is_control else reader.read(key, value)
            if row.error is not None and self.mode == FAILFAST:
                raise _located(batch, index, row.error)
            data.append(row, None if is_control else value is None, not is_control and not row.is_faithful)
        keeps_bytes = pa.array(data.keeps_bytes, pa.bool_())
        nothing = pa.scalar(None, pa.binary())
        return [
            *(batch.column(name) for name in _COORDINATES),
            pa.array(data.record_type, pa.int16()),
            pa.array(data.value_version, pa.int16()),
            pa.array(data.is_tombstone, pa.bool_()),
            pa.array(data.key_left, pa.int32()),
            pa.array(data.value_left, pa.int32()),
            pa.array(data.leniencies, pa.list_(pa.string())),
            pa.array(data.error, _ERROR),
            pc.if_else(keeps_bytes, keys, nothing),
            pc.if_else(keeps_bytes, values, nothing),
            *(pa.array(data.records[number], item) for number, item in records),
        ]


@dataclass
class _Columns:
    """The columns of one batch while they grow, as Python lists."""

    numbers: list[int]
    record_type: list[int | None] = field(default_factory=list)
    value_version: list[int | None] = field(default_factory=list)
    is_tombstone: list[bool | None] = field(default_factory=list)
    key_left: list[int] = field(default_factory=list)
    value_left: list[int] = field(default_factory=list)
    leniencies: list[list[str]] = field(default_factory=list)
    error: list[dict[str, Any] | None] = field(default_factory=list)
    keeps_bytes: list[bool] = field(default_factory=list)
    records: dict[int, list[dict[str, Any] | None]] = field(init=False)

    def __post_init__(self) -> None:
        self.records = {number: [] for number in self.numbers}

    def append(self, row: Row, is_tombstone: bool | None, keeps_bytes: bool) -> None:
        self.record_type.append(row.record_type)
        self.value_version.append(row.value_version)
        self.is_tombstone.append(is_tombstone)
        self.key_left.append(row.key_left)
        self.value_left.append(row.value_left)
        self.leniencies.append(row.leniencies)
        self.error.append(error_fields(row))
        self.keeps_bytes.append(keeps_bytes)
        for column in self.records.values():
            column.append(None)
        if row.key is not None and row.record_type is not None:
            self.records[row.record_type][-1] = {"key": row.key, "value": row.value}


def _located(batch: pa.RecordBatch, index: int, error: Exception) -> UndecodableRecord:
    topic, partition, offset = (batch.column(name)[index].as_py() for name in ("topic", "partition", "offset"))
    return UndecodableRecord(topic, partition, offset, str(error))
