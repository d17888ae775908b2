"""The order in which commits and tombstones took effect, by group, topic and partition."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.numpy_types import FLAGS, INT64

_FAR: Final = 2**31
"""Offsets that are not so far apart are compared as they are: with the number of a key they fit into 64 bits."""


def in_effect(rows: pa.RecordBatch, place: INT64, log_offset: INT64) -> tuple[INT64, INT64]:
    """The indexes of the rows that took effect, by group, topic and partition, and of each of these in the order in
    which they did; and a number for each group, topic and partition.

    `place` is where a row took effect, at its own `log_offset` or at a marker. Of several commits that did so at one
    marker the last counts. One that stands before what took effect meanwhile does not count at all, and a tombstone
    takes the commits of open transactions along (`OffsetMetadataManager.replayEndTransactionMarker`).
    """
    return in_effect_of_keys(numbers_of_keys(rows), place, log_offset)


def in_effect_of_keys(codes: INT64, place: INT64, log_offset: INT64) -> tuple[INT64, INT64]:
    """The same for rows that have a number for each group, topic and partition already."""
    is_sorted = (np.diff(place) >= 0).all() and (np.diff(log_offset) >= 0).all()
    order = np.argsort(codes, kind="stable") if is_sorted else np.lexsort((log_offset, place, codes))
    codes, place, log_offset = codes[order], place[order], log_offset[order]
    # Key and place in the log as one number, so that the highest one so far is that of the key.
    ranks, width = _ranks(log_offset)
    reached = codes * width + ranks
    counts = (reached >= np.maximum.accumulate(reached)) & (ends(codes) | ends(place))
    return order[counts], codes[counts]


def _ranks(offsets: INT64) -> tuple[INT64, int]:
    """Numbers from 0 on that compare as offsets do, and one that is above them all."""
    if not len(offsets):
        return offsets, 1
    least, most = int(offsets.min()), int(offsets.max())
    if most - least < _FAR:
        return offsets - least, most - least + 1
    _, ranks = np.unique(offsets, return_inverse=True)
    return ranks, len(ranks)


def numbers_of_keys(rows: pa.RecordBatch) -> INT64:
    """A number for each `group_id`, `topic` and `partition`, each of which may be null."""
    codes = np.zeros(rows.num_rows, np.int64)
    for name in ("group_id", "topic", "partition"):
        part = rows.column(name).dictionary_encode()
        nothing = len(part.dictionary)
        pairs = pa.array(codes * (nothing + 1) + part.indices.fill_null(nothing).to_numpy())
        codes = pairs.dictionary_encode().indices.to_numpy().astype(np.int64)
    return codes


def begins(values: INT64) -> FLAGS:
    """Which elements are others than those before them."""
    found = np.ones(len(values), np.bool_)
    found[1:] = values[1:] != values[:-1]
    return found


def ends(values: INT64) -> FLAGS:
    """Which elements are others than those behind them."""
    found = np.ones(len(values), np.bool_)
    found[:-1] = values[1:] != values[:-1]
    return found
