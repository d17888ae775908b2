"""What the values of saved rows mean if no option says it: encodings, units of time, words; and late columns."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources._saved.texts import TooFew, Undecided, encoding_of
from kafka_records_engine.sources.protocol import Context
from kafka_records_engine.sources.saved_rows import SavedRows
from tests.sources.saved_files import (
    captured,
    in_base64,
    in_hex,
    offsets_of,
    simple_rows,
    table_of,
    tables_of,
    write_csv,
    write_lines,
)

ROW = {"topic": "t", "partition": 0, "key": "AAEAAmdycAAFdG9waWMAAAAB", "value": "AAMAAAAAAAAAPQAAAAAAAQ=="}
TIMES = [1_700_000_000_123 + at for at in range(40)]


def said(source: SavedRows) -> str:
    with pytest.raises(LogSourceError) as raised:
        source.topics()
    return raised.value.detail


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def notes(source: SavedRows) -> list[str]:
    (log,) = source.partitions("t")
    return [finding.what for finding in table_of(log)[1].findings]


# -- columns of JSON that come late ------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_null", [True, False])
@pytest.mark.parametrize("name", ["control", "Con_Trol"])
def test_columns_that_the_first_lines_do_not_have(name: str, is_null: bool, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{**ROW, "offset": at} for at in range(3000)]
    if is_null:
        rows = [{**row, name: None} for row in rows]
    rows[2500][name] = "commit"
    path = lines(tmp_path / "rows.jsonl", rows)
    (log,) = SavedRows(path).partitions("t")
    found, context = table_of(log)
    assert [at for at, word in enumerate(found["control"].to_pylist()) if word] == [2500]
    assert context.log.holes == []  # the column says which rows are markers
    parts = SavedRows(path).parts()
    read = [
        batch.column("control").drop_null().to_pylist() for part in parts for batch in part.batches(["control"], print)
    ]
    assert [word for words in read for word in words] == ["commit"]


def test_keys_that_are_null_in_the_first_lines(tmp_path: Path) -> None:
    rows = [{**ROW, "key": None, "value": None, "offset": at} for at in range(2000)] + [{**ROW, "offset": 2000}]
    path = lines(tmp_path / "rows.jsonl", rows)
    (log,) = SavedRows(path).partitions("t")
    found, _ = table_of(log)
    assert found["key"].to_pylist()[1999:] == [None, b"\0\1\0\2grp\0\5topic\0\0\0\1"]


def test_members_that_the_first_lines_do_not_have(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"topic": "t", "partition": 0, "offset": at, "record": {"k": "00"}} for at in range(1500)
    ]
    rows[1200]["record"] = {"k": "01", "v": "ff"}
    rows[1300]["other"] = {"topic": "u", "control": "commit"}  # a member of something else is no column
    path = lines(tmp_path / "rows.jsonl", rows)
    (log,) = SavedRows(path, columns={"key": "record.k", "value": "record.v"}, encoding="hex").partitions("t")
    found, context = table_of(log)
    assert found["value"].to_pylist()[1199:1202] == [None, b"\xff", None]
    assert found["control"].null_count == 1500
    assert context.log.holes == [1499]  # there is nothing about markers


def test_late_columns_behind_bytes_that_are_no_text(tmp_path: Path) -> None:
    line = b'{"topic":"t","partition":0,"offset":%d,"key":"\\u0000\xff\xfe\xe9","payload":null}\n'
    late = b'{"topic":"t","partition":0,"offset":1500,"key":"\xc3","payload":"\xfa\\u0000","control":"abort"}\n'
    (tmp_path / "kcat.json").write_bytes(b"".join(line % at for at in range(1500)) + late)
    (log,) = SavedRows(tmp_path / "kcat.json").partitions("t")
    found, _ = table_of(log)
    assert found.slice(1499)["control"].to_pylist() == [None, "abort"]
    assert found.slice(1499)["value"].to_pylist() == [None, b"\xfa\0"]


def test_a_file_is_searched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka_records_engine.sources._saved import saved_json

    path = lines(tmp_path / "rows.jsonl", [{**ROW, "offset": at} for at in range(3)])
    searched = []
    real = saved_json.late_names

    def counted(fields: dict[str, Any], asked: list[str]) -> str:
        searched.append(fields)
        return real(fields, asked)

    monkeypatch.setattr(saved_json, "late_names", counted)
    source = SavedRows(path)
    assert source.topics() == ["t"]
    (log,) = source.partitions("t")
    assert offsets_of(table_of(log)[0]) == [0, 1, 2]
    assert len(searched) == 1


def test_more_files_than_may_be_open(tmp_path: Path) -> None:
    for at in range(60):
        pq.write_table(simple_rows([at]), tmp_path / f"{at}.parquet")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_open = max(map(int, (each.name for each in Path("/proc/self/fd").iterdir())))
    resource.setrlimit(resource.RLIMIT_NOFILE, (is_open + 20, hard))
    try:
        (log,) = SavedRows(tmp_path).partitions("t")
        found = table_of(log)[0]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert offsets_of(found) == list(range(60))


# -- rows that cannot be used ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.parquet"])
def test_a_partition_whose_rows_are_all_unreadable_is_damage(name: str, tmp_path: Path) -> None:
    bad = in_hex(simple_rows([5, 6], partition=1))
    bad = bad.set_column(3, "key", pa.array(["no hex", "none either"]))
    rows = pa.concat_tables([in_hex(simple_rows([0, 1])), bad])
    path = tmp_path / name
    if name.endswith("jsonl"):
        write_lines(rows, path)
    else:
        pq.write_table(rows, path)
    logs = SavedRows(path, encoding="hex").partitions("t")
    assert [log.partition for log in logs] == [0, 1]
    found, context = table_of(logs[1])
    assert found.num_rows == 0
    assert [str(finding) for finding in context.findings] == [
        f"{path}: record at offset {offset}: row {row}: key is not hex (the record is left out)"
        for offset, row in ((5, 3), (6, 4))
    ]
    assert context.log.holes == [4, 5]
    assert not table_of(logs[0])[1].findings


# -- encodings ---------------------------------------------------------------------------------------------------------


def test_files_of_a_folder_may_differ_in_their_encoding(tmp_path: Path) -> None:
    half = captured().num_rows // 2
    write_lines(in_base64(captured().slice(0, half)), tmp_path / "a.jsonl")
    write_csv(in_hex(captured().slice(half)), tmp_path / "b.csv")
    pq.write_table(captured().slice(0, 3), tmp_path / "c.parquet")
    found = pa.concat_tables(tables_of(SavedRows(tmp_path)).values())
    assert found.equals(captured())


def test_a_file_of_few_texts_is_as_the_others_are(tmp_path: Path) -> None:
    write_lines(in_hex(simple_rows(list(range(40)))), tmp_path / "a.jsonl")
    rows = {"topic": "t", "partition": 0, "offset": 40, "key": "6b3430", "value": "7634"}
    lines(tmp_path / "b.jsonl", [{**rows, "transaction": "none", "control": None}])
    (log,) = SavedRows(tmp_path).partitions("t")
    assert table_of(log)[0]["key"].to_pylist()[-1] == b"k40"
    write_lines(in_base64(simple_rows(list(range(41, 80)))), tmp_path / "c.jsonl")
    assert said(SavedRows(tmp_path)).startswith("the texts of the column key, taken for key, could be base64 or hex")


@pytest.mark.parametrize("encode", [in_hex, in_base64])
@pytest.mark.parametrize("bad", ["not one of them!", "zzzz", "AAE"])
def test_a_text_that_is_none_of_the_others_does_not_decide(encode: Any, bad: str, tmp_path: Path) -> None:
    rows = encode(simple_rows(list(range(100))))
    texts = rows["value"].to_pylist()
    texts[0] = bad
    path = write_lines(rows.set_column(4, "value", pa.array(texts)), tmp_path / "rows.jsonl")
    (log,) = SavedRows(path).partitions("t")
    found, context = table_of(log)
    is_damage = encode is in_hex or bad == "not one of them!"
    assert offsets_of(found) == list(range(is_damage, 100))
    assert found["value"].to_pylist()[-99:] == [b"v%d" % at for at in range(1, 100)]
    assert [each.severity for each in context.findings].count("damage") == is_damage


def test_texts_of_which_some_are_of_an_encoding_are_not_decided() -> None:
    hexes = [b"value number %d" % at for at in range(8)]
    with pytest.raises(Undecided, match="are hex in 8 of 10 that were examined"):
        encoding_of([pa.array([*(each.hex() for each in hexes), "?", "!"])])
    with pytest.raises(TooFew):
        encoding_of([pa.array(["00", "01"])])
    assert encoding_of([pa.array(["plain words", "and more of them", "\0\1"])]) == "text"


def test_texts_behind_rows_without_any_are_looked_at(tmp_path: Path) -> None:
    rows = [{**ROW, "offset": at, "value": None} for at in range(70_000)]
    rows[-1]["value"] = "AAMAAAAAAAAAPQAAAAAAAQ=="
    lines(tmp_path / "rows.jsonl", rows)
    (log,) = SavedRows(tmp_path / "rows.jsonl").partitions("t")
    *_, last = log.batches(Context("t", 0), ["offset", "value"])
    assert last.column("value")[-1].as_py() == bytes.fromhex("0003000000000000003d000000000001")


# -- units of time -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "read", "unit"),
    [
        (TIMES, TIMES, ""),
        ([each // 1000 for each in TIMES], [each // 1000 * 1000 for each in TIMES], ", seconds since 1970"),
        ([each * 1000 + 7 for each in TIMES], TIMES, ", microseconds since 1970"),
        ([each * 1_000_000 for each in TIMES], TIMES, ", nanoseconds since 1970"),
        ([-1, 0, 1_700_000_000], [-1, 0, 1_700_000_000_000], ", seconds since 1970"),
        ([-1, 0, 1000], [-1, 0, 1000], ""),
        ([1_700_000_000.5, None, -1.0], [1_700_000_000_500, None, -1], ", seconds since 1970"),
        (["1700000000", "1700000001"], [1_700_000_000_000, 1_700_000_001_000], ", seconds since 1970"),
        (["1700000000.25"], [1_700_000_000_250], ", seconds since 1970"),
        (["CreateTime:1700000000123"], [1_700_000_000_123], ""),
        (["2026-01-31T12:00:00.5Z", None], [1_769_860_800_500, None], ""),
    ],
)
def test_units_of_times_are_told_by_their_size(times: list[Any], read: list[Any], unit: str, tmp_path: Path) -> None:
    rows = simple_rows(list(range(len(times)))).append_column("ts", pa.array(times))
    pq.write_table(rows, tmp_path / "rows.parquet")
    write_csv(in_hex(rows), tmp_path / "rows.csv")
    for source in (SavedRows(tmp_path / "rows.parquet"), SavedRows(tmp_path / "rows.csv", encoding="hex")):
        (log,) = source.partitions("t")
        assert table_of(log)[0]["timestamp_ms"].to_pylist() == read
        assert notes(source) == [f"column ts is used as timestamp_ms{unit}"]


def test_units_of_times_may_be_said(tmp_path: Path) -> None:
    seconds = simple_rows([0, 1]).append_column("ts", pa.array([1_700_000_000, 1_700_000_000_000]))
    pq.write_table(seconds, tmp_path / "rows.parquet")
    assert said(SavedRows(tmp_path)) == (
        "the numbers of the column ts, used as timestamp_ms, look like times since 1970 in s and ms; set their "
        'unit with time_unit="s", "ms", "us" or "ns" (--saved-time-unit; savedTimeUnit in Spark)'
    )
    (log,) = SavedRows(tmp_path, time_unit="ms").partitions("t")
    assert table_of(log)[0]["timestamp_ms"].to_pylist() == [1_700_000_000, 1_700_000_000_000]
    named = seconds.rename_columns({"ts": "timestamp_ms"})
    pq.write_table(named, tmp_path / "rows.parquet")
    assert notes(SavedRows(tmp_path)) == []  # the name tells
    with pytest.raises(ValueError, match="time_unit must be one of s, ms, us, ns, not 'min'"):
        SavedRows(tmp_path, time_unit="min")


def test_times_that_are_too_large_are_refused(tmp_path: Path) -> None:
    rows = simple_rows([0, 1]).append_column("ts", pa.array([0, 1 << 62]))
    pq.write_table(rows, tmp_path / "rows.parquet")
    (log,) = SavedRows(tmp_path, time_unit="s").partitions("t")
    with pytest.raises(LogSourceError, match=r"row 2: ts \(4611686018427387904\) is of type int64 and cannot be"):
        table_of(log)


# -- words -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "read"),
    [
        ([True, False, None], ["pending", "none", None]),
        (["True", "false", ""], ["pending", "none", None]),
        (["committed", "aborted", "pending"], ["committed", "aborted", "pending"]),
        (["open", "unknown", "none"], ["open", "unknown", "none"]),
    ],
)
def test_transactions_in_words(words: list[Any], read: list[str | None], tmp_path: Path) -> None:
    rows = simple_rows([0, 1, 2]).set_column(5, "transaction", pa.array(words))
    pq.write_table(rows, tmp_path / "rows.parquet")
    write_lines(in_hex(rows), tmp_path / "rows.jsonl")
    for source in (SavedRows(tmp_path / "rows.parquet"), SavedRows(tmp_path / "rows.jsonl", encoding="hex")):
        (log,) = source.partitions("t")
        assert table_of(log)[0]["transaction"].to_pylist() == read


def test_other_words_for_transactions_are_refused(tmp_path: Path) -> None:
    rows = simple_rows([0, 1, 2]).set_column(5, "transaction", pa.array(["none", "COMMIT", None]))
    words = "none, committed, aborted, open, unknown, pending, true or false"
    detail = f"row 2: transaction is 'COMMIT': it must be one of {words}"
    path = write_lines(in_hex(rows), tmp_path / "rows.jsonl")
    with pytest.raises(LogSourceError) as raised:
        SavedRows(path, encoding="hex").topics()
    assert (raised.value.path, raised.value.detail) == (str(path), detail)
    pq.write_table(rows.set_column(5, "transaction", pa.array([0, 1, 1])), tmp_path / "rows.parquet")
    (log,) = SavedRows(tmp_path / "rows.parquet").partitions("t")
    with pytest.raises(LogSourceError, match="row 1: transaction is '0': it must be one of none"):
        table_of(log)
