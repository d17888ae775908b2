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
    "ShareGroupCurrentMemberAssignment",
    "ShareGroupStatePartitionMetadata",
    "StreamsGroupMetadata",
    "StreamsGroupMemberMetadata",
    "StreamsGroupTargetAssignmentMetadata",
    "StreamsGroupCurrentMemberAssignment",
    "StreamsGroupTopology",
)

PARTS: Final = (
    "ConsumerGroupPartitionMetadata",
    "ConsumerGroupTargetAssignmentMember",
    "ConsumerGroupRegularExpression",
    "ShareGroupTargetAssignmentMetadata",
    "ShareGroupTargetAssignmentMember",
    "StreamsGroupTargetAssignmentMember",
)
"""Records of which nothing matters but that there was one: a coordinator makes the group with the first of any."""

TABLE: Final = Table(
    name="groups",
    topic="__consumer_offsets",
    about="every group with its kind, its state as far as the log tells, and its epoch",
    helper="fold",
    records=(*COMMITS, *GROUP_RECORDS, *PARTS),
    reads=("offset", "key", "value", "control"),
    columns=(
        Column("group_id", "string", "the group"),
        Column("group_kind", "string", "classic, simple (classic without a protocol type), consumer, share or streams"),
        Column(
            "state",
            "string",
            "state as the broker spells it; null if the record with it cannot be decoded",
        ),
        Column(
            "epoch", "int32", "epoch, or generation of a classic group; null for groups without a record of their own"
        ),
        Column("protocol_type", "string", "consumer, connect, share, … and empty for simple groups"),
        Column("protocol", "string", "assignor or protocol that members agreed on; null but for classic groups"),
        Column("member_count", "int32", "members in the log"),
        Column("log_partition", "int32", "partition of the topic that the group is in"),
        Column(
            "log_offset",
            "int64",
            "offset of the group's own record; without one, of the newest record that shows the group",
        ),
    ),
    sort=("group_id",),
    needs_transactions=False,
    group="group_id",
    module=__name__,
    essential=("group_id", "group_kind", "state"),
    details=("epoch", "protocol_type", "protocol", "log_partition", "log_offset"),
    last_of_key=True,
    rules="""\
One row per group that a coordinator lists after loading the log (`GroupMetadataManager.replay`).

A group exists from the first record of its kind on; the record of a member is enough. Any commit value makes a simple
group if there is no group of that name, whatever became of its transaction and of the offset. The tombstone of a group
record of any kind ends the group. Superseded, deleted or aborted commits may be all that shows a group; compaction may
remove the last of them, and the group has no row then.

What the log cannot know: brokers never log a classic group as PreparingRebalance, CompletingRebalance or Dead. A group
that is Stable here may be rebalancing, or its members may have been gone for less than a session timeout; the same
holds for members of the other kinds. A record that cannot be decoded makes no answer wrong: its group keeps its row, by
the key of the record, with null for what the value would have said.
""",
)

_OF_A_GROUP: Final = tuple(name for name in TABLE.names if name != "log_partition")


def rows(batches: Iterator[Any], context: Context) -> Iterator[Any]:
    """The rows; `TABLE.rules` says which."""
    from heapq import merge
    from operator import attrgetter

    import numpy as np
    import pyarrow as pa

    from kafka_records_engine.columns.framing_in_columns import prefix_column
    from kafka_records_tables.tables.decoded_records import DecodedRecords, numbers_of, of_types, schemas
    from kafka_records_tables.tables.fold import events
    from kafka_records_tables.tables.group_replay import PICKED, Replay
    from kafka_records_tables.tables.latest import LAST_VALUE, Latest

    records = schemas(context, "consumer_offsets")
    commit_types = numbers_of(records, COMMITS)
    by_key_alone = np.array((*commit_types, *numbers_of(records, PARTS)), np.int16)
    kept = ("offset", "key", LAST_VALUE, "file", "position", "base_offset")
    alone, whole = Latest(kept), Latest((*kept, "value"))
    not_used = "not used: nobody can tell which group it is about"
    for batch in of_types(batches, numbers_of(records, TABLE.records), context, not_used):
        types, _ = prefix_column(batch.column("key"))
        is_alone = np.isin(types, by_key_alone)
        is_record = batch.column("control").is_null().to_numpy(zero_copy_only=False)
        if is_alone.all() and is_record.all():
            alone.add(batch)
            continue
        alone.add(batch.filter(pa.array(is_alone & is_record)))
        whole.add(batch.filter(pa.array(~is_alone & is_record)))

    nothing = pa.RecordBatch.from_pylist(
        [], pa.schema([("offset", pa.int64()), ("key", pa.binary()), (LAST_VALUE, pa.int64())])
    )
    told = DecodedRecords(nothing if (found := whole.rows()) is None else found, records)
    seen = DecodedRecords(nothing if (found := alone.rows()) is None else found, records)

    def consequence(row: int) -> str:
        return "its group keeps a row, with null for what this record would tell" if told.has_key[row] else not_used

    told.report(context, consequence)
    seen.report(context, lambda row: not_used)
    replay = Replay()
    parts = events(seen, dict.fromkeys(PARTS, ()))
    for event in merge(events(told, PICKED), parts, key=attrgetter("offset")):
        replay.take(event)
    group = seen.member(commit_types, "key", "group").dictionary_encode()
    last = np.full(len(group.dictionary) + 1, -1, np.int64)
    np.maximum.at(last, group.indices.fill_null(-1).to_numpy(), seen.last_value)
    for name, offset in zip(group.dictionary.to_pylist(), last.tolist(), strict=False):
        if offset >= 0:
            replay.commit(name, offset)
    listed = replay.rows()
    if listed:
        columns = dict(zip(_OF_A_GROUP, map(list, zip(*listed, strict=True)), strict=True))
        columns["log_partition"] = [context.partition] * len(listed)
        yield pa.RecordBatch.from_pydict(columns, schema=TABLE.schema)
