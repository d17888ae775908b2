"""Computes results that several tables need, once for all tables that share a reading."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from kafka_records_engine.sources import Context
from kafka_records_engine.sources.collected_findings import RepeatedFindings

if TYPE_CHECKING:
    import pyarrow as pa

_Made = TypeVar("_Made")
_Made_co = TypeVar("_Made_co", covariant=True)
_Maker = TypeVar("_Maker", bound="Maker[Any]")


class Maker(Protocol[_Made_co]):
    """Receives raw rows and produces results from them: lots as rows arrive, or one result at the end."""

    def take(self, batch: pa.RecordBatch) -> Iterable[_Made_co]:
        """Add the raw rows that follow, and return the results that are ready."""

    def rest(self) -> Iterable[_Made_co]:
        """The remaining results, at the end of the log."""


class MadeOnce(Generic[_Maker, _Made]):
    """The results of a maker, with its findings. Tables that share a reading and have the same `what`, requested groups
    and time get the same objects, which must not be changed.

    The maker gets its rows from the first of these tables, which is the first to receive each batch and to reach the
    end. The findings are repeated for each table.
    """

    def __init__(self, what: Hashable, make: Callable[[Context], _Maker], context: Context) -> None:
        self._context = context
        shared = {} if context.shared is None else context.shared
        name = (what, context.question.of_rows())
        self._is_first = name not in shared
        if self._is_first:
            own = context.apart()
            shared[name] = _Making(make(own), own)
        self._making = cast("_Making[_Maker, _Made]", shared[name])
        self._number = self._making.add()
        self._found = RepeatedFindings(self._making.context.findings, context.findings)

    @property
    def maker(self) -> _Maker:
        """The maker shared by these tables. Before the first rows, each table may add its requirements."""
        return self._making.maker

    def take(self, batch: pa.RecordBatch) -> list[_Made]:
        """Add the raw rows that follow. Returns the results that this table does not have yet."""
        if self._is_first:
            self._making.made += self._making.maker.take(batch)
        self._found.catch_up()
        # Another table may have reached the end before this one takes its last rows.
        return [] if self._making.is_over else self._making.next_of(self._number)

    def rest(self) -> list[_Made]:
        """The remaining results, at the end of the log."""
        making = self._making
        if not making.is_over:
            making.made += making.maker.rest()
            making.is_over = True
        self._found.catch_up()
        self._context.counts.add(making.context.counts)
        return making.next_of(self._number)


class _Making(Generic[_Maker, _Made]):
    def __init__(self, maker: _Maker, context: Context) -> None:
        self.maker = maker
        self.context = context
        """The findings, which each table repeats."""
        self.made: list[_Made] = []
        """The results that at least one table has not taken yet."""
        self.is_over = False
        self._had: list[int] = []
        """How many results each table has taken."""

    def add(self) -> int:
        """Add a table and return its number."""
        self._had.append(0)
        return len(self._had) - 1

    def next_of(self, number: int) -> list[_Made]:
        """The results that this table has not taken yet."""
        found = self.made[self._had[number] :]
        self._had[number] = len(self.made)
        if all_have := min(self._had):
            del self.made[:all_have]
            self._had = [had - all_have for had in self._had]
        return found
