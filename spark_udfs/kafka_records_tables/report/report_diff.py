"""What changed since an earlier report, out of its JSON document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from kafka_records_runtime.printable import printable
from kafka_records_tables.report.report_json import FORMAT, FORMAT_VERSION
from kafka_records_tables.report.report_parts import (
    Evidence,
    Level,
    LevelChange,
    NextStep,
    Report,
    ReportDiff,
    ReportFinding,
    Rows,
)

_LEVELS: Final = {level.word: level for level in Level}


class DiffError(ValueError):
    """A document that a report cannot be compared with; a sentence says why."""


class EarlierReport:
    """The findings of a JSON document. Raises DiffError for a file that is none, or of another format version."""

    def __init__(self, path: Path) -> None:
        document = _document(path)
        try:
            self.made_ms = int(document["request"]["made_timestamp_ms"])
            self.at_ms = int(document["request"]["at_timestamp_ms"])
            self.findings = tuple(map(_finding, document["findings"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DiffError(f"{path}: lacks what a report has: {error!r}") from None


def report_diff(report: Report, earlier: EarlierReport) -> ReportDiff:
    """What is new, gone, worse or better. A finding is the same one when it is of the same kind and about the same
    rows, whatever their number and times."""
    before = {_identity(finding): finding for finding in earlier.findings}
    now = {_identity(finding) for finding in report.findings}
    new: list[int] = []
    worse: list[LevelChange] = []
    better: list[LevelChange] = []
    for at, finding in enumerate(report.findings):
        old = before.get(_identity(finding))
        if old is None:
            new.append(at)
        elif old.level != finding.level:
            (worse if finding.level > old.level else better).append(LevelChange(at, old.level))
    gone = tuple(finding for identity, finding in before.items() if identity not in now)
    return ReportDiff(earlier.made_ms, earlier.at_ms, tuple(new), tuple(worse), tuple(better), gone)


def _identity(finding: ReportFinding) -> tuple[object, ...]:
    if not finding.rows:
        return finding.kind, tuple(each.topic for each in finding.evidence[:1])
    where = tuple(each for each in finding.rows[0].where if "timestamp" not in each.partition("=")[0])
    # What is summed up is one finding for each level.
    of_level = finding.level if "findings" in finding.measured else None
    return finding.kind, finding.rows[0].table, where, of_level


def _document(path: Path) -> Mapping[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DiffError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise DiffError(f"{path}: is no JSON document; report --format json writes one") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DiffError(f"{path}: is no report; report --format json writes one")
    version = document.get("format_version")
    if version != FORMAT_VERSION:
        raise DiffError(
            f"{path}: has the format version {printable(str(version)[:20])}, and this build reads {FORMAT_VERSION}: "
            "make the earlier report anew, with --as-of"
        )
    return document


def _finding(given: Mapping[str, Any]) -> ReportFinding:
    """A finding as a document has it; members that this build does not know are left out."""
    known = {field.name for field in fields(ReportFinding)}
    values: dict[str, Any] = {
        name: tuple(each) if isinstance(each, list) else each for name, each in given.items() if name in known
    }
    values["level"] = _LEVELS[given["level"]]
    values["evidence"] = tuple(_of(Evidence, each) for each in given["evidence"])
    values["rows"] = tuple(Rows(each["table"], tuple(each["where"])) for each in given["rows"])
    values["next"] = tuple(_of(NextStep, each) for each in given["next"])
    return ReportFinding(**values)


def _of(kind: type[Any], given: Mapping[str, Any]) -> Any:
    return kind(**{field.name: given[field.name] for field in fields(kind)})
