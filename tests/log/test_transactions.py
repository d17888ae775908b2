"""How transactions ended: markers in later files, several producers, markers that cannot be read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from struct import pack

import pytest

from kafka_records_engine.log.reading.segment_files import find_logs
from tests.log.log_batches import read_batches
from tests.log.logs import CAPTURES, TOPICS, batch, changed, commit, marker, read_both, record, write_log

ABORT, COMMIT = 0, 1


def states(folder: Path, files: Mapping[int, bytes]) -> dict[int, str]:
    """Transaction state by offset of the records that are not markers."""
    rows, _, _ = read_both(write_log(folder, files))
    return {row["offset"]: row["transaction"] for row in rows if row["control"] is None}


def test_the_next_marker_of_the_producer_decides(tmp_path: Path) -> None:
    log = [
        commit(0),
        commit(1, 7),
        commit(2, 8),
        commit(3, 7),
        marker(4, 8, ABORT),
        commit(5, 8),
        marker(6, 7, COMMIT),
        commit(7, 7),
        marker(8, 8, COMMIT),
        commit(9, 8),
    ]
    assert states(tmp_path, {0: b"".join(log)}) == {
        0: "none",
        1: "committed",
        2: "aborted",
        3: "committed",
        5: "committed",
        7: "open",
        9: "open",
    }


def test_markers_say_what_they_are(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: commit(0, 7) + marker(1, 7, COMMIT) + marker(2, 8, ABORT)})
    rows, records, findings = read_both(log)
    assert findings == []
    assert [(row["control"], row["transaction"]) for row in rows] == [
        (None, "committed"),
        ("commit", "committed"),
        ("abort", "aborted"),
    ]
    assert [each.marker.coordinator_epoch for each in records if each.marker] == [7, 7]


def test_the_marker_stands_in_a_later_file(tmp_path: Path) -> None:
    assert states(tmp_path, {0: commit(0, 7), 1: commit(1), 2: marker(2, 7, ABORT)}) == {0: "aborted", 1: "none"}


def test_an_idempotent_producer_has_no_transaction(tmp_path: Path) -> None:
    plain = batch(record(0, b"k", b"v"), 1, producer_id=7)
    assert states(tmp_path, {0: plain + marker(1, 7, COMMIT)}) == {0: "none"}


@pytest.mark.parametrize("at", [30, 70])
def test_damage_before_the_marker_may_hide_one(tmp_path: Path, at: int) -> None:
    # If the batch cannot be read, it may have been an abort, and the marker after it may end another transaction.
    damaged = changed(marker(1, 7, ABORT), at, b"\xee", crc=False)
    assert states(tmp_path, {0: commit(0, 7) + damaged + commit(2, 7) + marker(3, 7, COMMIT) + commit(4, 7)}) == {
        0: "unknown",
        2: "committed",
        4: "open",
    }


def test_damage_behind_the_marker_changes_nothing(tmp_path: Path) -> None:
    damaged = changed(commit(2), 30, b"\xee", crc=False)
    assert states(tmp_path, {0: commit(0, 7) + marker(1, 7, COMMIT) + damaged + commit(3, 7)}) == {
        0: "committed",
        3: "open",
    }


def test_an_unreadable_rest_of_a_file_may_hide_a_marker(tmp_path: Path) -> None:
    files = {0: commit(0, 7) + b"\xff" * 40, 5: commit(5, 7)}
    assert states(tmp_path, files) == {0: "unknown", 5: "open"}


def test_an_append_cut_short_at_the_end_hides_nothing(tmp_path: Path) -> None:
    assert states(tmp_path, {0: commit(0, 7) + marker(1, 7, COMMIT)[:40]}) == {0: "open"}


def test_files_that_were_not_asked_for_may_hide_a_marker(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commit(0, 7) + commit(1), 2: marker(2, 7, COMMIT)}, "t-0")
    (log,) = find_logs([tmp_path / "t-0" / f"{0:020}.log"])
    rows, _, _ = read_both(log)
    assert [row["transaction"] for row in rows] == ["unknown", "none"]


def test_a_control_batch_that_does_not_parse_may_hide_a_marker(tmp_path: Path) -> None:
    short = batch(record(0, b"\0\0", None), 1, offset=1, attributes=0x30, producer_id=7)
    assert states(tmp_path, {0: commit(0, 7) + short + marker(2, 7, COMMIT)}) == {0: "unknown"}


def ends_in_dump(capture: str, partition: str) -> dict[int, str]:
    """Transaction state by offset, derived from the output of Kafka's dump tool."""
    dumps = sorted((TOPICS / capture / "dump").glob(f"{partition}.*.txt"))
    pending: dict[str, list[int]] = {}
    ends: dict[int, str] = {}
    producer = transactional = ""
    for line in (line for dump in dumps for line in dump.read_text("utf-8").splitlines()):
        if batch_line := re.match(r"baseOffset: .* producerId: (\S+) .* isTransactional: (\S+) ", line):
            producer, transactional = batch_line.groups()
        elif end := re.match(r"\| offset: .* endTxnMarker: (COMMIT|ABORT) ", line):
            for offset in pending.pop(producer, []):
                ends[offset] = {"COMMIT": "committed", "ABORT": "aborted"}[end[1]]
        elif found := re.match(r"\| offset: (\d+) ", line):
            offset = int(found[1])
            ends[offset] = "open" if transactional == "true" else "none"
            if transactional == "true":
                pending.setdefault(producer, []).append(offset)
    return ends


def test_captured_transactions() -> None:
    counted: Counter[str] = Counter()
    for capture in CAPTURES:
        for log in find_logs([TOPICS / capture / "segments"]):
            rows, _, _ = read_both(log)
            found = {row["offset"]: row["transaction"] for row in rows if row["control"] is None}
            assert found == ends_in_dump(capture, f"{log.topic}-{log.partition}")
            counted.update(found.values())
            counted.update(row["control"] for row in rows if row["control"])
    assert counted == {"none": 1596, "committed": 18, "aborted": 10, "open": 3, "commit": 16, "abort": 8}


def two_markers(offset: int, first: int, second: int) -> bytes:
    """A control batch that no broker writes, with two ends of the transaction of producer 7."""
    kinds = enumerate((first, second))
    body = b"".join(record(number, pack(">hh", 0, kind), pack(">hi", 0, 7)) for number, kind in kinds)
    return batch(body, 2, offset=offset, attributes=0x30, producer_id=7)


@pytest.mark.parametrize(("first", "second"), [(COMMIT, ABORT), (ABORT, COMMIT), (COMMIT, 5), (5, ABORT)])
def test_a_control_batch_with_two_markers(tmp_path: Path, first: int, second: int) -> None:
    # Kafka replays the records of a control batch one by one (`CoordinatorLoaderImpl`): the first marker decides the
    # open transaction, and each marker row has its own kind.
    log = write_log(tmp_path, {0: commit(0, 7) + two_markers(1, first, second) + commit(3, 7)})
    rows, _, _ = read_both(log)
    words = {COMMIT: ("commit", "committed"), ABORT: ("abort", "aborted")}
    ends = [(at, *words[kind]) for at, kind in ((1, first), (2, second)) if kind in words]
    assert [(row["offset"], row["control"], row["transaction"]) for row in rows] == [
        (0, None, ends[0][2]),
        *ends,
        (3, None, "open"),
    ]
    (control,) = [each for each in read_batches(log) if each.batch.is_control]
    assert control.transaction == ends[0][2]
