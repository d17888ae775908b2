"""Creates the rows of `deletable_offsets`: one for each offset, each commit of an open transaction, and each group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.numpy_types import INT64
from kafka_records_tables.coordinator.groups.subscriptions import HeldGroup
from kafka_records_tables.coordinator.rules import deletion_rules as rules
from kafka_records_tables.tables.column_types import instants, record_batch

if TYPE_CHECKING:
    from kafka_records_tables.coordinator.offsets.last_commits import CommitKey
    from kafka_records_tables.tables.removal.held_offsets import Held, HeldOffsets

_REASONS: Final = tuple(rules.DELETE_ANSWERS)
_NUMBERS: Final = {reason: number for number, reason in enumerate(_REASONS)}
_BY_SUBSCRIPTION: Final = (rules.NOT_SUBSCRIBED, rules.NO_MEMBERS)
"""The reasons that SUBSCRIBED replaces for topics to which the group subscribes."""
_NO_COMMIT: Final = ("topic_id", "offset", "leader_epoch", "metadata", "commit_timestamp", "commit_timestamp_ms")


def deletable_rows(schema: pa.Schema, found: Held, partition: int) -> Iterator[pa.RecordBatch]:
    """The rows for a coordinator's offsets and groups (with `told`). `partition` is the log partition."""
    if found.offsets is not None:
        count = len(found.offsets.group)
        yield record_batch(schema, _of_offsets(found.offsets, found.groups), count)
    waiting = sorted(found.pending - _committed(found))
    if waiting:
        yield record_batch(schema, _of_waiting(waiting, found.groups) | {"log_partition": partition}, len(waiting))
    if found.groups:
        yield record_batch(schema, _of_groups(found) | {"log_partition": partition}, len(found.groups))


def _told(numbers: INT64) -> dict[str, Any]:
    """The columns about whether and why an offset is deletable, from the numbers of reasons."""
    codes = pa.array(numbers)
    answers = [rules.DELETE_ANSWERS[reason] for reason in _REASONS]
    return {
        "is_deletable": pa.array([answer.is_deletable for answer in answers], pa.bool_()).take(codes),
        "reason": pa.array(_REASONS, pa.string()).take(codes),
        "error": pa.array([answer.error for answer in answers], pa.string()).take(codes),
    }


def _of_offsets(offsets: HeldOffsets, groups: Mapping[str, HeldGroup]) -> dict[str, Any]:
    names = offsets.group.dictionary.to_pylist()
    of_groups = np.array([_NUMBERS[rules.offset_reason(name, groups.get(name))] for name in names], np.int64)
    numbers: INT64 = of_groups[offsets.group.indices.to_numpy()]
    by_subscription = np.isin(numbers, [_NUMBERS[reason] for reason in _BY_SUBSCRIPTION])
    numbers[by_subscription & offsets.is_in([_topics(groups.get(name)) for name in names])] = _NUMBERS[rules.SUBSCRIBED]
    is_open = np.isin(
        numbers, [number for number, reason in enumerate(_REASONS) if rules.DELETE_ANSWERS[reason].is_deletable]
    )
    numbers[is_open & ~offsets.is_known] = _NUMBERS[rules.UNREADABLE]
    return {
        **offsets.told,
        "kind": "offset",
        "group_kind": offsets.kinds(groups),
        "is_pending": pa.array(offsets.is_pending),
        "offset_count": None,
        **_told(numbers),
    }


def _of_waiting(waiting: list[CommitKey], groups: Mapping[str, HeldGroup]) -> dict[str, Any]:
    """Rows of partitions that only open transactions commit. A broker deletes these pending commits too."""
    held = [groups.get(group) for group, _, _ in waiting]
    reasons = [
        _of_topic(rules.offset_reason(name, group), topic, group)
        for (name, topic, _), group in zip(waiting, held, strict=True)
    ]
    return {
        **dict.fromkeys((*_NO_COMMIT, "offset_count", "log_offset")),
        "kind": "offset",
        "group_id": pa.array([group for group, _, _ in waiting], pa.string()),
        "group_kind": pa.array([None if group is None else group.kind for group in held], pa.string()),
        "topic": pa.array([topic for _, topic, _ in waiting], pa.string()),
        "partition": pa.array([number for _, _, number in waiting], pa.int32()),
        "is_pending": True,
        **_told(np.array([_NUMBERS[reason] for reason in reasons], np.int64)),
    }


def _of_topic(reason: str, topic: str, group: HeldGroup | None) -> str:
    return rules.SUBSCRIBED if reason in _BY_SUBSCRIPTION and topic in _topics(group) else reason


def _topics(group: HeldGroup | None) -> frozenset[str]:
    return (group and group.topics) or frozenset()


def _of_groups(found: Held) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    newest: dict[str, int] = {}
    if found.offsets is not None:
        offsets = found.offsets
        names, codes = offsets.group.dictionary.to_pylist(), offsets.group.indices.to_numpy()
        counts.update(dict(zip(names, np.bincount(codes, minlength=len(names)).tolist(), strict=True)))
        is_told = offsets.commit_timestamp_ms.is_valid().to_numpy(zero_copy_only=False)
        last = np.full(len(names), np.iinfo(np.int64).min, np.int64)
        np.maximum.at(last, codes[is_told], offsets.commit_timestamp_ms.drop_null().to_numpy())
        newest = {name: time for name, time in zip(names, last.tolist(), strict=True) if time != np.iinfo(np.int64).min}
    waiting = {group for group, _, _ in found.pending}
    committed = pa.array([newest.get(name) for name in found.groups], pa.int64())
    reasons = [_NUMBERS[rules.group_reason(group)] for group in found.groups.values()]
    return {
        **dict.fromkeys((*_NO_COMMIT, "topic", "partition")),
        "kind": "group",
        "group_id": pa.array(list(found.groups), pa.string()),
        "group_kind": pa.array([group.kind for group in found.groups.values()], pa.string()),
        "is_pending": pa.array([name in waiting for name in found.groups], pa.bool_()),
        "offset_count": pa.array([counts[name] for name in found.groups], pa.int64()),
        "commit_timestamp": instants(committed),
        "commit_timestamp_ms": committed,
        "log_offset": pa.array([group.made_at for group in found.groups.values()], pa.int64()),
        **_told(np.array(reasons, np.int64)),
    }


def _committed(found: Held) -> set[CommitKey]:
    """The offsets that exist and that open transactions also commit."""
    offsets = found.offsets
    if offsets is None or not found.pending:
        return set()
    there = pa.array(offsets.is_pending)
    names = (
        offsets.group.filter(there).dictionary_decode(),
        offsets.topic.filter(there),
        offsets.partition.filter(there),
    )
    return set(zip(*(each.to_pylist() for each in names), strict=True))
