"""Executes plans about groups. If a run ends early, the results so far are still printed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from kafka_records_engine.sources.group_requests import AnswerLost
from kafka_records_runtime.errors import plural
from kafka_records_tables.console.endings import CommandError
from kafka_records_tables.console.progress_bar import ByteProgress
from kafka_records_tables.console.standard_error import over_a_bar, say
from kafka_records_tables.deletion.deletion_lines import lines_of
from kafka_records_tables.deletion.deletion_plan import GroupPlan

UNKNOWN: Final = "UNKNOWN_SERVER_ERROR"
"""The error for an offset or group that is missing in the answer. It may or may not have been deleted."""

_LEFT: Final = "left alone"
_TRIES: Final = 5

A = TypeVar("A")


def answer_to(group: str, send: Callable[[], A], look: Callable[[], A | None]) -> tuple[A, bool]:
    """Call `send`. Returns its answer, and whether an earlier answer was lost.

    After a lost answer, `look` finds out what was done: it returns the answer, or None if the request must be sent
    again. Raises CommandError if no answer arrives.
    """
    is_after_loss = False
    for _ in range(_TRIES):
        try:
            return send(), is_after_loss
        except AnswerLost as lost:
            is_after_loss = True
            say(f"note: group {group}: {lost}; checking whether it was done")
            found = look()
            if found is not None:
                return found, is_after_loss
    raise CommandError(f"group {group}: no response to {_TRIES} requests")


def carry_out(doing: str, what: str, done: Iterable[GroupPlan], total: int, broken_off: str) -> None:
    """Iterate over the `total` plans of `done`, which yields each plan after executing it. A progress bar shows
    `doing`; the plans are printed at the end. If a plan raises an error, the earlier plans are printed, followed by the
    line `broken_off`."""
    finished: list[GroupPlan] = []
    try:
        with ByteProgress(doing, of_bytes=False) as progress, over_a_bar(progress.is_drawn):
            for plan in done:
                finished.append(plan)
                progress.moved(len(finished), total)
    except BaseException:
        print_plans(finished, _LEFT, what)
        say(broken_off)
        raise
    print_plans(finished, _LEFT, what)


def print_plans(plans: Iterable[GroupPlan], to_be: str, what: str) -> None:
    """Print the lines about each group (`lines_of`)."""
    for plan in plans:
        sys.stdout.writelines(f"{line}\n" for line in lines_of(plan, to_be, what))
    sys.stdout.flush()


def rest(plans: Iterable[GroupPlan]) -> str:
    """The end of the summary line: how many items were left out, in words."""
    failed = groups = 0
    for plan in plans:
        groups += plan.error is not None
        failed += sum(
            item.partition is not None and not item.is_done if plan.error is not None else item.error is not None
            for item in plan.items
        )
    offsets = f", {plural(failed, 'offset')} left out" if failed else ""
    return f"{offsets}, {plural(groups, 'group')} refused" if groups else offsets
