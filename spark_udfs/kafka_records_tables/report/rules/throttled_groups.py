"""Groups throttled by the same quota, as one incident."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kafka_records_tables.report.incident_rule import Incident
from kafka_records_tables.report.report_parts import Effect, Evidence
from kafka_records_tables.report.rule_context import MOST_EVIDENCE, counted, listed, moment, shown
from kafka_records_tables.report.rules.throttled_clients import THROTTLED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_records_tables.report.rule_context import RuleContext


def by_quota(context: RuleContext, found: Sequence[Incident]) -> list[Incident]:
    """The incidents of groups that read too slowly. Those certainly caused by the same quota become one, which takes
    the position of the first."""
    of_quotas: dict[Evidence | int, list[Incident]] = {}
    for number, each in enumerate(found):
        verdict = each.verdicts.get(THROTTLED)
        # The first evidence of a certain verdict is the record that set the quota.
        key = verdict.evidence_for[0] if verdict is not None and verdict.is_certain else number
        of_quotas.setdefault(key, []).append(each)
    return [
        _of_quota(context, quota, some) if isinstance(quota, Evidence) and len(some) > 1 else some[0]
        for quota, some in of_quotas.items()
    ]


def _of_quota(context: RuleContext, quota: Evidence, found: Sequence[Incident]) -> Incident:
    """One incident for all groups that a quota throttles. Its effects are what the quota does to each group."""
    findings = [each.finding for each in found]
    worst = max(findings, key=lambda each: (each.level, each.scale["records_waiting"]))
    groups = list(dict.fromkeys(group for each in findings for group in each.group_ids))
    topics = tuple(sorted({topic for each in findings for topic in each.topics}))
    waiting = sum(each.scale["records_waiting"] for each in findings)
    set_at = "" if quota.timestamp_ms is None else f" since {moment(quota.timestamp_ms)}, when a quota was set"
    verdict = found[0].verdicts[THROTTLED]
    told = tuple(
        item
        for at, each in enumerate(found)
        for item in each.verdicts[THROTTLED].evidence_for
        if at == 0 or item != quota
    )
    return Incident(
        replace(
            worst,
            title="groups read less than is written, and their backlogs grow",
            problem=(
                f"{counted(len(groups), 'group')} ({listed(groups, 5)}) read {listed(topics, 5)} more slowly than "
                f"records are written{set_at}: {counted(waiting, 'record')} wait, and the backlogs grow."
            ),
            impact="Their results are later and later, and records that a topic deletes by their age before they are "
            "read are lost.",
            group_ids=tuple(groups),
            topics=topics,
            partitions=(
                tuple(sorted({part for each in findings for part in each.partitions})) if len(topics) == 1 else ()
            ),
            who=tuple(actor for each in findings for actor in each.who)[:5],
            since_timestamp_ms=quota.timestamp_ms,
            scale={
                "records_waiting": waiting,
                "groups": len(groups),
                "partitions": len(
                    {(topic, part) for each in findings for topic in each.topics for part in each.partitions}
                ),
            },
            evidence=tuple(item for each in findings for item in each.evidence)[:MOST_EVIDENCE],
            evidence_count=sum(each.evidence_count for each in findings),
            rows=tuple(dict.fromkeys(rows for each in findings for rows in each.rows)),
            next=tuple(
                context.see(f"List the lag of {shown(each.group_ids[0])} by partition", rows)
                for each in findings[:3]
                for rows in each.rows
                if rows.table == "lag"
            ),
            measured={},
            effects=tuple(map(Effect.of, findings)),
        ),
        sum(each.rank for each in found),
        {
            **found[0].verdicts,
            THROTTLED: replace(
                verdict,
                statement=verdict.statement.replace(listed(found[0].finding.group_ids), listed(groups, 5), 1),
                evidence_for=told[:MOST_EVIDENCE],
            ),
        },
    )
