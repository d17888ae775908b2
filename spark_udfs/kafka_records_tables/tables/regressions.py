"""The commits that moved an offset backwards, and the explanation of each of them."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.coordinator.groups.record_names import GROUP_RECORDS, PARTS
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table, timestamps
from kafka_records_tables.topics import OFFSETS

TABLE: Final = Table(
    name="regressions",
    topic=OFFSETS,
    about="every commit that moved an offset backwards, and what explains it",
    helper="history",
    records=(*COMMITS, *GROUP_RECORDS, *PARTS),
    reads=("offset", "timestamp_ms", "key", "value", "producer_id", "transaction", "control"),
    columns=(
        Column("group_id", "string", "the group"),
        Column("topic", "string", "topic whose records it consumes"),
        Column("partition", "int32", "partition of that topic"),
        Column("from_offset", "int64", "committed offset before"),
        Column("to_offset", "int64", "the lower one that took its place"),
        Column(
            "kind",
            "string",
            "topic_recreated, after_deletion, sawtooth, reset_while_empty or rewind_by_member",
            ("topic_recreated", "after_deletion", "sawtooth", "reset_while_empty", "rewind_by_member"),
        ),
        Column(
            "confidence",
            "string",
            "how sure the kind is: low if it depends on members, or on the id of a topic, that the log does not "
            "show, high otherwise",
            ("high", "low"),
        ),
        Column("group_kind", "string", "kind of the group right before the commit; null if there was no group"),
        Column("group_state", "string", "its state then, as far as the log shows; null if there was no group"),
        Column("producer_id", "int64", "producer of the transaction that committed the lower offset; null without one"),
        Column("topic_id", "string", "id of the topic by the lower commit, or the last one before it that tells one"),
        Column("from_topic_id", "string", "the same of the commit before; null if none shows one"),
        *timestamps("commit", "when the lower offset was committed"),
        *timestamps("from_commit", "when the offset before was committed"),
        *LOG_PLACE,
        Column("from_log_offset", "int64", "offset in that partition of the commit before"),
        Column(
            "evidence",
            "list<struct<shows: string, log_offset: int64>>",
            "the other records that show it: the tombstone between, the marker of the transaction, the last commits "
            "of the other sequence of a sawtooth (high) and of this one (low), and, for the last two kinds, the last "
            "record that shows who is, or is no longer, a member of the group (group)",
        ),
    ),
    sort=("group_id", "topic", "partition", "log_partition", "log_offset"),
    group="group_id",
    module=__name__,
    essential=("group_id", "topic", "partition", "from_offset", "to_offset", "kind"),
    details=(
        "topic_id",
        "from_topic_id",
        "producer_id",
        "evidence",
        "from_commit_timestamp",
        "log_partition",
        "log_offset",
        "from_log_offset",
    ),
    rules="""\
One row per commit that took effect and is lower than the one it took the place of, of the same group, topic and
partition. A commit in a transaction takes effect at the marker, and not at all if an offset after it did so meanwhile
(`OffsetMetadataManager.replayEndTransactionMarker`). A source that has no markers and says `committed` has each of them
take effect at its own place: the lower of two of one transaction is a fall then, which it is not where markers tell
that both came at once. The kind is the first that applies:

- `topic_recreated`: the two commits name topics with different ids (Kafka 4.1 and later write them). It is not a
  rewind: a new topic has the old name, and begins at 0.
- `after_deletion`: the offset was deleted in between, by a clean-up, by somebody, or with its topic where no ids are
  told. The group started over and lower. disappearances says why; evidence names the tombstone.
- `sawtooth`: two committers take turns. After a fall the offset had come back to where it fell from, most of the way in
  one step, and now falls to no less than what it had left then: two rising sequences, of a zombie and its successor, of
  two applications with one group name, of consumers that assign themselves the same partition. The first fall of a
  sawtooth looks like any other, and has another kind.
- `reset_while_empty`: the group had no member. So an administrator has reset it, or a consumer that assigns itself
  partitions went back; both commit without being a member, and the log does not tell them apart.
- `rewind_by_member`: the group had members, and of others a coordinator takes no commit, but in transactions. A member
  went back by itself, or started over where its offset was out of range (`auto.offset.reset`).

Each of these may be meant. A broker that restarts, or a coordinator that loads its log, writes nothing; a commit of the
same offset, with another leader epoch or metadata, is not a fall.

What compaction hides: where a cleaner has been, it has left the last commit of each partition of a group, so there are
no falls to tell. A finding says after which offset no record is missing; a fall onto the first commit of a partition
after it is missing where the commit before is. For every fall that is left the log has what tells the members of the
group then, since a cleaner takes only what a record within its reach replaces. Of a sawtooth it may leave
one fall, which has another kind then. `confidence` is low where bytes before the commit could not be read, or a
record of the group could not be decoded, and the kind depends on its members; and where the lower commit tells the id
of
its topic and none before it that is left does: an earlier one may have told another id, and the topic be a new one.

What the log cannot know: classic members that join for the first time are in no record until they are assigned
partitions. Records that were consumed again without a lower commit show nowhere. Which client has sent a commit is in
no record.
""",
)
