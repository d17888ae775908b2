"""The benchmark of columns: its batches have the content that their names say, its contenders agree on them, and a
wrong contender is reported and not timed. No time is asserted."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_records.consumer_offsets.group_metadata import GroupMetadataValue
from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue
from tools.benchmarks import columns
from tools.benchmarks._column_batches import Batch, Case, cases
from tools.benchmarks._column_contenders import CONTENDERS, FAILED, Contender, Decoder, Evidence
from tools.benchmarks._timing import Timing

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = "tools/benchmarks/columns.py"
ROWS = 60
TINY = ("--batch-rows", str(ROWS), "--rounds", "2", "--seconds", "0.0001")
COMMIT_GOALS = {"rows": 8, "kio → Arrow": 4}


def case(name: str) -> Case:
    return next(each for each in cases(ROWS) if each.name == name)


def versions_of(values: pa.Array) -> set[int]:
    return {int.from_bytes(value[:2], "big") for value in values.to_pylist() if value is not None}


# ------------------------------------------------------------------------------------------------------------ command


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """All cases with tiny batches: the output, and the figures."""
    path = tmp_path_factory.mktemp("benchmark") / "columns.json"
    done = subprocess.run(
        [sys.executable, SCRIPT, *TINY, "--json", str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done, json.loads(path.read_text(encoding="utf-8"))


def test_all_contenders_agree_on_every_batch(
    everything: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    done, figures = everything
    every = cases(ROWS)
    assert done.stderr.splitlines() == [f"[{number}/{len(every)}] {each.name}" for number, each in enumerate(every, 1)]
    assert [batch["case"] for batch in figures["batches"]] == [each.name for each in every]
    for batch in figures["batches"]:
        assert list(batch["nanoseconds_per_row"]) == list(CONTENDERS)
        assert all(len(rounds) == 2 and min(rounds) > 0 for rounds in batch["nanoseconds_per_row"].values())


def test_the_table_says_what_was_measured_on_what(
    everything: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    done, figures = everything
    lines = done.stdout.splitlines()
    assert lines[0] == figures["machine"]
    assert lines[1] == ", ".join(f"{name} {number}" for name, number in figures["versions"].items())
    assert lines[2] == (
        "best / median of 2 rounds, per row; "
        "right of columns: their time ÷ that of columns, above 1 columns are faster"
    )
    heads = ["batch", "rows", "bytes per row", "columns (ns)"]
    heads += ["rows ÷", "rows → Arrow ÷", "walker → Arrow ÷", "kio → Arrow ÷", "goals"]
    assert re.split(r" {2,}", lines[4]) == heads
    notes = [f"{name}: {contender.note}" for name, contender in CONTENDERS.items()]
    assert lines[-len(notes) :] == notes
    assert figures["contenders"] == {name: contender.note for name, contender in CONTENDERS.items()}


def test_the_goals_are_those_of_the_issue(
    everything: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    done, figures = everything
    assert [batch["goals"] for batch in figures["batches"]] == [COMMIT_GOALS] * 3 + [{"rows": 3}, {"rows": 1}] + [
        {}
    ] * 6
    verdict = "(met|missed)"
    commits, groups, skewed = f"rows 8 {verdict}, kio → Arrow 4 {verdict}$", f"rows 3 {verdict}$", f"rows 1 {verdict}$"
    table = done.stdout.splitlines()[5:16]
    for line, goals in zip(table[:5], [commits, commits, commits, groups, skewed], strict=True):
        assert re.search(goals, line), line
    assert not re.search(verdict, "\n".join(table[5:]))


def test_help_says_what_each_contender_gives(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        columns.main(["--help"])
    assert caught.value.code == 0
    printed = capsys.readouterr().out
    assert "rows            bytes to objects and no further: " in printed
    assert "kio → Arrow     bytes to Arrow: " in printed
    assert "tools/benchmarks/columns.py --only GroupMetadata,Share" in printed


def test_cases_are_chosen_by_parts_of_their_names(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "columns.json"
    assert columns.main([*TINY, "--only", "SHARE, commit v4", "--json", str(path)]) == 0
    assert capsys.readouterr().err == "[1/2] OffsetCommit v4\n[2/2] ShareSnapshotValue v0\n"
    batches = json.loads(path.read_text(encoding="utf-8"))["batches"]
    assert [(batch["case"], batch["rows"]) for batch in batches] == [
        ("OffsetCommit v4", ROWS),
        ("ShareSnapshotValue v0", ROWS),
    ]


def test_no_such_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert columns.main(["--only", "Nothing"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    names = "".join(f"  {each.name}\n" for each in cases(10_000))
    assert printed.err == f"no case has 'Nothing' in its name; there are\n{names}"


@pytest.mark.parametrize("option", ["--batch-rows", "--rounds", "--seconds"])
def test_nothing_is_measured_with_nothing(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        columns.main([option, "0"])
    assert caught.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: argument {option}: 0 is not above zero\n")


# ------------------------------------------------------------------------------------------------------------ batches


def test_offset_commits_are_of_the_versions_in_their_name() -> None:
    assert versions_of(case("OffsetCommit v3").make().values) == {3}
    assert versions_of(case("OffsetCommit v4").make().values) == {4}
    mixed = case("OffsetCommit v3 and v4, tombstones").make()
    assert versions_of(mixed.values) == {3, 4}
    assert 0 < mixed.values.null_count < ROWS / 2
    assert mixed.keys is not None
    assert mixed.keys.null_count == 0
    assert len(case("OffsetCommit v3 and v4, only 6 rows").make().values) == 6


def test_offset_commits_are_as_a_broker_writes_them() -> None:
    batch = case("OffsetCommit v4").make()
    assert batch.keys is not None
    for key, value in zip(batch.keys.to_pylist(), batch.values.to_pylist(), strict=True):
        assert OffsetCommitKey.decode(key[2:], 0).topic
        assert OffsetCommitValue.decode(value[2:], 4).encode(4) == value[2:]


def test_group_sizes() -> None:
    def members(name: str) -> list[int]:
        return [len(GroupMetadataValue.decode(each[2:], 3).members) for each in case(name).make().values.to_pylist()]

    uniform = members("GroupMetadataValue v3, 1 to 20 members")
    assert (min(uniform), max(uniform)) == (1, 20)
    *small, huge = sorted(members(f"GroupMetadataValue v3, {2 * ROWS} members in one row"))
    assert huge == 2 * ROWS
    assert set(small) == {0, 1, 2}
    (group,) = (
        GroupMetadataValue.decode(each[2:], 3)
        for each in case("GroupMetadataValue v3, 1 to 20 members").make().values.to_pylist()[:1]
    )
    assert all(60 <= len(member.subscription) <= 200 >= len(member.assignment) >= 60 for member in group.members)


def test_one_row_in_a_hundred_is_broken() -> None:
    (broken_rows,) = (each for each in cases(600) if each.name.endswith("1 % broken"))
    batch = broken_rows.make()
    assert len(batch.broken) == 6
    assert versions_of(batch.values) >= {3, 4, 99}
    decoder = CONTENDERS["columns"].prepare(batch)
    errors = decoder.decode(decoder.argument).errors
    assert errors.keys() == batch.broken
    assert {type(each).__name__ for each in errors.values()} >= {"BufferUnderflow", "UnsupportedVersion"}


def test_batches_are_the_same_every_time() -> None:
    for each in cases(ROWS):
        one, other = each.make(), each.make()
        assert (one.values, one.keys, one.broken) == (other.values, other.keys, other.broken)


# -------------------------------------------------------------------------------------------------- wrong contenders


def changed(name: str, change: Callable[[Evidence], Evidence]) -> Contender:
    """A contender that returns other values."""

    def prepare(batch: Batch) -> Decoder:
        decoder = CONTENDERS[name].prepare(batch)
        return replace(decoder, shown=lambda result: change(decoder.shown(result)))

    return Contender(prepare, "wrong")


def _one_more(shown: Evidence) -> Evidence:
    first, *rest = shown["value.offset"]
    return {**shown, "value.offset": [first + 1, *rest]}


def broken(batch: Batch) -> Decoder:
    raise ImportError("No module named 'broken'")


def test_contenders_that_differ_are_reported_and_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {
        "broken": Contender(broken, "cannot be loaded"),
        "one more": changed("columns", _one_more),
        "forgetful": changed("kio → Arrow", lambda shown: {**shown, "key.topic": shown["key.topic"][1:]}),
        "narrow": changed(
            "walker → Arrow",
            lambda shown: {FAILED: shown[FAILED], "value.offset": shown["value.offset"]},
        ),
        "fearful": changed("rows → Arrow", lambda shown: {**shown, FAILED: [5, 7]}),
    }
    right = {name: CONTENDERS[name] for name in ("columns", "rows")}
    monkeypatch.setattr(columns, "CONTENDERS", {**right, **wrong})
    reports: list[str] = []
    row = columns.run_case(case("OffsetCommit v3"), 1, 0.0001, reports.append)
    assert [timing.contender for timing in row.timings] == ["columns", "rows"]
    assert row.ratios("one more") is None
    batch = case("OffsetCommit v3").make()
    offset = OffsetCommitValue.decode(batch.values[0].as_py()[2:], 3).offset
    names = [FAILED, "key.group", "key.partition", "key.topic"]
    names += [
        f"value.{name}" for name in ("commit_timestamp", "expire_timestamp", "leader_epoch", "metadata", "offset")
    ]
    names += ["value.topic_id"]
    assert reports == [
        "broken is not timed on OffsetCommit v3: ImportError: No module named 'broken'",
        f"one more is not timed on OffsetCommit v3: value.offset of row 0 is {offset + 1} and not {offset}",
        "forgetful is not timed on OffsetCommit v3: key.topic has 59 rows and not 60",
        f"narrow is not timed on OffsetCommit v3: gives ['failed', 'value.offset'] and not {names}",
        "fearful is not timed on OffsetCommit v3: fails on rows [5, 7] and not on []",
    ]


def rows_with(change: Callable[[Any], Any]) -> Contender:
    """The reference, whose objects are changed."""

    def prepare(batch: Batch) -> Decoder:
        decoder = CONTENDERS["rows"].prepare(batch)
        return replace(decoder, decode=lambda rows: change(decoder.decode(rows)))

    return Contender(prepare, "wrong")


def _first_value(value: Any) -> Callable[[Any], Any]:
    return lambda objects: objects._replace(values=[value, *objects.values[1:]])


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (_first_value(OffsetCommitValue()), "rows value of row 0: reads {value} and writes {other}"),
        (_first_value(None), "rows value of row 0: reads {value} and writes null"),
        (lambda objects: objects._replace(failed=[0]), "rows fails on rows [0] and not on []"),
        (
            lambda objects: objects._replace(keys=[OffsetCommitKey(), *objects.keys[1:]]),
            "rows key of row 0: reads {key} and writes 00010000000000000000",
        ),
        (lambda objects: 1 / 0, "rows ZeroDivisionError: division by zero"),
    ],
)
def test_nobody_is_timed_when_the_reference_is_wrong(
    change: Callable[[Any], Any], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "CONTENDERS", {**CONTENDERS, "rows": rows_with(change)})
    reports: list[str] = []
    row = columns.run_case(case("OffsetCommit v3"), 1, 0.0001, reports.append)
    assert row.timings == ()
    batch = case("OffsetCommit v3").make()
    assert batch.keys is not None
    key, value = batch.keys[0].as_py().hex(), batch.values[0].as_py().hex()
    other = "0003" + OffsetCommitValue().encode(3).hex()
    expected = what.format(key=key, value=value, other=other)
    assert reports == [f"nobody is timed on OffsetCommit v3: {expected}"]


def test_a_value_where_there_was_a_tombstone_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    tombstones = case("OffsetCommit v3 and v4, tombstones")
    row = tombstones.make().values.is_null().to_pylist().index(True)

    def revive(objects: Any) -> Any:
        return objects._replace(values=[OffsetCommitValue() if each is None else each for each in objects.values])

    monkeypatch.setattr(columns, "CONTENDERS", {**CONTENDERS, "rows": rows_with(revive)})
    reports: list[str] = []
    columns.run_case(tombstones, 1, 0.0001, reports.append)
    assert reports == [
        f"nobody is timed on OffsetCommit v3 and v4, tombstones: rows value of row {row}: reads null and writes "
    ]


# ------------------------------------------------------------------------------------------------------------- goals


def timed(contender: str, *rounds: float) -> Timing:
    return Timing(contender, len, [], rounds=list(rounds))


def test_goals_are_met_or_missed_by_the_best_round() -> None:
    goals = {"rows": 8.0, "kio → Arrow": 4.0, "walker → Arrow": 2.0}
    timings = (timed("columns", 2.0, 1.0, 4.0), timed("rows", 8.0, 9.0, 8.5), timed("kio → Arrow", 3.9, 90.0, 50.0))
    row = columns.Row(Case("anything", case("OffsetCommit v3").make, goals), 2, 20, timings)
    assert row.ratios("rows") == (8.0, 4.25)
    assert row.cells() == [
        "anything",
        "2",
        "10",
        "500000000 / 1000000000",
        "8.00 / 4.25",
        "-",
        "-",
        "3.90 / 25.0",
        "rows 8 met, kio → Arrow 4 missed, walker → Arrow 2 -",
    ]
