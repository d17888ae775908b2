"""Archives of a data directory, read in place: tar, also compressed, and zip.

Members of a plain tar and stored members of a zip are ranges of the archive, and are read as such. Compressed bytes
cannot be read from the middle. So a compressed tar is read once, as a stream, and its files of logs are kept in a
temporary file without a name; a compressed member of a zip is unpacked into one when it is read. Such a temporary file
is gone when nobody reads it any more, whatever becomes of the process.

Names in an archive are labels and never names of files: nothing is extracted. What an archive claims is not believed:
sizes are held against what a segment file may have, and against the room there is.
"""

from __future__ import annotations

import errno
import io
import lzma
import os
import posixpath
import shutil
import struct
import tarfile
import tempfile
import threading
import weakref
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Final, NoReturn

import pyarrow as pa

from kafka_records_engine.log._byte_ranges import RangeFile
from kafka_records_engine.log.opened import LogFile, NoRegularFile
from kafka_records_engine.log.places import LogSourceError, Place, PlaceKind
from kafka_records_runtime.errors import plural

LARGEST_MEMBER: Final = 1 << 31
"""A segment file is smaller: positions in it are int32."""

MOST_UNPACKED: Final = 64 << 30
"""At most N bytes of one archive are unpacked."""

MOST_MEMBERS: Final = 2_000_000

_ROOM_LEFT: Final = 1 << 30
_MOST_AT_ONCE: Final = 64 << 20
"""No header of an archive is larger."""
_PIECE: Final = 1 << 20
_KEPT: Final = 4
"""At most N archives stay unpacked, for the next partition that is read from them."""
_BUFFER: Final = 64 * 1024

_KEPT_NAMES: Final = (".log", ".log.swap", ".log.cleaned", "-checkpoint", "partition.metadata")
"""Names of files that are read end like this; others are not unpacked."""

_COMPRESSED: Final = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_LOCAL_HEAD: Final = struct.Struct("<4s22xHH")
_ENCRYPTED: Final = 0x1


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """A file in an archive."""

    name: str
    size: int
    version: Hashable
    open: Callable[[], LogFile] | None
    """None for what is no regular file."""
    written_ms: int | None = None

    @property
    def kind(self) -> PlaceKind:
        """A file, or something that is none."""
        return "other" if self.open is None else "file"


@dataclass(frozen=True, slots=True)
class _Folder:
    name: str
    kind: PlaceKind = "folder"
    size: int = 0
    version: Hashable = None


@dataclass(slots=True)
class Contents:
    """What an archive holds, as it was when it was opened. Members keep it, and what it keeps open, alive."""

    folders: dict[str, dict[str, ArchiveMember | _Folder]] = field(default_factory=lambda: {"": {}})
    unpacked: int = 0
    is_unpacked: bool = False
    """Whether it was unpacked to be read. Whoever reads it anew has to unpack it anew."""

    def add(self, path: str, member: ArchiveMember) -> None:
        """Add a file. Of two with one name the later one counts, as it does when an archive is unpacked."""
        folder = posixpath.dirname(path)
        self.add_folder(folder)
        self.folders[folder][member.name] = member

    def add_folder(self, path: str) -> None:
        """Add a folder, and those it is in."""
        if path not in self.folders:
            self.folders[path] = {}
            above = posixpath.dirname(path)
            self.add_folder(above)
            name = posixpath.basename(path)
            self.folders[above][name] = _Folder(name)


class ArchiveFiles:
    """The files in an archive; see `places.Files`. It is read when something in it is asked for the first time, and is
    what it was then; a pickled one is read anew."""

    def __init__(self, archive: Place) -> None:
        self._archive = archive
        self._contents: Contents | None = None

    def __reduce__(self) -> tuple[type[ArchiveFiles], tuple[Place]]:
        return ArchiveFiles, (self._archive,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArchiveFiles) and other._archive == self._archive

    def __hash__(self) -> int:
        return hash(self._archive)

    def __repr__(self) -> str:
        return f"ArchiveFiles({str(self._archive)!r})"

    @property
    def is_local(self) -> bool:
        """Never."""
        return False

    @property
    def is_archive(self) -> bool:
        """Always."""
        return True

    @property
    def stays_here(self) -> bool:
        """Whether another process would have to unpack it again."""
        return self._archive.files.stays_here or self._read().is_unpacked

    def kind(self, path: str) -> PlaceKind | None:
        """See `places.Files.kind`."""
        if path in self._read().folders:
            return "folder"
        found = self._member(path)
        return None if found is None else found.kind

    def listed(self, path: str) -> Sequence[ArchiveMember | _Folder]:
        """See `places.Files.listed`."""
        folder = self._read().folders.get(path)
        if folder is None:
            raise FileNotFoundError(errno.ENOENT, "there is no such folder in the archive")
        return [*folder.values()]

    def size(self, path: str) -> int:
        """See `places.Files.size`."""
        return self._file(path).size

    def version(self, path: str) -> Hashable:
        """See `places.Files.version`."""
        return self._file(path).version

    def written_ms(self, path: str) -> int | None:
        """See `places.Files.written_ms`."""
        return self._file(path).written_ms

    def opened(self, path: str, version: Hashable = None) -> LogFile:
        """See `places.Files.opened`."""
        member = self._file(path)
        if member.open is None:
            raise NoRegularFile(errno.EINVAL, "this is a link or a device, and only regular files of archives are read")
        return member.open()

    def child(self, path: str, name: str) -> str:
        """See `places.Files.child`."""
        return f"{path}/{name}" if path else name

    def parent(self, path: str) -> str:
        """See `places.Files.parent`."""
        return posixpath.dirname(path)

    def resolved(self, path: str) -> str:
        """The path itself."""
        return path

    def for_arrow(self, path: str) -> NoReturn:
        """Raises LogSourceError."""
        raise LogSourceError(self.shown(path), "this is read from folders only: unpack the archive")

    def shown(self, path: str) -> str:
        """The archive, `!/` and the path in it."""
        return f"{self._archive}!/{path}"

    def _read(self) -> Contents:
        if self._contents is None:
            self._contents = _contents_of(self._archive)
        return self._contents

    def _member(self, path: str) -> ArchiveMember | _Folder | None:
        return self._read().folders.get(posixpath.dirname(path), {}).get(posixpath.basename(path))

    def _file(self, path: str) -> ArchiveMember:
        found = self._member(path)
        if not isinstance(found, ArchiveMember):
            raise FileNotFoundError(errno.ENOENT, "there is no such file in the archive")
        return found


# -- archives that were read -------------------------------------------------------------------------------------------

_lock = threading.RLock()
_known: OrderedDict[Place, tuple[Hashable, Contents]] = OrderedDict()


def _contents_of(archive: Place) -> Contents:
    """What the archive holds now. The last few archives are remembered, since each log partition comes for itself."""
    with _lock:
        version = archive.files.version(archive.path)
        known = _known.pop(archive.resolved(), None)
        contents = known[1] if known is not None and known[0] == version else _read_archive(archive, version)
        _known[archive.resolved()] = version, contents
        while len(_known) > _KEPT or sum(each.unpacked for _, each in _known.values()) > MOST_UNPACKED:
            if len(_known) == 1:
                break
            _known.popitem(last=False)
        return contents


def _read_archive(archive: Place, version: Hashable) -> Contents:
    file = archive.opened(version)
    try:
        with _named(archive):
            start = file.read(6)
            if archive.path.lower().endswith(".zip"):
                return _read_zip(archive, file, version)
            codec = next((codec for mark, codec in _COMPRESSED.items() if start.startswith(mark)), None)
            if codec is None:
                return _read_tar(file, version)
            return _read_compressed_tar(file, codec, version)
    except BaseException:
        file.close()
        raise


@contextmanager
def _named(archive: Place) -> Iterator[None]:
    """Turns what goes wrong in reading an archive into a LogSourceError that says what to do."""
    try:
        yield
    except LogSourceError:
        raise
    except _TooMuch as error:
        raise LogSourceError(str(archive), f"{error}: unpack it, and give the folder") from None
    except _CUT_SHORT as error:
        said = " ".join(str(error).split()).rstrip(".") or "it ends too early"
        raise LogSourceError(str(archive), _damaged(said)) from None
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise LogSourceError(str(archive), f"{_no_room()}: unpack it, and give the folder") from None
        if error.errno is None or isinstance(error, pa.ArrowException):
            said = " ".join(str(error).split())
            raise LogSourceError(str(archive), _damaged(said)) from None
        raise


_CUT_SHORT: Final = (tarfile.TarError, zipfile.BadZipFile, EOFError, lzma.LZMAError, zlib.error, struct.error)


class _TooMuch(Exception):
    """An archive claims or holds more than is read."""


def _damaged(said: str) -> str:
    return (
        f"this archive is cut short or damaged ({said}), and nothing in it is read: get it again, or unpack what is "
        "left of it and give the folder"
    )


def _no_room() -> str:
    return f"there is no room to unpack it in {tempfile.gettempdir()} (TMPDIR names another folder)"


def _label(name: str) -> str:
    """The path in an archive that a name stands for: never absolute, and never above the archive."""
    return posixpath.normpath(f"/{name}").lstrip("/")


def _is_read(path: str) -> bool:
    return path.endswith(_KEPT_NAMES)


# -- tar ---------------------------------------------------------------------------------------------------------------


class _Bytes(io.RawIOBase):
    """The bytes of a file as Python's own modules want them."""

    def __init__(self, read_at: Callable[[int, int], bytes], size: int) -> None:
        self._read_at = read_at
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, position: int, whence: int = 0, /) -> int:
        self._at = max(position + (0, self._at, self._size)[whence], 0)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        data = self._read_at(self._at, min(len(buffer), max(self._size - self._at, 0)))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class _Shared:
    """An open archive that many members are read from. It is closed when none of them is left."""

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self._lock = threading.Lock()
        weakref.finalize(self, file.close)

    def read_at(self, position: int, size: int) -> bytes:
        with self._lock:
            self._file.seek(position)
            return self._file.read(size)


def _member(
    path: str,
    size: int,
    version: Hashable,
    read_at: Callable[[int, int], bytes],
    start: int | Callable[[], int],
    written: float | None = None,
) -> ArchiveMember:
    """A member whose bytes stand side by side from `start` on, `written` in seconds since 1970. (A zip tells hours and
    minutes of a time zone that it does not tell.)"""

    def part_at(position: int, wanted: int) -> bytes:
        return read_at((start if isinstance(start, int) else start()) + position, min(wanted, size - position))

    written_ms = None if written is None else int(written * 1000)
    return ArchiveMember(posixpath.basename(path), size, version, lambda: RangeFile(part_at, size), written_ms)


def _members(opened: Any) -> Iterator[tarfile.TarInfo]:
    """The members of a tar that are read, and links to them, each as soon as its head was read."""
    for number, member in enumerate(opened, 1):
        opened.members.clear()
        if number > MOST_MEMBERS:
            raise _TooMuch(f"it has more than {plural(MOST_MEMBERS, 'member')}")
        yield member


def _read_tar(file: LogFile, version: Hashable) -> Contents:
    """A plain tar: where each member stands in it."""
    contents = Contents()
    read_at = _Shared(file).read_at
    stream: Any = _Limited(io.BufferedReader(_Bytes(read_at, file.size), _BUFFER))
    with tarfile.open(fileobj=stream, mode="r:") as opened:
        for member in _members(opened):
            path = _label(member.name)

            if _add_other(contents, path, member, version) or not _is_read(path):
                continue
            where = version, member.offset
            if member.sparse is None:
                contents.add(path, _member(path, member.size, where, read_at, member.offset_data, member.mtime))
            else:
                spool = _Spool(contents)
                start = spool.taken(opened.extractfile(member), member.size)
                contents.add(path, _member(path, member.size, where, spool.read_at, start, member.mtime))
        _check_end(opened, stream)
    return contents


def _read_compressed_tar(file: LogFile, codec: str, version: Hashable) -> Contents:
    """A compressed tar: what is read of it is unpacked, as it comes along in the stream."""
    contents = Contents(is_unpacked=True)
    spool = _Spool(contents)
    file.seek(0)
    stream: Any = _Forward(_decompressed(file, codec))
    with tarfile.open(fileobj=stream, mode="r:") as opened:
        for member in _members(opened):
            path = _label(member.name)
            if not _add_other(contents, path, member, version) and _is_read(path):
                start = spool.taken(opened.extractfile(member), member.size)
                contents.add(
                    path, _member(path, member.size, (version, member.offset), spool.read_at, start, member.mtime)
                )
        _check_end(opened, stream)
        stream.drain()
    return contents


def _check_end(opened: tarfile.TarFile, stream: Any) -> None:
    """Raise ReadError unless the end of the archive was met: `tarfile` takes a head that it cannot read for the end."""
    at = opened.offset
    stream.seek(at)
    if stream.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
        raise tarfile.ReadError(f"byte {at} starts neither a member nor the end")


def _add_other(contents: Contents, path: str, member: tarfile.TarInfo, version: Hashable) -> bool:
    """Add a member that is no file of its own; returns whether it is none."""
    if member.isdir():
        contents.add_folder(path)
        return True
    if member.isreg():
        return False
    if _is_read(path):
        target = None
        if member.islnk():
            linked = _label(member.linkname)
            target = contents.folders.get(posixpath.dirname(linked), {}).get(posixpath.basename(linked))
        name = posixpath.basename(path)
        if isinstance(target, ArchiveMember):
            contents.add(path, ArchiveMember(name, target.size, target.version, target.open))
        else:
            contents.add(path, ArchiveMember(name, 0, (version, member.offset), None))
    return True


class _Limited:
    """A file for `tarfile` that refuses to read a head of absurd size."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if size > _MOST_AT_ONCE:
            raise _TooMuch(f"it has a head of {size} bytes")
        data: bytes = self._file.read(size)
        return data

    def seek(self, position: int, whence: int = 0) -> int:
        at: int = self._file.seek(position, whence)
        return at

    def tell(self) -> int:
        at: int = self._file.tell()
        return at


class _Forward:
    """A stream for `tarfile`, which seeks forward, and back by no more than a block."""

    _BACK: Final = 512

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._at = 0
        self._tail = b""
        self._again = b""

    def read(self, size: int = -1) -> bytes:
        if size > _MOST_AT_ONCE:
            raise _TooMuch(f"it has a head of {size} bytes")
        parts = [self._again[:size]]
        self._again = self._again[size:]
        left = size - len(parts[0])
        while left > 0 and (part := self._stream.read(min(left, _PIECE))):
            parts.append(part)
            left -= len(part)
        data = b"".join(parts)
        self._at += len(data)
        self._tail = (self._tail + data[-self._BACK :])[-self._BACK :]
        return data

    def seek(self, position: int, whence: int = 0) -> int:
        if position < self._at:
            back = self._at - position
            if back > len(self._tail):
                raise tarfile.ReadError("its members overlap")
            self._again = self._tail[-back:] + self._again
            self._tail, self._at = self._tail[:-back], position
        while self._at < position and self.read(min(position - self._at, _PIECE)):
            pass
        return self._at

    def tell(self) -> int:
        return self._at

    def drain(self) -> None:
        """Read to the end, where a compressed stream tells whether it is whole."""
        total = 0
        while data := self.read(_PIECE):
            total += len(data)
            if total > MOST_UNPACKED:
                raise _TooMuch(f"more than {MOST_UNPACKED >> 30} GiB stand behind its last member")


def _decompressed(file: LogFile, codec: str) -> Any:
    raw = io.BufferedReader(_Bytes(_Shared(file).read_at, file.size), _PIECE)
    if codec == "xz":
        return lzma.LZMAFile(raw)
    return pa.CompressedInputStream(pa.PythonFile(raw, "r"), codec)


# -- zip ---------------------------------------------------------------------------------------------------------------


def _read_zip(archive: Place, file: LogFile, version: Hashable) -> Contents:
    contents = Contents()
    read_at = _Shared(file).read_at
    opened = zipfile.ZipFile(io.BufferedReader(_Bytes(read_at, file.size), _BUFFER))
    if len(opened.filelist) > MOST_MEMBERS:
        raise _TooMuch(f"it has more than {plural(MOST_MEMBERS, 'member')}")
    lock = threading.Lock()
    for info in opened.infolist():
        path = _label(info.filename)
        if info.is_dir():
            contents.add_folder(path)
            continue
        if not _is_read(path):
            continue
        if info.flag_bits & _ENCRYPTED:
            raise LogSourceError(
                str(archive), "its files are encrypted: unpack it with its password, and give the folder"
            )
        where = version, info.header_offset
        if info.compress_type == zipfile.ZIP_STORED:
            contents.add(path, _member(path, info.file_size, where, read_at, _start_of(read_at, info)))
        else:
            _check_size(info.file_size)
            unpack = partial(_unpacked, contents, opened, info, lock)
            contents.add(path, ArchiveMember(posixpath.basename(path), info.file_size, where, unpack))
    return contents


def _start_of(read_at: Callable[[int, int], bytes], info: zipfile.ZipInfo) -> Callable[[], int]:
    """Where the bytes of a stored member start: its own head tells, which is looked at once."""

    @cache
    def start() -> int:
        head = read_at(info.header_offset, _LOCAL_HEAD.size)
        mark, name, extra = _LOCAL_HEAD.unpack(head) if len(head) == _LOCAL_HEAD.size else (b"", 0, 0)
        if mark != b"PK\x03\x04":
            raise OSError(errno.EIO, "the archive has no member where its directory says so: it is damaged")
        return info.header_offset + _LOCAL_HEAD.size + int(name) + int(extra)

    return start


def _unpacked(contents: Contents, opened: zipfile.ZipFile, info: zipfile.ZipInfo, lock: threading.Lock) -> RangeFile:
    member = _Unpacked(contents, opened, info, lock)
    return RangeFile(member.read_at, info.file_size, on_close=member.close)


class _Unpacked:
    """A compressed member of a zip, unpacked when its first byte is asked for."""

    def __init__(
        self, contents: Contents, opened: zipfile.ZipFile, info: zipfile.ZipInfo, lock: threading.Lock
    ) -> None:
        self._contents = contents
        self._opened = opened
        self._info = info
        self._lock = lock
        self._spool: _Spool | None = None

    def read_at(self, position: int, size: int) -> bytes:
        if self._spool is None:
            with self._lock:
                self._spool = self._taken()
        return self._spool.read_at(position, min(size, self._info.file_size - position))

    def close(self) -> None:
        spool, self._spool = self._spool, None
        if spool is not None:
            spool.close()

    def _taken(self) -> _Spool:
        spool = _Spool(self._contents)
        try:
            with self._opened.open(self._info) as stream:
                spool.taken(stream, self._info.file_size)
        except (NotImplementedError, RuntimeError) as error:
            what = f"it is packed in a way that Python does not know ({error}): unpack the archive, and give the folder"
            raise OSError(errno.ENOTSUP, what) from None
        except _TooMuch as error:
            raise OSError(errno.EFBIG, str(error)) from None
        except (*_CUT_SHORT, OSError) as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise OSError(errno.ENOSPC, _no_room()) from None
            raise OSError(errno.EIO, f"it cannot be unpacked: {error}") from None
        return spool


# -- unpacked bytes ----------------------------------------------------------------------------------------------------


class _Spool:
    """A temporary file without a name that bytes are unpacked into."""

    def __init__(self, contents: Contents) -> None:
        self._file = tempfile.TemporaryFile(prefix="kafka-records-")  # noqa: SIM115 (it is closed when nobody reads it)
        weakref.finalize(self, self._file.close)
        self._end = 0
        self._contents = contents

    def taken(self, stream: Any, size: int) -> int:
        """Unpack `size` bytes of a stream; returns where they start."""
        _check_size(size)
        self._contents.unpacked += size
        if self._contents.unpacked > MOST_UNPACKED:
            raise _TooMuch(f"its logs have more than {MOST_UNPACKED >> 30} GiB")
        if shutil.disk_usage(tempfile.gettempdir()).free < size + _ROOM_LEFT:
            raise _TooMuch(_no_room())
        start, self._end = self._end, self._end + size
        self._file.seek(start)
        left = size
        while left:
            data = stream.read(min(left, _PIECE))
            if not data:
                raise EOFError(f"a member has {size - left} of {size} bytes")
            self._file.write(data)
            left -= len(data)
        self._file.flush()
        return start

    def close(self) -> None:
        """Give the room back."""
        self._file.close()
        self._contents.unpacked -= self._end

    def read_at(self, position: int, size: int) -> bytes:
        parts = []
        while size > 0 and (part := os.pread(self._file.fileno(), size, position)):
            parts.append(part)
            position, size = position + len(part), size - len(part)
        return b"".join(parts)


def _check_size(size: int) -> None:
    if size > LARGEST_MEMBER:
        raise _TooMuch(f"a file in it claims {size} bytes, more than a segment file can have")
