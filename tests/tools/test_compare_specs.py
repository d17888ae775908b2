"""Which differences the comparison finds, how it prints them, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.evolution import kafka_releases
from tools import compare_specs

ROOT = Path(__file__).resolve().parents[2]


def ball_key(**changes: Any) -> dict[str, Any]:
    return {
        "type": "coordinator-key",
        "apiKey": 0,
        "name": "BallKey",
        "validVersions": "0",
        "flexibleVersions": "none",
        "fields": [{"name": "Id", "type": "uuid", "versions": "0"}],
        **changes,
    }


def ball_value(fields: list[dict[str, Any]] | None = None, **changes: Any) -> dict[str, Any]:
    return {
        "type": "coordinator-value",
        "apiKey": 0,
        "name": "BallValue",
        "validVersions": "0-1",
        "flexibleVersions": "1+",
        "fields": fields or [{"name": "Size", "type": "int32", "versions": "0+"}],
        **changes,
    }


def spots(**changes: Any) -> dict[str, Any]:
    members = [{"name": "X", "type": "int16", "versions": "0+", **changes}]
    return {"name": "Spots", "type": "[]Spot", "versions": "0+", "fields": members}


def write(folder: Path, *specs: dict[str, Any]) -> Path:
    folder.mkdir(parents=True)
    for spec in specs:
        (folder / f"{spec['name']}.json").write_text(json.dumps(spec), encoding="utf-8")
    return folder


def differences(tmp_path: Path, ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> list[str]:
    write(tmp_path / "ours" / "balls", *ours)
    write(tmp_path / "theirs" / "kafka_group_coordinator", *theirs)
    found = compare_specs.compare(
        compare_specs.read_specs(tmp_path / "ours"), compare_specs.read_specs(tmp_path / "theirs")
    )
    return [str(difference) for difference in found]


class TestCompare:
    def test_what_changes_no_byte_is_no_difference(self, tmp_path: Path) -> None:
        ours = ball_value([{"name": "Size", "type": "int32", "versions": "0+", "default": 0, "about": "In mm."}])
        theirs = ball_value([{"type": "int32", "name": "Size", "versions": "0-7", "default": "0x0"}])
        assert differences(tmp_path, [ball_key(), ours], [ball_key(), theirs]) == []

    @pytest.mark.parametrize(
        ("changes", "line"),
        [
            ({"type": "int64"}, "type: ours int32, theirs int64"),
            ({"versions": "1+"}, "versions: ours 0-1, theirs 1"),
            ({"default": "-1"}, "default: ours 0, theirs -1"),
            ({"ignorable": True}, "ignorable: ours false, theirs true"),
        ],
    )
    def test_a_field(self, tmp_path: Path, changes: dict[str, Any], line: str) -> None:
        theirs = ball_value([{"name": "Size", "type": "int32", "versions": "0+", **changes}])
        found = differences(tmp_path, [ball_key(), ball_value()], [ball_key(), theirs])
        assert found == [f"BallValue: Size: {line}"]

    def test_a_tag(self, tmp_path: Path) -> None:
        theirs = [{"name": "Size", "type": "int32", "versions": "0+", "tag": 0, "taggedVersions": "1+"}]
        assert differences(tmp_path, [ball_key(), ball_value()], [ball_key(), ball_value(theirs)]) == [
            "BallValue: Size: tag: ours none, theirs 0",
            "BallValue: Size: taggedVersions: ours none, theirs 1",
        ]

    def test_a_default_that_is_null_and_one_that_is_empty(self, tmp_path: Path) -> None:
        field = {"name": "Name", "type": "string", "versions": "0+", "nullableVersions": "0+"}
        found = differences(
            tmp_path,
            [ball_key(), ball_value([{**field, "default": None}])],
            [ball_key(), ball_value([{**field, "default": "null"}])],
        )
        assert found == ["BallValue: Name: default: ours '', theirs None"]

    def test_inside_structs(self, tmp_path: Path) -> None:
        ours, theirs = ball_value([spots()]), ball_value([spots(mapKey=True)])
        found = differences(tmp_path, [ball_key(), ours], [ball_key(), theirs])
        assert found == ["BallValue: Spots.X: mapKey: ours false, theirs true"]

    def test_an_inline_struct_and_a_common_one(self, tmp_path: Path) -> None:
        inline = spots()
        common = {"name": "Spot", "versions": "0+", "fields": inline["fields"]}
        bare = {"name": "Spots", "type": "[]Spot", "versions": "0+"}
        ours, theirs = ball_value([inline]), ball_value([bare], commonStructs=[common])
        found = differences(tmp_path, [ball_key(), ours], [ball_key(), theirs])
        assert found == ["BallValue: commonStructs: ours none, theirs Spot"]

    def test_fields_that_one_side_lacks(self, tmp_path: Path) -> None:
        size = {"name": "Size", "type": "int32", "versions": "0+"}
        colour = {"name": "Colour", "type": "string", "versions": "0+"}
        weight = {"name": "Weight", "type": "int32", "versions": "0+"}
        found = differences(
            tmp_path, [ball_key(), ball_value([size, colour])], [ball_key(), ball_value([weight, size])]
        )
        assert found == [
            "BallValue: Colour: field: ours present, theirs absent",
            "BallValue: Weight: field: ours absent, theirs present",
        ]

    def test_the_order_of_fields(self, tmp_path: Path) -> None:
        fields = [
            {"name": "Size", "type": "int32", "versions": "0+"},
            {"name": "Mass", "type": "int32", "versions": "0+"},
        ]
        found = differences(tmp_path, [ball_key(), ball_value(fields)], [ball_key(), ball_value(fields[::-1])])
        assert found == ["BallValue: order: ours Size, Mass, theirs Mass, Size"]

    def test_attributes_of_the_message(self, tmp_path: Path) -> None:
        theirs = [ball_key(apiKey=3), ball_value(apiKey=3, validVersions="0-2", flexibleVersions="2+")]
        assert differences(tmp_path, [ball_key(), ball_value()], theirs)[:4] == [
            "BallKey: apiKey: ours 0, theirs 3",
            "BallValue: apiKey: ours 0, theirs 3",
            "BallValue: validVersions: ours 0-1, theirs 0-2",
            "BallValue: flexibleVersions: ours 1, theirs 2",
        ]

    def test_records_that_one_side_lacks(self, tmp_path: Path) -> None:
        bat_key = {**ball_key(apiKey=1), "name": "BatKey"}
        bat_value = {**ball_value(apiKey=1), "name": "BatValue"}
        assert differences(tmp_path, [ball_key(), ball_value()], [bat_key, bat_value]) == [
            "BallKey: message: ours present, theirs absent",
            "BallValue: message: ours present, theirs absent",
            "BatKey: message: ours absent, theirs present",
            "BatValue: message: ours absent, theirs present",
        ]

    def test_other_messages_of_theirs_do_not_matter(self, tmp_path: Path) -> None:
        write(tmp_path / "ours" / "balls", ball_key(), ball_value())
        theirs = write(tmp_path / "theirs" / "kafka_group_coordinator", ball_key(), ball_value()).parent
        write(theirs / "kafka_clients", ball_value(type="data", name="Match"))
        specs = compare_specs.read_specs(tmp_path / "ours"), compare_specs.read_specs(theirs)
        assert list(compare_specs.compare(*specs)) == []


class TestCommand:
    @pytest.fixture
    def ours(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Our specs; the cache holds the same as those of 4.3.1."""
        released = tmp_path / "cache" / "specs" / "4.3.1"
        for module in kafka_releases.MODULES["4.3.1"]:
            (released / kafka_releases.folder_name(module)).mkdir(parents=True)
        for spec in (ball_key(), ball_value()):
            path = released / "kafka_group_coordinator" / f"{spec['name']}.json"
            path.write_text(json.dumps(spec), encoding="utf-8")
        monkeypatch.setenv("KAFKA_RECORDS_CACHE", str(tmp_path / "cache"))
        return tmp_path / "ours"

    def test_no_difference(self, ours: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(ours / "balls", ball_key(), ball_value())
        assert compare_specs.main(["--specs", str(ours), "--release", "4.3.1"]) == 0
        assert capsys.readouterr() == ("", "2 messages of ours, 2 of Kafka 4.3.1: no difference\n")

    def test_a_difference(self, ours: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(ours / "balls", ball_key(), ball_value(validVersions="0-2"))
        assert compare_specs.main(["--specs", str(ours), "--release", "4.3.1"]) == 1
        lines = [
            "BallValue: validVersions: ours 0-2, theirs 0-1",
            "BallValue: flexibleVersions: ours 1-2, theirs 1",
            "BallValue: Size: versions: ours 0-2, theirs 0-1",
        ]
        expected = "\n".join([*lines, ""]), "2 messages of ours, 2 of Kafka 4.3.1: 3 differences\n"
        assert capsys.readouterr() == expected

    def test_specs_that_do_not_load(self, ours: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(ours / "balls", ball_key())
        assert compare_specs.main(["--specs", str(ours)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert "no coordinator-value with apiKey 0 in this folder" in err

    def test_without_maven(
        self, ours: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(ours / "balls", ball_key(), ball_value())
        monkeypatch.setenv("PATH", "")
        assert compare_specs.main(["--specs", str(ours), "--release", "4.2.0"]) == 2
        assert capsys.readouterr() == (
            "",
            "Fetching kafka-clients 4.2.0 by Maven (1 of 8)\n"
            "Maven (mvn) is needed to fetch Kafka's jars, but it is not on the PATH: install it\n",
        )

    def test_runs_as_a_script_and_shows_examples(self) -> None:
        command = [sys.executable, str(ROOT / "tools" / "compare_specs.py"), "--help"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT.parent)
        assert "examples:\n  tools/compare_specs.py " in done.stdout
