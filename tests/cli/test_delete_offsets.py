"""`kafka-records delete-offsets` without a broker: lists, the file of what was deleted, plans and wrong usage."""

from __future__ import annotations

import io
import json
import socket
import sys
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa
import pytest
from pyarrow import parquet

from kafka_records_engine.sources import group_requests
from kafka_records_engine.sources.fetched_offsets import UNSTABLE, CommittedOffset, FetchedOffsets
from kafka_records_engine.sources.group_requests import DescribedTopic, ListedGroup
from kafka_records_engine.sources.group_subscriptions import GroupSubscriptions
from kafka_records_tables import read_table
from kafka_records_tables.commands.main import main
from kafka_records_tables.console import asking
from kafka_records_tables.console.endings import CommandError
from kafka_records_tables.deletion.deleted_file import DeletedFile, DeletedOffsets, deleted_of
from kafka_records_tables.deletion.deletion_lines import lines_of
from kafka_records_tables.deletion.deletion_list import DeletionList, Expected, Wanted, of_arguments, of_file
from kafka_records_tables.deletion.deletion_plan import UNKNOWN_TOPIC, GroupPlan, Item, leave_out_changed, planned
from kafka_records_tables.deletion.subscribed_topics import subscribed_topics
from kafka_records_tables.results.csv_lines import write_csv
from kafka_records_tables.results.json_lines import write_json
from tests.cli.running import run

ODD = '\u2028"odd",\n\x1b[31m'
ROWS: list[dict[str, Any]] = [
    {"kind": "offset", "group_id": ODD, "topic": "t", "partition": 0, "offset": 2**62, "metadata": ODD},
    {"kind": "offset", "group_id": ODD, "topic": "t", "partition": 1, "offset": 0, "metadata": "", "leader_epoch": 3},
    {"kind": "offset", "group_id": ODD, "topic": "t", "partition": 2, "offset": None, "metadata": None},
    {"kind": "offset", "group_id": "g", "topic": "t", "partition": 0, "offset": 1, "is_deletable": False},
    {"kind": "offset", "group_id": "g", "topic": "t", "partition": 1, "offset": 1, "is_deletable": None},
    {"kind": "group", "group_id": ODD},
    {"kind": "group", "group_id": "g", "is_deletable": False},
]
SCHEMA = pa.schema(
    {
        "kind": pa.string(),
        "group_id": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "leader_epoch": pa.int32(),
        "metadata": pa.string(),
        "is_deletable": pa.bool_(),
        "commit_timestamp_ms": pa.int64(),
    }
)


def written(path: Path) -> Path:
    """Write ROWS in the form in which the command writes a table."""
    usual: dict[str, Any] = {"is_deletable": True, "commit_timestamp_ms": 7}
    rows = pa.Table.from_pylist([usual | row for row in ROWS], SCHEMA)
    if path.suffix == ".parquet":
        parquet.write_table(rows, path)
        return path
    with path.open("w", encoding="utf-8", newline="") as out:
        if path.suffix == ".csv":
            write_csv(rows.to_batches(), SCHEMA, out)
        else:
            write_json(rows.to_batches(), out)
    return path


# -- lists -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_a_list_in_any_form_says_the_same(tmp_path: Path, ending: str) -> None:
    path = str(written(tmp_path / f"list.{ending}"))
    expected = {
        ("t", 0): Expected(2**62, -1, ODD, 7),
        ("t", 1): Expected(0, 3, "", 7),
        ("t", 2): Expected(None, -1, "", 7),
    }
    assert of_file(path, whole=False) == DeletionList({ODD: Wanted(expected, has_list=True)}, passed_over=2, groups=2)
    whole = of_file(path, whole=True)
    assert whole == DeletionList({ODD: Wanted(expected, has_list=True, is_whole=True)}, passed_over=2)


def test_a_list_comes_by_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = written(tmp_path / "list.json").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert of_file("-", whole=False).wanted.keys() == {ODD}


def test_an_offset_may_be_negative(tmp_path: Path) -> None:
    """A client may commit a negative offset, and the table lists it."""
    (path := tmp_path / "list.jsonl").write_bytes(b'{"group_id":"g","topic":"t","partition":3,"offset":-7}\n')
    assert of_file(str(path), whole=False).wanted["g"].expected == {("t", 3): Expected(-7)}


def test_a_list_of_few_columns_is_compared_by_these(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text('{"group_id":"g","topic":"t","partition":0,"offset":5}\n', encoding="utf-8")
    (expected,) = of_file(str(path), whole=False).wanted["g"].expected.values()
    assert expected == Expected(5)
    assert expected.is_met_by(CommittedOffset(5, 9, "anything"))
    assert not expected.is_met_by(CommittedOffset(6, 9, "anything"))
    assert not expected.is_met_by(None)


@pytest.mark.parametrize("ending", ["csv", "parquet", "json", "jsonl"])
def test_a_list_that_pandas_has_saved_says_the_same(tmp_path: Path, ending: str) -> None:
    """pandas writes whole numbers as floats if one number of the column is null."""
    path = tmp_path / f"list.{ending}"
    of_group = {
        "kind": "group",
        "group_id": "g",
        "topic": None,
        "partition": None,
        "offset": None,
        "leader_epoch": None,
    }
    of_offset = {"kind": "offset", "group_id": "g", "topic": "t", "partition": 3, "offset": 7, "leader_epoch": 2}
    frame = pandas.DataFrame([of_group | {"is_deletable": False}, of_offset | {"is_deletable": True}])
    assert frame["offset"].dtype == float
    if ending == "csv":
        frame.to_csv(path)
    elif ending == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=ending == "jsonl")
    assert of_file(str(path), whole=False).wanted["g"].expected == {("t", 3): Expected(7, 2)}


@pytest.mark.parametrize("content", [b"", b"\n", b"[]", b"\xef\xbb\xbfgroup_id,topic,partition,offset\r\n"])
def test_a_list_without_rows_asks_for_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    """No broker is asked: this address has none."""
    path = tmp_path / "list"
    path.write_bytes(content)
    assert main(["delete-offsets", str(path), "--bootstrap", "localhost:1"]) == 0
    assert capsys.readouterr() == ("", "the list has no rows that are to be deleted: no broker was asked\n")


def test_who_cannot_be_asked_is_told_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))
    assert main(["delete-offsets", str(tmp_path / "none"), "--bootstrap", "localhost:1", "--execute"]) == 2
    assert capsys.readouterr().err == (
        "kafka-records: this is not a terminal, so the command cannot ask for confirmation: add --yes to --execute\n"
    )


NEEDED = "(required: group_id, topic, partition, offset)"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b'{"group_id":"g","topic":"t","partition":0}\n', f"it has no column offset {NEEDED}"),
        (b'{"group_id":"g"\n', "line 1: Expecting ',' delimiter: line 1 column 16 (char 15)"),
        (b"group_id,topic\r\ng,t\r\n", f"it has no column partition {NEEDED}"),
        (
            b'{"group_id":"g","topic":"t","partition":0,"offset":1}\n{"group_id":null,"topic":"t","partition":0,"offset":1}',
            "line 2: group_id: null is not a string",
        ),
        (b'{"group_id":["g"],"topic":"t","partition":0,"offset":1}', "line 1: group_id: ['g'] is not a string"),
        (b'{"group_id":"g","topic":"","partition":0,"offset":1}', "line 1: topic: it is empty"),
        (b'{"group_id":"g","topic":"t","partition":true,"offset":1}', "line 1: partition: True is not a whole number"),
        (
            b'{"group_id":"g","topic":"t","partition":2147483648,"offset":1}',
            "line 1: partition: 2147483648 is out of range",
        ),
        (b'{"group_id":"g","topic":"t","partition":-1,"offset":1}', "line 1: partition: -1 is out of range"),
        (
            b'{"group_id":"g","topic":"t","partition":0,"offset":1,"is_deletable":"yes"}',
            "line 1: is_deletable: 'yes' is neither true nor false",
        ),
        (
            b'{"group_id":"g","topic":"t","partition":0,"offset":1,"is_deletable":1}',
            "line 1: is_deletable: 1 is neither true nor false",
        ),
        (b"group_id,topic,partition,offset\ng,t,0,5.5\n", "row 1: offset: '5.5' is not a whole number"),
        (b"group_id,topic,partition,offset\ng,t,0,1e3\n", "row 1: offset: '1e3' is not a whole number"),
        (
            b"group_id,topic,partition,offset\ng,t,0,9007199254740994.0\n",
            "row 1: offset: 9007199254740994.0 was a floating point number, which is not exact beyond "
            "9007199254740992",
        ),
        (b'[{"group_id":"g","topic":"t","partition":0,"offset":0.5}]', "row 1: offset: 0.5 is not a whole number"),
        (b"kind,group_id,topic,partition,offset\noffset,g,t,0,1\n,g,t,1,1\n", "row 2: kind: null is not a string"),
        (b"kind,group_id,topic,partition,offset\nother,g,t,0,1\n", "row 1: kind: 'other' is neither offset nor group"),
        (b'{"group_id":"g","topic":"t","partition":0,"offset":1}\n[]\n', "line 2: it is not an object"),
    ],
)
def test_what_is_no_list_says_so(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "list"
    path.write_bytes(content)
    with pytest.raises(CommandError) as caught:
        of_file(str(path), whole=False)
    rest = "this is not a list of offsets: create one with `kafka-records table deletable_offsets … --format json`"
    assert str(caught.value) == f"{path}: {what}: {rest}"


@pytest.mark.parametrize("quoted", ["{}", '"{}"'])
def test_whether_it_is_deletable_may_be_written_in_any_case(tmp_path: Path, quoted: str) -> None:
    path = tmp_path / "list"
    texts = ("True", "TRUE", "true", "False", "FALSE", "false")
    rows = "".join(f"g,t,{number},5,{quoted.format(text)}\n" for number, text in enumerate(texts))
    path.write_text(f"group_id,topic,partition,offset,is_deletable\n{rows}", encoding="utf-8")
    found = of_file(str(path), whole=False)
    assert (set(found.wanted["g"].expected), found.passed_over) == ({("t", 0), ("t", 1), ("t", 2)}, 3)
    path.write_text('{"group_id":"g","topic":"t","partition":0,"offset":5,"is_deletable":"false"}\n', encoding="utf-8")
    assert of_file(str(path), whole=False) == DeletionList(passed_over=1)


def test_offsets_of_groups_without_members_go_if_somebody_says_so(tmp_path: Path) -> None:
    path = tmp_path / "list"
    reasons = ("not_subscribed", "no_members", "simple_group", "no_members")
    rows = "".join(f"offset,g{number},t,0,5,{reason}\n" for number, reason in enumerate(reasons))
    content = f"kind,group_id,topic,partition,offset,reason\n{rows}group,g3,,,,no_members\n"
    path.write_text(content, encoding="utf-8")

    def taken(**options: Any) -> tuple[set[str], dict[str, int]]:
        found = of_file(str(path), **{"whole": False} | options)
        return set(found.wanted), dict(found.left_out)

    assert taken() == ({"g0"}, {"no_members": 2, "simple_group": 1})
    assert taken(also=("no_members",)) == ({"g0", "g1", "g3"}, {"simple_group": 1})
    assert taken(also=("no_members", "simple_group")) == ({"g0", "g1", "g2", "g3"}, {})
    assert taken(whole=True) == ({"g0", "g3"}, {"no_members": 1, "simple_group": 1})
    assert set(of_file(str(path), whole=True).wanted["g3"].expected) == {("t", 0)}


def test_arguments_name_topics_and_partitions() -> None:
    found = of_arguments(["g", "h"], ["orders:0,12", "returns"], whole=False)
    assert found.wanted == dict.fromkeys(("g", "h"), Wanted(places={("orders", 0), ("orders", 12)}, topics={"returns"}))
    for wrong in (":0", "orders:", "orders:x", "orders:-1", ""):
        with pytest.raises(ValueError, match="is not of the form TOPIC or TOPIC:PARTITION"):
            of_arguments(["g"], [wrong], whole=False)


# -- the file of what was deleted --------------------------------------------------------------------------------------


def plan_of(group: str, *partitions: int) -> GroupPlan:
    items = [Item("t", each, CommittedOffset(each + 10, each, ODD), commit_timestamp_ms=7) for each in partitions]
    return GroupPlan(group, items)


def test_what_is_written_before_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "deleted.jsonl"
    topics = {"t": DescribedTopic("M4_2Tv--T0Gv8t6piaeUcQ", frozenset({0, 1}))}
    with DeletedFile(path) as file:
        file.before([plan_of(ODD, 0, 1), plan_of("h", 0)], topics)
        on_disk = path.read_text(encoding="utf-8")
        file.kept(ODD, [("t", 1)])
    assert json.loads(on_disk.splitlines()[0]) == {
        "kind": "offset",
        "group_id": ODD,
        "topic": "t",
        "topic_id": "M4_2Tv--T0Gv8t6piaeUcQ",
        "partition": 0,
        "offset": 10,
        "leader_epoch": 0,
        "metadata": ODD,
        "commit_timestamp_ms": 7,
    }
    found = deleted_of(str(path)).by_group
    assert {group: deleted.offsets for group, deleted in found.items()} == {
        ODD: {("t", 0): CommittedOffset(10, 0, ODD)},
        "h": {("t", 0): CommittedOffset(10, 0, ODD)},
    }
    assert found["h"].topic_ids == {"t": "M4_2Tv--T0Gv8t6piaeUcQ"}
    with pytest.raises(CommandError, match="already exists; give another file with --output"):
        DeletedFile(path)


def test_a_last_line_without_an_end_counts_if_it_is_whole(tmp_path: Path) -> None:
    """An editor may remove the last line end. A truncated line was not complete on disk, so its offset was not
    deleted."""
    path = tmp_path / "deleted.jsonl"
    with DeletedFile(path) as file:
        file.before([plan_of("g", 0, 1)], {})
    whole = path.read_bytes()
    first = whole.index(b"\n")
    for end in range(len(whole) + 1):
        path.write_bytes(whole[:end])
        found, cut_line, _ = deleted_of(str(path))
        lines = (end >= first) + (end >= len(whole) - 1)
        assert sum(len(each.offsets) for each in found.values()) == lines
        is_whole = end in (0, first, first + 1, len(whole) - 1, len(whole))
        assert cut_line == (None if is_whole else lines + 1)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"x\n", "it has no column group_id (required: group_id, topic, partition, offset)"),
        (b"{}\n", "line 1: it has no field group_id (required: group_id, topic, partition, offset)"),
        (
            b'{"kind":"other","group_id":"g","topic":"t","partition":0}\n',
            "line 1: unknown kind of line 'other'",
        ),
        (b"\xff\n", "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        (
            b'{"group_id":"g","topic":"t","partition":0,"offset":4}\n{"group_id":"g","topic":"t","partition":0,"offset":5}\n',
            "line 2: another row has a different offset of group 'g' for partition 0 of t: keep one of them",
        ),
        (b'{"group_id":"g","topic":"t","partition":-1,"offset":4}\n', "line 1: partition: -1 is out of range"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(CommandError) as caught:
        deleted_of(str(path))
    assert str(caught.value) == (
        f"{path}: {what}: --restore takes a file that delete-offsets has written, or rows of a table, as "
        "`kafka-records table current_offsets … --format json --output FILE` writes them"
    )


@pytest.mark.parametrize("ending", ["json", "csv", "parquet"])
@pytest.mark.parametrize("table", ["current_offsets", "deletable_offsets"])
def test_rows_of_a_table_can_be_restored_with_their_metadata(
    tmp_path: Path, topics_dir: Path, table: str, ending: str
) -> None:
    path, segments = tmp_path / f"offsets.{ending}", topics_dir / "kafka-4.3" / "segments"
    written = run("table", table, str(segments), "--format", ending, "--output", str(path))
    assert written.status == 0, written.err
    expected: dict[str, dict[tuple[str, int], CommittedOffset]] = {}
    rows = [row for row in read_table("current_offsets", segments).table.to_pylist() if row["offset"] is not None]
    for row in rows:
        epoch = -1 if row["leader_epoch"] is None else row["leader_epoch"]
        place = row["topic"], row["partition"]
        expected.setdefault(row["group_id"], {})[place] = CommittedOffset(row["offset"], epoch, row["metadata"] or "")
    assert {each.metadata for of_group in expected.values() for each in of_group.values()} > {""}
    found = deleted_of(str(path))
    assert {group: each.offsets for group, each in found.by_group.items()} == expected
    ids = {(row["group_id"], row["topic"]): row["topic_id"] for row in rows if row["topic_id"] is not None}
    assert ids
    told = {(group, *each) for group, deleted in found.by_group.items() for each in deleted.topic_ids.items()}
    assert told == {(*place, topic_id) for place, topic_id in ids.items()}


def test_a_row_without_an_offset_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(b'{"group_id":"g","topic":"t","partition":0,"offset":null}\n')
    assert deleted_of(str(path)) == DeletedOffsets({}, passed_over=1)


# -- plans -------------------------------------------------------------------------------------------------------------

THERE = {"t": DescribedTopic("A" * 22, frozenset({0, 1, 2}))}
HELD = {("t", 0): CommittedOffset(5, -1, ""), ("t", 1): CommittedOffset(6, -1, "")}


@pytest.mark.parametrize(
    ("listed", "whole", "error"),
    [
        (None, False, "GROUP_ID_NOT_FOUND"),
        (ListedGroup("share", "Stable", "share"), False, "SHARE_GROUP"),
        (ListedGroup("share", "Empty", "share"), True, "SHARE_GROUP"),
        (ListedGroup("connect", "Stable", "classic"), False, "NON_EMPTY_GROUP"),
        (ListedGroup("consumer", "PreparingRebalance", "classic"), True, "NON_EMPTY_GROUP"),
        (ListedGroup("consumer", "Reconciling", "consumer"), True, "NON_EMPTY_GROUP"),
        (ListedGroup("consumer", "PreparingRebalance", "classic"), False, None),
        (ListedGroup("consumer", "Assigning", "consumer"), False, None),
        (ListedGroup("connect", "Empty", "classic"), True, None),
        (ListedGroup("", "Empty", ""), True, None),
    ],
)
def test_a_group_that_its_coordinator_would_refuse_is_not_asked_about(
    listed: ListedGroup | None, whole: bool, error: str | None
) -> None:
    wanted = Wanted(topics={"t"}, is_whole=whole)
    plan = planned("g", wanted, FetchedOffsets(HELD, {}), {} if listed is None else {"g": listed}, THERE)
    assert (plan.error, plan.goes) == (error, error is None)
    assert len(plan.items) == 2


EMPTY = {"g": ListedGroup("consumer", "Empty", "consumer")}


def test_each_partition_is_planned_by_what_is_there_now() -> None:
    committed = {**HELD, ("gone", 0): CommittedOffset(1, -1, ""), ("t", 9): CommittedOffset(1, -1, "")}
    fetched = FetchedOffsets(committed, {("t", 2): UNSTABLE})
    places = {("t", number) for number in (0, 1, 2, 8, 9)} | {("gone", 0)}
    plan = planned("g", Wanted(places=places, topics={"nothing"}), fetched, EMPTY, THERE)
    assert {(item.topic, item.partition): (item.is_planned, item.error) for item in plan.items} == {
        ("t", 0): (True, None),
        ("t", 1): (True, None),
        ("t", 2): (False, UNSTABLE),
        ("t", 8): (False, UNKNOWN_TOPIC),
        ("t", 9): (False, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("gone", 0): (False, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("nothing", None): (False, UNKNOWN_TOPIC),
    }
    lines = list(lines_of(plan, "to be deleted", "Deletion"))[2:]
    assert lines[:4] == [
        "TOPIC           PARTITION    STATUS",
        "gone            0            Error: UNKNOWN_TOPIC_OR_PARTITION: there is no such topic or partition, or the "
        "right to DESCRIBE it is missing",
        "nothing         Not Provided Error: UNKNOWN_TOPIC_OR_PARTITION: there is no such topic or partition, or the "
        "right to DESCRIBE it is missing",
        "t               0            to be deleted (offset 5)",
    ]
    assert lines[5].startswith("t               2            Error: UNSTABLE_OFFSET_COMMIT: an open transaction ")


def test_a_mistyped_name_brings_the_one_that_was_meant() -> None:
    fetched = FetchedOffsets({("orders", 0): CommittedOffset(5, -1, "")}, {})
    plan = planned("g", Wanted(topics={"ordesr"}), fetched, EMPTY, {"orders": THERE["t"]})
    (item,) = plan.items
    assert (item.error, item.more, plan.has_failed) == (UNKNOWN_TOPIC, "did you mean orders?", True)
    plan = planned("billng", Wanted(topics={"t"}), FetchedOffsets({}, {}), {"billing": EMPTY["g"]}, THERE)
    assert (plan.error, plan.more, plan.has_failed) == ("GROUP_ID_NOT_FOUND", "did you mean billing?", True)


def test_nothing_is_committed_for_a_topic_that_is_there() -> None:
    plan = planned("g", Wanted(topics={"t"}), FetchedOffsets({}, {}), EMPTY, THERE)
    assert ([each.error for each in plan.items], plan.has_failed) == ([None], False)


MEMBERS = {"g": ListedGroup("consumer", "Stable", "classic")}


@pytest.mark.parametrize(
    ("told", "error", "unless"),
    [
        (GroupSubscriptions(), None, ""),
        (GroupSubscriptions(frozenset({"t"})), "GROUP_SUBSCRIBED_TO_TOPIC", ""),
        (GroupSubscriptions(messages=(b"\0\0\0\0\0\x01\0\x01t\xff\xff\xff\xff",)), "GROUP_SUBSCRIBED_TO_TOPIC", ""),
        (GroupSubscriptions(messages=(b"\0\0\0\0\0\x01\0\x01u\xff\xff\xff\xff",)), None, ""),
        (GroupSubscriptions(messages=(b"\0",)), "GROUP_SUBSCRIBED_TO_TOPIC", ""),
        (
            GroupSubscriptions(frozenset({"u"}), regexes=("t.*",)),
            None,
            "the topic matches what the group subscribes to: 't.*'",
        ),
        (
            GroupSubscriptions(why_unknown="the group is PreparingRebalance"),
            None,
            "the group subscribes to the topic, which cannot be seen: the group is PreparingRebalance",
        ),
    ],
)
def test_what_a_group_subscribes_to_is_no_part_of_the_plan(
    told: GroupSubscriptions, error: str | None, unless: str
) -> None:
    fetched = FetchedOffsets({("t", 0): CommittedOffset(5, -1, "")}, {})
    plan = planned("g", Wanted(topics={"t"}), fetched, MEMBERS, THERE, subscribed_topics(told))
    assert [(item.error, item.unless) for item in plan.items] == [(error, unless)]
    last = list(lines_of(plan, "to be deleted", "Deletion"))[-1]
    assert last.endswith("to be deleted (offset 5)" + (f", unless {unless}" if unless else "")) == (error is None)


def test_a_whole_group_goes_if_its_list_names_all_that_it_has() -> None:
    def plan(*expected: tuple[int, int]) -> GroupPlan:
        named = {("t", partition): Expected(offset) for partition, offset in expected}
        return planned("g", Wanted(named, is_whole=True, has_list=True), FetchedOffsets(HELD, {}), EMPTY, {})

    assert plan((0, 5), (1, 6)).goes
    for wrong in ([(0, 5)], [(0, 5), (1, 7)], [(0, 5), (1, 6), (2, 1)], []):
        assert plan(*wrong).error == "CHANGED"


def test_what_changes_behind_the_plan_is_left_out() -> None:
    def again(*, whole: bool, **now: Any) -> GroupPlan:
        plan = planned("g", Wanted(topics={"t"}, is_whole=whole), FetchedOffsets(HELD, {}), EMPTY, THERE)
        leave_out_changed(plan, FetchedOffsets(**{"offsets": HELD, "errors": {}} | now))
        return plan

    other = {**HELD, ("t", 1): CommittedOffset(6, 1, "")}
    more = {**HELD, ("t", 2): CommittedOffset(1, -1, "")}
    assert set(again(whole=False).planned) == set(again(whole=False, offsets=more).planned) == {("t", 0), ("t", 1)}
    assert set(again(whole=False, offsets=other).planned) == {("t", 0)}
    assert set(again(whole=False, errors={("t", 0): UNSTABLE}).planned) == {("t", 1)}
    assert not again(whole=False, error="GROUP_AUTHORIZATION_FAILED").goes
    assert again(whole=True).goes
    assert not again(whole=True, offsets=other).goes
    assert not again(whole=True, offsets=more).goes


def test_hostile_names_do_not_reach_a_terminal() -> None:
    plan = GroupPlan(ODD, [Item(ODD, 0, CommittedOffset(1, -1, ""))])
    text = "\n".join(lines_of(plan, "to be deleted", "Deletion"))
    assert "\x1b" not in text
    assert text.count("\n") == 3


def test_a_broker_that_is_not_there_is_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "client.properties"
    config.write_text("default.api.timeout.ms=200\n")
    with socket.create_server(("localhost", 0)) as server:
        address = f"localhost:{server.getsockname()[1]}"
    asked = ["--bootstrap", address, "--command-config", str(config), "--group", "g", "--topic", "t"]
    assert main(["delete-offsets", *asked]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"kafka-records: {address}: no broker can be reached at this address: ")


def test_an_address_at_which_nobody_has_ever_answered_is_given_up_soon(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever timeout the configuration has; the default is a minute."""
    monkeypatch.setattr(group_requests, "_UNTIL_A_FIRST_ANSWER", 0.01)
    with socket.create_server(("localhost", 0)) as server:
        address = f"localhost:{server.getsockname()[1]}"
    assert main(["delete-offsets", "--bootstrap", address, "--group", "", "--topic", "t"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"kafka-records: {address}: no broker can be reached at this address: ")
    assert said.endswith(", for 0.01 s")


# -- usage -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["list"], "the following arguments are required: --bootstrap"),
        (["--bootstrap", "h:1"], "give one LIST, or groups with --group, or a file with --restore"),
        (["--bootstrap", "h:1", "a", "b"], "give one LIST, or groups with --group, or a file with --restore"),
        (["--bootstrap", "h:1", "a", "--topic", "t"], "--topic needs --group"),
        (["--bootstrap", "h:1", "--group", "g"], "--group needs --topic or --whole-groups"),
        (["--bootstrap", "h:1", "a", "--overwrite"], "--overwrite needs --restore"),
        (["--bootstrap", "h:1", "--group", "g", "--topic", "t", "--also", "no_members"], "--also needs a LIST"),
        (
            ["--bootstrap", "h:1", "a", "--also", "members"],
            "argument --also: 'members' is not one of no_members, simple_group",
        ),
        (
            ["--bootstrap", "h:1", "--restore", "f", "--whole-groups"],
            "--restore cannot be combined with --whole-groups",
        ),
        (
            ["--bootstrap", "h:1", "--restore", "f", "--output", "o"],
            "--output with --restore needs --overwrite: only overwritten offsets are written to it",
        ),
        (["--bootstrap", "h", "a"], "argument --bootstrap: invalid broker 'h': write HOST:PORT"),
    ],
)
def test_wrong_usage(capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str) -> None:
    assert main(["delete-offsets", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[0]) == ("", f"kafka-records delete-offsets: error: {complaint}")


def test_nobody_is_asked_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))
    with pytest.raises(
        CommandError, match="this is not a terminal, so the command cannot ask for confirmation: add --yes to --execute"
    ):
        asking.confirmed("2 offsets will be deleted.")


@pytest.mark.parametrize(("typed", "is_meant"), [("yes\n", True), ("y\n", False), ("", False), ("no\n", False)])
def test_only_yes_is_yes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, is_meant: bool
) -> None:
    monkeypatch.setattr(asking, "can_ask", lambda: True)
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert asking.confirmed("2 offsets will be deleted.") is is_meant
    assert capsys.readouterr().err == "2 offsets will be deleted. Type yes to continue:\n"
