"""Committed offsets that no longer exist in their log, while members that read from there leave one after another."""

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
    """The number of members that have since joined, had the partition, and left."""

    @property
    def place(self) -> str:
        """The partition of the group, as `place_of` names it."""
        return place_of(self.group, self.topic, self.partition)


def place_of(group: str, topic: str, partition: int) -> str:
    """A name for a group's partition, used to fold findings about the same partition."""
    return f"{topic}-{partition} of {group}"
