"""The groups, as the group coordinator would list them at the end of the log, as far as the log tells."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records_tables.group_facts import (
    CLASSIC,
    CONSUMER,
    CURRENT,
    GROUP,
    MEMBER,
    OFFSET,
    OFFSETS,
    RECORDS,
    SHARE,
    SHARE_STATE,
    STREAMS,
    TARGET,
    TOPOLOGY,
    facts,
)
from kafka_records_tables.survivors import (
    deciding_rows,
    decoded,
    last_decided_and_undecided,
    last_per_key,
    only_undecodable,
    remarks_about,
    with_unframed,
)

_IGNORED: Final = ("aborted",)

_STABLE_MEMBER: Final = {CONSUMER: 0, STREAMS: 1}
"""The state of a member that has what it was assigned (`MemberState` of consumer and of streams groups)."""


def groups(raw: DataFrame) -> DataFrame:
    """One row per group that exists at the end of the log.

    The last record of each key decides. Of the records that make a group (types 2, 3, 11 and 17) the newest that no
    tombstone followed gives the kind: a group that moved to another protocol leaves tombstones behind. A group without
    any is `share` when share offsets were set for it (type 15), and `simple` when it has a committed offset or one
    pending in an open transaction.

    Parameters
    ----------
    raw
        As for `current_offsets`.

    Returns
    -------
    DataFrame
        `group_id` string; `group_kind` string: `classic`, `simple` (classic without protocol type), `consumer`,
        `share`, `streams`; `state` string, as the broker spells it; `epoch` int, for a classic group its generation;
        `protocol_type` string; `protocol` string (null when there is none, as for every kind but classic);
        `member_count` int; and the place of the record that makes the group (of the newest one, for a group known only
        by offsets): `log_partition` int, `log_offset` long. In no particular order.

    Notes
    -----
    What the log cannot know. Classic groups are never logged as PreparingRebalance, CompletingRebalance or Dead: one
    that is Stable here may be rebalancing, or its members may be gone for less than a session timeout; the same holds
    for members of the other kinds. Whether a group lives on after an admin deleted its last offset depends on the
    release and on when the broker last looked for expired offsets; here it does not. A group known only by an aborted
    transaction is not listed either. `epoch` is null for groups that have no record of their own.

    A record that cannot be decoded leaves no wrong answer behind: the group stays, known by the key, with null in
    `state` and in what else that record would have told. A group that would be known only by offsets committed in a
    transaction of which nobody can tell how it ended has no row (for rows whose source tells neither transaction nor
    producer it has one). `undecodable` shows all these records.

    Examples
    --------
    >>> from kafka_records_spark.segments import read_segments
    >>> raw = read_segments(spark, "/var/lib/kafka/data", topic="__consumer_offsets")
    >>> groups(raw).groupBy("group_kind", "state").count().show()
    """
    last = _last_facts(last_per_key(deciding_rows(raw, RECORDS, *_IGNORED)))
    known = last.where(F.col("has_key") & ~F.col("is_tombstone") & ~F.col("is_undecided"))
    return _newest_kind(_per_kind(_per_member(known)))


def remarks(raw: DataFrame) -> DataFrame:
    """What there is to say about the records that decide about a group; see `kafka_records_tables.Table.remarks`."""
    last = _last_facts(with_unframed(last_per_key(deciding_rows(raw, RECORDS, *_IGNORED)), raw))
    makes_group = F.col("role").isin(GROUP, SHARE_STATE, OFFSET) & ~F.col("is_tombstone") & ~F.col("is_undecided")
    of_group = Window.partitionBy("log_partition", "group_id")
    known = F.coalesce(F.max(makes_group).over(of_group), F.lit(False))
    # Whatever became of its transaction, a commit tells nothing new about a group that is known without it.
    rows = last.withColumn("is_known", known).withColumn("is_undecided", F.col("is_undecided") & ~F.col("is_known"))
    what = F.concat(F.lit("a commit of group "), F.col("group_id"))
    consequence = (
        F.when(~F.col("has_key"), "not used: nobody can tell which group it is about")
        .when(F.col("is_undecided"), "the group is left out: nothing else makes it one")
        .otherwise("its group keeps a row, with null for what this record would tell")
    )
    return remarks_about(rows, what, consequence)


def undecodable(raw: DataFrame) -> DataFrame:
    """The records that would decide about a group but cannot be used.

    Takes the same `raw` as `groups`; the columns are those of `current_offsets.undecodable`.
    """
    return only_undecodable(remarks(raw))


def _last_facts(survivors: DataFrame) -> DataFrame:
    """What the records say that decide, from the last rows of each byte key."""
    key = ("group_id", "family", "role", "member_id", "commit_topic", "commit_partition")
    return last_decided_and_undecided(facts(decoded(survivors, RECORDS)), *key)


def _of(role: str, name: str) -> Column:
    """`name` of the one record in this role."""
    return F.max(F.when(F.col("role") == role, F.col(name)))


def _per_member(alive: DataFrame) -> DataFrame:
    """One row per group, kind and member; what is said about the group itself stands in the row without member."""
    return alive.groupBy("log_partition", "group_id", "family", "member_id").agg(
        F.max(F.col("error").isNotNull()).alias("is_broken"),
        _of(GROUP, "log_offset").alias("group_offset"),
        _of(SHARE_STATE, "log_offset").alias("share_state_offset"),
        _of(OFFSET, "log_offset").alias("commit_offset"),
        _of(GROUP, "epoch").alias("epoch"),
        _of(TARGET, "epoch").alias("target_epoch"),
        _of(TOPOLOGY, "epoch").alias("topology"),
        _of(GROUP, "validated_topology").alias("validated_topology"),
        _of(GROUP, "protocol_type").alias("protocol_type"),
        _of(GROUP, "protocol").alias("protocol"),
        _of(GROUP, "member_count").alias("classic_members"),
        F.max(F.col("role") == MEMBER).alias("is_member"),
        _of(CURRENT, "epoch").alias("member_epoch"),
        _of(CURRENT, "member_state").alias("member_state"),
    )


def _per_kind(members: DataFrame) -> DataFrame:
    """One row per group and kind, with what the members have in common."""
    is_settled = F.lit(False)
    for family, state in _STABLE_MEMBER.items():
        is_settled = is_settled | ((F.col("family") == family) & (F.col("member_state") == state))
    # A member without current assignment, or with one it is still moving to, has not reached the target.
    is_unsettled = F.col("is_member") & ~F.coalesce(is_settled, F.lit(False))
    epoch_of_member = F.when(F.col("is_member"), F.col("member_epoch"))
    of_group = (
        "group_offset",
        "share_state_offset",
        "commit_offset",
        "epoch",
        "target_epoch",
        "topology",
        "validated_topology",
        "protocol_type",
        "protocol",
        "classic_members",
    )
    return members.groupBy("log_partition", "group_id", "family").agg(
        *(F.max(name).alias(name) for name in of_group),
        F.max("is_broken").alias("is_broken"),
        F.count(F.when(F.col("is_member"), 1)).cast("int").alias("members"),
        F.max(is_unsettled).alias("any_unsettled"),
        F.min(epoch_of_member).alias("lowest_epoch"),
        F.max(epoch_of_member).alias("highest_epoch"),
    )


def _newest_kind(kinds: DataFrame) -> DataFrame:
    place = F.coalesce("group_offset", "share_state_offset", "commit_offset")
    newest = Window.partitionBy("log_partition", "group_id").orderBy(
        F.col("group_offset").desc_nulls_last(),
        F.col("share_state_offset").desc_nulls_last(),
    )
    return (
        kinds.where(place.isNotNull())
        .withColumn("rank", F.row_number().over(newest))
        .where(F.col("rank") == 1)
        .select(
            "group_id",
            _group_kind().alias("group_kind"),
            F.when(_is_offsets_only() | ~F.col("is_broken"), _state()).alias("state"),
            "epoch",
            _protocol_type().alias("protocol_type"),
            F.when(F.col("protocol") != "", F.col("protocol")).alias("protocol"),
            F.when(F.col("family") == CLASSIC, F.col("classic_members"))
            .otherwise(F.col("members"))
            .alias("member_count"),
            "log_partition",
            place.alias("log_offset"),
        )
    )


def _is_offsets_only() -> Column:
    return F.col("family") == OFFSETS


def _group_kind() -> Column:
    no_protocol_type = (F.col("family") == CLASSIC) & (F.col("protocol_type") == "")
    return F.when(_is_offsets_only() | no_protocol_type, "simple").otherwise(F.col("family"))


def _protocol_type() -> Column:
    return (
        F.when(F.col("family") == CLASSIC, F.col("protocol_type"))
        .when(_is_offsets_only(), "")
        .otherwise(F.col("family"))
    )


def _state() -> Column:
    """The rules of each kind's own class (`ClassicGroup`, `ConsumerGroup`, `ShareGroup`, `StreamsGroup`) in one."""
    family = F.col("family")
    members = F.when(family == CLASSIC, F.col("classic_members")).otherwise(F.col("members"))
    target = F.coalesce("target_epoch", F.lit(0))
    has_topology = F.coalesce(F.col("topology") == F.col("validated_topology"), F.lit(False))
    is_reconciling = F.col("any_unsettled") | (F.col("lowest_epoch") != target) | (F.col("highest_epoch") != target)
    return (
        F.when(_is_offsets_only() | (members == 0), "Empty")
        .when(family.isin(CLASSIC, SHARE), "Stable")
        .when((family == STREAMS) & ~has_topology, "NotReady")
        .when(F.col("epoch") > target, "Assigning")
        .when(is_reconciling, "Reconciling")
        .otherwise("Stable")
    )
