"""Creates a `Source` from what a caller passes as a source.

Only this module refers to all kinds of sources. A new kind is another entry in `KINDS`: a description, a function that
recognizes the kind, and a function that creates the source. Both functions import their module when they are called, so
a command loads only the kind that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike, fspath
from typing import Any, Final, NamedTuple, cast

from kafka_records_engine.log.files.paths import on_this_machine
from kafka_records_engine.sources.protocol import Source


class GivenPaths(tuple[str, ...]):
    """One or more strings or paths, as the caller gave them."""

    __slots__ = ()


class SourceKind(NamedTuple):
    """A kind of source."""

    what: str
    """A description of the accepted objects, for the error about an object that no kind accepts."""
    is_mine: Callable[[Any], bool]
    """Whether an object is of this kind. Strings and paths are passed as `GivenPaths`, all other objects unchanged. The
    check must be cheap (it may inspect names, attributes and a few bytes), and must not raise an error for objects of
    other kinds."""
    made: Callable[[Any, str | None], Source]
    """A function that creates the source. Its second argument is the topic of files or rows that do not name one, or
    None."""


def _is_source(given: Any) -> bool:
    return hasattr(given, "partitions")


def _as_it_is(given: Any, topic: str | None) -> Source:
    return cast(Source, given)


def _is_arrow(given: Any) -> bool:
    return hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__")


def _arrow_rows(given: Any, topic: str | None) -> Source:
    from kafka_records_engine.sources.arrow_rows import ArrowRows

    return ArrowRows(given, topic)


def _is_snapshot(given: Any) -> bool:
    from kafka_records_engine.sources._stored.stored_names import is_snapshot

    return isinstance(given, GivenPaths) and any(map(is_snapshot, given))


def _snapshot(given: Any, topic: str | None) -> Source:
    from kafka_records_engine.log.files.discovery import LogSourceError
    from kafka_records_engine.sources.snapshots import Snapshot

    if len(given) > 1:
        raise LogSourceError(", ".join(given), "snapshots cannot be read together: give one at a time")
    return Snapshot(given[0])


def _are_paths(given: Any) -> bool:
    return isinstance(given, GivenPaths)


def _are_saved(given: Any) -> bool:
    if not _are_paths(given):
        return False
    from kafka_records_engine.sources._saved.listing import are_saved

    return are_saved(given)


def _saved_rows(given: Any, topic: str | None) -> Source:
    from kafka_records_engine.sources.saved_rows import SavedRows

    return SavedRows(given, topic)


def _segments(given: Any, topic: str | None) -> Source:
    from kafka_records_engine.sources.segment_files import Segments

    return Segments(given, topic)


KINDS: Final[tuple[SourceKind, ...]] = (
    SourceKind("an object with partitions(topic)", _is_source, _as_it_is),
    SourceKind("raw rows in Arrow", _is_arrow, _arrow_rows),
    SourceKind("a snapshot (the directory that kafka-records snapshot writes)", _is_snapshot, _snapshot),
    SourceKind("files of saved rows (Parquet, Arrow, Avro, JSON lines, CSV, Delta)", _are_saved, _saved_rows),
    SourceKind("a path or several (data directory, partition folder, .log file)", _are_paths, _segments),
)
"""All kinds, in the order in which they are tried. The last kind accepts every path; its error explains why a path is
unreadable."""


def source_of(given: Any, topic: str | None = None) -> Source:
    """The source for `given`.

    Parameters
    ----------
    given
        Any object that `KINDS` lists: a `Source` (returned unchanged), raw rows in Arrow (`ArrowRows`), a snapshot
        (`Snapshot`), files with rows (`SavedRows`), a path or several (`Segments`).
    topic
        The topic of files or rows that do not name one.

    Raises
    ------
    TypeError
        For anything else. The message lists what a source can be.
    ValueError, LogSourceError
        The errors of the kind's class for an object that it cannot use.
    """
    named = _paths(given)
    for kind in KINDS:
        if kind.is_mine(named):
            return kind.made(named, topic)
    *most, last = (kind.what for kind in reversed(KINDS))
    raise TypeError(f"a source must be {', '.join(most)}, or {last}, not {given!r}")


def _paths(given: Any) -> Any:
    """Strings and paths as `GivenPaths`; anything else unchanged."""
    if isinstance(given, str | PathLike):
        return GivenPaths([on_this_machine(fspath(given))])
    if isinstance(given, Sequence) and given and all(isinstance(each, str | PathLike) for each in given):
        return GivenPaths(on_this_machine(fspath(each)) for each in given)
    return given
