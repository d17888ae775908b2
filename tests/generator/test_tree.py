"""The command: writing, deleting, refusing and checking a generated tree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka_records_codegen.cli import main

SPEC = {
    "type": "data",
    "name": "Ping",
    "validVersions": "0-1",
    "flexibleVersions": "1+",
    "fields": [{"name": "Text", "type": "string", "versions": "0+", "about": "Anything."}],
}


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    folder = tmp_path / "specs" / "pings"
    folder.mkdir(parents=True)
    (folder / "Ping.json").write_text(json.dumps(SPEC), encoding="utf-8")
    return tmp_path / "specs"


def run(specs: Path, out: Path, *options: str) -> int:
    return main(["generate", "--specs", str(specs), "--out", str(out), "--package", "acme", *options])


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_says_what_it_did(specs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "acme"
    assert run(specs, out) == 0
    assert capsys.readouterr().err == f"1 message, 13 files in {out}: 13 written, 0 deleted, 0 unchanged\n"
    assert run(specs, out) == 0
    assert capsys.readouterr().err == f"1 message, 13 files in {out}: 0 written, 0 deleted, 13 unchanged\n"


def test_what_is_no_longer_produced_is_deleted(specs: Path, tmp_path: Path) -> None:
    out = tmp_path / "acme"
    other = specs / "pongs"
    other.mkdir()
    (other / "Pong.json").write_text(json.dumps(SPEC | {"name": "Pong"}), encoding="utf-8")
    run(specs, out)
    assert (out / "pongs" / "pong.py").exists()
    (out / "pongs" / "__pycache__").mkdir()
    (out / "pongs" / "__pycache__" / "pong.cpython-311.pyc").write_bytes(b"compiled")
    (other / "Pong.json").unlink()
    other.rmdir()
    assert run(specs, out) == 0
    assert not (out / "pongs").exists()
    assert (out / "pings" / "ping.py").exists()


def test_a_strangers_file_stops_the_run_before_anything_is_written(
    specs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "acme"
    run(specs, out)
    (out / "pings" / "notes.txt").write_text("mine", encoding="utf-8")
    (out / "registry.py").write_text("# my own registry\n", encoding="utf-8")
    before = tree(out)
    (specs / "pings" / "Ping.json").write_text(json.dumps(SPEC | {"validVersions": "0-2"}), encoding="utf-8")
    capsys.readouterr()
    assert run(specs, out) == 1
    assert tree(out) == before
    assert capsys.readouterr().err == (
        f"{out} contains files that kafka-records-codegen did not write; nothing was written.\n"
        f"  {out / 'pings' / 'notes.txt'}\n"
        f"  {out / 'registry.py'}\n"
        "Choose a folder for --out that contains nothing else.\n"
    )


def test_check_finds_nothing_on_a_fresh_tree(specs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "acme"
    run(specs, out)
    (out / "__pycache__").mkdir()
    (out / "__pycache__" / "registry.cpython-311.pyc").write_bytes(b"compiled")
    capsys.readouterr()
    assert run(specs, out, "--check") == 0
    assert capsys.readouterr().out == ""


def test_check_shows_every_kind_of_difference(specs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "acme"
    run(specs, out)
    ping = out / "pings" / "ping.py"
    stale = out / "pings" / "stale.py"
    stale.write_bytes(ping.read_bytes())
    ping.write_text(ping.read_text(encoding="utf-8").replace('"""Anything."""', '"""Something."""'), encoding="utf-8")
    (out / "py.typed").unlink()
    (out / "notes.txt").write_text("mine", encoding="utf-8")
    before = tree(out)
    capsys.readouterr()
    assert run(specs, out, "--check") == 1
    assert tree(out) == before
    captured = capsys.readouterr()
    assert captured.out.splitlines()[:4] == [
        f"missing: {out / 'py.typed'}",
        f"extra: {stale}",
        f"changed: {ping}",
        f"untracked: {out / 'notes.txt'}",
    ]
    assert '-    """Something."""\n+    """Anything."""' in captured.out
    assert captured.err == (
        f"{out} does not match the specs. To fix it: kafka-records-codegen generate --specs {specs} --out {out} "
        "--package acme\nFirst move the untracked files away: they were not written by the generator.\n"
    )


def test_check_of_a_folder_that_is_not_there(specs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(specs, tmp_path / "nowhere", "--check") == 1
    assert capsys.readouterr().out.count("missing: ") == 13


def test_bad_specs_write_nothing(specs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (specs / "pings" / "Ping.json").write_text(json.dumps(SPEC | {"type": "date", "nme": 1}), encoding="utf-8")
    out = tmp_path / "acme"
    assert run(specs, out) == 1
    assert not out.exists()
    lines = capsys.readouterr().err.splitlines()
    assert (
        lines[0].startswith(f"{specs / 'pings' / 'Ping.json'}:1:10: type: ")
        or "pings/Ping.json:1:10: type: " in lines[0]
    )
    assert lines[-1] == "2 violations; nothing was written"


@pytest.mark.parametrize("name", ["acme-messages", "class", "a..b", ""])
def test_a_package_name_that_cannot_be_imported(name: str, specs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["generate", "--specs", str(specs), "--out", "out", "--package", name])
    assert caught.value.code == 2
    assert f"{name!r} cannot be imported: use identifiers separated by dots" in capsys.readouterr().err


def test_a_path_in_the_way(specs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "file"
    out.write_text("mine", encoding="utf-8")
    assert run(specs, out) == 2
    assert capsys.readouterr().err == (
        f"kafka-records-codegen: {out}: is not a folder; give --out the folder of the package\n"
    )
    assert out.read_text(encoding="utf-8") == "mine"


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["generate", "--help"])
    assert "--package kafka_records" in capsys.readouterr().out
