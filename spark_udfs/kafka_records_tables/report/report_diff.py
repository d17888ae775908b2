"""Finds the changes since an earlier report, which is a report of this process or a JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from kafka_records_runtime.text.printable import printable
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_json import FORMAT, FORMAT_VERSION
from kafka_records_tables.report.report_parts import LevelChange, Report, ReportDiff, ReportFinding, ReportRequest
from kafka_records_tables.report.rule_context import length, listed, moment
from kafka_records_tables.report.thresholds import known_thresholds

_LEVELS: Final = {level.word: level for level in Level}
_WANTED: Final = "report --format json writes one"
_SETTINGS: Final = ("retention_ms", "assume", "partitions", "package", "version")
"""Fields of a request that change which findings the same records produce."""


class DiffError(ValueError):
    """The given report cannot be used for a comparison; the text says why."""


@dataclass(frozen=True, slots=True)
class EarlierReport:
    """The parts of an earlier report that are compared with a later one."""

    request: ReportRequest
    findings: tuple[ReportFinding, ...]
    missing: Mapping[str, str]
    """The missing tables, each with the reason."""

    def check_selection(self, groups: Iterable[str] | None, topic_filter: Iterable[str]) -> None:
        """Raise a DiffError if the earlier report is about other groups or topics, because anything that only one of
        the two covers would count as new or gone."""
        asked = self.request
        for noun, before, now in (
            ("group", asked.groups, groups),
            ("topic", asked.topic_filter or None, tuple(topic_filter) or None),
        ):
            old, new = _selected(noun, before), _selected(noun, now)
            if old != new:
                raise DiffError(
                    f"the earlier report is about {old}, but this one is about {new}: findings about what "
                    "only one of them covers would count as new or gone; make both with the same selection"
                )

    def check_cluster(self, cluster_id: str | None) -> None:
        """Raise a DiffError if the ids of both clusters are known and differ."""
        before = self.request.cluster_id
        if None not in (before, cluster_id) and before != cluster_id:
            raise DiffError(
                f"the earlier report is of the cluster {before}, but this one is of the cluster {cluster_id}: give an "
                "earlier report of the same cluster"
            )


def earlier_report(given: Report | Path | str) -> EarlierReport:
    """The earlier report to compare with. Raises DiffError for a file that is not a report, or has another format
    version."""
    if isinstance(given, Report):
        return EarlierReport(given.request, given.findings, given.missing)
    document = _document(Path(given))
    findings = document.get("findings")
    if isinstance(findings, list):
        for number, finding in enumerate(findings):
            level = finding.get("level") if isinstance(finding, dict) else None
            if isinstance(level, str) and level not in _LEVELS:
                wanted = f"`findings[{number}].level` is {printable(level)!r}, none of {', '.join(_LEVELS)}"
                raise DiffError(f"{given}: is damaged or incomplete: {wanted}; {_WANTED}")
        document["findings"] = list(map(_with_level, findings))
    try:
        # Unknown members are ignored.
        return msgspec.convert(document, EarlierReport)
    except msgspec.ValidationError as error:
        why = printable(f"{error}".replace("`$.", "`"))
        raise DiffError(f"{given}: is damaged or incomplete: {why}; {_WANTED}") from None


def report_diff(report: Report, earlier: EarlierReport) -> ReportDiff:
    """The findings that are new, gone, worse or better. Two findings are the same if they are of the same kind and
    about the same rows, regardless of their number and times. Which findings are combined may change from one second to
    the next. So a finding that is combined in one report is the same as a finding about its group or topic in the other
    report, and a summary is new only if it names a group or topic that no earlier finding of its kind named."""
    earlier.check_selection(report.request.groups, report.request.topic_filter)
    before = {_identity(finding): finding for finding in earlier.findings}
    now = {_identity(finding) for finding in report.findings}
    others_before, others_now = _OtherForms(earlier.findings), _OtherForms(report.findings)
    new: list[int] = []
    worse: list[LevelChange] = []
    better: list[LevelChange] = []
    for at, finding in enumerate(report.findings):
        old = before.get(_identity(finding)) or others_before.of(finding)
        if old is None:
            new.append(at)
        elif old.level != finding.level:
            (worse if finding.level > old.level else better).append(LevelChange(at, old.level))
    gone = tuple(
        finding for identity, finding in before.items() if identity not in now and others_now.of(finding) is None
    )
    request = earlier.request
    return ReportDiff(
        request.made_timestamp_ms,
        request.at_timestamp_ms,
        tuple(new),
        tuple(worse),
        tuple(better),
        gone,
        tuple(_notes(report, earlier)),
    )


class _OtherForms:
    """The findings of a report, for lookup even if a finding is separate in one report and part of a summary in the
    other."""

    def __init__(self, findings: Iterable[ReportFinding]) -> None:
        self._of_kinds: dict[str, list[ReportFinding]] = {}
        for finding in findings:
            self._of_kinds.setdefault(finding.kind, []).append(finding)

    def of(self, finding: ReportFinding) -> ReportFinding | None:
        """The counterpart of a finding. For a single finding it is a summary that names its groups, or its topics if
        findings of the kind are about topics. For a summary it is the finding of the highest level among those that
        together name everything it names."""
        same_kind = self._of_kinds.get(finding.kind, ())
        if not _is_summary(finding):
            return next((each for each in same_kind if _is_summary(each) and _is_named(finding, each)), None)
        named = _names(finding)
        parts = [each for each in same_kind if _names(each, finding) & named]
        if not named or named - set().union(*(_names(each, finding) for each in parts)):
            return None
        return max(parts, key=lambda each: each.level)


def _is_named(finding: ReportFinding, summary: ReportFinding) -> bool:
    own = _names(finding, summary)
    return bool(own) and own <= _names(summary)


def _names(finding: ReportFinding, summary: ReportFinding | None = None) -> set[str]:
    """The groups of a finding, or its topics if `summary` (by default the finding) names no group."""
    by_group = bool((summary or finding).group_ids)
    return set(finding.group_ids if by_group else finding.topics)


def _is_summary(finding: ReportFinding) -> bool:
    return "findings" in finding.measured


def _identity(finding: ReportFinding) -> tuple[object, ...]:
    if not finding.rows:
        return finding.kind, tuple(each.topic for each in finding.evidence[:1])
    where = tuple(each for each in finding.rows[0].where if "timestamp" not in each.partition("=")[0])
    # There is one summary per level.
    of_level = finding.level if _is_summary(finding) else None
    return finding.kind, finding.rows[0].table, where, of_level


# -- what makes two reports less than alike ----------------------------------------------------------------------------


def _notes(report: Report, earlier: EarlierReport) -> Iterator[str]:
    old, new = earlier.request, report.request
    if old.source != new.source:
        yield f"the earlier report is about another source, {old.source}, and this one about {new.source}"
    if old.at_timestamp_ms > new.at_timestamp_ms:
        yield (
            f"the earlier report is about a later moment, {moment(old.at_timestamp_ms)}: findings called new were "
            "over by then, and findings called gone came later"
        )
    asked = [*_other_settings(old, new), *_other_thresholds(earlier.findings, report.findings)]
    if asked:
        yield f"findings may have changed only because of this: {'; '.join(asked)}"
    lacking = sorted(earlier.missing.keys() ^ report.missing.keys())
    if lacking:
        names = ", ".join(lacking)
        yield f"one of the two reports lacks tables ({names}): findings from them are new or gone for that reason only"


def _other_settings(old: ReportRequest, new: ReportRequest) -> Iterator[str]:
    for name in _SETTINGS:
        before, now = getattr(old, name), getattr(new, name)
        if before != now:
            unit = name.endswith("_ms")
            yield f"{name.removesuffix('_ms')} was {_value(before, unit)} and is {_value(now, unit)}"


def _other_thresholds(old: Iterable[ReportFinding], new: Iterable[ReportFinding]) -> Iterator[str]:
    """Thresholds with different values that decided findings in both reports. A document does not contain the
    others."""
    before, now = (
        {name: value for each in findings for name, value in each.thresholds.items()} for findings in (old, new)
    )
    known = known_thresholds()
    for name in sorted(before.keys() & now.keys()):
        if before[name] != now[name]:
            is_time = name in known and known[name].kind == "duration"
            yield f"{name} was {_value(before[name], is_time)} and is {_value(now[name], is_time)}"


def _value(value: Any, is_time: bool) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={each}" for name, each in value.items())
    return "not given" if value is None else length(value) if is_time and isinstance(value, int) else f"{value}"


def _selected(noun: str, names: Iterable[str] | None) -> str:
    if names is None:
        return f"all {noun}s"
    chosen = sorted(set(names))
    return f"the {noun}{'' if len(chosen) == 1 else 's'} {listed(chosen, 8)}"


# -- documents ---------------------------------------------------------------------------------------------------------


def _document(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DiffError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DiffError(f"{path}: is not a JSON document; {_WANTED}") from None
    if not text.strip():
        raise DiffError(f"{path}: is empty; {_WANTED}")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise DiffError(f"{path}: is not a JSON document; {_WANTED}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DiffError(f"{path}: is not a report; {_WANTED}")
    version = document.get("format_version")
    if version != FORMAT_VERSION:
        raise DiffError(
            f"{path}: its format version is {printable(str(version)[:20])}, but this build reads only "
            f"{FORMAT_VERSION}: write the earlier report again with this build and --as-of"
        )
    return document


def _with_level(given: Any) -> Any:
    """The finding with the number of its level instead of its name."""
    level = _LEVELS.get(str(given.get("level"))) if isinstance(given, dict) else None
    if level is None:
        return given
    effects = given.get("effects")
    with_levels = list(map(_with_level, effects)) if isinstance(effects, list) else effects
    return {**given, "level": level, "effects": with_levels} if "effects" in given else {**given, "level": level}
