"""Finding log partitions: what counts as one, in which order, and what is said when there is none."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_records_arrow.discovery import CHECKPOINT, read_checkpoint
from kafka_records_arrow.segments import LogPartition, LogSourceError, find_logs, scan
from tests.arrow.logs import CAPTURES, TOPICS, commit, lines, read_both, write_log


def files_of(log: LogPartition) -> list[str]:
    return [Path(segment.path).name for segment in log.segments]


def refusal(*sources: Path, topic: str | None = None) -> str:
    with pytest.raises(LogSourceError) as caught:
        find_logs(sources, topic)
    return str(caught.value)


# -- what is found -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("capture", CAPTURES)
def test_captured_data_directories(capture: str) -> None:
    directory = TOPICS / capture / "segments"
    logs = find_logs([directory])
    assert {f"{log.topic}-{log.partition}" for log in logs} == {
        each.name for each in directory.iterdir() if each.is_dir()
    }
    assert [(log.topic, log.partition) for log in logs] == sorted((log.topic, log.partition) for log in logs)
    for log in logs:
        present = sorted((directory / f"{log.topic}-{log.partition}").glob("*.log"))
        assert [Path(segment.path) for segment in log.segments] == present
        assert [segment.base_offset for segment in log.segments] == [int(path.stem) for path in present]
        assert log.problems == ()
        assert not log.ends_early


def test_log_start_of_the_capture() -> None:
    logs = find_logs([TOPICS / "kafka-4.3" / "segments"])
    assert {(log.topic, log.partition): log.log_start for log in logs if log.log_start} == {
        ("__share_group_state", 1): 11
    }


def test_one_topic_of_a_data_directory() -> None:
    logs = find_logs([TOPICS / "kafka-4.3" / "segments"], topic="__share_group_state")
    assert [(log.topic, log.partition) for log in logs] == [("__share_group_state", number) for number in range(3)]


def test_partitions_are_sorted_by_number(tmp_path: Path) -> None:
    for number in (10, 9, 1):
        write_log(tmp_path, {0: b""}, f"t-{number}")
    assert [log.partition for log in find_logs([tmp_path])] == [1, 9, 10]


def test_sources_are_named_twice_without_harm(tmp_path: Path) -> None:
    write_log(tmp_path, {0: b"", 5: b""}, "t-0")
    (log,) = find_logs([tmp_path, tmp_path / "t-0", tmp_path / "t-0" / f"{5:020}.log"])
    assert len(log.segments) == 2
    assert not log.ends_early


def test_partition_folder_and_its_relative_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(tmp_path, {0: b""}, "some.topic-7")
    monkeypatch.chdir(tmp_path / "some.topic-7")
    (log,) = find_logs([Path()])
    assert (log.topic, log.partition) == ("some.topic", 7)
    assert [segment.path for segment in log.segments] == [f"{0:020}.log"]


def test_single_files(tmp_path: Path) -> None:
    write_log(tmp_path, {0: b"", 5: b"", 9: b""}, "t-0")
    names = [tmp_path / "t-0" / f"{offset:020}.log" for offset in (5, 0)]
    (log,) = find_logs(names)
    assert [segment.base_offset for segment in log.segments] == [0, 5]
    assert log.ends_early
    (log,) = find_logs([tmp_path / "t-0" / f"{9:020}.log"])
    assert not log.ends_early


def test_named_topic_for_a_place_that_does_not_tell(tmp_path: Path) -> None:
    file = tmp_path / "saved.log"
    file.write_bytes(commit(0))
    (log,) = find_logs([file], topic="__consumer_offsets")
    assert (log.topic, log.partition, log.segments[0].base_offset) == ("__consumer_offsets", 0, None)
    rows, _, problems = read_both(log)
    assert (len(rows), problems) == (1, [])


def test_everything_else_in_there_is_ignored(tmp_path: Path) -> None:
    log = write_log(tmp_path, {0: commit(0)}, "t-0")
    ignored = ["index", "timeindex", "txnindex", "snapshot", "log.deleted", "log.cleaned", "index.swap"]
    for suffix in ignored:
        (tmp_path / "t-0" / f"{0:020}.{suffix}").write_bytes(b"?")
    for name in ("leader-epoch-checkpoint", "partition.metadata"):
        (tmp_path / "t-0" / name).write_bytes(b"?")
    for name in (f"t-1.{'0' * 32}-delete", f"t-2.{'0' * 32}-future", "no-number", "t-4"):
        (tmp_path / name).mkdir()
    (tmp_path / f"t-1.{'0' * 32}-delete" / f"{0:020}.log").write_bytes(b"?")
    (tmp_path / "server.log").write_bytes(b"started")
    assert find_logs([tmp_path]) == [log]


def test_partitions_travel_to_workers() -> None:
    for log in find_logs([TOPICS / "kafka-4.3" / "segments"]):
        assert pickle.loads(pickle.dumps(log)) == log


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    place = tmp_path / "missing"
    assert refusal(place) == f"{place}: there is no such file or directory"


def test_an_empty_directory(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path}: the directory is empty"


def test_a_directory_without_segments(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020}.index").write_bytes(b"")
    expected = "there is no .log file in this directory, nor in a folder <topic>-<partition> below it"
    assert refusal(tmp_path) == f"{tmp_path}: {expected}"
    assert refusal(tmp_path / "t-0") == f"{tmp_path}/t-0: {expected}"


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    file = tmp_path / f"{0:020}.index"
    file.write_bytes(b"")
    assert refusal(file) == f"{file}: this is no .log file"


def test_a_folder_that_does_not_tell_its_topic(tmp_path: Path) -> None:
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / f"{0:020}.log").write_bytes(b"")
    assert refusal(tmp_path / "backup") == (
        f"{tmp_path}/backup: the name of this folder is not <topic>-<partition>; say which topic it holds"
    )


def test_a_topic_that_is_not_there(tmp_path: Path) -> None:
    for name in ("a-0", "a-1", "b-0"):
        write_log(tmp_path, {0: b""}, name)
    assert refusal(tmp_path, topic="c") == f"{tmp_path}: there is no log of topic c here, but of a, b"


def test_one_partition_in_two_places(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_log(tmp_path / name, {0: b""}, "t-3")
    assert refusal(tmp_path / "one", tmp_path / "two") == (
        f"{tmp_path}/one/t-3, {tmp_path}/two/t-3: both hold t-3; read one of them at a time"
    )


# -- swap files --------------------------------------------------------------------------------------------------------


def swapped(tmp_path: Path, base: int, data: bytes) -> None:
    (tmp_path / "t-0" / f"{base:020}.log.swap").write_bytes(data)


def test_a_swap_file_replaces_what_it_covers(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commit(0) + commit(1), 2: commit(2) + commit(3), 4: commit(4)}, "t-0")
    swapped(tmp_path, 0, commit(1) + commit(3))
    (log,) = find_logs([tmp_path])
    assert files_of(log) == [f"{0:020}.log.swap", f"{4:020}.log"]
    rows, _, problems = read_both(log)
    assert [row["offset"] for row in rows] == [1, 3, 4]
    assert lines(problems, tmp_path) == [
        "t-0/00000000000000000000.log.swap: a crash stopped the cleaner from renaming it"
        " (read in place of 2 original files)"
    ]
    assert problems[0].severity == "note"


def test_a_swap_file_whose_originals_are_gone(tmp_path: Path) -> None:
    write_log(tmp_path, {4: commit(4)}, "t-0")
    swapped(tmp_path, 0, commit(1))
    (log,) = find_logs([tmp_path])
    assert files_of(log) == [f"{0:020}.log.swap", f"{4:020}.log"]
    assert lines(log.problems, tmp_path) == [
        "t-0/00000000000000000000.log.swap: a crash stopped the cleaner from renaming it"
        " (read in place of 0 original files)"
    ]


def test_a_swap_file_beside_unfinished_output(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commit(0) + commit(1)}, "t-0")
    swapped(tmp_path, 0, commit(1))
    (tmp_path / "t-0" / f"{0:020}.log.cleaned").write_bytes(b"")
    (log,) = find_logs([tmp_path])
    rows, _, problems = read_both(log)
    assert [row["offset"] for row in rows] == [0, 1]
    assert lines(problems, tmp_path) == [
        "t-0/00000000000000000000.log.swap: the cleaner had not finished writing"
        " (left out, the original files are read)"
    ]


def test_an_original_asked_for_by_its_name(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commit(0)}, "t-0")
    swapped(tmp_path, 0, commit(0))
    (log,) = find_logs([tmp_path / "t-0" / f"{0:020}.log"])
    assert files_of(log) == [f"{0:020}.log"]
    assert log.problems == ()


# -- checkpoints -------------------------------------------------------------------------------------------------------


def test_raised_log_start(tmp_path: Path) -> None:
    write_log(tmp_path, {0: b""}, "t-0")
    (tmp_path / CHECKPOINT).write_text("0\n2\nt 0 7\nother 3 9\n")
    for source in (tmp_path, tmp_path / "t-0", tmp_path / "t-0" / f"{0:020}.log"):
        (log,) = find_logs([source])
        assert log.log_start == 7


def test_an_empty_checkpoint_is_that_of_a_new_broker(tmp_path: Path) -> None:
    write_log(tmp_path, {0: b""}, "t-0")
    (tmp_path / CHECKPOINT).write_text("")
    (log,) = find_logs([tmp_path])
    assert (log.log_start, log.problems) == (0, ())


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("1\n0\n", "not an offset checkpoint of version 0: line 1 is '1'"),
        ("0\n", "line 2 is missing, not the count 0"),
        ("0\n2\nt 0 7\n", "line 2 is '2', not the count 1"),
        ("0\n1\nt 0\n", "line 3 is 't 0', not <topic> <partition> <offset>"),
    ],
)
def test_a_checkpoint_that_does_not_parse(tmp_path: Path, text: str, detail: str) -> None:
    write_log(tmp_path, {0: b""}, "t-0")
    path = tmp_path / CHECKPOINT
    path.write_text(text)
    with pytest.raises(LogSourceError, match=f"^{re.escape(f'{path}: {detail}')}$"):
        read_checkpoint(path)
    (log,) = find_logs([tmp_path])
    assert log.log_start == 0
    assert [str(problem) for problem in log.problems] == [f"{path}: {detail} (the log is read from its first record)"]
    assert log.problems[0].severity == "damage"


# -- what cannot be read -----------------------------------------------------------------------------------------------


def forbid(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As for a user without rights, which root is not."""
    original = Path.iterdir

    def iterdir(path: Path) -> Iterator[Path]:
        if path == folder:
            raise PermissionError(13, "Permission denied")
        return original(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)


def test_a_partition_folder_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (0, 1):
        write_log(tmp_path, {0: commit(0)}, f"t-{number}")
    forbid(monkeypatch, tmp_path / "t-0")
    expected = f"{tmp_path}/t-0: this folder cannot be listed: Permission denied (nothing in it is read)"
    forbidden, other = find_logs([tmp_path])
    rows, _, problems = read_both(forbidden)
    assert (rows, [str(problem) for problem in problems]) == ([], [expected])
    assert problems[0].severity == "damage"
    (stats,) = scan(forbidden)
    assert (stats.file, stats.problems) == (f"{tmp_path}/t-0", problems)
    assert len(read_both(other)[0]) == 1
    assert find_logs([tmp_path / "t-0"]) == [forbidden]


def test_a_data_directory_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid(monkeypatch, tmp_path)
    assert refusal(tmp_path) == f"{tmp_path}: this cannot be read: Permission denied"


def test_a_checkpoint_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(tmp_path, {0: b""}, "t-0")
    (tmp_path / CHECKPOINT).write_text("0\n0\n")

    def refuse(path: Path, *_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    (log,) = find_logs([tmp_path])
    assert [str(problem) for problem in log.problems] == [
        f"{tmp_path / CHECKPOINT}: this cannot be read: Permission denied (the log is read from its first record)"
    ]


def test_sources_that_are_no_places() -> None:
    with pytest.raises(LogSourceError, match=r"^'': an empty name is no source; say \. for the current directory$"):
        find_logs([""])
    assert refusal(Path("/dev/null")) == "/dev/null: this is neither a file nor a directory"
