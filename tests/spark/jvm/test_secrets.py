"""Secrets of the metadata log in Spark: with either engine, no output has one unless they are requested."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records.cluster_metadata import encode_record
from kafka_records.cluster_metadata.config_record import ConfigRecord
from kafka_records.cluster_metadata.delegation_token_record import DelegationTokenRecord
from kafka_records.cluster_metadata.remove_delegation_token_record import RemoveDelegationTokenRecord
from kafka_records.cluster_metadata.topic_record import TopicRecord
from kafka_records.cluster_metadata.user_scram_credential_record import UserScramCredentialRecord
from kafka_records.schemas.cluster_metadata import RECORDS
from kafka_records.spark import cluster_metadata
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources.saved_rows import SavedRows
from kafka_records_engine.spark._to_bytes import Encoder
from kafka_records_engine.spark.decode import BatchDecoder
from kafka_records_engine.spark.errors import RedactedValue
from kafka_records_engine.spark.saved_records import read_records
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.records.framing import METADATA, in_frame
from kafka_records_runtime.text.casing import snake_case
from kafka_records_tables.engines.spark_options import asked
from tests.spark.jvm.test_same_rows import collected, compare

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

TOPIC = "__cluster_metadata"
FAILURES = (PySparkException, Py4JJavaError)
SECRETS = tuple(f"TOP-SECRET-{number}" for number in range(8))
FUNCTIONS = (
    "config_record",
    "user_scram_credential_record",
    "delegation_token_record",
    "remove_delegation_token_record",
)
WITHOUT_FIELDS = [snake_case(record.name) for record in RECORDS.values() if not record.value.root.fields]
TAG = b"\x01\x63\x04more"
"""An unknown tagged field, instead of the empty section of tags at the end of a message."""


def planted() -> list[bytes]:
    """Values of records with secrets: valid ones, then one with an unknown tag, and those that cannot be read."""
    messages = (
        TopicRecord("orders", Uuid(bytes(15) + b"\x01")),
        ConfigRecord(2, "orders", "retention.ms", "1000"),
        ConfigRecord(2, "orders", "of.a.plugin", SECRETS[0]),
        ConfigRecord(2, "orders", "of.a.plugin", None),
        ConfigRecord(2, "orders", "of.a.plugin", ""),
        ConfigRecord(4, "1", "listener.name.sasl.ssl.keystore.password", SECRETS[1]),
        ConfigRecord(4, "1", "listener.name.sasl.ssl.keystore.location", "/keys"),
        ConfigRecord(2, "orders", "listener.name.sasl.retention.ms", SECRETS[2]),
        ConfigRecord(99, "x", "retention.ms", SECRETS[2]),
        UserScramCredentialRecord("ann", 1, SECRETS[3].encode(), SECRETS[4].encode(), SECRETS[5].encode(), 4096),
        DelegationTokenRecord("User:ann", "User:bob", ("User:carl",), 1, 2, 3, SECRETS[6]),
        RemoveDelegationTokenRecord(SECRETS[7]),
    )
    values = [encode_record(None, message)[1] for message in messages]
    scram = values[9]
    return [*values, scram[:-1] + TAG, scram[:-1], scram + b"x", in_frame(999, 0, SECRETS[0].encode()), b"\x02" + scram]


def written(folder: Path) -> str:
    rows = [
        {"topic": TOPIC, "partition": 0, "offset": at, "key": None, "value": value}
        for at, value in enumerate(planted())
    ]
    rows.append({**rows[2], "topic": "__other", "offset": len(rows)})
    path = str(folder / "raw.parquet")
    pq.write_table(pa.Table.from_pylist(rows, RAW_SCHEMA), path)
    return path


def shown_in(rows: Any) -> set[str]:
    said = repr(rows)
    return {secret for secret in SECRETS if secret in said or secret.encode().hex() in said}


def both_engines(make: Any, folder: Path) -> list[dict[str, Any]]:
    """The rows, which are the same by both engines."""
    jvm, python = (collected(make(engine), folder) for engine in ("jvm", "python"))
    compare(jvm, python, jvm)
    return jvm


@pytest.mark.parametrize("unknown_tags", [False, True])
def test_decoded_records_have_no_secrets(in_jvm: SparkSession, tmp_path: Path, unknown_tags: bool) -> None:
    path = written(tmp_path)

    def decoded(engine: Any, **more: Any) -> DataFrame:
        rows = in_jvm.read.parquet(path)
        found = cluster_metadata.decode_records(rows, unknown_tags=unknown_tags, engine=engine, **more)
        return found.drop(*WITHOUT_FIELDS)  # Parquet holds no struct without fields

    rows = both_engines(decoded, tmp_path)
    assert shown_in(rows) == set()
    values = [row["config_record"]["value"]["value"] for row in rows[1:9]]
    hidden = "(redacted)"
    assert values == ["1000", hidden, None, hidden, hidden, "/keys", hidden, hidden]
    scram = rows[12]["user_scram_credential_record"]["value"]
    assert (scram["name"], scram["salt"], scram["server_key"]) == ("ann", hidden.encode(), hidden.encode())
    assert scram.get("unknown_tagged_fields", []) == []
    assert [row["raw_value"] for row in rows[12:]] == [None if unknown_tags else b"(redacted)", *[b"(redacted)"] * 5]
    shown = both_engines(lambda engine: decoded(engine, show_secrets=True), tmp_path)
    assert shown_in(shown) == set(SECRETS)
    assert "redacted" not in repr(shown)


def test_chosen_and_saved_records_have_none(in_jvm: SparkSession, tmp_path: Path) -> None:
    path = written(tmp_path)
    for names in (["TopicRecord"], ["ConfigRecord", "UserScramCredentialRecord"]):
        rows = both_engines(
            lambda engine, names=names: cluster_metadata.decode_records(
                in_jvm.read.parquet(path), records=names, engine=engine
            ),
            tmp_path,
        )
        assert shown_in(rows) == set()
    names = ["ConfigRecord"]
    assert shown_in(collected(read_records(in_jvm, path, RECORDS, names, topic=TOPIC), tmp_path)) == set()
    asked = read_records(in_jvm, path, RECORDS, names, topic=TOPIC, show_secrets=True)
    assert shown_in(collected(asked, tmp_path)) == set(SECRETS[:6])


def test_functions_for_columns(in_jvm: SparkSession, tmp_path: Path) -> None:
    frame = in_jvm.read.parquet(written(tmp_path)).select("offset", "value")

    def decoded(engine: Any, **more: Any) -> DataFrame:
        made = {
            name: getattr(cluster_metadata, f"from_{name}")("value", unknown_tags=True, engine=engine, **more)
            for name in FUNCTIONS
        }
        return frame.select("offset", *(column.alias(name) for name, column in made.items()))

    assert shown_in(both_engines(decoded, tmp_path)) == set()
    assert shown_in(both_engines(lambda engine: decoded(engine, show_secrets=True), tmp_path)) == set(SECRETS)


def test_what_was_shown_is_written_again_and_nothing_else(in_jvm: SparkSession, tmp_path: Path) -> None:
    frame = in_jvm.read.parquet(written(tmp_path)).where("offset < 13").select("offset", "value")

    def again(engine: str, mode: str, shown: bool) -> DataFrame:
        made = []
        for name in FUNCTIONS:
            value = getattr(cluster_metadata, f"from_{name}")(
                "value", unknown_tags=True, show_secrets=shown, engine=engine
            )
            made.append(getattr(cluster_metadata, f"to_{name}")(value, 0, mode=mode, engine=engine))
        return frame.select("offset", F.coalesce(*made).alias("again"))

    values = planted()
    shown = both_engines(lambda engine: again(engine, "FAILFAST", True), tmp_path)
    assert [row["again"] for row in shown] == [None, *values[1:13]]
    hidden = both_engines(lambda engine: again(engine, "PERMISSIVE", False), tmp_path)
    assert [row["offset"] for row in hidden if row["again"] is not None] == [1, 3, 6]
    for engine in ("jvm", "python"):
        with pytest.raises(
            FAILURES, match=r"ConfigRecord v0: value is \(redacted\) instead of a secret: decode it with"
        ):
            again(engine, "FAILFAST", False).collect()


def test_sql_has_none(in_jvm: SparkSession, tmp_path: Path) -> None:
    in_jvm.read.parquet(written(tmp_path)).createOrReplaceTempView("raw")
    calls = [f"from_{name}(value)" for name in FUNCTIONS]
    calls += [f"from_{name}(null, value)" for name in FUNCTIONS]
    calls += ["decode_cluster_metadata(null, value)"]
    for call in calls:
        rows = in_jvm.sql(f"SELECT kafka_records.{call} FROM raw WHERE value IS NOT NULL").collect()
        assert shown_in(rows) == set(), call
    (row,) = in_jvm.sql(
        "SELECT kafka_records.`from_config_record?show_secrets=true`(value).value FROM raw WHERE offset = 2"
    ).collect()
    assert row[0] == SECRETS[0]


def test_the_columns_of_a_batch(tmp_path: Path) -> None:
    """Without a session: the code of a worker, with a part of an array, and with only nulls."""
    batch = pq.read_table(written(tmp_path)).combine_chunks().to_batches()[0]

    def rows(part: pa.RecordBatch) -> Iterator[dict[str, Any]]:
        for decoded in BatchDecoder(RECORDS, "PERMISSIVE", True, hides=True)(iter([part])):
            decoded.validate(full=True)
            yield from decoded.to_pylist()

    whole = [*rows(batch)]
    assert shown_in([{**row, "topic": None} for row in whole]) == set()
    assert [*rows(batch.slice(5, 6))] == whole[5:11]
    assert [*rows(batch.slice(0, 1))] == whole[:1]


@pytest.mark.parametrize(("value", "shown"), [(None, False), ("false", False), ("true", True)])
def test_the_option_of_the_data_source(tmp_path: Path, value: str | None, shown: bool) -> None:
    path = written(tmp_path)
    options = {"path": path, "topic": TOPIC, "records": "ConfigRecord", "mode": "PERMISSIVE"}
    reader = asked(options if value is None else {**options, "showSecrets": value}).records
    assert reader is not None
    rows = [row for part in SavedRows(path, TOPIC).parts() for each in reader.of_part(part) for row in each.to_pylist()]
    assert "retention.ms" in repr(rows)
    assert shown_in(rows) == (set(SECRETS[:6]) if shown else set())


def test_a_config_that_is_no_secret_may_be_called_redacted() -> None:
    config = RECORDS[4]
    value = {"resource_type": 2, "resource_name": "t", "name": "cleanup.policy", "value": "(redacted)"}
    encoder = Encoder(config.value, 0, config.type, True, True, METADATA)
    assert encoder(pa.array([value])).to_pylist() == [
        encode_record(None, ConfigRecord(2, "t", "cleanup.policy", "(redacted)"))[1]
    ]
    with pytest.raises(RedactedValue, match=r"^ConfigRecord v0: value is \(redacted\) instead of a secret"):
        encoder(pa.array([{**value, "name": "unknown"}]))
