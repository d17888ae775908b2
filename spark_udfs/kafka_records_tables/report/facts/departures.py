"""Determines how members left: how long they had been inactive, and how soon their client was a member again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Set
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import kept
from kafka_records_tables.report.facts.cluster_settings import cluster_settings
from kafka_records_tables.report.facts.group_facts import MemberLife, Place, member_lives
from kafka_records_tables.report.facts.usual_values import UsualGap, usual_gap

if TYPE_CHECKING:
    from kafka_records_tables.report.rule_context import RuleContext

Client = tuple[str | None, str | None]
"""Client id and host."""
SESSION_MS: Final = 45_000
"""The default session timeout of clients and brokers since Kafka 3.0. The default of the lowest session timeout that
brokers allow consumer and streams groups is the same."""
LEAST_SESSION_MS: Final = 6000
"""The default of `group.min.session.timeout.ms`, for members of classic groups."""
_MOST_OVERLAP_MS: Final = 60_000
"""Two members that are in a group together for longer than this are two clients, even if their ids are equal. Few
session timeouts are longer."""


@dataclass(frozen=True, slots=True)
class Departure:
    """A member that left its group or was removed from it."""

    life: MemberLife
    silent_ms: int | None
    """The time between the member's last commit, or its joining, and its departure; None if it had no partition."""
    back: MemberLife | None
    """The next member with its client id and host; None if there is none, or if several members share them."""

    @property
    def client(self) -> Client:
        return self.life.client_id, self.life.host

    @property
    def back_ms(self) -> int | None:
        """The time from the member's removal until the next one joined; negative if that one joined before the
        removal."""
        if self.back is None or self.back.joined_ms is None or self.life.left_ms is None:
            return None
        return self.back.joined_ms - self.life.left_ms


@dataclass(frozen=True, slots=True)
class Departures:
    """The members that have left a group since a given time."""

    every: list[Departure]
    session_ms: int | None
    """The session timeout of the group's members; None if no record shows it."""
    usual: UsualGap | None
    """The usual intervals between commits of a partition; None if the log has too few."""
    stayed: int
    """The number of members that were in the group the whole time."""

    @property
    def clients(self) -> Counter[Client]:
        """The number of departures of each client."""
        return Counter(each.client for each in self.every)

    @property
    def silences(self) -> list[int]:
        """For each departed member, how long it had been inactive."""
        return [each.silent_ms for each in self.every if each.silent_ms is not None]

    @property
    def timed_out(self) -> bool:
        """Whether commits indicate a session timeout: most of the members had been inactive for that long, and missed
        their usual commits."""
        missed = 0 if self.usual is None else (3 if self.session_ms is None else 2) * self.usual.median_ms
        return missed > 0 and self._most(lambda silent: silent >= max(self.session_ms or 0, missed))

    @property
    def may_have_timed_out(self) -> bool:
        """Whether most of the members had been inactive for the session timeout, and for longer than usual."""
        session, usual = self.session_ms, self.usual
        return session is not None and self._most(
            lambda silent: silent >= session and (usual is None or silent > usual.median_ms)
        )

    @property
    def left_by_themselves(self) -> bool:
        """Whether most of the members cannot have timed out, because their last commits were too recent. In a classic
        group, a commit restarts the session timeout (`OffsetMetadataManager.validateOffsetCommit`); and in any group, a
        frozen process does not commit. If the timeout is unknown, the members must not have been inactive for longer
        than usual."""
        limit = self.session_ms
        if limit is not None:
            return self._most(lambda silent: silent < limit)
        usual = self.usual
        return usual is not None and self._most(lambda silent: silent <= usual.high_ms)

    def _most(self, holds: Callable[[int], bool]) -> bool:
        silences = self.silences
        return 2 * sum(map(holds, silences)) > len(silences)

    @property
    def were_replaced_before(self) -> bool:
        """Whether most of the clients rejoined before their old member was removed."""
        early = sum((each.back_ms or 0) < 0 for each in self.every)
        return 2 * early > len(self.every)


def departures(context: RuleContext, group: str, since_ms: int) -> Departures:
    """The members that left a group at or after a given time. Reads the group's individual commits."""
    lives = member_lives(context, [group]).get(group, [])
    left = [each for each in lives if each.left_at is not None and (each.left_ms or 0) >= since_ms]
    commits = _commit_times(context, group)
    places = {place for each in left for place in each.places}
    gaps = [later - one for place in places for (_, one), (_, later) in pairwise(commits.get(place, []))]
    shared = _shared_names(lives)
    return Departures(
        [Departure(each, _silence(each, commits), _next(each, lives, shared)) for each in left],
        session_timeout(context, group, {each.client_id for each in left}),
        usual_gap(accumulate(gaps, initial=0)),
        sum((each.joined_ms or 0) <= since_ms and each.left_at is None for each in lives),
    )


def _commit_times(context: RuleContext, group: str) -> dict[Place, list[tuple[int, int]]]:
    """The commits of each partition in log order: the offset of the record, and the time."""
    rows = context.look("offset_commits", (group,))
    rows = kept(rows, pc.invert(rows["is_tombstone"]), pc.is_valid(rows["log_timestamp_ms"]))
    columns = (rows[name].to_pylist() for name in ("topic", "partition", "log_offset", "log_timestamp_ms"))
    found: dict[Place, list[tuple[int, int]]] = {}
    for topic, partition, log_offset, at_ms in zip(*columns, strict=True):
        found.setdefault((topic, partition), []).append((log_offset, at_ms))
    for times in found.values():
        times.sort()
    return found


def _silence(life: MemberLife, commits: dict[Place, list[tuple[int, int]]]) -> int | None:
    """The time between a member's last commit and its departure. Only commits for partitions that it kept until the end
    count, because other members commit for partitions that it lost."""
    if life.left_ms is None or life.joined_ms is None or life.left_at is None:
        return None
    had = [each for each in life.places if life.lost_ms.get(each, life.left_ms) >= life.left_ms]
    if not had:
        return None
    last = life.joined_ms
    for place in had:
        of_life = [at_ms for at, at_ms in commits.get(place, ()) if life.joined_at < at < life.left_at]
        last = max([last, *of_life[-1:]])
    return life.left_ms - last


def _next(life: MemberLife, lives: list[MemberLife], shared: set[Client]) -> MemberLife | None:
    client = life.client_id, life.host
    if client[0] is None or client in shared:
        return None
    return next(
        (each for each in lives if each.joined_at > life.joined_at and (each.client_id, each.host) == client), None
    )


def _shared_names(lives: list[MemberLife]) -> set[Client]:
    """Clients with several members in the group at once, for longer than a dead member remains."""
    latest: dict[Client, MemberLife] = {}
    shared = set()
    for each in lives:
        client = each.client_id, each.host
        former = latest.get(client)
        if former is not None and each.joined_ms is not None:
            ended = former.left_ms if former.left_at is not None else None
            if ended is None or ended - each.joined_ms > _MOST_OVERLAP_MS:
                shared.add(client)
        latest[client] = each
    return shared


def session_timeout(context: RuleContext, group: str, clients: Set[str | None] = frozenset()) -> int | None:
    """The session timeout of the given clients or, if that is unknown, the shortest one of all members that the group
    has had. For consumer groups it is the setting of the group or of all brokers. None if no record shows it, because
    it may be set in a broker's properties file."""
    lives = member_lives(context, [group]).get(group, [])
    known = [(each.client_id, each.session_timeout_ms) for each in lives if each.session_timeout_ms is not None]
    if known:
        return min([timeout for client, timeout in known if client in clients] or [timeout for _, timeout in known])
    groups = context.rows_of_group("groups", group)
    kind = groups["group_kind"][0].as_py() if groups.num_rows else None
    if kind not in ("consumer", "streams"):
        return None
    return cluster_settings(context).group_limit(group, f"{kind}.session.timeout.ms")
