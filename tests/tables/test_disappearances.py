"""Why tombstones were written, compared with what was done to real brokers, and in planted cases."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_tables import TABLES, read_table
from kafka_records_tables.tables.words.causes import CAUSES, HIGH, LOW, MEDIUM, in_order
from tests.tables.histories import history
from tests.tables.topic import Topic, struct

Row = dict[str, Any]
Record = tuple[str, dict[str, Any], dict[str, Any] | None]

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
STEP_MS = 20_000

HOSTILE = "g'); DROP\n\u0000 or offset_deleted 組😀"


class Log:
    """A synthetic log of consecutive writes of a coordinator."""

    def __init__(self) -> None:
        self._topic = Topic()
        self._writes: list[tuple[int, int]] = []

    def write(self, after_ms: int, *records: Record, transaction: str = "none", version: int | None = None) -> int:
        """Write records in one batch, `after_ms` after NOW_MS. Returns the offset of the first."""
        first = len(self._topic.rows)
        for record, key, value in records:
            self._topic.add(record, key, value, version=version, transaction=transaction)
            self._writes.append((NOW_MS + after_ms, first))
        return first

    def raw(self, after_ms: int, key: bytes, value: bytes | None) -> None:
        """Write bytes."""
        self._writes.append((NOW_MS + after_ms, self._topic.add_bytes(key, value)))

    def marker(self, after_ms: int, control: str) -> None:
        """End the open transaction."""
        self._writes.append((NOW_MS + after_ms, len(self._topic.rows)))
        self._topic.marker(control)

    def table(self, *, goes_on: bool = True) -> pa.Table:
        """The raw rows; if the log `goes_on`, with a record more than a minute later."""
        count, last_ms = len(self._writes), self._writes[-1][0] - NOW_MS
        for step in range(1, 5 if goes_on else 1):
            self.write(last_ms + step * STEP_MS, commit("later", "later", 0, 0))
        rows = self._topic.table()
        times, batches = zip(*self._writes, strict=True)
        del self._topic.rows[count:], self._writes[count:]
        for name, values in (("timestamp_ms", times), ("base_offset", batches)):
            at = rows.schema.get_field_index(name)
            rows = rows.set_column(at, RAW_SCHEMA.field(name), pa.array(values, RAW_SCHEMA.field(name).type))
        return rows


def commit(group: str, topic: str, partition: int, after_ms: int | None) -> Record:
    """A commit with a time `after_ms` after NOW_MS; a tombstone if that is None."""
    key = {"group": group, "topic": topic, "partition": partition}
    if after_ms is None:
        return "OffsetCommit", key, None
    return "OffsetCommit", key, {"offset": 7, "metadata": "", "commit_timestamp": NOW_MS + after_ms}


def member(group: str, member_id: str, topics: Iterable[str] | None, instance_id: str | None = None) -> Record:
    """A member of a consumer group; its tombstone without topics."""
    key = {"group_id": group, "member_id": member_id}
    if topics is None:
        return "ConsumerGroupMemberMetadata", key, None
    told = {"client_id": "c", "client_host": "/h", "rebalance_timeout_ms": 1000, "instance_id": instance_id}
    return "ConsumerGroupMemberMetadata", key, told | {"subscribed_topic_names": tuple(topics)}


def group(group_id: str, epoch: int | None = 1) -> Record:
    """The record of a consumer group; its tombstone without an epoch."""
    return "ConsumerGroupMetadata", {"group_id": group_id}, None if epoch is None else {"epoch": epoch}


def classic(group_id: str, **told: Any) -> Record:
    """The record of a classic group; its tombstone if nothing is told."""
    value = {"protocol_type": "consumer", "generation": 1, "protocol": "range", "leader": None, "members": ()}
    return "GroupMetadata", {"group": group_id}, value | told if told else None


def explained(log: Log | pa.Table, **options: Any) -> list[Row]:
    """The rows of the table."""
    rows = log.table() if isinstance(log, Log) else log
    asked: dict[str, Any] = {"retention": "1d"} | options
    found: list[Row] = read_table("disappearances", rows, **asked).table.to_pylist()
    return found


def told(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """Cause and confidence of each row."""
    return [(row["cause"], row["confidence"]) for row in rows]


def shown(row: Row) -> list[tuple[str, int | None]]:
    """The evidence of a row."""
    return [(each["shows"], each["log_offset"]) for each in row["evidence"]]


# -- real brokers ------------------------------------------------------------------------------------------------------


def test_what_a_broker_expired_has_expired(topics_dir: Path) -> None:
    """No administrator deleted anything there; members left, or their sessions ended."""
    for retention in ("1m", "7d"):
        rows = _captured(topics_dir / "kafka-4.3-expiry", retention=retention)
        assert len(rows) == 37
        for row in rows:
            if row["member_id"] is not None:
                assert row["cause"] in ("member_left", "member_left or session_timeout")
                continue
            true = "expired" if row["topic"] is not None else "group_expired"
            assert true in row["possible_causes"]
            assert row["confidence"] != "high" or row["cause"] == true
            assert row["cause"] == true or retention == "7d"


@pytest.mark.parametrize(
    ("name", "group_id", "topic", "cause"),
    [
        ("kafka-4.3", "tmp-pickers", None, "group_deleted"),
        ("kafka-4.3", "tmp-rollup", "returns", "group_deleted"),
        ("kafka-4.3", "payments-settlement", "shipments", "offset_deleted"),
        ("kafka-4.3", "coupon-archive", "coupons-2019", "topic_deleted"),
        ("kafka-4.3", "price-feed", "price-list", "topic_deleted"),
        ("kafka-2.8", "fares-v28-gzip", "journeys", "offset_deleted"),
        ("kafka-2.8", "refund-checks-v09", "refunds", "group_deleted"),
        ("kafka-2.8", "scratch-v28-gzip", "refunds", "group_deleted"),
    ],
)
def test_what_was_deleted_on_a_broker(
    topics_dir: Path, name: str, group_id: str, topic: str | None, cause: str
) -> None:
    """The expected causes are from the journal of the broker's run."""
    of_group = [row for row in _captured(topics_dir / name) if (row["group_id"], row["topic"]) == (group_id, topic)]
    found = [row for row in of_group if row["member_id"] is None]
    assert found
    for row in found:
        assert cause in row["possible_causes"]
        assert row["confidence"] != "high" or row["cause"] == cause


def test_a_retention_that_is_not_that_of_the_brokers_is_found(topics_dir: Path) -> None:
    """These brokers kept offsets for a minute."""
    segments = topics_dir / "kafka-4.3-expiry" / "segments"

    findings = read_table("disappearances", segments, retention="7d").findings

    assert [(each.severity, each.partition, each.reason) for each in findings] == [
        ("note", 0, "OtherRetention"),
        ("note", 3, "OtherRetention"),
    ]
    assert findings[0].what == (
        "an offset expired 1.0 minutes after its retention began, not after the 10080 minutes of --retention "
        "(retention in Python and Spark)"
    )
    mend = "results that depend on it are wrong: pass the brokers' value (at most 1m)"
    assert findings[0].consequence == mend
    assert not read_table("disappearances", segments, retention="1m").findings


def test_an_offset_that_is_younger_than_the_retention_has_not_expired(topics_dir: Path) -> None:
    """The topic of that offset was deleted; where that is in the log a cleaner has been, so that nothing is known about
    its group."""
    rows = _captured(topics_dir / "kafka-4.3", retention="1m")
    (row,) = (row for row in rows if row["group_id"] == "price-checks")
    assert told([row]) == [("offset_deleted or topic_deleted", "medium")]
    assert shown(row) == [("not_due", 84)]


def _captured(folder: Path, **options: Any) -> list[Row]:
    rows: list[Row] = read_table("disappearances", folder / "segments", **options).table.to_pylist()
    return rows


# -- offsets and groups ------------------------------------------------------------------------------------------------


def test_an_offset_that_is_younger_than_a_minute_is_deleted() -> None:
    log = Log()
    log.write(0, group("g"), member("g", "m", ["other"]))
    log.write(0, commit("g", "a", 0, 0), commit("g", "a", 1, 0))
    deleted = log.write(59_999, commit("g", "a", 0, None))

    (row,) = explained(log, retention="1min")

    assert (row["cause"], row["confidence"]) == ("offset_deleted", "high")
    assert shown(row) == [("not_due", 2), ("stays_in_topic", 3)]
    assert (row["log_offset"], row["write_offset"], row["possible_causes"]) == (deleted, deleted, ["offset_deleted"])
    assert (row["topic"], row["partition"], row["record_type"]) == ("a", 0, 1)


@pytest.mark.parametrize(
    ("of_deleted", "of_staying", "possible"),
    [
        ("A" * 22, "A" * 22, ["offset_deleted"]),
        ("AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAQ", ["offset_deleted"]),
        ("AAAAAAAAAAAAAAAAAAAAAQ", "A" * 22, ["offset_deleted"]),
        ("A" * 22, "AAAAAAAAAAAAAAAAAAAAAQ", ["offset_deleted", "topic_deleted"]),
        ("AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAQ", ["offset_deleted", "topic_deleted"]),
    ],
)
def test_an_offset_stays_that_names_the_id_of_an_earlier_topic(
    of_deleted: str, of_staying: str, possible: list[str]
) -> None:
    """If a coordinator missed that a topic was deleted, the deletion of the next topic does not delete its offsets."""
    log = Log()
    log.write(0, group("g"), member("g", "m", ["other"]))
    for partition, topic_id in ((0, of_deleted), (1, of_staying)):
        record, key, value = commit("g", "a", partition, 0)
        assert value is not None
        log.write(0, (record, key, {**value, "topic_id": Uuid.from_string(topic_id)}), version=4)
    log.write(59_999, commit("g", "a", 0, None))

    (row,) = explained(log, retention="1min")

    assert row["possible_causes"] == possible


def test_an_older_offset_that_stays_tells_that_no_clean_up_ran() -> None:
    log = Log()
    log.write(0, group("g"), member("g", "m", ["other"]))
    log.write(0, commit("g", "b", 0, 0), commit("g", "a", 1, 1), commit("g", "a", 0, 1))
    log.write(DAY_MS + 1, commit("g", "a", 0, None))

    (row,) = explained(log)

    assert told([row]) == [("offset_deleted", "high")]
    assert ("stays", 2) in shown(row)


def test_what_is_just_due_has_expired_unless_somebody_was_in_time() -> None:
    log = Log()
    log.write(0, group("g"), member("g", "m", ["other"]))
    log.write(0, commit("g", "a", 0, 0))
    log.write(DAY_MS, commit("g", "a", 0, None))

    (row,) = explained(log)

    assert told([row]) == [("expired", "medium")]
    assert row["possible_causes"] == ["expired", "offset_deleted", "topic_deleted"]
    assert shown(row) == [("due", 2)]


def test_the_retention_decides_nothing_that_is_sure() -> None:
    log = Log()
    log.write(0, group("g"), member("g", "m", ["other"]))
    log.write(0, commit("g", "a", 0, 0))
    log.write(DAY_MS, commit("g", "a", 0, None))

    (row,) = explained(log, retention="8d")

    assert told([row]) == [("offset_deleted or topic_deleted", "medium")]
    assert "expired" in row["possible_causes"]


def test_a_topic_that_members_subscribe_to_was_deleted() -> None:
    log = Log()
    log.write(0, group("g"), member("g", "m", ["a"]))
    log.write(0, commit("g", "a", 0, 0), commit("h", "a", 0, 0))
    log.write(DAY_MS, commit("g", "a", 0, None), commit("h", "a", 0, None))

    assert told(explained(log)) == [("topic_deleted", "high")] * 2


def test_a_broker_before_4_0_deletes_a_topic_group_by_group() -> None:
    log = Log()
    log.write(0, commit("g", "a", 0, 0), commit("h", "a", 0, 0), version=3)
    log.write(DAY_MS // 2, commit("g", "a", 0, None))
    log.write(DAY_MS // 2 + 5, commit("h", "a", 0, None))

    rows = explained(log)

    assert [row["possible_causes"] for row in rows] == [
        ["expired", "group_deleted", "offset_deleted", "topic_deleted"]
    ] * 2
    assert {row["confidence"] for row in rows} == {"medium"}


def deletions_of_a_topic(broker: str) -> Log:
    """A log to the end of the deletion of `t`: an older broker writes a batch for each group, a newer one batches of
    the maximum size."""
    log, is_old = Log(), broker == "older"
    groups = [f"g{number}" for number in range(3 if is_old else 1200)]
    for name in groups:
        log.write(0, commit(name, "t", 0, 0), commit(name, "u", 0, 0), version=3 if is_old else 4)
    for first in range(0, len(groups), 1 if is_old else 600):
        some = groups[first : first + (1 if is_old else 600)]
        log.write(30_000 + first * is_old, *(commit(name, "t", 0, None) for name in some))
    return log


@pytest.mark.parametrize(("broker", "step"), [("older", 1), ("newer", 300)])
def test_a_log_that_ends_while_a_topic_is_deleted_is_not_sure(broker: str, step: int) -> None:
    log = deletions_of_a_topic(broker)
    whole = log.table(goes_on=False)
    first = next(row for row, value in enumerate(whole["value"].to_pylist()) if value is None)

    for end in [first + 1, *range(first + step, whole.num_rows + 1, step)]:
        rows = explained(whole.slice(0, end))
        assert len(rows) == end - first
        assert all("topic_deleted" in row["possible_causes"] and row["confidence"] != "high" for row in rows)

    for row in explained(log):
        assert "topic_deleted" in row["cause"]


def test_a_moment_within_the_deletion_of_a_topic_is_not_sure() -> None:
    log = deletions_of_a_topic("older")
    for after_ms in (30_000, 30_001, 30_002):
        rows = explained(log, as_of=NOW_MS + after_ms)
        assert len(rows) == after_ms - 30_000 + 1
        assert all("topic_deleted" in row["possible_causes"] and row["confidence"] != "high" for row in rows)


def test_a_clock_that_jumps_does_not_tell_what_stays() -> None:
    log = Log()
    log.write(0, *(commit(name, topic, 0, 0) for name in ("g", "h") for topic in ("t", "u")), version=3)
    log.write(30_000, commit("g", "t", 0, None))
    log.write(30_000 + HOUR_MS, commit("h", "t", 0, None))

    first, second = explained(log)

    assert first["possible_causes"] == ["offset_deleted", "topic_deleted"]
    assert first["confidence"] == second["confidence"] == "medium"


@pytest.mark.parametrize(("group_id", "topic"), [("g", "t"), ("h", "v")])
def test_nothing_is_said_to_have_expired_of_which_nothing_is_known(group_id: str, topic: str) -> None:
    """The log begins after the commit, or its value cannot be decoded."""
    log = Log()
    log.write(0, commit("g", "t", 0, 0), commit("other", "u", 0, 0))
    log.raw(0, b"\0\1\0\1h\0\1v\0\0\0\0", b"\0\4\0")
    log.write(1000, commit(group_id, topic, 0, None))

    (row,) = explained(log.table().slice(1))

    assert told([row]) == [("expired or offset_deleted or topic_deleted", "low")]


@pytest.mark.parametrize("commit_ms", [-(2**63), 2**63 - 1])
def test_a_commit_may_tell_any_time(commit_ms: int) -> None:
    log = Log()
    log.write(0, group("g"), member("g", "m", ["other"]))
    log.write(0, commit("g", "a", 0, commit_ms - NOW_MS))
    log.write(1000, commit("g", "a", 0, None))

    (row,) = explained(log)

    assert ("expired" in row["possible_causes"]) == (commit_ms < 0)


def test_a_tombstone_that_cannot_be_read_is_found() -> None:
    log = Log()
    log.write(0, commit("g", "t", 0, 0))
    log.raw(5, b"\0\1\0\1g\0\5t", None)

    answer = read_table("disappearances", log.table())

    (finding,) = answer.findings
    assert (answer.table.num_rows, finding.offset, finding.reason) == (0, 1, "BufferUnderflow")
    assert finding.consequence == "left out: its key is unknown"


@pytest.mark.parametrize(("outcome", "cause"), [(None, "group_deleted"), ("commit", "group_expired")])
def test_an_open_transaction_keeps_a_group_from_a_clean_up(outcome: str | None, cause: str) -> None:
    log = Log()
    log.write(0, group("other"), member("other", "m", ["x"]))
    log.write(0, commit("g", "a", 0, 0))
    log.write(0, commit("g", "a", 1, 0), transaction="pending")
    if outcome is not None:
        log.marker(1, "abort")
    log.write(DAY_MS, commit("g", "a", 0, None), ("GroupMetadata", {"group": "g"}, None))

    rows = explained(log)

    assert rows[-1]["cause"] == cause
    assert [row["confidence"] for row in rows] == [{"group_deleted": "high"}.get(cause, "medium")] * 2
    assert (("open_transaction", 3) in shown(rows[0])) == (outcome is None)


@pytest.mark.parametrize("deletes", [True, False])
def test_an_open_transaction_alone_keeps_no_group_from_a_clean_up_of_4_0(deletes: bool) -> None:
    """DeleteGroups of the same coordinator also deletes pending offsets; a coordinator before 4.0 does not."""
    log = Log()
    log.write(0, group("other"), member("other", "m", ["x"]), classic("g", generation=0))
    log.write(0, commit("g", "a", 1, 0), transaction="pending")
    pending = [commit("g", "a", 1, None)] if deletes else []
    log.write(DAY_MS, *pending, classic("g"))

    row = explained(log)[-1]

    assert row["possible_causes"] == (["group_deleted"] if deletes else ["group_expired", "group_deleted"])


@pytest.mark.parametrize(
    ("writes", "stays"),
    [
        ([("a", 0), ("a", None)], False),
        ([("a", None), ("a", 0), ("b", None)], True),
        ([("b", None), ("a", 0), ("a", None)], False),
    ],
)
def test_a_batch_may_commit_and_delete_the_same_offset(writes: list[tuple[str, int | None]], stays: bool) -> None:
    """With `group.coordinator.append.linger.ms`, in any order. If nothing is left, nothing keeps the group from a
    clean-up of 4.0, which looks for transactions only where offsets are committed."""
    log = Log()
    log.write(0, group("other"), member("other", "m", ["x"]))
    log.write(0, *(commit("g", topic, 0, written) for topic, written in writes))
    log.write(0, commit("g", "a", 1, 0), transaction="pending")
    log.write(DAY_MS, classic("g"))

    assert ("group_expired" not in explained(log)[-1]["possible_causes"]) == stays


def test_several_groups_that_lose_what_was_due_have_met_a_clean_up() -> None:
    log = Log()
    log.write(0, group("g"), member("g", "m", ["x"]), group("h"), member("h", "m", ["x"]))
    log.write(
        0, commit("g", "a", 0, 0), commit("h", "b", 0, 0), commit("g", "b", 1, HOUR_MS), commit("h", "a", 1, HOUR_MS)
    )
    log.write(DAY_MS, commit("g", "a", 0, None), commit("h", "b", 0, None))

    rows = explained(log)

    assert told(rows) == [("expired", "medium")] * 2
    assert ("several_groups", None) in shown(rows[0])
    assert told(explained(log, retention="9d")) == [("expired or offset_deleted", "medium")] * 2


def test_subscriptions_of_a_classic_group_are_not_what_its_coordinator_knows_for_sure() -> None:
    """A static member that returns with other topics is recorded before these topics count."""
    subscription = b"\x00\x00\x00\x00\x00\x01\x00\x01a\xff\xff\xff\xff"
    one = struct("group_metadata", "MemberMetadata", member_id="m", client_id="", client_host="",
                 session_timeout=1, subscription=subscription, assignment=b"")  # fmt: skip
    log = Log()
    log.write(0, group("x"), classic("g", members=(one,)), commit("g", "a", 0, 0), commit("g", "a", 1, 0))
    log.write(DAY_MS, commit("g", "a", 0, None))

    (row,) = explained(log)

    assert row["confidence"] == "medium"
    assert "expired" in row["possible_causes"]


# -- members and kinds -------------------------------------------------------------------------------------------------


def test_a_static_member_that_comes_back_replaces_itself() -> None:
    log = Log()
    log.write(0, group("g"), member("g", "old", ["a"], "i"))
    log.write(5, member("g", "old", None), member("g", "new", ["a"], "i"))

    (row,) = explained(log)

    assert told([row]) == [("member_replaced", "high")]
    assert (row["member_id"], shown(row)) == ("old", [("same_instance", 3)])


def test_a_request_whose_steps_are_two_writes_rules_nothing_out() -> None:
    """If writes are chained, the new member may be in the write after the one that removes the old one."""
    log = Log()
    log.write(0, group("g"), member("g", "old", ["a"], "i"))
    log.write(5, member("g", "old", None))
    log.write(6, member("g", "new", ["a"], "i"))

    (row,) = explained(log)

    assert row["confidence"] == "low"
    assert "member_replaced" in row["possible_causes"]


@pytest.mark.parametrize("instance", [None, "i"])
def test_a_member_that_left_when_another_one_joined_is_not_replaced(instance: str | None) -> None:
    """In one batch and millisecond: a dynamic member, or a static one before whose return the epoch has changed."""
    log = Log()
    log.write(0, group("g"), member("g", "old", ["a"], instance))
    log.write(5, member("g", "old", None), group("g", epoch=2), member("g", "new", ["a"], "i"))

    (row,) = explained(log)

    assert told([row]) == [("member_left", "medium")]


@pytest.mark.parametrize(
    ("after_ms", "cause"),
    [(44_999, "member_left"), (45_000, "session_timeout"), (50_000, "member_left or session_timeout")],
)
def test_when_a_member_goes_tells_something(after_ms: int, cause: str) -> None:
    log = Log()
    log.write(0, group("g"), member("g", "m", ["a"]))
    log.write(after_ms, member("g", "m", None), group("g", 2))

    (row,) = explained(log)

    assert told([row]) == [(cause, "medium")]
    assert row["possible_causes"] == ["member_left", "session_timeout", "rebalance_timeout"]


@pytest.mark.parametrize(("members", "cause"), [((), "replaced_empty_group"), (("old",), "conversion")])
def test_a_group_goes_over_to_the_consumer_protocol(members: tuple[str, ...], cause: str) -> None:
    log = Log()
    log.write(0, classic("g", generation=2))
    log.write(5, classic("g"), *(member("g", each, ["a"]) for each in (*members, "new")), group("g"))

    (row,) = explained(log)

    assert told([row]) == [(cause, "high")]


def test_a_share_group_goes_by_an_administrator_alone() -> None:
    log = Log()
    log.write(0, ("ShareGroupMetadata", {"group_id": "g"}, {"epoch": 1, "metadata_hash": 0}))
    log.write(DAY_MS, ("ShareGroupMetadata", {"group_id": "g"}, None))

    assert told(explained(log)) == [("group_deleted", "high")]


# -- logs with less in them --------------------------------------------------------------------------------------------


def test_a_gap_beside_a_write_leaves_nothing_sure() -> None:
    log = Log()
    log.write(0, group("g"), member("g", "m", ["other"]))
    log.write(0, commit("g", "a", 0, 0), commit("g", "a", 1, 0))
    log.write(1000, commit("g", "a", 0, None), group("g", None))
    log.write(2000, commit("z", "z", 0, 2000))
    rows = log.table()
    assert told(explained(rows)) == [("group_deleted", "high")] * 2

    without_end = rows.filter(pc.not_equal(rows["offset"], 5))

    (row,) = explained(without_end)
    assert row["confidence"] == "low"
    assert set(row["possible_causes"]) >= {"group_deleted", "offset_deleted", "topic_deleted"}


def test_a_record_that_a_cleaner_left_alone_may_have_gone_with_its_group() -> None:
    parts = ("ConsumerGroupTargetAssignmentMetadata", "ConsumerGroupPartitionMetadata", "ConsumerGroupMetadata")
    log = Log()
    log.write(0, group("g"))
    log.write(1000, *((name, {"group_id": "g"}, None) for name in parts))
    assert [row["possible_causes"] for row in explained(log)] == [["group_expired", "group_deleted"]] * 3

    left = log.table().filter(pc.equal(log.table()["offset"], 2))

    (row,) = explained(left)
    assert row["record_type"] == 4
    assert row["confidence"] == "low"
    assert set(row["possible_causes"]) >= {"group_expired", "group_deleted", "conversion", "replaced_empty_group"}


def test_a_log_that_begins_in_the_middle_does_not_tell_a_simple_group() -> None:
    """The record of the group may be before: then its state decides, and not the commit."""
    log = Log()
    log.write(0, classic("g", current_state_timestamp=NOW_MS - 9 * DAY_MS), group("x"))
    log.write(0, commit("g", "a", 0, 0), commit("g", "b", 0, 0))
    log.write(1000, commit("g", "a", 0, None))

    (row,) = explained(log.table().slice(2))

    assert "expired" in row["possible_causes"]
    assert row["confidence"] != "high"


@pytest.mark.parametrize("left_out", ["timestamp_ms", "base_offset"])
def test_a_source_may_tell_less(left_out: str) -> None:
    log = Log()
    log.write(0, group(HOSTILE), member(HOSTILE, "m", ["other"]))
    log.write(0, commit(HOSTILE, "a", 0, 0), commit(HOSTILE, "a", 1, 0))
    log.write(1000, commit(HOSTILE, "a", 0, None))

    (row,) = explained(log.table().drop_columns([left_out]))

    assert row["group_id"] == HOSTILE
    assert "offset_deleted" in row["possible_causes"]


def test_rows_of_one_group_are_those_among_all(topics_dir: Path) -> None:
    """The causes for a group depend on other groups, so these are read too."""
    segments = topics_dir / "kafka-4.3" / "segments"
    every = read_table("disappearances", segments).table.to_pylist()
    some = read_table("disappearances", segments, group="payments-settlement").table.to_pylist()
    assert some == [row for row in every if row["group_id"] == "payments-settlement"]
    assert some


def test_any_size_of_batches_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = history("0014").rows
    whole = explained(rows)
    for size in (1, 7):
        monkeypatch.setattr("kafka_records_tables.tables.tombstones.tombstone_explainer._ROWS", size)
        assert explained(rows) == whole
    assert len(whole) > 10


def test_every_word_is_explained() -> None:
    rules = TABLES["disappearances"].rules
    assert all(f"`{word}`" in rules for word in (*CAUSES, HIGH, MEDIUM, LOW))
    assert in_order({"topic_deleted", "expired"}) == ("expired", "topic_deleted")
