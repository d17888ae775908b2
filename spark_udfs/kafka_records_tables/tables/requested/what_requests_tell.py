"""Defines which tables requests can fill, which of their columns are then null, and why other tables cannot be
filled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafka_records_tables.tables.declaration import Table

_PLACE: Final = ("log_partition", "log_offset")
_WRITTEN: Final = ("log_timestamp", "log_timestamp_ms", *_PLACE)
_COMMITTED: Final = ("commit_timestamp", "commit_timestamp_ms")

UNKNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "groups": _PLACE,
    "members": (
        "previous_member_epoch",
        "state",
        "epoch_timestamp",
        "epoch_timestamp_ms",
        "regex_topics",
        "server_assignor",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        *_WRITTEN,
    ),
    "assignments": _WRITTEN,
    "current_offsets": ("topic_id", *_COMMITTED, *_PLACE),
    "share_partitions": (
        "state_epoch",
        "delivery_complete_count",
        "available_count",
        "acknowledged_count",
        "archived_count",
        "other_count",
        "batches",
        "snapshot_epoch",
        "update_count",
        "create_timestamp",
        "create_timestamp_ms",
        "write_timestamp",
        "write_timestamp_ms",
        "is_partial",
        *_PLACE,
        "snapshot_log_offset",
    ),
    "share_lag": ("done", "write_timestamp", "write_timestamp_ms", "log_partition"),
    "open_transactions": ("holds_back",),
    "lag": ("topic_id", *_COMMITTED, "log_partition"),
    "group_lag": (*_COMMITTED, "log_partition"),
    "progress": (
        "since_timestamp",
        "since_timestamp_ms",
        "unread_timestamp",
        "unread_timestamp_ms",
        "wait_ms",
        "longest_wait_ms",
        "changed_timestamp",
        "changed_timestamp_ms",
        *_COMMITTED,
        "log_partition",
    ),
    "log_ends": (),
    **dict.fromkeys(("topics", "partitions", "configs", "brokers", "features"), ()),
}
"""For each table that requests can fill, the columns that are then null in every row."""

INPUTS: Final = ("assigned_partitions", "commit_progress", "transactions")
"""Tables that serve only as inputs to views. Of these, `transactions` has only transactions that have not ended."""

_LAST_ONLY: Final = "coordinators return the last committed offset of a partition, not earlier ones"
_NO_HISTORY: Final = "coordinators return the current state, not its history"
_NO_COMMIT_TIME: Final = "coordinators do not return the time of a commit, on which expiry depends"
_NO_RECORDS: Final = "it is built from records, but requests return none"

_WHY_NOT: Final[Mapping[str, str]] = {
    "offset_commits": _LAST_ONLY,
    "pending_offsets": "coordinators report that a partition has a pending offset, but not its value or its producer",
    "regressions": _LAST_ONLY,
    "expirations": _NO_COMMIT_TIME,
    "deletable_offsets": _NO_COMMIT_TIME,
    "timeline": _NO_HISTORY,
    "history": _LAST_ONLY,
    "disappearances": _NO_HISTORY,
    "activity": "coordinators return the current state, not its records",
    "share_group_topics": "coordinators do not say which share state is being created or deleted",
    "share_disappearances": _NO_HISTORY,
    "transactions": "only open transactions are requested: use open_transactions",
    "log_files": "no request returns files, or records to load",
    "checks": "it checks records, but requests return none",
}


def why_not(table: Table) -> str | None:
    """A sentence that says why requests cannot fill a table; None if they can."""
    return None if table.name in UNKNOWN else _WHY_NOT.get(table.name, _NO_RECORDS)
