"""`kafka-records snapshot`, and the other commands on its output."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Ran, run
from tests.cli.terminals import run_on

ALL_NEW = """\
__consumer_offsets: 850 records and 9 transaction markers added in 6 of 6 partitions
__share_group_state: 84 records and 0 transaction markers added in 3 of 3 partitions
__transaction_state: 45 records and 0 transaction markers added in 2 of 2 partitions
"""


@pytest.fixture
def segments(topics_dir: Path) -> str:
    return str(topics_dir / "kafka-4.3" / "segments")


@pytest.fixture
def kept(tmp_path: Path) -> str:
    return str(tmp_path / "kept")


def test_what_was_added_goes_to_standard_output(segments: str, kept: str) -> None:
    assert run("snapshot", segments, "--output", kept) == Ran(0, ALL_NEW, "")
    assert run("snapshot", segments, "--output", kept) == Ran(
        0,
        "__consumer_offsets: nothing new in 6 partitions\n"
        "__share_group_state: nothing new in 3 partitions\n"
        "__transaction_state: nothing new in 2 partitions\n",
        "",
    )


def test_topics_that_are_asked_for(segments: str, kept: str) -> None:
    names = ("__transaction_state", "__share_group_state")
    ran = run("snapshot", segments, "--output", kept, "--topic", names[0], "--topic", names[1])
    assert (ran.status, ran.lines) == (0, [ALL_NEW.split("\n")[2], ALL_NEW.split("\n")[1]])


def test_files_that_do_not_tell_their_topic(segments: str, kept: str, tmp_path: Path) -> None:
    log = "00000000000000000000.log"
    shutil.copy(Path(segments) / "__transaction_state-0" / log, tmp_path / log)
    ran = run("snapshot", str(tmp_path / log), "--output", kept, "--topic", "__transaction_state")
    assert ran.status == 0
    assert ran.lines == ["__transaction_state: 1 record and 0 transaction markers added in 1 of 1 partition"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("table", "current_offsets", "{}", "--format", "csv"),
        ("table", "groups", "{}", "--format", "csv"),
        ("table", "transactions", "{}", "--format", "json"),
        ("counts", "{}", "--topic", "__consumer_offsets", "--format", "json"),
        ("dump", "{}", "--topic", "__transaction_state"),
        ("dump", "{}", "--topic", "__consumer_offsets", "--offset", "10..20", "--bytes"),
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_the_other_commands_read_it(arguments: tuple[str, ...], segments: str, kept: str) -> None:
    run("snapshot", segments, "--output", kept)
    one, other = (run(*(each.format(source) for each in arguments)) for source in (segments, kept))
    assert (other.status, other.out) == (one.status, one.out)
    assert one.out


def test_a_moment_is_asked_for(segments: str, kept: str) -> None:
    run("snapshot", segments, "--output", kept)
    question = ("--as-of", "1795227160000", "--format", "csv", "--sort", "group_id,topic,partition")
    one, other = (run("table", "current_offsets", source, *question) for source in (segments, kept))
    assert one.out == other.out
    assert 1 < len(one.lines) < len(run("table", "current_offsets", segments, "--format", "csv").lines)


def test_damage_is_told_and_ends_with_1(segments: str, kept: str, tmp_path: Path) -> None:
    shutil.copytree(Path(segments) / "__consumer_offsets-4", tmp_path / "__consumer_offsets-4")
    file = tmp_path / "__consumer_offsets-4" / "00000000000000000267.log"
    content = bytearray(file.read_bytes())
    content[4000] ^= 0xFF
    file.write_bytes(content)
    ran = run("snapshot", str(file.parent), "--output", kept)
    assert ran.status == 1
    assert "wrong CRC" in ran.err.splitlines()[0]
    assert ran.err.splitlines()[-1] == "1 damaged place in the files: 1 record known to be lost, 146 bytes not read"
    assert run("table", "groups", kept).status == 1


def _forbid(monkeypatch: pytest.MonkeyPatch, folders: Collection[str]) -> None:
    """Make folders unreadable, as for a user without rights. Tests may run as root, for whom file modes have no
    effect."""
    original = os.open

    def refuse(path: str, *arguments: Any) -> int:
        if Path(path).suffix == ".log" and Path(path).parent.name in folders:
            raise PermissionError(13, "Permission denied")
        return original(path, *arguments)

    monkeypatch.setattr(os, "open", refuse)


def test_a_log_that_may_not_be_read_is_no_damage(segments: str, kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (segments, "--topic", "__transaction_state", "--output", kept)
    _forbid(monkeypatch, ["__transaction_state-0", "__transaction_state-1"])
    refused = "00000000000000000000.log: permission denied: run this as a user who may read it"
    assert run("snapshot", *source).err.splitlines()[-1] == f"kafka-records: {segments}/__transaction_state-0/{refused}"
    monkeypatch.undo()
    _forbid(monkeypatch, ["__transaction_state-0"])
    ran = run("snapshot", *source)
    assert (ran.status, ran.lines) == (
        1,
        ["__transaction_state: 37 records and 0 transaction markers added in 1 of 2 partitions"],
    )
    assert ran.err.splitlines() == [
        f"__transaction_state-0: {segments}/__transaction_state-0/{refused} (none of its records are stored)",
        "1 log partition not read: permission denied; nothing is wrong with the log",
    ]
    monkeypatch.undo()
    assert run("snapshot", *source).lines == [
        "__transaction_state: 8 records and 0 transaction markers added in 1 of 2 partitions"
    ]


def test_a_source_that_is_not_there_leaves_no_damage_in_the_snapshot(segments: str, kept: str, tmp_path: Path) -> None:
    ran = run("snapshot", str(tmp_path / "gone"), segments, "--topic", "__transaction_state", "--output", kept)
    told = f"{tmp_path / 'gone'}: there is no such file or directory (nothing in it is read)"
    assert (ran.status, ran.err.splitlines().count(told)) == (1, 1)
    assert run("table", "transactions", kept).status == 0


def test_a_snapshot_that_may_not_be_read(segments: str, kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run("snapshot", segments, "--topic", "__transaction_state", "--output", kept)

    def refuse(path: str, *_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pyarrow.parquet.ParquetFile", refuse)
    ran = run("table", "transactions", kept)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.endswith(".parquet: permission denied: run this as a user who may read it\n")


def test_another_log_is_refused_and_ends_with_1(segments: str, kept: str, tmp_path: Path) -> None:
    run("snapshot", segments, "--output", kept)
    other = tmp_path / "other" / "__transaction_state-0"
    shutil.copytree(Path(segments) / "__transaction_state-1", other)
    ran = run("snapshot", str(other), "--output", kept)
    assert ran.status == 1
    assert "Take the snapshot of this one into another directory (none of its records are stored)" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("{segments}", "--output", "{segments}/kept"),
            "{segments}/kept: is inside the source {segments}: choose a directory outside it",
        ),
        (("{segments}", "--output", "{here}/no/where"), "{here}/no/where: there is no directory {here}/no"),
        (("{segments}", "--output", "{here}/file"), "{here}/file: is a file, but a snapshot must be a directory"),
        (
            ("{segments}", "--output", "{here}"),
            "{here}: this directory contains something else (file): give a new one, or a snapshot",
        ),
        (("{here}/nothing", "--output", "{kept}"), "{here}/nothing: there is no such file or directory"),
        (
            ("{segments}", "--topic", "orders", "--output", "{kept}"),
            "{segments}: there is no log of topic orders here, only logs of __consumer_offsets, __share_group_state, "
            "__transaction_state",
        ),
    ],
    ids=["in the source", "nowhere", "a file", "something else", "no source", "no topic"],
)
def test_what_cannot_be_done(
    arguments: tuple[str, ...], message: str, segments: str, kept: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    names = {"segments": segments, "kept": kept, "here": str(tmp_path)}
    ran = run("snapshot", *(each.format(**names) for each in arguments))
    assert ran == Ran(2, "", f"kafka-records: {message.format(**names)}\n")
    assert not Path(kept).exists()


def test_usage(segments: str, kept: str) -> None:
    assert "the following arguments are required: --output" in run("snapshot", segments).err
    ran = run("snapshot", segments, "--output", kept, "--file-size", "0")
    assert "argument --file-size: '0' is not a number of MiB from 1 to 999999\n" in ran.err
    assert "SOURCE (or --bootstrap)" in run("snapshot", "--output", kept).err


def test_a_topic_that_no_coordinator_has(tmp_path: Path, segments: str, kept: str) -> None:
    shutil.copytree(Path(segments) / "__transaction_state-0", tmp_path / "data" / "orders-0")
    ran = run("snapshot", str(tmp_path / "data"), "--output", kept)
    assert ran.status == 2
    assert "contains only orders, but none of the coordinators' topics" in ran.err
    assert ran.err.endswith("; to keep another topic, use --topic NAME\n")
    assert run("snapshot", str(tmp_path / "data"), "--output", kept, "--topic", "orders").lines == [
        "orders: 8 records and 0 transaction markers added in 1 of 1 partition"
    ]


def test_two_at_once(segments: str, kept: str) -> None:
    run("snapshot", segments, "--output", kept)
    with open(f"{kept}/_lock", "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert run("snapshot", segments, "--output", kept) == Ran(
            2, "", f"kafka-records: {kept}: another process is adding to this snapshot: wait until it has ended\n"
        )


def test_a_full_disk(segments: str, kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("kafka_records_engine.sources._stored.writing_files.replace_file", full)
        assert run("snapshot", segments, "--output", kept) == Ran(
            2,
            "",
            f"kafka-records: {kept}: No space left on device; complete files are kept, and the next run continues "
            "after them\n",
        )
    assert not list(Path(kept).rglob("*.part"))
    assert run("snapshot", segments, "--output", kept) == Ran(0, ALL_NEW, "")


@pytest.mark.slow
def test_on_a_terminal(segments: str, kept: str) -> None:
    ran = run_on("snapshot", segments, "--output", kept)
    assert ran.status == 0
    assert ALL_NEW.split("\n")[0] in ran.screen
