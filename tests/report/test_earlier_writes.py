"""How many records were written to a topic before a backlog grew."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_records_tables.report.facts.earlier_writes import most_written
from kafka_records_tables.report.facts.group_facts import LogEnds

SECOND = 1000
PLACES = [("orders", 0), ("orders", 1)]


def _ends(*logs: list[tuple[int, int]]) -> LogEnds:
    """Logs that start at 0, each with samples: an offset, and the time in seconds."""
    rows: list[dict[str, Any]] = [
        {
            "topic": "orders",
            "partition": partition,
            "log_start_offset": 0,
            "exact_from": None,
            "samples": [{"offset": offset, "timestamp_ms": at * SECOND} for offset, at in samples],
        }
        for partition, samples in enumerate(logs)
    ]
    return LogEnds(rows)


EVERY_SECOND = [(at - 1, at) for at in range(101)]


@pytest.mark.parametrize(
    ("logs", "least", "most"),
    [
        ((EVERY_SECOND, EVERY_SECOND), 20, 2.0),
        # The end of the second log is unknown when the time begins, so all of its 60 records count.
        ((EVERY_SECOND, EVERY_SECOND[50:]), 20, 2.5),
        ((EVERY_SECOND[50:], EVERY_SECOND[50:]), 20, None),
        ((EVERY_SECOND, []), 20, None),
        ((EVERY_SECOND, EVERY_SECOND), 60, None),
    ],
    ids=["both", "one_later", "both_later", "one_unknown", "too_short"],
)
def test_what_was_written_for_as_long_before(
    logs: tuple[list[tuple[int, int]], ...], least: int, most: float | None
) -> None:
    """A backlog grew from second 60 to 100, so the time from second 20 on counts."""
    assert most_written(_ends(*logs), PLACES, (60 * SECOND, 100 * SECOND), least * SECOND) == most
