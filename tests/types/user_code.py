"""What a user writes, and the types that mypy and pyright are to find: `reveal_type(expression)  # type`."""

from __future__ import annotations

from typing import TYPE_CHECKING, reveal_type

from kafka_records import registry
from kafka_records.consumer_offsets import RECORD_TYPES, decode_record, encode_record
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
    reveal_type(record)  # Record
    reveal_type(record.record_type)  # int
    reveal_type(record.name)  # str | None
    reveal_type(record.value_version)  # int | None
    reveal_type(record.is_tombstone)  # bool
    reveal_type(record.leniencies)  # tuple[str, ...]
    reveal_type(record.value)  # Any
    if isinstance(record.value, OffsetCommitValue):
        reveal_type(record.value)  # OffsetCommitValue
    reveal_type(encode_record(OffsetCommitKey("g", "t", 0), None))  # tuple[bytes, bytes | None]
    reveal_type(RECORD_TYPES)  # RecordSet


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
