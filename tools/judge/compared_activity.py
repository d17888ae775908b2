"""Compares the table `activity` with the calls that wrote the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from kafka_records.consumer_offsets import decode_record
from tools.judge.answers import Difference, Loaded, differing

_NAME = "activity"
_WINDOW_MS: Final = 6 * 3_600_000

_KINDS: Final = {
    "expired": ("expirations",),
    "offset_deleted": ("deletions", "offset_deletions"),
    "group_deleted": ("deletions",),
    "topic_deleted": ("deletions",),
}
_SURE: Final = ("expirations", "deletions", "offset_deletions")
_DELETED: Final = ("expirations", "deletions", "likely_expirations", "likely_deletions", "unclear_deletions")
_SUMS: Final = ("commits", "records", "key_bytes", "value_bytes")


def activity(loaded: Loaded) -> Iterator[Difference]:
    """Compare the sums of records, bytes and tombstones by group, topic and window. No count that is certain may exceed
    the true one."""
    history = loaded.history
    expected: dict[Any, Counter[str]] = {}
    true: dict[Any, Counter[str]] = {}
    merged, smaller = set(), set()
    for record in history.records:
        if record["offset"] > loaded.cut or "control" in record:
            continue
        window = record["timestamp_ms"] - record["timestamp_ms"] % _WINDOW_MS
        key, value = bytes.fromhex(record["key"]), bytes.fromhex(record["value"] or "")
        is_of_offset, is_tombstone = key[:2] in (b"\0\0", b"\0\1"), record["value"] is None
        decoded: Any = decode_record(key, None).key
        group = decoded.group if hasattr(decoded, "group") else decoded.group_id
        place = group, decoded.topic if is_of_offset else None, window
        sums = expected.setdefault(place, Counter())
        sums.update({"records": 1, "key_bytes": len(key), "value_bytes": len(value)})
        sums["commits"] += is_of_offset and not is_tombstone
        if is_of_offset and is_tombstone:
            sums["deleted"] += 1
            if record["offset"] in history.merged:
                merged.add(place)
            if record["offset"] in history.smaller:
                smaller.add(place)
            true.setdefault(place, Counter()).update(_KINDS[history.why[record["offset"]]["why"]])
    got: dict[Any, Counter[str]] = {}
    sure: dict[Any, Counter[str]] = {}
    retention = history.header["offsets_retention_ms"]
    for row in loaded.read(_NAME, window=_WINDOW_MS, retention=retention).to_pylist():
        place = row["group_id"], row["topic"], row["window_start_timestamp_ms"]
        sums = got.setdefault(place, Counter())
        sums.update({name: row[name] for name in _SUMS})
        sums["deleted"] += sum(row[name] for name in _DELETED)
        sure[place] = Counter({name: row[name] for name in _SURE})
    about = f"sums by group, topic and window up to {loaded.cut}"
    yield from differing(_NAME, about, *({w: dict(+c) for w, c in each.items()} for each in (expected, got)))
    for place, counts in sure.items():
        if not counts <= true.get(place, Counter()):
            if place[0] in loaded.unsubscribed:
                continue
            if place in merged:
                loaded.untold("writes of one moment in one batch", None)
                continue
            if place in smaller:
                loaded.untold("a topic that had more partitions", None)
                continue
            yield Difference(_NAME, f"sure deletions in {place}", true.get(place), counts)
