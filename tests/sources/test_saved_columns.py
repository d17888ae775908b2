"""How columns of saved rows are recognised: names, encodings, types, and what the message is if they are not."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources._saved.texts import Undecided, decoded, encoding_of
from kafka_records_engine.sources.arrow_rows import ArrowRows
from kafka_records_engine.sources.protocol import Context
from kafka_records_engine.sources.saved_rows import SavedRows
from tests.log.logs import CAPTURES
from tests.sources.saved_files import (
    captured,
    in_base64,
    in_hex,
    segments,
    simple_rows,
    table_of,
    tables_of,
    write_csv,
    write_lines,
)

KEYS = [b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00%c" % at for at in range(8)]
VALUES = [b"\x00\x03\x00\x00\x00\x00\x00\x00\x00%c" % at for at in range(7)] + [None]


def written(rows: list[dict[str, Any]], path: Path) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def notes(source: SavedRows, topic: str = "t") -> list[str]:
    _, context = table_of(source.partitions(topic)[0])
    return [finding.what for finding in context.findings]


# -- shapes ------------------------------------------------------------------------------------------------------------


def test_what_sparks_kafka_source_saves(tmp_path: Path) -> None:
    times = [1_700_000_000_000 + at for at in range(8)]
    rows = {
        "key": pa.array(KEYS, pa.binary()),
        "value": pa.array(VALUES, pa.binary()),
        "topic": pa.array(["t"] * 8),
        "partition": pa.array([3] * 8, pa.int32()),
        "offset": pa.array(range(8), pa.int64()),
        "timestamp": pa.array([1000 * time for time in times], pa.timestamp("us", "UTC")),
        "timestampType": pa.array([0, 1] * 4, pa.int32()),
    }
    pq.write_table(pa.table(rows), tmp_path / "part-0.snappy.parquet")
    found = tables_of(SavedRows(tmp_path))[("t", 3)]
    assert found["key"].to_pylist() == KEYS
    assert found["value"].to_pylist() == VALUES
    assert found["timestamp_ms"].to_pylist() == times
    assert found["timestamp_type"].to_pylist() == ["create", "log_append"] * 4
    assert found["transaction"].null_count == found["producer_id"].null_count == 8
    assert notes(SavedRows(tmp_path)) == [
        "column timestamp is used as timestamp_ms; column timestampType is used as timestamp_type"
    ]


def test_what_kcat_prints(tmp_path: Path) -> None:
    """`kcat -J` writes keys and values as they are: bytes that are not UTF-8 too."""
    value = bytes(byte for byte in range(256) if byte not in b'"\\' and byte >= 32)
    line = b'{"topic":"t","partition":0,"offset":%d,"tstype":"create","ts":1700000000000,"broker":1,"headers":["a"],'
    line += b'"key":"\\u0000\\u0001k","payload":%b}\n'
    path = tmp_path / "kcat.json"
    path.write_bytes(line % (0, b'"' + value + b'"') + line % (1, b"null"))
    source = SavedRows(path)
    found, _ = table_of(source.partitions("t")[0])
    assert found["key"].to_pylist() == [b"\0\1k"] * 2
    assert found["value"].to_pylist() == [value, None]
    assert found["timestamp_ms"].to_pylist() == [1_700_000_000_000] * 2
    assert found["timestamp_type"].to_pylist() == ["create"] * 2
    assert notes(source) == [
        "column ts is used as timestamp_ms; column tstype is used as timestamp_type; column key is used as key, bytes "
        "as they are in the text; column payload is used as value, bytes as they are in the text"
    ]


def test_what_dump_prints(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    from kafka_records_tables import read_table
    from kafka_records_tables.commands.main import main

    assert main(["dump", str(segments(CAPTURES[0])), "--bytes"]) == 0
    path = tmp_path / "dump.jsonl"
    path.write_bytes(capsysbinary.readouterr().out)
    for table in ("current_offsets", "groups", "transactions"):
        expected = read_table(table, segments(CAPTURES[0])).table
        assert read_table(table, path).table.equals(expected)


def test_what_sink_connectors_write(tmp_path: Path) -> None:
    """Rows without topic and partition, in files called for them; in folders of Kafka Connect's own layout too."""
    rows = [
        {"key": base64.b64encode(key).decode(), "value": None, "offset": at, "timestamp": "2026-01-31T12:00:00.5Z"}
        for at, key in enumerate(KEYS)
    ]
    written(rows, tmp_path / "t-2-0.json")
    source = SavedRows(tmp_path)
    found, _ = table_of(source.partitions("t")[0])
    assert found["partition"].to_pylist() == [2] * 8
    assert found["timestamp_ms"].to_pylist() == [1_769_860_800_500] * 8
    assert notes(source) == [
        "column timestamp is used as timestamp_ms; column key is used as key, base64; names of files are taken for "
        "topic; names of files are taken for partition"
    ]
    folder = tmp_path / "topics" / "u" / "partition=4"
    folder.mkdir(parents=True)
    written(rows, folder / "u+4+0000000000.json")
    assert [(log.topic, log.partition) for log in SavedRows(tmp_path / "topics").partitions("u")] == [("u", 4)]


def test_names_of_folders_tell_topic_and_partition_only(tmp_path: Path) -> None:
    folder = tmp_path / "topic=t" / "partition=3" / "ts=20260101" / "producer_id=7"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"offset": [0], "key": [b"k"], "value": [b"v"]}), folder / "rows.parquet")
    source = SavedRows(tmp_path)
    (log,) = source.partitions("t")
    assert log.partition == 3
    found = pa.Table.from_batches(log.batches(Context("t", 3), ["offset", "timestamp_ms", "producer_id"]))
    assert found.to_pylist() == [{"offset": 0, "timestamp_ms": None, "producer_id": None}]
    assert notes(source) == ["names of folders are taken for topic; names of folders are taken for partition"]


def test_csv_without_names(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    lines = [f"CreateTime:1700000000000\tPartition:3\tOffset:{at}\t{key.hex()}\t\n" for at, key in enumerate(KEYS)]
    path.write_text("".join(lines))
    with pytest.raises(LogSourceError, match="there are no columns for partition, offset, key, value, but 1 "):
        SavedRows(path, topic="t").topics()
    columns = {"partition": "2", "offset": "3", "key": "4", "value": "5", "timestamp_ms": "1", "timestamp_type": None}
    source = SavedRows(path, topic="t", columns=columns)
    found, _ = table_of(source.partitions("t")[0])
    assert found["partition"].to_pylist() == [3] * 8
    assert found["offset"].to_pylist() == list(range(8))
    assert found["key"].to_pylist() == KEYS
    assert found["value"].null_count == 8
    assert found["timestamp_ms"].to_pylist() == [1_700_000_000_000] * 8


def test_members_of_columns(tmp_path: Path) -> None:
    for name, write in (("rows.jsonl", None), ("rows.parquet", pq.write_table)):
        rows = [{"meta": {"p": 1, "o": at}, "record": {"k": key.hex(), "v": key.hex()}} for at, key in enumerate(KEYS)]
        if write is None:
            written(rows, tmp_path / name)
        else:
            write(pa.Table.from_pylist(rows), tmp_path / name)
        columns = {"partition": "meta.p", "offset": "meta.o", "key": "record.k", "value": "record.v"}
        found, _ = table_of(SavedRows(tmp_path / name, "t", columns).partitions("t")[0])
        assert found["key"].to_pylist() == KEYS
        assert found["offset"].to_pylist() == list(range(8))


def test_texts_are_read_as_somebody_says(tmp_path: Path) -> None:
    for encode, encoding in ((in_hex, "hex"), (in_base64, "base64")):
        path = write_csv(encode(captured()), tmp_path / f"{encoding}.csv")
        for asked in (encoding, {"key": encoding}, None):
            assert pa.concat_tables(tables_of(SavedRows(path, encoding=asked)).values()).equals(captured())


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_columns_of_other_types(kind: pa.DataType, tmp_path: Path) -> None:
    rows = in_hex(simple_rows(list(range(20))))
    rows = rows.set_column(3, "key", rows["key"].cast(kind))
    rows = rows.set_column(2, "offset", rows["offset"].cast(pa.uint64()))
    pq.write_table(rows, tmp_path / "rows.parquet")
    found, _ = table_of(SavedRows(tmp_path).partitions("t")[0])
    assert found["key"].to_pylist() == [b"k%d" % at for at in range(20)]
    assert found["offset"].to_pylist() == list(range(20))


# -- what is said ------------------------------------------------------------------------------------------------------


def said(source: SavedRows) -> str:
    with pytest.raises(LogSourceError) as raised:
        source.topics()
    return raised.value.detail


def test_columns_that_are_missing(tmp_path: Path) -> None:
    rows = simple_rows([0, 1])
    pq.write_table(rows.drop_columns(["key"]), tmp_path / "rows.parquet")
    assert said(SavedRows(tmp_path)) == (
        "there is no column for key, but topic (string), partition (int32), offset (int64), value (binary), "
        'transaction (string), control (string); choose it with columns={"key": "NAME"}, '
        "--saved-column key=NAME, or the option 'savedColumns' in Spark"
    )
    pq.write_table(rows.drop_columns(["partition"]), tmp_path / "rows.parquet")
    assert said(SavedRows(tmp_path)).endswith(", or put the file into a folder partition=N")
    pq.write_table(rows.drop_columns(["topic"]), tmp_path / "rows.parquet")
    assert said(SavedRows(tmp_path)) == (
        "no column has the topic of the rows: set it with topic=…, --topic or, in Spark, the option 'topic'"
    )
    assert SavedRows(tmp_path, topic="mine").topics() == ["mine"]


@pytest.mark.parametrize(
    ("columns", "detail"),
    [
        ({"value": "valu"}, "there is no column valu to use for value; did you mean value?"),
        ({"value": "offset"}, "the column offset is of type int64; value takes bytes or text"),
        ({"offset": "control"}, "row 1: control ('commit') is of type string and cannot be offset, which is int64: "),
    ],
)
def test_columns_that_cannot_be_taken(columns: dict[str, str | None], detail: str, tmp_path: Path) -> None:
    rows = simple_rows([0, 1]).set_column(6, "control", pa.array(["commit", "abort"]))
    pq.write_table(rows, tmp_path / "rows.parquet")
    assert said(SavedRows(tmp_path, columns=columns)).startswith(detail)


def test_several_columns_that_may_be_meant(tmp_path: Path) -> None:
    rows = simple_rows([0, 1]).rename_columns(["topic", "partition", "offset", "key", "Pay_Load", "payload", "control"])
    rows = rows.set_column(5, "payload", pa.array([b"a", b"b"]))
    pq.write_table(rows, tmp_path / "rows.parquet")
    assert said(SavedRows(tmp_path)) == (
        "the columns Pay_Load, payload could all be value: choose one with "
        'columns={"value": "Pay_Load"}, '
        "--saved-column value=Pay_Load, or the option 'savedColumns' in Spark"
    )
    assert table_of(SavedRows(tmp_path, columns={"value": "payload"}).partitions("t")[0])[0]["value"].to_pylist() == [
        b"a",
        b"b",
    ]


def test_files_of_different_kinds(tmp_path: Path) -> None:
    rows = simple_rows([0, 1])
    pq.write_table(rows, tmp_path / "a.parquet")
    pq.write_table(rows.drop_columns(["control"]), tmp_path / "b.parquet")
    assert said(SavedRows(tmp_path)) == (
        f"there is no control, but in {tmp_path / 'a.parquet'} control is used as control: read files of one kind at "
        'a time, or choose the column with columns={"control": "…"}, '
        "--saved-column control=…, or the option 'savedColumns' in Spark"
    )
    assert SavedRows(tmp_path, columns={"control": None}).topics() == ["t"]


@pytest.mark.parametrize("name", ["partition", "offset", "topic"])
def test_rows_without_a_place(name: str, tmp_path: Path) -> None:
    rows = simple_rows([0, 1, 2])
    column = rows[name].to_pylist()
    column[1] = None
    at = rows.schema.get_field_index(name)
    pq.write_table(rows.set_column(at, name, pa.array(column, rows.schema.field(at).type)), tmp_path / "rows.parquet")
    assert said(SavedRows(tmp_path)).startswith(f"row 2 has no {name}: ")


def test_texts_that_nobody_can_tell(tmp_path: Path) -> None:
    row = {"topic": "t", "partition": 0, "offset": 0, "key": "00010001", "value": "ab"}
    path = written([row], tmp_path / "rows.jsonl")
    assert said(SavedRows(path)) == (
        "the texts of the column key, taken for key, could be base64 or hex: there are too few values to tell; set "
        'how they encode bytes with encoding="base64", "hex" or "text" (--saved-encoding; savedEncoding in Spark)'
    )
    assert table_of(SavedRows(path, encoding="hex").partitions("t")[0])[0]["key"].to_pylist() == [b"\0\1\0\1"]
    lost = written([{**row, "key": "\0\1\ufffd"}], tmp_path / "rows.jsonl")
    assert "U+FFFD, which decoders write in place of invalid bytes: the original bytes are lost" in said(
        SavedRows(lost)
    )


def test_one_text_that_is_wrong_is_damage_with_its_row(tmp_path: Path) -> None:
    rows = in_base64(simple_rows(list(range(100))))
    texts = rows["value"].to_pylist()
    texts[41] = "not base64!"
    path = write_lines(rows.set_column(4, "value", pa.array(texts)), tmp_path / "rows.jsonl")
    (log,) = SavedRows(path, encoding="base64").partitions("t")
    found, context = table_of(log)
    assert found["offset"].to_pylist() == [*range(41), *range(42, 100)]
    (finding,) = context.findings
    assert str(finding) == f"{path}: record at offset 41: row 42: value is not base64 (the record is left out)"
    assert (finding.severity, finding.records, context.log.holes) == ("damage", 1, [40])
    assert not table_of(log, 0, 41)[1].findings


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ('{"topic":"t","partition":0,"offset":0,"key":null,"value":null}\n{"topic"', "line 2 is not JSON: "),
        ('[{"topic":"t"},\n{"topic":"u"}]', "line 1 is not JSON: "),
        (
            '[{"topic":"t"}]',
            "line 1 is not a JSON object: each row is one object on a line; jq -c '.[]' makes lines of",
        ),
        ("{\n  1\n}", "line 1 is not JSON: "),
    ],
)
def test_json_that_is_no_lines(text: str, detail: str, tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(text)
    assert said(SavedRows(tmp_path / "rows.json")).startswith(detail)


def test_json_that_breaks_behind_the_first_lines(tmp_path: Path) -> None:
    row = {"topic": "t", "partition": 0, "key": "AAE=", "value": None}
    lines = [json.dumps({**row, "offset": at}) for at in range(5000)]
    for bad, detail in (
        ('{"topic":"t","partition":', "line 4322 is not JSON: "),
        (json.dumps({**row, "offset": "x"}), "the column offset of line 4322 is string, and int64 in earlier lines"),
    ):
        (tmp_path / "rows.json").write_text("\n".join([*lines[:4321], bad, *lines[4321:]]))
        assert said(SavedRows(tmp_path / "rows.json", encoding="base64")).startswith(detail)


def test_csv_with_a_line_that_is_too_short(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("topic,partition,offset,key,value\nt,0,0,00,00\nt,0,1\n")
    assert "Row #3: Expected 5 columns, got 3" in said(SavedRows(path, encoding="hex"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: SavedRows("x", columns={"valeu": "a"}),
        lambda: SavedRows("x", encoding="base32"),
        lambda: SavedRows("x", encoding={"offset": "hex"}),
        lambda: SavedRows("x", format="excel"),
    ],
)
def test_arguments_that_make_no_sense(make: Callable[[], SavedRows]) -> None:
    with pytest.raises(ValueError, match=r"valeu|base32|offset|excel"):
        make()


# -- texts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "encoding", "made"),
    [
        (["AAE=", "", None, "AA==", "AAEC"], "base64", [b"\0\1", b"", None, b"\0", b"\0\1\2"]),
        (["-_8", "+/8", "AA"], "base64", [b"\xfb\xff", b"\xfb\xff", b"\0"]),
        (["0001", "fF", None, ""], "hex", [b"\0\1", b"\xff", None, b""]),
        (["\\x0001", "0xff"], "hex", [b"\0\1", b"\xff"]),
        (["AAE=", "A", "A===", "AA=A", "=", "AA\n=", "é"], "base64", [b"\0\1", *[None] * 6]),
        (["00", "0", "0g", "é"], "hex", [b"\0", *[None] * 3]),
        (["é", "\0", None], "text", ["é".encode(), b"\0", None]),
    ],
)
def test_texts_hold_bytes(texts: list[str | None], encoding: Any, made: list[bytes | None]) -> None:
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
        array = pa.array(["x" * 7, *texts]).cast(kind).slice(1)
        found = decoded(array, encoding)
        assert found.array.to_pylist() == made
        wrong = [text is not None and value is None for text, value in zip(texts, made, strict=True)]
        assert ([False] * len(wrong) if found.wrong is None else found.wrong.tolist()) == wrong


def test_random_bytes_come_back() -> None:
    import random

    chance = random.Random(3)
    values = [None if chance.random() < 0.1 else chance.randbytes(chance.randrange(40)) for _ in range(2000)]
    for encoding, encode in (
        ("base64", lambda value: base64.b64encode(value).decode()),
        ("base64", lambda value: base64.urlsafe_b64encode(value).decode().rstrip("=")),
        ("hex", bytes.hex),
    ):
        array = pa.array([None if value is None else encode(value) for value in values])
        assert encoding_of([array]) == encoding
        found = decoded(array, encoding)
        assert (found.array.to_pylist(), found.wrong) == (values, None)


def test_short_texts_are_not_decided() -> None:
    assert encoding_of([pa.array([None, ""], pa.string())]) is None
    assert encoding_of([pa.array([f"0001000{digit}" for digit in "abcdef"])]) == "hex"
    assert encoding_of([pa.array(["AAEAAA=="])]) == "base64"
    assert encoding_of([pa.array(["\\x0001"])]) == "hex"
    assert encoding_of([pa.array(["ab cd"])]) == "text"
    for texts in (["0001000a"], ["0001000a"] * 100):
        with pytest.raises(Undecided):
            encoding_of([pa.array(texts)])


# -- what control says -------------------------------------------------------------------------------------------------

MARKER_KEYS = [b"key", b"\0\0\0\0", b"\0\0\0\1", b"key"]


def with_controls(controls: pa.Array, keys: list[bytes] | None = None) -> pa.Table:
    rows = simple_rows(list(range(len(controls))))
    rows = rows.set_column(3, "key", pa.array(keys or MARKER_KEYS[: len(controls)], pa.binary()))
    return rows.set_column(rows.column_names.index("control"), "control", controls)


@pytest.mark.parametrize(
    ("controls", "read"),
    [
        (pa.array([False, True, True, None]), [None, "abort", "commit", None]),
        (pa.array(["", "abort", "commit", "false"]), [None, "abort", "commit", None]),
        (pa.array(["False", "abort", None, ""]).dictionary_encode(), [None, "abort", None, None]),
        (pa.array([None] * 4, pa.null()), [None] * 4),
    ],
)
def test_control_that_is_no_word_is_a_record(controls: pa.Array, read: list[str | None], tmp_path: Path) -> None:
    rows = with_controls(controls)
    pq.write_table(rows, tmp_path / "rows.parquet")
    lines = write_lines(in_hex(rows), tmp_path / "rows.jsonl")
    for source in (SavedRows(tmp_path / "rows.parquet"), SavedRows(lines, encoding="hex"), ArrowRows(rows)):
        (log,) = source.partitions("t")
        assert table_of(log)[0]["control"].to_pylist() == read
        (batch,) = log.batches(Context("t", 0), ["offset", "control"])
        assert batch.column("control").to_pylist() == read


def test_booleans_in_csv_are_read_from_keys(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("topic,partition,offset,key,value,control\nt,0,0,6b,76,False\nt,0,1,00000001,00,True\nt,0,2,6b,,\n")
    (log,) = SavedRows(path, encoding="hex").partitions("t")
    assert table_of(log)[0]["control"].to_pylist() == [None, "commit", None]


@pytest.mark.parametrize(
    ("controls", "keys", "detail"),
    [
        (
            pa.array([None, "marker"]),
            None,
            "control is 'marker': it must be one of commit, abort, leader_change, snapshot_header, snapshot_footer, "
            "kraft_version, kraft_voters, true for any marker, and nothing for records",
        ),
        (
            pa.array([False, True]),
            [b"", b"\0\0\0\7"],
            "control is true, but the key does not show which marker it is: write commit or abort",
        ),
        (
            pa.array([False, True]),
            [b"", b"\0"],
            "control is true, but the key does not show which marker it is: write commit or abort",
        ),
    ],
)
def test_control_that_says_nothing_known(
    controls: pa.Array, keys: list[bytes] | None, detail: str, tmp_path: Path
) -> None:
    rows = with_controls(controls, keys)
    pq.write_table(rows, tmp_path / "rows.parquet")
    (log,) = SavedRows(tmp_path / "rows.parquet").partitions("t")
    with pytest.raises(LogSourceError) as refused:
        table_of(log)
    assert (refused.value.path, refused.value.detail) == (str(tmp_path / "rows.parquet"), f"row 2: {detail}")
    with pytest.raises(ValueError, match=rf"^row 2: {detail}$"):
        ArrowRows(rows)


@pytest.mark.parametrize(("column", "place"), [("partition", 1), ("offset", 2)])
def test_places_below_zero_are_refused(column: str, place: int, tmp_path: Path) -> None:
    rows = simple_rows([0, 1])
    kind = rows.schema.field(column).type
    pq.write_table(rows.set_column(place, column, pa.array([0, -1], kind)), tmp_path / "rows.parquet")
    source = SavedRows(tmp_path)
    assert said(source) == f"row 2 has the {column} -1, but {column}s start at 0"
