"""Groups and producers that stopped when ACLs were changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from kafka_records.cluster_metadata import encode_record
from kafka_records.cluster_metadata.access_control_entry_record import AccessControlEntryRecord
from kafka_records.cluster_metadata.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_tables.report.facts.acl_changes import TABLE, restrictions
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import ReportFinding
from tests.log.logs import batch, record
from tests.report.made_up_cluster import HOUR, MINUTE, SECOND
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found, _read

KIND: Final = "clients_shut_out"
THEN: Final = END_MS - 5 * MINUTE
"""When ACLs were changed."""
Row = dict[str, Any]


def _acl(
    operation: str = "READ",
    principal: str = "User:loader",
    *,
    name: str = "orders",
    at_ms: int | None = THEN,
    **more: Any,
) -> Row:
    row = {"is_added": True, "resource_type": "topic", "resource_name": name, "is_prefix": False, "host": "*"}
    row |= {"principal": principal, "operation": operation, "is_denied": False, "log_offset": 7}
    return row | {"at_timestamp_ms": at_ms} | more


def _group(
    group: str = "stats",
    *,
    topic: str = "orders",
    last_ms: int = THEN - SECOND,
    every_ms: int = 5 * SECOND,
    lag: int = 60,
    written_ms: int = THEN,
    events: tuple[tuple[str, int, int], ...] = (("member_joined", THEN - HOUR, 1),),
) -> dict[str, list[Row]]:
    """The rows of a group, by table: an hour of commits up to the last one."""
    place = {"group_id": group, "topic": topic, "partition": 0, "log_partition": 0}
    times = [last_ms - number * every_ms for number in range(6)]
    return {
        "current_offsets": [place | {"offset": 90, "commit_timestamp_ms": last_ms}],
        "history": [place | {"offset": at, "log_offset": at, "valid_from_timestamp_ms": at} for at in times],
        "lag": [place | {"lag": lag, "unread_timestamp_ms": written_ms, "lag_ms": END_MS - written_ms}],
        "timeline": [
            {"group_id": group, "event": event, "at_timestamp_ms": at_ms, "member_count": count, "log_offset": at}
            for at, (event, at_ms, count) in enumerate(events)
        ],
    }


def _of(acls: list[Row], *groups: dict[str, list[Row]]) -> list[ReportFinding]:
    tables: dict[str, list[Row]] = {}
    for each in groups:
        for name, rows in each.items():
            tables.setdefault(name, []).extend(rows)
    looks = {"acl_changes": acls, "history": tables.pop("history")}
    return _found(_context(looks, **tables), KIND)


def test_the_first_acl_of_a_topic_shuts_out_its_groups() -> None:
    joins = (("member_joined", THEN - HOUR, 1), *(("member_joined", THEN + at * SECOND, 1) for at in range(1, 9)))
    groups = _group(), _group("watch", events=joins), _group("others", topic="returns", last_ms=END_MS)
    (found,) = _of([_acl(), _acl("WRITE", "User:*")], *groups)
    assert (found.level, found.group_ids, found.topics) == (Level.HIGH, ("stats", "watch"), ("orders",))
    assert (found.since_timestamp_ms, found.is_going_on) == (THEN, True)
    assert found.scale == {"groups": 2, "topics_without_writes": 0, "records_waiting": 120, "joins_since": 8}
    denied, otherwise = found.causes
    assert (denied.name, denied.confidence, len(denied.evidence_for)) == ("acl_denies", "medium", 3)
    assert (otherwise.name, otherwise.confidence) == ("stopped_otherwise", "low")
    assert "allow.everyone.if.no.acl.found" in denied.statement
    assert "--operation Read --topic orders" in str(found.next[0].command)


@pytest.mark.parametrize(
    ("acls", "count"),
    [
        ([_acl()], 1),
        ([_acl("WRITE")], 1),
        ([_acl(), _acl(principal="User:*")], 0),
        ([_acl(), _acl("ALL", principal="User:*", host="10.0.0.1")], 1),
        ([_acl(at_ms=None), _acl(principal="User:ann")], 0),
        ([_acl(at_ms=None), _acl(is_added=False)], 1),
        ([_acl(at_ms=None), _acl("ALL", at_ms=None), _acl(is_added=False)], 0),
        ([_acl("WRITE", at_ms=None), _acl("WRITE", is_added=False)], 0),
        ([_acl(at_ms=None), _acl(principal="User:ann", is_denied=True)], 1),
        ([_acl(at_ms=None), _acl("DESCRIBE", principal="User:ann", is_denied=True)], 1),
        ([_acl(at_ms=None), _acl("WRITE", principal="User:ann", is_denied=True)], 0),
        ([_acl(name="ord", is_prefix=True)], 1),
        ([_acl(name="*")], 1),
        ([_acl(name="returns")], 0),
        ([_acl(resource_type="group", name="stats")], 1),
        ([_acl(resource_type="cluster", name="kafka-cluster")], 0),
        ([_acl(at_ms=THEN - MINUTE)], 0),
        ([_acl(at_ms=None)], 0),
    ],
    ids=[
        "first",
        "first_of_writers",
        "everybody_may_read",
        "everybody_on_one_host",
        "one_more_is_allowed",
        "removed",
        "removed_but_still_allowed",
        "right_to_write_removed",
        "denied",
        "description_denied",
        "writes_denied",
        "prefix",
        "every_topic",
        "another_topic",
        "group",
        "cluster",
        "long_before",
        "in_a_checkpoint",
    ],
)
def test_which_changes_shut_out(acls: list[Row], count: int) -> None:
    assert len(_of(acls, _group())) == count


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ({"last_ms": THEN + 9 * SECOND}, 1),
        ({"last_ms": THEN + 11 * SECOND}, 0),
        ({"last_ms": THEN - 11 * SECOND}, 0),
        ({"every_ms": 3 * MINUTE}, 0),
        ({"lag": 0}, 0),
        ({"written_ms": THEN - 2 * MINUTE}, 0),
        ({"events": (("member_joined", THEN - HOUR, 1), ("emptied", THEN - 2 * SECOND, 0))}, 0),
        ({"events": (("member_joined", THEN - HOUR, 1), ("emptied", THEN + SECOND, 0))}, 1),
        ({"events": ()}, 1),
    ],
    ids=[
        "it_commits_a_little_longer",
        "it_goes_on",
        "it_stopped_before",
        "it_commits_rarely",
        "nothing_waits",
        "only_old_records_wait",
        "it_was_stopped",
        "its_members_left_then",
        "without_members",
    ],
)
def test_which_groups_are_shut_out(given: dict[str, Any], count: int) -> None:
    assert len(_of([_acl()], _group(**given))) == count


LEFT: Final = (("member_joined", THEN - HOUR, 1), ("emptied", THEN + SECOND, 0))


def _log(*, every_ms: int = SECOND, last_ms: int = THEN, count: int = 20, topic: str = "orders") -> dict[str, Any]:
    """The log of a topic with a batch at regular times up to the last one."""
    times = [last_ms - number * every_ms for number in reversed(range(count))]
    samples = [{"offset": at, "timestamp_ms": each} for at, each in enumerate(times)]
    place = {"topic": topic, "partition": 0, "log_start_offset": 0, "log_end_offset": count}
    return place | {"samples": samples, "exact_from": 0}


def _with_log(acls: list[Row], log: Row, *groups: dict[str, list[Row]]) -> list[ReportFinding]:
    tables = {name: [row for each in groups for row in each[name]] for name in _group()}
    looks = {"acl_changes": acls, "log_samples": [log], "history": tables.pop("history")}
    ends = [{name: log[name] for name in ("topic", "partition", "log_start_offset", "log_end_offset")}]
    return _found(_context(looks, log_ends=ends, **tables), KIND)


def test_producers_are_shut_out_too() -> None:
    """Nothing waits for the groups, because nothing is written any more."""
    (found,) = _with_log([_acl()], _log(), _group(lag=0, events=LEFT), _group("watch", lag=0))
    assert (found.group_ids, found.topics) == (("stats",), ("orders",))
    assert found.scale["topics_without_writes"] == 1
    assert found.causes[0].confidence == "medium"
    assert "the producers of" in found.causes[0].statement
    assert "--operation Read --operation Write" in str(found.next[0].command)


def test_only_producers_may_be_shut_out() -> None:
    acls = [_acl("WRITE", at_ms=None), _acl("WRITE", is_added=False)]
    (found,) = _with_log(acls, _log(), _group(lag=0))
    assert (found.group_ids, found.topics) == ((), ("orders",))
    assert found.title.startswith("nothing has been written")
    assert found.next[0].command is not None
    assert "--operation Read" not in found.next[0].command


@pytest.mark.parametrize(
    ("acl", "log", "count"),
    [
        (_acl(), _log(), 1),
        (_acl(principal="User:*", operation="ALL"), _log(), 0),
        (_acl(), _log(last_ms=END_MS), 0),
        (_acl(), _log(last_ms=THEN - 11 * SECOND), 0),
        (_acl(), _log(every_ms=3 * MINUTE), 0),
        (_acl(), _log(count=10), 0),
        (_acl(), _log(topic="returns"), 0),
        (_acl(resource_type="group", name="stats"), _log(), 0),
    ],
    ids=["silent", "all_may", "goes_on", "silent_before", "seldom", "few_batches", "another_topic", "of_a_group"],
)
def test_which_topics_are_silent(acl: Row, log: Row, count: int) -> None:
    assert len(_with_log([acl], log, _group(lag=0, events=LEFT))) == count


def test_acls_are_read_from_the_metadata_log(tmp_path: Path) -> None:
    entry = AccessControlEntryRecord(Uuid.from_string("AAAAAAAAAAAAAAAAAAAAAQ"), 2, "orders", 3, "User:ann", "*", 3, 3)
    told: list[Any] = [entry, RemoveAccessControlEntryRecord(entry.id), RemoveAccessControlEntryRecord(entry.id)]
    values = [encode_record(None, each)[1] for each in told]
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    parts = [batch(record(0, None, each), 1, offset=at, timestamp=THEN + at) for at, each in enumerate(values)]
    (folder / f"{0:020}.log").write_bytes(b"".join(parts))
    rows = _read(TABLE, tmp_path)
    assert [(each["is_added"], each["operation"], each["at_timestamp_ms"]) for each in rows] == [
        (True, "READ", THEN),
        (False, "READ", THEN + 1),
    ]
    first, removed = restrictions(_context({"acl_changes": rows}))
    assert (first.is_first, removed.is_first) == (True, False)
    assert first.entries[0].words == "ALLOW READ for User:ann"
