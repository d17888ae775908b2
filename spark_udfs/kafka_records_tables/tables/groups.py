"""The groups, as a group coordinator lists them that has just loaded the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.tables.commits import COMMITS
from kafka_records_tables.tables.declaration import Column, Table

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

GROUP_RECORDS: Final = (
    "GroupMetadata",
    "ConsumerGroupMetadata",
    "ConsumerGroupMemberMetadata",
    "ConsumerGroupTargetAssignmentMetadata",
    "ConsumerGroupCurrentMemberAssignment",
    "ShareGroupMetadata",
    "ShareGroupMemberMetadata",
    "ShareGroupStatePartitionMetadata",
    "StreamsGroupMetadata",
    "StreamsGroupMemberMetadata",
    "StreamsGroupTargetAssignmentMetadata",
    "StreamsGroupCurrentMemberAssignment",
    "StreamsGroupTopology",
)

TABLE: Final = Table(
    name="groups",
    topic="__consumer_offsets",
    about="every group with its kind, its state as far as the log tells, and its epoch",
    helper="fold",
    records=(*COMMITS, *GROUP_RECORDS),
    reads=("offset", "key", "value", "control"),
    columns=(
        Column("group_id", "string", "the group"),
        Column("group_kind", "string", "classic, simple (classic without a protocol type), consumer, share or streams"),
        Column(
            "state",
            "string",
            "state as the broker spells it; null where a record that would tell cannot be decoded",
        ),
        Column(
            "epoch", "int32", "epoch, of a classic group its generation; null for groups without a record of their own"
        ),
        Column("protocol_type", "string", "consumer, connect, share, … and empty for simple groups"),
        Column("protocol", "string", "assignor or protocol that members agreed on; null but for classic groups"),
        Column("member_count", "int32", "members in the log"),
        Column("log_partition", "int32", "partition of the topic that the group is in"),
        Column("log_offset", "int64", "offset of the record of the group, or else of the newest that makes it exist"),
    ),
    sort=("group_id",),
    needs_transactions=False,
    group="group_id",
    module=__name__,
    details=("epoch", "protocol_type", "protocol", "log_partition", "log_offset"),
    last_of_key=True,
    notes="""\
One row per group that a coordinator lists after loading the log (`GroupMetadataManager.replay`).

A group exists from the first record of its kind on, that of a member too; any commit value makes a simple group where
there is no other, whatever became of its transaction and of the offset. It ends with the tombstone of a group record of
any kind. Compaction may take the last record away that told of a group known by superseded, deleted or aborted commits.

What the log cannot know: classic groups are never logged as PreparingRebalance, CompletingRebalance or Dead. One that
is Stable here may be rebalancing, or its members may be gone for less than a session timeout; the same holds for
members of the other kinds. A record that cannot be decoded leaves no wrong answer behind: the group stays, known by
the key, with null in what that record would have told.
""",
)

_OF_A_GROUP: Final = tuple(name for name in TABLE.names if name != "log_partition")


def rows(batches: Iterator[Any], context: Context) -> Iterator[Any]:
    """The rows; `TABLE.notes` has the rules."""
    import numpy as np
    import pyarrow as pa

    from kafka_records_tables.tables.decoding import Decoded, numbers_of, of_types, schemas
    from kafka_records_tables.tables.fold import events
    from kafka_records_tables.tables.group_replay import PICKED, Replay
    from kafka_records_tables.tables.latest import LAST_VALUE, Latest
    from kafka_records_tables.tables.reading import record_types

    records = schemas(context, "consumer_offsets")
    commit_types = np.array(numbers_of(records, COMMITS), np.int16)
    place = ("file", "position", "base_offset")
    commits, others = Latest(("offset", "key", LAST_VALUE, *place)), Latest(
        ("offset", "key", "value", LAST_VALUE, *place)
    )
    not_used = "not used: nobody can tell which group it is about"
    for batch in of_types(batches, numbers_of(records, TABLE.records), context, not_used):
        types, _ = record_types(batch.column("key"))
        is_commit = np.isin(types, commit_types)
        is_record = batch.column("control").is_null().to_numpy(zero_copy_only=False)
        if is_commit.all() and is_record.all():
            commits.add(batch)
            continue
        commits.add(batch.filter(pa.array(is_commit & is_record)))
        others.add(batch.filter(pa.array(~is_commit & is_record)))

    replay = Replay()
    kept = others.rows()
    if kept is not None:
        found = Decoded(kept, records)

        def consequence(row: int) -> str:
            if not found.has_key[row]:
                return not_used
            return "its group keeps a row, with null for what this record would tell"

        found.tell(context, consequence)
        for event in events(found, PICKED):
            replay.take(event)
    kept = commits.rows()
    if kept is not None:
        found = Decoded(kept, records)
        found.tell(context, lambda row: not_used)
        group = found.member(commit_types.tolist(), "key", "group").dictionary_encode()
        last = np.full(len(group.dictionary) + 1, -1, np.int64)
        np.maximum.at(last, group.indices.fill_null(-1).to_numpy(), kept.column(LAST_VALUE).to_numpy())
        for name, offset in zip(group.dictionary.to_pylist(), last.tolist(), strict=False):
            if offset >= 0:
                replay.commit(name, offset)
    listed = replay.rows()
    if listed:
        columns = dict(zip(_OF_A_GROUP, map(list, zip(*listed, strict=True)), strict=True))
        columns["log_partition"] = [context.partition] * len(listed)
        yield pa.RecordBatch.from_pydict(columns, schema=TABLE.schema)
