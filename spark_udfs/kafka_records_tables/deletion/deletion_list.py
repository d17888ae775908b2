"""Determines what `delete-offsets` should delete, from its arguments or from a file with rows of
`deletable_offsets`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from kafka_records_engine.sources.fetched_offsets import CommittedOffset, TopicPartition
from kafka_records_tables.console.endings import CommandError
from kafka_records_tables.coordinator.rules.deletion_rules import NOT_SUBSCRIBED
from kafka_records_tables.deletion.deletion_rows import ListedRow, listed_rows

STANDARD_INPUT: Final = "-"


class Expected(NamedTuple):
    """A list's entry for a partition. A field is None if the list lacks it; `offset` is also None if nothing is
    committed."""

    offset: int | None
    leader_epoch: int | None = None
    metadata: str | None = None
    commit_timestamp_ms: int | None = None

    def is_met_by(self, committed: CommittedOffset | None) -> bool:
        """Whether the coordinator has the same values as the list. Values that the list lacks are not compared."""
        if committed is None or self.offset is None:
            return committed is None and self.offset is None
        epochs = (committed.leader_epoch, None)
        return (
            self.offset == committed.offset
            and self.leader_epoch in epochs
            and self.metadata in (committed.metadata, None)
        )


@dataclass
class Wanted:
    """The offsets to delete for one group, or the whole group."""

    expected: dict[TopicPartition, Expected] = field(default_factory=dict)
    """The offsets in the list."""
    places: set[TopicPartition] = field(default_factory=set)
    """The partitions named in arguments."""
    topics: set[str] = field(default_factory=set)
    """The topics whose offsets are all deleted."""
    is_whole: bool = False
    """Whether the group is deleted with everything that belongs to it."""
    is_pending: bool = False
    """Whether, according to the list, an open transaction commits an offset of the group."""
    has_list: bool = False
    """Whether the list contains the coordinator's committed offsets."""


@dataclass
class DeletionList:
    """The offsets and groups to delete, by group."""

    wanted: dict[str, Wanted] = field(default_factory=dict)
    passed_over: int = 0
    """The number of rows skipped because the list marks them as not deletable."""
    groups: int = 0
    """The number of rows about whole groups that were ignored because no groups should be deleted."""
    left_out: Counter[str] = field(default_factory=Counter)
    """The number of deletable offsets that are not deleted, by reason in the list."""


def of_arguments(groups: Iterable[str], topics: Iterable[str], *, whole: bool) -> DeletionList:
    """The deletions requested by `--group` and `--topic T[:P,…]`. Raises ValueError for an invalid topic."""
    places, all_of = set[TopicPartition](), set[str]()
    for text in topics:
        name, colon, numbers = text.partition(":")
        partitions = numbers.split(",")
        if not name or (colon and not all(each.isascii() and each.isdigit() for each in partitions)):
            raise ValueError(f"{text!r} is not of the form TOPIC or TOPIC:PARTITION[,…], such as orders:0,1")
        if colon:
            places |= {(name, int(each)) for each in partitions}
        else:
            all_of.add(name)
    return DeletionList({group: Wanted(places=set(places), topics=set(all_of), is_whole=whole) for group in groups})


def of_file(name: str, *, whole: bool, also: Collection[str] = ()) -> DeletionList:
    """The rows of a file of deletable_offsets, JSON lines, CSV or Parquet; `-` is standard input. Raises CommandError.

    Selects the offsets of topics to which the group does not subscribe, offsets with a reason in `also`, and offsets
    without a reason. With `whole`, groups that are deletable according to the list are deleted completely.
    """
    shown = "standard input" if name == STANDARD_INPUT else name
    found = DeletionList()
    reasons: dict[tuple[str, TopicPartition], str] = {}
    try:
        content = sys.stdin.buffer.read() if name == STANDARD_INPUT else Path(name).read_bytes()
        for row in listed_rows(content):
            _add(row, found, reasons, whole=whole)
    except OSError as error:
        raise CommandError(f"{shown}: {error.strerror or error}") from None
    except ValueError as error:
        raise CommandError(
            f"{shown}: {error}: this is not a list of offsets: create one with `kafka-records table deletable_offsets "
            "… --format json`"
        ) from None
    for (group, place), reason in reasons.items():
        wanted = found.wanted[group]
        if reason not in (NOT_SUBSCRIBED, *also) and not wanted.is_whole:
            del wanted.expected[place]
            found.left_out[reason] += 1
            if not wanted.expected:
                del found.wanted[group]
    return found


def _add(row: ListedRow, found: DeletionList, reasons: dict[tuple[str, TopicPartition], str], *, whole: bool) -> None:
    if row.is_group and not whole:
        found.groups += 1
    elif not row.is_deletable:
        found.passed_over += not row.is_group
    else:
        wanted = found.wanted.setdefault(row.group_id, Wanted(has_list=True))
        if row.is_group:
            wanted.is_whole, wanted.is_pending = True, row.is_pending
            return
        wanted.expected[row.place] = Expected(row.offset, row.leader_epoch, row.metadata, row.commit_timestamp_ms)
        if row.reason is not None:
            reasons[row.group_id, row.place] = row.reason
