"""The parts of a report. The page, the JSON document and the command's output use only these values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from kafka_records_runtime.text.printable import printable
from kafka_records_tables.report.levels import FailOn, Level

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_engine.findings import Finding as ReadingFinding
    from kafka_records_engine.sources import Counts

_LACKING: Final = frozenset({"log_cut", "segment_lost"})
"""The kinds of findings about coordinators' logs that lack records."""
USUAL_PACKAGE: Final = "kafka_records"
"""The generated package that a report uses by default."""

AT_LEAST: Final = "_at_least"
"""The suffix of names in `ReportFinding.scale` that are lower bounds, as in `records_repeated_at_least`."""

Confidence = Literal["high", "medium", "low"]
"""How certain the report is, as in the tables. `low` means that the reason may be something that no record shows."""

Consequence = Literal["data_lost", "work_stopped", "work_repeated", "waste", "none"]
"""The certain effect of an incident on the users of the cluster, the worst first. It is `none` if an effect is merely
possible."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A record that shows something: its position, and a line that says what it shows."""

    shows: str
    topic: str | None = None
    """The topic of the log that contains the record, for example `__consumer_offsets`."""
    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class NextStep:
    """A step to take next. `command` is a complete command line for the source of this report, quoted for a shell; null
    if no command helps."""

    what: str
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """The table rows from which a number or a finding was derived; `table NAME --where …` prints them."""

    table: str
    where: tuple[str, ...] = ()
    """Conditions in the syntax of the command; all of them must hold."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A possible cause of an incident, not refuted."""

    name: str
    """The name of the hypothesis, for example `poison_record`."""
    statement: str
    """The cause as a sentence about this incident."""
    confidence: Confidence
    evidence_for: tuple[Evidence, ...] = ()
    evidence_against: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """The question that decides between the two remaining causes."""

    between: tuple[str, str]
    """The names of the two causes. The first is right if the answer is yes, the second if it is no."""
    question: str
    command: str | None = None
    """The command that answers the question; null if only a person can answer it."""


@dataclass(frozen=True, slots=True)
class Lack:
    """Missing information, and the causes that could not be distinguished without it."""

    what: str
    """The missing information, for example `__cluster_metadata is not in the source`."""
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Actor:
    """A client that caused an incident or took part in it, according to records."""

    did: str
    """What the client did, in a few words, for example `left 40 times`."""
    group_id: str | None = None
    member_id: str | None = None
    client_id: str | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """Another finding that follows from an incident."""

    kind: str
    level: Level
    title: str
    problem: str
    group_ids: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    rows: tuple[Rows, ...] = ()

    @classmethod
    def of(cls, finding: ReportFinding, title: str | None = None) -> Effect:
        """A finding as an effect of another one, with its own title or a given one."""
        return cls(
            finding.kind,
            finding.level,
            title or finding.title,
            finding.problem,
            finding.group_ids,
            finding.topics,
            finding.partitions,
            finding.rows,
        )


@dataclass(frozen=True, slots=True)
class ReportFinding:
    """An incident (one cause with its effects in all groups and topics), or something else that an operator should
    know."""

    kind: str
    """The name of the rule, for example `offsets_expiring`."""
    level: Level
    title: str
    """One line without group names, for example `offsets of a group that is alive expire soon`."""
    problem: str
    """The problem in a sentence or two with numbers: what happened and who is affected. Written for readers who do not
    know the tables."""
    impact: str = ""
    """The consequences for the users of the topics, in a sentence."""
    consequence: Consequence = "none"
    group_ids: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    """Partitions of the topic, sorted, if the finding is about one topic."""
    transactional_ids: tuple[str, ...] = ()
    who: tuple[Actor, ...] = ()
    """The clients that caused it or took part in it, if records show them."""
    since_timestamp_ms: int | None = None
    """The time of the first record that shows the problem, in milliseconds since 1970; null if no record shows it."""
    since_note: str | None = None
    """How exact the time is, or why it is unknown, in a few words that follow or replace the time."""
    until_timestamp_ms: int | None = None
    """The time at which the problem gets worse if nothing is done, for example the first expiry; null if unknown."""
    is_going_on: bool | None = None
    """Whether the problem continues at the time of the report; null if no record shows this."""
    scale: Mapping[str, int] = field(default_factory=dict)
    """The extent of the problem, counted from the log, for example `{"records_lost": 36, "records_repeated": 0}`. It
    includes all jumps. A number is a lower bound if its name ends with `AT_LEAST`."""
    causes: tuple[Cause, ...] = ()
    """The remaining causes, the likeliest first."""
    refuted_by: Mapping[str, Evidence] = field(default_factory=dict)
    """The causes that are ruled out, by name, each with the fact that does so."""
    decision: Decision | None = None
    """The question that decides between the first two causes."""
    lacked: tuple[Lack, ...] = ()
    confidence: Confidence = "high"
    """The confidence in the first of `causes` or, if there are none, in the finding itself."""
    symptom_confidence: Confidence = "high"
    """The confidence that the problem exists."""
    why_not_sure: str | None = None
    """What the log does not show; null if both confidences are high."""
    evidence: tuple[Evidence, ...] = ()
    evidence_count: int = 0
    """The total number of pieces of evidence; `evidence` contains the first ones."""
    effects: tuple[Effect, ...] = ()
    """Other findings that follow from this one; these are not listed separately."""
    rows: tuple[Rows, ...] = ()
    next: tuple[NextStep, ...] = ()
    """The steps to take, in order."""
    measured: Mapping[str, Any] = field(default_factory=dict)
    """The figures that were compared with thresholds. Their names include the unit, for example `{"expires_in_ms":
    3600000}`."""
    thresholds: Mapping[str, Any] = field(default_factory=dict)
    """The thresholds that decided the level, by name, as in a thresholds file."""

    def cause_lines(self) -> Iterator[str]:
        """The two likeliest causes, and the decisive information that is missing, each in a sentence."""
        for at, cause in enumerate(self.causes[:2]):
            yield f"{'cause' if not at else 'or'} (confidence {cause.confidence}): {cause.statement}"
        decides = "decide between the causes" if len(self.causes) > 1 else "confirm the cause"
        for lack in self.lacked:
            yield f"what would {decides} is missing: {lack.what}"


@dataclass(frozen=True, slots=True)
class Number:
    """A key figure, for example `groups: 65`; `rows` are the rows that it counts or sums."""

    name: str
    label: str
    value: int | float | None
    unit: str | None
    rows: Rows
    column: str | None = None
    """The column that was summed; null if rows are counted."""


@dataclass(frozen=True, slots=True)
class Omission:
    """Rows that a page leaves out because of their size, and the command that prints them."""

    what: str
    row_count: int
    command: str


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """The head of a report: the arguments (`read_report`), the source, the time and the version."""

    source: str
    """The source in readable form: the paths, or the addresses of the brokers."""
    source_arguments: tuple[str, ...]
    """The arguments that name the source on a command line, for example `("--bootstrap", "localhost:9092")`; empty if
    no command can read it."""
    made_timestamp_ms: int
    at_timestamp_ms: int
    """The time that the report is about: `as_of` or, by default, the time when it was made (for brokers) or the time of
    the last record (for stored logs)."""
    as_of: bool
    retention_ms: int
    groups: tuple[str, ...] | None
    topic_filter: tuple[str, ...]
    version: str
    """The version of kafka-records."""
    engine: Literal["local", "spark"]
    assume: Literal["committed"] | None = None
    """How to treat records if the source does not show which are transactional; null if not given."""
    package: str = USUAL_PACKAGE
    """The generated package with the schemas of the records."""
    partitions: Mapping[str, int] | None = None
    """The partition counts of the coordinators' topics, if they were passed. Running brokers report them."""
    cluster_id: str | None = None
    """The cluster id, from the data directory; null if unknown."""


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A finding whose level has changed."""

    finding: int
    """The index in `Report.findings`."""
    before: Level


@dataclass(frozen=True, slots=True)
class ReportDiff:
    """The changes since an earlier report."""

    old_made_timestamp_ms: int
    old_at_timestamp_ms: int
    """The time that the earlier report is about."""
    new: tuple[int, ...]
    """Indexes in `Report.findings`."""
    worse: tuple[LevelChange, ...]
    better: tuple[LevelChange, ...]
    gone: tuple[ReportFinding, ...]
    """Findings of the earlier report that are gone."""
    notes: tuple[str, ...] = ()
    """Sentences about other differences between the two reports that can make findings new, worse, better or gone."""

    def marks(self) -> dict[int, str]:
        """The marks of changed findings (`new`, `was high`), by their indexes."""
        changed = (*self.worse, *self.better)
        return {**dict.fromkeys(self.new, "new"), **{each.finding: f"was {each.before.word}" for each in changed}}


@dataclass(frozen=True, slots=True)
class Report:
    """A whole report. Every number on a page is in a row of `tables`, or is a count or sum of such rows."""

    request: ReportRequest
    findings: tuple[ReportFinding, ...]
    """The findings, the worst first. Within a level, the most urgent and the largest come first."""
    numbers: tuple[Number, ...]
    tables: Mapping[str, pa.Table]
    """Rows by table name, sorted as `table` prints them. Tables whose topics the source does not have are listed in
    `missing` instead."""
    missing: Mapping[str, str]
    """The missing tables, each with the reason."""
    reading: Sequence[ReadingFinding]
    """The distinct findings made while reading."""
    counts: Counts
    """Counts of what was read. Each log is counted once, not once per table."""
    diff: ReportDiff | None = None
    """The changes since an earlier report, if one was given."""
    commits: pa.Table | None = None
    """Rows of `history`: the commits of groups that rules examined more closely."""
    log_samples: pa.Table | None = None
    """The ends of logs at some times (`report.facts.log_samples`), if rules have requested them."""

    def __repr__(self) -> str:
        counts = Counter(finding.level for finding in self.findings)
        found = ", ".join(f"{counts[level]} {level.word}" for level in sorted(counts, reverse=True))
        return f"<report of {printable(self.request.source)}: {found or 'no findings'}>"

    @property
    def is_complete(self) -> bool:
        """Whether no rows are known to be missing: nothing was damaged or skipped while reading, and no coordinator log
        lacks records."""
        is_damaged = any(finding.severity == "damage" for finding in self.reading)
        return not is_damaged and not self.incomplete_logs()

    def incomplete_logs(self) -> list[ReportFinding]:
        """The findings about coordinators' logs that lack records. A copy that lacks only what a broker wrote while it
        was copied is complete."""
        return [each for each in self.findings if each.kind in _LACKING and each.level > Level.NOTE]

    def to_fail_on(self, asked: FailOn) -> list[ReportFinding]:
        """The findings for which the command fails. With `only_new`, a report without a diff has no such findings."""
        diff = self.diff
        places: Iterable[int] = range(len(self.findings))
        if asked.only_new:
            places = () if diff is None else (*diff.new, *(change.finding for change in diff.worse))
        return [self.findings[at] for at in sorted(places) if self.findings[at].level >= asked.level]

    def _repr_html_(self) -> str:
        """What a notebook shows: the findings by level, the numbers, and what could not be read."""
        from kafka_records_tables.report.notebook_html import report_html

        return report_html(self)
