"""The round trip of a release: what passes, what is found, its output; and two real releases."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafka_records import registry
from kafka_records.consumer_offsets import offset_commit
from kafka_records.consumer_offsets.offset_commit import OffsetCommitValue
from kafka_records_codegen.evolution import kafka_releases
from kafka_records_codegen.evolution.kafka_releases import fetch_specs
from kafka_records_codegen.generate import generate
from tools import round_trip_release
from tools.random_messages import random_message
from tools.round_trip_release import Report, failures_of, main, round_trip

ROOT = Path(__file__).resolve().parents[2]

BALL = {
    "type": "data",
    "name": "Ball",
    "validVersions": "0-1",
    "flexibleVersions": "1+",
    "fields": [
        {"name": "Name", "type": "string", "versions": "0+"},
        {"name": "Spots", "type": "[]int32", "versions": "1+", "tag": 0, "taggedVersions": "1+"},
    ],
}
HEAD = "release  specs  messages  versions   sent  failed    load  generate  import  round trip\n"


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Release 9.9.9: one module that should have one spec, and does not have it yet. Returns its folder."""
    monkeypatch.setenv("KAFKA_RECORDS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(round_trip_release, "SPEC_COUNTS", {"9.9.9": {"kafka-balls": 1}})
    monkeypatch.setattr(kafka_releases, "MODULES", {"9.9.9": ("kafka-balls",)})
    folder = tmp_path / "cache" / "specs" / "9.9.9" / "kafka_balls"
    folder.mkdir(parents=True)
    return folder


def write(folder: Path, **changes: Any) -> None:
    spec = {**BALL, **changes}
    (folder / f"{spec['name']}.json").write_text(json.dumps(spec), encoding="utf-8")


class TestCommand:
    def test_a_release_that_passes(self, release: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(release)
        before = set(sys.modules)
        assert main(["9.9.9", "--examples", "3"]) == 0
        out, err = capsys.readouterr()
        assert re.fullmatch(
            re.escape(HEAD) + r"9\.9\.9        1         1         2      8       0(  +\d+\.\d s){4}\n", out
        )
        assert err == ""
        assert [name for name in set(sys.modules) - before if "9_9_9" in name] == []

    def test_the_package_is_kept_when_asked_for(self, release: Path, tmp_path: Path) -> None:
        write(release)
        assert main(["--all", "--examples", "0", "--out", str(tmp_path / "kept")]) == 0
        assert (tmp_path / "kept" / "kafka_9_9_9" / "kafka_balls" / "ball.py").is_file()

    def test_files_of_somebody_else_stay(
        self, release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(release)
        mine = tmp_path / "kept" / "kafka_9_9_9" / "mine.py"
        mine.parent.mkdir(parents=True)
        mine.write_text("x = 1\n", encoding="utf-8")
        assert main(["9.9.9", "--out", str(tmp_path / "kept")]) == 2
        assert "contains files that kafka-records-codegen did not write" in capsys.readouterr().err
        assert mine.read_text(encoding="utf-8") == "x = 1\n"

    def test_a_spec_too_many(self, release: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(release)
        write(release, name="Bat")
        assert main(["9.9.9"]) == 1
        assert capsys.readouterr().out.endswith("\n  kafka-balls 9.9.9 holds 2 specs, 1 are known\n")

    def test_a_spec_that_does_not_load(self, release: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(release, validVersions="0+")
        assert main(["9.9.9"]) == 1
        row, failure, *excerpt = capsys.readouterr().out.splitlines()[1:]
        assert re.fullmatch(
            r"9\.9\.9        1         0         0      0       1   +\d\.\d s         -       -           -", row
        )
        assert "Ball.json:1:51: validVersions: a message needs a highest version" in failure
        assert [line.lstrip()[0] for line in excerpt] == ["{", "^"]

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            ([], "name releases, or give --all"),
            (["9.9.9", "--all"], "name releases, or give --all"),
            (["9.9.9", "1.0"], "not a release this knows: 1.0; it knows 9.9.9"),
            (["--all", "--examples", "-1"], "--examples takes 0 or more"),
        ],
    )
    def test_wrong_usage(
        self, release: Path, arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
        assert capsys.readouterr().err.splitlines()[-1] == f"round_trip_release.py: error: {complaint}"

    def test_no_maven(self, release: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        release.rmdir()
        monkeypatch.setenv("PATH", "")
        assert main(["9.9.9"]) == 2
        assert capsys.readouterr().err.splitlines() == [
            "Fetching kafka-balls 9.9.9 by Maven (1 of 1)",
            "Maven (mvn) is needed to fetch Kafka's jars, but it is not on the PATH: install it",
        ]

    def test_it_starts_as_a_script(self) -> None:
        script = ROOT / "tools" / "round_trip_release.py"
        done = subprocess.run([sys.executable, str(script), "--help"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert "exit status: 0 all pass" in done.stdout

    def test_a_package_that_cannot_be_imported(
        self, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(release)

        def broken(*arguments: Any) -> dict[str, str]:
            files = generate(*arguments)
            return files | {"kafka_balls/ball.py": files["kafka_balls/ball.py"] + "import no_such_module\n"}

        monkeypatch.setattr(round_trip_release, "generate", broken)
        report = round_trip("9.9.9", release.parent, tmp_path, 1)
        assert report.failures == [
            "kafka_balls/ball.py cannot be imported: ModuleNotFoundError: No module named 'no_such_module'",
            "Ball has no class: ModuleNotFoundError: No module named 'no_such_module'",
        ]

    @pytest.mark.parametrize(
        ("change", "failure"),
        [
            (
                ('"array"', '"arrow"'),
                "kafka_balls/ball.avsc is no Avro schema: UnknownType: {'type': 'arrow', 'items': 'int'}",
            ),
            (
                ('"namespace": "kafka_9_9_9.kafka_balls.ball"', '"namespace": "one"'),
                "the Avro schemas do not go together: "
                "SchemaParseException: redefined named type: one.UnknownTaggedField",
            ),
        ],
    )
    def test_an_avro_schema_that_is_none(
        self, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], failure: str
    ) -> None:
        write(release)

        def broken(*arguments: Any) -> dict[str, str]:
            files = generate(*arguments)
            text = files["kafka_balls/ball.avsc"].replace(*change)
            other = text.replace('"Ball"', '"Bat"')
            return files | {"kafka_balls/ball.avsc": text, "kafka_balls/bat.avsc": other}

        monkeypatch.setattr(round_trip_release, "generate", broken)
        assert round_trip("9.9.9", release.parent, tmp_path, 0).failures[0] == failure


class TestFailures:
    MESSAGE = OffsetCommitValue(5, 1, "m", 7)
    BYTES = "0000000000000005" "00000001" "0001" "6d" "0000000000000007"

    def found(self) -> list[str]:
        return list(failures_of(self.MESSAGE, 3, plain=True))

    def test_none(self) -> None:
        assert self.found() == []

    def test_a_writer_that_writes_something_else(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(offset_commit._WRITERS_OFFSET_COMMIT_VALUE, 3, lambda message: b"\0")
        assert self.found() == [
            f"encode gives 00, expected {self.BYTES}",
            f"the fast writer gives 00, expected {self.BYTES}",
        ]

    def test_a_writer_that_gives_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delitem(offset_commit._WRITERS_OFFSET_COMMIT_VALUE, 3)
        assert self.found() == [f"the fast writer gives GaveUpError('encode'), expected {self.BYTES}"]

    def test_a_reader_that_gives_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delitem(offset_commit._READERS_OFFSET_COMMIT_VALUE, 3)
        assert self.found() == [f"the fast reader gives GaveUpError('decode'), expected {self.MESSAGE!r}"]

    def test_a_message_that_cannot_be_written(self) -> None:
        message = OffsetCommitValue(2**63, 1, "m", 7)
        assert list(failures_of(message, 3, plain=True)) == [
            "ValueOutOfRange: OffsetCommitValue v3: offset is 9223372036854775808, but int64 holds "
            "-9223372036854775808 to 9223372036854775807"
        ]

    def test_a_message_that_avro_changes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        row = {"offset": 5, "leader_epoch": 1, "metadata": "m", "expire_timestamp": -1, "unknown_tagged_fields": []}
        row |= {"commit_timestamp": 8, "topic_id": "AAAAAAAAAAAAAAAAAAAAAA"}
        monkeypatch.setattr(round_trip_release, "to_avro", lambda message: row)
        assert self.found() == [f"Avro gives {OffsetCommitValue(5, 1, 'm', 8)!r}, expected {self.MESSAGE!r}"]

    def test_long_values_are_cut(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(offset_commit._WRITERS_OFFSET_COMMIT_VALUE, 3, lambda message: bytes(500))
        assert self.found()[0] == f"encode gives {'00' * 100}… (1000 characters), expected {self.BYTES}"


class TestRandomMessages:
    def test_the_same_seed_gives_the_same_message(self) -> None:
        cls = registry.message_class("GroupMetadataValue")
        first, second = (random_message(cls, 4, random.Random("a"), plain=False) for _ in range(2))
        assert first == second
        assert first != random_message(cls, 4, random.Random("b"), plain=False)

    def test_they_use_what_a_version_has(self) -> None:
        cls = registry.message_class("OffsetCommitValue")
        messages = [random_message(cls, 4, random.Random(seed), plain=seed < 200) for seed in range(400)]
        assert {message.expire_timestamp for message in messages} == {-1}
        assert len({message.topic_id for message in messages}) > 100
        assert not any(message.unknown_tagged_fields for message in messages[:200])
        assert sum(bool(message.unknown_tagged_fields) for message in messages) > 50


@pytest.mark.maven
@pytest.mark.matrix
@pytest.mark.skipif(shutil.which("mvn") is None, reason="Maven fetches Kafka's jars and is not installed")
@pytest.mark.parametrize(
    ("release", "counts"), [("2.8.2", (158, 158, 536)), ("4.3.1", (281, 273, 739))], ids=["2.8.2", "4.3.1"]
)
def test_all_specs_of_a_release(release: str, counts: tuple[int, int, int], tmp_path: Path) -> None:
    report: Report = round_trip(release, fetch_specs(release), tmp_path, 4)
    assert report.failures == []
    assert (report.specs, report.messages, report.versions) == counts
    assert report.sent == 5 * report.versions
