"""Synthetic topics for the tests of the table `checks`, and the problems in them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kafka_records_engine.findings import OUTSIDE_LOG, UNMADE_CHECKS
from kafka_records_tables import read_table
from kafka_records_tables.tables.words.check_words import CHECKS
from tests.tables.cluster import Cluster
from tests.tables.share_topic import SHARE_TOPIC
from tests.tables.topic import OFFSETS_TOPIC, Topic

Row = dict[str, Any]

OTHER = "AAAAAAAAAAAAAAAAAAAAAQ"
TRANSACTIONS = "__transaction_state"
ONE_EACH = {OFFSETS_TOPIC: 1, SHARE_TOPIC: 1, TRANSACTIONS: 1}
HOSTILE = "a\n'\"\u202e\x00; DROP"
NOT_LOADED = "no coordinator can load this log: it stops at this record"


def problems(cluster: Topic | pa.Table, **options: Any) -> list[Row]:
    """The problems. There may be no findings except about what was not checked, and about a moment that a topic does
    not show."""
    table = cluster.table() if isinstance(cluster, Topic) else cluster
    result = read_table("checks", table, **{"partitions": ONE_EACH, **options})
    assert {finding.reason for finding in result.findings} <= {UNMADE_CHECKS, OUTSIDE_LOG}
    rows: list[Row] = result.table.to_pylist()
    assert {row["check"] for row in rows} <= set(CHECKS)
    assert all(row["detail"] and row["log_topic"] for row in rows)
    return rows


def values_of(rows: list[Row], *columns: str) -> list[tuple[Any, ...]]:
    """Some columns, row by row."""
    return [tuple(row[name] for name in columns) for row in rows]


def problem(cluster: Topic, **options: Any) -> Row:
    """The only problem."""
    (row,) = problems(cluster, **options)
    return row


def sound_group() -> Cluster:
    """A consumer group with two members and without a problem."""
    cluster = Cluster()
    cluster.epochs()
    for member, number in (("m", 0), ("n", 1)):
        cluster.member(member, "orders")
        cluster.target(member, number)
        cluster.current(member, number)
    return cluster
