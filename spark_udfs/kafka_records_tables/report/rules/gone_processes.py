"""A process that has ended although its group still lists it as a member: a cause of unread partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.report.facts.departures import SESSION_MS, session_timeout
from kafka_records_tables.report.incident_rule import PossibleCause
from kafka_records_tables.report.report_parts import Evidence, NextStep
from kafka_records_tables.report.rule import Question, Verdict
from kafka_records_tables.report.rule_context import RuleContext, length, listed, moment
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME: Final = "process_gone"
CAUSE: Final = PossibleCause(
    NAME,
    "the process has ended, and the group keeps its member until the session timeout is over",
    "for: a static member does not leave when it is closed; certain if its epoch is -2; does not apply after the "
    "session timeout",
)
QUESTION: Final = Question(NAME, "application_hangs", "Is the process of this member running?")
_STATIC_LEAVE: Final = -2
"""The member epoch of a static member that has left temporarily
(`ConsumerGroupHeartbeatRequest.LEAVE_GROUP_STATIC_MEMBER_EPOCH`)."""


def weigh_gone(
    context: RuleContext, group: str, owners: Sequence[Mapping[str, Any]], names: Sequence[str], last_ms: int
) -> Verdict | None:
    """Judges whether the processes of members (rows of `members`, with their names) have ended, if they have committed
    nothing since `last_ms`. None if their session timeout has passed, because they still send heartbeats then."""
    if not owners or not last_ms:
        return None
    timeout = max(
        each["session_timeout_ms"] or session_timeout(context, group, {each["client_id"]}) or SESSION_MS
        for each in owners
    )
    left = [each for each in owners if each["member_epoch"] == _STATIC_LEAVE]
    static = [each["instance_id"] for each in owners if each["instance_id"]]
    if not left and context.at_ms - last_ms > timeout:
        return None
    is_one = len(owners) == 1
    who = listed(names)
    facts = [
        Evidence(
            f"the member epoch of {listed([each['instance_id']])} is {_STATIC_LEAVE}: its client was closed",
            OFFSETS,
            each["log_partition"],
            each["log_offset"],
            each["log_timestamp_ms"],
        )
        for each in left
    ]
    if static and not left:
        facts.append(
            Evidence(
                f"{who} {'is a static member' if is_one else 'are static members'} (group.instance.id "
                f"{listed(static)}), which {'does' if is_one else 'do'} not leave the group when "
                f"{'it is' if is_one else 'they are'} closed"
            )
        )
    remove = (
        f", or remove {'it' if is_one else 'them'} (Admin.removeMembersFromConsumerGroup with the group.instance.id), "
        f"so that the other members get the partitions"
        if static
        else ""
    )
    # Heartbeats may have gone on after the last commit. A static member that leaves writes a record.
    times = [each["log_timestamp_ms"] for each in left]
    known = max(times) if times and None not in times else None
    until = f"about {moment(known + timeout)}" if known is not None else f"{moment(last_ms + timeout)} or later"
    return Verdict(
        f"The process{'' if is_one else 'es'} of {who} ended (stopped, scaled down or killed) without leaving the "
        f"group, which keeps {'it' if is_one else 'them'}, with {'its' if is_one else 'their'} partitions, until the "
        f"session timeout ({length(timeout)}) is over, {until}.",
        evidence_for=tuple(facts),
        is_certain=bool(left) and len(left) == len(owners),
        steps=(
            NextStep(
                f"Find out whether the process{'' if is_one else 'es'} of {who} should run: if so, start "
                f"{'it' if is_one else 'them'}; if not, wait for the session timeout{remove}"
            ),
        ),
    )
