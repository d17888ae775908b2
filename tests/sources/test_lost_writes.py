"""Snapshots and states on disks that forget what was not synced, are full, or may not be written; with clocks that
jump, and two runs at once.

The power may fail after each operation on files. Each possible content of the disk is made and read. The result must be
an older complete state or a message, but never a wrong row; and the next run must bring everything up to date. `make
lost-writes` tries every step for several histories, and `make test` some steps for one.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import itertools
import json
import os
import re
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pytest

from kafka_records_engine.findings import INCOMPLETE_HISTORY
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources import compaction, kept_logs
from kafka_records_engine.sources._stored.stretches import stored_log
from kafka_records_engine.sources.snapshot_runs import take_snapshot
from kafka_records_engine.sources.snapshots import Snapshot
from kafka_records_tables import read_table, read_tables
from tests.sources.recorded_disk import Recorder, after_all, after_power_failure, lay
from tests.sources.snapshot_logs import TOPIC, Logs, Moment, moments, rows_of
from tests.tables.histories import NAMES, history
from tests.tables.test_snapshots import check_rows
from tests.tables.topic import Topic

SEED: Final = os.environ.get("SEED", "7")
QUICK: Final = ["0001"]
WHOLE: Final = "KAFKA_RECORDS_LOST_WRITES" in os.environ
ALL: Final = [*QUICK, *NAMES[8::8]] if WHOLE else QUICK
READ: Final = ("current_offsets", "groups", "members", "pending_offsets") if WHOLE else ("current_offsets",)


TRIED: Final[Counter[str]] = Counter()
if WHOLE:
    atexit.register(lambda: print(dict(TRIED)))


class Killed(BaseException):
    """The end of a process, which cannot do anything more."""


@cache
def moments_of(name: str) -> tuple[Moment, ...]:
    """Some moments of a log that grows and is cleaned."""
    return tuple(moments(name, Random(f"{name}-lost-{SEED}"), most=4))


def source_of(moment: Moment) -> Logs:
    """The log as on a broker."""
    return Logs((moment.live(),))


def take(root: Path, moment: Moment) -> None:
    """Do one run, in which every piece of a log is a file."""
    report = take_snapshot(source_of(moment), root, file_bytes=1)
    assert report.findings == [], [str(found) for found in report.findings]


@cache
def stored_then(name: str) -> tuple[list[dict[str, Any]], ...]:
    """The rows that must be stored after each moment."""
    kept: dict[int, dict[str, Any]] = {}
    found = []
    for moment in moments_of(name):
        end = max(kept, default=-1)
        kept.update({row["offset"]: row for row in moment.table.to_pylist() if row["offset"] > end})
        found.append([*kept.values()])
    return tuple(found)


def check_snapshot(root: Path, name: str, done: int) -> None:
    """Check that the stored rows are those of the last complete run, or more from the next one, and that tables have no
    wrong row."""
    stored = stored_then(name)
    try:
        (log,) = Snapshot(root).partitions(TOPIC)
    except LogSourceError:
        if done:
            raise
        return
    rows = rows_of(log).to_pylist()
    end = rows[-1]["offset"] + 1
    assert end >= (stored[done - 1][-1]["offset"] + 1 if done else 0)
    assert rows == [row for row in stored[min(done, len(stored) - 1)] if row["offset"] < end]
    check_tables(root, name, end, rows)


def check_tables(root: Path, name: str, end: int, rows: list[dict[str, Any]]) -> None:
    """Check that tables have the rows of the whole log up to this offset, or a finding of damage."""
    found, expected = read_tables(READ, root, processes=1), expected_at(name, end)
    for table in READ:
        if not any(each.severity == "damage" for each in found[table].findings):
            whole = history(name).rows.to_pylist()
            check_rows(table, found[table].table, expected[table], Moment(end, rows, 0), whole)


@cache
def expected_at(name: str, end: int) -> dict[str, pa.Table]:
    """The tables of the uncleaned log up to an offset."""
    log = Moment(end, history(name).rows.to_pylist()[:end], 0).log()
    found = read_tables(READ, Logs((log,)), processes=1)
    return {table: found[table].table for table in READ}


def go_on(root: Path, name: str, done: int) -> None:
    """Repeat the interrupted run, and check that nothing is missing after it."""
    done = min(done, len(moments_of(name)) - 1)
    take(root, moments_of(name)[done])
    (log,) = Snapshot(root).partitions(TOPIC)
    rows = rows_of(log).to_pylist()
    assert rows == stored_then(name)[done]
    found = read_tables(READ, root, processes=1)
    assert [found[table].findings for table in READ] == [()] * len(READ)
    check_tables(root, name, rows[-1]["offset"] + 1, rows)
    assert not [*root.rglob("*.part")]


def check_state(root: Path, name: str, done: int) -> None:
    """Check that the next runs of tables have the same rows as without a state, at this moment and at the next."""
    for moment in moments_of(name)[min(done, len(moments_of(name)) - 1) :][:2]:
        state_run(root, moment)
    assert not [*root.rglob("*.part")]


Take = Callable[[Path, Moment], None]
Check = Callable[[Path, str, int], None]


def state_run(root: Path, moment: Moment) -> None:
    """Do one run of tables with a state: tables that need history, and others."""
    for table in ("current_offsets", *(["members"] if WHOLE else []), "offset_commits"):
        found, expected = read_table(table, source_of(moment), state=root, processes=1), read_now(table, moment)
        assert not [each for each in found.findings if each.severity == "damage"]
        if table == "offset_commits":  # a state remembers what the log has lost
            assert {*map(repr, expected.to_pylist())} <= {*map(repr, found.table.to_pylist())}
        else:
            assert found.table.equals(expected)


def read_now(table: str, moment: Moment) -> pa.Table:
    """Read a table without a state."""
    key = (table, id(moment))
    if key not in _READ:
        _READ[key] = read_table(table, source_of(moment), processes=1).table
    return _READ[key]


_READ: dict[tuple[str, int], pa.Table] = {}


STORES: Final = [pytest.param(take, check_snapshot, id="snapshot"), pytest.param(state_run, check_state, id="state")]


def stride(check: Check) -> int:
    """One in this many states, or steps, is tried."""
    if WHOLE:
        return 1
    return 7 if check is check_snapshot else 30


@pytest.fixture(autouse=True)
def _compacts_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "is_due", lambda stored: bool(stored.stretches))
    monkeypatch.setattr(kept_logs, "FILE_BYTES", 1)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A folder whose steps are recorded."""
    folder = tmp_path / "disk"
    folder.mkdir()
    return folder


# -- power failures ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("run", "check"), STORES)
@pytest.mark.parametrize("name", ALL)
def test_power_fails_after_any_step(name: str, run: Take, check: Check, disk: Path, tmp_path: Path) -> None:
    recorder, ends = Recorder(disk), [0]
    for moment in moments_of(name):
        with recorder.recording():
            run(disk / "kept", moment)
        ends.append(len(recorder.steps))
    count = 0
    for number, tree in after_power_failure(recorder.steps, ends):
        count += 1
        if count % stride(check):
            continue
        TRIED["power failures"] += 1
        done = max(at for at, end in enumerate(ends) if end <= number)
        root = lay(tree, tmp_path / f"{count}") / "kept"
        check(root, name, done)
        if check is check_snapshot:
            go_on(root, name, done)
    assert count > len(ends)


@pytest.mark.slow
@pytest.mark.parametrize(("run", "check"), STORES)
@pytest.mark.parametrize("name", ALL)
def test_power_fails_after_a_run_that_followed_a_killed_one(name: str, run: Take, check: Check, tmp_path: Path) -> None:
    first, *_ = moments_of(name)
    for killed_at in itertools.count(1, 1 if check is check_snapshot else stride(check)):
        disk = tmp_path / f"disk-{killed_at}"
        disk.mkdir()
        recorder = Recorder(disk, _ends_at(killed_at))
        try:
            with recorder.recording():
                run(disk / "kept", first)
        except Killed:
            recorder.before = None
            with recorder.recording():
                run(disk / "kept", first)
            for number, tree in enumerate(after_all(recorder.steps)):
                TRIED["power failures after a kill"] += 1
                check(lay(tree, tmp_path / f"{killed_at}-{number}") / "kept", name, 1)
        else:
            break
    assert killed_at > 10


def test_what_is_stored_of_a_log_goes_at_once(disk: Path, tmp_path: Path) -> None:
    """Only some of the files would be another log."""
    (name,) = QUICK
    recorder = Recorder(disk)
    with recorder.recording():
        for moment in moments_of(name):
            take(disk / "kept", moment)
    before = _stored(disk / "kept")
    assert len(before[0]) > 1
    assert before[1]
    begun = len(recorder.steps)
    with recorder.recording():
        compaction.forget(str(disk / "kept"), TOPIC, 0)
    after: dict[str, Path] = {}
    for at, (number, tree) in enumerate(after_power_failure(recorder.steps, [begun + 1])):
        if number > begun:
            root = lay(tree, tmp_path / f"{at}") / "kept"
            after[str(_stored(root))] = root
    assert {*after} == {str(([], [])), str(([], before[1])), str(before)}

    # A finding about lost records does not apply to later records.
    whole = history(name).rows.to_pylist()
    root = after[str(([], before[1]))]
    take_snapshot(Logs((Moment(len(whole), whole, 0).live(),)), root)
    assert _stored(root)[1] == []


def _stored(root: Path) -> tuple[list[str], list[str]]:
    """The names of files with records, and of those that say what the log had lost."""
    stored = stored_log(str(root), TOPIC, 0)
    return [Path(file.path).name for file in stored.files], [Path(each.path).name for each in stored.surveys]


def _ends_at(step: int) -> Callable[[int, str], None]:
    def before(number: int, _: str) -> None:
        if number >= step:
            raise Killed

    return before


# -- writes that fail --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("lasts", [False, True] if WHOLE else [True], ids=lambda lasts: "lasting" if lasts else "once")
@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EROFS, errno.EIO] if WHOLE else [errno.ENOSPC], ids=errno.errorcode.get
)
@pytest.mark.parametrize(("run", "check"), STORES)
@pytest.mark.parametrize("name", ALL)
def test_any_step_may_fail(name: str, run: Take, check: Check, number: int, lasts: bool, tmp_path: Path) -> None:
    for failed_at in itertools.count(1, stride(check)):
        disk = tmp_path / f"{failed_at}"
        disk.mkdir()
        recorder, done = Recorder(disk), 0

        def fails(step: int, _: str, at: int = failed_at) -> None:
            if step == at or (lasts and step > at):
                raise OSError(number, os.strerror(number))

        recorder.before = fails
        TRIED["failed steps"] += 1
        for moment in moments_of(name)[:2]:
            with suppress(OSError, LogSourceError), recorder.recording():
                run(disk / "kept", moment)
                done += 1
            if recorder.count >= failed_at:
                break
        if recorder.count < failed_at:
            break
        recorder.before = None
        check(disk / "kept", name, done)
        if check is check_snapshot:
            go_on(disk / "kept", name, done)
    assert failed_at > 20


@pytest.mark.slow
@pytest.mark.parametrize(("run", "check"), STORES)
@pytest.mark.parametrize("most", [1, 50, 1000, 4000, 4500])
def test_a_file_can_only_get_so_large(most: int, run: Take, check: Check, tmp_path: Path) -> None:
    """The kernel stops writes in the middle of a file, those of Arrow too."""
    (name,) = QUICK
    root = tmp_path / "kept"
    with _largest(most), suppress(OSError, LogSourceError):
        run(root, moments_of(name)[0])
    check(root, name, 0)
    run(root, moments_of(name)[0])
    with _largest(most), suppress(OSError, LogSourceError):
        run(root, moments_of(name)[1])
    check(root, name, 1)


@contextmanager
def _largest(most: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# -- two at once -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("has_locks", [True, False], ids=["locks", "no locks"])
@pytest.mark.parametrize(("run", "check"), STORES)
@pytest.mark.parametrize("name", ALL)
def test_a_second_run_begins_and_ends_before_any_step(
    name: str, run: Take, check: Check, has_locks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_locks:
        monkeypatch.setattr(fcntl, "flock", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOTSUP, "none here")))
    first, second, *_ = moments_of(name)
    for begins_at in itertools.count(1, stride(check)):
        disk = tmp_path / f"{begins_at}"
        disk.mkdir()
        recorder = Recorder(disk)
        with recorder.recording():
            run(disk / "kept", first)
        begun = recorder.count

        def other(
            step: int, _: str, at: int = begun + begins_at, recorder: Recorder = recorder, disk: Path = disk
        ) -> None:
            if step != at:
                return
            recorder.before = None
            if has_locks:
                with pytest.raises(LogSourceError, match=r"another (process is adding|run uses)"):
                    run(disk / "kept", second)
            else:
                run(disk / "kept", second)

        recorder.before = other
        TRIED["second runs"] += 1
        with suppress(*(() if has_locks else (OSError, pa.ArrowInvalid, LogSourceError))), recorder.recording():
            run(disk / "kept", second)
        if recorder.count < begun + begins_at:
            break
        check(disk / "kept", name, 1)
        if check is check_snapshot:
            go_on(disk / "kept", name, 1)
    assert begins_at > 5


# -- what was changed by hand, and clocks ------------------------------------------------------------------------------


def _commits(end: int) -> Logs:
    topic = Topic()
    for number in range(end):
        topic.commit("g", number)
    return Logs((Moment(end, topic.table().to_pylist(), 0).live(),))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ([], "this was not written by kafka-records snapshot"),
        ({"format": "1"}, "the field 'format' is not a number"),
        ({"format": True}, "the field 'format' is not a number"),
        ({"topic_names": []}, "the field 'topic_names' is not an object of names by topic id"),
        (
            {"topic_names": {"aK3dGfTcSs2cLAnzYBkzXg": 7}},
            "the field 'topic_names' is not an object of names by topic id",
        ),
        ({"read": [1]}, "the field 'read' is not an object with an entry for each log"),
        ({"read": {"__consumer_offsets-0": {}}}, "the field 'read' has no end for __consumer_offsets-0"),
        ({"end": -1}, "the field 'read' has no end for __consumer_offsets-0"),
        ({"end": "12"}, "the field 'read' has no end for __consumer_offsets-0"),
        ({"at_ms": None}, "the field 'read' has an invalid time for __consumer_offsets-0"),
        ({"ended_at_ms": 1.5}, "the field 'read' has an invalid time for __consumer_offsets-0"),
    ],
)
def test_a_manifest_that_was_changed(changed: Any, said: str, tmp_path: Path) -> None:
    take_snapshot(_commits(12), tmp_path)
    mark = tmp_path / "_snapshot.json"
    told = json.loads(mark.read_text())
    if changed and set(changed) <= {"end", "at_ms", "ended_at_ms"}:
        told["read"]["__consumer_offsets-0"].update(changed)
    else:
        told = {**told, **changed} if changed else changed
    mark.write_text(json.dumps(told))
    expected = re.escape(f"{mark}: cannot be read: {said}; delete it, and the next run writes it again")
    for read in (lambda: read_table("current_offsets", tmp_path), lambda: take_snapshot(_commits(13), tmp_path)):
        with pytest.raises(LogSourceError, match=f"^{expected}$"):
            read()
    mark.unlink()
    take_snapshot(_commits(13), tmp_path)
    assert read_table("current_offsets", tmp_path).table["offset"].to_pylist() == [12]


def test_a_manifest_that_says_more_than_the_files_have(tmp_path: Path) -> None:
    for end in (300, 320):
        take_snapshot(_commits(end), tmp_path, file_bytes=1)
    last = max(tmp_path.glob("topic=*/partition=0/*.parquet"))
    assert last.name == "00000000000000000300-00000000000000000319.parquet"
    last.unlink()
    (found,) = read_table("current_offsets", tmp_path).findings
    assert (
        str(found)
        .partition("partition=0: ")[2]
        .startswith(
            "records up to offset 319 were stored, but the files end at offset 299 (later records "
            "are not read; kafka-records snapshot reads those again that the log still has)"
        )
    )
    assert take_snapshot(_commits(320), tmp_path).findings == []
    assert read_table("current_offsets", tmp_path).findings == ()


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        (0, "records before offset 300 were stored, but their files are missing"),
        (1, "records up to offset 309 were stored, but no file has those after offset 299"),
    ],
)
def test_a_file_that_is_missing(gone: int, said: str, tmp_path: Path) -> None:
    for end in (300, 310, 312):
        take_snapshot(_commits(end), tmp_path, file_bytes=1)
    files = sorted(tmp_path.glob("topic=*/partition=0/*.parquet"))
    if gone == 0:
        for file in files[:-2]:
            file.unlink()
    else:
        files[-2].unlink()
    assert said in [found.what for found in read_table("offset_commits", tmp_path).findings]
    assert any(found.what == said for found in take_snapshot(_commits(312), tmp_path).findings)


def test_metadata_of_a_file_that_is_not_json(tmp_path: Path) -> None:
    take_snapshot(_commits(12), tmp_path)
    (file,) = tmp_path.glob("topic=*/partition=0/*.parquet")
    content = file.read_bytes()
    assert content.count(b'"stretches"') >= 1
    file.write_bytes(content.replace(b'"stretches"', b'"stretches,'))
    (found,) = read_table("current_offsets", tmp_path).findings
    assert found.severity == "damage"
    assert found.consequence == "offsets 0 to 11 are not read"


DAY_MS: Final = 24 * 60 * 60 * 1000


def _at(monkeypatch: pytest.MonkeyPatch, milliseconds: int) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: milliseconds * 1_000_000)


def test_a_state_of_a_clock_that_was_put_back_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise tombstones that a cleaner has removed since would be missed for as long as the clock had been ahead."""
    topic = Topic()
    topic.commit("gone", 1)
    topic.commit("stays", 2)
    before = topic.table().to_pylist()
    topic.commit("gone", None)
    topic.commit("stays", 3)
    cleaned = topic.table().to_pylist()[3:]
    now_ms = time.time_ns() // 1_000_000
    _at(monkeypatch, now_ms + 3650 * DAY_MS)
    read_table("current_offsets", Logs((Moment(2, before, 0).live(),)), state=tmp_path)
    _at(monkeypatch, now_ms + DAY_MS)
    source = Logs((Moment(4, cleaned, 3).live(),))
    assert read_table("current_offsets", source, state=tmp_path).table["group_id"].to_pylist() == ["stays"]
    assert stored_log(str(tmp_path / "last"), TOPIC, 0).stretches[0].read_at_ms == now_ms + DAY_MS


def test_the_time_of_a_clock_that_was_put_back_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = _commits(8).logs[0].rows.to_pylist()
    start_ms = rows[0]["timestamp_ms"]
    for number, row in enumerate(rows):
        row["timestamp_ms"] = start_ms + number * DAY_MS
    _at(monkeypatch, start_ms + 3650 * DAY_MS)
    take_snapshot(Logs((Moment(3, rows[:3], 0).live(),)), tmp_path)
    _at(monkeypatch, start_ms + 8 * DAY_MS)
    take_snapshot(Logs((Moment(8, [rows[2], *rows[6:]], 7).live(),)), tmp_path)
    # Offsets 3 to 5 were gone before they were read, so it is unknown what was there five days after the start.
    found = read_table("current_offsets", tmp_path, as_of=start_ms + 5 * DAY_MS)
    assert [each.reason for each in found.findings] == [INCOMPLETE_HISTORY]
    later = read_table("current_offsets", tmp_path, as_of=start_ms + 30 * DAY_MS)
    assert [each.what for each in later.findings][-1].startswith("the last run of this snapshot was at")
