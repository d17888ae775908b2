"""Column functions that encode structs: back to the bytes they came from, or an error that names the field."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kafka_records.schemas import (
    cluster_metadata,
    consumer_offsets,
    consumer_protocol,
    control,
    log_files,
    remote_log_metadata,
    rpc,
    share_group_state,
    streams_protocol,
    transaction_state,
)
from kafka_records.schemas.consumer_offsets import GROUP_METADATA_VALUE, OFFSET_COMMIT_KEY, OFFSET_COMMIT_VALUE, RECORDS
from kafka_records.schemas.consumer_protocol import CONSUMER_PROTOCOL_ASSIGNMENT
from kafka_records.schemas.rpc import METADATA_REQUEST
from kafka_records.schemas.transaction_state import TRANSACTION_LOG_VALUE
from kafka_records.spark.consumer_offsets import (
    from_offset_commit_value,
    to_offset_commit_key,
    to_offset_commit_value,
)
from kafka_records.spark.consumer_protocol import (
    from_consumer_protocol_subscription,
    to_consumer_protocol_assignment,
    to_consumer_protocol_subscription,
)
from kafka_records_engine.spark._from_bytes import Bare, Decoder
from kafka_records_engine.spark._to_bytes import Encoder
from kafka_records_engine.spark.errors import InvalidUuid, UnsupportedSpark
from kafka_records_engine.spark.functions import (
    from_key,
    from_message,
    from_value,
    to_key,
    to_message,
    to_value,
    value_version,
)
from kafka_records_runtime.errors import (
    EncodeError,
    FieldNotInVersion,
    NullNotAllowed,
    TagClash,
    TagsNotSupported,
    UnsupportedVersion,
    ValueOutOfRange,
    WrongType,
)
from kafka_records_runtime.schema import MessageSchema, RecordSchema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from tests.conftest import VectorLoader

SCHEMAS: dict[str, MessageSchema] = {
    getattr(folder, name).name: getattr(folder, name)
    for folder in (
        cluster_metadata,
        consumer_offsets,
        consumer_protocol,
        control,
        log_files,
        remote_log_metadata,
        rpc,
        share_group_state,
        streams_protocol,
        transaction_state,
    )
    for name in folder.__all__
    if name not in ("RECORDS", "RETIRED_TYPES")
}
TOPICS = {
    "__consumer_offsets": consumer_offsets.RECORDS,
    "__share_group_state": share_group_state.RECORDS,
    "__transaction_state": transaction_state.RECORDS,
}
TOPIC_ID = "1dGbNZA8RiO6Ja5wxwCVrA"


def _encoder(message: MessageSchema, version: int | None, fails_fast: bool = True) -> Encoder:
    return Encoder(message, version, None, version_prefix=False, fails_fast=fails_fast)


class TestRoundTrip:
    def test_of_every_message_kafka_wrote(self, load_vectors: VectorLoader) -> None:
        """All versions of a message in one column, unknown tagged fields among them."""
        lines = defaultdict(list)
        for line in load_vectors("messages.jsonl.gz"):
            lines[line["message"]].append(line)
        for name, some in lines.items():
            _check_round_trip(SCHEMAS[name], some)

    def test_without_unknown_tags_of_messages_that_have_none(self, load_vectors: VectorLoader) -> None:
        lines = [line for line in load_vectors("messages.jsonl.gz") if line["message"] == "GroupMetadataValue"]
        some = [line for line in lines if "tags" not in line]
        assert 0 < len(some) < len(lines)
        _check_round_trip(GROUP_METADATA_VALUE, some, unknown_tags=False)

    @pytest.mark.spark
    def test_through_the_jvm(self, spark: SparkSession, load_vectors: VectorLoader) -> None:
        """With a shuffle in between, so that the structs become Spark's own rows."""
        lines = [line for line in load_vectors("messages.jsonl.gz") if line["message"] == "GroupMetadataValue"]
        rows = [(line["version"], bytes.fromhex(line["hex"])) for line in lines]
        frame = spark.createDataFrame(rows, "version int, data binary")
        decoded = from_message("data", GROUP_METADATA_VALUE, "version", "FAILFAST", unknown_tags=True)
        typed = frame.select("version", "data", decoded.alias("typed")).repartition(1)
        again = to_message("typed", GROUP_METADATA_VALUE, "version", version_prefix=False)
        found = typed.select("data", again.alias("again")).collect()
        assert len(found) == len(lines)
        assert [row for row in found if row.data != row.again] == []

    @pytest.mark.spark
    @pytest.mark.parametrize("topic", TOPICS)
    def test_of_every_record_through_spark(self, spark: SparkSession, load_vectors: VectorLoader, topic: str) -> None:
        lines = [
            line
            for line in load_vectors("framed.jsonl")
            if line.get("topic") == topic and "type" in line and ("note" not in line or line["value_hex"] is None)
        ]
        assert {line["type"] for line in lines} == set(TOPICS[topic])
        rows = [(line["type"], *(_bytes(line[name]) for name in ("key_hex", "value_hex"))) for line in lines]
        frame = spark.createDataFrame(rows, "type int, key binary, value binary").coalesce(1)
        parts = [_round_trip(frame.where(frame.type == number), record) for number, record in TOPICS[topic].items()]
        found = reduce(lambda one, other: one.union(other), parts).collect()
        assert len(found) == len(lines)
        assert [row for row in found if (row.key, row.value) != (row.key_again, row.value_again)] == []


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def _check_round_trip(schema: MessageSchema, lines: list[dict[str, Any]], unknown_tags: bool = True) -> None:
    data = pa.array([bytes.fromhex(line["hex"]) for line in lines], pa.binary())
    versions = pa.array([line["version"] for line in lines], pa.int32())
    decoder = Decoder(schema, Bare(None), fails_fast=True, unknown_tags=unknown_tags, show_secrets=True)
    decoded = decoder(data, versions)
    assert _encoder(schema, None)(decoded, versions) == data, schema.name


def _round_trip(frame: DataFrame, record: RecordSchema) -> DataFrame:
    key = from_key("key", record, "FAILFAST", unknown_tags=True)
    value = from_value("value", record, "FAILFAST", unknown_tags=True)
    return frame.select(
        "key",
        "value",
        to_key(key, record).alias("key_again"),
        to_value(value, record, value_version("value")).alias("value_again"),
    )


@pytest.mark.spark
class TestColumns:
    def test_versions(self, spark: SparkSession) -> None:
        data = bytes.fromhex("0003" "000000000000002a" "ffffffff" "0000" "0000000000000005")
        frame = spark.createDataFrame([(data, 3), (data, 0), (None, 2), (None, None)], "data binary, version int")
        decoded = frame.withColumn("decoded", from_offset_commit_value("data"))
        rows = decoded.select(
            to_offset_commit_value("decoded"),
            to_offset_commit_value("decoded", 0),
            to_offset_commit_value(decoded.decoded, "version"),
            to_offset_commit_value("decoded", decoded.version + 1),
        ).collect()
        body = "000000000000002a"
        oldest, newest = f"0000{body}00000000000000000005", f"0004{body}ffffffff01000000000000000500"
        assert [tuple(each and each.hex() for each in row) for row in rows] == [
            (newest, oldest, data.hex(), newest),
            (newest, oldest, oldest, f"0001{body}00000000000000000005ffffffffffffffff"),
            (None, None, None, None),
            (None, None, None, None),
        ]

    def test_what_stands_before_a_message(self, spark: SparkSession) -> None:
        data = bytes.fromhex("0001" "00000001" "0001" "61" "ffffffff" "00000000")
        frame = spark.createDataFrame([(data, bytes.fromhex("000000010001" "61" "01"))], "data binary, request binary")
        decoded = from_consumer_protocol_subscription("data")
        request = from_message("request", METADATA_REQUEST, 4, mode="FAILFAST")
        row = frame.select(
            to_consumer_protocol_subscription(decoded, 1),
            to_consumer_protocol_subscription(decoded, 1, version_prefix=False),
            to_message(request, METADATA_REQUEST, 4, version_prefix=False),
            to_message(request, METADATA_REQUEST, 4),
        ).collect()[0]
        assert tuple(row) == (
            data,
            data[2:],
            frame_request := bytes.fromhex("000000010001" "61" "01"),
            b"\0\4" + frame_request,
        )

    def test_structs_of_a_query_of_ones_own(self, spark: SparkSession) -> None:
        """Fields in another order, numbers of other types, no fields that version 1 lacks, a literal null."""
        struct = """named_struct('metadata', 'm', 'offset', 42, 'commit_timestamp', 5Y, 'expire_timestamp', -1L)"""
        frame = spark.sql(
            f"SELECT {struct} AS value, null AS nothing, named_struct('assigned_partitions', array()) AS a"
        )
        row = frame.select(
            to_offset_commit_value("value", 1),
            to_offset_commit_key("nothing"),
            to_consumer_protocol_assignment("nothing"),
        ).collect()[0]
        assert tuple(row) == (
            bytes.fromhex("0001" "000000000000002a" "00016d" "0000000000000005" "ffffffffffffffff"),
            None,
            None,
        )

    def test_a_column_has_the_name_of_its_function(self, spark: SparkSession) -> None:
        frame = spark.sql("SELECT named_struct('group', 'g', 'topic', 't', 'partition', 3) AS key")
        columns = frame.select(to_offset_commit_key("key"), to_key("key", RECORDS[1])).dtypes
        assert columns == [("to_offset_commit_key(key)", "binary"), ("to_key(key)", "binary")]

    def test_large_types(self, spark: SparkSession) -> None:
        name = "spark.sql.execution.arrow.useLargeVarTypes"
        spark.conf.set(name, "true")
        try:
            frame = spark.sql("SELECT named_struct('group', 'g', 'topic', 't', 'partition', 3) AS key")
            found = frame.select(to_offset_commit_key("key")).collect()[0][0]
        finally:
            spark.conf.unset(name)
        assert found == bytes.fromhex("0001" "000167" "000174" "00000003")

    def test_the_first_value_that_cannot_be_written_ends_the_query(self, spark: SparkSession) -> None:
        frame = spark.sql("SELECT named_struct('group', 'g', 'topic', null, 'partition', 3) AS key")
        message = "NullNotAllowed: OffsetCommitKey v0: topic is None, which this version does not allow"
        with pytest.raises(Exception, match=re.escape(message)):
            frame.select(to_offset_commit_key("key")).collect()
        assert frame.select(to_offset_commit_key("key", mode="PERMISSIVE")).collect()[0][0] is None

    def test_a_column_that_is_not_of_the_message_ends_it_in_every_mode(self, spark: SparkSession) -> None:
        frame = spark.sql("SELECT named_struct('group', 'g', 'topik', 't', 'partition', 3) AS key")
        message = "UnknownField: OffsetCommitKey v0: the message has the key 'topik', which is not a field of it"
        with pytest.raises(Exception, match=re.escape(message)):
            frame.select(to_offset_commit_key("key", mode="PERMISSIVE")).collect()


VALUE = {"offset": 1, "leader_epoch": -1, "metadata": "", "commit_timestamp": 2}
MEMBER = {"topic": "t", "partitions": [1]}


class TestValues:
    """Values that cannot be written: an error that names the field, or null."""

    @pytest.mark.parametrize(
        ("value", "version", "error", "message"),
        [
            (VALUE | {"metadata": None}, 3, NullNotAllowed, "v3: metadata is None, which this version does not allow"),
            (
                VALUE | {"leader_epoch": 2**31},
                3,
                ValueOutOfRange,
                "v3: leader_epoch is 2147483648, but int32 holds -2147483648 to 2147483647",
            ),
            (
                VALUE | {"topic_id": "no uuid"},
                4,
                InvalidUuid,
                "v4: topic_id is 'no uuid', but a uuid is 22 characters of URL-safe base64",
            ),
            (VALUE | {"topic_id": None}, 4, NullNotAllowed, "v4: topic_id is None, which this version does not allow"),
            (
                VALUE | {"unknown_tagged_fields": [{"tag": 9, "data": b""}]},
                3,
                TagsNotSupported,
                "v3: unknown_tagged_fields is not empty, but this version has no tagged fields",
            ),
            (
                VALUE | {"unknown_tagged_fields": [{"tag": 0, "data": b""}]},
                4,
                TagClash,
                "v4: unknown_tagged_fields[0] has tag 0, which belongs to topic_id",
            ),
            (
                VALUE | {"unknown_tagged_fields": [{"tag": 9, "data": b""}, None]},
                4,
                NullNotAllowed,
                "v4: unknown_tagged_fields[1] is None, which this version does not allow",
            ),
        ],
    )
    def test_of_one_version(self, value: dict[str, Any], version: int, error: type[EncodeError], message: str) -> None:
        column = pa.array([None, value])
        with pytest.raises(error) as caught:
            _encoder(OFFSET_COMMIT_VALUE, version)(column)
        assert str(caught.value) == f"OffsetCommitValue {message}"
        assert _encoder(OFFSET_COMMIT_VALUE, version, fails_fast=False)(column).to_pylist() == [None, None]

    @pytest.mark.parametrize(
        ("version", "error", "message"),
        [
            (None, WrongType, "OffsetCommitValue: version is of type null, expected a number"),
            (5, UnsupportedVersion, "OffsetCommitValue has no version 5: its versions are 0 to 4"),
            (-1, UnsupportedVersion, "OffsetCommitValue has no version -1: its versions are 0 to 4"),
            (2**31 - 1, UnsupportedVersion, "OffsetCommitValue has no version 2147483647: its versions are 0 to 4"),
        ],
    )
    def test_of_a_version_in_the_row(self, version: int | None, error: type[EncodeError], message: str) -> None:
        column, versions = pa.array([VALUE, VALUE]), pa.array([3, version], pa.int32())
        with pytest.raises(error) as caught:
            _encoder(OFFSET_COMMIT_VALUE, None)(column, versions)
        assert str(caught.value) == message
        written = bytes.fromhex("0000000000000001" "ffffffff" "0000" "0000000000000002")
        assert _encoder(OFFSET_COMMIT_VALUE, None, fails_fast=False)(column, versions).to_pylist() == [written, None]

    def test_of_a_field_that_the_version_lacks(self) -> None:
        fields = {"producer_id": 1, "producer_epoch": 0, "transaction_timeout_ms": 1, "transaction_status": 0}
        times = {"transaction_last_update_timestamp_ms": 1, "transaction_start_timestamp_ms": 1}
        column = pa.array([fields | times | {"transaction_partitions": [], "next_producer_id": 2}])
        with pytest.raises(FieldNotInVersion) as caught:
            _encoder(TRANSACTION_LOG_VALUE, 0)(column)
        assert (
            str(caught.value) == "TransactionLogValue v0: next_producer_id is set, but this version has no such field"
        )

    def test_inside_arrays(self) -> None:
        column = pa.array([{"assigned_partitions": [MEMBER, MEMBER | {"partitions": [1, None]}], "user_data": b""}])
        with pytest.raises(NullNotAllowed) as caught:
            _encoder(CONSUMER_PROTOCOL_ASSIGNMENT, 0)(column)
        assert str(caught.value) == (
            "ConsumerProtocolAssignment v0: assigned_partitions[1].partitions[1] is None, "
            "which this version does not allow"
        )

    def test_a_uuid_inside_arrays(self) -> None:
        topics = [{"topic_id": TOPIC_ID, "name": None}, {"topic_id": "?", "name": None}]
        column = pa.array(
            [
                {
                    "topics": topics,
                    "allow_auto_topic_creation": True,
                    "include_topic_authorized_operations": False,
                }
            ]
        )
        with pytest.raises(InvalidUuid) as caught:
            _encoder(METADATA_REQUEST, 12)(column)
        assert str(caught.value) == (
            "MetadataRequest v12: topics[1].topic_id is '?', but a uuid is 22 characters of URL-safe base64"
        )

    def test_no_tags_where_they_are_null(self) -> None:
        kind = pa.list_(pa.struct([("tag", pa.int32()), ("data", pa.binary())]))
        given = pa.array([{"group": "g", "topic": "t", "partition": 3, "unknown_tagged_fields": None}])
        fields = [*given.flatten()[:3], pa.nulls(1, kind)]
        column = pa.StructArray.from_arrays(fields, ["group", "topic", "partition", "unknown_tagged_fields"])
        assert _encoder(OFFSET_COMMIT_KEY, 0)(column).to_pylist() == [bytes.fromhex("000167" "000174" "00000003")]

    def test_batches_without_values(self) -> None:
        for column in (pa.array([], pa.null()), pa.nulls(2), pa.nulls(2, pa.struct([("x", pa.int8())]))):
            found = _encoder(OFFSET_COMMIT_KEY, 0)(column)
            assert (found.type, found.to_pylist()) == (pa.binary(), [None] * len(column))

    def test_a_slice(self) -> None:
        rows = [{"group": "g", "topic": "t", "partition": number} for number in range(5)]
        found = _encoder(OFFSET_COMMIT_KEY, 0)(pa.array([*rows[:2], None, *rows[3:]]).slice(1, 3)).to_pylist()
        assert found == [bytes.fromhex("000167" "000174" "00000001"), None, bytes.fromhex("000167" "000174" "00000003")]


class TestArguments:
    def test_a_version_there_is_not(self) -> None:
        with pytest.raises(UnsupportedVersion) as caught:
            to_offset_commit_value("value", 5)
        assert str(caught.value) == "OffsetCommitValue has no version 5: its versions are 0 to 4"

    def test_a_mode_there_is_not(self) -> None:
        with pytest.raises(ValueError, match="mode 'DROPMALFORMED' is not one of PERMISSIVE, FAILFAST"):
            to_offset_commit_value("value", mode="DROPMALFORMED")

    @pytest.mark.parametrize(
        ("call", "name"),
        [
            (lambda: to_offset_commit_value("value", 3), "to_offset_commit_value"),
            (lambda: to_offset_commit_key("key"), "to_offset_commit_key"),
            (lambda: to_value("value", RECORDS[1]), "to_value"),
            (lambda: to_key("key", RECORDS[1]), "to_key"),
            (lambda: to_message("value", OFFSET_COMMIT_VALUE), "to_message"),
        ],
    )
    def test_an_older_spark(self, monkeypatch: pytest.MonkeyPatch, call: Callable[[], Column], name: str) -> None:
        monkeypatch.delattr("pyspark.sql.functions.arrow_udf")
        monkeypatch.setattr("pyspark.__version__", "4.0.2")
        with pytest.raises(UnsupportedSpark) as caught:
            call()
        # A function of the engine does not know of which package the message is.
        remedy = "" if name in ("to_value", "to_key", "to_message") else ': pass engine="jvm"'
        assert str(caught.value) == f"{name} needs PySpark 4.1 or later, but this is 4.0.2{remedy}"
