"""Computes several tables over one source. Logs and inputs that several tables need are read only once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources import Counts
from kafka_records_engine.sources.abilities import HasHistory, HasIdentity, KeepsAnswers, has
from kafka_records_engine.sources.collected_findings import Findings
from kafka_records_engine.sources.given import source_of
from kafka_records_engine.sources.log_facts import KnownTopics
from kafka_records_engine.sources.missing_rights import MissingRight
from kafka_records_engine.sources.unreachable import UnreachableBrokers
from kafka_records_tables.engines.asked_brokers import moments_asked
from kafka_records_tables.engines.asked_coordinators import asked_coordinators, check_coordinators
from kafka_records_tables.engines.asked_moment import moment_notes
from kafka_records_tables.engines.joined_tables import LogsThere, ViewRows, at_the_bottom, logs_there, read_view
from kafka_records_tables.engines.kept_answers import KeptAnswer, KeptAnswers
from kafka_records_tables.engines.log_tasks import LogTask, RunReport, RunReports
from kafka_records_tables.engines.logs_to_read import (
    logs_key,
    logs_to_read,
    starts_before,
    topics_known_to,
    uses_topics,
    with_topics,
)
from kafka_records_tables.engines.packed_rows import PackedRows, RowStore
from kafka_records_tables.engines.query_checkpoints import CheckpointReader
from kafka_records_tables.engines.request import TableRequest

if TYPE_CHECKING:
    from kafka_records_engine.findings import Finding
    from kafka_records_engine.sources import LogPartition
    from kafka_records_tables.engines.request import OnProgress
    from kafka_records_tables.tables import Table

_IN_LOG_ORDER: Final = frozenset(("pending_offsets", "transactions"))
"""The inputs of `open_transactions`, which lists equal transactions in the order of their records."""

RunTasks = Callable[[Sequence[LogTask], RunReports, "OnProgress | None"], Iterator[tuple[int, pa.RecordBatch]]]
"""Returns the rows of some tasks, with the numbers of their requests. Engines implement this."""


class SeveralTables:
    """Determines what to read for some tables: a table itself, or the inputs of a view. Each is read once, no matter
    how many tables need it.

    `topic` is the topic of files or rows that do not name one. Raises LogSourceError if there is nothing to read for
    any of them, and TypeError and ValueError for an invalid source.
    """

    def __init__(self, requests: Sequence[TableRequest], given: Any, topic: str | None) -> None:
        topics = {request.table.topic for request in requests}
        self._topic = topic
        self._source = source_of(given, topic or (topics.pop() or None if len(topics) == 1 else None))
        # Get the log starts first. Otherwise, a log start might move past offsets that the records refer to.
        self._starts = starts_before([request.table for request in requests], self._source, topic)
        self._asked = asked_coordinators(self._source)
        self._only_views_ask = all(request.table.helper != "ends" for request in requests)
        self._logs: dict[str, Sequence[LogPartition] | LogSourceError] = {}
        self._read: list[tuple[TableRequest, Sequence[LogPartition]]] = []
        self._answers: dict[str, tuple[TableRequest, LogsThere]] = {}
        self._lacking: dict[Finding, None] = {}
        self._about_topics: list[Finding] = []
        self._store = RowStore()
        self._rows: dict[int, PackedRows | list[pa.RecordBatch]] = {}
        self._joined: dict[str, tuple[TableRequest, ViewRows]] = {}
        """By name, the rows of answered views from which other views are computed."""
        self._left: list[str] = []
        """The tables without an answer so far."""
        self._reports = RunReports()
        self._ends = RunReports()
        self._answers_kept = KeptAnswers(self._source) if has(self._source, KeepsAnswers) else None
        self._keys: dict[str, str] = {}
        self._kept: dict[str, KeptAnswer] = {}
        self._needed: set[int] | None = None
        """The numbers of the requests for records that must be read; None for all."""
        self.missing: dict[str, str] = {}
        """The tables that cannot be read, each with the reason."""
        self._plan(requests)

    @property
    def reading(self) -> RunReport:
        """The findings and counts of reading, each included once. Looking up log ends is counted only if nothing else
        was read."""
        whole, ends = self._reports.reading, self._ends.reading
        for kept in self._kept.values():
            whole.add([found for found in kept.findings if found not in whole.findings], Counts())
            whole.counts.widen(kept.counts)
        whole.add(ends.findings, _looked_up(ends.counts, whole.counts))
        whole.add(list(self._lacking), Counts())
        return whole

    @property
    def there(self) -> list[str]:
        """The names of the tables that are not missing."""
        return list(self._answers)

    def read(self, run: RunTasks, on_progress: OnProgress | None) -> None:
        """Read all records, and only then look up log ends. Otherwise, a group that commits in the meantime would be
        beyond the end."""
        if self._answers_kept is not None:  # the records were read when the logs were found
            self._run(run, None, are_ends=True)
            self._find_kept(self._answers_kept)
            self._run(run, on_progress, are_ends=False)
        else:
            self._run(run, on_progress, are_ends=False)
            self._run(run, None, are_ends=True)

    def _run(self, run: RunTasks, on_progress: OnProgress | None, *, are_ends: bool) -> None:
        tasks = self._tasks(are_ends)
        if tasks:
            for number, batch in run(tasks, self._ends if are_ends else self._reports, on_progress):
                if number not in self._rows:
                    # The inputs of a single view are used at once.
                    self._rows[number] = self._store.packed(()) if len(self._answers) > 1 else []
                self._rows[number].append(batch)

    def _find_kept(self, answers: KeptAnswers) -> None:
        """Look for stored answers of tables, and determine what to read for the others."""
        needed: set[int] = set()
        for name, (request, there) in self._answers.items():
            bottom = {each.table.name: each for each in at_the_bottom(request) if each.table.name in there.logs}
            asked = {at: (each, there.logs[at]) for at, each in bottom.items() if each.table.helper != "ends"}
            ends = {
                at: (list(self._rows.get(self._number(each), ())), self._ends.of([self._number(each)]))
                for at, each in bottom.items()
                if each.table.helper == "ends"
            }
            key = None if there.lacking else answers.key(request, asked, ends)
            kept = None if key is None else answers.find(key, request.table)
            if key is not None:
                self._keys[name] = key
            if kept is not None:
                self._kept[name] = kept
            else:
                needed.update(self._number(each) for each, _ in asked.values())
        self._needed = needed

    def answer(self, name: str) -> tuple[list[pa.RecordBatch], RunReport]:
        """The rows of a table, computed from what was read, and the report that the table would have if it were read
        alone. Each table can be answered only once, because rows that no other table needs are dropped."""
        self._left.remove(name)
        request, there = self._answers[name]
        report = RunReport()
        report.add([*there.lacking, *(self._about_topics if uses_topics(request) else ())], Counts())
        if name in self._kept:
            return self._kept_answer(name, report)
        asked = {self._number(each): each for each in at_the_bottom(request) if each.table.name in there.logs}
        for reports in (self._reports, self._ends):
            found = reports.of(asked)
            report.add(found.findings, _looked_up(found.counts, report.counts))
        for number, each in asked.items():
            notes = moment_notes(each, self._reports.of([number]).counts)
            report.add([note for note in notes if note not in report.findings], Counts())

        def was_read(asked: TableRequest, _: Sequence[LogPartition]) -> Iterator[pa.RecordBatch]:
            return iter(self._rows.get(self._number(asked), ()))

        if self._answers_kept is not None:
            self._answers_kept.begin()
        joined = Findings()
        if not request.table.inputs:
            rows = list(was_read(request, ()))
        else:
            rows = list(read_view(request, there.logs, was_read, joined, source=self._source, made=self._made))
        if name in self._keys and self._answers_kept is not None:
            rows = self._keep(name, rows, [*asked], joined)
        if request.table.inputs:
            report.add([*joined, *moments_asked(report.counts, self._source.name)], Counts())
        self._share(request, rows, tuple(joined))
        self._drop(asked)
        return rows, report

    def share(self, name: str, rows: pa.Table) -> None:
        """Pass the sorted rows of an answered table to the tables computed from it, so that they are in memory only
        once."""
        if name not in self._kept:
            request, _ = self._answers[name]
            found = self._joined[name][1].findings if name in self._joined else ()
            self._share(request, rows.to_batches(), found)

    def _share(self, request: TableRequest, rows: list[pa.RecordBatch], found: Sequence[Finding]) -> None:
        if not request.table.inputs:
            number = self._number(request)
            if number in self._rows and request.table.name not in _IN_LOG_ORDER:
                self._rows[number] = rows
        elif any(request.table.name in self._answers[name][0].table.inputs for name in self._left):
            self._joined[request.table.name] = request, ViewRows(rows, found)

    def _made(self, asked: TableRequest) -> ViewRows | None:
        """The rows of a view that is an input, if the same request has been answered."""
        request, rows = self._joined.get(asked.table.name, (None, None))
        return rows if request is not None and _is_same(request, asked) else None

    def _drop(self, numbers: Iterable[int]) -> None:
        """Drop rows that no other table needs."""
        bottom = (
            each for name in self._left if name not in self._kept for each in at_the_bottom(self._answers[name][0])
        )
        needed = {self._number(each) for each in bottom}
        for number in numbers:
            if number not in needed:
                self._rows.pop(number, None)
        inputs = {name for left in self._left for name in self._answers[left][0].table.inputs}
        for name in self._joined.keys() - inputs:
            del self._joined[name]

    def _keep(
        self, name: str, rows: list[pa.RecordBatch], numbers: list[int], joined: Findings
    ) -> list[pa.RecordBatch]:
        """Store an answer for the next run."""
        assert self._answers_kept is not None
        table = self._answers[name][0].table
        found = self._reports.of(numbers)
        whole = pa.Table.from_batches(rows, table.schema)
        answer = KeptAnswer(whole, tuple(found.findings), tuple(joined), found.counts)
        kept: list[pa.RecordBatch] = self._answers_kept.keep(self._keys[name], table, answer).rows.to_batches()
        return kept

    def _kept_answer(self, name: str, report: RunReport) -> tuple[list[pa.RecordBatch], RunReport]:
        """A stored answer with the present times."""
        (request, there), kept = self._answers[name], self._kept[name]
        report.add(kept.findings, kept.counts)
        for each in at_the_bottom(request):
            number = self._number(each)
            found = self._ends.of([number])
            report.add(found.findings, _looked_up(found.counts, report.counts))
            report.counts.note_moment("topics", each.topics.asked_ms)
            for log in there.logs.get(each.table.name, ()):
                if has(log, HasIdentity):
                    report.counts.note_moment("records", log.found_ms)
        if request.table.inputs:
            report.add([*kept.joined, *moments_asked(report.counts, self._source.name)], Counts())
        return kept.rows.to_batches(), report

    # -- what is to be read --------------------------------------------------------------------------------------------

    def _plan(self, requests: Sequence[TableRequest]) -> None:
        errors = []
        for request in requests:
            table = request.table
            try:
                check_coordinators(request, self._source)
                there = logs_there(request, self._logs_of)
            except LogSourceError as error:
                self.missing[table.name] = str(error)
                errors.append(error)
                if isinstance(error, MissingRight | UnreachableBrokers):
                    self._lacking[error.finding()] = None
                continue
            self._lacking.update(dict.fromkeys(there.lacking))
            self._answers[table.name] = request, there
        if not self._answers and errors:
            raise errors[0]
        # Reading ends where the logs ended just now, so every topic that a record refers to already existed.
        checkpoints = CheckpointReader()
        for name, (request, there) in self._answers.items():
            asked = self._with_known_topics(checkpoints.with_progress(request))
            self._answers[name] = asked, there
            for each in at_the_bottom(asked):
                if each.table.name in there.logs and self._number(each) == len(self._read):
                    self._read.append((_alone(each), there.logs[each.table.name]))
        self._left = [*self._answers]

    def _number(self, request: TableRequest) -> int:
        """The number of this request among those that are read, or a new number."""
        asked = _alone(request)
        return next((number for number, (each, _) in enumerate(self._read) if each == asked), len(self._read))

    def _tasks(self, are_ends: bool) -> list[LogTask]:
        tasks: dict[tuple[int, bool], tuple[LogPartition, list[tuple[int, TableRequest]]]] = {}
        for number, (request, logs) in enumerate(self._read):
            if (request.table.helper == "ends") != are_ends:
                continue
            if not are_ends and self._needed is not None and number not in self._needed:
                continue
            for log in logs:
                has_two_views = has(log, HasHistory) and log.has_history
                kind = has_two_views and request.table.is_history
                tasks.setdefault((id(log), kind), (log, []))[1].append((number, request))
        return [LogTask(log, tuple(requests)) for log, requests in tasks.values()]

    def _logs_of(self, table: Table) -> Sequence[LogPartition]:
        if self._asked is not None and self._asked.is_about(table):
            return self._asked.logs(table)
        key = logs_key(table, self._source)
        if key not in self._logs:
            try:
                self._logs[key] = logs_to_read(
                    table, self._source, self._topic, self._starts, is_input=self._only_views_ask
                )
            except LogSourceError as error:
                self._logs[key] = error
        found = self._logs[key]
        if isinstance(found, LogSourceError):
            raise found
        return found

    def _with_known_topics(self, request: TableRequest) -> TableRequest:
        if not uses_topics(request):
            return request
        return with_topics(request, self._known)

    @cached_property
    def _known(self) -> KnownTopics:
        """The known facts about topics. Once the time limit has passed, topic names are missing, and so is everything
        that depends on them."""
        known = topics_known_to(self._source, self._about_topics.append)
        self._lacking.update(dict.fromkeys(self._about_topics))
        return known


def _looked_up(ends: Counts, read: Counts) -> Counts:
    """The counts of looking up log ends. Logs and files count only if no records were read, because a view also reads
    some of these logs, which would then count twice."""
    return Counts(moments=ends.moments) if read.partitions else ends


def _is_same(one: TableRequest, other: TableRequest) -> bool:
    """Whether two requests to a view have the same rows. The order of options does not matter."""
    first, second = (replace(each.question, topic=None, values=()) for each in (one, other))
    return first == second and one.question.options == other.question.options and one.topics == other.topics


def _alone(request: TableRequest) -> TableRequest:
    """The request without what only other inputs of its view use, so that equal requests are recognized."""
    # By now, the source knows the topic that the files do not name.
    question = replace(request.question, topic=None)
    return TableRequest(question, request.topics if request.table.reader.uses_topics else KnownTopics())
