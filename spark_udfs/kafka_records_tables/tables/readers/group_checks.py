"""Reads `group_checks`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns.framing_in_columns import prefix_column
from kafka_records_engine.findings import INCOMPLETE_HISTORY, Finding
from kafka_records_tables.coordinator.groups.group_model import SHARE, SHARE_STATE
from kafka_records_tables.coordinator.groups.loading_groups import LoadingGroups
from kafka_records_tables.coordinator.offsets.commit_lots import Lots
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.records.decoded_records import are_of_types, numbers_of, schemas
from kafka_records_tables.coordinator.records.named_records import events
from kafka_records_tables.tables.checking.assignment_checks import PICKED, assignment_problems
from kafka_records_tables.tables.checking.assignment_gaps import Topics
from kafka_records_tables.tables.checking.check_rows import CheckReader, CheckRow
from kafka_records_tables.tables.checking.record_checks import STOPS, RecordChecks
from kafka_records_tables.tables.group_checks import TABLE
from kafka_records_tables.tables.group_rows.named_topics import names_in_commits, names_in_groups
from kafka_records_tables.tables.words.check_words import (
    BROKEN,
    CONFLICT,
    DELETING,
    INITIALIZED,
    INITIALIZING,
    NOT_LOADED,
    SHARE_GROUP,
    UNCHECKED,
    UNREADABLE,
)

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.groups.group_model import Groups
    from kafka_records_tables.coordinator.groups.replay_bugs import ReplayBug
    from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords
    from kafka_records_tables.coordinator.records.named_records import Event


_LISTS: Final = {
    INITIALIZING: "initializing_topics",
    INITIALIZED: "initialized_topics",
    DELETING: "deleting_topics",
}
"""The list in a record of type 15 that shows each fact."""


class Reader(CheckReader):
    def __init__(self, context: Context) -> None:
        super().__init__(context, TABLE.schema)
        known = schemas(context, "consumer_offsets")
        self._context = context
        self._commit_types = numbers_of(known, COMMITS)
        self._records = RecordChecks(context, known, owner="group_id", stops=STOPS)
        self._loading, self._names = LoadingGroups(), dict(context.log.topics.names)
        self._conflicts: list[CheckRow] = []
        self._asked_release: str | None = context.question.options["loads_in"]
        self._hit: set[str] = set()
        """The groups with records at which the given release stops because of a bug."""
        self._lots = Lots()

    def checked(self, batch: pa.RecordBatch) -> Iterator[CheckRow]:
        for lot in self._lots.take(batch):
            yield from self._of_lot(lot)

    def left(self) -> Iterator[CheckRow]:
        for lot in self._lots.rest():
            yield from self._of_lot(lot)
        yield from self._records.rest()
        if _may_lack_records(self._context):
            yield CheckRow(fact=UNCHECKED)
            return
        yield from self._conflicts
        yield from _of_assignments(self._loading, self._names, self._context)
        yield from _of_share_groups(self._loading)

    def _of_lot(self, batch: pa.RecordBatch) -> Iterator[CheckRow]:
        types = self._commit_types
        commits, others = (self._records.decoded(some) for some in _commits_and_others(batch, types))
        for found in (commits, others):
            if found is not None:
                yield from self._records.look_at(found)
        if commits is not None:
            self._names |= names_in_commits(commits, types[1:])
        of_groups = [] if others is None else list(events(others, PICKED))
        for event in _with_commits(commits, types, of_groups, self._loading.groups):
            why = self._loading.take(event)
            if why is not None:
                self._conflicts.append(_conflict(event, why))
            elif self._loading.bug is not None and self._asked_release is not None:
                self._look_for_bug(event, self._loading.bug, self._asked_release)

    def _look_for_bug(self, event: Event, bug: ReplayBug, release: str) -> None:
        if event.group_id not in self._hit and bug.is_in(release):
            self._hit.add(event.group_id)
            why = f"{bug.why}: {release} does not load the log ({bug.issue}); load it with {bug.advice} or later"
            self._conflicts.append(_row(NOT_LOADED, event, why))


def _commits_and_others(batch: pa.RecordBatch, types: tuple[int, ...]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The records of a batch, split into commits and others, because most rows are commits and the columns of other
    records have no value for them."""
    is_record = batch.column("control").is_null().to_numpy(zero_copy_only=False)
    is_commit = are_of_types(prefix_column(batch.column("key"))[0], types)
    return batch.filter(pa.array(is_record & is_commit)), batch.filter(pa.array(is_record & ~is_commit))


def _with_commits(
    found: DecodedRecords | None, types: tuple[int, ...], of_groups: list[Event], known: Groups
) -> Iterator[Event]:
    """The events, each preceded by the earlier commits that may create a simple group: the first commit of each group,
    and the first one after each of its events."""
    if found is None:
        yield from of_groups
        return
    groups = found.member(types, "key", "group")
    rows = np.flatnonzero(groups.is_valid().to_numpy(zero_copy_only=False) & ~found.is_tombstone)
    encoded = groups.take(rows).dictionary_encode()
    names = encoded.dictionary.to_pylist()
    numbers = {name: number for number, name in enumerate(names)}
    about = [(numbers[event.group_id], event.offset) for event in of_groups if event.group_id in numbers]
    of_events, at_events = np.array(about, np.int64).reshape(-1, 2).T
    group = np.concatenate([encoded.indices.to_numpy(), of_events])
    at = np.concatenate([found.offsets[rows], at_events])
    is_event = np.arange(len(group)) >= len(rows)
    order = np.lexsort((at, group))
    group, at, is_event = group[order], at[order], is_event[order]
    is_first = np.append(True, (group[1:] != group[:-1]) | is_event[:-1])[: len(group)] & ~is_event
    in_log = np.argsort(at[is_first], kind="stable")
    commits = zip(at[is_first][in_log].tolist(), group[is_first][in_log].tolist(), strict=True)
    commit = next(commits, None)
    for event in of_groups:
        while commit is not None and commit[0] < event.offset:
            known.commit(names[commit[1]], commit[0])
            commit = next(commits, None)
        yield event
    while commit is not None:
        known.commit(names[commit[1]], commit[0])
        commit = next(commits, None)


def _conflict(event: Event, why: str) -> CheckRow:
    return _row(CONFLICT, event, f"{why}; {STOPS}")


def _row(check: str, event: Event, why: str) -> CheckRow:
    member_id = event.member_id if len(event.key) > 1 else None
    detail = f"{'tombstone' if event.value is None else 'value'} of {event.record}: {why}"
    return CheckRow(check, BROKEN, detail, event.offset, event.timestamp_ms, event.group_id, member_id=member_id)


def _may_lack_records(context: Context) -> bool:
    """Whether records that existed at the requested time are gone. If so, groups are not checked."""
    if context.question.as_of_ms is None or context.log.whole_from is None:
        return False
    what = "the log cleaner may have removed records that existed at that moment"
    consequence = "groups and their assignments are not checked, because they are as of the end of the log"
    context.report(Finding("note", INCOMPLETE_HISTORY, what, consequence, context.topic, context.partition))
    return True


def _of_assignments(loading: LoadingGroups, names: dict[str, str], context: Context) -> Iterator[CheckRow]:
    groups = loading.groups.by_id
    known = names | names_in_groups(groups.values())
    of_source = context.log.topics
    # A recreated topic has the name of the deleted one, but only its own id has partitions to assign.
    now = {of: name for of, name in of_source.names.items() if of not in of_source.deletions.topic_ids}
    topics = Topics(known, now, of_source.partition_counts)
    for group_id, group in groups.items():
        if loading.is_sound(group_id):
            yield from assignment_problems(group_id, group, topics)


def _of_share_groups(loading: LoadingGroups) -> Iterator[CheckRow]:
    """The facts: share groups, and the lists in their records of type 15."""
    for group_id, group in loading.groups.by_id.items():
        if group.kind != SHARE:
            continue
        fact = SHARE_GROUP if loading.is_sound(group_id) else UNREADABLE
        yield CheckRow(fact=fact, group_id=group_id)
        event = group.record(SHARE_STATE)
        value = event and event.value
        for listed, name in _LISTS.items():
            for topic in getattr(value, name) if value else ():
                for partition in topic.get("partitions", (None,)):
                    yield CheckRow(
                        log_offset=event.offset if event else None,
                        log_timestamp_ms=event.timestamp_ms if event else None,
                        group_id=group_id,
                        topic=topic["topic_name"],
                        topic_id=topic["topic_id"],
                        partition=partition,
                        fact=listed,
                    )
