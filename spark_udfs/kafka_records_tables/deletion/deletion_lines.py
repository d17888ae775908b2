"""The output of `delete-offsets`: for each group, the table TOPIC PARTITION STATUS of KIP-496, and error lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kafka_records_runtime.text.printable import printable
from kafka_records_tables.deletion.deletion_plan import GroupPlan, Item, error_text

_NOT_PROVIDED: Final = "Not Provided"
_NARROWEST: Final = 15


def lines_of(plan: GroupPlan, to_be: str, what: str) -> Iterator[str]:
    """The lines about one group. `to_be` is the status of an item that was not executed; `what` is the action in error
    lines, such as `Deletion of offsets`."""
    yield ""
    yield printable(f"GROUP {plan.group}{_described(plan)}")
    if plan.error is not None:
        failed = "Deletion of the group" if plan.is_whole else what
        yield f"Error: {failed} failed due to: {error_text(plan.error, plan.more)}"
    elif plan.is_whole:
        yield f"the group as a whole: {'Successful' if plan.is_done else to_be}"
    if not plan.items:
        return
    width = max(_NARROWEST, *(len(printable(item.topic)) for item in plan.items))
    yield f"{'TOPIC':<{width}} {'PARTITION':<12} STATUS"
    for item in plan.items:
        partition = _NOT_PROVIDED if item.partition is None else item.partition
        yield f"{printable(item.topic):<{width}} {partition:<12} {printable(_status(plan, item, to_be))}"


def _described(plan: GroupPlan) -> str:
    return f" ({plan.listed.kind or 'group'}, {plan.listed.state})" if plan.listed is not None else ""


def _status(plan: GroupPlan, item: Item, to_be: str) -> str:
    offset = f" (offset {item.committed.offset})" if item.committed is not None else ""
    if item.error is not None:
        return f"Error: {error_text(item.error, item.more)}"
    if item.is_done:
        return f"{item.note or 'Successful'}{offset}"
    if item.committed is None:
        return "nothing committed"
    if plan.error is not None:
        return f"left alone{offset}"
    return f"{to_be}{offset}{f', unless {item.unless}' if item.unless else ''}"
