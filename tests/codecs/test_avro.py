"""Messages as values of their Avro schemas and back, with fastavro, and the lookup of these schemas."""

from __future__ import annotations

import importlib
import io
import json
import math
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_records import consumer_offsets, registry, share_group_state, transaction_state
from kafka_records.consumer_offsets.group_metadata import GroupMetadataValue, MemberMetadata
from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue
from kafka_records.rpc.fetch_request import FetchRequest
from kafka_records_runtime.errors import UnknownMessage
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.messages.avro import AvroError, from_avro, to_avro
from tests.codecs.strategies import messages
from tests.conftest import VectorLoader

ROOT = Path(__file__).resolve().parents[2]
TOPICS = {
    "__consumer_offsets": consumer_offsets,
    "__share_group_state": share_group_state,
    "__transaction_state": transaction_state,
}
Row = dict[str, Any]


def through_a_file(schema: Any, rows: list[Any], *, all_there: bool = True, reader_schema: Any = None) -> list[Any]:
    """Rows that are written to an Avro container file and read from it. With `all_there`, no member may be missing."""
    file = io.BytesIO()
    parsed = fastavro.parse_schema(schema)
    fastavro.writer(file, parsed, rows, codec="deflate", strict=all_there, strict_allow_default=not all_there)
    file.seek(0)
    return list(fastavro.reader(file, reader_schema))


# ---- there and back


def test_every_vector_comes_back_as_the_same_bytes(load_vectors: VectorLoader) -> None:
    by_name: dict[str, list[Row]] = {}
    for line in load_vectors("messages.jsonl.gz"):
        if line["message"] in registry.MESSAGES:
            by_name.setdefault(line["message"], []).append(line)
    assert sum(map(len, by_name.values())) > 2700
    for name, lines in by_name.items():
        cls = registry.message_class(name)
        found = [cls.decode(bytes.fromhex(line["hex"]), line["version"]) for line in lines]
        rows = through_a_file(registry.avro_schema(name), [to_avro(message) for message in found])
        back = [from_avro(cls, row) for row in rows]
        assert back == found, name
        encoded = [message.encode(line["version"]).hex() for message, line in zip(back, lines, strict=True)]
        assert encoded == [line["hex"] for line in lines], name


def test_every_record_comes_back_as_the_same_bytes(load_vectors: VectorLoader) -> None:
    """Key and value of a record in one type; the version of the value is not part of it."""
    lines = [line for line in load_vectors("framed.jsonl") if line.get("value_hex") and "version" in line]
    names = set()
    for line in lines:
        topic, framed = TOPICS[line["topic"]], (bytes.fromhex(line["key_hex"]), bytes.fromhex(line["value_hex"]))
        record = topic.decode_record(*framed)
        if record.is_lenient:
            continue
        kind = topic.RECORD_TYPES.types[record.record_type]
        rows = [{"key": to_avro(record.key), "value": to_avro(value)} for value in (record.value, None)]
        there, tombstone = through_a_file(registry.avro_schema(kind.name), rows)
        read = from_avro(kind.key_class, there["key"]), from_avro(kind.value_class, there["value"])
        assert topic.encode_record(*read, record.value_version) == framed, line
        assert from_avro(kind.value_class, tombstone["value"]) is None
        names.add(kind.name)
    assert len(lines) == 145
    assert len(names) == 25


@pytest.mark.usefixtures("generated_home")
@pytest.mark.parametrize("name", ["Everything", "TrailEntryKey", "TrailEntryValue"])
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_any_message_of_the_whole_language(name: str, data: st.DataObject) -> None:
    others = importlib.import_module("acme_messages.registry")
    cls = others.message_class(name)
    version = data.draw(st.sampled_from(cls.VERSIONS))
    found = data.draw(st.lists(messages(cls, version), max_size=3))
    rows = through_a_file(others.avro_schema(name), [to_avro(message) for message in found])
    assert rows == [to_avro(message) for message in found]
    assert [from_avro(cls, row) for row in rows] == found


@pytest.mark.usefixtures("generated_home")
def test_values_at_the_edges() -> None:
    others = importlib.import_module("acme_messages.registry")
    cls = others.message_class("Everything")
    nan = struct.unpack(">d", bytes.fromhex("7ff8000000000abc"))[0]
    doubles = (math.inf, -math.inf, -0.0, 5e-324, nan, struct.unpack(">d", bytes.fromhex("fff8000000000001"))[0])
    edges = cls(
        data=bytes(range(256)),
        pos=-(2**63),
        class_="a\x00b\N{GRINNING FACE}",
        int_=65535,
        tuple_=(2**31 - 1, -(2**31)),
        decode_=2**32 - 1,
        words=(0, 2**31, 2**32 - 1),
        last=nan,
        doubles=doubles,
        unknown=Uuid(b"\xfb\xff" * 8),
        ids=(Uuid(bytes(16)), Uuid(b"\xff" * 16)),
        blobs=(b"", bytes(range(256))),
    )
    (row,) = through_a_file(others.avro_schema("Everything"), [to_avro(edges)])
    assert row["words"] == [0, 2**31, 2**32 - 1]
    assert row["ids"] == ["AAAAAAAAAAAAAAAAAAAAAA", "_____________________w"]
    assert from_avro(cls, row).encode(2) == edges.encode(2)
    assert [struct.pack(">d", each) for each in row["doubles"]] == [struct.pack(">d", each) for each in doubles]


@pytest.mark.usefixtures("generated_home")
def test_null_and_empty_are_two_things() -> None:
    others = importlib.import_module("acme_messages.registry")
    cls, leaf = others.message_class("Everything"), importlib.import_module("acme_messages.everything").Leaf
    names = ("class_", "bytes8", "blobs", "record_set", "maybe_item", "items", "tag_bytes", "tag_text", "tag_numbers")
    null = cls(**dict.fromkeys(names), tag_maybe=None, tag_items=None)
    empty = cls(
        **{"class_": "", "bytes8": (), "blobs": (), "record_set": b"", "maybe_item": leaf(), "items": ()},
        **{"tag_bytes": b"", "tag_text": "", "tag_numbers": (), "tag_maybe": leaf(), "tag_items": ()},
    )
    assert null != empty
    rows = through_a_file(others.avro_schema("Everything"), [to_avro(null), to_avro(empty)])
    assert [from_avro(cls, row) for row in rows] == [null, empty]
    assert [rows[0][name] for name in names] == [None] * len(names)
    assert None not in [rows[1][name] for name in names]


def test_unknown_tagged_fields_are_kept_at_every_depth() -> None:
    tags = ((7, b""), (300, bytes(range(256))))
    value = GroupMetadataValue(members=(MemberMetadata(unknown_tagged_fields=tags),), unknown_tagged_fields=tags[:1])
    (row,) = through_a_file(registry.avro_schema("GroupMetadataValue"), [to_avro(value)])
    assert row["members"][0]["unknown_tagged_fields"] == [{"tag": 7, "data": b""}, {"tag": 300, "data": tags[1][1]}]
    assert from_avro(GroupMetadataValue, row) == value


def test_none_stays_none_and_other_things_are_refused() -> None:
    assert to_avro(None) is None
    assert from_avro(OffsetCommitValue, None) is None
    with pytest.raises(TypeError) as caught:
        to_avro(b"\x00\x07")
    assert str(caught.value) == "a message must be of a generated class, not bytes"


# ---- older and newer schemas


@pytest.mark.parametrize("name", sorted(registry.MESSAGES))
def test_what_an_older_file_lacks_is_at_its_default(name: str) -> None:
    """The oldest possible schema has no field; fastavro fills in the defaults of the schema."""
    newer = registry.avro_schema(name)
    (row,) = through_a_file({**newer, "fields": []}, [{}], reader_schema=newer)
    cls = registry.message_class(name)
    assert from_avro(cls, row) == cls()
    assert [from_avro(cls, row).encode(version) for version in cls.VERSIONS] == [cls().encode(v) for v in cls.VERSIONS]


@pytest.mark.usefixtures("generated_home")
def test_the_same_for_every_kind_of_default() -> None:
    others = importlib.import_module("acme_messages.registry")
    cls = others.message_class("Everything")
    schema = others.avro_schema("Everything")
    # The only default that JSON cannot express must be in the file.
    older = {**schema, "fields": [each for each in schema["fields"] if each["name"] == "tag_double"]}
    (row,) = through_a_file(older, [{"tag_double": math.inf}], reader_schema=schema)
    assert from_avro(cls, row) == cls()


def test_unknown_tagged_fields_need_not_be_there() -> None:
    """A column that was decoded without unknown tags has no such member."""
    schema = registry.avro_schema("ConsumerGroupMetadataValue")
    (row,) = through_a_file(schema, [{"epoch": 3, "metadata_hash": 4}], all_there=False)
    assert row == {"epoch": 3, "metadata_hash": 4, "unknown_tagged_fields": []}


# ---- what is not a message


@pytest.mark.parametrize(
    ("cls", "row", "text"),
    [
        (OffsetCommitKey, [], "OffsetCommitKey: the message must be a dict, found list"),
        (OffsetCommitKey, {"groop": "g"}, "OffsetCommitKey: the message has the key 'groop', which is not a field"),
        (
            OffsetCommitKey,
            {"unknown_tagged_fields": []},
            "OffsetCommitKey: the message has the key 'unknown_tagged_fields', which is not a field",
        ),
        (GroupMetadataValue, {"members": "m"}, "GroupMetadataValue: members must be a list, found str"),
        (
            GroupMetadataValue,
            {"members": [{}, {"member_id": "m", "x": 1}]},
            "GroupMetadataValue: members[1] has the key 'x', which is not a field",
        ),
        (
            GroupMetadataValue,
            {"members": [{"assignment": "\u0100"}]},
            "GroupMetadataValue: members[0].assignment must be bytes, found 'Ā'",
        ),
        (
            GroupMetadataValue,
            {"members": [{"unknown_tagged_fields": [{"tag": 1}]}]},
            "GroupMetadataValue: members[0].unknown_tagged_fields[0] must be a dict with tag and data, found {'tag': "
            "1}",
        ),
        (
            FetchRequest,
            {"topics": [{"topic_id": "short"}]},
            "FetchRequest: topics[0].topic_id must be a uuid, written as 22 characters of URL-safe base64, found "
            "'short'",
        ),
        (
            FetchRequest,
            {"topics": [{"topic_id": bytes(16)}]},
            "FetchRequest: topics[0].topic_id must be a uuid, written as 22 characters of URL-safe base64, found "
            f"{bytes(16)!r}",
        ),
    ],
    ids=lambda value: value.rpartition(": ")[2][:40] if isinstance(value, str) else "",
)
def test_a_value_that_is_no_such_message(cls: Any, row: Any, text: str) -> None:
    with pytest.raises(AvroError) as caught:
        from_avro(cls, row)
    assert str(caught.value) == text


# ---- finding schemas


def test_a_record_and_its_parts_by_name() -> None:
    record = registry.avro_schema("OffsetCommit")
    assert record["namespace"] == "kafka_records.consumer_offsets.offset_commit"
    assert [each["name"] for each in record["fields"]] == ["key", "value"]
    for part, name in zip(record["fields"], ("OffsetCommitKey", "OffsetCommitValue"), strict=True):
        alone = registry.avro_schema(name)
        assert alone == {**part["type"][1], "namespace": record["namespace"]}
        assert list(alone)[:3] == ["type", "name", "namespace"]


def test_what_was_looked_up_may_be_changed() -> None:
    registry.avro_schema("OffsetCommitValue")["fields"].clear()
    assert registry.avro_schema("OffsetCommitValue")["fields"]


@pytest.mark.parametrize("name", ["OffsetCommits", "offset_commit", ""])
def test_a_name_that_nothing_has(name: str) -> None:
    with pytest.raises(UnknownMessage) as caught:
        registry.avro_schema(name)
    assert str(caught.value) == f"no message is called {name!r}"


def test_records_and_messages_of_two_places_go_into_one_schema() -> None:
    """As in decoded rows, which have a column for each record type."""
    names = ["OffsetCommit", "GroupMetadata", "TransactionLog", "FetchRequest", "FetchResponse"]
    fields: list[Row] = [{"name": "offset", "type": "long"}]
    fields += [{"name": name, "type": ["null", registry.avro_schema(name)], "default": None} for name in names]
    schema = {"type": "record", "name": "Row", "fields": fields}
    key = to_avro(OffsetCommitKey(group="g", topic="t", partition=1))
    (row,) = through_a_file(schema, [{"offset": 5, "OffsetCommit": {"key": key, "value": None}}], all_there=False)
    assert row["OffsetCommit"] == {"key": key, "value": None}
    assert row["FetchRequest"] is None


_FROM_ZIP = """
import sys
sys.path[:0] = sys.argv[1:]
import kafka_records.registry as registry, json
assert ".zip" in registry.__file__
print(json.dumps([registry.avro_schema(name)["name"] for name in ("OffsetCommit", "FetchRequest")]))
print("msgspec" in sys.modules)
"""


def test_schemas_are_found_in_a_zip_file_and_without_msgspec(tmp_path: Path) -> None:
    """As Spark hands packages to its workers."""
    for home, package in (("generated", "kafka_records"), ("generator", "kafka_records_runtime")):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / home / package, tmp_path / "home" / package, ignore=ignore)
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path / "home")
    command = [sys.executable, "-I", "-c", _FROM_ZIP, archive]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    names, has_msgspec = done.stdout.splitlines()
    assert json.loads(names) == ["OffsetCommit", "FetchRequest"]
    assert has_msgspec == "False"
