"""Archives of data directories: they have the same rows, or a message if they cannot be read."""

from __future__ import annotations

import gc
import os
import pickle
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_engine.findings import Finding
from kafka_records_engine.log.files import _archive_bytes, _tar_archives, _zip_archives
from kafka_records_engine.log.files import _archives as archives
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.log.reading.segment_files import RAW_SCHEMA, find_logs, open_log, read_partition
from kafka_records_engine.sources.segment_files import Segments
from tests.log.archives import FORMS, TARS, archived, compressed, tar_of, tar_with
from tests.log.logs import CAPTURES, TOPICS, commit, lines
from tests.variants import one_in

GIVE = "give the data directory of a broker (log.dirs), a folder in it, or a .log file"

pytestmark = pytest.mark.slow

SEGMENTS = TOPICS / "kafka-4.3" / "segments"
FILE = f"{0:020}.log"


def rows_of(source: Any) -> dict[tuple[str, int], tuple[pa.Table, list[str], int, int]]:
    """For each log partition: its raw rows, its findings, its size and its log start."""
    read = {}
    for log in find_logs([source]):
        found: list[Finding] = []
        with open_log(log) as opened:
            batches = read_partition(opened, on_finding=found.append)
            read[log.topic, log.partition] = (
                pa.Table.from_batches(batches, RAW_SCHEMA),
                [each.what for each in found],
                log.size,
                opened.log_start,
            )
    return read


def refusal(source: Any) -> str:
    with pytest.raises(LogSourceError) as caught:
        find_logs([source])
    return str(caught.value)


def saved(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


# -- the same rows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", one_in(2, FORMS))
@pytest.mark.parametrize("capture", CAPTURES)
def test_captured_directories(tmp_path: Path, capture: str, form: str) -> None:
    directory = TOPICS / capture / "segments"
    archive = archived(directory, tmp_path, form)
    expected = rows_of(directory)
    assert rows_of(archive) == expected
    assert rows_of(f"{archive}!/var/lib/kafka/data") == expected
    assert rows_of(f"{tmp_path}/*{archive.name[1:]}!/var/*/kafka/d*") == expected


@pytest.mark.parametrize("form", FORMS)
def test_one_partition_of_an_archive(tmp_path: Path, form: str) -> None:
    archive = archived(SEGMENTS, tmp_path, form, "data")
    (log,) = find_logs([f"{archive}!/data/__consumer_offsets-1"])
    assert (log.topic, log.partition) == ("__consumer_offsets", 1)
    with open_log(log) as opened:
        assert [segment.path for segment in opened.segments] == [
            f"{archive}!/data/__consumer_offsets-1/{path.name}"
            for path in sorted((SEGMENTS / "__consumer_offsets-1").glob("*.log"))
        ]
    log = pickle.loads(pickle.dumps(log))
    there = pa.Table.from_batches(read_partition(find_logs([SEGMENTS / "__consumer_offsets-1"])[0]))
    assert pa.Table.from_batches(read_partition(log)) == there


def test_only_ranges_of_a_plain_tar_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (log,) = find_logs([f"{archived(SEGMENTS, tmp_path, '.tar', 'd')}!/d/__consumer_offsets-1"])
    with monkeypatch.context() as patch, open_log(log) as opened:
        patch.setattr(_tar_archives, "UnpackedFile", None)
        assert sum(batch.num_rows for batch in read_partition(opened, settle=False))
        assert 0 < opened.bytes_read == log.size


def test_who_reads_what_in_several_processes(tmp_path: Path) -> None:
    """Each process would unpack a whole compressed tar; from a zip, each unpacks only what it reads."""
    stays = {}
    for form in (".tar", ".tar.gz", "stored.zip", "deflated.zip"):
        partition, *_ = Segments(archived(SEGMENTS, tmp_path, form)).partitions("__consumer_offsets")
        stays[form] = partition.in_memory
    assert stays == {".tar": False, ".tar.gz": True, "stored.zip": False, "deflated.zip": False}


def test_links_and_later_members(tmp_path: Path) -> None:
    """A backup with hard links. Of two members with one name, the later counts, as for `tar -x`."""

    def fill(tar: tarfile.TarFile) -> None:
        for name, data in (
            ("t-0/" + FILE, commit(0)),
            ("u-0/" + FILE, commit(0)),
            ("t-0/" + FILE, commit(0) + commit(1)),
        ):
            saved(tmp_path, "x", data)
            tar.add(tmp_path / "x", name)
        link = tarfile.TarInfo("v-0/" + FILE)
        link.type, link.linkname = tarfile.LNKTYPE, "t-0/" + FILE
        tar.addfile(link)
        soft = tarfile.TarInfo("w-0/" + FILE)
        soft.type, soft.linkname = tarfile.SYMTYPE, "../t-0/" + FILE
        tar.addfile(soft)

    for name, codec in (("a.tar", ""), ("a.tar.gz", "gzip")):
        read = rows_of(saved(tmp_path, name, compressed(tar_of(fill), codec)))
        assert [(*place, rows.num_rows) for place, (rows, *_) in read.items()] == [
            ("t", 0, 2),
            ("u", 0, 1),
            ("v", 0, 2),
            ("w", 0, 0),
        ]
        assert read["w", 0][1] == ["this is a link or a device, but only regular files are read from archives"]


@pytest.mark.parametrize("codec", ["", "gzip"])
def test_files_with_holes(tmp_path: Path, codec: str) -> None:
    """`tar --sparse` leaves out the zeros of files that a broker allocated beforehand."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    with (folder / FILE).open("wb") as file:
        file.write(commit(0))
        file.truncate(10_000_000)
    os.system(f"cd {tmp_path} && tar --sparse -cf a.tar t-0")
    packed = (tmp_path / "a.tar").read_bytes()
    assert len(packed) < 100_000
    assert rows_of(saved(tmp_path, "b.tar.gz" if codec else "b.tar", compressed(packed, codec))) == rows_of(folder)


def test_gzip_of_several_parts(tmp_path: Path) -> None:
    """As written by pigz, and in appended archives."""
    data = tar_with([("t-0/" + FILE, commit(0))])
    parts = compressed(data[:700], "gzip") + compressed(data[700:], "gzip")
    assert [rows.num_rows for rows, *_ in rows_of(saved(tmp_path, "a.tgz", parts)).values()] == [1]


def test_a_folder_that_is_called_like_an_archive(tmp_path: Path) -> None:
    (tmp_path / "data.tar" / "t-0").mkdir(parents=True)
    saved(tmp_path / "data.tar" / "t-0", FILE, commit(0))
    assert [rows.num_rows for rows, *_ in rows_of(tmp_path / "data.tar").values()] == [1]


# -- names are labels --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../../../../etc/t-0/", "/etc/t-0/", "a/../../t-0/", "./t-0/", "//t-0//"])
def test_names_that_lead_out_of_an_archive(tmp_path: Path, name: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    for number, codec in enumerate(("", "gzip")):
        path = saved(tmp_path, f"{number}.tar", compressed(tar_with([(name + FILE, commit(0))]), codec))
        assert [rows.num_rows for rows, *_ in rows_of(path).values()] == [1]
        path.unlink()
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(name + FILE, commit(0))
    assert [rows.num_rows for rows, *_ in rows_of(tmp_path / "a.zip").values()] == [1]
    (tmp_path / "a.zip").unlink()
    assert sorted(tmp_path.rglob("*")) == before


# -- what cannot be read -----------------------------------------------------------------------------------------------

GET_IT_AGAIN = "so nothing in it is read: copy it again, or unpack what is left of it and give the folder"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("part", [0.03, 0.5, 0.9])
def test_archives_that_are_cut_short(tmp_path: Path, form: str, part: float) -> None:
    path = archived(SEGMENTS, tmp_path, form)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    said = refusal(path)
    assert said.startswith(f"{path}: this archive is truncated or damaged (")
    assert said.endswith(GET_IT_AGAIN)


def test_a_tar_that_ends_between_two_members(tmp_path: Path) -> None:
    data = tar_with([("t-0/" + FILE, commit(0)), ("t-1/" + FILE, commit(0))])
    for name, codec in (("a.tar", ""), ("a.tar.gz", "gzip")):
        path = saved(tmp_path, name, compressed(data[:1024], codec))
        assert refusal(path) == (
            f"{path}: this archive is truncated or damaged (no member begins at byte 1024), " + GET_IT_AGAIN
        )
        path.write_bytes(compressed(data[:1024] + b"?" * 512 + data[1536:], codec))
        assert "no member begins at byte 1024" in refusal(path)


def test_every_byte_of_a_gzip_counts(tmp_path: Path) -> None:
    data = bytearray(compressed(tar_with([("t-0/" + FILE, commit(0))]), "gzip"))
    data[-6] ^= 1
    assert refusal(saved(tmp_path, "a.tgz", bytes(data))).endswith(GET_IT_AGAIN)


def test_what_is_no_archive(tmp_path: Path) -> None:
    for name, data in (("a.tar", b""), ("b.tar", b"hello" * 1000), ("c.tar.gz", b"x"), ("d.zip", b"PK")):
        assert refusal(saved(tmp_path, name, data)).endswith(GET_IT_AGAIN)
    path = saved(tmp_path, "e.tar", tar_with([("meta.properties", b"version=1")]))
    assert refusal(path) == f"{path}!/: the directory is empty: {GIVE}"
    path = saved(tmp_path, "f.tar", tar_with([("a/partition.metadata", b"version: 0")]))
    assert refusal(path) == (f"{path}!/: there is no .log file in this archive, and no file of saved rows")
    assert refusal(f"{path}!/b") == f"{path}!/b: there is no such file or directory"


def test_an_encrypted_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("t-0/" + FILE, commit(0))
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path = saved(tmp_path, "b.zip", bytes(data))
    assert refusal(path) == f"{path}: its files are encrypted: unpack it with its password and give the folder"


def test_a_member_of_a_zip_that_is_damaged(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t-0/" + FILE, commit(0))
        archive.writestr("t-1/" + FILE, commit(0))
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[14] ^= 0xFF
    data[data.index(b"PK\x01\x02") + 16] ^= 0xFF
    path = saved(tmp_path, "b.zip", bytes(data))
    found: list[Any] = []
    first, second = find_logs([path])
    assert [*read_partition(first, on_finding=found.append)] == []
    assert lines(found, tmp_path) == [
        f"b.zip!/t-0/{FILE}: cannot be read: the member cannot be unpacked: Bad CRC-32 for file 't-0/{FILE}' "
        f"({len(commit(0))} bytes not read)"
    ]
    assert sum(batch.num_rows for batch in read_partition(second)) == 1


def test_a_member_that_is_where_none_is(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("t-0/" + FILE, commit(0))
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[0] = 0
    found: list[Any] = []
    (log,) = find_logs([saved(tmp_path, "b.zip", bytes(data))])
    assert [*read_partition(log, on_finding=found.append)] == []
    assert "the archive is damaged: a member is not where its directory says" in found[0].what


# -- absurd sizes ------------------------------------------------------------------------------------------------------


def test_a_member_that_claims_more_than_a_segment_can_have(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t-0/" + FILE, commit(0))
    data = bytearray((tmp_path / "a.zip").read_bytes())
    at = data.index(b"PK\x01\x02") + 24
    data[at : at + 4] = (0xF0000000).to_bytes(4, "little")
    path = saved(tmp_path, "b.zip", bytes(data))
    assert refusal(path) == (
        f"{path}: a file in it claims to have 4026531840 bytes, more than a segment file can have: unpack it and give "
        "the folder"
    )
    info = tarfile.TarInfo("t-0/" + FILE)
    info.size = 1 << 40
    path = saved(tmp_path, "a.tar.gz", compressed(info.tobuf() + bytes(10_240), "gzip"))
    assert "a file in it claims to have 1099511627776 bytes" in refusal(path)
    path = saved(tmp_path, "a.tar", info.tobuf() + bytes(10_240))
    assert refusal(path).endswith(GET_IT_AGAIN)


def test_more_than_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def allow(size: int) -> None:
        for module in (archives, _archive_bytes, _tar_archives):
            monkeypatch.setattr(module, "MOST_UNPACKED", size)

    allow(1 << 30)
    data = tar_with([(f"t-{number}/{FILE}", bytes(1 << 20)) for number in range(5)])
    path = saved(tmp_path, "a.tar.zst", compressed(data, "zstd"))
    assert len(path.read_bytes()) < 10_000
    assert len(rows_of(path)) == 5
    path = saved(tmp_path, "b.tar.zst", compressed(data, "zstd"))
    allow(4 << 20)
    assert refusal(path) == f"{path}: its logs are larger than 0 GiB: unpack it and give the folder"
    monkeypatch.undo()
    monkeypatch.setattr(_archive_bytes, "_ROOM_LEFT", 1 << 62)
    assert refusal(path) == (
        f"{path}: there is no space to unpack it in {tempfile.gettempdir()} (set TMPDIR to another folder): unpack "
        "it and give the folder"
    )


def test_a_head_of_absurd_size(tmp_path: Path) -> None:
    head = tarfile.TarInfo("x")
    head.type, head.size = tarfile.XHDTYPE, 1 << 31
    for name, codec in (("a.tar", ""), ("a.tar.gz", "gzip")):
        path = saved(tmp_path, name, compressed(head.tobuf() + bytes(10_240), codec))
        assert (
            refusal(path) == f"{path}: one of its headers claims to have {1 << 31} bytes: unpack it and give the folder"
        )


def test_more_members_than_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (_tar_archives, _zip_archives):
        monkeypatch.setattr(module, "MOST_MEMBERS", 3)
    path = saved(tmp_path, "a.tar", tar_with([(f"{number}", b"") for number in range(4)]))
    assert refusal(path) == f"{path}: the archive has more than 3 members: unpack it and give the folder"
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for number in range(4):
            archive.writestr(f"{number}", b"")
    assert "the archive has more than 3 members" in refusal(tmp_path / "a.zip")


# -- what stays behind -------------------------------------------------------------------------------------------------


def test_unpacked_bytes_go_when_nobody_reads_them(tmp_path: Path) -> None:
    def unpacked() -> int:
        gc.collect()
        links = (os.path.join("/proc/self/fd", each) for each in os.listdir("/proc/self/fd"))
        return sum(os.readlink(link).startswith(f"{tempfile.gettempdir()}/#") for link in links if os.path.islink(link))

    archives._known.clear()
    before = unpacked()
    for number in range(archives._KEPT + 2):
        path = saved(tmp_path, f"{number}.tgz", compressed(tar_with([("t-0/" + FILE, commit(0))]), "gzip"))
        assert len(rows_of(path)) == 1
    assert unpacked() == before + archives._KEPT
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t-0/" + FILE, commit(0))
    assert len(rows_of(tmp_path / "a.zip")) == 1
    assert unpacked() == before + archives._KEPT - 1
    archives._known.clear()
    assert unpacked() == before


def test_an_archive_that_is_replaced_is_read_anew(tmp_path: Path) -> None:
    for codec, name in (("", "a.tar"), ("gzip", "a.tar.gz")):
        path = saved(tmp_path, name, compressed(tar_with([("t-0/" + FILE, commit(0))]), codec))
        (log,) = find_logs([path])
        (tmp_path / "new").write_bytes(compressed(tar_with([("t-0/" + FILE, commit(0) + commit(1))]), codec))
        (tmp_path / "new").rename(path)
        assert sum(batch.num_rows for batch in read_partition(log)) == 1
        assert [rows.num_rows for rows, *_ in rows_of(path).values()] == [2]
        path.unlink()
        assert sum(batch.num_rows for batch in read_partition(log)) == 1
        found: list[Any] = []
        assert [*read_partition(pickle.loads(pickle.dumps(log)), on_finding=found.append)] == []
        assert lines(found, tmp_path) == [f"{name}!/t-0: this folder is gone (nothing in it is read)"]


def test_all_forms_are_tried() -> None:
    from kafka_records_engine.log.files.paths import ARCHIVES

    assert {*TARS, ".zip", ".tbz2", ".txz", ".tzst"} == {*ARCHIVES}
