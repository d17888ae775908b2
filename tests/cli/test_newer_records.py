"""Records that are newer than this build: nothing is lost, and a package of the newer specs reads them."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.generate import generate
from kafka_records_codegen.loader import load
from kafka_records_codegen.tree import write
from kafka_records_runtime import walker
from kafka_records_runtime.jsonform import from_json
from kafka_records_tables import read_table
from tests.cli.running import run
from tests.cli.segment_bytes import KeyValue, batch, commit, write_segment

ROOT = Path(__file__).resolve().parents[2]

NEWER = (
    "a newer Kafka may have written these: a package that kafka-records-codegen makes of its specs reads them, "
    "--package NAME"
)

PLAN_KEY = """\
{ "apiKey": 40, "type": "coordinator-key", "name": "GroupPlanKey", "validVersions": "0", "flexibleVersions": "none",
  "fields": [ { "name": "groupId", "type": "string", "versions": "0", "about": "The group." } ] }
"""
PLAN_VALUE = """\
{ "apiKey": 40, "type": "coordinator-value", "name": "GroupPlanValue", "validVersions": "0", "flexibleVersions": "0+",
  "fields": [ { "name": "steps", "type": "[]int32", "versions": "0+", "about": "What is planned." } ] }
"""


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A package of specs of a release to come: OffsetCommitValue 5 with another field and another tag, a record 40."""
    specs, home = tmp_path_factory.mktemp("specs") / "consumer_offsets", tmp_path_factory.mktemp("home")
    specs.mkdir()
    for path in (ROOT / "message_specs" / "consumer_offsets").glob("*OffsetCommit*.json"):
        shutil.copy(path, specs / path.name)
    value = (specs / "OffsetCommitValue.json").read_text(encoding="utf-8")
    value = value.replace('"validVersions": "0-4"', '"validVersions": "0-5"').replace(
        '"fields": [',
        '"fields": [ { "name": "memberId", "type": "string", "versions": "5+", "about": "Who committed." },\n'
        '{ "name": "reason", "type": "string", "versions": "5+", "tag": 1, "taggedVersions": "5+", "about": "Why." },',
    )
    (specs / "OffsetCommitValue.json").write_text(value, encoding="utf-8")
    (specs / "GroupPlanKey.json").write_text(PLAN_KEY, encoding="utf-8")
    (specs / "GroupPlanValue.json").write_text(PLAN_VALUE, encoding="utf-8")
    write(home / "newer_kafka", generate(load(specs.parent), "newer_kafka"))
    sys.path.insert(0, str(home))
    yield "newer_kafka"
    sys.path.remove(str(home))


@pytest.fixture
def segment(newer: str, tmp_path: Path) -> str:
    """A log with a commit that this build reads, and two records that it does not."""
    write_segment(tmp_path, batch(0, [commit("g", 7), _newer_commit(newer), _plan(newer)]))
    return str(tmp_path)


VALUE = {"memberId": "m-1", "offset": 8, "leaderEpoch": 3, "metadata": "", "commitTimestamp": 1000, "reason": "moved"}


def _newer_commit(package: str) -> KeyValue:
    schema = importlib.import_module(f"{package}.schemas.consumer_offsets").RECORDS[1].value
    return commit("g", 0)[0], b"\0\x05" + walker.encode(schema, from_json(schema, VALUE, 5), 5)


def _plan(package: str) -> KeyValue:
    record = importlib.import_module(f"{package}.schemas.consumer_offsets").RECORDS[40]
    key, value = {"groupId": "g"}, {"steps": [1, 2]}
    return (
        b"\0\x28" + walker.encode(record.key, from_json(record.key, key, 0), 0),
        b"\0\0" + walker.encode(record.value, from_json(record.value, value, 0), 0),
    )


def _rows(*words: str) -> tuple[int, list[dict[str, Any]], list[str]]:
    ran = run(*words, "--format", "json") if words[0] == "table" else run(*words)
    return ran.status, [json.loads(line) for line in ran.lines], ran.err.splitlines()


def test_a_table_names_the_record_and_the_way(segment: str) -> None:
    status, rows, said = _rows("table", "current_offsets", segment)
    assert (status, rows) == (1, [])
    assert "OffsetCommitValue has no version 5, it has the versions 0 to 4" in said[0]
    assert said[-2:] == ["1 record could not be decoded", NEWER]


def test_a_table_by_the_newer_package(segment: str, newer: str) -> None:
    status, rows, said = _rows("table", "current_offsets", segment, "--package", newer)
    assert (status, [(row["group_id"], row["offset"], row["leader_epoch"]) for row in rows]) == (0, [("g", 8, 3)])
    assert said == ["1 row from 3 records and 0 transaction markers in 1 file of 1 partition"]
    assert read_table("current_offsets", segment, package=newer).table.to_pylist()[0]["offset"] == 8


def test_a_dump_keeps_the_bytes(segment: str, newer: str) -> None:
    status, lines, said = _rows("dump", segment)
    (_, commit_value), (plan_key, plan_value) = _newer_commit(newer), _plan(newer)
    assert status == 0
    assert [line["value"] for line in lines[1:]] == [
        {"version": 5, "hex": _hex(commit_value)},
        {"version": 0, "hex": _hex(plan_value)},
    ]
    assert lines[2]["key"] == {"type": 40, "hex": _hex(plan_key)}
    assert said[1:] == [
        "of a type this build does not know: 40 (1)",
        "of a value version this build does not know: OffsetCommit v5 (1)",
        NEWER,
    ]


def test_a_dump_by_the_newer_package(segment: str, newer: str) -> None:
    status, lines, said = _rows("dump", segment, "--package", newer)
    assert (status, len(said)) == (0, 1)
    assert lines[1]["value"] == {"version": 5, "data": VALUE}
    assert (lines[2]["key"]["data"], lines[2]["value"]["data"]) == ({"groupId": "g"}, {"steps": [1, 2]})


def _hex(data: bytes | None) -> str:
    assert data is not None
    return data.hex()
