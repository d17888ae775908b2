"""What several tables make of the same rows. Where they share a reading, it is made once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from kafka_records_engine.sources import Context, Counts
from kafka_records_engine.sources.repeated_findings import RepeatedFindings

if TYPE_CHECKING:
    import pyarrow as pa

_Made = TypeVar("_Made")


def made_once(
    what: Hashable,
    make: Callable[[Iterator[pa.RecordBatch], Context], _Made],
    batches: Iterator[pa.RecordBatch],
    context: Context,
) -> _Made:
    """What `make` makes of raw rows, and what it reports. Tables that share a reading, name the same `what` and are
    asked about the same groups and the same moment get the same object, which nobody may change.

    The first that asks makes it. The others let their rows go by: each batch goes to the tables in the same order, so
    the first one is done when they are.
    """
    if context.shared is None:
        return make(batches, context)
    name = (what, context.as_of_ms, context.untold, context.groups, context.package)
    first = name not in context.shared
    if first:
        context.shared[name] = _Making(replace(context, findings=[], finding_counts={}, counts=Counts()))
    making = cast("_Making[_Made]", context.shared[name])
    found = RepeatedFindings(making.context, context)
    if first:
        making.made = make(_told(batches, context, making.context, found), making.context)
    else:
        for _ in batches:
            found.catch_up()
    found.catch_up()
    context.counts.add(making.context.counts)
    assert making.made is not None
    return making.made


class _Making(Generic[_Made]):
    def __init__(self, context: Context) -> None:
        self.context = context
        """What is found goes here, for each of the tables to repeat."""
        self.made: _Made | None = None


def _told(
    batches: Iterator[pa.RecordBatch], context: Context, of_making: Context, found: RepeatedFindings
) -> Iterator[pa.RecordBatch]:
    """The batches, beside which the context of the making knows what that of the table knows of the log."""
    for batch in batches:
        _tell(context, of_making)
        yield batch
        found.catch_up()
    _tell(context, of_making)


def _tell(context: Context, other: Context) -> None:
    # Both have the same list of holes.
    other.log_start, other.cleaned_up_to, other.whole_from = (
        context.log_start,
        context.cleaned_up_to,
        context.whole_from,
    )
