"""Records with metadata framing: a topic of your own, and what Kafka wrote into its metadata log."""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafka_records_codegen.evolution.kafka_releases import fetch_specs
from kafka_records_codegen.generate import generate
from kafka_records_codegen.loader import load
from kafka_records_codegen.tree import write
from kafka_records_runtime.errors import (
    EncodeError,
    FramingError,
    JsonError,
    KafkaRecordsError,
    TrailingBytes,
    UnknownApiKey,
    UnsupportedVersion,
)
from kafka_records_runtime.records.classes import UnknownApiKeyRecord, UnknownVersionRecord
from kafka_records_runtime.records.explain import explain_record, explain_text
from kafka_records_runtime.records.framing import in_frame
from kafka_records_runtime.records.reading import read_record, schema_record_types
from kafka_records_runtime.text.casing import upper_snake_case
from tests.kafka_needed import skipped_without_kafka
from tests.ledger import CORRECTION, FRAMES, TRANSFER, WRITTEN, ledger_package, ledger_records
from tools.kafka_releases import LATEST

NAME = "ledger_in_codecs"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with ledger_package(tmp_path_factory.mktemp("ledger"), NAME):
        yield importlib.import_module(f"{NAME}.ledger")


def message(name: str, **fields: Any) -> Any:
    return importlib.import_module(f"{NAME}.registry").message_class(name)(**fields)


def test_a_record_comes_back(ledger: Any) -> None:
    transfer = message("TransferRecord", cents=5, reference="rent")
    for version in (0, 1, None):
        key, value = ledger.encode_record(None, transfer, version)
        assert key is None
        assert value[:3] == bytes([1, TRANSFER, 1 if version is None else version])
        record = ledger.decode_record(key, value)
        assert isinstance(record, ledger.FramedTransferRecord)
        assert (record.key, record.value, record.record_type, record.name) == (
            None,
            transfer,
            TRANSFER,
            "TransferRecord",
        )
        assert (record.value_version, record.error, record.is_tombstone) == (
            version if version == 0 else 1,
            None,
            False,
        )
        match record:
            case ledger.FramedTransferRecord(found):
                assert found is record.value
    assert ledger.encode_record(None, b"as it is") == (None, b"as it is")


def test_what_cannot_be_encoded(ledger: Any) -> None:
    transfer = message("TransferRecord")
    for arguments, text in (
        ((b"key", transfer), "record: key is of type bytes, expected None, because metadata records have no key"),
        ((None, None), "record: value is of type NoneType, expected bytes or a message class of this topic"),
        ((None, message("AccountKey")), "record: value is of type AccountKey, expected bytes or a message class of"),
        ((None, transfer, 2), "TransferRecord has no version 2: its versions are 0 to 1"),
        ((None, in_frame(0, 1, b""), 0), "the value as given has no version 0: its only version is 1"),
    ):
        with pytest.raises(EncodeError) as failure:
            ledger.encode_record(*arguments)
        assert str(failure.value).startswith(text)
    with pytest.raises(TypeError, match="a version must be an int, not str"):
        ledger.encode_record(None, transfer, "1")


def test_an_unknown_api_key_or_version_keeps_its_bytes(ledger: Any) -> None:
    value = in_frame(99, 3, b"what")
    record = ledger.decode_record(None, value)
    assert isinstance(record, UnknownApiKeyRecord)
    assert (record.key, record.value, record.record_type, record.is_known_type) == (None, value, 99, False)
    assert isinstance(record.error, UnknownApiKey)
    assert record.to_json() == {"key": None, "value": {"type": 99, "version": 3, "hex": value.hex()}}
    assert ledger.record_from_json(record.to_json()) == record
    value = in_frame(CORRECTION, 7, b"what")
    record = ledger.decode_record(None, value)
    assert isinstance(record, UnknownVersionRecord)
    assert isinstance(record.error, UnsupportedVersion)
    assert (record.key, record.value, record.record_type, record.value_version) == (None, value, CORRECTION, 7)
    assert record.to_json() == {"key": None, "value": {"type": CORRECTION, "version": 7, "hex": value.hex()}}
    assert ledger.record_from_json(record.to_json()) == record


@pytest.mark.parametrize(("key", "value", "name", "offset", "text"), FRAMES)
def test_no_frame(
    ledger: Any, key: bytes | None, value: bytes | None, name: str, offset: int | None, text: str
) -> None:
    if name == "UnknownApiKey":
        error = ledger.decode_record(key, value).error
    else:
        with pytest.raises(FramingError) as failure:
            ledger.decode_record(key, value)
        error = failure.value
    assert (type(error).__name__, error.offset, str(error)) == (name, offset, text)
    schemas = importlib.import_module(f"{NAME}.schemas.ledger").RECORDS
    assert f"error: {text}\n" in explain_text(explain_record(schemas, key, value))


def test_bytes_behind_the_message(ledger: Any) -> None:
    with pytest.raises(TrailingBytes) as failure:
        ledger.decode_record(None, in_frame(CORRECTION, 0, bytes(8) + b"\x01\x00" + b"more"))
    assert str(failure.value) == "CorrectionRecord v0 at byte 10: the message ends here, but is followed by 4 bytes"


def test_classes_and_schemas_agree_and_records_come_back_from_json(ledger: Any) -> None:
    schemas = importlib.import_module(f"{NAME}.schemas.ledger").RECORDS
    types = schema_record_types(schemas)
    decoded = 0
    for raw in ledger_records(NAME, 1500, seed=6):
        outcomes: list[Any] = []
        for read in (ledger.decode_record, lambda key, value: read_record(types, key, value, framing="metadata")):
            try:
                record: Any = read(raw.key, raw.value)
            except (KafkaRecordsError, ValueError) as error:
                outcomes.append((type(error), str(error)))
                continue
            outcomes.append((record.record_type, record.value_version, record.leniencies, str(record.error)))
            if read == ledger.decode_record:
                assert ledger.record_from_json(json.loads(json.dumps(record.to_json()))) == record
                if record.error is None:
                    assert type(record).from_json(record.to_json()) == record
                    decoded += 1
        assert outcomes[0] == outcomes[1], raw
    assert decoded > 400


def test_json_that_is_no_record(ledger: Any) -> None:
    transfer = ledger.decode_record(*ledger.encode_record(None, message("TransferRecord"))).to_json()
    value = transfer["value"]
    for data, text in (
        ({"key": {"type": 0}, "value": value}, "record: key is not null, but the records of this topic have no key"),
        ({"key": None, "value": None}, "record: value is of type NoneType, expected an object"),
        ({"key": None, "value": {**value, "type": 9}}, "record: value.type is 9, an unknown record type"),
        (
            {"key": None, "value": {**value, "version": 9}},
            "record: value.version is 9, but only versions",
        ),
        (
            {"key": None, "value": {"type": 0, "version": 0, "hex": "010001"}},
            "record: value.hex is not a value of type",
        ),
    ):
        with pytest.raises(JsonError) as failure:
            ledger.record_from_json(data)
        assert str(failure.value).startswith(text)
    with pytest.raises(JsonError, match=r"value\.type is 0, but CorrectionRecord has the record type 200"):
        ledger.FramedCorrectionRecord.from_json(transfer)


def test_every_byte_is_explained(ledger: Any) -> None:
    schemas = importlib.import_module(f"{NAME}.schemas.ledger").RECORDS
    value = ledger.encode_record(None, message("CorrectionRecord", offset=7, reason="x"))[1]
    assert explain_text(explain_record(schemas, None, value + b"!")) == (
        "value, 16 bytes\n"
        "     0  01                         uvarint      frame version  1\n"
        "     1  c8 01                      uvarint      api key        200 (CorrectionRecord)\n"
        "     3  00                         uvarint      value version  0\n"
        "CorrectionRecord v0, 12 bytes\n"
        "     0  00 00 00 00 00 00 00 07    int64        offset         7\n"
        "     8  02                         length       reason         1\n"
        "     9  78                         string       reason         'x'\n"
        "    10  00                         tag count    tagged_fields  0\n"
        "    11  21                                                     1 byte left over\n"
        "error: CorrectionRecord v0 at byte 11: the message ends here, but is followed by 1 byte\n"
    )


def test_damage_never_raises_anything_else(ledger: Any) -> None:
    random = Random(7)
    schemas = importlib.import_module(f"{NAME}.schemas.ledger").RECORDS
    for _ in range(3000):
        value = bytes([1, random.choice((0, 200))]) + random.randbytes(random.randint(0, 12))
        assert explain_text(explain_record(schemas, None, value))
        with suppress(KafkaRecordsError):
            ledger.decode_record(None, value)


@pytest.mark.maven
@pytest.mark.skipif(shutil.which("mvn") is None, reason="Maven fetches Kafka's jars and is not installed")
def test_what_a_controller_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the specs in Kafka's jar: the values are as its dump tool prints them, and encoding results in the same
    bytes."""
    with skipped_without_kafka():
        specs = fetch_specs(LATEST) / "kafka_metadata"
    shutil.copytree(specs, tmp_path / "specs" / "cluster_metadata")
    write(tmp_path / "controller", generate(load(tmp_path / "specs"), "controller"))
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    topic = importlib.import_module("controller.cluster_metadata")
    lines = [json.loads(line) for line in WRITTEN.read_text(encoding="utf-8").splitlines()]
    assert len({(line["type"], line["version"]) for line in lines}) == 22
    for line in lines:
        value = bytes.fromhex(line["value"])
        record = topic.decode_record(None, value)
        assert (upper_snake_case(record.name), record.value_version) == (line["type"], line["version"])
        assert record.value.to_json(record.value_version, lossy=True) == line["data"]
        assert topic.encode_record(None, record.value, record.value_version) == (None, value)
