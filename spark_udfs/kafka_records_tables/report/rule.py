"""The declaration of a report rule. docs/report.md, the thresholds file and the command are generated from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_tables.report.levels import Level
    from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
    from kafka_records_tables.report.rule_context import RuleContext


@dataclass(frozen=True, slots=True)
class Threshold:
    """A number that determines whether there is a finding, or its level.

    `kind` is `duration` (in files a text such as `24h` or `P1D`, in rules milliseconds), `count` (a whole number of 0
    or more) or `share` (a number from 0 to 1).
    """

    name: str
    kind: Literal["duration", "count", "share"]
    default: str | int | float
    about: str
    """The decision that depends on it, in one line."""
    reason: str
    """The reason for the default, in one sentence."""
    at_most: str | None = None
    """The threshold of the same kind that this one must not exceed, because this one is narrower."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict about one cause in one case."""

    statement: str = ""
    """The cause of this case in a sentence, with its names and numbers."""
    evidence_for: tuple[Evidence, ...] = ()
    evidence_against: tuple[Evidence, ...] = ()
    refuted_by: Evidence | None = None
    """A fact that rules out the cause; None if there is none."""
    is_certain: bool = False
    """Whether records prove the cause, so that all other causes are ruled out."""
    lacked: tuple[str, ...] = ()
    """The missing information that would have been decisive, for example `__cluster_metadata is not in the source`."""
    steps: tuple[NextStep, ...] = ()
    """The steps to take if this is the cause. They precede the steps of the finding."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A possible cause of a kind of finding.

    `weigh` returns the verdict for a case; None if the hypothesis does not apply to the case.
    """

    name: str
    about: str
    """The cause in a sentence."""
    evidence: str
    """The evidence for and against it, in words, for docs/report.md."""
    weigh: Callable[[RuleContext, dict[str, Any]], Verdict | None]


@dataclass(frozen=True, slots=True)
class Question:
    """The question that decides between two causes: `yes` applies if the answer is yes, otherwise `no`."""

    yes: str
    no: str
    question: str
    command: Callable[[RuleContext, dict[str, Any]], str | None] = lambda *_: None
    asked: Literal["first", "if_undecided", "last"] = "first"
    """When it is asked: `first`, because the next step depends on the answer; `if_undecided`, also first, but after the
    steps of a cause if that is likelier than the other; `last`, after the steps of the finding."""


@dataclass(frozen=True, slots=True)
class Folds:
    """Findings of another kind that follow from findings of a rule and are shown as their effects.

    A case of `kind` is an effect if it has the same values as a case of the rule in the columns `same`, such as
    `group_id` and `topic` (or in columns with lists of them, such as `group_id_list`). With `if_later`, it must also
    not begin earlier (column `since_ms` of both cases; a case without a time counts as later).
    """

    kind: str
    same: tuple[str, ...] = ("group_id",)
    if_later: bool = False


@dataclass(frozen=True, slots=True)
class ReportRule:
    """One kind of finding.

    `cases` returns a `pyarrow.Table` with a row for each possible finding: `level` (int8, `Level`), `rank` (within a
    level, a higher rank is worse) and the columns from which `tell` builds a finding. So millions of rows are processed
    in columns, and a finding is built only if it is shown. Only then are its `causes` evaluated; it contains those that
    remain.
    """

    kind: str
    title: str
    about: str
    """A description of what the rule finds, what it leaves out, and what the log cannot show."""
    tables: tuple[str, ...]
    levels: Mapping[Level, str]
    """The condition for each level, in words."""
    cases: Callable[[RuleContext], pa.Table]
    tell: Callable[[RuleContext, dict[str, Any]], ReportFinding]
    listing: Callable[[RuleContext], Rows]
    """The table rows that list all cases of this kind, used when many findings are summarized as one."""
    thresholds: tuple[Threshold, ...] = ()
    causes: tuple[Hypothesis, ...] = ()
    questions: tuple[Question, ...] = ()
    folds: tuple[Folds, ...] = ()
    effect_title: str | None = None
    """The symptom without its cause. It is the title of a finding that is shown as an effect of another one, if the
    rule's own title states something that the other finding may refute."""

    def named(self, threshold: Threshold) -> str:
        """The full name of a threshold, for example `offsets_expiring.within`."""
        return f"{self.kind}.{threshold.name}"
