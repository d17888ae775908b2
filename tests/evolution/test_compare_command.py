"""`kafka-records-codegen compare`: what it prints, and how it ends."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kafka_records_codegen.cli import _RANKS, main
from kafka_records_codegen.evolution.change_rules import RULES, Rank
from tests.evolution.spec_texts import Json, folder, key, value

NARROW: list[Json] = [{"name": "Epoch", "type": "int16", "versions": "0+"}]


def tagged(name: str, tag: int) -> Json:
    return {**NARROW[0], "name": name, "versions": "1+", "tag": tag, "taggedVersions": "1+"}


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders `older` and `newer`; the newer has a narrower type, and a longer description of a field."""
    monkeypatch.chdir(tmp_path)
    folder(tmp_path / "older" / "teams", key(), value())
    newer = key(fields=[{**key()["fields"][0], "about": "Its name."}])
    folder(tmp_path / "newer" / "teams", newer, value(fields=NARROW))
    return tmp_path


def test_the_text(sides: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "older", "newer"]) == 1
    assert capsys.readouterr().out == (
        "BREAKS EXISTING BYTES (1)\n"
        "newer/teams/TeamValue.json:10:15: fields[0].type: TeamValue Epoch, versions 0-1: was int32, now int16\n"
        "    was      older/teams/TeamValue.json:10:15: fields[0].type\n"
        "    rule     field-type (Kafka's Unifier, which EvolutionVerifier calls)\n"
        "             The type of a field differs in a version that both states have.\n"
        "    Spark    epoch int is smallint\n"
        "    Parquet  Spark reads files with int as smallint and cuts off what does not fit (70000 is 4464); pyarrow "
        "refuses such values\n"
        "\n"
        "ONLY WORDS (1)\n"
        "newer/teams/TeamKey.json:12:16: fields[0].about: TeamKey Team: was nothing, now Its name.\n"
        "    was      older/teams/TeamKey.json:8:5: fields[0]\n"
        "    rule     about (Kafka's MessageDataGenerator: what generated classes do)\n"
        "             The description of a field is different.\n"
        "\n"
        "older (2 messages) to newer (2 messages): 1 bytes, 1 words\n"
    )


def test_json(sides: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "older", "newer", "--format", "json", "--show", "readers"]) == 1
    found = json.loads(capsys.readouterr().out)
    (change,) = found.pop("changes")
    assert found == {
        "older": {"specs": "older", "messages": 2},
        "newer": {"specs": "newer", "messages": 2},
        "left_out": [],
        "counts": {rank.value: int(rank in (Rank.BYTES, Rank.WORDS)) for rank in Rank},
        "fail_on": "readers",
        "fails": True,
    }
    assert change["rule"] == "field-type"
    assert change["versions"] == [[0, 1]]
    assert change["newer_place"] == {
        "file": "newer/teams/TeamValue.json",
        "line": 10,
        "column": 15,
        "path": "fields[0].type",
    }
    assert change["downstream"]["spark"] == {"kind": "retyped", "text": "epoch int is smallint"}
    assert change["downstream"]["avro_backward"]["kind"] == "yes"


@pytest.mark.parametrize(
    ("versions", "fail_on", "status"),
    [
        ("0-1", "words", 0),
        ("0-2", "readers", 0),
        ("0-2", "adds", 1),
        ("1", "readers", 1),
        ("1", "bytes", 1),
    ],
)
def test_where_the_line_is(
    sides: Path, capsys: pytest.CaptureFixture[str], versions: str, fail_on: str, status: int
) -> None:
    folder(sides / "newer" / "teams", key(), value(validVersions=versions))
    assert main(["compare", "older", "newer", "--fail-on", fail_on]) == status


def test_no_change(sides: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "older", "older"]) == 0
    assert capsys.readouterr().out == "older (2 messages) to older (2 messages): no change\n"


def test_what_cannot_be_compared(sides: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "older", "nowhere"]) == 2
    assert capsys.readouterr().err.startswith("kafka-records-codegen: nowhere: not a folder, a jar, or a release")
    folder(sides / "newer" / "teams", value(colour="red"))
    assert main(["compare", "older", "newer"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "newer/teams/TeamValue.json:14:3: colour: unknown attribute" in captured.err
    assert captured.err.splitlines()[-1] == "specs that are refused cannot be compared"


def test_both_sides_tell_what_is_refused(sides: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder(sides / "older" / "teams", value(colour="red"))
    folder(sides / "newer" / "teams", key(flavour="sweet"))
    (sides / "newer" / "teams" / "TeamValue.json").write_text('{"apiKey": three}', encoding="utf-8")
    assert main(["compare", "older", "newer"]) == 2
    said = capsys.readouterr().err
    assert "older/teams/TeamValue.json:14:3: colour: unknown attribute" in said
    assert "newer/teams/TeamKey.json:14:3: flavour: unknown attribute" in said
    assert said.count("TeamValue.json:1:12: apiKey") == 1
    assert said.endswith("specs that are refused cannot be compared\n")


@pytest.mark.parametrize(
    ("older", "newer", "lines"),
    [
        (
            value(fields=[NARROW[0], {"name": "Team", "type": "int16", "versions": "1+"}]),
            value(fields=[{"name": "Team", "type": "int16", "versions": "1+"}, NARROW[0]]),
            [
                "TeamValue Team, version 1: was field 2, now field 1",
                "    products team gets the value of another field from older bytes, or they are refused",
            ],
        ),
        (
            value(fields=[{"name": "Data", "type": "bytes", "versions": "0+", "nullableVersions": "0+"}]),
            value(fields=[{"name": "Data", "type": "records", "versions": "0+"}]),
            [
                "TeamValue Data, versions 0-1: was bytes, now records",
                "    products as before: attribute, column, Avro schema",
            ],
        ),
        (
            value(flexibleVersions="none"),
            value(),
            [
                "TeamValue, version 1: was not flexible, now flexible",
                "    products older bytes of these versions are refused, or read as something else",
            ],
        ),
        (
            value(fields=[tagged("Epoch", 0), tagged("Mark", 1)]),
            value(fields=[tagged("Epoch", 1), tagged("Mark", 0)]),
            [
                "TeamValue Epoch, version 1: was tag 0, now tag 1",
                "    products epoch has its default for older bytes, in which it is tag 0",
            ],
        ),
        (
            value(fields=[tagged("Epoch", 0)]),
            value(fields=[{**tagged("Note", 0), "type": "string"}]),
            [
                "TeamValue Note, version 1: was int16, tag 0, now string, tag 0",
                "    Python   epoch is gone, and its bytes are read as note, which is new: str",
            ],
        ),
        (
            value(fields=[{**NARROW[0], "name": "EpochID"}]),
            value(fields=[{**NARROW[0], "name": "EpochId"}]),
            [
                "TeamValue EpochId, versions 0-1: was EpochID, now EpochId",
                "    Python   JSON calls epoch_id epochId, and called it epochID",
            ],
        ),
        (
            value(fields=[{**NARROW[0], "about": f"{'As before, ' * 9}and old."}]),
            value(fields=[{**NARROW[0], "about": f"{'As before, ' * 9}and new."}]),
            ["TeamValue Epoch: was …old., now …new."],
        ),
    ],
    ids=["moved", "same bytes", "flexible", "tag number", "tag reused", "JSON key", "words far behind"],
)
def test_what_a_change_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], older: Json, newer: Json, lines: list[str]
) -> None:
    """Each breaking change has its effects on products, or says that there are none."""
    for name, spec in (("older", older), ("newer", newer)):
        folder(tmp_path / name / "teams", key(), spec)
    main(["compare", str(tmp_path / "older"), str(tmp_path / "newer")])
    said = capsys.readouterr().out
    for line in lines:
        assert f"{line}\n" in said, said


def test_the_older_dialect_is_named_where_it_helps(sides: Path, capsys: pytest.CaptureFixture[str]) -> None:
    older = key()
    del older["flexibleVersions"]
    folder(sides / "newer" / "teams", older, value())
    assert main(["compare", "older", "newer"]) == 2
    said = "specs that are refused cannot be compared; --older-dialect reads these, as Kafka wrote them before 4.0"
    assert capsys.readouterr().err.splitlines()[-1] == said
    assert main(["compare", "older", "newer", "--older-dialect"]) == 0
    folder(sides / "newer" / "teams", older, value(colour="red"))
    assert main(["compare", "older", "newer"]) == 2
    assert "--older-dialect" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("reader", "did you mean readers?"),
        ("x", "choose one of bytes, readers, early-access, versions, names, adds, words"),
    ],
)
@pytest.mark.parametrize("option", ["--fail-on", "--show"])
def test_a_rank_that_is_none(capsys: pytest.CaptureFixture[str], option: str, word: str, said: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["compare", "older", "newer", option, word])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: argument {option}: {word!r} is not a rank of changes; {said}\n")


def test_names_from_specs_do_not_reach_the_terminal(sides: Path, capsys: pytest.CaptureFixture[str]) -> None:
    about = "\x1b[2J\u202eevil"
    folder(sides / "newer" / "teams", key(fields=[{**key()["fields"][0], "about": about}]), value())
    assert main(["compare", "older", "newer"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[2J\\u202eevil" in out


def test_the_command_knows_every_rank() -> None:
    assert tuple(rank.value for rank in Rank) == _RANKS


def test_the_page_lists_every_rule() -> None:
    page = Path("docs/evolution.md")
    text = (Path(__file__).resolve().parents[2] / page).read_text(encoding="utf-8")
    _, *ranks = re.split(r"^Rank `(.+)`:$", text, flags=re.MULTILINE)
    listed = [
        (rank, " ".join(item.split()))
        for rank, part in zip(ranks[::2], ranks[1::2], strict=True)
        for item in re.findall(r"^- (`.+(?:\n  .+)*)", part.partition("\n## ")[0], flags=re.MULTILINE)
    ]
    assert listed == [(rule.rank.value, f"`{rule.name}`: {rule.sentence}") for rule in RULES]


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["compare", "--help"])
    assert "kafka-records-codegen compare 4.2.0 4.3.1 --show versions" in capsys.readouterr().out
