"""What a broker's files show about a load of a coordinator: how large the log is, and how long its groups were
silent."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.group_facts import MOST_GROUPS, commit_spans
from kafka_records_tables.report.report_parts import Evidence
from kafka_records_tables.report.rule_context import counted, length, moment
from kafka_records_tables.tables.log_files import cleanable
from kafka_records_tables.tables.log_sizes import TABLE as LOG_SIZES
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from kafka_records_tables.report.rule_context import RuleContext

_LEAST: Final = 3
"""The minimum number of commits in other logs to show that only this log was silent."""


@dataclass(frozen=True, slots=True)
class LogSize:
    """How large a log is, and how much of it no cleaner has processed."""

    evidence: Evidence
    is_dirty: bool
    """Whether more than half of it could be cleaned, but no cleaner has processed it."""


def log_size(context: RuleContext, topic: str, partition: int) -> LogSize | None:
    """The size of a log; None if the source does not show its files."""
    rows = context.look(LOG_SIZES, topic=topic).to_pylist()
    row = next((each for each in rows if each["partition"] == partition and each["sizes"]), None)
    if row is None:
        return None
    shows = f"{topic}-{partition} has {row['bytes']} bytes in {counted(len(row['sizes']), 'file')}"
    dirty = cleanable(row, None) if len(row["sizes"]) > 1 else None
    if dirty is None or not dirty.dirty_bytes:
        return LogSize(Evidence(shows, topic, partition), False)
    first = next((each["timestamp_ms"] for each in dirty.files if each["timestamp_ms"] is not None), None)
    share = round(100 * dirty.dirty_bytes / row["bytes"])
    shows += f"; no cleaner has touched {share} % of it" + ("" if first is None else f", the oldest of {moment(first)}")
    return LogSize(Evidence(shows, topic, partition, dirty.start), 2 * dirty.dirty_bytes > row["bytes"])


@dataclass(frozen=True, slots=True)
class LoadSilence:
    """A time without commits in a log."""

    from_ms: int
    to_ms: int
    others: int
    """Commits in other logs during that time."""

    def words(self, log: str) -> str:
        """A sentence about the silence."""
        along = "" if self.others < _LEAST else f", while groups of other logs committed {counted(self.others, 'time')}"
        lasted = length(self.to_ms - self.from_ms)
        return f" The groups of {log} committed nothing for {lasted}, until {moment(self.to_ms)}{along}."


def load_silence(context: RuleContext, topic: str, partition: int, load_ms: int) -> LoadSilence | None:
    """The last period without commits in a log of `__consumer_offsets` that is as long as loading it took, if groups of
    other logs committed during it, or if there is only one such period; None if there is none."""
    if topic != OFFSETS:
        return None
    rows = context.table("current_offsets")
    is_own = equal(rows, "log_partition", partition)
    groups = [kept(rows, each)["group_id"].unique().to_pylist() for each in (is_own, pc.invert(is_own))]
    mine, others = (tuple(each[:MOST_GROUPS]) for each in groups)
    commits = context.look("offset_commits", mine)
    own = set(kept(commits, equal(commits, "log_partition", partition))["log_timestamp_ms"].drop_null().to_pylist())
    spans = commit_spans(context, others).values()
    times = {each.from_ms for of_place in spans for each in of_place if each.from_ms is not None}
    found = [(first, then) for first, then in pairwise(sorted(own)) if then - first >= load_ms]
    for first, then in reversed(found):
        # After a restart, the groups of other logs commit as soon as those logs are loaded.
        count = sum(then - load_ms <= each < then for each in times)
        if count >= _LEAST or len(found) == 1:
            return LoadSilence(first, then, count)
    return None
