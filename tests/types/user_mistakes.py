"""Mistakes of a user. mypy and pyright must reject exactly the lines that say `refused`."""

from __future__ import annotations

from kafka_records.consumer_offsets import OffsetCommit, decode_record, encode_record
from kafka_records.consumer_offsets.group_metadata import GroupMetadataValue, MemberMetadata
from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue
from kafka_records.spark import consumer_offsets as spark


def mistakes(value: OffsetCommitValue, group: GroupMetadataValue) -> None:
    OffsetCommitKey("group", "topic", "0")  # refused: a text for a number
    OffsetCommitValue(ofset=1)  # refused: no such field
    GroupMetadataValue(members=[MemberMetadata()])  # refused: a list for a tuple
    GroupMetadataValue(leader=None, protocol_type="consumer")
    GroupMetadataValue(protocol_type=None)  # refused: a field that is never null
    value.offset = 3  # refused: messages are frozen
    value.encode()  # refused: no version
    value.encode("4")  # refused: a version is a number
    value.encode(4)
    OffsetCommitValue.decode("0004", 4)  # refused: a text for bytes
    OffsetCommitValue.decode(b"", version=4)
    decode_record("key", None)  # refused: a text for bytes
    print(decode_record(b"key", None).value_versoin)  # refused: no such attribute
    record = decode_record(b"key", None)
    print(record.value.offset)  # refused: only some records have one, and no tombstone
    if isinstance(record, OffsetCommit):
        print(record.key.grup)  # refused: no such attribute
        print(record.value.offset)  # refused: None for a tombstone
        if record.value is not None:
            print(record.value.offset)
            print(record.value.ofset)  # refused: no such attribute
    match record:
        case OffsetCommit(key):
            print(key.topics)  # refused: no such attribute
        case _:
            pass
    OffsetCommit(group, None)  # refused: not a key
    OffsetCommit(OffsetCommitKey("g", "t", 0), group)  # refused: another record's value
    OffsetCommitValue(topic_id="M4_2Tv--T0Gv8t6piaeUcQ")  # refused: a text for a uuid
    encode_record("key", None)  # refused: a text for a key
    len(group.leader)  # refused: may be null
    group.members[0].decode(b"", 0)  # refused: a struct is no message
    spark.from_offset_commit_value("value", mode=3)  # refused: a mode is a text
    spark.from_offset_comit_value("value")  # refused: no such function
    spark.from_offset_commit_value("value")
