"""Determines why logs no longer begin at their first record, based on their files, the topic's settings and creation
time, and the timestamps of the remaining records.

`UnifiedLog` moves the start of a log for three reasons (`LogStartOffsetIncrementReason`): retention deleted files, a
client asked for it (DeleteRecords), or the leader's log starts there. Snapshots are a fourth reason, for the metadata
log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.report.facts.cluster_settings import cluster_settings
from kafka_records_tables.report.facts.known_logs import replication_factor
from kafka_records_tables.report.facts.topic_changes import changes_of
from kafka_records_tables.report.report_parts import Evidence
from kafka_records_tables.report.rule_context import DAY_MS, RuleContext, length, moment
from kafka_records_tables.tables.log_sizes import TABLE as LOG_SIZES

if TYPE_CHECKING:
    from kafka_records_tables.report.facts.group_facts import LogEnds

FIRST_KAFKA_MS: Final = 1_293_840_000_000
"""1 January 2011, the year of Kafka's first release: no record is older."""


@dataclass(frozen=True, slots=True)
class LogDeletions:
    """Facts about deletions in some logs of a topic."""

    topic: str
    retention_ms: int | None
    """How long the topic keeps records; None if that is unknown or unlimited."""
    is_for_ever: bool
    """Whether no record is deleted because of its age."""
    size: int | None
    """The size limit of each partition in bytes (retention.bytes); None if no limit is known."""
    is_size_set: bool
    """Whether retention.bytes is known (it may be unlimited)."""
    below_size: Evidence | None
    """The fact that rules out deletion by size, if records are not deleted by age: the logs have fewer bytes than the
    limit, and deletion by size leaves at least that many (`UnifiedLog.deleteRetentionSizeBreachedSegments`)."""
    at_size: Evidence | None
    """The fact that shows that deletion by size moves the start of the logs: each has as many bytes as such a deletion
    leaves. Logs that lose records by age before that stay smaller."""
    inside_files: tuple[Evidence, ...]
    """The logs, if all of them begin in the middle of a file; otherwise empty."""
    has_one_replica: bool | None
    """Whether each partition of the topic has a single replica; None if unknown."""
    knows_files: bool
    """Whether the source shows which files the logs have."""
    never_by_age: Evidence | None
    """The fact that rules out deletion by age: the topic keeps records for ever, or is younger than its retention, or
    its records were already too old when they were written."""
    early_times: tuple[Evidence, ...]
    """Remaining records with timestamps long before they were written."""

    @property
    def is_size_unlimited(self) -> bool:
        """Whether no record is deleted because of the log's size."""
        return self.is_size_set and self.size is None

    @property
    def is_by_request(self) -> bool:
        """Whether only DeleteRecords can have moved the start of the logs. Retention deletes whole files, so a log then
        begins where the next file does. A follower's log begins where its leader's log does, but the leader's files may
        begin elsewhere."""
        return bool(self.inside_files) and self.has_one_replica is True


def log_deletions(context: RuleContext, topic: str, partitions: Sequence[int], ends: LogEnds) -> LogDeletions:
    """Collect the facts about deletions in some logs of a topic."""
    settings = cluster_settings(context)
    value = settings.topic_setting(topic, "retention.bytes")
    size = settings.topic_number(topic, "retention.bytes")
    retention = settings.retention_ms(topic)
    is_for_ever = settings.topic_setting(topic, "retention.ms") == "-1"
    made = next((each for each in reversed(changes_of(context, topic)) if each["event"] == "created"), None)
    # If the setting was changed, its present value says nothing about earlier deletions.
    is_changed = made is not None and "retention.ms" in (made["changed"] or ())
    created = None if made is None else made["at_timestamp_ms"]
    never = Evidence("retention.ms is -1: no record is deleted by its age") if is_for_ever and not is_changed else None
    own = settings.configs.get(("topic", topic), {}).get("retention.ms")
    if own is not None and retention and created is not None and not is_changed and context.at_ms - created < retention:
        never = Evidence(
            f"{topic} was created at {moment(created)}, {length(context.at_ms - created)} before the report, and its "
            f"retention.ms is {length(retention)}: no record was that old"
        )
    early = _early_times(topic, partitions, ends, created, retention, context.at_ms)
    if never is None and early:
        never = early[0]
    rows = context.look(LOG_SIZES, topic=topic).to_pylist()
    by_partition = {row["partition"]: row for row in rows}
    replicas = replication_factor(context, topic)
    return LogDeletions(
        topic,
        retention,
        is_for_ever,
        size,
        value is not None,
        _below_size(topic, partitions, by_partition, size) if never is not None and size is not None else None,
        _at_size(topic, partitions, by_partition, size) if size is not None else None,
        _inside_files(topic, partitions, by_partition),
        None if replicas is None else replicas == 1,
        any(row["sizes"] for row in rows),
        never,
        early,
    )


def _below_size(topic: str, partitions: Sequence[int], rows: dict[int, dict[str, Any]], size: int) -> Evidence | None:
    there = [rows.get(each, {}).get("bytes") for each in partitions]
    largest = max((each for each in there if each is not None), default=size)
    if None in there or largest >= size:
        return None
    return Evidence(f"retention.bytes is {size}, and no log of {topic} that lost records has more than {largest} bytes")


def _at_size(topic: str, partitions: Sequence[int], rows: dict[int, dict[str, Any]], size: int) -> Evidence | None:
    there = []
    for each in partitions:
        row = rows.get(each, {})
        files = row.get("sizes") or ()
        # A deletion removes the oldest file as long as the rest has at least `size` bytes.
        if not files or row["bytes"] < size or row["bytes"] - files[0]["bytes"] >= 2 * size:
            return None
        there.append(row["bytes"])
    if not there:
        return None
    return Evidence(
        f"retention.bytes is {size}, and the logs of {topic} that lost records have {_range(there)} bytes: a deletion "
        "by size leaves them just above the limit, an earlier one by age would leave fewer"
    )


def _range(numbers: list[int]) -> str:
    least, most = min(numbers), max(numbers)
    return str(least) if least == most else f"{least} to {most}"


def _inside_files(topic: str, partitions: Sequence[int], rows: dict[int, dict[str, Any]]) -> tuple[Evidence, ...]:
    shows = []
    for partition in partitions:
        row = rows.get(partition, {})
        start, files = row.get("log_start_offset"), [each["offset"] for each in row.get("sizes") or ()]
        if start is None or not files or start in files or start < files[0]:
            return ()
        first = max(each for each in files if each < start)
        shows.append(Evidence(f"{topic}-{partition} begins at {start}, in the middle of the file {first:020}.log"))
    return tuple(shows)


def _early_times(
    topic: str, partitions: Sequence[int], ends: LogEnds, created: int | None, retention: int | None, at_ms: int
) -> tuple[Evidence, ...]:
    """The latest timestamp in each log, if even that is earlier than possible by more than the retention."""
    bound = FIRST_KAFKA_MS if created is None else created - (retention or DAY_MS)
    shows = []
    for partition in partitions:
        latest = ends.latest((topic, partition))
        if latest is None or latest[1] >= bound or latest[1] < 0:
            continue
        offset, time = latest
        since = "" if created is None else f", and the topic was created at {moment(created)}"
        shows.append(
            Evidence(
                f"the records that are left in {topic}-{partition} have timestamps up to {moment(time)}"
                f"{_unit(time, at_ms)}{since}",
                topic,
                partition,
                offset,
            )
        )
    return tuple(shows)


def _unit(time: int, at_ms: int) -> str:
    """The time that a timestamp would mean if its unit were seconds instead of milliseconds, in words; empty if that is
    long before the report."""
    as_seconds = time * 1000
    return (
        f" (taken as seconds instead of milliseconds, {time} is {moment(as_seconds)})"
        if abs(at_ms - as_seconds) < 400 * DAY_MS
        else ""
    )
