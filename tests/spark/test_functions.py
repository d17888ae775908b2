"""Column functions that decode binary columns."""

from __future__ import annotations

import doctest
import importlib
import json
import pkgutil
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_records.schemas.consumer_offsets import OFFSET_COMMIT_VALUE, RECORDS
from kafka_records.schemas.consumer_protocol import CONSUMER_PROTOCOL_ASSIGNMENT, CONSUMER_PROTOCOL_SUBSCRIPTION
from kafka_records.spark.consumer_offsets import (
    decode_records,
    from_group_metadata_value,
    from_offset_commit_key,
    from_offset_commit_value,
)
from kafka_records.spark.consumer_protocol import (
    from_consumer_protocol_assignment,
    from_consumer_protocol_subscription,
)
from kafka_records.spark.transaction_state import from_transaction_log_value
from kafka_records_engine.spark import functions
from kafka_records_engine.spark.errors import UnsupportedSpark
from kafka_records_engine.spark.functions import from_key, from_message, from_value, record_type, value_version
from kafka_records_engine.spark.segments import read_segments
from kafka_records_runtime.errors import UnsupportedVersion
from kafka_records_runtime.messages.json_form import to_json

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

    from kafka_records_runtime.schema import MessageSchema
    from tests.conftest import VectorLoader

KEY = bytes.fromhex("0001" "0001" "67" "0001" "74" "00000003")
VALUE = bytes.fromhex("0003" "000000000000002a" "ffffffff" "0000" "0000000000000005")
TOPIC_ID = "1dGbNZA8RiO6Ja5wxwCVrA"
VALUE_4 = bytes.fromhex("0004" "000000000000002a" "ffffffff" "01" "0000000000000005" "01" "00" "10") + bytes.fromhex(
    "d5d19b35903c4623ba25ae70c70095ac"
)
UNKNOWN_TAG = bytes.fromhex("0004" "000000000000002a" "ffffffff" "01" "0000000000000005" "01" "09" "02" "abcd")
SUBSCRIPTION = bytes.fromhex("00000001" "0001" "61" "ffffffff")


def _one(spark: SparkSession, data: bytes | None, column: Any) -> Any:
    frame: DataFrame = spark.createDataFrame([(data,)], "data binary")
    row: Row = frame.select(column.alias("decoded")).collect()[0]
    return None if row.decoded is None else row.decoded.asDict(recursive=True)


@pytest.mark.spark
class TestKeysAndValues:
    def test_many_at_once(self, spark: SparkSession) -> None:
        frame = spark.createDataFrame(
            [
                (KEY, VALUE),
                (KEY, None),
                (KEY, VALUE[:4]),
                (b"\x00\x02\x00\x01g", VALUE_4),
                (None, b""),
                (b"\x00", b"\x00"),
            ],
            "key binary, value binary",
        )
        rows = frame.select(
            from_offset_commit_key("key").alias("key"),
            from_key(frame.key, RECORDS[2]).getField("group").alias("group"),
            from_offset_commit_value("value").getField("topic_id").alias("topic_id"),
            from_value(frame.value, RECORDS[1]).getField("offset").alias("offset"),
            from_message(frame.value, OFFSET_COMMIT_VALUE).getField("commit_timestamp").alias("at"),
        ).collect()
        assert [tuple(row) for row in rows] == [
            (("g", "t", 3), None, "AAAAAAAAAAAAAAAAAAAAAA", 42, 5),
            (("g", "t", 3), None, None, None, None),
            (("g", "t", 3), None, None, None, None),
            (None, "g", TOPIC_ID, 42, 5),
            (None, None, None, None, None),
            (None, None, None, None, None),
        ]

    def test_what_their_first_bytes_say(self, spark: SparkSession) -> None:
        rows = [(b"\x00\x03",), (b"\xff\xfe\x01",), (b"\x7f\xff",), (b"\x80\x00",), (b"\x01",), (b"",), (None,)]
        frame = spark.createDataFrame(rows, "data binary")
        found = frame.select(record_type("data").alias("type"), value_version(frame.data).alias("version"))
        assert found.dtypes == [("type", "smallint"), ("version", "smallint")]
        assert [tuple(row) for row in found.collect()] == [
            *((each, each) for each in (3, -2, 32767, -32768)),
            *[(None, None)] * 3,
        ]

    def test_nested_values(self, spark: SparkSession) -> None:
        value = bytes.fromhex(
            "0000" "0000000000000007" "0000" "00000064" "01" "00000001" "0001" "61" "00000001" "00000002"
        )
        decoded = _one(spark, value + bytes(16), from_transaction_log_value("data", mode="failfast"))
        assert decoded["transaction_partitions"] == [{"topic": "a", "partition_ids": [2]}]

    def test_unknown_tagged_fields(self, spark: SparkSession) -> None:
        decoded = _one(spark, UNKNOWN_TAG, from_offset_commit_value("data", unknown_tags=True))
        assert decoded["unknown_tagged_fields"] == [{"tag": 9, "data": b"\xab\xcd"}]
        assert "unknown_tagged_fields" not in _one(spark, UNKNOWN_TAG, from_offset_commit_value("data"))

    def test_a_column_has_the_name_of_its_function(self, spark: SparkSession) -> None:
        frame = spark.createDataFrame([(VALUE,)], "data binary")
        columns = frame.select(from_offset_commit_value("data"), from_value("data", RECORDS[1])).schema.names
        assert columns == ["from_offset_commit_value(data)", "from_value(data)"]

    def test_empty_batches(self, spark: SparkSession) -> None:
        frame = spark.createDataFrame([(KEY, VALUE)], "key binary, value binary").where("octet_length(value) < 0")
        found = frame.select(from_offset_commit_key("key"), from_offset_commit_value("value", mode="FAILFAST"))
        assert found.collect() == []

    def test_large_types(self, spark: SparkSession) -> None:
        """With this setting, Spark passes large_binary and expects large_string."""
        name = "spark.sql.execution.arrow.useLargeVarTypes"
        spark.conf.set(name, "true")
        try:
            rows = _one(spark, KEY, from_offset_commit_key("data")), _one(
                spark, VALUE_4, from_value("data", RECORDS[1])
            )
        finally:
            spark.conf.unset(name)
        assert (rows[0]["topic"], rows[1]["topic_id"]) == ("t", TOPIC_ID)


@pytest.mark.spark
class TestModes:
    @pytest.mark.parametrize(
        ("data", "column", "message"),
        [
            (
                VALUE[:4],
                lambda: from_value("data", RECORDS[1], "FAILFAST"),
                "BufferUnderflow: OffsetCommitValue v3 at byte 0: offset needs 8 bytes, but 2 are left",
            ),
            (
                b"\x00",
                lambda: from_value("data", RECORDS[1], "FAILFAST"),
                "MissingValueVersion: the value has 1 byte, but a value starts with an int16 version",
            ),
            (
                b"\x00",
                lambda: from_key("data", RECORDS[1], "FAILFAST"),
                "MissingRecordType: the key has 1 byte, but a key starts with an int16 record type",
            ),
            (
                b"\x00\x09",
                lambda: from_offset_commit_value("data", mode="FAILFAST"),
                "UnsupportedVersion: OffsetCommitValue has no version 9: its versions are 0 to 4",
            ),
            (
                bytes.fromhex(
                    "0003" "0000" "00000001" "ffff" "ffff" "0000000000000000" "00000001" "0001" "61" "ffff" "0100"
                )
                + bytes(24),
                lambda: from_group_metadata_value("data", mode="FAILFAST"),
                "BufferUnderflow: GroupMetadataValue v3 at byte 29: members[0].client_id needs 256 bytes, "
                "but 24 are left",
            ),
            (
                b"",
                lambda: from_consumer_protocol_assignment("data", mode="FAILFAST"),
                "MissingValueVersion: the value has 0 bytes, but a value starts with an int16 version",
            ),
            (
                b"\xff\xff" + SUBSCRIPTION,
                lambda: from_consumer_protocol_subscription("data", mode="FAILFAST"),
                "UnsupportedVersion: ConsumerProtocolSubscription has no version -1: its versions are 0 to 3",
            ),
        ],
    )
    def test_failfast_says_what_is_wrong(
        self, spark: SparkSession, data: bytes, column: Callable[[], Column], message: str
    ) -> None:
        with pytest.raises(Exception, match=re.escape(message)):
            _one(spark, data, column())

    def test_failfast_lets_other_record_types_pass(self, spark: SparkSession) -> None:
        assert _one(spark, b"\x00\x02\x00\x01g", from_key("data", RECORDS[1], "FAILFAST")) is None

    def test_a_column_cannot_leave_rows_out(self) -> None:
        with pytest.raises(ValueError, match="mode 'DROPMALFORMED' is not one of PERMISSIVE, FAILFAST"):
            from_value("data", RECORDS[1], "DROPMALFORMED")


@pytest.mark.spark
class TestVersions:
    def test_before_the_message_given_or_in_a_column(self, spark: SparkSession) -> None:
        rows = [
            (0, b"\x00\x00" + SUBSCRIPTION),
            (1, b"\x00\x01" + SUBSCRIPTION + bytes.fromhex("00000001" "0001" "62" "00000000")),
            (None, b"\x00\x00" + SUBSCRIPTION),
            (7, b"\x00\x00" + SUBSCRIPTION),
        ]
        frame = spark.createDataFrame(rows, "version int, data binary").selectExpr("*", "substring(data, 3) AS body")
        decoded = frame.select(
            from_consumer_protocol_subscription("data").getField("owned_partitions"),
            from_consumer_protocol_subscription("body", 0).getField("owned_partitions"),
            from_consumer_protocol_subscription("body", frame.version).getField("owned_partitions"),
            from_message("body", CONSUMER_PROTOCOL_SUBSCRIPTION, "version").getField("topics"),
        )
        owned: list[tuple[str, list[int]]] = [("b", [])]
        assert [tuple(row) for row in decoded.collect()] == [
            ([], [], [], ["a"]),
            (owned, [], owned, ["a"]),
            ([], [], None, None),
            ([], [], None, None),
        ]

    def test_all_of_the_defaults(self, spark: SparkSession) -> None:
        expected = {"topics": ["a"], "user_data": None, "owned_partitions": [], "generation_id": -1, "rack_id": None}
        assert _one(spark, SUBSCRIPTION, from_consumer_protocol_subscription("data", 0)) == expected

    def test_newer_than_known(self, spark: SparkSession) -> None:
        data = b"\x00\x04" + SUBSCRIPTION + bytes.fromhex("00000000" "00000007" "0001" "72" "cafe")
        highest = {"topics": ["a"], "user_data": None, "owned_partitions": [], "generation_id": 7, "rack_id": "r"}
        assert _one(spark, data, from_consumer_protocol_subscription("data", mode="FAILFAST")) == highest
        assert _one(spark, data, from_consumer_protocol_subscription("data", newer_as_highest=False)) is None
        assert _one(spark, data, from_message("data", CONSUMER_PROTOCOL_SUBSCRIPTION)) is None
        refused = "ConsumerProtocolSubscription has no version 4: its versions are 0 to 3"
        with pytest.raises(Exception, match=refused):
            _one(spark, data, from_message("data", CONSUMER_PROTOCOL_SUBSCRIPTION, mode="FAILFAST"))

    def test_parsed_as_another(self, spark: SparkSession) -> None:
        """The bytes after the fields of version 0 may be malformed, and the version in the bytes may not exist."""
        frame = spark.createDataFrame(
            [(b"\x00\x03" + SUBSCRIPTION + b"\xff",), (b"\xff\xff" + SUBSCRIPTION,), (b"\x00",), (b"\x00\x00\x00",)],
            "data binary",
        )
        decoded = frame.select(
            from_consumer_protocol_subscription("data", parse_as=0).getField("topics"),
            from_consumer_protocol_subscription("data").getField("topics"),
        )
        assert [tuple(row) for row in decoded.collect()] == [(["a"], None), (["a"], None), (None, None), (None, None)]
        with pytest.raises(Exception, match="the value has 1 byte, but a value starts with an int16 version"):
            _one(spark, b"\x00", from_consumer_protocol_subscription("data", parse_as=0, mode="FAILFAST"))

    def test_those_there_are_not_are_refused_at_once(self) -> None:
        message = "ConsumerProtocolSubscription has no version 4: its versions are 0 to 3"
        for wrong in ({"version": 4}, {"parse_as": 4}):
            with pytest.raises(UnsupportedVersion) as caught:
                from_message("data", CONSUMER_PROTOCOL_SUBSCRIPTION, **wrong)  # type: ignore[arg-type]
            assert str(caught.value) == message

    def test_two_ways_exclude_each_other(self) -> None:
        with pytest.raises(ValueError, match="parse_as") as caught:
            from_consumer_protocol_subscription("data", 1, parse_as=0)
        assert str(caught.value) == (
            "from_consumer_protocol_subscription: pass version for bytes that do not start with a version, and "
            "parse_as for bytes that do"
        )


@pytest.mark.spark
class TestAgreesWithKafka:
    def test_on_the_consumer_protocol(self, spark: SparkSession, load_vectors: VectorLoader) -> None:
        """Both ways in which Kafka reads it: by the version in the bytes, with newer ones as the highest; and as
        version 0."""
        lines = [line for line in load_vectors("framed.jsonl") if "protocol" in line]
        assert {line["version"] for line in lines} == {0, 1, 2, 3, 4, 100}
        frame = spark.createDataFrame(
            [(number, bytes.fromhex(line["hex"])) for number, line in enumerate(lines)], "line int, data binary"
        )
        found = frame.select(
            "line",
            from_consumer_protocol_subscription("data").alias("subscription"),
            from_consumer_protocol_assignment("data").alias("assignment"),
            from_consumer_protocol_subscription("data", parse_as=0).alias("as_0"),
        )
        for row in found.collect():
            line = lines[row.line]
            schema = (
                CONSUMER_PROTOCOL_SUBSCRIPTION if line["protocol"] == "subscription" else CONSUMER_PROTOCOL_ASSIGNMENT
            )
            assert _json(schema, row[line["protocol"]], min(line["version"], 3)) == line["json"]
            if line["protocol"] == "subscription":
                assert row.as_0.topics == line["topics_as_v0"]
                assert (row.as_0.owned_partitions, row.as_0.generation_id, row.as_0.rack_id) == ([], -1, None)

    @pytest.mark.parametrize(("name", "dump"), [("kafka-4.3", "dump"), ("kafka-2.8", "dump-4.3")])
    def test_on_the_members_of_captured_groups(
        self, spark: SparkSession, topics_dir: Path, name: str, dump: str
    ) -> None:
        raw = read_segments(spark, str(topics_dir / name / "segments"), topic="__consumer_offsets", mode="PERMISSIVE")
        members = (
            decode_records(raw, ["GroupMetadata"])
            .where("group_metadata.value.protocol_type = 'consumer'")
            .selectExpr("partition", "offset", "explode(group_metadata.value.members) AS member")
            .select("partition", "offset", "member.member_id", "member.subscription", "member.assignment")
        )
        found = members.select(
            *("partition", "offset", "member_id"),
            value_version("subscription").alias("version"),
            from_consumer_protocol_subscription("subscription").alias("subscription"),
            from_consumer_protocol_assignment("assignment").alias("assignment"),
            from_consumer_protocol_subscription("subscription", parse_as=0).alias("as_0"),
        ).collect()
        assert found
        for row in found:
            assert (row.as_0 and row.as_0.topics) == (row.subscription and row.subscription.topics)
        ours = {(row.partition, row.offset, row.member_id): _as_dumped(row) for row in found}
        assert ours == _dumped_members(topics_dir / name / dump)


def _as_dumped(row: Row) -> tuple[Any, Any]:
    return (
        _json(CONSUMER_PROTOCOL_SUBSCRIPTION, row.subscription, min(row.version or 0, 3)),
        _json(CONSUMER_PROTOCOL_ASSIGNMENT, row.assignment, 3),
    )


def _json(schema: MessageSchema, decoded: Row | None, version: int) -> Any:
    return None if decoded is None else to_json(schema, decoded.asDict(recursive=True), version)


_EMBEDDED = ("subscription", "assignment")
_CONSUMER_GROUP = re.compile(
    r'offset: (?P<offset>\d+) .* key: \{"type":"2",.*\} payload: (?P<payload>\{.*"protocolType":"consumer".*)'
)


def _dumped_members(folder: Path) -> dict[tuple[int, int, str], tuple[Any, Any]]:
    """The members of classic consumer groups in the output of Kafka's dump tool.

    It decodes subscription and assignment. It shows other bytes as base64, for which this has None.
    """
    members = {}
    for path in folder.glob("__consumer_offsets-*"):
        partition = int(path.name.removeprefix("__consumer_offsets-").partition(".")[0])
        for line in path.read_text("utf-8").splitlines():
            match = _CONSUMER_GROUP.search(line)
            for member in json.loads(match["payload"])["data"]["members"] if match else ():
                shown = [each if isinstance(each, dict) else None for each in map(member.get, _EMBEDDED)]
                members[partition, int(match["offset"]), member["memberId"]] = (shown[0], shown[1])  # type: ignore[index]
    return members


class TestOlderSpark:
    @pytest.fixture(autouse=True)
    def spark_3_5(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr("pyspark.sql.functions.arrow_udf")
        monkeypatch.setattr("pyspark.__version__", "3.5.6")

    @pytest.mark.parametrize(
        ("call", "name"),
        [
            (lambda: from_offset_commit_value("value"), "from_offset_commit_value"),
            (lambda: from_offset_commit_key("key"), "from_offset_commit_key"),
            (lambda: from_consumer_protocol_assignment("data", 0), "from_consumer_protocol_assignment"),
            (lambda: from_value("value", RECORDS[1]), "from_value"),
            (lambda: from_key("key", RECORDS[1]), "from_key"),
            (lambda: from_message("value", OFFSET_COMMIT_VALUE), "from_message"),
        ],
    )
    def test_is_told_what_to_use(self, call: Callable[[], Column], name: str) -> None:
        with pytest.raises(UnsupportedSpark) as caught:
            call()
        # A function of the engine does not know of which package the message is.
        is_generated = name not in ("from_value", "from_key", "from_message")
        remedy = 'pass engine="jvm", or use decode_records' if is_generated else "use decode_records"
        assert str(caught.value) == f"{name} needs PySpark 4.1 or later, but this is 3.5.6: {remedy}"


@pytest.mark.spark
class TestExamples:
    @pytest.mark.parametrize(
        "name",
        [
            "kafka_records_engine.spark.functions",
            "kafka_records.spark.consumer_protocol",
            pytest.param("kafka_records.spark.control", marks=pytest.mark.matrix),
        ],
    )
    def test_examples_run(self, spark: SparkSession, name: str) -> None:
        """The functions of the other folders are compared with the walker, without Spark, in tests/generator."""
        module = importlib.import_module(name)
        below = [found.name for found in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}.")]
        modules = [module, *map(importlib.import_module, below)]
        results = [doctest.testmod(each, extraglobs={"spark": spark}) for each in modules]
        assert sum(result.failed for result in results) == 0
        assert sum(result.attempted for result in results) >= 18


def test_every_public_function_is_generic() -> None:
    """They exist in pairs, one for each direction."""
    public = {name for name, value in vars(functions).items() if callable(value) and not name.startswith("_")}
    named = {name for name in public if name.startswith(("from_", "to_"))}
    assert named == {f"{way}_{what}" for way in ("from", "to") for what in ("message", "key", "value")}
