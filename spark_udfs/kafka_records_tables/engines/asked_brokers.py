"""Reports when brokers were asked for the parts of an answer, as text and as a finding."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kafka_records_engine.findings import READ_MOMENTS, Finding

if TYPE_CHECKING:
    from kafka_records_engine.sources import Counts

_WORDS: Final = {
    "log_starts": "log starts asked for at {}",
    "records": "records read up to the ends of their logs of {}",
    "topics": "topics asked for at {}",
    "answers": "coordinators asked at {}",
    "log_ends": "log ends asked for at {}",
}
"""Texts by the names in `Counts.moments`, in the order in which an engine asks."""


def moments_asked(counts: Counts, source: str) -> Iterator[Finding]:
    """A note that says when brokers (`source`) were asked for log starts, records and log ends. There is none if the
    answer does not compare these, or is about stored logs."""
    if not {"log_starts", "log_ends"} <= counts.moments.keys():
        return
    told = [words.format(_span(*counts.moments[name])) for name, words in _WORDS.items() if name in counts.moments]
    consequence = "logs change while they are read, so the answer is about several moments"
    yield Finding("note", READ_MOMENTS, "; ".join(told), consequence, file=source)


def _span(first_ms: int, last_ms: int) -> str:
    first, last = _time(first_ms), _time(last_ms)
    return first if first_ms == last_ms else f"{first} to {last.partition('T')[2] if first[:10] == last[:10] else last}"


def _time(milliseconds: int) -> str:
    at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
