"""The jar is compiled only if its inputs have changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tools import jar


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The output folders of compilations by a fake compiler, which writes one class. Sources and jar are copies."""
    folders: list[Path] = []

    def compile_java(what: str, sources: list[Path], classpath: list[Path], classes: Path, options: object) -> None:
        folders.append(classes)
        (classes / "One.class").write_bytes(b"".join(path.read_bytes() for path in sources))

    monkeypatch.setattr(jar, "compile_java", compile_java)
    monkeypatch.setattr(jar, "ROOT", tmp_path)
    monkeypatch.setattr(jar, "JAR", tmp_path / "made.jar")
    for name, place in (("SOURCES", "java"), ("SCHEMAS", "jvm_schemas.txt"), (None, "LICENSE")):
        path = tmp_path / place
        if name:
            monkeypatch.setattr(jar, name, path)
        if place == "java":
            path.mkdir()
            path /= "One.java"
        path.write_text(f"the text of {place}", encoding="utf-8")
    return folders


def test_the_same_sources_are_not_compiled_again(made: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert jar.digest_in(jar.JAR) is None
    assert jar.main([]) == 0
    first = jar.JAR.read_bytes()
    assert (len(made), jar.digest_in(jar.JAR)) == (1, jar.digest())
    capsys.readouterr()
    assert jar.main([]) == 0
    assert (len(made), capsys.readouterr().out, jar.JAR.read_bytes()) == (1, "made.jar: up to date\n", first)


@pytest.mark.parametrize("name", ["java/One.java", "jvm_schemas.txt", "LICENSE", "java/Two.java"])
def test_what_changed_is_compiled(made: list[Path], name: str) -> None:
    assert jar.main([]) == 0
    before = jar.digest()
    (jar.ROOT / name).write_text("other", encoding="utf-8")
    assert jar.main([]) == 0
    assert len(made) == 2
    assert jar.digest_in(jar.JAR) == jar.digest() != before


def test_a_check_compiles(made: list[Path]) -> None:
    assert jar.main(["--check"]) == 1
    assert jar.main([]) == 0
    assert jar.main(["--check"]) == 0
    jar.write({"One.class": b"other", "META-INF/MANIFEST.MF": f"Made-Of: {jar.digest()}\r\n".encode()}, jar.JAR)
    assert (jar.main([]), jar.main(["--check"])) == (0, 1)
    assert len(made) == 4


def test_a_jar_that_cannot_be_read_is_made_again(made: list[Path]) -> None:
    jar.JAR.write_bytes(b"no archive")
    assert jar.digest_in(jar.JAR) is None
    shutil.make_archive(str(jar.JAR.with_suffix("")), "zip", jar.SOURCES)
    jar.JAR.with_suffix(".zip").replace(jar.JAR)
    assert jar.digest_in(jar.JAR) is None
    assert jar.main([]) == 0
    assert jar.digest_in(jar.JAR) == jar.digest()
