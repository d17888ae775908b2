"""Records that are newer than this build: nothing is lost, and a package of the newer specs reads them."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.generate import generate
from kafka_records_codegen.loader import load
from kafka_records_codegen.tree import write
from kafka_records_runtime.messages.json_form import from_json
from kafka_records_runtime.wire import walker
from kafka_records_tables import read_table
from tests.cli.running import run
from tests.cli.segment_bytes import KeyValue, batch, commit, write_segment

ROOT = Path(__file__).resolve().parents[2]

NEWER = (
    "a newer Kafka may have written these: to read them, generate a package from its specs with "
    "kafka-records-codegen, and pass it with --package"
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
    """A package of specs of a future release: OffsetCommitValue 5 with another field and another tag, and a record type
    40."""
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


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """Makes a package of the specs of one topic with texts of OffsetCommitValue or TransactionLogValue replaced."""
    home = tmp_path_factory.mktemp("packages")

    def make(name: str, replaced: Mapping[str, str], folder: str = "consumer_offsets") -> str:
        specs = tmp_path_factory.mktemp("specs")
        (specs / folder).mkdir()
        for path in (ROOT / "message_specs" / folder).glob("*.json"):
            text = path.read_text(encoding="utf-8")
            if path.name in ("OffsetCommitValue.json", "TransactionLogValue.json"):
                for old, new in replaced.items():
                    assert old in text
                    text = text.replace(old, new)
            if path.stem.startswith(("OffsetCommit", "LegacyOffsetCommit", "TransactionLog")):
                (specs / folder / path.name).write_text(text, encoding="utf-8")
        write(home / name, generate(load(specs), name))
        importlib.invalidate_caches()
        return name

    sys.path.insert(0, str(home))
    yield make
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
    assert "OffsetCommitValue has no version 5: its versions are 0 to 4" in said[0]
    assert said[-2:] == ["1 record could not be decoded", NEWER]


def test_a_table_by_the_newer_package(segment: str, newer: str) -> None:
    status, rows, said = _rows("table", "current_offsets", segment, "--package", newer)
    assert (status, [(row["group_id"], row["offset"], row["leader_epoch"]) for row in rows]) == (0, [("g", 8, 3)])
    assert said == ["1 row from 3 records and 0 transaction markers in 1 file of 1 partition"]
    assert read_table("current_offsets", segment, package=newer).table.to_pylist()[0]["offset"] == 8


def test_a_dump_keeps_the_bytes(segment: str, newer: str) -> None:
    status, lines, said = _rows("dump", segment)
    (_, commit_value), (plan_key, plan_value) = _newer_commit(newer), _plan(newer)
    assert status == 1
    assert [line["value"] for line in lines[1:]] == [
        {"version": 5, "hex": _hex(commit_value)},
        {"version": 0, "hex": _hex(plan_value)},
    ]
    assert lines[2]["key"] == {"type": 40, "hex": _hex(plan_key)}
    assert "OffsetCommitValue has no version 5: its versions are 0 to 4 (shown with its bytes)" in said[0]
    assert said[2:] == [
        "1 record could not be decoded",
        "of a type this build does not know: 40 (1)",
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


# -- a package that does not do ----------------------------------------------------------------------------------------

READS = "current_offsets reads OffsetCommitValue as kafka_records defines it, and there "
RENAMED = "it has no field offset, but offset_read; bytes contain no names, so you can rename it in the specs"
OFFSET = '"name": "offset", "type": "int64"'
UNFIT = [
    ({'"name": "offset"': '"name": "offsetRead"'}, RENAMED),
    ({OFFSET: OFFSET.replace("int64", "string")}, "the field offset is string, not int64"),
    ({OFFSET: OFFSET.replace("int64", "[]int64")}, "the field offset is []int64, not int64"),
]


@pytest.mark.parametrize(("replaced", "what"), UNFIT, ids=["renamed", "retyped", "array"])
def test_a_package_with_other_fields_is_refused(
    segment: str, made: Callable[..., str], request: pytest.FixtureRequest, replaced: dict[str, str], what: str
) -> None:
    package = made(f"unfit_{request.node.callspec.id}", replaced)
    for engine in ("local", "spark"):
        ran = run("table", "current_offsets", segment, "--package", package, "--engine", engine)
        assert ran == (2, "", f"kafka-records: --package {package}: {READS}{what}\n")
    with pytest.raises(ValueError, match=r"^the package unfit") as refused:
        read_table("current_offsets", segment, package=package)
    assert str(refused.value) == f"the package {package} cannot be used: {READS}{what}"


def test_a_view_names_each_table_that_cannot_read(segment: str, made: Callable[..., str]) -> None:
    package = made("unfit_view", {'"name": "offset"': '"name": "offsetRead"'})
    with pytest.raises(ValueError, match="cannot be used") as refused:
        read_table("open_transactions", segment, package=package)
    assert "pending_offsets reads OffsetCommitValue as kafka_records defines it" in str(refused.value)
    assert "transactions needs the records of a folder transaction_state: there is no TransactionLog" in str(
        refused.value
    )


def test_a_struct_with_more_fields_does(made: Callable[..., str]) -> None:
    """The table does not need a tag that a newer release adds to the partitions of a transaction."""
    old = '"name": "PartitionIds"'
    tag = '"name": "Why", "type": "string", "versions": "1+", "tag": 0, "taggedVersions": "1+", "about": "Why." },\n'
    package = made("more_inside", {f"{{ {old}": f"{{ {tag} {{ {old}"}, "transaction_state")
    source = str(ROOT / "tests/data/topics/kafka-4.3/segments")
    ours, theirs = (read_table("transactions", source, package=name).table for name in ("kafka_records", package))
    assert ours.num_rows > 0
    assert theirs.equals(ours)


def test_what_the_given_package_does_not_know_either(segment: str, made: Callable[..., str]) -> None:
    package = made("no_newer", {})
    either = f"these may be newer than the specs of {package} too: to read them, generate a package from newer specs"
    assert _rows("table", "current_offsets", segment, "--package", package)[2][-1] == either
    assert _rows("dump", segment, "--package", package)[2][2:] == [
        "1 record could not be decoded",
        f"of a type the package {package} does not know: 40 (1)",
        either,
    ]
