"""Deletes offsets and groups: makes a plan and, with `execute`, executes it after a last check of each group."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
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
from kafka_records_tables.deletion.deleted_file import DeletedFile, timed_path
from kafka_records_tables.deletion.deletion_list import DeletionList, Wanted
from kafka_records_tables.deletion.deletion_plan import NO_GROUP, GroupPlan, leave_out_changed, planned
from kafka_records_tables.deletion.group_batches import AskedGroup, batches, described, fetched, subscriptions
from kafka_records_tables.deletion.subscribed_topics import NO_TOPICS, SubscribedTopics, subscribed_topics

TO_BE_DELETED: Final = "to be deleted"
_WHAT: Final = "Deletion of offsets"
_DELETED: Final = "NONE"
"""The name of Kafka's code for no error."""


class DeletionRun:
    """One run of `delete-offsets`. Without `execute`, nothing is changed or written."""

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
        """Execute the deletion, and return the exit status: 0 if everything requested is deleted, otherwise 1. Raises
        CommandError."""
        self._say_what_is_passed_over()
        if not self._deletions.wanted:
            say("the list has no rows that are to be deleted: no broker was asked")
            return OK
        try:
            plans = self._plans()
            if not self._execute:
                print_plans(plans, TO_BE_DELETED, _WHAT)
                say(f"dry run: {_summed_up(plans)} would be deleted{rest(plans)}; --execute deletes")
                self._say_what_it_means(plans)
            elif not any(plan.goes for plan in plans):
                print_plans(plans, TO_BE_DELETED, _WHAT)
                say(f"nothing is deleted{rest(plans)}")
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
        names |= {name for each in wanted.values() for name in (*each.topics, *(topic for topic, _ in each.places))}
        self._topics = described(self._requests, names)
        subscribed = self._subscribed({group: listed[group] for group in there if not wanted[group].is_whole})
        nothing = FetchedOffsets({}, {})
        return [
            planned(group, each, found.get(group, nothing), listed, self._topics, subscribed.get(group, NO_TOPICS))
            for group, each in wanted.items()
        ]

    def _subscribed(self, groups: Mapping[str, ListedGroup]) -> dict[str, SubscribedTopics]:
        """The subscriptions of groups that have both members and committed offsets."""
        kinds = {group: each.kind for group, each in groups.items() if each.has_members and each.kind != "share"}
        told = subscriptions(self._requests, kinds)
        return {group: subscribed_topics(each) for group, each in told.items()}

    def _say_what_is_passed_over(self) -> None:
        if self._deletions.passed_over:
            say(f"skipped: {plural(self._deletions.passed_over, 'row')} that the list calls not deletable")
        left_out = self._deletions.left_out
        if left_out:
            counts = ", ".join(f"{count} {reason}" for reason, count in sorted(left_out.items()))
            also = ",".join(sorted(left_out))
            rows = plural(left_out.total(), "row")
            say(f"left out: {rows} with other reasons than not_subscribed ({counts}); --also {also} takes them")
        if self._deletions.groups:
            rows = plural(self._deletions.groups, "row")
            say(f"skipped: {rows} of groups; --whole-groups deletes those that the list calls deletable")

    def _say_what_it_means(self, plans: Iterable[GroupPlan]) -> None:
        going = [plan for plan in plans if plan.goes]
        members = sum(plan.has_members for plan in going)
        without = sum(not plan.has_members and bool(plan.planned) for plan in going)
        if without:
            say(
                f"note: {plural(without, 'group')} of these without members now; when one comes back, its "
                f"auto.offset.reset decides where it starts"
            )
        if members:
            say(
                f"note: {plural(members, 'group')} of these with members; brokers refuse to delete offsets of topics "
                f"they subscribe to, and --restore works only while a group has no members"
            )

    # -- the deletion --------------------------------------------------------------------------------------------------

    def _carry_out(self, plans: list[GroupPlan]) -> None:
        what = _summed_up(plans)
        if not self._yes:
            print_plans(plans, TO_BE_DELETED, _WHAT)
            self._say_what_it_means(plans)
            if not confirmed(f"{what} will be deleted."):
                raise CommandError("nothing was deleted")
        path = self._output or timed_path("deleted")
        with DeletedFile(path) as kept:
            broken_off = f"interrupted; {path} has what was deleted until now, or was about to be"
            carry_out("deleting", _WHAT, self._deleted(plans, kept), len(plans), broken_off)
        say(f"{_summed_up(plans, is_done=True)} deleted{rest(plans)}")
        if kept.has_offsets:
            say(f"{path} has their old values: --restore {path} restores them")
        elif not any(plan.is_done for plan in plans):
            kept.remove()

    def _deleted(self, plans: list[GroupPlan], kept: DeletedFile) -> Iterator[GroupPlan]:
        """Execute the plans, and yield each when it is done."""
        by_group = {plan.group: plan for plan in plans}
        for groups in batches(list(by_group)):
            some = [by_group[group] for group in groups]
            self._look_again([plan for plan in some if plan.goes])
            kept.before((plan for plan in some if plan.goes), self._topics)
            for plan in some:
                if plan.goes:
                    held = self._delete_group(plan) if plan.is_whole else self._delete_offsets(plan)
                    if held:
                        kept.kept(plan.group, held)
                yield plan

    def _look_again(self, plans: Collection[GroupPlan]) -> None:
        found = fetched(self._requests, {plan.group: _asked_again(plan) for plan in plans})
        for plan in plans:
            leave_out_changed(plan, found[plan.group])

    def _delete_offsets(self, plan: GroupPlan) -> list[TopicPartition]:
        """Execute the plan for offsets. Returns the items that are unchanged because the deletion was refused."""

        def look() -> dict[TopicPartition, str | None] | None:
            self._look_after_loss(plan)
            return None if plan.goes else {}

        outcomes, is_after_loss = answer_to(
            plan.group, lambda: self._requests.delete_offsets(plan.group, list(plan.planned)), look
        )
        refused = []
        for item in plan.items if plan.error is None else ():
            if item.is_planned:
                error = outcomes.get(item.place, UNKNOWN)
                # A simple group may disappear with its last offset.
                item.error = None if is_after_loss and error == NO_GROUP else error
                item.is_done = item.error is None
                refused += [item.place] * (item.error not in (None, UNKNOWN))
        return refused

    def _delete_group(self, plan: GroupPlan) -> list[TopicPartition]:
        """Execute the plan for a whole group. Returns the items that are unchanged because the group was not
        deleted."""

        def look() -> str | None:
            self._look_after_loss(plan)
            return plan.error

        def send() -> str:
            return self._requests.delete_group(plan.group) or _DELETED

        error, is_after_loss = answer_to(plan.group, send, look)
        # An unlisted group may still exist, because no broker lists a coordinator's groups while the coordinator moves.
        plan.is_done = error == _DELETED or (is_after_loss and error == NO_GROUP)
        if plan.is_done:
            for item in plan.items:
                item.is_done = item.committed is not None
            return []
        plan.error = error
        return [] if error == UNKNOWN else list(plan.planned)

    def _look_after_loss(self, plan: GroupPlan) -> None:
        """Set the status of each offset: one that is gone was deleted; one that is unchanged remains planned."""
        found = fetched(self._requests, {plan.group: _asked_again(plan)})[plan.group]
        if found.error is not None:
            plan.error = found.error
            for item in plan.items:
                if item.is_planned:
                    item.error, item.more = found.error, "it is unknown whether it was deleted"
            return
        is_gone = not found.offsets and not found.errors
        for item in plan.items:
            if item.is_planned and (is_gone or not plan.is_whole):
                item.is_done = item.place not in found.offsets and item.place not in found.errors
        if not is_gone:  # the same request shows whether a group without offsets exists
            leave_out_changed(plan, found)


def _asked(wanted: Wanted) -> AskedGroup:
    # If options name partitions, the group's other offsets help to find out which topic was meant.
    return AskedGroup(wanted.places | set(wanted.expected), is_all=wanted.is_whole or not wanted.has_list)


def _asked_again(plan: GroupPlan) -> AskedGroup:
    places = [item.place for item in plan.items if item.partition is not None] if plan.is_whole else list(plan.planned)
    return AskedGroup(places, is_all=plan.is_whole)


def _summed_up(plans: Iterable[GroupPlan], *, is_done: bool = False) -> str:
    """How many offsets of how many groups are, or were, deleted."""
    if is_done:
        some = [plan for plan in plans if plan.is_done or any(item.is_done for item in plan.items)]
        offsets = sum(item.is_done for plan in some for item in plan.items)
    else:
        some = [plan for plan in plans if plan.goes]
        offsets = sum(len(plan.planned) for plan in some)
    whole = sum(plan.is_whole for plan in some)
    groups = f"{plural(len(some), 'group')}{f', {whole} as a whole' if whole else ''}"
    return f"{plural(offsets, 'offset')} of {groups}"
