"""What a rule of the report says about itself: enough for docs/report.md, the file of thresholds and the command.

Nothing here loads numpy or pyarrow, so that a command can complain about a threshold at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_tables.report.report_parts import Level, ReportFinding, Rows
    from kafka_records_tables.report.rule_context import RuleContext


@dataclass(frozen=True, slots=True)
class Threshold:
    """A number that decides about findings or their level.

    `kind` is `duration` (in files a text such as `24h` or `P1D`, in rules milliseconds), `count` (a whole number of 0
    or more) or `share` (a number from 0 to 1).
    """

    name: str
    kind: Literal["duration", "count", "share"]
    default: str | int | float
    about: str
    """One line: what it decides."""
    reason: str
    """One sentence: why the default is what it is."""
    at_most: str | None = None
    """The threshold of the same kind that this one may not be above, because it is the narrower of the two."""


@dataclass(frozen=True, slots=True)
class ReportRule:
    """One kind of finding.

    `cases` gives a `pyarrow.Table` with a row for each finding there would be: `level` (int8, `Level`), `rank` (the
    largest is the worst of its level) and whatever `tell` needs, which makes a finding of one of these rows. So the
    work on millions of rows is done in columns, and a finding is made only where somebody reads it.
    """

    kind: str
    title: str
    about: str
    """What it finds, what it leaves alone, and what the log cannot know."""
    tables: tuple[str, ...]
    levels: Mapping[Level, str]
    """When a finding has which level."""
    cases: Callable[[RuleContext], pa.Table]
    tell: Callable[[RuleContext, dict[str, Any]], ReportFinding]
    listing: Callable[[RuleContext], Rows]
    """Which rows of a table have all of it, for what is summed up."""
    thresholds: tuple[Threshold, ...] = ()

    def named(self, threshold: Threshold) -> str:
        """The full name of a threshold: `offsets_expiring.within`."""
        return f"{self.kind}.{threshold.name}"
