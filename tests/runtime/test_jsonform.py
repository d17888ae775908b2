"""The JSON form: refusals with complete messages, and the corners the vectors do not reach."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_records_runtime import errors
from kafka_records_runtime.errors import EncodeError, JsonError
from kafka_records_runtime.messages import json_form
from kafka_records_runtime.schema import FieldSchema, MessageSchema, StructSchema
from kafka_records_runtime.wire import walker
from tests.runtime.spec_schemas import all_schemas, language_schemas

COMMIT = {"offset": 1, "leaderEpoch": 2, "metadata": "m", "commitTimestamp": 3}
ENDPOINT: dict[str, Any] = {
    "instanceId": None,
    "rackId": None,
    "clientId": "",
    "clientHost": "",
    "rebalanceTimeoutMs": 0,
    "topologyEpoch": 0,
    "processId": "",
    "userEndpoint": {"host": "", "port": 1},
    "clientTags": [],
}

REFUSED: list[tuple[str, int, Any, str]] = [
    (
        "OffsetCommitValue", 3, {"offset": 1, "metadata": "", "commitTimestamp": 3},
        "leaderEpoch is missing, but this version requires it",
    ),
    ("OffsetCommitValue", 3, [], "the message is an array, expected an object"),
    ("OffsetCommitValue", 3, COMMIT | {"offset": True}, "offset is a bool, expected a whole number"),
    ("OffsetCommitValue", 3, COMMIT | {"offset": 1.0}, "offset is a number, expected a whole number"),
    ("OffsetCommitValue", 3, COMMIT | {"offset": "1"}, "offset is text, expected a whole number"),
    (
        "OffsetCommitValue", 3, COMMIT | {"leaderEpoch": 2**31},
        "leaderEpoch is outside the range -2147483648 to 2147483647 of int32",
    ),
    (
        "OffsetCommitValue", 3, COMMIT | {"metadata": None},
        "metadata is null, which this version does not allow",
    ),
    ("OffsetCommitValue", 3, COMMIT | {"metadata": 5}, "metadata is a number, expected text"),
    ("OffsetCommitValue", 4, COMMIT | {"topicId": {}}, "topicId is an object, expected text"),
    (
        "OffsetCommitValue", 4, COMMIT | {"topicId": "AAAA"},
        "topicId is not a uuid: write 22 characters of URL-safe base64",
    ),
    (
        "ConsumerProtocolAssignment", 0, {"assignedPartitions": {}, "userData": None},
        "assignedPartitions is an object, expected an array",
    ),
    (
        "ConsumerProtocolAssignment", 0, {"assignedPartitions": [], "userData": "?"},
        "userData is not base64",
    ),
    (
        "ConsumerProtocolAssignment", 0,
        {"assignedPartitions": [{"topic": "t", "partitions": [1, None]}], "userData": None},
        "assignedPartitions[0].partitions[1] is null, expected a whole number",
    ),
    (
        "StreamsGroupMemberMetadataValue", 0, ENDPOINT | {"userEndpoint": {"host": ""}},
        "userEndpoint.port is missing, but this version requires it",
    ),
    (
        "StreamsGroupMemberMetadataValue", 0, ENDPOINT | {"userEndpoint": {"host": "", "port": 65536}},
        "userEndpoint.port is outside the range 0 to 65535 of uint16",
    ),
    (
        "StreamsGroupCurrentMemberAssignmentValue", 0, {"memberEpoch": 0, "previousMemberEpoch": 0, "state": 128},
        "state is outside the range -128 to 127 of int8",
    ),
    (
        "OffsetCommitValue", 3, COMMIT | {"ofset": 1},
        "the message has the key 'ofset', which is not a field; did you mean offset?",
    ),
    (
        "OffsetCommitValue", 3, COMMIT | {"unknown_tagged_fields": []},
        "the message has the key 'unknown_tagged_fields', which is not a field",
    ),
    (
        "StreamsGroupMemberMetadataValue", 0, ENDPOINT | {"userEndpoint": {"host": "", "port": 1, 2: 3}},
        "userEndpoint has the key 2, which is not a field",
    ),
    (
        "OffsetCommitValue", 4, COMMIT | {"unknown_tagged_fields": {}},
        "unknown_tagged_fields is an object, expected an array",
    ),
    (
        "OffsetCommitValue", 4, COMMIT | {"unknown_tagged_fields": [{"tag": 7}]},
        "unknown_tagged_fields may contain only objects with tag and data",
    ),
    (
        "OffsetCommitValue", 4, COMMIT | {"unknown_tagged_fields": [{"tag": "7", "data": ""}]},
        "unknown_tagged_fields is text, expected a whole number",
    ),
    (
        "OffsetCommitValue", 4, COMMIT | {"unknown_tagged_fields": [{"tag": 7, "data": "?"}]},
        "unknown_tagged_fields is not base64",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "version", "data", "text"), REFUSED)
def test_refused(name: str, version: int, data: Any, text: str) -> None:
    with pytest.raises(JsonError) as caught:
        json_form.from_json(all_schemas()[name], data, version)
    assert str(caught.value) == f"{name} v{version}: {text}"


def test_versions_are_checked_first() -> None:
    schema = all_schemas()["OffsetCommitValue"]
    with pytest.raises(errors.UnsupportedVersion):
        json_form.from_json(schema, {}, 5)
    with pytest.raises(errors.UnsupportedVersion):
        json_form.to_json(schema, {}, -1)


def test_a_field_of_another_version_is_taken_as_kafka_takes_it() -> None:
    schema = all_schemas()["OffsetCommitValue"]
    value = json_form.from_json(schema, COMMIT | {"expireTimestamp": 9}, 3)
    assert value["expire_timestamp"] == 9
    assert json_form.from_json(schema, COMMIT, 4)["unknown_tagged_fields"] == ()


def test_classes_take_the_place_of_dicts() -> None:
    schema = all_schemas()["ConsumerProtocolAssignment"]
    classes = {"ConsumerProtocolAssignment": SimpleNamespace, "TopicPartition": SimpleNamespace}
    data = {"assignedPartitions": [{"topic": "t", "partitions": [1]}], "userData": "AQI="}
    value = json_form.from_json(schema, data, 0, classes)
    assert value.assigned_partitions[0].partitions == (1,)
    assert value.user_data == b"\x01\x02"
    assert json_form.to_json(schema, value, 0) == data


def test_tagged_fields_stand_at_their_declared_place() -> None:
    schema = all_schemas()["TransactionLogValue"]
    value = walker.default_value(schema) | {"previous_producer_id": 1, "next_producer_id": 2}
    assert json.dumps(json_form.to_json(schema, value, 1)) == (
        '{"producerId": 0, "previousProducerId": 1, "nextProducerId": 2, "producerEpoch": 0, '
        '"transactionTimeoutMs": 0, "transactionStatus": 0, "transactionPartitions": [], '
        '"transactionLastUpdateTimestampMs": 0, "transactionStartTimestampMs": 0}'
    )


@pytest.mark.parametrize(
    ("name", "version", "value", "text"),
    [
        (
            "TransactionLogValue", 0, {"next_producer_id": 1},
            "TransactionLogValue v0: next_producer_id is set, but this version has no such field",
        ),
        (
            "ConsumerProtocolAssignment", 0, {"assigned_partitions": ({"topic": 5},)},
            "ConsumerProtocolAssignment v0: assigned_partitions[0].topic is of type int, expected str",
        ),
        (
            "ConsumerProtocolAssignment", 0, {"assigned_partitions": ({}, None)},
            "ConsumerProtocolAssignment v0: assigned_partitions[1] is None, which this version does not allow",
        ),
        (
            "ConsumerProtocolAssignment", 0, {"assigned_partitions": None},
            "ConsumerProtocolAssignment v0: assigned_partitions is None, which this version does not allow",
        ),
        (
            "ConsumerProtocolAssignment", 0, {"assigned_partitions": "t"},
            "ConsumerProtocolAssignment v0: assigned_partitions is of type str, expected tuple",
        ),
        (
            "ConsumerProtocolAssignment", 0, {"nobody": 1},
            "ConsumerProtocolAssignment v0: the message has the key 'nobody', which is not a field of it",
        ),
        ("OffsetCommitValue", 3, None, "OffsetCommitValue v3: the message is None, which this version does not allow"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_printed(name: str, version: int, value: Any, text: str) -> None:
    with pytest.raises(EncodeError) as caught:
        json_form.to_json(all_schemas()[name], value, version)
    assert str(caught.value) == text


FLOATS = MessageSchema(
    1, "Floats", (0, 0), None, (StructSchema("Floats", (FieldSchema("f", "f", "float64", (0, 0)),)),)
)


@pytest.mark.parametrize(
    ("value", "printed"),
    [(1.5, 1.5), (math.inf, "Infinity"), (-math.inf, "-Infinity"), (1e300, 1e300), (0.0, 0.0)],
)
def test_floats(value: float, printed: object) -> None:
    assert json_form.to_json(FLOATS, {"f": value}, 0) == {"f": printed}
    assert json_form.from_json(FLOATS, {"f": printed}, 0) == {"f": value}


def test_nan_and_whole_numbers_as_floats() -> None:
    assert json_form.to_json(FLOATS, {"f": math.nan}, 0) == {"f": "NaN"}
    assert math.isnan(json_form.from_json(FLOATS, {"f": "NaN"}, 0)["f"])
    found = json_form.from_json(FLOATS, {"f": 3}, 0)["f"]
    assert (found, type(found)) == (3.0, float)
    for bad in ("inf", True, 10**400):
        with pytest.raises(JsonError):
            json_form.from_json(FLOATS, {"f": bad}, 0)


def test_bools() -> None:
    schema = MessageSchema(1, "Flag", (0, 0), None, (StructSchema("Flag", (FieldSchema("on", "on", "bool", (0, 0)),)),))
    assert json_form.to_json(schema, {"on": True}, 0) == {"on": True}
    assert json_form.from_json(schema, {"on": False}, 0) == {"on": False}
    with pytest.raises(JsonError) as caught:
        json_form.from_json(schema, {"on": 1}, 0)
    assert str(caught.value) == "Flag v0: on is a number, expected true or false"


def test_records_are_printed_as_base64_or_as_kafka_prints_them_as_empty_text() -> None:
    schema = language_schemas()["SimpleRecordsMessage"]
    assert json_form.to_json(schema, {"record_set": b"batch"}, 1) == {"topic": "", "recordSet": "YmF0Y2g="}
    assert json_form.to_json(schema, {"record_set": b"batch"}, 1, lossy=True) == {"topic": "", "recordSet": ""}
    assert json_form.to_json(schema, {"record_set": None}, 1) == {"topic": "", "recordSet": None}
    assert json_form.from_json(schema, {"topic": "", "recordSet": "YmF0Y2g="}, 1)["record_set"] == b"batch"
    assert json_form.from_json(schema, {"topic": "", "recordSet": ""}, 1)["record_set"] == b""
    assert json_form.from_json(schema, {"topic": "", "recordSet": None}, 1)["record_set"] is None


def test_unknown_tagged_fields_are_the_last_member_of_their_struct() -> None:
    schema = all_schemas()["OffsetCommitValue"]
    value = json_form.from_json(schema, COMMIT, 4) | {"unknown_tagged_fields": ((7, b"\x01\x02"), (9, b""))}
    shown = json_form.to_json(schema, value, 4)
    assert shown == COMMIT | {"unknown_tagged_fields": [{"tag": 7, "data": "AQI="}, {"tag": 9, "data": ""}]}
    assert json_form.from_json(schema, shown, 4) == value
    assert json_form.to_json(schema, value, 4, lossy=True) == COMMIT
    with pytest.raises(errors.TagsNotSupported):
        json_form.to_json(schema, value, 3)
