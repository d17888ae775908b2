"""Findings as lines for people and for programs. Loads nothing but the standard library."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from kafka_records_runtime.errors import plural

if TYPE_CHECKING:
    from kafka_records_engine.findings import Finding

MOST: Final = 50
"""Findings of one kind that are lines of their own."""


def finding_lines(findings: Iterable[Finding], way_to_all: str, most: int = MOST) -> Iterator[str]:
    """One line per finding, in their order, notes with `note: ` in front; what a line holds is not escaped. What is
    said of several log partitions of a topic in the same words is one line.

    Of each kind, findings of one severity and reason, only the first `most` come; a line at the end counts the others
    and says `way_to_all` of them.
    """
    seen: Counter[tuple[str, str]] = Counter()
    for same in _same_words(findings):
        finding = same[0]
        kind = (finding.severity, finding.reason)
        seen[kind] += 1
        if seen[kind] <= most:
            yield f"{'note: ' if finding.severity == 'note' else ''}{_of_all(same) if len(same) > 1 else finding}"
    for (severity, reason), count in seen.items():
        if count > most:
            start = "note: " if severity == "note" else ""
            yield f"{start}{plural(count - most, 'more finding')} of the kind {reason}: {way_to_all}"


def _same_words(findings: Iterable[Finding]) -> Iterable[list[Finding]]:
    """Findings about whole log partitions that differ in the partition alone, together where the first of them stands;
    others alone."""
    by_words: dict[Finding | int, list[Finding]] = {}
    for number, finding in enumerate(findings):
        is_of_log = finding.file is None and finding.offset is None and finding.base_offset is None
        by_words.setdefault(replace(finding, partition=None) if is_of_log else number, []).append(finding)
    return by_words.values()


def _of_all(same: Sequence[Finding]) -> str:
    finding = same[0]
    numbers = sorted({each.partition for each in same if each.partition is not None})
    if finding.topic is None or len(numbers) < 2:
        return str(finding)
    # Each run of numbers has its own distance between a number and its place among all.
    runs = [list(run) for _, run in groupby(numbers, lambda number: number - numbers.index(number))]
    shown = ", ".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"{finding.topic}, partitions {shown}: {finding.what} ({finding.consequence})"


def finding_object(finding: Finding) -> dict[str, Any]:
    """A finding as JSON has it: its fields by their names, bytes in hex, and what `str()` gives as `message`."""
    values = {field.name: getattr(finding, field.name) for field in fields(finding)}
    plain = {name: value.hex() if isinstance(value, bytes) else value for name, value in values.items()}
    return {**plain, "message": str(finding)}


def finding_json(finding: Finding) -> str:
    """A finding as one line of JSON, in ASCII, its end included."""
    return json.dumps(finding_object(finding), separators=(",", ":")) + "\n"
