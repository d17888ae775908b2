"""Archives of classes: each is for one release and one Java, and made once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools import class_archives
from tools.class_archives import archive_options


def test_an_archive_is_for_one_release_and_one_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_RECORDS_CACHE", str(tmp_path))
    monkeypatch.delenv("JDK_JAVA_OPTIONS", raising=False)
    java = tmp_path / "java"
    java.touch()
    os.utime(java, (1000, 1000))
    assert archive_options("broker", "4.3.1", str(java)) == []
    archive = tmp_path / "class_archives" / "broker-4.3.1-1000.jsa"
    asked: list[str] = []

    def run() -> None:
        asked.append(os.environ["JDK_JAVA_OPTIONS"])
        Path(asked[0].partition("-XX:ArchiveClassesAtExit=")[2]).write_bytes(b"classes")

    assert class_archives.make("broker", "4.3.1", str(java), run)
    assert not class_archives.make("broker", "4.3.1", str(java), run)
    assert len(asked) == 1
    assert "JDK_JAVA_OPTIONS" not in os.environ
    assert archive_options("broker", "4.3.1", str(java)) == [f"-XX:SharedArchiveFile={archive}", "-Xlog:disable"]
    assert archive_options("broker", "4.2.0", str(java)) == []
    os.utime(java, (2000, 2000))
    assert archive_options("broker", "4.3.1", str(java)) == []
    assert archive_options("broker", "4.3.1", None) == []
