"""The tables over logs that Kafka's coordinator classes wrote, against what those classes answer about them.

A coordinator answered at several cuts of each log, having loaded the records up to there. Where the log cannot tell
what it answers, a rule of `UNTOLD` says so, and why; no other difference is allowed, and no rule that is not needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from kafka_records.consumer_offsets import decode_record
from kafka_records_tables import read_table
from tests.tables.histories import NAMES, Question, history

UNTOLD = {
    "a simple group is classic": "Kafka has no word of its own for a classic group without a protocol type; the table "
    "calls it simple",
    "the generation of a classic group": "describe has no field for it",
    "the protocol of a group that is not classic": "their members agree on none, the broker assigns",
    "a share group's first epoch": "a share group known by its share offsets alone has no record with an epoch; the "
    "coordinator starts to count at 1",
}
"""What the log cannot tell, or tells otherwise, and why."""

USED: Counter[str] = Counter()
"""How often each rule was needed, over all histories."""

Offset = tuple[str, int, int, int, str]


class _Group(NamedTuple):
    """What both the table and describe say of a group."""

    kind: str
    protocol_type: str
    state: str
    epoch: int | None
    protocol: str | None
    members: int


def test_every_history_is_here() -> None:
    assert len(NAMES) == 60
    assert sum(len(history(name).cuts) for name in NAMES) == 224


@pytest.mark.parametrize("name", NAMES)
def test_offsets_are_those_the_coordinator_fetched(name: str) -> None:
    for cut, questions in history(name).cuts.items():
        found = offsets_of(_read(name, "current_offsets", cut))
        open_commits = open_commits_of(_read(name, "offset_commits", cut))
        for question in questions:
            check_offsets(question, found, open_commits)


@pytest.mark.parametrize("name", NAMES)
def test_groups_are_those_the_coordinator_listed_and_described(name: str) -> None:
    for cut, questions in history(name).cuts.items():
        check_groups(questions, _read(name, "groups", cut))


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_as_of_a_time_is_that_of_the_log_up_to_it(name: str) -> None:
    """A cut is a time where the next record has a later timestamp; the timestamps of a history never fall."""
    whole = history(name)
    times = whole.rows["timestamp_ms"].to_pylist()
    for cut, questions in whole.cuts.items():
        if cut + 1 < len(times) and times[cut + 1] == times[cut]:
            continue
        found = offsets_of(_read(name, "current_offsets", as_of=times[cut]))
        open_commits = open_commits_of(_read(name, "offset_commits", as_of=times[cut]))
        for question in questions:
            check_offsets(question, found, open_commits)
        check_groups(questions, _read(name, "groups", as_of=times[cut]))


def test_some_cuts_are_times() -> None:
    assert (
        sum(
            cut + 1 < whole.rows.num_rows and times[cut + 1] > times[cut]
            for whole in map(history, NAMES)
            for times in [whole.rows["timestamp_ms"].to_pylist()]
            for cut in whole.cuts
        )
        > 60
    )


@pytest.mark.parametrize("name", NAMES)
def test_commits_are_the_records_of_the_log(name: str) -> None:
    found = _read(name, "offset_commits", max(history(name).cuts)).to_pylist()

    assert max(history(name).cuts) == history(name).records[-1]["offset"]
    expected = list(expected_commits(history(name).records))
    assert sorted(found, key=lambda row: row["log_offset"]) == expected


def test_every_rule_is_needed() -> None:
    """Counted anew: this test says the same whichever ran before it."""
    USED.clear()
    for name in NAMES:
        for cut, questions in history(name).cuts.items():
            check_groups(questions, _read(name, "groups", cut))

    assert set(USED) == set(UNTOLD)


@cache
def _read(name: str, table: str, cut: int | None = None, as_of: int | None = None) -> pa.Table:
    """The rows of a table over a history, up to a cut or all of it; there is nothing to find."""
    rows = history(name).rows if cut is None else history(name).up_to(cut)
    result = read_table(table, rows, as_of=as_of)
    assert result.findings == ()
    return result.table


# -- offsets -----------------------------------------------------------------------------------------------------------


def offsets_of(table: pa.Table) -> dict[str, set[Offset]]:
    offsets: dict[str, set[Offset]] = {}
    columns = ("group_id", "topic", "partition", "offset", "leader_epoch", "metadata")
    for group, *offset in zip(*(table[name].to_pylist() for name in columns), strict=True):
        if offset[3] is None:
            offset[3] = -1
        offsets.setdefault(group, set()).add(tuple(offset))
    return offsets


def open_commits_of(commits: pa.Table) -> dict[str, set[tuple[str, int]]]:
    """The partitions of each group with a commit in an open transaction and no tombstone behind it."""
    deleted: dict[tuple[str, str, int], int] = {}
    pending: dict[tuple[str, str, int], int] = {}
    columns = ("group_id", "topic", "partition", "log_offset", "is_tombstone", "transaction")
    for group, topic, partition, place, is_tombstone, transaction in zip(
        *(commits[name].to_pylist() for name in columns), strict=True
    ):
        kept = deleted if is_tombstone else pending
        if is_tombstone or transaction == "open":
            kept[group, topic, partition] = max(place, kept.get((group, topic, partition), -1))
    found: dict[str, set[tuple[str, int]]] = {}
    for (group, topic, partition), place in pending.items():
        if place > deleted.get((group, topic, partition), -1):
            found.setdefault(group, set()).add((topic, partition))
    return found


def check_offsets(
    question: Question, offsets: dict[str, set[Offset]], open_commits: dict[str, set[tuple[str, int]]]
) -> None:
    if question["question"] not in ("fetch_all_offsets", "fetch_offsets"):
        return
    committed = offsets.get(question["group"], set())
    unstable = open_commits.get(question["group"], set()) if question["require_stable"] else set()
    answer = question["answer"]
    found = {
        (each["topic"], each["partition"], each["offset"], each["leader_epoch"], each["metadata"])
        for each in answer
        if each["offset"] != -1
    }
    refused = {(each["topic"], each["partition"]) for each in answer if "error" in each}
    assert {each["error"] for each in answer if "error" in each} <= {"UNSTABLE_OFFSET_COMMIT"}
    assert found == {offset for offset in committed if offset[:2] not in unstable}
    if question["question"] == "fetch_all_offsets":
        # Of partitions with an open transaction and nothing older it knows nothing.
        unstable = unstable & {offset[:2] for offset in committed}
    assert refused == unstable


# -- groups ------------------------------------------------------------------------------------------------------------


def check_groups(questions: list[Question], table: pa.Table) -> None:
    columns = ("group_kind", "protocol_type", "state", "epoch", "protocol", "member_count")
    rows = zip(*(table[name].to_pylist() for name in columns), strict=True)
    found = {group: _Group(*row) for group, row in zip(table["group_id"].to_pylist(), rows, strict=True)}
    assert len(found) == table.num_rows
    asked = 0
    for question in questions:
        if question["question"] == "list_groups":
            listed = {
                each["groupId"]: (each["groupType"], each["protocolType"], each["groupState"])
                for each in question["answer"]
            }
            assert listed == {group: (_kind(row), row.protocol_type, row.state) for group, row in found.items()}
            asked += 1
        elif question["question"] == "describe":
            _check_description(question["answer"], found[question["group"]])
            asked += 1
    assert asked == 1 + len(found)


def _kind(row: _Group) -> Any:
    return _untold("a simple group is classic", "classic") if row.kind == "simple" else row.kind


def _check_description(answer: dict[str, Any], row: _Group) -> None:
    assert answer["errorCode"] == 0
    assert answer["groupState"] == row.state
    assert len(answer["members"]) == row.members
    if row.kind in ("classic", "simple"):
        assert answer["protocolType"] == row.protocol_type
        assert answer["protocolData"] == (row.protocol or "")
        assert "groupEpoch" not in answer
        _untold("the generation of a classic group", None)
        return
    assert row.protocol is None
    _untold("the protocol of a group that is not classic", None)
    assert answer["groupEpoch"] == (_untold("a share group's first epoch", 1) if row.epoch is None else row.epoch)


def _untold(rule: str, answer: Any) -> Any:
    assert rule in UNTOLD
    USED[rule] += 1
    return answer


# -- commits -----------------------------------------------------------------------------------------------------------


def expected_commits(records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows of `offset_commits`, made by the row codecs and by reading the log backwards for the markers."""
    outcomes: dict[int, str] = {}
    rows = []
    for record in reversed(records):
        producer = record["producer_id"]
        if "control" in record:
            outcomes[producer] = "committed" if record["control"] == "commit" else "aborted"
            continue
        key = bytes.fromhex(record["key"])
        if key[:2] not in (b"\x00\x00", b"\x00\x01"):
            continue
        outcome = outcomes.get(producer, "open") if record["transactional"] else "none"
        value = None if record["value"] is None else bytes.fromhex(record["value"])
        rows.append(_commit_row(record, key, value, outcome))
    yield from reversed(rows)


def _commit_row(record: dict[str, Any], key: bytes, value: bytes | None, outcome: str) -> dict[str, Any]:
    decoded = decode_record(key, value)
    of, told = decoded.key, decoded.value
    topic_id = str(getattr(told, "topic_id", "A" * 22))
    epoch, expires = getattr(told, "leader_epoch", -1), getattr(told, "expire_timestamp", -1)
    return {
        "group_id": of.group,
        "topic": of.topic,
        "topic_id": None if topic_id == "A" * 22 else topic_id,
        "partition": of.partition,
        "offset": None if told is None else told.offset,
        "leader_epoch": None if epoch == -1 else epoch,
        "metadata": None if told is None else told.metadata,
        **_instant("commit", None if told is None else told.commit_timestamp),
        **_instant("expire", None if expires == -1 else expires),
        "is_tombstone": told is None,
        "transaction": outcome,
        "producer_id": None if record["producer_id"] == -1 else record["producer_id"],
        **_instant("log", record["timestamp_ms"]),
        "log_partition": 0,
        "log_offset": record["offset"],
    }


def _instant(name: str, milliseconds: int | None) -> dict[str, Any]:
    instant = None if milliseconds is None else pa.scalar(milliseconds, pa.timestamp("ms", tz="UTC")).as_py()
    return {f"{name}_timestamp": instant, f"{name}_timestamp_ms": milliseconds}
