"""Encoding by schema: what is refused, with complete messages, and what tagged fields leave out."""

from __future__ import annotations

import math
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_records_runtime import errors
from kafka_records_runtime.errors import EncodeError
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.messages import json_form
from kafka_records_runtime.schema import EMPTY_STRUCT, FieldSchema, MessageSchema, StructSchema
from kafka_records_runtime.wire import walker
from tests.runtime.spec_schemas import all_schemas, language_schemas

MEMBER: dict[str, Any] = {"member_id": "m"}

REFUSED: list[tuple[str, int, Any, type[EncodeError], str]] = [
    (
        "SimpleExampleMessage", 0, {"my_string": "x"}, errors.FieldNotInVersion,
        "SimpleExampleMessage v0: my_string is set, but this version has no such field",
    ),
    (
        "TransactionLogValue", 0, {"next_producer_id": 7}, errors.FieldNotInVersion,
        "TransactionLogValue v0: next_producer_id is set, but this version has no such field",
    ),
    (
        "OffsetCommitValue", 3, {"metadata": None}, errors.NullNotAllowed,
        "OffsetCommitValue v3: metadata is None, which this version does not allow",
    ),
    (
        "GroupMetadataValue", 3, {"members": (MEMBER, None)}, errors.NullNotAllowed,
        "GroupMetadataValue v3: members[1] is None, which this version does not allow",
    ),
    (
        "GroupMetadataValue", 3, None, errors.NullNotAllowed,
        "GroupMetadataValue v3: the message is None, which this version does not allow",
    ),
    (
        "ConsumerProtocolSubscription", 0, {"topics": ("a", None)}, errors.NullNotAllowed,
        "ConsumerProtocolSubscription v0: topics[1] is None, which this version does not allow",
    ),
    (
        "OffsetCommitValue", 3, {"leader_epoch": 2**31}, errors.ValueOutOfRange,
        "OffsetCommitValue v3: leader_epoch is 2147483648, but int32 holds -2147483648 to 2147483647",
    ),
    (
        "StreamsGroupMemberMetadataValue", 0, {"user_endpoint": {"port": -1}}, errors.ValueOutOfRange,
        "StreamsGroupMemberMetadataValue v0: user_endpoint.port is -1, but uint16 holds 0 to 65535",
    ),
    (
        "SimpleExampleMessage", 2, {"my_float64": 10**400}, errors.ValueOutOfRange,
        "SimpleExampleMessage v2: my_float64 is 2**1328, but float64 holds -2**1024 to 2**1024",
    ),
    (
        "OffsetCommitValue", 3, {"offset": 1.0}, errors.WrongType,
        "OffsetCommitValue v3: offset is of type float, expected int",
    ),
    (
        "OffsetCommitValue", 3, {"metadata": b"m"}, errors.WrongType,
        "OffsetCommitValue v3: metadata is of type bytes, expected str",
    ),
    (
        "GroupMetadataValue", 3, {"members": (MEMBER | {"assignment": bytearray(b"a")},)}, errors.WrongType,
        "GroupMetadataValue v3: members[0].assignment is of type bytearray, expected bytes",
    ),
    (
        "GroupMetadataValue", 3, {"members": "abc"}, errors.WrongType,
        "GroupMetadataValue v3: members is of type str, expected tuple",
    ),
    (
        "GroupMetadataValue", 3, {"members": (7,)}, errors.WrongType,
        "GroupMetadataValue v3: members[0].member_id is of type int, expected a struct with member_id",
    ),
    (
        "OffsetCommitValue", 4, {"topic_id": "MKXx1fIkQy2J9jXHhK8m1w"}, errors.WrongType,
        "OffsetCommitValue v4: topic_id is of type str, expected Uuid",
    ),
    (
        "OffsetCommitValue", 4, {"topic_id": bytes(15)}, errors.WrongLength,
        "OffsetCommitValue v4: topic_id has 15 bytes, but a uuid has 16",
    ),
    (
        "OffsetCommitValue", 4, {"metadata": "é" * 16384}, errors.TextTooLong,
        "OffsetCommitValue v4: metadata takes 32768 bytes of UTF-8, more than the limit of 32767",
    ),
    (
        "OffsetCommitValue", 3, {"metadata": "ab\ud800"}, errors.InvalidText,
        "OffsetCommitValue v3: metadata has a lone surrogate at character 2",
    ),
    (
        "OffsetCommitValue", 3, {"ofset": 1}, errors.UnknownField,
        "OffsetCommitValue v3: the message has the key 'ofset', which is not a field of it",
    ),
    (
        "GroupMetadataValue", 3, {"members": ({"id": "m"},)}, errors.UnknownField,
        "GroupMetadataValue v3: members[0] has the key 'id', which is not a field of it",
    ),
    (
        "OffsetCommitValue", 3, {"unknown_tagged_fields": ((7, b"x"),)}, errors.TagsNotSupported,
        "OffsetCommitValue v3: unknown_tagged_fields is not empty, but this version has no tagged fields",
    ),
    (
        "GroupMetadataValue", 3, {"members": (MEMBER | {"unknown_tagged_fields": ((7, b"x"),)},)},
        errors.TagsNotSupported,
        "GroupMetadataValue v3: members[0].unknown_tagged_fields is not empty, "
        "but this version has no tagged fields",
    ),
    (
        "OffsetCommitValue", 4, {"unknown_tagged_fields": ((7, b""), (5, b""))}, errors.TagsUnsorted,
        "OffsetCommitValue v4: unknown_tagged_fields[1] has tag 5 after tag 7, but tags must ascend without repeats",
    ),
    (
        "OffsetCommitValue", 4, {"unknown_tagged_fields": ((7, b""), (7, b""))}, errors.TagsUnsorted,
        "OffsetCommitValue v4: unknown_tagged_fields[1] has tag 7 after tag 7, but tags must ascend without repeats",
    ),
    (
        "OffsetCommitValue", 4, {"unknown_tagged_fields": ((0, b""),)}, errors.TagClash,
        "OffsetCommitValue v4: unknown_tagged_fields[0] has tag 0, which belongs to topic_id",
    ),
    (
        "SimpleExampleMessage", 1, {"unknown_tagged_fields": ((9, b""),)}, errors.TagClash,
        "SimpleExampleMessage v1: unknown_tagged_fields[0] has tag 9, "
        "which belongs to tagged_long_flexible_version_subset",
    ),
    (
        "OffsetCommitValue", 4, {"unknown_tagged_fields": ((-1, b""),)}, errors.ValueOutOfRange,
        "OffsetCommitValue v4: unknown_tagged_fields[0] is -1, but a tag holds 0 to 2147483646",
    ),
    (
        "OffsetCommitValue", 4, {"unknown_tagged_fields": ((2**31 - 1, b""),)}, errors.ValueOutOfRange,
        "OffsetCommitValue v4: unknown_tagged_fields[0] is 2147483647, but a tag holds 0 to 2147483646",
    ),
    (
        "OffsetCommitValue", 4, {"unknown_tagged_fields": ((True, b""),)}, errors.WrongType,
        "OffsetCommitValue v4: unknown_tagged_fields[0] is of type bool, expected int",
    ),
    (
        "OffsetCommitValue", 4, {"unknown_tagged_fields": (5,)}, errors.WrongType,
        "OffsetCommitValue v4: unknown_tagged_fields[0] is of type int, expected a pair of int and bytes",
    ),
    (
        "OffsetCommitValue", 4, {"unknown_tagged_fields": ((5, "x"),)}, errors.WrongType,
        "OffsetCommitValue v4: unknown_tagged_fields[0] is of type str, expected bytes",
    ),
    (
        "OffsetCommitValue", 4, {"unknown_tagged_fields": None}, errors.NullNotAllowed,
        "OffsetCommitValue v4: unknown_tagged_fields is None, which this version does not allow",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "version", "value", "kind", "text"), REFUSED)
def test_refused(name: str, version: int, value: Any, kind: type[EncodeError], text: str) -> None:
    with pytest.raises(EncodeError) as caught:
        walker.encode(all_schemas()[name], value, version)
    assert type(caught.value) is kind
    assert str(caught.value) == text


def test_bools_take_bools_only() -> None:
    schema = MessageSchema(1, "Flag", (0, 0), None, (StructSchema("Flag", (FieldSchema("on", "on", "bool", (0, 0)),)),))
    assert walker.encode(schema, {"on": True}, 0) == b"\x01"
    for value in (0, 1, None, "true"):
        with pytest.raises(EncodeError):
            walker.encode(schema, {"on": value}, 0)


def test_a_bool_is_a_number_as_everywhere_in_python() -> None:
    schema = language_schemas()["SimpleExampleMessage"]
    assert walker.encode(schema, {"my_int16": True}, 1) == walker.encode(schema, {"my_int16": 1}, 1)
    assert json_form.to_json(schema, walker.default_value(schema) | {"my_int16": True}, 1)["myInt16"] == 1


def test_subclasses_of_primitives_are_fine() -> None:
    class Epoch(IntEnum):
        TEN = 10

    schema = all_schemas()["OffsetCommitValue"]
    raw = bytes.fromhex("30a5f1d5f224432d89f635c784af26d7")
    data = walker.encode(schema, {"leader_epoch": Epoch.TEN, "topic_id": raw}, 4)
    assert data == walker.encode(schema, {"leader_epoch": 10, "topic_id": Uuid(raw)}, 4)


def test_objects_and_dicts_give_the_same_bytes() -> None:
    schema = all_schemas()["GroupMetadataKey"]
    assert walker.encode(schema, SimpleNamespace(group="g"), 0) == walker.encode(schema, {"group": "g"}, 0)
    with pytest.raises(errors.WrongType) as caught:
        walker.encode(schema, SimpleNamespace(), 0)
    assert str(caught.value) == ("GroupMetadataKey v0: group is of type SimpleNamespace, expected a struct with group")


def test_a_dict_may_leave_members_out() -> None:
    schema = all_schemas()["OffsetCommitValue"]
    for version in range(5):
        assert walker.encode(schema, {}, version) == walker.encode(schema, walker.default_value(schema), version)


def test_ignorable_fields_are_dropped() -> None:
    schema = all_schemas()["OffsetCommitValue"]
    value = {"leader_epoch": 9, "expire_timestamp": 9, "topic_id": Uuid(bytes(15) + b"\x01")}
    assert walker.encode(schema, value, 0) == walker.encode(schema, {}, 0)


def test_known_and_unknown_tags_are_merged_in_order() -> None:
    schema = language_schemas()["SimpleArraysMessage"]
    assert walker.encode(schema, {"unknown_tagged_fields": ((0, b""), (7, b"\xaa"))}, 1).hex() == "01010200000701aa"
    schema = all_schemas()["ShareUpdateValue"]
    value = {"delivery_complete_count": 1, "unknown_tagged_fields": ((1, b"x"), (300, b""))}
    data = walker.encode(schema, value, 0)
    assert data.hex().endswith("03 00 04 00000001 01 01 78 ac02 00".replace(" ", ""))
    assert walker.decode(schema, data, 0)[0]["unknown_tagged_fields"] == ((1, b"x"), (300, b""))


# -- defaults of tagged fields -------------------------------------------------------------------

TAGGED = MessageSchema(
    1,
    "Tagged",
    (0, 0),
    (0, 0),
    (
        StructSchema("Inner", (FieldSchema("i", "i", "int32", (0, 0)),)),
        StructSchema(
            "Tagged",
            (
                FieldSchema("nan", "nan", "float64", (0, 0), tag=0, tagged=(0, 0), default=math.nan),
                FieldSchema("half", "half", "float64", (0, 0), tag=1, tagged=(0, 0), default=0.0),
                FieldSchema("list", "list", "[]int8", (0, 0), nullable=(0, 0), tag=2, tagged=(0, 0)),
                FieldSchema("raw", "raw", "bytes", (0, 0), nullable=(0, 0), tag=3, tagged=(0, 0), default=None),
                FieldSchema("inner", "inner", "Inner", (0, 0), tag=4, tagged=(0, 0), default=EMPTY_STRUCT),
                FieldSchema("flag", "flag", "bool", (0, 0), tag=5, tagged=(0, 0), default=True),
            ),
        ),
    ),
)
NAN_PAYLOAD = "0008" + "7ff8000000000000"


@pytest.mark.parametrize(
    ("value", "rest"),
    [
        ({}, "01" + NAN_PAYLOAD),
        ({"nan": 1.5}, "010008" + "3ff8000000000000"),
        ({"half": -0.0}, "01" + NAN_PAYLOAD),
        ({"half": 0}, "01" + NAN_PAYLOAD),
        ({"half": 0.5}, "02" + NAN_PAYLOAD + "0108" + "3fe0000000000000"),
        ({"list": []}, "01" + NAN_PAYLOAD),
        ({"list": None}, "02" + NAN_PAYLOAD + "020100"),
        ({"list": (1,)}, "02" + NAN_PAYLOAD + "02020201"),
        ({"raw": b""}, "02" + NAN_PAYLOAD + "030101"),
        ({"inner": {}}, "01" + NAN_PAYLOAD),
        ({"inner": {"i": 0, "unknown_tagged_fields": ()}}, "01" + NAN_PAYLOAD),
        ({"inner": {"unknown_tagged_fields": ((0, b""),)}}, "02" + NAN_PAYLOAD + "0407" + "00000000010000"),
        ({"inner": SimpleNamespace(i=0, unknown_tagged_fields=())}, "01" + NAN_PAYLOAD),
        ({"inner": SimpleNamespace(i=1, unknown_tagged_fields=())}, "02" + NAN_PAYLOAD + "0405" + "0000000100"),
        ({"flag": False}, "02" + NAN_PAYLOAD + "050100"),
    ],
)
def test_a_tagged_field_at_its_default_is_left_out(value: dict[str, Any], rest: str) -> None:
    assert walker.encode(TAGGED, value, 0).hex() == rest


def test_null_in_a_tagged_struct_that_is_not_nullable() -> None:
    with pytest.raises(errors.NullNotAllowed) as caught:
        walker.encode(TAGGED, {"inner": None}, 0)
    assert str(caught.value) == "Tagged v0: inner is None, which this version does not allow"
