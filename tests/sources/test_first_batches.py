"""The search for the first record to read in the bytes of a Fetch."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_records_engine.log.reading.unread import BATCH, RECORD, UNKNOWN
from kafka_records_engine.sources._brokers.first_batches import _MOST_BYTES, Seek, _turn
from tests.log.logs import batch, marker, record

APPEND_TIME, TRANSACTIONAL, HORIZON = 0x08, 0x10, 0x40


def data(offset: int, count: int = 1, **more: Any) -> bytes:
    return batch(b"".join(record(each, b"", b"") for each in range(count)), count, offset=offset, **more)


def answer(records: bytes, stable: int = 100, aborted: tuple[tuple[int, int], ...] = ()) -> dict[str, Any]:
    told = [{"first_offset": first, "producer_id": producer} for first, producer in aborted]
    return {"records": records, "last_stable_offset": stable, "aborted_transactions": told}


def sought(offset: int, *answers: dict[str, Any], end: int = 100) -> Seek:
    seek = Seek("orders", 0, offset, end)
    for each in answers:
        assert not seek.is_done
        seek.take(each)
    return seek


@pytest.mark.parametrize(
    ("offset", "records", "expected"),
    [
        (5, data(5, 3), (1000, RECORD)),
        (6, data(5, 3), (1000, BATCH)),
        (6, data(5, 3, attributes=APPEND_TIME), (1000, RECORD)),
        (5, data(5, 3, attributes=HORIZON), (1000, BATCH)),
        (9, data(5, 1, last_delta=4), (1000, RECORD)),
        (5, data(3, 2, timestamp=1) + data(5, timestamp=2), (2, RECORD)),
        (5, data(5, 0, last_delta=0) + data(6, timestamp=2), (2, RECORD)),
        (5, data(5, timestamp=-1), (UNKNOWN, UNKNOWN)),
        (5, b"\0" * 8 + b"\0\0\0\x20" + b"\0" * 4 + b"\1" + b"\0" * 60, (UNKNOWN, UNKNOWN)),
    ],
)
def test_the_head_of_the_batch_says_the_time(offset: int, records: bytes, expected: tuple[int, int]) -> None:
    seek = sought(offset, answer(records))
    assert (seek.timestamp_ms, seek.precision, seek.is_done) == (*expected, True)


def test_markers_and_aborted_records_are_passed_over() -> None:
    aborted = data(5, 2, attributes=TRANSACTIONAL, producer_id=7) + marker(7, 7, 0)
    own = data(8, attributes=TRANSACTIONAL, producer_id=7, timestamp=3)
    assert sought(5, answer(aborted + own, aborted=((5, 7),))).timestamp_ms == 3
    assert sought(5, answer(aborted + own, aborted=((5, 8),))).timestamp_ms == 1000
    seek = sought(5, answer(aborted, aborted=((5, 7),)))
    assert (seek.position, seek.is_done) == (8, False)
    assert sought(5, answer(aborted, aborted=((5, 7),)), answer(own)).timestamp_ms == 3


def test_where_nothing_can_be_read_nothing_is_asked_again() -> None:
    assert sought(5, answer(b"", stable=5)).is_done
    assert sought(5, answer(marker(5, 7, 1), stable=20), end=6).is_done
    endless = sought(5, *(answer(marker(5 + each, 7, 1)) for each in range(8)))
    assert (endless.is_done, endless.timestamp_ms) == (True, UNKNOWN)


def test_more_is_asked_for_where_a_batch_did_not_fit() -> None:
    seek = sought(5, answer(b""))
    assert seek.most == 8 * Seek("orders", 0, 5, 100).most
    cut = sought(5, answer(data(5, 3)[:-1]))
    assert (cut.position, cut.most, cut.is_done) == (5, seek.most, False)


def test_a_turn_has_each_partition_once_and_fits_into_an_answer() -> None:
    seeks = [Seek("orders", number % 600, number, 10_000) for number in range(1200)]
    turn = _turn(seeks)
    assert len(turn) == 512
    assert sum(each.most for each in turn.values()) == _MOST_BYTES
    large = Seek("orders", 700, 0, 10_000, most=_MOST_BYTES)
    assert _turn([*seeks, large]) == {("orders", 700): large}
