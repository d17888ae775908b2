"""The judge: Kafka's coordinator classes on random histories, and the comparison of the tables with their answers."""

from __future__ import annotations

import gzip
import json
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_engine.columns import RecordColumns, decode_record_columns
from kafka_records_tables import read_table
from kafka_records_tables.coordinator.groups.loading_groups import PASSED_OVER
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords
from tests.kafka_needed import skipped_without_kafka
from tests.tables.histories import FOLDER, history
from tests.variants import one_in
from tools.judge import __main__ as command
from tools.judge import rounds, swarm
from tools.judge.answers import Difference, Loaded
from tools.judge.compared_checks import checks, refusals
from tools.judge.compared_disappearances import precision_and_recall
from tools.judge.compared_expirations import expirations
from tools.judge.comparing import COMPARISONS, differences
from tools.judge.coordinators import Coordinators, CoordinatorsError, is_for, program
from tools.judge.decoded_once import DecodedOnce
from tools.judge.histories import History, write_log
from tools.judge.ledger import Compared, Ledger, Tally
from tools.judge.lossy import with_losses

SEEDS = (*range(17), 24, 95, 101, 303)
"""A few seeds for `make test`, and more for `make matrix`; `make judge` takes any number."""

OF_COMMITS = {"current_offsets", "pending_offsets", "offset_commits", "history"}
"""Tables that are compared only if a coordinator is asked for offsets."""


@cache
def _read(cut: int, table: str, **options: Any) -> pa.Table:
    return read_table(table, history("0001").up_to(cut), **options).table


def _read_rows(rows: pa.Table, table: str, **options: Any) -> pa.Table:
    return read_table(table, rows, **options).table


def _with(change: dict[str, Any], read: Callable[..., pa.Table], table: str, **options: Any) -> pa.Table:
    """The rows of a table, with another value in a column, or without the last row."""
    found = read(table, **options)
    if change.get("table") != table:
        return found
    if "column" not in change:
        return found.slice(0, found.num_rows - 1)
    place = found.schema.get_field_index(change["column"])
    values = pa.array([change["value"]] * found.num_rows, found.schema.field(place).type)
    return found.set_column(place, found.schema.field(place), values)


def _differences(change: dict[str, Any]) -> list[Difference]:
    told = history("0001")
    # Transactions are open at one of the two cuts, and not at the other.
    cut = 32 if change.get("table") == "pending_offsets" else 199
    return list(differences(Loaded(told, cut, partial(_with, change, partial(_read, cut)))))


def test_a_table_that_is_right_has_no_difference() -> None:
    assert _differences({}) == []


@pytest.mark.parametrize(
    "change",
    [
        {"table": "current_offsets"},
        {"table": "current_offsets", "column": "offset", "value": 4711},
        {"table": "current_offsets", "column": "leader_epoch", "value": 4711},
        {"table": "current_offsets", "column": "metadata", "value": "other"},
        {"table": "offset_commits", "column": "transaction", "value": "open"},
        {"table": "pending_offsets", "column": "partition", "value": 4711},
        {"table": "groups"},
        {"table": "groups", "column": "group_kind", "value": "streams"},
        {"table": "groups", "column": "state", "value": "Dead"},
        {"table": "groups", "column": "protocol_type", "value": "other"},
        {"table": "groups", "column": "protocol", "value": "other"},
        {"table": "groups", "column": "member_count", "value": 4711},
        {"table": "expirations", "column": "expires_timestamp_ms", "value": 4711},
        {"table": "history", "column": "offset", "value": 4711},
        {"table": "history", "column": "is_current", "value": False},
        {"table": "disappearances"},
        {"table": "disappearances", "column": "cause", "value": "other"},
        {"table": "disappearances", "column": "possible_causes", "value": ["other"]},
        {"table": "activity", "column": "commits", "value": 4711},
        {"table": "activity", "column": "unclear_deletions", "value": 4711},
        {"table": "timeline"},
        {"table": "timeline", "column": "event", "value": "emptied"},
        {"table": "timeline", "column": "member_id", "value": "other"},
        {"table": "timeline", "column": "detail", "value": '{"from": 1, "to": 1}'},
    ],
    ids=lambda change: " ".join(str(word) for word in change.values()),
)
def test_a_table_that_is_wrong_in_anything_differs(change: dict[str, Any]) -> None:
    told = {difference.table for difference in _differences(change)}
    assert told == {change["table"]}


def test_a_difference_says_what_was_asked_expected_and_got() -> None:
    listed, *_, described = map(str, _differences({"table": "groups", "column": "state", "value": "Dead"}))
    lines = listed.splitlines()
    assert lines[0] == 'groups, {"cut": 199, "question": "list_groups"}'
    assert lines[1].startswith("  expected {'")
    assert lines[2].startswith("  got      {'")
    assert lines[2].endswith("'Dead')}")
    assert described.splitlines()[1:] == ["  expected {'state': 'Stable'}", "  got      {'state': 'Dead'}"]


def test_a_table_that_cannot_be_read_is_a_difference() -> None:
    told = history("0001")

    def refuse(table: str, **_: Any) -> pa.Table:
        raise ValueError(f"no {table}")

    verdict = rounds.Verdict(1)
    rounds.compare_loaded(verdict, "in order", Loaded(told, max(told.cuts), refuse))
    first, *others = verdict.differences
    assert first.splitlines()[0] == "seed 1, 0001, cut 199, in order: current_offsets, reading it"
    assert "ValueError: no current_offsets" in first
    # The stored histories are older than the questions about deletions.
    assert len(others) == len(COMPARISONS[told.topic].keys() - {"deletable_offsets"}) - 1


def test_seeds_are_numbers_and_ranges(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ("x", "1-", "-1", "1-x", "1,2"):
        with pytest.raises(SystemExit):
            command.main([wrong, "--keep", "/nowhere"])
    assert "not a seed and no range of seeds: 1,2" in capsys.readouterr().err


def test_records_decoded_once_are_the_same() -> None:
    """Any of the rows, in any order, with and without their values; and rows of another log."""
    for name, folder in (("0001", "consumer_offsets"), ("0004-share", "share_group_state")):
        rows, schemas = history(name).rows, import_module(f"kafka_records.schemas.{folder}").RECORDS
        chance = Random(name)
        with DecodedOnce(rows.slice(0, rows.num_rows - 1)).used():
            for _ in range(20):
                chosen = rows.take(chance.choices(range(rows.num_rows), k=chance.randrange(1, 40)))
                for asked in (chosen, chosen.drop_columns("value")):
                    found = DecodedRecords(asked.combine_chunks().to_batches()[0], schemas)
                    told = decode_record_columns(schemas, found.rows.column("key"), found.rows.column("value"))
                    assert _comparable(found.columns) == _comparable(told)


def _comparable(columns: RecordColumns) -> dict[str, Any]:
    shown = {name: each.tolist() if hasattr(each, "tolist") else each for name, each in vars(columns).items()}
    return shown | {
        "records": {number: record.to_pylist() for number, record in columns.records.items()},
        "errors": {row: str(error) for row, error in columns.errors.items()},
    }


def test_precision_and_recall_of_causes() -> None:
    noted = {
        "expired told as expired, medium": 2,
        "expired told as expired, high": 1,
        "expired told as expired or offset_deleted, medium": 1,
        "offset_deleted told as expired, medium": 1,
    }
    assert list(precision_and_recall(noted)) == [
        "expired: 4 tombstones, precision 0.7500, recall 0.7500, sure 0.2500, one of several causes 0.2500",
        "offset_deleted: 1 tombstones, precision -, recall 0.0000, sure 0.0000, one of several causes 0.0000",
    ]


def _compared(times: int) -> Compared:
    return Compared(Counter(logs=1), {"groups": Tally(1, times, 0, Counter({"a rule": 2}))})


def test_a_ledger_goes_on_where_it_ended(tmp_path: Path) -> None:
    file = tmp_path / "new" / "ledger.json"
    ledger = Ledger(file)
    for seed in (3, 4, 5, 9):
        ledger.add(seed, _compared(seed))
    ledger.write()
    again = Ledger(file)
    assert (len(again), again.left_of(range(2, 11))) == (4, [2, 6, 7, 8, 10])
    again.add(6, _compared(6))
    assert list(again.compared.lines()) == [
        "table   moments  compared  differences",
        "groups        5        27            0",
        "  a rule: 10",
    ]
    assert json.loads(file.read_text("utf-8"))["seeds"] == [[3, 5], [9, 9]]
    assert list(file.parent.iterdir()) == [file]


def test_what_another_release_compared_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of other code do not count either: both are in the digest."""
    file = tmp_path / "ledger.json"
    ledger = Ledger(file)
    ledger.add(1, _compared(1))
    ledger.write()
    assert Ledger(file).left_of([1]) == []
    monkeypatch.setattr("tools.judge.ledger.LATEST", "2.8.2")
    assert Ledger(file).left_of([1]) == [1]
    assert Ledger().left_of([1]) == [1]


def _judged(seed: int) -> rounds.Verdict:
    noted = Counter({"expired told as expired, high": 1})
    return rounds.Verdict(seed, compared=Compared(Counter(logs=1), {"disappearances": Tally(1, 1, 0, noted=noted)}))


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_keeps_what_it_has(
    sent: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The seed that is being judged when the signal comes is the last; the next run counts both."""
    file = tmp_path / "ledger.json"
    arguments = ["1-5", "--keep", str(tmp_path), "--ledger", str(file)]

    def stopped_at_3(seeds: list[int], *_: Any) -> Iterator[rounds.Verdict]:
        for seed in seeds:
            if seed == 3:
                signal.raise_signal(sent)
            yield _judged(seed)

    monkeypatch.setattr(command, "program", lambda _: [])
    monkeypatch.setattr(command, "verdicts", stopped_at_3)
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert command.main(arguments) == 128 + sent
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    told = capsys.readouterr()
    assert f"Stopped by {sent.name}: 2 seeds were not judged" in told.err
    assert "\n3 seeds, 3 logs, " in told.out
    monkeypatch.setattr(command, "verdicts", lambda seeds, *_: map(_judged, seeds))
    assert command.main(arguments) == 0
    out = capsys.readouterr().out
    assert "\n2 seeds and 3 of earlier runs, 5 logs, " in out
    assert "disappearances, expired: 5 tombstones, precision 1.0000, recall 1.0000, sure 1.0000," in out


def test_other_processes_that_die_of_the_same_signal_are_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ledger.json"
    arguments = ["1-5", "--keep", str(tmp_path), "--ledger", str(file)]

    def dying(seeds: list[int], *_: Any) -> Iterator[rounds.Verdict]:
        yield _judged(seeds[0])
        raise BrokenProcessPool

    def told_to(seeds: list[int], *_: Any) -> Iterator[rounds.Verdict]:
        yield _judged(seeds[0])
        signal.raise_signal(signal.SIGTERM)
        raise BrokenProcessPool

    monkeypatch.setattr(command, "program", lambda _: [])
    monkeypatch.setattr(command, "verdicts", told_to)
    assert command.main(arguments) == 128 + signal.SIGTERM
    assert Ledger(file).left_of(range(1, 6)) == [2, 3, 4, 5]
    monkeypatch.setattr(command, "verdicts", dying)
    with pytest.raises(BrokenProcessPool):
        command.main(arguments)
    assert Ledger(file).left_of(range(1, 6)) == [3, 4, 5]


def test_a_folder_of_sources_is_for_releases() -> None:
    releases = ("4.0.0", "4.1.1", "4.2.0", "4.2.1", "4.3.1", "4.4.0")
    assert [is_for("since_4_2_before_4_3", release) for release in releases] == [False, False, True, True, False, False]
    assert [is_for("before_4_2", release) for release in releases] == [True, True, False, False, False, False]


def test_what_happened_is_counted_by_records() -> None:
    """The features of a recorded history, and of one that has no records."""
    assert swarm.happened(history("0004"), history("0004-share")) == {
        *("batched_assignments", "classic_groups", "consumer_groups", "share_groups", "streams_groups"),
        *("transactions_v1", "transactions_v2"),
    }
    drawn = Counter({frozenset(): 2, frozenset({"a"}): 2, frozenset({"b"}): 1, frozenset({"a", "b"}): 1})
    everything = Counter({frozenset(): 20, frozenset({"a"}): 20, frozenset({"b"}): 1, frozenset({"a", "b"}): 1})
    *_, pair, last = swarm.lines(drawn, everything)
    assert pair.split() == ["a", "+", "b", "1", "1"]
    assert last == (
        "20 seeds: 1 of 1 pairs are in fewer than a tenth of the histories with all features, together 1 times, and 1 "
        "times where features are drawn; 0 of them meet more often there"
    )


def test_records_of_several_writes_in_a_millisecond_of_one_batch_are_merged(tmp_path: Path) -> None:
    places = [(0, 0, 5), (1, 0, 5), (2, 0, 6), (3, 3, 6), (4, 3, 6)]
    records = [{"offset": offset, "batch": batch, "timestamp_ms": time} for offset, batch, time in places]
    write_log(tmp_path, {"history": "x"}, records)
    writes = {1: 1, 2: 2}
    with gzip.open(tmp_path / "x.why.jsonl.gz", "wt", encoding="utf-8") as file:
        for offset, *_ in places:
            cause = {"history": "x", "offset": offset, "call": "leave"}
            cause |= {"write": writes[offset]} if offset in writes else {}
            file.write(json.dumps(cause) + "\n")
    assert History(tmp_path, "x").merged == {0, 1}


# -- with Kafka's classes ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def coordinators(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Coordinators]:
    with skipped_without_kafka():
        started = program()
    with Coordinators(tmp_path_factory.mktemp("judge"), started) as running:
        yield running


@pytest.mark.maven
@pytest.mark.slow
@pytest.mark.parametrize("seed", one_in(6, SEEDS))
def test_tables_say_what_coordinators_answer_about_new_histories(seed: int, coordinators: Coordinators) -> None:
    verdict = rounds.judge(seed, coordinators)
    assert verdict.differences == []
    assert verdict.compared.counts["answers"] > 0
    # In a few histories nobody commits.
    assert {name for name, tally in verdict.compared.tables.items() if not tally.compared} in (set(), OF_COMMITS)
    assert not list(coordinators.folder.glob(f"{seed:04d}*"))


@pytest.mark.maven
@pytest.mark.slow
def test_a_seed_draws_the_features_of_its_history(coordinators: Coordinators) -> None:
    """A history has few features, the same each time. Every feature is drawn for some seed. A caller can name
    others."""
    on: Counter[str] = Counter()
    for seed in range(30):
        drawn = History(coordinators.folder, coordinators.log(seed)).header["features"].split(",")
        on.update(drawn)
        assert sum(name.endswith("_groups") for name in drawn) < 5
    again = History(coordinators.folder, coordinators.log(7)).records
    assert again == History(coordinators.folder, coordinators.log(7)).records
    named = History(coordinators.folder, coordinators.log(7, "classic_groups,static_members"))
    assert named.header["features"] == "classic_groups,static_members"
    assert swarm.happened(named) <= {"classic_groups", "static_members"}
    everything = History(coordinators.folder, coordinators.log(7, swarm.ALL)).header["features"].split(",")
    assert set(on) == set(everything)
    for left in coordinators.folder.glob("*.gz"):
        left.unlink()


@pytest.mark.maven
@pytest.mark.slow
@pytest.mark.parametrize("name", ["0004", "0004-share"])
def test_answers_are_those_that_are_known(name: str, coordinators: Coordinators) -> None:
    """Another program with the same classes answered the histories of tests/data; it was not asked what clients read in
    bytes."""
    shutil.copy(FOLDER / f"{name}.log.jsonl.gz", coordinators.folder)
    try:
        coordinators.answer(name)
        assert _sorted(History(coordinators.folder, name)) == _sorted(History(FOLDER, name))
    finally:
        # Otherwise a seed with this name would use the reasons of other tombstones.
        for left in coordinators.folder.glob(f"{name}.*"):
            left.unlink()


def _sorted(told: History) -> dict[int, list[str]]:
    """The answers to the questions that existed when the histories were stored."""
    later = ("open_members", "delete_offsets", "delete_group")
    return {
        cut: sorted(json.dumps(each) for each in questions if each["question"] not in later)
        for cut, questions in told.cuts.items()
    }


@pytest.fixture(scope="module")
def asked(coordinators: Coordinators) -> Loaded:
    """A history with questions about deletions too. Each of its tables is read once."""
    for name in ("0001.log.jsonl.gz", "why.jsonl.gz"):
        shutil.copy(FOLDER / name, coordinators.folder)
    coordinators.answer("0001")
    told = History(coordinators.folder, "0001")
    return Loaded(told, 199, cache(partial(_read_rows, told.up_to(199))))


@pytest.mark.maven
@pytest.mark.slow
def test_what_can_be_deleted_is_what_a_coordinator_deletes(asked: Loaded) -> None:
    assert list(differences(asked)) == []


@pytest.mark.maven
@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"table": "deletable_offsets"},
        {"table": "deletable_offsets", "column": "topic", "value": "other"},
        {"table": "deletable_offsets", "column": "error", "value": "NON_EMPTY_GROUP"},
        {"table": "deletable_offsets", "column": "is_deletable", "value": None},
        {"table": "deletable_offsets", "column": "kind", "value": "group"},
    ],
    ids=lambda change: " ".join(str(word) for word in change.values()),
)
def test_another_answer_about_what_can_be_deleted_differs(change: dict[str, Any], asked: Loaded) -> None:
    wrong = Loaded(asked.history, asked.cut, partial(_with, change, asked.read))
    assert {difference.table for difference in differences(wrong)} == {"deletable_offsets"}


@pytest.mark.maven
@pytest.mark.slow
def test_of_a_log_that_has_lost_records_is_compared_whether_a_coordinator_loads_it(coordinators: Coordinators) -> None:
    shutil.copy(FOLDER / "0001.log.jsonl.gz", coordinators.folder)
    told = History(coordinators.folder, "0001")
    refused = 0
    for number in range(12):
        lossy = with_losses(told, Random(number))
        coordinators.answer(lossy.name)
        lossy = History(coordinators.folder, lossy.name)
        (cut,) = lossy.cuts
        assert len(lossy.records) < len(told.records)
        assert list(refusals(Loaded(lossy, cut, partial(_read_rows, lossy.rows)))) == []
        blind = partial(
            _with, {"table": "checks", "column": "check", "value": "other"}, partial(_read_rows, lossy.rows)
        )
        is_stopped = lossy.cuts[cut][0]["question"] == "load"
        assert len(list(refusals(Loaded(lossy, cut, blind)))) == is_stopped
        refused += is_stopped
    assert 0 < refused < 12


def test_a_clean_up_that_kafka_fails_at_is_a_rule_and_not_compared(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "0001.log.jsonl.gz", tmp_path)
    failed = {"cut": 199, "question": "next_cleanup", "at_ms": 1 << 60, "error": "is not supported for Share Groups."}
    with gzip.open(tmp_path / "0001.answers.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(json.dumps(failed) + "\n")
    told = History(tmp_path, "0001")
    loaded = Loaded(told, 199, partial(_read_rows, told.up_to(199)))
    assert list(expirations(loaded)) == []
    assert loaded.used == {"a clean-up that fails": 1}


@pytest.mark.parametrize(("release", "is_alarm"), [("4.3.1", True), ("4.4.0", False)])
def test_a_subscription_that_4_4_passes_over_is_no_alarm_there(tmp_path: Path, release: str, is_alarm: bool) -> None:
    told = history("0001")
    for name in ("log", "answers"):
        shutil.copy(FOLDER / f"0001.{name}.jsonl.gz", tmp_path)
    write_log(tmp_path, told.header | {"kafka": release}, told.records)
    loaded_by = History(tmp_path, "0001")
    detail = f"value of GroupMetadata: the subscription of a member cannot be read: it is cut ({PASSED_OVER}); stops"
    change = {"check": "replay_conflict", "detail": detail, "level": "broken", "log_offset": 1, "topic_id": None}

    def read(table: str, **_: Any) -> pa.Table:
        assert table == "checks"
        return pa.Table.from_pylist([change])

    loaded = Loaded(loaded_by, 32, read)
    assert bool(list(checks(loaded))) == is_alarm
    assert (loaded.used["a subscription that 4.4 passes over"] > 0) != is_alarm


@pytest.mark.maven
@pytest.mark.slow
def test_a_log_that_kafka_does_not_load_has_no_other_answer(coordinators: Coordinators) -> None:
    """A cleaner removed the tombstone of a member's assignment, but not yet that of the member."""
    told = history("0001")
    member = next(record for record in told.records if record.get("key", "").startswith("0005"))
    tombstone = member | {"offset": 1, "batch": 1, "value": None}
    *_, asked = told.header["questions"]
    header = told.header | {"history": "refused", "questions": [asked | {"cut": 1}]}
    write_log(coordinators.folder, header, [member | {"offset": 0, "batch": 0}, tombstone])
    coordinators.answer("refused")
    ((cut, (question,)),) = History(coordinators.folder, "refused").cuts.items()
    assert (cut, question["question"]) == (1, "load")
    assert "Received a tombstone record to delete member" in question["error"]


@pytest.mark.maven
@pytest.mark.slow
def test_offsets_of_record_type_0_come_back_with_their_group(coordinators: Coordinators) -> None:
    """A cleaner removed their tombstone, whose key differs; the group was deleted, and then exists again."""
    group, offset = b"\0\1g", b"\0\1t\0\0\0\0"
    value = (7).to_bytes(8, "big") + b"\0\0" + (1_700_000_000_000).to_bytes(8, "big")
    written = [
        (b"\0\0" + group + offset, b"\0\0" + value),
        (b"\0\2" + group, None),
        (b"\0\0\0\1h" + offset, b"\0\0" + value),
    ]
    again = [*written, (b"\0\0" + group + b"\0\1u\0\0\0\0", b"\0\0" + value)]
    for name, records, used in (("gone", written, 8), ("again", again, 0)):
        _write(coordinators.folder, name, records)
        coordinators.answer(name)
        told = History(coordinators.folder, name)
        (cut,) = told.cuts
        loaded = Loaded(told, cut, partial(_with, {}, partial(_read_rows, told.rows)))
        assert list(differences(loaded)) == []
        # Asked for some offsets and for all, those that are stable and plainly, of current_offsets and of history.
        assert loaded.used["offsets without their group"] == used


def _write(folder: Path, name: str, records: list[tuple[bytes, bytes | None]]) -> None:
    told = history("0001").header
    *_, asked = told["questions"]
    header = told | {"history": name, "questions": [asked | {"cut": len(records) - 1}]}
    common = {"timestamp_ms": 1_700_000_000_000, "producer_id": -1, "producer_epoch": -1, "transactional": False}
    lines = [
        {"offset": at, "batch": at, "key": key.hex(), "value": None if value is None else value.hex()} | common
        for at, (key, value) in enumerate(records)
    ]
    write_log(folder, header, lines)
    causes = [
        {"history": name, "offset": at, "why": "group_deleted"}
        for at, (_, value) in enumerate(records)
        if value is None
    ]
    with gzip.open(folder / f"{name}.why.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in causes)


@pytest.mark.maven
@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "what"),
    [(25, ("subscription", "allocation")), (34, ("user_data", "generation"))],
    ids=["connect", "sticky"],
)
def test_what_clients_read_in_bytes_of_members_is_compared(
    seed: int, what: tuple[str, str], coordinators: Coordinators
) -> None:
    told = History(coordinators.folder, coordinators.write(seed))
    part, name = what
    nothing = {"version": None, "opened": None, "user_data": None, "bytes": b""}
    change = {"table": "members", "column": "protocols", "value": [{"name": "sticky"} | nothing]}
    cut = next(cut for cut, asked in told.cuts.items() if any(_opens(question, part, name) for question in asked))
    rows = told.up_to(cut)
    assert list(differences(Loaded(told, cut, partial(_with, {}, partial(_read_rows, rows))))) == []
    wrong = differences(Loaded(told, cut, partial(_with, change, partial(_read_rows, rows))))
    assert any('"open_members"' in difference.about for difference in wrong)


def _opens(question: dict[str, Any], part: str, name: str) -> bool:
    """Whether the answer has a value for some member."""
    return question["question"] == "open_members" and any(
        member[part] and member[part].get(name) not in (None, -1) for member in question["answer"].values()
    )


@pytest.mark.maven
@pytest.mark.slow
def test_a_seed_is_a_history(coordinators: Coordinators) -> None:
    first = _files_of(coordinators, 20)
    assert first == _files_of(coordinators, 20)
    assert sorted(first) == [
        f"0020{name}.jsonl.gz" for name in ("-share.answers", "-share.log", ".answers", ".log", ".why")
    ]
    for name in ("0020", "0020-share"):
        told = History(coordinators.folder, name)
        assert len(told.records) == len(told.why) > 5
        tombstones = [record["offset"] for record in told.records if record.get("value", "") is None]
        assert tombstones == [offset for offset, line in told.why.items() if "why" in line]
    assert told.topic == "__share_group_state"


def _files_of(coordinators: Coordinators, seed: int) -> dict[str, list[str]]:
    name = coordinators.write(seed, "consumer_groups,share_groups")
    return {
        file.name: gzip.decompress(file.read_bytes()).decode().splitlines()
        for file in coordinators.folder.glob(f"{name}*.gz")
    }


@pytest.mark.maven
@pytest.mark.slow
def test_a_difference_is_told_and_its_files_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with skipped_without_kafka():
        program()

    def of_no_groups(table: str, source: Any, **options: Any) -> Any:
        return read_table(table, source, group="\0 nobody", **options)

    keep, ledger = tmp_path / "kept", tmp_path / "ledger.json"
    arguments = ["4", "--workers", "1", "--keep", str(keep)]
    monkeypatch.setattr(rounds, "read_table", of_no_groups)
    assert command.main([*arguments, "--ledger", str(ledger)]) == 1
    out = capsys.readouterr().out
    assert f"The histories that differ are in {keep}" in out
    assert out.count("seed 4, ") == 20
    assert (keep / "0004.log.jsonl.gz").exists()
    monkeypatch.undo()
    shutil.rmtree(keep)
    # A seed that differed is judged again.
    assert command.main([*arguments, "--ledger", str(ledger)]) == 0
    assert list(keep.iterdir()) == []
    assert "\n1 seeds, " in capsys.readouterr().out
    assert command.main([*arguments, "--ledger", str(ledger)]) == 0
    assert "\n0 seeds and 1 of earlier runs, " in capsys.readouterr().out


@pytest.mark.maven
@pytest.mark.slow
def test_a_log_that_is_not_there_ends_it_with_its_last_words(tmp_path: Path) -> None:
    with skipped_without_kafka():
        started = program()
    with Coordinators(tmp_path, started) as running, pytest.raises(CoordinatorsError) as caught:
        running.answer("nothing")
    first, *rest = str(caught.value).splitlines()
    assert first == "The judge failed at `answer nothing`:"
    assert "NoSuchFileException" in rest[0]
