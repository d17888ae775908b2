"""Orders tasks: the largest first, with consecutive tasks on different brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeVar, cast

from kafka_records_engine.sources.broker_threads import leader_of

if TYPE_CHECKING:
    from kafka_records_engine.sources import LogPartition

T = TypeVar("T")


def spread(logs: Sequence[LogPartition]) -> list[LogPartition]:
    """The logs, the largest first. Logs with the same leader are placed far apart, because Spark starts tasks in this
    order, as many at a time as there are cores."""
    return spread_by(logs, lambda log: log)


def spread_by(tasks: Iterable[T], log_of: Callable[[T], LogPartition]) -> list[T]:
    """The tasks, in the order that `spread` gives to their logs."""
    by_leader: dict[object, list[T]] = {}
    for task in sorted(tasks, key=lambda task: _by_size(log_of(task))):
        by_leader.setdefault(leader_of(log_of(task)), []).append(task)
    nothing = object()
    turns = zip_longest(*by_leader.values(), fillvalue=nothing)
    return [cast("T", task) for turn in turns for task in turn if task is not nothing]


def _by_size(log: LogPartition) -> tuple[int, str, int]:
    return -log.size, log.topic, log.partition
