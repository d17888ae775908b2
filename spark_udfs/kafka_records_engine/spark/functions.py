"""Column functions in the style of `from_avro` and `to_avro`: the column first, the options last.

If the session has the functions in the JVM (`kafka_records_engine.spark.jvm`), the functions here call them. Otherwise,
they need `pyspark.sql.functions.arrow_udf`, available since PySpark 4.1. `decode_records` does not need it. It decodes
whole topics, where a value does not show its record type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)
from pyspark.sql.types import BinaryType, DataType

from kafka_records_engine.spark._from_bytes import Bare, Capped, Decoder, Framed, Keys, MessagePrefix, ReadAs, Versioned
from kafka_records_engine.spark._to_bytes import Encoder
from kafka_records_engine.spark.errors import UnsupportedSpark
from kafka_records_engine.spark.framing_in_jvm import prefix
from kafka_records_engine.spark.jvm import Engine, catalog_for, checked_engine, function_name
from kafka_records_engine.spark.modes import FAILFAST, PERMISSIVE, checked_mode
from kafka_records_engine.spark.spark_types import spark_type
from kafka_records_engine.spark.workers import check_workers
from kafka_records_runtime.records.framing import COORDINATOR, KEY_VERSION, METADATA, Framing
from kafka_records_runtime.schema import MessageSchema, RecordSchema
from kafka_records_runtime.schema.layout import check_version, versions_of

if TYPE_CHECKING:
    from pyspark.sql import Column

    ColumnOrName = Column | str

_ALLOWED: Final = (PERMISSIVE, FAILFAST)


# -- from bytes -----------------------------------------------------------------------------------


def from_message(
    col: ColumnOrName,
    message: MessageSchema,
    version: int | ColumnOrName | None = None,
    mode: str = PERMISSIVE,
    *,
    parse_as: int | None = None,
    newer_as_highest: bool = False,
    unknown_tags: bool = False,
    show_secrets: bool = False,
    name: str = "from_message",
    package: str | None = None,
    engine: Engine | None = None,
) -> Column:
    """Decode a binary column that contains `message`.

    Parameters
    ----------
    col
        Binary column, or its name. The result for null is null.
    message
        Schema of the message, from a generated `schemas.<folder>` module.
    version
        The version: one for all rows, or a column with one for each row. The bytes must then contain only the message.
        The result for a null version is null. Without `version`, each message follows an int16 version, as in the
        subscriptions and assignments of the consumer protocol.
    mode
        `PERMISSIVE` returns null for undecodable bytes; `FAILFAST` ends the query with an error from
        `kafka_records_runtime.errors` that names the field path and the byte.
    parse_as
        Read every message in this version, ignoring the int16 version before it. Kafka's group coordinator reads the
        subscriptions of classic groups like `parse_as=0`, because it needs only the topics (KIP-496,
        `ClassicGroup.computeSubscribedTopics`).
    newer_as_highest
        If the int16 version is above the highest version of `message`, read the bytes as that version. Kafka's readers
        of the consumer protocol and of control records do the same, because newer versions add fields only at the end
        (`ConsumerProtocol.deserializeSubscription`). Otherwise, such bytes cannot be decoded. It is the default in
        generated functions for those messages.
    unknown_tags
        Add `unknown_tagged_fields`, an array of `struct<tag int, data binary>`, to every struct of a message that has
        flexible versions.
    show_secrets
        Show keys of SCRAM credentials, ids of delegation tokens and values of configs that are, or may be, secrets.
        Otherwise they are replaced by `(redacted)`, which `to_message` rejects.
    name
        The name of this function in errors and in Spark.
    package
        The generated package of the message. Its catalog contains the JVM function `name`. Generated functions pass it;
        without it, bytes are decoded in Python.
    engine
        `jvm`, `python`, or None for the JVM if the session has the functions, as in `decode_records`.

    Returns
    -------
    Column
        `struct` with the fields of `message` (`kafka_records_engine.spark.spark_types.spark_type`). Fields that the
        version lacks have their defaults.

    Raises
    ------
    ValueError
        For another mode, because a column function cannot drop rows, or if both `version` and `parse_as` are given.
    UnsupportedVersion
        Immediately, for a `version` or `parse_as` that `message` does not have.
    UnsupportedType
        For a message that no column can hold.
    UnsupportedSpark
        Before PySpark 4.1, if the bytes must be decoded in Python.

    Notes
    -----
    Bytes are read as leniently as by Kafka; bytes after a message are ignored. Spark evaluates the function for all
    rows that reach it, even if `when` or `coalesce` does not use the result, so under FAILFAST, drop rows with `where`.
    Spark cannot run Python inside `transform` and similar functions, so to decode data in the members of a group,
    `explode` the members.

    Examples
    --------
    >>> from kafka_records.schemas.consumer_protocol import CONSUMER_PROTOCOL_SUBSCRIPTION
    >>> df = spark.createDataFrame([(bytes.fromhex("0000 00000001 0001 61 ffffffff"),)], "subscription binary")
    >>> decoded = from_message("subscription", CONSUMER_PROTOCOL_SUBSCRIPTION)
    >>> df.select(decoded.getField("topics").alias("topics")).collect()
    [Row(topics=['a'])]
    """
    if version is not None and parse_as is not None:
        raise ValueError(
            f"{name}: pass version for bytes that do not start with a version, and parse_as for bytes that do"
        )
    for number in (version, parse_as):
        if isinstance(number, int):
            check_version(message, number)
    if version is not None:
        if isinstance(version, int):
            asked = Jvm(package, engine, {"version": version})
            return _decoded(name, message, Bare(version), mode, unknown_tags, show_secrets, asked, col)
        asked = Jvm(package, engine, {})
        return _decoded(
            name, message, Bare(None), mode, unknown_tags, show_secrets, asked, col, _version_column(version)
        )
    prefix: MessagePrefix = Versioned()
    if parse_as is not None:
        prefix = ReadAs(parse_as)
    elif newer_as_highest:
        prefix = Capped()
    asked = Jvm(package, engine, {"parse_as": parse_as, "newer_as_highest": newer_as_highest})
    return _decoded(name, message, prefix, mode, unknown_tags, show_secrets, asked, col)


def from_key(
    col: ColumnOrName,
    record: RecordSchema,
    mode: str = PERMISSIVE,
    *,
    unknown_tags: bool = False,
    show_secrets: bool = False,
    name: str = "from_key",
    package: str | None = None,
    engine: Engine | None = None,
) -> Column:
    """Decode a binary column of record keys: an int16 record type, then the key.

    Keys of other record types become null in every mode, so the column may contain a whole topic. Otherwise, it works
    like `from_message`.

    Examples
    --------
    >>> from kafka_records.schemas.consumer_offsets import RECORDS
    >>> df = spark.createDataFrame([(bytes.fromhex("0001 0001 67 0001 74 00000003"),)], "key binary")
    >>> df.select(from_key("key", RECORDS[1]).alias("key")).collect()
    [Row(key=Row(group='g', topic='t', partition=3))]
    """
    return _decoded(
        name, record.key, Keys(record.type), mode, unknown_tags, show_secrets, Jvm(package, engine, {}), col
    )


def from_value(
    col: ColumnOrName,
    record: RecordSchema,
    mode: str = PERMISSIVE,
    *,
    unknown_tags: bool = False,
    show_secrets: bool = False,
    name: str = "from_value",
    package: str | None = None,
    engine: Engine | None = None,
) -> Column:
    """Decode a binary column of record values of one type: an int16 version, then the value.

    A value does not contain its record type, so first drop other records by their keys (`record_type`). Null (a
    tombstone) becomes null. Otherwise, it works like `from_message`; a version that the record does not have counts as
    undecodable.

    The value of a metadata record does contain its type, in the frame before the message. Values of other types become
    null in every mode, so the column may contain a whole topic. A value with bytes after its message cannot be decoded.

    Examples
    --------
    >>> from kafka_records.schemas.consumer_offsets import RECORDS
    >>> row = (bytes.fromhex("0001"), bytes.fromhex("0000 000000000000002a 0000 0000000000000005"))
    >>> df = spark.createDataFrame([row], "key binary, value binary")
    >>> commits = df.where(record_type("key") == 1)
    >>> commits.select(from_value("value", RECORDS[1]).getField("offset").alias("offset")).collect()
    [Row(offset=42)]
    """
    prefix: MessagePrefix = Framed(record.type) if record.framing == METADATA else Versioned()
    return _decoded(name, record.value, prefix, mode, unknown_tags, show_secrets, Jvm(package, engine, {}), col)


def record_type(col: ColumnOrName) -> Column:
    """The int16 at the start of a record key; null if the key is null or shorter. It is computed in the JVM."""
    return prefix(_column(col))


def value_version(col: ColumnOrName) -> Column:
    """The int16 at the start of a record value; null if the value is null or shorter. It is computed in the JVM.

    Examples
    --------
    >>> df = spark.createDataFrame([(bytes.fromhex("0003"),), (None,)], "value binary")
    >>> df.select(value_version("value").alias("version")).collect()
    [Row(version=3), Row(version=None)]
    """
    return prefix(_column(col))


# -- to bytes -------------------------------------------------------------------------------------


def to_message(
    col: ColumnOrName,
    message: MessageSchema,
    version: int | ColumnOrName | None = None,
    mode: str = FAILFAST,
    *,
    version_prefix: bool = True,
    name: str = "to_message",
    package: str | None = None,
    engine: Engine | None = None,
) -> Column:
    """Encode a struct column as `message`.

    Parameters
    ----------
    col
        Struct column, or its name, with the fields of `from_message`. The result for null is null. Tagged fields and
        fields that the written version does not have may be missing; they get their defaults. Numbers may be of any
        integer type. Unknown tagged fields are written if the structs have `unknown_tagged_fields`.
    message
        Schema of the message, from a generated `schemas.<folder>` module.
    version
        The version to write: one for all rows, or a column with one for each. The default is the highest. A field that
        the version lacks must have its default, unless the spec declares it ignorable (then it is dropped, as in
        Kafka).
    mode
        `FAILFAST` ends the query with an error that names the field that cannot be written. `PERMISSIVE` returns null
        for such a row. Caution: a null value is a tombstone, which deletes its key if it is written to a topic.
    version_prefix
        Write the version as an int16 before the message, where `from_message` without `version` expects it.
    name
        The name of this function in errors and in Spark.

    Returns
    -------
    Column
        `binary`. `to_message(from_message(col, unknown_tags=True), value_version(col))` returns the same bytes as `col`
        unless these contain something that only a lenient reader accepts, a varint that is longer than necessary, or a
        tagged field with its default. Kafka writes none of these.

    Raises
    ------
    ValueError
        For another mode.
    UnsupportedVersion
        Immediately, for a `version` that `message` does not have; for one in a column, when the query runs, as for any
        other value that cannot be written.
    UnsupportedSpark
        Before PySpark 4.1, if the values must be encoded in Python.
    MissingField, UnknownField, WrongType
        When the query runs, in every mode: the structs do not fit this message.

    Examples
    --------
    >>> from pyspark.sql import functions as F
    >>> from kafka_records.schemas.consumer_protocol import CONSUMER_PROTOCOL_ASSIGNMENT
    >>> df = spark.sql("SELECT named_struct('assigned_partitions', array(), 'user_data', null) AS assignment")
    >>> df.select(F.hex(to_message("assignment", CONSUMER_PROTOCOL_ASSIGNMENT, 1)).alias("bytes")).collect()
    [Row(bytes='000100000000FFFFFFFF')]
    """
    asked = Jvm(package, engine, {"version_prefix": version_prefix})
    return _encoded(name, message, mode, col, version, None, version_prefix, asked)


def to_key(
    col: ColumnOrName,
    record: RecordSchema,
    mode: str = FAILFAST,
    *,
    name: str = "to_key",
    package: str | None = None,
    engine: Engine | None = None,
) -> Column:
    """Encode a struct column as record keys: an int16 record type, then the key. Otherwise, it works like `to_message`.

    Examples
    --------
    >>> from pyspark.sql import functions as F
    >>> from kafka_records.schemas.consumer_offsets import RECORDS
    >>> df = spark.sql("SELECT named_struct('group', 'g', 'topic', 't', 'partition', 3) AS key")
    >>> df.select(F.hex(to_key("key", RECORDS[1])).alias("key")).collect()
    [Row(key='000100016700017400000003')]
    """
    return _encoded(name, record.key, mode, col, KEY_VERSION, record.type, False, Jvm(package, engine, {}))


def to_value(
    col: ColumnOrName,
    record: RecordSchema,
    version: int | ColumnOrName | None = None,
    mode: str = FAILFAST,
    *,
    name: str = "to_value",
    package: str | None = None,
    engine: Engine | None = None,
) -> Column:
    """Encode a struct column as record values: an int16 version, then the value. Otherwise, it works like `to_message`.

    The value of a metadata record has a frame before the message.

    Examples
    --------
    >>> from pyspark.sql import functions as F
    >>> from kafka_records.schemas.consumer_offsets import RECORDS
    >>> df = spark.sql("SELECT named_struct('offset', 42, 'metadata', '', 'commit_timestamp', 5) AS value")
    >>> df.select(F.hex(to_value("value", RECORDS[1], 0)).alias("value")).collect()
    [Row(value='0000000000000000002A00000000000000000005')]
    """
    number = record.type if record.framing == METADATA else None
    asked = Jvm(package, engine, {})
    return _encoded(name, record.value, mode, col, version, number, True, asked, record.framing)


# -- what they share ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Jvm:
    """A call that may be possible in the JVM: its package, the requested engine, and its options."""

    package: str | None
    engine: Engine | None
    options: Mapping[str, object]

    def call(
        self, name: str, mode: str, usual: str, options: Mapping[str, object], cols: Sequence[ColumnOrName]
    ) -> Any:
        """The call of the JVM function; None if the work must be done in Python."""
        if _MADE.get() is not None:  # the call registers a Python function for SQL
            return None
        spark = SparkSession.getActiveSession()
        catalog = catalog_for(spark, self.package, checked_engine(self.engine))
        if catalog is None:
            return None
        given = {"mode": None if mode == usual else mode, **self.options, **options}
        return F.call_function(function_name(catalog, name, given), *map(_column, cols))

    def remedies(self, *others: str) -> str | None:
        """What the user can do if Python cannot run the function."""
        in_jvm = () if self.package is None or self.engine == "python" else ('pass engine="jvm"',)
        return ", or ".join([*in_jvm, *others]) or None


def _decoded(
    name: str,
    message: MessageSchema,
    prefix: MessagePrefix,
    mode: str,
    unknown_tags: bool,
    show_secrets: bool,
    asked: Jvm,
    *cols: ColumnOrName,
) -> Column:
    known = checked_mode(mode, _ALLOWED)
    options = {"unknown_tags": unknown_tags or None, "show_secrets": show_secrets or None}
    called: Column | None = asked.call(name, known, PERMISSIVE, options, cols)
    if called is not None:
        return called
    decoder = Decoder(message, prefix, known == FAILFAST, unknown_tags, show_secrets)
    instead = asked.remedies("use decode_records")
    return _arrow_column(name, decoder, spark_type(message, unknown_tags), cols, instead)


def _encoded(
    name: str,
    message: MessageSchema,
    mode: str,
    col: ColumnOrName,
    version: int | ColumnOrName | None,
    record_type: int | None,
    version_prefix: bool,
    asked: Jvm,
    framing: Framing = COORDINATOR,
) -> Column:
    known = checked_mode(mode, _ALLOWED)
    number = max(versions_of(message), default=0) if version is None else version
    cols = [col] if isinstance(number, int) else [col, _version_column(number)]
    fixed = number if isinstance(number, int) else None
    if fixed is not None:
        check_version(message, fixed)
    is_key = record_type is not None and framing == COORDINATOR
    options = {} if fixed is None or is_key else {"version": fixed}
    called: Column | None = asked.call(name, known, FAILFAST, options, cols)
    if called is not None:
        return called
    encoder = Encoder(message, fixed, record_type, version_prefix, known == FAILFAST, framing)
    return _arrow_column(name, encoder, BinaryType(), cols, asked.remedies())


def _arrow_column(
    name: str, function: Decoder | Encoder, returned: DataType, cols: Sequence[ColumnOrName], instead: str | None
) -> Column:
    if not hasattr(F, "arrow_udf"):
        raise UnsupportedSpark(name, pyspark.__version__, instead)
    session = SparkSession.getActiveSession()
    if session is not None:
        check_workers(session)

    made = _MADE.get()
    if made is not None:
        made.append((function, returned))
        return F.lit(None)
    column: Column = _arrow_function(name, function, returned)(*map(_column, cols))
    return column


def _arrow_function(name: str, function: Callable[..., pa.Array], returned: DataType) -> Any:
    # Spark takes the kind of function from these type hints, and its name from this attribute.
    def run(*columns: pa.Array) -> pa.Array:
        return function(*columns)

    run.__name__ = name
    functions: Any = F
    return functions.arrow_udf(run, returned)


_MADE: Final[ContextVar[list[tuple[Callable[..., pa.Array], DataType]] | None]] = ContextVar("made", default=None)


class _ByArguments:
    """Combines functions with one, two, … arguments into one function for SQL."""

    def __init__(self, functions: Sequence[Callable[..., pa.Array]]) -> None:
        self._functions = functions

    def __call__(self, *columns: pa.Array) -> pa.Array:
        if not 0 < len(columns) <= len(self._functions):
            raise TypeError(f"the function takes 1 to {len(self._functions)} arguments, not {len(columns)}")
        # In SQL, a version may have any integer type.
        return self._functions[len(columns) - 1](columns[0], *(each.cast(pa.int32()) for each in columns[1:]))


def function_for_sql(name: str, function: Callable[..., Column]) -> Any:
    """The argument of `spark.udf.register` for a generated column function. The SQL function takes the data, followed
    by a version if the column function has one.

    Raises UnsupportedSpark before PySpark 4.1.
    """
    arguments = ["data", "version"] if "version" in signature(function).parameters else ["data"]
    made: list[tuple[Callable[..., pa.Array], DataType]] = []
    token = _MADE.set(made)
    try:
        for count in range(len(arguments)):
            function(*(F.col(each) for each in arguments[: count + 1]))
    finally:
        _MADE.reset(token)
    return _arrow_function(name, _ByArguments([each for each, _ in made]), made[0][1])


def _column(col: ColumnOrName) -> Column:
    return F.col(col) if isinstance(col, str) else col


def _version_column(version: ColumnOrName) -> Column:
    return _column(version).cast("int")
