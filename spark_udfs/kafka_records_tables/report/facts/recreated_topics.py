"""Finds out why a topic was deleted and recreated, from the records of both events in the metadata log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.group_facts import MOST_GROUPS, Span, commit_spans, log_ends
from kafka_records_tables.report.facts.topic_changes import changes_of
from kafka_records_tables.report.report_parts import Evidence
from kafka_records_tables.report.rule import Hypothesis, Question, Verdict
from kafka_records_tables.report.rule_context import RuleContext, length, listed, shown
from kafka_records_tables.topics import METADATA

_AT_ONCE_MS: Final = 2_000
"""While a topic is missing, clients that use it ask for it at least once a second (`retry.backoff.max.ms`). So a broker
that creates topics for clients does so within this time."""
_NEAR_MS: Final = 60_000
"""Coordinators delete the offsets of a topic within this time after its deletion."""
_LAST_COMMIT_MS: Final = 60_000
"""A consumer of the old topic commits its position there within this time after the new topic was created, if at all:
it fetches no more records of the old topic, and commits every auto.commit.interval.ms (5 s by default)."""


@dataclass(frozen=True, slots=True)
class Recreation:
    """The last deletion of a topic and the creation after it."""

    before: dict[str, Any]
    """The row of `topic_changes` for the creation of the old topic."""
    deleted: dict[str, Any]
    created: dict[str, Any]

    @property
    def since_ms(self) -> int | None:
        """The time at which the old topic was deleted."""
        at_ms: int | None = self.deleted["at_timestamp_ms"]
        return at_ms

    def evidence(self, shows: str, row: dict[str, Any]) -> Evidence:
        """Evidence from a record of the metadata log."""
        return Evidence(shows, METADATA, 0, row["log_offset"], row["at_timestamp_ms"])


def recreation_of(context: RuleContext, topic: str) -> Recreation | None:
    """The last recreation of a topic; None if no metadata log shows it."""

    created, deleted = None, None
    found = None
    for row in changes_of(context, topic):
        if row["event"] == "deleted":
            deleted = row
        elif row["event"] == "created":
            if created is not None and deleted is not None:
                found = Recreation(created, deleted, row)
            created, deleted = row, None
    return found


def continued_groups(context: RuleContext) -> list[dict[str, Any]]:
    """The partitions for which groups lost their offsets with a deleted topic and have since committed offsets for the
    new one, in the columns of `regressions`. These are not falls, because a coordinator deletes offsets with their
    topic."""

    gone = kept(context.table("timeline"), equal(context.table("timeline"), "event", "offsets_deleted"))
    lost: dict[str, list[int]] = {}
    for group, at_ms in zip(gone["group_id"].to_pylist(), gone["at_timestamp_ms"].to_pylist(), strict=True):
        if at_ms is not None:
            lost.setdefault(group, []).append(at_ms)
    offsets = kept(context.table("current_offsets"), equal(context.table("current_offsets"), "group_id", *lost))
    newest = offsets.group_by("group_id", use_threads=False).aggregate([("commit_timestamp_ms", "max")]).to_pylist()
    back = [
        each["group_id"] for each in newest if (each["commit_timestamp_ms_max"] or 0) >= min(lost[each["group_id"]])
    ]
    rows = []
    for (group, topic, partition), spans in commit_spans(context, tuple(back[:MOST_GROUPS])).items():
        for before, after in pairwise(spans):
            if is_recreated(context, topic, before, after, lost[group]):
                row = {"group_id": group, "topic": topic, "partition": partition, "from_offset": before.offset}
                row |= {"to_offset": after.offset, "commit_timestamp_ms": after.from_ms, "confidence": "high"}
                rows.append(row | {"log_partition": after.log_partition, "log_offset": after.log_offset})
    return rows


def deletion_ms(context: RuleContext, topic: str, back_ms: Mapping[str, int | None]) -> int | None:
    """When a topic was last deleted before it was recreated, according to the metadata log. Without this log, it is
    when groups with members lost their offsets, if they later committed for another topic of that name (`back_ms`, by
    group). None if that is unknown too."""

    found = recreation_of(context, topic)
    if found is not None:
        return found.since_ms
    times = []
    for each in _losses_of(context, topic):
        back = back_ms.get(each["group_id"])
        if back is not None and each["at_timestamp_ms"] <= back:
            times.append(each["at_timestamp_ms"])
    return max(times, default=None)


def groups_at_deletion(context: RuleContext, topic: str, deleted_ms: int | None) -> list[dict[str, Any]]:
    """The rows of `timeline` in which groups with members lost their offsets because a topic was deleted at that
    time."""

    if deleted_ms is None:
        return []
    return [each for each in _losses_of(context, topic) if abs(each["at_timestamp_ms"] - deleted_ms) <= _NEAR_MS]


def _losses_of(context: RuleContext, topic: str) -> list[dict[str, Any]]:
    rows = context.once(_lost_by_members)
    of_topic = pc.match_substring(rows["detail"], f'"topic": {json.dumps(topic)}')
    found: list[dict[str, Any]] = kept(rows, of_topic, pc.is_valid(rows["at_timestamp_ms"])).to_pylist()
    return found


def topics_of_lost_offsets(context: RuleContext) -> list[str]:
    """The topics with which groups with members lost their offsets."""

    details = context.once(_lost_by_members)["detail"].unique().to_pylist()
    return sorted({json.loads(each)["topic"] for each in details if each is not None})


def _lost_by_members(context: RuleContext) -> pa.Table:
    rows = context.table("timeline")
    return kept(rows, equal(rows, "event", "offsets_deleted"), pc.greater(rows["member_count"], 0))


def is_recreated(context: RuleContext, topic: str, before: Span, after: Span, lost: list[int]) -> bool:
    """Whether a topic was recreated between two commits, with lost offsets between them: the topic ids of the commits
    differ, or the metadata log shows its deletion and creation."""
    from_ms, to_ms = before.from_ms, after.from_ms
    if from_ms is None or to_ms is None or not any(from_ms <= at_ms <= to_ms for at_ms in lost):
        return False
    if before.topic_id is not None and after.topic_id is not None:
        return before.topic_id != after.topic_id
    found = recreation_of(context, topic)
    if found is None or found.since_ms is None or found.created["at_timestamp_ms"] is None:
        return False
    return from_ms <= found.since_ms and bool(found.created["at_timestamp_ms"] <= to_ms)


def was_never_deleted(context: RuleContext, topic: str, since_ms: int | None) -> bool:
    """Whether the metadata log shows that a topic has existed since a given time, because its last creation is
    earlier."""

    last = next(
        (each for each in reversed(changes_of(context, topic)) if each["event"] in ("created", "deleted")), None
    )
    if last is None or last["event"] != "created" or last["at_timestamp_ms"] is None or since_ms is None:
        return False
    return bool(last["at_timestamp_ms"] <= since_ms)


def is_old_position(context: RuleContext, fall: dict[str, Any]) -> bool:
    """Whether an offset moved backwards from a position in an older topic of the same name. A consumer that keeps
    running after a topic was recreated may commit that position once more, and brokers store it with the id of the new
    topic.
    """

    found = recreation_of(context, fall["topic"])
    created = None if found is None else found.created["at_timestamp_ms"]
    before = fall["from_commit_timestamp_ms"]
    if created is None or before is None or not created <= before <= created + _LAST_COMMIT_MS:
        return False
    end = log_ends(context).end_at((fall["topic"], fall["partition"]), before)
    return end is None or bool(fall["from_offset"] > end)


def _weigh_by_client(context: RuleContext, case: dict[str, Any]) -> Verdict:

    topic = case["topic"]
    statement = (
        f"A client that still used {shown(topic)} asked for it after it was deleted, and a broker created it with its "
        "defaults (auto.create.topics.enable)."
    )
    found = recreation_of(context, topic)
    if found is None:
        return Verdict(statement, lacked=(_LACKED,))
    created, configs = found.created, found.created["configs"]
    if configs:
        refuted = f"{', '.join(configs)} of {topic} were set when it was created: a broker sets none by itself"
        return Verdict(statement, refuted_by=found.evidence(refuted, created))
    speaks = []
    if found.before["configs"]:
        shows = f"{topic} was created without its earlier configs ({', '.join(found.before['configs'])})"
        speaks.append(found.evidence(shows, created))
    gap = _gap_ms(found)
    if gap is not None and gap <= _AT_ONCE_MS:
        speaks.append(found.evidence(f"{topic} was created {length(gap)} after it was deleted", created))
    steps = (_without_auto_creation(context, topic, found.deleted["partition_count"]),)
    return Verdict(statement, tuple(speaks), _asked_in_vain(context, topic, found), steps=steps)


def _weigh_on_purpose(context: RuleContext, case: dict[str, Any]) -> Verdict:

    topic = case["topic"]
    statement = f"A person or a program deleted {shown(topic)} and created it again, for example to empty it."
    found = recreation_of(context, topic)
    if found is None:
        return Verdict(statement, lacked=(_LACKED,))
    created, configs = found.created, found.created["configs"]
    if configs:
        shows = f"{', '.join(configs)} of {topic} were set when it was created"
        return Verdict(statement, (found.evidence(shows, created),), is_certain=True)
    # A broker that creates a topic automatically uses num.partitions, which no record shows, so the number of
    # partitions proves nothing.
    return Verdict(statement, _asked_in_vain(context, topic, found))


def _asked_in_vain(context: RuleContext, topic: str, found: Recreation) -> tuple[Evidence, ...]:
    """Evidence that a topic was missing for a long time although groups that read it had members."""
    gap = _gap_ms(found)
    if gap is None or gap <= _AT_ONCE_MS:
        return ()
    made = found.created["at_timestamp_ms"]
    groups = sorted({each["group_id"] for each in groups_at_deletion(context, topic, found.since_ms)})
    emptied = kept(context.table("timeline"), equal(context.table("timeline"), "event", "emptied")).to_pylist()
    ended = {each["group_id"] for each in emptied if (found.since_ms or 0) <= (each["at_timestamp_ms"] or made) <= made}
    there = [each for each in groups if each not in ended]
    if not there:
        return ()
    shows = f"{topic} was missing for {length(gap)}, although members of {listed(there)} used it"
    return (found.evidence(shows, found.created),)


def _gap_ms(found: Recreation) -> int | None:
    deleted, created = found.deleted["at_timestamp_ms"], found.created["at_timestamp_ms"]
    return None if deleted is None or created is None else max(created - deleted, 0)


def _without_auto_creation(context: RuleContext, topic: str, partitions: int | None) -> Any:

    of_before = "" if partitions is None else f", with {partitions} partitions as before"
    return context.ask_kafka(
        f"Look up auto.create.topics.enable. If it is true, stop the clients of {shown(topic)} before it is deleted, "
        f"or set it to false; then create the topic by a command{of_before}",
        "kafka-configs",
        *("--describe", "--entity-type", "brokers", "--all"),
    )


_LACKED: Final = "the metadata log (__cluster_metadata) from before the topic was deleted"

CAUSES: Final = (
    Hypothesis(
        "created_for_a_client",
        "a broker created it again for a client that still used it",
        "for: created within two seconds, or without its earlier configs; refuted by configs that were set at the "
        "creation",
        _weigh_by_client,
    ),
    Hypothesis(
        "recreated_on_purpose",
        "somebody deleted the topic and created it again",
        "for and against: the reverse",
        _weigh_on_purpose,
    ),
)
QUESTIONS: Final = (
    Question(
        "recreated_on_purpose",
        "created_for_a_client",
        "Did an administrator or a deployment create the topic? The authorizer logs of brokers and controllers have "
        "the CreateTopics request, if they are switched on",
        asked="last",
    ),
)
