"""Groups with few rebalances in which one client repeatedly times out and comes back while others stay."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kafka_records_tables.report.case_columns import grouped, kept, numbers
from kafka_records_tables.report.facts.departures import Departures, departures
from kafka_records_tables.report.facts.group_facts import member_lives
from kafka_records_tables.report.rules.frozen_members import always_the_same

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from kafka_records_tables.report.rule_context import RuleContext


def enough_rebalances(context: RuleContext, members: Any) -> Any:
    """The number of rebalances from which there are too many for groups of given sizes."""
    least, per_member = context.limit("endless_rebalances.least"), context.limit("endless_rebalances.per_member")
    return np.maximum(least, np.maximum(members, 1) * per_member)


def dropped_since(context: RuleContext, rows: pa.Table) -> dict[str, int]:
    """The groups with such a client, each with the time of its first removal, given each group's last series of
    rebalances. Other groups have too few rebalances (a client that leaves and joins causes two), or so many that these
    are a finding anyway."""
    least = context.limit("endless_rebalances.drops")
    runs = grouped(rows, ["group_id"], [("at_timestamp_ms", "min"), ("member_count", "max"), ("log_offset", "count")])
    count, members = numbers(runs, "log_offset_count"), numbers(runs, "member_count_max")
    runs = kept(runs, (members > 1) & (count >= 2 * least) & (count < enough_rebalances(context, members)))
    since = dict(zip(runs["group_id"].to_pylist(), runs["at_timestamp_ms_min"].to_pylist(), strict=True))
    return _first_drops(context, since, least) if since else {}


def _first_drops(context: RuleContext, since: Mapping[str, int], least: int) -> dict[str, int]:
    """The groups in which one client left at least `least` times after the given time, apparently timed out each time,
    and came back, while other members stayed; or in which several clients did so in turns, at least `least` times in
    all. Each group has the time of the first removal."""
    found: dict[str, int] = {}
    for group, lives in member_lives(context, since).items():
        left = [each for each in lives if each.left_at is not None and (each.left_ms or 0) >= since[group]]
        clients = Counter((each.client_id, each.host) for each in left)
        client, count = next(iter(clients.most_common(1)), ((None, None), 0))
        in_turns = len(left) >= least and min(clients.values()) > 1
        if count < least and not in_turns:
            continue
        first = min(each.left_ms or 0 for each in left if in_turns or (each.client_id, each.host) == client)
        departed = departures(context, group, first)
        if in_turns:
            # A client that is back before the removal was restarted. A frozen client cannot join.
            frozen = [each for each in departed.every if (each.back_ms or 0) >= 0]
            departed = replace(departed, every=frozen)
            if len(frozen) >= least and departed.may_have_timed_out and _are_back(departed):
                found[group] = min(each.life.left_ms or 0 for each in frozen)
        elif departed.may_have_timed_out and always_the_same(departed) is not None:
            found[group] = first
    return found


def _are_back(departed: Departures) -> bool:
    """Whether most of the clients that left joined again while another client was a member."""
    times = sorted((each.life.left_ms or 0, each.back_ms) for each in departed.every)
    alone = [
        left_ms for left_ms, back_ms in times if any(left_ms < other <= left_ms + (back_ms or 0) for other, _ in times)
    ]
    return 2 * sum(back_ms is not None for _, back_ms in times) > len(times) and not alone
