"""What `make release` refuses, and that wheel and sdist have the same bytes in any folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools import release as tool
from tools.release import NotReady, build, check_changelog, check_same, checksums, main, version

ROOT = Path(__file__).resolve().parents[2]

PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "small"
version = "1.2.3"
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of a project with one module, which replaces this checkout."""
    root = tmp_path / "small"
    root.mkdir()
    (root / "pyproject.toml").write_text(PROJECT)
    (root / "small.py").write_text("")
    (root / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n")
    monkeypatch.setattr(tool, "ROOT", root)
    for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "somebody")
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message=One"]):
        subprocess.run(["git", "-C", str(root), *words], check=True)
    return root


class TestChangelog:
    def test_the_first_heading_is_that_of_the_version_with_a_date(self) -> None:
        check_changelog("# Changelog\n\n## 1.2.3 (2026-11-22)\n\n## 1.2.2 (2026-10-01)\n", "1.2.3")

    @pytest.mark.parametrize(
        ("text", "begins"),
        [
            ("## Unreleased\n\n## 1.2.3 (2026-11-22)\n", "Unreleased"),
            ("## 1.2.3\n", "1.2.3"),
            ("## 1x2.3 (2026-11-22)\n", "1x2.3 (2026-11-22)"),
            ("# Changelog\n", "nothing"),
        ],
    )
    def test_another_heading_is_refused(self, text: str, begins: str) -> None:
        with pytest.raises(NotReady) as refused:
            check_changelog(text, "1.2.3")
        assert str(refused.value) == (
            f"CHANGELOG.md begins with '{begins}' where '1.2.3 (YYYY-MM-DD)' has to be: write it, or try with "
            "--draft"
        )


class TestCommand:
    def test_a_changed_file_is_refused(self, small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (small / "small.py").write_text("changed = True\n")
        assert main(["--draft", "--out", str(tmp_path / "out")]) == 1
        assert capsys.readouterr().err == (
            "not ready: files differ from the last commit, which is what would be built: commit them\n M small.py\n\n"
        )
        assert not (tmp_path / "out").exists()

    def test_a_missing_heading_is_told_before_anything_is_built(
        self, small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert version(small) == "1.2.3"
        assert main(["--out", str(tmp_path / "out")]) == 1
        assert capsys.readouterr().err.startswith("not ready: CHANGELOG.md begins with 'Unreleased'")

    def test_a_build_that_fails_is_told_in_its_own_words(
        self, small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (small / "tools").mkdir()
        (small / "tools" / "jar.py").write_text("")
        subprocess.run(["git", "-C", str(small), "add", "tools"], check=True)
        (small / "pyproject.toml").write_text(PROJECT.replace("1.2.3", "not a version"))
        subprocess.run(["git", "-C", str(small), "commit", "--quiet", "--all", "--message=Two"], check=True)
        assert main(["--draft", "--out", str(tmp_path / "out")]) == 1
        said = capsys.readouterr().err
        assert "ended with status 1:" in said
        assert "Invalid version `not a version`" in said


class TestBuilds:
    def test_another_byte_and_another_name_are_found(self, tmp_path: Path) -> None:
        one, same, other = (tmp_path / name for name in ("one", "same", "other"))
        for file, text in ((one, "a"), (same, "a"), (other, "b")):
            file.write_text(text)
        check_same({"wheel": one}, {"wheel": same})
        with pytest.raises(NotReady, match="wheel has other bytes in a second build"):
            check_same({"wheel": one}, {"wheel": other})
        with pytest.raises(NotReady, match="one build makes wheel and the next sdist"):
            check_same({"wheel": one}, {"sdist": same})

    def test_sums_are_what_sha256sum_takes(self, tmp_path: Path) -> None:
        (tmp_path / "b").write_text("b")
        (tmp_path / "a").write_text("a")
        a, b = (hashlib.sha256(name).hexdigest() for name in (b"a", b"b"))
        assert checksums({"b": tmp_path / "b", "a": tmp_path / "a"}) == f"{a}  a\n{b}  b\n"

    @pytest.mark.slow
    def test_the_wheel_is_the_same_wherever_and_whenever_it_is_built(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wheels = []
        for name, epoch in (("one", "1000000000"), ("another", "1500000000")):
            tree = tmp_path / name / "tree"
            wanted = ("pyproject.toml", "README.md", "LICENSE", "generated", "generator", "spark_udfs")
            for each in wanted:
                copy = shutil.copytree if (ROOT / each).is_dir() else shutil.copyfile
                (tree / each).parent.mkdir(parents=True, exist_ok=True)
                copy(ROOT / each, tree / each)
            os.utime(tree / "README.md", (int(epoch), int(epoch)))
            monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
            wheels.append(build(tree, tmp_path / f"{name}-out", "--wheel"))
        check_same(*wheels)
        (wheel,) = wheels[0].values()
        with zipfile.ZipFile(wheel) as packed:
            names = set(packed.namelist())
        assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {
            "kafka_records",
            "kafka_records_codegen",
            "kafka_records_engine",
            "kafka_records_runtime",
            "kafka_records_tables",
        }
        tracked = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files", "generated", "generator", "spark_udfs"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        # The jar is built, not committed: a wheel has it if `make jar` ran before.
        jars = {name for name in names if name.endswith(".jar")}
        assert jars <= {"kafka_records_engine/spark/kafka-records.jar"}
        assert {name for name in names if ".dist-info" not in name} - jars == {
            each.partition("/")[2] for each in tracked
        }

    @pytest.mark.matrix
    @pytest.mark.slow
    def test_the_last_commit_can_be_released(self, tmp_path: Path) -> None:
        script = str(ROOT / "tools" / "release.py")
        done = subprocess.run(
            [sys.executable, script, "--draft", "--out", str(tmp_path)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert {file.suffix for file in tmp_path.iterdir()} == {".whl", ".gz", ""}
