"""Deletes offsets and groups: a plan of what goes, and with `execute` the deletion, each group after a last look."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kafka_records_engine.log.discovery import LogSourceError
from kafka_records_engine.sources.group_requests import (
    AnswerLost,
    DescribedTopic,
    FetchedOffsets,
    GroupRequests,
    TopicPartition,
)
from kafka_records_runtime.errors import plural
from kafka_records_tables.runs.asking import can_ask, confirmed
from kafka_records_tables.runs.deleted_file import DeletedFile
from kafka_records_tables.runs.deletion_lines import lines_of
from kafka_records_tables.runs.deletion_list import DeletionList, Wanted
from kafka_records_tables.runs.deletion_plan import GroupPlan, leave_out_changed, planned
from kafka_records_tables.runs.endings import DAMAGE, OK, CommandError
from kafka_records_tables.runs.group_batches import batches, described, fetched
from kafka_records_tables.runs.progress_bar import ByteProgress
from kafka_records_tables.runs.standard_error import over_a_bar, say

TO_BE_DELETED: Final = "to be deleted"
_LEFT: Final = "left alone"
_TRIES: Final = 5


class DeletionRun:
    """One run of `delete-offsets`. Without `execute` nothing is changed and nothing written."""

    def __init__(
        self, requests: GroupRequests, deletions: DeletionList, *, execute: bool, yes: bool, output: Path | None
    ) -> None:
        self._requests = requests
        self._deletions = deletions
        self._execute = execute
        self._yes = yes
        self._output = output
        self._topics: dict[str, DescribedTopic] = {}

    def run(self) -> int:
        """Returns the exit status: 0 when all that was asked for goes, 1 when some does not. Raises CommandError."""
        try:
            plans = self._plans()
            self._say_what_is_passed_over()
            if not self._execute:
                _print(plans, TO_BE_DELETED)
                say(f"dry run: {_summed_up(plans)} would be deleted{_rest(plans)}; --execute deletes")
                self._say_what_it_means(plans)
            elif not any(plan.goes for plan in plans):
                _print(plans, _LEFT)
                say(f"nothing is deleted{_rest(plans)}")
            else:
                self._carry_out(plans)
        except LogSourceError as error:
            raise CommandError(str(error)) from None
        return DAMAGE if any(plan.has_failed for plan in plans) else OK

    # -- the plan ------------------------------------------------------------------------------------------------------

    def _plans(self) -> list[GroupPlan]:
        wanted = dict(sorted(self._deletions.wanted.items()))
        listed = self._requests.groups()
        there = {group: _asked(each) for group, each in wanted.items() if group in listed}
        with ByteProgress("asking groups", of_bytes=False) as progress, over_a_bar(progress.is_drawn):
            found = fetched(self._requests, there, progress)
        names = {topic for each in found.values() for topic, _ in each.offsets}
        self._topics = described(self._requests, names)
        nothing = FetchedOffsets({}, {})
        return [planned(group, each, found.get(group, nothing), listed, self._topics) for group, each in wanted.items()]

    def _say_what_is_passed_over(self) -> None:
        if self._deletions.passed_over:
            say(f"passed over: {plural(self._deletions.passed_over, 'row')} that the list calls not deletable")
        if self._deletions.groups:
            rows = plural(self._deletions.groups, "row")
            say(f"passed over: {rows} of groups; --whole-groups deletes those that the list calls deletable")

    def _say_what_it_means(self, plans: Iterable[GroupPlan]) -> None:
        going = [plan for plan in plans if plan.goes]
        members = sum(plan.has_members for plan in going)
        without = sum(not plan.has_members and bool(plan.planned) for plan in going)
        if without:
            say(
                f"note: {plural(without, 'group')} of these without members now; where one comes back, it starts where "
                "its auto.offset.reset says"
            )
        if members:
            say(
                f"note: {plural(members, 'group')} of these with members; brokers refuse offsets of topics they "
                "subscribe to, and --restore can bring offsets back only while a group has no members"
            )

    # -- the deletion --------------------------------------------------------------------------------------------------

    def _carry_out(self, plans: list[GroupPlan]) -> None:
        what = _summed_up(plans)
        if not self._yes:
            if can_ask():
                _print(plans, TO_BE_DELETED)
            self._say_what_it_means(plans)
            if not confirmed(f"{what} will be deleted."):
                raise CommandError("nothing was deleted")
        path = self._output or Path(f"deleted-offsets-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.jsonl")
        finished: list[GroupPlan] = []
        with DeletedFile(path) as kept:
            try:
                with ByteProgress("deleting", of_bytes=False) as progress, over_a_bar(progress.is_drawn):
                    for some in self._deleted(plans, kept):
                        finished += some
                        progress.moved(len(finished), len(plans))
            except BaseException:
                say(f"broken off; {path} has what was deleted until now, or was about to be")
                raise
            finally:
                # Not before: a bar may stand on the terminal.
                _print(finished, _LEFT)
        say(f"{_summed_up(plans, is_done=True)} deleted{_rest(plans)}")
        say(f"{path} has what they were: --restore {path} brings them back")

    def _deleted(self, plans: list[GroupPlan], kept: DeletedFile) -> Iterator[list[GroupPlan]]:
        """Carries the plans out, some at a time, and gives these."""
        by_group = {plan.group: plan for plan in plans}
        for groups in batches(list(by_group)):
            some = [by_group[group] for group in groups]
            self._look_again([plan for plan in some if plan.goes])
            going = [plan for plan in some if plan.goes]
            kept.before(going, self._topics)
            for plan in going:
                self._delete(plan, kept)
            yield some

    def _look_again(self, plans: Collection[GroupPlan]) -> None:
        if not plans:
            return
        wanted = {plan.group: None if plan.is_whole else list(plan.planned) for plan in plans}
        found = self._requests.fetch(wanted)
        for plan in plans:
            leave_out_changed(plan, found[plan.group])

    def _delete(self, plan: GroupPlan, kept: DeletedFile) -> None:
        before = plan.planned
        for _ in range(_TRIES):
            try:
                if plan.is_whole:
                    plan.error = self._requests.delete_group(plan.group)
                    plan.is_done = plan.error is None
                    outcomes: dict[TopicPartition, str | None] = dict.fromkeys(plan.planned, plan.error)
                else:
                    outcomes = self._requests.delete_offsets(plan.group, list(plan.planned))
                break
            except AnswerLost as lost:
                say(f"note: group {plan.group}: {lost}; looking what has become of it")
                if self._is_gone(plan):
                    outcomes = dict.fromkeys(plan.planned)
                    break
        else:
            raise CommandError(f"group {plan.group}: no answer came to {_TRIES} requests")
        for item in plan.items:
            if item.is_planned:
                item.error = outcomes.get(item.place, "UNKNOWN_SERVER_ERROR") if not plan.is_whole else None
                item.is_done = outcomes.get(item.place) is None and item.error is None
        deleted = {item.place for item in plan.items if item.is_done}
        if plan.error is not None or before.keys() - deleted:
            kept.kept(plan, sorted(before.keys() - deleted))

    def _is_gone(self, plan: GroupPlan) -> bool:
        """Whether a request was carried out although no answer came. What has changed otherwise is left out."""
        if plan.is_whole:
            plan.is_done = plan.group not in self._requests.groups()
            return plan.is_done
        found = self._requests.fetch({plan.group: list(plan.planned)})[plan.group]
        if not found.offsets and not found.errors and found.error is None:
            return True
        leave_out_changed(plan, found)
        return not plan.planned


def _asked(wanted: Wanted) -> Collection[TopicPartition] | None:
    """The partitions to ask for; None for all of the group."""
    return None if wanted.is_whole or wanted.topics else wanted.places | set(wanted.expected)


def _print(plans: Iterable[GroupPlan], to_be: str) -> None:
    for plan in plans:
        what = "Deletion of the group" if plan.is_whole else "Deletion of offsets"
        sys.stdout.writelines(f"{line}\n" for line in lines_of(plan, to_be, what))
    sys.stdout.flush()


def _summed_up(plans: Iterable[GroupPlan], *, is_done: bool = False) -> str:
    """How many offsets of how many groups go, or went."""
    if is_done:
        some = [plan for plan in plans if plan.is_done or any(item.is_done for item in plan.items)]
        offsets = sum(item.is_done for plan in some for item in plan.items)
    else:
        some = [plan for plan in plans if plan.goes]
        offsets = sum(len(plan.planned) for plan in some)
    whole = sum(plan.is_whole for plan in some)
    groups = f"{plural(len(some), 'group')}{f', {whole} as a whole' if whole else ''}"
    return f"{plural(offsets, 'offset')} of {groups}"


def _rest(plans: Iterable[GroupPlan]) -> str:
    """What does not go, behind what does."""
    failed = sum(
        sum(item.partition is not None for item in plan.items) if plan.error else sum(bool(i.error) for i in plan.items)
        for plan in plans
    )
    groups = sum(plan.error is not None for plan in plans)
    told = [f"{plural(failed, 'offset')} left out"] * bool(failed) + [f"{plural(groups, 'group')} refused"] * bool(
        groups
    )
    return "".join(f", {each}" for each in told)
