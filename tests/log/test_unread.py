"""What is left to read from an offset on, according to the headers of batches: on a broker's disk, and compared with
plain counting."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from random import Random
from struct import pack, pack_into
from typing import Any

import numpy as np
import pytest

from kafka_records_engine.log.files.discovery import FoundLog, find_logs
from kafka_records_engine.log.format.offset_index import OffsetIndex
from kafka_records_engine.log.reading import unread
from kafka_records_engine.log.reading.log_end import end_of
from kafka_records_engine.log.reading.segment_files import open_log, read_log
from kafka_records_engine.log.reading.unread import BATCH, RECORD, UNKNOWN, Unread, unread_from
from tests.log.logs import DATA, batch, case, marker, record, with_right_crc, write_log

TIMED = DATA / "timed"

Answer = tuple[int, int, int, int]
"""Unread, held back, time, precision."""


def answers(log: FoundLog, offsets: list[int], end: int, most: int | None = None) -> tuple[list[Answer], Unread]:
    with open_log(log) as opened:
        found = unread_from(opened, log.place, np.array(offsets, np.int64), end, most)
    columns = (found.unread, found.held_back, found.timestamp_ms, found.precision)
    return [tuple(row) for row in np.stack(columns, 1).tolist()], found


# -- a broker's disk ---------------------------------------------------------------------------------------------------


def truth() -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (TIMED / "lag.jsonl").read_text("utf-8").splitlines()]
    return [row for row in rows if row["committed"] is not None]


def heads_at(log: FoundLog, offset: int) -> tuple[int, int]:
    """The base offset of the batch with an offset, and the time of its first record."""
    records = {each.record.offset: each for each in read_log(log)}
    base = records[offset].batch.offset
    return base, records[base].record.timestamp_ms


@pytest.mark.parametrize("most", [None, unread.MOST_BYTES])
def test_a_brokers_disk(most: int | None) -> None:
    """Every committed offset: the count is right, and the time is that of the record, or of its batch."""
    logs = {(log.topic, log.partition): log for log in find_logs([TIMED / "data"])}
    rows = truth()
    assert len(rows) == 52
    for row in rows:
        log = logs[row["topic"], row["partition"]]
        with open_log(log) as opened:
            found_end = end_of(opened.segments[-1], log.place)
        assert found_end is not None
        end = found_end.offset
        assert end == row["end"]
        ((count, held, stamp, precision),), found = answers(log, [max(row["committed"], row["log_start"])], end, most)
        assert count == row["committed_records_left"]
        assert count + held <= row["data_records_left"]
        assert found.trouble is None
        first = row["first_committed_left"]
        if first is None:
            assert (stamp, precision) == (UNKNOWN, UNKNOWN)
            continue
        base, of_batch = heads_at(log, first["offset"])
        assert stamp == (first["timestamp_ms"] if precision == RECORD else of_batch)
        assert precision == (RECORD if base == first["offset"] or row["topic"] == "timed.append" else BATCH)


def test_a_running_brokers_index() -> None:
    """Zeros follow the entries of an index that a broker has open."""
    (log,) = find_logs([TIMED / "data" / "timed.plain-1"])
    with open_log(log) as opened:
        index = OffsetIndex(opened.segments[0], log.place)
        assert index.position_of(0) == 0
        position = index.position_of(200)
        assert position > 0
        found = index.offset_from(position)
        assert found is not None
        assert found <= 200
        assert index.offset_from(1 << 31) is None


# -- beside plain counting --------------------------------------------------------------------------------------------


@dataclass
class MadeUp:
    """A log of random batches, and the content of each offset."""

    log: FoundLog
    end: int
    records: dict[int, tuple[int, str, int, int]]
    """By offset: its time, its outcome, the base offset of its batch, and the time of the batch."""

    def plain(self, offset: int) -> Answer:
        """A second implementation of the rule, record by record."""
        left = {at: each for at, each in self.records.items() if at >= offset}
        open_from = min((each[2] for each in self.records.values() if each[1] == "open"), default=self.end)
        usable = {at: each for at, each in left.items() if each[1] in ("none", "committed") and each[2] < open_from}
        held = [at for at, each in left.items() if each[1] != "aborted" and each[2] >= open_from]
        if not usable:
            return 0, len(held), UNKNOWN, UNKNOWN
        first = min(usable)
        is_exact = usable[first][2] == first or sum(each[2] == usable[first][2] for each in self.records.values()) == 1
        return len(usable), len(held), usable[first][3], RECORD if is_exact else BATCH


def made_up(folder: Path, seed: int, *, large: bool, zeros: int = 0) -> MadeUp:
    random = Random(seed)
    files: dict[int, bytes] = {}
    indexes: dict[int, bytes] = {}
    records: dict[int, tuple[int, str, int, int]] = {}
    running: dict[int, list[int]] = {}
    base = offset = random.choice((0, 7))
    content, index = b"", b""
    for _ in range(120):
        if content and random.random() < 0.05:
            files[base], indexes[base] = content, index
            base, content, index = offset, b"", b""
        producer = random.choice((-1, -1, 1, 2, 3))
        if producer > 0 and producer in running and random.random() < 0.5:
            kind = random.randrange(2)
            for each in running.pop(producer):
                stamp, _, first, of_batch = records[each]
                records[each] = stamp, "committed" if kind else "aborted", first, of_batch
            entry, count = marker(offset, producer, kind), 1
        else:
            count = random.randint(1, 4)
            size = random.choice((10, 20_000)) if large else random.randint(0, 300)
            body = b"".join(record(number, b"k", bytes(size)) for number in range(count))
            stamp = 1_000 + random.randrange(10_000)
            attributes = 0x10 if producer > 0 else 0
            entry = batch(body, count, offset=offset, attributes=attributes, producer_id=producer, timestamp=stamp)
            for number in range(count):
                records[offset + number] = stamp, "open" if producer > 0 else "none", offset, stamp
                if producer > 0:
                    running.setdefault(producer, []).append(offset + number)
        if content and random.random() < 0.3:
            index += pack(">iI", offset + count - 1 - base, len(content))
        content += entry
        offset += count
    files[base], indexes[base] = content, index
    log = write_log(folder, files)
    for first, data in indexes.items():
        (Path(log.folder) / f"{first:020}.index").write_bytes(data + bytes(zeros))
    return MadeUp(log, offset, records)


@pytest.mark.parametrize("large", [False, True], ids=["small batches", "large batches"])
@pytest.mark.parametrize("seed", range(12))
def test_random_logs(tmp_path: Path, seed: int, large: bool) -> None:
    made = made_up(tmp_path, seed, large=large, zeros=200_000 if seed % 3 == 0 else 0)
    first = min(made.records)
    offsets = list(range(first, made.end))
    for start in (0, len(offsets) // 2, len(offsets) - 3):
        found, whole = answers(made.log, offsets[start:], made.end)
        # Transactions that began before the first offset that is asked about are no longer seen, so ask about those
        # before the first open one, and about all where the walk began at the log start.
        open_from = min((each[2] for each in made.records.values() if each[1] == "open"), default=made.end)
        expected = [made.plain(offset) for offset in offsets[start:]]
        if start == 0 or offsets[start] <= open_from:
            assert found == expected
        assert whole.trouble is None


@pytest.mark.parametrize("seed", range(4))
def test_far_from_the_end_only_the_first_batch_is_looked_at(tmp_path: Path, seed: int) -> None:
    made = made_up(tmp_path, seed, large=False)
    offsets = list(range(min(made.records), made.end))
    near, _ = answers(made.log, offsets, made.end)
    found, _ = answers(made.log, offsets, made.end, 2_000)
    far = [number for number, each in enumerate(found) if each[0] == UNKNOWN]
    assert 0 < len(far) < len(offsets)
    assert far == list(range(len(far)))
    assert all(found[number][1] == UNKNOWN for number in far)
    for number in far:
        following = [each for at, each in sorted(made.records.items()) if at >= offsets[number]]
        assert found[number][2] == following[0][3]
    assert all(near[number][0] == found[number][0] for number in range(len(far), len(offsets)) if not near[number][1])


# -- odd logs ----------------------------------------------------------------------------------------------------------


def test_the_end_is_that_of_the_answer(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: b"".join(batch(record(0, b"", b""), 1, offset=each) for each in range(10))})
    assert answers(log, [4, 6], 7)[0] == [(3, 0, 1000, RECORD), (1, 0, 1000, RECORD)]


@pytest.mark.parametrize("look_back", [0, 300, 1000, unread.LOOK_BACK])
def test_the_answer_of_an_offset_is_its_own(tmp_path: Path, look_back: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer does not depend on other requested offsets, even if one is before the first record of an open
    transaction."""
    monkeypatch.setattr(unread, "LOOK_BACK", look_back)
    for seed in range(6):
        made = made_up(tmp_path / str(seed), seed, large=False)
        offsets = list(range(min(made.records), made.end + 1))
        together, _ = answers(made.log, offsets, made.end)
        for number in range(0, len(offsets), 5):
            assert answers(made.log, [offsets[number]], made.end)[0] == [together[number]]


def test_a_transaction_that_is_open_since_before_the_offset(tmp_path: Path) -> None:
    entries = [batch(record(0, b"", b""), 1, offset=each) for each in range(21)]
    entries[10] = batch(record(0, b"", b""), 1, offset=10, attributes=0x10, producer_id=5)
    log = write_log(tmp_path, {0: b"".join(entries)})
    held = (0, 9, UNKNOWN, UNKNOWN)
    assert answers(log, [12], 21)[0] == [held]
    assert answers(log, [5, 12], 21)[0] == [(5, 11, 1000, RECORD), held]


def test_append_time_and_a_delete_horizon(tmp_path: Path) -> None:
    """All records have the time of an append; a batch with a delete horizon has no time of its first record."""
    body = record(0, b"", b"") + record(1, b"", b"")
    appended = bytearray(batch(body, 2, offset=0, attributes=0x08))
    cleaned = bytearray(batch(body, 2, offset=2, attributes=0x40))
    pack_into(">q", appended, 35, 5000)
    pack_into(">q", cleaned, 35, 6000)
    log = write_log(tmp_path, {0: with_right_crc(bytes(appended)) + with_right_crc(bytes(cleaned))})
    expected = [(4, 0, 5000, RECORD), (3, 0, 5000, RECORD), (2, 0, 6000, BATCH), (1, 0, 6000, BATCH)]
    assert answers(log, [0, 1, 2, 3], 4)[0] == expected


def test_a_cleaned_batch_holds_fewer_records_than_offsets(tmp_path: Path) -> None:
    body = record(0, b"", b"") + record(8, b"", b"")
    log = write_log(tmp_path, {0: batch(body, 2, last_delta=9)})
    counts = [each[0] for each in answers(log, [0, 5, 9], 10)[0]]
    assert counts == [2, 2, 1]


@pytest.mark.parametrize(
    "name", ["magic 0 none three records", "magic 0 gzip three records", "magic 1 lz4 three records"]
)
def test_old_formats(tmp_path: Path, name: str) -> None:
    log = write_log(tmp_path, {0: case(name)})
    records = list(read_log(log))
    end = max(each.record.offset for each in records) + 1
    first = min(each.record.offset for each in records)
    ((count, held, _, _),), found = answers(log, [first], end)
    assert (count, held, found.trouble) == (end - first, 0, None)


@pytest.mark.parametrize(
    ("at", "new", "trouble"),
    [
        (8, pack(">i", 3), "no batch can start here"),
        (16, b"\x09", "no batch can start here"),
        (0, pack(">q", 1), "the offsets do not increase"),
    ],
)
def test_damage_ends_the_count_and_not_the_times(tmp_path: Path, at: int, new: bytes, trouble: str) -> None:
    entries = [batch(record(0, b"", b""), 1, offset=each, timestamp=1000 + each) for each in range(6)]
    entries[4] = entries[4][:at] + new + entries[4][at + len(new) :]
    log = write_log(tmp_path, {0: b"".join(entries)})
    found, whole = answers(log, [1, 4], 6)
    assert whole.trouble == trouble
    assert whole.place == (f"{log.folder}/{0:020}.log", sum(map(len, entries[:4])))
    assert found == [(UNKNOWN, UNKNOWN, 1001, RECORD), (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)]


def test_damage_may_hide_a_marker(tmp_path: Path) -> None:
    entries = [batch(record(0, b"", b""), 1, offset=each, attributes=0x10, producer_id=5) for each in range(3)]
    log = write_log(tmp_path, {0: entries[0] + entries[1] + b"\0" * 8 + pack(">i", 1) + bytes(40) + entries[2]})
    found, whole = answers(log, [0], 3)
    assert whole.trouble is not None
    assert found == [(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)]


def test_an_index_of_another_file_is_left_alone(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: b"".join(batch(record(0, b"", b""), 1, offset=each) for each in range(50))})
    for content in (pack(">iI", 10, 33), pack(">iI", 10, 1 << 30), b"\x01\x02\x03", pack(">iI", 10, 71 * 40)):
        (Path(log.folder) / f"{0:020}.index").write_bytes(content)
        assert answers(log, [20], 50)[0] == [(30, 0, 1000, RECORD)]
