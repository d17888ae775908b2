"""Brings back what `delete-offsets` has deleted, by committing it anew."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Final

from kafka_records_engine.log.discovery import LogSourceError
from kafka_records_engine.sources.group_requests import (
    AnswerLost,
    DescribedTopic,
    FetchedOffsets,
    GroupRequests,
    ListedGroup,
)
from kafka_records_runtime.errors import plural
from kafka_records_tables.runs.asking import confirmed
from kafka_records_tables.runs.deleted_file import Deleted, deleted_of
from kafka_records_tables.runs.deletion_lines import lines_of
from kafka_records_tables.runs.deletion_plan import OTHER_KIND, OTHER_OFFSET, OTHER_TOPIC, GroupPlan, Item
from kafka_records_tables.runs.endings import DAMAGE, OK, CommandError
from kafka_records_tables.runs.group_batches import described, fetched
from kafka_records_tables.runs.progress_bar import ByteProgress
from kafka_records_tables.runs.standard_error import over_a_bar, say

TO_BE_RESTORED: Final = "to be restored"
_NO_ID: Final = "A" * 22
_TRIES: Final = 5
_MEMBERS: Final = "UNKNOWN_MEMBER_ID"


class RestoreRun:
    """One run of `delete-offsets --restore`. Without `execute` nothing is changed."""

    def __init__(self, requests: GroupRequests, path: str, *, execute: bool, yes: bool, overwrite: bool) -> None:
        self._requests = requests
        self._path = path
        self._execute = execute
        self._yes = yes
        self._overwrite = overwrite

    def run(self) -> int:
        """Returns the exit status: 0 when all offsets of the file are there, or would be; 1 when some would not. Raises
        CommandError."""
        deleted = dict(sorted(deleted_of(self._path).items()))
        try:
            plans = self._plans(deleted)
            count = sum(len(plan.planned) for plan in plans)
            offsets = plural(count, "offset")
            if self._execute and count:
                if not self._yes and not confirmed(f"{offsets} will be committed again."):
                    raise CommandError("nothing was restored")
                for plan in plans:
                    self._restore(plan)
            _print(plans)
            self._say(plans, offsets)
        except LogSourceError as error:
            raise CommandError(str(error)) from None
        return DAMAGE if any(plan.has_failed for plan in plans) else OK

    def _plans(self, deleted: Mapping[str, Deleted]) -> list[GroupPlan]:
        listed = self._requests.groups()
        topics = described(self._requests, {topic for each in deleted.values() for topic, _ in each.offsets})
        with ByteProgress("asking groups", of_bytes=False) as progress, over_a_bar(progress.is_drawn):
            found = fetched(self._requests, {group: list(each.offsets) for group, each in deleted.items()}, progress)
        return [self._plan(group, each, found[group], listed.get(group), topics) for group, each in deleted.items()]

    def _plan(
        self,
        group: str,
        deleted: Deleted,
        found: FetchedOffsets,
        listed: ListedGroup | None,
        topics: Mapping[str, DescribedTopic],
    ) -> GroupPlan:
        plan = GroupPlan(group, error=found.error, listed=listed)
        if listed is not None and listed.kind == "share":
            plan.error = OTHER_KIND
        for (topic, partition), committed in sorted(deleted.offsets.items()):
            item = Item(topic, partition, committed)
            if found.offsets.get(item.place) == committed:
                item.is_done, item.note = True, "there already"
            else:
                self._look_for_trouble(item, deleted.topic_ids.get(topic), found, topics.get(topic))
            if item.is_planned and plan.has_members:
                item.error = _MEMBERS
            plan.items.append(item)
        return plan

    def _look_for_trouble(
        self, item: Item, topic_id: str | None, found: FetchedOffsets, topic: DescribedTopic | None
    ) -> None:
        """Say what speaks against committing the item again, if anything does."""
        now = found.offsets.get(item.place)
        assert item.committed is not None
        if item.place in found.errors:
            item.error = found.errors[item.place]
        elif topic is None or item.partition not in topic.partitions:
            item.error = "UNKNOWN_TOPIC_OR_PARTITION"
        elif topic_id not in (topic.topic_id, None, _NO_ID):
            item.error = OTHER_TOPIC
        elif now is not None and not self._overwrite:
            item.error, item.more = OTHER_OFFSET, f"offset {now.offset} there, {item.committed.offset} in the file"

    def _restore(self, plan: GroupPlan) -> None:
        if plan.error is not None or not plan.planned:
            return
        for _ in range(_TRIES):
            try:
                outcomes = self._requests.commit(plan.group, plan.planned)
                break
            except AnswerLost as lost:
                say(f"note: group {plan.group}: {lost}; it is committed once more, which changes nothing if it was")
        else:
            raise CommandError(f"group {plan.group}: no answer came to {_TRIES} requests")
        for item in plan.items:
            if item.is_planned:
                item.error = outcomes.get(item.place, "UNKNOWN_SERVER_ERROR")
                item.is_done = item.error is None

    def _say(self, plans: Iterable[GroupPlan], offsets: str) -> None:
        failed = sum(bool(item.error) for plan in plans for item in plan.items)
        rest = f", {plural(failed, 'offset')} left out" if failed else ""
        if not self._execute:
            say(f"dry run: {offsets} would be committed again{rest}; --execute commits")
        else:
            restored = sum(item.is_done and not item.note for plan in plans for item in plan.items)
            say(f"{plural(restored, 'offset')} restored{rest}")
        say(
            "note: offset, leader epoch and metadata come back. The time of the commit is that of restoring, and "
            "expiry counts from there; a group that is gone comes back with its offsets alone"
        )


def _print(plans: Iterable[GroupPlan]) -> None:
    for plan in plans:
        sys.stdout.writelines(f"{line}\n" for line in lines_of(plan, TO_BE_RESTORED, "Restoring offsets"))
    sys.stdout.flush()
