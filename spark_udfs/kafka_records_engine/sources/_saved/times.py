"""The times of records in saved rows: timestamps, strings, or numbers whose magnitude reveals the unit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.sources._saved.taken_columns import is_bytes, is_text, plain
from kafka_records_engine.sources.plain_arrays import plain_array

TimeUnit = Literal["s", "ms", "us", "ns"]
TIME_UNITS: Final[tuple[TimeUnit, ...]] = get_args(TimeUnit)

_FROM_2001_TO_5138: Final = (1_000_000_000, 100_000_000_000)
"""The range of times that are recognized, in seconds. Kafka is younger than the lower bound, and no number is in the
range for two units."""
_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_NUMBER: Final = r"^[A-Za-z ]*:?\s*(-?[0-9]+(?:\.[0-9]*)?)$"
"""A number, optionally after a word, as `kafka-console-consumer` prints it: `CreateTime:1700000000000`."""
_DAY: Final = r"^\d{4}-\d\d-\d\d"
_ZONE: Final = r"([zZ]|[+-]\d\d:?\d\d)$"


class MixedUnits(Exception):
    """Numbers that look like times in several units; the message names the units."""


def is_named_for_milliseconds(column: str) -> bool:
    """Whether the name of a column says milliseconds."""
    return plain(column).endswith(("ms", "millis", "milliseconds"))


def unit_of(samples: Iterable[Any]) -> TimeUnit | None:
    """Determine the unit of times since 1970 from a sample (Arrow arrays): the unit in which all times are plausible.
    None if there is no such unit, or if the times are not numbers. Raises MixedUnits."""
    found: set[TimeUnit] = set()
    for array in samples:
        numbers = _numbers(array)
        if numbers is None:
            continue
        for unit in TIME_UNITS:
            least, most = (bound * _PER_SECOND[unit] for bound in _FROM_2001_TO_5138)
            is_inside = pc.and_(pc.greater_equal(numbers, float(least)), pc.less(numbers, float(most)))
            if pc.any(is_inside).as_py():
                found.add(unit)
    if len(found) > 1:
        raise MixedUnits(" and ".join(unit for unit in TIME_UNITS if unit in found))
    return next(iter(found), None)


def _numbers(array: Any) -> Any:
    """The numbers in a column as doubles, with null for values that are not numbers; None for a column of another
    type."""
    array = plain_array(array)
    if is_text(array.type) or is_bytes(array.type):
        texts = array.cast(pa.binary())
        texts = pc.if_else(pc.match_substring_regex(texts, _NUMBER), texts, pa.scalar(None, texts.type))
        return pc.replace_substring_regex(texts, _NUMBER, r"\1").cast(pa.string()).cast(pa.float64())
    if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
        return array.cast(pa.float64(), safe=False)
    return None


def timestamps_ms(array: Any, unit: TimeUnit) -> Any:
    """Times in milliseconds since 1970; numbers are in `unit`. Raises ArrowException for a value that is not a time."""
    array = plain_array(array)
    if pa.types.is_timestamp(array.type):
        # Times without a time zone are read as UTC, which is what Spark's TIMESTAMP_NTZ and most other writers mean.
        return array.cast(pa.timestamp("ms", array.type.tz), safe=False).cast(pa.int64())
    if is_text(array.type) or is_bytes(array.type):
        texts = array.cast(pa.string())
        if pc.any(pc.match_substring_regex(texts, _DAY)).as_py():
            has_zone = pc.match_substring_regex(texts, _ZONE)
            texts = pc.if_else(has_zone, texts, pc.binary_join_element_wise(texts, "Z", ""))
            return texts.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
        texts = pc.replace_substring_regex(texts, _NUMBER, r"\1")
        is_whole = not pc.any(pc.match_substring(texts, ".")).as_py()
        array = texts.cast(pa.int64() if is_whole else pa.float64())
    return _in_milliseconds(array, unit)


def _in_milliseconds(numbers: Any, unit: TimeUnit) -> Any:
    """Convert to milliseconds. Negative numbers stay unchanged, because -1 means a record without a time in Kafka."""
    if pa.types.is_floating(numbers.type):
        made = pc.floor(pc.divide(pc.multiply(numbers, 1000.0), float(_PER_SECOND[unit])))
        return pc.if_else(pc.less(numbers, 0), numbers, made).cast(pa.int64())
    numbers = numbers.cast(pa.int64())
    if unit == "ms":
        return numbers
    if unit == "s":
        return pc.if_else(pc.less(numbers, 0), numbers, pc.multiply_checked(pc.max_element_wise(numbers, 0), 1000))
    return pc.if_else(pc.less(numbers, 0), numbers, pc.divide(numbers, _PER_SECOND[unit] // 1000))
