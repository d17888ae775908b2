"""Decoded columns in files that Java reads and writes: Parquet by Spark, Avro by Apache's own library."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_records import registry
from kafka_records_engine.columns import arrow_type, decode_column
from kafka_records_engine.spark.spark_types import spark_type
from kafka_records_runtime.schema import MessageSchema
from tests.conftest import VectorLoader
from tests.log.lossless import encoded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Vectors = dict[str, list[tuple[bytes | None, int]]]


@pytest.fixture(scope="module")
def vectors(load_vectors: VectorLoader) -> Vectors:
    """Bytes and versions of every message that Kafka wrote, by name; padded with nulls to lists of equal length."""
    found: Vectors = defaultdict(list)
    for line in load_vectors("messages.jsonl.gz"):
        found[line["message"]].append((bytes.fromhex(line["hex"]), line["version"]))
    longest = max(map(len, found.values()))
    return {name: rows + [(None, 0)] * (longest - len(rows)) for name, rows in found.items()}


def schema_of(name: str) -> MessageSchema:
    schema = registry.message_class(name).CODEC.schema
    assert isinstance(schema, MessageSchema)
    return schema


def column_of(name: str, rows: list[tuple[bytes | None, int]]) -> pa.StructArray:
    data, versions = pa.array([row[0] for row in rows], pa.binary()), pa.array([row[1] for row in rows], pa.int16())
    return decode_column(schema_of(name), data, versions, unknown_tags=True).values


def test_parquet_through_spark(spark: SparkSession, tmp_path: Path, vectors: Vectors) -> None:
    """Written by pyarrow, read and written by Spark, read by pyarrow.

    Requests are left out: they are not stored in tables, and Spark takes long for their nested types.
    """
    kept = {name: rows for name, rows in vectors.items() if ".rpc." not in registry.MESSAGES[name][0]}
    columns = {name: column_of(name, rows) for name, rows in kept.items()}
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")

    frame = spark.read.parquet(str(tmp_path / "in.parquet"))
    expected = {name: spark_type(schema_of(name), unknown_tags=True).simpleString() for name in kept}
    assert {field.name: field.dataType.simpleString() for field in frame.schema.fields} == expected
    frame.coalesce(1).write.parquet(str(tmp_path / "out"))

    table = pq.read_table(tmp_path / "out")
    assert table.column_names == list(kept)
    for name, rows in kept.items():
        back = pa.array(table[name].to_pylist(), arrow_type(schema_of(name), unknown_tags=True))
        assert encoded(schema_of(name), back, [row[1] for row in rows]) == [row[0] for row in rows], name


def test_avro_schemas_as_java_reads_them(spark: SparkSession) -> None:
    """Java's parser is strict: it checks names and defaults too."""
    avro = java_avro(spark)
    for name in [*registry.MESSAGES, *registry._RECORDS]:
        text = fastavro.schema.to_parsing_canonical_form(registry.avro_schema(name))
        parsed = avro.Schema.Parser().parse(json.dumps(registry.avro_schema(name)))
        assert avro.SchemaNormalization.toParsingForm(parsed) == text, name
    with pytest.raises(Exception, match="Invalid default for field a"):
        avro.Schema.Parser().parse(
            json.dumps({"type": "record", "name": "A", "fields": [{"name": "a", "type": "int", "default": None}]})
        )


def test_avro_files_through_java(spark: SparkSession, tmp_path: Path, vectors: Vectors) -> None:
    """Written by fastavro, copied record for record by Java, read by fastavro."""
    names = ["GroupMetadataValue", "StreamsGroupTopologyValue", "ShareSnapshotValue", "OffsetFetchResponse"]
    for name in names:
        rows = [row for row in vectors[name] if row[0] is not None]
        column = column_of(name, rows)
        with (tmp_path / f"{name}.avro").open("wb") as file:
            fastavro.writer(file, fastavro.parse_schema(registry.avro_schema(name)), column.to_pylist())
        copy_by_java(spark, tmp_path / f"{name}.avro", tmp_path / f"{name}-copy.avro")
        with (tmp_path / f"{name}-copy.avro").open("rb") as file:
            back = pa.array(list(fastavro.reader(file)), column.type)
        assert back.equals(column), name
        assert encoded(schema_of(name), back, [row[1] for row in rows]) == [row[0] for row in rows], name


def java_avro(spark: SparkSession) -> Any:
    """The package org.apache.avro, which comes with Spark."""
    jvm: Any = spark.sparkContext._jvm
    return jvm.org.apache.avro


def copy_by_java(spark: SparkSession, source: Path, target: Path) -> None:
    avro, jvm = java_avro(spark), spark.sparkContext._jvm
    assert jvm is not None
    reader = avro.file.DataFileReader(jvm.java.io.File(str(source)), avro.generic.GenericDatumReader())
    writer = avro.file.DataFileWriter(avro.generic.GenericDatumWriter())
    writer.create(reader.getSchema(), jvm.java.io.File(str(target)))
    while reader.hasNext():
        writer.append(reader.next())
    writer.close()
    reader.close()
