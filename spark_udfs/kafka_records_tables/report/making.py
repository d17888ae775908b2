"""Reads the tables of a source, and finds the problems in them."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine import arguments
from kafka_records_engine.findings import ABSENT_LOG, JUDGED_AS_OF, MISSING_RIGHT, OUTSIDE_LOG, Finding
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources import Counts
from kafka_records_engine.sources.abilities import search_of
from kafka_records_engine.sources.given import source_of
from kafka_records_engine.sources.question import Question, together
from kafka_records_tables.engines.checked_request import question_of, requests_of
from kafka_records_tables.engines.kept_answers import program_version
from kafka_records_tables.engines.with_state import State, check_state, source_with_state
from kafka_records_tables.query import query_of, topic_columns
from kafka_records_tables.read import Engine, read_answers
from kafka_records_tables.report.command_lines import command_line, instant
from kafka_records_tables.report.facts.data_directories import cluster_id_of
from kafka_records_tables.report.glance import numbers_of
from kafka_records_tables.report.last_record import last_record_ms
from kafka_records_tables.report.lost_files import cut_metadata, lost_files, missing_ends
from kafka_records_tables.report.ranking import findings_of
from kafka_records_tables.report.report_diff import EarlierReport, earlier_report, report_diff
from kafka_records_tables.report.report_parts import USUAL_PACKAGE, Report, ReportRequest
from kafka_records_tables.report.rule_context import RuleContext
from kafka_records_tables.report.thresholds import thresholds_of
from kafka_records_tables.selection import Selection
from kafka_records_tables.table_options import moment, value_of
from kafka_records_tables.tables import TABLES, is_of_records
from kafka_records_tables.tables.completeness import time_text
from kafka_records_tables.tables.declaration import RETENTION
from kafka_records_tables.tables.words.check_words import PARTITIONS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from kafka_records_engine.sources import Source
    from kafka_records_tables.engines.request import OnProgress
    from kafka_records_tables.results.result import Result
    from kafka_records_tables.tables import Table

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

_OF_NOW: Final = (
    "only the present starts and ends of logs are known, but the report is about an earlier moment, so groups that "
    "fall behind, stand still or fail on a record are not found: leave out --as-of to find them"
)
_NO_COORDINATOR: Final = (
    "there is no log of a coordinator here (__consumer_offsets, __share_group_state, __transaction_state), so nothing "
    "is known about groups and transactions: give the data directory of a broker that has one"
)
_SAID: Final = frozenset({JUDGED_AS_OF, ABSENT_LOG})
"""The reasons of table findings that a report itself states, in its first line or as findings of its own."""
_OF_ALL_GROUPS: Final = frozenset({"transactions", "open_transactions", "log_ends"})
"""Tables that are always read for all groups, because tables of transactions would take a group name for a
transactional id."""


def read_report(
    source: Any,
    *,
    group: str | Sequence[str] | None = None,
    topic_filter: str | Sequence[str] | None = None,
    as_of: datetime | int | str | None = None,
    retention: timedelta | int | str | None = None,
    partitions: Mapping[str, int] | int | str | None = None,
    assume: Literal["committed"] | None = None,
    thresholds: Mapping[str, Any] | str | Path | None = None,
    package: str = USUAL_PACKAGE,
    processes: int | None = None,
    spark: SparkSession | None = None,
    on_progress: OnProgress | None = None,
    source_arguments: Sequence[str] | None = None,
    command_config: str | None = None,
    diff: Report | Path | str | None = None,
    state: State | None = None,
) -> Report:
    """Find the problems in the topics of the coordinators: findings, worst first, with the tables they come from.

    Parameters
    ----------
    source, assume, package, processes, spark, on_progress
        As for `read_table`.
    group
        Return only findings, rows and open transactions of this group or these groups.
    topic_filter
        Patterns with `*`, `?` and `[…]`: return only findings about a matching topic, or about a group that has rows
        about one. Findings are still judged and counted with all rows. Findings about the logs of coordinators remain.
        Tables keep the rows about such topics.
    as_of
        The time that the report is about (as in `read_table`). Earlier log ends are unknown, so a report about a time
        before the last record leaves out lag. Files do not show what happened after their last record, so for a later
        time the report is as of that record, and a note says so.
    retention
        offsets.retention.minutes of the brokers: a timedelta, milliseconds or a string (`14d`); 7 days by default.
    partitions
        The number of partitions of __consumer_offsets, or a mapping from topics to numbers. Without it, records in the
        wrong partition are found only on running brokers, which report the number.
    thresholds
        A file of thresholds (TOML), or a mapping of them. docs/report.md lists all of them with defaults and reasons.
    source_arguments
        The arguments that name the source on a command line, for commands in findings. The default is the paths, or the
        addresses of running brokers.
    command_config
        The properties file for running brokers, used in these commands.
    diff
        An earlier report of the same selection, or a file with one, as written by `kafka-records report --format json`.
        The report then shows what has changed since.
    state
        As for `read_table`, but all records are kept, because findings are about the past too.

    Returns
    -------
    Report
        Has `.findings`, `.numbers`, `.tables` and the problems found while reading. With `diff`, `.diff` says which
        findings are new, worse, better or gone, and `.diff.notes` lists other differences between the two reports.

    Raises
    ------
    ThresholdsError
        If the thresholds are invalid.
    DiffError
        If `diff` is not a report, or is about other groups, topics or another cluster. This is checked before reading.
    LogSourceError
        If the source does not exist or has none of the three topics.
    Exception
        Any other error of `read_table`.

    Examples
    --------
    >>> report = read_report("/var/lib/kafka/data", retention="14d")
    >>> [(finding.level.word, finding.title) for finding in report.findings]
    """
    limits = thresholds_of(thresholds)
    groups = None if group is None else (group,) if isinstance(group, str) else tuple(group)
    patterns = () if topic_filter is None else (topic_filter,) if isinstance(topic_filter, str) else tuple(topic_filter)
    question = report_question(groups, as_of, retention, partitions, assume, package)
    earlier = None if diff is None else earlier_report(diff)
    if earlier is not None:
        earlier.check_selection(groups, patterns)
    given = source_of(source)
    bootstrap = _addresses(given)
    if source_arguments is not None:
        words = tuple(source_arguments)
    else:
        words = _paths(source) if bootstrap is None else ("--bootstrap", bootstrap)
    named = NamedSource(words, bootstrap, command_config)
    if state is not None:
        check_state(question, by_spark=spark is not None)
    engine = Engine(processes, spark, on_progress)
    with source_with_state(question, given, state, on_progress) as kept:
        return report_of(question, kept, named, engine, limits, patterns, earlier)


@dataclass(frozen=True, slots=True)
class NamedSource:
    """The source, as commands refer to it."""

    arguments: tuple[str, ...] = ()
    """The arguments that specify the source on a command line; empty if there are none."""
    bootstrap: str | None = None
    """The addresses of running brokers; None for stored logs."""
    command_config: str | None = None
    """The properties file for the brokers."""


def report_question(
    groups: tuple[str, ...] | None,
    as_of: datetime | int | str | None,
    retention: timedelta | int | str | None,
    partitions: Mapping[str, int] | int | str | None,
    assume: str | None,
    package: str,
) -> Question:
    """The request to the tables of a report. For invalid arguments, raises the same errors as `read_report`."""
    as_of_ms = None if as_of is None else moment("as_of", as_of)
    names = [name for name in REPORTED if as_of_ms is None or is_of_records(TABLES[name])]
    given = {
        RETENTION.name: value_of(RETENTION, RETENTION.default if retention is None else retention),
        PARTITIONS.name: value_of(PARTITIONS, partitions),
    }
    question = question_of(names, as_of=as_of_ms, assume=assume, package=package, options=given)
    # Tables without an option for groups are read for all groups.
    return question if groups is None else replace(question, groups=arguments.texts("group", groups))


def report_of(
    question: Question,
    source: Source,
    named: NamedSource,
    engine: Engine,
    limits: Mapping[str, Any],
    topics: tuple[str, ...] = (),
    earlier: EarlierReport | None = None,
) -> Report:
    """The result of `read_report` for a request that the caller has built; `limits` are all thresholds."""
    with search_of(source):
        return _report_of(question, source, named, engine, limits, topics, earlier)


def _report_of(
    question: Question,
    source: Source,
    named: NamedSource,
    engine: Engine,
    limits: Mapping[str, Any],
    topics: tuple[str, ...],
    earlier: EarlierReport | None,
) -> Report:
    cluster_id = cluster_id_of(named.arguments)
    if earlier is not None:
        earlier.check_cluster(cluster_id)
    made_ms = time.time_ns() // 1_000_000
    asked_ms = question.as_of_ms
    end_ms = None if asked_ms is None or named.bootstrap else last_record_ms(source)
    if asked_ms is not None and end_ms is not None and _last_of(asked_ms) >= end_ms:
        question = _as_of_end(question)
    reading = _Reading(source, question, engine)
    tables = reading.tables()
    if asked_ms is not None and end_ms is not None and asked_ms > end_ms:
        reading.found.append(_ends_before(asked_ms, end_ms, named))
    # The counts include all records that were read, whether or not they were selected.
    last_ms = None if named.bootstrap else reading.counts.last_timestamp_ms
    at_ms = question.as_of_ms if question.as_of_ms is not None else made_ms if last_ms is None else last_ms
    if "lag" in tables:
        tables["lag"] = _as_of(tables["lag"], at_ms)
    options = question.options_of_all
    request = ReportRequest(
        source=source.name,
        source_arguments=named.arguments,
        made_timestamp_ms=made_ms,
        at_timestamp_ms=at_ms,
        as_of=question.as_of_ms is not None,
        retention_ms=options[RETENTION.name],
        groups=question.groups,
        topic_filter=topics,
        version=program_version(),
        engine="local" if engine.spark is None else "spark",
        assume=question.assume,
        package=question.package,
        partitions=options.get(PARTITIONS.name),
        cluster_id=cluster_id,
    )
    lost = lost_files(source, reading.found)
    reading.found += cut_metadata(tables.get("log_ends"))
    # Rules get all rows, and the numbers in findings are computed from all rows.
    context = RuleContext(
        request,
        tables,
        reading.found,
        limits,
        lost,
        missing_ends(source),
        named.bootstrap,
        named.command_config,
        reading.look,
    )
    findings = findings_of(context)
    chosen = {name: _about_topics(name, rows, topics) for name, rows in tables.items()}
    report = Report(
        request,
        findings,
        numbers_of(chosen),
        chosen,
        reading.missing,
        reading.found,
        reading.counts,
        commits=context.looked_up("history"),
        log_samples=context.looked_up("log_samples"),
    )
    return report if earlier is None else replace(report, diff=report_diff(report, earlier))


def _last_of(moment_ms: int) -> int:
    """The last millisecond of a time given in whole seconds, because reports print times without milliseconds."""
    return moment_ms if moment_ms % 1000 else moment_ms + 999


def _as_of_end(question: Question) -> Question:
    """The same request as of the last record, because log ends from files are valid at that time."""
    options = question.options_of_all
    retention, partitions = options[RETENTION.name], options.get(PARTITIONS.name)
    return report_question(question.groups, None, retention, partitions, question.assume, question.package)


def _ends_before(asked_ms: int, end_ms: int, named: NamedSource) -> Finding:
    """A note that the logs end before the requested time."""
    words = ["kafka-records", "table", "expirations", *named.arguments, "--as-of", instant(asked_ms)]
    return Finding(
        "note",
        OUTSIDE_LOG,
        f"the last record is of {time_text(end_ms)}, and nothing later is known, so the report is as of that time and "
        f"not of {time_text(asked_ms)}",
        f"{command_line(words)} shows which offsets expire by then if nothing is committed",
    )


class _Reading:
    """The tables of one report."""

    def __init__(self, source: Source, question: Question, engine: Engine) -> None:
        self._source = source
        self._question = question
        self._engine = engine
        self.missing: dict[str, str] = {}
        self.found: list[Finding] = []
        self.counts = Counts()

    def tables(self) -> dict[str, pa.Table]:
        """The rows, by table name. Raises LogSourceError if no log of the topics exists or may be read."""
        question = self._question
        asked = {each.table.name: each.question for each in requests_of(question)}
        self.missing = dict.fromkeys((name for name in REPORTED if name not in asked), _OF_NOW)
        found: dict[str, Result] = {}
        if question.groups is None:
            self._read(question, found)
        else:
            of_groups = [each for name, each in asked.items() if name not in _OF_ALL_GROUPS]
            of_all = [each for name, each in asked.items() if name in _OF_ALL_GROUPS]
            self._read(together(of_groups), found)
            self._read(replace(together(of_all), groups=None), found)
        if not any(TABLES[name].topic for name in found):
            rights = [each.what for each in self.found if each.reason == MISSING_RIGHT]
            raise LogSourceError(self._source.name, rights[0] if rights else _NO_COORDINATOR)
        return {name: self._chosen(name, found[name].table) for name in REPORTED if name in found}

    def look(
        self, table: Table, groups: tuple[str, ...] | None, topic: str | None, more: Mapping[str, Any]
    ) -> pa.Table | None:
        """The rows of another table, for some groups or a topic; None if the source does not have its topic."""
        question = self._question
        options = {name: value for name, value in question.options_of_all.items() if name in _names(table)}
        if question.as_of_ms is not None and not is_of_records(table):
            return None
        asked = question_of(
            [table],
            as_of=question.as_of_ms,
            assume=question.assume,
            topic=topic,
            package=question.package,
            options={**options, **more},
        )
        try:
            found = read_answers(replace(asked, groups=groups), self._source, self._engine)
        except LogSourceError:
            return None
        return found[table.name].table if table.name in found else None

    def _read(self, question: Question, found: dict[str, Result]) -> None:
        results = read_answers(question, self._source, self._engine)
        found.update(results)
        self.missing.update(results.missing)
        self.found += (each for each in results.findings if each not in self.found and each.reason not in _SAID)
        # The second pass reads the same logs as the first.
        self.counts.widen(results.counts)

    def _chosen(self, name: str, rows: pa.Table) -> pa.Table:
        """The rows that are about the groups of the report."""
        if name != "open_transactions" or self._question.groups is None:
            return rows
        held = rows["holds_back"].combine_chunks()
        of_groups = pc.is_in(held.flatten().field("group_id"), pa.array(self._question.groups))
        return rows.take(pc.unique(pc.list_parent_indices(held).filter(of_groups)))


def _as_of(lag: pa.Table, at_ms: int) -> pa.Table:
    """The rows of `lag` with durations up to the time of the report instead of the time of reading, because a stored
    log may be read days after its last record."""
    until = pc.subtract(pa.scalar(at_ms, pa.int64()), lag["unread_timestamp_ms"])
    # The sum of margin_ms and lag_ms is the topic's retention.
    margin = pc.subtract(pc.add(lag["margin_ms"], lag["lag_ms"]), until)
    for name, values in (("lag_ms", pc.max_element_wise(until, 0, skip_nulls=False)), ("margin_ms", margin)):
        lag = lag.set_column(lag.schema.get_field_index(name), lag.schema.field(name), values)
    return lag


def _names(table: Table) -> set[str]:
    return {option.name for option in table.options}


def _about_topics(name: str, rows: pa.Table, patterns: tuple[str, ...]) -> pa.Table:
    """The rows of a table that `table NAME --topic-filter …` prints; all rows if they are not about topics."""
    if not patterns or not topic_columns(TABLES[name]):
        return rows
    query = query_of(TABLES[name], topics=patterns)
    return pa.Table.from_batches(list(Selection(TABLES[name], iter(rows.to_batches()), query)), rows.schema)


def _addresses(source: Source) -> str | None:
    """The addresses of running brokers; None for other sources."""
    # The module is slow to load. If the source is of this class, it is already loaded.
    live = sys.modules.get("kafka_records_engine.sources.live")
    return source.name if live is not None and isinstance(source, live.LiveBrokers) else None


def _paths(given: Any) -> tuple[str, ...]:
    """The arguments that specify the source on a command line; empty if this is not possible."""
    if isinstance(given, str | PathLike):
        return (fspath(given),)
    if isinstance(given, list | tuple) and all(isinstance(each, str | PathLike) for each in given):
        return tuple(map(fspath, given))
    return ()
