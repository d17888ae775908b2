"""The command: its usage, obstacles, and places that cannot be read or written."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_records_codegen.cli import _parser, main

SPEC = {"type": "data", "name": "Ping", "validVersions": "0", "flexibleVersions": "none"}
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "Ping.json").write_text(json.dumps(SPEC), encoding="utf-8")
    return folder


def run(specs: Path, out: Path, *options: str, package: str = "acme") -> int:
    return main(["generate", "--specs", str(specs), "--out", str(out), "--package", package, *options])


# ---- what is in the way


@pytest.mark.parametrize("is_fresh", [True, False])
def test_what_is_in_the_way_stops_the_run(
    specs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], is_fresh: bool
) -> None:
    out = tmp_path / "acme"
    if not is_fresh:
        run(specs, out)
        (out / "registry.py").unlink()
        (out / "py.typed").unlink()
    (out / "registry.py").mkdir(parents=True)
    (out / "py.typed").symlink_to("gone")
    (out / "linked").symlink_to(specs, target_is_directory=True)
    os.mkfifo(out / "pipe")
    before = sorted(out.rglob("*"))
    capsys.readouterr()
    for options in ((), ("--check",)):
        assert run(specs, out, *options) == 1
        captured = capsys.readouterr()
        for name in ("linked", "pipe", "py.typed", "registry.py"):
            assert f"{out / name}\n" in captured.out + captured.err
        assert sorted(out.rglob("*")) == before
    assert run(specs, out) == 1
    assert capsys.readouterr().err == (
        f"{out} contains files that kafka-records-codegen did not write; nothing was written.\n"
        + "".join(f"  {out / name}\n" for name in ("linked", "pipe", "py.typed", "registry.py"))
        + "Choose a folder for --out that contains nothing else.\n"
    )


def test_a_file_at_the_place_of_a_folder(specs: Path, tmp_path: Path) -> None:
    out = tmp_path / "acme"
    out.mkdir()
    (out / "schemas").write_text("mine", encoding="utf-8")
    assert run(specs, out) == 1
    assert os.listdir(out) == ["schemas"]


# ---- places that cannot be read or written


def test_places_that_cannot_be_written(specs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "nowhere").symlink_to("gone")
    for out, problem in (
        (tmp_path / "file" / "inner", "Not a directory"),
        (tmp_path / ("x" * 300), "File name too long"),
        (tmp_path / "nowhere", "is not a folder; give --out the folder of the package"),
        (Path("/proc/none/acme"), "No such file or directory"),
    ):
        assert run(specs, out) == 2
        error = capsys.readouterr().err
        assert error.startswith("kafka-records-codegen: ")
        assert error.endswith(f": {problem}\n")
        assert error.count("\n") == 1


def test_specs_that_cannot_be_read(specs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (specs / "Pong.json").symlink_to("gone.json")
    assert run(specs, tmp_path / "acme") == 2
    assert capsys.readouterr().err == f"kafka-records-codegen: {specs / 'Pong.json'}: No such file or directory\n"
    assert run(specs / "Ping.json", tmp_path / "acme") == 2
    assert capsys.readouterr().err == (
        f"kafka-records-codegen: {specs / 'Ping.json'}: is not a folder; give --specs the folder with the spec files\n"
    )
    assert run(specs / "none", tmp_path / "acme") == 2
    assert capsys.readouterr().err == (
        f"kafka-records-codegen: {specs / 'none'}: no such folder; give --specs the folder with the spec files\n"
    )
    assert not (tmp_path / "acme").exists()


def test_a_folder_of_specs_that_cannot_be_read(
    specs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert run(specs, tmp_path / "acme") == 2
    assert capsys.readouterr().err == f"kafka-records-codegen: {specs}: Permission denied\n"


def test_names_that_are_not_utf_8(specs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run(specs, Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xe4")))
    assert caught.value.code == 2
    assert "is not UTF-8: use another path, because paths are written into generated files" in capsys.readouterr().err


def test_files_that_only_look_like_specs_are_named(
    specs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (specs / "Pong.yaml").write_text("type: data", encoding="utf-8")
    assert run(specs, tmp_path / "acme") == 0
    first = capsys.readouterr().err.splitlines()[0]
    assert first == f"note: these files are ignored, because the name of a spec ends with .json: {specs / 'Pong.yaml'}"


def test_names_do_not_reach_the_terminal_as_they_are(
    specs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Escape sequences and marks that turn the writing, in names of files in either folder."""
    name, shown = "a\x1b[31m\u202e.yaml", "a\\x1b[31m\\u202e.yaml"
    out = tmp_path / "acme"
    assert run(specs, out) == 0
    for folder in (specs, out):
        (folder / name).write_text("mine", encoding="utf-8")
    capsys.readouterr()
    assert run(specs, out) == 1
    assert capsys.readouterr().err == (
        f"note: these files are ignored, because the name of a spec ends with .json: {specs}/{shown}\n"
        f"{out} contains files that kafka-records-codegen did not write; nothing was written.\n"
        f"  {out}/{shown}\n"
        "Choose a folder for --out that contains nothing else.\n"
    )
    assert run(specs, out, "--check") == 1
    assert capsys.readouterr().out == f"untracked: {out}/{shown}\n"
    assert run(specs, out / name) == 2
    assert capsys.readouterr().err.startswith(f"kafka-records-codegen: {out}/{shown}: is not a folder; ")


# ---- usage


def test_the_command_to_fix_it_can_be_pasted(specs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "it's my; package"
    assert run(specs, out, "--check") == 1
    command = capsys.readouterr().err.partition("To fix it: ")[2]
    arguments = ["generate", "--specs", str(specs), "--out", str(out), "--package", "acme"]
    assert shlex.split(command) == ["kafka-records-codegen", *arguments]
    assert main(shlex.split(command)[1:]) == 0
    assert run(specs, out, "--check") == 0


@pytest.mark.parametrize(
    ("package", "problem"),
    [
        ("json", "'json' is a module of Python's standard library, which the package would hide: choose another name"),
        (
            "json.acme",
            "'json' is a module of Python's standard library, which the package would hide: choose another name",
        ),
        ("kafka_records_runtime", "'kafka_records_runtime' is a package that generated code imports"),
        ("msgspec", "'msgspec' is a package that generated code imports"),
    ],
)
def test_a_package_that_would_hide_another(
    specs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], package: str, problem: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        run(specs, tmp_path / "out", package=package)
    assert caught.value.code == 2
    assert problem in capsys.readouterr().err
    assert run(specs, tmp_path / "out", package="acme.json") == 0


def test_version_and_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--version", "--help"):
        with pytest.raises(SystemExit) as caught:
            main([option])
        assert caught.value.code == 0
    printed = capsys.readouterr().out
    assert printed.startswith("kafka-records-codegen ")
    assert printed.endswith(
        "exit status:\n"
        "  0    done, or nothing to do\n"
        "  1    specs rejected, foreign files in the folder, or --check found a difference; nothing was written\n"
        "  2    wrong usage, a missing extra, a file or folder that cannot be read or written, or another run that "
        "took longer\n       than a minute\n"
        "  130  Ctrl-C\n"
    )


def test_ctrl_c(
    specs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any time: while files are made, and after the first of them were moved to their places."""
    out = tmp_path / "acme"
    assert run(specs, out) == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    (specs / "Pong.json").write_text(json.dumps(SPEC | {"name": "Pong"}), encoding="utf-8")
    capsys.readouterr()
    for name in ("fsync", "replace"):

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as context:
            context.setattr(os, name, interrupt)
            assert run(specs, out) == 130
        assert capsys.readouterr() == ("", "")
        assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert run(specs, out) == 0
    assert run(specs, out, "--check") == 0


def test_the_examples_of_the_help_are_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """They can be parsed, and lead to the two products and to --check."""
    with pytest.raises(SystemExit):
        main(["docs", "--help"])
    examples = [
        line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("  kafka-records-codegen ")
    ]
    parsed = [_parser().parse_args(words[1:]) for words in examples]
    compared = [options for options in parsed if options.command == "compare"]
    assert [(options.older, options.newer) for options in compared] == [("main", "message_specs")]
    parsed = [options for options in parsed if options not in compared]
    assert [(options.command, options.check, options.strict) for options in parsed] == [
        ("generate", False, False),
        ("docs", False, False),
        ("generate", True, True),
    ]


@pytest.mark.parametrize("missing", ["black", "jinja2"])
def test_without_the_extra(specs: Path, tmp_path: Path, missing: str) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None; from kafka_records_codegen.cli import main; "
        "sys.exit(main(sys.argv[1:]))"
    )
    arguments = ["generate", "--specs", str(specs), "--out", str(tmp_path / "acme"), "--package", "acme"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "generator")}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (f"kafka-records-codegen: {missing} is not installed: pip install -e '.[codegen]'\n")
    assert not (tmp_path / "acme").exists()
