"""Arrow files and streams, read by our own reader: the same rows as with Arrow, and refusals of files with which Arrow
would crash."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from struct import pack, pack_into
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather
import pytest

from kafka_records_engine.log.files.paths import located
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.sources._saved.arrow_layout import UNREAD
from kafka_records_engine.sources._saved.saved_arrow import arrow_reader
from kafka_records_engine.sources.saved_rows import SavedRows
from tests.sources.saved_files import simple_rows, table_of, tables_of

pytestmark = pytest.mark.filterwarnings("ignore:Feather V1:DeprecationWarning")


def every_type() -> pa.Table:
    """A column of every type that is read, with nulls, and some columns that are skipped."""
    when = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
    texts, some_bytes = ["a", None, "é" * 20], [b"a", None, b"\0\xff" * 20]
    columns: dict[str, Any] = {f"{kind}": pa.array([1, None, 3], kind) for kind in _NUMBERS}
    columns |= {f"{kind}": pa.array(texts, kind) for kind in (pa.string(), pa.large_string(), pa.string_view())}
    columns |= {f"{kind}": pa.array(some_bytes, kind) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())}
    columns |= {f"{kind}": pa.array([when, None, when], kind) for kind in _TIMES}
    key = pa.array(some_bytes, pa.binary())
    columns |= {
        "bool": pa.array([True, None, False]),
        "fixed": pa.array([b"abc", None, b"def"], pa.binary(3)),
        "decimal": pa.array([Decimal("1.5"), None, Decimal("3")], pa.decimal128(20, 2)),
        "date": pa.array([when.date(), None, when.date()]),
        "none": pa.nulls(3),
        "encoded": pa.array(texts).dictionary_encode(),
        "list": pa.array([["a"], None, []]),
        "map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int32())),
        "record": pa.StructArray.from_arrays([key, pa.array([[1], None, []])], ["key", "list"]),
        "union": pa.UnionArray.from_sparse(pa.array([0, 0, 0], pa.int8()), [pa.array([1, 2, 3])]),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([3], pa.int32()), pa.array(["a"])),
        "list view": pa.array([["a"], None, []], pa.list_view(pa.string())),
        "last": pa.array(["x", "y", "z"]),
    }
    return pa.table(columns)


_NUMBERS = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float32(), pa.float64()),
)
_TIMES = (pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("us", "Europe/Berlin"), pa.timestamp("ns"))
_NOT_READ = ("list", "map", "union", "runs", "list view")


def written(rows: pa.Table, path: Path, codec: str | None = None, legacy: bool = False) -> Path:
    options = pa.ipc.IpcWriteOptions(compression=codec, use_legacy_format=legacy)
    make = pa.ipc.new_file if path.suffix == ".arrow" else pa.ipc.new_stream
    with make(path, rows.schema, options=options) as writer:
        writer.write_table(rows, 2)
    return path


def plain(array: Any) -> list[Any]:
    """The values, of texts and bytes alike as bytes."""
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    array = array.cast(kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        array = array.cast(pa.large_string()).cast(pa.large_binary())
    values: list[Any] = array.to_pylist()
    return values


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
@pytest.mark.parametrize("ending", [".arrow", ".arrows"])
def test_every_type_is_read_as_arrow_reads_it(ending: str, codec: str | None, legacy: bool, tmp_path: Path) -> None:
    rows = every_type()
    reader = arrow_reader(located(str(written(rows, tmp_path / f"rows{ending}", codec, legacy))))
    for name, kind in reader.fields.items():
        if name in _NOT_READ:
            assert kind is UNREAD
            continue
        expected = rows.schema.field(name).type
        assert kind == (pa.struct([("key", pa.binary())]) if name == "record" else expected), name
        found = pa.chunked_array([batch.column(name) for _, batch in reader.batches([name])])
        truth = rows[name] if name != "record" else pc.struct_field(rows[name], "key")
        assert plain(found if name != "record" else pc.struct_field(found, "key")) == plain(truth), name
    names = ["last", "int64"]
    assert [(first, batch.to_pydict()) for first, batch in reader.batches(names)] == [
        (0, {"last": [b"x", b"y"], "int64": [1, None]}),
        (2, {"last": [b"z"], "int64": [3]}),
    ]
    with pytest.raises(pa.ArrowInvalid, match=r"^the column 'list' has a type that is not supported$"):
        list(reader.batches(["list"]))


def test_dictionaries_that_grow_and_are_replaced_in_a_stream(tmp_path: Path) -> None:
    schema = pa.schema([("key", pa.dictionary(pa.int32(), pa.string()))])
    for deltas in (True, False):
        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)
        with pa.ipc.new_stream(tmp_path / "rows.arrows", schema, options=options) as writer:
            for values in (["a"], ["a", "b"], ["a", "b", "c"]):
                array = pa.DictionaryArray.from_arrays(pa.array([len(values) - 1], pa.int32()), values)
                writer.write_batch(pa.record_batch([array], schema=schema))
        reader = arrow_reader(located(str(tmp_path / "rows.arrows")))
        assert [plain(batch.column(0)) for _, batch in reader.batches(["key"])] == [[b"a"], [b"b"], [b"c"]]


def test_a_struct_of_a_member_that_is_not_read_gives_key_and_value(tmp_path: Path) -> None:
    rows = simple_rows([0, 1])
    headers = pa.array([[{"name": "h"}], None])
    members = [rows["key"].combine_chunks(), headers, rows["value"].combine_chunks()]
    record = pa.StructArray.from_arrays(members, ["key", "headers", "value"])
    path = written(rows.drop_columns(["key", "value"]).append_column("record", record), tmp_path / "rows.arrow")
    source = SavedRows(path, columns={"key": "record.key", "value": "record.value"})
    assert tables_of(source)["t", 0]["value"].to_pylist() == [b"v0", b"v1"]


def test_a_batch_that_is_damaged_leaves_the_others(tmp_path: Path) -> None:
    path = written(simple_rows([*range(6)]), tmp_path / "rows.arrow")
    data = bytearray(path.read_bytes())
    at = data.rindex(pack("<iii", 0, 2, 4), 0, data.index(b"k0k1"))
    pack_into("<i", data, at + 4, 1 << 30)
    path.write_bytes(data)
    (log,) = SavedRows(path).partitions("t")
    rows, context = table_of(log)
    assert rows["offset"].to_pylist() == [2, 3, 4, 5]
    (finding,) = context.findings
    assert str(finding).endswith(
        "part 1, with offsets 0 to 1, cannot be read: Offset invariant failure: offset for slot 1 out of bounds: "
        "1073741824 > 12 (its other records are left out)"
    )


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_feather_of_version_1_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "rows.feather"
    pa.feather.write_feather(pa.table({"key": ["a"]}), path, version=1)
    with pytest.raises(
        LogSourceError, match=r"this is a file in Feather format 1, .*: rewrite it with pyarrow\.feather\."
    ):
        arrow_reader(located(str(path)))


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    rows = simple_rows([0]).append_column("key", pa.array([b"other"]))
    with pytest.raises(LogSourceError, match="two columns are called 'key'"):
        tables_of(SavedRows(written(rows, tmp_path / "rows.arrows")))


def test_a_compressed_buffer_that_claims_too_much_is_refused(tmp_path: Path) -> None:
    """pyarrow would return the memory after the bytes that there are."""
    path = written(simple_rows([*range(500)]), tmp_path / "rows.arrows", "zstd")
    data = bytearray(path.read_bytes())
    at = data.index((500 // 250 * 8).to_bytes(8, "little") + b"\x28\xb5\x2f\xfd")
    pack_into("<q", data, at, 1 << 45)
    path.write_bytes(data)
    with pytest.raises(LogSourceError, match=r"a compressed buffer does not contain the 35184372088832 bytes"):
        tables_of(SavedRows(path))


def test_a_stream_that_claims_metadata_of_gigabytes_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "rows.arrows"
    path.write_bytes(pack("<II", 0xFFFFFFFF, 0xFFFFFFF0) + bytes(100))
    with pytest.raises(pa.ArrowInvalid, match=r"^the file ends in the middle of a message: it was truncated$"):
        arrow_reader(located(str(path)))
