"""Schemas as column types: generated and computed ones agree, and messages without a column type are refused by
name."""

from __future__ import annotations

from types import ModuleType

import pyarrow as pa
import pytest
from pyspark.sql import types as spark

from kafka_records.schemas import consumer_offsets, consumer_protocol, share_group_state, transaction_state
from kafka_records.spark import consumer_offsets as offsets_columns
from kafka_records.spark import consumer_protocol as protocol_columns
from kafka_records.spark import share_group_state as share_columns
from kafka_records.spark import transaction_state as transaction_columns
from kafka_records_engine.columns import ARROW_TYPES, UnsupportedType, arrow_type
from kafka_records_engine.columns.walker_values import plain_values
from kafka_records_engine.spark.spark_types import spark_type
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.schema import FORMAT, PRIMITIVES, FieldSchema, MessageSchema, StructSchema
from kafka_records_runtime.text.casing import snake_case
from kafka_records_runtime.text.spark_names import SPARK_TYPES

SOME_UUID = Uuid.from_string("M4_2Tv--T0Gv8t6piaeUcQ")


def _message(*fields: FieldSchema, structs: tuple[StructSchema, ...] = ()) -> MessageSchema:
    return MessageSchema(FORMAT, "Sample", (0, 0), (0, 0), (*structs, StructSchema("Sample", fields)))


def test_every_primitive_has_a_column_type() -> None:
    assert set(ARROW_TYPES) == set(SPARK_TYPES) == PRIMITIVES


@pytest.mark.parametrize(
    ("schemas", "columns"),
    [
        (consumer_offsets, offsets_columns),
        (consumer_protocol, protocol_columns),
        (share_group_state, share_columns),
        (transaction_state, transaction_columns),
    ],
)
def test_generated_types_are_the_computed_ones(schemas: ModuleType, columns: ModuleType) -> None:
    messages = [name for name in schemas.__all__ if isinstance(getattr(schemas, name), MessageSchema)]
    assert messages
    for name in messages:
        assert spark_type(getattr(schemas, name)) == getattr(columns, name)


def test_every_kind_of_field() -> None:
    inner = StructSchema("Inner", (FieldSchema("id", "id", "uuid", (0, 0)),))
    message = _message(
        *(FieldSchema(f"a_{name}", f"a{name}", name, (0, 0)) for name in sorted(PRIMITIVES)),
        FieldSchema("maybe", "maybe", "string", (0, 0), nullable=(0, 0)),
        FieldSchema("numbers", "numbers", "[]int16", (0, 0)),
        FieldSchema("inners", "inners", "[]Inner", (0, 0)),
        structs=(inner,),
    )

    # Binary, because only Kafka reads a batch of records as more than bytes.
    assert spark_type(message).simpleString() == (
        "struct<a_bool:boolean,a_bytes:binary,a_float64:double,a_int16:smallint,a_int32:int,a_int64:bigint,"
        "a_int8:tinyint,a_records:binary,a_string:string,a_uint16:int,a_uint32:bigint,a_uuid:string,"
        "maybe:string,numbers:array<smallint>,inners:array<struct<id:string>>>"
    )
    nullable = [field.name for field in spark_type(message).fields if field.nullable]
    assert nullable == ["a_records", "maybe"]
    numbers = spark_type(message)["numbers"].dataType
    assert isinstance(numbers, spark.ArrayType)
    assert not numbers.containsNull


def test_arrow_types_are_what_spark_makes_of_its_own() -> None:
    from pyspark.sql.pandas.types import to_arrow_type

    for name in consumer_offsets.__all__:
        message = getattr(consumer_offsets, name)
        if isinstance(message, MessageSchema):
            assert str(arrow_type(message)) == str(to_arrow_type(spark_type(message)))


def test_a_type_without_column_is_refused() -> None:
    message = _message(FieldSchema("odd", "odd", "int128", (0, 0)))
    with pytest.raises(UnsupportedType) as failure:
        spark_type(message)
    assert str(failure.value) == "Sample: odd has the type int128, which has no column type"


def test_a_struct_in_itself_is_refused() -> None:
    node = StructSchema("Node", (FieldSchema("children", "children", "[]Node", (0, 0)),))
    message = _message(FieldSchema("tree", "tree", "Node", (0, 0)), structs=(node,))
    with pytest.raises(UnsupportedType) as failure:
        arrow_type(message)
    assert str(failure.value) == "Sample: tree.children contains the struct Node, which contains itself"


def test_uuids_become_text_wherever_they_are() -> None:
    inner = StructSchema("Inner", (FieldSchema("id", "id", "uuid", (0, 0)), FieldSchema("n", "n", "int8", (0, 0))))
    message = _message(
        FieldSchema("one", "one", "uuid", (0, 0)),
        FieldSchema("many", "many", "[]uuid", (0, 0)),
        FieldSchema("maybe", "maybe", "Inner", (0, 0), nullable=(0, 0)),
        FieldSchema("none", "none", "Inner", (0, 0), nullable=(0, 0)),
        FieldSchema("inners", "inners", "[]Inner", (0, 0)),
        structs=(inner,),
    )
    text = "M4_2Tv--T0Gv8t6piaeUcQ"
    value = {
        "one": SOME_UUID,
        "many": (SOME_UUID, SOME_UUID),
        "maybe": {"id": SOME_UUID, "n": 1},
        "none": None,
        "inners": ({"id": SOME_UUID, "n": 2},),
        "unknown_tagged_fields": ((9, b"x"),),
    }

    plain = plain_values(message)(value)

    assert pa.array([plain], arrow_type(message)).to_pylist() == [
        {
            "one": text,
            "many": [text, text],
            "maybe": {"id": text, "n": 1},
            "none": None,
            "inners": [{"id": text, "n": 2}],
        }
    ]
    assert value["one"] is SOME_UUID


def test_values_without_uuids_are_handed_through() -> None:
    value = {"offset": 1}
    assert plain_values(consumer_offsets.OFFSET_COMMIT_KEY)(value) is value


@pytest.mark.parametrize(
    ("name", "column"),
    [("OffsetCommit", "offset_commit"), ("ShareGroupMetadata", "share_group_metadata"), ("KIP848Thing", "kip848thing")],
)
def test_column_names(name: str, column: str) -> None:
    assert snake_case(name) == column
