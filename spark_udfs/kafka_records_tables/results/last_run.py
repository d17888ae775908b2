"""The metric with the time at which metrics were written."""

from __future__ import annotations

import re
from typing import Final

LAST_RUN: Final = "kafka_records_last_run_timestamp_seconds"
_SAMPLE: Final = re.compile(rb"(?m)^(%s\{[^\n]*\}) [^\n]*$" % LAST_RUN.encode())


def written_at(metrics: bytes, seconds: float) -> bytes:
    """The same metrics with another time, in seconds since 1970. Line breaks in labels are escaped, so no label can
    look like that line."""
    return _SAMPLE.sub(rb"\1 %r" % seconds, metrics)
