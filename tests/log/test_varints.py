"""Varints one at a time and in vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_records_engine.log.format.varints import VarintError, read_varint, read_varlong, read_varlongs
from tests.log.logs import segment_cases, zigzag

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@pytest.mark.parametrize("case", segment_cases()["varints"], ids=str)
def test_varints_of_kafka(case: dict[str, object]) -> None:
    kind = "int" if "int" in case else "long"
    read = read_varint if kind == "int" else read_varlong
    data = bytes.fromhex(str(case["zigzag_varint_hex" if kind == "int" else "zigzag_varlong_hex"]))
    assert read(data, 0, len(data)) == (case[kind], len(data))
    values, behind, endless = read_varlongs(np.frombuffer(data + bytes(10), np.uint8), np.array([0]))
    assert (values.tolist(), behind.tolist(), endless) == ([case[kind]], [len(data)], None)


@given(st.lists(INT64, min_size=1))
def test_vectors_equal_single_reads(numbers: list[int]) -> None:
    pieces = [zigzag(number) for number in numbers]
    data = b"".join(pieces)
    ends = np.cumsum([len(piece) for piece in pieces])
    starts = ends - [len(piece) for piece in pieces]
    values, behind, endless = read_varlongs(np.frombuffer(data + bytes(10), np.uint8), starts)
    assert values.tolist() == numbers
    assert behind.tolist() == ends.tolist()
    assert endless is None
    assert [read_varlong(data, int(start), len(data))[0] for start in starts] == numbers


@pytest.mark.parametrize("seldom", [1, 20])
@given(longest=st.lists(INT64, min_size=1, max_size=30))
def test_few_and_many_long_ones_among_short_ones(seldom: int, longest: list[int]) -> None:
    numbers = [each for number in longest for each in (number, *(at % 64 for at in range(seldom)))]
    pieces = [zigzag(number) for number in numbers]
    ends = np.cumsum([len(piece) for piece in pieces])
    starts = ends - [len(piece) for piece in pieces]
    values, behind, endless = read_varlongs(np.frombuffer(b"".join(pieces) + bytes(10), np.uint8), starts)
    assert (values.tolist(), behind.tolist(), endless) == (numbers, ends.tolist(), None)


def test_numbers_without_end() -> None:
    data = bytes([0x80] * 20)
    with pytest.raises(VarintError, match=r"^has a varint that does not end$"):
        read_varint(data, 0, 20)
    with pytest.raises(VarintError, match=r"^has a varint that does not end$"):
        read_varlong(data, 0, 20)
    with pytest.raises(VarintError, match=r"^ends inside a varint$"):
        read_varint(data, 0, 4)
    *_, endless = read_varlongs(np.frombuffer(data + b"\1" + bytes(10), np.uint8), np.array([0, 20]))
    assert endless is not None
    assert endless.tolist() == [True, False]


def test_bits_above_the_type_are_dropped() -> None:
    assert read_varint(bytes.fromhex("ffffffff7f"), 0, 5) == (-(1 << 31), 5)
