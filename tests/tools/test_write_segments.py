"""The writer of log segments: our readers find exactly what it claims to have written.

In tests/broker/test_written_segments.py, Kafka reads the files.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_records import consumer_offsets, share_group_state, transaction_state
from kafka_records.enums import TransactionState
from kafka_records_engine.findings import Finding
from kafka_records_engine.log.format.compression import CODECS
from kafka_records_engine.log.reading.segment_files import LogRecord, find_logs, read_log, read_partition
from kafka_records_runtime.kafka.partitioner import partition_for
from tools.segments.plan import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from tools.write_segments import Plan, PlanError, WrittenLog, main, write_segments

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
EVERYTHING = {
    "commits": 69,
    "tombstones": 10,
    "group_metadata": 4,
    "group_tombstones": 3,
    "consumer_groups": 2,
    "consumer_members": 3,
    "consumer_assignments": 3,
    "share_groups": 1,
    "share_members": 2,
    "streams_groups": 1,
    "streams_members": 2,
}
SMALL = Plan(
    partitions=3,
    records=3000,
    keys=400,
    keys_per_group=5,
    mix=EVERYTHING,
    commit_versions=(1, 3, 4),
    transactions=0.3,
    aborted=0.3,
    left_open=0.1,
    segment_bytes=30_000,
)


def records_of(folder: Path) -> tuple[list[LogRecord], list[Finding]]:
    findings: list[Finding] = []
    found = [record for log in find_logs([folder]) for record in read_log(log, on_finding=findings.append)]
    return found, findings


def decoded(found: list[LogRecord]) -> list[tuple[LogRecord, Any]]:
    """The ordinary records, decoded by the generated codecs."""
    return [
        (each, consumer_offsets.decode_record(each.record.key, each.record.value))
        for each in found
        if not each.batch.is_control
    ]


@pytest.fixture(scope="module", params=CODECS)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, WrittenLog]:
    folder = tmp_path_factory.mktemp("log")
    return folder, write_segments(folder, replace(SMALL, codec=request.param))


@pytest.fixture(scope="module")
def found(written: tuple[Path, WrittenLog]) -> list[LogRecord]:
    found, findings = records_of(written[0])
    assert findings == []
    return found


class TestTheLog:
    def test_everything_is_read_back(self, written: tuple[Path, WrittenLog], found: list[LogRecord]) -> None:
        _, log = written
        assert log.records == 3000
        assert len(found) == log.records + log.markers
        assert sum(file.stat().st_size for file in log.files) == log.bytes
        assert len({(each.file, each.batch.position) for each in found}) == log.batches
        for partition in range(3):
            inside = [each for each in found if each.partition == partition]
            assert [each.record.offset for each in inside] == list(range(len(inside)))
            assert [each.record.timestamp_ms for each in inside] == [SMALL.start_ms + at for at in range(len(inside))]

    def test_the_columnar_reader_reads_the_same(self, written: tuple[Path, WrittenLog], found: list[LogRecord]) -> None:
        rows = pa.Table.from_batches([rows for log in find_logs([written[0]]) for rows in read_partition(log)])
        assert rows["key"].to_pylist() == [each.record.key for each in found]
        assert rows["value"].to_pylist() == [each.record.value for each in found]
        assert rows["transaction"].to_pylist() == [each.transaction for each in found]

    def test_the_files_roll(self, written: tuple[Path, WrittenLog], found: list[LogRecord]) -> None:
        _, log = written
        assert all(file.stat().st_size <= SMALL.segment_bytes for file in log.files)
        if log.bytes > 3 * SMALL.segment_bytes:
            assert len(log.files) > 3
        first: dict[str, int] = {}
        for each in found:
            first.setdefault(each.file, each.record.offset)
        assert {Path(name).name: offset for name, offset in first.items()} == {
            f"{offset:020}.log": offset for offset in first.values()
        }

    def test_the_mix_is_what_was_asked_for(self, found: list[LogRecord]) -> None:
        every = [(record.name, record.value is None) for _, record in decoded(found)]
        counts = Counter(every)
        total = 3000 * 0.7  # of the batches that are not transactions
        for name, is_tombstone, share in (
            ("OffsetCommit", True, 0.1),
            ("GroupMetadata", False, 0.04),
            ("GroupMetadata", True, 0.03),
            ("ConsumerGroupMetadata", False, 0.02),
            ("ConsumerGroupMemberMetadata", False, 0.03),
            ("ConsumerGroupCurrentMemberAssignment", False, 0.03),
        ):
            assert 0.5 < counts[name, is_tombstone] / (share * total) < 2, name
        versions = Counter(
            record.value_version
            for each, record in decoded(found)
            if record.name == "OffsetCommit" and record.value is not None and not each.batch.is_transactional
        )
        assert versions.keys() == {1, 3, 4}
        assert min(versions.values()) > 0.8 * max(versions.values())

    def test_every_record_is_as_a_strict_reader_wants_it(self, found: list[LogRecord]) -> None:
        for each, record in decoded(found):
            assert (record.is_known_type, record.is_known_version, record.is_lenient) == (True, True, False)
            assert consumer_offsets.encode_record(record.key, record.value, record.value_version) == (
                each.record.key,
                each.record.value,
            )
            group = record.key.group if hasattr(record.key, "group") else record.key.group_id
            assert each.partition == partition_for(group, 3)
            if record.name == "OffsetCommit" and record.value is not None:
                assert record.value.commit_timestamp == each.record.timestamp_ms
                assert record.value.offset // 10 == each.record.offset

    def test_transactions_end_in_all_ways(self, written: tuple[Path, WrittenLog], found: list[LogRecord]) -> None:
        _, log = written
        inside = {(each.partition, each.batch.offset): each for each in found if each.batch.is_transactional}
        ends = Counter((each.transaction, each.control) for each in inside.values())
        assert ends.keys() == {
            ("committed", None),
            ("committed", "commit"),
            ("aborted", None),
            ("aborted", "abort"),
            ("open", None),
        }
        assert ends["committed", None] == ends["committed", "commit"]
        assert ends["aborted", None] == ends["aborted", "abort"]
        assert ends["committed", "commit"] + ends["aborted", "abort"] == log.markers
        # There are batches of other producers between some transactions and their markers.
        pairs = pairwise(found)
        assert any(each.control and before.batch.producer_id != each.batch.producer_id for before, each in pairs)

    def test_the_truth_is_what_the_records_say(self, written: tuple[Path, WrittenLog], found: list[LogRecord]) -> None:
        _, log = written
        current: dict[tuple[str, str, int], tuple[int, int, int, int]] = {}
        kinds: dict[str, str] = {}
        others: dict[str, str] = {}
        for each, record in decoded(found):
            if record.name == "OffsetCommit":
                place = record.key.group, record.key.topic, record.key.partition
                if record.value is not None:
                    kinds.setdefault(record.key.group, "simple")
                if record.value is None:
                    current.pop(place, None)
                elif each.transaction in ("none", "committed"):
                    value = record.value
                    current[place] = value.offset, value.commit_timestamp, each.partition, each.record.offset
            elif record.name != "GroupMetadata":
                others[record.key.group_id], _ = re.findall("[A-Z][a-z]+", record.name)[:2]
            elif record.value is None:
                kinds.pop(record.key.group, None)
            else:
                kinds[record.key.group] = "classic"
        kinds.update({group: kind.lower() for group, kind in others.items()})
        said = {tuple(row.values())[:3]: tuple(row.values())[3:] for row in log.truth["current_offsets"].to_pylist()}
        assert said == current
        assert {row["group"]: row["kind"] for row in log.truth["groups"].to_pylist()} == kinds
        assert Counter(kinds.values()).keys() == {"classic", "simple", "consumer", "share", "streams"}


def test_transactional_ids(tmp_path: Path) -> None:
    written = write_segments(tmp_path, Plan(topic=TRANSACTIONS_TOPIC, partitions=2, records=800, keys=40))
    found, findings = records_of(tmp_path)
    assert (len(found), findings) == (800, [])
    states: dict[str, list[Any]] = {}
    for each in found:
        record = transaction_state.decode_record(each.record.key, each.record.value)
        assert isinstance(record, transaction_state.TransactionLog)
        name = record.key.transactional_id
        assert each.partition == partition_for(name, 2)
        if record.value is None:
            states.pop(name, None)
        else:
            state = TransactionState(record.value.transaction_status).label
            updated = record.value.transaction_last_update_timestamp_ms
            states[name] = [state, updated, each.partition, each.record.offset]
    rows = [tuple(row.values()) for row in written.truth["transactions"].to_pylist()]
    said = {name: rest for name, *rest in rows}
    assert said == states
    assert len({state for state, *_ in states.values()}) > 3


def test_share_partitions(tmp_path: Path) -> None:
    written = write_segments(tmp_path, Plan(topic=SHARE_STATE_TOPIC, partitions=2, records=800, keys=300))
    found, findings = records_of(tmp_path)
    assert (len(found), findings) == (800, [])
    last: dict[tuple[str, str, int], tuple[int, int]] = {}
    names = set()
    for each in found:
        record = share_group_state.decode_record(each.record.key, each.record.value)
        assert isinstance(record, share_group_state.ShareSnapshot | share_group_state.ShareUpdate)
        key = record.key.group_id, str(record.key.topic_id), record.key.partition
        assert each.partition == partition_for(":".join(map(str, key)), 2)
        names.add((record.name, record.value is None))
        if record.value is None:
            last.pop(key, None)
        else:
            assert record.value.start_offset // 10 == each.record.offset
            last[key] = each.partition, each.record.offset
    rows = [tuple(row.values()) for row in written.truth["share_partitions"].to_pylist()]
    assert {row[:3]: row[3:] for row in rows} == last
    assert names == {("ShareSnapshot", False), ("ShareUpdate", False), ("ShareSnapshot", True)}


# -- the same bytes ----------------------------------------------------------------------------------------------------


def bytes_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.log")}


def test_the_bytes_depend_on_the_plan_alone(tmp_path: Path) -> None:
    first = write_segments(tmp_path / "one", SMALL, processes=1)
    second = write_segments(tmp_path / "two", SMALL, processes=2)
    assert bytes_below(tmp_path / "one") == bytes_below(tmp_path / "two")
    assert first.truth == second.truth
    write_segments(tmp_path / "other", Plan(partitions=3, records=3000, keys=400, seed=1))
    assert bytes_below(tmp_path / "one") != bytes_below(tmp_path / "other")


def test_partitions_without_groups_are_empty(tmp_path: Path) -> None:
    written = write_segments(tmp_path, Plan(partitions=50, records=100, keys=20))
    assert [each.records for each in written.partitions if each.records] == [100]
    assert len(written.files) == 50
    assert written.truth["groups"].num_rows == 1


def test_a_batch_larger_than_a_segment_has_one_of_its_own(tmp_path: Path) -> None:
    written = write_segments(tmp_path, Plan(partitions=1, records=50, records_per_batch=(10, 10), segment_bytes=100))
    assert len(written.files) == 5
    found, findings = records_of(tmp_path)
    assert (len(found), findings) == (50, [])


# -- damage ------------------------------------------------------------------------------------------------------------

DAMAGED = {"crc": 3, "size": 2, "offset": 1, "truncated": 1, "zeros": 1}


def test_damage_is_done_where_it_is_said_and_nowhere_else(tmp_path: Path) -> None:
    whole = Plan(partitions=3, records=3000, keys=400)
    write_segments(tmp_path / "whole", whole)
    damaged = write_segments(tmp_path / "damaged", Plan(partitions=3, records=3000, keys=400, damage=DAMAGED))
    assert Counter(each.kind for each in damaged.damage) == DAMAGED
    before, after = bytes_below(tmp_path / "whole"), bytes_below(tmp_path / "damaged")
    for name, data in after.items():
        expected = bytearray(before[name])
        for each in damaged.damage:
            if Path(each.file).parent.name != Path(name).parent.name:
                continue
            start = each.position
            if each.kind == "truncated":
                del expected[len(data) :]
                assert start < len(data) < len(before[name])
            elif each.kind == "zeros":
                expected += bytes(4096)
            else:
                at = start + {"size": 10, "offset": 2, "crc": 61}[each.kind]
                changed = next(index for index in range(at, len(data)) if data[index] != expected[index])
                assert each.kind == "crc" or changed == at
                expected[changed] ^= 0x20
        assert data == bytes(expected)


def test_a_reader_loses_the_batches_with_wrong_crcs_and_no_others(tmp_path: Path) -> None:
    written = write_segments(tmp_path, Plan(partitions=3, records=3000, keys=400, damage={"crc": 5}))
    found, findings = records_of(tmp_path)
    places = {(each.file, each.position) for each in written.damage}
    assert {(finding.file, finding.position) for finding in findings} == places
    assert len(found) == 3000 - sum(each.records for each in written.damage)


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_writes_log_and_truth(tmp_path: Path) -> None:
    options = ("--records", "2000", "--keys", "100", "--partitions", "2", "--corrupt", "crc=1", "--processes", "1")
    mix = ("--mix", "commits=9,tombstones=1", "--transactions", "0.2", "--records-per-batch", "1-8")
    done = subprocess.run(
        [
            *(sys.executable, "tools/write_segments.py", str(tmp_path / "log"), *options, *mix),
            *("--truth", str(tmp_path / "truth"), "--json", str(tmp_path / "written.json")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads((tmp_path / "written.json").read_text("utf-8"))
    counts, tables, damage = done.stdout.splitlines()
    assert counts.startswith(
        f"2000 records and {said['markers']} markers in {said['batches']} batches, {said['bytes']} bytes in 2 files, "
    )
    assert tables == f"current_offsets: {said['truth']['current_offsets']} rows, groups: {said['truth']['groups']} rows"
    (broken,) = said["damage"]
    assert damage == (
        f"damaged (crc): {broken['file']}, byte {broken['position']}, offset {broken['base_offset']}, "
        f"{broken['records']} records"
    )
    assert pq.read_table(tmp_path / "truth" / "groups.parquet").num_rows == said["truth"]["groups"]
    assert {path.name for path in (tmp_path / "log").iterdir()} == {f"{OFFSETS_TOPIC}-0", f"{OFFSETS_TOPIC}-1"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--mix", "rebalances=1"],
            "the mix of __consumer_offsets is made of commits, tombstones, group_metadata, "
            "group_tombstones, consumer_groups, consumer_members, consumer_assignments, share_groups, share_members, "
            "streams_groups, streams_members",
        ),
        (["--records-per-batch", "0"], "a batch has 1 to 30000 records: write two numbers, the lower one first"),
        (["--partitions", "0"], "a topic has at least one partition"),
        (["--keys", "0"], "there must be at least one key, and one key per group"),
        (["--transactions", "2"], "the share of transactions is a number from 0 to 1"),
        (
            ["--topic", "__transaction_state", "--transactions", "0.1"],
            "__transaction_state holds no transactional " "batches: leave transactions out",
        ),
        (["--commit-versions", "2"], "versions of committed offsets are 1, 3, 4"),
        (["--corrupt", "fire=1"], "damage is one of crc, size, offset, truncated, zeros"),
        (
            ["--records", "100", "--processes", "1", "--corrupt", "truncated=9"],
            "9 partitions were to be damaged and there are only 8: ask for less damage",
        ),
    ],
)
def test_what_cannot_be_written_is_refused(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "log"), *options]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"{message}\n")


@pytest.mark.parametrize("option", ["--mix", "--corrupt"])
def test_a_pair_without_a_number(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([str(tmp_path), option, "commits"])
    assert caught.value.code == 2
    assert "'commits'" in capsys.readouterr().err.splitlines()[-1]


def test_a_folder_with_a_log_is_left_alone(tmp_path: Path) -> None:
    write_segments(tmp_path, Plan(partitions=1, records=10))
    before = bytes_below(tmp_path)
    with pytest.raises(PlanError) as caught:
        write_segments(tmp_path, Plan(partitions=2, records=10))
    assert str(caught.value) == f"{tmp_path} holds __consumer_offsets-0 already: choose an empty folder"
    assert bytes_below(tmp_path) == before


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    assert "tools/write_segments.py /tmp/log --codec lz4 --transactions 0.1" in capsys.readouterr().out
