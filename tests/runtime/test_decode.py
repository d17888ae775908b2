"""Decoding by schema: complete messages for each diagnosis, and what a lenient reader makes of the same bytes."""

from __future__ import annotations

import pickle
import time
import tracemalloc
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_records_runtime import errors
from kafka_records_runtime.errors import DecodeError
from kafka_records_runtime.kafka.uuids import ZERO_UUID, Uuid
from kafka_records_runtime.schema import FieldSchema, MessageSchema, StructSchema
from kafka_records_runtime.wire import walker
from kafka_records_runtime.wire.leniency import Leniency
from tests.runtime.spec_schemas import all_schemas, build, language_schemas

REFUSED: list[tuple[str, int, str, type[DecodeError], str, str | None]] = [
    (
        "OffsetCommitValue", 3, "0000000000000064 0000000a 0008 6d657461",
        errors.BufferUnderflow, "OffsetCommitValue v3 at byte 14: metadata needs 8 bytes, but 4 are left", None,
    ),
    (
        "OffsetCommitValue", 3, "0000000000000064 0000",
        errors.BufferUnderflow, "OffsetCommitValue v3 at byte 8: leader_epoch needs 4 bytes, but 2 are left", None,
    ),
    (
        "OffsetCommitValue", 4, "0000000000000064 0000000a 8080",
        errors.BufferUnderflow, "OffsetCommitValue v4 at byte 12: metadata needs 3 bytes, but 2 are left", None,
    ),
    (
        "GroupMetadataValue", 3,
        "0000 00000001 ffff ffff 0000000000000000 00000001 0001 6d ffff 0001 63 0028 " + "61" * 14,
        errors.BufferUnderflow,
        "GroupMetadataValue v3 at byte 32: members[0].client_host needs 40 bytes, but 14 are left", None,
    ),
    (
        "GroupMetadataKey", 0, "ffff",
        errors.UnexpectedNull, "GroupMetadataKey v0 at byte 0: group is null, which this version does not allow",
        None,
    ),
    (
        "SimpleArraysMessage", 1, "01 00",
        errors.UnexpectedNull, "SimpleArraysMessage v1 at byte 1: sheep is null, which this version does not allow",
        None,
    ),
    (
        "GroupMetadataValue", 0, "0000 00000001 fffe 0000 00000000",
        errors.NegativeLength, "GroupMetadataValue v0 at byte 6: protocol has the negative length -2",
        Leniency.NEGATIVE_LENGTH,
    ),
    (
        "ConsumerProtocolAssignment", 0, "00000000 80000000",
        errors.NegativeLength,
        "ConsumerProtocolAssignment v0 at byte 4: user_data has the negative length -2147483648",
        Leniency.NEGATIVE_LENGTH,
    ),
    (
        "TransactionLogValue", 1,
        "0000000000000000 0000 00000000 00 ffffffff0f 0000000000000000 0000000000000000 00",
        errors.NegativeLength,
        "TransactionLogValue v1 at byte 15: transaction_partitions has the negative length -2",
        Leniency.NEGATIVE_LENGTH,
    ),
    (
        "SimpleArraysMessage", 0, "00000003 0000000000000000",
        errors.CountTooLarge,
        "SimpleArraysMessage v0 at byte 0: sheep claims 3 elements, but the remaining bytes hold at most 2", None,
    ),
    (
        "SimpleArraysMessage", 1, "03 0100 01",
        errors.CountTooLarge,
        "SimpleArraysMessage v1 at byte 0: goats claims 2 elements, but the remaining bytes hold at most 1", None,
    ),
    (
        "OffsetCommitValue", 4, "00" * 12 + "818002" + "61" * 32768 + "00" * 9,
        errors.StringTooLong,
        "OffsetCommitValue v4 at byte 15: metadata is a string of 32768 bytes, more than the limit of 32767", None,
    ),
    (
        "GroupMetadataKey", 0, "0005 61ed a08062",
        errors.InvalidUtf8,
        "GroupMetadataKey v0 at byte 3: group is not UTF-8: invalid continuation byte", Leniency.INVALID_UTF8,
    ),
    (
        "SimpleArraysMessage", 1, "ffffffffff01",
        errors.InvalidVarint,
        "SimpleArraysMessage v1 at byte 0: goats has a varint of more than 5 bytes", None,
    ),
    (
        "SimpleArraysMessage", 1, "8180808010 01 00",
        errors.InvalidVarint,
        "SimpleArraysMessage v1 at byte 0: goats has a varint with bits above the 32nd", Leniency.VARINT_BITS,
    ),
    (
        "NullableStructMessage", 0, "7f 0001 73 00000001 0000 00000000",
        errors.InvalidMarker,
        "NullableStructMessage v0 at byte 0: nullable_struct starts with marker 127, "
        "but a nullable struct has -1 (null) or 1",
        Leniency.STRUCT_MARKER,
    ),
    (
        "NullableStructMessage", 1, "ff ff 01 00 01 05",
        errors.InvalidMarker,
        "NullableStructMessage v1 at byte 5: nullable_struct3 starts with marker 5, "
        "but a nullable struct has 0 (null) or 1",
        None,
    ),
    (
        "SimpleExampleMessage", 1,
        "00000000000000000000000000000000 01 01 0000007b 0000007b 00 0000007b 0000007b 00 80e8 0012d687"
        "01 09 08 0000000000000000",
        errors.InvalidTag,
        "SimpleExampleMessage v1 at byte 43: tagged_fields has tag 9, "
        "but tagged_long_flexible_version_subset is not tagged in this version",
        None,
    ),
    (
        "SimpleArraysMessage", 1, "01 01 01 ffffffff07 01 aa",
        errors.InvalidTag,
        "SimpleArraysMessage v1 at byte 3: tagged_fields[2147483647] has tag 2147483647, "
        "but the largest that can be written is 2147483646",
        Leniency.TAG_NUMBER,
    ),
    (
        "SimpleArraysMessage", 1, "02 07 02 05 00 05 00 01 00",
        errors.DuplicateTag, "SimpleArraysMessage v1 at byte 5: goats[0].tagged_fields has tag 5 twice",
        Leniency.REPEATED_TAG,
    ),
    (
        "SimpleArraysMessage", 1, "01 01 02 07 00 05 00",
        errors.TagOrder,
        "SimpleArraysMessage v1 at byte 5: tagged_fields has tag 5 after tag 7, but tags must ascend",
        Leniency.TAG_ORDER,
    ),
    (
        "OffsetCommitValue", 4, "00" * 12 + "01" + "00" * 8 + "01 00 0f" + "00" * 15 + "01",
        errors.TagSizeMismatch,
        "OffsetCommitValue v4 at byte 23: topic_id is tag 0 of 15 bytes, but its value takes 16", Leniency.TAG_SIZE,
    ),
    (
        "OffsetCommitValue", 4, "00" * 12 + "01" + "00" * 8 + "01 05 04 0000",
        errors.BufferUnderflow,
        "OffsetCommitValue v4 at byte 24: tagged_fields[5] needs 4 bytes, but 2 are left", None,
    ),
    (
        "OffsetCommitValue", 4, "00" * 12 + "01" + "00" * 8,
        errors.BufferUnderflow, "OffsetCommitValue v4 at byte 21: tagged_fields needs 1 byte, but 0 are left", None,
    ),
    (
        "SimpleArraysMessage", 1, "01 01 ffffffff0f 00",
        errors.CountTooLarge,
        "SimpleArraysMessage v1 at byte 2: tagged_fields claims 4294967295 elements, "
        "but the remaining bytes hold at most 0",
        Leniency.TAG_COUNT,
    ),
    (
        "GroupMetadataKey", 0, "0001 61 0000",
        errors.TrailingBytes, "GroupMetadataKey v0 at byte 3: the message ends here, but is followed by 2 bytes",
        Leniency.TRAILING_BYTES,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "version", "data", "kind", "text", "leniency"), REFUSED)
def test_refused(name: str, version: int, data: str, kind: type[DecodeError], text: str, leniency: str | None) -> None:
    schema, raw = all_schemas()[name], bytes.fromhex(data)
    with pytest.raises(DecodeError) as caught:
        walker.decode(schema, raw, version)
    assert type(caught.value) is kind
    assert str(caught.value) == text
    assert str(pickle.loads(pickle.dumps(caught.value))) == text
    if leniency is None:
        with pytest.raises(DecodeError):
            walker.decode(schema, raw, version, lenient=True)
    else:
        found: list[str] = []
        walker.decode(schema, raw, version, lenient=True, leniencies=found)
        assert leniency in found
        walker.decode(schema, raw, version, lenient=True)


@pytest.mark.parametrize(
    ("name", "version", "data", "kind", "text", "leniency"),
    [line for line in REFUSED if line[3] is not errors.TrailingBytes],
)
def test_the_walk_ends_at_the_same_error(
    name: str, version: int, data: str, kind: type[DecodeError], text: str, leniency: str | None
) -> None:
    steps = walker.walk(all_schemas()[name], version, bytes.fromhex(data))
    seen: list[walker.TrailStep] = []
    with pytest.raises(kind) as caught:
        seen.extend(steps)
    assert str(caught.value) == text
    assert seen == sorted(seen, key=lambda step: step.offset)


@pytest.mark.parametrize("version", [-1, 5, 32767])
def test_versions_are_checked_first(version: int) -> None:
    schema = all_schemas()["OffsetCommitValue"]
    text = f"OffsetCommitValue has no version {version}: its versions are 0 to 4"
    for call in (
        lambda: walker.decode(schema, b"", version),
        lambda: walker.decode(schema, b"", version, lenient=True),
        lambda: list(walker.walk(schema, version, b"")),
        lambda: walker.encode(schema, {}, version),
    ):
        with pytest.raises(errors.UnsupportedVersion) as caught:
            call()
        assert str(caught.value) == text


def test_the_tree_of_values() -> None:
    schema = all_schemas()["GroupMetadataValue"]
    raw = bytes.fromhex("0000 00000001 ffff ffff 00000001 0001 6d 0000 0000 00000007 00000001 aa 00000000")
    assert walker.decode(schema, raw, 0) == (
        {
            "protocol_type": "",
            "generation": 1,
            "protocol": None,
            "leader": None,
            "current_state_timestamp": -1,
            "members": (
                {
                    "member_id": "m",
                    "group_instance_id": None,
                    "client_id": "",
                    "client_host": "",
                    "rebalance_timeout": -1,
                    "session_timeout": 7,
                    "subscription": b"\xaa",
                    "assignment": b"",
                    "unknown_tagged_fields": (),
                },
            ),
            "unknown_tagged_fields": (),
        },
        len(raw),
    )


def test_a_message_without_flexible_versions_has_no_unknown_tags() -> None:
    assert walker.decode(all_schemas()["GroupMetadataKey"], b"\0\0", 0) == ({"group": ""}, 2)


def test_classes_take_the_place_of_dicts() -> None:
    classes = {"MemberMetadata": SimpleNamespace, "GroupMetadataValue": SimpleNamespace}
    schema = all_schemas()["GroupMetadataValue"]
    raw = bytes.fromhex("0000 00000001 ffff ffff 00000001 0001 6d 0000 0000 00000007 00000001 aa 00000000")
    value, _ = walker.decode(schema, raw, 0, classes=classes)
    assert isinstance(value, SimpleNamespace)
    assert value.members[0].subscription == b"\xaa"
    assert walker.encode(schema, value, 0) == raw
    assert walker.default_value(schema, classes).members == ()


def test_default_structs_are_not_shared() -> None:
    schema = language_schemas()["NullableStructMessage"]
    raw = walker.encode(schema, walker.default_value(schema), 2)
    first, _ = walker.decode(schema, raw, 2)
    first["nullable_struct4"]["my_string"] = "changed"
    second, _ = walker.decode(schema, raw, 2)
    assert second["nullable_struct4"]["my_string"] == ""


def test_uuids_are_uuids() -> None:
    value, _ = walker.decode(all_schemas()["ShareSnapshotKey"], bytes(22), 0)
    assert value["topic_id"] == ZERO_UUID
    assert type(value["topic_id"]) is Uuid


def test_an_explicit_default_of_a_tag_and_a_long_varint_are_accepted() -> None:
    schema = all_schemas()["OffsetCommitValue"]
    plain = bytes(12) + b"\x01" + bytes(8) + b"\x00"
    for same in (
        bytes(12) + b"\x01" + bytes(8) + b"\x01\x00\x10" + bytes(16),
        bytes(12) + b"\x81\x80\x00" + bytes(8) + b"\x80\x00",
    ):
        assert walker.decode(schema, same, 4)[0] == walker.decode(schema, plain, 4)[0]


def test_allowed_trailing_bytes_are_no_leniency() -> None:
    leniencies: list[str] = []
    _, used = walker.decode(
        all_schemas()["GroupMetadataKey"],
        b"\0\0rest",
        0,
        allow_trailing=True,
        lenient=True,
        leniencies=leniencies,
    )
    assert (used, leniencies) == (2, [])


@pytest.mark.parametrize("convert", [bytes, bytearray, memoryview])
def test_inputs(convert: Any) -> None:
    value, _ = walker.decode(all_schemas()["ConsumerProtocolAssignment"], convert(bytes(7) + b"\x01a"), 0)
    assert type(value["user_data"]) is bytes


def test_an_int_is_no_input() -> None:
    with pytest.raises(TypeError, match="decode takes bytes, bytearray or memoryview, not int"):
        walker.decode(all_schemas()["GroupMetadataKey"], 3, 0)  # type: ignore[arg-type]


def test_steps() -> None:
    schema = all_schemas()["OffsetCommitValue"]
    raw = bytes.fromhex("0000000000000064 0000000a 02 6d 0000000000000001 02 00 10" + "00" * 16 + "05 01 ff bb")
    steps = [tuple(step) for step in walker.walk(schema, 4, raw)]
    assert steps == [
        ("offset", 0, 8, "int64", 100, 0),
        ("leader_epoch", 8, 4, "int32", 10, 0),
        ("metadata", 12, 1, "length", 1, 0),
        ("metadata", 13, 1, "string", "m", 0),
        ("commit_timestamp", 14, 8, "int64", 1, 0),
        ("tagged_fields", 22, 1, "tag count", 2, 0),
        ("tagged_fields", 23, 1, "tag", 0, 0),
        ("tagged_fields", 24, 1, "tag size", 16, 0),
        ("topic_id", 25, 16, "uuid", ZERO_UUID, 0),
        ("tagged_fields", 41, 1, "tag", 5, 0),
        ("tagged_fields", 42, 1, "tag size", 1, 0),
        ("tagged_fields[5]", 43, 1, "unknown tag", b"\xff", 0),
    ]


def test_steps_of_nested_values() -> None:
    schema = all_schemas()["ConsumerProtocolAssignment"]
    raw = bytes.fromhex("00000001 0001 74 00000001 00000009 ffffffff")
    assert [tuple(step) for step in walker.walk(schema, 0, raw)] == [
        ("assigned_partitions", 0, 4, "count", 1, 0),
        ("assigned_partitions[0].topic", 4, 2, "length", 1, 1),
        ("assigned_partitions[0].topic", 6, 1, "string", "t", 1),
        ("assigned_partitions[0].partitions", 7, 4, "count", 1, 1),
        ("assigned_partitions[0].partitions[0]", 11, 4, "int32", 9, 1),
        ("user_data", 15, 4, "length", -1, 0),
    ]


def test_a_lenient_walk_names_what_it_let_pass() -> None:
    steps = list(walker.walk(all_schemas()["GroupMetadataKey"], 0, b"\x00\x01\xff", lenient=True))
    assert [tuple(step) for step in steps] == [
        ("group", 0, 2, "length", 1, 0),
        ("group", 2, 0, "leniency", "invalid_utf8", 0),
        ("group", 2, 1, "string", "\ufffd", 0),
    ]


# -- hostile sizes -------------------------------------------------------------------------------

ZERO_SIZED = build(
    {
        "message": "ZeroSized",
        "valid_versions": "0",
        "flexible_versions": "none",
        "fields": [
            {
                "name": "Outer",
                "json": "outer",
                "type": "[]Outer",
                "versions": "0+",
                "default": [],
                "fields": [
                    {
                        "name": "Inner",
                        "json": "inner",
                        "type": "[]Nothing",
                        "versions": "0+",
                        "default": [],
                        "fields": [],
                    }
                ],
            }
        ],
    }
)
"""Arrays of elements without bytes, as many as the input has room for."""


def test_elements_without_bytes_are_bounded_by_the_input_as_a_whole() -> None:
    raw = bytes.fromhex("00000002 00000004 00000000")
    value, _ = walker.decode(ZERO_SIZED, raw, 0)
    assert value == {"outer": ({"inner": ({}, {}, {}, {})}, {"inner": ()})}
    count = 20_000
    hostile = count.to_bytes(4, "big") + (30_000).to_bytes(4, "big") * count
    for lenient in (False, True):
        with pytest.raises(errors.CountTooLarge) as caught:
            walker.decode(ZERO_SIZED, hostile, 0, lenient=lenient)
        assert caught.value.path == "outer[2].inner"


@pytest.mark.parametrize("name", sorted(all_schemas()))
def test_huge_counts_cost_nothing(name: str) -> None:
    schema = all_schemas()[name]
    lowest, highest = schema.versions or (0, -1)
    tracemalloc.start()
    try:
        for version in range(lowest, highest + 1):
            for filling in (b"\xff", b"\x7f", b"\x80", b"\x01"):
                with pytest.raises(DecodeError):
                    walker.decode(schema, filling * 40, version)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000


def test_many_map_keys_take_linear_time() -> None:
    """Kafka's own reader needs seven seconds for 2000 empty names of a mapKey array."""
    schema = all_schemas()["ConsumerProtocolAssignment"]
    count = 20_000
    raw = count.to_bytes(4, "big") + bytes(6) * count + b"\xff" * 4
    start = time.process_time()
    value, _ = walker.decode(schema, raw, 0)
    assert len(value["assigned_partitions"]) == count
    assert time.process_time() - start < 2


def test_a_hostile_string_takes_linear_time() -> None:
    raw = (32767).to_bytes(2, "big") + b"\xff" * 32767
    start = time.process_time()
    value, _ = walker.decode(all_schemas()["GroupMetadataKey"], raw, 0, lenient=True)
    assert value == {"group": "\ufffd" * 32767}
    assert time.process_time() - start < 1


# -- schemas -------------------------------------------------------------------------------------


def test_schemas_pickle_without_their_plans() -> None:
    schema = language_schemas()["SimpleExampleMessage"]
    walker.encode(schema, walker.default_value(schema), 2)
    assert schema.plans
    copy = pickle.loads(pickle.dumps(schema))
    assert copy == schema
    assert copy.plans == {}
    assert walker.default_value(copy) == walker.default_value(schema)


def test_a_schema_of_another_format_is_refused() -> None:
    with pytest.raises(errors.SchemaFormatError) as caught:
        MessageSchema(99, "Old", (0, 0), None, (StructSchema("Old", ()),))
    assert str(caught.value) == (
        "the schema of Old has format 99, but this runtime reads format 1: generate the package again"
    )


def test_a_field_untagged_first_and_tagged_later() -> None:
    field = FieldSchema("a", "a", "int32", (0, 1), tag=0, tagged=(1, 1))
    schema = MessageSchema(1, "Moved", (0, 1), (1, 1), (StructSchema("Moved", (field,)),))
    assert walker.encode(schema, {"a": 5}, 0).hex() == "00000005"
    assert walker.encode(schema, {"a": 5}, 1).hex() == "01000400000005"
    for version in (0, 1):
        data = walker.encode(schema, {"a": 5}, version)
        assert walker.decode(schema, data, version)[0] == {"a": 5, "unknown_tagged_fields": ()}
