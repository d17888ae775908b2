"""Why a topic was deleted and created again: what the metadata log shows of both."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.group_facts import MOST_GROUPS, Span, commit_spans, log_ends
from kafka_records_tables.report.facts.topic_changes import changes_of
from kafka_records_tables.report.report_parts import Evidence
from kafka_records_tables.report.rule import Hypothesis, Question, Verdict
from kafka_records_tables.report.rule_context import RuleContext, counted, length, shown
from kafka_records_tables.topics import METADATA

_SOON_MS: Final = 60_000
"""A client asks for the metadata of a topic that it still uses within this time, and most ask within a second."""
_LAST_COMMIT_MS: Final = 60_000
"""A consumer of an older topic commits its position there within this time after a new topic was created, if it does at
all: it fetches no more records of the older one, and commits each auto.commit.interval.ms (5 s by default)."""


@dataclass(frozen=True, slots=True)
class Recreation:
    """The last deletion of a topic and its creation after it."""

    before: dict[str, Any]
    """The row of `topic_changes` about the creation of the older topic."""
    deleted: dict[str, Any]
    created: dict[str, Any]

    @property
    def since_ms(self) -> int | None:
        """When the older topic was deleted."""
        at_ms: int | None = self.deleted["at_timestamp_ms"]
        return at_ms

    def evidence(self, shows: str, row: dict[str, Any]) -> Evidence:
        """Evidence in a record of the metadata log."""
        return Evidence(shows, METADATA, 0, row["log_offset"], row["at_timestamp_ms"])


def recreation_of(context: RuleContext, topic: str) -> Recreation | None:
    """How a topic was recreated last; None if no metadata log shows it."""

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
    """The partitions in which groups lost their offsets with a deleted topic and have committed for the new one, in the
    columns of `regressions`: a coordinator deletes offsets with their topic, so there is no fall."""

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


def is_recreated(context: RuleContext, topic: str, before: Span, after: Span, lost: list[int]) -> bool:
    """Whether a topic was recreated between two commits, between which a group lost offsets: the commits have other ids
    of the topic, or the metadata log shows its deletion and creation."""
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
    """Whether the metadata log shows that a topic that existed at a moment exists still: its last creation is
    earlier."""

    last = next((each for each in reversed(changes_of(context, topic)) if each["event"] != "partitions_added"), None)
    if last is None or last["event"] != "created" or last["at_timestamp_ms"] is None or since_ms is None:
        return False
    return bool(last["at_timestamp_ms"] <= since_ms)


def is_old_position(context: RuleContext, fall: dict[str, Any]) -> bool:
    """Whether a fall of an offset is from a position in an older topic of this name. A consumer that goes on after a
    topic was recreated may commit that position once more, and brokers store it with the id of the new topic."""

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
    count, earlier = created["partition_count"], found.deleted["partition_count"]
    if count != earlier:
        shows = f"{topic} was created with {counted(count, 'partition')}, and had {earlier} before"
        speaks.append(found.evidence(shows, created))
    if found.before["configs"]:
        shows = f"{topic} was created without its earlier configs ({', '.join(found.before['configs'])})"
        speaks.append(found.evidence(shows, created))
    gap = _gap_ms(found)
    if gap is not None and gap <= _SOON_MS:
        speaks.append(found.evidence(f"{topic} was created {length(gap)} after it was deleted", created))
    return Verdict(statement, tuple(speaks), steps=(_without_auto_creation(context, topic, earlier),))


def _weigh_on_purpose(context: RuleContext, case: dict[str, Any]) -> Verdict:

    topic = case["topic"]
    statement = f"Somebody, or a program, deleted {shown(topic)} and created it again, to empty it for instance."
    found = recreation_of(context, topic)
    if found is None:
        return Verdict(statement, lacked=(_LACKED,))
    created, configs = found.created, found.created["configs"]
    if configs:
        shows = f"{', '.join(configs)} of {topic} were set when it was created"
        return Verdict(statement, (found.evidence(shows, created),), is_certain=True)
    count, earlier = created["partition_count"], found.deleted["partition_count"]
    if count == earlier:
        # A broker creates as many by itself if they are num.partitions, which records do not show.
        return Verdict(statement)
    contradicts = found.evidence(f"{topic} was created with {count} partitions, and had {earlier} before", created)
    return Verdict(statement, evidence_against=(contradicts,))


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
        "a client still used the deleted topic, and a broker created it again",
        "for: created soon after the deletion, with another number of partitions or without its earlier configs; "
        "refuted by configs that were set at the creation",
        _weigh_by_client,
    ),
    Hypothesis(
        "recreated_on_purpose",
        "somebody deleted the topic and created it again",
        "for: configs that were set at the creation; against: another number of partitions than before",
        _weigh_on_purpose,
    ),
)
QUESTIONS: Final = (
    Question(
        "recreated_on_purpose",
        "created_for_a_client",
        "Did an administrator or a deployment create the topic? The authorizer logs of brokers and controllers have "
        "the CreateTopics request, if they are switched on",
    ),
)
