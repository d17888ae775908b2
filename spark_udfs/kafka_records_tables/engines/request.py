"""One table over one log partition: what every engine runs, wherever it runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kafka_records_engine.sources import PLACE_COLUMNS, Context

if TYPE_CHECKING:
    from kafka_records_engine.sources import LogPartition
    from kafka_records_tables.tables.declaration import Table


@dataclass(frozen=True, slots=True)
class TableRequest:
    """What is asked of each log partition; small and picklable.

    `module` is where the table stands, the rest is as in `Context`.
    """

    module: str
    as_of_ms: int | None = None
    assume: str | None = None
    groups: tuple[str, ...] | None = None
    package: str = "kafka_records"
    options: tuple[tuple[str, Any], ...] = ()
    """The values of all options of the table, by name (`table_options.option_values`)."""
    topic_names: Mapping[str, str] = field(default_factory=dict)
    partition_counts: Mapping[str, int] = field(default_factory=dict)
    topics_asked_ms: int | None = None
    """When brokers were asked for the two; None for what is stored."""

    @property
    def table(self) -> Table:
        """The table."""
        table: Table = import_module(self.module).TABLE
        return table

    def context(self, topic: str, partition: int, kind: type[Context] = Context) -> Context:
        """A context for one log partition."""
        context = kind(topic, partition, self.as_of_ms, self.assume, self.groups, self.package)
        context.history = self.table.is_history
        context.options = dict(self.options)
        context.topic_names = self.topic_names
        context.partition_counts = self.partition_counts
        context.counts.note_moment("topics", self.topics_asked_ms)
        return context

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of raw rows to read."""
        times = ("timestamp_ms",) if self.as_of_ms is not None and "timestamp_ms" not in self.table.reads else ()
        return tuple(dict.fromkeys((*self.table.reads, *times, *PLACE_COLUMNS)))

    def answer(self, log: LogPartition, context: Context) -> Iterator[Any]:
        """The rows of the table as `pyarrow.RecordBatch`es; findings and counts go to the context."""
        from kafka_records_tables.tables.table_reading import rows_of

        return rows_of(self.table, iter(log.batches(context, self.columns)), context)


OnProgress = Callable[[int, int], None]
"""Called with the number of bytes that were read so far, and with that of all bytes."""
