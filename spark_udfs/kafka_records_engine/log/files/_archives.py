"""Reads archives of a data directory in place: tar, compressed or not, and zip.

Members of a plain tar and stored members of a zip are read as ranges of the archive. Compressed bytes cannot be read
from the middle, so a compressed tar is read once, as a stream, and its log files are kept in a temporary file without a
name. A compressed member of a zip is unpacked into such a file when it is read. The temporary file disappears when it
is no longer in use, even if the process crashes.

Names in an archive are only labels, because no files are extracted. Sizes in an archive are not trusted: they are
compared with the largest size of a segment file, and with the free disk space.
"""

from __future__ import annotations

import errno
import posixpath
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NoReturn

import pyarrow as pa

from kafka_records_engine.log.files._archive_bytes import MOST_UNPACKED, no_room
from kafka_records_engine.log.files._archive_contents import CUT_SHORT, ArchiveMember, Contents, TooMuch
from kafka_records_engine.log.files._tar_archives import read_compressed_tar, read_tar
from kafka_records_engine.log.files._zip_archives import read_zip
from kafka_records_engine.log.files.opened import LogFile, NoRegularFile
from kafka_records_engine.log.files.places import ListedEntry, Place, PlaceKind
from kafka_records_engine.log.files.source_error import LogSourceError

_KEPT: Final = 4
"""The number of archives that stay unpacked for the next partition read from them."""

_COMPRESSED: Final = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


class ArchiveFiles:
    """The files in an archive; see `places.Files`.

    The archive is read when a file in it is first needed, and its content at that time is kept. After unpickling, the
    object reads the archive again.
    """

    is_local = False
    is_archive = True

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
    def stays_here(self) -> bool:
        """Whether another process would have to unpack the archive again."""
        return self._archive.files.stays_here or self._read().is_unpacked

    def kind(self, path: str) -> PlaceKind | None:
        """See `places.Files.kind`."""
        if path in self._read().folders:
            return "folder"
        found = self._member(path)
        return None if found is None else found.kind

    def listed(self, path: str) -> Sequence[ArchiveMember | ListedEntry]:
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
            raise NoRegularFile(
                errno.EINVAL, "this is a link or a device, but only regular files are read from archives"
            )
        return member.open()

    def child(self, path: str, name: str) -> str:
        """See `places.Files.child`."""
        return f"{path}/{name}" if path else name

    def parent(self, path: str) -> str:
        """See `places.Files.parent`."""
        return posixpath.dirname(path)

    def resolved(self, path: str) -> str:
        """The path, unchanged."""
        return path

    def for_arrow(self, path: str) -> NoReturn:
        """Always raises LogSourceError: pyarrow cannot read inside an archive."""
        raise LogSourceError(self.shown(path), "this can be read only from folders: unpack the archive")

    def shown(self, path: str) -> str:
        """The path of the archive, followed by `!/` and the path inside the archive."""
        return f"{self._archive}!/{path}"

    def _read(self) -> Contents:
        if self._contents is None:
            self._contents = _contents_of(self._archive)
        return self._contents

    def _member(self, path: str) -> ArchiveMember | ListedEntry | None:
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
    """The current content of the archive. The last few archives are cached, because each log partition calls this
    separately."""
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
                return read_zip(archive, file, version)
            codec = next((codec for mark, codec in _COMPRESSED.items() if start.startswith(mark)), None)
            if codec is None:
                return read_tar(file, version)
            return read_compressed_tar(file, codec, version)
    except BaseException:
        file.close()
        raise


@contextmanager
def _named(archive: Place) -> Iterator[None]:
    """Turns errors while reading an archive into a LogSourceError that says what to do."""
    try:
        yield
    except LogSourceError:
        raise
    except TooMuch as error:
        raise LogSourceError(str(archive), f"{error}: unpack it and give the folder") from None
    except CUT_SHORT as error:
        said = " ".join(str(error).split()).rstrip(".") or "it ends too early"
        raise LogSourceError(str(archive), _damaged(said)) from None
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise LogSourceError(str(archive), f"{no_room()}: unpack it and give the folder") from None
        if error.errno is None or isinstance(error, pa.ArrowException):
            said = " ".join(str(error).split())
            raise LogSourceError(str(archive), _damaged(said)) from None
        raise


def _damaged(said: str) -> str:
    return (
        f"this archive is truncated or damaged ({said}), so nothing in it is read: copy it again, or unpack what is "
        f"left of it and give the folder"
    )
