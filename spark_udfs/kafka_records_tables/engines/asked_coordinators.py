"""A source that asks coordinators. Engines read it instead of logs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources.abilities import AnswersForCoordinators, has
from kafka_records_tables.tables.declaration import EVERY_TOPIC
from kafka_records_tables.tables.requested.what_requests_tell import INPUTS, UNKNOWN, why_not
from kafka_records_tables.topics import METADATA

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context, LogPartition
    from kafka_records_engine.sources.live_requests import CoordinatorAnswers
    from kafka_records_tables.engines.request import TableRequest
    from kafka_records_tables.tables import Table


@dataclass(frozen=True, eq=False)
class AskedCoordinators:
    """A source that returns table rows instead of raw rows. All tables of an answer share one object, so each
    coordinator is asked once."""

    topic: str
    """The name of the source, for messages that otherwise name a log partition."""
    answers: CoordinatorAnswers
    partition: int = -1
    size: int = 0
    in_memory: bool = True
    """True, because this process asks the coordinators."""

    def is_about(self, table: Table) -> bool:
        """Whether a table is about coordinators rather than logs or cluster metadata."""
        return table.topic not in (EVERY_TOPIC, METADATA)

    def logs(self, table: Table) -> Sequence[LogPartition]:
        """The sources to read for a table, or for an input of a view. Raises LogSourceError if there are none."""
        if table.name not in (*UNKNOWN, *INPUTS):
            raise LogSourceError(self.topic, f"requests cannot fill {table.name}")
        return [self]

    def rows(self, request: TableRequest, context: Context) -> Iterator[Any]:
        """The rows of a table as `pyarrow.RecordBatch`es. Findings go to the context."""
        from kafka_records_tables.tables.requested.requested_rows import requested_rows

        return requested_rows(request.table, self.answers, context)

    def batches(
        self, context: Context, columns: Collection[str], start: int | None = None, end: int | None = None
    ) -> Iterator[Any]:
        """Always raises LogSourceError, because there are no raw rows."""
        raise LogSourceError(self.topic, "requests to coordinators return no records: read the logs with LiveBrokers")


def asked_coordinators(source: object) -> AskedCoordinators | None:
    """The object to read in place of logs if the source asks coordinators; None for any other source."""
    if not has(source, AnswersForCoordinators):
        return None
    return AskedCoordinators(getattr(source, "name", ""), source.coordinator_answers())


def check_coordinators(request: TableRequest, source: object) -> None:
    """Raise LogSourceError if the source asks coordinators, and their answers do not suffice for the table or one of
    its options."""
    if not has(source, AnswersForCoordinators):
        return
    name, table, question = getattr(source, "name", ""), request.table, request.question
    why = why_not(table)
    if why is not None:
        raise LogSourceError(name, f"requests cannot fill {table.name}: {why}")
    if any(option.adds and question.options.get(option.name) is not None for option in table.options):
        raise LogSourceError(
            name, "requests return no history of commits: leave out window, or read the progress table"
        )
    if question.as_of_ms is not None or question.options.get("at") is not None:
        raise LogSourceError(name, "requests return only the current state: read the logs for another moment")


def refuse_coordinators(logs: Iterable[LogPartition]) -> None:
    """Raise LogSourceError for a source that asks coordinators, which only this machine may do."""
    for log in logs:
        if isinstance(log, AskedCoordinators):
            raise LogSourceError(log.topic, "requests are sent by this process: leave out Spark")
