"""Compares tables with the answers of a coordinator that has loaded the same records: one function for each table.

A function takes a `Loaded` and yields the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from tools.judge.answers import Difference, Loaded
from tools.judge.compared_activity import activity
from tools.judge.compared_assignments import assignments
from tools.judge.compared_checks import checks
from tools.judge.compared_deletable import deletable_offsets
from tools.judge.compared_disappearances import disappearances, share_disappearances
from tools.judge.compared_expirations import expirations
from tools.judge.compared_groups import groups
from tools.judge.compared_members import members
from tools.judge.compared_offsets import current_offsets, history, offset_commits, pending_offsets
from tools.judge.compared_regressions import regressions
from tools.judge.compared_share import share_partitions
from tools.judge.compared_timeline import timeline

Comparison = Callable[[Loaded], Iterator[Difference]]

COMPARISONS: Final[Mapping[str, Mapping[str, Comparison]]] = {
    "__consumer_offsets": {
        "current_offsets": current_offsets,
        "pending_offsets": pending_offsets,
        "regressions": regressions,
        "offset_commits": offset_commits,
        "groups": groups,
        "members": members,
        "expirations": expirations,
        "deletable_offsets": deletable_offsets,
        "disappearances": disappearances,
        "assignments": assignments,
        "timeline": timeline,
        "history": history,
        "activity": activity,
        "checks": checks,
    },
    "__share_group_state": {
        "share_partitions": share_partitions,
        "share_disappearances": share_disappearances,
        "checks": checks,
    },
}
"""The comparisons by topic and table. For a new table, add a function and an entry."""

HAPPENED: Final[Mapping[str, Mapping[str, Comparison]]] = {
    "__consumer_offsets": {"disappearances": disappearances},
    "__share_group_state": {"share_disappearances": share_disappearances},
}
"""The comparisons that are also made over only the end of a log, which lacks the current state."""


def differences(loaded: Loaded, left_out: Collection[str] = ()) -> Iterator[Difference]:
    """The differences between all tables over a log and a coordinator, without the tables in `left_out`."""
    for table, comparison in COMPARISONS[loaded.history.topic].items():
        if table not in left_out:
            yield from comparison(loaded)
