"""Code of a user, with the types that mypy and pyright must find: `reveal_type(expression) # type`."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never, reveal_type
from uuid import UUID

from kafka_records import registry, transaction_state
from kafka_records.consumer_offsets import (
    RECORD_TYPES,
    GroupMetadata,
    OffsetCommit,
    Record,
    UnknownTypeRecord,
    UnknownVersionRecord,
    decode_record,
    encode_record,
    record_from_json,
)
from kafka_records.consumer_offsets.consumer_group_current_member_assignment import TopicPartitions
from kafka_records.consumer_offsets.group_metadata import GroupMetadataValue, MemberMetadata
from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue
from kafka_records.consumer_offsets.streams_group_member_metadata import StreamsGroupMemberMetadataValue
from kafka_records.schemas import consumer_offsets as schemas
from kafka_records_runtime.errors import DecodeError, EncodeError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_records.spark import consumer_offsets as spark
    from kafka_records.spark.consumer_offsets import from_offset_commit_key
    from kafka_records.spark.consumer_offsets.offset_commit import OFFSET_COMMIT_KEY


def codecs(data: bytes, view: memoryview) -> None:
    reveal_type(OffsetCommitValue.decode(data, 4))  # OffsetCommitValue
    reveal_type(OffsetCommitValue.decode(view, 4))  # OffsetCommitValue
    reveal_type(OffsetCommitValue.decode_prefix(data, 4))  # tuple[OffsetCommitValue, int]
    reveal_type(OffsetCommitValue.VERSIONS)  # range
    reveal_type(OffsetCommitValue.RECORD_TYPE)  # int
    reveal_type(OffsetCommitValue.from_json({"offset": 1}, 4))  # OffsetCommitValue
    value = OffsetCommitValue(offset=42, metadata="here")
    reveal_type(value)  # OffsetCommitValue
    reveal_type(value.encode(4))  # bytes
    reveal_type(value.to_json(4))  # dict[str, Any]
    reveal_type(value == OffsetCommitValue())  # bool
    reveal_type(hash(value))  # int


def fields(value: OffsetCommitValue, group: GroupMetadataValue, member: StreamsGroupMemberMetadataValue) -> None:
    reveal_type(value.offset)  # int
    reveal_type(value.metadata)  # str
    reveal_type(value.topic_id)  # Uuid
    reveal_type(value.unknown_tagged_fields)  # tuple[tuple[int, bytes], ...]
    reveal_type(group.protocol)  # str | None
    reveal_type(group.members)  # tuple[MemberMetadata, ...]
    reveal_type(group.members[0].subscription)  # bytes
    reveal_type([each.client_id for each in group.members])  # list[str]
    reveal_type(MemberMetadata(member_id="m").group_instance_id)  # str | None
    reveal_type(member.user_endpoint)  # Endpoint | None
    if member.user_endpoint is not None:
        reveal_type(member.user_endpoint.port)  # int


def topics(key: bytes | None, value: bytes | None) -> None:
    record = decode_record(key, value)
    reveal_type(record.record_type)  # int
    reveal_type(record.name)  # str | None
    reveal_type(record.value_version)  # int | None
    reveal_type(record.is_tombstone)  # bool
    reveal_type(record.leniencies)  # tuple[str, ...]
    reveal_type(encode_record(OffsetCommitKey("g", "t", 0), None))  # tuple[bytes, bytes | None]
    reveal_type(encode_record(record.key, record.value, record.value_version))  # tuple[bytes, bytes | None]
    reveal_type(RECORD_TYPES.types[1].class_name)  # str


def narrowed_by_isinstance(record: Record) -> None:
    if isinstance(record, OffsetCommit):
        reveal_type(record)  # OffsetCommit
        reveal_type(record.key)  # OffsetCommitKey
        reveal_type(record.value)  # OffsetCommitValue | None
        if record.value is not None:
            reveal_type(record.value.offset)  # int
    elif isinstance(record, UnknownTypeRecord):
        reveal_type(record)  # UnknownTypeRecord
        reveal_type(record.key)  # bytes
        reveal_type(record.value)  # bytes | None
    elif isinstance(record, UnknownVersionRecord):
        reveal_type(record.value)  # bytes
        reveal_type(record.error)  # UnsupportedVersion
        if isinstance(record.key, OffsetCommitKey):
            reveal_type(record.key)  # OffsetCommitKey


def narrowed_by_match(record: Record) -> None:
    match record:
        case OffsetCommit(key, OffsetCommitValue() as value):
            reveal_type(key)  # OffsetCommitKey
            reveal_type(value)  # OffsetCommitValue
        case OffsetCommit(value=None):
            reveal_type(record.key.partition)  # int
        case GroupMetadata(value=value):
            reveal_type(value)  # GroupMetadataValue | None
        case UnknownVersionRecord(value=data):
            reveal_type(data)  # bytes
        case _:
            pass


def every_record(record: transaction_state.Record) -> str:
    match record:
        case transaction_state.TransactionLog(key):
            reveal_type(key)  # TransactionLogKey
            return key.transactional_id
        case transaction_state.UnknownVersionRecord():
            reveal_type(record)  # UnknownVersionRecord[TransactionLogKey]
            return record.key.transactional_id
        case transaction_state.UnknownTypeRecord():
            return record.key.hex()
        case _:
            assert_never(record)


def made_by_hand(id: UUID) -> None:
    record = OffsetCommit(OffsetCommitKey("g", "t", 0), OffsetCommitValue(offset=1, topic_id=id))
    reveal_type(record)  # OffsetCommit
    reveal_type(OffsetCommit.from_json(record.to_json()))  # OffsetCommit
    reveal_type(record.to_json())  # dict[str, Any]
    reveal_type(OffsetCommit.name)  # str
    reveal_type(record_from_json({}).is_tombstone)  # bool
    reveal_type(OffsetCommitValue(1, -1, "", 0, -1, id))  # OffsetCommitValue
    reveal_type(TopicPartitions(topic_id=id, partitions=(0,)).topic_id)  # Uuid


def lookups(name: str) -> None:
    reveal_type(registry.message_class(name))  # Any
    reveal_type(registry.MESSAGES[name])  # tuple[str, str]
    reveal_type(schemas.OFFSET_COMMIT_VALUE)  # MessageSchema
    reveal_type(schemas.RECORDS)  # dict[int, RecordSchema]


def errors(data: bytes) -> None:
    try:
        OffsetCommitValue.decode(data, 4)
    except DecodeError as error:
        reveal_type(error.path)  # str
        reveal_type(error.offset)  # int
    try:
        OffsetCommitValue(offset=2**63).encode(4)
    except EncodeError as error:
        reveal_type(error.path)  # str


def columns(df: DataFrame) -> None:
    reveal_type(spark.OFFSET_COMMIT_VALUE)  # StructType
    reveal_type(OFFSET_COMMIT_KEY)  # StructType
    reveal_type(spark.from_offset_commit_value("value"))  # Column
    reveal_type(from_offset_commit_key("key"))  # Column
    reveal_type(spark.decode_records(df, ["OffsetCommit"]))  # DataFrame
