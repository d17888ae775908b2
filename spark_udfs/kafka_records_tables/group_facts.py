"""What single records say about a group, in one shape for all kinds of groups.

Each kind keeps the same things in record types of its own: the group, its target assignment, its members, what they
have at present. `FACTS` says which record type is which, so that the rules about states are written once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records_spark.types import column_name
from kafka_records_tables.commits import COMMIT_RECORDS, commit_key
from kafka_records_tables.survivors import place_and_state

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
SHARE: Final = "share"
STREAMS: Final = "streams"
OFFSETS: Final = "offsets"

GROUP: Final = "group"
"""The record that makes the group a group of its kind."""
TARGET: Final = "target"
"""The epoch of the assignment that members are to reach."""
MEMBER: Final = "member"
"""A member is there."""
CURRENT: Final = "current"
"""The epoch and state that a member has reached."""
TOPOLOGY: Final = "topology"
SHARE_STATE: Final = "share_state"
"""Share offsets that an admin set for a group that may never have had a member: no GROUP record then."""
OFFSET: Final = "offset"


@dataclass(frozen=True)
class Fact:
    """A record type: for which kind (`family`) of group it says what (`role`), and in which members of its value it
    keeps the `fields` that matter."""

    record: str
    family: str
    role: str
    group_id: str = "group_id"
    member_id: str | None = None
    fields: dict[str, str] = field(default_factory=dict)


def _member(record: str, family: str) -> Fact:
    return Fact(record, family, MEMBER, member_id="member_id")


def _current(record: str, family: str) -> Fact:
    fields = {"epoch": "member_epoch", "member_state": "state"}
    return Fact(record, family, CURRENT, member_id="member_id", fields=fields)


FACTS: Final = (
    *(Fact(record, OFFSETS, OFFSET, group_id="group") for record in COMMIT_RECORDS),
    Fact(
        "GroupMetadata",
        CLASSIC,
        GROUP,
        group_id="group",
        fields={"epoch": "generation", "protocol_type": "protocol_type", "protocol": "protocol"},
    ),
    Fact("ConsumerGroupMetadata", CONSUMER, GROUP, fields={"epoch": "epoch"}),
    Fact("ConsumerGroupTargetAssignmentMetadata", CONSUMER, TARGET, fields={"epoch": "assignment_epoch"}),
    _member("ConsumerGroupMemberMetadata", CONSUMER),
    _current("ConsumerGroupCurrentMemberAssignment", CONSUMER),
    Fact("ShareGroupMetadata", SHARE, GROUP, fields={"epoch": "epoch"}),
    _member("ShareGroupMemberMetadata", SHARE),
    Fact("ShareGroupStatePartitionMetadata", SHARE, SHARE_STATE),
    Fact(
        "StreamsGroupMetadata",
        STREAMS,
        GROUP,
        fields={"epoch": "epoch", "validated_topology": "validated_topology_epoch"},
    ),
    Fact("StreamsGroupTargetAssignmentMetadata", STREAMS, TARGET, fields={"epoch": "assignment_epoch"}),
    _member("StreamsGroupMemberMetadata", STREAMS),
    _current("StreamsGroupCurrentMemberAssignment", STREAMS),
    Fact("StreamsGroupTopology", STREAMS, TOPOLOGY, fields={"epoch": "epoch"}),
)

RECORDS: Final = tuple(fact.record for fact in FACTS)


def facts(decoded: DataFrame) -> DataFrame:
    """One row per decoded record.

    Columns: those of `survivors.place_and_state`; `group_id, family, role, member_id, commit_topic, commit_partition`,
    null for a record whose key could not be read; and, null where the record has no such thing, `epoch, member_state,
    validated_topology, protocol_type, protocol, member_count`.
    """
    group_id = F.coalesce(*(F.col(f"{column_name(fact.record)}.key.{fact.group_id}") for fact in FACTS))
    return decoded.select(
        *place_and_state(group_id),
        group_id.alias("group_id"),
        _label("family"),
        _label("role"),
        _member_id().alias("member_id"),
        commit_key("topic").alias("commit_topic"),
        commit_key("partition").alias("commit_partition"),
        *(
            _value(name).alias(name)
            for name in ("epoch", "member_state", "validated_topology", "protocol_type", "protocol")
        ),
        F.size(F.col("group_metadata.value.members")).alias("member_count"),
    )


def _label(name: str) -> Column:
    label = F.lit(None).cast("string")
    for fact in FACTS:
        label = F.when(F.col(column_name(fact.record)).isNotNull(), F.lit(getattr(fact, name))).otherwise(label)
    return label.alias(name)


def _member_id() -> Column:
    return F.coalesce(*(F.col(f"{column_name(fact.record)}.key.{fact.member_id}") for fact in FACTS if fact.member_id))


def _value(name: str) -> Column:
    """The column `name` from whichever record keeps it."""
    places = [F.col(f"{column_name(fact.record)}.value.{fact.fields[name]}") for fact in FACTS if name in fact.fields]
    return F.coalesce(*places)
