"""UUIDs of the standard library in fields for Kafka's uuids: the same bytes, defaults and texts."""

from __future__ import annotations

import importlib
from typing import Any
from uuid import UUID

import pytest

from kafka_records import registry
from kafka_records_runtime.errors import EncodeError
from kafka_records_runtime.kafka.partitioner import share_partition_key
from kafka_records_runtime.kafka.uuids import ZERO_UUID, Uuid
from kafka_records_runtime.messages.avro import to_avro
from kafka_records_runtime.wire import walker

pytestmark = pytest.mark.usefixtures("generated_home")

TEXT = "30a5f1d5-f224-432d-89f6-35c784af26d7"
THEIRS, OURS = UUID(TEXT), Uuid(bytes.fromhex(TEXT.replace("-", "")))


def places() -> list[tuple[str, str, str, bool]]:
    """Package, message, field and whether it is an array, of all uuids that are in a message's own body."""
    found = []
    for package, names in (("kafka_records", sorted(registry.MESSAGES)), ("acme_messages", ["Everything"])):
        for name in names:
            for field in message_class(package, name).CODEC.schema.root.fields:
                if field.base == "uuid":
                    found.append((package, name, field.name, field.is_array))
    return found


def message_class(package: str, name: str) -> Any:
    return importlib.import_module(f"{package}.registry").message_class(name)


def encoded(encode: Any) -> str:
    try:
        return bytes(encode()).hex()
    except EncodeError as error:
        return str(error)


def test_they_encode_as_kafkas_do() -> None:
    """Untagged, tagged, in arrays, and in versions without the field, in which only the zero uuid is the default."""
    found = places()
    assert len(found) == 21
    assert {is_array for *_, is_array in found} == {True, False}
    for package, name, field, is_array in found:
        cls = message_class(package, name)
        for ours, theirs in ((OURS, THEIRS), (ZERO_UUID, UUID(int=0))):
            kafkas = cls(**{field: (ours, ours) if is_array else ours})
            standard = cls(**{field: (theirs, theirs) if is_array else theirs})
            as_dict = {field: [theirs, theirs] if is_array else theirs}
            for version in cls.VERSIONS:
                wanted = encoded(lambda: kafkas.encode(version))  # noqa: B023  (called at once)
                assert encoded(lambda: standard.encode(version)) == wanted  # noqa: B023
                assert encoded(lambda: walker.encode(cls.CODEC.schema, as_dict, version)) == wanted  # noqa: B023
                if not wanted.startswith(name):
                    assert standard.to_json(version) == kafkas.to_json(version)
            assert to_avro(standard) == to_avro(kafkas)


def test_the_way_there_and_back() -> None:
    assert Uuid(THEIRS) == OURS
    assert type(Uuid(THEIRS)) is Uuid
    assert UUID(bytes=OURS) == THEIRS
    assert share_partition_key("g", THEIRS, 3) == share_partition_key("g", OURS, 3) == f"g:{OURS}:3"  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [TEXT, THEIRS.int, THEIRS.hex, [THEIRS]])
def test_what_is_no_uuid_still_is_none(value: Any) -> None:
    cls = registry.message_class("OffsetCommitValue")
    with pytest.raises(EncodeError) as caught:
        cls(topic_id=value).encode(4)
    assert str(caught.value) == f"OffsetCommitValue v4: topic_id is of type {type(value).__name__}, expected Uuid"
