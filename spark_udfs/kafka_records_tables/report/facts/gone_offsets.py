"""Committed offsets that are no longer in their log, while members that read from there leave one after another."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GoneOffset:
    """A committed offset below the start of its log that does not move while members come and go."""

    group: str
    topic: str
    partition: int
    offset: int
    log_start: int
    committed_ms: int
    """The time at which the group first committed the offset."""
    failed_ms: int
    """The time at which the first of these members left."""
    attempts: int
    """The number of members that joined since then, had the partition, and left."""

    @property
    def place(self) -> str:
        """The partition of the group, as `place_of` names it."""
        return place_of(self.group, self.topic, self.partition)


def place_of(group: str, topic: str, partition: int) -> str:
    """A name for a partition of a group, by which findings about the same partition are folded."""
    return f"{topic}-{partition} of {group}"
