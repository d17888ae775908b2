"""One run of `kafka-records sql`, which reads the tables in a query and writes its rows to the output."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import duckdb
import pyarrow as pa

from kafka_records_runtime.errors import plural
from kafka_records_tables.commands.chosen_logs import with_hint
from kafka_records_tables.commands.engine_run import other_way, told_in_words
from kafka_records_tables.commands.totals import RecordTotals
from kafka_records_tables.commands.written_output import Output, check_output, write_batches
from kafka_records_tables.console.endings import DAMAGE, OK, CommandError
from kafka_records_tables.console.progress_bar import ByteProgress
from kafka_records_tables.console.standard_error import say
from kafka_records_tables.near_names import did_you_mean
from kafka_records_tables.read import read_tables
from kafka_records_tables.results.finding_lines import finding_lines
from kafka_records_tables.tables import TABLES

if TYPE_CHECKING:
    from kafka_records_tables.commands.given_source import GivenSource
    from kafka_records_tables.results.result import Results

_SETTINGS: Final = (
    "SET TimeZone = 'UTC'",
    # Names in a query refer to tables, not to files or variables of this process.
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
_WHOLE_NUMBER: Final = pa.decimal128(38, 0)
"""The Arrow type of DuckDB's HUGEINT, the type of sums."""


@dataclass(frozen=True)
class SqlTask:
    """The settings of one run; see `kafka_records_tables.read.read_tables`."""

    query: str
    given: GivenSource
    output: Output
    as_of_ms: int | None = None
    assume: Literal["committed"] | None = None
    package: str = "kafka_records"
    processes: int | None = None
    own: Mapping[str, str] = field(default_factory=dict)
    """Options that only some tables have."""


class SqlRun:
    """Writes the rows that a query returns."""

    def __init__(self, task: SqlTask) -> None:
        self._task = task

    def run(self) -> int:
        """Run the query and return the exit status. Raises a CommandError if there is no result."""
        check_output(self._task.output, self._task.given.paths)
        database = duckdb.connect(":memory:")
        try:
            for setting in _SETTINGS:
                database.execute(setting)
            results = self._read(self._tables(database))
            for name in TABLES:
                # Unregister tables that were not read, so that a query that reaches one through a function fails
                # instead of finding no rows.
                database.unregister(name)
            for name, result in (results or {}).items():
                database.register(name, result.table)
            rows = _plain(database.sql(self._task.query))
        except duckdb.Error as error:
            raise CommandError(_in_words(error)) from None
        finally:
            database.close()
        write_batches(self._task.output, rows.schema, rows.to_batches())
        return OK if results is None else self._sum_up(results, rows.num_rows)

    def _tables(self, database: duckdb.DuckDBPyConnection) -> list[str]:
        """The tables that the query names. Raises a CommandError for an invalid query.

        During this, every table is a view without rows, so an unknown column is an error before anything is read.
        """
        statements = database.extract_statements(self._task.query)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise CommandError(
                "the query must be a single SELECT: it can only read tables, and its result goes to --output"
            )
        for name, table in TABLES.items():
            database.register(name, table.schema.empty_table())
        names = [*dict.fromkeys(_named_tables(database, self._task.query))]
        try:
            database.sql(self._task.query)
        except duckdb.CatalogException:
            unknown = [name for name in names if name.lower() not in TABLES]
            if not unknown:
                raise
            near = did_you_mean(unknown[0].lower(), TABLES)
            raise CommandError(
                f"no table is called {unknown[0]!r}{near}; kafka-records table --list lists them all"
            ) from None
        return [name for name in TABLES if name in {name.lower() for name in names}]

    def _read(self, tables: list[str]) -> Results | None:
        task = self._task
        if not tables:
            return None
        with told_in_words(with_hint), ByteProgress("sql") as progress:
            try:
                results = read_tables(
                    tables,
                    task.given.source(),
                    as_of=task.as_of_ms,
                    assume=task.assume,
                    package=task.package,
                    processes=task.processes,
                    on_progress=progress.moved,
                    options=task.own,
                )
            except (TypeError, ValueError) as error:
                way = other_way(error, [TABLES[name] for name in tables], task.given)
                raise CommandError(f"{error}{way}") from None
        for name, why in results.missing.items():
            raise CommandError(f"the table {name}: {why}")
        return results

    def _sum_up(self, results: Results, rows: int) -> int:
        for line in finding_lines(results.findings, "kafka-records table NAME --findings FILE writes all of them"):
            say(line)
        totals = RecordTotals(results.counts, has_files=self._task.given.has_files, package=self._task.package)
        say(f"{plural(rows, 'row')} from {_REQUESTS if self._task.given.by_requests else totals.read()}")
        totals.say_decoding()
        return DAMAGE if any(finding.severity == "damage" for finding in results.findings) else OK


_REQUESTS: Final = "answers to requests"


def _named_tables(database: duckdb.DuckDBPyConnection, query: str) -> Iterator[str]:
    """The names of tables in the parsed query, including those defined in its WITH clause."""
    ((found,),) = database.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    parsed = json.loads(found)
    if parsed.get("error"):
        raise CommandError(f"the query cannot be parsed: {parsed.get('error_message', 'no reason given')}")
    left: list[Any] = [parsed]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            if node.get("type") == "BASE_TABLE":
                yield node["table_name"]
            left += node.values()
        elif isinstance(node, list):
            left += node


def _plain(relation: duckdb.DuckDBPyRelation | None) -> pa.Table:
    """The rows in types that every format can write: whole numbers that fit become int64, and intervals become text."""
    assert relation is not None  # a SELECT always has rows
    if any(str(kind) == "INTERVAL" for kind in relation.types):
        names = ['"' + name.replace('"', '""') + '"' for name in relation.columns]
        relation = relation.project(
            ", ".join(
                f"CAST({name} AS VARCHAR) AS {name}" if str(kind) == "INTERVAL" else name
                for name, kind in zip(names, relation.types, strict=True)
            )
        )
    rows: pa.Table = relation.to_arrow_table()
    for at, column in enumerate(rows.schema):
        if column.type == _WHOLE_NUMBER:
            rows = rows.set_column(at, column.name, _whole_numbers(rows.column(at)))
    return rows


def _whole_numbers(column: pa.ChunkedArray) -> Any:
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column


def _in_words(error: duckdb.Error) -> str:
    """DuckDB's error message on one line, without its error class, function signatures and the query excerpt."""
    text = " ".join(str(error).partition("\n\nLINE ")[0].partition("Candidate functions:")[0].split())
    text = _CLASS.sub("", text).removesuffix(" You might need to add explicit type casts.")
    column = _NO_COLUMN.match(text)
    if column is not None:
        there = ", ".join(re.findall(r'"([^"]+)"', column[2])) or "no similar ones"
        return f"no table of the query has a column {column[1]}; there are {there}"
    return f"the query: {text}"


_CLASS: Final = re.compile(r"^[A-Z][A-Za-z -]* Error: ")
_NO_COLUMN: Final = re.compile(r'Referenced column "([^"]+)" not found in FROM clause!(.*)')
