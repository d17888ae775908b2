"""Decides how long to retry, and how long to pause between attempts."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Hashable
from math import inf
from typing import TYPE_CHECKING, Final

from kafka_records_engine.sources._brokers.connection import NOTE_AFTER
from kafka_records_engine.sources._brokers.session import Session
from kafka_records_engine.sources.waiting import pause

if TYPE_CHECKING:
    from kafka_records_engine.sources.client_config import ClientConfig

_log: Final = logging.getLogger(__name__)

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
_REMEMBERED: Final = 3
"""How many full waits long a timeout of a leader's partition is remembered."""
_SHORT_PART: Final = 60
_SHORTEST_WAIT: Final = 0.1


def short_wait(patience: float) -> float:
    """The time limit, in seconds, for a broker or partition that has timed out before: 1 s by default."""
    return max(patience / _SHORT_PART, min(patience, _SHORTEST_WAIT))


class GivenUp(Exception):
    """A wait timed out, or the time limit passed. The text says what the program was waiting for."""


class Patience:
    """Pauses before each retry, longer each time, until there has been no progress for `default.api.timeout.ms`.

    If one partition of a leader times out because the leader does not answer, the leader's other partitions get only a
    short wait. If a partition times out for another reason, only the next wait for this partition is short. After a
    second such partition, the waits for all partitions of the leader are short.
    """

    def __init__(
        self,
        config: ClientConfig,
        session: Session | None = None,
        name: str = "",
        *,
        leader: int | None = None,
        target: Hashable = None,
    ) -> None:
        """`name` is used in notes. `target` is what the wait is for: a partition, or something else that several waits
        may share. Without `leader` and `target`, timeouts are not remembered."""
        self.leader = leader
        """The broker that has to answer: the current leader of the partition. None if there is none."""
        self._name = f"{name}: " if name else ""
        self._session = session or Session()
        self.target = target
        """The partition or other object that is being waited for."""
        self._whole = config.patience_ms / 1000
        self._since: float | None = None
        self.moved()

    @property
    def has_timed_out(self) -> bool:
        """Whether the target has timed out recently, for any reason."""
        return self.target is not None and self._session.has_timed_out(self.target, self._whole)

    @property
    def limit(self) -> float:
        """The longest wait without progress, in seconds."""
        is_leader_silent = self.leader is not None and self._session.has_timed_out(self.leader, self._whole)
        return short_wait(self._whole) if is_leader_silent or self.has_timed_out else self._whole

    @property
    def until(self) -> float:
        """The latest time (`time.monotonic`) to wait for the answer to the next request: at least a short wait from
        now."""
        now = time.monotonic()
        since = now if self._since is None else self._since
        return min(max(since + self.limit, now + short_wait(self._whole)), self._session.end)

    def moved(self) -> None:
        """Record that something was read, so the next wait starts from zero again."""
        self._since = None
        self._is_noted = False
        self._pause = _FIRST_PAUSE

    def begin(self) -> None:
        """Start measuring the wait, unless that has already begun. Raises GivenUp if the time limit has passed."""
        if self._session.is_over:
            raise GivenUp(f"{self._session.limit} has passed")
        if self._since is None:
            self._since = time.monotonic()

    def wait(self, why: str, *, broker_failed: bool = False, at_most: float = inf) -> None:
        """Pause before the next attempt. Raises GivenUp, as `check` does."""
        self.check(why, broker_failed=broker_failed, at_most=at_most)
        self.pause(why, at_most)

    def check(self, why: str, *, broker_failed: bool = False, at_most: float = inf) -> None:
        """Raise GivenUp if the wait has lasted for `limit` or `at_most` seconds, or if the time limit has passed.

        `broker_failed` means that `why` affects all partitions of the leader: the leader does not answer, the
        connection is lost, or it only requests pauses.
        """
        if self._session.is_over:
            raise GivenUp(f"{why}, and {self._session.limit} has passed")
        self.begin()
        limit = min(self.limit, at_most)
        if self._waited < limit:
            return
        if limit == self.limit:
            self.note_timeout(broker_failed=broker_failed)
        raise GivenUp(f"{why}, for {limit:g} s")

    def note_timeout(self, *, broker_failed: bool = False) -> None:
        """Remember that the target timed out. If the leader is the reason, or another of its partitions timed out
        before, remember that the leader timed out."""
        if self.target is not None:
            self._session.note_timeout(self.target)
        if self.leader is None:
            return
        places = self._session.note_place(self.leader, self.target, _REMEMBERED * self._whole)
        if broker_failed or places > 1:
            self._session.note_timeout(self.leader)

    def pause(self, why: str, at_most: float = inf) -> None:
        """Sleep, longer at each call. After some seconds, log once what the program is waiting for."""
        limit = min(self.limit, at_most)
        if self._waited > NOTE_AFTER and not self._is_noted:
            self._is_noted = True
            _log.warning("%s%s; trying again for up to %g s", self._name, why, limit)
        # Randomize the pause, so that readers do not all reconnect to a restarted broker at once.
        left = min(limit - self._waited, self._session.end - time.monotonic())
        pause(max(min(self._pause * random.uniform(0.8, 1.2), left), 0.0))
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    @property
    def _waited(self) -> float:
        return 0.0 if self._since is None else time.monotonic() - self._since
