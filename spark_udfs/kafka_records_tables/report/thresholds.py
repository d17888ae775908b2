"""The thresholds of the report: their defaults, files with other values (TOML), and the documented file of defaults."""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from kafka_records_runtime.text.close_names import close_names
from kafka_records_tables.near_names import near
from kafka_records_tables.query import QueryError, duration
from kafka_records_tables.report.rule import Threshold
from kafka_records_tables.report.rule_context import length
from kafka_records_tables.report.rules import RULES

OF_REPORT: Final = "report"
"""The TOML table for thresholds that apply to all kinds."""

_GENERAL: Final = (
    Threshold(
        "most_of_a_kind",
        "count",
        20,
        "findings of one kind and level that are shown one by one; the others are one finding, with a command that "
        "lists them",
        "more of the same does not fit on a screen",
    ),
    Threshold(
        "most_notes_of_a_kind",
        "count",
        5,
        "the same for notes",
        "they hide what is wrong",
    ),
    Threshold(
        "group_settles_within",
        "duration",
        "15s",
        "how long a group must have been quiet before its present state is judged",
        "a rebalance takes three heartbeats, each after 5 s (3 s in classic groups)",
    ),
)


class ThresholdsError(ValueError):
    """The given thresholds are invalid; the text says why."""


def known_thresholds() -> dict[str, Threshold]:
    """All thresholds by their full names, `offsets_expiring.within`."""
    of_rules = {rule.named(each): each for rule in RULES for each in rule.thresholds}
    return {**{f"{OF_REPORT}.{each.name}": each for each in _GENERAL}, **of_rules}


def usual_thresholds() -> dict[str, Any]:
    """The defaults by full name, `offsets_expiring.within`, in milliseconds, counts and shares."""
    return {name: _value(name, each, each.default) for name, each in known_thresholds().items()}


def thresholds_of(given: Mapping[str, Any] | str | Path | None) -> dict[str, Any]:
    """All thresholds by their full names.

    Parameters
    ----------
    given
        The thresholds that differ from the defaults: the path of a TOML file, or a mapping with the content of one
        (`{"offsets_expiring": {"within": "7d"}}`), or with full names (`{"offsets_expiring.within": "7d"}`). In a
        mapping, a duration may also be a timedelta or a number of milliseconds.

    Raises
    ------
    ThresholdsError
        If the file cannot be read or is not TOML, if a name or a value is invalid, or if two values contradict each
        other.
    """
    if given is None:
        return usual_thresholds()
    where, values = ("", given) if isinstance(given, Mapping) else (f"{given}: ", _read(Path(given)))
    known = known_thresholds()
    found = usual_thresholds()
    for name, value in _flat(values, where):
        if name not in known:
            raise ThresholdsError(f"{where}{_unknown(name, known)}")
        try:
            found[name] = _value(name, known[name], value, bool(where))
        except ThresholdsError as error:
            raise ThresholdsError(f"{where}{error}") from None
    for rule in RULES:
        for each in rule.thresholds:
            if each.at_most is not None:
                _check_order(rule.named(each), f"{rule.kind}.{each.at_most}", found, where)
    return found


def _check_order(name: str, limit: str, found: Mapping[str, Any], where: str) -> None:
    """Raise a ThresholdsError if a threshold exceeds the one that limits it."""
    if found[name] > found[limit]:
        usual = usual_thresholds()
        one, other = (
            f"{each} ({_written(each, found)}{', the default' if found[each] == usual[each] else ''})"
            for each in (name, limit)
        )
        raise ThresholdsError(f"{where}{one} must not be above {other}: set both")


def _written(name: str, found: Mapping[str, Any]) -> str:
    value = found[name]
    return length(value) if known_thresholds()[name].kind == "duration" else f"{value}"


def _unknown(name: str, known: Mapping[str, Threshold]) -> str:
    kind, dot, rest = name.partition(".")
    kinds = dict.fromkeys(each.partition(".")[0] for each in known)
    if kind not in kinds:
        # For a name without its kind, suggest the kinds that have such a threshold.
        close = [each for each in known if each.partition(".")[2] == name] or close_names(name, known, 1)
        meant = f"did you mean {' or '.join(close)}?" if close else near(kind, kinds)
        return f"no threshold is called {name!r}; {meant}"
    own = [each.partition(".")[2] for each in known if each.startswith(f"{kind}.")]
    return (
        f"{kind} has no threshold {rest!r}; {near(rest, own)}"
        if dot
        else f"{kind} names a kind of finding: write {kind}.{own[0]}"
    )


def _flat(values: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    for kind, of_kind in values.items():
        if isinstance(of_kind, Mapping) and of_kind:
            yield from ((f"{kind}.{name}", value) for name, value in of_kind.items())
        else:
            yield str(kind), of_kind


def _read(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ThresholdsError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ThresholdsError(f"{path}: is not UTF-8, but TOML must be") from None
    except tomllib.TOMLDecodeError as error:
        raise ThresholdsError(f"{path}: is not TOML: {error}") from None


def _value(name: str, threshold: Threshold, value: Any, is_file: bool = True) -> Any:
    """The value in milliseconds, or as a count or a share. In a file, a duration needs a unit, so a plain number is
    invalid."""
    if threshold.kind == "duration":
        return _milliseconds(name, value, is_file)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if threshold.kind == "share":
        if not is_number or not 0 <= value <= 1:
            raise ThresholdsError(f"{name}: {value!r} is not a share: write a number from 0 to 1")
        return value
    # Infinity and NaN do not have a remainder.
    if not is_number or value % 1 != 0 or value < 0:
        raise ThresholdsError(f"{name}: {value!r} is not a count: write a whole number of 0 or more")
    return int(value)


def _milliseconds(name: str, value: Any, is_file: bool) -> int:
    if isinstance(value, timedelta) and value >= timedelta():
        return int(value.total_seconds() * 1000)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0 and not is_file:
        return value
    if not isinstance(value, str):
        raise ThresholdsError(f'{name}: {value!r} is not a duration: write "90s", "30m", "24h" or "7d"')
    try:
        return duration(value)
    except QueryError as error:
        raise ThresholdsError(f"{name}: {error}") from None


def thresholds_file() -> str:
    """A TOML file with all defaults, each with its meaning and the reason for its value."""
    lines = ["# Thresholds of kafka-records report. A file names those that differ from these defaults."]
    lines += _table_lines(OF_REPORT, "all kinds of findings", _GENERAL)
    for rule in RULES:
        if rule.thresholds:
            lines += _table_lines(rule.kind, rule.title, rule.thresholds)
    return "\n".join(lines) + "\n"


def _table_lines(name: str, title: str, thresholds: tuple[Threshold, ...]) -> Iterator[str]:
    yield from ("", f"# {title}", f"[{name}]")
    for each in thresholds:
        order = "" if each.at_most is None else f" Not above {each.at_most}."
        about = textwrap.wrap(f"{each.about}. Why: {each.reason}.{order}", 100, break_on_hyphens=False)
        yield from (f"# {line}" for line in about)
        yield f'{each.name} = "{each.default}"' if each.kind == "duration" else f"{each.name} = {each.default}"


def of_report() -> tuple[Threshold, ...]:
    """The thresholds that apply to all kinds."""
    return _GENERAL
