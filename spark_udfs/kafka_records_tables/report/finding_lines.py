"""Findings as lines for people and for programs. Loads nothing but the standard library."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from kafka_records_runtime.errors import plural

if TYPE_CHECKING:
    from kafka_records_engine.findings import Finding

MOST: Final = 50
"""Findings of one kind that are lines of their own."""


def finding_lines(findings: Iterable[Finding], way_to_all: str, most: int = MOST) -> Iterator[str]:
    """One line per finding, in their order, notes with `note: ` in front; what a line holds is not escaped.

    Of each kind, findings of one severity and reason, only the first `most` come; a line at the end counts the others
    and says `way_to_all` of them.
    """
    seen: Counter[tuple[str, str]] = Counter()
    for finding in findings:
        kind = (finding.severity, finding.reason)
        seen[kind] += 1
        if seen[kind] <= most:
            yield f"{'note: ' if finding.severity == 'note' else ''}{finding}"
    for (severity, reason), count in seen.items():
        if count > most:
            start = "note: " if severity == "note" else ""
            yield f"{start}{plural(count - most, 'more finding')} of the kind {reason}: {way_to_all}"


def finding_object(finding: Finding) -> dict[str, Any]:
    """A finding as JSON has it: its fields by their names, bytes in hex, and what `str()` gives as `message`."""
    values = {field.name: getattr(finding, field.name) for field in fields(finding)}
    plain = {name: value.hex() if isinstance(value, bytes) else value for name, value in values.items()}
    return {**plain, "message": str(finding)}


def finding_json(finding: Finding) -> str:
    """A finding as one line of JSON, in ASCII, its end included."""
    return json.dumps(finding_object(finding), separators=(",", ":")) + "\n"
