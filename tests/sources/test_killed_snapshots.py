"""A snapshot whose runs were killed equals one whose runs were not; simultaneous runs do not interfere.

The same goes for the state of tables. KAFKA_RECORDS_KILLS is the number of killed runs (default 10; `make
snapshot-kills` uses a hundred).
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_records_engine.findings import Finding
from kafka_records_engine.sources.snapshot_runs import SnapshotBusy, take_snapshot
from kafka_records_engine.sources.snapshots import Snapshot
from kafka_records_tables import TABLES, read_table, read_tables
from tests.sources.killed_runs import FILE_BYTES, source_at, states
from tests.sources.snapshot_logs import TOPIC, Moment, rows_of
from tests.tables.names import USUAL

ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("KAFKA_RECORDS_KILLS", "10"))
SEED = os.environ.get("SEED", "3")
ASKED = [name for name, table in TABLES.items() if table.topic == TOPIC]


@pytest.mark.slow
def test_a_snapshot_that_was_killed_again_and_again_equals_one_that_was_not(tmp_path: Path) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    ran = subprocess.run(
        [sys.executable, "-m", "tests.sources.killed_runs", str(killed), str(KILLS), SEED],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    print(told)
    assert told["died"] == KILLS
    together = states(SEED)
    for state in together:
        assert take_snapshot(source_at(state), whole, file_bytes=FILE_BYTES).findings == []

    for one, other in zip(Snapshot(killed).partitions(TOPIC), Snapshot(whole).partitions(TOPIC), strict=True):
        assert rows_of(one).equals(rows_of(other))
    one_read, other_read = (read_tables(ASKED, root) for root in (killed, whole))
    assert _placeless(one_read.reading) == _placeless(other_read.reading)
    for name in ASKED:
        assert one_read[name].table.equals(other_read[name].table), name
        assert _placeless(one_read[name].findings) == _placeless(other_read[name].findings), name
        if TABLES[name].is_history or name not in USUAL:
            continue
        for time in sorted({moment.time for state in together for moment in state}):
            one_table, other_table = (read_table(name, root, as_of=time) for root in (killed, whole))
            if not (one_table.findings or other_table.findings):
                assert one_table.table.equals(other_table.table)
    assert list(killed.rglob("*.part")) == []


@pytest.mark.slow
@pytest.mark.matrix
def test_tables_with_a_state_that_was_killed_again_and_again(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "tests.sources.killed_runs", str(tmp_path / "state"), str(KILLS), SEED, "state"]
    ran = subprocess.run(program, capture_output=True, text=True, cwd=ROOT, check=False, timeout=900)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    print(told)
    assert told["died"] == KILLS
    assert list(tmp_path.rglob("*.part")) == []


def _placeless(findings: Sequence[Finding]) -> list[Finding]:
    return [replace(found, file=None) for found in findings]


def test_a_second_run_is_told_that_there_is_a_first(tmp_path: Path) -> None:
    source = source_at(states(SEED)[0])
    take_snapshot(source, tmp_path)
    with open(tmp_path / "_lock", "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SnapshotBusy, match="another process is adding to this snapshot: wait until it has ended"):
            take_snapshot(source, tmp_path)
    # The lock was released when its file was closed, as for a killed process.
    take_snapshot(source, tmp_path)


def test_runs_without_locks_store_records_twice_that_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system without locks, and runs of many threads at once."""

    def no_locks(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", no_locks)

    def take(state: list[Moment]) -> None:
        # One run may delete the files of another, which then fails.
        with suppress(OSError, pa.ArrowInvalid):
            take_snapshot(source_at(state), tmp_path)

    together = states(SEED)
    for state in together:
        threads = [threading.Thread(target=take, args=(state,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        take_snapshot(source_at(state), tmp_path)
        for log, moment in zip(Snapshot(tmp_path).partitions(TOPIC), state, strict=True):
            offsets = rows_of(log)["offset"].to_pylist()
            assert offsets == sorted(set(offsets))
            assert set(offsets) >= {row["offset"] for row in moment.rows}


def test_a_snapshot_is_read_while_runs_add_to_it(tmp_path: Path) -> None:
    together = states(SEED)
    take_snapshot(source_at(together[0]), tmp_path, file_bytes=FILE_BYTES)
    stopped = threading.Event()
    failures: list[BaseException] = []
    reads = 0

    def read() -> None:
        nonlocal reads
        try:
            while not stopped.is_set():
                for log in Snapshot(tmp_path).partitions(TOPIC):
                    offsets = rows_of(log)["offset"].to_pylist()
                    assert offsets == sorted(set(offsets))
                reads += 1
        except BaseException as error:
            failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for state in together:
        take_snapshot(source_at(state), tmp_path, file_bytes=1 << 30)
    stopped.set()
    reader.join()
    assert failures == []
    assert reads > 1
