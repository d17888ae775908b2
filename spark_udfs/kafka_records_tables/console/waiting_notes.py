"""Prints notes on standard error when code that reads from brokers has to wait. Like other libraries, that code reports
its waits to `logging`."""

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
    """Print notes about waits from now on. A second call changes nothing."""
    log = logging.getLogger(_SOURCES)
    if not any(isinstance(each, _Notes) for each in log.handlers):
        log.addHandler(_Notes())
