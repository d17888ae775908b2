"""Names of messages, to be parameters."""

from __future__ import annotations

from typing import Final

from kafka_records import registry
from tests.variants import mostly

_COORDINATED: Final = ("consumer_offsets", "share_group_state", "transaction_state")

_SAMPLE: Final = frozenset(sorted(registry.MESSAGES)[::4])


def _is_usual(name: str) -> bool:
    return name in _SAMPLE or registry.message_class(name).__module__.split(".")[1] in _COORDINATED


NAMES: Final = mostly(((name,) for name in sorted(registry.MESSAGES)), _is_usual)
"""All messages. `make test` takes every record of a coordinator, and one in four of the others, as all are made by one
template; `make matrix` takes all."""
