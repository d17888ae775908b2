"""In which order tasks begin: the biggest first, and neighbours on different brokers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_records_engine.sources import LogPartition


def spread(logs: Sequence[LogPartition]) -> list[LogPartition]:
    """The logs, biggest first; where brokers lead them, those of one broker far from each other, since Spark starts
    tasks in this order and as many at a time as there are cores."""
    by_leader: dict[object, list[LogPartition]] = {}
    for log in sorted(logs, key=lambda log: (-log.size, log.topic, log.partition)):
        by_leader.setdefault(getattr(log, "leader", None), []).append(log)
    return [log for turn in zip_longest(*by_leader.values()) for log in turn if log is not None]
