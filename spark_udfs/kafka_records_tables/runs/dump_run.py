"""One run of `kafka-records dump`: lines to standard output, findings and counts to standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records_engine.log.reading import FoundLog, OpenLog, open_log, read_partition
from kafka_records_runtime.jsontext import json_lines
from kafka_records_tables.runs.broker_logs import broker_rows
from kafka_records_tables.runs.progress_bar import ByteProgress
from kafka_records_tables.runs.record_lines import COLUMNS, RecordPrinter, found_records
from kafka_records_tables.runs.standard_error import over_a_bar, say
from kafka_records_tables.runs.topic_names import TopicNames
from kafka_records_tables.runs.totals import FileTotals, RecordTotals

if TYPE_CHECKING:
    from kafka_records_engine.sources.live import BrokerPartition
    from kafka_records_tables.runs.catalog import Catalog
    from kafka_records_tables.runs.record_choice import Mask, RecordChoice


_ROWS: Final = 4096
"""So many rows are Python objects at a time: a small block of a log can hold millions."""


class DumpRun:
    """Prints the records of `logs` that `choice` asks for."""

    def __init__(
        self,
        logs: Sequence[FoundLog],
        catalog: Catalog,
        choice: RecordChoice,
        *,
        with_bytes: bool = False,
        live: Sequence[BrokerPartition] = (),
        names: Mapping[str, str] | None = None,
    ) -> None:
        """`live` are logs on brokers, and `names` those of topics that the brokers know, by their ids."""
        self._logs = logs
        self._live = live
        self._catalog = catalog
        self._choice = choice
        self._with_bytes = with_bytes
        self._names = TopicNames((str(Path(log.folder).resolve().parent) for log in logs), names)
        self._topics: dict[str, tuple[RecordPrinter, Mask | None]] = {}
        self._files, self._records = FileTotals(), RecordTotals()
        if live:
            self._files.place, self._records.has_files = "the logs", False
        self._text = json_lines(sys.stdout)
        self._passed_over = 0

    def run(self) -> int:
        """Print them; returns the exit status."""
        # Two writers on one terminal would overwrite each other.
        if not sys.stderr.isatty() or sys.stdout.isatty():
            self._read(lambda done, total: None)
        else:
            with ByteProgress("dump") as progress, over_a_bar(progress.is_drawn):
                self._read(progress.moved)
        self._records.counts.partitions = len(self._logs) + len(self._live)
        return self._say_totals()

    def _read(self, moved: Callable[[int, int], None]) -> None:
        total, done = sum(log.size for log in self._logs) + sum(log.size for log in self._live), 0
        for log in self._logs:
            with open_log(log) as opened:
                asked = _only(opened, self._choice.offsets)
                self._records.counts.files += len(asked.segments)
                for rows in read_partition(
                    asked,
                    below_log_start=True,
                    on_finding=self._files.tell,
                    batch_rows=None,
                    settle=False,
                    columns=COLUMNS,
                    places=True,
                ):
                    self.print_rows(rows)
                    moved(done + asked.bytes_read, total)
                done += opened.size
        for each in self._live:
            self._read_live(each, partial(self._moved, moved, done, total))
            done += each.size

    @staticmethod
    def _moved(moved: Callable[[int, int], None], done: int, total: int, more: int) -> None:
        moved(done + more, total)

    def _read_live(self, log: BrokerPartition, moved: Callable[[int], None]) -> None:
        file = pa.scalar(f"{log.topic}-{log.partition}")
        for rows in broker_rows(log, COLUMNS, self._files.tell, moved):
            names = [*COLUMNS, "file", "position"]
            places = pa.repeat(file, rows.num_rows), pa.nulls(rows.num_rows, pa.int64())
            self.print_rows(pa.record_batch([*(rows.column(name) for name in COLUMNS), *places], names=names))

    def follow(self, find: Callable[[], Sequence[FoundLog]]) -> int:
        """Print them, and then what is appended, until Ctrl-C. `find` finds the logs, those of new partitions too."""
        from kafka_records_tables.runs.log_follower import Follower

        follower = Follower(self._logs, find, self._files.tell)
        try:
            follower.run(self._follow)
        except KeyboardInterrupt:
            # Ctrl-C is the normal end.
            self._records.counts.files = follower.file_count
            self._records.counts.partitions = follower.partition_count
            return self._say_totals()

    def _follow(self, rows: Any) -> None:
        self.print_rows(rows)
        sys.stdout.flush()

    def print_rows(self, rows: Any) -> None:
        """Raw rows of one partition with their places."""
        topic = rows.column("topic")[0].as_py()
        if topic not in self._topics:
            printer = RecordPrinter(topic, self._catalog, self._names, self._records, self._with_bytes)
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
        """Say how much was read and what was found; returns the exit status."""
        self._records.say_all()
        if not self._choice.is_everything:
            counts = self._records.counts
            total = self._passed_over + counts.records + counts.markers
            say(f"not asked for: {self._passed_over} of {total} records and transaction markers")
        self._files.say_all()
        return max(self._files.status, self._records.status)


def _only(opened: OpenLog, offsets: tuple[int, int] | None) -> OpenLog:
    """The log with only those files that may hold one of the offsets from the first to the last, both included."""
    if offsets is None:
        return opened
    first, last = offsets
    bases = [segment.base_offset for segment in opened.segments]
    begun = [number for number, base in enumerate(bases) if base is None or base <= first]
    start = begun[-1] if begun else 0
    if None in bases[: start + 1]:
        start = 0
    end = next((number for number, base in enumerate(bases) if base is not None and base > last), len(bases))
    segments = opened.segments[start : max(end, start)]
    ends_early = opened.ends_early or end < len(bases)
    is_part = opened.is_part or len(segments) < len(bases)
    return replace(opened, segments=segments, ends_early=ends_early, is_part=is_part)
