"""Derives the rows of `regressions` from the records of a log partition as they arrive."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.groups.group_states import GroupStates, StatesAt
from kafka_records_tables.coordinator.offsets.falls import HeldSteps, follow
from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.group_rows.shared_groups import SharedGroups
from kafka_records_tables.tables.group_rows.shared_steps import shared_steps
from kafka_records_tables.tables.reader import TableReader
from kafka_records_tables.tables.words.causes import HIGH, LOW

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.offsets.commit_steps import StepLot
    from kafka_records_tables.tables.group_rows.shared_groups import LogLot

TOPIC_RECREATED: Final = "topic_recreated"
AFTER_DELETION: Final = "after_deletion"
SAWTOOTH: Final = "sawtooth"
RESET_WHILE_EMPTY: Final = "reset_while_empty"
REWIND_BY_MEMBER: Final = "rewind_by_member"

_NOWHERE: Final = np.iinfo(np.int64).max

_NO_STATE: Final = "the state of its group is not known"

_EVIDENCE: Final = {
    "tombstone": "tombstone_log_offset",
    "marker": "marker_log_offset",
    "high": "high_log_offset",
    "low": "low_log_offset",
    "group": "group_log_offset",
}


def kinds(falls: pa.RecordBatch, is_empty: FLAGS) -> pa.Array:
    """The kind of each fall (a row of `falls.FALLS`), given whether its group was empty before it."""
    cases = {
        TOPIC_RECREATED: pc.not_equal(falls.column("from_topic_id"), falls.column("topic_id")),
        AFTER_DELETION: pc.is_valid(falls.column("tombstone_log_offset")),
        SAWTOOTH: falls.column("is_sawtooth"),
        RESET_WHILE_EMPTY: pa.array(is_empty),
    }
    applies = pc.make_struct(*(pc.fill_null(case, False) for case in cases.values()))
    return pc.case_when(applies, *map(pa.scalar, cases), pa.scalar(REWIND_BY_MEMBER))


class Regressions(TableReader):
    """Tracks the commits and groups of one log partition. Memory grows with the partitions for which groups have
    commits, the groups, and their changes since the first commit in an open transaction."""

    def __init__(self, context: Context, schema: pa.Schema) -> None:
        self._context = context
        self._schema = schema
        self._steps, self._groups = shared_steps(context), SharedGroups(context)
        self._states = GroupStates()
        self._known_up_to = 0
        """The offset up to which the states of groups are known."""
        self._waiting: deque[StepLot] = deque()
        """Steps after that offset."""
        self._held: HeldSteps | None = None

    @property
    def remembered(self) -> int:
        """The number of changes of groups in memory."""
        return self._states.remembered

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Add the raw rows that follow. Returns the rows of the table that are complete."""
        self._waiting += self._steps.take(batch)
        self._note(self._groups.take(batch))
        return self._compared()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The remaining rows, at the end of the log."""
        self._waiting += self._steps.rest()
        self._note(self._groups.rest())
        self._known_up_to = _NOWHERE
        return self._compared()

    def named_later(self) -> set[int]:
        """The places of records to which rows about later records may refer. Call this after the last row."""
        return set() if self._held is None else self._held.places()

    def _note(self, lots: Iterable[LogLot]) -> None:
        for lot in lots:
            lot.groups.report(self._context, _NO_STATE)
            for event in lot.transitions:
                self._states.add(event)
            self._known_up_to = lot.end

    def _compared(self) -> Iterator[pa.RecordBatch]:
        while self._waiting and self._waiting[0].end <= self._known_up_to:
            lot = self._waiting.popleft()
            falls, self._held = follow(self._held, lot.steps)
            if falls.num_rows:
                # The coordinator accepts or rejects a commit when it writes it, even in a transaction.
                places = falls.column("log_offset").to_numpy()
                yield self._rows(falls, places, self._states.before(falls.column("group_id"), places))
            self._states.forget(lot.waits_from)

    def _rows(self, falls: pa.RecordBatch, places: INT64, groups: StatesAt) -> pa.RecordBatch:
        told: dict[str, Any] = {name: falls.column(name) for name in falls.schema.names}
        marker = falls.column("counted_at")
        told["marker_log_offset"] = pa.array(marker.to_numpy(), mask=marker.to_numpy() == places)
        kind = kinds(falls, ~groups.exists | groups.is_empty)
        hangs_on_members = pc.is_in(kind, pa.array([RESET_WHILE_EMPTY, REWIND_BY_MEMBER])).to_numpy(
            zero_copy_only=False
        )
        # The previous commit may have been for a topic with another id, which only an earlier commit contains.
        tells_id_first = pc.and_(pc.is_null(falls.column("from_topic_id")), pc.is_valid(falls.column("topic_id")))
        is_known = pa.array(~hangs_on_members | self._is_known(places, groups))
        told["group_log_offset"] = pc.if_else(pa.array(hangs_on_members), groups.told_at, None)
        told |= {
            "kind": kind,
            "confidence": pc.if_else(pc.and_not(is_known, tells_id_first), HIGH, LOW),
            "group_kind": groups.kind,
            "group_state": groups.state,
            "commit_timestamp": instants(told["commit_timestamp_ms"]),
            "from_commit_timestamp": instants(told["from_commit_timestamp_ms"]),
            "log_partition": self._context.partition,
        }
        told["evidence"] = self._evidence(told, falls.num_rows)
        return record_batch(self._schema, told, falls.num_rows)

    def _is_known(self, places: INT64, groups: StatesAt) -> FLAGS:
        """Whether the members of groups are known: neither their records nor any bytes before that place were
        unreadable."""
        unreadable = min(self._context.log.holes, default=_NOWHERE)
        known: FLAGS = ~groups.exists | groups.state.is_valid().to_numpy(zero_copy_only=False)
        return known & (places <= unreadable)

    def _evidence(self, told: dict[str, Any], count: int) -> pa.Array:
        places = {what: told[name].to_pylist() for what, name in _EVIDENCE.items()}
        lists = [
            [{"shows": what, "log_offset": of[row]} for what, of in places.items() if of[row] is not None]
            for row in range(count)
        ]
        return pa.array(lists, self._schema.field("evidence").type)
