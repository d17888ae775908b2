"""Incidents on real brokers: the scoring of a report, the kinds, and the report on the recorded ones."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from tools.incidents.__main__ import main
from tools.incidents.every_kind import EVERY_KIND
from tools.incidents.incomplete import Removal, copy_without, faults_without, removals
from tools.incidents.names import Names
from tools.incidents.recording import ARCHIVE, keep_directory, unpack
from tools.incidents.score import MARKS, Score, score, summary, table, write_page
from tools.incidents.truth import Truth, healthy, incident, load_truth

SINCE = 1_700_000_000_000


def poison() -> Truth:
    truth = incident("poison_record", ["order-router"], ["orders"])
    truth.since, truth.scale = SINCE, {"stuck": 160}
    truth.named, truth.cause = [r"\border-router\b", "orders"], [r"\b71\b", "record"]
    truth.first_step = [r"\b72\b"]
    truth.never_say("raise max.poll", "no member timed out")
    return truth


def lost(count: int) -> Truth:
    truth = incident("poison_record", ["order-router"], ["orders"])
    truth.scale = {"lost": count}
    return truth


def finding(**changes: Any) -> dict[str, Any]:
    return {
        "kind": "crash_loop",
        "level": "high",
        "problem": 'All members of "order-router" fail on the record 71 of orders-3.',
        "impact": "158 records wait.",
        "causes": [{"name": "poison", "statement": "a bad record", "confidence": "high", "refuted_by": []}],
        "next": [{"what": "Skip it", "command": "kafka-consumer-groups --reset-offsets --to-offset 72"}],
        "group_ids": ["order-router"],
        "topics": ["orders"],
        "since_timestamp_ms": SINCE + 4000,
        **changes,
    }


def test_a_right_report_is_right() -> None:
    got = score(poison(), [finding()])
    assert got.right
    assert got.solved
    assert list(got.aspects) == ["named", "cause", "since", "scale", "first step", "nothing false"]


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"problem": 'Members of "order-router" and orders come and go.'}, "cause"),
        ({"since_timestamp_ms": SINCE - 6000}, "since"),
        ({"since_timestamp_ms": None}, "since"),
        ({"impact": "12 records wait."}, "scale"),
        ({"next": [{"what": "Wait", "command": "sleep 71"}]}, "first step"),
        ({"impact": "158 records wait; raise max.poll.interval.ms."}, "nothing false"),
    ],
)
def test_each_aspect_can_be_wrong(changes: dict[str, Any], wrong: str) -> None:
    got = score(poison(), [finding(**changes)])
    assert [aspect for aspect, fine in got.aspects.items() if not fine] == [wrong]
    assert len(got.faults) == 1


def test_a_refuted_cause_is_not_said() -> None:
    refuted = [{"statement": "a bad record", "refuted_by": "raise max.poll: nobody timed out"}]
    assert score(poison(), [finding(causes=refuted)]).right


def test_a_denial_is_no_false_statement() -> None:
    assert score(poison(), [finding(impact="158 records wait. Nothing asks to raise max.poll.interval.ms.")]).right
    denied_elsewhere = "158 records wait, and nothing else. Now raise max.poll.interval.ms."
    assert not score(poison(), [finding(impact=denied_elsewhere)]).right


def test_silence_names_nothing() -> None:
    got = score(poison(), [])
    assert [aspect for aspect, fine in got.aspects.items() if fine] == ["nothing false"]
    assert not got.solved


def test_an_alarm_about_healthy_company_is_false() -> None:
    stranger = finding(group_ids=["price-indexer"], topics=["prices"], problem="It is slow.")
    assert not score(poison(), [finding(), stranger]).aspects["nothing false"]
    assert score(poison(), [finding(), {**stranger, "level": "note"}]).right


def test_a_healthy_cluster_may_have_notes_only() -> None:
    truth = healthy("jobs", ["loader"])
    assert score(truth, [finding(level="note")]).right
    got = score(truth, [finding(level="low")])
    assert not got.solved
    assert got.faults == [
        'false alarm: low crash_loop: All members of "order-router" fail on the record 71 of orders-3.'
    ]


def test_the_table_counts_by_kind() -> None:
    scores = [
        Score("poison_record", 1, False, {"named": True, "cause": True}),
        Score("poison_record", 2, False, {"named": True, "cause": False}),
        Score("jobs", 1, True, {"nothing false": True}),
    ]
    lines = table(scores).splitlines()[2:]
    assert lines[0].startswith("| poison_record (2 recordings) | all members")
    assert lines[0].endswith(" | cause in 1 |")
    assert lines[1].startswith("| jobs (healthy) |")
    assert lines[1].endswith(" |  |")


def test_the_summary_names_kinds_and_what_is_wrong() -> None:
    scores = [
        Score("poison_record", 1, False, {"named": True, "cause": True}),
        Score("poison_record", 2, False, {"named": True, "cause": False}),
        Score("jobs", 1, True, {"nothing false": True}),
    ]
    wrong, _, incidents, _, healthy = summary(scores).split("\n")
    assert wrong == "2 of 3 recordings are solved; wrong are `poison_record`: cause in 1."
    assert (incidents, healthy) == ("Incidents: `poison_record`.", "Healthy: `jobs`.")
    assert summary(scores[::2]).startswith("2 of 2 recordings are solved, with every aspect right.\n")


def test_the_table_goes_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"above\n{MARKS[0]}\nold\n{MARKS[1]}\nbelow\n")
    write_page(page, "new")
    assert page.read_text() == f"above\n{MARKS[0]}\n\nnew\n\n{MARKS[1]}\nbelow\n"
    page.write_text("no marks")
    with pytest.raises(ValueError, match="lacks the marks"):
        write_page(page, "new")


def test_every_recorded_truth_can_be_read() -> None:
    """Clusters that were recorded by hand may have a case that the generator does not make."""
    data = Path(__file__).resolve().parents[1] / "data"
    by_hand, generated = (
        [load_truth(each.parent) for each in data.glob(f"{name}/*/truth.json")] for name in ("clusters", "incidents")
    )
    assert len(by_hand) >= 10
    assert len(generated) >= 39
    assert {each.case for each in generated} <= set(EVERY_KIND)


def test_no_name_contains_another() -> None:
    names = Names(Random(3))
    drawn = [name for _ in range(15) for name in (names.topic(), names.group())]
    assert len(set(drawn)) == 30
    assert not [(one, other) for one in drawn for other in drawn if one != other and one in other]


def test_the_command_lists_kinds_and_refuses_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == list(EVERY_KIND)
    assert main(["no_such_kind"]) == 2
    assert capsys.readouterr().err == "Unknown kind: no_such_kind. Choose one of --list.\n"


def test_a_recording_comes_back_from_its_archive(tmp_path: Path) -> None:
    data = tmp_path / "broker"
    (data / "orders-0").mkdir(parents=True)
    (data / "orders-0" / "00000000000000000000.log").write_bytes(b"records")
    (data / "orders-0" / "00000000000000000000.log.deleted").write_bytes(b"old")
    (data / ".lock").touch()
    kept = tmp_path / "kept"
    kept.mkdir()
    assert keep_directory(data, kept) == (kept / ARCHIVE).stat().st_size
    (kept / "data" / "orders-0" / "00000000000000000000.log").unlink()
    (kept / "data" / "orders-0").rmdir()
    (kept / "data").rmdir()
    unpacked = unpack(kept, tmp_path / "unpacked")
    assert [path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*.*")] == [
        "orders-0/00000000000000000000.log"
    ]
    poison().save(kept)
    assert load_truth(kept) == poison()


def test_nothing_false_is_found_in_a_report_that_knows_less() -> None:
    assert faults_without(poison(), []) == []
    unsure = finding(problem="Members come and go.", causes=[{"name": "other", "confidence": "medium"}])
    assert faults_without(poison(), [unsure]) == []
    maybe = finding(
        impact="If they were slow, raise max.poll. It waits.",
        causes=[{"name": "late", "statement": "raise max.poll", "confidence": "medium"}],
    )
    assert faults_without(poison(), [maybe]) == []
    assert faults_without(poison(), [finding(kind="log_cut", group_ids=[], topics=[])]) == []


@pytest.mark.parametrize(
    ("truth", "changes", "fault"),
    [
        (
            poison(),
            {"problem": "They start slowly.", "causes": [{"name": "fails_at_start", "confidence": "high"}]},
            "certain of another cause (fails_at_start): high crash_loop: They start slowly.",
        ),
        (
            poison(),
            {"impact": "Now raise max.poll."},
            "false: crash_loop says 'raise max.poll', but no member timed out",
        ),
        (poison(), {"group_ids": ["price-indexer"], "topics": ["prices"], "problem": "It is slow."}, "false alarm: "),
        (healthy("jobs", ["order-router"]), {}, "false alarm: high crash_loop: "),
        (lost(900), {"scale": {"records_repeated": 7}}, "says that 7 records were read twice, but records were lost: "),
        (lost(900), {"scale": {"records_lost": 1200}}, "says that 1200 records were lost, but 900 were: "),
    ],
)
def test_each_false_statement_is_found(truth: Truth, changes: dict[str, Any], fault: str) -> None:
    (said,) = faults_without(truth, [finding(**changes)])
    assert said.startswith(fault)


def test_parts_are_removed_in_turn(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for name in ("__consumer_offsets-0", "__cluster_metadata-0", "orders-0", "orders-1", "other-0"):
        (data / name).mkdir(parents=True)
        for file in ("0.log", "0.index"):
            (data / name / file).write_text(name)
    (data / "orders-1" / "0.log").write_text("")
    (data / "replication-offset-checkpoint").write_text("0")
    there = {each: set(left_of(data, each, tmp_path / each.name)) for each in removals(data, ["orders"])}
    logs = {f"{folder.name}/0.log" for folder in data.iterdir() if folder.is_dir()}
    every = {*logs, *(each.replace(".log", ".index") for each in logs), "replication-offset-checkpoint"}
    assert {each.name: len(every - files) for each, files in there.items()} == {
        "user_topics": 6,
        "cluster_metadata": 2,
        "all_but_logs": 6,
        "all_but_offsets": 10,
        "__consumer_offsets-0": 2,
        "__consumer_offsets-0 and all_but_logs": 7,
        "orders-0": 2,
    }
    assert all(files < every for files in there.values())


def left_of(data: Path, removal: Removal, into: Path) -> list[str]:
    copy = copy_without(data, removal, into)
    return [path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()]
