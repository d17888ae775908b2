"""How specs are taken from a release's jars: fetched once, from the right folders, old ones corrected."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kafka_records_codegen.evolution.kafka_releases import (
    MODULES,
    FetchError,
    cache_folder,
    extract_specs,
    fetch_jar,
    fetch_specs,
    folder_name,
    is_older_dialect,
    modules_of,
)
from tools.kafka_releases import SPEC_COUNTS

ROOT = Path(__file__).resolve().parents[2]

SPEC = """\
// A comment with "quotes" and a // inside.
{
  "type": "data", "name": "Ball", "validVersions": "0", "flexibleVersions": "none",
  "fields": [ { "name": "Url", "type": "string", "versions": "0", "about": "Such as http://ball" } ]
}
"""

# A fake Maven, which makes a jar with one spec, and records its run.
FAKE_MAVEN = """\
#!/usr/bin/env python3
import sys, zipfile
from pathlib import Path
options = dict(argument[2:].split("=", 1) for argument in sys.argv if argument.startswith("-D"))
group, module, version = options["artifact"].split(":")
with (Path(__file__).parent / "runs").open("a") as runs:
    print(group, module, version, file=runs)
with zipfile.ZipFile(Path(options["outputDirectory"]) / f"{module}-{version}.jar", "w") as jar:
    jar.writestr(f"common/message/{module}.json", '{"flexibleVersions": "none"}')
"""


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake Maven that needs no network. Returns the file with one line per run."""
    script = tmp_path / "bin" / "mvn"
    script.parent.mkdir()
    script.write_text(FAKE_MAVEN, encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent), prepend=":")
    monkeypatch.setenv("KAFKA_RECORDS_CACHE", str(tmp_path / "cache"))
    return script.parent / "runs"


class TestFetching:
    def test_one_folder_per_module(self, maven: Path, tmp_path: Path) -> None:
        told: list[str] = []
        root = fetch_specs("2.8.2", told.append)
        assert root == tmp_path / "cache" / "specs" / "2.8.2"
        assert sorted(path.relative_to(root).as_posix() for path in root.rglob("*.json")) == [
            "kafka_2_13/kafka_2.13.json",
            "kafka_clients/kafka-clients.json",
            "kafka_metadata/kafka-metadata.json",
            "kafka_raft/kafka-raft.json",
            "kafka_streams/kafka-streams.json",
        ]
        assert told[0] == "Fetching kafka-clients 2.8.2 by Maven (1 of 5)"
        assert len(told) == 5
        assert maven.read_text(encoding="utf-8").split("\n")[0] == "org.apache.kafka kafka-clients 2.8.2"

    def test_only_what_is_missing(self, maven: Path) -> None:
        root = fetch_specs("2.8.2")
        (root / "kafka_raft" / "kafka-raft.json").unlink()
        (root / "kafka_raft").rmdir()
        maven.unlink()
        told: list[str] = []
        fetch_specs("2.8.2", told.append)
        fetch_specs("2.8.2", told.append)
        assert told == ["Fetching kafka-raft 2.8.2 by Maven (1 of 1)"]
        assert maven.read_text(encoding="utf-8") == "org.apache.kafka kafka-raft 2.8.2\n"

    def test_what_maven_says_when_it_fails(self, maven: Path, tmp_path: Path) -> None:
        (maven.parent / "mvn").write_text("#!/bin/sh\necho no such artifact\nexit 1\n", encoding="utf-8")
        with pytest.raises(FetchError) as caught:
            fetch_jar("kafka-clients", "2.8.2", tmp_path)
        assert str(caught.value) == "Maven could not fetch kafka-clients 2.8.2:\nno such artifact"

    def test_a_maven_that_delivers_nothing(self, maven: Path, tmp_path: Path) -> None:
        (maven.parent / "mvn").write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
        with pytest.raises(FetchError, match=r"Maven could not fetch kafka-raft 4\.0\.0:"):
            fetch_jar("kafka-raft", "4.0.0", tmp_path)

    def test_a_failure_leaves_no_folder_behind(self, maven: Path) -> None:
        (maven.parent / "mvn").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
        with pytest.raises(FetchError):
            fetch_specs("2.8.2")
        assert list((cache_folder() / "specs").iterdir()) == []

    def test_two_runs_at_once_have_one_maven_at_a_time(self, maven: Path) -> None:
        script = maven.parent / "mvn"
        alone = "import os, time\nos.close(os.open(sys.argv[0] + '.runs', os.O_CREAT | os.O_EXCL))\ntime.sleep(0.1)\n"
        script.write_text(
            FAKE_MAVEN.replace("options = ", f"{alone}options = ", 1) + "os.unlink(sys.argv[0] + '.runs')\n",
            encoding="utf-8",
        )
        fetched = f"from {fetch_specs.__module__} import fetch_specs; print(fetch_specs('2.8.2'))"
        program = [sys.executable, "-c", fetched]
        runs = [
            subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for _ in range(2)
        ]
        root = cache_folder() / "specs" / "2.8.2"
        assert [run.communicate()[0] for run in runs] == [f"{root}\n"] * 2
        assert {path.name for path in root.iterdir()} == {folder_name(module) for module in MODULES["2.8.2"]}

    def test_a_release_that_is_not_listed(self, maven: Path) -> None:
        """It has the modules of the previous release."""
        root = fetch_specs("4.3.7")
        assert {path.name for path in root.iterdir()} == {folder_name(module) for module in MODULES["4.3.1"]}


def test_modules_are_those_whose_specs_are_counted() -> None:
    counted = {release: set(counts) for release, counts in SPEC_COUNTS.items() if release in MODULES}
    assert {release: set(modules) for release, modules in MODULES.items()} == counted


def test_releases_that_are_not_listed_lack_modules_at_most() -> None:
    for release in SPEC_COUNTS.keys() - MODULES.keys():
        assert set(SPEC_COUNTS[release]) <= set(modules_of(release))


class TestCache:
    def test_where_it_is(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("KAFKA_RECORDS_CACHE", raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert cache_folder() == tmp_path / "kafka-records"
        monkeypatch.setenv("KAFKA_RECORDS_CACHE", str(tmp_path / "here"))
        assert cache_folder() == tmp_path / "here"

    def test_folders_are_identifiers(self) -> None:
        names = {folder_name(module) for modules in MODULES.values() for module in modules}
        assert all(name.isidentifier() for name in names)
        assert folder_name("kafka_2.13") == "kafka_2_13"


def test_releases_before_4_need_the_older_dialect() -> None:
    assert [release for release in MODULES if is_older_dialect(release)] == ["2.8.2", "3.5.2", "3.7.2", "3.9.1"]


class TestExtracting:
    def test_specs_only(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "some.jar", "w") as jar:
            jar.writestr("common/message/Ball.json", SPEC)
            jar.writestr("common/metadata/Bat.json", SPEC)
            jar.writestr("message/Net.json", SPEC)
            jar.writestr("common/message/README.md", "not this")
            jar.writestr("other/Thing.json", "{")
        extract_specs(tmp_path / "some.jar", tmp_path / "out")
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["Ball.json", "Bat.json", "Net.json"]
        assert (tmp_path / "out" / "Net.json").read_text(encoding="utf-8") == SPEC
