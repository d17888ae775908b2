"""What a report consists of. The page, the JSON document and the command are made of these values alone.

Nothing here loads numpy or pyarrow, so that a command can list kinds and levels at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Literal

from kafka_records_runtime.printable import printable

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_engine.findings import Finding as ReadingFinding
    from kafka_records_engine.sources import Counts

USUAL_PACKAGE: Final = "kafka_records"
"""The package that a report is read with unless somebody names another."""

Confidence = Literal["high", "medium", "low"]
"""As in the tables: whether records can tell, or something that no record holds may be the reason."""

Consequence = Literal["data_lost", "work_stopped", "work_repeated", "waste", "none"]
"""What it does to those who use the cluster, the worst first."""


class Level(IntEnum):
    """How much a finding should worry an operator."""

    NOTE = 0
    """Worth knowing; all is well."""
    LOW = 1
    """Look at it when there is time."""
    MODERATE = 2
    """Look at it this week."""
    HIGH = 3
    """Look at it today."""
    CRITICAL = 4
    """Somebody loses data, or a coordinator does not work, now or soon."""

    @property
    def word(self) -> str:
        """As it is in JSON and on the command line."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Evidence:
    """A record that shows something: where it is, and what it shows, in one line."""

    shows: str
    topic: str | None = None
    """The log that it is in, as `__consumer_offsets`."""
    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class NextStep:
    """What to do next. `command` is a whole command line, quoted for a shell, with the source of this report; null if
    no command helps."""

    what: str
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """Which rows of a table a number or a finding was taken from: those that `table NAME --where …` prints."""

    table: str
    where: tuple[str, ...] = ()
    """Conditions as the command takes them; all of them hold."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What may have brought an incident about, and is not refuted."""

    name: str
    """Of its hypothesis, as `poison_record`."""
    statement: str
    """A sentence that says it of this incident."""
    confidence: Confidence
    evidence_for: tuple[Evidence, ...] = ()
    evidence_against: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """The question that decides between two causes that remain."""

    between: tuple[str, str]
    """The names of the causes: the first is right if the answer is yes."""
    question: str
    command: str | None = None
    """The command that answers it; null if only a person can."""


@dataclass(frozen=True, slots=True)
class Lack:
    """Something that the report did not have, and the causes that it could not tell apart without it."""

    what: str
    """As `__cluster_metadata is not in the source`."""
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Actor:
    """A client that brought an incident about or has a part in it, as far as records tell."""

    did: str
    """In a few words, as `left 40 times`."""
    group_id: str | None = None
    member_id: str | None = None
    client_id: str | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """What else was found that follows from an incident."""

    kind: str
    level: Level
    title: str
    problem: str
    group_ids: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    rows: tuple[Rows, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportFinding:
    """An incident: one cause with its effects in all groups and topics, or something else that an operator should
    know."""

    kind: str
    """The name of the rule, as `offsets_expiring`."""
    level: Level
    title: str
    """One line without the names of groups, as `offsets of a group that is alive expire soon`."""
    problem: str
    """What happened, to whom: a sentence or two, with numbers, for somebody who does not know the tables."""
    impact: str = ""
    """What follows from it for those who use the topics: a sentence."""
    consequence: Consequence = "none"
    group_ids: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    """Partitions of the topic, where there is one topic; sorted."""
    transactional_ids: tuple[str, ...] = ()
    who: tuple[Actor, ...] = ()
    """Who did it or has a part in it, as far as records tell."""
    since_timestamp_ms: int | None = None
    """When the first record that shows it was written, in milliseconds since 1970; null if no record tells."""
    since_note: str | None = None
    """How exact that is, or why no record tells, in a few words that follow the moment or take its place."""
    until_timestamp_ms: int | None = None
    """When it gets worse if nobody does anything, as the first expiry; null if nothing is known."""
    is_going_on: bool | None = None
    """Whether it goes on at the moment of the report; null if no record tells."""
    scale: Mapping[str, int] = field(default_factory=dict)
    """How much was hit, counted from the log, as `{"records_lost": 36, "records_repeated": 0}`: every jump counts."""
    causes: tuple[Cause, ...] = ()
    """Those that remain, the likeliest first."""
    refuted_by: Mapping[str, Evidence] = field(default_factory=dict)
    """The fact that rules a cause out, by the name of the cause."""
    decision: Decision | None = None
    """What decides between the first two causes."""
    lacked: tuple[Lack, ...] = ()
    confidence: Confidence = "high"
    """About the cause: that of the first of `causes`, or of the finding itself where it has none."""
    symptom_confidence: Confidence = "high"
    """About the problem."""
    why_not_sure: str | None = None
    """What the log cannot know; null if both are high."""
    evidence: tuple[Evidence, ...] = ()
    evidence_count: int = 0
    """How much evidence there is; `evidence` has the first of it."""
    effects: tuple[Effect, ...] = ()
    """Other findings that follow from this one; they are not findings of their own."""
    rows: tuple[Rows, ...] = ()
    next: tuple[NextStep, ...] = ()
    """What to do, the first step first."""
    measured: Mapping[str, Any] = field(default_factory=dict)
    """The figures that were compared with thresholds, by name with their unit, as `{"expires_in_ms": 3600000}`."""
    thresholds: Mapping[str, Any] = field(default_factory=dict)
    """The thresholds that decided the level, by name, as in the file of thresholds."""

    def cause_lines(self) -> Iterator[str]:
        """The two likeliest causes, and what the report lacked to tell them apart, each in a sentence."""
        for at, cause in enumerate(self.causes[:2]):
            yield f"{'cause' if not at else 'or'} (confidence {cause.confidence}): {cause.statement}"
        for lack in self.lacked:
            yield f"{lack.what}, which would distinguish these causes: {', '.join(lack.causes)}"


@dataclass(frozen=True, slots=True)
class Number:
    """A number at a glance, as `groups: 65`; `rows` says which rows it counts or sums."""

    name: str
    label: str
    value: int | float | None
    unit: str | None
    rows: Rows
    column: str | None = None
    """The column that was summed; null if rows are counted."""


@dataclass(frozen=True, slots=True)
class Omission:
    """Something that a page leaves out for its size, and the command that gets it."""

    what: str
    row_count: int
    command: str


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """The head of a report: what was asked (`read_report`), of what, when and with which version."""

    source: str
    """As a person would name it: the paths, or the addresses of the brokers."""
    source_arguments: tuple[str, ...]
    """What names the source on a command line, as `("--bootstrap", "localhost:9092")`; empty if no command can."""
    made_timestamp_ms: int
    at_timestamp_ms: int
    """The moment that the report is about: `as_of`, or else when it was made for brokers, and the time of the last
    record for what was stored."""
    as_of: bool
    retention_ms: int
    groups: tuple[str, ...] | None
    topic_filter: tuple[str, ...]
    version: str
    """Of kafka-records."""
    engine: Literal["local", "spark"]
    assume: Literal["committed"] | None = None
    """What records counted as whose source does not show transactions; null if that was not said."""
    package: str = USUAL_PACKAGE
    """The generated package whose schemas say what the records hold."""
    partitions: Mapping[str, int] | None = None
    """How many partitions topics of the coordinators have, as far as that was said; running brokers tell themselves."""


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A finding that had another level before."""

    finding: int
    """Its place in `Report.findings`."""
    before: Level


@dataclass(frozen=True, slots=True)
class ReportDiff:
    """What changed since an earlier report."""

    old_made_timestamp_ms: int
    old_at_timestamp_ms: int
    """The moment that the earlier report is about."""
    new: tuple[int, ...]
    """Places in `Report.findings`."""
    worse: tuple[LevelChange, ...]
    better: tuple[LevelChange, ...]
    gone: tuple[ReportFinding, ...]
    """Findings of the earlier report that are none any more."""
    notes: tuple[str, ...] = ()
    """Sentences about what else the two reports differ in, by which findings may be new, worse, better or gone."""

    def marks(self) -> dict[int, str]:
        """What is said about findings that are not as they were, by their places."""
        changed = (*self.worse, *self.better)
        return {**dict.fromkeys(self.new, "new"), **{each.finding: f"was {each.before.word}" for each in changed}}


@dataclass(frozen=True, slots=True)
class FailOn:
    """Which findings somebody watches for."""

    level: Level
    """This level and worse ones."""
    only_new: bool = False
    """Only what is new or has become worse since the report that this one was compared with."""

    def __str__(self) -> str:
        return f"{'new:' if self.only_new else ''}{self.level.word}"

    def chosen(self, report: Report) -> list[ReportFinding]:
        """The new findings of a report; one without a diff has nothing new."""
        diff = report.diff
        places: Iterable[int] = range(len(report.findings))
        if self.only_new:
            places = () if diff is None else (*diff.new, *(change.finding for change in diff.worse))
        return [report.findings[at] for at in sorted(places) if report.findings[at].level >= self.level]


@dataclass(frozen=True, slots=True)
class Report:
    """All of it. Every number on a page is a row of `tables`, or counts or sums rows of them."""

    request: ReportRequest
    findings: tuple[ReportFinding, ...]
    """The worst first; of one level, the soonest and the largest."""
    numbers: tuple[Number, ...]
    tables: Mapping[str, pa.Table]
    """Rows by the name of their table, sorted as `table` prints them. A table whose topic the source does not have is
    not there; `missing` says so."""
    missing: Mapping[str, str]
    """Why a table is not there, by its name."""
    reading: Sequence[ReadingFinding]
    """What was found while reading, each once."""
    counts: Counts
    """What was read, once, and not once per table."""
    diff: ReportDiff | None = None
    """What changed since an earlier report, where one was given."""

    def __repr__(self) -> str:
        counts = Counter(finding.level for finding in self.findings)
        found = ", ".join(f"{counts[level]} {level.word}" for level in sorted(counts, reverse=True))
        return f"<report of {printable(self.request.source)}: {found or 'no findings'}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the findings by level, the numbers, and what could not be read."""
        from kafka_records_tables.report.notebook_html import report_html

        return report_html(self)
