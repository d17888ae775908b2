"""The table `checks`: nothing broken in what coordinators wrote, and a conflict where they do not load what is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kafka_records_tables.tables.check_words import BROKEN, CONFLICT
from tools.judge.answers import Difference, Loaded, differing

ONE_EACH: Final = "__consumer_offsets=1,__share_group_state=1"
"""Histories have one partition of each topic."""


def checks(loaded: Loaded) -> Iterator[Difference]:
    """A coordinator has loaded the log, so that every problem in it would be a false alarm. Not loading is an answer
    too: there has to be the record that it stopped at."""
    rows = loaded.read("checks", partitions=ONE_EACH).to_pylist()
    broken = [(row["check"], row["log_offset"], row["detail"]) for row in rows if row["level"] == BROKEN]
    if is_refused(loaded):
        has_conflict = any(check == CONFLICT for check, *_ in broken)
        error = loaded.questions[0]["error"]
        yield from differing("checks", "a log that is not loaded", {"stops": error}, {"stops": has_conflict and error})
    else:
        yield from differing("checks", "a log that a coordinator has loaded", {"broken": []}, {"broken": broken})


def is_refused(loaded: Loaded) -> bool:
    """Whether Kafka's coordinator itself cannot load what its cleaner has left."""
    refused: bool = loaded.questions[0]["question"] == "load"
    return refused
