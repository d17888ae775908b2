"""Follows logs on brokers: repeatedly requests their ends, and reads new records."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Never

from kafka_records_tables.console.endings import CommandError
from kafka_records_tables.console.standard_error import say

if TYPE_CHECKING:
    from kafka_records_engine.sources.broker_logs import BrokerPartition

INTERVAL: Final = 1.0
"""The number of seconds between two requests for log ends. Each check sends a few small requests per topic."""

Print = Callable[["BrokerPartition", int, int], int | None]
"""A function that prints the records of a log between two offsets. It returns the first offset that no broker delivered
in time, or None if all were delivered."""


class BrokerFollower:
    """Follows the partitions that `find` returns from their start, including partitions and topics added later."""

    def __init__(self, logs: Sequence[BrokerPartition], find: Callable[[], Sequence[BrokerPartition]]) -> None:
        self._logs: Sequence[BrokerPartition] | None = logs
        self._find = find
        self._next: dict[tuple[str, int], tuple[bytes, int]] = {}
        """By topic and partition: the topic id, and the next offset to read."""
        self._trouble: str | None = None
        self._in_trouble: set[tuple[str, int]] = set()

    @property
    def partition_count(self) -> int:
        return len(self._next)

    def run(self, show: Print) -> Never:
        """Print records as soon as they are written, until Ctrl-C or a failure."""
        while True:
            for log in self._found():
                if self._is_in_trouble(log):
                    continue
                start = self._start(log)
                unread = show(log, start, log.end) if start < log.end else None
                if unread is not None:
                    say(f"note: {log.topic}-{log.partition}: records are requested again from offset {unread} on")
                self._next[log.topic, log.partition] = log.topic_id, log.end if unread is None else unread
            time.sleep(INTERVAL)

    def _found(self) -> Sequence[BrokerPartition]:
        """The logs with their present ends; empty as long as no broker answers, which is reported once."""
        if self._logs is not None:
            logs, self._logs = self._logs, None
            return logs
        try:
            logs, self._trouble = self._find(), None
        except CommandError as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                say(f"note: {error}; asking again")
            return ()
        return logs

    def _is_in_trouble(self, log: BrokerPartition) -> bool:
        """Whether no broker reports the present start and end of the log, which is reported once."""
        place = log.topic, log.partition
        if log.trouble is None:
            self._in_trouble.discard(place)
        elif place not in self._in_trouble:
            self._in_trouble.add(place)
            say(f"note: {log.topic}-{log.partition}: {log.trouble}; asking again")
        return log.trouble is not None

    def _start(self, log: BrokerPartition) -> int:
        """The next offset to read: the start of a new or recreated log, or the end of a truncated one."""
        topic_id, behind = self._next.get((log.topic, log.partition), (log.topic_id, log.start))
        name = f"{log.topic}-{log.partition}"
        if topic_id != log.topic_id:
            say(f"note: {name}: the topic was deleted and recreated: its records are shown from offset {log.start} on")
            return log.start
        if log.end < behind:
            say(f"note: {name}: the log ended at {behind} and ends at {log.end} now: new records are shown")
        if log.start > behind:
            gone = f"offset {behind} was" if log.start == behind + 1 else f"offsets {behind} to {log.start - 1} were"
            say(f"note: {name}: {gone} deleted before they were read: the log starts at {log.start} now")
            return log.start
        return behind
