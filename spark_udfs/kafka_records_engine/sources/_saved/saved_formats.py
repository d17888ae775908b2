"""Determines the format of a saved file from its first bytes and its extension, and opens it."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import RawIOBase
from typing import Any, Final, Literal, TypeVar, get_args

import pyarrow as pa

from kafka_records_engine.log.files.opened import LogFile
from kafka_records_engine.log.files.places import Files, Place
from kafka_records_engine.log.files.source_error import LogSourceError

T = TypeVar("T")

Format = Literal["parquet", "arrow", "avro", "json", "csv", "delta"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)

_ENDINGS: Final[dict[str, Format]] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".parq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".avro": "avro",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".tsv": "csv",
}
_STARTS: Final[tuple[tuple[bytes, Format], ...]] = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"FEA1", "arrow"),
    (b"\xff\xff\xff\xff", "arrow"),
    (b"Obj\x01", "avro"),
    (b"{", "json"),
    (b"[", "json"),
)
_COMPRESSED: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bz2"),
    (b"\x04\x22\x4d\x18", "lz4"),
)
_COMPRESSED_ENDINGS: Final = (".gz", ".gzip", ".zst", ".zstd", ".bz2", ".lz4")

_HEAD: Final = 64
_BLANK: Final = b" \t\r\n\xef\xbb\xbf"


def format_of_name(name: str) -> Format | None:
    """The format that the extension of a name indicates."""
    name = name.lower()
    for ending in _COMPRESSED_ENDINGS:
        name = name.removesuffix(ending)
    return _ENDINGS.get(os.path.splitext(name)[1])


def format_of_file(place: Place) -> Format | None:
    """The format of a file; its first bytes take precedence over its name. Raises LogSourceError if the file cannot be
    read."""
    head = read_head(place).lstrip(_BLANK)
    told = next((format for start, format in _STARTS if head.startswith(start)), None)
    named = format_of_name(place.path)
    # A CSV line may also start with a brace.
    return named if named is not None and (told is None or (named == "csv" and told == "json")) else told


def read_head(place: Place) -> bytes:
    """The first bytes of a file, decompressed if it is compressed."""
    try:
        with open_stream(place) as file:
            return bytes(file.read(_HEAD))
    except (OSError, pa.ArrowException) as error:
        raise unreadable(place, error) from None


def open_stream(place: Place) -> Any:
    """The content of a file as a stream, decompressed if it is compressed. Raises OSError."""
    file = open_file(place)
    start = file.read(4)
    file.seek(0)
    codec = next((codec for magic, codec in _COMPRESSED if start.startswith(magic)), None)
    return file if codec is None else pa.CompressedInputStream(file, codec)


def open_file(place: Place) -> Any:
    """A file that supports random access. Raises OSError.

    It is never memory-mapped, because reading a mapped file crashes this process if another process truncates it.
    """
    if place.files.is_local:
        return pa.OSFile(place.path)
    return pa.PythonFile(_Elsewhere(place.opened()), mode="r")


class _Elsewhere(RawIOBase):
    """A remote file or an archive member, as a file object for pyarrow."""

    def __init__(self, file: LogFile) -> None:
        super().__init__()
        self._file = file
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, position: int, whence: int = 0, /) -> int:
        start = {0: 0, 1: self._position, 2: self._file.size}[whence]
        self._position = self._file.seek(start + position)
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        data = self._file.read(-1 if size is None else size)
        self._position += len(data)
        return data

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def asked_of(place: Place, ask: Callable[[Files, str], T]) -> T:
    """The result of `ask`, which requests information about a place from its file system. Raises LogSourceError."""
    try:
        return ask(place.files, place.path)
    except OSError as error:
        raise unreadable(place, error) from None


def unreadable(place: Place, error: Exception) -> LogSourceError:
    """The error for a file that could not be read."""
    text = " ".join(str(error).split())
    if "runcated compressed" in text or "Compressed file ended" in text:
        return LogSourceError(
            str(place),
            "the compressed data ends too early: the file was truncated. Unpack what is left and read that",
        )
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror
    return LogSourceError(str(place), f"this cannot be read: {text}")
