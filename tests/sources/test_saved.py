"""Saved rows as a source: every format has the rows and tables of the segments from which it was saved."""

from __future__ import annotations

import gzip
import os
import pickle
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources._saved import ordering
from kafka_records_engine.sources.given import source_of
from kafka_records_engine.sources.protocol import Context
from kafka_records_engine.sources.saved_rows import SavedRows
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_runtime.text.installing import install_command
from kafka_records_tables import Results, read_table, read_tables
from kafka_records_tables.engines.raw_outcomes import raw_rows_of
from tests.log.logs import CAPTURES
from tests.sources import saved_files
from tests.sources.saved_files import FORMATS, captured, offsets_of, shuffled, simple_rows, table_of, tables_of
from tests.tables.names import CAPTURED

pytestmark = pytest.mark.slow

CONSUMER_OFFSETS = "__consumer_offsets"
SAVED_BY_SPARK = Path(__file__).parents[1] / "data" / "saved" / "spark-kafka-source.parquet"


# -- what must hold ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("name", FORMATS)
def test_raw_rows_are_those_of_the_segments(name: str, capture: str, tmp_path: Path) -> None:
    truth = tables_of(Segments(saved_files.segments(capture)))
    path = FORMATS[name](shuffled(captured(capture)), tmp_path)
    found = tables_of(source_of(path))
    assert found.keys() == truth.keys()
    for place, rows in truth.items():
        assert found[place].equals(rows), place


@pytest.fixture(scope="module")
def answers() -> Results:
    """The tables of a captured topic, read from its segments."""
    return read_tables(
        [table for capture, table in CAPTURED if capture == CAPTURES[0]], saved_files.segments(CAPTURES[0])
    )


@pytest.mark.parametrize("name", FORMATS)
def test_tables_are_those_of_the_segments(name: str, tmp_path: Path, answers: Results) -> None:
    found = read_tables(list(answers), FORMATS[name](shuffled(captured()), tmp_path))
    for table, expected in answers.items():
        assert found[table].table.equals(expected.table), table
        assert [each for each in found[table].findings if each.severity == "damage"] == []
        counts = found[table].counts
        assert (counts.records, counts.markers) == (expected.counts.records, expected.counts.markers), table


@pytest.mark.parametrize("name", ["Parquet", "CSV, hex"])
def test_other_processes_read_the_same(name: str, tmp_path: Path) -> None:
    path = FORMATS[name](shuffled(captured()), tmp_path)
    expected = read_table("current_offsets", path, processes=1).table
    assert read_table("current_offsets", path, processes=2).table.equals(expected)


@pytest.mark.parametrize("name", FORMATS)
def test_ranges_have_the_rows_of_the_whole_that_lie_in_them(name: str, tmp_path: Path) -> None:
    path = FORMATS[name](shuffled(captured()), tmp_path)
    chance = random.Random(1)
    for log in SavedRows(path).partitions(CONSUMER_OFFSETS):
        whole, _ = table_of(log)
        for _ in range(4):
            start, end = sorted(chance.randrange(offsets_of(whole)[-1] + 3) for _ in range(2))
            rows, context = table_of(log, start, end)
            wanted = [start <= offset < end for offset in offsets_of(whole)]
            assert rows.equals(whole.filter(pa.array(wanted)).combine_chunks())
            assert context.log.holes == ([end - 1] if end <= offsets_of(whole)[-1] else [])


# -- order -------------------------------------------------------------------------------------------------------------


def test_files_of_one_log_follow_one_another(tmp_path: Path) -> None:
    for number, offsets in enumerate([[10, 11, 12], [0, 1, 2], [7, 5, 6], [3, 4]]):
        pq.write_table(simple_rows(offsets), tmp_path / f"{number}.parquet")
    (log,) = SavedRows(tmp_path).partitions("t")
    batches = [batch.column("offset").to_pylist() for batch in log.batches(table_of(log)[1], ["offset", "key"])]
    assert batches == [[0, 1, 2], [3, 4], [5, 6, 7], [10, 11, 12]]


def test_groups_that_lie_apart_are_not_in_memory_together(tmp_path: Path) -> None:
    rows = pa.concat_tables([simple_rows(list(range(at, at + 1000))) for at in (3000, 0, 2000, 1000)])
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=1000)
    (log,) = SavedRows(tmp_path).partitions("t")
    found = [batch.num_rows for batch in log.batches(table_of(log)[1], ["offset"])]
    assert found == [1000] * 4
    assert offsets_of(table_of(log)[0]) == list(range(4000))


def test_each_offset_comes_once(tmp_path: Path) -> None:
    pq.write_table(simple_rows([0, 1, 2, 5]), tmp_path / "a.parquet")
    pq.write_table(simple_rows([2, 3, 5, 6, 6]), tmp_path / "b.parquet")
    (log,) = SavedRows(tmp_path).partitions("t")
    rows, context = table_of(log)
    assert offsets_of(rows) == [0, 1, 2, 3, 5, 6]
    assert not context.findings


def test_rows_in_order_are_cut_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of 65 536 rows may have more bytes than an Arrow column can hold."""
    monkeypatch.setattr(ordering, "_BYTES", 1000)
    rows = simple_rows([*range(50, 100), *range(50)])
    differing: list[int] = []
    made = list(ordering.in_order(iter(rows.to_batches()), differing.append))
    assert differing == []
    assert [offset for batch in made for offset in batch.column("offset").to_pylist()] == list(range(100))
    assert max(batch.nbytes for batch in made) <= 1000
    assert {batch.schema.field("value").type for batch in made} == {pa.binary()}


def test_two_logs_in_one_are_damage(tmp_path: Path) -> None:
    pq.write_table(simple_rows([0, 1]), tmp_path / "a.parquet")
    other = simple_rows([1, 2]).set_column(4, "value", pa.array([b"other", b"v2"]))
    pq.write_table(other, tmp_path / "b.parquet")
    (log,) = SavedRows(tmp_path).partitions("t")
    rows, context = table_of(log)
    assert rows["value"].to_pylist() == [b"v0", b"v1", b"v2"]
    (finding,) = context.findings
    assert str(finding) == (
        "t-0: record at offset 1: two different records have this offset (the first one found is used; read "
        "the rows of one log at a time)"
    )


def test_statistics_say_which_partitions_a_file_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for partition in range(4):
        pq.write_table(simple_rows([0, 1], partition), tmp_path / f"{partition}.parquet")
    from kafka_records_engine.sources._saved.saved_parquet import ParquetReader

    def refuse(*arguments: object) -> None:
        raise AssertionError("read although the statistics tell")

    with monkeypatch.context() as patched:
        patched.setattr(ParquetReader, "batches", refuse)
        logs = SavedRows(tmp_path).partitions("t")
    assert [log.partition for log in logs] == [0, 1, 2, 3]
    assert [len(log.files) for log in logs] == [1, 1, 1, 1]
    assert offsets_of(table_of(logs[2])[0]) == [0, 1]


def test_rows_that_are_mixed_are_put_in_order_once(tmp_path: Path) -> None:
    rows = pa.concat_tables([simple_rows([at], at % 8) for at in range(400)])
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=100)
    logs = SavedRows(tmp_path).partitions("t")
    kept = logs[0].kept
    assert kept is not None
    assert kept.is_there
    assert [offsets_of(table_of(log)[0]) for log in logs] == [list(range(part, 400, 8)) for part in range(8)]
    # A process that does not see the temporary file reads the files.
    elsewhere = pickle.loads(pickle.dumps(logs[3]))
    folder = Path(kept.file.place.path).parent
    del logs, kept
    assert not folder.exists()
    assert offsets_of(table_of(elsewhere)[0]) == list(range(3, 400, 8))
    assert SavedRows(tmp_path, spools=False).partitions("t")[0].kept is None


def test_files_that_change_are_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(simple_rows([0, 1]), path)
    source = SavedRows(tmp_path)
    assert offsets_of(table_of(source.partitions("t")[0])[0]) == [0, 1]
    pq.write_table(simple_rows([0, 1, 2]), path)
    os.utime(path, ns=(1, 1))
    assert offsets_of(table_of(source.partitions("t")[0])[0]) == [0, 1, 2]


# -- what cannot be read -----------------------------------------------------------------------------------------------


def test_a_damaged_page_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    rows = pa.concat_tables([simple_rows(list(range(at, at + 50))) for at in (0, 50, 100)])
    pq.write_table(rows, path, row_group_size=50, compression="none", write_page_checksum=True, use_dictionary=False)
    data = bytearray(path.read_bytes())
    at = data.index(b"v77")
    data[at : at + 3] = b"xxx"
    path.write_bytes(data)
    (log,) = SavedRows(path).partitions("t")
    found, context = table_of(log)
    assert offsets_of(found) == [*range(50), *range(100, 150)]
    (finding,) = context.findings
    assert (finding.severity, finding.records, finding.file) == ("damage", 50, str(path))
    assert "part 2, with offsets 50 to 99, cannot be read: " in str(finding)
    assert context.log.holes == [49]


@pytest.mark.parametrize("shape", ["sorted", "backwards", "overlapping"])
def test_a_page_that_is_lost_hides_the_outcome_of_what_was_read_before(shape: str, tmp_path: Path) -> None:
    """A group is returned in parts of 65 536 rows, so some records come before the lost part, and their marker is in
    it."""
    count, lost_from = 150_000, 131_072
    rows = simple_rows(list(range(count)))
    rows = rows.set_column(5, "transaction", pa.array(["pending"] * count))
    marker = simple_rows([count]).set_column(6, "control", pa.array(["commit"]))
    for name, value in (("producer_id", 7), ("base_offset", 0)):
        rows = rows.append_column(name, pa.array([value] * count, pa.int64()))
        marker = marker.append_column(name, pa.array([value], pa.int64()))
    path = tmp_path / "a.parquet"
    if shape == "backwards":
        rows = rows.take(pa.array([1, 0, *range(2, count)]))
    options = {"compression": "none", "write_page_checksum": True, "use_dictionary": False, "data_page_size": 4096}
    with pq.ParquetWriter(path, rows.schema, **options) as writer:
        writer.write_table(rows, row_group_size=count)
        writer.write_table(marker)
    if shape == "overlapping":
        pq.write_table(rows.slice(0, 10), tmp_path / "b.parquet")
    data = bytearray(path.read_bytes())
    at = data.index(b"v140000")
    data[at : at + 3] = b"xxx"
    path.write_bytes(data)
    (log,) = SavedRows(tmp_path).partitions("t")
    context = Context("t", 0)
    found = pa.Table.from_batches(raw_rows_of(log, context)).sort_by("offset")
    assert offsets_of(found) == [*range(lost_from), count]
    assert set(found["transaction"].to_pylist()[:-1]) == {"unknown"}
    assert context.log.holes == [lost_from - 1]
    (finding,) = context.findings
    first = lost_from if shape == "sorted" else 0
    assert f", with offsets {first} to {count - 1}, cannot be read: " in str(finding)
    assert finding.records == count - lost_from


def test_raw_rows_of_what_sparks_kafka_source_writes_have_nulls_for_what_it_does_not_tell() -> None:
    """Spark wrote the file: the columns key, value, topic, partition, offset, timestamp and timestampType."""
    truth = tables_of(Segments(saved_files.segments("kafka-4.3")))
    logs = SavedRows(SAVED_BY_SPARK).partitions(CONSUMER_OFFSETS)
    assert len(logs) == 6
    for log in logs:
        found = pa.Table.from_batches(raw_rows_of(log, Context(log.topic, log.partition)))
        assert found.schema == RAW_SCHEMA
        kept = truth[log.topic, log.partition].filter(truth[log.topic, log.partition]["control"].is_null())
        told = ["topic", "partition", "offset", "timestamp_ms", "timestamp_type", "key", "value"]
        assert found.select(told).to_pylist() == kept.select(told).to_pylist()
        assert all(found[name].null_count == found.num_rows for name in RAW_SCHEMA.names if name not in told)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.parquet", b"PAR1 and nothing behind it", "this cannot be read: "),
        ("a.parquet", b"", "this cannot be read: "),
        ("a.arrow", b"ARROW1\0\0 and nothing", "this cannot be read: "),
        ("a.avro", b"Obj\x01 and nothing", "this cannot be read: "),
        (
            "a.bin",
            b"nothing known",
            "this is not one of Parquet, Arrow, Avro, JSON and CSV by its first bytes and its name",
        ),
    ],
)
def test_files_that_are_not_what_they_are_called(name: str, data: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(LogSourceError) as raised:
        SavedRows(tmp_path / name).topics()
    assert str(raised.value).startswith(f"{tmp_path / name}: {said}")


def test_compressed_lines_that_were_cut_short(tmp_path: Path) -> None:
    path = FORMATS["JSON lines, hex, gzip"](captured(), tmp_path)
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(LogSourceError) as raised:
        SavedRows(path).topics()
    assert str(raised.value) == (
        f"{path}: the compressed data ends too early: the file was truncated. Unpack what is left and read that"
    )


def test_avro_that_was_cut_short(tmp_path: Path) -> None:
    path = FORMATS["Avro"](captured(), tmp_path)
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(LogSourceError, match=r"rows\.avro: after row \d+ the data is not Avro: "):
        SavedRows(path).topics()


def test_of_several_paths_those_without_rows_are_findings(tmp_path: Path) -> None:
    path = FORMATS["Parquet"](captured(), tmp_path)
    others = [tmp_path / "gone.parquet", tmp_path / "gone-*"]
    source = source_of([str(others[0]), str(path), str(others[1])])
    assert isinstance(source, SavedRows)
    found = read_table("groups", source)
    rows = pa.table(found)
    assert rows.equals(pa.table(read_table("groups", path)))
    assert [str(each) for each in found.findings if each.severity == "damage"] == [
        f"{others[1]}: nothing matches this pattern (nothing in it is read)",
        f"{others[0]}: there is no such file or directory (nothing in it is read)",
    ]


def test_places_without_rows(tmp_path: Path) -> None:
    with pytest.raises(LogSourceError, match="gone: there is no such file or directory"):
        SavedRows(tmp_path / "gone").topics()
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "_SUCCESS").write_bytes(b"")
    with pytest.raises(LogSourceError, match="empty: there is no file with rows in this folder"):
        SavedRows(tmp_path / "empty").topics()
    (tmp_path / "empty" / "notes.txt").write_text("hello")
    with pytest.raises(LogSourceError, match=r"no file here is Parquet, Arrow, Avro, JSON or CSV: notes\.txt"):
        SavedRows(tmp_path / "empty").topics()
    (tmp_path / "ice" / "metadata").mkdir(parents=True)
    (tmp_path / "ice" / "metadata" / "v1.metadata.json").write_text("{}")
    with pytest.raises(LogSourceError, match="this is an Iceberg table"):
        SavedRows(tmp_path / "ice").topics()


def test_other_topics_and_unknown_files_are_named(tmp_path: Path) -> None:
    pq.write_table(simple_rows([0]), tmp_path / "a.parquet")
    (tmp_path / "notes.txt").write_text("hello")
    source = SavedRows(tmp_path)
    assert source.topics() == ["t"]
    with pytest.raises(LogSourceError, match="there are no rows of topic u here, only rows of t"):
        source.partitions("u")
    _, context = table_of(source.partitions("t")[0])
    assert [str(each) for each in context.findings] == [
        f"{tmp_path}: notes.txt: of no known format (not read; give their format with format=… (--saved-format; "
        "savedFormat in Spark))"
    ]


TEXT = b"12:00 the export began\n12:01 it is done\n"
NO_SEGMENTS = (TEXT, b'{"level": "info", "message": "it is done"}\n', gzip.compress(TEXT, mtime=0), b"")


@pytest.mark.parametrize("data", NO_SEGMENTS, ids=["text", "JSON", "gzip", "empty"])
@pytest.mark.parametrize("packed", [False, True])
def test_text_that_is_called_log_is_no_segment(data: bytes, packed: bool, tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    pq.write_table(simple_rows([0]), folder / "a.parquet")
    (folder / "export.log").write_bytes(data)
    given = Path(shutil.make_archive(str(tmp_path / "rows"), "zip", folder)) if packed else folder
    source = source_of(given)
    assert isinstance(source, SavedRows)
    rows, context = table_of(source.partitions("t")[0])
    assert offsets_of(rows) == [0]
    assert [each.what for each in context.findings] == ["export.log: of no known format"]


@pytest.mark.parametrize("name", [f"{0:020}.log", f"{0:020}.log.swap", "renamed.log"])
def test_a_segment_beside_saved_rows_goes_before_them(name: str, tmp_path: Path) -> None:
    pq.write_table(simple_rows([0]), tmp_path / "a.parquet")
    (captured_file,) = (saved_files.segments("kafka-4.3") / "__consumer_offsets-4").glob(f"{0:020}.log")
    shutil.copy(captured_file, tmp_path / name)
    assert isinstance(source_of(tmp_path), Segments)


def test_a_file_that_is_named_twice(tmp_path: Path) -> None:
    pq.write_table(simple_rows([0]), tmp_path / "a.parquet")
    with pytest.raises(LogSourceError, match="this file is given twice"):
        SavedRows([tmp_path, tmp_path / "a.parquet"]).topics()


def test_empty_files_hold_no_rows(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"")
    (tmp_path / "b.csv").write_bytes(b"")
    pq.write_table(simple_rows([0, 1]), tmp_path / "c.parquet")
    pq.write_table(simple_rows([]), tmp_path / "d.parquet")
    assert {place: offsets_of(rows) for place, rows in tables_of(SavedRows(tmp_path)).items()} == {("t", 0): [0, 1]}


# -- which kind --------------------------------------------------------------------------------------------------------


def test_paths_are_recognised(tmp_path: Path) -> None:
    assert isinstance(source_of(saved_files.segments(CAPTURES[0])), Segments)
    for name, write in FORMATS.items():
        folder = tmp_path / name.replace(" ", "_")
        folder.mkdir()
        path = write(captured(), folder)
        assert isinstance(source_of(path), SavedRows), name
        assert isinstance(source_of([path]), SavedRows), name
        assert isinstance(source_of(folder), SavedRows), name
    extensionless = tmp_path / "part-00000"
    extensionless.write_bytes((tmp_path / "Parquet" / "rows.parquet").read_bytes())
    assert isinstance(source_of(extensionless), SavedRows)
    assert isinstance(source_of(tmp_path / "gone"), Segments)
    (tmp_path / "none").mkdir()
    assert isinstance(source_of(tmp_path / "none"), Segments)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("partition-3.csv", "topic,partition,offset,key,value\n"),
        ("reassign.json", '{"version": 1, "partitions": []}\n'),
        ("exports/rows.json", '{"topic": "t", "partition": 0, "offset": 0, "key": null, "value": null}\n'),
        ("__consumer_offsets-0/rows.jsonl", "{}\n"),
    ],
)
@pytest.mark.parametrize("form", ["data directory", "partition folders"])
def test_segments_go_before_files_that_went_astray(name: str, text: str, form: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(saved_files.segments("kafka-4.3"), data)
    for path in [*data.glob("*checkpoint"), *data.glob("meta.properties")]:
        path.unlink()
    if form == "data directory":
        (data / "meta.properties").write_text("version=1\n")
    before = read_table("groups", data, processes=1).table
    (data / name).parent.mkdir(exist_ok=True)
    (data / name).write_text(text)

    assert isinstance(source_of(data), Segments)
    after = read_table("groups", data, processes=1)
    assert before.num_rows
    assert after.table.equals(before)
    # By name, they are read.
    assert isinstance(source_of(data / name), SavedRows)


def test_packages_that_are_missing_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    path = FORMATS["Avro"](captured(), tmp_path)
    delta = FORMATS["Delta"](captured(), tmp_path)
    monkeypatch.setitem(sys.modules, "fastavro", None)
    monkeypatch.setitem(sys.modules, "deltalake", None)
    for place, what, package, extra in (
        (path, "Avro", "fastavro", "avro"),
        (delta, "a Delta table", "deltalake", "delta"),
    ):
        with pytest.raises(LogSourceError) as raised:
            SavedRows(place).topics()
        assert raised.value.detail == f"{what} needs {package}, which is not installed: {install_command(extra)}"


# -- elsewhere ---------------------------------------------------------------------------------------------------------


def elsewhere(folder: Path) -> Any:
    """A file system in memory with the files of a folder."""
    import pyarrow.fs

    held = pyarrow.fs._MockFileSystem()  # the only file system of pyarrow that is neither local nor remote
    held.create_dir("copy")
    pyarrow.fs.copy_files(str(folder), "copy", pyarrow.fs.LocalFileSystem(), held)
    return held


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "Delta"])
def test_rows_elsewhere_are_read_as_those_here(name: str, tmp_path: Path) -> None:
    path = FORMATS[name](shuffled(captured()), tmp_path)
    here = tables_of(SavedRows(path))
    for source in (
        SavedRows(f"copy/{path.name}", filesystem=elsewhere(tmp_path)),
        source_of(path.as_uri()),
        source_of(str(tmp_path / f"{path.name[:3]}*")),
    ):
        assert isinstance(source, SavedRows)
        assert tables_of(source) == here


def test_delta_tables_elsewhere_are_refused(tmp_path: Path) -> None:
    FORMATS["Delta"](captured(), tmp_path)
    with pytest.raises(LogSourceError, match="Delta tables can be read only from local disk"):
        SavedRows("copy/saved", filesystem=elsewhere(tmp_path)).topics()


# -- in archives -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["tar", "gztar", "zip"])
@pytest.mark.parametrize("name", ["Parquet in folders", "Arrow file", "Avro", "JSON lines, hex, gzip"])
def test_rows_in_archives_are_read_as_those_in_folders(name: str, ending: str, tmp_path: Path) -> None:
    (tmp_path / "backup" / "deep").mkdir(parents=True)
    path = FORMATS[name](shuffled(captured()), tmp_path / "backup" / "deep")
    archive = shutil.make_archive(str(tmp_path / "saved"), ending, tmp_path / "backup")
    here = tables_of(SavedRows(path))
    for source in (source_of(archive), source_of(f"{archive}!/deep/{path.name}"), source_of(f"{archive}!/*/*")):
        assert isinstance(source, SavedRows)
        assert tables_of(source) == here
    log, *_ = source_of(archive).partitions(CONSUMER_OFFSETS)
    assert table_of(pickle.loads(pickle.dumps(log)))[0].equals(here[CONSUMER_OFFSETS, log.partition])


def test_an_archive_with_segments_is_one_of_segments(tmp_path: Path) -> None:
    data = tmp_path / "backup" / "var" / "data"
    shutil.copytree(saved_files.segments("kafka-4.3"), data)
    (tmp_path / "backup" / "reassign.json").write_text('{"version": 1, "partitions": []}\n')
    archive = shutil.make_archive(str(tmp_path / "saved"), "zip", tmp_path / "backup")
    source = source_of(archive)
    assert isinstance(source, Segments)
    assert source.topics()[0] == CONSUMER_OFFSETS
    assert isinstance(source_of(f"{archive}!/reassign.json"), SavedRows)
