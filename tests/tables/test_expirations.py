"""When offsets and groups expire, compared with the clean-ups of Kafka's coordinator classes and of a real broker."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from kafka_records.consumer_offsets import decode_record
from kafka_records_engine.findings import LATER_RECORDS, UNJUDGED_RULES
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.log.reading.segment_files import find_logs, read_partition
from kafka_records_tables import TABLES, read_table
from kafka_records_tables.coordinator.rules.expiry_rules import CHANGES_WITH, PROTECTED_BY
from kafka_records_tables.engines.checked_request import request_of
from kafka_records_tables.near_names import UnknownOption
from kafka_records_tables.tables.expirations import KIP_211, TABLE
from kafka_records_tables.tables.removal.expiry_rows import ExpiryRows
from tests.tables.coordinator_state import held
from tests.tables.histories import NAMES, history
from tests.tables.topic import Topic, struct
from tools.judge.histories import Question

Row = dict[str, Any]
Tombstones = Counter[tuple[int, str]]

COMMITTED_MS = 1_700_000_000_000
"""The time of records of the synthetic topic, and the commit time in them."""
DAY_MS = 86_400_000
MINUTE_MS = 60_000
WEEK_MS = 7 * DAY_MS

ONE_OF_EIGHT = NAMES[::8]


# -- the coordinator's next clean-up -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ONE_OF_EIGHT)
def test_a_clean_up_at_any_moment_writes_what_the_coordinator_writes(name: str) -> None:
    """All histories are compared by their rows (test_histories), and here every tombstone at every moment."""
    for cut, questions in history(name).cuts.items():
        made = _made(history(name).up_to(cut), _retention(name))
        for question in questions:
            if question["question"] == "next_cleanup":
                check_clean_up(question, _rows(made, question["at_ms"]))


@pytest.mark.parametrize("name", ONE_OF_EIGHT)
def test_rows_in_any_order_and_each_twice_give_the_same_clean_up(name: str) -> None:
    retention = _retention(name)
    chance = Random(name)
    for cut, questions in history(name).cuts.items():
        asked = [each for each in questions if each["question"] == "next_cleanup"]
        question = chance.choice(asked)
        rows = history(name).up_to(cut)
        order = [*range(rows.num_rows), *range(rows.num_rows)]
        chance.shuffle(order)
        result = read_table("expirations", rows.take(order), at=question["at_ms"], retention=retention)
        assert result.findings == ()
        check_clean_up(question, result.table.to_pylist())


def check_clean_up(question: Question, rows: Iterable[Row]) -> None:
    """Check that the tombstones are exactly those of the coordinator's answer."""
    expected = Counter((each["type"], json.dumps(each["key"])) for each in question["tombstones"])
    assert _tombstones(rows) == expected


def _tombstones(rows: Iterable[Row]) -> Tombstones:
    found: Tombstones = Counter()
    for row in rows:
        key: Any = decode_record(row["key"], None).key
        found[row["record_type"], json.dumps(key.to_json(0))] += 1
    return found


def _retention(name: str) -> int:
    return int(history(name).header["offsets_retention_ms"])


def _made(rows: pa.Table, retention: int = WEEK_MS) -> ExpiryRows:
    request = request_of("expirations")
    context = request.context("__consumer_offsets", 0)
    found = held(rows.select(TABLE.reads), context, TABLE.records)
    assert not context.findings
    return ExpiryRows(TABLE.schema, found, context, retention)


def _rows(made: ExpiryRows, at: int | None = None) -> list[Row]:
    return [row for batch in made.batches(at) for row in batch.to_pylist()]


def test_the_histories_meet_every_rule_that_a_whole_log_may_have() -> None:
    met: set[str] = set()
    for name in ONE_OF_EIGHT:
        for row in _rows(_made(history(name).rows)):
            met.add(row["rule"])
            assert row["protected_by"] == PROTECTED_BY.get(row["rule"])
            assert row["changes_with"] == list(CHANGES_WITH[row["rule"]])
            assert (row["record_type"], row["key"]) == (None, None)
    assert met == set(CHANGES_WITH) - {"stays", "unreadable", "no_group", "no_time"}


@pytest.mark.parametrize("name", ONE_OF_EIGHT)
def test_a_row_falls_due_at_its_time_and_not_before(name: str) -> None:
    """With `at`, the rows are those that are due by then according to the rows without it; rows without a time are
    never included."""
    retention = _retention(name)
    made = _made(history(name).rows, retention)
    rows = _rows(made)
    times = sorted({row["expires_timestamp_ms"] for row in rows if row["expires_timestamp_ms"] is not None})
    for moment in [time + more for time in times[:: max(len(times) // 4, 1)] for more in (-1, 0)]:
        due = {_place(row) for row in _rows(made, moment)}
        is_due = (row for row in rows if row["expires_timestamp_ms"] is not None)
        assert due == {_place(row) for row in is_due if row["expires_timestamp_ms"] <= moment}


def _place(row: Row) -> tuple[Any, ...]:
    return row["kind"], row["group_id"], row["topic"], row["partition"], row["expires_timestamp_ms"], row["rule"]


# -- a real broker's clean-ups -----------------------------------------------------------------------------------------


def test_the_clean_ups_of_a_broker_wrote_the_tombstones_that_were_due(topics_dir: Path) -> None:
    """A check ran every five seconds, with a retention of one minute."""
    seen: Counter[int] = Counter()
    for log in find_logs([str(topics_dir / "kafka-4.3-expiry" / "segments")], "__consumer_offsets"):
        rows = pa.Table.from_batches(read_partition(log, settle=False), RAW_SCHEMA)
        for first, last, written in _clean_ups(rows):
            before, moment = rows.slice(0, first), written[0]["timestamp_ms"]
            options: Row = {"retention": timedelta(minutes=1)}
            due = read_table("expirations", before, at=moment, **options).table.to_pylist()
            assert _tombstones(due) == _tombstones(_as_tombstones(written))
            assert last - first == len(due)
            seen.update(row["record_type"] for row in due)
            for row in due:
                group_changed = _last_change(before, row["group_id"])
                assert moment - 5_500 < max(row["expires_timestamp_ms"], group_changed) <= moment
    assert seen == {1: 17, 2: 8, 3: 2, 4: 2, 6: 2}


def _clean_ups(rows: pa.Table) -> Iterator[tuple[int, int, list[Row]]]:
    """The batches that begin with the tombstone of an offset, or of a group without any: where each begins and ends."""
    records = rows.to_pylist()
    begin = 0
    for place, record in enumerate([*records, {"base_offset": None}]):
        if place and record["base_offset"] != records[place - 1]["base_offset"]:
            batch = records[begin:place]
            if batch[0]["value"] is None and batch[0]["key"][1] in (1, 2):
                yield begin, place, batch
            begin = place


def _as_tombstones(records: list[Row]) -> Iterator[Row]:
    for record in records:
        assert record["value"] is None
        yield {"record_type": record["key"][1], "key": record["key"]}


def _last_change(rows: pa.Table, group: str) -> int:
    """When the last record about a group was written, other than a commit."""
    about = group.encode()
    return max(
        (
            row["timestamp_ms"]
            for row in rows.to_pylist()
            if row["control"] is None and about in row["key"] and row["key"][1] > 1
        ),
        default=0,
    )


# -- what no history holds ---------------------------------------------------------------------------------------------


def expirations(topic: Topic, **options: Any) -> dict[tuple[str, str | None], Row]:
    """By group and topic; the topic of a group is None."""
    rows = read_table("expirations", topic.table(), **options).table.to_pylist()
    return {(row["group_id"], row["topic"]): row for row in rows}


def told(row: Row) -> tuple[int | None, str]:
    return row["expires_timestamp_ms"], row["rule"]


def classic(
    topic: Topic, group: str, *, protocol_type: str = "consumer", subscriptions: Iterable[bytes] = (), since: int = -1
) -> int:
    members = tuple(
        struct(
            "group_metadata",
            "MemberMetadata",
            member_id=f"m{number}",
            client_id="c",
            client_host="/h",
            session_timeout=1,
            subscription=subscription,
            assignment=b"",
        )
        for number, subscription in enumerate(subscriptions)
    )
    value = {
        "protocol_type": protocol_type,
        "generation": 1,
        "protocol": "range" if members else None,
        "leader": None,
        "current_state_timestamp": since,
        "members": members,
    }
    return topic.add("GroupMetadata", {"group": group}, value, version=3)


def subscription(*topics: str, version: int = 0) -> bytes:
    names = b"".join(len(name).to_bytes(2, "big") + name.encode() for name in topics)
    return version.to_bytes(2, "big") + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


@pytest.mark.parametrize(
    ("protocol_type", "data", "rule"),
    [
        ("consumer", subscription("orders"), "subscribed"),
        ("consumer", subscription("returns", version=99) + b"what a later version has", "commit_timestamp"),
        ("consumer", b"", "members"),
        ("consumer", subscription("returns")[:-6], "members"),
        ("connect", subscription("returns"), "members"),
    ],
)
def test_members_of_a_classic_group_protect_what_they_may_read(protocol_type: str, data: bytes, rule: str) -> None:
    topic = Topic()
    topic.commit("g", 1)
    classic(topic, "g", protocol_type=protocol_type, subscriptions=[data, subscription("other")], since=7)

    found = expirations(topic)

    due = COMMITTED_MS + WEEK_MS if rule == "commit_timestamp" else None
    assert told(found["g", "orders"]) == (due, rule)
    assert told(found["g", None]) == (None, "members")


def test_an_empty_classic_group_goes_by_its_state_or_without_one_by_its_commits() -> None:
    topic = Topic()
    for group, since in (("g", COMMITTED_MS + 5), ("h", -1), ("i", 0)):
        topic.commit(group, 1)
        classic(topic, group, since=since)

    found = expirations(topic, retention="1h")
    assert told(found["g", "orders"]) == (COMMITTED_MS + 5 + 3_600_000, "state_timestamp")
    assert told(found["g", None]) == (COMMITTED_MS + 5 + 3_600_000, "last_offset")
    assert told(found["h", "orders"]) == (COMMITTED_MS + 3_600_000, "commit_timestamp")
    assert told(found["i", "orders"]) == (3_600_000, "state_timestamp")


def test_an_offset_whose_group_is_gone_stays() -> None:
    topic = Topic()
    topic.commit("g", 1)
    topic.add("GroupMetadata", {"group": "g"}, None)
    assert {key: told(row) for key, row in expirations(topic).items()} == {("g", "orders"): (None, "no_group")}


def test_a_group_without_offsets_is_due_since_its_last_record() -> None:
    topic = Topic()
    for group in ("g", "i"):
        topic.commit(group, 1)
        topic.commit(group, None)
    classic(topic, "h")
    # A key that cannot be read belongs to no known group.
    topic.add_bytes(topic.rows[0][5][:-1], topic.rows[0][6])
    topic.rows[-1] = (*topic.rows[-1][:3], COMMITTED_MS + 1, *topic.rows[-1][4:])

    found = expirations(topic)
    without_times = read_table("expirations", topic.table().drop_columns("timestamp_ms")).table.to_pylist()

    assert {told(found[group, None]) for group in "ghi"} == {(COMMITTED_MS, "nothing_left")}
    assert [told(row) for row in without_times] == [(0, "nothing_left")] * 3


def test_a_tombstone_takes_the_pending_offset_of_an_open_transaction_along() -> None:
    topic = Topic()
    for group in ("g", "h"):
        topic.commit(group, 1)
        topic.commit(group, 2, transaction="pending")
    topic.commit("g", None)
    topic.commit("g", 3)

    found = expirations(topic)

    assert found["g", "orders"]["rule"] == "commit_timestamp"
    assert found["g", None]["rule"] == "last_offset"
    assert told(found["h", "orders"]) == told(found["h", None]) == (None, "open_transaction")


def test_what_cannot_be_read_expires_nothing_and_is_found() -> None:
    topic = Topic()
    topic.commit("g", 1)
    classic(topic, "g", since=7)
    (place,) = (row[2] for row in topic.rows if row[5][1] == 1)
    topic.add_bytes(topic.rows[place][5], b"\x00\x04\x00")
    topic.commit("h", 1)
    topic.add_bytes(b"\x00\x02\x00\x01h", b"\x00\x03\x00")

    result = read_table("expirations", topic.table())
    rows = {(row["group_id"], row["topic"]): told(row) for row in result.table.to_pylist()}

    assert set(rows.values()) == {(None, "unreadable")}
    assert set(rows) == {("g", "orders"), ("g", None), ("h", "orders"), ("h", None)}
    assert [finding.severity for finding in result.findings] == ["damage", "damage"]
    assert read_table("expirations", topic.table(), at=COMMITTED_MS + 100 * DAY_MS).table.num_rows == 0


@pytest.mark.parametrize("committed", [2**63 - 1, -(2**63), 2**63 - 1 - WEEK_MS])
def test_a_time_that_no_clock_shows_never_falls_due(committed: int) -> None:
    """Kafka subtracts it from the clock in 64 bits, which wraps around."""
    topic = Topic()
    fields = {"offset": 1, "metadata": "", "commit_timestamp": committed}
    topic.add("OffsetCommit", {"group": "g", "topic": "orders", "partition": 0}, fields, version=4)

    found = expirations(topic)

    assert told(found["g", "orders"]) == (None, "commit_timestamp")
    assert told(found["g", None]) == (None, "stays")


def test_a_commit_of_the_old_record_type_has_a_tombstone_of_the_new_one() -> None:
    topic = Topic()
    topic.commit("g", 1, record="LegacyOffsetCommit")

    rows = read_table("expirations", topic.table(), at=COMMITTED_MS + WEEK_MS).table.to_pylist()

    assert [row["record_type"] for row in rows] == [1, 2]
    assert rows[0]["key"] == b"\x00\x01" + topic.rows[0][5][2:]


# -- KIP-211 -----------------------------------------------------------------------------------------------------------

SINCE_MS = COMMITTED_MS + DAY_MS


@pytest.mark.parametrize(
    ("state", "protocol_type", "topic_name", "due"),
    [
        ("Empty", "consumer", "orders", SINCE_MS + WEEK_MS),
        ("Empty", "connect", "orders", SINCE_MS + WEEK_MS),
        ("Stable", "consumer", "orders", None),
        ("Stable", "consumer", "returns", COMMITTED_MS + WEEK_MS),
        ("Stable", "connect", "returns", None),
        ("Empty", "", "orders", COMMITTED_MS + WEEK_MS),
    ],
)
def test_the_states_of_kip_211(state: str, protocol_type: str, topic_name: str, due: int | None) -> None:
    """The table of that KIP: an empty group by its state, unsubscribed partitions of others by their commits, and so
    those of groups without a protocol type. Offsets of subscribed partitions do not expire while there are members."""
    topic = Topic()
    # Cases that the KIP's table lacks: an expiry time in the commit, and an open transaction.
    key = {"group": "g", "topic": topic_name, "partition": 0}
    value = {"offset": 1, "metadata": "", "commit_timestamp": COMMITTED_MS, "expire_timestamp": 5}
    topic.add("OffsetCommit", key, value, version=1)
    topic.add("OffsetCommit", key, {**value, "offset": 2}, version=1, transaction="pending")
    if protocol_type:
        members = [subscription("orders")] if state == "Stable" else []
        classic(topic, "g", protocol_type=protocol_type, subscriptions=members, since=SINCE_MS)

    result = read_table("expirations", topic.table(), rules=KIP_211)
    offset, group = result.table.to_pylist()

    assert offset["expires_timestamp_ms"] == due
    assert group["expires_timestamp_ms"] == (due if state == "Empty" else None)
    assert [(finding.severity, finding.reason) for finding in result.findings] == [("note", UNJUDGED_RULES)]


def test_kip_211_knows_no_time_of_a_state_in_old_values() -> None:
    topic = Topic()
    topic.commit("g", 1)
    classic(topic, "g")

    assert told(expirations(topic, rules=KIP_211)["g", "orders"]) == (None, "no_time")


# -- options -----------------------------------------------------------------------------------------------------------


def test_what_falls_due_within_a_time_of_the_moment_asked_about() -> None:
    topic = Topic()
    topic.commit("g", 1)
    due, rows = COMMITTED_MS + WEEK_MS, topic.table()
    for within, count in (("6d", 0), ("P7D", 2), (WEEK_MS - 1, 0), (timedelta(weeks=1), 2), ("2w", 2)):
        found = read_table("expirations", rows, within=within, as_of=COMMITTED_MS)
        assert found.table.num_rows == count
    assert read_table("expirations", rows, within="1s").table["expires_timestamp_ms"].to_pylist() == [due, due]


def test_a_moment_is_given_as_a_datetime_a_number_or_a_text() -> None:
    topic = Topic()
    topic.commit("g", 1)
    due = datetime.fromtimestamp((COMMITTED_MS + WEEK_MS) / 1000, UTC)
    for at in (due, COMMITTED_MS + WEEK_MS, due.isoformat(), "now", "in 1h"):
        assert read_table("expirations", topic.table(), at=at).table.num_rows == 2
    for at in (due - timedelta(seconds=1), str(COMMITTED_MS)):
        assert read_table("expirations", topic.table(), at=at).table.num_rows == 0


def test_a_moment_before_the_last_records_is_told() -> None:
    topic = Topic()
    topic.commit("g", 1)
    topic.commit("g", 2)
    rows = topic.table()
    last_ms = max(rows["timestamp_ms"].to_pylist())
    for options, is_told in (
        ({"at": last_ms - 1}, True),
        ({"at": last_ms}, False),
        ({"at": last_ms - 1, "as_of": last_ms - 1}, False),
        ({}, False),
    ):
        reasons = [finding.reason for finding in read_table("expirations", rows, **options).findings]
        assert (LATER_RECORDS in reasons) == is_told


AWARE = "write datetime(…, tzinfo=UTC)"
A_DURATION = "write 90s, 30m, 24h, 7d or 2w, or as in ISO 8601 P7D or PT24H"


@pytest.mark.parametrize(
    ("table", "options", "sentence"),
    [
        ("groups", {"at": 1}, "groups has no option 'at'; it is one of expirations, progress"),
        ("groups", {"xyzzy": 1}, "groups has no option 'xyzzy', and no other of its own"),
        ("groups", {"options": {}}, "groups has no option 'options', and no other of its own: leave it out"),
        (
            "expirations",
            {"options": {"at": 1}},
            "expirations has no option 'options': write each option as an argument of its own, as in at=…; the "
            "options are at, retention, within, rules",
        ),
        ("groups", {"groups": "g"}, "groups has no option 'groups'; did you mean group?"),
        (
            "groups",
            {"windw": "1h"},
            "groups has no option 'windw'; did you mean window? It is one of activity, lag, progress",
        ),
        (
            "expirations",
            {"xyzzy": 1},
            "expirations has no option 'xyzzy'; the options are at, retention, within, rules",
        ),
        ("expirations", {"retetion": "7d"}, "expirations has no option 'retetion'; did you mean retention?"),
        ("expirations", {"at": 1, "within": "1h"}, "within cannot be combined with at: leave one of them out"),
        ("expirations", {"retention": 2**61}, f"retention: {2**61} ms is too large for a time or a duration"),
        ("expirations", {"at": datetime(2026, 1, 1)}, f"at: 2026-01-01T00:00:00 has no time zone: {AWARE}"),
        ("expirations", {"retention": "7"}, f"retention: '7' is not a duration: {A_DURATION}"),
        ("expirations", {"retention": "PT"}, f"retention: 'PT' is not a duration: {A_DURATION}"),
        ("expirations", {"retention": -1}, "retention: -1 ms is not a duration: it must be 0 or more"),
        ("expirations", {"retention": "0d"}, "retention: 0 ms is too short: the minimum is 60000 ms"),
        ("activity", {"window": "0s"}, "window: 0 ms is too short: the minimum is 1 ms"),
        ("activity", {"window": 0}, "window: 0 ms is too short: the minimum is 1 ms"),
        (
            "expirations",
            {"retention": "99999999999d"},
            "retention: '99999999999d' is too long: write a number of at most 9 digits",
        ),
        ("expirations", {"rules": "kip-212"}, "rules: 'kip-212' is not one of kafka-4.3, kip-211"),
    ],
)
def test_options_that_cannot_be_asked(table: str, options: Row, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole sentence is compared)
        read_table(table, Topic().table(), **options)
    assert str(caught.value) == sentence
    assert isinstance(caught.value, UnknownOption) == ("no option" in sentence)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"at": True}, "at must be a datetime with a time zone, milliseconds since 1970 or a string, not True"),
        ({"within": 1.5}, "within must be a timedelta, milliseconds or a string, not 1.5"),
        ({"rules": 211}, "rules must be a string, not 211"),
    ],
)
def test_options_of_a_wrong_kind(options: Row, sentence: str) -> None:
    with pytest.raises(TypeError) as caught:
        read_table("expirations", Topic().table(), **options)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(("text", "seconds"), [("P1DT2H3M4S", 93_784), ("P2W", 1_209_600), ("PT90M", 5400)])
def test_durations_of_iso_8601(text: str, seconds: int) -> None:
    options = dict(request_of("expirations", options={"retention": text}).question.options)
    assert options["retention"] == 1000 * seconds


def test_the_defaults_are_those_of_kafka() -> None:
    options = dict(request_of("expirations").question.options)
    assert options == {"at": None, "retention": WEEK_MS, "within": None, "rules": "kafka-4.3"}
    assert [option.name for option in TABLES["expirations"].options] == list(options)
