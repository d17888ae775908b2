"""Struct columns that are not a message, or that lack optional parts of a message."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kafka_records.schemas.consumer_offsets import OFFSET_COMMIT_KEY, OFFSET_COMMIT_VALUE
from kafka_records.schemas.consumer_protocol import CONSUMER_PROTOCOL_ASSIGNMENT
from kafka_records_engine.spark._to_bytes import Encoder
from kafka_records_engine.spark.errors import MissingField
from kafka_records_runtime.errors import EncodeError, UnknownField, WrongType
from kafka_records_runtime.schema import MessageSchema

MEMBER = {"topic": "t", "partitions": [1]}


def _encoder(message: MessageSchema, version: int | None, fails_fast: bool = True) -> Encoder:
    return Encoder(message, version, None, version_prefix=False, fails_fast=fails_fast)


class TestStructs:
    """Errors about the type of a column, regardless of its values, are raised in every mode."""

    @pytest.mark.parametrize(
        ("column", "schema", "error", "message"),
        [
            (
                pa.array([{"group": "g", "partition": 3}]),
                OFFSET_COMMIT_KEY,
                MissingField,
                "OffsetCommitKey v0: the message lacks the field 'topic'",
            ),
            (
                pa.array([{"group": "g", "topic": "t", "partition": 3, "Group": "g"}]),
                OFFSET_COMMIT_KEY,
                UnknownField,
                "OffsetCommitKey v0: the message has the key 'Group', which is not a field of it",
            ),
            (
                pa.array([{"group": "g", "topic": "t", "partition": "3"}]),
                OFFSET_COMMIT_KEY,
                WrongType,
                "OffsetCommitKey v0: partition is of type string, expected int",
            ),
            (
                pa.array([{"group": b"g", "topic": "t", "partition": 3}]),
                OFFSET_COMMIT_KEY,
                WrongType,
                "OffsetCommitKey v0: group is of type binary, expected string",
            ),
            (
                pa.array(["g"]),
                OFFSET_COMMIT_KEY,
                WrongType,
                "OffsetCommitKey v0: the message is of type string, expected struct",
            ),
            (
                pa.StructArray.from_arrays([pa.array(["a"]), pa.array(["b"])], ["group", "group"]),
                OFFSET_COMMIT_KEY,
                WrongType,
                "OffsetCommitKey v0: group is of type 2 fields of that name, expected one field",
            ),
            (
                pa.array([{"group": "g", "topic": "t", "partition": 3, "unknown_tagged_fields": [{"tag": 1}]}]),
                OFFSET_COMMIT_KEY,
                WrongType,
                "OffsetCommitKey v0: unknown_tagged_fields is of type array<struct<tag:bigint>>, "
                "expected array<struct<tag:int,data:binary>>",
            ),
            (
                pa.array([{"assigned_partitions": [{"topic": "t"}], "user_data": None}]),
                CONSUMER_PROTOCOL_ASSIGNMENT,
                MissingField,
                "ConsumerProtocolAssignment v0: assigned_partitions[] lacks the field 'partitions'",
            ),
            (
                pa.array([{"assigned_partitions": [MEMBER | {"replica": 1}], "user_data": None}]),
                CONSUMER_PROTOCOL_ASSIGNMENT,
                UnknownField,
                "ConsumerProtocolAssignment v0: assigned_partitions[] has the key 'replica', which is not a field of "
                "it",
            ),
            (
                pa.array([{"assigned_partitions": [MEMBER | {"partitions": [1.5]}], "user_data": None}]),
                CONSUMER_PROTOCOL_ASSIGNMENT,
                WrongType,
                "ConsumerProtocolAssignment v0: assigned_partitions[].partitions[] is of type double, expected int",
            ),
            (
                pa.array([{"assigned_partitions": [MEMBER | {"partitions": 1}], "user_data": None}]),
                CONSUMER_PROTOCOL_ASSIGNMENT,
                WrongType,
                "ConsumerProtocolAssignment v0: assigned_partitions[].partitions is of type bigint, expected array",
            ),
            (
                pa.array([{"assigned_partitions": ["t"], "user_data": None}]),
                CONSUMER_PROTOCOL_ASSIGNMENT,
                WrongType,
                "ConsumerProtocolAssignment v0: assigned_partitions[] is of type string, expected struct",
            ),
        ],
    )
    @pytest.mark.parametrize("fails_fast", [True, False])
    def test_that_do_not_fit(
        self, column: pa.Array, schema: MessageSchema, error: type[EncodeError], message: str, fails_fast: bool
    ) -> None:
        with pytest.raises(error) as caught:
            _encoder(schema, 0, fails_fast)(column)
        assert str(caught.value) == message

    @pytest.mark.parametrize(
        ("version", "missing"),
        [(0, ()), (1, ("expire_timestamp",)), (3, ("leader_epoch",)), (4, ("leader_epoch",))],
    )
    def test_a_version_wants_its_own_fields_but_not_the_tagged(self, version: int, missing: tuple[str, ...]) -> None:
        fields: dict[str, Any] = {"offset": 42, "metadata": "", "commit_timestamp": 5}
        for name in missing:
            with pytest.raises(MissingField) as caught:
                _encoder(OFFSET_COMMIT_VALUE, version)(pa.array([fields]))
            assert str(caught.value) == f"OffsetCommitValue v{version}: the message lacks the field {name!r}"
        fields |= dict.fromkeys(missing, -1)
        assert len(_encoder(OFFSET_COMMIT_VALUE, version)(pa.array([fields]))[0].as_py()) > 17

    def test_only_the_versions_of_rows_with_a_value_count(self) -> None:
        column = pa.array([{"offset": 42, "metadata": "", "commit_timestamp": 5}, None])
        found = _encoder(OFFSET_COMMIT_VALUE, None)(column, pa.array([0, 3], pa.int32()))
        assert found.to_pylist() == [bytes.fromhex("000000000000002a" "0000" "0000000000000005"), None]
