"""The answer of a table as a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafka_records_engine.findings import merged_findings, sorted_findings
from kafka_records_tables.engines.log_tasks import RunReport

if TYPE_CHECKING:
    from kafka_records_engine.findings import Finding
    from kafka_records_engine.sources import Counts
    from kafka_records_tables.tables.declaration import Table


class Result:
    """All rows of a table, with the findings of reading them.

    It has `__arrow_c_stream__`, so any reader of Arrow streams accepts it directly: `duckdb.sql("FROM result")`,
    `polars.DataFrame(result)`, `pandas.DataFrame.from_arrow(result)` (pandas 3; `table.to_pandas()` before).
    """

    def __init__(self, declaration: Table, table: pa.Table, findings: tuple[Finding, ...], counts: Counts) -> None:
        self.declaration = declaration
        """The declaration of the table, with its columns."""
        self.table = table
        """The rows, a `pyarrow.Table`."""
        self.findings = findings
        """Damage and notes that users of the answer should know, in log order. `str()` of a finding is one line."""
        self.counts = counts
        """Counts of what was read."""

    @property
    def is_complete(self) -> bool:
        """Whether the answer is complete: no rows are missing because of damage or undecodable records."""
        return all(finding.severity == "note" for finding in self.findings)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        damage = sum(finding.severity == "damage" for finding in self.findings)
        return f"<{self.declaration.name}: {len(self)} rows, {damage} findings of damage>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the first rows, their times, the findings, and how much was read."""
        from kafka_records_tables.results.result_html import result_html

        return result_html(self.declaration, self.table, self.findings, self.counts)


class Results(Mapping[str, Result]):
    """The answers of several tables over one source, by table name."""

    def __init__(self, results: Mapping[str, Result], missing: Mapping[str, str], reading: RunReport) -> None:
        self._results = dict(results)
        self.missing = dict(missing)
        """For each requested table without an answer, the reason why: the source lacks its topic."""
        self.reading = tuple(reading.findings)
        """The findings made while reading the logs. Each is included once, even if it concerns several tables. Each
        `Result` also has its own."""
        self.counts = reading.counts
        """Counts of what was read, with each log counted once. Each `Result` has the counts for its own table."""

    def __getitem__(self, name: str) -> Result:
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of reading and of all tables, sorted by place. Findings that several tables share are included
        once."""
        of_tables = (result.findings for result in self._results.values())
        return tuple(sorted_findings(merged_findings([self.reading, *of_tables])))

    @property
    def is_complete(self) -> bool:
        """Whether all tables are present, and none lacks rows because of damage or undecodable records."""
        return not self.missing and all(result.is_complete for result in self._results.values())

    def __repr__(self) -> str:
        return f"<{len(self)} tables: {', '.join(self)}>"


class Stream:
    """The rows of a table as they arrive, one `pyarrow.RecordBatch` at a time, for answers too large for memory.

    It can be read only once. `findings` and `counts` are complete after the last row. To stop earlier, close the stream
    or use it in a `with` statement, which ends the reading processes.
    """

    def __init__(
        self, declaration: Table, schema: pa.Schema, start: Callable[[RunReport], Iterator[pa.RecordBatch]]
    ) -> None:
        self.declaration = declaration
        self.schema = schema
        self._report = RunReport()
        self._batches = start(self._report)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings, sorted by place. If the stream was closed early, only findings about completely read logs are
        included."""
        return tuple(self._report.findings)

    @property
    def counts(self) -> Counts:
        """Counts of what was read. If the stream was closed early, only completely read logs are included."""
        return self._report.counts

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pa.RecordBatchReader.from_batches(self.schema, self._batches).__arrow_c_stream__(requested_schema)

    def close(self) -> None:
        """Stop reading."""
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
