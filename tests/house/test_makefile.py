"""The Makefile from a user's view."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def make(*arguments: str) -> str:
    # Remove the variables that an outer make, which may run this test, passes to an inner one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(["make", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_help_lists_every_target_and_itself() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {name for line in re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE) for name in line.split()}
    listed = {line.split()[0] for line in make("help").splitlines()}
    assert "help" in listed
    assert listed == targets - {"python-found", "java-found"}


def test_help_is_what_make_alone_prints() -> None:
    assert make() == make("help")


def test_what_quick_and_test_leave_out() -> None:
    """`quick` leaves out every marker of the project; `test` has all tests except variants."""
    (chosen,) = re.findall(r'-m "not \((.*?)\)"', make("--dry-run", "quick"))
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    assert set(chosen.split(" or ")) == {marker.partition(":")[0] for marker in settings["markers"]}
    (command,) = re.findall(r"^.*-m pytest.*$", make("--dry-run", "test"), re.MULTILINE)
    assert command.endswith('-m pytest -n 3 -m "not matrix"')
    assert make("--dry-run", "matrix").rstrip().endswith("-m pytest -n 3 -m matrix")


def test_lint_holds_the_import_contracts_and_nothing_runs_them_twice() -> None:
    for target in ("lint", "quick", "test"):
        # A dry run does not start the inner make, which runs targets in parallel.
        inner = re.findall(r"--jobs=2.* (pyright .*)$", make("--dry-run", target), re.MULTILINE)
        commands = make("--dry-run", *(inner[0].split() if inner else [target])).splitlines()
        assert [line for line in commands if line.endswith("/lint-imports")] == [".venv/bin/lint-imports"], target


def test_the_test_command_of_the_readme_is_what_ci_runs() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "make test" in " ".join(readme.split())
    assert script.splitlines()[-1] == "exec make test"
