"""What goes to standard error: one line per finding while the command runs, the counts at its end."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TextIO

from kafka_records_runtime.errors import plural
from kafka_records_runtime.printable import printable
from kafka_records_tables.cli.failures import DAMAGE, OK

if TYPE_CHECKING:
    from kafka_records_engine.findings import Finding


MOST: Final = 1000
"""Records that cannot be decoded for reasons of one kind that are lines of their own."""

_is_bar_drawn: Callable[[], bool] | None = None


@contextmanager
def over_a_bar(is_drawn: Callable[[], bool]) -> Iterator[None]:
    """While `is_drawn` says that a progress bar stands on the last line of the terminal, lines take its place, and it
    goes on below."""
    global _is_bar_drawn
    _is_bar_drawn = is_drawn
    try:
        yield
    finally:
        _is_bar_drawn = None


def say(line: str) -> None:
    """One line on standard error, whatever the text holds. What stood on standard output before it is written first, so
    that both keep their order on a terminal."""
    sys.stdout.flush()
    try:
        start = "\r\x1b[2K" if _is_bar_drawn is not None and _is_bar_drawn() else ""
        sys.stderr.write(f"{start}{printable(line)}\n")
        sys.stderr.flush()
    except OSError:
        # Nobody can be told. The result and the exit status are still worth having.
        discard(sys.stderr)


def complain(text: str) -> None:
    """Say why the command ends without a result."""
    try:
        sys.stdout.flush()
    except OSError:
        discard(sys.stdout)
    say(f"kafka-records: {text}")


def discard(stream: TextIO) -> None:
    """Let a stream that takes nothing lead nowhere, so that what it still holds does not fail once more at exit."""
    try:
        descriptor = stream.fileno()
    except OSError:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


@dataclass(slots=True)
class FileReport:
    """Findings in the files. Notes, which a healthy log may have, do not count as damage."""

    damages: int = 0
    lost_records: int = 0
    unread_bytes: int = 0
    control_records: int = 0
    """Control records that end no transaction: neither delivered nor lost."""
    _said: set[str] = field(default_factory=set)

    def finding(self, finding: Finding) -> None:
        """Say what was found and count it."""
        self.found(str(finding), finding.severity == "note", finding.records, finding.bytes)

    def found(self, text: str, is_note: bool, records: int, size: int) -> None:
        """The same for a finding that comes as text and numbers. What concerns a whole data directory is met with each
        of its partitions, and told once."""
        if text in self._said:
            return
        self._said.add(text)
        if is_note:
            say(f"note: {text}")
            self.control_records += records
            return
        say(text)
        self.damages += 1
        self.lost_records += records
        self.unread_bytes += size

    def summary(self) -> None:
        """Say what was left out and how much damage there was, if any."""
        if self.control_records:
            say(f"{plural(self.control_records, 'control record')} left out: no end of a transaction")
        if self.damages:
            found = plural(self.damages, "damaged place")
            lost = plural(self.lost_records, "record")
            say(f"{found} in the files: {lost} known to be lost, {plural(self.unread_bytes, 'byte')} not read")

    @property
    def status(self) -> int:
        return DAMAGE if self.damages else OK


@dataclass(slots=True)
class RecordReport:
    """What became of the records while they were decoded."""

    records: int = 0
    markers: int = 0
    below_log_start: int = 0
    undecided: int = 0
    undecodable: int = 0
    unknown_types: Counter[str] = field(default_factory=Counter)
    unknown_versions: Counter[str] = field(default_factory=Counter)
    with_bytes_left: int = 0
    bytes_left: int = 0
    leniencies: Counter[str] = field(default_factory=Counter)
    _told: Counter[str] = field(default_factory=Counter)

    def undecodable_record(self, kind: str, describe: Callable[[], str]) -> None:
        """Count a record, and say what `describe` gives for the first of each kind; `findings` counts the others."""
        self.undecodable += 1
        self._told[kind] += 1
        if self._told[kind] <= MOST:
            say(describe())

    def summary(self, partitions: int, files: int) -> None:
        """Say the counts; lines about what did not occur are left out."""
        say(self.read(partitions, files))
        self.findings()

    def read(self, partitions: int, files: int) -> str:
        """How much was read."""
        return (
            f"{plural(self.records, 'record')} and {plural(self.markers, 'transaction marker')} "
            f"in {plural(files, 'file')} of {plural(partitions, 'partition')}"
        )

    def leniency(self, bytes_left: int, leniencies: Iterable[str]) -> None:
        """Count what was accepted in one record."""
        if bytes_left:
            self.with_bytes_left += 1
            self.bytes_left += bytes_left
        self.leniencies.update(leniencies)

    def findings(self) -> None:
        """Say what was not decoded, or only because Kafka reads it so."""
        for kind, count in self._told.items():
            if count > MOST:
                say(f"{plural(count - MOST, 'more record')} with an error of the kind {kind}: their lines have it")
        if self.below_log_start:
            say(f"{plural(self.below_log_start, 'record')} below the raised log start left out")
        if self.undecided:
            say(f"{plural(self.undecided, 'record')} of transactions of which nobody can tell how they ended")
        if self.undecodable:
            say(f"{plural(self.undecodable, 'record')} could not be decoded")
        if self.unknown_types:
            say(f"of a type this build does not know: {_listed(self.unknown_types)}")
        if self.unknown_versions:
            say(f"of a value version this build does not know: {_listed(self.unknown_versions)}")
        if self.with_bytes_left:
            left = plural(self.bytes_left, "byte")
            say(f"left alone behind a key or value, as Kafka does: {left} in {plural(self.with_bytes_left, 'record')}")
        if self.leniencies:
            say(f"accepted as Kafka accepts it: {_listed(self.leniencies)}")

    @property
    def status(self) -> int:
        return DAMAGE if self.undecodable or self.undecided else OK


def _listed(counter: Counter[str]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in sorted(counter.items()))
