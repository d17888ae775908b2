"""Two applications that use the same group id by mistake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, grouped, kept
from kafka_records_tables.report.facts.group_facts import (
    MOST_GROUPS,
    MemberLife,
    first_joined,
    member_lives,
    names_of,
)
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Threshold, Verdict
from kafka_records_tables.report.rule_context import RuleContext, counted, listed, of_group, shown
from kafka_records_tables.topics import OFFSETS

KIND: Final = "two_applications"


@dataclass(slots=True)
class Application:
    """Members with assigned topics that no other member of the group has."""

    topics: set[str]
    lives: list[MemberLife]

    @property
    def clients(self) -> list[str]:
        """Their client ids."""
        return names_of(self.lives)

    @property
    def first(self) -> MemberLife:
        return first_joined(self.lives)

    def was_there(self, at_ms: int) -> bool:
        """Whether any of its members was there at a given time."""
        return any(each.was_there(at_ms) for each in self.lives)


def applications(lives: list[MemberLife]) -> list[Application]:
    """Members by their assigned topics: those that ever had a topic in common, directly or through other members,
    belong to one application. Members without any assignment are left out."""
    found: list[Application] = []
    for life in lives:
        topics = life.topics
        if not topics:
            continue
        own = [each for each in found if each.topics & topics]
        rest = [each for each in found if not each.topics & topics]
        one = Application(topics.union(*(each.topics for each in own)), [life])
        for each in own:
            one.lives = each.lives + one.lives
        found = [*rest, one]
    return sorted(found, key=lambda each: (each.first.joined_ms or 0, each.first.joined_at))


def _suspects(context: RuleContext) -> list[str]:
    """Groups with several assigned topics and several clients."""
    rows = context.table("timeline")
    firsts = grouped(kept(rows, equal(rows, "event", "first_commit")), ["group_id"], [("detail", "count_distinct")])
    several = firsts.filter(pc.greater_equal(firsts["detail_count_distinct"], 2))["group_id"]
    joins = kept(rows, equal(rows, "event", "member_joined"), pc.is_in(rows["group_id"], several.combine_chunks()))
    counts = grouped(joins, ["group_id"], [("member_id", "count_distinct")])
    counts = counts.filter(pc.greater_equal(counts["member_id_count_distinct"], 2))
    counts = counts.sort_by([("member_id_count_distinct", "descending")])
    found: list[str] = counts["group_id"].slice(0, MOST_GROUPS).to_pylist()
    return found


def _find(context: RuleContext) -> list[Incident]:
    found = []
    for group, lives in member_lives(context, _suspects(context)).items():
        apps = applications(lives)
        if len(apps) < 2:
            continue
        proof = _proof(context, group, apps)
        shared = _shared_moments(context, apps, lives)
        # If an application replaces one that reads other topics, both run at once only during the rollout.
        is_lasting = len(shared) >= context.limit(f"{KIND}.generations") and _keeps_coming(context, apps)
        if proof is not None and is_lasting:
            found.append(_incident(context, group, apps, proof, shared))
    return found


def _shared_moments(context: RuleContext, apps: list[Application], lives: list[MemberLife]) -> list[int]:
    """The times at which members joined or left while two of the applications were present."""
    moments = {each.joined_ms for each in lives} | {each.left_ms for each in lives}
    known = sorted(each for each in moments if each is not None)
    return [each for each in known if _both_there(apps, each)]


def _changes(apps: list[Application], since_ms: int) -> list[int]:
    """The times, from a given time on, at which members joined or left while two of the applications were present, or
    had been just before."""
    lives = [life for app in apps for life in app.lives]
    moments = {each.joined_ms for each in lives} | {each.left_ms for each in lives}
    known = sorted(each for each in moments if each is not None and each >= since_ms)
    return [each for each in known if _both_there(apps, each) or _both_there(apps, each - 1)]


def _both_there(apps: list[Application], at_ms: int) -> bool:
    return sum(app.was_there(at_ms) for app in apps) >= 2


def _keeps_coming(context: RuleContext, apps: list[Application]) -> bool:
    """Whether two of the applications are present at the end of the log, or one came back while the other stayed."""
    if sum(any(each.left_at is None for each in app.lives) for app in apps) >= 2:
        return True
    for app in apps:
        returns = [each.joined_ms for each in app.lives[1:] if each.joined_ms is not None]
        if any(other is not app and sum(other.was_there(at) for at in returns) >= 2 for other in apps):
            return True
    return False


def _proof(context: RuleContext, group: str, apps: list[Application]) -> Evidence | None:
    """Evidence that members of one application do not subscribe to the other's topics: their subscriptions, or an
    assignment that left out those topics although no other member could take them."""
    rows = context.rows_of_group("members", group).to_pylist()
    wanted: dict[str, set[str]] = {each["member_id"]: set(each["subscribed_topics"] or ()) for each in rows}
    by_app = [set().union(*(wanted[life.member_id] for life in app.lives if life.member_id in wanted)) for app in apps]
    present = [topics for topics in by_app if topics]
    if len(present) >= 2:
        if any(one & other for at, one in enumerate(present) for other in present[at + 1 :]):
            return None
        names = " and ".join(listed(sorted(each)) for each in present[:2])
        return Evidence(f"members subscribe to {names}", OFFSETS, rows[0]["log_partition"], rows[0]["log_offset"])
    for app, topics in zip(apps, by_app, strict=True):
        others = set().union(*(other.topics for other in apps if other is not app))
        if topics and not topics & others:
            shows = f"members subscribe to {listed(sorted(topics))}, and not to {listed(sorted(others))}"
            return Evidence(shows, OFFSETS, rows[0]["log_partition"], rows[0]["log_offset"])
    for app in apps:
        for other in apps:
            alone = [
                each
                for each in app.lives
                if other is not app
                and each.joined_ms
                and not other.was_there(each.joined_ms)
                and each.joined_ms > (other.first.joined_ms or 0)
            ]
            for life in alone:
                if life.places and not life.topics & other.topics:
                    shows = f"{life.name} was given only {listed(sorted(life.topics))} while no member had"
                    shows += f" {listed(sorted(other.topics))}"
                    return Evidence(shows, OFFSETS, life.log_partition, life.joined_at, life.joined_ms)
    return None


def _incident(
    context: RuleContext, group: str, apps: list[Application], proof: Evidence, shared: list[int]
) -> Incident:
    later = max(apps[1:], key=lambda each: (len(each.lives), each.first.joined_ms or 0))
    restless = max(apps, key=lambda each: len(each.lives))
    since = min(shared)
    there = _changes(apps, since)
    words = [f"{listed(app.clients)} with {listed(sorted(app.topics))}" for app in apps]
    hosts = {app_at: {each.host for each in app.lives if each.host} for app_at, app in enumerate(apps)}
    is_apart = all(not hosts[0] & hosts[at] for at in range(1, len(apps)))
    clients_apart = not set(apps[0].clients) & {name for app in apps[1:] for name in app.clients}
    often = len(there) >= context.limit(f"{KIND}.rebalances_high")
    churn = len(restless.lives)
    verdict = Verdict(
        f"Two applications share the group id {shown(group)}: {'; '.join(words)}. They do not share a topic.",
        evidence_for=(
            proof,
            *((Evidence("their client ids are different"),) if clients_apart else ()),
            *((Evidence("they run on different hosts"),) if is_apart else ()),
        ),
        is_certain=clients_apart,
    )
    move = NextStep(
        f"Give one of the applications a group.id of its own ({shown(later.clients[0])}, which joined "
        "later), and take its"
        f" offsets of {listed(sorted(later.topics))} with it: this writes them into a file; put the new group.id into"
        " its first column, and give it to kafka-consumer-groups --reset-offsets --from-file",
        context.command(
            Rows("current_offsets", of_group(group, f"topic={sorted(later.topics)[0]}")),
            "--format",
            "reset-offsets",
            "--output",
            "offsets.csv",
        ),
    )
    finding = ReportFinding(
        kind=KIND,
        level=Level.HIGH if often else Level.MODERATE,
        title=RULE.title,
        problem=(
            f"The members of the group {shown(group)} belong to {len(apps)} applications that consume different "
            f"topics: {'; '.join(words)}. Members joined or left {counted(len(there), 'time')} while both were there, "
            f"and each time the group was rebalanced; {counted(churn, 'member')} joined as {listed(restless.clients)}."
        ),
        impact="Whenever a member of one application joins or leaves, the other one is rebalanced and "
        "pauses. Monitoring or resetting the group affects both.",
        consequence="work_stopped",
        group_ids=(group,),
        topics=tuple(sorted(set().union(*(app.topics for app in apps)))),
        who=tuple(
            Actor(f"consumes {listed(sorted(app.topics))}", group, None, name, min(hosts[at], default=None))
            # Start with the application that should get its own group id.
            for at, app in sorted(enumerate(apps), key=lambda each: each[1] is not later)
            for name in app.clients[:4]
        ),
        since_timestamp_ms=since,
        is_going_on=_both_there(apps, context.at_ms),
        scale={"rebalances": len(there), "applications": len(apps)},
        evidence=(
            Evidence(f"{later.first.name} joins", OFFSETS, later.first.log_partition, later.first.joined_at, since),
            proof,
        ),
        evidence_count=2,
        rows=(Rows("timeline", of_group(group)), Rows("members", of_group(group))),
        next=(
            move,
            context.see("List who joins and leaves, and what each is assigned", Rows("timeline", of_group(group))),
            context.describe_members(group),
        ),
        measured={"rebalances": len(there), "members": sum(len(app.lives) for app in apps)},
        thresholds=context.limits_of(f"{KIND}.generations", f"{KIND}.rebalances_high"),
    )
    return Incident(finding, len(there), {"shared_group_id": verdict})


RULE = incident_rule(
    kind=KIND,
    title="two applications share a group id",
    about="""\
Members of one group that consume different topics, and do not read each other's. A rollout to a version that reads
other topics is left out.""",
    tables=("timeline", "members"),
    levels={Level.HIGH: "`rebalances_high` rebalances while both were there", Level.MODERATE: "fewer"},
    find=_find,
    listing=Rows("members"),
    causes=(
        PossibleCause(
            "shared_group_id",
            "two applications were configured with one group id",
            "for: disjoint subscriptions, client ids, hosts; refuted by a member that has topics of both",
        ),
    ),
    thresholds=(
        Threshold(
            "generations",
            "count",
            3,
            "how often members joined or left while both were there",
            "a rollout causes fewer",
        ),
        Threshold(
            "rebalances_high",
            "count",
            8,
            "how many rebalances make the finding urgent",
            "two deployments of three members need fewer",
        ),
    ),
    folds=(Folds("endless_rebalances"), Folds("too_slow"), Folds("members_unsettled")),
)

RULES = (RULE,)
