"""Clusters of real brokers in trouble, or in health that looks like it: what the report concludes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_records_engine.findings import OTHER_PARTITIONS
from kafka_records_tables import read_table
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.making import read_report
from tests.variants import mostly
from tools.incidents.recording import unpack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATA = Path(__file__).resolve().parents[1] / "data"
CLUSTERS, RECORDED = DATA / "clusters", DATA / "incidents"


@dataclass(frozen=True)
class Concluded:
    """The content of the only finding above a note."""

    kind: str
    cause: str
    since_ms: int
    """The start of the incident, within five seconds."""
    scale: Mapping[str, int]
    first: str
    """A text in the first step."""
    groups: Sequence[str]
    effects: Sequence[str] = field(default=())
    never: Sequence[str] = field(default=())
    steps: Sequence[str] = field(default=())
    """Texts in the other steps."""


FOREIGN = ("offsets_beyond_end", "offsets_rewound")
CONCLUDED = {
    "01": Concluded(
        "two_applications",
        "shared_group_id",
        1795444279100,
        {"rebalances": 13},
        "group.id of its own",
        ["events-consumer"],
        never=("max.poll",),
        steps=('"geo-tiles-0", which joined later',),
    ),
    "05": Concluded(
        "groups_in_two_partitions",
        "partitions_added",
        1795443596603,
        {"groups": 20, "groups_read_again": 3, "records_repeated": 1629, "groups_stopped": 8},
        "--format reset-offsets",
        ["shipment-tracker", "price-board", "refund-desk"],
        ("records_misplaced",),
        ("expired", "recreated", "20 records"),
        (
            'Restore the old offsets of "fraud-score", "geo-lookup", "helpdesk", "metrics-rollup", "price-board", '
            '"ticket-stats", so that each continues where it stopped; of "billing-export", "cdc-sink",',
            'There is nothing to restore for "carrier-feed", "dock-planner", "shipment-tracker": they have read up to '
            "the old offsets again, which would only repeat records.",
            "--reset-offsets --group fraud-score --from-file offsets.csv --dry-run",
        ),
    ),
    "07": Concluded(
        "crash_loop",
        "poison_record",
        1795443775571,
        {"attempts": 42, "partitions": 3},
        "--topic orders.v2 --partition 2 --offset 68",
        ["order-router"],
        never=("raise max.poll",),
    ),
    "08": Concluded(
        "offsets_from_elsewhere",
        "another_cluster",
        1795443804755,
        {"records_lost": 0, "records_possibly_lost": 870, "groups": 2},
        "--to-earliest",
        ["stock-sync", "stock-audit"],
        FOREIGN,
        ("was cut", "second time", "--to-latest"),
    ),
    "12": Concluded(
        "share_records_archived",
        "cannot_be_processed",
        1795444593864,
        {"records_lost": 36, "deliveries": 5},
        "--topic mail.queue --partition 1",
        ["mailer"],
    ),
    "13": Concluded(
        "deleted_before_read",
        "away",
        1795850852167,
        {"records_lost": 1418, "jumps": 3},
        "--add-config retention.ms=",
        ["scan-to-warehouse"],
        never=("kafka-delete-records", "more slowly"),
        steps=("auto.offset.reset",),
    ),
    "14": Concluded(
        "transaction_open",
        "producer_died",
        1795850991883,
        {"records_waiting": 688},
        "start it again with the same id",
        ["audit-vault", "ledger-poster"],
        never=("--reset-offsets",),
    ),
    "15": Concluded(
        "streams_partitions_differ",
        "inputs_differ",
        1795851546471,
        {"records_waiting": 1819},
        "--topic drivers.profile --partitions 6",
        ["ride-enricher"],
    ),
    "16": Concluded(
        "clients_shut_out",
        "acl_denies",
        1795851637118,
        {"groups": 2, "topics_without_writes": 1, "records_waiting": 356},
        "--operation Read --operation Write --topic loyalty.points",
        ["points-balance", "tier-engine"],
        effects=("group_emptied",),
    ),
    "17": Concluded(
        "group_id_changed",
        "id_of_release",
        1795861911565,
        {"records_lost": 660},
        "render.jobs-0 from 93 to 302; render.jobs-1 from 95 to 312; render.jobs-2 from 99 to 330",
        ["render-v1", "render-farm"],
        never=("expired", "crashed", "archived"),
        steps=("kafka-share-groups",),
    ),
    "18": Concluded(
        "log_end_lost",
        "unflushed",
        1795862965084,
        {"records_lost_at_least": 151, "records_repeated": 536},
        "orders.placed-1: 151 or more",
        ["fulfilment", "order-wall"],
        ("offsets_rewound",),
        ("seek", "by a tool", "replica that lacked"),
    ),
    "19": Concluded(
        "share_offsets_reset",
        "altered_by_request",
        1795885683681,
        {"records_lost": 475, "records_repeated": 0, "partitions": 3},
        "notices.outbound-0 211 to 362; notices.outbound-1 218 to 372; notices.outbound-2 220 to 387",
        ["sms-sender"],
        never=("auto.offset.reset", "rejected", "archived", "retention"),
        steps=("send them again: notices.outbound-0 211 to 362", "whether the records in between were to be skipped"),
    ),
    "dead_instance_transaction-1": Concluded(
        "transaction_of_dead_instance",
        "instance_died",
        1795558742402,
        {"records_waiting": 578},
        "kafka-transactions",
        ["reading-archiver"],
        ("transaction_open",),
    ),
    "deleted_before_read-1": Concluded(
        "deleted_before_read",
        "too_slow",
        1795558888075,
        {"records_lost": 1313, "jumps": 14},
        "retention.ms=",
        ["reading-writer"],
        ("offsets_below_log_start",),
    ),
    "expired_offsets-1": Concluded(
        "expired_and_began_again",
        "expired",
        1795559105598,
        {"records_possibly_lost": 946, "records_possibly_repeated": 229},
        "--entity-type brokers",
        ["route-archiver"],
    ),
    "foreign_offsets-1": Concluded(
        "offsets_from_elsewhere",
        "another_cluster",
        1795558542895,
        {"records_possibly_lost": 900},
        "--to-earliest",
        ["alarm-scorer", "click-ranker"],
        FOREIGN,
    ),
    "partitions_not_given_up-1": Concluded(
        "partitions_not_given_up",
        "application_hangs",
        1795558820225,
        {"records_waiting": 818, "partitions": 6, "members_waiting": 2},
        "stack dump",
        ["room-planner"],
        ("members_unsettled", "group_stands_still"),
    ),
    "poison_record-1": Concluded(
        "crash_loop",
        "poison_record",
        1795558350730,
        {"records_waiting": 161, "partitions": 1},
        "--topic bookings.v2 --partition 3 --offset 71",
        ["room-auditor"],
    ),
    "purged_before_read-4107": Concluded(
        "deleted_before_read",
        "by_hand",
        1795745652000,
        {"records_lost": 322, "jumps": 1},
        "kafka-delete-records",
        ["price-exporter"],
    ),
    "share_archived-1": Concluded(
        "share_records_archived",
        "rejected",
        1795558955642,
        {"records_lost": 92},
        "--topic carts-raw",
        ["rating-merger"],
    ),
    "topic_recreated-13": Concluded(
        "topic_recreated",
        "created_for_a_client",
        1795797716365,
        {},
        "Ask who recreated",
        ["order-archiver"],
    ),
    "transactional_ids_explode-1": Concluded(
        "many_transactional_ids", "random_ids", 1795559263575, {"transactional_ids": 319}, "fixed transactional.id", []
    ),
    "two_applications-1": Concluded(
        "two_applications",
        "shared_group_id",
        1795558610692,
        {"rebalances": 12},
        "group.id of its own",
        ["parcel-exporter"],
    ),
}
HEALTHY = ("03", "jobs-1", "rolling_restart-1", "scaling-1")


def cluster(name: str, into: Path) -> Path:
    """The data directory of the cluster."""
    return unpack((RECORDED if (RECORDED / name).is_dir() else CLUSTERS) / name, into)


def _is_made_by_hand(name: str) -> bool:
    """Recordings of the generator have a test of their own, so that these are another variant."""
    return "-" not in name


@pytest.mark.parametrize("name", mostly(((name,) for name in CONCLUDED), _is_made_by_hand))
def test_an_incident_is_one_finding_with_its_cause(name: str, tmp_path: Path) -> None:
    """Besides it there are healthy groups of all kinds, without findings."""
    wanted = CONCLUDED[name]
    findings = read_report(cluster(name, tmp_path), processes=1).findings
    (found,) = [each for each in findings if each.level > Level.NOTE]
    assert (found.kind, found.causes[0].name) == (wanted.kind, wanted.cause)
    assert found.since_timestamp_ms is not None
    assert abs(found.since_timestamp_ms - wanted.since_ms) <= 5000
    assert {name: found.scale[name] for name in wanted.scale} == wanted.scale
    if any(name.startswith("records_possibly_") for name in wanted.scale):
        assert (found.level, found.consequence) == (Level.HIGH, "none")
    assert wanted.first in f"{found.next[0].what} {found.next[0].command}"
    assert set(wanted.groups) <= set(found.group_ids)
    assert {each.kind for each in found.effects} == set(wanted.effects)
    texts = [found.problem, found.impact, *(each.statement for each in found.causes)]
    texts += [f"{step.what} {step.command}" for step in found.next]
    texts += [each.problem for each in found.effects]
    assert not [step for step in wanted.steps if not any(step in text for text in texts)]
    if name == "01":
        assert [each.client_id for each in found.who] == ["geo-tiles-0", "crm-sync-0", "crm-sync-1"]
    assert not [(word, text) for word in wanted.never for text in texts if word in text]


@pytest.mark.parametrize("name", mostly(((name,) for name in HEALTHY), _is_made_by_hand))
def test_a_healthy_cluster_has_no_more_than_notes(name: str, tmp_path: Path) -> None:
    findings = read_report(cluster(name, tmp_path), processes=1).findings
    assert [(each.kind, each.problem) for each in findings if each.level > Level.NOTE] == []


def test_without_metadata_and_topics_less_is_known_and_nothing_false_is_said(tmp_path: Path) -> None:
    """The logs of `__consumer_offsets` alone show the number of its partitions, and nothing about other topics."""
    data = cluster("05", tmp_path)
    logs = sorted(each for each in data.iterdir() if each.name.startswith("__consumer_offsets-"))
    findings = [each for each in read_report(logs, processes=1).findings if each.level > Level.NOTE]
    assert [each.kind for each in findings] == ["groups_in_two_partitions"]
    assert "50 partitions" in findings[0].problem
    (alone,) = read_report(data, processes=1, group="metrics-rollup", source_arguments=["05"]).findings
    assert alone.next[0].command == (
        "kafka-records table current_offsets 05 --group metrics-rollup --as-of 2026-11-23T14:19:56.603Z "
        "--format reset-offsets --output offsets.csv"
    )
    assert '1 group ("metrics-rollup") has stopped: it has no members in its new partition' in alone.impact
    notes = [each.what for each in read_table("current_offsets", logs).findings if each.reason == OTHER_PARTITIONS]
    assert notes == ["the group 'billing-export' has rows of more than one log partition, and so have 12 other groups"]
    foreign = cluster("08", tmp_path / "08")
    logs = sorted(each for each in foreign.iterdir() if each.name.startswith("__consumer_offsets-"))
    found = read_report(logs, processes=1).findings
    assert not [each for each in found if "offsets_from" in each.kind]
    (rewound,) = (each for each in found if each.kind == "offsets_rewound")
    assert [(each.name, each.confidence) for each in rewound.causes] == [
        ("beyond_end", "medium"),
        ("member_went_back", "low"),
    ]
    assert (
        '"stock-audit" also had no members, and got offsets of the topic in the same second'
        in rewound.causes[0].statement
    )


@pytest.mark.spark
@pytest.mark.matrix
@pytest.mark.parametrize("name", ["01", "05", "07", "08", "12"])
def test_both_engines_conclude_the_same(name: str, spark: SparkSession, tmp_path: Path) -> None:
    data = cluster(name, tmp_path)
    assert read_report(data, spark=spark).findings == read_report(data, processes=1).findings


def test_how_long_a_log_may_wait_for_its_cleaner_is_a_threshold(tmp_path: Path) -> None:
    data = cluster("cleaner_fails-3", tmp_path)
    limits: tuple[dict[str, Any], ...] = ({"within": "1h"}, {"large": 1000})
    levels = [
        [each.level for each in report.findings if each.kind == "log_not_cleaned"]
        for report in (
            read_report(
                data, processes=1, thresholds={f"log_not_cleaned.{name}": value for name, value in some.items()}
            )
            for some in limits
        )
    ]
    assert levels == [[], [Level.HIGH]]


def test_the_state_of_a_share_group_that_was_not_read_whole_may_be_there(tmp_path: Path) -> None:
    (log,) = cluster("12", tmp_path).glob("**/__share_group_state-1/*0.log")
    log.write_bytes(log.read_bytes()[:200])
    found = [each for each in read_report(tmp_path).findings if each.kind == "share_state_broken"]
    assert found
    for each in found:
        assert each.level == Level.NOTE
        assert each.why_not_sure == ("__share_group_state-1 could not be read to the end: the state may be there")


def test_a_folder_that_may_not_be_read_is_no_damage_and_nothing_is_concluded_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The logs of share state, of members of share groups, and of a topic are missing."""
    data = cluster("12", tmp_path)
    closed = ("__consumer_offsets-2", "__share_group_state-0", "mail.queue-1")
    original = os.scandir

    def refuse(path: str) -> Any:
        if Path(path).name in closed:
            raise PermissionError(13, "Permission denied")
        return original(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = [each for each in read_report(data, processes=1).findings if each.level > Level.NOTE]
    titles = Counter(each.title for each in found if each.kind != "share_records_archived")
    assert titles == {"the user of this report may not read some files": 3}
    (archived,) = (each for each in found if each.kind == "share_records_archived")
    assert "the consumers (who they are is unknown here: ask the brokers)" in archived.next[0].what
