"""Framing (`kafka_records_runtime.framing`) as Spark expressions: the JVM evaluates them, and no row goes to Python."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records_runtime.framing import PREFIX, frame_start, message_start

if TYPE_CHECKING:
    from pyspark.sql import Column

PREFIX_BYTES: Final = PREFIX.size
_UNUSED_BITS: Final = 32 - 8 * PREFIX_BYTES
"""Spark has no function from bytes to a number with a sign: the sign is shifted to the top of an INT and back."""


def prefix(data: Column) -> Column:
    """The int16 that a key or value starts with; null if the key or value is null or too short."""
    unsigned = F.conv(F.hex(F.substring(data, 1, PREFIX_BYTES)), 16, 10).cast("int")
    number = F.shiftright(F.shiftleft(unsigned, _UNUSED_BITS), _UNUSED_BITS).cast("smallint")
    return F.when(F.octet_length(data) >= PREFIX_BYTES, number)


def sql_of_prefix(data: str) -> str:
    """`prefix` in SQL, for the column called `data`. A SQL function is made from text, which a Column does not give."""
    unsigned = f"CAST(conv(hex(substring({data}, 1, {PREFIX_BYTES})), 16, 10) AS INT)"
    number = f"CAST(shiftright(shiftleft({unsigned}, {_UNUSED_BITS}), {_UNUSED_BITS}) AS SMALLINT)"
    return f"CASE WHEN octet_length({data}) >= {PREFIX_BYTES} THEN {number} END"


def prefix_bytes(data: Column) -> Column:
    """A key or value cut off after its prefix. One without a prefix stays as it is."""
    return F.substring(data, 1, PREFIX_BYTES)


def begins_with(key: Column, texts: Iterable[bytes]) -> Column:
    """Whether the message of a key begins with one of these strings (`message_start`), for any record type."""
    starts = [start for start in map(message_start, texts) if start is not None]
    found = [F.substring(key, 1 + PREFIX_BYTES, len(start)) == F.lit(start) for start in starts]
    return F.coalesce(reduce(or_, found), F.lit(False)) if found else F.lit(False)


def has_record_type(types: Iterable[int]) -> Column:
    """Condition on raw rows: the key starts with one of these record types.

    Control records are never among them: their keys start with another number that merely looks like one. The keys of
    adjacent types are one range of bytes: comparing bytes makes no array for each row, as cutting off the prefix does.
    No range includes a change of the first byte: a key of that byte alone comes before all longer ones, and has no
    type.
    """
    return F.col("control").isNull() & reduce(or_, map(_is_between, _ranges(types)), F.lit(False))


def _ranges(types: Iterable[int]) -> list[tuple[int, int]]:
    """Prefixes as the unsigned numbers by which bytes compare: the first of each run, and the one after its last."""
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
    """Condition on raw rows of metadata records: all but control records and the records of the types `others`.

    Of those it leaves out the ones whose api key is in the second byte, as Kafka writes those below 128. The others
    have to be left out when they have been read.
    """
    starts = [start for number in others if len(start := frame_start(number)) == PREFIX_BYTES]
    is_other = F.col("key").isNull() & prefix_bytes(F.col("value")).isin(starts)
    return F.col("control").isNull() & ~F.coalesce(is_other, F.lit(False))


def is_unframed() -> Column:
    """Condition on raw rows: not a control record, and the key is missing or too short to hold a record type."""
    return F.col("control").isNull() & (F.coalesce(F.octet_length(F.col("key")), F.lit(0)) < PREFIX_BYTES)
