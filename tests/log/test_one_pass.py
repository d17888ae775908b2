"""Reading a log once: pending rows, holes that may hide a marker, columns that are wanted, and places of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_engine.log.reading.segment_files import (
    PLACE_FIELDS,
    RAW_SCHEMA,
    FoundLog,
    find_logs,
    open_log,
    read_log,
    read_partition,
)
from tests.log.logs import batch, captured_logs, changed, commit, entries_of, marker, record, write_log

ABORT, COMMIT = 0, 1


@pytest.mark.parametrize(
    "log", captured_logs(), ids=lambda log: "-".join((log.folder.split("/")[-3], log.folder[-20:]))
)
def test_the_same_rows_as_with_a_look_ahead(log: FoundLog) -> None:
    settled = pa.Table.from_batches(read_partition(log, below_log_start=True), RAW_SCHEMA).to_pylist()
    once = pa.Table.from_batches(read_partition(log, below_log_start=True, settle=False), RAW_SCHEMA).to_pylist()
    for one, other in zip(settled, once, strict=True):
        expected = one["transaction"] if one["control"] or one["transaction"] == "none" else "pending"
        assert other == {**one, "transaction": expected}
    objects = read_log(log, settle=False, other_control=False)
    assert [each.transaction for each in objects] == [row["transaction"] for row in once]


def test_files_are_read_once(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: commit(0, 7), 1: commit(1) + marker(2, 7, COMMIT)})
    with open_log(log) as opened:
        rows = read_partition(opened, settle=False, batch_rows=None)
        (first,) = next(rows).to_pylist()
        assert (first["offset"], first["transaction"]) == (0, "pending")
        # Nothing of the second file has been read yet.
        assert opened.bytes_read == opened.segments[0].size < opened.size
        assert [row["offset"] for each in rows for row in each.to_pylist()] == [1, 2]
        assert opened.bytes_read == opened.size


# -- columns and places ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RAW_SCHEMA.names)
def test_one_column(name: str) -> None:
    for log in captured_logs():
        whole = pa.Table.from_batches(read_partition(log), RAW_SCHEMA)
        (field,) = (RAW_SCHEMA.field(name),)
        one = pa.Table.from_batches(read_partition(log, columns=[name]), pa.schema([field]))
        assert one.column(name).to_pylist() == whole.column(name).to_pylist()


def test_columns_come_in_the_order_asked_for(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: commit(0)})
    (rows,) = read_partition(log, columns=("value", "offset", "key"))
    assert rows.schema.names == ["value", "offset", "key"]
    assert rows.to_pylist() == [{"value": b"v", "offset": 0, "key": b"k0"}]


def test_columns_that_there_are_not(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: commit(0)})
    with pytest.raises(ValueError, match=rf"^raw rows have no column 'headers', only {', '.join(RAW_SCHEMA.names)}$"):
        read_partition(log, columns=["key", "headers"])
    with pytest.raises(ValueError, match=r"^the list of columns is empty: give at least one$"):
        read_partition(log, columns=[])


@pytest.mark.parametrize("batch_rows", [None, 2, 10_000])
def test_places(tmp_path: Path, batch_rows: int | None) -> None:
    two = batch(record(0, b"a", b"1") + record(1, b"b", b"2"), 2, offset=1)
    log = write_log(tmp_path, {0: commit(0) + two, 9: commit(9) + commit(10)})
    rows = list(read_partition(log, columns=["offset"], places=True, batch_rows=batch_rows))
    assert rows[0].schema == pa.schema([RAW_SCHEMA.field("offset"), *PLACE_FIELDS])
    first, second = (f"{log.folder}/{offset:020}.log" for offset in (0, 9))
    behind = len(commit(0))
    assert [tuple(row.values()) for each in rows for row in each.to_pylist()] == [
        (0, first, 0),
        (1, first, behind),
        (2, first, behind),
        (9, second, 0),
        (10, second, len(commit(9))),
    ]


# -- holes -------------------------------------------------------------------------------------------------------------


class RunReport:
    """The rows (by offset) and holes in the order in which they are reported."""

    def __init__(self, log: FoundLog) -> None:
        self.order: list[Any] = []
        for rows in read_partition(log, settle=False, batch_rows=1, on_hole=lambda last: self.order.append(f">{last}")):
            self.order += rows.column("offset").to_pylist()
        objects: list[Any] = []
        for each in read_log(log, settle=False, on_hole=lambda last: objects.append(f">{last}")):
            objects.append(each.record.offset)
        assert [each for each in objects if isinstance(each, str)] == self.holes

    @property
    def holes(self) -> list[str]:
        return [each for each in self.order if isinstance(each, str)]

    def is_told_in_time(self) -> bool:
        """Whether each hole was reported before any row after it."""
        return all(
            all(row <= int(hole[1:]) for row in self.order[:at] if isinstance(row, int))
            for at, hole in enumerate(self.order)
            if isinstance(hole, str)
        )


def broken(entry: bytes) -> bytes:
    return changed(entry, len(entry) - 1, b"?", crc=False)


@pytest.mark.parametrize(
    ("files", "holes"),
    [
        ({0: commit(0) + commit(1)}, []),
        ({0: commit(0) + marker(1, 7, COMMIT) + marker(2, 7, ABORT) + commit(3)}, []),
        ({0: commit(0) + broken(commit(1)) + commit(2)}, [">0"]),
        ({0: broken(commit(0)) + commit(1)}, [">-1"]),
        ({0: commit(0) + b"?" * 99 + commit(2)}, [">0"]),
        ({0: commit(0) + commit(1)[:30], 2: commit(2)}, [">0"]),
        ({0: commit(0) + commit(1)[:30]}, []),
        ({0: commit(0) + broken(marker(1, 7, COMMIT)) + commit(2), 3: b"?" * 99, 4: commit(4)}, [">0", ">2"]),
        # Markers with a right CRC but without meaning: a version below 0, a key that is too short, a type that ends no
        # transaction.
        ({0: commit(0) + changed(marker(1, 7, COMMIT), 66, b"\xff\xff") + commit(2)}, [">0"]),
        ({0: commit(0) + batch(record(0, b"\0", b""), 1, offset=1, attributes=0x30) + commit(2)}, [">0"]),
        ({0: commit(0) + marker(1, 7, 5) + commit(2)}, []),
    ],
)
def test_what_may_hide_a_marker(tmp_path: Path, files: Mapping[int, bytes], holes: Sequence[str]) -> None:
    told = RunReport(write_log(tmp_path, files))
    assert told.holes == holes
    assert told.is_told_in_time()


@pytest.mark.parametrize(
    ("asked", "holes"),
    [
        ((0, 1, 2, 3), []),
        ((1, 2, 3), []),
        ((0, 2, 3), [">0"]),
        ((0, 3), [">0"]),
        ((0, 1), [">1"]),
        ((0, 2), [">0", ">2"]),
    ],
)
def test_files_that_were_not_asked_for(tmp_path: Path, asked: Sequence[int], holes: Sequence[str]) -> None:
    whole = write_log(tmp_path, {offset: commit(offset) for offset in range(4)})
    (log,) = find_logs([Path(whole.folder) / f"{offset:020}.log" for offset in asked])
    told = RunReport(log)
    assert told.holes == holes
    assert told.is_told_in_time()


def test_markers_of_the_captures_hide_nothing() -> None:
    """The fast and the careful check of markers agree that every marker can be read."""
    for log in captured_logs():
        with open_log(log) as opened:
            data = b"".join(Path(segment.path).read_bytes() for segment in opened.segments)
        is_control = any(entry[22] & 0x20 for entry in entries_of(data.rstrip(b"\0")))
        told = RunReport(log)
        assert told.holes == []
        assert not is_control or told.order
