"""Offsets of logs and the times of their records, looked up for many at once."""

from __future__ import annotations

import numpy as np
import pytest

from kafka_records_tables.tables.moving.log_times import LATE, NONE, Samples

LOGS = 9
IN_MS = 1_700_000_000_000
IN_NS = IN_MS * 1_000_000


@pytest.mark.parametrize("began", [0, IN_MS, IN_NS, -IN_NS])
@pytest.mark.parametrize("apart", [10, 2**45])
def test_many_logs_with_times_in_any_unit(began: int, apart: int) -> None:
    """Producers may write nanoseconds instead of milliseconds. Then the times of nine logs, one after another from 1970
    on, do not fit into an int64."""
    log = np.repeat(np.arange(LOGS), 3)
    offset = np.tile(np.array([0, 10, 20]), LOGS)
    samples = Samples(log, offset, began + apart * np.tile(np.arange(3), LOGS))
    logs = np.arange(LOGS)
    for ms, end in ((-1, NONE), (0, 1), (apart, 11), (2 * apart - 1, 11), (3 * apart, 21)):
        assert samples.end_at(logs, np.full(LOGS, began + ms)).tolist() == [end] * LOGS
    for at, by in ((0, 0), (5, apart), (20, 2 * apart)):
        is_there, then = samples.next_at(logs, np.full(LOGS, at))
        assert is_there.all()
        assert then.tolist() == [began + by] * LOGS
    is_there, then = samples.next_at(logs, np.full(LOGS, 21))
    assert not is_there.any()
    assert set(then.tolist()) == {LATE}


@pytest.mark.parametrize("began", [0, 2**60])
def test_offsets_of_any_size(began: int) -> None:
    log = np.arange(LOGS)
    samples = Samples(log, np.full(LOGS, began), np.full(LOGS, IN_MS))
    is_there, then = samples.next_at(log, np.full(LOGS, began))
    assert is_there.all()
    assert set(then.tolist()) == {IN_MS}
    assert not samples.next_at(log, np.full(LOGS, began + 1))[0].any()
    assert samples.end_at(np.array([-1, 3]), np.array([IN_MS, IN_MS])).tolist() == [NONE, began + 1]


def test_no_samples() -> None:
    none, asked = np.zeros(0, np.int64), np.zeros(2, np.int64)
    samples = Samples(none, none, none)
    assert samples.end_at(asked, asked).tolist() == [NONE, NONE]
    assert samples.next_at(asked, asked)[1].tolist() == [LATE, LATE]
