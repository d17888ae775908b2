"""Archives of captured data directories, in every form that is read."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import pyarrow as pa

TARS: Final = {
    ".tar": "",
    ".tar.gz": "gzip",
    ".tgz": "gzip",
    ".tar.bz2": "bz2",
    ".tar.xz": "xz",
    ".tar.zst": "zstd",
}
ZIPS: Final = {
    "stored.zip": zipfile.ZIP_STORED,
    "deflated.zip": zipfile.ZIP_DEFLATED,
    "bzip2.zip": zipfile.ZIP_BZIP2,
    "lzma.zip": zipfile.ZIP_LZMA,
}
FORMS: Final = (*TARS, *ZIPS)


def archived(directory: Path, to: Path, form: str, inner: str = "var/lib/kafka/data") -> Path:
    """Make an archive in the folder `to`, with the files of `directory` in its folder `inner`."""
    if form in ZIPS:
        path = to / form
        with zipfile.ZipFile(path, "w", ZIPS[form]) as archive:
            for file in sorted(directory.rglob("*")):
                archive.write(file, f"{inner}/{file.relative_to(directory)}")
        return path
    path = to / f"data{form}"
    path.write_bytes(compressed(tar_of(lambda tar: tar.add(directory, inner)), TARS[form]))
    return path


def tar_of(fill: Callable[[tarfile.TarFile], object]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        fill(tar)
    return out.getvalue()


def tar_with(members: Iterable[tuple[str, bytes]]) -> bytes:
    """A tar with these files, under any names."""

    def fill(tar: tarfile.TarFile) -> None:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))

    return tar_of(fill)


def compressed(data: bytes, codec: str) -> bytes:
    if codec == "xz":
        import lzma

        return lzma.compress(data, preset=1)
    if not codec:
        return data
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, codec) as stream:
        stream.write(data)
    return bytes(out.getvalue())
