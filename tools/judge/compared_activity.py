"""The table activity, against the calls that wrote the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from tools.judge.answers import Difference, Loaded, differing

_NAME = "activity"
_WINDOW_MS: Final = 6 * 3_600_000

_KINDS: Final = {
    "expired": "expirations",
    "offset_deleted": "deletions",
    "group_deleted": "deletions",
    "topic_deleted": "deletions",
}
_DELETED: Final = ("expirations", "deletions", "likely_expirations", "likely_deletions", "unclear_deletions")
_SUMS: Final = ("commits", "records", "key_bytes", "value_bytes")


def activity(loaded: Loaded) -> Iterator[Difference]:
    """The sums of records, bytes and tombstones by window, and that no sure count is above the true one."""
    history = loaded.history
    expected: dict[Any, Counter[str]] = {}
    true: dict[Any, Counter[str]] = {}
    for record in history.records:
        if record["offset"] > loaded.cut or "control" in record:
            continue
        window = record["timestamp_ms"] - record["timestamp_ms"] % _WINDOW_MS
        key, value = bytes.fromhex(record["key"]), bytes.fromhex(record["value"] or "")
        is_of_offset, is_tombstone = key[:2] in (b"\0\0", b"\0\1"), record["value"] is None
        sums = expected.setdefault(window, Counter())
        sums.update({"records": 1, "key_bytes": len(key), "value_bytes": len(value)})
        sums["commits"] += is_of_offset and not is_tombstone
        if is_of_offset and is_tombstone:
            sums["deleted"] += 1
            true.setdefault(window, Counter())[_KINDS[history.why[record["offset"]]["why"]]] += 1
    got: dict[Any, Counter[str]] = {}
    sure: dict[Any, Counter[str]] = {}
    retention = history.header["offsets_retention_ms"]
    for row in loaded.read(_NAME, window=_WINDOW_MS, retention=retention).to_pylist():
        sums = got.setdefault(row["window_start_timestamp_ms"], Counter())
        sums.update({name: row[name] for name in _SUMS})
        sums["deleted"] += sum(row[name] for name in _DELETED)
        of_window = sure.setdefault(row["window_start_timestamp_ms"], Counter())
        of_window.update({name: row[name] for name in set(_KINDS.values())})
    about = f"sums by window up to {loaded.cut}"
    yield from differing(_NAME, about, *({w: dict(+c) for w, c in each.items()} for each in (expected, got)))
    for window, counts in sure.items():
        if not counts <= true.get(window, Counter()):
            yield Difference(_NAME, f"sure deletions in {window}", true.get(window), counts)
