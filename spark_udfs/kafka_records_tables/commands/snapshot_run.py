"""One run of `kafka-records snapshot`, which writes records to a directory and prints what was added."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources.missing_rights import MissingRight, lacking_coordinator_topics
from kafka_records_engine.sources.snapshot_runs import Added, SnapshotReport, take_snapshot
from kafka_records_runtime.errors import plural
from kafka_records_tables.commands.catalog import Catalog
from kafka_records_tables.commands.totals import FileTotals
from kafka_records_tables.console.endings import CommandError
from kafka_records_tables.console.progress_bar import ByteProgress
from kafka_records_tables.console.standard_error import over_a_bar

if TYPE_CHECKING:
    from kafka_records_engine.sources import Source
    from kafka_records_tables.commands.given_source import GivenSource


class SnapshotRun:
    """Adds topics of `given` to the snapshot in the directory `output`; by default, the topics of coordinators."""

    def __init__(self, given: GivenSource, topics: Sequence[str], output: str, file_bytes: int) -> None:
        self._given = given
        self._topics = list(dict.fromkeys(topics))
        self._output = output
        self._file_bytes = file_bytes
        self._found = FileTotals(place=given.place)

    def run(self) -> int:
        """Add the records and return the exit status. Raises a CommandError if nothing can be stored."""
        self._given.check_outside(self._output)
        source = self._given.source(self._topics[0] if len(self._topics) == 1 else None)
        try:
            topics = self._topics or self._coordinators(source)
            if not topics:  # on a new cluster, an hourly job should not fail until the first client connects
                self._found.say_all()
                return self._found.status
            with ByteProgress("snapshot") as progress, over_a_bar(progress.is_drawn):
                report = take_snapshot(
                    source,
                    self._output,
                    topics,
                    file_bytes=self._file_bytes,
                    on_progress=progress.moved,
                    on_finding=self._found.tell,
                )
        except LogSourceError as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            what = f"{error.filename or self._output}: {error.strerror or error}"
            raise CommandError(f"{what}; complete files are kept, and the next run continues after them") from None
        self._say(report)
        return self._found.status

    def _coordinators(self, source: Source) -> list[str]:
        catalog, there = Catalog(), source.topics()
        topics = [topic for topic in there if catalog.folder_of(topic) is not None]
        lacking = lacking_coordinator_topics(source, there)
        rights = [each for each in lacking if isinstance(each, MissingRight)]
        if rights and not topics:
            raise rights[0]
        for each in rights if topics else lacking:
            self._found.tell(each.finding())
        if not topics and not lacking:
            names = ", ".join(there)
            raise CommandError(
                f"{source.name}: contains only {names}, but none of {catalog.text}; to keep another topic, use "
                "--topic NAME"
            )
        return topics

    def _say(self, report: SnapshotReport) -> None:
        for topic, added in report.topics.items():
            sys.stdout.write(f"{topic}: {_said(added)}\n")
        sys.stdout.flush()
        self._found.say_all()


def _said(added: Added) -> str:
    partitions = plural(added.partitions, "partition")
    if not added.grown:
        said = f"nothing new in {partitions}"
    else:
        records, markers = plural(added.records, "record"), plural(added.markers, "transaction marker")
        said = f"{records} and {markers} added in {added.grown} of {partitions}"
    if added.lost:
        said += f"; {plural(added.lost, 'offset')} no longer had a record"
    if added.looked:
        said += f"; the whole log of {plural(added.looked, 'partition')} was read to find out what else was lost"
    return said
