"""Every kind of finding: a log with it, a log that just does not have it, and the content of the finding."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka_records_engine.sources.given import source_of
from kafka_records_tables.commands.subcommands import parsed
from kafka_records_tables.query import query_of
from kafka_records_tables.read import read_tables
from kafka_records_tables.report.glance import rows_of
from kafka_records_tables.report.lost_files import lost_files
from kafka_records_tables.report.report_parts import ReportFinding, ReportRequest
from kafka_records_tables.report.rule import ReportRule
from kafka_records_tables.report.rule_context import DAY_MS, RuleContext
from kafka_records_tables.report.rules import RULES
from kafka_records_tables.report.thresholds import thresholds_of
from kafka_records_tables.tables import TABLES
from tests.report.made_up_cluster import MadeCluster
from tests.report.rule_cases import CASES, ELSEWHERE, END_MS, MOVED, SETTLED, RuleCase

_RULES = {rule.kind: rule for rule in RULES}


INCIDENTS = {
    "coordinator_log_restarted",
    "log_end_lost",
    "clients_shut_out",
    "streams_partitions_differ",
    "added_partitions_begun_late",
    "large_records_refused",
    "coordinator_topic_deletes",
    "groups_in_two_partitions",
    "offsets_from_elsewhere",
    "offsets_moved_ahead",
    "expired_and_began_again",
    "deleted_before_read",
    "compacted_before_read",
    "share_records_archived",
    "share_offsets_reset",
    "share_partition_stuck",
    "crash_loop",
    "partitions_not_given_up",
    "transaction_of_dead_instance",
    "group_stands_still",
    "two_applications",
    "unlike_members",
    "many_transactional_ids",
    "instance_id_twice",
    "producers_fence",
    "many_groups",
    "too_slow",
    "log_not_cleaned",
    "never_commits",
    "commits_one_too_low",
    "offsets_of_other_partitions",
    "mixed_environments",
    "group_id_changed",
    "outside_reader_commits",
    "grows_since_consumed",
    "group_id_random",
    "subscription_dropped",
    "topic_unread",
    "partitions_left_out",
    "coordinator_loads_slowly",
    "group_emptied",
}
"""Kinds whose rules read other tables for the groups and logs that they suspect."""


def context_of(folder: Path, rule: ReportRule, options: Any) -> RuleContext:
    """The context of a rule for a data directory: only the tables that the rule declares."""
    own = {name: value for name, value in options.items() if any(name == each.name for each in _options(rule))}
    source = source_of(folder)
    results = read_tables(rule.tables, source, processes=1, options=own)
    request = ReportRequest(
        str(folder), (str(folder),), END_MS, END_MS, False, 7 * DAY_MS, None, (), "of a test", "local"
    )
    tables = {name: result.table for name, result in results.items()}
    return RuleContext(
        request, tables, results.findings, thresholds_of(None), lost=lost_files(source, results.findings)
    )


class _AskedTables(dict[str, Any]):
    """Tables that record the names that a rule requests."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        super().__init__(tables)
        self.names: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, default)


def _options(rule: ReportRule) -> list[Any]:
    return [option for name in rule.tables for option in TABLES[name].options]


def found(context: RuleContext, rule: ReportRule) -> list[ReportFinding]:
    """Its findings."""
    return [rule.tell(context, case) for case in rule.cases(context).to_pylist()]


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Writes a data directory with what is planted, in logs with one partition."""

    def write(name: str, plant: Callable[[MadeCluster], None]) -> Path:
        cluster = MadeCluster(name, END_MS, offsets_partitions=1)
        cluster.cleaned_until_ms = None
        plant(cluster)
        cluster.write(tmp_path / name)
        return tmp_path / name

    return write


def test_every_rule_has_a_case() -> None:
    """New rules need a case too. Missing rights only occur with brokers (tests/tables/test_moving_logs.py), and
    incidents are found in clusters of real brokers (test_real_clusters.py)."""
    assert [case.kind for case in CASES] == [
        rule.kind for rule in RULES if rule.kind != "right_missing" and rule.kind not in INCIDENTS
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)
def test_a_rule_finds_it_and_does_not_where_it_just_is_not(case: RuleCase, written: Callable[..., Path]) -> None:
    """The finding has the level, the start and the evidence; its rows exist, and the parser accepts its commands."""
    rule = _RULES[case.kind]
    folder = written("has", case.has)
    if case.spoils is not None:
        case.spoils(folder)
    context = context_of(folder, rule, case.options)
    used = _AskedTables(context.tables)
    context = replace(context, tables=used)
    (finding,) = found(context, rule)
    weighed = [each.weigh(context, row) for row in rule.cases(context).to_pylist() for each in rule.causes]
    assert len(weighed) == len(rule.causes)
    assert used.names <= set(rule.tables)
    assert (finding.kind, finding.level) == (case.kind, case.level)
    assert finding.level in rule.levels
    assert finding.since_timestamp_ms == case.since_ms
    assert (finding.since_timestamp_ms is None) <= (finding.since_note is not None), "no moment, and no word about why"
    assert (finding.group_ids, finding.topics) == (tuple(case.groups), tuple(case.topics))
    first = finding.evidence[0] if finding.evidence else None
    shown = None if first is None else (first.topic, first.partition, finding.evidence_count)
    assert shown == (None if case.shown is None else tuple(case.shown))
    assert all(rows_of(context.table(rows.table), rows).num_rows for rows in finding.rows)
    commands = [step.command for step in finding.next]
    assert [" ".join(shlex.split(each)[:2]) if each else "-" for each in commands] == list(case.next)
    for command in filter(None, commands):
        if command.startswith("kafka-records "):
            asked = parsed(shlex.split(command)[1:])
            if hasattr(asked, "where"):
                query_of(asked.name, where=asked.where)
    other = found(context_of(written("lacks", case.lacks), rule, case.options), rule)
    assert [each.level for each in other] == ([] if case.otherwise is None else [case.otherwise])


def test_every_threshold_is_moved() -> None:
    """A threshold without a case must be listed as irrelevant for these logs."""
    for rule in (each for each in RULES if each.kind not in INCIDENTS):
        moved = {name for limits, _ in MOVED.get(rule.kind, ()) for name in limits}
        assert moved | ELSEWHERE.get(rule.kind, set()) == {each.name for each in rule.thresholds}, rule.kind


@pytest.mark.parametrize("case", [case for case in CASES if case.kind in MOVED], ids=lambda case: case.kind)
def test_thresholds_decide(case: RuleCase, written: Callable[..., Path]) -> None:
    """If a threshold is moved past the measured value, the level changes, or there is no finding."""
    rule = _RULES[case.kind]
    context = context_of(written("has", case.has), rule, case.options)
    for limits, level in MOVED[case.kind]:
        others = thresholds_of({f"{case.kind}.{name}": value for name, value in limits.items()})
        levels = [each.level for each in found(replace(context, limits=others), rule)]
        assert levels == ([] if level is None else [level]), limits


@pytest.mark.parametrize("case", [case for case in CASES if case.kind in SETTLED], ids=lambda case: case.kind)
def test_a_group_is_judged_when_nothing_happens_to_it(case: RuleCase, written: Callable[..., Path]) -> None:
    rule = _RULES[case.kind]
    context = context_of(written("has", case.has), rule, case.options)
    for within, count in (("0s", 1), (SETTLED[case.kind], 0)):
        others = thresholds_of({"report.group_settles_within": within})
        assert len(found(replace(context, limits=others), rule)) == count, within
