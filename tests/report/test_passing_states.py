"""Consecutive reports: states that last less than a second on a healthy cluster are in none of them.

Logs that Kafka wrote are cut after each moment at which it wrote something. If a finding appears and disappears within
a second, or the other way round, two reports on the same cluster differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.arrow_rows import ArrowRows
from kafka_records_engine.sources.given import source_of
from kafka_records_tables.read import read_tables
from kafka_records_tables.report.making import REPORTED
from kafka_records_tables.report.ranking import findings_of
from kafka_records_tables.report.report_parts import ReportRequest
from kafka_records_tables.report.rule_context import DAY_MS, SECOND_MS, RuleContext
from kafka_records_tables.report.thresholds import thresholds_of
from tests.tables.histories import history
from tools.judge.decoded_once import DecodedOnce

_AT_ONCE: Final = {"report.group_settles_within": "0s", "transaction_open.open_after": "0s"}
"""Thresholds with which every state counts, even a very short one."""

_NOT_DATED: Final = "share_redelivery"
"""Its records were delivered three times or more, which does not happen in a healthy cluster, and share state has no
times of deliveries."""

Finding = tuple[str, str, tuple[str, ...], tuple[str, ...]]


class Cuts(NamedTuple):
    """The moments of a source after which it is cut: those from `first` to `last`."""

    source: str
    first: int
    last: int
    passing: frozenset[str]
    """Kinds that come and go within a second there, if every state counts."""


_SHARE_GROUP: Final = Cuts(
    "kafka-4.3", 1795227157232, 1795227160300, frozenset({"share_state_left", "partitions_unassigned"})
)
_TRANSACTIONS: Final = Cuts(
    "kafka-4.3", 1795227175598, 1795227179200, frozenset({"share_groups_empty", "transaction_open"})
)
_REBALANCE: Final = Cuts(
    "kafka-4.3", 1795227288600, 1795227290000, frozenset({"members_unsettled", "offsets_unneeded"})
)
_UNCLEANED: Final = 1795227123499
"""A cleaner has removed records of kafka-4.3 before this moment, so cuts there are states that the log never had."""

_BY_PAUSE: Final = "group_stands_still"
"""A kind that depends only on the length of a pause: one that ends just after its threshold is a finding until then."""

_WHOLE: Final = [
    Cuts("kafka-4.3", _UNCLEANED, 2**62, frozenset({"transaction_open", "members_unsettled"})),
    Cuts("kafka-4.3-expiry", 0, 2**62, frozenset()),
    Cuts("kafka-2.8", 0, 2**62, frozenset({"transaction_open"})),
    *(Cuts(name, 0, 2**62, frozenset()) for name in ("0001", "0004", "0007")),
]


@pytest.mark.parametrize(
    "cuts",
    [
        pytest.param(_SHARE_GROUP, id="share group"),
        pytest.param(_TRANSACTIONS, id="transactions", marks=pytest.mark.matrix),
        pytest.param(_REBALANCE, id="rebalance", marks=pytest.mark.matrix),
        *(pytest.param(each, id=each.source, marks=pytest.mark.matrix) for each in _WHOLE),
    ],
)
def test_neighbouring_cuts_have_the_same_findings(cuts: Cuts, topics_dir: Path) -> None:
    rows = history(cuts.source).rows if cuts.source.isdigit() else _rows(topics_dir / cuts.source / "segments")
    decoded = DecodedOnce(rows)
    usual: dict[int, set[Finding]] = {}
    at_once: dict[int, set[Finding]] = {}
    moments = np.unique(rows["timestamp_ms"].to_numpy())
    for at_ms in moments[(moments >= max(cuts.first, 1)) & (moments <= cuts.last)].tolist():
        with decoded.used():
            tables = read_tables(
                REPORTED,
                ArrowRows(rows.filter(pc.less_equal(rows["timestamp_ms"], at_ms))),
                processes=1,
                assume="committed",
            )
        found = {name: result.table for name, result in tables.items()}
        usual[at_ms], at_once[at_ms] = (_findings(found, at_ms, limits) for limits in ({}, _AT_ONCE))
    assert len(usual) > 4
    assert [each for each in _short(usual) if each[0][0] not in (_NOT_DATED, _BY_PAUSE)] == []
    assert cuts.passing <= {finding[0] for finding, *_ in _short(at_once)}


def _rows(folder: Path) -> pa.Table:
    """The raw rows of a data directory."""
    source = source_of(folder)
    logs = [log for topic in source.topics() for log in source.partitions(topic)]
    batches = (log.batches(Context(log.topic, log.partition), RAW_SCHEMA.names, 0, None) for log in logs)
    return pa.Table.from_batches([batch for of_log in batches for batch in of_log])


def _findings(tables: Mapping[str, Any], at_ms: int, limits: Mapping[str, Any]) -> set[Finding]:
    request = ReportRequest("cut", (), at_ms, at_ms, False, 7 * DAY_MS, None, (), "of a test", "local")
    context = RuleContext(request, tables, (), thresholds_of(limits))
    return {(each.kind, each.level.word, each.group_ids, each.topics) for each in findings_of(context)}


def _short(cuts: Mapping[int, set[Finding]]) -> Iterator[tuple[Finding, int, int]]:
    """The findings that existed, or were absent, for less than a second, with the start and the end."""
    moments = sorted(cuts)
    for finding in sorted(set().union(*cuts.values())):
        states = [finding in cuts[at_ms] for at_ms in moments]
        changes = [at for at in range(1, len(states)) if states[at] != states[at - 1]]
        for begin, end in pairwise(changes):
            if moments[end] - moments[begin] < SECOND_MS:
                yield finding, moments[begin], moments[end]
