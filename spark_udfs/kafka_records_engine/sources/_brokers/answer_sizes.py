"""The maximum size of the answer to a request. A larger answer is not read, because it would fill the memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kafka_records_engine.sources._brokers.requests_sent import (
    API_VERSIONS,
    FETCH,
    FIND_COORDINATOR,
    LIST_OFFSETS,
    METADATA,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
)

_ENVELOPE: Final = 1 << 20
"""The number of bytes for what any answer may contain besides its parts: headers, addresses of brokers, fields of later
releases."""
_PARTITION: Final = 64
"""The number of bytes for each partition in a ListOffsets request: 22 in the newest version, plus tags."""
_COORDINATOR: Final = 2048
"""The number of bytes for each group in a FindCoordinator request: its id, a host, an error message."""
_TOPIC: Final = 16 << 20
"""The number of bytes for each topic in a Metadata request: over a hundred thousand partitions with three replicas
each."""
_UNBOUNDED: Final = 256 << 20
"""The number of bytes for answers about a whole cluster: two million partitions, a million groups."""


def largest_answer(name: str, fields: Mapping[str, Any]) -> int:
    """The maximum number of bytes in the answer to the request `name` with these fields."""
    return _ENVELOPE + min(_SIZES.get(name, _any)(fields), _UNBOUNDED)


def _any(fields: Mapping[str, Any]) -> int:
    return _UNBOUNDED


def _nothing_more(fields: Mapping[str, Any]) -> int:
    return 0


def _fetch(fields: Mapping[str, Any]) -> int:
    return int(fields["max_bytes"])


def _list_offsets(fields: Mapping[str, Any]) -> int:
    return sum(
        _PARTITION + 4 * len(topic["name"]) + _PARTITION * len(topic["partitions"]) for topic in fields["topics"]
    )


def _metadata(fields: Mapping[str, Any]) -> int:
    return _UNBOUNDED if fields["topics"] is None else _TOPIC * len(fields["topics"])


def _coordinators(fields: Mapping[str, Any]) -> int:
    return sum(_COORDINATOR + 4 * len(key) for key in fields["coordinator_keys"])


_SIZES: Final[Mapping[str, Callable[[Mapping[str, Any]], int]]] = {
    API_VERSIONS: _nothing_more,
    SASL_HANDSHAKE: _nothing_more,
    SASL_AUTHENTICATE: _nothing_more,
    FETCH: _fetch,
    LIST_OFFSETS: _list_offsets,
    METADATA: _metadata,
    FIND_COORDINATOR: _coordinators,
}
