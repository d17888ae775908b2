"""Sums by group, topic and time window, to which vectors are added."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.numpy_types import FLAGS, INT64

BY: Final = ("group_id", "topic", "window")
"""The keys of sums. `window` is the start of the window in milliseconds since 1970, or null without a time; `topic` is
null for sums about a whole group."""

SUMMED: Final = (
    "commits",
    "transactional_commits",
    "repeated_commits",
    "intervals",
    "interval_sum",
    "expirations",
    "deletions",
    "offset_deletions",
    "likely_expirations",
    "likely_deletions",
    "unclear_deletions",
    "completed_rebalances",
    "classic_rebalances",
    "records",
    "key_bytes",
    "value_bytes",
)
GREATEST: Final = ("interval_max",)

_SCHEMA: Final = pa.schema(
    [("group_id", pa.string()), ("topic", pa.string())]
    + [(name, pa.int64()) for name in ("window", *SUMMED, *GREATEST)]
)

NO_TIME: Final = -1
"""The value for "no time". Times before 1970 have the same meaning."""

MOST: Final = 2**62 - 1
"""The limit for sums, so that adding two sums cannot overflow 64 bits. A record may have any timestamp."""

_FIRST_ROOM: Final = 256


class WindowSums:
    """Adds values to sums. Memory grows with the number of sums."""

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self._places: dict[tuple[str, str | None], int] = {}
        self._numbers: dict[tuple[int, int], int] = {}
        """The number of a sum by place and window. NO_TIME is the window of values without a time."""
        self._values = {name: np.zeros(_FIRST_ROOM, np.int64) for name in SUMMED}
        self._values |= {name: np.full(_FIRST_ROOM, -1, np.int64) for name in GREATEST}

    def places(self, names: Iterable[tuple[str, str | None]]) -> INT64:
        """A number for each group and topic."""
        places = self._places
        return np.array([places.setdefault(name, len(places)) for name in names], np.int64)

    def add(self, places: INT64, time: INT64, **told: Any) -> None:
        """Add vectors of SUMMED, up to MOST, and keep the greatest values of GREATEST. Each vector has an element for
        each place and time. No element of SUMMED is negative."""
        if not len(places):
            return
        windows = pa.array(np.where(time < 0, NO_TIME, time - time % self._window_ms)).dictionary_encode()
        names = windows.dictionary.to_pylist()
        pairs = pa.array(places * len(names) + windows.indices.to_numpy()).dictionary_encode()
        numbers = [
            self._numbers.setdefault((place, names[window]), len(self._numbers))
            for place, window in (divmod(pair, len(names)) for pair in pairs.dictionary.to_pylist())
        ]
        self._grow()
        of_pairs, at = pairs.indices.to_numpy(), np.array(numbers, np.int64)
        for name, values in told.items():
            if name in GREATEST:
                np.maximum.at(self._values[name], at[of_pairs], values)
            else:
                # Every index occurs once, so each element is added.
                sums = self._values[name][at] + _sums(of_pairs, values, len(at))
                self._values[name][at] = np.minimum(sums, MOST)

    def table(self) -> pa.Table:
        """The columns BY, SUMMED and GREATEST. A greatest value is -1 if there is none."""
        count = len(self._numbers)
        names = list(self._places)
        place, window = (np.array([pair[at] for pair in self._numbers], np.int64) for at in (0, 1))
        columns: dict[str, Any] = {
            "group_id": pa.array([group for group, _ in names], pa.string()).take(pa.array(place)),
            "topic": pa.array([topic for _, topic in names], pa.string()).take(pa.array(place)),
            "window": pa.array(window, mask=window == NO_TIME),
        }
        columns |= {name: pa.array(values[:count]) for name, values in self._values.items()}
        return pa.Table.from_pydict(columns, schema=_SCHEMA)

    def _grow(self) -> None:
        """Make room for all sums."""
        for name, values in self._values.items():
            if len(self._numbers) > len(values):
                more = max(len(self._numbers), 2 * len(values)) - len(values)
                nothing = -1 if name in GREATEST else 0
                self._values[name] = np.concatenate([values, np.full(more, nothing, np.int64)])


def _sums(codes: INT64, values: INT64 | FLAGS, count: int) -> INT64:
    """The sum of the values of each of `count` codes, at most MOST. No value is negative."""
    if values.dtype == np.bool_:
        return np.bincount(codes[values], minlength=count)
    sums = np.zeros(count, np.int64)
    np.add.at(sums, codes, values)
    # A sum that exceeds 64 bits wraps around. Floats are too inexact for sums, but exact enough to detect this.
    overflows = np.bincount(codes, weights=values, minlength=count) > 1.5 * MOST
    sums[overflows] = MOST
    return np.minimum(sums, MOST)
