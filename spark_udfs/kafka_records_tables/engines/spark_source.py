"""`spark.read.format("kafka-records")`: tables and raw rows over log segment files, as a Python Data Source.

One input partition per partition of the log. Nothing is pushed down: in PySpark 4.2 and 4.3 a filter that was pushed to
such a source by one query takes part in the next one, and columns are not pruned at all. So there are options.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kafka_records_engine.log.reading import find_logs
from kafka_records_engine.spark.modes import FAILFAST, PERMISSIVE, Mode, checked_mode
from kafka_records_engine.spark.raw import RAW_SCHEMA
from kafka_records_engine.spark.segments import SegmentReader
from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_tables.engines.checked_request import chosen_columns, request_of, table_called
from kafka_records_tables.engines.spark_schema import schema_of
from kafka_records_tables.engines.spark_tasks import LogRows
from kafka_records_tables.near_names import near
from kafka_records_tables.query import milliseconds

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kafka_records_engine.sources import LogPartition

NAME: Final = "kafka-records"

OPTIONS: Final[Mapping[str, str]] = {
    "table": "name of a table; raw rows without",
    "topic": "topic of the raw rows, or of files that do not stand in a folder of their topic",
    "group": 'only what is about this group, or about several: a JSON array, ["a", "b"]',
    "columns": "columns to return, with commas between them",
    "asOf": "the table as it was at this moment: ISO 8601, milliseconds since 1970, or 2h, 7d … ago",
    "mode": "FAILFAST (the default) or PERMISSIVE",
    "untold": "committed: what records count as whose source does not tell of transactions",
    "package": "the generated package that says what the records hold",
}
"""The options by name; where upper case stands is of no matter to Spark."""

_PLACES: Final = ("path", "paths")
_OF_TABLES: Final = ("group", "columns", "asOf", "untold", "package")


class BadOption(KafkaRecordsError, ValueError):
    """An option of the data source that is unknown, or a value that it cannot have; `detail` is a sentence."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    def __str__(self) -> str:
        return f"{NAME}: {self.detail}"


class KafkaRecordsSource(DataSource):
    """See `kafka_records_tables.spark.register`."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return NAME

    def schema(self) -> StructType:
        """The columns of the table, or of raw rows. Raises BadOption."""
        return _asked(self.options).schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader over the files that there are when the query runs."""
        return _Reader(_asked(self.options))


@dataclass(frozen=True)
class _Asked:
    """What the options ask for: a table, or with `rows` None raw rows."""

    paths: tuple[str, ...]
    topic: str | None
    schema: StructType
    rows: LogRows | None
    mode: Mode


class _Reader(DataSourceReader):
    def __init__(self, asked: _Asked) -> None:
        self._asked = asked

    def partitions(self) -> Sequence[InputPartition]:
        asked = self._asked
        if asked.rows is None:
            return [InputPartition(log) for log in find_logs(asked.paths, asked.topic)]
        from kafka_records_engine.sources.segment_files import Segments

        table = asked.rows.request.table
        logs: Sequence[LogPartition] = Segments(asked.paths, asked.topic or table.topic).partitions(table.topic)
        return [InputPartition(log) for log in sorted(logs, key=lambda log: -log.size)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        log = partition.value
        if self._asked.rows is None:
            return SegmentReader(self._asked.mode, False).rows(log)
        return self._asked.rows.of(log)


def _asked(options: Mapping[str, str]) -> _Asked:
    given = _named(options)
    paths = _paths(options)
    try:
        mode = checked_mode(given.get("mode", FAILFAST), (FAILFAST, PERMISSIVE))
        if "table" not in given:
            for name in _OF_TABLES:
                if name in given:
                    raise BadOption(f"the option {name} is for tables: say which one with the option table")
            return _Asked(paths, given.get("topic"), RAW_SCHEMA, None, mode)
        request = request_of(
            table_called(given["table"]),
            group=_groups(given.get("group")),
            as_of=milliseconds(given["asOf"]) if "asOf" in given else None,
            untold=given.get("untold"),
            package=given.get("package", "kafka_records"),
        )
        names = chosen_columns(request.table, _list(given.get("columns")))
    except BadOption:
        raise
    except ValueError as error:
        raise BadOption(str(error)) from None
    rows = LogRows(request, (), tuple(names), mode == FAILFAST)
    return _Asked(paths, given.get("topic"), schema_of(request.table, names), rows, mode)


def _named(options: Mapping[str, str]) -> dict[str, str]:
    """The options by their names in OPTIONS: Spark hands out lower case."""
    names = {name.lower(): name for name in OPTIONS}
    given = {}
    for name, value in options.items():
        if name.lower() in _PLACES:
            continue
        if name.lower() not in names:
            raise BadOption(f"no option is called {name!r}; {near(name, [*OPTIONS, 'path'])}")
        given[names[name.lower()]] = value
    return given


def _paths(options: Mapping[str, str]) -> tuple[str, ...]:
    """Where to read: `load(path)` is an option, `load([path, path])` a JSON array in another one."""
    lower = {name.lower(): value for name, value in options.items()}
    paths = [lower["path"]] if "path" in lower else []
    paths += json.loads(lower["paths"]) if "paths" in lower else []
    if not paths:
        raise BadOption("there is nothing to read: give load a path, or the option path")
    return tuple(path.removeprefix("file:") for path in paths)


def _groups(text: str | None) -> str | list[str] | None:
    if text is None or not text.startswith("["):
        return text
    try:
        groups: Any = json.loads(text)
    except ValueError:
        return text
    return groups if all(isinstance(group, str) for group in groups) else text


def _list(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]
