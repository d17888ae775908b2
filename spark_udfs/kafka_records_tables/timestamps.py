"""TIMESTAMP columns beside the milliseconds that records carry."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

YEAR_1_MS: Final = -62_135_596_800_000
"""0001-01-01T00:00:00Z in milliseconds since 1970."""

YEAR_9999_END_MS: Final = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z in milliseconds since 1970."""


def timestamp(milliseconds: str) -> Column:
    """The column `milliseconds` as TIMESTAMP, null outside the years 1 to 9999.

    Records hold any long, and `timestamp_millis` of an absurd one raises under ANSI mode: a single record would end the
    query. (PySpark's `collect` cannot hand the first and the last day of that range to Python in every time zone: cast
    to string before.)
    """
    value = F.col(milliseconds)
    return F.timestamp_millis(F.when(value.between(YEAR_1_MS, YEAR_9999_END_MS), value))
