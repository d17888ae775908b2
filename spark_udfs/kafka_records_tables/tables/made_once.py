"""What several tables make of the same rows. Where they share a reading, it is made once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast

from kafka_records_engine.sources import Context
from kafka_records_engine.sources.collected_findings import RepeatedFindings

if TYPE_CHECKING:
    import pyarrow as pa

_Made = TypeVar("_Made")
_Made_co = TypeVar("_Made_co", covariant=True)


class Maker(Protocol[_Made_co]):
    """Takes raw rows, and makes something of them at the end."""

    def take(self, batch: pa.RecordBatch) -> None:
        """Add raw rows after those before."""

    def made(self) -> _Made_co:
        """What became of them, at the end of the log."""


class MadeOnce(Generic[_Made]):
    """What a maker makes of raw rows, and what it reports. Tables that share a reading, name the same `what` and are
    asked about the same groups and the same moment get the same object, which nobody may change.

    The maker gets the rows of the first table that asks, and the findings are repeated for each of them.
    """

    def __init__(self, what: Hashable, make: Callable[[Context], Maker[_Made]], context: Context) -> None:
        self._context = context
        shared = {} if context.shared is None else context.shared
        name = (what, context.question.of_rows())
        self._is_first = name not in shared
        if self._is_first:
            own = context.apart()
            shared[name] = _Making(make(own), own)
        self._making = cast("_Making[_Made]", shared[name])
        self._found = RepeatedFindings(self._making.context.findings, context.findings)

    def take(self, batch: pa.RecordBatch) -> None:
        """Add raw rows after those before."""
        if self._is_first:
            self._making.maker.take(batch)
        self._found.catch_up()

    def made(self) -> _Made:
        """What was made, at the end of the log."""
        making = self._making
        if making.made is None:
            making.made = making.maker.made()
        self._found.catch_up()
        self._context.counts.add(making.context.counts)
        return making.made


class _Making(Generic[_Made]):
    def __init__(self, maker: Maker[_Made], context: Context) -> None:
        self.maker = maker
        self.context = context
        """What is found goes here, for each of the tables to repeat."""
        self.made: _Made | None = None
