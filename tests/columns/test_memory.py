"""Memory is bounded by the batch: no length in the bytes makes anything larger than the bytes allow."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_engine.columns import Columns, _elements, decode_column
from kafka_records_runtime.schema import FORMAT, FieldSchema, MessageSchema, StructSchema
from tests.columns.reference import check, engine_limits

pytestmark = pytest.mark.slow

VERSIONS = (0, 1)
FLEXIBLE = (1, 1)
BATCH_BYTES = 400_000
MOST_INT32 = 2**31 - 1

UNBELIEVABLE = {0: MOST_INT32.to_bytes(4, "big"), 1: bytes.fromhex("ffffffff07")}
"""By version: a claim of 2³¹-1 elements or bytes (in a flexible version one less)."""


def field(name: str, type: str, **more: Any) -> FieldSchema:
    return FieldSchema(name, name, type, VERSIONS, flexible=FLEXIBLE, **more)


LEAF = StructSchema("Leaf", (field("text", "string"), field("numbers", "[]int32", nullable=VERSIONS)))
MIDDLE = StructSchema("Middle", (field("leaves", "[]Leaf"),))
EMPTY = StructSchema("Empty", ())
STRUCTS = (LEAF, MIDDLE, EMPTY)
TAGGED = field("tagged", "[]Middle", tag=0, tagged=FLEXIBLE)


def message(*fields: FieldSchema) -> MessageSchema:
    return MessageSchema(FORMAT, "Claims", VERSIONS, FLEXIBLE, (*STRUCTS, StructSchema("Claims", fields)))


@contextmanager
def peak() -> Iterator[Callable[[], int]]:
    """Measures the peak memory of Python, numpy and Arrow together, in bytes.

    Arrow uses a separate memory pool meanwhile. Its recorded peak never decreases, so all tests that use this must have
    about the same limit.
    """
    pool, usual = pa.system_memory_pool(), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1] + int(pool.max_memory())
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)


@contextmanager
def peak_of_vectors() -> Iterator[Callable[[], int]]:
    """Measures the peak memory of Python and numpy together, in bytes."""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def batch_of(rows: list[bytes]) -> pa.Array:
    """The rows, repeated until there are BATCH_BYTES of them."""
    return pa.array(rows * (BATCH_BYTES // sum(map(len, rows))))


def filler(size: int) -> bytes:
    return Random(1).randbytes(size)


CLAIMS = {
    **{f"{type} array": (message(field("all", f"[]{type}")), b"") for type in ("int8", "bool", "uuid", "float64")},
    **{f"{type} array": (message(field("all", f"[]{type}")), b"") for type in ("string", "bytes", "Leaf", "Middle")},
    "elements without bytes": (message(field("all", "[]Empty")), b""),
    "bytes": (message(field("all", "bytes")), b""),
    "records": (message(field("all", "records")), b""),
    "null or bytes": (message(field("all", "bytes", nullable=VERSIONS)), b""),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_of_2_to_the_31(name: str, version: int) -> None:
    """The claim is refused before memory is allocated for it: the batch takes a few times its bytes."""
    schema, before = CLAIMS[name]
    data = batch_of([before + UNBELIEVABLE[version] + filler(2_000)])
    decode_column(schema, data[:1], version)  # plans and constants stay in memory, and do not count for the batch
    with peak() as most:
        found = decode_column(schema, data, version, unknown_tags=True)
        assert most() < 6 * BATCH_BYTES
    assert len(found.errors) == len(data) == found.values.null_count
    assert {type(error).__name__ for error in found.errors.values()} <= {"CountTooLarge", "BufferUnderflow"}


NESTED = message(field("all", "[]Middle"), field("last", "string"), TAGGED)


@pytest.mark.parametrize("few", [0, 48])
@pytest.mark.parametrize(
    "row",
    [
        pytest.param("02 02" + "ffffffff07", id="a text in a struct in an array"),
        pytest.param("02 02 02 61" + "ffffffff07", id="an array in an array in an array"),
        pytest.param("02 ffffffff07", id="an array in an array"),
        pytest.param("01 01" + "01 00 ffffffff07", id="the size of a known tag"),
        pytest.param("01 01" + "01 07 ffffffff07", id="the size of an unknown tag"),
        pytest.param("01 01" + "01 00 8f4e ffffffff07", id="an array in a known tag"),
        pytest.param("01 01" + "feffffff07 00 01 00", id="the number of tags"),
        pytest.param("02 02 01 01" + "feffffff07", id="the number of tags in a nested struct"),
    ],
)
def test_a_claim_of_2_to_the_31_further_inside(row: str, few: int) -> None:
    data = batch_of([bytes.fromhex(row) + filler(2_000)])
    decode_column(NESTED, data[:1], 1)
    with engine_limits(few), peak() as most:
        found = decode_column(NESTED, data, 1, unknown_tags=True)
        assert most() < 6 * BATCH_BYTES
    assert len(found.errors) == len(data)


@pytest.mark.parametrize("few", [0, 48])
@pytest.mark.parametrize("unknown_tags", [False, True])
def test_claims_that_the_bytes_left_just_allow(few: int, unknown_tags: bool) -> None:
    """A row claims a struct for every remaining byte, and the first struct is broken: this takes some numbers per
    byte."""
    row = bytes.fromhex("e907") + b"\xff" * 1_000
    schema = message(field("all", "[]Empty"), field("more", "[]Empty"), TAGGED)
    data = batch_of([row])
    decode_column(schema, data[:1], 1)
    with engine_limits(few), peak_of_vectors() as most:
        found = decode_column(schema, data, 1, unknown_tags=unknown_tags)
        assert most() < 80 * BATCH_BYTES
    assert len(found.errors) == len(data)
    assert {type(error).__name__ for error in found.errors.values()} == {"InvalidVarint"}


SMALLEST = {
    "strings": (message(field("all", "[]string")), b"\x01"),
    "structs": (message(field("all", "[]Empty")), b"\x00"),
    "structs of arrays": (message(field("all", "[]Middle")), b"\x01\x00"),
    "arrays with something in them": (message(field("all", "[]Middle")), bytes.fromhex("02 01 00 00 00")),
    "numbers": (message(field("all", "[]int8")), b"\x01"),
}


def test_rows_are_cut_by_where_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each element may read up to the end of its row, so the sum of the remaining bytes of all elements is quadratic in
    the size of the row."""
    cut: list[int] = []
    levels = _elements.ElementWalk._levels

    def counting(walk: _elements.ElementWalk, index: Any) -> None:
        cut.append(len(index))
        levels(walk, index)

    monkeypatch.setattr(_elements.ElementWalk, "_levels", counting)
    schema, element = SMALLEST["arrays with something in them"]
    row = bytes.fromhex("a19c01") + element * 20_000 + b"\x00"
    with engine_limits(block=40_000):  # elements get half of this limit
        assert decode_column(schema, pa.array([row]), 1).errors == {}
    # The row, its elements in passing, and the arrays inside of them, read in parts of 20 000 bytes.
    assert cut == [1, 20_000, *[4_000] * 5]


def test_rows_that_break_leave_the_others_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken rows claim ten thousand elements and break in the first. They must not take ten thousand rounds."""
    rounds: list[int] = []
    scan = _elements.ElementWalk._scan

    def counting(walk: _elements.ElementWalk, elements: Any, owners: Any, level: Any) -> None:
        rounds.append(len(elements))
        scan(walk, elements, owners, level)

    monkeypatch.setattr(_elements.ElementWalk, "_scan", counting)
    schema, element = SMALLEST["strings"]
    claims = bytes.fromhex("914e")
    broken = claims + bytes.fromhex("ffffffff07") + filler(10_000)
    good = b"\x03" + element * 2 + b"\x00"
    found = decode_column(schema, pa.array([broken, good] * 60), 1)
    assert found.errors.keys() == set(range(0, 120, 2))
    assert rounds == [120, 60]


@pytest.mark.parametrize("cut", [0, 1], ids=["whole", "broken at its end"])
@pytest.mark.parametrize("name", SMALLEST)
def test_as_many_elements_as_bytes(name: str, cut: int) -> None:
    """The worst case of valid counts in one row: the walker needs as much memory for its Python objects."""
    schema, element = SMALLEST[name]
    count = 100_000 // len(element)
    head = (count + 1 & 0x7F | 0x80, count + 1 >> 7 & 0x7F | 0x80, count + 1 >> 14)
    row = bytes(head) + element * count + b"\x00"
    data = pa.array([row[: len(row) - cut]])
    with peak_of_vectors() as most:
        found = decode_column(schema, data, 1)
        assert most() < 300 * len(row)
    assert len(found.errors) == cut
    assert found.values.nbytes < 10 * len(row)


def test_constants_do_not_grow_with_hostile_rows() -> None:
    """Members that a version lacks are cached constants, as many as there are rows, and never as many as the bytes
    claim."""
    one = StructSchema("One", (FieldSchema("id", "id", "uuid", (1, 1)), FieldSchema("a", "a", "int8", VERSIONS)))
    body = StructSchema("Old", (FieldSchema("all", "all", "[]One", VERSIONS),))
    old = MessageSchema(FORMAT, "Old", VERSIONS, None, (one, body))
    data = batch_of([UNBELIEVABLE[0] + filler(500)])
    with peak() as most:
        found = decode_column(old, data, 0)
        assert most() < 10 * BATCH_BYTES
    assert len(found.errors) == len(data)


@pytest.mark.parametrize("claims", [0, 1, 7, 100, MOST_INT32])
def test_elements_without_bytes_are_as_many_as_the_walker_believes(claims: int) -> None:
    """Version 0 of an empty struct has no bytes, so that a count cannot be compared with bytes."""
    schema = message(field("all", "[]Empty"), field("tail", "bytes"))
    row = claims.to_bytes(4, "big") + b"\x00\x00\x00\x03abc"
    found: Columns = check(schema, [row, None, row, b""], 0, unknown_tags=True)
    assert (found.values[0].as_py() is None) == (claims > 7)
