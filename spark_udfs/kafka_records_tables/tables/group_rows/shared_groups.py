"""The events of groups, batch by batch, replayed once for all tables of a reading that need them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from kafka_records_tables.coordinator.groups.group_log import GroupLog, GroupLot
from kafka_records_tables.coordinator.groups.last_group_records import NOT_USED
from kafka_records_tables.coordinator.groups.record_names import GROUP_RECORDS, PARTS
from kafka_records_tables.coordinator.offsets.commit_lots import CommitLot, Lots
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.records.decoded_records import filter_record_types, numbers_of, schemas
from kafka_records_tables.tables.group_rows.group_history import MORE, GroupHistory
from kafka_records_tables.tables.made_once import MadeOnce

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.groups.group_states import Transition
    from kafka_records_tables.coordinator.records.named_records import Picked
    from kafka_records_tables.tables.group_rows.group_history import Moment

RECORDS = (*COMMITS, *GROUP_RECORDS, *PARTS)
"""The records that this module uses."""


class LogLot(NamedTuple):
    """Rows of the log that follow the previous lot."""

    end: int
    """The offset after the last of these rows or, if there are none, after earlier rows."""
    commits: CommitLot
    groups: GroupLot
    moments: list[Moment]
    """The rows of the table `timeline` that become complete; empty if no table needs them."""

    @property
    def transitions(self) -> list[Transition]:
        """The events of groups, in log order."""
        return self.groups.transitions


class SharedGroups:
    """Tracks the groups of one log partition. Tables that share a reading share the results, which they must take in
    order. Each table reports problems with records (`LogLot.groups`, `.commits`).

    `more` are fields of values that the table needs in addition to those of the replay. With `with_moments`, lots have
    events: all events with `of_members`, otherwise only those of epochs and rebalances.
    """

    def __init__(
        self,
        context: Context,
        *,
        more: Iterable[Picked] = (),
        needs_all_groups: bool = False,
        with_moments: bool = False,
        of_members: bool = False,
    ) -> None:
        has_all = needs_all_groups and context.question.groups is not None
        self._once: MadeOnce[_Maker, LogLot] = MadeOnce((SharedGroups, has_all), _Maker, context)
        maker = self._once.maker
        maker.more += more
        maker.with_moments |= with_moments or of_members
        maker.of_members |= of_members

    def take(self, batch: pa.RecordBatch) -> list[LogLot]:
        """Add the raw rows that follow, with `group_log.READS` and `transaction`. Returns the lots that are full."""
        return self._once.take(batch)

    def rest(self) -> list[LogLot]:
        """The remaining batches, at the end of the log."""
        return self._once.rest()


class _Maker:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._schemas = schemas(context, "consumer_offsets")
        self._types = numbers_of(self._schemas, RECORDS)
        self._lots = Lots()
        self._log: GroupLog | None = None
        self._history: GroupHistory | None = None
        self._end = 0
        self.more: list[Picked] = []
        self.with_moments = self.of_members = False

    def take(self, batch: pa.RecordBatch) -> Iterator[LogLot]:
        # Each table reports the rows that it cannot use.
        rows = filter_record_types(batch, self._types, self._context.apart(), NOT_USED)
        if rows.num_rows:
            yield from map(self._lot, self._lots.take(rows))

    def rest(self) -> Iterator[LogLot]:
        for rows in self._lots.rest():
            lot = self._lot(rows)
            if self._history is not None:
                lot.moments.extend(self._history.rest())
            yield lot

    def _lot(self, rows: pa.RecordBatch) -> LogLot:
        if self._log is None:
            self._begin()
        assert self._log is not None
        commits = CommitLot(rows, self._schemas)
        groups = self._log.add(rows, commits)
        moments = [] if self._history is None else list(self._history.moments(groups.transitions))
        if rows.num_rows:
            self._end = int(rows.column("offset")[-1].as_py()) + 1
        return LogLot(self._end, commits, groups, moments)

    def _begin(self) -> None:
        """Start once all tables have registered what they need."""
        more = [*self.more, *([MORE] if self.of_members else [])]
        if self.with_moments:
            self._history = GroupHistory(self._context.log.topics.names, of_epochs_alone=not self.of_members)
        self._log = GroupLog(self._schemas, more=more, shared=self._context.shared)
