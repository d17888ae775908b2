"""How many records were written before a backlog grew."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_records_tables.report.facts.group_facts import LogEnds, Place


def most_written(ends: LogEnds, places: Sequence[Place], grew_ms: tuple[int, int], least_ms: int) -> float | None:
    """The maximum number of records per second that were written to some partitions before a backlog grew.

    `grew_ms` is when it began and stopped growing. The time before is as long as the growth, or as far back as log ends
    are known; None if that is less than `least_ms`. If it is unknown where a log ended
    at the beginning of that time, all of its records count.
    """
    known = [at for place in places if (at := ends.known_from(place)) is not None]
    since, until = grew_ms
    from_ms = max(2 * since - until, min(known, default=since))
    if since - from_ms < least_ms:
        return None
    written = 0
    for place in places:
        start, end = ends.end_at(place, from_ms), ends.end_at(place, since)
        start = ends.start(place) if start is None else start
        if start is None or end is None:
            return None
        written += end - start
    return 1000 * written / (since - from_ms)
