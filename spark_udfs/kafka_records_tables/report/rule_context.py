"""The input of a rule: the rows of the tables, the time of the report, the thresholds, and functions that put findings
into words."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_runtime.errors import plural
from kafka_records_tables.report.command_lines import command_line, condition_of, kafka_command, option, records_command
from kafka_records_tables.report.report_parts import NextStep, ReportRequest, Rows
from kafka_records_tables.report.table_words import package_words, table_words
from kafka_records_tables.tables import TABLES
from kafka_records_tables.tables.sorted_rows import sorted_rows

if TYPE_CHECKING:
    from kafka_records_engine.findings import Finding
    from kafka_records_engine.log.reading.missing_end import MissingEnd
    from kafka_records_tables.report.lost_files import LostFile
    from kafka_records_tables.tables import Table

Made = TypeVar("Made")
SecondLook = Callable[["Table", "tuple[str, ...] | None", "str | None", Mapping[str, Any]], "pa.Table | None"]

SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

MOST_EVIDENCE: Final = 10
"""The maximum number of records in a finding's `evidence`; `evidence_count` counts all."""


@dataclass
class _Look:
    """Table rows that were read a second time."""

    groups: frozenset[str] | None
    """The groups to which these rows belong; None for all groups."""
    rows: pa.Table


@dataclass(frozen=True)
class RuleContext:
    """Everything a rule may use."""

    request: ReportRequest
    tables: Mapping[str, pa.Table]
    reading: Sequence[Finding]
    limits: Mapping[str, Any]
    """The thresholds by full name, in milliseconds, counts and shares."""
    lost: Sequence[LostFile] = ()
    """Missing files of logs, as shown by records."""
    ends: Sequence[MissingEnd] = ()
    """Logs whose end is missing, as shown by other files of the broker."""
    bootstrap: str | None = None
    config: str | None = None
    second_look: SecondLook | None = None
    """Reads another table of the source for some groups or a topic; None if the report is made only from given
    tables."""
    _made: dict[Callable[[RuleContext], Any], Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    _looks: dict[Any, _Look] = field(default_factory=dict, init=False, repr=False, compare=False)
    _by_group: dict[str, pa.Table] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By table name, the tables sorted by group."""

    @property
    def at_ms(self) -> int:
        """The time that the report is about."""
        return self.request.at_timestamp_ms

    @property
    def is_of_the_past(self) -> bool:
        """Whether the last record is old. If so, durations are counted up to a time that the user did not choose."""
        return not self.request.as_of and self.request.made_timestamp_ms - self.at_ms > HOUR_MS

    @property
    def is_stored(self) -> bool:
        """Whether the logs are files, so later records are unknown."""
        return self.bootstrap is None

    def table(self, name: str) -> pa.Table:
        """The rows of a table; empty if the source does not have its topic."""
        there = self.tables.get(name)
        return TABLES[name].schema.empty_table() if there is None else there

    def rows_of_group(self, name: str, group: str) -> pa.Table:
        """The rows of a table about a group."""
        if name not in self._by_group:
            self._by_group[name] = sorted_rows(self.table(name), ["group_id"])
        rows = self._by_group[name]
        # Comparing a million names would take longer than looking at twenty.
        ids, places = rows["group_id"], range(rows.num_rows)
        start = bisect_left(places, group, key=lambda place: ids[place].as_py())
        end = bisect_right(places, group, start, key=lambda place: ids[place].as_py())
        return rows.slice(start, end - start)

    def once(self, make: Callable[[RuleContext], Made]) -> Made:
        """The result of a function of this context, which is called only once."""
        if make not in self._made:
            self._made[make] = make(self)
        return cast("Made", self._made[make])

    def look(
        self, table: str | Table, groups: Sequence[str] | None = None, *, topic: str | None = None, **options: Any
    ) -> pa.Table:
        """The rows of a table that reports read for some groups only. The source is read again for groups that no rule
        has requested yet. `topic` is for tables about all topics; `options` are additional options of the table. The
        result is empty if the report is made only from given tables, or if the source does not have the topic."""
        declaration = TABLES[table] if isinstance(table, str) else table
        key = declaration.name, topic, tuple(options.items())
        known = self._looks.setdefault(key, _Look(frozenset(), declaration.schema.empty_table()))
        asked = None if groups is None else frozenset(groups)
        if known.groups is not None and (asked is None or asked - known.groups):
            new = None if asked is None else tuple(sorted(asked - known.groups))
            found = None if self.second_look is None else self.second_look(declaration, new, topic, options)
            if asked is None:
                known.groups, known.rows = None, known.rows.slice(0, 0) if found is None else found
            else:
                known.groups |= asked
                if found is not None:
                    both = pa.concat_tables([known.rows, found])
                    known.rows = sorted_rows(both, declaration.sort) if known.rows.num_rows else found
        if asked is None or known.groups == asked:
            return known.rows
        return known.rows.filter(pc.is_in(known.rows[declaration.group], pa.array([*asked], pa.string())))

    def looked_up(self, name: str) -> pa.Table | None:
        """The rows of a table that rules have read a second time without a topic or options; None if no rule has."""
        look = self._looks.get((name, None, ()))
        return None if look is None else look.rows

    def limit(self, name: str) -> Any:
        """A threshold: milliseconds, a count or a share."""
        return self.limits[name]

    def limits_of(self, *names: str) -> dict[str, Any]:
        """Some thresholds by their names, for a finding that depends on them."""
        return {name: self.limits[name] for name in names}

    # -- what to do next -----------------------------------------------------------------------------------------------

    def command(self, rows: Rows, *more: str) -> str:
        """The command that prints rows of a table of this report."""
        where = [word for each in rows.where for word in option("--where", each)]
        return command_line([*table_words(self.request, rows.table), *more, *where])

    def reading_command(self, command: str, *words: str) -> str:
        """The command line of another command that reads this report's source, for example `dump` or `counts`."""
        return command_line(
            ["kafka-records", command, *self.request.source_arguments, *package_words(self.request), *words]
        )

    def see(self, what: str, rows: Rows, *more: str) -> NextStep:
        """The step of looking at table rows."""
        has_source = bool(self.request.source_arguments)
        return NextStep(what, self.command(rows, *more) if has_source else None)

    def ask_kafka(self, what: str, tool: str, *words: str) -> NextStep:
        """The step of running one of Kafka's tools."""
        return NextStep(what, kafka_command(tool, self.bootstrap, self.config, *words))

    def ask_records(self, what: str, command: str, *words: str) -> NextStep:
        """The step of running another command of this project against running brokers."""
        return NextStep(what, records_command(command, self.bootstrap, self.config, *words))

    def describe_group(self, group: str, what: str = "Ask the brokers who is in the group now") -> NextStep:
        """The step of asking brokers for a group's present state."""
        return self.ask_kafka(what, "kafka-consumer-groups", "--describe", *option("--group", group))

    def describe_members(self, group: str) -> NextStep:
        """The step of asking brokers for a group's present members and their partitions."""
        words = ("--describe", "--members", "--verbose", *option("--group", group))
        return self.ask_kafka("Ask the brokers for the members now", "kafka-consumer-groups", *words)


# -- in words ----------------------------------------------------------------------------------------------------------

_LONGEST: Final = 60
_UNITS: Final = ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min"), (SECOND_MS, "s"))


def shown(name: str | None) -> str:
    """A name for use in a sentence: in quotes, and shortened if it is long."""
    if name is None:
        return "an unnamed one"
    return f'"{name}"' if len(name) <= _LONGEST else f'"{name[:_LONGEST]}…" ({len(name)} characters)'


def listed(names: Sequence[str], most: int = 3) -> str:
    """The first `most` names and the number of the others, for use in a sentence."""
    first = ", ".join(map(shown, names[:most]))
    return first if len(names) <= most else f"{first} and {len(names) - most} more"


def length(ms: float) -> str:
    """A duration in words, in its two largest units: `2 d 3 h`, `850 ms`."""
    left = max(round(ms), 0)
    if left < SECOND_MS:
        return f"{left} ms"
    if left < 10 * SECOND_MS:
        return f"{left / SECOND_MS:.1f} s".replace(".0 s", " s")
    parts: list[str] = []
    for size, unit in _UNITS:
        number, left = divmod(left, size)
        if number or parts:
            parts.append(f"{number} {unit}" if number else "")
        if len(parts) == 2:
            break
    return " ".join(filter(None, parts))


def moment(ms: int) -> str:
    """A time in words, in UTC."""
    try:
        return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms since 1970"


def counted(number: int, noun: str) -> str:
    """`1 offset`, `2 offsets`."""
    return str(plural(number, noun))


def capital(text: str) -> str:
    """The text with a capital first letter."""
    return f"{text[:1].upper()}{text[1:]}"


def of_group(group: str, *more: str) -> tuple[str, ...]:
    """Conditions that select the rows of a group, followed by the conditions `more`."""
    return (condition_of("group_id", group), *more)


def partitions_shown(numbers: Sequence[int]) -> str:
    """Partitions in a sentence: `partition 2`, `partitions 0-3, 7`."""
    return f"partition{'' if len(set(numbers)) == 1 else 's'} {numbers_shown(numbers)}"


def places_shown(places: Iterable[tuple[str, int]], most: int = 3) -> str:
    """Topics with their partitions in a sentence: `"orders" (partitions 0-3), "returns" (partition 2) and 4 more`."""
    of_topics: dict[str, list[int]] = {}
    for topic, partition in places:
        of_topics.setdefault(topic, []).append(partition)
    first = [f"{shown(topic)} ({partitions_shown(of_topics[topic])})" for topic in sorted(of_topics)[:most]]
    more = "" if len(of_topics) <= most else f" and {counted(len(of_topics) - most, 'more topic')}"
    return ", ".join(first) + more


def numbers_shown(numbers: Sequence[int], most: int = 8) -> str:
    """Numbers of partitions in a sentence: `0-3, 7`."""
    ordered = sorted(set(numbers))
    runs: list[list[int]] = []
    for number in ordered:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return ", ".join(texts[:most]) + (" …" if len(texts) > most else "")
