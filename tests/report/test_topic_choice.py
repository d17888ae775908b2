"""A report about some topics: which findings it has, and what they count."""

from __future__ import annotations

from pathlib import Path
from struct import pack

import pytest

from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue
from kafka_records_tables.report.making import read_report
from kafka_records_tables.report.report_parts import ReportFinding
from tests.report.data_directory import OFFSETS, SHARE_STATE, TRANSACTIONS, Write
from tests.report.made_up_cluster import HOUR, MINUTE, MadeCluster
from tests.report.modern_lives import ModernLife, ShareLife
from tests.report.rule_cases import END_MS

_PRODUCER = 4711


def _shares(cluster: MadeCluster, group: str, topic: str, members: int) -> None:
    """A share group that had a member, now has `members`, and gets a record again and again."""
    life = ShareLife(cluster, group, [topic])
    life.start(END_MS - HOUR, 1)
    start = life.starts[topic, 0]
    life.update(END_MS - 2 * MINUTE, (topic, 0), start, 0, (start, start, 0, 3))
    if not members:
        life.leave(END_MS - MINUTE, settles=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trouble with `orders`, with `stock`, and with a log."""
    cluster = MadeCluster("two topics", END_MS, offsets_partitions=1)
    cluster.cleaned_until_ms = None
    cluster.needs(SHARE_STATE, 1)
    cluster.logs.partitions = {**cluster.logs.partitions, TRANSACTIONS: 1}
    places = {**cluster.topic("orders", 2).ends(END_MS - HOUR), **cluster.topic("stock", 2).ends(END_MS - HOUR)}
    cluster.commit("billing", END_MS - HOUR, places)
    later = {place: offset + 1 for place, offset in places.items() if place[1] == 0}
    cluster.commit("billing", END_MS - 30 * MINUTE, later, producer_id=_PRODUCER)
    _shares(cluster, "pickers", "orders", 0)
    _shares(cluster, "counters", "stock", 0)
    cluster.topic("new", 1)
    waiting = ModernLife(cluster, "waiting", ["new"])
    waiting.join(END_MS - HOUR)
    waiting._come(END_MS - MINUTE, None)
    key = pack(">h", OffsetCommitKey.RECORD_TYPE) + OffsetCommitKey("packing", "stock", 0).encode(0)
    value = pack(">h", 7) + OffsetCommitValue(offset=5, commit_timestamp=END_MS - MINUTE).encode(4)
    cluster.logs.write_bytes(OFFSETS, "packing", Write(END_MS - MINUTE, ((key, value),)))
    # The moment of the report is that of the last record, some time after the last events of groups.
    cluster.commit("elsewhere", END_MS, cluster.topic("unread", 1).ends(END_MS))
    path = tmp_path_factory.mktemp("topics") / "data"
    cluster.write(path)
    return path


def _told(folder: Path, *topics: str) -> dict[tuple[str, tuple[str, ...]], ReportFinding]:
    found = read_report(folder, topic_filter=topics or None).findings
    return {(each.kind, each.group_ids if len(each.group_ids) == 1 else ()): each for each in found}


_OF_THE_LOG = ("coordinator_cannot_load", ())
_HELD_BACK = ("transaction_open", ("billing",))
_OF_ORDERS = {("share_redelivery", ("pickers",)), ("share_groups_empty", ("pickers",))}
_OF_STOCK = {("share_redelivery", ("counters",)), ("share_groups_empty", ("counters",))}


@pytest.mark.parametrize(
    ("topics", "kinds"),
    [
        ((), {_HELD_BACK, *_OF_ORDERS, *_OF_STOCK, ("members_unsettled", ("waiting",))}),
        (("new",), {("members_unsettled", ("waiting",))}),
        (("orders",), {_HELD_BACK, *_OF_ORDERS}),
        (("st?ck", "nothing"), {_HELD_BACK, *_OF_STOCK}),
        (("nothing",), set()),
    ],
)
def test_findings_are_about_the_topics_that_are_asked_for(
    folder: Path, topics: tuple[str, ...], kinds: set[tuple[str, tuple[str, ...]]]
) -> None:
    """Findings about the logs of coordinators are included, because all topics depend on them."""
    assert set(_told(folder, *topics)) == {_OF_THE_LOG, *kinds}


def test_what_a_finding_says_and_counts_is_of_the_whole(folder: Path) -> None:
    whole, asked = _told(folder), _told(folder, "orders")
    assert asked == {each: finding for each, finding in whole.items() if each in asked}
    assert (
        'the offsets of 2 of 4 partitions of "billing": "orders" (partition 0), "stock" (p' in asked[_HELD_BACK].problem
    )
    assert asked["share_redelivery", ("pickers",)].topics == ("orders",)


def test_what_is_summed_up_is_about_the_topics_too(folder: Path) -> None:
    limits = {"report.most_of_a_kind": 0, "report.most_notes_of_a_kind": 0}
    found = {each.kind: each for each in read_report(folder, topic_filter="orders", thresholds=limits).findings}
    assert found["share_redelivery"].group_ids == ("pickers",)
    assert found["share_groups_empty"].measured == {"findings": 1, "groups": 1}


def test_the_moment_is_that_of_the_log_whatever_is_asked_for(folder: Path) -> None:
    """The last record is one of `elsewhere`."""
    moments = {read_report(folder, group=group).request.at_timestamp_ms for group in (None, "billing", "counters")}
    assert moments == {read_report(folder).counts.last_timestamp_ms}


def test_tables_have_the_rows_about_the_topics(folder: Path) -> None:
    report = read_report(folder, topic_filter="orders")
    assert set(report.tables["current_offsets"]["topic"].to_pylist()) == {"orders"}
    assert report.tables["open_transactions"]["producer_id"].to_pylist() == [_PRODUCER]
    (number,) = (each.value for each in report.numbers if each.name == "offsets")
    assert number == report.tables["current_offsets"].num_rows == 2
