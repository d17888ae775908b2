"""What many groups have, asked in batches: a request about a thousand groups is large, one for each takes long."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from kafka_records_engine.log.discovery import LogSourceError
from kafka_records_engine.sources.group_requests import DescribedTopic, FetchedOffsets, GroupRequests, TopicPartition
from kafka_records_tables.runs.endings import CommandError, UsageError
from kafka_records_tables.runs.progress_bar import ByteProgress
from kafka_records_tables.runs.waiting_notes import tell_waiting

GROUPS: Final = 100
_TOPICS: Final = 1000


def requests_to(bootstrap: str, config: str | None) -> GroupRequests:
    """Asks these brokers, and prints what is waited for. Raises UsageError for an address that is none, CommandError
    for a configuration that cannot be used."""
    try:
        tell_waiting()
        return GroupRequests(bootstrap, config)
    except LogSourceError as error:
        raise CommandError(str(error)) from None
    except ValueError as error:
        raise UsageError(f"argument --bootstrap: {error}") from None


def fetched(
    requests: GroupRequests, wanted: Mapping[str, Collection[TopicPartition] | None], progress: ByteProgress
) -> dict[str, FetchedOffsets]:
    """What all groups have committed (`GroupRequests.fetch`)."""
    found: dict[str, FetchedOffsets] = {}
    for groups in batches(list(wanted)):
        found |= requests.fetch({group: wanted[group] for group in groups})
        progress.moved(len(found), len(wanted))
    return found


def described(requests: GroupRequests, names: Collection[str]) -> dict[str, DescribedTopic]:
    """Those of many topics that are there."""
    found: dict[str, DescribedTopic] = {}
    for part in batches(sorted(names), _TOPICS):
        found |= requests.topics(part)
    return found


def batches(names: Sequence[str], size: int = GROUPS) -> Iterator[Sequence[str]]:
    """The names, so many at a time."""
    return (names[start : start + size] for start in range(0, len(names), size))
