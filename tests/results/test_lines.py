"""Tables as JSON, CSV and Parquet: exact texts, and rows of every type that come back."""

from __future__ import annotations

import csv
import io
import json
from base64 import b64encode
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_records_runtime.text.json_text import json_text
from kafka_records_tables.results.csv_lines import write_csv
from kafka_records_tables.results.json_lines import write_json
from kafka_records_tables.results.parquet_file import write_parquet

LARGEST_MILLISECONDS = 253402300799999


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def as_json(table: pa.Table, out: io.StringIO | None = None) -> str:
    out = io.StringIO(newline="") if out is None else out
    write_json(table.to_batches(), out)
    return out.getvalue()


def as_csv(table: pa.Table, out: io.StringIO | None = None) -> str:
    out = io.StringIO(newline="") if out is None else out
    write_csv(table.to_batches(), table.schema, out)
    return out.getvalue()


PLAIN = pa.table(
    {
        "name": ["plain", "", 'quoted "text", with a comma', "two\r\nlines", "\x1b[31mred\u202e"],
        "number": pa.array([1, -20, None, 3, 4], pa.int32()),
        "extra": [None, "", "back\\slash", "größe ✓ 🚚", " x"],
    }
)


def test_json_is_one_object_per_line_as_kafka_prints_it() -> None:
    assert as_json(PLAIN) == (
        '{"name":"plain","number":1,"extra":null}\n'
        '{"name":"","number":-20,"extra":""}\n'
        '{"name":"quoted \\"text\\", with a comma","number":null,"extra":"back\\\\slash"}\n'
        '{"name":"two\\r\\nlines","number":3,"extra":"größe ✓ 🚚"}\n'
        '{"name":"\\u001B[31mred\u202e","number":4,"extra":" x"}\n'
    )


def test_csv_is_that_of_rfc_4180_and_tells_null_from_nothing() -> None:
    assert as_csv(PLAIN) == (
        "name,number,extra\r\n"
        "plain,1,\r\n"
        '"",-20,""\r\n'
        '"quoted ""text"", with a comma",,back\\slash\r\n'
        '"two\r\nlines",3,größe ✓ 🚚\r\n'
        '\x1b[31mred\u202e,4," x"\r\n'
    )
    read = [*csv.reader(io.StringIO(as_csv(PLAIN), newline=""))]
    assert [row[0] for row in read] == ["name", *PLAIN.column("name").to_pylist()]


def test_on_a_terminal_nothing_is_sent_that_is_not_printable() -> None:
    shown = as_json(PLAIN, Terminal(newline=""))
    assert all(line.isprintable() for line in shown.split("\n"))
    assert [json.loads(line) for line in shown.split("\n")[:-1]] == PLAIN.to_pylist()
    shown = as_csv(PLAIN, Terminal(newline=""))
    assert all(line.isprintable() for line in shown.split("\r\n"))
    assert '"two\\r\\nlines",3,größe ✓ 🚚\r\n\\x1b[31mred\\u202e,4," x"\r\n' in shown


def test_no_rows() -> None:
    none = PLAIN.slice(0, 0)
    assert as_json(none) == ""
    assert as_csv(none) == "name,number,extra\r\n"


def test_values_of_every_type() -> None:
    table = pa.table(
        {
            "milliseconds": pa.array([LARGEST_MILLISECONDS, -62135596800000], pa.timestamp("ms", "UTC")),
            "beyond": pa.array([LARGEST_MILLISECONDS + 1, -62135596800001], pa.timestamp("ms", "UTC")),
            "microseconds": pa.array([1700000000123000, -1], pa.timestamp("us", "Europe/Berlin")),
            "seconds": pa.array([0, None], pa.timestamp("s")),
            "nanoseconds": pa.array([1, 5_000_000], pa.timestamp("ns")),
            "raw": [b"\x00\xff", b""],
            "fixed": pa.array([b"ab", None], pa.binary(2)),
            "day": [date(2026, 11, 21), None],
            "price": [Decimal("1.50"), None],
            "flag": [True, False],
            "half": [0.5, None],
            "none": pa.nulls(2),
            "coded": pa.array(["a", None]).dictionary_encode(),
        }
    )
    first, second = map(json.loads, as_json(table).splitlines())
    assert first == {
        "milliseconds": "9999-12-31T23:59:59.999Z",
        "beyond": None,
        "microseconds": "2023-11-14T22:13:20.123Z",
        "seconds": "1970-01-01T00:00:00.000Z",
        "nanoseconds": "1970-01-01T00:00:00.000000001Z",
        "raw": "AP8=",
        "fixed": "YWI=",
        "day": "2026-11-21",
        "price": "1.50",
        "flag": True,
        "half": 0.5,
        "none": None,
        "coded": "a",
    }
    assert second == {
        **dict.fromkeys(first),
        "milliseconds": "0001-01-01T00:00:00.000Z",
        "microseconds": "1969-12-31T23:59:59.999999Z",
        "nanoseconds": "1970-01-01T00:00:00.005Z",
        "raw": "",
        "flag": False,
    }
    assert as_csv(table).splitlines()[1] == (
        "9999-12-31T23:59:59.999Z,,2023-11-14T22:13:20.123Z,1970-01-01T00:00:00.000Z,1970-01-01T00:00:00.000000001Z,"
        "AP8=,YWI=,2026-11-21,1.50,true,0.5,,a"
    )


def test_structures_are_json_in_csv() -> None:
    table = pa.table({"tree": [{"a": [1, None], "b": 'x"'}, None, {"a": None, "b": ""}]})
    assert as_csv(table) == 'tree\r\n"{""a"":[1,null],""b"":""x\\""""}"\r\n\r\n"{""a"":null,""b"":""""}"\r\n'


TYPES = pa.schema(
    [
        ("text", pa.string()),
        ("number", pa.int64()),
        ("raw", pa.binary()),
        ("list", pa.list_(pa.string())),
        ("pairs", pa.list_(pa.int32(), 2)),
        ("lists", pa.large_list(pa.list_(pa.struct([("a", pa.large_string()), ("b", pa.bool_())])))),
        ("map", pa.map_(pa.string(), pa.list_(pa.int64()))),
        ("struct", pa.struct([("a", pa.struct([("b", pa.binary())])), ("c", pa.map_(pa.string(), pa.string()))])),
    ]
)

_text = st.text(max_size=6)
_number = st.integers(-(2**63), 2**63 - 1)


def _maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


rows_of_types = st.lists(
    st.fixed_dictionaries(
        {
            "text": _maybe(_text),
            "number": _maybe(_number),
            "raw": _maybe(st.binary(max_size=5)),
            "list": _maybe(st.lists(_maybe(_text), max_size=3)),
            "pairs": _maybe(st.lists(_maybe(st.integers(0, 9)), min_size=2, max_size=2)),
            "lists": _maybe(
                st.lists(
                    _maybe(
                        st.lists(
                            _maybe(st.fixed_dictionaries({"a": _maybe(_text), "b": _maybe(st.booleans())})), max_size=2
                        )
                    ),
                    max_size=2,
                )
            ),
            "map": _maybe(st.dictionaries(_text, _maybe(st.lists(_maybe(_number), max_size=2)), max_size=2)),
            "struct": _maybe(
                st.fixed_dictionaries(
                    {
                        "a": _maybe(st.fixed_dictionaries({"b": _maybe(st.binary(max_size=3))})),
                        "c": _maybe(st.dictionaries(_text, _maybe(_text), max_size=2)),
                    }
                )
            ),
        }
    ),
    max_size=6,
)


@given(rows_of_types, st.integers(0, 3))
def test_json_of_any_rows_is_that_of_each_value(rows: list[dict[str, Any]], start: int) -> None:
    columns = {field.name: pa.array([row[field.name] for row in rows], field.type) for field in TYPES}
    table = pa.table(columns, TYPES).slice(start)
    kind = pa.struct(list(TYPES))
    assert as_json(table) == "".join(f"{json_text(_plain(row, kind))}\n" for row in rows[start:])


def _plain(value: Any, kind: pa.DataType) -> Any:
    """The value with bytes as base64 and the fields of structs in their order."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return {name: _plain(item, kind.item_type) for name, item in value.items()}
    if pa.types.is_nested(kind):
        return [_plain(item, kind.value_type) for item in value]
    return b64encode(value).decode() if isinstance(value, bytes) else value


@given(st.lists(_maybe(_text), min_size=1), st.integers(0, 3))
def test_csv_of_any_text_is_read_back(texts: list[str | None], start: int) -> None:
    table = pa.table({"a": pa.array(texts, pa.string()), "b": ["end"] * len(texts)}).slice(start)
    read = [*csv.reader(io.StringIO(as_csv(table), newline=""))]
    assert read == [["a", "b"], *([text or "", "end"] for text in texts[start:])]


def test_large_rows_are_written_a_few_at_a_time(tmp_path: Path) -> None:
    table = pa.table({"text": ["x" * 1_000_000 + "\n"] * 40, "row": range(40)})
    with (tmp_path / "rows.json").open("w", encoding="utf-8", newline="") as out:
        write_json(table.to_batches(), out)
    lines = (tmp_path / "rows.json").read_text().splitlines()
    assert [json.loads(line)["row"] for line in lines] == [*range(40)]


# -- Parquet -----------------------------------------------------------------------------------------------------------


def test_parquet_has_types_and_comments(tmp_path: Path) -> None:
    times = pa.field("times", pa.timestamp("us", "UTC"), metadata={"comment": "when"})
    schema = pa.schema([times, ("map", pa.map_(pa.string(), pa.int64()))], metadata={"about": "a table"})
    batch = pa.record_batch([pa.array([1, None], times.type), pa.array([{"a": 1}, None], schema.field(1).type)], schema)
    write_parquet([batch] * 1000, schema, tmp_path / "table.parquet")
    read = pq.read_table(tmp_path / "table.parquet")
    assert read.schema.field("times").metadata[b"comment"] == b"when"
    assert read.schema.metadata[b"about"] == b"a table"
    assert read.to_pylist() == batch.to_pylist() * 1000
    assert pq.ParquetFile(tmp_path / "table.parquet").num_row_groups == 1


@pytest.mark.parametrize("batches", [[], [PLAIN.slice(0, 0).combine_chunks().to_batches()]])
def test_a_parquet_file_without_rows_has_the_columns(tmp_path: Path, batches: list[Any]) -> None:
    write_parquet([each for some in batches for each in some], PLAIN.schema, tmp_path / "none.parquet")
    assert pq.read_table(tmp_path / "none.parquet").schema.equals(PLAIN.schema)


def test_row_groups_are_written_before_the_rows_end(tmp_path: Path) -> None:
    batch = pa.record_batch({"number": pa.array(range(50_000))})
    write_parquet([batch] * 10, batch.schema, tmp_path / "table.parquet")
    file = pq.ParquetFile(tmp_path / "table.parquet")
    assert [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)] == [
        150_000,
        150_000,
        150_000,
        50_000,
    ]
