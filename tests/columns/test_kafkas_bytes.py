"""Columns equal rows for everything that Kafka wrote: all vectors, all damaged vectors, all captured records."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from kafka_records import registry
from kafka_records_engine.columns import decode_record_columns
from kafka_records_engine.log.reading.segment_files import read_partition
from kafka_records_runtime.schema import MessageSchema
from tests.columns.records import assert_records, read_rows, records_of
from tests.columns.reference import check, counted_walks, engine_limits
from tests.conftest import VectorLoader
from tests.log.logs import captured_logs
from tests.verdicts import verdict

pytestmark = pytest.mark.slow

TAGS = pytest.mark.parametrize("unknown_tags", [False, True], ids=["plain", "tags"])
WAYS = pytest.mark.parametrize(
    ("unknown_tags", "few"), [(False, 48), (True, 0), (True, 1_000_000)], ids=["plain", "by level", "by row"]
)
"""The values of `few`: the default; one with which arrays are read level by level; one with which they are read row by
row."""
FOLDERS = {
    "__consumer_offsets": "consumer_offsets",
    "__share_group_state": "share_group_state",
    "__transaction_state": "transaction_state",
}


@cache
def schema(name: str) -> MessageSchema:
    found: MessageSchema = registry.message_class(name).CODEC.schema
    return found


def by_message(lines: Iterable[dict[str, Any]]) -> dict[str, tuple[list[bytes], list[int]]]:
    """Rows and their versions by message."""
    found: dict[str, tuple[list[bytes], list[int]]] = {}
    for line in lines:
        if line["message"] in registry.MESSAGES:
            data, versions = found.setdefault(line["message"], ([], []))
            data.append(bytes.fromhex(line["hex"]))
            versions.append(line["version"])
    return found


# -- vectors ----------------------------------------------------------------------------------------


@WAYS
def test_vectors_of_all_versions_in_one_column(load_vectors: VectorLoader, unknown_tags: bool, few: int) -> None:
    lines = load_vectors("messages.jsonl.gz")
    found = by_message(lines)
    rows = 0
    with engine_limits(few), counted_walks() as walked:
        for name, (data, versions) in found.items():
            columns = check(schema(name), data, versions, unknown_tags)
            assert columns.errors == {}
            assert not columns.bytes_left.any()
            rows += len(data)
    assert walked == []
    assert rows == len(lines) > 2700


@TAGS
def test_vectors_behind_their_versions(load_vectors: VectorLoader, unknown_tags: bool) -> None:
    """The version precedes each message, as in record values, and there are null rows in between."""
    with counted_walks() as walked:
        for name, (data, versions) in by_message(load_vectors("messages.jsonl.gz")).items():
            framed = [at.to_bytes(2, "big") + each for each, at in zip(data, versions, strict=True)]
            rows = [each for row in framed[::3] for each in (row, None)]
            assert check(schema(name), rows, None, unknown_tags).errors == {}
    assert walked == []


@WAYS
def test_damaged_vectors(load_vectors: VectorLoader, unknown_tags: bool, few: int) -> None:
    """Every line of negative.jsonl.gz together with others of its kind has the value according to Kafka's rules, or the
    walker's exact error."""
    lines = load_vectors("negative.jsonl.gz")
    seen: Counter[str] = Counter()
    with engine_limits(few), counted_walks() as walked:
        for name, (data, versions) in by_message(lines).items():
            columns = check(schema(name), data, versions, unknown_tags)
            seen["rows"] += len(data)
            seen["failed"] += len(columns.errors)
            seen["lenient"] += len(columns.leniencies.keys() - columns.errors.keys())
    # Counts of tags that Kafka refuses since 4.4 are lenient here.
    failed = [line for line in lines if not verdict(line)["ok"]]
    assert seen == {"rows": len(lines), "failed": len(failed), "lenient": seen["lenient"]}
    assert seen["lenient"] > 100
    # Only rows that fail or need leniency, and sections with very many tags, are left to the walker.
    assert seen["failed"] + seen["lenient"] <= len(walked) <= seen["failed"] + seen["lenient"] + 5


def test_damaged_vectors_one_by_one(load_vectors: VectorLoader) -> None:
    """In a column of one row no other row can hide an error."""
    for line in load_vectors("negative.jsonl.gz")[::4]:
        check(schema(line["message"]), [bytes.fromhex(line["hex"])], line["version"], True)


# -- records ----------------------------------------------------------------------------------------


@TAGS
def test_framed_records(load_vectors: VectorLoader, unknown_tags: bool) -> None:
    """Tombstones, unknown types, versions that are one too high, truncated keys and values, and bytes after them, in
    one column per topic."""
    lines = [line for line in load_vectors("framed.jsonl") if "topic" in line]
    assert len(lines) == 210
    errors: Counter[str] = Counter()
    for topic, folder in FOLDERS.items():
        mine = [line for line in lines if line["topic"] == topic]
        keys = [_bytes(line["key_hex"]) for line in mine]
        values = [_bytes(line["value_hex"]) for line in mine]
        found = decode_record_columns(
            records_of(folder), pa.array(keys), pa.array(values, pa.binary()), unknown_tags=unknown_tags
        )
        assert_records(
            found, records_of(folder), read_rows(records_of(folder), keys, values, unknown_tags), unknown_tags
        )
        errors.update(type(error).__name__ for error in found.errors.values())
    assert errors["UnsupportedVersion"] >= 10
    assert errors["BufferUnderflow"] >= 5


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


@TAGS
def test_embedded_protocol_messages(load_vectors: VectorLoader, unknown_tags: bool) -> None:
    lines = [line for line in load_vectors("framed.jsonl") if "protocol" in line]
    assert len(lines) == 24
    for name in {line["message"] for line in lines}:
        data = [bytes.fromhex(line["hex"]) for line in lines if line["message"] == name]
        columns = check(schema(name), data, None, unknown_tags)
        assert {type(error).__name__ for error in columns.errors.values()} == {"UnsupportedVersion"}


@TAGS
@pytest.mark.parametrize("block", [0, None], ids=["row by row", "blocks"])
def test_captured_topics(unknown_tags: bool, block: int | None) -> None:
    """All records of the three brokers, in the arrays that the reader of segments returns."""
    records: Counter[str] = Counter()
    with engine_limits(block=block), counted_walks() as walked:
        for log in captured_logs():
            schemas = records_of(FOLDERS[log.topic])
            for batch in read_partition(log):
                keys, values = batch.column("key"), batch.column("value")
                is_record = batch.column("control").is_null().to_numpy(zero_copy_only=False)
                found = decode_record_columns(schemas, keys, values, is_record, unknown_tags=unknown_tags)
                rows = read_rows(schemas, keys.to_pylist(), values.to_pylist(), unknown_tags, is_record.tolist())
                assert_records(found, schemas, rows, unknown_tags)
                assert found.errors == {}
                records[log.topic] += int(found.is_known.sum())
    assert walked == []
    assert records.keys() == FOLDERS.keys()
    assert min(records.values()) > 10
    assert sum(records.values()) > 1000


def test_every_record_schema_is_in_reach() -> None:
    """`records_of` finds all records of the generated modules."""
    for folder in FOLDERS.values():
        assert records_of(folder) is importlib.import_module(f"kafka_records.schemas.{folder}").RECORDS
