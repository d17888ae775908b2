"""Measure the time and memory that the findings of a report take for a cluster with many groups, by rule.

    python tools/benchmarks/report_rules.py [--groups 1000 10000 65000] [--folder FOLDER]

The log is written by the helpers of the tests (tests/report). Every group has a member and some 15 committed offsets in
one topic. One in ten groups was stopped and its offsets are about to expire, one in fifty went backwards, one in a
hundred was reset. One topic was recreated, and one has lost records that nobody had consumed. One process makes the
report. Times are processor time. `rules` is the part of the time that the rules take, including what they read a second
time; `slowest` names the rules that took longest. The peak of memory is that of the process after the report.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Final
from unittest.mock import patch

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # Python puts only the folder of a script on its path

from kafka_records_tables.report import making
from kafka_records_tables.report.making import read_report
from kafka_records_tables.report.ranking import findings_of
from kafka_records_tables.report.report_parts import ReportFinding
from kafka_records_tables.report.rule import ReportRule
from kafka_records_tables.report.rule_context import RuleContext
from kafka_records_tables.report.rules import RULES
from tests.report.classic_lives import ClassicLife
from tests.report.made_up_cluster import DAY, HOUR, MINUTE, MadeCluster

_END_MS: Final = 1_790_000_000_000
_PARTITIONS: Final = (12, 18, 16, 15, 16)
"""The numbers of partitions of topics, in turn: 15.4 on average."""
_GROUPS_OF_TOPIC: Final = 325


def write_groups(folder: Path, groups: int) -> None:
    """Write the data directory of a cluster with the given number of groups."""
    cluster = MadeCluster("many groups", _END_MS, days=8, offsets_partitions=50)
    cluster.cleaned_until_ms = None
    for number in range(groups):
        of_topic = number // _GROUPS_OF_TOPIC
        topic = cluster.topic(f"topic-{of_topic:04}", _PARTITIONS[of_topic % len(_PARTITIONS)])
        life = ClassicLife(cluster, f"service-{number * 7919 % 100_003:06}", [topic.name])
        begins = cluster.start_ms + cluster.jitter(HOUR)
        stopped = number % 10 == 3
        last = _END_MS - 6 * DAY - 12 * HOUR - cluster.jitter(DAY // 2) if stopped else _END_MS - cluster.jitter(HOUR)
        life.start(begins, 1)
        if number % 50 == 7:
            life.commit(last - MINUTE)
            life.done = {place: offset - 1000 for place, offset in life.done.items()}
            cluster.commit(life.group, last, life.done)
        elif number % 100 == 11:
            life.commit(begins + HOUR)
            life.stop(last - 2 * MINUTE)
            cluster.commit(life.group, last - MINUTE, {place: offset - 1000 for place, offset in life.done.items()})
        else:
            life.commit(last)
        if stopped:
            life.stop(last + MINUTE)
    behind, recreated = cluster.topics["topic-0000"], cluster.topics[f"topic-{(groups - 1) // _GROUPS_OF_TOPIC:04}"]
    behind.log_starts = tuple(behind.end(number, _END_MS) for number in range(behind.partitions))
    recreated.topic_id = cluster.kafka_id()
    cluster.write(folder)


@contextmanager
def rules_timed(seconds: dict[str, float]) -> Iterator[None]:
    """Within this context, add the processor time of each rule of a report to `seconds`, by kind of finding: its cases,
    and what it reads a second time. The time for rows that several rules need counts for the first of them."""

    def timed(rule: ReportRule) -> ReportRule:
        def cases(context: RuleContext) -> pa.Table:
            began = time.process_time()
            found = rule.cases(context)
            seconds[rule.kind] = seconds.get(rule.kind, 0) + time.process_time() - began
            return found

        return replace(rule, cases=cases)

    def findings(context: RuleContext, rules: Sequence[ReportRule] = RULES) -> tuple[ReportFinding, ...]:
        began = time.process_time()
        found = findings_of(context, [timed(rule) for rule in rules])
        seconds["telling"] = time.process_time() - began - sum(seconds.values())
        return found

    with patch.object(making, "findings_of", findings):
        yield


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--groups", type=int, nargs="+", default=[1000, 10_000, 65_000])
    parser.add_argument("--folder", type=Path, help="keep the logs here, and read those that are there")
    options = parser.parse_args(arguments)
    print("| groups | offsets | findings | report, s | peak, MB | rules, s | slowest |")
    print("|--:|--:|--:|--:|--:|--:|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for groups in options.groups:
            folder = (options.folder or Path(scratch)) / str(groups)
            # Each size, and its writer, run in separate processes, because the peak of memory is that of a process.
            with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
                if not folder.exists():
                    pool.apply(write_groups, (folder, groups))
                print(pool.apply(_measured, (folder, groups)), flush=True)
    return 0


def _measured(folder: Path, groups: int) -> str:
    seconds: dict[str, float] = {}
    with rules_timed(seconds):
        began = time.process_time()
        report = read_report(folder, processes=1)
        took = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    slowest = sorted(seconds, key=lambda kind: -seconds[kind])[:4]
    offsets = report.tables["current_offsets"].num_rows
    named = ", ".join(f"`{kind}` {seconds[kind]:.2f}" for kind in slowest)
    rules = f"{sum(seconds.values()):.2f} ({sum(seconds.values()) / took:.0%})"
    return f"| {groups} | {offsets} | {len(report.findings)} | {took:.1f} | {peak:.0f} | {rules} | {named} |"


if __name__ == "__main__":
    sys.exit(main())
