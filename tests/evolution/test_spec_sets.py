"""What can be compared, the names of its files, and the messages if it cannot be read."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from kafka_records_codegen.evolution import kafka_releases
from kafka_records_codegen.evolution.comparing import compare
from kafka_records_codegen.evolution.spec_sets import UnusableSpecs, read_spec_set
from kafka_records_codegen.spec.violations import SpecErrors
from tests.evolution.spec_texts import folder, git, key, request, value

NOT_THERE = """\
#!/bin/sh
echo "[ERROR] Failed to execute goal: Could not find artifact org.apache.kafka:x:jar:9.9.9"
exit 1
"""
NO_NETWORK = """\
#!/bin/sh
echo "[ERROR] Failed to execute goal: Could not transfer artifact: Unknown host"
exit 1
"""


def jar(path: Path, *specs: dict[str, object], place: str = "common/message") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "")
        for spec in specs:
            archive.writestr(f"{place}/{spec['name']}.json", json.dumps(spec))
    return path


def unusable(word: str, other: str) -> str:
    with pytest.raises(UnusableSpecs) as caught:
        read_spec_set(word, other)
    return str(caught.value)


class TestFoldersAndJars:
    def test_a_folder(self, tmp_path: Path) -> None:
        found = read_spec_set(str(folder(tmp_path / "specs" / "teams", key(), value()).parent), "")
        assert sorted(found.loaded.files) == ["TeamKey", "TeamValue"]
        assert found.files["teams/TeamKey.json"] == str(tmp_path / "specs" / "teams" / "TeamKey.json")

    def test_a_jar(self, tmp_path: Path) -> None:
        path = jar(tmp_path / "kafka-clients-9.9.9.jar", request())
        found = read_spec_set(str(path), "")
        assert found.files == {"kafka_clients/AskRequest.json": f"{path}!/common/message/AskRequest.json"}

    def test_a_folder_of_jars(self, tmp_path: Path) -> None:
        jar(tmp_path / "kafka-clients-9.9.9.jar", request())
        jar(tmp_path / "kafka-group-coordinator-9.9.9.jar", key(), value())
        jar(tmp_path / "slf4j-api-2.0.jar")
        assert sorted(read_spec_set(str(tmp_path), "").loaded.files) == ["AskRequest", "TeamKey", "TeamValue"]

    @pytest.mark.parametrize(
        ("names", "release"),
        [
            (["kafka-clients-3.5.2.jar", "kafka_2.13-3.5.2.jar"], "3.5.2"),
            (["kafka-clients-3.5.2.jar", "kafka_2.13-3.9.1.jar"], None),
            (["kafka-clients-7.5.0-ccs.jar"], None),
            (["acme-3.5.2.jar"], None),
        ],
    )
    def test_jars_of_kafka_say_their_release(self, tmp_path: Path, names: list[str], release: str | None) -> None:
        for name, spec in zip(names, (request(), request(apiKey=41, name="TellRequest")), strict=False):
            jar(tmp_path / name, spec)
        jar(tmp_path / "kafka-tools-1.0.0.jar")
        assert read_spec_set(str(tmp_path), "").release == release

    def test_what_cannot_be_read(self, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        (tmp_path / "text.jar").write_text("no jar", encoding="utf-8")
        other = jar(tmp_path / "other-1.jar")
        assert "no specs in this folder or below" in unusable(str(tmp_path / "empty"), "")
        assert ": not a jar; give a folder of specs" in unusable(str(tmp_path / "text.jar"), "")
        assert f"{other}: contains no specs. Kafka's are in common/message of" in unusable(str(other), "")

    def test_specs_that_are_refused_are_called_by_the_name_of_the_jar(self, tmp_path: Path) -> None:
        path = jar(tmp_path / "bad-1.jar", request(colour="red"))
        with pytest.raises(SpecErrors) as caught:
            read_spec_set(str(path), "")
        assert caught.value.violations[0].file == f"{path}!/common/message/AskRequest.json"


class TestRevisions:
    @pytest.fixture
    def repository(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A repository whose working tree lacks a version that its only commit has."""
        home = tmp_path / "repository"
        specs = folder(home / "my specs" / "teams", key(), value())
        git(home, "init", "--quiet", "--initial-branch=main")
        git(home, "add", ".")
        git(home, "commit", "--quiet", "-m", "One")
        folder(specs, value(validVersions="1"))
        monkeypatch.chdir(home)
        return home

    @pytest.mark.parametrize("word", ["main", "HEAD", "main:my specs"])
    def test_a_revision_of_the_same_folder(self, repository: Path, word: str) -> None:
        older, newer = read_spec_set(word, "my specs"), read_spec_set("my specs", word)
        (change,) = compare(older, newer).changes
        assert change.rule.name == "record-version-dropped"
        assert change.older_place is not None
        assert change.older_place.file == f"{word.partition(':')[0]}:my specs/teams/TeamValue.json"

    def test_two_revisions(self, repository: Path) -> None:
        git(repository, "commit", "--quiet", "-a", "-m", "Two")
        words = "HEAD~1:my specs", "HEAD:my specs"
        assert len(compare(read_spec_set(*words), read_spec_set(*words[::-1])).changes) == 1

    def test_what_is_no_revision(self, repository: Path) -> None:
        assert "or a git revision in my specs: there is no such revision" in unusable("nine", "my specs")
        said = "If it is a git revision, give a folder in it, as nine:"
        assert said in unusable("nine", "ten")
        assert "../gone is outside the repository" in unusable("main:../gone", "my specs")
        assert "or a git revision in my specs: " in unusable("--output=x", "my specs")

    def test_a_folder_outside_of_git(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
        specs = folder(tmp_path / "specs", key(), value())
        assert unusable("main", str(specs)) == (
            "main: not a folder, a jar, or a release such as 4.3.1; it cannot be a git revision, because "
            f"{specs} is not in a git repository: clone the repository, or give a second folder"
        )

    def test_a_folder_that_was_not_there(self, repository: Path) -> None:
        folder(repository / "new", request())
        assert "new" in unusable("main", "new")


class TestReleases:
    @pytest.fixture
    def maven(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        script = tmp_path / "bin" / "mvn"
        script.parent.mkdir()
        monkeypatch.setenv("PATH", str(script.parent), prepend=":")
        monkeypatch.setenv("KAFKA_RECORDS_CACHE", str(tmp_path / "cache"))
        return script

    def say(self, maven: Path, text: str) -> None:
        maven.write_text(text, encoding="utf-8")
        maven.chmod(0o755)

    def test_a_release_that_does_not_exist(self, maven: Path) -> None:
        self.say(maven, NOT_THERE)
        assert unusable("9.9.9", "").startswith(
            "9.9.9: Maven knows no such release of Kafka; give another release, a folder,"
        )

    def test_without_a_network(self, maven: Path) -> None:
        self.say(maven, NO_NETWORK)
        folder(kafka_releases.cache_folder() / "specs" / "4.2.0" / "kafka_clients", request())
        text = unusable("4.3.1", "")
        assert "Could not transfer artifact: Unknown host" in text
        assert text.endswith("Without a network, give a folder or jars instead; already fetched: 4.2.0")

    def test_a_module_that_a_release_lacks(self, maven: Path) -> None:
        """Its messages are not changes: they were not compared."""
        self.say(maven, NOT_THERE)
        cache = kafka_releases.cache_folder() / "specs"
        for module in kafka_releases.MODULES["4.3.1"]:
            for release in ("4.3.1", "9.9.9"):
                (cache / release / kafka_releases.folder_name(module)).mkdir(parents=True)
        (cache / "9.9.9" / "kafka_streams").rmdir()
        for release in ("4.3.1", "9.9.9"):
            folder(cache / release / "kafka_clients", request())
        folder(cache / "4.3.1" / "kafka_streams", request(name="TellRequest", apiKey=41))
        told: list[str] = []
        older, newer = read_spec_set("4.3.1", "9.9.9"), read_spec_set("9.9.9", "4.3.1", tell=told.append)
        assert told[0] == "Fetching kafka-streams 9.9.9 by Maven (1 of 1)"
        assert any(line.startswith("Maven has no kafka_streams 9.9.9: its messages are left out") for line in told)
        comparison = compare(older, newer)
        assert comparison.changes == ()
        assert "kafka_streams" in comparison.left_out

    def test_modules_of_a_release_that_is_not_listed(self) -> None:
        assert kafka_releases.modules_of("4.4.0") == kafka_releases.MODULES["4.3.1"]
        assert kafka_releases.modules_of("3.6.1") == kafka_releases.MODULES["3.5.2"]
        assert kafka_releases.modules_of("2.1.0") == kafka_releases.MODULES["2.8.2"]
