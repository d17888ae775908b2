"""Names of messages, as parameters of tests."""

from __future__ import annotations

from typing import Final

from kafka_records import registry
from tests.variants import mostly

_COORDINATED: Final = ("consumer_offsets", "share_group_state", "transaction_state")

_SAMPLE: Final = frozenset(sorted(registry.MESSAGES)[::4])


def _is_usual(name: str) -> bool:
    return name in _SAMPLE or registry.message_class(name).__module__.split(".")[1] in _COORDINATED


NAMES: Final = mostly(((name,) for name in sorted(registry.MESSAGES)), _is_usual)
"""The messages that are tested. `make test` uses every record of a coordinator, and one in four of the others, because
one template makes all of them; `make matrix` uses all."""
