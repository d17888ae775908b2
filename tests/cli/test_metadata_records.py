"""A topic of your own with metadata framing in the command: dump, explain and counts by `--package`."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_records_runtime.records.framing import in_frame
from tests.cli.running import run
from tests.cli.segment_bytes import batch, write_segment
from tests.ledger import CORRECTION, FRAMES, TRANSFER, ledger_package

NAME = "ledger_in_command"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with ledger_package(tmp_path_factory.mktemp("ledger"), NAME):
        yield importlib.import_module(f"{NAME}.ledger")


@pytest.fixture
def values(ledger: Any) -> list[bytes]:
    messages = importlib.import_module(f"{NAME}.registry").message_class
    return [
        ledger.encode_record(None, messages("TransferRecord")(cents=5, reference="rent"))[1],
        ledger.encode_record(None, messages("CorrectionRecord")(offset=7, reason="x"))[1],
        in_frame(TRANSFER, 9, b"newer"),
        in_frame(99, 0, b"other"),
    ]


def dumped(path: Path, *options: str) -> tuple[int, list[dict[str, Any]], str]:
    ran = run("dump", str(path.parents[1]), "--package", NAME, *options)
    return ran.status, [json.loads(line) for line in ran.lines], ran.err


def test_dump(tmp_path: Path, values: list[bytes]) -> None:
    path = write_segment(tmp_path, batch(0, [(None, value) for value in values]), folder="ledger-0")
    status, lines, said = dumped(path, "--bytes")
    assert status == 1
    assert [(line["record_type"], line["key"]) for line in lines] == [
        (TRANSFER, None),
        (CORRECTION, None),
        (TRANSFER, None),
        (99, None),
    ]
    zero = "A" * 22
    assert lines[0]["value"] == {
        "type": TRANSFER,
        "version": 1,
        "data": {"payerId": zero, "payeeId": zero, "cents": 5, "bills": [], "reference": "rent"},
    }
    assert lines[1]["value"] == {"type": CORRECTION, "version": 0, "data": {"offset": 7, "reason": "x"}}
    assert lines[2]["value"] == {"type": TRANSFER, "version": 9, "hex": values[2].hex()}
    assert lines[3]["value"] == {"type": 99, "version": 0, "hex": values[3].hex()}
    assert [line["raw_value"] for line in lines] == [value.hex() for value in values]
    assert [line["error"] and (line["error"]["part"], line["error"]["message"]) for line in lines] == [
        None,
        None,
        ("value", "TransferRecord has no version 9: its versions are 0 to 1"),
        ("value", "no record of this topic has the api key 99, at byte 1 of the value"),
    ]
    assert "record at offset 3: no record of this topic has the api key 99" in said


def test_dump_says_what_is_wrong_with_a_frame(tmp_path: Path, ledger: Any) -> None:
    path = write_segment(tmp_path, batch(0, [(key, value) for key, value, *_ in FRAMES]), folder="ledger-0")
    _, lines, _ = dumped(path)
    for line, (key, value, reason, offset, text) in zip(lines, FRAMES, strict=True):
        error = line["error"]
        part = "value" if key is None else "key"
        assert (error["part"], error["reason"], error["byte_offset"], error["message"]) == (part, reason, offset, text)
        assert line["key"] == (None if key is None else {"type": None, "hex": key.hex()})
        assert (line["value"] or {}).get("hex") == (None if value is None else value.hex())


def test_dump_of_some_types(tmp_path: Path, values: list[bytes]) -> None:
    path = write_segment(tmp_path, batch(0, [(None, value) for value in values]), folder="ledger-0")
    for asked, offsets in (("CorrectionRecord", [1]), ("0", [0, 2]), ("99", [3])):
        assert [line["offset"] for line in dumped(path, "--type", asked)[1]] == offsets


def test_explain(values: list[bytes], ledger: Any) -> None:
    ran = run("explain", "--package", NAME, "--topic", "ledger", "--value", values[1].hex())
    assert (ran.status, ran.err) == (0, "")
    assert ran.lines[:4] == [
        "value, 15 bytes",
        "     0  01                         uvarint      frame version  1",
        "     1  c8 01                      uvarint      api key        200 (CorrectionRecord)",
        "     3  00                         uvarint      value version  0",
    ]
    ran = run("explain", "--package", NAME, "--topic", "ledger", "--value", "0163")
    assert ran.status == 1
    assert ran.lines[-1] == "error: no record of this topic has the api key 99, at byte 1 of the value"
    ran = run("explain", "--package", NAME, "--topic", "ledger", "--key", "00 01")
    refused = "error: the record has a key of 2 bytes, but metadata records have no key"
    assert (ran.status, ran.lines[-1]) == (1, refused)


def test_explain_of_dumped_lines(tmp_path: Path, values: list[bytes]) -> None:
    path = write_segment(tmp_path, batch(0, [(None, value) for value in values[:2]]), folder="ledger-0")
    lines = run("dump", str(path.parents[1]), "--package", NAME, "--bytes").out
    ran = run("explain", "--package", NAME, "-", standard_input=lines)
    assert ran.status == 0
    assert "api key        200 (CorrectionRecord)" in ran.out


def test_counts(tmp_path: Path, values: list[bytes]) -> None:
    records = [(None, value) for value in [*values, values[0], b"\x01\x00", b"\x05", None]]
    path = write_segment(tmp_path, batch(0, records), folder="ledger-0")
    ran = run("counts", str(path.parents[1]), "--package", NAME, "--format", "json")
    found = {
        (row["record_type"], row["record"]): (row["records"], row["value_versions"])
        for row in map(json.loads, ran.lines)
    }
    assert found == {
        (0, "TransferRecord"): (4, {"none": 1, "v1": 2, "v9": 1}),
        (99, "(unknown type)"): (1, {"v0": 1}),
        (200, "CorrectionRecord"): (1, {"v0": 1}),
        (None, "(no frame)"): (2, {"none": 1}),
    }
