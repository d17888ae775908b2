"""One table over one log partition: the function that every engine runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kafka_records_engine.sources import PLACE_COLUMNS, Context
from kafka_records_engine.sources.collected_findings import Findings
from kafka_records_engine.sources.log_facts import KnownTopics, LogFacts

if TYPE_CHECKING:
    from kafka_records_engine.sources import LogPartition
    from kafka_records_engine.sources.question import Question
    from kafka_records_tables.tables.declaration import Table


@dataclass(frozen=True, slots=True)
class TableRequest:
    """A request to one table, with the facts about topics that its source reported before logs were read. Small and
    picklable."""

    question: Question
    topics: KnownTopics = field(default_factory=KnownTopics)
    """The known facts about topics; empty if the table does not use them."""

    @property
    def table(self) -> Table:
        """The table."""
        (module,) = self.question.tables
        table: Table = import_module(module).TABLE
        return table

    def context(
        self, topic: str, partition: int, findings: Findings | None = None, log: LogFacts | None = None
    ) -> Context:
        """A context for one log partition. `findings` collects findings; `log` has the facts from other readers of the
        same rows."""
        context = Context(
            topic,
            partition,
            self.question,
            LogFacts(topics=self.topics) if log is None else log,
            Findings() if findings is None else findings,
            history=self.table.is_history,
        )
        context.counts.note_moment("topics", self.topics.asked_ms)
        return context

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of raw rows to read."""
        times = () if self.question.as_of_ms is None else ("timestamp_ms",)
        return tuple(dict.fromkeys((*self.table.reads, *times, *PLACE_COLUMNS)))

    def answer(self, log: LogPartition, context: Context) -> Iterator[Any]:
        """The rows of the table as `pyarrow.RecordBatch`es. Findings and counts go to the context."""
        from kafka_records_tables.tables.table_reading import rows_of

        return rows_of(self.table, iter(log.batches(context, self.columns)), context)


OnProgress = Callable[[int, int], None]
"""Called with the number of bytes read so far and the total number."""
