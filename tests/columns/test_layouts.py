"""All layouts of a binary column result in the same columns, and other columns are refused with their type."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kafka_records import registry
from kafka_records_engine.columns import TooMuchForOneArray, _leaves, _pieces, arrow_arrays, arrow_type, decode_column
from tests.columns.buffers import guarded_copies
from tests.columns.reference import assert_sound, check, counted_walks
from tests.columns.rows import batch, broken_row, good_row

MESSAGE = registry.message_class("GroupMetadataValue").CODEC.schema
OFFSET = registry.message_class("OffsetCommitValue").CODEC.schema
GARBAGE = b"\x7f\xff\xff\xff garbage \xff\xff"

Layout = Callable[[list[bytes | None]], Any]


def binary(rows: list[bytes | None], kind: pa.DataType | None = None) -> pa.Array:
    return pa.array(rows, kind or pa.binary())


def sliced(kind: pa.DataType) -> Layout:
    """A slice of a longer array, with other rows and nulls before and after it."""
    return lambda rows: binary([GARBAGE, None, b"", *rows, GARBAGE, None], kind).slice(3, len(rows))


def chunked(kind: pa.DataType) -> Layout:
    def make(rows: list[bytes | None]) -> pa.ChunkedArray:
        parts = [rows[:1], [], rows[1:5], rows[5:6], rows[6:], []]
        return pa.chunked_array([binary(part, kind) for part in parts], kind)

    return make


def chunks_of_slices(rows: list[bytes | None]) -> pa.ChunkedArray:
    half = len(rows) // 2
    return pa.chunked_array([sliced(pa.binary())(rows[:half]), sliced(pa.binary())(rows[half:])])


def garbage_below_nulls(kind: pa.DataType, width: Any) -> Layout:
    """Nulls have bytes, which Arrow allows."""

    def make(rows: list[bytes | None]) -> pa.Array:
        held = [GARBAGE if row is None else row for row in rows]
        places = np.cumsum([0, *map(len, held)]).astype(width)
        buffers = [bits_of(rows), pa.py_buffer(places), pa.py_buffer(b"".join(held))]
        return pa.Array.from_buffers(kind, len(rows), buffers)

    return make


def at_the_end_of_memory(rows: list[bytes | None]) -> pa.Array:
    """The memory page after the last row is protected: reading its first byte ends the process."""
    content = b"".join(row or b"" for row in rows)
    pages = -(-len(content) // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, pages + mmap.PAGESIZE)
    memory[pages - len(content) : pages] = content
    whole = pa.py_buffer(memory)
    guard = ctypes.CDLL(None).mprotect(ctypes.c_void_p(whole.address + pages), ctypes.c_size_t(mmap.PAGESIZE), 0)
    assert guard == 0
    places = np.cumsum([pages - len(content), *(len(row or b"") for row in rows)]).astype(np.int32)
    buffers = [bits_of(rows), pa.py_buffer(places), whole.slice(0, pages)]
    return pa.Array.from_buffers(pa.binary(), len(rows), buffers)


def bits_of(rows: list[bytes | None]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(np.array([row is not None for row in rows], np.bool_), bitorder="little"))


def exactly_its_bytes(rows: list[bytes | None]) -> pa.Array:
    """Buffers without Arrow's padding."""
    places = np.cumsum([0, *(len(row or b"") for row in rows)]).astype(np.int32)
    content = b"".join(row or b"" for row in rows)
    return pa.Array.from_buffers(
        pa.binary(), len(rows), [bits_of(rows), pa.py_buffer(places.tobytes()), pa.py_buffer(content)]
    )


LAYOUTS: dict[str, Layout] = {
    "binary": binary,
    "large binary": lambda rows: binary(rows, pa.large_binary()),
    "binary view": lambda rows: binary(rows, pa.binary_view()),
    "slice": sliced(pa.binary()),
    "slice of large binary": sliced(pa.large_binary()),
    "slice of binary view": sliced(pa.binary_view()),
    "slice of a slice": lambda rows: binary([b"x", b"y", *rows, b"z"]).slice(1).slice(1, len(rows)),
    "chunks": chunked(pa.binary()),
    "chunks of large binary": chunked(pa.large_binary()),
    "chunks of binary view": chunked(pa.binary_view()),
    "chunks of slices": chunks_of_slices,
    "a chunk per row": lambda rows: pa.chunked_array([binary([row]) for row in rows], pa.binary()),
    "garbage below nulls": garbage_below_nulls(pa.binary(), np.int32),
    "garbage below nulls of large binary": garbage_below_nulls(pa.large_binary(), np.int64),
    "exactly its bytes": exactly_its_bytes,
    "at the end of memory": at_the_end_of_memory,
    "from IPC": lambda rows: _through_ipc(binary(rows)),
}


def _through_ipc(array: pa.Array) -> pa.ChunkedArray:
    sink = pa.BufferOutputStream()
    table = pa.table({"data": array})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)
    return pa.ipc.open_stream(sink.getvalue()).read_all().column("data")


@pytest.fixture(scope="module")
def rows() -> tuple[list[bytes | None], list[int | None]]:
    """Good and broken rows of all versions, nulls, empty ones; the last one is broken where the buffer ends."""
    found, versions = batch(Random(11), MESSAGE, 60, damaged=0.3, huge=0)
    found[3] = found[20] = None
    found[4] = b""
    last = good_row(Random(12), MESSAGE, 3)
    return [*found, last, last[:-3]], [*versions, 3, 3]


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("framed", [False, True], ids=["versions beside", "versions before"])
def test_every_layout(layout: Layout, framed: bool, rows: tuple[list[bytes | None], list[int | None]]) -> None:
    data, versions = rows
    with guarded_copies():
        if not framed:
            check(MESSAGE, data, versions, True, layout(data))
            return
        framed_rows = [
            None if row is None else (version or 0).to_bytes(2, "big", signed=True) + row
            for row, version in zip(data, versions, strict=True)
        ]
        check(MESSAGE, framed_rows, None, False, layout(framed_rows))


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("size", [0, 1, 2, 9])
def test_nothing_but_nulls(layout: Layout, size: int) -> None:
    for version in (None, 3):
        found = check(MESSAGE, [None] * size, version, True, layout([None] * size))
        assert found.values.null_count == len(found.values) == size


@pytest.mark.parametrize("size", [0, 1, 5])
def test_a_column_of_the_null_type(size: int) -> None:
    check(MESSAGE, [None] * size, None, False, pa.nulls(size))
    check(MESSAGE, [None] * size, 2, True, pa.chunked_array([pa.nulls(size), pa.nulls(0)]))


@pytest.mark.parametrize("size", [0, 1, 60])
def test_empty_rows(size: int) -> None:
    for column in (binary([b""] * size), binary([b""] * size, pa.binary_view()), pa.array([""] * size)):
        found = check(OFFSET, [b""] * size, None, False, column)
        assert len(found.errors) == size


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_bytes_that_happen_to_be_text(kind: pa.DataType) -> None:
    """In Spark and files, the type of a binary column may be string; its bytes are used unchanged."""
    text = b"\x00\x01" + bytes(8) + b"\x00\x03abc" + bytes(16)
    assert text.decode()
    for rows in ([text, None, text[:-1], b"", text + b"x"], [None], []):
        column = pa.array([None if row is None else row.decode() for row in rows], kind)
        check(OFFSET, rows, None, False, column)
        check(OFFSET, rows, None, False, pa.chunked_array([column, column[:0]]))


def test_rows_of_one_size() -> None:
    """A fixed_size_binary column, sliced and with nulls."""
    row = b"\x00\x01" + bytes(8) + b"\x00\x03abc" + bytes(16)
    column = pa.array([row, row, None, b"\xff" * len(row)], pa.binary(len(row)))
    check(OFFSET, column[1:].to_pylist(), None, False, column.slice(1))


@pytest.mark.parametrize("most", [1, 40, 130, 1_000_000])
def test_more_bytes_than_one_piece_may_have(
    most: int, rows: tuple[list[bytes | None], list[int | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `large_binary` column of more than 2³¹-1 bytes is read in pieces; here the limit is lower."""
    monkeypatch.setattr(_pieces, "MOST_BYTES", most)
    data, versions = rows
    pieces = list(_pieces.pieces(binary(data, pa.large_binary())))
    assert sum(map(len, pieces)) == len(data)
    assert (len(pieces) > 1) == (most < 1_000_000)
    assert all(len(piece) == 1 or piece.ends[-1] - piece.starts[0] <= most for piece in pieces)
    check(MESSAGE, data, versions, True, binary(data, pa.large_binary()))
    check(MESSAGE, data, versions, True, sliced(pa.large_binary())(data))


# -- versions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        *(lambda each, kind=kind: pa.array(each, kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
        *(lambda each, kind=kind: pa.array(each, kind) for kind in (pa.uint8(), pa.uint16(), pa.uint32())),
        lambda each: pa.chunked_array([each[:1], each[1:4], [], each[4:]], pa.int16()),
        lambda each: pa.array([9, *each, None], pa.int16()).slice(1, len(each)),
        lambda each: [*each],
    ],
    ids=["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "chunks", "slice", "list"],
)
@pytest.mark.parametrize("nulls", [False, True])
def test_versions_in_every_form(make: Any, nulls: bool) -> None:
    random = Random(2)
    versions = [random.randint(0, 4) for _ in range(20)]
    data: list[bytes | None] = [good_row(random, OFFSET, version) for version in versions]
    wanted: list[int | None] = [None if nulls and place % 5 == 0 else version for place, version in enumerate(versions)]
    expected = check(OFFSET, data, wanted, False)
    for column in (binary(data), chunked(pa.large_binary())(data)):
        found = decode_column(OFFSET, column, make(wanted))
        assert found.values.equals(expected.values)
        assert found.values.null_count == 4 * nulls
        assert found.errors == {}


def test_versions_as_numbers_of_numpy() -> None:
    data = [good_row(Random(1), OFFSET, 3)] * 4
    expected = check(OFFSET, data, 3, False)
    assert decode_column(OFFSET, binary([*data]), np.full(4, 3)).values.equals(expected.values)
    assert decode_column(OFFSET, binary([*data]), pa.nulls(4, pa.int16())).values.null_count == 4
    assert decode_column(OFFSET, binary([*data]), pa.nulls(4)).values.null_count == 4


def test_a_version_as_a_number_of_numpy() -> None:
    data = [good_row(Random(1), OFFSET, 3)] * 2
    assert decode_column(OFFSET, binary([*data]), np.int64(3)).values.equals(check(OFFSET, data, 3, False).values)


@pytest.mark.parametrize(
    ("versions", "kind"),
    [
        (np.ones(2), "double"),
        (pa.array(["3", "3"]), "string"),
        (pa.array([True, False]), "bool"),
        (pa.array([3, 2**63], pa.uint64()), "uint64"),
    ],
)
def test_versions_that_are_no_integers(versions: Any, kind: str) -> None:
    with pytest.raises(TypeError, match=f"^versions must be signed integers, not {kind}$"):
        decode_column(OFFSET, binary([b"", b""]), versions)


def test_more_text_than_one_array_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    def overflow(arrays: list[pa.Array]) -> pa.Array:
        raise pa.ArrowInvalid("offset overflow while concatenating arrays")

    monkeypatch.setattr(pa, "concat_arrays", overflow)
    with pytest.raises(TooMuchForOneArray) as failure:
        decode_column(OFFSET, pa.chunked_array([binary([b""]), binary([b""])]), 3)
    assert str(failure.value) == (
        "the decoded rows hold more than 2 GiB of text or bytes in one field: decode fewer rows at a time"
    )


class Overflowing:
    """An array that raises the error of Arrow if offsets of 32 bits overflow."""

    def take(self, places: pa.Array) -> pa.Array:
        raise pa.ArrowInvalid("Take operation overflowed binary array capacity")


def test_more_text_than_one_array_holds_of_a_few_rows() -> None:
    """`at` puts rows back in order and repeats the default of a field for many elements: both may pass 2 GiB."""
    with pytest.raises(TooMuchForOneArray):
        arrow_arrays.at(Overflowing(), np.zeros(3, np.int64))


def test_more_uuids_than_one_array_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of a uuid is longer than its bytes: 1.6 GB of uuids become 2 GiB of text, and the offsets would overflow
    in numpy."""
    assert _leaves._MOST_UUIDS * 22 < 2**31 <= (_leaves._MOST_UUIDS + 1) * 22
    monkeypatch.setattr(_leaves, "_MOST_UUIDS", 2)
    assert _leaves._uuids(np.zeros(2, "V16")).to_pylist() == ["A" * 22] * 2
    with pytest.raises(TooMuchForOneArray):
        _leaves._uuids(np.zeros(3, "V16"))


@pytest.mark.parametrize("count", [0, 2, 4])
def test_as_many_versions_as_rows(count: int) -> None:
    """One version too few would cause an internal error. One too many would go unnoticed, and may belong to another
    batch."""
    for versions in (pa.array([1] * count, pa.int16()), [1] * count, np.ones(count), pa.chunked_array([[1] * count])):
        with pytest.raises(ValueError, match=f"^3 rows but {count} versions$"):
            decode_column(OFFSET, binary([b"", b"", None]), versions)


def test_a_version_for_all_that_there_is_none_of() -> None:
    found = check(OFFSET, [b"abc", None, b""], 9, False)
    text = "OffsetCommitValue has no version 9: its versions are 0 to 4"
    assert {row: str(error) for row, error in found.errors.items()} == {0: text, 2: text}


def test_a_thousand_versions_that_there_are_none_of() -> None:
    """Hostile rows may each have another version. One pass must find all their errors."""
    data = [version.to_bytes(2, "big", signed=True) + b"rest" for version in range(-500, 500)]
    found = check(OFFSET, [*data], None, False)
    assert len(found.errors) == 1_000
    assert str(found.errors[0]) == "OffsetCommitValue has no version -500: its versions are 0 to 4"


# -- no column, no schema ---------------------------------------------------------------------------


@pytest.mark.parametrize(("data", "kind"), [([b"\0\1"], "list"), (b"\0\1", "bytes"), (np.array([b"\0\1"]), "ndarray")])
def test_what_is_no_arrow_array(data: Any, kind: str) -> None:
    with pytest.raises(TypeError, match=f"^a column of encoded messages must be an Arrow array, not {kind}$"):
        decode_column(OFFSET, data)


def test_what_is_no_schema() -> None:
    schema: Any = "OffsetCommitValue"
    with pytest.raises(TypeError) as failure:
        decode_column(schema, binary([b""]))
    assert str(failure.value) == (
        "expected the schema of a message, such as those in kafka_records.schemas, not 'OffsetCommitValue'"
    )


# -- no binary column -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([1, 2]), "int64"),
        (pa.array([], pa.float64()), "double"),
        (pa.array([[b"x"]]), "list<item: binary>"),
        (pa.array([{"a": b"x"}]), "struct<a: binary>"),
        (pa.array([b"x"]).dictionary_encode(), "dictionary<values=binary, indices=int32, ordered=0>"),
        (pa.chunked_array([pa.array([True])]), "bool"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_columns_that_are_not_binary(column: Any, kind: str) -> None:
    with pytest.raises(TypeError) as caught:
        decode_column(OFFSET, column)
    assert str(caught.value) == f"a column of encoded messages must be binary, not {kind}"


# -- messages without fields ------------------------------------------------------------------------


def test_a_message_of_one_version_with_nothing_in_it() -> None:
    """A struct without members still has a length."""
    empty = registry.message_class("ApiVersionsRequest").CODEC.schema
    assert empty.versions is not None
    with counted_walks() as walked:
        found = check(empty, [b"", None, b"left", b""], 0, False)
    assert walked == []
    assert found.bytes_left.tolist() == [0, 0, 4, 0]
    assert found.values.null_count == 1


def test_good_and_broken_rows_in_turn() -> None:
    """Rows that only the schema walker reads come back in their places."""
    random = Random(4)
    data = [good_row(random, MESSAGE, place % 5) for place in range(100)]
    data = [broken_row(random, MESSAGE, place % 5, row) if place % 3 else row for place, row in enumerate(data)]
    found = check(MESSAGE, data, [place % 5 for place in range(100)], True)
    assert len(found.errors) > 20
    assert_sound(found.values, arrow_type(MESSAGE, unknown_tags=True))
