"""Hostile headers of archives: absurd numbers in a tar, versions in a zip that Python does not know."""

from __future__ import annotations

import gzip
import struct
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.log.reading.segment_files import find_logs, open_log, read_partition
from tests.log.logs import commit

NAME = f"t-0/{0:020}.log"
DAMAGED = "this archive is truncated or damaged ("
ENDINGS = (".tar", ".tar.gz")


def tar(
    size: int | None = None, heads: bytes = b"", kind: bytes = tarfile.REGTYPE, pax: dict[str, str] | None = None
) -> bytes:
    """A tar of one log, with `size` in its header, with headers before it, and with the content of a pax header."""
    data = commit(0)
    info = tarfile.TarInfo(NAME)
    info.size, info.type, info.pax_headers = len(data), kind, pax or {}
    made = bytearray(info.tobuf(tarfile.PAX_FORMAT))
    if size is not None:
        claimed = size.to_bytes(11, "big", signed=True)
        head = bytearray(made[-512:])
        head[124:136] = (b"\xff" if size < 0 else b"\x80") + claimed
        head[148:156] = b"%06o\0 " % (256 + sum(head[:148]) + sum(head[156:]))
        made[-512:] = head
    return heads + bytes(made) + data.ljust(-(-len(data) // 512) * 512, b"\0") + bytes(1024)


def rows(path: Path) -> int:
    (log,) = find_logs([path])
    with open_log(log) as opened:
        return sum(batch.num_rows for batch in read_partition(opened))


def refusal(path: Path) -> str:
    with pytest.raises(LogSourceError) as caught:
        find_logs([path])
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize("ending", ENDINGS)
class TestTar:
    def made(self, folder: Path, ending: str, data: bytes) -> Path:
        path = folder / f"a{ending}"
        path.write_bytes(gzip.compress(data, 1) if ending == ".tar.gz" else data)
        return path

    @pytest.mark.parametrize("size", [2**33, 2**62, 2**63 - 1, 2**63, 2**80])
    def test_a_size_that_no_file_has(self, tmp_path: Path, ending: str, size: int) -> None:
        said = refusal(self.made(tmp_path, ending, tar(size)))
        if ending == ".tar":
            assert said.startswith(f"{DAMAGED}unexpected end of data)")
        else:
            assert said == (
                f"a file in it claims to have {size} bytes, more than a segment file can have: unpack it and give the "
                "folder"
            )

    @pytest.mark.parametrize("size", [-1, -512, -1536, -(2**80)])
    def test_a_size_below_zero(self, tmp_path: Path, ending: str, size: int) -> None:
        assert refusal(self.made(tmp_path, ending, tar(size))).startswith(f"{DAMAGED}member 1 claims to have {size}")

    @pytest.mark.parametrize("size", [2**40, -1024])
    def test_a_head_of_absurd_size(self, tmp_path: Path, ending: str, size: int) -> None:
        said = refusal(self.made(tmp_path, ending, tar(size, kind=tarfile.GNUTYPE_LONGNAME)))
        assert f"one of its headers claims to have {size} bytes" in said

    @pytest.mark.parametrize("number", ["99999999999999999999999", "-5", "-2048", "nan"])
    def test_a_size_in_words(self, tmp_path: Path, ending: str, number: str) -> None:
        refusal(self.made(tmp_path, ending, tar(pax={"size": number})))

    @pytest.mark.parametrize("moment", ["nan", "inf", "-inf", "1e400", "1e300", "x"])
    def test_a_time_that_is_none(self, tmp_path: Path, ending: str, moment: str) -> None:
        assert rows(self.made(tmp_path, ending, tar(pax={"mtime": moment}))) == 1

    @pytest.mark.parametrize("holes", ["x", "0,9,", "0", "-1,5"])
    def test_a_map_of_holes_that_is_none(self, tmp_path: Path, ending: str, holes: str) -> None:
        path = self.made(tmp_path, ending, tar(pax={"GNU.sparse.map": holes, "GNU.sparse.size": "9"}))
        with suppress(LogSourceError):
            assert rows(path) < 2

    def test_very_many_heads_of_one_member(self, tmp_path: Path, ending: str) -> None:
        said = b"11 mtime=1\n"
        info = tarfile.TarInfo("x")
        info.type, info.size = tarfile.XHDTYPE, len(said)
        heads = (info.tobuf(tarfile.USTAR_FORMAT) + said.ljust(512, b"\0")) * 3000
        assert refusal(self.made(tmp_path, ending, tar(heads=heads))).startswith(f"{DAMAGED}the first header cannot be")


def zipped(folder: Path, at: int, number: int, method: int = zipfile.ZIP_DEFLATED) -> Path:
    """A zip of one log, with a changed number in its directory."""
    path = folder / "a.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(NAME, commit(0))
    data = bytearray(path.read_bytes())
    struct.pack_into("<H", data, data.index(b"PK\x01\x02") + at, number)
    path.write_bytes(data)
    return path


class TestZip:
    @pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    @pytest.mark.parametrize(("version", "told"), [(64, "6.4"), (99, "9.9"), (255, "25.5")])
    def test_a_version_that_python_does_not_know(self, tmp_path: Path, version: int, told: str, method: int) -> None:
        assert refusal(zipped(tmp_path, 6, version, method)) == (
            f"it is compressed in a way that Python does not support (zip file version {told}): unpack it and give "
            "the folder"
        )

    def test_a_name_that_is_not_in_its_encoding(self, tmp_path: Path) -> None:
        path = zipped(tmp_path, 8, 0x800)
        data = path.read_bytes()
        at = data.index(b"PK\x01\x02") + 46
        path.write_bytes(data[:at] + b"\xff" + data[at + 1 :])
        assert refusal(path).startswith(DAMAGED)

    def test_a_member_without_a_name(self, tmp_path: Path) -> None:
        refusal(zipped(tmp_path, 28, 0))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e300, 1e300])
def test_times_of_members_are_times(value: Any) -> None:
    from kafka_records_engine.log.files._archive_bytes import member_at

    assert member_at("a.log", 0, None, lambda position, size: b"", 0, value).written_ms is None
