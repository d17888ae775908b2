"""Real segments with changed, removed or inserted bytes: nothing raises, and nothing before the change is lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from kafka_records_engine.log.reading import _vectors as vectors
from kafka_records_engine.log.reading.segment_files import FoundLog, scan
from tests.log.logs import CAPTURES, TOPICS, entries_of, read_both, segment_cases, with_right_crc


@dataclass(frozen=True)
class Original:
    """A segment, the ends of its entries, and its rows."""

    data: bytes
    ends: tuple[int, ...]
    rows: tuple[dict[str, Any], ...]
    counts: dict[int, int] = field(default_factory=dict, compare=False)

    def count(self, number: int) -> int:
        """The number of rows of the first `number` entries, read on request."""
        if number not in self.counts:
            self.counts[number] = len(read(self.data[: self.ends[number - 1]])[0]) if number else 0
        return self.counts[number]


@cache
def originals() -> list[Original]:
    files = [file for capture in CAPTURES for file in sorted((TOPICS / capture / "segments").glob("*/*.log"))]
    segments = [file.read_bytes() for file in files if not file.name.endswith("189.log")]
    segments += [bytes.fromhex(case["segment_hex"]) for case in segment_cases()["segments"]]
    return [original(data) for data in segments if data]


def original(data: bytes) -> Original:
    entries = entries_of(data)
    ends = tuple(sum(map(len, entries[: number + 1])) for number in range(len(entries)))
    rows, _ = read(data)
    return Original(data, ends, tuple(rows))


def read(data: bytes) -> tuple[list[dict[str, Any]], list[str]]:
    """All rows and findings of a segment with these bytes; every reader must read it to its end."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "some.log"
        file.write_bytes(data)
        log = FoundLog("t", 0, str(file.parent), (file.name,))
        rows, records, findings = read_both(log)
        with patch.object(vectors, "_FEW", 1):  # as if there were many batches
            assert read_both(log)[0] == rows
        (stats,) = scan(log)
    assert all(0 <= row["offset"] < 1 << 63 for row in rows)
    assert stats.findings == findings
    assert stats.records == len(rows)
    assert stats.control_left_out == sum(record.is_left_out for record in records)
    assert stats.bytes == len(data)
    return rows, [str(finding) for finding in findings]


def without_state(row: dict[str, Any]) -> dict[str, Any]:
    """The row without the outcome of its transaction, which a marker after the change may show."""
    return {name: value for name, value in row.items() if name != "transaction"}


def check_prefix(source: Original, at: int, data: bytes, *, noticed: bool = True) -> None:
    """Check that all rows of the entries that end at or before byte `at` come first and in order.

    If rows are missing after it, there must be a finding, unless the change cannot be noticed.
    """
    rows, said = read(data)
    starts = (0, *source.ends)
    number = max(number for number, start in enumerate(starts) if start <= at)
    before = source.count(number)
    if noticed and at - starts[number] < 8 and said and number:
        # Only the neighbouring batches show whether an offset is wrong, so the previous batch may be reported instead.
        before = source.count(number - 1)
    assert [without_state(row) for row in rows[:before]] == [without_state(row) for row in source.rows[:before]]
    if noticed and len(rows) < len(source.rows):
        assert said


@given(st.data())
def test_one_changed_byte(data: st.DataObject) -> None:
    source = originals()[data.draw(st.integers(0, len(originals()) - 1))]
    at = data.draw(st.integers(0, len(source.data) - 1))
    bits = data.draw(st.integers(1, 255))
    changed = bytearray(source.data)
    changed[at] ^= bits
    check_prefix(source, at, bytes(changed))


@given(st.data())
def test_a_changed_head(data: st.DataObject) -> None:
    source = originals()[data.draw(st.integers(0, len(originals()) - 1))]
    start = data.draw(st.sampled_from((0, *source.ends[:-1])))
    at = start + data.draw(st.integers(0, 60))
    new = data.draw(st.sampled_from([b"\0", b"\xff", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", bytes(8)]))
    check_prefix(source, at, source.data[:at] + new + source.data[at + len(new) :])


@given(st.data())
def test_changed_records_under_a_right_crc(data: st.DataObject) -> None:
    source = originals()[data.draw(st.integers(0, len(originals()) - 1))]
    entries = entries_of(source.data)
    number = data.draw(st.integers(0, len(entries) - 1))
    entry = bytearray(entries[number])
    for _ in range(data.draw(st.integers(1, 3))):
        entry[data.draw(st.integers(17, len(entry) - 1))] = data.draw(st.integers(0, 255))
    start = source.ends[number] - len(entry)
    entries[number] = with_right_crc(bytes(entry))
    check_prefix(source, start, b"".join(entries), noticed=False)


@given(st.data())
def test_a_cut_anywhere(data: st.DataObject) -> None:
    source = originals()[data.draw(st.integers(0, len(originals()) - 1))]
    at = data.draw(st.integers(0, len(source.data)))
    rows, said = read(source.data[:at])
    assert len(rows) == source.count(sum(end <= at for end in source.ends))
    assert len(said) == (at not in (0, *source.ends))


@given(st.data())
def test_bytes_put_in(data: st.DataObject) -> None:
    source = originals()[data.draw(st.integers(0, len(originals()) - 1))]
    at = data.draw(st.sampled_from((0, *source.ends)))
    junk = data.draw(st.binary(min_size=1, max_size=200))
    check_prefix(source, at, source.data[:at] + junk + source.data[at:])


@given(st.binary(max_size=500))
def test_any_bytes_at_all(data: bytes) -> None:
    read(data)
