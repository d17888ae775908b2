"""How our specs follow those of a release: what is taken over, what stays ours, and when the run stops."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka_records_codegen.evolution.comparing import compare
from kafka_records_codegen.evolution.spec_sets import SpecSet, read_spec_set
from kafka_records_codegen.loader import load
from kafka_records_tables.tables.checking.release_versions import RELEASES
from tools.follow import enumerations, kept_lists
from tools.follow.__main__ import _arguments, _followed, main
from tools.follow.concerned import tables_of
from tools.follow.page import page
from tools.follow.planning import plan, unwritten
from tools.follow.refusals import FollowError
from tools.follow.spec_form import spec_text, split_head
from tools.follow.vectors import Differences, Reason
from tools.kafka_enums import ENUMS, Constant

ROOT = Path(__file__).resolve().parents[2]

HEAD = "// Tells how many there are.\n//\n// - Version 0 (4.1): count.\n"


def field(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "int32", "versions": "0+", "about": f"Our words for {name}.", **more}


def spec(name: str, fields: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    kind = {"Key": "coordinator-key", "lue": "coordinator-value"}.get(name[-3:], "request")
    start = {"apiKey": 5, "type": kind, "name": name, "validVersions": "0", "flexibleVersions": "0+"}
    return {**start, **({"flexibleVersions": "none"} if kind.endswith("key") else {}), **more, "fields": fields}


def write(folder: Path, *specs: dict[str, Any], head: str = HEAD) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for each in specs:
        (folder / f"{each['name']}.json").write_text(spec_text(head, each), encoding="utf-8")
    return folder.parent


TWO = field("Two", versions="1+")

BY_HAND = """\
{
  "apiKey": 5, "type": "request", "listeners": ["broker"], "name": "TellRequest",
  "validVersions": "0",
  "flexibleVersions": "0+",
  "fields": [
    { "name": "Count", "type": "int32",
      "versions": "0+",
      "default": -1, "about": "Our words for Count." },

    { "name": "Sum", "type": "int32", "versions": "0+", "default": -1, "about": "Our words for Sum." },
    { "name": "Rest", "type": "int32",
      "versions": "0+", "default": -1, "about": "Our words for Rest." }
  ] }
"""


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    write(tmp_path / "ours" / "rpc", spec("TellRequest", [field("Count", default=-1)], listeners=["broker"]))
    return write(
        tmp_path / "ours" / "consumer_offsets",
        spec("BallKey", [field("Id")]),
        spec("BallValue", [field("Size")], validVersions="0-1"),
    )


def follow(ours: Path, theirs: Path, title: str = "9.9") -> list[str]:
    """Bring `ours` up to `theirs`; returns the places without a description."""
    plan(ours, read_spec_set(str(theirs), str(ours)), title).carry_out(ours)
    return [place.removeprefix(f"{ours}/") for place in unwritten(ours)]


def of(folder: Path, path: str) -> tuple[str, dict[str, Any]]:
    head, body = split_head((folder / path).read_text(encoding="utf-8"))
    return head, json.loads(body)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.json")}


def release(tmp_path: Path, ours: Path) -> Path:
    """A copy of our specs, to be changed."""
    return Path(shutil.copytree(ours, tmp_path / "theirs"))


class TestPlan:
    def test_our_own_specs_are_in_their_form_and_follow_themselves(self) -> None:
        specs = ROOT / "message_specs"
        assert plan(specs, read_spec_set(str(specs), str(specs)), "9.9").texts == {}

    def test_a_field_a_tag_and_a_version(self, tmp_path: Path, ours: Path) -> None:
        theirs = release(tmp_path, ours)
        fields = [
            {**field("Count", default="-1"), "about": "Kafka's words."},
            {**field("Name", type="string", versions="1+", default=""), "about": "Kafka's words."},
            {**field("Mark", tag=0, taggedVersions="1+", versions="1+", default="7"), "about": "Kafka's words."},
        ]
        write(theirs / "rpc", spec("TellRequest", fields, validVersions="0-1"), head="")
        assert follow(ours, theirs) == [
            "rpc/TellRequest.json:4: comment: 9.9: listeners broker is gone (attribute, words)",
            "rpc/TellRequest.json:5: comment: 9.9: versions 0-1, was 0 (versions-added, adds)",
            "rpc/TellRequest.json:6: comment: 9.9: Name: string, versions 1+ (field-added, adds)",
            "rpc/TellRequest.json:7: comment: 9.9: Mark: int32, versions 1+, tag 0 (field-added, adds)",
            "rpc/TellRequest.json:18: about of Name",
            "rpc/TellRequest.json:21: about of Mark",
        ]
        head, found = of(ours, "rpc/TellRequest.json")
        assert head.startswith(HEAD + "// ? 9.9: listeners broker is gone (attribute, words)\n")
        assert found["fields"] == [
            field("Count", default=-1),
            {"name": "Name", "type": "string", "versions": "1+", "about": "?"},
            {
                **{"name": "Mark", "type": "int32", "versions": "1+", "tag": 0, "taggedVersions": "1+"},
                **{"default": 7, "about": "?"},
            },
        ]
        assert "Kafka's words" not in (ours / "rpc/TellRequest.json").read_text("utf-8")

    def test_a_second_run_changes_nothing(self, tmp_path: Path, ours: Path) -> None:
        theirs = release(tmp_path, ours)
        write(theirs / "rpc", spec("TellRequest", [field("Count"), TWO], validVersions="0-1"), head="")
        follow(ours, theirs)
        assert plan(ours, read_spec_set(str(theirs), str(ours)), "9.9").texts == {}

    def test_lines_that_say_the_same_stay_as_somebody_wrote_them(self, tmp_path: Path, ours: Path) -> None:
        theirs = release(tmp_path, ours)
        path = ours / "rpc" / "TellRequest.json"
        path.write_text(HEAD + BY_HAND, encoding="utf-8")
        fields = [field(name, default=-1) for name in ("Count", "Sum", "Rest")]
        write(theirs / "rpc", spec("TellRequest", fields, listeners=["broker"]), head="")
        assert follow(ours, theirs) == []
        assert path.read_text(encoding="utf-8") == HEAD + BY_HAND
        more = [*fields[:2], TWO, *fields[2:]]
        write(theirs / "rpc", spec("TellRequest", more, listeners=["broker"], validVersions="0-1"), head="")
        assert len(follow(ours, theirs)) == 3
        start, rest = BY_HAND.replace('"0",', '"0-1",').split('    { "name": "Rest"')
        two = '    { "name": "Two", "type": "int32", "versions": "1+",\n      "about": "?" },\n'
        text = path.read_text(encoding="utf-8")
        told = "// ? 9.9: versions 0-1, was 0 (versions-added, adds)\n"
        told += "// ? 9.9: Two: int32, versions 1+ (field-added, adds)\n"
        assert text == f'{HEAD}{told}{start}{two}    {{ "name": "Rest"{rest}'

    def test_words_go_along_with_what_has_another_name(self, tmp_path: Path, ours: Path) -> None:
        inner = {"type": "[]Part", "fields": [field("Name"), field("Mass")]}
        used = [field("Rest", type="Bit"), field("More", type="[]Bit")]
        common = [{"name": "Bit", "versions": "0+", "fields": [field("Size"), field("Colour")]}]
        write(ours / "rpc", spec("TellRequest", [field("Count"), field("Parts", **inner), *used], commonStructs=common))
        theirs = release(tmp_path, ours)
        inner = {"type": "[]Piece", "fields": [field("Title", about="?"), field("Mass", about="?")]}
        used = [field("Others", type="Chip", about="?"), field("More", type="[]Chip")]
        common = [{"name": "Chip", "versions": "0+", "fields": [field("Size", about="?"), field("Hue", about="?")]}]
        fields = [field("Number", about="?"), field("Parts", **inner), *used]
        write(theirs / "rpc", spec("TellRequest", fields, commonStructs=common))
        told = [place.split(": ", 3)[3] for place in follow(ours, theirs)]
        assert told == [
            "Number, was Count (field-renamed, names)",
            "Parts: Piece, was Part (struct-renamed, names)",
            "Parts.Title, was Name (field-renamed, names)",
            "Others, was Rest (field-renamed, names)",
            "Others: Chip, was Bit (struct-renamed, names)",
            "More: Chip, was Bit (struct-renamed, names)",
            "Others.Hue, was Colour (field-renamed, names)",
        ]
        assert re.findall('"about": "(.*)"', (ours / "rpc/TellRequest.json").read_text("utf-8")) == [
            f"Our words for {name}." for name in ("Count", "Parts", "Name", "Mass", "Rest", "More", "Size", "Colour")
        ]

    def test_a_name_that_another_field_has_by_now_keeps_its_words(self, tmp_path: Path, ours: Path) -> None:
        theirs = release(tmp_path, ours)
        tell = [field("Legacy", versions="0"), field("Count", versions="1+")]
        write(theirs / "rpc", spec("TellRequest", tell, validVersions="0-1"), head="")
        assert follow(ours, theirs)[-1] == "rpc/TellRequest.json:16: about of Legacy"
        assert of(ours, "rpc/TellRequest.json")[1]["fields"][1]["about"] == "Our words for Count."

    def test_a_message_of_another_name(self, tmp_path: Path, ours: Path) -> None:
        theirs = release(tmp_path, ours)
        (theirs / "consumer_offsets" / "BallValue.json").unlink()
        write(theirs / "consumer_offsets", spec("SphereValue", [field("Size")], validVersions="0-1"), head="")
        told = "SphereValue, was BallValue (message-renamed, names)"
        assert follow(ours, theirs) == [f"consumer_offsets/SphereValue.json:4: comment: 9.9: {told}"]
        assert not (ours / "consumer_offsets" / "BallValue.json").exists()
        head, found = of(ours, "consumer_offsets/SphereValue.json")
        assert (head, found["fields"]) == (f"{HEAD}// ? 9.9: {told}\n", [field("Size")])
        assert plan(ours, read_spec_set(str(theirs), str(ours)), "9.9").texts == {}

    @pytest.mark.parametrize(
        ("of_message", "of_field", "told"),
        [
            ({"latestVersionUnstable": True}, {}, "unstable, was stable (version-unstable, readers)"),
            (
                *({}, {"nullableVersions": "0+"}),
                "Name: null allowed, was never null (null-allowed, readers)",
            ),
            ({}, {"fields": [field("Id", mapKey=True)]}, "Name.Id: mapKey true, was false (attribute, words)"),
            ({"listeners": ["controller"]}, {}, "listeners controller, was broker (attribute, words)"),
            ({}, {"default": "x"}, "Name: 'x', was '' (default-changed, names)"),
        ],
    )
    def test_what_changed_is_told_with_its_rank(
        self, tmp_path: Path, ours: Path, of_message: dict[str, Any], of_field: dict[str, Any], told: str
    ) -> None:
        start: dict[str, Any] = {"listeners": ["broker"]}
        before = {"type": "[]Part", "fields": [field("Id")]} if "fields" in of_field else {"type": "string"}
        write(ours / "rpc", spec("TellRequest", [field("Name", **before)], **start))
        theirs = release(tmp_path, ours)
        changed = spec("TellRequest", [field("Name", **{**before, **of_field})], **{**start, **of_message})
        write(theirs / "rpc", changed)
        assert follow(ours, theirs) == [f"rpc/TellRequest.json:4: comment: 9.9: {told}"]

    def test_attributes_in_another_order_are_rewritten(self, tmp_path: Path, ours: Path) -> None:
        path = ours / "rpc" / "TellRequest.json"
        said = spec("TellRequest", [field("Count"), field("Sum")])
        path.write_text(HEAD + json.dumps(dict(reversed(said.items()))), encoding="utf-8")
        theirs = release(tmp_path, ours)
        now = {**said, "validVersions": "0-1"}
        write(theirs / "rpc", now, head="")
        assert len(follow(ours, theirs)) == 1
        told = "// ? 9.9: versions 0-1, was 0 (versions-added, adds)\n"
        assert path.read_text(encoding="utf-8") == spec_text(HEAD + told, now)

    def test_a_release_brings_messages_and_drops_others(self, tmp_path: Path, ours: Path) -> None:
        theirs = release(tmp_path, ours)
        (theirs / "rpc" / "TellRequest.json").unlink()
        write(theirs / "rpc", spec("SayRequest", [field("Words")], apiKey=6), head="")
        specs = replace(read_spec_set(str(theirs), str(ours)), kind="release", release="9.9.0")
        plan(ours, specs, "9.9").carry_out(ours)
        assert unwritten(ours)[0] == f"{ours}/rpc/SayRequest.json:1: comment: what it is, in one line"
        assert [path.name for path in sorted((ours / "rpc").iterdir())] == ["SayRequest.json"]

    def test_a_folder_with_only_some_specs(self, tmp_path: Path, ours: Path) -> None:
        theirs = release(tmp_path, ours)
        write(ours / "rpc", spec("SayRequest", [field("Words")], apiKey=6))
        for path in theirs.rglob("*.json"):
            path.unlink()
        write(theirs / "rpc", spec("SayRequest", [field("Words")], apiKey=6))
        before = files(ours)
        with pytest.raises(FollowError) as refused:
            follow(ours, theirs)
        assert str(refused.value) == (
            f"{theirs} lacks 3 of our messages, and the whole folder is followed:\n"
            f"  {ours}/consumer_offsets/BallKey.json\n"
            f"  {ours}/consumer_offsets/BallValue.json\n"
            f"  {ours}/rpc/TellRequest.json\n"
            f"Copy those that stay as they are to {theirs} (cp -rn {ours}/. {theirs} does it with all); "
            f"delete those that are to go from {ours}"
        )
        assert files(ours) == before

    def test_a_folder_that_lacks_specs_may_break_bytes_too(self, tmp_path: Path, ours: Path) -> None:
        theirs = release(tmp_path, ours)
        (theirs / "rpc" / "TellRequest.json").unlink()
        write(theirs / "consumer_offsets", spec("BallValue", [field("Size", type="string")], validVersions="1"))
        with pytest.raises(FollowError) as refused:
            follow(ours, theirs)
        lines = str(refused.value).split("\n")
        assert lines[:2] == [
            f"{theirs} lacks 1 of our messages, and the whole folder is followed:",
            f"  {ours}/rpc/TellRequest.json",
        ]
        assert lines[3].startswith(f"{ours}/consumer_offsets/BallValue.json: the release has version 1 of BallValue")
        assert "BallValue Size: int32 is string now, which breaks existing bytes in version 1 (rule" in lines[4]

    def test_what_is_left_out_does_not_come_in(self, tmp_path: Path, ours: Path) -> None:
        theirs = release(tmp_path, ours)
        write(theirs / "rpc", spec("ProduceRequest", [field("Acks")], apiKey=0), head="")
        assert follow(ours, theirs) == []
        assert not (ours / "rpc" / "ProduceRequest.json").exists()

    def test_modules_of_a_release(self, tmp_path: Path, ours: Path) -> None:
        """Records go into the folder of their topic, requests to the others; other modules have nothing for us."""
        theirs = tmp_path / "theirs"
        write(
            theirs / "kafka_group_coordinator",
            *(of(ours, f"consumer_offsets/Ball{it}.json")[1] for it in ("Key", "Value")),
        )
        write(theirs / "kafka_group_coordinator", spec("BatKey", [field("Id")], apiKey=6))
        write(theirs / "kafka_group_coordinator", spec("BatValue", [field("Mass")], apiKey=6))
        write(theirs / "kafka_clients", of(ours, "rpc/TellRequest.json")[1])
        write(theirs / "kafka_metadata", spec("OddRecord", [field("Odd")], type="metadata"))
        follow(ours, theirs)
        assert {path.name for path in (ours / "consumer_offsets").iterdir()} == {
            f"{name}{side}.json" for name in ("Ball", "Bat") for side in ("Key", "Value")
        }
        assert not (ours / "kafka_metadata").exists()

    @pytest.mark.parametrize(
        ("versions", "line"),
        [
            ("1", "has version 1 of BallValue, and topics hold bytes of 0-1: change its validVersions to 1"),
            (None, "has no BallValue, of which topics hold bytes: delete the spec"),
        ],
    )
    def test_bytes_in_topics_are_not_given_up(
        self, tmp_path: Path, ours: Path, versions: str | None, line: str
    ) -> None:
        theirs = release(tmp_path, ours)
        for name in ("BallKey", "BallValue"):
            if versions is None:
                (theirs / "consumer_offsets" / f"{name}.json").unlink()
        if versions is not None:
            write(theirs / "consumer_offsets", spec("BallValue", [field("Size")], validVersions=versions))
        specs = replace(read_spec_set(str(theirs), str(ours)), kind="release", release="9.9.0")
        before = files(ours)
        with pytest.raises(FollowError) as refused:
            plan(ours, specs, "9.9")
        others = "the others" if versions else "them"
        said = str(refused.value).split("\n")[-1]
        assert said == f"{ours}/consumer_offsets/BallValue.json: the release {line} to give {others} up"
        assert files(ours) == before

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"type": "string"}, "8:31: fields[0].type: {} Size: int32 is string now, which {} in versions 0-1 "),
            ({"type": "int64"}, "8:31: fields[0].type: {} Size: int32 is int64 now, which {} in versions 0-1 "),
            (
                {"versions": "1+"},
                "8:52: fields[0].versions: {} Size: int32 is not in this version now, which {} in version 0 ",
            ),
            (None, "8:15: fields[0].name: {} Size: int32 is nothing now, which {} in versions 0-1 "),
        ],
        ids=["text", "wider", "later", "gone"],
    )
    @pytest.mark.parametrize("place", ["consumer_offsets/BallValue.json", "rpc/TellRequest.json"])
    def test_fields_that_bytes_hold_are_not_given_up(
        self, tmp_path: Path, ours: Path, place: str, change: dict[str, str] | None, said: str
    ) -> None:
        name = Path(place).stem
        whole = [field("Size"), field("Rest")]
        write(ours / Path(place).parent, spec(name, whole, validVersions="0-1"), head="")
        theirs = release(tmp_path, ours)
        fields = [field("Rest")] if change is None else [field("Size", **change), field("Rest")]
        write(theirs / Path(place).parent, spec(name, fields, validVersions="0-1"), head="")
        before = files(ours)
        with pytest.raises(FollowError) as refused:
            follow(ours, theirs)
        (line,) = str(refused.value).split("\n")
        assert line.startswith(f"{ours / place}:{said.format(name, 'breaks existing bytes')}(rule field-")
        assert line.endswith(f": make this change in {ours / place} by hand to give them up")
        assert files(ours) == before

    def test_a_tag_and_what_is_inserted(self, tmp_path: Path, ours: Path) -> None:
        tags = [field(name, tag=number, taggedVersions="0+") for number, name in enumerate(("Mark", "Sign"))]
        write(ours / "consumer_offsets", spec("BallValue", [field("Size"), *tags]), head="")
        theirs = release(tmp_path, ours)
        tags = [{**tag, "tag": 1 - tag["tag"]} for tag in tags]
        write(theirs / "consumer_offsets", spec("BallValue", [field("Size"), field("More"), *tags]), head="")
        with pytest.raises(FollowError) as refused:
            follow(ours, theirs)
        rules = [line.split("(rule ")[1].split(":")[0] for line in str(refused.value).split("\n")]
        assert sorted(rules) == ["field-inserted", "tag-number", "tag-number"]

    def test_who_makes_the_change_by_hand_goes_on(self, tmp_path: Path, ours: Path) -> None:
        theirs = release(tmp_path, ours)
        for folder in (theirs, ours):
            write(folder / "consumer_offsets", spec("BallValue", [field("Size", type="string")], validVersions="0-1"))
        assert follow(ours, theirs) == []


class TestCommand:
    def test_missing_words_stop_it(
        self, tmp_path: Path, ours: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        theirs = release(tmp_path, ours)
        tell = spec("TellRequest", [field("Count", default=-1), TWO], validVersions="0-1", listeners=["broker"])
        write(theirs / "rpc", tell, head="")
        ours.rename(tmp_path / "message_specs")
        monkeypatch.chdir(tmp_path)
        assert main(["specs", "theirs"]) == 1
        assert capsys.readouterr() == (
            "message_specs/rpc/TellRequest.json: changed\n"
            "message_specs/rpc/TellRequest.json:4: comment: theirs: versions 0-1, was 0 (versions-added, adds)\n"
            "message_specs/rpc/TellRequest.json:5: comment: theirs: Two: int32, versions 1+ (field-added, adds)\n"
            "message_specs/rpc/TellRequest.json:17: about of Two\n",
            "3 places lack words of ours: write them where `?` is, and run this again\n",
        )
        path = Path("message_specs/rpc/TellRequest.json")
        path.write_text(path.read_text("utf-8").replace('"?"', '"More."').replace("// ?", "//"), "utf-8")
        path.write_text(path.read_text("utf-8").replace('"More."', '"?"'), "utf-8")
        assert main(["specs", "theirs"]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line == "1 place lacks words of ours: write them where `?` is, and run this again"
        path.write_text(path.read_text("utf-8").replace('"?"', '"More."'), "utf-8")
        assert main(["specs", "theirs"]) == 0
        assert capsys.readouterr().out == "message_specs holds what theirs has\n"

    def test_its_help_has_examples_that_it_understands(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            main(["--help"])
        start = "  python -m tools.follow "
        lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith(start)]
        assert len(lines) == 5
        for line in lines:
            command = line.removeprefix(start).split("   ")[0].split()
            assert _arguments(command).step == command[0]

    def test_no_such_release(self, ours: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["specs", str(ours / "nowhere")]) == 2
        assert "not a folder, a jar, " in capsys.readouterr().err


def page_of(older: SpecSet, newer: SpecSet) -> str:
    messages = {message.name: message for message in newer.loaded.model.messages}
    return page("t", "s", compare(older, newer).changes, [], Differences(), None, messages)


def rows(text: str, head: str) -> list[list[str]]:
    """The cells of the tables on a page whose head starts so."""
    found = []
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        if table.startswith(head):
            found += [line[2:-2].split(" | ") for line in table.splitlines()[2:]]
    return found


def tables(text: str) -> dict[str, str]:
    """The columns of each table that a page lists as reading a record."""
    lines = re.findall(r"^- (\[.*\)) \((.*)\)$", text, re.MULTILINE)
    return {name: columns for names, columns in lines for name in re.findall(r"\[(\w+)\]", names)}


class TestWhatIsKept:
    @pytest.fixture
    def theirs(self, tmp_path: Path, ours: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        theirs = release(tmp_path, ours)
        fields = [field("Size"), field("Weight", tag=0, taggedVersions="0+")]
        write(theirs / "consumer_offsets", spec("BallValue", fields, validVersions="0-1"))
        write(theirs / "consumer_offsets", spec("BatKey", [field("Id")], apiKey=6))
        write(theirs / "consumer_offsets", spec("BatValue", [field("Mass")], apiKey=6))
        write(theirs / "rpc", spec("TellRequest", [field("Count", default=-1)], validVersions="1"))
        shutil.copytree(theirs, tmp_path / "message_specs")
        monkeypatch.chdir(tmp_path)
        return theirs

    def test_the_page_names_each_change(self, ours: Path, theirs: Path) -> None:
        followed = _followed(str(theirs), str(ours))
        reasons = (Reason("otherwise", "other fields", ("BallValue",), 3), Reason("refused", "Bad: N", ("BallKey",), 2))
        text = page("theirs", "ours", followed.changes, ["Odd"], Differences(reasons, 1))
        assert [cells[:5] for cells in rows(text, "| message | versions |")] == [
            ["`TellRequest`", "0", "", "versions-dropped: 1, was 0", "versions"],
        ]
        (effects,) = (cells[5] for cells in rows(text, "| message | versions |"))
        assert effects.startswith("Python: ")
        assert "`Odd`" in text
        assert [line for line in text.split("\n") if line.lstrip().startswith("- ")] == [
            "- `BallValue`: `Weight` tag-added: int32, tag 0",
            "- `BatKey`: record-added: coordinator-key 6, versions 0",
            "- `BatValue`: record-added: coordinator-value 6, versions 0",
            "- `TellRequest`: versions-added: 1, was 0",
            "- read by ours, refused by theirs: 2",
            "    - Bad: N: 2 (`BallKey`)",
            "- refused by ours, read by theirs: 0",
            "- read by both, differently by theirs: 3",
            "    - other fields: 3 (`BallValue`)",
        ]
        assert "1 of these was valid for ours" in text
        assert "strictness.md" not in text
        assert "[strictness.md](../strictness.md#where-releases-differ) describes theirs." in page(
            "theirs", "ours", [], [], Differences(reasons), is_explained=True
        )

    def test_the_page_says_where_nothing_is_judged_otherwise(self) -> None:
        text = page("theirs", "ours", [], [], Differences())
        assert "nothing has changed for the vectors in `tests/data/vectors`" in text
        assert "refused" not in text

    def test_the_page_names_error_codes_and_states(self) -> None:
        three, four = Constant("THREE", 3, False), Constant("FOUR", 4, True)
        older = {name: [three] for name in ENUMS} | {"MemberState": [three, four]}
        newer = {name: [three] for name in ENUMS} | {"ErrorCode": [three._replace(name="DREI"), four]}
        lines = page("t", "s", [], [], Differences(), enumerations.changes(older, newer)).split("\n")
        assert [row for row in lines if row.startswith("| `")] == [
            "| `ErrorCode` | 3 | `DREI` | was `THREE` |",
            "| `ErrorCode` | 4 | `FOUR`, retriable | new |",
            "| `MemberState` | 4 | `FOUR`, retriable | gone |",
        ]
        same = page("t", "s", [], [], Differences(), [])
        assert "## Error codes and states\n\nNo changes.\n" in same

    def test_what_ours_lack_is_listed(self) -> None:
        theirs = {"ErrorCode": [Constant("NONE", 0, False), Constant("TOO_FAR", 999, True)]}
        theirs["MemberState"] = [Constant("ASLEEP", 9, False)]
        assert list(enumerations.by_hand(f"{RELEASES[-1]}.0", theirs)) == [
            "generator/kafka_records_runtime/kafka/error_codes.py: ErrorCode lacks TOO_FAR = 999, retriable",
            "the _notes.json of its folder in message_specs: MemberState lacks ASLEEP = 9",
        ]
        (line,) = enumerations.by_hand("99.1.0", {})
        assert line.endswith("release_versions.py: RELEASES lacks 99.1, and what its coordinators read")

    def test_the_tables_of_a_record_that_changed_are_named(self, tmp_path: Path) -> None:
        spec_of = of(ROOT / "message_specs", "consumer_offsets/OffsetCommitValue.json")[1]
        key = of(ROOT / "message_specs", "consumer_offsets/OffsetCommitKey.json")[1]
        for name, versions in (("older", "0-4"), ("newer", "0-5")):
            write(tmp_path / name / "consumer_offsets", key, {**spec_of, "validVersions": versions})
        older, newer = (read_spec_set(str(tmp_path / name), "") for name in ("older", "newer"))
        text = page_of(older, newer)
        assert "### OffsetCommit: versions\n" in text
        found = tables(text)
        columns = found["current_offsets"]
        assert {"`topic`", "`partition`", "`offset`", "`leader_epoch`"} <= {*columns.split(", ")}
        assert "log_offset" not in columns
        shared = [0 if columns == "none" else len(columns.split(", ")) for columns in found.values()]
        assert shared == sorted(shared, reverse=True)
        assert "lag" in found
        assert "## Tables" not in page("t", "s", [], [], Differences())

    def test_the_tables_of_a_new_record_are_those_of_its_topic(self, tmp_path: Path) -> None:
        older = Path(shutil.copytree(ROOT / "message_specs", tmp_path / "older"))
        newer = Path(shutil.copytree(older, tmp_path / "newer"))
        write(newer / "consumer_offsets", spec("PlanetKey", [field("groupId", type="string")], apiKey=77))
        write(newer / "consumer_offsets", spec("PlanetValue", [field("epoch")], apiKey=77))
        write(newer / "share_group_state", spec("MoonKey", [field("brightness")], apiKey=78))
        write(newer / "share_group_state", spec("MoonValue", [field("darkness")], apiKey=78))
        text = page_of(*(read_spec_set(str(folder), "") for folder in (older, newer)))
        assert "### Planet: new, and in no table\n" in text
        found = tables(text)
        assert found["groups"] == "`group_id`, `epoch`"
        assert not any("transactions" in name for name in found)
        start = "### Moon: new, and in no table\n\nNo table of its topic has a column with the name of"
        assert start in text

    def test_views_show_what_their_inputs_read(self) -> None:
        assert {"groups", "checks"} <= {table.name for table in tables_of("StreamsGroupMetadata")}

    def test_the_lists(self, tmp_path: Path, ours: Path, theirs: Path) -> None:
        kept = tmp_path / "described.json"
        kept.write_text('{"after_the_fact_sheet": {"fields": {"BallValue": ["Old"]}, "messages": []}}', "utf-8")
        changes = _followed(str(theirs), str(ours)).changes
        kept_lists.revise(kept, Path("message_specs"), changes)
        first = kept.read_text("utf-8")
        assert json.loads(first) == {
            "after_the_fact_sheet": {"fields": {"BallValue": ["Old", "Weight"]}, "messages": ["BatKey", "BatValue"]},
            "records": {"consumer_offsets": {"5": "Ball", "6": "Bat"}},
            "messages": {"rpc": ["TellRequest"]},
        }
        kept_lists.revise(kept, Path("message_specs"), changes)
        assert kept.read_text("utf-8") == first


def test_kept_texts_of_our_own_specs_load(tmp_path: Path) -> None:
    """The output of `spec_text` for each of our specs is equivalent to the file."""
    specs = ROOT / "message_specs"
    for path in specs.rglob("*.json"):
        target = tmp_path / path.relative_to(specs)
        target.parent.mkdir(exist_ok=True)
        text = path.read_text(encoding="utf-8")
        if path.name != "_notes.json":
            head, body = split_head(text)
            text = spec_text(head, json.loads(body))
        target.write_text(text, encoding="utf-8")
    assert load(tmp_path) == load(specs)
