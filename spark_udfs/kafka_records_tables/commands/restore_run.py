"""Restores offsets deleted by `delete-offsets`, by committing them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources.fetched_offsets import FetchedOffsets, TopicPartition
from kafka_records_engine.sources.group_requests import DescribedTopic, GroupRequests, ListedGroup
from kafka_records_runtime.errors import plural
from kafka_records_tables.console.asking import confirmed
from kafka_records_tables.console.endings import DAMAGE, OK, CommandError
from kafka_records_tables.console.progress_bar import ByteProgress
from kafka_records_tables.console.standard_error import over_a_bar, say
from kafka_records_tables.deletion.carrying_out import UNKNOWN, answer_to, carry_out, print_plans, rest
from kafka_records_tables.deletion.deleted_file import Deleted, DeletedFile, deleted_of, timed_path
from kafka_records_tables.deletion.deletion_plan import (
    OTHER_KIND,
    OTHER_OFFSET,
    OTHER_TOPIC,
    UNKNOWN_TOPIC,
    GroupPlan,
    Item,
)
from kafka_records_tables.deletion.group_batches import AskedGroup, described, fetched

TO_BE_RESTORED: Final = "to be restored"
_NO_ID: Final = "A" * 22
_WHAT: Final = "Restoring offsets"
_THERE: Final = "there already"
_MEMBERS: Final = "UNKNOWN_MEMBER_ID"


class RestoreRun:
    """One run of `delete-offsets --restore`. Without `execute`, nothing is changed."""

    def __init__(
        self,
        requests: GroupRequests,
        path: str,
        *,
        execute: bool,
        yes: bool,
        overwrite: bool,
        output: Path | None = None,
    ) -> None:
        """`output` is the file for offsets that get overwritten."""
        self._requests = requests
        self._path = path
        self._execute = execute
        self._yes = yes
        self._overwrite = overwrite
        self._output = output
        self._topics: dict[str, DescribedTopic] = {}

    def run(self) -> int:
        """Restore the offsets and return the exit status: 0 if all offsets in the file are restored (or would be, in a
        dry run); 1 if some are not, or if the last line of the file is incomplete. Raises CommandError."""
        deleted, cut_line, passed_over = deleted_of(self._path)
        if passed_over:
            say(f"skipped: {plural(passed_over, 'row')} without an offset")
        if cut_line is not None:
            say(f"{self._path}: line {cut_line} is incomplete: its offset is not restored")
        try:
            plans = self._plans(dict(sorted(deleted.items())))
            if self._execute and any(plan.goes for plan in plans):
                self._carry_out(plans)
            else:
                print_plans(plans, TO_BE_RESTORED, _WHAT)
            self._say(plans)
        except LogSourceError as error:
            raise CommandError(str(error)) from None
        return DAMAGE if cut_line is not None or any(plan.has_failed for plan in plans) else OK

    # -- the plan ------------------------------------------------------------------------------------------------------

    def _plans(self, deleted: Mapping[str, Deleted]) -> list[GroupPlan]:
        listed = self._requests.groups()
        self._topics = described(self._requests, {topic for each in deleted.values() for topic, _ in each.offsets})
        with ByteProgress("asking groups", of_bytes=False) as progress, over_a_bar(progress.is_drawn):
            wanted = {group: AskedGroup(list(each.offsets)) for group, each in deleted.items()}
            found = fetched(self._requests, wanted, progress)
        return [self._plan(group, each, found[group], listed.get(group)) for group, each in deleted.items()]

    def _plan(self, group: str, deleted: Deleted, found: FetchedOffsets, listed: ListedGroup | None) -> GroupPlan:
        plan = GroupPlan(group, error=found.error, listed=listed)
        if listed is not None and listed.kind == "share":
            plan.error = OTHER_KIND
        for (topic, partition), committed in sorted(deleted.offsets.items()):
            item = Item(topic, partition, committed)
            if found.offsets.get(item.place) == committed:
                item.is_done, item.note = True, _THERE
            else:
                self._look_for_trouble(item, deleted.topic_ids.get(topic), found)
            if item.is_planned and plan.has_members:
                item.error = _MEMBERS
            plan.items.append(item)
        return plan

    def _look_for_trouble(self, item: Item, topic_id: str | None, found: FetchedOffsets) -> None:
        """Report the reason not to commit the item again, if there is one."""
        topic = self._topics.get(item.topic)
        item.overwrites = found.offsets.get(item.place)
        if item.place in found.errors:
            item.error = found.errors[item.place]
        elif topic is None or item.partition not in topic.partitions:
            item.error = UNKNOWN_TOPIC
        elif topic_id not in (topic.topic_id, None, _NO_ID):
            item.error = OTHER_TOPIC
        elif item.overwrites is not None and not self._overwrite:
            assert item.committed is not None
            item.error = OTHER_OFFSET
            item.more = f"offset {item.overwrites.offset} there, {item.committed.offset} in the file"

    # -- restoring -----------------------------------------------------------------------------------------------------

    def _carry_out(self, plans: list[GroupPlan]) -> None:
        going = [plan for plan in plans if plan.goes]
        overwritten = sum(item.is_planned and item.overwrites is not None for plan in going for item in plan.items)
        if not self._yes:
            print_plans(plans, TO_BE_RESTORED, _WHAT)
            over = f", {overwritten} of them over other offsets" if overwritten else ""
            if not confirmed(f"{_planned(plans)} will be committed again{over}."):
                raise CommandError("nothing was restored")
        path = (self._output or timed_path("overwritten")) if overwritten else None
        broken_off = "interrupted; run it again: it skips what is already restored"
        with nullcontext() if path is None else DeletedFile(path) as kept:
            carry_out("restoring", _WHAT, self._restored(plans, kept), len(plans), broken_off)
        if kept is not None and kept.has_offsets:
            say(f"{path} has the overwritten offsets: --restore {path} --overwrite restores them")
        elif kept is not None:
            kept.remove()

    def _restored(self, plans: Iterable[GroupPlan], kept: DeletedFile | None) -> Iterator[GroupPlan]:
        """Execute the plans, and yield each when it is done."""
        for plan in plans:
            if plan.goes:
                self._look_again(plan, note=_THERE)
            if plan.goes:
                if kept is not None:
                    kept.before([plan], self._topics, is_restoring=True)
                refused = self._commit(plan)
                if kept is not None and refused:
                    kept.kept(plan.group, refused)
            yield plan

    def _look_again(self, plan: GroupPlan, *, note: str) -> None:
        """Leave out offsets that others have committed since the plan was made. Offsets that are already as planned get
        the `note`."""
        found = self._requests.fetch({plan.group: list(plan.planned)})[plan.group]
        plan.error = found.error
        for item in plan.items if found.error is None else ():
            if not item.is_planned:
                continue
            now = found.offsets.get(item.place)
            if item.place in found.errors:
                item.error = found.errors[item.place]
            elif now == item.committed:
                item.is_done, item.note = True, note
            elif now is not None and now != item.overwrites:
                before = "nothing" if item.overwrites is None else f"offset {item.overwrites.offset}"
                item.error, item.more = OTHER_OFFSET, f"offset {now.offset} now, {before} before"
            else:
                item.overwrites = now

    def _commit(self, plan: GroupPlan) -> list[TopicPartition]:
        """Commit the items of a plan. Returns the partitions whose offsets would have been overwritten but still exist
        because the commit was refused."""

        def look() -> dict[TopicPartition, str | None] | None:
            self._look_again(plan, note="")
            return None if plan.goes else {}

        outcomes, _ = answer_to(plan.group, lambda: self._requests.commit(plan.group, plan.planned), look)
        refused = []
        for item in plan.items if plan.error is None else ():
            if item.is_planned:
                item.error = outcomes.get(item.place, UNKNOWN)
                item.is_done = item.error is None
                if item.overwrites is not None and item.error not in (None, UNKNOWN):
                    refused.append(item.place)
        return refused

    def _say(self, plans: Iterable[GroupPlan]) -> None:
        if not self._execute:
            say(f"dry run: {_planned(plans)} would be committed again{rest(plans)}; --execute commits")
        else:
            restored = sum(item.is_done and not item.note for plan in plans for item in plan.items)
            say(f"{plural(restored, 'offset')} restored{rest(plans)}")
        say(
            "note: offset, leader epoch and metadata are restored. The commit time is the time of restoring, and "
            "expiry counts from it; a deleted group comes back only with its offsets"
        )


def _planned(plans: Iterable[GroupPlan]) -> str:
    return plural(sum(len(plan.planned) for plan in plans if plan.goes), "offset")
