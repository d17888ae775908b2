"""`decode_records` over synthetic records; tests/spark/across_releases has captured ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records.schemas.consumer_offsets import RECORDS
from kafka_records.spark import consumer_offsets
from kafka_records_engine.spark.decode import COUNTS, DECODED_SCHEMA, decode_records, decoded_schema
from kafka_records_engine.spark.errors import ColumnClash, MissingColumn, UnknownRecord, WrongColumnType, WrongTopic
from kafka_records_engine.spark.raw import RAW_SCHEMA
from kafka_records_runtime.schema import RecordSchema

if TYPE_CHECKING:

    from pyspark.sql import DataFrame, Row, SparkSession

KEY = bytes.fromhex("0001" "0001" "67" "0001" "74" "00000003")
VALUE = bytes.fromhex("0003" "000000000000002a" "ffffffff" "0000" "0000000000000005")
GROUP_KEY = bytes.fromhex("0002" "0001" "67")
COMMIT_MARKER = bytes.fromhex("00000001")


def _raw(*records: tuple[bytes | None, bytes | None] | tuple[bytes, bytes, str]) -> list[tuple[Any, ...]]:
    return [
        ("t", 7, offset, 99, "create", record[0], record[1], 1, offset, -1, -1, "none", (*record, None)[2])
        for offset, record in enumerate(records)
    ]


ROWS = _raw(
    (KEY, VALUE),
    (KEY, None),
    (KEY, VALUE[:5]),
    (KEY[:4], VALUE),
    (None, VALUE),
    (b"\x00\x18?", b"!"),
    (GROUP_KEY, None),
    (COMMIT_MARKER, bytes(6), "commit"),
)


@pytest.fixture(scope="module")
def raw(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, RAW_SCHEMA)


@pytest.fixture(scope="module")
def decoded(raw: DataFrame) -> list[Row]:
    return decode_records(raw, RECORDS).orderBy("offset").collect()


pytestmark = pytest.mark.spark


def test_every_row_stays_with_its_coordinates(decoded: list[Row]) -> None:
    assert [(row.topic, row.partition, row.offset, row.timestamp_ms) for row in decoded] == [
        ("t", 7, offset, 99) for offset in range(len(ROWS))
    ]


def test_types_versions_and_tombstones(decoded: list[Row]) -> None:
    assert [(row.record_type, row.value_version, row.is_tombstone) for row in decoded] == [
        (1, 3, False),
        (1, None, True),
        (1, 3, False),
        (1, None, False),
        (None, None, False),
        (24, None, False),
        (2, None, True),
        (None, None, None),
    ]


def test_typed_columns(decoded: list[Row]) -> None:
    key = {"group": "g", "topic": "t", "partition": 3}
    assert decoded[0].offset_commit.asDict(recursive=True) == {
        "key": key,
        "value": {
            "offset": 42,
            "leader_epoch": -1,
            "metadata": "",
            "commit_timestamp": 5,
            "expire_timestamp": -1,
            "topic_id": "AAAAAAAAAAAAAAAAAAAAAA",
        },
    }
    assert decoded[1].offset_commit.asDict(recursive=True) == {"key": key, "value": None}
    assert decoded[2].offset_commit.asDict(recursive=True) == {"key": key, "value": None}
    assert decoded[3].offset_commit is None
    assert decoded[6].group_metadata.key.group == "g"
    for row in decoded:
        filled = [name for name in row.asDict() if name.endswith("_commit") and row[name] is not None]
        assert filled in ([], ["offset_commit"])


def test_errors_and_bytes(decoded: list[Row]) -> None:
    assert [row.error.message if row.error else None for row in decoded] == [
        None,
        None,
        "OffsetCommitValue v3 at byte 0: offset needs 8 bytes, but 3 are left",
        "OffsetCommitKey v0 at byte 2: group needs 1 byte, but 0 are left",
        "the record has no key",
        None,
        None,
        None,
    ]
    nothing = (None, None)
    assert [(row.raw_key, row.raw_value) for row in decoded] == [
        nothing,
        nothing,
        (KEY, VALUE[:5]),
        (KEY[:4], VALUE),
        (None, VALUE),
        (b"\x00\x18?", b"!"),
        nothing,
        nothing,
    ]


def test_chosen_records_leave_out_all_others(raw: DataFrame) -> None:
    rows = consumer_offsets.decode_records(raw, records=["GroupMetadata"]).collect()

    # The row without a key may be any record.
    assert sorted((row.offset, row.record_type) for row in rows if row.record_type) == [(6, 2)]
    assert [row.error.reason for row in rows if row.error] == ["NullKey"]
    assert rows[0].__fields__[len(DECODED_SCHEMA) :] == ["group_metadata"]


def test_failfast_names_the_record(raw: DataFrame) -> None:
    with pytest.raises(Exception, match="t-7 offset 2: OffsetCommitValue v3 at byte 0: offset needs 8 bytes, but 3"):
        decode_records(raw.where("offset < 3"), RECORDS, mode="FAILFAST").collect()


def test_failfast_lets_good_rows_pass(raw: DataFrame) -> None:
    assert decode_records(raw.where("offset in (0, 1, 5, 6, 7)"), RECORDS, mode="failfast").count() == 5


def test_dropmalformed_counts_what_it_leaves_out(raw: DataFrame) -> None:
    from pyspark.sql import Observation

    observation = Observation("decoded")
    rows = decode_records(raw, RECORDS, mode="DROPMALFORMED", observation=observation).collect()

    assert sorted(row.offset for row in rows) == [0, 1, 5, 6, 7]
    assert observation.get == {
        **dict.fromkeys(COUNTS, 0),
        **{"rows": 8, "decoded": 3, "tombstone": 2, "control": 1, "unknown_type": 1, "corrupt": 3},
    }


def test_what_is_accepted_as_kafka_accepts_it_is_told(spark: SparkSession) -> None:
    from pyspark.sql import Observation

    observation = Observation("lenient")
    odd = KEY.replace(b"\x00\x01g", b"\x00\x01\xff")
    raw = spark.createDataFrame(_raw((odd + b"\0", VALUE + b"\0\0"), (KEY, VALUE)), RAW_SCHEMA)

    # Do not let Spark sort the rows, because it would read them once more; PySpark before 4.3 counts them each time.
    rows = sorted(decode_records(raw, RECORDS, observation=observation).collect(), key=lambda row: row.offset)

    assert [(row.key_bytes_left, row.value_bytes_left, row.leniencies) for row in rows] == [
        (1, 2, ["invalid_utf8"]),
        (0, 0, []),
    ]
    assert [(row.raw_key, row.raw_value) for row in rows] == [(odd + b"\0", VALUE + b"\0\0"), (None, None)]
    assert observation.get == {
        **dict.fromkeys(COUNTS, 0),
        **{"rows": 2, "decoded": 2, "with_bytes_left": 1, "bytes_left": 3, "lenient": 1},
    }


def test_rows_that_are_not_raw_are_refused(spark: SparkSession) -> None:
    with pytest.raises(MissingColumn) as failure:
        decode_records(spark.createDataFrame([(KEY, VALUE)], "key binary, value binary"), RECORDS)
    assert str(failure.value) == (
        "the DataFrame has no column 'topic': these are not raw rows: convert them with "
        "kafka_records_engine.spark.raw.as_raw_rows"
    )


def test_raw_rows_of_other_types_are_refused(spark: SparkSession, raw: DataFrame) -> None:
    """Wider numbers would cause a message of the JVM about accessors, and times would be numbers in another unit."""
    for column, kind, wanted in (("partition", "bigint", "int"), ("timestamp_ms", "timestamp", "bigint")):
        with pytest.raises(WrongColumnType) as failure:
            decode_records(raw.withColumn(column, F.col(column).cast(kind)), RECORDS)
        assert str(failure.value) == (
            f"the column {column!r} has the type {kind}, but raw rows have {wanted}: convert them with "
            "kafka_records_engine.spark.raw.as_raw_rows"
        )
    assert decode_records(raw.withColumnRenamed("key", "KEY"), RECORDS).count() == raw.count()


@pytest.mark.parametrize("mode", [None, ["offset"]])
def test_a_mode_is_text(raw: DataFrame, mode: Any) -> None:
    with pytest.raises(TypeError) as failure:
        decode_records(raw, RECORDS, mode=mode)
    assert str(failure.value) == f"mode must be one of PERMISSIVE, FAILFAST, DROPMALFORMED, not {mode!r}"


@pytest.mark.parametrize(
    ("asked", "meant"), [("offset_commit", "OffsetCommit"), ("GroupMetaData", "GroupMetadata"), ("Unheard", None)]
)
def test_a_record_of_nearly_that_name(asked: str, meant: str | None) -> None:
    hint = f"did you mean {meant}? The" if meant else "the"
    text = str(UnknownRecord(asked, ["OffsetCommit", "GroupMetadata"]))
    assert text == f"no record is called {asked!r}; {hint} records are GroupMetadata, OffsetCommit"


def test_dropmalformed_wants_to_be_counted(raw: DataFrame) -> None:
    with pytest.raises(ValueError, match="DROPMALFORMED drops rows: pass an observation that counts them"):
        decode_records(raw, RECORDS, mode="DROPMALFORMED")


def test_an_unknown_mode_is_refused(raw: DataFrame) -> None:
    with pytest.raises(ValueError, match="mode 'LENIENT' is not one of PERMISSIVE, FAILFAST, DROPMALFORMED"):
        decode_records(raw, RECORDS, mode="LENIENT")


def test_an_unknown_record_is_refused(raw: DataFrame) -> None:
    with pytest.raises(UnknownRecord) as failure:
        decode_records(raw, {1: RECORDS[1], 2: RECORDS[2]}, records=["OffsetCommits"])
    assert str(failure.value) == (
        "no record is called 'OffsetCommits'; did you mean OffsetCommit? The records are GroupMetadata, OffsetCommit"
    )


def test_a_name_in_place_of_a_list_of_names_is_refused(raw: DataFrame) -> None:
    with pytest.raises(TypeError, match=r"^records must be a list of names: write \['OffsetCommit'\]$"):
        decode_records(raw, RECORDS, records="OffsetCommit")
    with pytest.raises(TypeError, match=r"^coordinates must be a list of names: write \['offset'\]$"):
        decode_records(raw, RECORDS, coordinates="offset")


def test_an_unknown_coordinate_is_refused(raw: DataFrame) -> None:
    with pytest.raises(
        ValueError, match=r"^there is no coordinate 'value'; the coordinates are topic, partition, offset, "
    ):
        decode_records(raw, RECORDS, coordinates=["offset", "value", "key"])
    with pytest.raises(ValueError, match=r"^the coordinate offset is given twice$"):
        decode_records(raw, RECORDS, coordinates=["offset", "topic", "offset"])


def test_only_chosen_coordinates_come_along_in_the_order_asked(raw: DataFrame) -> None:
    from pyspark.sql import Observation

    counts = Observation("chosen")
    decoded = decode_records(raw, RECORDS, observation=counts, coordinates=["offset", "partition"])

    names = decoded.schema.names
    assert names[:3] == ["offset", "partition", "record_type"]
    assert not {"topic", "timestamp_ms", "control"} & set(names)
    assert sorted((row.partition, row.offset, row.is_tombstone) for row in decoded.collect())[-1] == (7, 7, None)
    assert counts.get["control"] == 1
    with pytest.raises(Exception, match="t-7 offset 2: OffsetCommitValue v3 at byte 0: offset needs 8 bytes, but 3"):
        decode_records(raw.where("offset < 3"), RECORDS, mode="FAILFAST", coordinates=["offset"]).collect()


def test_columns_of_one_name_are_refused() -> None:
    twin = RecordSchema(9, "Error", RECORDS[1].key, RECORDS[1].value)
    with pytest.raises(ColumnClash) as failure:
        decoded_schema([twin])
    assert str(failure.value) == ("two columns would be called 'error': decode the records that share it one at a time")


# -- rows of other topics ----------------------------------------------------------------------------------------------


def of_topics(raw: DataFrame) -> DataFrame:
    """A commit of each of these topics, and a control record."""
    names = F.array(*map(F.lit, ("__consumer_offsets", "__transaction_state", "east.__consumer_offsets")))
    some = raw.where("offset IN (0, 7)").withColumn("topic", F.explode(F.concat(names, F.array(F.lit(None)))))
    return some.orderBy("offset", F.desc_nulls_last("topic"))


@pytest.mark.parametrize("kept", [None, ["offset"]])
def test_rows_of_another_topic_are_not_decoded_and_say_so(raw: DataFrame, kept: list[str] | None) -> None:
    observation = Observation()
    rows = consumer_offsets.decode_records(of_topics(raw), coordinates=kept, observation=observation).collect()
    assert [row.error.reason if row.error else None for row in rows[:4]] == [None, "WrongTopic", None, None]
    strange = rows[1]
    assert (strange.offset_commit, strange.record_type, strange.is_tombstone) == (None, None, False)
    assert (strange.raw_key, strange.raw_value) == (KEY, VALUE)
    assert strange.error.message == str(WrongTopic("__consumer_offsets"))
    assert rows[0].offset_commit == rows[2].offset_commit == rows[3].offset_commit is not None
    counts = observation.get
    assert (counts["rows"], counts["decoded"], counts["corrupt"], counts["control"]) == (8, 3, 2, 3)


def test_a_topic_that_is_named_is_the_only_one(raw: DataFrame) -> None:
    for decode in (consumer_offsets.decode_records, lambda df, **own: decode_records(df, RECORDS, **own)):
        rows = decode(of_topics(raw), topic="east.__consumer_offsets", records=["OffsetCommit"]).collect()
        reasons = {row.topic: row.error.reason if row.error else None for row in rows if row.offset == 0}
        assert reasons == {
            "__consumer_offsets": "WrongTopic",
            "__transaction_state": "WrongTopic",
            "east.__consumer_offsets": None,
            None: None,
        }


def test_failfast_ends_at_a_row_of_another_topic(raw: DataFrame) -> None:
    with pytest.raises(PySparkException) as caught:
        consumer_offsets.decode_records(of_topics(raw), mode="FAILFAST", coordinates=["offset"]).collect()
    assert f"__transaction_state-7 offset 0: {WrongTopic('__consumer_offsets')}" in str(caught.value)
