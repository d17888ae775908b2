"""A client quota as the cause when a group reads slowly or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.client_quotas import BYTES, Quota, bytes_per_record, lacking_quotas, quotas_of
from kafka_records_tables.report.incident_rule import PossibleCause
from kafka_records_tables.report.report_parts import Evidence, NextStep
from kafka_records_tables.report.rule import Question, Verdict
from kafka_records_tables.report.rule_context import MINUTE_MS, RuleContext, length, listed, moment, shown
from kafka_records_tables.topics import METADATA

if TYPE_CHECKING:
    from collections.abc import Sequence

THROTTLED: Final = "throttled_by_quota"
CAUSE: Final = PossibleCause(
    THROTTLED,
    "a quota limits how fast its clients may read",
    "for: it was set just before, and as many bytes per second were read as it allows",
)
QUESTIONS: Final = tuple(
    Question(
        THROTTLED,
        other,
        "Do brokers throttle its clients? Then fetch-throttle-time-avg of the consumers is above 0 "
        "(kafka.consumer:type=consumer-fetch-manager-metrics)",
        asked="last",
    )
    for other in ("work_slower", "more_written", "application_hangs")
)
_JUST_BEFORE_MS: Final = MINUTE_MS
_LATER_MS: Final = MINUTE_MS // 3
"""A quota that was set this long after the backlog began to grow is not its cause. The beginning is only known to one
of sixty moments, and a group first processes the records that it has already fetched."""
_NEAR: Final = (0.4, 1.6)
"""A rate within these bounds matches a quota. Brokers measure rates over eleven seconds and let at least one batch
pass, and the record size is a mean."""
_FAR: Final = 0.2
"""Below this share of a quota, brokers do not throttle."""


@dataclass(frozen=True, slots=True)
class QuotaVerdict(Verdict):
    """The verdict about a quota that applies to the clients of a group."""

    quota: Quota | None = None
    set_by: Evidence | None = None
    """The record that set the quota."""

    def of_groups(self, groups: Sequence[str], facts: Sequence[Evidence]) -> QuotaVerdict:
        """The same verdict about several groups, with the evidence from all of them."""
        assert self.quota is not None
        return replace(
            self, statement=_statement(self.quota, groups, is_certain=self.is_certain), evidence_for=tuple(facts)
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """How a group reads a topic."""

    group: str
    topic: str
    since_ms: int
    per_second: float | None
    """Records per second since then; None if the group does not read."""
    kept_up_ms: int | None = None
    """The time from which the group had kept up before; None if it is not known to have kept up."""


def weigh_quotas(context: RuleContext, reading: Reading, members: Sequence[Mapping[str, Any]]) -> Verdict | None:
    """The verdict about the quota that most likely throttles the members of a group; None if none applies to them."""
    quotas = quotas_of(context, (each["client_id"] for each in members), context.at_ms)
    if not quotas:
        fact = Evidence("the metadata log has no quota for the client ids of its members", METADATA)
        return None if lacking_quotas(context) else Verdict("A quota throttles its clients.", refuted_by=fact)
    size = None if reading.per_second is None else bytes_per_record(context, reading.topic)
    weighed = [_weighed(context, reading, each, size) for each in quotas]
    return max(weighed, key=lambda each: (each.refuted_by is None, each.is_certain, len(each.evidence_for)))


def _weighed(context: RuleContext, reading: Reading, quota: Quota, size: float | None) -> Verdict:
    evidence_for: list[Evidence] = []
    evidence_against: list[Evidence] = []
    refuted: Evidence | None = None
    is_timely = quota.set_ms is not None and -_LATER_MS <= reading.since_ms - quota.set_ms <= _JUST_BEFORE_MS
    at = Evidence(
        f"{quota.limit} was set for {quota.whose}"
        + ("" if quota.set_ms is None else f" at {moment(quota.set_ms)}")
        + ("" if quota.before is None else f", in place of {quota.before:.10g}"),
        METADATA,
        0,
        quota.log_offset,
        quota.set_ms,
    )
    if is_timely:
        evidence_for.append(at)
    elif quota.set_ms is not None and quota.set_ms > reading.since_ms and quota.before is None:
        later = f"the quota was set only {length(quota.set_ms - reading.since_ms)} after that"
        refuted = Evidence(later, METADATA, 0, quota.log_offset, quota.set_ms)
    is_near = False
    lacked: tuple[str, ...] = ()
    if quota.name == BYTES and reading.per_second is not None:
        if size is None:
            lacked = (f"the size of the records of {reading.topic}",)
        elif quota.value > 0:
            rate = reading.per_second * size
            is_near = _NEAR[0] <= rate / quota.value <= _NEAR[1]
            told = Evidence(
                f"{shown(reading.group)} reads about {rate:.0f} bytes per second of {reading.topic} ({size:.0f} for "
                f"each record), and the quota allows {quota.value:.10g} on each broker"
            )
            if is_near:
                evidence_for.append(told)
            elif rate < quota.value * _FAR and not _others(context, reading.group, quota):
                refuted = refuted or told
    if not is_near and reading.kept_up_ms is not None and (quota.set_ms or 0) < reading.kept_up_ms:
        evidence_against.append(Evidence("the group kept up while the quota was already set", METADATA))
    if quota.is_of_one_user:
        lacked += (f"the user of its clients: the quota applies only if it is {quota.user}",)
    is_certain = is_timely and is_near and not quota.is_of_one_user
    every = context.ask_kafka("", "kafka-configs", "--describe", *quota.words)
    return QuotaVerdict(
        _statement(quota, [reading.group], is_certain=is_timely and is_near),
        tuple(evidence_for),
        tuple(evidence_against),
        refuted_by=refuted,
        is_certain=is_certain,
        lacked=lacked,
        steps=(
            NextStep(
                f"Raise the quota, or delete it (--delete-config {quota.name}), if it is not meant to be that low; the "
                "group then catches up from its offsets by itself. Look at it first",
                every.command,
            ),
        ),
        quota=quota,
        set_by=at,
    )


def _statement(quota: Quota, groups: Sequence[str], *, is_certain: bool) -> str:
    verb = "throttles" if is_certain else "may throttle"
    if_user = " if they have this user" if quota.is_of_one_user else ""
    set_at = "" if quota.set_ms is None else f", set at {moment(quota.set_ms)}"
    return (
        f"A quota {verb} the clients of {listed(groups, 5)}{if_user}: {quota.whose}, {quota.limit}{set_at}. "
        f"{_shared(quota)} share it, so more members do not help."
    )


def _shared(quota: Quota) -> str:
    """The clients that share a quota, as the start of a sentence."""
    if quota.of_client_id is None:
        return "All clients of the user"
    return "All clients with this id" if quota.user is None else "All clients of the user with this id"


def _others(context: RuleContext, group: str, quota: Quota) -> bool:
    """Whether other groups have members that share a quota."""
    rows = context.table("members")
    if quota.of_client_id is not None:
        # The default quota for client ids limits each client id separately.
        rows = kept(rows, equal(rows, "client_id", quota.client_id))
    return any(each != group for each in rows["group_id"].to_pylist())
