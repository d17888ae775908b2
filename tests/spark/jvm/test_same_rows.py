"""The functions in the JVM have the same results as Python for valid and damaged bytes."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records.registry import MESSAGES, message_class
from kafka_records_engine.columns import Columns
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.spark._from_bytes import Capped, Keys, Versioned
from kafka_records_engine.spark.decode import BatchDecoder, decoded_schema
from kafka_records_engine.spark.jvm import schemas_text
from kafka_records_runtime.records.framing import framed
from kafka_records_runtime.text.casing import snake_case
from tests.spark.jvm.made_records import TOPICS, Raw, messages_of, raw_records, records_of
from tools.guided import kept_inputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.conftest import VectorLoader

pytestmark = pytest.mark.spark


def test_records_of_every_topic(in_jvm: SparkSession, tmp_path: Path) -> None:
    for topic in TOPICS:
        check_topic(in_jvm, tmp_path, topic, raw_records(topic, 1500, seed=1))


@pytest.mark.matrix
def test_a_million_records(in_jvm: SparkSession, tmp_path: Path) -> None:
    for seed in range(10):
        for topic in TOPICS:
            check_topic(in_jvm, tmp_path, topic, raw_records(topic, 33_400, seed))


def test_every_message(in_jvm: SparkSession, tmp_path: Path) -> None:
    check_messages(in_jvm, tmp_path, 60, seed=1)


@pytest.mark.matrix
def test_many_of_every_message(in_jvm: SparkSession, tmp_path: Path) -> None:
    check_messages(in_jvm, tmp_path, 10_000, seed=2)


def test_kafkas_own_vectors(in_jvm: SparkSession, load_vectors: VectorLoader, tmp_path: Path) -> None:
    """Messages that Kafka's classes wrote, and damaged ones, have the same result in the JVM and in Python."""
    made = lines_of_messages()
    data: dict[str, list[bytes]] = {}
    for name in ("messages.jsonl.gz", "negative.jsonl.gz"):
        for line in load_vectors(name):
            if (known := made.get(line["message"])) and stands_alone(line["message"]):
                number = int(known[7]) if known[6] == "key" else line["version"]
                data.setdefault(line["message"], []).append(framed(number, bytes.fromhex(line["hex"])))
    assert len(data) > 40
    assert sum(check_from(in_jvm, tmp_path, data).values()) > 100


def test_inputs_that_a_fuzzer_kept(in_jvm: SparkSession, tmp_path: Path) -> None:
    """Inputs that reach new branches in the functions in the JVM (`python -m tools.guided.jvm`)."""
    functions = {f"from_{snake_case(name)}": name for name in lines_of_messages() if stands_alone(name)}
    data: dict[str, list[bytes]] = {}
    raw: dict[str, list[Raw]] = {topic: [] for topic in TOPICS}
    for line in kept_inputs.lines(kept_inputs.FUNCTIONS):
        function, topic = line["function"], line["function"].removeprefix("decode_")
        if function in functions:
            data.setdefault(functions[function], []).append(bytes.fromhex(line["hex"]))
        elif topic in raw:
            key, value = (None if line[name] is None else bytes.fromhex(line[name]) for name in ("key", "value"))
            raw[topic].append(Raw(key, value))
    assert len(data) > 20
    refused = check_from(in_jvm, tmp_path, data)
    assert 0 < sum(refused.values()) < sum(map(len, data.values()))
    for topic, records in raw.items():
        assert len(records) > 5, topic
        check_topic(in_jvm, tmp_path, topic, records)


def check_from(spark: SparkSession, folder: Path, data: Mapping[str, list[bytes]]) -> dict[str, int]:
    """Call `from_…` for messages after their int16, by name. Returns how many of each cannot be read."""
    made = lines_of_messages()
    count = max(map(len, data.values()))
    columns = {name: pa.array(each + [None] * (count - len(each)), pa.binary()) for name, each in data.items()}
    path = str(folder / "vectors.parquet")
    pq.write_table(pa.table({"offset": range(count), **columns}), path)
    frame = spark.read.parquet(path)
    decoders = [getattr(spark_module(name), f"from_{snake_case(name)}") for name in data]
    decoded = [decode(name, unknown_tags=True).alias(name) for name, decode in zip(data, decoders, strict=True)]
    found = collected(frame.select("offset", *decoded), folder)
    refused = {}
    for name, each in data.items():
        expected = list(prefix_of(made[name])(message_class(name).CODEC.schema, columns[name], None, True))
        values = [value for part in expected for value in part.values.to_pylist()]
        refused[name] = values[: len(each)].count(None)
        for row, value, bytes_ in zip(found, values, each, strict=False):
            assert repr(row[name]) == repr(value), (name, bytes_.hex())
    return refused


def check_topic(spark: SparkSession, folder: Path, topic: str, raw: list[Raw]) -> None:
    """Check that `decode_records` has the same schema and rows with both engines, with and without unknown tags."""
    path = written(folder, raw, topic)
    decode_records = importlib.import_module(f"kafka_records.spark.{topic}").decode_records
    for unknown_tags in (False, True):
        found = decode_records(
            spark.read.parquet(path), unknown_tags=unknown_tags, coordinates=["offset"], engine="jvm"
        )
        abouts = importlib.import_module(f"kafka_records.spark.{topic}._decode_records")._ABOUTS
        assert found.schema == decoded_schema(records_of(topic).values(), unknown_tags, ["offset"], abouts)
        decoder = BatchDecoder(records_of(topic), "PERMISSIVE", unknown_tags, ["offset"])
        expected = pa.Table.from_batches(decoder(iter(pq.read_table(path).combine_chunks().to_batches())))
        compare(collected(found, folder), expected.to_pylist(), [(each.key, each.value) for each in raw])


def written(folder: Path, raw: list[Raw], topic: str) -> str:
    """Raw rows as a Parquet file."""
    rows = [
        {"topic": topic, "partition": 0, "offset": at, "key": each.key, "value": each.value, "control": each.control}
        for at, each in enumerate(raw)
    ]
    path = str(folder / f"{topic}.parquet")
    pq.write_table(pa.Table.from_pylist(rows, RAW_SCHEMA), path)
    return path


def collected(frame: DataFrame, folder: Path) -> list[dict[str, Any]]:
    """The rows after a round trip through Parquet, sorted by offset."""
    path = str(folder / "found")
    frame.write.mode("overwrite").parquet(path)
    return sorted(pq.read_table(path).to_pylist(), key=lambda row: row["offset"])


FRAMED = ("cluster_metadata", "remote_log_metadata")


def stands_alone(message: str) -> bool:
    """Whether a message has its own function: one with a frame is read from the values of its whole topic
    (`test_metadata_records.py`)."""
    return message in MESSAGES and MESSAGES[message][0].split(".")[1] not in FRAMED


def compare(found: list[dict[str, Any]], expected: list[dict[str, Any]], given: list[Any]) -> None:
    assert len(found) == len(expected)
    for mine, other, bytes_ in zip(found, expected, given, strict=True):
        # Compare texts, because a NaN is not equal to itself.
        assert repr(mine) == repr(other), bytes_


def lines_of_messages() -> dict[str, list[str]]:
    """The lines of the schema file about each message, by its name."""
    lines = (line.split("\t") for line in schemas_text("kafka_records").splitlines() if "\t" in line)
    return {line[1]: line for line in lines if line[0] == "message"}


def spark_module(message: str) -> Any:
    return importlib.import_module(MESSAGES[message][0].replace("kafka_records.", "kafka_records.spark.", 1))


def prefix_of(line: list[str]) -> Any:
    """The prefix that Python expects before a message."""
    return Keys(int(line[7])) if line[6] == "key" else Capped() if line[8] == "1" else Versioned()


def check_messages(spark: SparkSession, folder: Path, count: int, seed: int) -> None:
    """Check `from_…` of every stored message, and `to_…` of its result."""
    made = lines_of_messages()
    stored = [name for name in made if made[name][0] == "message" and stands_alone(name)]
    data, functions = {}, {}
    for name in stored:
        cls = message_class(name)
        kind, number = made[name][6], made[name][7]
        module = spark_module(name)
        data[name] = messages_of(cls, count, seed, int(number) if kind == "key" else None)
        functions[name] = (getattr(module, f"from_{snake_case(name)}"), getattr(module, f"to_{snake_case(name)}"), kind)
    offsets = list(range(count))
    path = str(folder / "messages.parquet")
    pq.write_table(
        pa.table({"offset": offsets, **{name: pa.array(each, pa.binary()) for name, each in data.items()}}), path
    )
    frame = spark.read.parquet(path)
    columns = [F.col("offset")]
    for name, (decode, encode, kind) in functions.items():
        decoded = decode(name, unknown_tags=True)
        version = () if kind == "key" else (F.conv(F.hex(F.substring(name, 1, 2)), 16, 10).cast("int"),)
        columns += [
            decoded.alias(f"{name} decoded"),
            encode(decoded, *version, mode="PERMISSIVE").alias(f"{name} again"),
        ]
    found = collected(frame.select(*columns), folder)
    for name in functions:
        cls = message_class(name)
        column = pa.array(data[name], pa.binary())
        expected = list(prefix_of(made[name])(cls.CODEC.schema, column, None, True))
        values = [value for part in expected for value in part.values.to_pylist()]
        for at, (row, value) in enumerate(zip(found, values, strict=True)):
            assert repr(row[f"{name} decoded"]) == repr(value), (name, data[name][at].hex())
            if at % 2 == 0:
                assert row[f"{name} again"] == data[name][at], name
        assert_some_are_damaged(expected)


def assert_some_are_damaged(parts: list[Columns]) -> None:
    assert any(part.errors for part in parts)
