"""Findings and counts of a run: one line per finding while it runs, and the totals at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final

from kafka_records_engine.findings import FORBIDDEN_LOG, MISSING_RIGHT
from kafka_records_engine.sources import Counts
from kafka_records_runtime.errors import plural
from kafka_records_tables.commands.catalog import KAFKA
from kafka_records_tables.console.endings import DAMAGE, OK
from kafka_records_tables.console.standard_error import say
from kafka_records_tables.results.count_words import read_words
from kafka_records_tables.results.finding_lines import finding_lines

if TYPE_CHECKING:
    from kafka_records_engine.findings import Finding

MOST: Final = 1000
"""The number of undecodable records to report on separate lines for each kind of error."""


@dataclass(slots=True)
class FileTotals:
    """Findings about the files. Notes, which healthy logs may have too, do not count as damage."""

    damaged_places: int = 0
    forbidden: int = 0
    """The number of log partitions that the user may not read, although nothing is wrong with them."""
    missing_rights: set[str] = field(default_factory=set)
    """Topics that the user may not read or describe, or no longer."""
    hidden_groups: set[str] = field(default_factory=set)
    """The messages about groups that coordinators do not describe because a right is missing."""
    lost_records: int = 0
    unread_bytes: int = 0
    place: str = "the files"
    control_records: int = 0
    """The number of control records that do not end a transaction and are neither delivered nor lost."""
    says_notes_at_once: bool = False
    """Whether notes are reported at once instead of by `say_notes`, because following a log has no end."""
    _said: set[str] = field(default_factory=set)
    _notes: list[Finding] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)
    """Guards the totals, because logs of several brokers are read at the same time."""

    def tell(self, finding: Finding) -> None:
        """Report a finding and count it. Notes wait for `say_notes`. A finding about a whole data directory occurs for
        each of its partitions, but is reported once."""
        line = str(finding)
        with self._lock:
            if line in self._said:
                return
            self._said.add(line)
            self.count(finding)
            if finding.severity == "damage":
                say(line)
                return
            self._notes.append(finding)
        if self.says_notes_at_once:
            self.say_notes()

    def say_notes(self) -> None:
        """Report the notes that are still waiting, each text only once."""
        with self._lock:
            for line in finding_lines(self._notes, "read fewer logs at a time to see them", MOST):
                say(line)
            self._notes.clear()

    def count(self, finding: Finding) -> None:
        """Count a finding without reporting it."""
        if finding.severity == "note":
            self.control_records += finding.records
            return
        if finding.reason == FORBIDDEN_LOG:
            self.forbidden += 1
            return
        if finding.reason == MISSING_RIGHT:
            if finding.topic is None:
                self.hidden_groups.add(finding.what)
            else:
                self.missing_rights.add(finding.topic)
            return
        self.damaged_places += 1
        self.lost_records += finding.records
        self.unread_bytes += finding.bytes

    def say_all(self) -> None:
        """Report the notes, the numbers of records that were left out, and any damage."""
        self.say_notes()
        if self.control_records:
            say(f"{plural(self.control_records, 'control record')} left out: they do not end a transaction")
        if self.forbidden:
            say(f"{plural(self.forbidden, 'log partition')} not read: permission denied; nothing is wrong with the log")
        if self.missing_rights:
            topics = plural(len(self.missing_rights), "topic")
            say(f"{topics} left out, or not read to the end: a right is missing; docs/live.md lists the rights")
        if self.hidden_groups:
            groups = plural(len(self.hidden_groups), "group")
            say(f"{groups} not described completely: a right is missing; docs/live.md lists the rights")
        if self.damaged_places:
            found = plural(self.damaged_places, "damaged place")
            lost = plural(self.lost_records, "record")
            say(f"{found} in {self.place}: {lost} known to be lost, {plural(self.unread_bytes, 'byte')} not read")

    @property
    def status(self) -> int:
        lacks = self.forbidden or self.missing_rights or self.hidden_groups
        return DAMAGE if self.damaged_places or lacks else OK


_NEWER: Final = (
    "a newer Kafka may have written these: to read them, generate a package from its specs with "
    "kafka-records-codegen, and pass it with --package"
)
_NEWER_THAN_GIVEN: Final = (
    "these may be newer than the specs of {package} too: to read them, generate a package from newer specs"
)


@dataclass(slots=True)
class RecordTotals:
    """The results of decoding records."""

    counts: Counts = field(default_factory=Counts)
    undecided: int = 0
    undecodable: int = 0
    has_newer: bool = False
    """Whether any records could not be decoded because of their version."""
    has_files: bool = True
    package: str = KAFKA
    """The package whose schemas decoded the records."""
    unknown_types: Counter[str] = field(default_factory=Counter)
    _told: Counter[str] = field(default_factory=Counter)

    def undecodable_record(self, reason: str, describe: Callable[[], str]) -> None:
        """Count a record. For the first records with each reason, report the text from `describe`. `say_decoding`
        reports the number of the others."""
        self.undecodable += 1
        self._told[reason] += 1
        if self._told[reason] <= MOST:
            say(describe())

    def say_all(self) -> None:
        """Report the counts, except counts of zero."""
        say(self.read())
        self.say_decoding()

    def read(self) -> str:
        """How much was read, in words."""
        return read_words(self.counts, self.has_files)

    def leniency(self, bytes_left: int, leniencies: Iterable[str]) -> None:
        """Count the irregularities accepted in one record."""
        if bytes_left:
            self.counts.with_bytes_left += 1
            self.counts.bytes_left += bytes_left
        self.counts.leniencies.update(leniencies)

    def say_decoding(self) -> None:
        """Report records that were not decoded, and records that were decoded only because Kafka accepts them."""
        counts = self.counts
        for reason, count in self._told.items():
            if count > MOST:
                say(
                    f"{plural(count - MOST, 'more record')} with an error of the kind {reason}: see the field error of "
                    "their lines"
                )
        if counts.below_log_start:
            say(f"{plural(counts.below_log_start, 'record')} below the raised log start left out")
        if self.undecided:
            say(f"{plural(self.undecided, 'record')} of transactions with an unknown end")
        if self.undecodable:
            say(f"{plural(self.undecodable, 'record')} could not be decoded")
        if self.unknown_types:
            say(f"of a type {self._knower} does not know: {_listed(self.unknown_types)}")
        if self.has_newer or self.unknown_types:
            say(_NEWER if self.package == KAFKA else _NEWER_THAN_GIVEN.format(package=self.package))
        if counts.with_bytes_left:
            left = plural(counts.bytes_left, "byte")
            holders = plural(counts.with_bytes_left, "record")
            say(f"ignored after a key or value, as in Kafka: {left} in {holders}")
        if counts.leniencies:
            say(f"accepted as Kafka accepts it: {_listed(counts.leniencies)}")

    @property
    def _knower(self) -> str:
        return "this build" if self.package == KAFKA else f"the package {self.package}"

    @property
    def status(self) -> int:
        return DAMAGE if self.undecodable or self.undecided else OK


def _listed(counter: Counter[str]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in sorted(counter.items()))
