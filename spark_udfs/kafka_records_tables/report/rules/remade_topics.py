"""Topics that were deleted and recreated under the same name, with the groups that have continued with the new topic
and those that have not."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import (
    equal,
    grouped,
    kept,
    level_by,
    looked_up,
    numbers,
    ranked,
    true_where,
    with_columns,
)
from kafka_records_tables.report.command_lines import condition_of, option
from kafka_records_tables.report.facts.carried_positions import CarriedPosition, carried_positions
from kafka_records_tables.report.facts.recreated_topics import (
    CAUSES,
    QUESTIONS,
    continued_groups,
    deletion_ms,
    groups_at_deletion,
    recreation_of,
    topics_of_lost_offsets,
)
from kafka_records_tables.report.facts.skipped_beginnings import PossibleSkip, possible_skips
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, ReportRule, Threshold
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    RuleContext,
    counted,
    listed,
    moment,
    partitions_shown,
    shown,
)
from kafka_records_tables.report.rules.group_spans import life_words, with_life
from kafka_records_tables.report.rules.offset_falls import LATELY, PAST, with_causes
from kafka_records_tables.topics import OFFSETS

_KIND: Final = "topic_recreated"
_RECREATED: Final = "topic_recreated"
"""The kind in `regressions` for a group that has continued, and the problem in `lag` for one that has not."""
_MOST_WAITING: Final = 3
"""The maximum number of groups that get a sentence and a reset command each."""

_WENT_ON: Final = (
    "group_id",
    "topic",
    "partition",
    "from_offset",
    "to_offset",
    "kind",
    "commit_timestamp_ms",
    "confidence",
    "log_partition",
    "log_offset",
)
_PLACE: Final = ["group_id", "topic"]
_LOST: Final = ("group_id", "topic", "log_partition", "log_offset", "made_ms")
_WAITS: Final = ("group_id", "topic", "partition", "offset", "commit_timestamp_ms", "members", "last_ms", "works")


def _cases(context: RuleContext) -> pa.Table:

    places = _places(context)
    cases = grouped(
        places,
        ["topic"],
        [*((name, "list") for name in places.column_names if name != "topic"), ("made_ms", "max"), ("works", "any")],
    )
    made = numbers(cases, "made_ms_max", -(2**62))
    lately = made >= context.at_ms - context.limit(f"{_KIND}.lately")
    of_the_past = made < context.at_ms - context.limit(f"{_KIND}.of_the_past")
    waits = true_where(cases["works_any"].is_valid())
    levels = level_by(
        (true_where(cases["works_any"]), Level.HIGH),
        (lately, Level.MODERATE),
        (waits | ~of_the_past, Level.LOW),
        default=Level.NOTE,
    )
    # If there is no commit for the new topic, use a time far in the future, so that no commit counts as later.
    since = [min((at for at in times if at is not None), default=2**62) for times in cases["made_ms_list"].to_pylist()]
    return ranked(with_columns(cases, since_ms=pa.array(since, pa.int64())), levels, made)


def _places(context: RuleContext) -> pa.Table:
    """One row for each partition that a group started over (`made_ms`) or has an old offset for (`works` is not null),
    and for each group with neither (`is_gone`)."""

    falls, lag = context.once(with_causes), context.table("lag")
    went = kept(falls, equal(falls, "cause", _RECREATED)).select(_WENT_ON)
    fell = {(each["group_id"], each["topic"]) for each in went.select(["group_id", "topic"]).to_pylist()}
    more = [each for each in continued_groups(context) if (each["group_id"], each["topic"]) not in fell]
    was_deleted = [*[False] * went.num_rows, *[True] * len(more)]
    went = pa.concat_tables([went, pa.Table.from_pylist(more, went.schema)])
    went = went.append_column("was_deleted", pa.array(was_deleted, pa.bool_()))
    went = went.append_column("made_ms", pc.coalesce(went["commit_timestamp_ms"], pa.scalar(-(2**62), pa.int64())))
    waits = kept(lag, equal(lag, "problem", _RECREATED))
    waits = with_life(context, waits, context.limit(f"{_KIND}.alive_within")).select(_WAITS)
    waits = waits.rename_columns(["from_offset" if name == "offset" else name for name in waits.column_names])
    there = {(each["group_id"], each["topic"]) for part in (went, waits) for each in part.select(_PLACE).to_pylist()}
    gone = [each for each in _gone(context, went) if (each["group_id"], each["topic"]) not in there]
    lost = pa.Table.from_pylist(
        gone, pa.schema([*(went.schema.field(name) for name in _LOST), ("is_gone", pa.bool_())])
    )
    members = pc.fill_null(looked_up(lost["group_id"], context.table("groups"), "group_id", "member_count"), 0)
    lost = lost.append_column("members", members)
    return pa.concat_tables([went, waits, lost], promote_options="permissive")


def _gone(context: RuleContext, went: pa.Table) -> list[dict[str, Any]]:
    """A row for each group that had members when it lost its offsets with a topic, and has no commits for the new
    topic."""

    current, rows = context.table("current_offsets"), []
    back_ms = _first_commits(went.to_pylist())
    for topic in topics_of_lost_offsets(context):
        back = set(kept(current, equal(current, "topic", topic))["group_id"].to_pylist())
        for each in groups_at_deletion(context, topic, deletion_ms(context, topic, back_ms.get(topic, {}))):
            row = {name: each[name] for name in ("group_id", "log_partition", "log_offset")} | {"topic": topic}
            rows.append(row | {"made_ms": each["at_timestamp_ms"], "is_gone": True})
        rows = [each for each in rows if each["topic"] != topic or each["group_id"] not in back]
    return rows


def _first_commits(went: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """By topic and group, the time of the first commit for the new topic."""

    found: dict[str, dict[str, int]] = {}
    for each in went:
        at_ms, of_topic = each["commit_timestamp_ms"], found.setdefault(each["topic"], {})
        if at_ms is not None:
            of_topic[each["group_id"]] = min(at_ms, of_topic.get(each["group_id"], at_ms))
    return found


def _tell(context: RuleContext, case: dict[str, Any]) -> ReportFinding:

    topic = case["topic"]
    columns = {name.removesuffix("_list"): values for name, values in case.items() if name.endswith("_list")}
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    gone = [each for each in rows if each["is_gone"]]
    went = [each for each in rows if each["works"] is None and not each["is_gone"]]
    waits = [each for each in rows if each["works"] is not None]
    going, waiting, ended = (tuple(dict.fromkeys(each["group_id"] for each in of)) for of in (went, waits, gone))
    since, note = _since(context, topic, went, waits)
    parts = [f"The topic {shown(topic)} was deleted and recreated under its name."]
    if going:
        verb = "has" if len(going) == 1 else "have"
        parts.append(
            f"{counted(len(going), 'group')} {verb} continued with the new one ({listed(going)}). Any records "
            f"of the old one that {'it' if len(going) == 1 else 'they'} had not consumed are deleted."
        )
    skips = sorted(possible_skips(context, topic, went), key=lambda each: -each.records)
    parts += [_skipped(each) for each in skips[:_MOST_WAITING]]
    carried = carried_positions(context, topic, went)
    parts += [_carried(topic, each) for each in carried[:_MOST_WAITING]]
    if waiting:
        parts.append(f"{_waiting(context, waits)} {_WAITING}")
    if ended:
        parts.append(_lost(context, gone))
    own = condition_of("topic", topic)
    fell = [each for each in went if not each["was_deleted"]]
    are_told = all(each["kind"] == _RECREATED for each in fell)
    tables: tuple[tuple[list[dict[str, Any]], str, tuple[str, ...]], ...] = (
        (fell, "regressions", (f"kind={_RECREATED}",) * are_told),
        ([*gone, *(each for each in went if each["was_deleted"])], "disappearances", ("cause=topic_deleted",)),
        (waits, "lag", (f"problem={_RECREATED}",)),
    )
    seen = {name: Rows(name, (own, *only)) for part, name, only in tables if part}
    is_sure = all(each["confidence"] in ("high", None) for each in went)
    return ReportFinding(
        kind=_KIND,
        level=Level(case["level"]),
        title=RULE.title,
        problem=" ".join(parts),
        group_ids=tuple(dict.fromkeys((*waiting, *ended, *going))),
        topics=(topic,),
        partitions=tuple(sorted({each["partition"] for each in went + waits})),
        since_timestamp_ms=since,
        since_note=note,
        confidence="high" if is_sure else "medium",
        why_not_sure=None if is_sure else "records that would show the id of the older topic are missing",
        evidence=tuple(_evidence(topic, each) for each in (gone + went + waits)[:MOST_EVIDENCE]),
        evidence_count=len(rows),
        rows=tuple(seen.values()),
        scale={
            "records_possibly_skipped": sum(each.records for each in skips),
            **({"records_lost": sum(each.records for each in carried)} if carried else {}),
        },
        next=(
            *(_read_carried(context, topic, each) for each in carried[:_MOST_WAITING]),
            *(_read_again(context, topic, each) for each in skips[:_MOST_WAITING]),
            *_resets(context, topic, waits + gone),
            NextStep("Ask who recreated the topic, and whether the unconsumed records must be restored from elsewhere"),
            *(context.see(_SEE[name], each) for name, each in seen.items()),
            context.ask_kafka(
                "Ask the brokers for the topic as it is now", "kafka-topics", "--describe", "--topic", topic
            ),
        ),
        measured={
            "groups_gone_on": len(going),
            "groups_waiting": len(waiting),
            "groups_ended": len(ended),
            "partitions": len({each["partition"] for each in went + waits}),
            **({} if since is None else {"age_ms": max(context.at_ms - since, 0)}),
        },
        thresholds=context.limits_of(*(f"{_KIND}.{each.name}" for each in RULE.thresholds)),
    )


def _since(
    context: RuleContext, topic: str, went: list[dict[str, Any]], waits: list[dict[str, Any]]
) -> tuple[int | None, str | None]:
    """When the topic was deleted, according to the metadata log, or by when it had been recreated, according to
    commits."""

    found = recreation_of(context, topic)
    if found is not None and found.since_ms is not None and found.created["at_timestamp_ms"] is not None:
        return found.since_ms, f"it was deleted then, and created again at {moment(found.created['at_timestamp_ms'])}"
    new = [each["commit_timestamp_ms"] for each in went if each["commit_timestamp_ms"] is not None]
    back_ms = _first_commits([{**each, "topic": topic} for each in went]).get(topic, {})
    deleted_ms = deletion_ms(context, topic, back_ms)
    if new and deleted_ms is not None:
        return (
            deleted_ms,
            f"offsets were deleted with it then; the first commit for the new topic was at {moment(min(new))}",
        )
    if new:
        return min(new), "the first commit for the new topic, which was created earlier"
    old = [each["commit_timestamp_ms"] for each in waits if each["commit_timestamp_ms"] is not None]
    return None, f"after {moment(max(old))}, the last commit for the older topic" if old else None


def _waiting(context: RuleContext, waits: list[dict[str, Any]]) -> str:
    """Sentences: which groups have offsets of the older topic, and whether they have consumers."""

    groups = {each["group_id"]: each for each in waits}
    if len(groups) > _MOST_WAITING:
        works = sum(each["works"] for each in groups.values())
        return (
            f"{counted(len(groups), 'group')} still have the offsets of the older topic ({listed(list(groups), 8)});"
            f" {works} of them have members or have committed lately."
        )
    return " ".join(
        f"The group {shown(group)} {life_words(context, group, each['members'], each['last_ms'])}; its offsets are"
        " those of the older topic."
        for group, each in groups.items()
    )


def _lost(context: RuleContext, gone: list[dict[str, Any]]) -> str:
    """Sentences: which groups lost their offsets with the older topic and have not continued, and whether they have
    members."""

    if len(gone) > _MOST_WAITING:
        return (
            f"{counted(len(gone), 'group')} had members then, lost their offsets with the topic, and have committed "
            f"nothing for the new one ({listed([each['group_id'] for each in gone], 8)}); "
            f"{sum(each['members'] == 0 for each in gone)} of them have no members now."
        )
    return " ".join(
        f"The group {shown(each['group_id'])} had members then, lost its offsets with the topic, and has committed "
        f"nothing for the new one; it {life_words(context, each['group_id'], each['members'], None)}."
        for each in gone
    )


def _carried(topic: str, each: CarriedPosition) -> str:
    return (
        f"{shown(each.group_id)} committed {each.offset} for the new {topic}-{each.partition} at "
        f"{moment(each.committed_ms)}, before the record that precedes this offset was written "
        f"({moment(each.written_ms)}): so this was its position in the old topic. It read on from there, and "
        f"never read {counted(each.records, 'record')} of the new one that the log still has."
    )


def _read_carried(context: RuleContext, topic: str, each: CarriedPosition) -> NextStep:
    return context.ask_kafka(
        f"Stop the consumers of {shown(each.group_id)}, and have them read {topic}-{each.partition} from its start; "
        f"they read again what came after offset {each.offset} (--execute in place of --dry-run does it)",
        "kafka-consumer-groups",
        "--reset-offsets",
        *option("--group", each.group_id),
        *option("--topic", f"{topic}:{each.partition}"),
        "--to-earliest",
        "--dry-run",
    )


def _skipped(skip: PossibleSkip) -> str:
    """Sentences: what a group may have skipped, and what that depends on."""

    came = (
        f"The group {shown(skip.group_id)} had no members when the new one was created. It came back at"
        if skip.was_away
        else f"Members of the group {shown(skip.group_id)} were assigned the partitions of the new one at"
    )
    return (
        f"{came} {moment(skip.assigned_ms)}, and the first commits are after the {counted(skip.records, 'record')} of "
        f"{partitions_shown(skip.partitions)} that had been written by then: if its auto.offset.reset is latest, it "
        "skipped them."
    )


def _read_again(context: RuleContext, topic: str, skip: PossibleSkip) -> NextStep:

    has = "the log still has them" if skip.left == skip.records else f"the log still has {skip.left} of them"
    return context.ask_kafka(
        f"If auto.offset.reset of {shown(skip.group_id)} is latest, have it read the skipped records: {has}. "
        "Stop its consumers, and let it begin at the start of the new topic (it also repeats what it has read "
        "since); --execute in place of --dry-run does it",
        *_to_earliest(skip.group_id, topic),
    )


def _to_earliest(group: str, topic: str) -> tuple[str, ...]:
    named = (*option("--group", group), *option("--topic", topic))
    return ("kafka-consumer-groups", "--reset-offsets", *named, "--to-earliest", "--dry-run")


def _resets(context: RuleContext, topic: str, waits: list[dict[str, Any]]) -> list[NextStep]:

    groups = {each["group_id"]: each for each in waits}
    more = len(groups) - _MOST_WAITING
    also = f" (the same for {counted(more, 'other group')})" if more > 0 else ""
    return [
        context.ask_kafka(
            f"{'Stop the consumers' if each['members'] else 'Before the consumers'} of "
            f"{shown(group)}{', and have them begin' if each['members'] else ' start again, have them begin'} "
            f"with the new topic; --execute in place of --dry-run does it{also}",
            *_to_earliest(group, topic),
        )
        for group, each in list(groups.items())[:_MOST_WAITING]
    ]


def _evidence(topic: str, row: dict[str, Any]) -> Evidence:

    if row["is_gone"]:
        shows = f"{shown(row['group_id'])} lost its offsets with {topic}"
        return Evidence(shows, OFFSETS, row["log_partition"], row["log_offset"], row["made_ms"])
    place, at = f"{topic}-{row['partition']}", row["commit_timestamp_ms"]
    if row["works"] is not None:
        return Evidence(
            f"{place}: {shown(row['group_id'])} has {row['from_offset']} of the older topic",
            topic,
            row["partition"],
            row["from_offset"],
            at,
        )
    shows = f"{place}: {shown(row['group_id'])} went from {row['from_offset']} to {row['to_offset']} of the new topic"
    return Evidence(shows, OFFSETS, row["log_partition"], row["log_offset"], at)


_WAITING: Final = (
    "A consumer that starts from such offsets skips records of the new topic, or starts over as auto.offset.reset "
    "says; unconsumed records of the older topic are deleted."
)
_SEE: Final = {
    "regressions": "List which groups started over, with the records that show it",
    "disappearances": "List the offsets that were deleted with the older topic",
    "lag": "List the offsets of the older topic",
}

RULE = ReportRule(
    kind=_KIND,
    title="a topic was deleted and recreated under its name",
    about="""\
Groups of a recreated topic, with one finding for all. A group may have skipped records if it began at the ends of the
new partitions. The metadata log decides between the causes.""",
    tables=("regressions", "lag", "groups", "current_offsets", "timeline"),
    levels={
        Level.HIGH: "a group that is in use (`alive_within`) has offsets of the older topic",
        Level.MODERATE: ("all have continued or lost their offsets, the last within `lately`"),
        Level.LOW: "it is older, or groups with older offsets are not in use",
        Level.NOTE: "older than `of_the_past`, and all have continued",
    },
    cases=_cases,
    tell=_tell,
    listing=lambda _: Rows("regressions", (f"kind={_RECREATED}",)),
    folds=(
        Folds("offsets_rewound", ("group_id", "topic"), if_later=True),
        Folds("offsets_began_again", ("group_id", "topic"), if_later=True),
        Folds("never_commits", ("group_id", "topic"), if_later=True),
        Folds("endless_rebalances", ("group_id", "topic")),
    ),
    causes=CAUSES,
    questions=QUESTIONS,
    thresholds=(
        LATELY,
        PAST,
        Threshold(
            "alive_within",
            "duration",
            "24h",
            "a group without members that has committed this recently may come back",
            "jobs that assign themselves partitions run at least once a day",
        ),
    ),
)

RULES = (RULE,)
