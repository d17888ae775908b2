"""The commands for CI and pre-commit on docs/evolution.md stop breaking changes, and nothing else."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from kafka_records_codegen.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "evolution.md").read_text(encoding="utf-8")
(IN_CI,) = re.findall(r"- run: (kafka-records-codegen compare .*)", PAGE)
(BEFORE_A_COMMIT,) = re.findall(r"entry: (kafka-records-codegen compare .*)", PAGE)

(INSTALLS,) = re.findall(r"- run: pip install '(.*)\[codegen\]'", PAGE)
(CLONE,) = re.findall(r"repository: .*/kafka-records, path: (.*) }", PAGE)

NAME = "OffsetCommitValue.json"
BREAKS = ('"name": "offset", "type": "int64"', '"name": "offset", "type": "int32"')
WORDS = ('"about": "', '"about": "Changed. ')


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A record that was committed, to the branch `main` of `origin` too."""
    folder = tmp_path / "message_specs" / "consumer_offsets"
    folder.mkdir(parents=True)
    for name in ("OffsetCommitKey.json", NAME):
        (folder / name).write_text((ROOT / "message_specs" / "consumer_offsets" / name).read_text("utf-8"), "utf-8")
    who = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.com")
    for words in (
        ("init", "--quiet"),
        ("add", "."),
        (*who, "commit", "--quiet", "--no-verify", "-m", "specs"),
        ("update-ref", "refs/remotes/origin/main", "HEAD"),
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    return folder / NAME


def run(command: str) -> int:
    """The command as a shell would start it, in this process."""
    program, *words = shlex.split(command.replace("$GITHUB_BASE_REF", "main"))
    assert program == "kafka-records-codegen"
    return main(words)


def test_the_package_is_installed_from_where_it_is() -> None:
    """The package is in no index. pip accepts folders that begin with `./`, and files that end in `.whl`."""
    assert f"./{CLONE}" == INSTALLS
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.py")]
    installs = [line for page in pages for line in re.findall(r"pip install .*", page.read_text(encoding="utf-8"))]
    assert len(installs) > 10
    assert [line for line in installs if re.search(r"pip install '?kafka[-_]records(?!.*\.whl)", line)] == []


@pytest.mark.parametrize("command", [IN_CI, BEFORE_A_COMMIT], ids=["ci", "pre-commit"])
@pytest.mark.parametrize(("change", "status"), [(None, 0), (WORDS, 0), (BREAKS, 1)], ids=["none", "words", "breaks"])
def test_what_an_example_stops(repository: Path, command: str, change: tuple[str, str] | None, status: int) -> None:
    if change is not None:
        text = repository.read_text(encoding="utf-8")
        assert change[0] in text
        repository.write_text(text.replace(*change), encoding="utf-8")
    assert run(command) == status
