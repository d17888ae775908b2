"""Topic names by id, as reported by a source."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka_records_runtime.kafka.uuids import ZERO_UUID, Uuid

if TYPE_CHECKING:
    from kafka_records_engine.sources import Source

_AGAIN_AFTER: Final = 5.0
"""The number of seconds after which an unknown id is looked up again, because topics are created while a log is
followed."""


class TopicNames:
    """The topic names of a source, which is asked for them when the first id occurs."""

    def __init__(self, look: Callable[[], Mapping[str, str]]) -> None:
        """`look` returns names by id, both as strings."""
        self._look = look
        self._names: dict[str, str] = {}
        self._looked: float | None = None

    def of(self, *values: Any) -> dict[str, str]:
        """The names of the topics whose ids are in `topic_id` fields of decoded values, if known."""
        ids = {str(found) for value in values for found in _ids(value)}
        if not ids:
            return {}
        is_due = self._looked is None or time.monotonic() - self._looked > _AGAIN_AFTER
        if is_due and not ids <= self._names.keys():
            self._looked = time.monotonic()
            self._names |= self._look()
        return {each: self._names[each] for each in sorted(ids) if each in self._names}


def names_of(source: Source) -> TopicNames:
    """The topic names of `source`; empty if it has no topic ids."""
    from kafka_records_tables.engines.logs_to_read import topics_known_to

    return TopicNames(lambda: topics_known_to(source).names)


def _ids(value: Any) -> Iterator[Uuid]:
    if isinstance(value, dict):
        for name, item in value.items():
            if isinstance(item, Uuid):
                if name == "topic_id" and item != ZERO_UUID:
                    yield item
            elif isinstance(item, dict | tuple):
                yield from _ids(item)
    elif isinstance(value, tuple):
        for item in value:
            if isinstance(item, dict):
                yield from _ids(item)
