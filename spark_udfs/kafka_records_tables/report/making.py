"""`read_report`: the tables of a source, and what is wrong in them."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.findings import MISSING_RIGHT
from kafka_records_engine.log.discovery import LogSourceError
from kafka_records_engine.sources import Counts
from kafka_records_engine.sources.given import source_of
from kafka_records_tables.query import query_of, topic_columns
from kafka_records_tables.read import read_tables
from kafka_records_tables.report.glance import numbers_of
from kafka_records_tables.report.lost_files import lost_files
from kafka_records_tables.report.ranking import findings_of
from kafka_records_tables.report.report_diff import earlier_report, report_diff
from kafka_records_tables.report.report_parts import USUAL_PACKAGE, Report, ReportRequest
from kafka_records_tables.report.sight import Sight
from kafka_records_tables.report.thresholds import thresholds_of
from kafka_records_tables.selection import Selection
from kafka_records_tables.table_options import moment, value_of
from kafka_records_tables.tables import TABLES, is_of_records
from kafka_records_tables.tables.declaration import RETENTION
from kafka_records_tables.tables.words.check_words import PARTITIONS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from kafka_records_engine.findings import Finding
    from kafka_records_tables.engines.request import OnProgress
    from kafka_records_tables.results.result import Result

REPORTED: Final = (
    "groups",
    "members",
    "assignments",
    "current_offsets",
    "pending_offsets",
    "expirations",
    "deletable_offsets",
    "regressions",
    "timeline",
    "activity",
    "share_partitions",
    "share_group_topics",
    "transactions",
    "open_transactions",
    "log_ends",
    "lag",
    "group_lag",
    "progress",
    "checks",
)
"""The tables of a report."""

_OF_NOW: Final = "where logs start and end is known only as it is now, and the report is about another moment"
_OF_ALL_GROUPS: Final = frozenset({"transactions", "open_transactions", "log_ends"})
"""Tables whose rows are not asked for by a group: those of transactions would take it for a transactional id."""


def read_report(
    source: Any,
    *,
    group: str | Sequence[str] | None = None,
    topic_filter: str | Sequence[str] | None = None,
    as_of: datetime | int | str | None = None,
    retention: timedelta | int | str | None = None,
    partitions: Mapping[str, int] | int | str | None = None,
    untold: Literal["committed"] | None = None,
    thresholds: Mapping[str, Any] | str | Path | None = None,
    package: str = USUAL_PACKAGE,
    processes: int | None = None,
    spark: SparkSession | None = None,
    on_progress: OnProgress | None = None,
    source_arguments: Sequence[str] | None = None,
    diff: Report | Path | str | None = None,
) -> Report:
    """What is wrong in the topics of the coordinators: findings, the worst first, with the tables they come from.

    Parameters
    ----------
    source, untold, package, processes, spark, on_progress
        As for `read_table`.
    group
        Only what is about this group, or these: their findings, rows and open transactions.
    topic_filter
        Patterns with `*`, `?` and `[…]`: only what is about topics whose name one of them matches. A finding stays that
        names such a topic, or a group with a row about one; it is judged and counted by all rows. What is about the
        logs of coordinators stays. Of tables stay the rows about such topics.
    as_of
        The report as at this moment (`read_table`). Ends of logs are not known of earlier moments, so there is no lag.
    retention
        offsets.retention.minutes of the brokers: a timedelta, milliseconds or a text (`14d`); 7 days by default.
    partitions
        How many partitions __consumer_offsets has, or a mapping of topics to numbers: without it, records in the wrong
        partition are looked for on running brokers only, which know.
    thresholds
        A file of thresholds (TOML), or a mapping of them; docs/report.md has all with their defaults and reasons.
    source_arguments
        What names the source on a command line, for the commands of findings; the paths by default.
    diff
        An earlier report of the same selection, or the file of one that `kafka-records report --format json` wrote:
        what changed since then.

    Returns
    -------
    Report
        `.findings`, `.numbers`, `.tables`, and what was met while reading; with `diff`, `.diff` says which findings are
        new, worse, better and gone, and in `.diff.notes` what else the two reports differ in.

    Raises
    ------
    ThresholdsError
        For thresholds that cannot be used.
    DiffError
        For a file that is no report, and an earlier report about other groups or topics; before anything is read.
    LogSourceError
        For a source that is not there, or holds none of the three topics.
    Exception
        Whatever `read_table` raises otherwise.

    Examples
    --------
    >>> report = read_report("/var/lib/kafka/data", retention="14d")
    >>> [(finding.level.word, finding.title) for finding in report.findings]
    """
    limits = thresholds_of(thresholds)
    groups = None if group is None else (group,) if isinstance(group, str) else tuple(group)
    patterns = () if topic_filter is None else (topic_filter,) if isinstance(topic_filter, str) else tuple(topic_filter)
    as_of_ms = None if as_of is None else moment("as_of", as_of)
    retention_ms = value_of(RETENTION, RETENTION.default if retention is None else retention)
    counts = value_of(PARTITIONS, partitions)
    earlier = None if diff is None else earlier_report(diff)
    if earlier is not None:
        earlier.check_selection(groups, patterns)
    made_ms = time.time_ns() // 1_000_000
    given = source_of(source)
    reading = _Reading(
        given,
        groups,
        as_of_ms,
        {"untold": untold, "package": package, "processes": processes, "spark": spark, "on_progress": on_progress},
        {RETENTION.name: retention_ms, PARTITIONS.name: counts},
    )
    tables = reading.tables()
    bootstrap, config = _brokers(given, source_arguments)
    # Counted are all records that were read, be they chosen or not.
    last_ms = None if bootstrap else reading.counts.last_timestamp_ms
    at_ms = as_of_ms if as_of_ms is not None else made_ms if last_ms is None else last_ms
    request = ReportRequest(
        source=given.name,
        source_arguments=_arguments(source, given) if source_arguments is None else tuple(source_arguments),
        made_timestamp_ms=made_ms,
        at_timestamp_ms=at_ms,
        as_of=as_of_ms is not None,
        retention_ms=retention_ms,
        groups=groups,
        topic_filter=patterns,
        version=_version(),
        engine="local" if spark is None else "spark",
        untold=untold,
        package=package,
        partitions=counts,
    )
    lost = lost_files(given, reading.found)
    # Rules see all rows, and what a finding counts is of the whole.
    findings = findings_of(Sight(request, tables, reading.found, limits, lost, bootstrap, config))
    chosen = {name: _about_topics(name, rows, patterns) for name, rows in tables.items()}
    report = Report(request, findings, numbers_of(chosen), chosen, reading.missing, reading.found, reading.counts)
    return report if earlier is None else replace(report, diff=report_diff(report, earlier))


class _Reading:
    """The tables of one report."""

    def __init__(
        self,
        source: Any,
        groups: tuple[str, ...] | None,
        as_of_ms: int | None,
        settings: dict[str, Any],
        options: Mapping[str, Any],
    ) -> None:
        self._source = source
        self._groups = groups
        self._as_of_ms = as_of_ms
        self._settings = settings
        self._options = options
        self.missing: dict[str, str] = {}
        self.found: list[Finding] = []
        self.counts = Counts()

    def tables(self) -> dict[str, pa.Table]:
        """The rows by the names of tables. Raises LogSourceError where no log of any of the topics is there, or may be
        read."""
        names = [name for name in REPORTED if self._as_of_ms is None or is_of_records(TABLES[name])]
        self.missing = dict.fromkeys((name for name in REPORTED if name not in names), _OF_NOW)
        found: dict[str, Result] = {}
        if self._groups is None:
            self._read(names, found)
        else:
            self._read([name for name in names if name not in _OF_ALL_GROUPS], found, group=self._groups)
            self._read([name for name in names if name in _OF_ALL_GROUPS], found)
        rights = [each for each in self.found if each.reason == MISSING_RIGHT]
        if rights and not any(TABLES[name].topic for name in found):
            raise LogSourceError(self._source.name, rights[0].what)
        return {name: self._chosen(name, found[name].table) for name in REPORTED if name in found}

    def _read(self, names: Sequence[str], found: dict[str, Result], **asked: Any) -> None:
        own = {option.name for name in names for option in TABLES[name].options}
        asked["options"] = {name: value for name, value in self._options.items() if name in own}
        if self._as_of_ms is not None:
            asked["as_of"] = self._as_of_ms
        results = read_tables(names, self._source, **self._settings, **asked)
        found.update(results)
        self.missing.update(results.missing)
        self.found += (each for each in results.findings if each not in self.found)
        # The second reading sees nothing that the first one did not.
        self.counts.widen(results.counts)

    def _chosen(self, name: str, rows: pa.Table) -> pa.Table:
        """Those of the rows that are about the groups of the report."""
        if name != "open_transactions" or self._groups is None:
            return rows
        held = rows["holds_back"].combine_chunks()
        of_groups = pc.is_in(held.flatten().field("group_id"), pa.array(self._groups))
        return rows.take(pc.unique(pc.list_parent_indices(held).filter(of_groups)))


def _about_topics(name: str, rows: pa.Table, patterns: tuple[str, ...]) -> pa.Table:
    """The rows of a table that `table NAME --topic-filter …` prints; all of one whose rows are about no topic."""
    if not patterns or not topic_columns(TABLES[name]):
        return rows
    query = query_of(TABLES[name], topics=patterns)
    return pa.Table.from_batches(list(Selection(TABLES[name], iter(rows.to_batches()), query)), rows.schema)


def _brokers(source: Any, arguments: Sequence[str] | None) -> tuple[str | None, str | None]:
    """The addresses of running brokers, and the file that says how to talk to them."""
    given = list(arguments or ())
    config = given[given.index("--command-config") + 1] if "--command-config" in given else None
    if "--bootstrap" in given:
        return given[given.index("--bootstrap") + 1], config
    # Who has such a source has loaded its module, which takes a while.
    live = sys.modules.get("kafka_records_engine.sources.live")
    is_live = live is not None and isinstance(source, live.LiveBrokers)
    return (source.name, config) if is_live else (None, None)


def _arguments(given: Any, source: Any) -> tuple[str, ...]:
    """What names the source on a command line, as far as a value does."""
    if isinstance(given, str | PathLike):
        return (fspath(given),)
    if isinstance(given, list | tuple) and all(isinstance(each, str | PathLike) for each in given):
        return tuple(map(fspath, given))
    bootstrap, _ = _brokers(source, None)
    return () if bootstrap is None else ("--bootstrap", bootstrap)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("kafka-records")
    except PackageNotFoundError:
        return "0"
