"""A topic of your own with metadata framing in Spark: decoded in Python and in the JVM, with the same rows."""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records_codegen.evolution.kafka_releases import fetch_specs
from kafka_records_codegen.generate import generate
from kafka_records_codegen.loader import load
from kafka_records_codegen.tree import write
from kafka_records_engine.spark.decode import BatchDecoder, decoded_schema
from kafka_records_engine.spark.jvm import add_functions
from kafka_records_engine.spark.raw import as_raw_rows
from kafka_records_runtime.records.framing import in_frame
from tests.kafka_needed import skipped_without_kafka
from tests.ledger import CORRECTION, FRAMES, TRANSFER, WRITTEN, ledger_package, ledger_records, on_path
from tests.spark.conftest import active
from tests.spark.jvm.made_records import Raw
from tests.spark.jvm.test_same_rows import collected, compare, written
from tools.kafka_releases import LATEST

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

NAME = "ledger_in_spark"
FAILURES = (PySparkException, Py4JJavaError)
UNFRAMED = Raw(None, b"\x02\x00\x00")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ledger_package(tmp_path_factory.mktemp("ledger"), NAME) as name:
        yield name


@pytest.fixture(scope="module")
def session(spark: SparkSession, built: None, package: str) -> Iterator[SparkSession]:
    made = spark.newSession()
    add_functions(made, package)
    with active(made):
        yield made


def module(name: str) -> Any:
    return importlib.import_module(f"{NAME}.{name}")


def rows_of(spark: SparkSession, raw: list[Raw]) -> DataFrame:
    rows = [(at, each.key, each.value) for at, each in enumerate(raw)]
    return as_raw_rows(spark.createDataFrame(rows, "offset long, key binary, value binary"), topic="ledger")


@pytest.mark.parametrize("unknown_tags", [False, True])
def test_the_jvm_gives_what_python_gives(session: SparkSession, tmp_path: Path, unknown_tags: bool) -> None:
    raw = ledger_records(NAME, 3000, seed=3)
    path = written(tmp_path, raw, "ledger")
    schemas, decode_records = module("schemas.ledger").RECORDS, module("spark.ledger").decode_records
    found = decode_records(session.read.parquet(path), unknown_tags=unknown_tags, coordinates=["offset"], engine="jvm")
    abouts = module("spark.ledger._decode_records")._ABOUTS
    assert found.schema == decoded_schema(schemas.values(), unknown_tags, ["offset"], abouts)
    assert found.schema["transfer_record"].dataType.fieldNames() == ["value"]
    decoder = BatchDecoder(schemas, "PERMISSIVE", unknown_tags, ["offset"])
    expected = pa.Table.from_batches(decoder(iter(pq.read_table(path).combine_chunks().to_batches()))).to_pylist()
    compare(collected(found, tmp_path), expected, raw)
    by_bytes = {
        (each.key, each.value): row["error"] for each, row in zip(raw, expected, strict=True) if not each.control
    }
    for key, value, reason, offset, text in FRAMES:
        error = by_bytes[key, value]
        assert (error["reason"], error["byte_offset"], error["message"]) == (reason, offset, text)


def test_chosen_records_by_both_engines(session: SparkSession, tmp_path: Path) -> None:
    raw = ledger_records(NAME, 1500, seed=4)
    path = written(tmp_path, raw, "ledger")
    decode_records = module("spark.ledger").decode_records
    for name in ("TransferRecord", "CorrectionRecord"):
        jvm, python = (
            collected(
                decode_records(
                    session.read.parquet(path), records=[name], coordinates=["offset"], topic="ledger", engine=engine
                ),
                tmp_path,
            )
            for engine in ("jvm", "python")
        )
        assert repr(jvm) == repr(python)
        number = TRANSFER if name == "TransferRecord" else CORRECTION
        assert {row["record_type"] for row in jvm} == {None, number}
        assert 100 < len(jvm) < len(raw)


def test_what_is_counted(session: SparkSession) -> None:
    transfer = module("ledger.transfer_record").TransferRecord
    whole = in_frame(TRANSFER, 1, transfer(cents=5).encode(1))
    raw = [
        Raw(None, whole),
        Raw(None, whole + b"more"),
        Raw(None, in_frame(TRANSFER, 9, b"")),
        Raw(None, in_frame(99, 0, b"")),
        UNFRAMED,
    ]
    for engine in ("jvm", "python"):
        counts = Observation()
        decoded = module("spark.ledger").decode_records(rows_of(session, raw), observation=counts, engine=engine)
        errors = [row[0] for row in decoded.orderBy("offset").select("error.message").collect()]
        assert errors == [
            None,
            "TransferRecord v1 at byte 42: the message ends here, but is followed by 4 bytes",
            "TransferRecord has no version 9: its versions are 0 to 1",
            "no record of this topic has the api key 99, at byte 1 of the value",
            "the value has the frame version 2 at byte 0, but only version 1 is known",
        ]
        found = {name: count for name, count in counts.get.items() if count}
        assert found == {"rows": 5, "decoded": 1, "unknown_type": 1, "unknown_version": 1, "corrupt": 2}


def test_failfast_names_the_record_and_the_byte(session: SparkSession) -> None:
    for engine in ("jvm", "python"):
        decoded = module("spark.ledger").decode_records(
            rows_of(session, [Raw(None, b"\x01")]), mode="FAILFAST", engine=engine
        )
        with pytest.raises(FAILURES, match="offset 0: the value has 1 byte: the api key at byte 1 is cut off"):
            decoded.collect()


def test_functions_for_columns(session: SparkSession) -> None:
    raw = [each for each in ledger_records(NAME, 800, seed=5) if each.key is None]
    frame = rows_of(session, raw).select("offset", "value")
    functions = module("spark.ledger")
    found = {}
    for engine in ("jvm", "python"):
        transfer = functions.from_transfer_record("value", unknown_tags=True, engine=engine)
        correction = functions.from_correction_record("value", unknown_tags=True, engine=engine)
        version = F.conv(F.hex(F.substring("value", 3, 1)), 16, 10).cast("int")
        again = functions.to_transfer_record(transfer, version, mode="PERMISSIVE", engine=engine)
        found[engine] = (
            frame.orderBy("offset").select(transfer.alias("t"), correction.alias("c"), again.alias("a")).collect()
        )
        newest = functions.to_correction_record(
            F.struct(F.lit(7).alias("offset"), F.lit("x").alias("reason")), engine=engine
        )
        row = frame.limit(1).select(newest).first()
        assert row is not None
        assert bytes(row[0]) == in_frame(CORRECTION, 0, bytes(7) + b"\x07\x02x\x00")
        strict = functions.from_transfer_record("value", mode="FAILFAST", engine=engine)
        with pytest.raises(FAILURES, match="the value has the frame version 2 at byte 0, but only version 1 is known"):
            rows_of(session, [UNFRAMED]).select(strict).collect()
    assert repr(found["jvm"]) == repr(found["python"])
    assert sum(row.t is not None for row in found["jvm"]) > 100
    assert sum(row.c is not None for row in found["jvm"]) > 100
    given = {each.value for each in raw}
    assert sum(row.a is not None and bytes(row.a) in given for row in found["jvm"]) > 100


def test_sql_has_a_function_per_message_record_and_topic(session: SparkSession) -> None:
    value = in_frame(CORRECTION, 0, bytes(7) + b"\x07\x02x\x00").hex()
    row = session.sql(f"""
        SELECT {NAME}.from_correction_record(X'{value}').reason AS reason,
               {NAME}.from_correction_record(NULL, X'{value}').value.offset AS offset,
               {NAME}.from_transfer_record(NULL, X'{value}') AS other,
               {NAME}.from_correction_record(X'00', X'{value}') AS with_key,
               {NAME}.from_correction_record(NULL, X'{value}ff') AS longer,
               {NAME}.decode_ledger(NULL, X'{value}').correction_record.value.reason AS together,
               {NAME}.decode_ledger(NULL, NULL).error.reason AS error
        """).first()
    assert row is not None
    assert row.asDict() == {
        "reason": "x",
        "offset": 7,
        "other": None,
        "with_key": None,
        "longer": None,
        "together": "x",
        "error": "NullValue",
    }
    names = [row[0] for row in session.sql(f"SHOW USER FUNCTIONS IN {NAME}").collect()]
    assert len(names) == len(set(names))
    assert f"{NAME}.from_correction_record" in names


@pytest.mark.maven
@pytest.mark.skipif(shutil.which("mvn") is None, reason="Maven fetches Kafka's jars and is not installed")
def test_what_a_controller_wrote(spark: SparkSession, built: None, tmp_path: Path) -> None:
    """By the specs in Kafka's jar. Rows are collected: Parquet has no struct without fields, as a NoOpRecord is one."""
    with skipped_without_kafka():
        specs = fetch_specs(LATEST) / "kafka_metadata"
    shutil.copytree(specs, tmp_path / "specs" / "cluster_metadata")
    write(tmp_path / "controller_in_spark", generate(load(tmp_path / "specs"), "controller_in_spark"))
    lines = [json.loads(line) for line in WRITTEN.read_text(encoding="utf-8").splitlines()]
    raw = [Raw(None, bytes.fromhex(line["value"])) for line in lines]
    path = written(tmp_path, raw, "cluster_metadata")
    made = spark.newSession()
    with on_path(tmp_path), active(made):
        topic = importlib.import_module("controller_in_spark.spark.cluster_metadata")
        found = {
            engine: topic.decode_records(made.read.parquet(path), engine=engine).orderBy("offset").collect()
            for engine in ("jvm", "python")
        }
    assert repr(found["jvm"]) == repr(found["python"])
    for row, line in zip(found["jvm"], lines, strict=True):
        assert (row["error"], row["value_version"], row["leniencies"]) == (None, line["version"], [])
        assert row[line["type"].lower()].value is not None
