"""Prints notes on standard error about what readers of brokers wait for. The readers report it to `logging`, as a
library does."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Final

from kafka_records_tables.console.standard_error import say

_SOURCES: Final = "kafka_records_engine.sources"


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        # If standard output is closed, the code that writes the result reports it.
        with suppress(OSError):
            say(f"note: {record.getMessage()}", is_of_now=True)


def tell_waiting() -> None:
    """Print these notes from now on. A second call changes nothing."""
    log = logging.getLogger(_SOURCES)
    if not any(isinstance(each, _Notes) for each in log.handlers):
        log.addHandler(_Notes())
