"""Decoded columns survive Avro files and Parquet: the columns that are read encode to the original bytes."""

from __future__ import annotations

import importlib
import math
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_records import registry
from kafka_records_engine.columns import arrow_type, decode_column, record_arrow_type
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.schema import MessageSchema, RecordSchema
from kafka_records_runtime.wire import walker
from tests.acme import acme_package
from tests.codecs.strategies import messages
from tests.conftest import VectorLoader
from tests.log.lossless import encoded, through_avro, through_parquet

pytestmark = pytest.mark.slow

Through = Callable[[pa.StructArray, Any], pa.StructArray]
FORMATS = pytest.mark.parametrize("through", [through_avro, through_parquet], ids=["avro", "parquet"])


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The registry of a package whose messages use the whole language."""
    with acme_package(tmp_path_factory.mktemp("acme"), "acme_lossless") as found:
        yield found


def decoded(
    schema: MessageSchema, data: list[bytes | None], versions: list[int], unknown_tags: bool = True
) -> pa.StructArray:
    """The column of rows that all decode."""
    found = decode_column(
        schema, pa.array(data, pa.binary()), pa.array(versions, pa.int16()), unknown_tags=unknown_tags
    )
    assert found.values.type == arrow_type(schema, unknown_tags)
    assert [row is None for row in found.values.to_pylist()] == [each is None for each in data]
    return found.values


# ---- what Kafka wrote


@FORMATS
def test_every_vector_comes_back_as_the_same_bytes(through: Through, load_vectors: VectorLoader) -> None:
    by_name: dict[str, list[tuple[bytes, int]]] = {}
    for line in load_vectors("messages.jsonl.gz"):
        by_name.setdefault(line["message"], []).append((bytes.fromhex(line["hex"]), line["version"]))
    for name, lines in by_name.items():
        schema = registry.message_class(name).CODEC.schema
        data, versions = [line[0] for line in lines], [line[1] for line in lines]
        column = decoded(schema, [*data], versions)
        back = through(column, registry.avro_schema(name))
        assert back.equals(column), name
        assert encoded(schema, back, versions) == data, name


@FORMATS
def test_every_vector_without_its_unknown_tags(through: Through, load_vectors: VectorLoader) -> None:
    """Columns as they are by default. The Avro schema still has a field for the tags."""
    for line in load_vectors("messages.jsonl.gz")[::7]:
        if line["message"] in registry.MESSAGES:
            schema = registry.message_class(line["message"]).CODEC.schema
            column = decoded(schema, [bytes.fromhex(line["hex"]), None], [line["version"]] * 2, unknown_tags=False)
            if column.type.num_fields:  # Parquet has no struct without fields, as a NoOpRecord is
                assert through(column, registry.avro_schema(line["message"])).equals(column), line


@FORMATS
def test_columns_of_records_with_tombstones(through: Through, load_vectors: VectorLoader) -> None:
    """`struct<key, value>` as decoded rows have it: with values, with null values, and null for other records."""
    lines = [line for line in load_vectors("framed.jsonl") if "json" in line and "topic" in line and "type" in line]
    names = {line["key_message"].removesuffix("Key") for line in lines}
    assert len(names) == 25
    for name in names:
        record = record_schema(name)
        mine = [line for line in lines if line["key_message"] == f"{name}Key"]
        keys = [*(bytes.fromhex(line["key_hex"])[2:] for line in mine), None]
        values = [*(bytes.fromhex(line["value_hex"])[2:] if line["value_hex"] else None for line in mine), None]
        versions = [*(line.get("version", 0) for line in mine), 0]
        assert any(values)
        parts = [decoded(record.key, keys, [0] * len(keys)), decoded(record.value, values, versions)]
        fields = list(record_arrow_type(record, unknown_tags=True))
        column = pa.StructArray.from_arrays(parts, fields=fields, mask=pa.array([each is None for each in keys]))
        back = through(column, registry.avro_schema(name))
        assert back.equals(column), name
        assert back.to_pylist()[-1] is None
        key, value = back.flatten()
        assert encoded(record.key, key, [0] * len(keys)) == keys, name
        assert encoded(record.value, value, versions) == values, name


def record_schema(name: str) -> RecordSchema:
    folder = registry.MESSAGES[f"{name}Key"][0].split(".")[1]
    records: dict[int, RecordSchema] = importlib.import_module(f"kafka_records.schemas.{folder}").RECORDS
    return next(record for record in records.values() if record.name == name)


# ---- the whole language


@FORMATS
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_batch_of_mixed_versions_and_nulls(through: Through, acme: Any, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["Everything", "TrailEntryKey", "TrailEntryValue"]))
    cls = acme.message_class(name)
    versions = data.draw(st.lists(st.sampled_from(cls.VERSIONS), max_size=4))
    rows: list[bytes | None] = [
        None if data.draw(st.booleans()) else data.draw(messages(cls, version)).encode(version) for version in versions
    ]
    column = decoded(cls.CODEC.schema, rows, versions)
    back = through(column, acme.avro_schema(name))
    assert encoded(cls.CODEC.schema, back, versions) == rows
    assert back.equals(column)


@FORMATS
def test_values_at_the_edges(through: Through, acme: Any) -> None:
    """NaNs keep their bits, although no NaN equals another."""
    nans = [struct.unpack(">d", bytes.fromhex(each))[0] for each in ("7ff8000000000abc", "fff8000000000001")]
    edges = {
        "data": bytes(range(256)),
        "pos": -(2**63),
        "class_": "a\x00b\N{GRINNING FACE}",
        "int_": 65535,
        "tuple_": [2**31 - 1, -(2**31)],
        "decode_": 2**32 - 1,
        "bytes8": [-128, 127],
        "shorts": [-(2**15), 2**15 - 1],
        "ports": [0, 65535],
        "words": [0, 2**31 - 1, 2**31, 2**32 - 1],
        "longs": [-(2**63), 2**63 - 1],
        "last": nans[0],
        "doubles": [*nans, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308],
        "unknown": Uuid(b"\xfb\xff" * 8),
        "ids": [Uuid(bytes(16)), Uuid(b"\xff" * 16)],
        "blobs": [b"", bytes(range(256))],
        "record_set": bytes(range(255, -1, -1)),
        "tag_double": nans[1],
        "unknown_tagged_fields": ((100, bytes(range(256))), (2**31 - 2, b"")),
    }
    schema = acme.message_class("Everything").CODEC.schema
    data = walker.encode(schema, edges, 2)
    column = decoded(schema, [data], [2])
    back = through(column, acme.avro_schema("Everything"))
    assert encoded(schema, back, [2]) == [data]
    (row,) = back.to_pylist()
    assert row["words"] == edges["words"]
    assert row["unknown"] == "-__7__v_-__7__v_-__7_w"
    assert row["unknown_tagged_fields"][1] == {"tag": 2**31 - 2, "data": b""}


@FORMATS
def test_null_and_empty_are_two_things(through: Through, acme: Any) -> None:
    schema = acme.message_class("Everything").CODEC.schema
    empty: dict[str, Any] = {
        **{"class_": "", "bytes8": [], "blobs": [], "record_set": b"", "maybe_item": {}, "items": [], "tag_bytes": b""},
        **{"tag_text": "", "tag_maybe": {}, "tag_items": [], "tag_numbers": []},
    }
    leaf_with_null = {"items": [{"texts": None}, {"texts": []}], "maybe_item": {"texts": None}}
    cases = [dict.fromkeys(empty), empty, leaf_with_null]
    data = [walker.encode(schema, case, 3) for case in cases]
    assert len(set(data)) == 3
    back = through(decoded(schema, [*data], [3] * 3), acme.avro_schema("Everything"))
    assert encoded(schema, back, [3] * 3) == data
    null, full, inner = back.to_pylist()
    assert [null[name] for name in empty] == [None] * len(empty)
    assert [full[name] for name in ("class_", "bytes8", "record_set", "tag_numbers")] == ["", [], b"", []]
    assert full["maybe_item"] is not None
    assert [each["texts"] for each in inner["items"]] == [None, []]
    assert inner["maybe_item"]["texts"] is None


@FORMATS
@pytest.mark.parametrize("rows", [[], [None], [None, None, None]], ids=["none", "one null", "nulls"])
def test_columns_without_a_value(through: Through, acme: Any, rows: list[bytes | None]) -> None:
    column = decoded(acme.message_class("Everything").CODEC.schema, rows, [3] * len(rows))
    assert through(column, acme.avro_schema("Everything")).equals(column)


def test_the_comparison_sees_a_lost_null(acme: Any) -> None:
    """The other tests would prove nothing if a null could become an empty array unnoticed."""
    schema = acme.message_class("Everything").CODEC.schema
    data = walker.encode(schema, {"bytes8": None}, 3)
    column = decoded(schema, [data], [3])
    (row,) = column.to_pylist()
    lossy = pa.array([{**row, "bytes8": []}], column.type)
    assert not lossy.equals(column)
    assert encoded(schema, lossy, [3]) != [data]
