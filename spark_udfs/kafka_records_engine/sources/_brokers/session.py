"""State shared by all readers of one source: the time limit, and how each broker behaves."""

from __future__ import annotations

import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Hashable
from math import inf
from typing import Final

from kafka_records_engine.sources.time_limit import TimeLimit

_log: Final = logging.getLogger(__name__)

_KEPT: Final = 16
"""The maximum number of sessions of other processes to remember."""


class Session:
    """The state that all readers in a process share. Another process has its own copy, shared by its readers."""

    def __init__(self, limit: TimeLimit | None = None) -> None:
        self.limit = limit
        self._token = secrets.token_hex(16)
        self.has_answered = False
        """Whether any broker has ever answered."""
        self._lost: dict[str, str] = {}
        self._silent: dict[str, float] = {}
        self._pauses: dict[str, float] = {}
        self._timed_out: dict[Hashable, float] = {}
        self._places: dict[int, dict[Hashable, float]] = {}

    @property
    def end(self) -> float:
        """The deadline for waiting for brokers (`time.monotonic`)."""
        return inf if self.limit is None else self.limit.end

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return self.limit is not None and self.limit.is_over

    # -- brokers and partitions that do not answer ---------------------------------------------------------------------

    def note_lost(self, address: str, why: str) -> None:
        """Record that a connection could not be made or was lost."""
        self._lost[address] = why

    def last_failure(self, address: str) -> str | None:
        """Why the last request to a broker was not answered; None if it was answered or there was none."""
        return self._lost.get(address)

    def note_silence(self, address: str) -> None:
        """Record that a request was not answered in time."""
        self._silent[address] = time.monotonic()

    def note_answer(self, address: str) -> None:
        """Record that a request was answered."""
        self._silent.pop(address, None)
        self._lost.pop(address, None)

    def is_silent(self, address: str, seconds: float) -> bool:
        """Whether the broker left a request unanswered in the last `seconds`, and has not answered one since."""
        return time.monotonic() - self._silent.get(address, -inf) < seconds

    def note_timeout(self, place: Hashable) -> None:
        """Record that a leader or partition timed out: there was no progress for as long as the configuration
        allows."""
        self._timed_out[place] = time.monotonic()

    def has_timed_out(self, place: Hashable, seconds: float) -> bool:
        """Whether the leader or partition timed out in the last `seconds`."""
        return time.monotonic() - self._timed_out.get(place, -inf) < seconds

    def note_place(self, leader: int, place: Hashable, seconds: float) -> int:
        """Record that a partition of the leader timed out. Returns how many of the leader's partitions timed out in the
        last `seconds`."""
        now = time.monotonic()
        places = {each: then for each, then in self._places.get(leader, {}).items() if now - then < seconds}
        self._places[leader] = {**places, place: now}
        return len(self._places[leader])

    # -- quotas --------------------------------------------------------------------------------------------------------

    def throttle(self, address: str, milliseconds: int) -> None:
        """Record that the broker requests a pause (KIP-219), because this client has exceeded a quota."""
        if address not in self._pauses:
            _log.warning(
                "%s: the broker throttles this client because of a quota: it asks for a pause of %g s",
                address,
                milliseconds / 1000,
            )
        self._pauses[address] = time.monotonic() + milliseconds / 1000

    def pause(self, address: str) -> float:
        """How many seconds remain of the pause that the broker requested."""
        return max(self._pauses.get(address, 0.0) - time.monotonic(), 0.0)

    # -- other processes -----------------------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[object, ...]:
        return _session, (self._token, self.limit)


_sessions: OrderedDict[str, Session] = OrderedDict()


def _session(token: str, limit: TimeLimit | None) -> Session:
    if token not in _sessions:
        _sessions[token] = Session(limit)
        _sessions[token]._token = token
        if len(_sessions) > _KEPT:
            _sessions.popitem(last=False)
    return _sessions[token]
