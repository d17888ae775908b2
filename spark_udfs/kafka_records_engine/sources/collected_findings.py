"""Collects the findings made while reading one log partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, overload

from kafka_records_engine.findings import Finding

if TYPE_CHECKING:
    from kafka_records_engine.findings import Severity

MOST_OF_A_KIND: Final = 1000
"""The maximum number of findings of one severity and reason to keep for a log partition. More findings are only
counted."""


@dataclass(slots=True)
class FindingCount:
    """The number of findings of one kind and, for those that are only counted, the numbers of records and bytes that
    they prevented from being read."""

    count: int = 0
    records: int = 0
    bytes: int = 0


class Findings(Sequence[Finding]):
    """Findings in the order in which they were made. A subclass can override `add` to handle findings differently."""

    def __init__(self) -> None:
        self._kept: list[Finding] = []
        self.counts: dict[tuple[Severity, str], FindingCount] = {}
        """The number of findings by severity and reason, including those above MOST_OF_A_KIND."""

    @overload
    def __getitem__(self, at: int) -> Finding: ...

    @overload
    def __getitem__(self, at: slice) -> list[Finding]: ...

    def __getitem__(self, at: int | slice) -> Finding | list[Finding]:
        return self._kept[at]

    def __len__(self) -> int:
        return len(self._kept)

    def report(self, finding: Finding) -> None:
        """Add a finding, or just count it if there are many like it."""
        if self.has_room(finding.severity, finding.reason, finding.records, finding.bytes):
            self.add(finding)

    def add(self, finding: Finding) -> None:
        """Add a finding for which there is room (`has_room`)."""
        self._kept.append(finding)

    def has_room(self, severity: Severity, reason: str, records: int = 0, size: int = 0) -> bool:
        """Whether there is room for another finding of this severity and reason. If not, the finding is only counted,
        with the `records` and bytes that were not read because of it. It need not be built, because hostile bytes can
        cause millions."""
        same = self.counts.setdefault((severity, reason), FindingCount())
        same.count += 1
        if same.count <= MOST_OF_A_KIND:
            return True
        same.records += records
        same.bytes += size
        return False

    def sum_up(self, topic: str, partition: int) -> None:
        """Add the number of further findings of each kind. Call this after the last row of the log partition."""
        for (severity, reason), same in self.counts.items():
            more = same.count - MOST_OF_A_KIND
            if more > 0:
                what = f"{more} more of the kind {reason}"
                consequence = "counted and not listed one by one"
                summary = Finding(severity, reason, what, consequence, topic, partition)
                self._kept.append(replace(summary, records=same.records, bytes=same.bytes))


class RepeatedFindings:
    """Copies the findings of another reading into `findings`."""

    def __init__(self, others: Findings, findings: Findings) -> None:
        self._others = others
        self._own = findings
        self._repeated = 0
        self._counted: dict[tuple[Severity, str], FindingCount] = {}

    def catch_up(self) -> None:
        """Repeat the findings made since the last call."""
        for finding in self._others[self._repeated :]:
            self._own.report(finding)
        self._repeated = len(self._others)
        self._count_others()

    def _count_others(self) -> None:
        """Count the findings for which there was no room."""
        for kind, all_of_kind in self._others.counts.items():
            if all_of_kind.count > MOST_OF_A_KIND:
                counted = self._counted.setdefault(kind, FindingCount(MOST_OF_A_KIND))
                same = self._own.counts.setdefault(kind, FindingCount())
                for name in ("count", "records", "bytes"):
                    new = getattr(all_of_kind, name) - getattr(counted, name)
                    setattr(same, name, getattr(same, name) + new)
                    setattr(counted, name, getattr(counted, name) + new)
