"""The types of the package as mypy and pyright show them after an installation.

Both run in a separate folder on files without access to this repository, so only the installed package and its
`py.typed` count.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parent
CODE, MISTAKES = "user_code.py", "user_mistakes.py"

Findings = dict[tuple[str, int], list[tuple[str, str]]]
"""(file, line) → (severity, message)."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("user")
    for name in (CODE, MISTAKES):
        shutil.copyfile(HERE / name, folder / name)
    config = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "reportUnusedExpression": "none"}
    (folder / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def mypy(project: Path, pytestconfig: pytest.Config) -> Findings:
    assert pytestconfig.cache is not None
    options = ["--strict", "--python-version=3.11", "--config-file=", "--no-error-summary", "--hide-error-context"]
    cache = f"--cache-dir={pytestconfig.cache.mkdir('mypy_of_a_user')}"
    output = run(project, "mypy", *options, cache, CODE, MISTAKES)
    findings: Findings = {}
    for line in output.splitlines():
        match = re.fullmatch(r"(\w+\.py):(\d+): (error|note): (.*)", line)
        assert match is not None, output
        findings.setdefault((match[1], int(match[2])), []).append((match[3], match[4]))
    return findings


@pytest.fixture(scope="module")
def pyright(project: Path) -> Findings:
    output = run(project, "pyright", "--outputjson", "--pythonpath", sys.executable, CODE, MISTAKES)
    findings: Findings = {}
    for found in json.loads(output)["generalDiagnostics"]:
        place = (Path(found["file"]).name, found["range"]["start"]["line"] + 1)
        findings.setdefault(place, []).append((found["severity"], found["message"]))
    return findings


def run(project: Path, tool: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", tool, *arguments], cwd=project, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def expected(name: str, pattern: str) -> dict[int, str]:
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    matches = ((number, re.search(pattern, line)) for number, line in enumerate(lines, 1))
    return {number: match[1] for number, match in matches if match}


def revealed_by_mypy(message: str) -> str | None:
    match = re.fullmatch(r'Revealed type is "(.*)"', message)
    return None if match is None else re.sub(r"\b(?:\w+\.)+(?=\w)", "", match[1])


def revealed_by_pyright(message: str) -> str | None:
    match = re.fullmatch(r'Type of ".*" is "(.*)"', message, re.DOTALL)
    return None if match is None else match[1]


@pytest.mark.parametrize(
    ("tool", "revealed"), [("mypy", revealed_by_mypy), ("pyright", revealed_by_pyright)], ids=["mypy", "pyright"]
)
def test_revealed_types(tool: str, revealed: Callable[[str], str | None], request: pytest.FixtureRequest) -> None:
    findings: Findings = request.getfixturevalue(tool)
    found = {}
    for (name, line), messages in findings.items():
        if name == CODE:
            for severity, message in messages:
                shown = revealed(message)
                assert shown is not None, f"line {line}: {severity}: {message}"
                found[line] = shown
    wanted = expected(CODE, r"^ *reveal_type\(.*\)  # (.*)$")
    assert len(wanted) > 40
    assert found == wanted


@pytest.mark.parametrize("tool", ["mypy", "pyright"])
def test_mistakes_are_refused(tool: str, request: pytest.FixtureRequest) -> None:
    findings: Findings = request.getfixturevalue(tool)
    refused = {
        line
        for (name, line), messages in findings.items()
        if name == MISTAKES and any(severity == "error" for severity, _ in messages)
    }
    assert refused == expected(MISTAKES, r"# (refused): ").keys()
