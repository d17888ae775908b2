"""Opening a log: which files are read in which order, swap files, its start, and a log that changes meanwhile."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.format.checkpoints import CHECKPOINT, read_checkpoint
from kafka_records_engine.log.reading.segment_files import LogSourceError, find_logs, open_log
from tests.log.logs import commit, files_of, lines, read_both, write_log

# -- swap files --------------------------------------------------------------------------------------------------------


def swapped(tmp_path: Path, base: int, data: bytes) -> None:
    (tmp_path / "t-0" / f"{base:020}.log.swap").write_bytes(data)


def test_a_swap_file_replaces_what_it_covers(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commit(0) + commit(1), 2: commit(2) + commit(3), 4: commit(4)}, "t-0")
    swapped(tmp_path, 0, commit(1) + commit(3))
    (log,) = find_logs([tmp_path])
    assert files_of(log) == [f"{0:020}.log.swap", f"{4:020}.log"]
    rows, _, findings = read_both(log)
    assert [row["offset"] for row in rows] == [1, 3, 4]
    assert lines(findings, tmp_path) == [
        "t-0/00000000000000000000.log.swap: the cleaner has not renamed it yet, or a crash stopped it"
        " (read in place of 2 original files)"
    ]
    assert findings[0].severity == "note"


def test_a_swap_file_whose_originals_are_gone(tmp_path: Path) -> None:
    write_log(tmp_path, {4: commit(4)}, "t-0")
    swapped(tmp_path, 0, commit(1))
    (log,) = find_logs([tmp_path])
    assert files_of(log) == [f"{0:020}.log.swap", f"{4:020}.log"]
    _, _, findings = read_both(log)
    assert lines(findings, tmp_path)[0] == (
        "t-0/00000000000000000000.log.swap: the cleaner has not renamed it yet, or a crash stopped it"
        " (read in place of 0 original files)"
    )


def test_a_swap_file_beside_unfinished_output(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commit(0) + commit(1)}, "t-0")
    swapped(tmp_path, 0, commit(1))
    (tmp_path / "t-0" / f"{0:020}.log.cleaned").write_bytes(b"")
    (log,) = find_logs([tmp_path])
    rows, _, findings = read_both(log)
    assert [row["offset"] for row in rows] == [0, 1]
    assert lines(findings, tmp_path) == [
        "t-0/00000000000000000000.log.swap: the cleaner had not finished writing"
        " (left out: the original files are read)"
    ]


def test_an_original_asked_for_by_its_name(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commit(0)}, "t-0")
    swapped(tmp_path, 0, commit(0))
    (log,) = find_logs([tmp_path / "t-0" / f"{0:020}.log"])
    assert files_of(log) == [f"{0:020}.log"]
    assert read_both(log)[2] == []


# -- checkpoints -------------------------------------------------------------------------------------------------------


def test_raised_log_start(tmp_path: Path) -> None:
    write_log(tmp_path, {0: b""}, "t-0")
    (tmp_path / CHECKPOINT).write_text("0\n2\nt 0 7\nother 3 9\n")
    for source in (tmp_path, tmp_path / "t-0", tmp_path / "t-0" / f"{0:020}.log"):
        (log,) = find_logs([source])
        with open_log(log) as opened:
            assert opened.log_start == 7


def test_an_empty_checkpoint_is_that_of_a_new_broker(tmp_path: Path) -> None:
    write_log(tmp_path, {0: b""}, "t-0")
    (tmp_path / CHECKPOINT).write_text("")
    (log,) = find_logs([tmp_path])
    with open_log(log) as opened:
        assert (opened.log_start, opened.findings) == (0, ())


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("1\n0\n", "not an offset checkpoint of version 0: line 1 is '1'"),
        ("0\n", "line 2 is missing, but must be 0, the number of entries"),
        ("0\n2\nt 0 7\n", "line 2 is '2', but must be 1, the number of entries"),
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
    with open_log(log) as opened:
        assert opened.log_start == 0
        (finding,) = opened.findings
    assert str(finding) == f"{path}: {detail} (the log is read from its first record)"
    assert finding.severity == "damage"


def test_a_checkpoint_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(tmp_path, {0: b""}, "t-0")
    (tmp_path / CHECKPOINT).write_text("0\n0\n")

    def refuse(place: Place, *_: object, **__: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Place, "read_bytes", refuse)
    (log,) = find_logs([tmp_path])
    with open_log(log) as opened:
        assert [str(finding) for finding in opened.findings] == [
            f"{tmp_path / CHECKPOINT}: this cannot be read: Permission denied (the log is read from its first record)"
        ]
