"""Logs in other places: URLs, file system objects, patterns."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.fs as arrow
import pytest

from kafka_records_engine.findings import Finding
from kafka_records_engine.log.files.opened import ReplacedFile
from kafka_records_engine.log.files.paths import located, places_of, without_secrets
from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.log.reading.segment_files import RAW_SCHEMA, find_logs, open_log, read_partition
from kafka_records_engine.sources.segment_files import Segments
from tests.log.logs import CAPTURES, TOPICS, commit, lines, write_log

SEGMENTS = TOPICS / "kafka-4.3" / "segments"
FILE = f"{0:020}.log"


def rows_of(source: Any, **options: Any) -> dict[tuple[str, int], tuple[pa.Table, list[str], int]]:
    """Of each log partition its raw rows, what was found, and its size."""
    read = {}
    for log in find_logs([source], **options):
        found: list[Finding] = []
        batches = read_partition(log, on_finding=found.append)
        read[log.topic, log.partition] = (
            pa.Table.from_batches(batches, RAW_SCHEMA),
            [each.what for each in found],
            log.size,
        )
    return read


def refusal(source: Any, **options: Any) -> str:
    with pytest.raises(LogSourceError) as caught:
        find_logs([source], **options)
    return str(caught.value)


def memory(name: str) -> Any:
    """A file system in memory with the captured segments, which only this process sees."""
    system = fsspec.filesystem("memory")
    arrow.copy_files(
        str(SEGMENTS), f"/{name}", arrow.LocalFileSystem(), arrow.PyFileSystem(arrow.FSSpecHandler(system))
    )
    return system


# -- the same rows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("capture", CAPTURES)
def test_file_urls(capture: str) -> None:
    directory = TOPICS / capture / "segments"
    expected = rows_of(directory)
    assert rows_of(f"file://{directory}") == expected
    assert rows_of(f"file:{directory}") == expected
    assert rows_of(directory.name, filesystem=arrow.SubTreeFileSystem(str(directory.parent), arrow.LocalFileSystem()))
    assert rows_of(directory, filesystem=arrow.LocalFileSystem()) == expected


def test_file_systems_that_are_objects() -> None:
    expected = rows_of(SEGMENTS)
    mock = arrow._MockFileSystem()
    arrow.copy_files(str(SEGMENTS), "data", arrow.LocalFileSystem(), mock)
    assert rows_of("data", filesystem=mock) == expected
    assert rows_of("/here", filesystem=memory("here")) == expected
    local = arrow.PyFileSystem(arrow.FSSpecHandler(fsspec.filesystem("file", auto_mkdir=False)))
    assert rows_of(str(SEGMENTS), filesystem=local) == expected
    log = find_logs([SEGMENTS], filesystem=local)[0]
    assert pickle.loads(pickle.dumps(log)) == log


def test_local_files_stay_local() -> None:
    """An open file of this machine remains readable after its deletion, with any file object."""
    for system in (arrow.LocalFileSystem(), arrow.SubTreeFileSystem("/", arrow.LocalFileSystem())):
        log, *_ = find_logs([SEGMENTS], filesystem=system)
        assert log == find_logs([SEGMENTS])[0]


def test_only_this_process_sees_what_is_in_its_memory() -> None:
    partition, *_ = Segments("/mine", filesystem=memory("mine")).partitions("__consumer_offsets")
    assert partition.in_memory
    partition, *_ = Segments(SEGMENTS).partitions("__consumer_offsets")
    assert not partition.in_memory


def test_names_in_urls(tmp_path: Path) -> None:
    odd = tmp_path / "a b%[x]?c"
    write_log(odd, {0: commit(0)}, "t-0")
    assert [log.topic for log in find_logs([odd])] == ["t"]
    (log,) = find_logs([f"file://{tmp_path}/a%20b%25%5Bx%5D%3Fc"])
    assert log.folder == str(odd / "t-0")


# -- patterns ----------------------------------------------------------------------------------------------------------


def test_patterns(tmp_path: Path) -> None:
    for number, disk in enumerate(("a", "b", ".hidden")):
        write_log(tmp_path / disk, {0: commit(0)}, f"t-{number}")
        write_log(tmp_path / disk, {0: commit(0)}, f"u-{number}")
    (tmp_path / "a" / "meta.properties").write_text("version=1")
    (tmp_path / "a" / "t-9").mkdir()

    def found(pattern: str) -> list[str]:
        return [f"{log.topic}-{log.partition}" for log in find_logs([f"{tmp_path}/{pattern}"])]

    assert found("*/t-*") == ["t-0", "t-1"]
    assert found("*") == found("[ab]") == ["t-0", "t-1", "u-0", "u-1"]
    assert found(".*/u-?") == ["u-2"]
    assert found("**/u-[01]") == ["u-0", "u-1"]
    assert found(f"a/t-0/{FILE[:-5]}*") == ["t-0"]
    assert [f"{log.topic}" for log in find_logs([f"file://{tmp_path}/*/t-1"])] == ["t"]


def test_a_pattern_leaves_out_replicas_that_were_put_away(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commit(0)}, "t-0")
    for number, end in enumerate(("delete", "future", "stray")):
        write_log(tmp_path, {0: commit(0)}, f"t-{number + 1}")
        (tmp_path / f"t-{number + 1}").rename(tmp_path / f"t-{number + 1}.{'0' * 32}-{end}")
    assert [log.partition for log in find_logs([f"{tmp_path}/t-*"], topic="t")] == [0]


def test_a_name_that_exists_is_no_pattern(tmp_path: Path) -> None:
    write_log(tmp_path / "[ab]", {0: commit(0)}, "t-0")
    write_log(tmp_path / "a", {0: commit(0)}, "t-1")
    assert [log.partition for log in find_logs([f"{tmp_path}/[ab]"])] == [0]


def test_patterns_that_match_nothing(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commit(0)}, "t-0")
    (tmp_path / "t-1").mkdir()
    assert refusal(f"{tmp_path}/u-*") == f"{tmp_path}/u-*: nothing matches this pattern"
    assert refusal(f"{tmp_path}/none/*") == f"{tmp_path}/none/*: nothing matches this pattern"
    assert refusal(f"{tmp_path}/t-1*") == f"{tmp_path}/t-1*: 1 name match this pattern, but none contains a log"


def test_places_for_others(tmp_path: Path) -> None:
    for name in ("b.parquet", "a.parquet"):
        (tmp_path / name).write_bytes(b"")
    places = places_of(f"{tmp_path}/*.parquet")
    assert [place.name for place in places] == ["a.parquet", "b.parquet"]
    system, path = places[0].for_arrow()
    assert (system.type_name, path) == ("local", f"{tmp_path}/a.parquet")
    (place,) = places_of("x/y", arrow._MockFileSystem())
    assert (place.for_arrow()[0].type_name, place.for_arrow()[1]) == ("mock", "x/y")
    assert places_of(place) == [place]


# -- what is refused, and without secrets ------------------------------------------------------------------------------


def test_urls_that_cannot_be_used() -> None:
    assert refusal("ftp://host/x") == (
        "ftp://host/x: pyarrow has no file system ftp:// (only file, s3, gs, abfs and hdfs); fsspec may have one: in "
        'Python Segments(path, filesystem=fsspec.filesystem("ftp"))'
    )
    assert refusal("s3://bucket/x?region=eu-west-1&nonsense=1") == "s3://bucket/x: s3:// has no setting nonsense"
    assert refusal("s3://bucket/x?anonymous=true&nonsense=1") == "s3://bucket/x: s3:// has no setting nonsense"
    assert refusal("file://host/x") == "file://host/x: a file URL must not name a host: write file:///path"
    with pytest.raises(TypeError, match=r"^a file system must be one of pyarrow\.fs or fsspec, not str$"):
        find_logs(["x"], filesystem="s3")


def test_a_scheme_that_pyarrow_was_built_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def from_uri(url: str) -> Any:
        raise pa.ArrowNotImplementedError("Got GCS URI but Arrow compiled without GCS support")

    monkeypatch.setattr("pyarrow.fs.FileSystem", type("FileSystem", (), {"from_uri": staticmethod(from_uri)}))
    assert refusal("gs://bucket/x") == (
        "gs://bucket/x: this pyarrow was built without gs://: install one from PyPI or conda-forge"
    )


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3://AKIA123:s%2Fcret@bucket/a?region=x", "s3://bucket/a"),
        ("s3://AKIA123:se cret@bucket/a", "s3://bucket/a"),
        ("abfs://container:pass@account.dfs.core.windows.net/a", "abfs://container@account.dfs.core.windows.net/a"),
        ("hdfs://user@host:8020/a?kerb_ticket=/tmp/krb5cc", "hdfs://user@host:8020/a"),
        ("/a/b?c", "/a/b?c"),
    ],
)
def test_what_messages_call_a_url(url: str, shown: str) -> None:
    assert without_secrets(url) == shown
    assert Segments(url).name == shown
    assert Segments([url, "/x"]).name == f"{shown}, /x"


def test_a_bad_url_keeps_its_secret() -> None:
    assert refusal("s3://AKIA123:se cret@bucket/a") == (
        "s3://bucket/a: this URL cannot be read: encode special characters of keys and passwords (/ is %2F, + "
        "is %2B)"
    )
    place = located("s3://AKIA123:TopSecret9@bucket/a?scheme=http&endpoint_override=127.0.0.1:1&region=us-east-1")
    assert "TopSecret9" not in f"{place!r} {place} {place.child('x')!r}"
    assert str(place.child("x")) == "s3://bucket/a/x"


# -- replaced while it is read -----------------------------------------------------------------------------------------


def test_a_file_that_is_replaced_is_noticed(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: commit(0) * 40_000, 40_000: commit(40_000)}, "t-0")
    system = arrow.PyFileSystem(arrow.FSSpecHandler(fsspec.filesystem("file")))
    (log,) = find_logs([tmp_path], filesystem=system)
    with open_log(log) as opened:
        file = opened.segments[0].file
        assert file is not None
        assert file.read(300_000) == (tmp_path / "t-0" / FILE).read_bytes()[:300_000]
        (tmp_path / "new").write_bytes(b"\0" * file.size)
        os.utime(tmp_path / "new", ns=(0, 12345))
        (tmp_path / "new").rename(tmp_path / "t-0" / FILE)
        with pytest.raises(ReplacedFile):
            file.read(300_000)
    found: list[Any] = []
    (log,) = find_logs([tmp_path], filesystem=system)
    with open_log(log) as opened:
        os.utime(tmp_path / "t-0" / FILE, ns=(0, 99))
        assert [batch.num_rows for batch in read_partition(opened, on_finding=found.append)] == [1]
    assert lines(found, tmp_path)[0] == (
        f"t-0/{FILE}: cannot be read: it was replaced while it was read; try again ({40_000 * len(commit(0))} bytes "
        "not read)"
    )


def test_local_places_need_no_file_systems_of_arrow() -> None:
    """A command that reads files of this machine does not import Arrow's file systems."""
    import subprocess

    program = (
        "import sys; from kafka_records_engine.log.files.discovery import find_logs; "
        f"find_logs([{str(SEGMENTS)!r}]); print('pyarrow.fs' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_place_is_what_it_was_given(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commit(0)}, "t-0")
    place = located(str(tmp_path))
    assert isinstance(place, Place)
    assert rows_of(place) == rows_of(tmp_path)
    assert [entry.name for entry in place.listed()] == ["t-0"]
    assert place.child("t-0").child(FILE).read_bytes() == commit(0)
    assert (place.kind, place.child("none").kind) == ("folder", None)
