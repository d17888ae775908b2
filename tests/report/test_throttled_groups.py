"""Groups that one quota throttles are one incident."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_records_tables.report.facts.client_quotas import Quota
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.ranking import findings_of
from kafka_records_tables.report.report_parts import Actor, Evidence, ReportFinding, Rows
from kafka_records_tables.report.rule_context import RuleContext, of_group
from kafka_records_tables.report.rules.throttled_clients import THROTTLED, QuotaVerdict
from kafka_records_tables.report.rules.throttled_groups import by_quota
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context

_SET_MS = END_MS - 60_000
_QUOTA = Evidence("consumer_byte_rate=8192 was set", "__cluster_metadata", 0, 7, _SET_MS)
_LATER = Evidence("consumer_byte_rate=8192 was set", "__cluster_metadata", 0, 9, _SET_MS + 5)


def _incident(
    group: str, topic: str, waiting: int, quota: Evidence | None = _QUOTA, *, is_certain: bool = True
) -> Incident:
    rate = Evidence(f"{group} reads as fast as the quota allows")
    of_client = Quota("app", None, "app", "consumer_byte_rate", 8192, _SET_MS, 7, None)
    told = "throttles" if is_certain else "may throttle"
    verdict = QuotaVerdict(
        f'A quota {told} the clients of "{group}".',
        (quota or rate, rate),
        is_certain=is_certain,
        quota=of_client,
        set_by=quota,
    )
    finding = ReportFinding(
        kind="too_slow",
        level=Level.HIGH if waiting > 10 else Level.MODERATE,
        title="a group reads less than is written",
        problem=f"The group {group} reads less.",
        group_ids=(group,),
        topics=(topic,),
        partitions=(0, 1),
        who=(Actor("reads too slowly", group),),
        since_timestamp_ms=_SET_MS + 3000,
        scale={"records_waiting": waiting, "partitions": 2},
        evidence=(rate,),
        evidence_count=1,
        rows=(Rows("lag", of_group(group)),),
    )
    return Incident(finding, waiting, {THROTTLED: verdict} if quota else {})


def _told(found: Sequence[Incident]) -> list[ReportFinding]:
    def find(context: RuleContext) -> list[Incident]:
        return by_quota(context, found)

    rule = incident_rule(
        kind="too_slow",
        title="",
        about="",
        tables=(),
        levels={},
        find=find,
        listing=Rows("lag", ()),
        causes=(PossibleCause(THROTTLED, "", ""),),
    )
    return list(findings_of(_context(), (rule,)))


def test_groups_that_one_quota_throttles_are_one_incident() -> None:
    (found,) = _told([_incident("a", "orders", 5), _incident("b", "orders", 20), _incident("c", "orders", 3)])
    assert (found.level, found.group_ids, found.topics) == (Level.HIGH, ("a", "b", "c"), ("orders",))
    assert found.since_timestamp_ms == _SET_MS
    assert dict(found.scale) == {"records_waiting": 28, "groups": 3, "partitions": 2}
    assert '3 groups ("a", "b", "c") read "orders" more slowly' in found.problem
    assert [each.group_ids for each in found.effects] == [("a",), ("b",), ("c",)]
    assert found.effects[1].problem == "The group b reads less."
    (cause,) = found.causes
    assert (cause.name, cause.confidence) == (THROTTLED, "high")
    assert cause.statement.startswith(
        'A quota throttles the clients of "a", "b", "c": client id "app", consumer_byte_rate=8192'
    )
    assert [each.shows for each in cause.evidence_for] == [
        _QUOTA.shows,
        *(f"{group} reads as fast as the quota allows" for group in "abc"),
    ]
    assert [each.what for each in found.next] == [f'List the lag of "{group}" by partition' for group in "abc"]


def test_topics_of_throttled_groups_are_named() -> None:
    (found,) = _told([_incident("a", "orders", 5), _incident("b", "parcels", 20)])
    assert (found.topics, found.partitions, found.scale["partitions"]) == (("orders", "parcels"), (), 4)


def test_other_quotas_and_causes_stay_incidents_of_their_own() -> None:
    one, other = _incident("a", "orders", 50), _incident("b", "orders", 40)
    more = [_incident("c", "orders", 30, _LATER), _incident("d", "orders", 20, is_certain=False)]
    found = _told([one, *more, _incident("e", "orders", 15, None), other])
    assert [each.group_ids for each in found] == [("a", "b"), ("c",), ("d",), ("e",)]
    assert found[1:] == _told([*more, _incident("e", "orders", 15, None)])
    assert not any(each.effects for each in found[1:])
