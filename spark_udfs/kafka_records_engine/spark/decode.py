"""`decode_records`: raw rows in, typed columns out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)
from pyspark.sql.types import BooleanType, StructField, StructType

from kafka_records_engine import arguments
from kafka_records_engine.columns import RecordColumns, decode_record_columns, record_arrow_type
from kafka_records_engine.columns.arrow_arrays import Constant, bytes_of, flags, numbers, sparse
from kafka_records_engine.columns.framing_in_columns import type_column
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA as RAW_ARROW_SCHEMA
from kafka_records_engine.numpy_types import FLAGS
from kafka_records_engine.spark._secrets import hide_secrets, hides_secrets, without_secret_bytes
from kafka_records_engine.spark.errors import ColumnClash, UndecodableRecord, UnknownRecord, WrongTopic
from kafka_records_engine.spark.framing_in_jvm import (
    has_record_type,
    is_unframed,
    may_be_of_other_types_than,
)
from kafka_records_engine.spark.jvm import Engine, catalog_for, checked_engine, function_name
from kafka_records_engine.spark.mapping import map_batches
from kafka_records_engine.spark.modes import DROPMALFORMED, FAILFAST, PERMISSIVE, Mode, checked_mode
from kafka_records_engine.spark.raw import RAW_COLUMNS, RAW_SCHEMA, raw_rows
from kafka_records_engine.spark.record_errors import fields_of_error
from kafka_records_engine.spark.spark_types import record_spark_type, spark_schema
from kafka_records_engine.spark.workers import check_workers
from kafka_records_runtime.casing import snake_case
from kafka_records_runtime.errors import KafkaRecordsError, UnknownApiKey, UnsupportedVersion
from kafka_records_runtime.framing import METADATA, framing_of
from kafka_records_runtime.schema import RecordSchema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation

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
"""Why a record could not be decoded.

`reason` is the name of an error of `kafka_records_runtime.errors`, or WrongTopic, `message` its text; `path` and
`byte_offset` (counted from after the int16 that the key or value starts with, or from after the frame) are null when
the record is not even framed. `byte_offset` of a broken frame counts from the start of the value.
"""

COORDINATES: Final = tuple(name for name in RAW_COLUMNS if name not in ("key", "value"))
"""The raw columns that a decoded row keeps."""

_IS_OTHER: Final = "is_of_other_topic"
"""The column, in addition to those of raw rows, that marks rows not to be decoded."""

_IN_ONE: Final = "decoded"
"""The struct that a function in the JVM makes of key and value."""

_IN_LOG: Final = ("topic", "partition", "offset")

_DECODED: Final = pa.schema(
    [
        *(RAW_ARROW_SCHEMA.field(name) for name in COORDINATES),
        ("record_type", pa.int16()),
        ("value_version", pa.int16()),
        ("is_tombstone", pa.bool_()),
        ("key_bytes_left", pa.int32()),
        ("value_bytes_left", pa.int32()),
        ("has_unknown_tags", pa.bool_()),
        ("leniencies", pa.list_(pa.string())),
        ("error", _ERROR),
        ("raw_key", pa.binary()),
        ("raw_value", pa.binary()),
    ]
)

DECODED_SCHEMA: Final = spark_schema(_DECODED)
"""What every decoded row starts with; one struct column per record follows.

`record_type` is null for control records and for keys without one, `value_version` for tombstones and unknown record
types. `key_bytes_left` and `value_bytes_left` count the bytes after key and value, which Kafka ignores,
`has_unknown_tags` says that there are tagged fields which this build does not know, and `leniencies` names what was
accepted only because Kafka accepts it (`invalid_utf8`, for instance). They are 0, 0, false and empty for nearly every
record. `raw_key` and `raw_value` are the bytes of a record whose columns may not give them back: one that was not
decoded (its `error` says why; there is no `error` if this build does not know its type), that was read as leniently as
Kafka reads, or whose unknown tagged fields were not kept. Two kinds of bytes leave no trace here, because a strict
reader accepts them as well, although Kafka never writes them: a varint that is longer than necessary, and a tagged
field that is written although it has its default.
"""


_NO_LENIENCIES: Final = Constant(pa.list_(pa.string()), [])
_NO_ERROR: Final = Constant(_ERROR, None)


Abouts = Mapping[str, Mapping[str, str]]
"""What the specs say about the fields of messages, by message and path."""


def decoded_schema(
    records: Iterable[RecordSchema],
    unknown_tags: bool = False,
    coordinates: Sequence[str] = COORDINATES,
    abouts: Abouts | None = None,
) -> StructType:
    """The schema of `decode_records` over `records`. Raises ColumnClash when two columns would share a name."""
    own = [each for each in DECODED_SCHEMA.fields if each.name not in COORDINATES]
    fields = [*(DECODED_SCHEMA[name] for name in coordinates), *own]
    for record in records:
        fields.append(StructField(snake_case(record.name), record_spark_type(record, unknown_tags, abouts)))
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
    for name in arguments.names("records", records):
        if name not in numbers:
            raise UnknownRecord(name, numbers)
        chosen[numbers[name]] = schemas[numbers[name]]
    return chosen


def chosen_coordinates(coordinates: Iterable[str] | None = None) -> tuple[str, ...]:
    """The raw columns that are called `coordinates`, in the order of the names, or all. Raises ValueError for another
    name, and for one that is there twice."""
    if coordinates is None:
        return COORDINATES
    chosen = arguments.names("coordinates", coordinates)
    for number, name in enumerate(chosen):
        if name not in COORDINATES:
            raise ValueError(f"no coordinate is called {name!r}; the coordinates are {', '.join(COORDINATES)}")
        if name in chosen[:number]:
            raise ValueError(f"the coordinate {name} is named twice")
    return tuple(chosen)


def decode_records(
    df: DataFrame,
    schemas: Mapping[int, RecordSchema],
    records: Iterable[str] | None = None,
    mode: str = PERMISSIVE,
    observation: Observation | str | None = None,
    unknown_tags: bool = False,
    coordinates: Iterable[str] | None = None,
    abouts: Abouts | None = None,
    *,
    show_secrets: bool = False,
    topic: str | None = None,
    own_topic: str | None = None,
    engine: Engine | None = None,
    package: str | None = None,
    folder: str = "",
) -> DataFrame:
    """Decode the records of one topic.

    Parameters
    ----------
    df
        Raw rows (`kafka_records_engine.spark.raw.RAW_SCHEMA`) of one topic: record types are numbered per topic, so
        rows of other topics have to be left out before. Rows that `topic` or `own_topic` tells to be of another one
        cannot be decoded: they have the error `WrongTopic` and their bytes, and FAILFAST ends at the first.
    schemas
        The records by type: `RECORDS` of a generated `schemas.<folder>` module.
    records
        Names of records (`"OffsetCommit"`). Rows of other types are left out before they reach Python, control records
        too. By default every row stays, and there is a column for every record in `schemas`.
    mode
        `PERMISSIVE` keeps rows that cannot be decoded, with their bytes and `error`; `FAILFAST` ends the query at the
        first; `DROPMALFORMED` leaves them out, and needs an `observation` to count them.
    observation
        A `pyspark.sql.Observation`, or a name under which a streaming query reports (a batch query tells the counts of
        a name to nobody), that gets the counts of COUNTS. Rows that Spark reads twice count twice before
        PySpark 4.3, and to sort them it reads them twice. In a Declarative Pipeline it has to be a name, because an
        Observation asks whether the query is a stream.
    unknown_tags
        Keep tagged fields that the schemas do not define: every struct of a message that can have some ends in
        `unknown_tagged_fields`, an array of `struct<tag int, data binary>`. Otherwise `has_unknown_tags` says that
        there were some, and `raw_key` and `raw_value` hold them.
    coordinates
        Names of the raw columns to keep (COORDINATES), in the order wanted; all by default. Every one of them crosses
        from the JVM to Python and back, which costs more than decoding does: name those you need.
    abouts
        Comments for the fields of the columns, by message and path; generated functions give what the specs say. (What
        `from_message` and its like return has none: Spark takes a struct with comments for another type there.)
    show_secrets
        Show keys of SCRAM credentials, ids of delegation tokens and values of configs that are, or may be, secrets.
        Otherwise `(redacted)` is in their place, and in `raw_value` in place of bytes that may hold one: those of such
        records, and of records whose type has no column or cannot be read.
    topic
        The topic of the records. A row that names another one is not decoded; one that names none is.
    own_topic
        Kafka's own topic (`__consumer_offsets`) that has these records; for callers who give no `topic`. A row that
        names another topic of Kafka's own (`__transaction_state`) is not decoded. Other names may be those of copies.
    engine
        `jvm` decodes by functions in the JVM, which rows never leave, and adds them to the session where it has none;
        `python` decodes by Python workers. By default it is the JVM where the session has the functions
        (`kafka_records_tables.spark.register`), and Python otherwise. Rows and errors are the same.
    package, folder
        The generated package whose schemas these are, and the folder of specs; generated functions give them. Without
        them rows are decoded in Python.

    Returns
    -------
    DataFrame
        `DECODED_SCHEMA` (without the coordinates that were not asked for) and one column `struct<key, value>` per
        record, named as the record in snake case. It is null in rows of other types. When only the value could not be
        decoded, the key is there.

    Raises
    ------
    UnknownRecord, ColumnClash, UnsupportedType, ValueError, TypeError
        At once, for arguments that do not fit.
    MissingColumn
        At once (under Spark Connect a message of Spark's when the query runs), for rows that are not raw rows:
        `as_raw_rows` makes some of them.
    WorkerPython
        At once, when local workers would run a Python without this package.
    NoJvmFunctions
        At once, where `engine="jvm"` cannot be had.
    UndecodableRecord
        In a worker, under FAILFAST; its text names topic, partition, offset, field path and byte. In the JVM it is an
        `IllegalArgumentException` of Java with the same text.

    Notes
    -----
    Read as leniently as Kafka itself reads (`CoordinatorRecordSerde`): bytes after a message are left alone. A value
    version this build does not know is an error, `UnsupportedVersion`; an unknown record type is not. In metadata
    framing it is one, `UnknownApiKey`, and so are bytes after a message, because Kafka refuses both. The columns of
    such records are `struct<value>`: they have no keys.

    Examples
    --------
    >>> from kafka_records.schemas.consumer_offsets import RECORDS
    >>> decoded = decode_records(raw, RECORDS, records=["OffsetCommit"])
    >>> decoded.select("offset", "offset_commit.key.group", "offset_commit.value.offset")
    DataFrame[offset: bigint, group: string, offset: bigint]
    """
    arguments.frame("df", df)
    arguments.flag("unknown_tags", unknown_tags)
    arguments.flag("show_secrets", show_secrets)
    known = checked_mode(mode)
    chosen = chosen_records(schemas, records)
    kept = chosen_coordinates(coordinates)
    schema = decoded_schema(chosen.values(), unknown_tags, kept, abouts)
    if topic is not None:
        arguments.text("topic", topic)
    expected = topic if topic is not None else own_topic
    if known == DROPMALFORMED and observation is None:
        raise ValueError("DROPMALFORMED drops rows: pass an observation that counts them")
    is_other = _is_other(topic, own_topic)
    catalog = catalog_for(df.sparkSession, package, checked_engine(engine))
    if catalog is None:
        check_workers(df.sparkSession)
    rows, is_filtered = raw_rows(df), records is not None
    if is_filtered:
        rows = rows.where(_may_be_chosen(schemas, chosen))
    if catalog is None:
        decoded = _in_python(
            rows,
            BatchDecoder(
                chosen,
                known,
                unknown_tags,
                kept,
                expected,
                drops_others=is_filtered,
                hides=hides_secrets(schemas, show_secrets),
            ),
            schema,
            is_other,
            is_filtered=is_filtered,
        )
    else:
        options = {
            "mode": FAILFAST if known == FAILFAST else None,
            "unknown_tags": unknown_tags or None,
            "show_secrets": show_secrets or None,
            "comments": (abouts is not None) or None,
            "records": None if records is None else ",".join(each.name for each in chosen.values()),
            "topic": expected,
        }
        function = function_name(catalog, f"decode_{folder.replace('/', '_')}", options)
        decoded = _in_jvm(rows, function, known, kept, is_other)
        if is_filtered and framing_of(chosen) == METADATA:  # records of other types have no row
            decoded = decoded.where(F.col(_IN_ONE).isNotNull())
        decoded = decoded.select(*kept, f"{_IN_ONE}.*")
    if observation is not None:
        decoded = decoded.observe(observation, *_counts(chosen))
    return decoded.where(F.col("error").isNull()) if known == DROPMALFORMED else decoded


def _is_other(topic: str | None, own_topic: str | None) -> Column:
    """Whether a raw row is of another topic."""
    if topic is None and own_topic is None:
        return F.lit(False)
    is_other = F.col("topic") != (own_topic if topic is None else topic)
    if topic is None:
        is_other &= F.col("topic").startswith("__")
    return F.coalesce(is_other, F.lit(False))


def _may_be_chosen(schemas: Mapping[int, RecordSchema], chosen: Mapping[int, RecordSchema]) -> Column:
    """Whether a raw row has one of the types that were chosen, or none. Some metadata records of other types pass, and
    have to be left out when they have been read."""
    if framing_of(chosen) == METADATA:
        return may_be_of_other_types_than(schemas.keys() - chosen.keys())
    return has_record_type(chosen) | is_unframed()


def _in_jvm(rows: DataFrame, function: str, mode: Mode, kept: Sequence[str], is_other: Column) -> DataFrame:
    arguments: list[Column] = [F.col("key"), F.col("value"), F.col("control").isNotNull(), is_other]
    if mode == FAILFAST:
        nowhere = (F.lit(None).cast("string"), F.lit(-(2**31)), F.lit(-(2**63)))
        arguments += [F.coalesce(F.col(name), missing) for name, missing in zip(_IN_LOG, nowhere, strict=True)]
    return rows.select(*kept, F.call_function(function, *arguments).alias(_IN_ONE))


def _in_python(
    rows: DataFrame,
    decoder: BatchDecoder,
    schema: StructType,
    is_other: Column,
    *,
    is_filtered: bool,
) -> DataFrame:
    needed = {
        *decoder.coordinates,
        "key",
        "value",
        *(_IN_LOG if decoder.mode == FAILFAST else ()),
        *(() if is_filtered else ("control",)),
    }
    columns = StructType([field for field in RAW_SCHEMA if field.name in needed])
    if decoder.topic is not None:
        # Only a flag is sent to Python, not the topic name.
        rows = rows.withColumn(_IS_OTHER, is_other)
        columns = StructType([*columns.fields, StructField(_IS_OTHER, BooleanType())])
    return map_batches(rows, columns, decoder, schema)


COUNTS: Final = {
    "rows": "all rows, those that DROPMALFORMED leaves out among them",
    "decoded": "records that were decoded",
    "tombstone": "decoded records without a value",
    "control": "control records, which hold nothing to decode",
    "unknown_type": "records of a type without a column here",
    "unknown_version": "records whose value has an unknown version",
    "corrupt": "records that cannot be read for any other reason, also those that are of another topic",
    "with_bytes_left": "decoded records with bytes behind key or value",
    "bytes_left": "those bytes",
    "lenient": "decoded records with leniencies",
    "unknown_tags": "decoded records with tagged fields that this build does not know",
}
"""What an observation of `decode_records` counts. `rows` is the sum of `decoded`, `control`, `unknown_type`,
`unknown_version` and `corrupt`. Where `records` are named, rows of other types and control records are left out before
anything is counted."""


def _counts(schemas: Iterable[int]) -> list[Column]:
    is_record = F.col("is_tombstone").isNotNull()
    error, reason = F.col("error"), F.col("error.reason")
    is_typeless = error.isNull() | (reason == UnknownApiKey.__name__)
    known = F.coalesce(F.col("record_type").isin(*schemas), F.lit(False))
    decoded = is_record & known & error.isNull()
    bytes_left = F.col("key_bytes_left") + F.col("value_bytes_left")
    conditions = {
        "rows": F.lit(True),
        "decoded": decoded,
        "tombstone": decoded & F.col("is_tombstone"),
        "control": ~is_record,
        "unknown_type": is_record & ~known & is_typeless,
        "unknown_version": reason == UnsupportedVersion.__name__,
        "corrupt": ~reason.isin(UnsupportedVersion.__name__, UnknownApiKey.__name__),
        "with_bytes_left": decoded & (bytes_left > 0),
        "lenient": decoded & (F.size("leniencies") > 0),
        "unknown_tags": decoded & F.col("has_unknown_tags"),
    }
    counts = {name: F.count(F.when(condition, 1)) for name, condition in conditions.items()}
    counts["bytes_left"] = F.coalesce(F.sum(F.when(decoded, bytes_left)), F.lit(0))
    return [counts[name].alias(name) for name in COUNTS]


class BatchDecoder:
    """What a worker runs: Arrow batches of raw rows in, of decoded rows out."""

    def __init__(
        self,
        schemas: Mapping[int, RecordSchema],
        mode: Mode,
        unknown_tags: bool = False,
        coordinates: Sequence[str] = COORDINATES,
        topic: str | None = None,
        *,
        drops_others: bool = False,
        hides: bool = False,
    ) -> None:
        """`drops_others` leaves out metadata records of other types; those of a coordinator's topic are left out before
        rows come here. `hides`: some record of the topic may hold secrets, and they are not to be shown."""
        self.hides = hides
        self.drops_others = drops_others and framing_of(schemas) == METADATA
        self.topic = topic
        self.schemas = schemas
        self.mode = mode
        self.unknown_tags = unknown_tags
        self.coordinates = coordinates

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = decoded_schema(self.schemas.values(), self.unknown_tags, self.coordinates).names
        absent = {
            number: Constant(record_arrow_type(schema, self.unknown_tags), None)
            for number, schema in self.schemas.items()
        }
        for batch in batches:
            rows = self._without_others(batch) if self.drops_others else batch
            yield pa.RecordBatch.from_arrays(self._columns(rows, absent), names=names)

    def _without_others(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        types, has_type = type_column(METADATA, batch.column("key"), batch.column("value"))
        kept = ~has_type | np.isin(types, [*self.schemas])
        return batch if kept.all() else batch.filter(pa.array(kept))

    def _columns(self, batch: pa.RecordBatch, absent: Mapping[int, Constant]) -> list[pa.Array]:
        keys, values = batch.column("key"), batch.column("value")
        is_record = np.ones(len(keys), np.bool_)
        if "control" in batch.schema.names:  # without the column, control records are already left out
            is_record = flags(batch.column("control").is_null())
        strange: list[int] = []
        if _IS_OTHER in batch.schema.names:
            strange = np.flatnonzero(flags(batch.column(_IS_OTHER))).tolist()
        decodes = is_record.copy()
        decodes[strange] = False
        found = decode_record_columns(self.schemas, keys, values, decodes, unknown_tags=self.unknown_tags)
        wrong: dict[int, KafkaRecordsError] = {**found.errors, **dict.fromkeys(strange, WrongTopic(self.topic or ""))}
        if wrong and self.mode == FAILFAST:
            index = min(wrong)
            raise _located(batch, index, wrong[index])
        count = len(keys)
        keeps_bytes = self._needs_bytes(found, decodes)
        keeps_bytes[strange] = True
        is_record[strange] = True
        shown = bytes_of(values, keeps_bytes)
        if self.hides:
            hide_secrets(self.schemas, found)
            shown = without_secret_bytes(self.schemas, found, shown)
        errors = {row: fields_of_error(error, _type_of(found, row)) for row, error in wrong.items()}
        return [
            *(batch.column(name) for name in self.coordinates),
            numbers(pa.int16(), found.record_type, found.has_type),
            numbers(pa.int16(), found.value_version, found.has_version),
            pa.array(flags(values.is_null()), mask=~is_record),
            numbers(pa.int32(), found.key_bytes_left),
            numbers(pa.int32(), found.value_bytes_left),
            pa.array(found.has_unknown_tags),
            sparse(_NO_LENIENCIES, found.leniencies, count),
            sparse(_NO_ERROR, errors, count),
            bytes_of(keys, keeps_bytes),
            shown,
            *(found.records.get(number) or constant.times(count) for number, constant in absent.items()),
        ]

    def _needs_bytes(self, found: RecordColumns, is_record: FLAGS) -> FLAGS:
        """The rows whose columns may not give their bytes back."""
        needed: FLAGS = is_record & (~found.is_known | (found.key_bytes_left != 0) | (found.value_bytes_left != 0))
        if not self.unknown_tags:
            needed |= found.has_unknown_tags
        needed[[*found.errors, *found.leniencies]] = True
        return needed


def _type_of(found: RecordColumns, row: int) -> int | None:
    return int(found.record_type[row]) if found.has_type[row] else None


def _located(batch: pa.RecordBatch, index: int, error: Exception) -> UndecodableRecord:
    topic, partition, offset = (batch.column(name)[index].as_py() for name in _IN_LOG)
    return UndecodableRecord(topic, partition, offset, str(error))
