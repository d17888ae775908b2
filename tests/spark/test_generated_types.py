"""The generated Spark modules: their types come from the same model as the schemas the workers decode with."""

from __future__ import annotations

import importlib

import pytest

from kafka_records import registry
from kafka_records_codegen.naming import snake_case
from kafka_records_runtime.schema import PRIMITIVES
from kafka_records_runtime.spark_names import SPARK_TYPES
from kafka_records_spark.types import spark_type

FOLDERS = sorted({module.split(".")[1] for module, _ in registry.MESSAGES.values()})


def test_there_is_a_spark_type_for_every_type_of_the_language() -> None:
    assert set(SPARK_TYPES) == set(PRIMITIVES)


@pytest.mark.parametrize("folder", FOLDERS)
def test_struct_types_are_what_the_workers_produce(folder: str) -> None:
    schemas = importlib.import_module(f"kafka_records.schemas.{folder}")
    spark = importlib.import_module(f"kafka_records.spark.{folder}")
    constants = [name for name in schemas.__all__ if name != "RECORDS"]
    assert constants
    for constant in constants:
        assert getattr(spark, constant) == spark_type(getattr(schemas, constant)), constant


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_message_has_a_column_function_that_lists_its_columns(folder: str) -> None:
    schemas = importlib.import_module(f"kafka_records.schemas.{folder}")
    spark = importlib.import_module(f"kafka_records.spark.{folder}")
    for constant in schemas.__all__:
        if constant == "RECORDS":
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
    assert with_records == ["consumer_offsets", "share_group_state", "transaction_state"]
