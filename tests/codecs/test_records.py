"""Records by topic: framing, unknown types and versions, and Kafka's own verdicts on odd ones."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from kafka_records.consumer_offsets import (
    GroupMetadata,
    UnknownTypeRecord,
    UnknownVersionRecord,
    decode_record,
    encode_record,
    record_from_json,
)
from kafka_records.consumer_offsets.offset_commit import OffsetCommit, OffsetCommitKey, OffsetCommitValue
from kafka_records.schemas import consumer_offsets as schemas
from kafka_records.transaction_state.transaction_log import TransactionLogKey, TransactionLogValue
from kafka_records_runtime.errors import (
    BufferUnderflow,
    DecodeError,
    JsonError,
    KafkaRecordsError,
    MissingRecordType,
    MissingValueVersion,
    NullKey,
    UnsupportedVersion,
    WrongType,
)
from kafka_records_runtime.records.reading import CodecRecordType, read_record, schema_record_types
from kafka_records_runtime.records.sets import RecordSet
from kafka_records_runtime.wire.leniency import Leniency
from tests.conftest import VectorLoader

KEY = OffsetCommitKey(group="group-id", topic="foo", partition=1)
VALUE = OffsetCommitValue(offset=100, leader_epoch=10, metadata="metadata", commit_timestamp=1234)
KEY_HEX = "0001000867726f75702d69640003666f6f00000001"
V3_HEX = "000300000000000000640000000a00086d6574616461746100000000000004d2"


def package(topic: str) -> Any:
    return importlib.import_module(f"kafka_records.{topic.removeprefix('__')}")


def printed(record: Any) -> dict[str, Any]:
    """The output of Kafka's console formatters for a record."""
    value = None
    if not record.is_tombstone:
        value = {"version": record.value_version, "data": record.value.to_json(record.value_version, lossy=True)}
    return {"key": {"type": record.record_type, "data": record.key.to_json(0)}, "value": value}


def optional_bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def test_every_framed_vector(load_vectors: VectorLoader) -> None:
    lines = [line for line in load_vectors("framed.jsonl") if "topic" in line]
    assert len(lines) > 200
    for line in lines:
        key, value = optional_bytes(line["key_hex"]), optional_bytes(line["value_hex"])
        decode = package(line["topic"]).decode_record
        if "error" not in line:
            record = decode(key, value)
            assert printed(record) == line["json"], line
            if line.get("note") == "trailing bytes after key and value":
                assert (record.key_bytes_left, record.value_bytes_left) != (0, 0)
            else:
                again = package(line["topic"]).encode_record(record.key, record.value, record.value_version)
                assert again == (key, value), line
        elif line["error"].endswith("UnknownRecordTypeException"):
            record = decode(key, value)
            assert not record.is_known_type
            assert (record.key, record.value, record.value_version) == (key, value, None)
        elif line["error"].endswith("UnknownRecordVersionException"):
            record = decode(key, value)
            assert record.is_known_type
            assert not record.is_known_version
            assert record.value == value
        else:
            with pytest.raises(KafkaRecordsError):
                decode(key, value)


NAMED_SINCE = {
    "ConsumerGroupMetadata creation time v0": "creationTimeMs stayed a proposal: 4.3 keeps the tag as unknown",
    "ConsumerGroupMetadata creation time only v0": "creationTimeMs stayed a proposal: 4.3 keeps the tag as unknown",
}
"""Cases from specs that were never released in this form, with the behavior of 4.3."""


def test_every_record_case(kafka_cases: Callable[[str], Any]) -> None:
    data = kafka_cases("record-cases.json")
    exceptions = []
    for case in [*data["cases"], *data["later_cases"]]:
        if "key_hex" not in case:
            continue
        key, value = optional_bytes(case["key_hex"]), optional_bytes(case["value_hex"])
        decode = package(case["topic"]).decode_record
        if "formatter_line" in case:
            shown = printed(decode(key, value))
            if shown != json.loads(case["formatter_line"]):
                exceptions.append(case["name"])
        elif "Unknown" in case["error"]["class"]:
            record = decode(key, value)
            assert not (record.is_known_type and record.is_known_version)
        else:
            with pytest.raises(KafkaRecordsError):
                decode(key, value)
    assert sorted(exceptions) == sorted(NAMED_SINCE)


def test_a_value_that_kafka_cannot_write_is_refused(kafka_cases: Callable[[str], Any]) -> None:
    refused = [case for case in kafka_cases("record-cases.json")["cases"] if "value_input" in case]
    assert refused
    for case in refused:
        assert case["topic"] == "__transaction_state"
        value = TransactionLogValue.from_json(case["value_input"], 1)
        with pytest.raises(KafkaRecordsError, match="previous_producer_id"):
            value.encode(0)


def test_a_record_there_and_back() -> None:
    assert decode_record(bytes.fromhex(KEY_HEX), bytes.fromhex(V3_HEX)) == OffsetCommit(KEY, VALUE, value_version=3)
    assert encode_record(KEY, VALUE, 3) == (bytes.fromhex(KEY_HEX), bytes.fromhex(V3_HEX))


def test_a_tombstone() -> None:
    record = decode_record(bytes.fromhex(KEY_HEX), None)
    assert record == OffsetCommit(KEY, None)
    assert (record.record_type, record.name, record.value_version) == (1, "OffsetCommit", None)
    assert record.is_tombstone
    assert encode_record(KEY, None) == (bytes.fromhex(KEY_HEX), None)


def test_the_highest_version_is_written_unless_told() -> None:
    _, value = encode_record(KEY, VALUE)
    assert value is not None
    assert value[:2] == b"\x00\x04"


def test_a_record_type_may_be_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OffsetCommitKey, "RECORD_TYPE", -2)
    module = OffsetCommitKey.__module__
    own = RecordSet[OffsetCommit]({-2: CodecRecordType(module, "OffsetCommit")})

    key, value = own.encode(KEY, VALUE, 3)

    assert (key, value) == (b"\xff\xfe" + bytes.fromhex(KEY_HEX)[2:], bytes.fromhex(V3_HEX))
    assert own.decode(key, value) == OffsetCommit(KEY, VALUE, value_version=3)


def test_unknown_records_are_written_back_as_they_stood() -> None:
    record = decode_record(b"\x00\x09\x00\x03foo", b"\x00\x00\x01\x00")
    assert (record.record_type, record.is_known_type) == (9, False)
    assert encode_record(record.key, record.value) == (b"\x00\x09\x00\x03foo", b"\x00\x00\x01\x00")
    newer = decode_record(bytes.fromhex(KEY_HEX), b"\x00\x05abc")
    assert (newer.value_version, newer.is_known_version) == (5, False)
    assert encode_record(newer.key, newer.value) == (bytes.fromhex(KEY_HEX), b"\x00\x05abc")


def test_kafka_reads_a_legacy_key_with_version_0_only() -> None:
    legacy = b"\x00\x00" + bytes.fromhex(KEY_HEX)[2:]
    record = decode_record(legacy, bytes.fromhex(V3_HEX))
    assert (record.name, record.value_version, record.is_known_version) == ("LegacyOffsetCommit", 3, False)


def test_types_are_numbered_per_topic() -> None:
    key = b"\x00\x00" + TransactionLogKey("tx").encode(0)
    assert package("__transaction_state").decode_record(key, None).name == "TransactionLog"
    assert decode_record(bytes.fromhex("0000" + KEY_HEX[4:]), None).name == "LegacyOffsetCommit"


INVALID_UTF8_HEX = "0001" "0001ff" "0003666f6f" "00000001"


def test_a_leniently_read_record_keeps_its_bytes_and_names_each_leniency() -> None:
    key = bytes.fromhex(INVALID_UTF8_HEX)
    typed_key = OffsetCommitKey("\N{REPLACEMENT CHARACTER}", "foo", 1)
    record = decode_record(key, None)
    assert record == OffsetCommit(typed_key, None, leniencies=("invalid_utf8",), raw_key=key)
    assert record.is_lenient
    value = bytes.fromhex("0003" "0000000000000064" "0000000a" "0002fffe" "00000000000004d2")
    record = decode_record(key, value)
    assert record.leniencies == ("invalid_utf8", "invalid_utf8")
    assert (record.raw_key, record.raw_value) == (key, value)
    assert record.value == OffsetCommitValue(100, 10, "\N{REPLACEMENT CHARACTER}" * 2, 1234)
    assert Counter(record.leniencies) == {Leniency.INVALID_UTF8: 2}
    assert record.raw_key is not None
    assert encode_record(record.raw_key, record.raw_value) == (key, value)


def test_a_record_with_bytes_left_over_keeps_its_bytes() -> None:
    key, value = bytes.fromhex(KEY_HEX), bytes.fromhex(V3_HEX)
    for record in (decode_record(key + b"k", value), decode_record(key, value + b"v")):
        assert (record.key, record.value, record.leniencies, record.is_lenient) == (KEY, VALUE, (), True)
        assert record.key_bytes_left + record.value_bytes_left == 1
        assert (record.raw_key, record.raw_value) == (
            key + b"k" * record.key_bytes_left,
            value + b"v" * record.value_bytes_left,
        )


def test_a_lenient_key_before_a_value_of_an_unknown_version() -> None:
    key = bytes.fromhex(INVALID_UTF8_HEX)
    record = decode_record(key, b"\x00\x05abc")
    assert (record.is_known_version, record.is_lenient) == (False, True)
    assert (record.value, record.raw_key, record.raw_value) == (b"\x00\x05abc", key, b"\x00\x05abc")


def test_other_records_do_not_keep_their_bytes() -> None:
    for key, value in (
        (bytes.fromhex(KEY_HEX), bytes.fromhex(V3_HEX)),
        (bytes.fromhex(KEY_HEX), None),
        (bytes.fromhex(KEY_HEX), b"\x00\x05abc"),
        (b"\x00\x09\x00\x03foo", b"\x00\x00\x01\x00"),
    ):
        record = decode_record(key, value)
        assert (record.is_lenient, record.raw_key, record.raw_value) == (False, None, None)


def test_records_with_their_bytes_read_by_schemas_too() -> None:
    key = bytes.fromhex(INVALID_UTF8_HEX)
    record = read_record(schema_record_types(schemas.RECORDS), key, None)
    assert (record.leniencies, record.raw_key, record.raw_value) == (("invalid_utf8",), key, None)


@pytest.mark.parametrize(
    ("key", "value", "error", "text"),
    [
        (None, b"", NullKey, "the record has no key"),
        (b"", None, MissingRecordType, "the key has 0 bytes, but a key starts with an int16 record type"),
        (b"\x00", None, MissingRecordType, "the key has 1 byte, but a key starts with an int16 record type"),
        (
            bytes.fromhex(KEY_HEX),
            b"",
            MissingValueVersion,
            "the value has 0 bytes, but a value starts with an int16 version",
        ),
        (
            bytes.fromhex("000100086772"),
            None,
            BufferUnderflow,
            "OffsetCommitKey v0 at byte 2: group needs 8 bytes, but 2 are left",
        ),
        (
            bytes.fromhex(KEY_HEX),
            bytes.fromhex(V3_HEX)[:-3],
            BufferUnderflow,
            "OffsetCommitValue v3 at byte 22: commit_timestamp needs 8 bytes, but 5 are left",
        ),
    ],
)
def test_what_is_no_record(key: bytes | None, value: bytes | None, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        decode_record(key, value)
    assert str(caught.value) == text


def test_what_cannot_be_written() -> None:
    with pytest.raises(UnsupportedVersion):
        encode_record(KEY, VALUE, 5)
    with pytest.raises(WrongType, match="value is of type OffsetCommitKey, expected OffsetCommitValue"):
        encode_record(KEY, KEY)  # type: ignore[arg-type]
    with pytest.raises(WrongType, match="key is of type str, expected bytes or a key class of this topic"):
        encode_record("key", None)  # type: ignore[arg-type]
    with pytest.raises(WrongType, match="value is of type OffsetCommitValue, expected bytes or None"):
        encode_record(b"\x00\x01", VALUE)
    with pytest.raises(WrongType, match="value_version is of type int, expected None, because a tombstone has no"):
        encode_record(KEY, None, 3)
    with pytest.raises(UnsupportedVersion, match="has no version 4: its only version is 3"):
        encode_record(KEY, bytes.fromhex(V3_HEX), 4)
    with pytest.raises(WrongType, match="key is of type TransactionLogKey"):
        encode_record(TransactionLogKey("tx"), None)  # type: ignore[arg-type]


def test_decode_errors_are_value_errors_of_our_tree() -> None:
    assert issubclass(DecodeError, ValueError)
    assert issubclass(DecodeError, KafkaRecordsError)


def test_types_of_early_access_releases_have_a_name_and_nothing_else() -> None:
    record = decode_record(b"\x00\x09\x00\x03foo", b"\x00\x00\x01\x00")
    assert (record.name, record.is_known_type, record.key) == (
        "ShareGroupPartitionMetadata",
        False,
        b"\x00\x09\x00\x03foo",
    )
    assert decode_record(b"\x00\x19", None).name is None


def test_an_error_names_the_release_whose_layout_it_may_be() -> None:
    key = b"\x00\x0b\x00\x03foo"
    without_metadata_hash = b"\x00\x00\x00\x00\x00\x0a\x00"
    with pytest.raises(BufferUnderflow) as caught:
        decode_record(key, without_metadata_hash)
    assert str(caught.value) == (
        "ShareGroupMetadataValue v0 at byte 4: metadata_hash needs 8 bytes, but 1 is left; "
        "Kafka 3.9 and 4.0 wrote this version in another, early access layout"
    )


def test_other_buffers_are_records_too() -> None:
    record = decode_record(bytearray.fromhex(KEY_HEX), memoryview(b"\x00\x05abc"))
    assert (record.key, record.value, record.is_known_version) == (KEY, b"\x00\x05abc", False)
    with pytest.raises(TypeError, match="takes bytes, bytearray or memoryview, not str"):
        decode_record("key", None)  # type: ignore[arg-type]


# -- classes -----------------------------------------------------------------------------------------------------------


def test_records_are_matched_by_their_classes() -> None:
    match decode_record(bytes.fromhex(KEY_HEX), bytes.fromhex(V3_HEX)):
        case OffsetCommit(key, OffsetCommitValue(offset=offset)):
            assert (key, offset) == (KEY, 100)
        case _:
            pytest.fail("not an OffsetCommit")
    newer = decode_record(bytes.fromhex(KEY_HEX), b"\x00\x05abc")
    assert newer == UnknownVersionRecord(
        KEY, b"\x00\x05abc", 1, "OffsetCommit", "OffsetCommitValue", range(5), value_version=5
    )
    retired = decode_record(b"\x00\x09", None)
    assert retired == UnknownTypeRecord(b"\x00\x09", None, 9, "ShareGroupPartitionMetadata")


@pytest.mark.parametrize("topic", ["consumer_offsets", "share_group_state", "transaction_state"])
def test_a_topic_has_the_class_of_each_record(topic: str) -> None:
    module = package(topic)
    assert module.RECORD_TYPES.types
    for number, kind in module.RECORD_TYPES.types.items():
        cls = getattr(module, kind.class_name)
        assert (cls.record_type, cls.name, cls.KEY_CLASS.RECORD_TYPE) == (number, kind.name, number)
        assert cls.__name__ in module.__all__
        assert isinstance(cls(cls.KEY_CLASS(), None), module.Record)
    with pytest.raises(AttributeError, match=f"module 'kafka_records.{topic}' has no attribute 'OfsetCommit'"):
        _ = module.OfsetCommit


def test_a_topic_loads_the_modules_of_records_that_are_asked_for() -> None:
    code = (
        "import sys; from kafka_records.consumer_offsets import OffsetCommit, Record, decode_record;"
        "print(*sorted(name for name in sys.modules if name.startswith('kafka_records.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["kafka_records.consumer_offsets", "kafka_records.consumer_offsets.offset_commit"]


# -- JSON --------------------------------------------------------------------------------------------------------------


def test_records_come_back_from_json(load_vectors: VectorLoader, kafka_cases: Callable[[str], Any]) -> None:
    """Records that Kafka's formatters print have the same form here, unless that form loses something."""
    cases = kafka_cases("record-cases.json")
    lines = [line for line in load_vectors("framed.jsonl") if "topic" in line]
    found = Counter[str]()
    for case in [*lines, *cases["cases"], *cases["later_cases"]]:
        if "key_hex" not in case:
            continue
        module = package(case["topic"])
        try:
            record = module.decode_record(optional_bytes(case["key_hex"]), optional_bytes(case["value_hex"]))
        except KafkaRecordsError:
            continue
        shown = json.loads(json.dumps(record.to_json()))
        assert module.record_from_json(shown) == record
        found[type(record).__name__] += 1
        found["lenient"] += record.is_lenient
        if "json" in case and not record.is_lenient and "unknown_tagged_fields" not in json.dumps(shown):
            assert shown == case["json"]
            assert type(record).from_json(shown) == record
            found["as Kafka's"] += 1
    assert found["as Kafka's"] > 100
    assert min(found["lenient"], found["UnknownTypeRecord"], found["UnknownVersionRecord"]) > 3


def test_a_record_without_a_version_is_shown_at_the_highest() -> None:
    shown = OffsetCommit(KEY, VALUE).to_json()
    assert shown["value"]["version"] == 4
    assert OffsetCommit.from_json(shown) == OffsetCommit(KEY, VALUE, value_version=4)


KEY_JSON = {"type": 1, "data": {"group": "g", "topic": "t", "partition": 0}}
VALUE_JSON = {"version": 3, "data": {"offset": 1, "leaderEpoch": 2, "metadata": "m", "commitTimestamp": 3}}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([], "the record is of type list, expected an object"),
        ({"key": KEY_JSON}, "value is missing"),
        (
            {"key": KEY_JSON, "value": None, "offset": 1},
            "the record has the key 'offset', which is not one of key, value, raw",
        ),
        ({"key": None, "value": None}, "key is of type NoneType, expected an object"),
        ({"key": {"type": 1}, "value": None}, "key has neither data nor hex"),
        ({"key": KEY_JSON | {"type": "1"}, "value": None}, "key.type is missing, or is not a whole number"),
        (
            {"key": KEY_JSON | {"type": 99}, "value": None},
            "key.type is 99, an unknown record type: give key and value as hex",
        ),
        ({"key": KEY_JSON | {"hex": "0001"}, "value": None}, "key has the key 'data', which is not one of type, hex"),
        (
            {"key": {"type": 9, "hex": "0008"}, "value": None},
            "key.hex starts with type 8, but key.type is 9",
        ),
        ({"key": {"type": 9, "hex": "x"}, "value": None}, "key.hex is not a hexadecimal string"),
        ({"key": {"type": 9, "hex": 9}, "value": None}, "key.hex is not a hexadecimal string"),
        (
            {"key": {"type": 9, "hex": "0009"}, "value": VALUE_JSON},
            "value is not in hex, but the key is: give both as data or both as hex",
        ),
        (
            {"key": KEY_JSON, "value": VALUE_JSON | {"version": 9}},
            "value.version is 9, but only versions 0 to 4 of OffsetCommit are known: give the value as hex",
        ),
        (
            {"key": KEY_JSON, "value": VALUE_JSON | {"note": 1}},
            "value has the key 'note', which is not one of version, data",
        ),
        (
            {"key": KEY_JSON, "value": VALUE_JSON, "raw": {"key": KEY_HEX, "value": V3_HEX}},
            "raw does not match the bytes of key and value: leave it out to use key and value as they are",
        ),
    ],
)
def test_json_that_is_no_record(data: Any, text: str) -> None:
    with pytest.raises(JsonError) as caught:
        record_from_json(data)
    assert str(caught.value) == f"record: {text}"


def test_json_of_another_record() -> None:
    with pytest.raises(JsonError, match=r"^record: key\.type is 1, but GroupMetadata has the record type 2$"):
        GroupMetadata.from_json({"key": KEY_JSON, "value": None})
    newer = {"key": KEY_JSON, "value": {"version": 5, "hex": "0005616263"}}
    assert isinstance(record_from_json(newer), UnknownVersionRecord)
    with pytest.raises(JsonError, match=r"value\.version is 5, an unknown version of OffsetCommit"):
        OffsetCommit.from_json(newer)
    with pytest.raises(JsonError, match=r"OffsetCommitKey v0: the message has the key 'grup'.*did you mean group"):
        record_from_json({"key": {"type": 1, "data": {"grup": "g", "topic": "t", "partition": 0}}, "value": None})
