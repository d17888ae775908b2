"""The check of the machine before the set-up, with a synthetic PATH and JAVA_HOME."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "prerequisites.sh"


@pytest.fixture
def bin_dir(tmp_path: Path) -> Path:
    """A folder that is the whole PATH: it has the tools that the script uses, but no Python and no Java."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("sed", "head"):
        found = shutil.which(tool)
        assert found is not None
        (folder / tool).symlink_to(found)
    return folder


def executable(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def java(path: Path, version_line: str) -> Path:
    return executable(path, f"echo '{version_line}' >&2")


def python(path: Path, version: str, venv: bool = True) -> Path:
    return executable(path, f'case "$2" in *version_info*) echo {version} ;; *) exit {0 if venv else 1} ;; esac')


def run(what: str, bin_dir: Path, **environment: str) -> tuple[int, str, str]:
    done = subprocess.run(
        ["/bin/sh", str(SCRIPT), what],
        env={"PATH": str(bin_dir), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "version_line",
    [
        'openjdk version "17.0.15" 2025-04-15',
        'openjdk version "21" 2023-09-19',
        'openjdk version "25-ea" 2025-09-16',
        'java version "17.0.9" 2023-10-17 LTS',
    ],
)
def test_a_java_that_spark_can_start_on(bin_dir: Path, version_line: str) -> None:
    java(bin_dir / "java", version_line)
    assert run("java", bin_dir) == (0, "", "")


def test_the_notice_about_tool_options_does_not_hide_the_version(bin_dir: Path) -> None:
    executable(
        bin_dir / "java",
        "echo 'Picked up JAVA_TOOL_OPTIONS: -Xmx1g' >&2; echo 'openjdk version \"17.0.1\" 2021-10-19' >&2",
    )
    assert run("java", bin_dir) == (0, "", "")


def test_no_java(bin_dir: Path) -> None:
    assert run("java", bin_dir) == (
        1,
        "",
        "Spark needs Java 17 or later, but there is no java on PATH: install a JDK or set JAVA_HOME.\n",
    )


@pytest.mark.parametrize(
    ("version_line", "version"),
    [
        ('openjdk version "11.0.22" 2024-01-16', "11.0.22"),
        ('java version "1.8.0_402"', "1.8.0_402"),
        ('openjdk version "16-ea" 2021-03-16', "16-ea"),
    ],
)
def test_a_java_too_old_for_spark(bin_dir: Path, version_line: str, version: str) -> None:
    path = java(bin_dir / "java", version_line)
    assert run("java", bin_dir) == (
        1,
        "",
        f"Spark needs Java 17 or later, but {path} is Java {version}: " "install a newer JDK or set JAVA_HOME.\n",
    )


def test_a_java_that_does_not_start(bin_dir: Path) -> None:
    path = executable(bin_dir / "java", "echo 'Unable to locate a Java Runtime.' >&2; exit 1")
    assert run("java", bin_dir) == (
        1,
        "",
        f"Spark needs Java 17 or later, and {path} does not tell its version: " "install a JDK or set JAVA_HOME.\n",
    )


def test_java_home_wins_over_path_as_it_does_for_spark(bin_dir: Path, tmp_path: Path) -> None:
    java(bin_dir / "java", 'openjdk version "17.0.15" 2025-04-15')
    home = tmp_path / "jdk 11"
    path = java(home / "bin" / "java", 'openjdk version "11.0.22" 2024-01-16')
    assert run("java", bin_dir, JAVA_HOME=str(home)) == (
        1,
        "",
        f"Spark needs Java 17 or later, but {path} is Java 11.0.22: install a newer JDK or set JAVA_HOME.\n",
    )
    java(path, 'openjdk version "21.0.2" 2024-01-16')
    (bin_dir / "java").unlink()
    assert run("java", bin_dir, JAVA_HOME=str(home)) == (0, "", "")


def test_a_java_home_without_java(bin_dir: Path, tmp_path: Path) -> None:
    java(bin_dir / "java", 'openjdk version "17.0.15" 2025-04-15')
    home = tmp_path / "empty"
    assert run("java", bin_dir, JAVA_HOME=str(home)) == (
        1,
        "",
        f"Spark needs Java 17 or later, but JAVA_HOME is {home} and has no bin/java: "
        "set it to an installed JDK or unset it.\n",
    )


def test_the_first_python_that_is_new_enough(bin_dir: Path) -> None:
    python(bin_dir / "python3", "3.9")
    python(bin_dir / "python3.12", "3.12")
    assert run("python", bin_dir) == (0, "python3.12\n", "")
    python(bin_dir / "python3", "3.13")
    assert run("python", bin_dir) == (0, "python3\n", "")


def test_no_python(bin_dir: Path) -> None:
    assert run("python", bin_dir) == (
        1,
        "",
        "Python 3.11 or later is needed, found none: install one, or name it with PYTHON=/path/to/python3.\n",
    )


@pytest.mark.parametrize("version", ["2.7", "3.10"])
def test_a_python_too_old(bin_dir: Path, version: str) -> None:
    python(bin_dir / "python3", version)
    assert run("python", bin_dir) == (
        1,
        "",
        f"Python 3.11 or later is needed, found Python {version} (python3): "
        "install one, or name it with PYTHON=/path/to/python3.\n",
    )


def test_only_the_python_that_was_named_is_looked_at(bin_dir: Path) -> None:
    python(bin_dir / "python3", "3.12")
    path = python(bin_dir / "old", "3.8")
    assert run("python", bin_dir, PYTHON=str(path)) == (
        1,
        "",
        f"Python 3.11 or later is needed, found Python 3.8 ({path}): "
        "install one, or name it with PYTHON=/path/to/python3.\n",
    )


def test_a_python_without_venv(bin_dir: Path) -> None:
    python(bin_dir / "python3", "3.11", venv=False)
    assert run("python", bin_dir) == (
        1,
        "",
        "Python 3.11 (python3) lacks the venv module: "
        "install it (on Debian and Ubuntu the package python3.11-venv).\n",
    )


def test_a_word_it_does_not_know(bin_dir: Path) -> None:
    assert run("scala", bin_dir) == (1, "", "usage: tools/prerequisites.sh python|java\n")
