"""What a rule of the report says about itself: enough for docs/report.md, the file of thresholds and the command.

Nothing here loads numpy or pyarrow, so that a command can complain about a threshold at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_tables.report.report_parts import Evidence, Level, NextStep, ReportFinding, Rows
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
class Verdict:
    """What is known of one cause in one case."""

    statement: str = ""
    """The cause of this case in a sentence, with its names and numbers."""
    evidence_for: tuple[Evidence, ...] = ()
    evidence_against: tuple[Evidence, ...] = ()
    refuted_by: Evidence | None = None
    """A fact that rules it out: then it is not a cause."""
    is_certain: bool = False
    """Whether records show the cause itself, so that all others are ruled out."""
    lacked: tuple[str, ...] = ()
    """What would have decided and is not there, as `__cluster_metadata is not in the source`."""
    steps: tuple[NextStep, ...] = ()
    """What to do if this is the cause: these come before the steps of the finding."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A cause that a kind of finding can have.

    `weigh` says what is known of it in a case; None if it does not apply to the case at all.
    """

    name: str
    about: str
    """The cause in a sentence."""
    evidence: str
    """What speaks for it and what against it, for docs/report.md."""
    weigh: Callable[[RuleContext, dict[str, Any]], Verdict | None]


@dataclass(frozen=True, slots=True)
class Question:
    """What decides between two causes: `yes` is right if the answer is yes, else `no`."""

    yes: str
    no: str
    question: str
    command: Callable[[RuleContext, dict[str, Any]], str | None] = lambda *_: None


@dataclass(frozen=True, slots=True)
class Folds:
    """Findings of another kind that follow from those of a rule: they are told as its effects.

    A case of `kind` is an effect where it names what a case of the rule names: `same` are `group_id` and `topic`
    (columns of cases of these names, or lists of them: `group_id_list`). With `if_later`, only where it does not begin
    before (columns `since_ms` of both; a case without one counts as later).
    """

    kind: str
    same: tuple[str, ...] = ("group_id",)
    if_later: bool = False


@dataclass(frozen=True, slots=True)
class ReportRule:
    """One kind of finding.

    `cases` gives a `pyarrow.Table` with a row for each finding there would be: `level` (int8, `Level`), `rank` (the
    largest is the worst of its level) and the columns that `tell` needs to make a finding of a row. So the work on
    millions of rows is done in columns, and a finding is made only if somebody reads it. `causes` are weighed for that
    finding only, and the remaining one is put into it.
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
    causes: tuple[Hypothesis, ...] = ()
    questions: tuple[Question, ...] = ()
    folds: tuple[Folds, ...] = ()
    effect_title: str | None = None
    """What is seen, without who did it: the title of a finding of this rule that is the effect of another, where the
    rule's own title says what the other may refute."""

    def named(self, threshold: Threshold) -> str:
        """The full name of a threshold: `offsets_expiring.within`."""
        return f"{self.kind}.{threshold.name}"
