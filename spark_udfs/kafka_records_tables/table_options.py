"""The options that only some tables have. Their values come from strings or Python's own types.

This module imports neither numpy nor pyarrow, so that a command can report a mistake at once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Final

from kafka_records_engine import arguments
from kafka_records_engine.sources.spark_checkpoints import GivenCheckpoint
from kafka_records_runtime.text.close_names import close_names
from kafka_records_tables.near_names import UnknownOption, near
from kafka_records_tables.query import QueryError, duration, milliseconds
from kafka_records_tables.tables.checking.release_versions import RELEASES, is_release
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from kafka_records_tables.tables.declaration import Option, Table

_IN: Final = "in "


class OptionError(QueryError):
    """An invalid value of an `option`. `detail` follows the option name in a sentence, however the name is spelled:
    `retention` in Python, `--retention` in the command."""

    def __init__(self, option: str, detail: str) -> None:
        super().__init__(f"{option}{detail}")
        self.option = option
        self.detail = detail

    def __reduce__(self) -> tuple[type[OptionError], tuple[str, str]]:
        return OptionError, (self.option, self.detail)


def own_options(tables: Iterable[Table]) -> list[Option]:
    """The options that at least one of the tables has, each name once."""
    return list({option.name: option for table in tables for option in table.options}.values())


def tables_with(name: str, tables: Iterable[Table]) -> str:
    """The names of the tables with an option, in words."""
    return ", ".join(table.name for table in tables if any(option.name == name for option in table.options))


def option_values(table: Table, given: Mapping[str, Any], as_of_ms: int | None = None) -> dict[str, Any]:
    """The values of all options of a table: milliseconds since 1970, milliseconds, a word, partition counts by topic,
    or checkpoints; None for an option without a value.

    A duration into the future is counted from `as_of_ms`, or from now. Raises UnknownOption, TypeError and ValueError.
    """
    known = {option.name: option for option in table.options}
    for name in given:
        if name not in known:
            raise UnknownOption(_unknown(table, name))
    chosen = {name: value for name, value in given.items() if value is not None}
    for name in chosen:
        other = next((each for each in known[name].not_with if each in chosen), None)
        if other is not None:
            raise OptionError(name, f" cannot be combined with {other}: leave one of them out")
    return {name: value_of(option, chosen.get(name, option.default), as_of_ms) for name, option in known.items()}


def _unknown(table: Table, name: str) -> str:
    from kafka_records_tables.tables import TABLES

    lacks = f"{table.name} has no option {name!r}"
    others = tables_with(name, TABLES.values())
    if others:
        return f"{lacks}; it is one of {others}"
    own = [option.name for option in table.options]
    if name == "options":  # `options` is an argument of read_tables
        if not own:
            return f"{lacks}, and no other of its own: leave it out"
        return (
            f"{lacks}: write each option as an argument of its own, as in {own[0]}=…; the options are "
            f"{', '.join(own)}"
        )
    meant = next(
        iter(close_names(name, [*own, *_ARGUMENTS, *(each.name for each in own_options(TABLES.values()))], 1)), ""
    )
    if meant:
        of_others = "" if meant in (*own, *_ARGUMENTS) else f" It is one of {tables_with(meant, TABLES.values())}"
        return f"{lacks}; did you mean {meant}?{of_others}"
    return f"{lacks}; the options are {', '.join(own)}" if own else f"{lacks}, and no other of its own"


_ARGUMENTS: Final = ("group", "columns", "as_of", "assume", "topic", "package", "processes")
"""The arguments that every table accepts (`read_table`)."""


def value_of(option: Option, value: Any, as_of_ms: int | None = None) -> Any:
    """The value of one option, as in `option_values`. Raises TypeError and ValueError."""
    if value is None:
        return None
    try:
        if option.kind == "word":
            return _word(option, value)
        if option.kind == "moment":
            return _moment_or_ahead(option.name, value)
        if option.kind == "flag":
            return _flag(option.name, value)
        if option.kind == "release":
            return _release(option.name, value)
        if option.kind == "partitions":
            return partition_counts(option.name, value)
        if option.kind == "checkpoints":
            return _checkpoints(option.name, value)
        length = _duration(option, value)
    except QueryError as error:
        raise OptionError(option.name, f": {error}") from None
    if option.kind == "duration":
        return length
    return length + (_now() if as_of_ms is None else as_of_ms)


def _word(option: Option, value: Any) -> str:
    if arguments.text(option.name, value) not in option.words:
        raise QueryError(f"{value!r} is not one of {', '.join(option.words)}")
    return str(value)


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = arguments.text(name, value).lower()
    if text not in ("true", "false"):
        raise QueryError(f"{value!r} is neither true nor false")
    return text == "true"


def _release(name: str, value: Any) -> str:
    text: str = arguments.text(name, value)
    if not _RELEASE.fullmatch(text) or not is_release(text):
        raise QueryError(
            f"{text!r} is not a known Kafka release, from {RELEASES[0]} to {RELEASES[-1]}: write 3.9, or " "4.1.2"
        )
    return text


def partition_counts(name: str, value: Any) -> dict[str, int]:
    """The partition counts of topics: `50` for `__consumer_offsets`, or `TOPIC=50`, separated by commas; in Python also
    a number or a mapping. Raises TypeError and QueryError."""
    if isinstance(value, str):
        parts = [part.strip().rpartition("=") for part in value.split(",")]
        given: dict[Any, Any] = {topic.strip() or OFFSETS: number.strip() for topic, _, number in parts}
        found = {topic: int(number) if _NUMBER.fullmatch(number) else 0 for topic, number in given.items()}
    elif isinstance(value, Mapping):
        given = dict(value)
        found = {arguments.text(name, topic): number for topic, number in given.items()}
    else:
        given = found = {OFFSETS: value}
    for topic, number in found.items():
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"{name} must be a number, a string or a mapping of topics to numbers, not {value!r}")
        if not 0 < number <= _MOST_PARTITIONS:
            shown = given.get(topic, number)
            raise QueryError(f"{shown!r} is not a number of partitions: write 50, or {topic}=50 for one topic")
        if topic not in (topics := _topics()):
            raise QueryError(f"{topic!r} is not a topic of a coordinator; {near(topic, topics)}")
    return found


def _checkpoints(name: str, value: Any) -> tuple[GivenCheckpoint, ...]:
    """Directories, each optionally with a name for its query: `DIR`, `NAME=DIR`, or several in a list; in Python also
    paths and a mapping by name. A text with a slash before the equals sign has no name."""
    if isinstance(value, Mapping):
        return tuple(GivenCheckpoint(arguments.text(name, query), _path(name, path)) for query, path in value.items())
    given = [value] if isinstance(value, str | PathLike) or not isinstance(value, Iterable) else [*value]
    found = []
    for each in given:
        query, equals, path = each.partition("=") if isinstance(each, str) else ("", "", "")
        is_named = bool(equals) and "/" not in query
        if is_named and not (query and path):
            raise QueryError(f"{each!r} lacks a name or a directory: write NAME=DIR, or ./{each} for a directory")
        found.append(GivenCheckpoint(query, path) if is_named else GivenCheckpoint("", _path(name, each)))
    if not found:
        raise QueryError("the list of directories is empty: give at least one, or leave out the option")
    return tuple(found)


def _path(name: str, value: Any) -> str:
    path = fspath(value) if isinstance(value, str | PathLike) else value
    if not isinstance(path, str):
        raise TypeError(
            f"{name} must be a directory, several directories, or a mapping of names to them, not {value!r}"
        )
    if not path:
        raise QueryError("a directory has an empty name: write . for the current one")
    return path


def _topics() -> list[str]:
    from kafka_records_tables.tables import TABLES

    return list(dict.fromkeys(table.topic for table in TABLES.values() if table.topic))


_RELEASE: Final = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){1,3}")
_NUMBER: Final = re.compile("[0-9]{1,10}")
_MOST_PARTITIONS: Final = 2**31 - 1


def moment(name: str, value: Any) -> int:
    """Milliseconds since 1970 from an aware datetime, from milliseconds, or from a string (`query.milliseconds`).

    Raises TypeError and QueryError, which name the argument `name`.
    """
    try:
        return _moment(name, value)
    except QueryError as error:
        raise QueryError(f"{name}: {error}") from None


def _moment_or_ahead(name: str, value: Any) -> int:
    text = value.strip() if isinstance(value, str) else ""
    if text.startswith(_IN):
        return _now() + duration(text.removeprefix(_IN))
    try:
        return _moment(name, value)
    except QueryError as error:
        raise QueryError(f"{error}; also `in 24h` for a time in the future" if text else str(error)) from None


def _moment(name: str, value: Any) -> int:
    if isinstance(value, str):
        return milliseconds(value)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise QueryError(f"{value.isoformat()} has no time zone: write datetime(…, tzinfo=UTC)")
        return (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    return _whole(name, value, "a datetime with a time zone, milliseconds since 1970 or a string")


def _duration(option: Option, value: Any) -> int:
    if isinstance(value, str):
        length = duration(value)
    else:
        if isinstance(value, timedelta):
            value = int(value.total_seconds() * 1000)
        length = _whole(option.name, value, "a timedelta, milliseconds or a string")
    if length < 0:
        raise QueryError(f"{length} ms is not a duration: it must be 0 or more")
    if length < option.least_ms:
        raise QueryError(f"{length} ms is too short: the minimum is {option.least_ms} ms")
    return length


def _whole(name: str, value: Any, wanted: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be {wanted}, not {value!r}")
    if abs(value) > _MOST:
        raise QueryError(f"{value} ms is too large for a time or a duration")
    return value


_MOST: Final = 1 << 60
"""A limit far enough from the end of int64 that sums do not overflow."""


def _now() -> int:
    return time.time_ns() // 1_000_000
