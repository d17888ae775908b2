"""`decode_records` converts raw rows to typed columns."""

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
from kafka_records_runtime.errors import KafkaRecordsError, UnknownApiKey, UnsupportedVersion
from kafka_records_runtime.records.framing import METADATA, framing_of
from kafka_records_runtime.schema import RecordSchema
from kafka_records_runtime.text.casing import snake_case

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
"""The type of the column `error`: why a record could not be decoded.

`reason` is the name of an error class in `kafka_records_runtime.errors`, or WrongTopic; `message` is the text of the
error. `path` and `byte_offset` are null if the error is in the record's framing. `byte_offset` is counted from the end
of the int16 at the start of the key or value, or from the end of the frame; for a broken frame, from the start of the
value.
"""

COORDINATES: Final = tuple(name for name in RAW_COLUMNS if name not in ("key", "value"))
"""The raw columns that a decoded row keeps."""

_IS_OTHER: Final = "is_of_other_topic"
"""An additional column of raw rows that marks rows that must not be decoded."""

_IN_ONE: Final = "decoded"
"""The struct with key and value returned by a JVM function."""

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
"""The first columns of every decoded row; one struct column per record follows.

`record_type` is null for control records and for keys without one, `value_version` for tombstones and unknown record
types. `key_bytes_left` and `value_bytes_left` count the bytes after key and value, which Kafka ignores.
`has_unknown_tags` says whether there are tagged fields that this build does not know, and `leniencies` names what was
accepted only because Kafka accepts it (`invalid_utf8`, for instance). They are 0, 0, false and empty for nearly every
record.

`raw_key` and `raw_value` are the bytes of a record that may differ from what its columns would encode to: a record that
was not decoded (its `error` says why; there is none if this build does not know its type), that was accepted only
because Kafka is lenient, or whose unknown tagged fields were not kept. Two kinds of bytes are not recorded here,
because strict readers also accept them, although Kafka never writes them: a varint that is longer than necessary, and a
tagged field that is written with its default value.
"""


_NO_LENIENCIES: Final = Constant(pa.list_(pa.string()), [])
_NO_ERROR: Final = Constant(_ERROR, None)


Abouts = Mapping[str, Mapping[str, str]]
"""Descriptions of the fields of messages from the specs, by message and path."""


def decoded_schema(
    records: Iterable[RecordSchema],
    unknown_tags: bool = False,
    coordinates: Sequence[str] = COORDINATES,
    abouts: Abouts | None = None,
) -> StructType:
    """The schema of `decode_records` for `records`. Raises ColumnClash if two columns would have the same name."""
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
    """The schemas of the named records, or of all. Raises UnknownRecord for an unknown name."""
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
    """The raw columns named in `coordinates`, in that order, or all of them. Raises ValueError for an unknown or
    repeated name."""
    if coordinates is None:
        return COORDINATES
    chosen = arguments.names("coordinates", coordinates)
    for number, name in enumerate(chosen):
        if name not in COORDINATES:
            raise ValueError(f"there is no coordinate {name!r}; the coordinates are {', '.join(COORDINATES)}")
        if name in chosen[:number]:
            raise ValueError(f"the coordinate {name} is given twice")
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
        Raw rows (`kafka_records_engine.spark.raw.RAW_SCHEMA`) of one topic. Record types are numbered per topic, so
        leave out rows of other topics first. If `topic` or `own_topic` shows that a row belongs to another topic, it is
        not decoded. It then has the error `WrongTopic` and its bytes, and FAILFAST ends the query there.
    schemas
        The records by type: `RECORDS` of a generated `schemas.<folder>` module.
    records
        Names of records (`"OffsetCommit"`). Rows of other types and control records are left out before they reach
        Python. By default, all rows are kept, with a column for every record in `schemas`.
    mode
        `PERMISSIVE` keeps undecodable rows with their bytes and `error`; `FAILFAST` ends the query at the first such
        row; `DROPMALFORMED` drops such rows and needs an `observation` that counts them.
    observation
        Receives the counts described by COUNTS: a `pyspark.sql.Observation`, or the name under which a streaming query
        reports them (the counts of a name are lost in a batch query). Before PySpark 4.3, rows that Spark reads twice
        count twice, and a query that sorts reads them twice. In a Declarative Pipeline, it must be a name, because an
        Observation needs to know whether the query is a stream.
    unknown_tags
        Keep tagged fields that the schemas do not define: every struct of a message that can have some ends in
        `unknown_tagged_fields`, an array of `struct<tag int, data binary>`. Otherwise `has_unknown_tags` says that
        there were some, and `raw_key` and `raw_value` contain them.
    coordinates
        Names of the raw columns to keep (COORDINATES), in the order of the result. The default is all of them. Each one
        is sent from the JVM to Python and back, which costs more than decoding, so name only those you need.
    abouts
        Comments for the fields of the columns, by message and path; generated functions pass the texts of the specs.
        (The results of `from_message` and similar functions have no comments, because Spark treats a struct with
        comments as another type there.)
    show_secrets
        Show keys of SCRAM credentials, ids of delegation tokens and values of configs that are, or may be, secrets.
        Otherwise, they are replaced by `(redacted)`, and so are bytes in `raw_value` that may contain secrets: those of
        such records, and of records whose type has no column or cannot be read.
    topic
        The topic of the records. Rows with another topic are not decoded; rows without a topic are.
    own_topic
        Kafka's own topic with these records (`__consumer_offsets`), for callers who pass no `topic`. A row of another
        internal topic (`__transaction_state`) is not decoded. Any other name may belong to a copy.
    engine
        `jvm` decodes with functions in the JVM, without sending rows to Python, and adds the functions to the session
        if they are missing. `python` decodes in Python workers. By default, the JVM is used if the session has the
        functions (`kafka_records_tables.spark.register`), and Python otherwise. Rows and errors are the same in both.
    package, folder
        The generated package of these schemas, and the folder of specs. Generated functions pass them; without them,
        rows are decoded in Python.

    Returns
    -------
    DataFrame
        `DECODED_SCHEMA` (without the coordinates that were not requested) and one column `struct<key, value>` per
        record, named as the record in snake case. The column is null in rows of other types. If only the value could
        not be decoded, the key is not null.

    Raises
    ------
    UnknownRecord, ColumnClash, UnsupportedType, ValueError, TypeError
        Immediately, for invalid arguments.
    MissingColumn
        Immediately (under Spark Connect as an error of Spark when the query runs), if the rows are not raw rows;
        `as_raw_rows` converts them.
    WorkerPython
        Immediately, if local workers would run a Python without this package.
    NoJvmFunctions
        Immediately, if `engine="jvm"` is not possible.
    UndecodableRecord
        In a worker, under FAILFAST; its text names topic, partition, offset, field path and byte. In the JVM it is a
        Java `IllegalArgumentException` with the same text.

    Notes
    -----
    Records are read as leniently as by Kafka itself (`CoordinatorRecordSerde`): bytes after a message are ignored. An
    unknown value version is an error, `UnsupportedVersion`; an unknown record type is not. In metadata framing, an
    unknown type is an error, `UnknownApiKey`, and so are bytes after a message, because Kafka rejects both. The columns
    of metadata records are `struct<value>`, because they have no keys.

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
        if is_filtered and framing_of(chosen) == METADATA:  # for rows of other record types, the column is null
            decoded = decoded.where(F.col(_IN_ONE).isNotNull())
        decoded = decoded.select(*kept, f"{_IN_ONE}.*")
    if observation is not None:
        decoded = decoded.observe(observation, *_counts(chosen))
    return decoded.where(F.col("error").isNull()) if known == DROPMALFORMED else decoded


def _is_other(topic: str | None, own_topic: str | None) -> Column:
    """A condition: the raw row belongs to another topic."""
    if topic is None and own_topic is None:
        return F.lit(False)
    is_other = F.col("topic") != (own_topic if topic is None else topic)
    if topic is None:
        is_other &= F.col("topic").startswith("__")
    return F.coalesce(is_other, F.lit(False))


def _may_be_chosen(schemas: Mapping[int, RecordSchema], chosen: Mapping[int, RecordSchema]) -> Column:
    """A condition: the raw row has one of the chosen types, or no type. Some metadata records of other types also
    match; they must be dropped after they have been read."""
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
    "rows": "all rows, including those that DROPMALFORMED leaves out",
    "decoded": "records that were decoded",
    "tombstone": "decoded records without a value",
    "control": "control records, which have nothing to decode",
    "unknown_type": "records of a type without a column here",
    "unknown_version": "records whose value has an unknown version",
    "corrupt": "records that cannot be read for any other reason, including those of another topic",
    "with_bytes_left": "decoded records with bytes after key or value",
    "bytes_left": "the number of those bytes",
    "lenient": "decoded records that a strict reader would reject",
    "unknown_tags": "decoded records with tagged fields that this build does not know",
}
"""The counts of an observation of `decode_records`. `rows` is the sum of `decoded`, `control`, `unknown_type`,
`unknown_version` and `corrupt`. If `records` is given, rows of other types and control records are left out before
counting."""


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
    """The part of `decode_records` that runs in workers: converts Arrow batches of raw rows to batches of decoded
    rows."""

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
        """`drops_others` drops metadata records of other types. (Those of a coordinator's topic were dropped before.)
        `hides` means that records of the topic may contain secrets that must not be shown."""
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
        if "control" in batch.schema.names:  # if the column is missing, control records have already been left out
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
        """Flags for the rows whose columns may not encode to the same bytes."""
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
