"""`dump` on records that Kafka's own serdes wrote and its tools printed, including odd and broken ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.kafka_texts import as_numbers
from tests.cli.running import Ran, run
from tests.cli.segment_bytes import batch, write_segment
from tests.conftest import VectorLoader

TOPICS = ("__consumer_offsets", "__share_group_state", "__transaction_state")

Case = dict[str, Any]


@pytest.fixture(params=TOPICS)
def cases(request: pytest.FixtureRequest, load_vectors: VectorLoader) -> list[Case]:
    """The framed records of one topic."""
    return [case for case in load_vectors("framed.jsonl") if case.get("topic") == request.param]


@pytest.fixture
def dumped(cases: list[Case], tmp_path: Path) -> Ran:
    """The dump of a segment with all cases, one per batch."""
    batches = [batch(at, [(_bytes(case["key_hex"]), _bytes(case["value_hex"]))]) for at, case in enumerate(cases)]
    path = write_segment(tmp_path, *batches, folder=f"{cases[0]['topic']}-0")
    return run("dump", str(path))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def test_what_kafka_reads_is_shown_as_kafka_shows_it(cases: list[Case], dumped: Ran) -> None:
    lines = dumped.lines
    assert len(lines) == len(cases)
    compared = 0
    for case, line in zip(cases, lines, strict=True):
        if case.get("json") is None:
            continue
        record = json.loads(line)
        assert {"key": record["key"], "value": record["value"]} == case["json"]
        assert record["error"] is None
        shown = case.get("formatter_line") or _as_dump_tool(case)
        if shown is not None:
            assert f',{shown[1:-1]},"producer_id":' in line
        compared += 1
    assert compared > 10


def _as_dump_tool(case: Case) -> str | None:
    """The key and payload of the dump tool in the form of a formatter; None if it opens the members of a group."""
    if case["key_message"] == "GroupMetadataKey":
        return None
    return f'{{"key":{as_numbers(case["dump_key"])},"value":{as_numbers(case["dump_payload"])}}}'


def test_what_kafka_refuses_is_shown_with_its_bytes(cases: list[Case], dumped: Ran) -> None:
    refused = 0
    for case, line in zip(cases, dumped.lines, strict=True):
        if case.get("json") is not None:
            continue
        refused += 1
        record = json.loads(line)
        key, value = record["key"], record["value"]
        shown = [each["hex"] for each in (key, value) if each is not None and "hex" in each]
        assert shown
        assert set(shown) <= {case["key_hex"], case["value_hex"]}
        has_unknown_type = "Found an unknown record type" in case["detail"]
        assert (record["error"] is None) == has_unknown_type, case["note"]
        if "Found an unknown record version" in case["detail"]:
            assert record["error"]["reason"] == "UnsupportedVersion", case["note"]
    undecodable = sum(json.loads(line)["error"] is not None for line in dumped.lines)
    lines = dumped.err.splitlines()
    assert refused > 5
    assert sum(line.endswith(" (shown with its bytes)") for line in lines) == undecodable
    assert f"{undecodable} records could not be decoded" in lines
    assert dumped.status == 1
