"""What is found with one context, told to another one as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_records_engine.sources.protocol import MOST_OF_A_KIND, Context, FindingCount

if TYPE_CHECKING:
    from kafka_records_engine.findings import Severity


class RepeatedFindings:
    """Repeats the findings of the context `told` in another one."""

    def __init__(self, told: Context, context: Context) -> None:
        self._told = told
        self._context = context
        self._findings = 0
        self._counted: dict[tuple[Severity, str], FindingCount] = {}

    def catch_up(self) -> None:
        """Repeat what was found since the last time."""
        for finding in self._told.findings[self._findings :]:
            self._context.report(finding)
        self._findings = len(self._told.findings)
        self._count_others()

    def _count_others(self) -> None:
        """Count the findings for which there was no room."""
        for kind, all_of_kind in self._told.finding_counts.items():
            if all_of_kind.count > MOST_OF_A_KIND:
                counted = self._counted.setdefault(kind, FindingCount(MOST_OF_A_KIND))
                same = self._context.finding_counts.setdefault(kind, FindingCount())
                for name in ("count", "records", "bytes"):
                    new = getattr(all_of_kind, name) - getattr(counted, name)
                    setattr(same, name, getattr(same, name) + new)
                    setattr(counted, name, getattr(counted, name) + new)
