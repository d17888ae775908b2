"""Reads zip archives. Stored members are ranges of the archive; compressed ones are unpacked when they are read."""

from __future__ import annotations

import errno
import io
import posixpath
import struct
import threading
import zipfile
from collections.abc import Callable, Hashable
from functools import cache, partial
from typing import Final

from kafka_records_engine.log.files._archive_bytes import (
    BUFFER,
    ArchiveBytes,
    SharedFile,
    UnpackedFile,
    check_size,
    member_at,
    no_room,
)
from kafka_records_engine.log.files._archive_contents import (
    CUT_SHORT,
    MOST_MEMBERS,
    ArchiveMember,
    Contents,
    TooMuch,
    is_read,
    label,
)
from kafka_records_engine.log.files._byte_ranges import RangeFile
from kafka_records_engine.log.files.opened import LogFile
from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_runtime.errors import plural

_LOCAL_HEAD: Final = struct.Struct("<4s22xHH")
_ENCRYPTED: Final = 0x1


def read_zip(archive: Place, file: LogFile, version: Hashable) -> Contents:
    contents = Contents()
    read_at = SharedFile(file).read_at
    try:
        opened = zipfile.ZipFile(io.BufferedReader(ArchiveBytes(read_at, file.size), BUFFER))
    except NotImplementedError as error:  # Python rejects the whole archive if one member needs a newer version
        raise LogSourceError(str(archive), _unknown_way(error, "it")) from None
    except ValueError as error:  # names marked as UTF-8 that are not UTF-8
        raise zipfile.BadZipFile(str(error)) from None
    if len(opened.filelist) > MOST_MEMBERS:
        raise TooMuch(f"the archive has more than {plural(MOST_MEMBERS, 'member')}")
    lock = threading.Lock()
    for info in opened.infolist():
        path = label(info.filename)
        if not info.filename or info.is_dir():
            contents.add_folder(path)
            continue
        if not is_read(path):
            continue
        if info.flag_bits & _ENCRYPTED:
            raise LogSourceError(
                str(archive), "its files are encrypted: unpack it with its password and give the folder"
            )
        where = version, info.header_offset
        if info.compress_type == zipfile.ZIP_STORED:
            contents.add(path, member_at(path, info.file_size, where, read_at, _start_of(read_at, info)))
        else:
            check_size(info.file_size)
            unpack = partial(_unpacked, contents, opened, info, lock)
            contents.add(path, ArchiveMember(posixpath.basename(path), info.file_size, where, unpack))
    return contents


def _start_of(read_at: Callable[[int, int], bytes], info: zipfile.ZipInfo) -> Callable[[], int]:
    """A function that returns where the bytes of a stored member start, which only the member's own header says."""

    @cache
    def start() -> int:
        head = read_at(info.header_offset, _LOCAL_HEAD.size)
        mark, name, extra = _LOCAL_HEAD.unpack(head) if len(head) == _LOCAL_HEAD.size else (b"", 0, 0)
        if mark != b"PK\x03\x04":
            raise OSError(errno.EIO, "the archive is damaged: a member is not where its directory says")
        return info.header_offset + _LOCAL_HEAD.size + int(name) + int(extra)

    return start


def _unknown_way(error: Exception, archive: str) -> str:
    return f"it is compressed in a way that Python does not support ({error}): unpack {archive} and give the folder"


def _unpacked(contents: Contents, opened: zipfile.ZipFile, info: zipfile.ZipInfo, lock: threading.Lock) -> RangeFile:
    member = _Unpacked(contents, opened, info, lock)
    return RangeFile(member.read_at, info.file_size, on_close=member.close)


class _Unpacked:
    """A compressed member of a zip, which is unpacked when its first byte is read."""

    def __init__(
        self, contents: Contents, opened: zipfile.ZipFile, info: zipfile.ZipInfo, lock: threading.Lock
    ) -> None:
        self._contents = contents
        self._opened = opened
        self._info = info
        self._lock = lock
        self._spool: UnpackedFile | None = None

    def read_at(self, position: int, size: int) -> bytes:
        if self._spool is None:
            with self._lock:
                self._spool = self._taken()
        return self._spool.read_at(position, min(size, self._info.file_size - position))

    def close(self) -> None:
        spool, self._spool = self._spool, None
        if spool is not None:
            spool.close()

    def _taken(self) -> UnpackedFile:
        spool = UnpackedFile(self._contents)
        try:
            with self._opened.open(self._info) as stream:
                spool.taken(stream, self._info.file_size)
        except (NotImplementedError, RuntimeError) as error:
            raise OSError(errno.ENOTSUP, _unknown_way(error, "the archive")) from None
        except TooMuch as error:
            raise OSError(errno.EFBIG, str(error)) from None
        except (*CUT_SHORT, OSError) as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise OSError(errno.ENOSPC, no_room()) from None
            raise OSError(errno.EIO, f"the member cannot be unpacked: {error}") from None
        return spool
