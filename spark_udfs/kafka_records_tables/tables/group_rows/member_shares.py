"""A member's assignment in the records of any kind of group, and the difference between two assignments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.coordinator.groups.embedded import assignment
from kafka_records_tables.coordinator.groups.group_model import CONSUMER

if TYPE_CHECKING:
    from kafka_records_tables.coordinator.records.named_records import Event

_KEPT: Final = 1024
_SHORT: Final = 1024
"""The limits of the cache of decoded assignments of classic members, in entries and bytes."""

Given = tuple[Any, ...] | None
"""An assignment as in its record: the protocol type and the bytes of a classic member, or the lists of a target
assignment."""

_TASKS = {"active_tasks": "active", "standby_tasks": "standby", "warmup_tasks": "warmup"}


def given(target: Event) -> Given:
    """A member's assignment in a target assignment."""
    if target.record.startswith("Streams"):
        return tuple((kind, getattr(target.value, name)) for name, kind in _TASKS.items())
    return (None, target.value.topic_partitions)


def changed(before: Given, after: Given, names: Mapping[str, str]) -> dict[str, Any] | None:
    """The partitions by topic, or the tasks by kind and subtopology, that were `gained` and `lost`. None if there are
    none, or if they are unknown because the format of protocols other than `consumer` is private to clients. `names`
    are topic names by id; a topic without a name is listed by its id."""
    if before == after:
        return None
    had, has = _opened(before, names), _opened(after, names)
    if had is None or has is None:
        return None
    found = {"gained": _without(has, had), "lost": _without(had, has)}
    return {word: parts for word, parts in found.items() if parts} or None


_Parts = dict[str, set[int]]


def _without(parts: _Parts, others: _Parts) -> dict[str, list[int]]:
    left = {name: sorted(numbers - others.get(name, set())) for name, numbers in parts.items()}
    return {name: numbers for name, numbers in sorted(left.items()) if numbers}


def _opened(share: Given, names: Mapping[str, str]) -> _Parts | None:
    if share is None:
        return {}
    first, second = share[:2]
    if isinstance(first, tuple):
        return {f"{kind} {each['subtopology_id']}": set(each["partitions"]) for kind, tasks in share for each in tasks}
    if isinstance(second, bytes):
        return _kept_parts(first, second) if len(second) <= _SHORT else _opened_bytes(first, second)
    return {names.get(each["topic_id"], each["topic_id"]): set(each["partitions"]) for each in second}


def _opened_bytes(protocol: str | None, data: bytes) -> _Parts | None:
    """The partitions in the assignment of a classic member."""
    opened = assignment(CONSUMER, data) if protocol == CONSUMER and data else None
    if opened is None:
        return {} if protocol == CONSUMER and not data else None
    parts: _Parts = {}
    for each in opened.value["assigned_partitions"]:
        parts.setdefault(each["topic"], set()).update(each["partitions"])
    return parts


_kept_parts = lru_cache(_KEPT)(_opened_bytes)
"""The difference of two assignments, cached because what is lost was gained before. Callers must not change the
result."""
