"""Rows of a DataFrame as plain values that every output format can print."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Row
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)
from pyspark.sql.types import TimestampType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def plain_rows(result: DataFrame) -> Iterator[tuple[Any, ...]]:
    """The rows in their order, a partition of the result in memory at a time.

    TIMESTAMPs become ISO 8601 in UTC, binary becomes base64, structs dicts, arrays lists.
    """
    is_time = [isinstance(field.dataType, TimestampType) for field in result.schema.fields]
    # Microseconds instead of a datetime: PySpark would make one in the time zone of this machine, which fails at the
    # ends of the range.
    columns = [
        F.unix_micros(F.col(f"`{name}`")).alias(name) if time else F.col(f"`{name}`")
        for name, time in zip(result.columns, is_time, strict=True)
    ]
    for row in result.select(columns).toLocalIterator(prefetchPartitions=True):
        yield tuple(_iso(value) if time else _plain(value) for value, time in zip(row, is_time, strict=True))


def _iso(microseconds: int | None) -> str | None:
    if microseconds is None:
        return None
    moment = _EPOCH + timedelta(microseconds=microseconds)
    unit = "microseconds" if microseconds % 1000 else "milliseconds"
    return moment.isoformat(timespec=unit).replace("+00:00", "Z")


def _plain(value: Any) -> Any:
    match value:
        case Row():
            return {name: _plain(value[name]) for name in value.__fields__}
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case bytes() | bytearray():
            return b64encode(value).decode("ascii")
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case _:
            return value
