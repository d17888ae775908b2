"""The generated Spark modules: their types come from the same model as the schemas the workers decode with."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pytest

from kafka_records import registry
from kafka_records_engine.spark.spark_types import spark_type
from kafka_records_runtime.schema import PRIMITIVES
from kafka_records_runtime.text.casing import snake_case
from kafka_records_runtime.text.spark_names import SPARK_TYPES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDERS = sorted({module.split(".")[1] for module, _ in registry.MESSAGES.values()} - {"rpc"})
"""The folders with messages that topics contain. Requests, responses and headers have no Spark functions."""


def test_there_is_a_spark_type_for_every_type_of_the_language() -> None:
    assert set(SPARK_TYPES) == set(PRIMITIVES)


@pytest.mark.parametrize("folder", FOLDERS)
def test_struct_types_are_what_the_workers_produce(folder: str) -> None:
    schemas = importlib.import_module(f"kafka_records.schemas.{folder}")
    spark = importlib.import_module(f"kafka_records.spark.{folder}")
    constants = [name for name in schemas.__all__ if name not in ("RECORDS", "RETIRED_TYPES")]
    assert constants
    for constant in constants:
        assert getattr(spark, constant) == spark_type(getattr(schemas, constant)), constant


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_message_has_a_column_function_that_lists_its_columns(folder: str) -> None:
    schemas = importlib.import_module(f"kafka_records.schemas.{folder}")
    spark = importlib.import_module(f"kafka_records.spark.{folder}")
    for constant in schemas.__all__:
        if constant in ("RECORDS", "RETIRED_TYPES"):
            continue
        schema = getattr(schemas, constant)
        function = getattr(spark, f"from_{snake_case(schema.name)}")
        document = " ".join(function.__doc__.split())
        for field in schema.root.fields:
            assert f"{field.name} " in document


def test_topics_have_decode_records_and_other_folders_do_not() -> None:
    with_records = [
        f for f in FOLDERS if hasattr(importlib.import_module(f"kafka_records.spark.{f}"), "decode_records")
    ]
    topics = ["cluster_metadata", "consumer_offsets", "remote_log_metadata", "share_group_state", "transaction_state"]
    assert with_records == topics


@pytest.mark.spark
def test_columns_say_what_the_specs_say(spark: SparkSession) -> None:
    from kafka_records.spark.consumer_offsets import decode_records
    from kafka_records_engine.spark.raw import RAW_SCHEMA

    row = ("__consumer_offsets", 0, 7, 0, "create", bytes.fromhex("000100016700017400000003"), None)
    raw = spark.createDataFrame([(*row, *[None] * (len(RAW_SCHEMA) - len(row)))], RAW_SCHEMA)
    frame = decode_records(raw, records=["OffsetCommit", "GroupMetadata"])
    assert [tuple(row) for row in frame.select("offset", "offset_commit.key.group").collect()] == [(7, "g")]
    record: Any = frame.schema["offset_commit"].dataType
    comments = {
        f"{part}.{field.name}": field.metadata.get("comment")
        for part in ("key", "value")
        for field in record[part].dataType
    }
    assert comments["key.group"] == "Group that committed the offset."
    assert all(comments.values())
    members: Any = frame.schema["group_metadata"].dataType
    assert members["value"].dataType["members"].dataType.elementType["client_id"].metadata == {
        "comment": "client.id of the member."
    }
