"""The kinds of faults: what a proxy sends instead of a broker's answer."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any, Final, NamedTuple

from kafka_records_engine.sources._brokers import requests_sent
from kafka_records_engine.sources._brokers.requests_sent import FETCH, METADATA, Exchange, decoded, exchange
from kafka_records_runtime.wire import walker

_NAMES: Final = (
    requests_sent.API_VERSIONS,
    requests_sent.CONSUMER_GROUP_DESCRIBE,
    requests_sent.DESCRIBE_CLUSTER,
    requests_sent.DESCRIBE_CONFIGS,
    requests_sent.DESCRIBE_GROUPS,
    requests_sent.DESCRIBE_SHARE_GROUP_OFFSETS,
    requests_sent.DESCRIBE_TOPIC_PARTITIONS,
    FETCH,
    requests_sent.FIND_COORDINATOR,
    requests_sent.LIST_CONFIG_RESOURCES,
    requests_sent.LIST_GROUPS,
    requests_sent.LIST_OFFSETS,
    METADATA,
    requests_sent.OFFSET_FETCH,
    requests_sent.SHARE_GROUP_DESCRIBE,
    requests_sent.STREAMS_GROUP_DESCRIBE,
)
_HEAD: Final = 16
"""The number of bytes at the start of an answer that contain size, correlation id and the first fields. Cuts are
frequent there."""


@cache
def exchanges() -> Mapping[int, Exchange]:
    """The known requests by api key."""
    return {each.api.key: each for each in map(exchange, _NAMES)}


class Send(NamedTuple):
    """Send these bytes."""

    data: bytes


class Sleep(NamedTuple):
    """Wait."""

    seconds: float


class End(NamedTuple):
    """Close the connection, with a reset or in an orderly way."""

    is_reset: bool = False


class Hang(NamedTuple):
    """Send nothing more until the client disconnects."""


Step = Send | Sleep | End | Hang


@dataclass(frozen=True)
class Answer:
    """A broker's answer: `data` without the size field. `api` is None for an unknown request."""

    api: Exchange | None
    version: int
    data: bytes

    @property
    def framed(self) -> bytes:
        """The answer with its size."""
        return struct.pack(">i", len(self.data)) + self.data

    @property
    def name(self) -> str:
        """The name of the request."""
        return "" if self.api is None else self.api.api.name

    def fields(self) -> dict[str, Any]:
        """The fields of the answer."""
        assert self.api is not None
        return decoded(self.api, self.version, self.data)[1]

    def saying(self, fields: Mapping[str, Any]) -> Answer:
        """The same answer with other fields."""
        assert self.api is not None
        head = self.data[:4] + (b"\0" if self.api.api.response_header_version(self.version) else b"")
        return Answer(self.api, self.version, head + walker.encode(self.api.response, fields, self.version))


def _point(size: int, random: Random) -> int:
    """A random position at which something of this size ends early."""
    return random.randrange(min(size, _HEAD) if random.random() < 0.4 else size)


def _cut(answer: Answer, seconds: float, random: Random) -> list[Step]:
    return [Send(answer.framed[: _point(len(answer.framed), random)]), End(random.random() < 0.3)]


def _stalled(answer: Answer, seconds: float, random: Random) -> list[Step]:
    return [Send(answer.framed[: _point(len(answer.framed), random)]), Hang()]


def _late(answer: Answer, seconds: float, random: Random) -> list[Step]:
    return [Sleep(random.uniform(0, 1.5 * seconds)), Send(answer.framed)]


def _doubled(answer: Answer, seconds: float, random: Random) -> list[Step]:
    return [Send(answer.framed * 2)]


def _short(answer: Answer, seconds: float, random: Random) -> list[Step]:
    """An answer whose size field is right, but which contains less."""
    data = answer.data[: _point(len(answer.data), random)]
    return [Send(Answer(answer.api, answer.version, data).framed)]


def _fewer_records(answer: Answer, seconds: float, random: Random) -> list[Step]:
    """An answer to Fetch, which may end in the middle of a batch, with fewer records."""
    fields = answer.fields()
    for topic in fields["responses"]:
        for each in topic["partitions"]:
            if each["records"]:
                each["records"] = each["records"][: random.randrange(len(each["records"]))]
    return [Send(answer.saying(fields).framed)]


def _throttled(answer: Answer, seconds: float, random: Random) -> list[Step]:
    """The broker requests a pause. If the quota is exceeded, its response to Fetch is empty."""
    fields = answer.fields()
    fields["throttle_time_ms"] = random.randrange(1, round(1000 * seconds))
    if answer.name == FETCH and random.random() < 0.5:
        fields["responses"] = ()
    return [Send(answer.saying(fields).framed)]


def _dripping(answer: Answer, seconds: float, random: Random) -> list[Step]:
    steps: list[Step] = []
    data, pieces = answer.framed, random.randrange(2, 20)
    for number in range(pieces):
        steps += [
            Send(data[len(data) * number // pieces : len(data) * (number + 1) // pieces]),
            Sleep(random.uniform(0, 1.5 * seconds / pieces)),
        ]
    return steps


def _closed(answer: Answer, seconds: float, random: Random) -> list[Step]:
    return [End()]


def _reset(answer: Answer, seconds: float, random: Random) -> list[Step]:
    return [End(is_reset=True)]


BEFORE_CONNECTING: Final = "connection closed when it is opened"
BEFORE_ASKING: Final = "connection closed before the broker is asked"
OLD: Final = "answer to Metadata from before"
_OF_FETCH: Final = "Fetch that ends in a batch"
_THROTTLED: Final = "throttled answer"
ANSWERS: Final[Mapping[str, Callable[[Answer, float, Random], list[Step]]]] = {
    "connection closed in place of the answer": _closed,
    "connection reset in place of the answer": _reset,
    "answer cut, and the connection closed": _cut,
    "answer cut, and then silence": _stalled,
    "late answer": _late,
    "answer in pieces, slowly": _dripping,
    "doubled answer": _doubled,
    "short answer": _short,
    _OF_FETCH: _fewer_records,
    _THROTTLED: _throttled,
}
"""The functions that make what is sent instead of an answer. The second argument is the client's timeout for an answer
in seconds."""
KINDS: Final = (BEFORE_CONNECTING, BEFORE_ASKING, OLD, *ANSWERS)


def kinds_for(answer: Answer, *, has_old: bool) -> list[str]:
    """The kinds of faults that are possible for an answer. `has_old`: there is an earlier answer to the same
    request."""
    kinds = [kind for kind in ANSWERS if kind != _OF_FETCH or answer.name == FETCH]
    if answer.api is None:
        kinds.remove(_THROTTLED)
    return [*kinds, OLD] if has_old else kinds
