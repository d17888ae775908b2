"""Groups and producers that stopped when access control lists (ACLs) for their topics or groups were changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.command_lines import condition_of, option
from kafka_records_tables.report.facts.acl_changes import READ, TOPIC, WRITE, Restriction, restrictions
from kafka_records_tables.report.facts.group_facts import (
    MOST_GROUPS,
    Offset,
    Span,
    commit_spans,
    ends_of_topic,
    log_ends,
)
from kafka_records_tables.report.facts.silent_topics import Silence, silence_of
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    MINUTE_MS,
    MOST_EVIDENCE,
    RuleContext,
    counted,
    length,
    listed,
    moment,
    of_group,
    shown,
)
from kafka_records_tables.topics import METADATA, OFFSETS

KIND: Final = "clients_shut_out"
_DENIED, _OTHERWISE = "acl_denies", "stopped_otherwise"
_MOST_ENTRIES: Final = 3
"""The maximum number of entries to name in a sentence."""
_WAIT: Final = (
    "{} wait, and more come. Nothing is lost as long as topics keep them: consumers will continue at their offsets."
)
_MOST_TOPICS: Final = 100
"""The maximum number of topics to look at per change."""


@dataclass(frozen=True, slots=True)
class _ShutOut:
    """A group without commits for a topic since shortly before or after a change."""

    group_id: str
    topics: tuple[str, ...]
    last: Span
    """Its last commit for these topics."""
    waiting: int
    """The number of offsets not consumed since."""
    joins: int
    """How often members have joined since."""


def _find(context: RuleContext) -> list[Incident]:
    if not context.is_stored:
        return []
    found: list[Incident] = []
    known: set[str] = set()
    for change in reversed(context.once(restrictions)):
        if context.at_ms - change.at_ms < context.limit("report.group_settles_within"):
            continue
        silent = _silent(context, change)
        groups = _shut_out(context, change, silent) if change.takes(READ) else []
        groups = [each for each in groups if each.group_id not in known]
        silent = {topic: each for topic, each in silent.items() if topic not in known}
        if groups or silent:
            known.update(silent, (each.group_id for each in groups))
            found.append(_incident(context, change, groups, silent))
    return found


def _silent(context: RuleContext, change: Restriction) -> dict[str, Silence]:
    """The topics of a change that have not been written to since."""
    if change.resource_type != TOPIC or not change.takes(WRITE):
        return {}
    around = context.limit(f"{KIND}.around")
    names = [each for each in context.table("log_ends")["topic"].unique().to_pylist() if change.matches(each)]
    # Read the logs of several topics together.
    ends = log_ends(context) if len(names) > 1 else None
    found = {}
    for topic in sorted(names)[:_MOST_TOPICS]:
        silence = silence_of(context, ends or ends_of_topic(context, "", topic), topic, around)
        if silence is not None and abs(silence.last_ms - change.at_ms) <= around:
            found[topic] = silence
    return found


def _shut_out(context: RuleContext, change: Restriction, silent: Mapping[str, Silence]) -> list[_ShutOut]:
    """The groups that consumed what the change is about until then and have not since. Either records are waiting, or
    nothing is written there any more and the groups have lost their members."""
    around = context.limit(f"{KIND}.around")
    key = "topic" if change.resource_type == TOPIC else "group_id"
    rows = context.table("current_offsets")
    names = [each for each in rows[key].unique().to_pylist() if change.matches(each)]
    rows = kept(rows, equal(rows, key, *names), pc.is_valid(rows["commit_timestamp_ms"]))
    newest = rows.group_by("group_id", use_threads=False).aggregate(
        [("commit_timestamp_ms", "max"), ("topic", "distinct")]
    )
    suspects = {
        row["group_id"]: tuple(sorted(row["topic_distinct"]))
        for row in newest.to_pylist()
        if abs(row["commit_timestamp_ms_max"] - change.at_ms) <= around
    }
    chosen = tuple(suspects)[:MOST_GROUPS]
    spans = commit_spans(context, chosen)
    found = [_judged(context, change, each, suspects[each], spans, silent) for each in chosen]
    return [each for each in found if each is not None]


def _judged(
    context: RuleContext,
    change: Restriction,
    group: str,
    topics: tuple[str, ...],
    spans: dict[Offset, list[Span]],
    silent: Mapping[str, Silence],
) -> _ShutOut | None:
    own = sorted(
        (
            each
            for (name, topic, _), of_place in spans.items()
            if name == group and topic in topics
            for each in of_place
        ),
        key=lambda each: each.from_ms or 0,
    )
    times = [each.from_ms for each in own if each.from_ms is not None]
    if len(times) < 2 or context.at_ms - times[-1] <= 2 * max(later - first for first, later in pairwise(times)):
        return None
    events = context.rows_of_group("timeline", group).to_pylist()
    before = [each for each in events if (each["at_timestamp_ms"] or 0) <= times[-1]]
    if before and before[-1]["member_count"] == 0 and before[-1]["event"] in ("emptied", "epoch", "member_left"):
        return None  # it had stopped before
    has_left = _emptied_near(context, change, events)
    lag = context.rows_of_group("lag", group)
    lag = kept(lag, pc.greater(lag["lag"], 0))
    of_topics = kept(lag, equal(lag, "topic", *topics))
    # A group has nothing to commit unless records were written after its last commit.
    waits = of_topics.num_rows > 0 and _waits_after(of_topics, change.at_ms)
    if not waits and not (has_left and all(topic in silent for topic in topics)):
        return None
    joins = sum(each["event"] == "member_joined" and (each["at_timestamp_ms"] or 0) > change.at_ms for each in events)
    waiting = pc.sum((lag if has_left else of_topics)["lag"]).as_py() or 0
    return _ShutOut(group, topics, own[-1], waiting, joins)


def _emptied_near(context: RuleContext, change: Restriction, events: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a group lost its last member when ACLs were changed, and has had no members since."""
    emptied = [each["at_timestamp_ms"] for each in events if each["event"] == "emptied" and each["at_timestamp_ms"]]
    if not emptied or abs(emptied[-1] - change.at_ms) > context.limit(f"{KIND}.around"):
        return False
    return not any(each["event"] == "member_joined" and (each["at_timestamp_ms"] or 0) > emptied[-1] for each in events)


def _waits_after(lag: Any, at_ms: int) -> bool:
    """Whether records are waiting that were written around a given time or later. Older ones had been waiting
    before."""
    times = [each for each in lag["unread_timestamp_ms"].to_pylist() if each is not None]
    return bool(times) and max(times) >= at_ms - MINUTE_MS


def _incident(
    context: RuleContext, change: Restriction, groups: list[_ShutOut], silent: Mapping[str, Silence]
) -> Incident:
    groups = sorted(groups, key=lambda each: (-each.waiting, each.group_id))
    names = tuple(each.group_id for each in groups)
    topics = tuple(sorted({*silent, *(topic for each in groups for topic in each.topics)}))
    waiting, joins = sum(each.waiting for each in groups), sum(each.joins for each in groups)
    what = f"{change.resource_type} {shown(change.resource_name)}{' (names that begin so)' if change.is_prefix else ''}"
    entries = "; ".join(each.words for each in change.entries[:_MOST_ENTRIES])
    did = "were added" if change.is_first or change.entries[0].is_denied else "were removed"
    changed = Evidence(f"ACLs of {what} {did}: {entries}", METADATA, 0, change.log_offset, change.at_ms)
    commits = [
        Evidence(
            f"the last commit of {each.group_id}",
            OFFSETS,
            each.last.log_partition,
            each.last.log_offset,
            each.last.from_ms,
        )
        for each in groups
    ]
    writes = [
        Evidence(f"the last record of {each.topic}", each.topic, each.partition, each.offset, each.last_ms)
        for each in silent.values()
    ]
    last = [each.timestamp_ms or 0 for each in (*commits, *writes)]
    finding = ReportFinding(
        kind=KIND,
        level=Level.HIGH,
        title=RULE.title if names else "nothing has been written to a topic since its ACLs were changed",
        problem=f"At {moment(change.at_ms)} ACLs of {what} {did}: {entries}.{_who_stopped(groups, joins)}"
        f"{_what_is_silent(silent)}",
        impact=" ".join(
            (
                *((_WAIT.format(counted(waiting, "record")),) if waiting else ()),
                *(("Producers that are denied access lose their records, or stop.",) if silent else ()),
            )
        ),
        consequence="work_stopped",
        group_ids=names,
        topics=topics,
        since_timestamp_ms=change.at_ms,
        is_going_on=True,
        scale={
            "groups": len(names),
            "topics_without_writes": len(silent),
            "records_waiting": waiting,
            "joins_since": joins,
        },
        evidence=(changed, *commits, *writes)[:MOST_EVIDENCE],
        evidence_count=1 + len(commits) + len(writes),
        rows=(
            (Rows("lag", of_group(names[0])), Rows("timeline", of_group(names[0])))
            if names
            else (Rows("log_ends", (condition_of("topic", topics[0]),)),)
        ),
        next=_steps(context, change, names, bool(silent)),
        measured={"last_actions_within_ms": max(last) - min(last), "last_to_change_ms": abs(change.at_ms - min(last))},
        thresholds=context.limits_of(f"{KIND}.around", "report.group_settles_within"),
    )
    others = _that_go_on(context, change, names, topics)
    first = (*commits, *writes)[0]
    stopped = " and ".join(counted(len(each), noun) for each, noun in ((groups, "group"), (silent, "topic")) if each)
    near = Evidence(
        f"{stopped} stopped within {length(max(abs(change.at_ms - each) for each in last))} of the change",
        first.topic,
        first.partition,
        first.offset,
        first.timestamp_ms,
    )
    go_on = Evidence(f"{counted(others, 'group')} of other topics went on") if others else None
    refused = [f"the clients of {listed(names)}"] if names else []
    refused += [f"the producers of {listed(tuple(silent))}"] if silent else []
    denied = Verdict(
        f"The changed ACLs deny access to {' and '.join(refused)}: {change.how}.",
        (changed, near, *((go_on,) if go_on is not None else ())),
        lacked=("the principals of the clients: no record has them",),
    )
    otherwise = Verdict("They stopped at that time for another reason.", evidence_against=(near,))
    return Incident(finding, max(waiting, 1), {_DENIED: denied, _OTHERWISE: otherwise})


def _who_stopped(groups: Sequence[_ShutOut], joins: int) -> str:
    """A sentence about the groups that stopped."""
    if not groups:
        return ""
    names = [each.group_id for each in groups]
    topics = sorted({topic for each in groups for topic in each.topics})
    is_one = len(names) == 1
    last = moment(max(each.last.from_ms or 0 for each in groups))
    again = f" Their members have joined {joins} times since, and committed nothing." if joins else ""
    return (
        f" The {'group' if is_one else 'groups'} {listed(names)} {'consumes' if is_one else 'consume'} {listed(topics)}"
        f", and {'has' if is_one else 'have'} committed nothing of {'it' if len(topics) == 1 else 'them'} since {last}."
        f"{again}"
    )


def _what_is_silent(silent: Mapping[str, Silence]) -> str:
    """A sentence about the topics that are no longer written to."""
    return "".join(
        f" Nothing has been written to {shown(each.topic)} since {moment(each.last_ms)}; before, a batch came at the "
        f"latest every {length(each.usual.most_ms)}."
        for each in [*silent.values()][:_MOST_ENTRIES]
    )


def _that_go_on(context: RuleContext, change: Restriction, names: Sequence[str], topics: Sequence[str]) -> int:
    """The number of groups of other topics that have committed since."""
    rows = context.table("current_offsets")
    since = change.at_ms + context.limit(f"{KIND}.around")
    rows = kept(rows, pc.greater(rows["commit_timestamp_ms"], since))
    rows = kept(rows, pc.invert(equal(rows, "group_id", *names)), pc.invert(equal(rows, "topic", *topics)))
    return len(rows["group_id"].unique())


def _steps(context: RuleContext, change: Restriction, names: Sequence[str], is_silent: bool) -> tuple[NextStep, ...]:
    pattern = ("--resource-pattern-type", "prefixed") if change.is_prefix else ()
    resource = (*option(f"--{change.resource_type}", change.resource_name), *pattern)
    rights = [f"READ to the principals of {listed(names)}"] if names else []
    rights += ["WRITE to those of the producers"] if is_silent else []
    operations = [("Read", bool(names)), ("Write", is_silent)]
    return (
        context.ask_kafka(
            f"Allow {' and '.join(rights)} (User:NAME here), or undo the change, if they are to continue. No "
            "offset has to be moved",
            "kafka-acls",
            *("--add", "--allow-principal", "User:NAME"),
            *(word for operation, is_meant in operations if is_meant for word in ("--operation", operation)),
            *resource,
        ),
        context.ask_kafka("List the ACLs now", "kafka-acls", "--list", *resource),
        *((context.see("List what is waiting", Rows("lag", of_group(names[0]))),) if names else ()),
    )


RULE = incident_rule(
    kind=KIND,
    title="clients stopped when ACLs were changed",
    about="""\
Groups whose last commits for a topic are within `around` of a change of ACLs that takes rights away, while records
wait; and topics to which nothing has been written since, with groups that lost all members then. No record shows to
which client an entry applies. The metadata log is needed.""",
    tables=("current_offsets", "lag", "timeline", "log_ends"),
    levels={Level.HIGH: "always"},
    find=_find,
    listing=Rows("lag", ("lag>0",)),
    causes=(
        PossibleCause(
            _DENIED,
            "the changed ACLs deny access to the clients",
            "for: their time, and groups of other topics go on",
        ),
        PossibleCause(_OTHERWISE, "they stopped for another reason", "against: their time"),
    ),
    questions=(
        Question(
            _DENIED,
            _OTHERWISE,
            "Do the logs of the applications have TopicAuthorizationException or GroupAuthorizationException, or the "
            "authorizer log of the brokers (kafka.authorizer.logger) denied requests? It also has the principals",
            asked="last",
        ),
    ),
    thresholds=(
        Threshold(
            "around",
            "duration",
            "10s",
            "how long before or after a change a last commit or record may be",
            "consumers commit every five seconds (auto.commit.interval.ms), and brokers apply a change within a second",
        ),
    ),
    folds=(
        Folds("crash_loop"),
        Folds("endless_rebalances"),
        Folds("group_stands_still"),
        Folds("too_slow"),
        Folds("group_emptied"),
        Folds("members_unsettled"),
    ),
)

RULES = (RULE,)
