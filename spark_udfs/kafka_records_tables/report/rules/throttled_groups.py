"""Groups throttled by the same quota, as one incident."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kafka_records_tables.report.incident_rule import Incident
from kafka_records_tables.report.report_parts import Effect, Evidence
from kafka_records_tables.report.rule_context import MOST_EVIDENCE, counted, listed, moment, shown
from kafka_records_tables.report.rules.throttled_clients import THROTTLED, QuotaVerdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_records_tables.report.rule_context import RuleContext


def by_quota(context: RuleContext, found: Sequence[Incident]) -> list[Incident]:
    """The incidents of groups that read too slowly. Those certainly caused by the same quota become one, which takes
    the position of the first."""
    of_quotas: dict[Evidence | int, list[tuple[Incident, QuotaVerdict | None]]] = {}
    for number, each in enumerate(found):
        verdict = _certain(each)
        key = number if verdict is None or verdict.set_by is None else verdict.set_by
        of_quotas.setdefault(key, []).append((each, verdict))
    return [
        each if len(some) == 1 or verdict is None else _of_quota(context, [one for one, _ in some], verdict)
        for some in of_quotas.values()
        for each, verdict in some[:1]
    ]


def _certain(incident: Incident) -> QuotaVerdict | None:
    verdict = incident.verdicts.get(THROTTLED)
    return verdict if isinstance(verdict, QuotaVerdict) and verdict.is_certain else None


def _of_quota(context: RuleContext, found: Sequence[Incident], verdict: QuotaVerdict) -> Incident:
    """One incident for all groups that a quota throttles. Its effects are what the quota does to each group."""
    findings = [each.finding for each in found]
    worst = max(findings, key=lambda each: (each.level, each.scale["records_waiting"]))
    groups = list(dict.fromkeys(group for each in findings for group in each.group_ids))
    topics = tuple(sorted({topic for each in findings for topic in each.topics}))
    waiting = sum(each.scale["records_waiting"] for each in findings)
    set_ms = None if verdict.quota is None else verdict.quota.set_ms
    set_at = "" if set_ms is None else f" since {moment(set_ms)}, when a quota was set"
    facts = dict.fromkeys(item for each in found for item in each.verdicts[THROTTLED].evidence_for)
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
            since_timestamp_ms=set_ms,
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
            THROTTLED: verdict.of_groups(groups, tuple(facts)[:MOST_EVIDENCE]),
        },
    )
