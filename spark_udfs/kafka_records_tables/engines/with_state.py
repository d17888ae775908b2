"""Continues where the last reading ended, with a state directory (`sources.kept_logs`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any

from kafka_records_engine.sources.abilities import AnswersForCoordinators, has
from kafka_records_engine.sources.given import source_of
from kafka_records_engine.sources.missing_rights import COORDINATOR_TOPICS
from kafka_records_tables.engines.checked_request import requests_of
from kafka_records_tables.engines.joined_tables import at_the_bottom
from kafka_records_tables.engines.kept_answers import wants_history

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_engine.sources import Context
    from kafka_records_engine.sources.question import Question
    from kafka_records_tables.engines.request import OnProgress

State = str | PathLike[str]
"""A directory that keeps the records read for the next reading."""


def check_state(question: Question, *, by_spark: bool) -> None:
    """Raise ValueError for a request that needs records that a state directory does not keep."""
    if by_spark:
        raise ValueError("state needs the local engine: leave out state or Spark")
    if question.as_of_ms is not None:
        raise ValueError(
            "as_of cannot be combined with state, because the directory holds only what the logs contain now. "
            "Leave out state to read what the logs still contain of that moment; or take snapshots with "
            "take_snapshot, and read them with as_of"
        )
    requests = requests_of(question)
    if not any(each.table.topic in COORDINATOR_TOPICS for request in requests for each in at_the_bottom(request)):
        names = ", ".join(request.table.name for request in requests)
        raise ValueError(
            f"{names}: state keeps only records of coordinators' topics, and none are read here: leave out state"
        )


@contextmanager
def source_with_state(
    question: Question, source: Any, state: State | None, on_progress: OnProgress | None = None
) -> Iterator[Any]:
    """The source itself or, with `state`, a source that keeps its records in this directory. No other process may use
    the directory at the same time.

    Raises LogSourceError and StateBusy, as `StateDirectory` does.
    """
    if state is None:
        yield source
        return
    # Most calls keep no state, and do not need these modules.
    from kafka_records_engine.sources.kept_logs import StateDirectory

    requests = requests_of(question)
    topic = requests[0].table.topic if len(requests) == 1 else ""
    given = source_of(source, question.topic or topic or None)
    if has(given, AnswersForCoordinators):
        raise ValueError("state keeps records, but this source has none: use LiveBrokers")
    with StateDirectory(state, _needed).opened() as directory:
        yield directory.logs(given, with_history=wants_history(requests), on_progress=on_progress)


def _needed(rows: Iterator[pa.RecordBatch], context: Context) -> list[pa.RecordBatch] | None:
    """The result of `needed_by_state`. Only a run with new records loads the modules that decode them."""
    from kafka_records_tables.tables.following.carried_rows import needed_by_state

    return needed_by_state(rows, context)
