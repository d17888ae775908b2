"""Notes about a requested time outside of what a log covers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kafka_records_engine.findings import OUTSIDE_LOG, Finding
from kafka_records_tables.tables.completeness import time_text

if TYPE_CHECKING:
    from kafka_records_engine.sources import Counts
    from kafka_records_tables.engines.request import TableRequest

_QUIET_MS: Final = 60 * 60 * 1000
"""How long a topic may have no new records without this being unusual."""


def moment_notes(request: TableRequest, counts: Counts) -> Iterator[Finding]:
    """A note if the requested time is before the first record of the topic, at least an hour after the last record, or
    in the future. `counts` are those of all log partitions of the topic."""
    asked, first, last = request.question.as_of_ms, counts.first_timestamp_ms, counts.last_timestamp_ms
    if asked is None or first is None or last is None:
        return
    moment = time_text(asked)
    if not counts.records + counts.markers:
        what = f"the moment {moment} is before the first record, of {time_text(first)}"
        consequence = "nothing existed then, or the log has lost it"
    elif asked > time.time_ns() // 1_000_000:
        what = f"the moment {moment} is in the future, and the last record is of {time_text(last)}"
        consequence = "the answer covers all records"
    elif asked >= last + _QUIET_MS:
        what = f"the moment {moment} is later than the last record, of {time_text(last)}"
        consequence = (
            "the answer covers all records of the source; a copy has no records that were written after it was made"
        )
    else:
        return
    yield Finding("note", OUTSIDE_LOG, what, consequence, request.table.topic)
