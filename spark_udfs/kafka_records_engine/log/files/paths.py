"""Turns paths, URLs, patterns and names of archives into places.

    for place in places_of("s3://bucket/backup/*/__consumer_offsets-*"):
        for entry in place.listed():
            ...

Every argument that is a path may be:

- a path on this machine;
- the URL of a file system that `pyarrow.fs` supports: `s3://bucket/key`, `gs://bucket/key`,
  `abfs://container@account…`, `hdfs://host:port/path`, `file:///path`, with settings after a `?`;
- a pattern: `*`, `?` and `[…]` match characters of one name, `**` matches any number of folders. A name that exists
  literally is not a pattern;
- an archive, or a path inside one after `!/`: `backup.tar.gz!/data/__consumer_offsets-0`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from os import PathLike
from typing import Any, Final

from kafka_records_engine.log.files.local_files import LOCAL
from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.files.source_error import LogSourceError

ARCHIVES: Final = (
    *(".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst", ".tzst"),
    ".zip",
)
"""The suffixes of files that are archives."""

_NO_ARCHIVE: Final = (
    f"the name before !/ must be that of an archive, also in a pattern, and end with one of {', '.join(ARCHIVES)}"
)

INSIDE: Final = "!/"
"""The separator between the path of an archive and a path inside it."""

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://|file:/")
_MAGIC: Final = re.compile(r"[*?]|\[[^\]]+\]")


def places_of(given: str | PathLike[str] | Place, filesystem: Any = None) -> list[Place]:
    """The places that `given` refers to: a single one, or the matches of a pattern, sorted by name.

    Parameters
    ----------
    given
        A path, URL, pattern or archive, as described for this module. A Place is returned unchanged.
    filesystem
        The file system of the path, from `pyarrow.fs` or fsspec. By default, it is determined from the path.

    Raises
    ------
    LogSourceError
        If a URL is invalid, if a pattern has no matches, or if the file system for a pattern cannot be reached. A
        single path does not have to exist.
    """
    return expanded(given, filesystem)[0]


def expanded(given: str | PathLike[str] | Place, filesystem: Any = None) -> tuple[list[Place], bool]:
    """The result of `places_of`, and whether `given` is a pattern."""
    if isinstance(given, Place):
        return [given], False
    text = os.fspath(given)
    if text == "":
        raise LogSourceError("''", "the name of a source must not be empty: write . for the current directory")
    place = located(text, filesystem)
    shown = str(place)
    try:
        if _exists(place):
            return [place], False
        outside, inside = _archive_and_inner(place)
        if outside is None and not _MAGIC.search(place.path):
            if INSIDE in place.path:
                raise LogSourceError(shown, _NO_ARCHIVE)
            return [place], False
        archives, is_pattern = _matching(outside or place)
        if outside is None:
            found = archives
        else:
            found = []
            for archive in archives:
                places, is_inner_pattern = _matching(inside_of(archive, inside))
                is_pattern = is_pattern or is_inner_pattern
                found += places
    except OSError as error:
        raise LogSourceError(shown, f"this cannot be read: {error.strerror or error}") from None
    if not found:
        is_outside = outside is None and INSIDE in place.path
        raise LogSourceError(shown, _NO_ARCHIVE if is_outside else "nothing matches this pattern")
    return found, is_pattern


def located(text: str, filesystem: Any = None) -> Place:
    """The place that a string refers to, without recognizing patterns and archives. Raises LogSourceError for a bad
    URL."""
    if filesystem is not None:
        from kafka_records_engine.log.files._arrow_files import place_in

        return place_in(filesystem, text)
    if not is_url(text):
        return Place(LOCAL, LOCAL.normal(text))
    from kafka_records_engine.log.files._arrow_files import place_at

    return place_at(text)


def is_url(text: str) -> bool:
    """Whether a text is the URL of a file system rather than a path on this machine."""
    return _URL.match(text) is not None


def without_secrets(text: str) -> str:
    """A path or URL as messages may show it: without passwords, keys and settings."""
    if not is_url(text):
        return text
    from kafka_records_engine.log.files._arrow_files import shown_url

    return shown_url(text)


def holds_secret(text: str) -> bool:
    """Whether a text is a URL with a password, a key, or a setting that may be secret."""
    if not is_url(text):
        return False
    from kafka_records_engine.log.files._arrow_files import has_secret

    return has_secret(text)


def on_this_machine(text: str) -> str:
    """The path in a `file:` URL, as Spark writes it; any other text is returned unchanged."""
    return located(text).path if text[:5].lower() == "file:" and is_url(text) else text


def is_archive(place: Place) -> bool:
    """Whether a place is a file with the suffix of an archive. (A folder may have such a suffix too.)"""
    return place.path.lower().endswith(ARCHIVES) and place.kind == "file"


def inside_of(archive: Place, inner: str = "") -> Place:
    """The place at path `inner` inside an archive."""
    from kafka_records_engine.log.files._archives import ArchiveFiles

    return Place(ArchiveFiles(archive), inner.strip("/"))


def _exists(place: Place) -> bool:
    """Whether a place exists under its literal name. Errors of the file system count as no; they are raised again on
    reading."""
    if not _MAGIC.search(place.path) and INSIDE not in place.path:
        return True
    return place.kind is not None


def _archive_and_inner(place: Place) -> tuple[Place | None, str]:
    """The archive before `!/`, and the path after it; None for the archive if the path has no `!/`."""
    at = place.path.find(INSIDE)
    while at >= 0:
        if place.path[:at].lower().endswith(ARCHIVES):
            return Place(place.files, place.path[:at]), place.path[at + len(INSIDE) :]
        at = place.path.find(INSIDE, at + 1)
    return None, ""


def _matching(place: Place) -> tuple[list[Place], bool]:
    """The places whose paths match that of `place`, sorted, and whether `place` is a pattern."""
    if not _MAGIC.search(place.path) or (INSIDE not in place.path and place.kind is not None):
        return [place], False
    parts = place.path.split("/")
    first = next(number for number, part in enumerate(parts) if _MAGIC.search(part))
    start = "/".join(parts[:first]) or ("/" if place.path.startswith("/") else "")
    found = {each.path: each for each in _matches(Place(place.files, start), parts[first:])}
    return [found[path] for path in sorted(found)], True


def _matches(folder: Place, parts: Sequence[str]) -> Iterator[Place]:
    part, rest = parts[0], parts[1:]
    if not part:
        yield from _matches(folder, rest) if rest else iter([folder])
        return
    if not _MAGIC.search(part):
        child = folder.child(part)
        if rest:
            yield from _matches(child, rest)
        elif child.kind is not None:
            yield child
        return
    try:
        entries = folder.listed()
    except (FileNotFoundError, NotADirectoryError):
        return
    if part == "**":
        yield from _matches(folder, rest) if rest else iter([folder])
        deeper = parts if rest else [part]
        for entry in entries:
            if not entry.name.startswith(".") and entry.kind == "folder":
                yield from _matches(folder.child(entry.name), deeper)
        return
    for entry in entries:
        if fnmatchcase(entry.name, part) and (part.startswith(".") or not entry.name.startswith(".")):
            child = folder.child(entry.name)
            if not rest:
                yield child
            elif entry.kind == "folder":
                yield from _matches(child, rest)
