"""Framing (`kafka_records_runtime.records.framing`) as Spark expressions. The JVM evaluates them, so no row is sent to
Python."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records_runtime.records.framing import PREFIX, frame_start, message_start

if TYPE_CHECKING:
    from pyspark.sql import Column

PREFIX_BYTES: Final = PREFIX.size
_UNUSED_BITS: Final = 32 - 8 * PREFIX_BYTES
"""Spark has no function to convert bytes to a signed number, so the sign bit is shifted to the top of an INT and
back."""


def prefix(data: Column) -> Column:
    """The int16 at the start of a key or value; null if the key or value is null or too short."""
    unsigned = F.conv(F.hex(F.substring(data, 1, PREFIX_BYTES)), 16, 10).cast("int")
    number = F.shiftright(F.shiftleft(unsigned, _UNUSED_BITS), _UNUSED_BITS).cast("smallint")
    return F.when(F.octet_length(data) >= PREFIX_BYTES, number)


def sql_of_prefix(data: str) -> str:
    """`prefix` in SQL, for the column `data`. (A SQL function is created from text, which a Column does not
    provide.)"""
    unsigned = f"CAST(conv(hex(substring({data}, 1, {PREFIX_BYTES})), 16, 10) AS INT)"
    number = f"CAST(shiftright(shiftleft({unsigned}, {_UNUSED_BITS}), {_UNUSED_BITS}) AS SMALLINT)"
    return f"CASE WHEN octet_length({data}) >= {PREFIX_BYTES} THEN {number} END"


def prefix_bytes(data: Column) -> Column:
    """The prefix of a key or value as bytes. A key or value that is too short remains unchanged."""
    return F.substring(data, 1, PREFIX_BYTES)


def begins_with(key: Column, texts: Iterable[bytes]) -> Column:
    """A condition: the message of the key begins with one of these strings (`message_start`), for any record type."""
    starts = [start for start in map(message_start, texts) if start is not None]
    found = [F.substring(key, 1 + PREFIX_BYTES, len(start)) == F.lit(start) for start in starts]
    return F.coalesce(reduce(or_, found), F.lit(False)) if found else F.lit(False)


def has_record_type(types: Iterable[int]) -> Column:
    """A condition on raw rows: the key starts with one of these record types.

    Control records never match, although their keys start with a number that looks like a type. The keys of adjacent
    types form one range of bytes. Comparing bytes does not create an array for each row, as cutting off the prefix
    would. All keys in a range start with the same byte, because a key of only the next byte has no type but sorts
    before longer ones.
    """
    return F.col("control").isNull() & reduce(or_, map(_is_between, _ranges(types)), F.lit(False))


def _ranges(types: Iterable[int]) -> list[tuple[int, int]]:
    """Ranges of prefixes, as unsigned numbers like those by which bytes are compared: the first of each run, and the
    one after its last."""
    ranges: list[tuple[int, int]] = []
    for number in sorted({int.from_bytes(PREFIX.pack(number), "big") for number in types}):
        if ranges and ranges[-1][1] == number and number % 256:
            ranges[-1] = ranges[-1][0], number + 1
        else:
            ranges.append((number, number + 1))
    return ranges


def _is_between(prefixes: tuple[int, int]) -> Column:
    first, after = prefixes
    key = F.col("key")
    is_found = key >= F.lit(first.to_bytes(PREFIX_BYTES, "big"))
    if after < 1 << 8 * PREFIX_BYTES:
        is_found &= key < F.lit(after.to_bytes(PREFIX_BYTES, "big").rstrip(b"\0"))
    return is_found


def may_be_of_other_types_than(others: Iterable[int]) -> Column:
    """A condition on metadata records in raw rows: true for all except control records and most records of the types
    `others`.

    It excludes records of those types only if their api key is in the second byte, where Kafka writes keys below 128.
    Other records of these types must be dropped after reading.
    """
    starts = [start for number in others if len(start := frame_start(number)) == PREFIX_BYTES]
    is_other = F.col("key").isNull() & prefix_bytes(F.col("value")).isin(starts)
    return F.col("control").isNull() & ~F.coalesce(is_other, F.lit(False))


def is_unframed() -> Column:
    """A condition on raw rows: the row is not a control record, and its key is missing or too short for a record
    type."""
    return F.col("control").isNull() & (F.coalesce(F.octet_length(F.col("key")), F.lit(0)) < PREFIX_BYTES)
