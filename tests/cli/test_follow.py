"""`dump --follow`: it prints appended records of files that are rolled, cleaned and replaced meanwhile."""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_records_tables.commands.log_follower import INTERVAL
from tests.cli.segment_bytes import batch, commit, write_segment
from tests.cli.terminals import Running, processor_seconds, run_on, running_on
from tests.variants import one_in

pytestmark = pytest.mark.slow

FOLDER = "__consumer_offsets-0"


def one(offset: int) -> bytes:
    return batch(offset, [commit("a", offset)])


def append(path: Path, *batches: bytes) -> None:
    with path.open("ab") as file:
        file.write(b"".join(batches))


def segment(directory: Path, base: int, *batches: bytes, folder: str = FOLDER) -> Path:
    path = directory / folder / f"{base:020}.log"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(batches))
    return path


def offsets(text: str) -> list[int]:
    return [json.loads(line)["offset"] for line in text.split("\n")[:-1]]


@contextmanager
def following(source: Path, *options: str) -> Iterator[Running]:
    with running_on("dump", str(source), "--follow", *options, stdout="pipe", stderr="pipe") as running:
        yield running


def wait_for(running: Running, offset: int) -> None:
    running.wait_for("stdout", f'"offset":{offset},"timestamp"')


def test_what_is_appended_is_printed_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    path = write_segment(tmp_path, one(0), one(1))
    with following(tmp_path) as running:
        wait_for(running, 1)
        append(path, one(2))
        wait_for(running, 2)
        whole = one(3)
        append(path, whole[:30])
        time.sleep(2 * INTERVAL)
        append(path, whole[30:], one(4))
        wait_for(running, 4)
        running.interrupt()
        seen = running.finish()
    assert offsets(seen.out) == [0, 1, 2, 3, 4]
    assert (seen.status, seen.err) == (0, "5 records and 0 transaction markers in 1 file of 1 partition\n")


def test_files_that_are_rolled_and_partitions_that_are_made(tmp_path: Path) -> None:
    path = write_segment(tmp_path, one(0))
    with following(tmp_path) as running:
        wait_for(running, 0)
        append(path, one(1))
        segment(tmp_path, 2, one(2))
        wait_for(running, 2)
        append(segment(tmp_path, 3), one(3))
        wait_for(running, 3)
        segment(tmp_path, 0, batch(0, [commit("other", 100)] * 100), folder="__consumer_offsets-1")
        running.wait_for("stdout", '"partition":1,"offset":99')
        running.interrupt()
        seen = running.finish()
    assert offsets(seen.out) == [0, 1, 2, 3, *range(100)]
    assert (seen.status, seen.err) == (0, "104 records and 0 transaction markers in 4 files of 2 partitions\n")


def test_a_cleaner_that_replaces_what_was_read(tmp_path: Path) -> None:
    """The last file that was read is rolled and merged into the previous one. Records in between are not lost."""
    segment(tmp_path, 0, one(0), one(1))
    last = segment(tmp_path, 2, one(2))
    with following(tmp_path) as running:
        wait_for(running, 2)
        append(last, one(3))
        segment(tmp_path, 4, one(4))
        cleaned = tmp_path / FOLDER / f"{0:020}.log.cleaned"
        cleaned.write_bytes(one(1) + one(3))
        swap = cleaned.rename(cleaned.with_suffix(".swap"))
        last.unlink()
        swap.replace(tmp_path / FOLDER / f"{0:020}.log")
        wait_for(running, 4)
        append(tmp_path / FOLDER / f"{4:020}.log", one(5))
        wait_for(running, 5)
        running.interrupt()
        seen = running.finish()
    assert offsets(seen.out) == [0, 1, 2, 3, 4, 5]
    assert seen.status == 0


def again(read: int, start: int, folder: str = FOLDER) -> str:
    return (
        f"note: {folder}: this log was recreated or truncated, and offsets that were already read, up to {read}, are "
        f"used again: records from offset {start} on are shown"
    )


@pytest.mark.parametrize("first", [0, 7])
def test_a_partition_that_is_deleted_and_recreated(tmp_path: Path, first: int) -> None:
    segment(tmp_path, first, one(first), one(first + 1))
    with following(tmp_path) as running:
        wait_for(running, first + 1)
        shutil.rmtree(tmp_path / FOLDER)
        path = segment(tmp_path, 0, batch(0, [commit("anew", 1)]))
        running.wait_for("stdout", '"group":"anew"')
        append(path, batch(1, [commit("later", 1)]))
        running.wait_for("stdout", '"group":"later"')
        running.interrupt()
        seen = running.finish()
    assert offsets(seen.out) == [first, first + 1, 0, 1]
    assert seen.status == 0
    assert again(first + 1, 0) in seen.err.splitlines()


def test_a_log_that_is_cut_back_and_written_on(tmp_path: Path) -> None:
    segment(tmp_path, 0, one(0))
    path = segment(tmp_path, 1, one(1), one(2), one(3))
    with following(tmp_path) as running:
        wait_for(running, 3)
        os.truncate(path, len(one(1)))
        running.wait_for("stderr", "are shown")
        append(path, batch(2, [commit("other", 1)]))
        running.wait_for("stdout", '"group":"other"')
        running.interrupt()
        seen = running.finish()
    assert offsets(seen.out) == [0, 1, 2, 3, 1, 2]
    assert (seen.status, seen.err.splitlines()) == (
        0,
        [again(3, 1), "6 records and 0 transaction markers in 2 files of 1 partition"],
    )


def test_damage_is_told_once_and_where_it_is(tmp_path: Path) -> None:
    path = write_segment(tmp_path, one(0))
    with following(tmp_path) as running:
        wait_for(running, 0)
        broken = bytearray(one(1))
        broken[-1] ^= 1
        append(path, bytes(broken), one(2))
        wait_for(running, 2)
        append(path, one(3))
        wait_for(running, 3)
        running.interrupt()
        seen = running.finish()
    assert offsets(seen.out) == [0, 2, 3]
    assert seen.status == 1
    lines = seen.err.splitlines()
    assert lines[0].startswith(f"{path}: byte {len(one(0))}, batch at offset 1: wrong CRC: ")
    assert lines[1:] == [
        "3 records and 0 transaction markers in 1 file of 1 partition",
        f"1 damaged place in the files: 1 record known to be lost, {len(broken)} bytes not read",
    ]


def test_only_what_is_asked_for(tmp_path: Path) -> None:
    path = write_segment(tmp_path, batch(0, [commit("a", 1), commit("b", 1)]))
    with following(tmp_path, "--group", "b") as running:
        wait_for(running, 1)
        append(path, batch(2, [commit("a", 2), commit("b", 2)]))
        wait_for(running, 3)
        running.interrupt()
        seen = running.finish()
    assert offsets(seen.out) == [1, 3]
    assert seen.err.splitlines()[-1] == "not asked for: 2 of 4 records and transaction markers"


def test_a_reader_that_leaves_ends_it(tmp_path: Path) -> None:
    path = write_segment(tmp_path, one(0))
    program = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-m', 'kafka_records_tables.commands', 'dump', sys.argv[1],"
        "                          '--follow'],"
        " stdout=subprocess.PIPE, stderr=subprocess.PIPE)\n"
        "child.stdout.readline(); child.stdout.close()\n"
        "open(sys.argv[2], 'ab').write(bytes.fromhex(sys.argv[3]))\n"
        "print(child.wait(60), child.stderr.read())"
    )
    seen = run_on(str(tmp_path), str(path), one(1).hex(), program=("-c", program), stdout="pipe", stderr="pipe")
    assert seen.out == "0 b''\n"


def test_explain_goes_along(tmp_path: Path) -> None:
    """Through a real pipe, in a locale that knows ASCII only."""
    path = write_segment(tmp_path, batch(0, [commit("größe", 1)]))
    command = f"{shlex.quote(sys.executable)} -m kafka_records_tables.commands"
    line = f"{command} dump {shlex.quote(str(tmp_path))} --follow --bytes 2>/dev/null | {command} explain -"
    program = ("-c", f"import os; os.execv('/bin/sh', ['sh', '-c', {line!r}])")
    with running_on(program=program, stdout="pipe", stderr="pipe", LC_ALL="C", PYTHONUTF8="0") as running:
        running.wait_for("stdout", "__consumer_offsets-0, offset 0\n")
        append(path, one(1))
        running.wait_for("stdout", "\n__consumer_offsets-0, offset 1\n")
        os.killpg(running.process.pid, signal.SIGINT)
        seen = running.finish()
    assert "größe" in seen.out
    assert seen.err == ""


def test_waiting_costs_next_to_nothing(tmp_path: Path) -> None:
    for number in range(50):
        write_segment(tmp_path, one(0), folder=f"__consumer_offsets-{number}")
    with following(tmp_path) as running:
        running.wait_for("stdout", '"partition":49')
        time.sleep(0.5)
        before = processor_seconds(running.process.pid)
        time.sleep(3)
        used = processor_seconds(running.process.pid) - before
        running.process.send_signal(signal.SIGINT)
        running.finish()
    assert used < 0.15


@pytest.mark.parametrize("seed", one_in(2, [1, 2]))
def test_a_log_that_rolls_and_is_cleaned_all_the_time(tmp_path: Path, seed: int) -> None:
    """Records that the cleaner removes may be missing. No record comes twice or out of order, and the newest always
    comes."""
    chance = random.Random(seed)
    path = write_segment(tmp_path, one(0))
    bases = [0]
    written = 1
    with following(tmp_path) as running:
        wait_for(running, 0)
        end = time.monotonic() + 5
        while time.monotonic() < end:
            for _ in range(chance.randrange(5)):
                append(path, one(written))
                written += 1
            if chance.random() < 0.3 and bases[-1] != written:
                path = segment(tmp_path, written, one(written))
                bases.append(written)
                written += 1
            if len(bases) > 3:
                _merge(tmp_path / FOLDER, bases[0], bases.pop(1), chance)
            time.sleep(chance.random() * 0.1)
        wait_for(running, written - 1)
        running.interrupt()
        seen = running.finish()
    found = offsets(seen.out)
    assert found == sorted(set(found))
    assert found[-1] == written - 1
    assert seen.status == 0, seen.err


def _merge(folder: Path, base: int, other: int, chance: random.Random) -> None:
    """Merge two neighbouring files as a cleaner does, which keeps some of their records."""
    one_file, other_file = (folder / f"{each:020}.log" for each in (base, other))
    whole = one_file.read_bytes() + other_file.read_bytes()
    kept, at = b"", 0
    while at < len(whole):
        size = 12 + int.from_bytes(whole[at + 8 : at + 12], "big")
        kept += whole[at : at + size] if chance.random() < 0.7 else b""
        at += size
    cleaned = folder / f"{base:020}.log.cleaned"
    cleaned.write_bytes(kept)
    swap = cleaned.rename(folder / f"{base:020}.log.swap")
    time.sleep(0.01)
    other_file.rename(folder / f"{other:020}.log.deleted")
    swap.rename(one_file)
