"""The plan of a deletion: each partition with its committed offset, and whether to delete that offset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kafka_records_engine.sources.fetched_offsets import UNSTABLE, CommittedOffset, FetchedOffsets, TopicPartition
from kafka_records_engine.sources.group_requests import DescribedTopic, ListedGroup
from kafka_records_tables.coordinator.groups.group_model import CLASSIC
from kafka_records_tables.coordinator.groups.subscriptions import are_offsets_kept
from kafka_records_tables.deletion.deletion_list import Expected, Wanted
from kafka_records_tables.deletion.subscribed_topics import NO_TOPICS, SubscribedTopics
from kafka_records_tables.near_names import did_you_mean

CHANGED: Final = "CHANGED"
"""Not a Kafka error: the committed offset differs from the one in the list or in the dry run."""

NO_GROUP: Final = "GROUP_ID_NOT_FOUND"
SUBSCRIBED: Final = "GROUP_SUBSCRIBED_TO_TOPIC"
UNKNOWN_TOPIC: Final = "UNKNOWN_TOPIC_OR_PARTITION"
"""A Kafka error name."""

OTHER_OFFSET: Final = "OTHER_OFFSET"
OTHER_TOPIC: Final = "OTHER_TOPIC"
OTHER_KIND: Final = "OTHER_KIND"
"""A reason not to restore an offset. It is not a Kafka error."""

MEANINGS: Final = {
    CHANGED: "another commit came after the list was written: the offset is left out",
    UNSTABLE: "an open transaction commits an offset here, and deleting would drop that commit: the offset is left out",
    NO_GROUP: "there is no such group, or the right to DESCRIBE it is missing",
    SUBSCRIBED: "the group subscribes to the topic",
    "NON_EMPTY_GROUP": "the group has members",
    UNKNOWN_TOPIC: "there is no such topic or partition, or the right to DESCRIBE it is missing",
    "GROUP_AUTHORIZATION_FAILED": "a right on the group is missing: grant DESCRIBE to see its offsets, DELETE to "
    "delete them, READ to restore them",
    "TOPIC_AUTHORIZATION_FAILED": "a right on the topic is missing: grant READ",
    "UNKNOWN_MEMBER_ID": "the group has members, and accepts commits only from them: stop them, then try again",
    OTHER_OFFSET: "somebody has committed another offset: --overwrite replaces it",
    OTHER_TOPIC: "the topic was recreated since then, so the offset would mean something else",
    OTHER_KIND: "a share group has this name now, and share groups have no committed offsets",
    "SHARE_GROUP": "a share group has no committed offsets, and its state could not be restored: "
    "kafka-share-groups.sh deletes it",
}
"""A short explanation of each error name."""


def error_text(name: str, more: str = "") -> str:
    """The text printed for an error."""
    meaning = MEANINGS.get(name)
    return f"{name}{f': {meaning}' if meaning else ''}{f' ({more})' if more else ''}"


@dataclass
class Item:
    """The plan for one partition. `error` names the reason not to delete the offset, or the error that occurred."""

    topic: str
    partition: int | None
    """None for a topic without committed offsets."""
    committed: CommittedOffset | None = None
    """The present committed offset, which is deleted, or the offset that is committed again."""
    overwrites: CommittedOffset | None = None
    """The present committed offset, if another one replaces it."""
    error: str | None = None
    more: str = ""
    """Details of the error, printed after its meaning."""
    commit_timestamp_ms: int | None = None
    """The time of the commit, if a list has it. Coordinators do not report it."""
    is_done: bool = False
    note: str = ""
    """The status of an item that an earlier run executed."""
    unless: str = ""
    """A possible reason not to execute the item, which only the coordinator can confirm; empty if there is none."""

    @property
    def is_planned(self) -> bool:
        """Whether this item must still be executed."""
        return self.committed is not None and self.error is None and not self.is_done

    @property
    def place(self) -> TopicPartition:
        """Topic and partition."""
        assert self.partition is not None
        return self.topic, self.partition


@dataclass
class GroupPlan:
    """The plan for one group."""

    group: str
    items: list[Item] = field(default_factory=list)
    error: str | None = None
    """The error name if the group cannot be deleted as a whole; otherwise None."""
    more: str = ""
    """Details of the error, printed after its meaning."""
    is_whole: bool = False
    listed: ListedGroup | None = None
    is_done: bool = False
    """Whether the whole group has been deleted."""

    @property
    def planned(self) -> dict[TopicPartition, CommittedOffset]:
        """The items that must still be deleted or committed again."""
        return {item.place: item.committed for item in self.items if item.is_planned and item.committed is not None}

    @property
    def goes(self) -> bool:
        """Whether anything must still be done for this group."""
        return self.error is None and (self.is_whole or bool(self.planned))

    @property
    def has_members(self) -> bool:
        """Whether the group has members now."""
        return self.listed is not None and self.listed.has_members

    @property
    def has_failed(self) -> bool:
        """Whether any requested item is left out."""
        return self.error is not None or any(item.error for item in self.items)


def planned(
    group: str,
    wanted: Wanted,
    fetched: FetchedOffsets,
    listed: Mapping[str, ListedGroup],
    topics: Mapping[str, DescribedTopic],
    subscribed: SubscribedTopics = NO_TOPICS,
) -> GroupPlan:
    """Make the plan for a group from the committed offsets that its coordinator reports. `topics` are the existing
    topics; `subscribed` are those to which the group subscribes."""
    plan = GroupPlan(group, is_whole=wanted.is_whole, listed=listed.get(group))
    plan.items = sorted(_items(wanted, fetched), key=lambda item: (item.topic, item.partition or 0))
    plan.error = fetched.error or _against_group(plan)
    if plan.error == NO_GROUP:
        plan.more = did_you_mean(group, listed).removeprefix("; ")
    if plan.error is None and not plan.is_whole:
        for item in plan.items:
            _look_at_topic(item, topics, subscribed, is_listed=wanted.has_list)
            if item.error == UNKNOWN_TOPIC and item.topic not in topics:
                others = {topic for topic, _ in fetched.offsets if topic in topics}
                item.more = did_you_mean(item.topic, others).removeprefix("; ")
    if plan.error is None and plan.is_whole:
        plan.error = next((item.error for item in plan.items if item.error), None)
    if plan.error is None and plan.is_whole and wanted.is_pending:
        plan.error, plan.more = UNSTABLE, "according to the list: write it again when the transaction has ended"
    return plan


def _look_at_topic(
    item: Item, topics: Mapping[str, DescribedTopic], subscribed: SubscribedTopics, *, is_listed: bool
) -> None:
    """Set the reason not to delete an offset: the topic does not exist, or the group subscribes to it. Topics named by
    the user are checked even if nothing is committed, because the name may be mistyped."""
    described = topics.get(item.topic)
    is_there = described is not None and (item.partition is None or item.partition in described.partitions)
    if not is_there and (item.is_planned or (item.error is None and not is_listed)):
        item.error = UNKNOWN_TOPIC
    elif item.is_planned and subscribed.has(item.topic):
        item.error = SUBSCRIBED
    elif item.is_planned:
        item.unless = subscribed.or_if


def _items(wanted: Wanted, fetched: FetchedOffsets) -> Iterator[Item]:
    """Each partition with its committed offset and the reason not to delete it."""
    expected: dict[TopicPartition, Expected | None] = dict.fromkeys(wanted.places)
    committed = {*fetched.offsets, *fetched.errors}
    found_topics = {topic for topic, _ in committed}
    expected |= {place: None for place in committed if place[0] in wanted.topics or wanted.is_whole}
    expected |= wanted.expected
    for topic in sorted(wanted.topics - found_topics):
        yield Item(topic, None)
    for place, wants in expected.items():
        item = Item(*place, fetched.offsets.get(place), error=fetched.errors.get(place))
        if wants is None and wanted.has_list:
            # This happens only if the group is deleted as a whole and has an offset that the list lacks.
            item.error, item.more = item.error or CHANGED, "it is not in the list"
        elif wants is not None and item.error is None and not wants.is_met_by(item.committed):
            item.error, item.more = CHANGED, _difference(wants, item.committed)
        elif wants is not None:
            item.commit_timestamp_ms = wants.commit_timestamp_ms
        yield item


def _difference(wants: Expected, committed: CommittedOffset | None) -> str:
    now = "nothing" if committed is None else f"offset {committed.offset}"
    before = "nothing" if wants.offset is None else f"offset {wants.offset}"
    return f"{before} in the list, {now} now" if now != before else f"{now}, with another leader epoch or metadata"


def _against_group(plan: GroupPlan) -> str | None:
    if plan.listed is None:
        return NO_GROUP
    if plan.listed.kind == "share":
        return "SHARE_GROUP"
    # Brokers before 3.8 do not report the kind.
    kind = plan.listed.kind or CLASSIC
    if plan.has_members and (plan.is_whole or are_offsets_kept(kind, plan.listed.protocol_type)):
        return "NON_EMPTY_GROUP"
    return None


def leave_out_changed(plan: GroupPlan, fetched: FetchedOffsets) -> None:
    """Compare a plan with the committed offsets right before it is executed, and leave out items that have changed."""
    if fetched.error is not None:
        plan.error = fetched.error
        return
    for item in plan.items:
        if item.partition is None or item.error is not None or item.is_done:
            continue
        if item.committed is None and not plan.is_whole:
            continue
        now = fetched.offsets.get(item.place)
        if item.place in fetched.errors:
            item.error = fetched.errors[item.place]
        elif now != item.committed:
            wants = Expected(item.committed.offset if item.committed else None)
            item.error, item.more = CHANGED, _difference(wants, now).replace("in the list", "in the dry run")
    if plan.is_whole:
        new = {*fetched.offsets, *fetched.errors} - {item.place for item in plan.items if item.partition is not None}
        plan.items += [
            Item(*place, fetched.offsets.get(place), error=CHANGED, more="not in the dry run") for place in sorted(new)
        ]
        plan.error = plan.error or next((item.error for item in plan.items if item.error), None)
