"""One run of `kafka-records dump`, which writes lines to standard output, and findings and counts to standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Never, cast

import pyarrow as pa

from kafka_records_engine.findings import MISSING_RIGHT, UNREACHABLE_LOG
from kafka_records_engine.sources import PLACE_COLUMNS, Context
from kafka_records_engine.sources.broker_threads import read_in_order
from kafka_records_runtime.text.json_text import json_lines
from kafka_records_tables.commands.chosen_logs import ToldFindings, chosen_logs, raw_rows
from kafka_records_tables.commands.record_lines import COLUMNS, RecordPrinter, found_records
from kafka_records_tables.commands.topic_names import names_of
from kafka_records_tables.commands.totals import FileTotals, RecordTotals
from kafka_records_tables.console.endings import CommandError
from kafka_records_tables.console.progress_bar import ByteProgress
from kafka_records_tables.console.standard_error import over_a_bar, say

if TYPE_CHECKING:
    from kafka_records_engine.findings import Finding
    from kafka_records_engine.log.reading.segment_files import FoundLog
    from kafka_records_engine.sources import LogPartition
    from kafka_records_engine.sources.broker_logs import BrokerPartition
    from kafka_records_engine.sources.broker_threads import Act
    from kafka_records_engine.sources.segment_files import SegmentPartition
    from kafka_records_tables.commands.catalog import Catalog
    from kafka_records_tables.commands.given_source import GivenSource
    from kafka_records_tables.commands.record_choice import Mask, RecordChoice

_PLACES: Final = tuple(name for name in PLACE_COLUMNS if name not in COLUMNS)

_ROWS: Final = 4096
"""The maximum number of rows that are Python objects at a time, because a small block of a log can hold millions of
rows."""


class DumpRun:
    """Prints the records of a source that `choice` selects."""

    def __init__(
        self,
        given: GivenSource,
        topic: str | None,
        catalog: Catalog,
        choice: RecordChoice,
        *,
        with_bytes: bool = False,
        show_secrets: bool = False,
    ) -> None:
        """Without a `topic`, all topics whose records have schemas in `catalog` are read. Raises a CommandError if
        there are none."""
        self._source = given.source(topic)
        self._topic = topic
        self._catalog = catalog
        self._choice = choice
        self._with_bytes = with_bytes
        self._show_secrets = show_secrets
        self._names = names_of(self._source)
        self._topics: dict[str, tuple[RecordPrinter, Mask | None]] = {}
        self._files = FileTotals(place=given.place)
        self._logs = chosen_logs(self._source, topic, catalog, self._files.tell)
        self._records = RecordTotals(has_files=given.has_files, package=catalog.package)
        self._text = json_lines(sys.stdout)
        self._passed_over = 0

    def run(self) -> int:
        """Print the records, and return the exit status."""
        # Output and progress on the same terminal would overwrite each other.
        if not sys.stderr.isatty() or sys.stdout.isatty():
            self._read(lambda done, total: None)
        else:
            with ByteProgress("dump") as progress, over_a_bar(progress.is_drawn):
                self._read(progress.moved)
        self._records.counts.partitions = len(self._logs)
        return self._say_totals()

    def _read(self, moved: Callable[[int, int], None]) -> None:
        sizes = [log.size for log in self._logs]
        before = [*accumulate(sizes, initial=0)]

        def read(task: tuple[LogPartition, int], act: Act) -> None:
            log, done = task
            self._print(log, partial(_moved, moved, done, before[-1]), *self._range, act=act)

        # Findings and progress are queued too, so that standard output and standard error do not depend on the order in
        # which brokers answer.
        read_in_order([*zip(self._logs, before, strict=False)], lambda task: task[0], read)

    @property
    def _range(self) -> tuple[int, int | None]:
        """The range of offsets to read. If it begins below the log start, those records are printed too."""
        offsets = self._choice.offsets
        return (0, None) if offsets is None else (offsets[0], offsets[1] + 1)

    def _print(
        self, log: LogPartition, progress: Callable[[int], None], start: int, end: int | None, act: Act
    ) -> int | None:
        """Read a range of offsets and print it with `act`. Returns the first offset that was not read; None if all were
        read."""
        unread: list[int | None] = []

        def tell(finding: Finding) -> None:
            if finding.reason in (UNREACHABLE_LOG, MISSING_RIGHT):
                unread.append(finding.base_offset)
            act(partial(self._files.tell, finding))

        def count() -> None:
            self._records.counts.files += context.counts.files
            self._passed_over += context.counts.outside

        context = Context(
            log.topic,
            log.partition,
            findings=ToldFindings(tell),
            progress=lambda done: act(partial(progress, done)),
        )
        for rows in raw_rows(log, context, (*COLUMNS, *_PLACES), start, end):
            act(partial(self.print_rows, _with_places(rows, log)), rows.nbytes)
        act(count)
        return unread[0] if unread else None

    def follow(self) -> int:
        """Print the records, and then appended ones, until Ctrl-C. New partitions are found too."""
        from kafka_records_engine.sources.broker_logs import BrokerPartition
        from kafka_records_engine.sources.segment_files import SegmentPartition

        self._files.says_notes_at_once = True
        try:
            if all(isinstance(log, SegmentPartition) and log.log.system.is_local for log in self._logs):
                self._follow_files()
            if all(isinstance(log, BrokerPartition) for log in self._logs):
                self._follow_brokers()
        except KeyboardInterrupt:
            # Ctrl-C is the normal way to stop.
            return self._say_totals()
        raise CommandError(
            f"{self._source.name}: --follow works only with brokers and local log files, because other sources "
            f"do not grow"
        )

    def _follow_files(self) -> Never:
        from kafka_records_tables.commands.log_follower import Follower

        follower = Follower(self._found(self._logs), lambda: self._found(self._find()), self._files.tell)
        try:
            follower.run(self._follow)
        finally:
            self._records.counts.files = follower.file_count
            self._records.counts.partitions = follower.partition_count

    def _follow_brokers(self) -> Never:
        from kafka_records_engine.sources.broker_threads import at_once
        from kafka_records_tables.commands.broker_follower import BrokerFollower

        def shown(log: BrokerPartition, start: int, end: int) -> int | None:
            first, behind = self._range
            behind = end if behind is None else min(end, behind)
            if max(start, first) >= behind:
                return None
            unread = self._print(log, lambda done: None, max(start, first), behind, act=at_once)
            sys.stdout.flush()
            return unread

        def live(logs: Sequence[LogPartition]) -> Sequence[BrokerPartition]:
            return cast("Sequence[BrokerPartition]", logs)

        follower = BrokerFollower(live(self._logs), lambda: live(self._find()))
        try:
            follower.run(shown)
        finally:
            self._records.counts.partitions = follower.partition_count

    @staticmethod
    def _found(logs: Sequence[LogPartition]) -> list[FoundLog]:
        return [cast("SegmentPartition", log).log for log in logs]

    def _find(self) -> Sequence[LogPartition]:
        return chosen_logs(self._source, self._topic, self._catalog, self._files.tell, quietly=True)

    def _follow(self, rows: Any) -> None:
        self.print_rows(rows)
        sys.stdout.flush()

    def print_rows(self, rows: Any) -> None:
        """Print raw rows of one partition, including their positions."""
        topic = rows.column("topic")[0].as_py()
        if topic not in self._topics:
            printer = RecordPrinter(
                topic,
                self._catalog,
                self._names,
                self._records,
                self._with_bytes,
                show_secrets=self._show_secrets,
            )
            self._topics[topic] = printer, self._choice.mask(topic)
        printer, mask = self._topics[topic]
        if mask is not None:
            count = rows.num_rows
            rows = rows.filter(mask(rows))
            self._passed_over += count - rows.num_rows
        write, text = sys.stdout.write, self._text
        for start in range(0, rows.num_rows, _ROWS):
            for found in found_records(rows.slice(start, _ROWS)):
                write(text(printer.line(found)))

    def _say_totals(self) -> int:
        """Report how much was read and what was found. Returns the exit status."""
        self._files.say_notes()
        self._records.say_all()
        if not self._choice.is_everything:
            counts = self._records.counts
            total = self._passed_over + counts.records + counts.markers
            say(f"not asked for: {self._passed_over} of {total} records and transaction markers")
        self._files.say_all()
        return max(self._files.status, self._records.status)


def _with_places(rows: Any, log: LogPartition) -> Any:
    """The rows with columns for the position of their batch, if the source reports it, otherwise only the log
    partition."""
    names = [*COLUMNS, *_PLACES]
    if rows.schema.names == names:
        return rows
    there = set(rows.schema.names)
    unknown = {
        "file": pa.repeat(pa.scalar(f"{log.topic}-{log.partition}"), rows.num_rows),
        "position": pa.nulls(rows.num_rows, pa.int64()),
        "base_offset": pa.nulls(rows.num_rows, pa.int64()),
    }
    columns = [rows.column(name) if name in there else unknown[name] for name in names]
    return pa.record_batch(columns, names=names)


def _moved(moved: Callable[[int, int], None], done: int, total: int, more: int) -> None:
    moved(done + more, total)
