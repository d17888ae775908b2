"""Runs that end early, because of a kill, a full disk or a bad name, and simultaneous runs in one folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen import _replacing, tree
from kafka_records_codegen._replacing import STAGING
from kafka_records_codegen.cli import main
from kafka_records_codegen.text.mark import Mark
from tests.generator.ended_runs import content, restore, trees

ROOT = Path(__file__).resolve().parents[2]
OLD, NEW = trees()
SPEC = {"type": "data", "name": "Ping", "validVersions": "0", "flexibleVersions": "none"}


def outcomes(how: str, folder: Path) -> list[dict[str, Any]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "generator"), str(ROOT)])}
    command = [sys.executable, "-m", "tests.generator.ended_runs", how, str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def own(left: dict[str, str]) -> dict[str, str]:
    """The remaining files, without those that were not moved to their place yet."""
    return {name: text for name, text in left.items() if not name.startswith(f"{STAGING}/")}


def check_whole_files(left: dict[str, str]) -> None:
    """Check that each file is a complete old or new one, and that no old one is deleted before all new ones exist."""
    left = own(left)
    for name, text in left.items():
        assert text in (OLD.get(name), NEW.get(name)), name
    if OLD.keys() - left.keys():
        assert {name: left.get(name) for name in NEW} == NEW


# ---- runs that end half-way


@pytest.mark.parametrize("how", ["kill", "late"])
def test_a_kill_leaves_whole_files_and_the_next_run_heals(how: str, tmp_path: Path) -> None:
    found = outcomes(how, tmp_path / "acme")
    killed = [outcome for outcome in found if outcome["signal"] == signal.SIGKILL]
    assert len(killed) > 20
    for outcome in found:
        check_whole_files(outcome["left"])
        assert outcome["healed"] == {"signal": 0, "status": 0, "said": "", "left": NEW}
    if how == "kill":
        # All stages must occur: the complete old tree, then new files in their places, then deleted old files.
        assert len([outcome for outcome in killed if own(outcome["left"]) == OLD]) > 20
        assert any(own(outcome["left"]).keys() == OLD.keys() | NEW.keys() for outcome in killed)


def test_a_full_disk_leaves_the_old_tree_and_the_next_run_heals(tmp_path: Path) -> None:
    folder = tmp_path / "acme"
    found = outcomes("fail", folder)
    nothing, mixed = "nothing was changed", "the folder contains new files next to old ones; another run fixes that"
    texts = set()
    for outcome in found:
        check_whole_files(outcome["left"])
        assert outcome["healed"] == {"signal": 0, "status": 0, "said": "", "left": NEW}
        if outcome["status"] == 0:  # the run succeeded without that step
            assert outcome["left"] == NEW
        else:
            name, _, text = outcome["said"].partition(": ")
            texts.add(text)
            assert name in {"beside", *(str(folder / name) for name in OLD.keys() | NEW.keys())}
            assert not [name for name in outcome["left"] if name.startswith(STAGING)]
            if text.endswith(nothing):
                assert outcome["left"] == OLD
    space = "No space left on device"
    assert texts == {space, f"{space}; {nothing}", f"{space}; {mixed}"}
    assert len([outcome for outcome in found if outcome["left"] == OLD]) > 20


def test_a_file_that_outgrows_its_limit_is_named(tmp_path: Path) -> None:
    """The kernel writes as many bytes as the limit allows, and then fails, as with a full disk."""
    folder = tmp_path / "acme"
    restore(folder, OLD)
    program = (
        "import resource, sys; from pathlib import Path; from kafka_records_codegen import tree; "
        "from tests.generator.ended_runs import trees; resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
        "try: tree.write(Path(sys.argv[1]), trees()[1])\n"
        "except OSError as error: print(error.filename, error.strerror, sep=': ')"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "generator"), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-B", "-c", program, str(folder)], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{folder / 'same' / 'b.py'}: File too large; nothing was changed\n"
    assert content(folder) == OLD


def test_a_name_that_is_too_long_leaves_the_old_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    specs, out = tmp_path / "specs", tmp_path / "acme"
    specs.mkdir()
    (specs / "Ping.json").write_text(json.dumps(SPEC), encoding="utf-8")
    arguments = ["generate", "--specs", str(specs), "--out", str(out), "--package", "acme"]
    assert main(arguments) == 0
    before = content(out)
    (specs / "Ping.json").unlink()
    (specs / "Pong.json").write_text(json.dumps(SPEC | {"name": "P" + "o" * 300}), encoding="utf-8")
    capsys.readouterr()
    assert main(arguments) == 1
    assert "because file " in capsys.readouterr().err
    assert content(out) == before
    assert not (out / STAGING).exists()


def test_a_failed_first_run_leaves_no_folder(tmp_path: Path) -> None:
    folder = tmp_path / "src" / "acme"
    with pytest.raises(OSError, match="File name too long; nothing was changed"):
        tree.write(folder, NEW | {f"{'x' * 300}.py": NEW["f.py"]})
    assert not list(tmp_path.iterdir())


def test_what_a_killed_run_left_is_extra_and_goes(tmp_path: Path) -> None:
    folder = tmp_path / "acme"
    restore(folder, NEW | {f"{STAGING}/same/b.py": "half a fi"})
    assert tree.compare(folder, NEW).extra == (f"{STAGING}/same/b.py",)
    tree.write(folder, NEW)
    assert content(folder) == NEW
    assert not (folder / STAGING).exists()


def test_a_link_in_place_of_the_folder_beside_is_not_followed(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "acme", tmp_path / "elsewhere"
    restore(folder, OLD)
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("mine", encoding="utf-8")
    (folder / STAGING).symlink_to(elsewhere)
    with pytest.raises(tree.UntrackedFiles):
        tree.write(folder, NEW)
    assert content(elsewhere) == {"mine": "mine"}


def test_permissions_stay(tmp_path: Path) -> None:
    folder = tmp_path / "acme"
    restore(folder, OLD)
    (folder / "__init__.py").chmod(0o640)
    tree.write(folder, NEW)
    assert (folder / "__init__.py").stat().st_mode & 0o777 == 0o640


# ---- runs that meet


@pytest.fixture
def other_run(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A folder that another process is writing to, and will be until it is killed."""
    folder = tmp_path / "acme"
    restore(folder, OLD)
    program = (
        "import sys, time; from pathlib import Path; from kafka_records_codegen._replacing import held\n"
        "with held(Path(sys.argv[1]), to_write=True): print('holds it', flush=True); time.sleep(600)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "generator")}
    command = [sys.executable, "-c", program, str(folder)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holds it\n"
        yield folder, process
        process.kill()


def test_a_run_waits_for_another_one(other_run: tuple[Path, subprocess.Popen[str]]) -> None:
    """The kernel releases the lock as soon as the process ends, however that happens."""
    folder, process = other_run
    waited = []

    def kill_it_soon() -> None:
        waited.append(content(folder) == OLD)
        threading.Timer(0.3, process.kill).start()

    tree.write(folder, NEW, kill_it_soon)
    assert waited == [True]
    assert content(folder) == NEW


def test_a_run_does_not_wait_for_ever(
    other_run: tuple[Path, subprocess.Popen[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, _ = other_run
    monkeypatch.setattr(_replacing, "PATIENCE", 0.2)
    specs = tmp_path / "specs"
    specs.mkdir()
    (specs / "Ping.json").write_text(json.dumps(SPEC), encoding="utf-8")
    arguments = ["generate", "--specs", str(specs), "--out", str(folder), "--package", "acme"]
    problem = (
        f"kafka-records-codegen: {folder}: another run has been writing to this folder for more than 0.2 seconds\n"
    )
    waiting = f"{folder}: another run is writing to this folder; waiting for it\n"
    assert main(arguments) == 2
    assert capsys.readouterr().err == waiting + problem
    assert main([*arguments, "--check"]) == 2
    assert capsys.readouterr().err == waiting + problem
    assert content(folder) == OLD


def test_a_comparison_keeps_nobody_from_comparing(tmp_path: Path) -> None:
    folder = tmp_path / "acme"
    restore(folder, NEW)
    with _replacing.held(folder, to_write=False):
        assert tree.compare(folder, NEW).is_clean


def test_a_folder_that_comes_while_it_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing folder cannot be locked, so a run that found none does not notice another run that creates it."""
    folder = tmp_path / "acme"
    lock = _replacing._lock

    def lock_and_let_one_begin(*arguments: Any) -> int | None:
        handle = lock(*arguments)
        (folder / STAGING).mkdir(parents=True)
        (folder / STAGING / "half.py").write_text("# Generated", encoding="utf-8")
        return handle

    monkeypatch.setattr(_replacing, "_lock", lock_and_let_one_begin)
    found = tree.compare(folder, NEW)
    assert (found.missing, found.extra, found.untracked) == (tuple(sorted(NEW)), (), ())


def test_two_runs_at_once_do_not_mix(tmp_path: Path) -> None:
    """Each of two threads writes its own tree, again and again; a reader always sees one complete tree."""
    folder = tmp_path / "acme"
    stop, failures = threading.Event(), []

    def write_again_and_again(files: dict[str, str]) -> None:
        while not stop.is_set():
            try:
                tree.write(folder, files)
            except BaseException as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=write_again_and_again, args=(files,)) for files in (OLD, NEW)]
    seen: set[str] = set()
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 60
    try:
        while len(seen) < 2 and time.monotonic() < deadline:
            with _replacing.held(folder, to_write=False) as is_there:
                found = content(folder) if is_there else {}
            assert found in ({}, OLD, NEW)
            if found:
                seen.add("old" if found == OLD else "new")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert seen == {"old", "new"}


def test_a_folder_that_its_holder_deletes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The waiting run then has a lock on a deleted folder, and makes the folder again."""
    folder = tmp_path / "acme"
    folder.mkdir()
    locked = _replacing._is_still
    calls: list[Path] = []

    def is_still(handle: int, path: Path) -> bool:
        if not calls:
            path.rmdir()
        calls.append(path)
        return locked(handle, path)

    monkeypatch.setattr(_replacing, "_is_still", is_still)
    tree.write(folder, NEW)
    assert content(folder) == NEW
    assert len(calls) == 2


# ---- whose files


HEAD = f"# {Mark('codecs', 'acme').line}\n"


@pytest.mark.parametrize(
    ("start", "mark"),
    [
        (f"# {Mark('codecs', 'acme').line}\n\"\"\"Doc.\"\"\"\n", Mark("codecs", "acme")),
        (f"# {Mark('codecs', 'acme.inner').line}\r\n", Mark("codecs", "acme.inner")),
        (f"<!-- {Mark('pages', 'größe').line} -->\n", Mark("pages", "größe")),
        (json.dumps({"generated": [Mark("codecs", "größe").line, "x"]}, indent=2), Mark("codecs", "größe")),
        (f'"""Files start with\n# {Mark("codecs", "acme").line}\n"""\n', None),
        (f'"""# {Mark("codecs", "acme").line}"""\n', None),
        (f"\n# {Mark('codecs', 'acme').line}\n", None),
        (f"\ufeff# {Mark('codecs', 'acme').line}\n", None),
        ("# Generated by kafka-records-codegen. Do not edit: change the specs and generate again.\n", None),
        ('{\n  "generated": [\n    "\\x"', None),
        ('{\n  "generated": [\n    "mine"\n  ]\n}', None),
        ("", None),
    ],
)
def test_marks(start: str, mark: Mark | None) -> None:
    assert Mark.read(start) == mark


def test_files_without_a_mark_are_not_written(tmp_path: Path) -> None:
    for files in ({}, {"a.py": "a = 1\n"}, {"a.py": HEAD, "b.py": f"# {Mark('pages', 'acme').line}\n"}):
        with pytest.raises(AssertionError, match="generated files must all start with the same mark"):
            tree.write(tmp_path / "acme", files)
    assert not (tmp_path / "acme").exists()


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "Ping.json").write_text(json.dumps(SPEC), encoding="utf-8")
    return folder


def test_a_file_that_quotes_the_mark_is_its_owners(
    specs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "acme"
    assert main(["generate", "--specs", str(specs), "--out", str(out), "--package", "acme"]) == 0
    mine = f'"""Where the files come from that start with\n\n{HEAD}"""\n'
    (out / "mine.py").write_text(mine, encoding="utf-8")
    (out / "ours.py").write_text(HEAD, encoding="utf-8")
    capsys.readouterr()
    assert main(["generate", "--specs", str(specs), "--out", str(out), "--package", "acme"]) == 1
    assert capsys.readouterr().err == (
        f"{out} contains files that kafka-records-codegen did not write; nothing was written.\n"
        f"  {out / 'mine.py'}\n"
        "Choose a folder for --out that contains nothing else.\n"
    )
    assert (out / "mine.py").read_text(encoding="utf-8") == mine
    (out / "mine.py").unlink()
    assert main(["generate", "--specs", str(specs), "--out", str(out), "--package", "acme"]) == 0
    assert not (out / "ours.py").exists()


@pytest.mark.parametrize(
    ("command", "package", "wanted"),
    [
        ("generate", "acme", "codecs of acme"),
        ("docs", "other", "pages of other"),
        ("docs", "acme.x", "pages of acme.x"),
    ],
)
def test_files_of_another_product_or_package(
    specs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, package: str, wanted: str
) -> None:
    out = tmp_path / "docs"
    assert main(["docs", "--specs", str(specs), "--out", str(out), "--package", "acme"]) == 0
    before = content(out)
    capsys.readouterr()
    assert main([command, "--specs", str(specs), "--out", str(out), "--package", package]) == 1
    assert capsys.readouterr().err == (
        f"{out} contains the pages of acme (2 files), not the {wanted}; nothing was written.\n"
        "Choose another --out folder, or delete those files first.\n"
    )
    (out / "notes.md").write_text("mine", encoding="utf-8")
    assert main([command, "--specs", str(specs), "--out", str(out), "--package", package]) == 1
    assert capsys.readouterr().err == (
        f"{out} contains files that are not the {wanted}; nothing was written.\n"
        f"  {out / 'README.md'} (pages of acme)\n"
        f"  {out / 'notes.md'}\n"
        f"  {out / 'ping.md'} (pages of acme)\n"
        "Choose a folder for --out that contains nothing else.\n"
    )
    (out / "notes.md").unlink()
    assert content(out) == before
    assert main([command, "--specs", str(specs), "--out", str(out), "--package", package, "--check"]) == 1
    assert capsys.readouterr().err.endswith(f"\nFirst move the untracked files away: they are not the {wanted}.\n")


def test_many_files_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "src"
    restore(folder, {f"{number:03}.py": "" for number in range(500)})
    with pytest.raises(tree.UntrackedFiles) as caught:
        tree.write(folder, NEW)
    lines = str(caught.value).splitlines()
    assert lines[1] == f"  {folder / '000.py'}"
    assert lines[20:] == [
        f"  {folder / '019.py'}",
        "  and 480 more",
        "Choose a folder for --out that contains nothing else.",
    ]
