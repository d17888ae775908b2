"""Column functions, in the manner of `from_avro` and `from_protobuf`: the column first, the options last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records_runtime import walker
from kafka_records_runtime.errors import DecodeError, FramingError
from kafka_records_runtime.records import record_type_of, value_version_of
from kafka_records_runtime.schema import MessageSchema, RecordSchema
from kafka_records_spark.modes import FAILFAST, PERMISSIVE, Mode, checked_mode
from kafka_records_spark.types import plain_values, spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column

    ColumnOrName = Column | str

_ALLOWED = (PERMISSIVE, FAILFAST)
_KEY_VERSION = 0


def from_message(
    col: ColumnOrName, message: MessageSchema, version: int | None = None, mode: str = PERMISSIVE
) -> Column:
    """Decode a binary column that holds `message`.

    Parameters
    ----------
    col
        Binary column, or its name. Null gives null.
    message
        Schema of the message, from a generated `schemas.<folder>` module.
    version
        Version of every value in the column. Without it an int16 version stands before each, as in the subscriptions
        and assignments of the consumer protocol.
    mode
        `PERMISSIVE` gives null for bytes that cannot be decoded, `FAILFAST` ends the query with the error of
        `kafka_records_runtime.errors`, which names the field path and the byte.

    Returns
    -------
    Column
        `struct` with the fields of `message` (`kafka_records_spark.types.spark_type`).

    Raises
    ------
    ValueError
        For another mode: a column function cannot leave rows out.
    UnsupportedType
        For a message that no column can hold.

    Examples
    --------
    >>> from kafka_records.schemas.consumer_protocol import CONSUMER_PROTOCOL_SUBSCRIPTION
    >>> df.select(from_message("subscription", CONSUMER_PROTOCOL_SUBSCRIPTION).getField("topics"))
    """
    return _column(col, _Versioned(message) if version is None else _Body(message, version), mode)


def from_key(col: ColumnOrName, record: RecordSchema, mode: str = PERMISSIVE) -> Column:
    """Decode a binary column of record keys: int16 record type, then the key.

    Keys of other record types give null in every mode, so that the column may hold a whole topic. Everything else is as
    in `from_message`.
    """
    return _column(col, _Key(record.key, record.type), mode)


def from_value(col: ColumnOrName, record: RecordSchema, mode: str = PERMISSIVE) -> Column:
    """Decode a binary column of record values of one type: int16 version, then the value.

    A value does not say its record type: filter by the key first. Null (a tombstone) gives null. Everything else is as
    in `from_message`; a version the record does not have counts as undecodable.
    """
    return _column(col, _Versioned(record.value), mode)


@dataclass(frozen=True)
class _Body:
    message: MessageSchema
    version: int

    def read(self, data: bytes) -> Any:
        return _decode(self.message, data, self.version)


@dataclass(frozen=True)
class _Key:
    message: MessageSchema
    record_type: int

    def read(self, data: bytes) -> Any:
        if record_type_of(data) != self.record_type:
            return None
        return _decode(self.message, data[2:], _KEY_VERSION)


@dataclass(frozen=True)
class _Versioned:
    message: MessageSchema

    def read(self, data: bytes) -> Any:
        return _decode(self.message, data[2:], value_version_of(data))


def _decode(message: MessageSchema, body: bytes, version: int) -> Any:
    return walker.decode(message, body, version, lenient=True, allow_trailing=True)[0]


def _column(col: ColumnOrName, source: _Body | _Key | _Versioned, mode: str) -> Column:
    reader = _Reader(source, checked_mode(mode, _ALLOWED))
    # Dicts go through Spark's own conversion to rows; the Arrow path of row functions would want other values.
    function = F.udf(reader, spark_type(source.message), useArrow=False)
    return function(F.col(col) if isinstance(col, str) else col)


class _Reader:
    """The row function: built once here, its converter once in each worker."""

    def __init__(self, source: _Body | _Key | _Versioned, mode: Mode) -> None:
        self.source = source
        self.mode = mode
        self._plain: Callable[[Any], Any] | None = None

    def __reduce__(self) -> tuple[type[_Reader], tuple[_Body | _Key | _Versioned, Mode]]:
        return type(self), (self.source, self.mode)

    def __call__(self, data: bytes | bytearray | None) -> Any:
        if data is None:
            return None
        if self._plain is None:
            self._plain = plain_values(self.source.message)
        try:
            value = self.source.read(bytes(data))
        except (DecodeError, FramingError):
            if self.mode == FAILFAST:
                raise
            return None
        return None if value is None else self._plain(value)
