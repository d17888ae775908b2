"""The options of `format("kafka-records")` and their meaning. Messages say what is wrong with an option, and contain no
secrets."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from kafka_records_engine.log.files.paths import holds_secret, without_secrets
from kafka_records_engine.spark.modes import FAILFAST, PERMISSIVE, Mode, checked_mode
from kafka_records_engine.spark.raw import RAW_SCHEMA
from kafka_records_tables.engines.checked_request import chosen_columns, request_of, table_called
from kafka_records_tables.engines.log_ranges import LogRange
from kafka_records_tables.engines.logs_to_read import uses_topics, with_known_topics
from kafka_records_tables.engines.spark_offsets import (
    EARLIEST,
    FROM_END,
    FROM_START,
    LATEST,
    BadOption,
    Bound,
    bound_of,
)
from kafka_records_tables.engines.spark_records import names_in, record_reader
from kafka_records_tables.engines.spark_saved import SAVED_OPTIONS, source_at
from kafka_records_tables.engines.spark_schema import schema_of
from kafka_records_tables.engines.spark_tasks import LogRows
from kafka_records_tables.near_names import near
from kafka_records_tables.query import duration, milliseconds
from kafka_records_tables.table_options import own_options, tables_with
from kafka_records_tables.tables import TABLES
from kafka_records_tables.tables.declaration import SHOW_SECRETS

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kafka_records_engine.sources import LogPartition, Source
    from kafka_records_engine.sources.client_config import ClientConfig
    from kafka_records_engine.spark.saved_records import RecordReader

OPTIONS: Final[dict[str, str]] = {
    "table": "name of a table; without it, raw rows are read",
    "topic": "topic of the raw rows, or of files that are not in a folder of their topic",
    "bootstrap": "brokers to read instead of files: HOST:PORT, separated by commas",
    "commandConfig": "properties file for connecting to brokers, which the driver and every worker read",
    "timeout": "how long to wait for brokers, each time they are read: 30s, 5m; no limit by default",
    "records": "names of records to decode from saved rows, separated by commas; instead of a table or raw rows",
    "coordinates": "columns of raw rows that decoded records keep, in this order, separated by commas; all by default",
    "group": 'only rows about this group, or about several: a JSON array, ["a", "b"]',
    "columns": "columns to return, separated by commas",
    "asOf": "the table as it was at this moment: ISO 8601, milliseconds since 1970, or 2h, 7d … ago",
    "mode": "FAILFAST (the default) or PERMISSIVE",
    "assume": "committed: what to assume for records whose source does not show transactions",
    "package": "the generated package that defines the records",
    "startingOffsets": 'where raw rows begin: earliest, the default; latest; or {"topic": {"0": 23, "1": -2}}',
    "endingOffsets": "where raw rows of a batch query end: latest (the default), or offsets as for startingOffsets",
    "maxOffsetsPerTrigger": "approximate number of offsets, over all partitions, that a micro-batch of a stream reads",
    "failOnDataLoss": "false: a stream continues if records were lost before it read them; true by default",
    "bytesPerTask": "size of the parts into which partitions are cut, for raw rows and tables of facts; not cut by "
    "default",
    **SAVED_OPTIONS,
}
for _own in own_options(TABLES.values()):
    OPTIONS[_own.spark_option] = f"{_own.about}; for {tables_with(_own.name, TABLES.values())}"
"""The options by name, in any case. In addition, `kafka.` followed by a Kafka client property is an option."""

_PLACES: Final = ("path", "paths")
_KAFKA: Final = "kafka."
_SERVERS: Final = "bootstrap.servers"
_OWN: Final = {option.spark_option: option.name for option in own_options(TABLES.values())}
"""The options that only some tables have."""
_OF_TABLES: Final = ("group", "columns", "asOf", "assume", "package", *_OWN)
_OF_TABLES_ALONE: Final = tuple(name for name in _OWN if name != SHOW_SECRETS.spark_option)
_OF_RAW_ROWS: Final = ("startingOffsets", "endingOffsets", "maxOffsetsPerTrigger", "failOnDataLoss")
_NOT_OF_RECORDS: Final = (
    "table",
    "group",
    "columns",
    "asOf",
    "assume",
    *_OF_TABLES_ALONE,
    *_OF_RAW_ROWS,
    "bytesPerTask",
)
_OF_BROKERS: Final = ("commandConfig", "timeout")
_OF_STREAMS: Final = ("maxOffsetsPerTrigger", "failOnDataLoss")
_OF_BATCHES: Final = ("endingOffsets", "bytesPerTask")

_SHOWN: Final = ("ssl.keystore.key",)
"""Secrets that Spark does not recognize: its `spark.redaction.regex` matches neither their names nor their values, so
plans, the UI and event logs would show them."""


@dataclass(frozen=True)
class Brokers:
    """Running brokers, and how to connect to them. Each worker reads properties files itself, so the secrets in them
    are not sent."""

    bootstrap: str
    command_config: str | None
    properties: Mapping[str, str] = field(repr=False)
    timeout: timedelta | None = None
    """How long to wait for brokers, counted from when the source is opened to determine what can be read."""

    def config(self) -> ClientConfig:
        """The configuration. Raises ValueError, and LogSourceError for a file."""
        from kafka_records_engine.sources.client_config import ClientConfig

        if self.command_config is None:
            return ClientConfig.of(self.properties)
        return ClientConfig.read(self.command_config, self.properties)

    def source(self) -> Source:
        """The brokers as a source."""
        from kafka_records_engine.sources.live import LiveBrokers

        return LiveBrokers(self.bootstrap, self.config(), timeout=self.timeout)

    def bare(self, log: Any) -> LogPartition:
        """A log partition without its configuration, for sending to a worker."""
        from kafka_records_engine.sources.client_config import ClientConfig

        if isinstance(log, LogRange):
            return replace(log, log=self.bare(log.log))
        bare: LogPartition = replace(log, config=ClientConfig())
        return bare

    def ready(self, log: Any) -> LogPartition:
        """The log partition with its configuration."""
        if isinstance(log, LogRange):
            return replace(log, log=self.ready(log.log))
        ready: LogPartition = replace(log, config=self.config())
        return ready


@dataclass(frozen=True)
class PathsToRead:
    """Files, or any other source that a path can refer to."""

    paths: tuple[str, ...]
    topic: str | None
    saved: Mapping[str, str] = field(default_factory=dict)
    """The options that say how rows were saved."""

    def source(self) -> Source:
        """The source that the paths refer to. Raises BadOption."""
        return source_at(self.paths, self.topic, self.saved)

    def bare(self, log: LogPartition) -> LogPartition:
        """The log partition itself, because it contains no secrets."""
        return log

    ready = bare


@dataclass(frozen=True)
class Asked:
    """What the options request: a table (`rows`), decoded records (`records`), or raw rows without either."""

    place: PathsToRead | Brokers
    topic: str | None
    schema: StructType
    rows: LogRows | None
    mode: Mode
    starting: Bound = EARLIEST
    ending: Bound = LATEST
    most_offsets: int | None = None
    fails_on_data_loss: bool = True
    bytes_per_task: int | None = None
    given: frozenset[str] = frozenset()
    records: RecordReader | None = None

    def for_batch(self) -> Asked:
        """These options for a batch query. Raises BadOption for an option that only a stream can have."""
        for name in _OF_STREAMS:
            if name in self.given:
                raise BadOption(f"the option {name!r} is for streams (readStream)")
        if self.starting == LATEST or FROM_END in _offsets(self.starting):
            raise BadOption("startingOffsets is latest, but only a stream (readStream) finds records there")
        if self.ending == EARLIEST or FROM_START in _offsets(self.ending):
            raise BadOption(
                "endingOffsets is earliest, but there are no records before the earliest offset: write latest, "
                "or offsets"
            )
        return self

    def with_known_topics(self) -> Asked:
        """These options, with the source's facts about topics if the table uses them."""
        if self.rows is None or not uses_topics(self.rows.request):
            return self
        request = with_known_topics(self.rows.request, self.place.source())
        return replace(self, rows=replace(self.rows, request=request))

    def for_stream(self) -> Asked:
        """These options for a stream. Raises BadOption for an option that a stream cannot have."""
        if self.records is not None:
            raise BadOption(
                "a stream returns only raw rows: leave out the option 'records', and pass the rows to decode_records"
            )
        if self.rows is not None:
            raise BadOption(
                "a stream returns only raw rows, but a table needs a log from its start: leave out the option "
                "'table', and pass the rows to kafka_records_tables.spark.changes"
            )
        for name in _OF_BATCHES:
            if name in self.given:
                raise BadOption(f"the option {name!r} is for batch queries (read), not for streams")
        if self.topic is None or not isinstance(self.place, Brokers):
            raise BadOption("a stream reads one topic from brokers: set the options 'bootstrap' and 'topic'")
        return self


def asked(options: Mapping[str, str]) -> Asked:
    """Determine what some options request. Raises BadOption."""
    given, properties = _named(options)
    try:
        place = _place(options, given, properties)
        mode = checked_mode(given.get("mode", FAILFAST), (FAILFAST, PERMISSIVE))
        bytes_per_task = _number(given, "bytesPerTask")
        if "records" in given:
            return _records(place, given, mode)
        if "coordinates" in given:
            raise BadOption("the option 'coordinates' is for decoded records: also set the option 'records'")
        if "table" not in given:
            for name in _OF_TABLES:
                if name in given:
                    raise BadOption(f"the option {name!r} is for tables: name one with the option 'table'")
            topic = given.get("topic")
            if isinstance(place, Brokers) and topic is None:
                raise BadOption("raw rows are read from one topic at a time: set the option 'topic'")
            return Asked(
                place,
                topic,
                RAW_SCHEMA,
                None,
                mode,
                starting=_bound(given, "startingOffsets", EARLIEST),
                ending=_bound(given, "endingOffsets", LATEST),
                most_offsets=_number(given, "maxOffsetsPerTrigger"),
                fails_on_data_loss=_flag(given, "failOnDataLoss", True),
                bytes_per_task=bytes_per_task,
                given=frozenset(given),
            )
        for name in _OF_RAW_ROWS:
            if name in given:
                raise BadOption(
                    f"the option {name!r} works only for raw rows, because a table reads its log from the start"
                )
        request = request_of(
            table_called(given["table"]),
            group=_groups(given.get("group")),
            as_of=milliseconds(given["asOf"]) if "asOf" in given else None,
            assume=given.get("assume"),
            package=given.get("package", "kafka_records"),
            options={name: given[option] for option, name in _OWN.items() if option in given},
        )
        names = chosen_columns(request.table, names_in(given["columns"]) if "columns" in given else None)
    except BadOption:
        raise
    except ValueError as error:
        raise BadOption(str(error)) from None
    rows = LogRows(request, (), tuple(names), mode == FAILFAST)
    schema = schema_of(request.table, names)
    return Asked(place, given.get("topic"), schema, rows, mode, bytes_per_task=bytes_per_task, given=frozenset(given))


def _records(place: PathsToRead | Brokers, given: Mapping[str, str], mode: Mode) -> Asked:
    for name in _NOT_OF_RECORDS:
        if name in given:
            raise BadOption(f"the option {name!r} cannot be combined with 'records'")
    if isinstance(place, Brokers):
        raise BadOption("the option 'records' reads saved rows: brokers return raw rows, which decode_records decodes")
    reader = record_reader(given, mode, _flag(given, SHOW_SECRETS.spark_option, False))
    return Asked(place, reader.topic, reader.schema(), None, mode, given=frozenset(given), records=reader)


def _named(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The options by their names in OPTIONS (Spark passes lower case), and the Kafka client properties."""
    names = {name.lower(): name for name in OPTIONS}
    given, properties = {}, {}
    for name, value in options.items():
        if name.lower() in _PLACES:
            continue
        if name.lower().startswith(_KAFKA):
            properties[name.lower().removeprefix(_KAFKA)] = value
            continue
        if name.lower() not in names:
            raise BadOption(f"no option is called {name!r}; {near(name, [*OPTIONS, 'path'])}")
        given[names[name.lower()]] = value
    for name in _SHOWN:
        if name in properties:
            raise BadOption(
                f"{_KAFKA}{name} would be readable in Spark's plans and event logs: write it into a properties file, "
                f"and give that file with the option 'commandConfig'"
            )
    return given, properties


def _place(options: Mapping[str, str], given: Mapping[str, str], properties: dict[str, str]) -> PathsToRead | Brokers:
    paths = _paths(options)
    servers = properties.pop(_SERVERS, None)
    if servers is not None and "bootstrap" in given:
        raise BadOption(f"bootstrap and {_KAFKA}{_SERVERS} are the same: give only one of them")
    bootstrap = given.get("bootstrap", servers)
    if bootstrap is None:
        for name in (*(name for name in _OF_BROKERS if name in given), *(f"{_KAFKA}{each}" for each in properties)):
            raise BadOption(f"the option {name!r} is for brokers: give their addresses with the option 'bootstrap'")
        if not paths:
            raise BadOption("there is nothing to read: pass a path to load, or set the option 'path' or 'bootstrap'")
        place = PathsToRead(paths, given.get("topic"), {name: given[name] for name in SAVED_OPTIONS if name in given})
        if place.saved:
            place.source()  # raise errors about options here, not when the query runs
        return place
    for name in SAVED_OPTIONS:
        if name in given:
            raise BadOption(f"the option {name!r} is for files: leave it out when brokers are read")
    if paths:
        raise BadOption("files and brokers cannot be read together: leave out the path, or the option 'bootstrap'")
    brokers = Brokers(bootstrap, given.get("commandConfig"), properties, _timeout(given))
    # Raise errors about addresses and properties here, not when the query runs.
    brokers.source()
    return brokers


def _timeout(given: Mapping[str, str]) -> timedelta | None:
    if "timeout" not in given:
        return None
    try:
        return timedelta(milliseconds=duration(given["timeout"]))
    except ValueError as error:
        raise BadOption(f"the option 'timeout': {error}") from None


def _paths(options: Mapping[str, str]) -> tuple[str, ...]:
    """What to read. `load(path)` is one option; `load([path, path])` is a JSON array in another."""
    lower = {name.lower(): value for name, value in options.items()}
    paths = [lower["path"]] if "path" in lower else []
    paths += json.loads(lower["paths"]) if "paths" in lower else []
    for path in paths:
        if holds_secret(path):
            raise BadOption(
                f"the keys in the URL of {without_secrets(path)} would be readable in Spark's plans and event logs: "
                "pass them to the driver and to every worker in environment variables (for S3 AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or a role of the machine)"
            )
    return tuple(paths)


def _groups(text: str | None) -> str | list[str] | None:
    if text is None or not text.startswith("["):
        return text
    try:
        groups: Any = json.loads(text)
    except ValueError:
        return text
    return groups if all(isinstance(group, str) for group in groups) else text


def _bound(given: Mapping[str, str], name: str, default: str) -> Bound:
    if name not in given:
        return default
    try:
        return bound_of(given[name], given.get("topic"))
    except ValueError as error:
        raise BadOption(f"the option {name!r} {error}") from None


def _offsets(bound: Bound) -> Collection[int]:
    return bound.values() if isinstance(bound, Mapping) else ()


def _number(given: Mapping[str, str], name: str) -> int | None:
    if name not in given:
        return None
    text = given[name].strip()
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise BadOption(f"the option {name!r} is {given[name]!r}: write a number above 0")
    return int(text)


def _flag(given: Mapping[str, str], name: str, default: bool) -> bool:
    text = given.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise BadOption(f"the option {name!r} is {given[name]!r}: write true or false")
    return text == "true"
