"""An incident in words: whether it goes on, its causes, and what the report lacked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafka_records_tables.report.report_parts import ReportFinding

_MOST_CAUSES: Final = 2


def going_on_words(finding: ReportFinding) -> str:
    """Whether it goes on; nothing where no record tells."""
    return {True: "it goes on", False: "it is over", None: ""}[finding.is_going_on]


def cause_lines(finding: ReportFinding) -> Iterator[str]:
    """The causes that remain, and what the report lacked to tell them apart."""
    for at, cause in enumerate(finding.causes[:_MOST_CAUSES]):
        yield f"{'cause' if not at else 'or'} (confidence {cause.confidence}): {cause.statement}"
    for lack in finding.lacked:
        yield f"{lack.what}, which would tell these causes apart: {', '.join(lack.causes)}"
