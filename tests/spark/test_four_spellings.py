"""One schema, four forms: Arrow type, Spark type, Avro schema and Python class of every message agree."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import types as spark

from kafka_records import registry
from kafka_records.consumer_offsets.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kafka_records.schemas import consumer_offsets as schemas
from kafka_records.spark import consumer_offsets as columns
from kafka_records_engine.columns import arrow_type, record_arrow_type
from kafka_records_engine.spark.spark_types import record_spark_type, spark_type
from kafka_records_runtime.schema import PRIMITIVES, MessageSchema, RecordSchema
from kafka_records_runtime.text.casing import upper_snake_case
from tests.acme import acme_package
from tests.spark.spellings import (
    TABLE,
    UNKNOWN_TAGS,
    Member,
    Struct,
    differences,
    of_arrow,
    of_avro,
    of_class,
    of_schema,
    of_spark,
    without_tags,
)

ROOT = Path(__file__).resolve().parents[2]
OURS = "kafka_records"
ACME = "acme_spelled"
NAMES = sorted(registry.MESSAGES)
EVERY = [(OURS, name) for name in NAMES] + [(ACME, name) for name in ("Everything", "TrailEntryKey", "TrailEntryValue")]
FOLDERS = sorted({module.split(".")[1] for module, _ in registry.MESSAGES.values()})
RECORDS = {
    (folder, record.name): record
    for folder in FOLDERS
    for record in getattr(importlib.import_module(f"{OURS}.schemas.{folder}"), "RECORDS", {}).values()
}


@pytest.fixture(scope="module", autouse=True)
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The package of specs that use the whole language."""
    with acme_package(tmp_path_factory.mktemp("acme"), ACME):
        yield


def module_of(package: str, kind: str, name: str) -> Any:
    """The module with the schema or Spark type of the message `name`."""
    place = importlib.import_module(f"{package}.registry").MESSAGES[name][0].removeprefix(f"{package}.")
    folder = place.rpartition(".")[0]
    return importlib.import_module(f"{package}.{kind}.{folder}" if folder else f"{package}.{kind}")


def schema_of(package: str, name: str) -> MessageSchema:
    schema = getattr(module_of(package, "schemas", name), upper_snake_case(name))
    assert isinstance(schema, MessageSchema)
    assert schema.name == name
    return schema


def test_there_are_messages_and_records() -> None:
    specs = [path for path in (ROOT / "message_specs").rglob("*.json") if not path.name.startswith("_")]
    assert sorted(path.stem for path in specs) == NAMES
    keys = [path for path in specs if path.with_name(f"{path.stem.removesuffix('Key')}Value.json").exists()]
    pairs = {(path.parent.name, path.stem.removesuffix("Key")) for path in keys if path.stem.endswith("Key")}
    metadata = ("cluster_metadata", "remote_log_metadata")
    alone = {(path.parent.name, path.stem) for path in specs if path.parent.name in metadata}
    assert pairs | alone == set(RECORDS)


def test_every_type_of_the_language_is_met() -> None:
    def met(names: list[tuple[str, str]]) -> set[str]:
        structs = [struct for name in names for struct in schema_of(*name).structs]
        return {field.base for struct in structs for field in struct.fields}

    assert TABLE.keys() == PRIMITIVES
    assert met(EVERY) >= PRIMITIVES
    assert PRIMITIVES - met([(OURS, name) for name in NAMES]) <= {"float64", "uint32"}


@pytest.mark.parametrize(("package", "name"), EVERY)
def test_a_message(package: str, name: str) -> None:
    schema = schema_of(package, name)
    found = importlib.import_module(f"{package}.registry")
    measure = of_schema(schema, tags=False)
    assert list(differences(measure, "arrow", of_arrow(arrow_type(schema)))) == []
    if ".rpc." not in found.MESSAGES[name][0]:
        printed = getattr(module_of(package, "spark", name), upper_snake_case(name))
        assert list(differences(measure, "spark", of_spark(printed))) == []
    assert list(differences(measure, "spark", of_spark(spark_type(schema)))) == []
    assert list(differences(measure, "avro", without_tags(of_avro(found.avro_schema(name))))) == []
    assert list(differences(measure, "python", without_tags(of_class(found.message_class(name))))) == []


@pytest.mark.parametrize(("package", "name"), EVERY)
def test_a_message_with_its_unknown_tagged_fields(package: str, name: str) -> None:
    schema = schema_of(package, name)
    found = importlib.import_module(f"{package}.registry")
    measure = of_schema(schema, tags=True)
    assert (UNKNOWN_TAGS in str(measure)) == (schema.flexible is not None)
    assert list(differences(measure, "arrow", of_arrow(arrow_type(schema, unknown_tags=True)))) == []
    assert list(differences(measure, "spark", of_spark(spark_type(schema, unknown_tags=True)))) == []
    assert list(differences(measure, "avro", of_avro(found.avro_schema(name)))) == []
    assert list(differences(measure, "python", of_class(found.message_class(name)))) == []


@pytest.mark.parametrize(("folder", "name"), RECORDS)
def test_a_record(folder: str, name: str) -> None:
    record: RecordSchema = RECORDS[folder, name]
    parts = {"value": record.value} if record.key_or_none is None else {"key": record.key, "value": record.value}
    for tags in (False, True):
        measure = Struct(tuple(Member(part, True, of_schema(schema, tags)) for part, schema in parts.items()))
        # A record of the metadata log is one message, and its Avro schema is that of the message.
        avro = of_avro(registry.avro_schema(name)) if record.key_or_none is not None else None
        assert list(differences(measure, "arrow", of_arrow(record_arrow_type(record, tags)))) == []
        assert list(differences(measure, "spark", of_spark(record_spark_type(record, tags)))) == []
        if avro is not None:
            assert list(differences(measure, "avro", avro if tags else without_tags(avro))) == []
    kind = importlib.import_module(f"{OURS}.{folder}").RECORD_TYPES.types[record.type]
    assert kind.value_class.CODEC.schema == record.value
    assert (kind.key_class and kind.key_class.CODEC.schema) == record.key_or_none


def test_full_names_of_avro_types_are_those_of_the_classes() -> None:
    for name in NAMES:
        cls, schema = registry.message_class(name), registry.avro_schema(name)
        assert f"{schema['namespace']}.{schema['name']}" == f"{cls.__module__}.{cls.__qualname__}"


# ---- the comparison sees what it should


CLASS = ConsumerGroupCurrentMemberAssignmentValue
SCHEMA = schemas.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE
MEASURE = of_schema(SCHEMA, tags=True)


def test_the_sample_is_right_before_it_is_changed() -> None:
    assert list(differences(MEASURE, "arrow", of_arrow(arrow_type(SCHEMA, unknown_tags=True)))) == []
    assert list(differences(MEASURE, "avro", of_avro(registry.avro_schema(SCHEMA.name)))) == []


def rebuilt(type: pa.DataType, change: Any) -> pa.DataType:
    """An Arrow type after `change` was applied to every field."""
    if pa.types.is_struct(type):
        return pa.struct([change(each.with_type(rebuilt(each.type, change))) for each in type])
    if pa.types.is_list(type):
        return pa.list_(change(type.value_field.with_type(rebuilt(type.value_type, change))))
    return type


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (
            lambda it: it.with_type(pa.int64()) if it.name == "member_epoch" else it,
            ["member_epoch: int32 is int64, not int32"],
        ),
        (
            lambda it: it.with_nullable(True) if it.name == "topic_id" else it,
            ["assigned_partitions[].topic_id: may be null", "partitions_pending_revocation[].topic_id: may be null"],
        ),
        (
            lambda it: it.with_nullable(True) if it.name == "element" and it.type == pa.int32() else it,
            [
                f"{path}[].{name}[]: may be null"
                for path in ("assigned_partitions", "partitions_pending_revocation")
                for name in ("partitions", "assignment_epochs")
            ],
        ),
        (
            lambda it: it.with_name("tags") if it.name == "data" else it,
            [
                f"{path}unknown_tagged_fields[]: has tag, tags, not tag, data"
                for path in ("assigned_partitions[].", "partitions_pending_revocation[].", "")
            ],
        ),
    ],
    ids=["type", "nullable", "element", "name"],
)
def test_an_arrow_type_that_differs_deep_inside(change: Any, found: list[str]) -> None:
    changed = rebuilt(arrow_type(SCHEMA, unknown_tags=True), change)
    assert sorted(differences(MEASURE, "arrow", of_arrow(changed))) == sorted(found)


def test_a_spark_type_that_differs() -> None:
    fields = list(columns.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE.fields)
    measure = of_schema(SCHEMA, tags=False)
    names = ", ".join(each.name for each in fields)
    swapped = spark.StructType([fields[1], fields[0], *fields[2:]])
    assert list(differences(measure, "spark", of_spark(swapped))) == [
        f"the message: has {', '.join(each.name for each in swapped.fields)}, not {names}"
    ]
    nulls = spark.StructType([*fields[:3], _with_null_elements(fields[3]), *fields[4:]])
    assert list(differences(measure, "spark", of_spark(nulls))) == [f"{fields[3].name}[]: may be null"]
    scalar = spark.StructType([*fields[:3], spark.StructField(fields[3].name, spark.StringType(), False), *fields[4:]])
    assert list(differences(measure, "spark", of_spark(scalar))) == [f"{fields[3].name}: is Leaf, not Array"]


def _with_null_elements(field: spark.StructField) -> spark.StructField:
    assert isinstance(field.dataType, spark.ArrayType)
    return spark.StructField(field.name, spark.ArrayType(field.dataType.elementType, True), field.nullable)


def test_an_avro_schema_that_differs() -> None:
    def changed(change: Any) -> list[str]:
        schema = copy.deepcopy(registry.avro_schema(SCHEMA.name))
        change(schema["fields"])
        return list(differences(MEASURE, "avro", of_avro(schema)))

    def nested(fields: Any) -> Any:
        return next(each for each in fields if each["name"] == "assigned_partitions")["type"]["items"]["fields"]

    assert changed(lambda fields: None) == []
    assert changed(lambda fields: fields[0].update(type="long")) == ["member_epoch: int32 is long, not int"]
    assert changed(lambda fields: fields[0].update(type=["int", "null"])) == ["member_epoch: may be null"]
    assert changed(lambda fields: nested(fields).pop(1)) == [
        f"{path}[]: has topic_id, assignment_epochs, unknown_tagged_fields, "
        "not topic_id, partitions, assignment_epochs, unknown_tagged_fields"
        for path in ("assigned_partitions", "partitions_pending_revocation")
    ]


def test_a_class_that_differs() -> None:
    hints = {name: CLASS.__annotations__[name] for name in CLASS.__struct_fields__}
    module = importlib.import_module(CLASS.__module__)

    def changed(**others: Any) -> list[str]:
        resolved = {name: eval(hint, vars(module)) for name, hint in hints.items()} | others
        return list(differences(MEASURE, "python", of_class(msgspec.defstruct("Changed", list(resolved.items())))))

    assert changed() == []
    assert changed(member_epoch=int | None) == ["member_epoch: may be null"]
    assert changed(member_epoch=str) == ["member_epoch: int32 is str, not int"]
    assert changed(unknown_tagged_fields=tuple[tuple[int, str], ...]) == [
        "unknown_tagged_fields[].data: bytes is str, not bytes"
    ]
