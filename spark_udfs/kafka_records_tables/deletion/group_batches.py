"""Sends requests about many groups in batches, because one request about a thousand groups is too large, and one per
group takes too long."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources.fetched_offsets import FetchedOffsets, TopicPartition
from kafka_records_engine.sources.group_requests import DescribedTopic, GroupRequests
from kafka_records_engine.sources.group_subscriptions import GroupSubscriptions
from kafka_records_engine.sources.time_limit import TimeLimit
from kafka_records_tables.console.endings import CommandError, UsageError
from kafka_records_tables.console.progress_bar import ByteProgress
from kafka_records_tables.console.waiting_notes import tell_waiting

GROUPS: Final = 100
_TOPICS: Final = 1000
_NOTHING: Final = FetchedOffsets({}, {})


def requests_to(bootstrap: str, config: str | None, limit: TimeLimit | None = None) -> GroupRequests:
    """Create an object that sends requests to these brokers. When it has to wait, notes on standard error say what for.
    Raises UsageError for an invalid address, and CommandError for an unusable configuration."""
    try:
        tell_waiting()
        return GroupRequests(bootstrap, config, timeout=limit)
    except LogSourceError as error:
        raise CommandError(str(error)) from None
    except ValueError as error:
        raise UsageError(f"argument --bootstrap: {error}") from None


class AskedGroup(NamedTuple):
    """The offsets to request for one group."""

    places: Collection[TopicPartition]
    """Partitions to request by name. Only for these does a coordinator report that an open transaction commits an
    offset."""
    is_all: bool = False
    """Whether to request all other offsets of the group too."""


def fetched(
    requests: GroupRequests, wanted: Mapping[str, AskedGroup], progress: ByteProgress | None = None
) -> dict[str, FetchedOffsets]:
    """The committed offsets of groups (`GroupRequests.fetch`)."""
    found: dict[str, FetchedOffsets] = {}
    for groups in batches(list(wanted)):
        named = {group: wanted[group].places for group in groups if wanted[group].places or not wanted[group].is_all}
        everything: dict[str, None] = dict.fromkeys(group for group in groups if wanted[group].is_all)
        by_name = requests.fetch(named) if named else {}
        of_all = requests.fetch(everything) if everything else {}
        for group in groups:
            found[group] = _both(of_all.get(group, _NOTHING), by_name.get(group, _NOTHING))
        if progress is not None:
            progress.moved(len(found), len(wanted))
    return found


def _both(one: FetchedOffsets, other: FetchedOffsets) -> FetchedOffsets:
    return FetchedOffsets({**one.offsets, **other.offsets}, {**one.errors, **other.errors}, one.error or other.error)


def subscriptions(requests: GroupRequests, kinds: Mapping[str, str]) -> dict[str, GroupSubscriptions]:
    """The subscriptions of many groups (`GroupRequests.subscriptions`)."""
    found: dict[str, GroupSubscriptions] = {}
    for part in batches(list(kinds)):
        found |= requests.subscriptions({group: kinds[group] for group in part})
    return found


def described(requests: GroupRequests, names: Collection[str]) -> dict[str, DescribedTopic]:
    """The topics among `names` that exist, for any number of names."""
    found: dict[str, DescribedTopic] = {}
    for part in batches(sorted(names), _TOPICS):
        found |= requests.topics(part)
    return found


def batches(names: Sequence[str], size: int = GROUPS) -> Iterator[Sequence[str]]:
    """The names, in batches of this size."""
    return (names[start : start + size] for start in range(0, len(names), size))
