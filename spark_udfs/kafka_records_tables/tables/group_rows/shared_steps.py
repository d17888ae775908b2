"""The effects of commits on committed offsets, computed once for all tables of a reading that need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_records_tables.coordinator.offsets.commit_steps import CommitSteps, StepLot
from kafka_records_tables.coordinator.records.decoded_records import schemas
from kafka_records_tables.tables.made_once import MadeOnce

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context


def shared_steps(context: Context) -> MadeOnce[CommitSteps, StepLot]:
    """Receives raw rows (`commit_steps.READS`) and returns lots of steps, which must not be changed."""
    return MadeOnce(CommitSteps, lambda own: CommitSteps(schemas(own, "consumer_offsets"), own), context)
