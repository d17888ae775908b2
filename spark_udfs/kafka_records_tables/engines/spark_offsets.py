"""Offsets of a topic in Spark: in options, in the JSON of a stream's checkpoint, and as the range of a trigger.

The JSON is that of Spark's own Kafka source, `{"topic": {"0": 23, "1": 0}}`. In a checkpoint, the topic's id is next to
the offsets, under `id`, because a topic recreated under the same name has other records at the same offsets.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from kafka_records_engine.sources.abilities import HasEnd, HasStart, MayBeInTrouble, has
from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_tables.engines.log_ranges import LogRange

if TYPE_CHECKING:
    from kafka_records_engine.sources import LogPartition

NAME: Final = "kafka-records"
"""The name of the data source in `format`."""

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
FROM_START: Final = -2
FROM_END: Final = -1
"""The numbers that Spark writes into its JSON for the end and the start of a log."""

_ID: Final = "id"

Bound = str | Mapping[int, int]
"""EARLIEST, LATEST, or an offset per partition, each of which may be FROM_START or FROM_END."""


class BadOption(KafkaRecordsError, ValueError):
    """An option of the data source is unknown or has an invalid value; `detail` is a sentence."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    def __str__(self) -> str:
        return f"{NAME}: {self.detail}"


class DataLost(KafkaRecordsError, RuntimeError):
    """Records that should have been read no longer exist. `what` says which."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"{self.what}. To continue without them, set the option 'failOnDataLoss' to 'false'"


@dataclass(frozen=True, slots=True)
class NextOffsets:
    """The position up to which a topic has been read: the next offset of each partition."""

    topic: str
    topic_id: str | None
    offsets: Mapping[int, int]

    def to_json(self) -> dict[str, dict[str, Any]]:
        """The offsets in Spark's JSON."""
        offsets: dict[str, Any] = {str(partition): self.offsets[partition] for partition in sorted(self.offsets)}
        return {self.topic: offsets if self.topic_id is None else {**offsets, _ID: self.topic_id}}

    @classmethod
    def of_json(cls, kept: Mapping[str, Mapping[str, Any]], topic: str) -> Self:
        """Read the JSON of `to_json`. Raises ValueError if it is about another topic."""
        if topic not in kept:
            raise ValueError(
                f"the checkpoint belongs to {', '.join(kept) or 'no topic'}, not to topic {topic}: give each stream "
                f"its own checkpointLocation"
            )
        offsets = dict(kept[topic])
        topic_id = offsets.pop(_ID, None)
        return cls(topic, topic_id, {int(partition): int(offset) for partition, offset in offsets.items()})


def bound_of(text: str, topic: str | None) -> Bound:
    """The offsets in an option. Raises ValueError; its text continues a sentence that begins with the option name."""
    if text.strip().lower() in (EARLIEST, LATEST):
        return text.strip().lower()
    form = '"earliest", "latest" or offsets by partition as in {"topic": {"0": 23, "1": -2}}'
    try:
        given: Any = json.loads(text)
        topics = {
            name: {int(at): offset for at, offset in offsets.items() if at != _ID} for name, offsets in given.items()
        }
    except (ValueError, AttributeError):
        raise ValueError(f"is {text!r}: write {form}") from None
    if topic is None or set(topics) != {topic}:
        there = f"topic {topic}" if topic is not None else "one topic, which the option 'topic' sets"
        raise ValueError(f"names {', '.join(topics) or 'no topic'}, but the query reads {there}")
    offsets: dict[int, Any] = topics[topic]
    for partition, offset in offsets.items():
        if type(offset) is not int or offset < FROM_START or partition < 0:
            raise ValueError(f"has {offset!r} for partition {partition}: write {form}")
    return offsets


def between(logs: Sequence[LogPartition], starting: Bound, ending: Bound) -> list[LogPartition]:
    """The log partitions of a topic between some start and end offsets. Raises BadOption for offsets that do not
    exist."""
    starts, ends = (bound if isinstance(bound, Mapping) else {} for bound in (starting, ending))
    known = {log.partition for log in logs}
    check_partitions("startingOffsets", starts, known)
    check_partitions("endingOffsets", ends, known)
    return [_between(log, starts.get(log.partition, FROM_START), ends.get(log.partition, FROM_END)) for log in logs]


def _between(log: Any, start: int, end: int) -> LogPartition:
    if (start, end) == (FROM_START, FROM_END) or (has(log, MayBeInTrouble) and log.trouble):
        whole: LogPartition = log
        return whole
    # Sources of files find the start and end of a log only by reading it.
    first = log.start if has(log, HasStart) else None
    behind = log.end if has(log, HasEnd) else None
    if first is not None and FROM_START < start < first:
        raise BadOption(f"startingOffsets is {start} for {log.topic}-{log.partition}, whose log starts at {first}")
    if behind is not None:
        check_reach("startingOffsets", log.topic, log.partition, start, behind)
        check_reach("endingOffsets", log.topic, log.partition, end, behind)
    return LogRange(log, None if start == FROM_START else start, None if end == FROM_END else end, log.size)


def check_partitions(name: str, named: Iterable[int], known: Collection[int]) -> None:
    """Raise BadOption for a partition in the option `name` that the topic does not have."""
    for partition in sorted(set(named) - set(known)):
        raise BadOption(
            f"{name} has partition {partition}, but the topic has the partitions {', '.join(map(str, sorted(known)))}"
        )


def check_reach(name: str, topic: str, partition: int, offset: int, log_end: int) -> None:
    """Raise BadOption for an offset in the option `name` that the log has not reached yet."""
    if offset > log_end:
        raise BadOption(f"{name} is {offset} for {topic}-{partition}, whose log ends at {log_end}")


def limited(start: Mapping[int, int], end: Mapping[int, int], most: int) -> dict[int, int]:
    """The end offsets of a trigger that reads about `most` offsets in total. As in Spark's own Kafka source, each
    partition gets a share in proportion to its waiting offsets, but at least one offset."""
    waiting = {partition: max(end[partition] - start.get(partition, 0), 0) for partition in end}
    total = sum(waiting.values())
    if total <= most:
        return dict(end)
    taken = {}
    for partition, count in waiting.items():
        share = most * count / total
        part = math.ceil(share) if share < 1 else math.floor(share)
        taken[partition] = start.get(partition, 0) + min(part, count) if count else end[partition]
    return taken
