"""Framing of many rows, in every layout of a column, compared with the framing of one row."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from kafka_records.schemas.consumer_protocol import CONSUMER_PROTOCOL_SUBSCRIPTION
from kafka_records_engine.columns import _pieces
from kafka_records_engine.columns.framing_in_columns import begins_with, prefix_bytes, prefix_column, prefixes
from kafka_records_engine.spark._from_bytes import Capped
from kafka_records_runtime.records.framing import framed, message_start, newer_as_highest, prefix_of
from tests.columns.reference import assert_columns, read_row
from tests.framed import KEYS, PREFIXES, TEXTS

KINDS = [pa.binary(), pa.large_binary(), pa.binary_view()]


def assert_prefixes(column: pa.Array, rows: Sequence[bytes | None]) -> None:
    numbers, has_prefix = prefix_column(column)
    assert [numbers.dtype, has_prefix.dtype] == [np.dtype(np.int16), np.dtype(np.bool_)]
    expected = [prefix_of(row) for row in rows]
    assert [number if has else None for number, has in zip(numbers, has_prefix, strict=True)] == expected
    assert numbers.tolist() == [number or 0 for number in expected]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_column_of_all_kinds(kind: pa.DataType) -> None:
    rows = [data for data, _ in PREFIXES]
    assert_prefixes(pa.array(rows, kind), rows)


@pytest.mark.parametrize("row", [data for data, _ in PREFIXES], ids=lambda row: repr(row)[:20])
def test_a_column_of_one_kind(row: bytes | None) -> None:
    """The last row of a buffer, and the only one."""
    for count in (1, 3):
        assert_prefixes(pa.array([row] * count, pa.binary()), [row] * count)


@pytest.mark.parametrize("column", [pa.array([], pa.binary()), pa.nulls(3), pa.nulls(3, pa.binary())], ids=str)
def test_a_column_of_nothing(column: pa.Array) -> None:
    assert_prefixes(column, [None] * len(column))


def test_a_part_of_a_column() -> None:
    rows = [data for data, _ in PREFIXES]
    for first in range(len(rows)):
        assert_prefixes(pa.array(rows, pa.binary()).slice(first, 5), rows[first : first + 5])


@pytest.mark.parametrize("most", [1, 30, 70_003])
def test_more_bytes_than_one_piece_may_have(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    random = Random(most)
    rows = [random.choice(PREFIXES)[0] for _ in range(60)]
    monkeypatch.setattr(_pieces, "MOST_BYTES", most)
    assert_prefixes(pa.array(rows, pa.binary()), rows)


def test_some_rows_of_a_piece() -> None:
    rows = [data for data, _ in PREFIXES]
    (piece,) = _pieces.pieces(pa.array(rows, pa.binary()))
    chosen = np.flatnonzero([row is not None for row in rows])[::2]

    long, numbers, short = prefixes(piece, chosen)

    assert dict(zip(long.tolist(), numbers.tolist(), strict=True)) == {
        row: number for row in chosen.tolist() if (number := prefix_of(rows[row])) is not None
    }
    assert short.tolist() == [row for row in chosen.tolist() if prefix_of(rows[row]) is None]


def test_cut_off_behind_the_prefix() -> None:
    cut = prefix_bytes(pa.array([data for data, _ in PREFIXES], pa.binary())).to_pylist()
    assert cut == [data if data is None else data[:2] for data, _ in PREFIXES]
    assert [prefix_of(data) for data in cut] == [number for _, number in PREFIXES]


@pytest.mark.parametrize("fields", ["", "00000001 0001 61 ffffffff 00000000 00000007 0001 72", "00000001 0001"])
def test_a_version_that_is_newer_than_the_highest(fields: str) -> None:
    """The version in which a row is read, for a message whose readers read a newer version as the highest."""
    message = CONSUMER_PROTOCOL_SUBSCRIPTION
    assert message.versions == (0, 3)
    body = bytes.fromhex(fields)
    rows = [data if prefix_of(data) is None else framed(prefix_of(data) or 0, body) for data, _ in PREFIXES]
    rows += [framed(version, body) for version in range(-3, 8)]

    (found,) = Capped()(message, pa.array(rows, pa.binary()), None, True)

    versions = [prefix_of(row) for row in rows]
    expected = [
        (
            read_row(message, row, None, True, True)
            if row is None or version is None
            else read_row(message, row[2:], newer_as_highest(message, version), True, False)
        )
        for row, version in zip(rows, versions, strict=True)
    ]
    assert_columns(found, message, expected, True)


@pytest.mark.parametrize("kind", KINDS[:2], ids=str)
@pytest.mark.parametrize("texts", [(), *((text,) for text in TEXTS), TEXTS], ids=lambda texts: repr(texts)[:20])
def test_keys_that_begin_with_a_text(texts: Sequence[bytes], kind: pa.DataType) -> None:
    starts = tuple(start for text in texts if (start := message_start(text)) is not None)
    found = begins_with(pa.array(KEYS, kind), texts)
    assert found.to_pylist() == [key is not None and key[2:].startswith(starts) for key in KEYS]
