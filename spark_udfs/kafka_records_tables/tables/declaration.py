"""The declaration of a table, from which `--help`, pages, column comments and the Arrow schema are generated.

This module imports neither numpy, pyarrow nor Spark, so that a command can list its tables at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

from kafka_records_tables.tables.column import Column as Column
from kafka_records_tables.tables.reader import TableReader

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

Helper = Literal["latest", "fold", "facts", "history", "ends", "view"]
"""latest: only the last record of each key matters. fold: the last records of each key are replayed in order, as by a
coordinator. facts: every record is a row. history: all records are replayed in order, and rows are events. ends: only
the starts and ends of logs are read, not records. view: the table joins rows of other tables."""

EVERY_TOPIC: Final = ""
"""The topic of a table about the logs of all topics, and of a view."""

READERS: Final = "kafka_records_tables.tables.readers"
"""The package with the readers of this package's tables, each in a module named after the table."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option that only some tables have.

    `kind` is the kind of its values: a `moment`, a `duration`, a duration `ahead` of the requested time, one of some
    `words`, `partitions` (partition counts of topics), a Kafka `release`, a `flag`, or `checkpoints` (where Spark
    queries keep their offsets). An option means the same in all tables that have it.
    """

    name: str
    """The name as an argument in Python, `some_name`. The command has `--some-name`, and Spark has the option
    `someName`."""
    kind: Literal["moment", "duration", "ahead", "word", "partitions", "release", "flag", "checkpoints"]
    about: str
    """How the option affects the rows, in one line."""
    default: str | None = None
    """The default, as a user would write it."""
    words: tuple[str, ...] = ()
    not_with: tuple[str, ...] = ()
    """The options with which it cannot be combined."""
    least_ms: int = 0
    """The shortest allowed duration."""
    instead_of: tuple[str, ...] = ()
    """For a view, the inputs whose topics may be missing if the option is given."""
    adds: tuple[str, ...] = ()
    """For a view, the inputs that are read only if the option is given."""

    @property
    def argument(self) -> str:
        """The name of the option in the command, without the two hyphens."""
        return self.name.replace("_", "-")

    @property
    def spark_option(self) -> str:
        """The name of the option in Spark's reader."""
        first, *others = self.name.split("_")
        return first + "".join(word.capitalize() for word in others)


RETENTION: Final = Option(
    "retention", "duration", "offsets.retention.minutes of the brokers", default="7d", least_ms=60_000
)
"""The shortest retention. Brokers accept whole minutes, at least one (`OffsetConfig`)."""

USUAL_DELETE_RETENTION: Final = "1d"
"""The brokers' default (`log.cleaner.delete.retention.ms`)."""

REPLAYED: Final = """\
The log is replayed in order from its beginning, or from the earliest checkpoint after it. The quorum may not have
agreed on the last milliseconds of a log on disk.
"""
"""The beginning of the `rules` of tables about the cluster."""

SHOW_SECRETS: Final = Option("show_secrets", "flag", "show passwords and other possible secrets")

DELETE_RETENTION: Final = Option(
    "delete_retention", "duration", "delete.retention.ms of the topic", default=USUAL_DELETE_RETENTION
)
"""An option for streams of any table."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table called `name`, over the records of one `topic`.

    Engines derive all other information from these fields and from the class that reads the table
    (`reader.TableReader`).
    """

    name: str
    topic: str
    about: str
    """A one-line description, for a list of tables."""
    helper: Helper
    records: tuple[str, ...]
    """The names of the records that the table uses."""
    reads: tuple[str, ...]
    """The columns of raw rows that the table needs."""
    columns: tuple[Column, ...]
    sort: tuple[str, ...]
    """The columns that sort the rows for people."""
    group: str | None
    """The column with the group, or another object named by the first field of every key."""
    rules: str
    """Paragraphs that explain which rows there are, by which rules of Kafka, and what the log cannot show."""
    module: str
    """The module with this declaration, which is named TABLE there. In a user's own table, the module also has the
    class `Reader` (`reader.TableReader`)."""
    details: tuple[str, ...] = ("log_partition", "log_offset")
    """The columns that a narrow terminal omits first."""
    essential: tuple[str, ...] = ()
    """The columns without which a row is useless. A terminal too narrow for them shows one value per line."""
    inputs: tuple[str, ...] = ()
    """For a view, the names of the tables whose rows it joins. Options of the view are passed to inputs with the same
    option."""
    optional_inputs: tuple[str, ...] = ()
    """The `inputs` whose topic may be missing. The view then reports what its answer lacks."""
    needed_without_details: bool = False
    """Whether a source without `log_details` must have the topics of `optional_inputs`."""
    join_keys: tuple[str, ...] = ()
    """For a view, the columns by which the rows of all inputs are joined; empty if all rows belong together."""
    group_inputs: tuple[str, ...] = ()
    """The inputs of a view for which only rows of the requested groups are needed. Of other inputs, all rows are read,
    and groups are selected after the join."""
    options: tuple[Option, ...] = ()
    """The options of this table, in addition to those of every table. Their values are in `Context.question`."""
    follows_clock: bool = False
    """Whether rows change over time even if no log changes."""

    @property
    def is_history(self) -> bool:
        """Whether rows are about the past, so that a cleaner eventually removes the records of some of them."""
        return self.helper in ("facts", "history")

    def not_asked(self, options: Mapping[str, Any]) -> frozenset[str]:
        """The inputs of a view that are not read with these option values."""
        left = (option for option in self.options if options.get(option.name) is None)
        return frozenset(name for option in left for name in option.adds)

    @property
    def needs_transactions(self) -> bool:
        """Whether rows depend on how transactions ended: true if the table, or an input of the view, reads the producer
        and the transaction of records. The source must then report how each transaction ended."""
        return {"producer_id", "transaction"} <= {*self.reads}

    @property
    def code(self) -> Any:
        """The module with the class `Reader` or, for a view, the function `joined`."""
        package, _, name = self.module.rpartition(".")
        is_ours = f"{package}.readers" == READERS and not self.inputs
        return import_module(f"{READERS}.{name}" if is_ours else self.module)

    @property
    def reader(self) -> type[TableReader]:
        """The class that reads the table. A view does not read logs itself."""
        reader: type[TableReader] = TableReader if self.inputs else self.code.Reader
        return reader

    @property
    def names_earlier(self) -> bool:
        """Whether a row depends only on the state before its record and on some earlier records, but not on later ones.
        The function `named_later` next to the reader returns the places of these earlier records."""
        return not self.inputs and hasattr(self.code, "named_later")

    def joined(self, parts: Mapping[str, Any], context: Context) -> Iterator[Any]:
        """The rows of a view as `pyarrow.RecordBatch`es of `schema`, in no particular order.

        `parts` has a `pyarrow.Table` for each of `inputs`: all rows, or the rows with certain values of `join_keys`. So
        the rule of a view sees only rows with the same values in these columns. It may use the time and the options in
        the context. Its findings are reported if an engine passes all rows at once.
        """
        yield from self.code.joined(parts, context)

    @property
    def folder(self) -> str:
        """The folder of the generated package with the schemas of the topic's records."""
        return self.topic.strip("_")

    @property
    def schema(self) -> Any:
        """The `pyarrow.Schema` of the rows. The meaning of each field is its metadata `comment`."""
        from kafka_records_tables.tables.column_types import arrow_schema

        return arrow_schema(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that identify a row: those that sort the rows, and the log partition, because a group may be in
        two."""
        of_log = ("log_partition",) if "log_partition" in self.names else ()
        return tuple(dict.fromkeys((*self.sort, *of_log)))


def is_of_last_records(table: Table) -> bool:
    """Whether a table needs only the last records of each key."""
    return table.reader.last_of_key and not table.names_earlier


def can_go_on(table: Table) -> bool:
    """Whether a table can continue with later rows if it keeps some of the earlier ones (`carried_rows`) or its own
    state."""
    is_by_rows = table.helper == "facts" or table.reader.last_of_key or table.names_earlier
    return is_by_rows or table.reader.form_of_kept is not None


def timestamps(name: str, about: str) -> tuple[Column, Column]:
    """Two columns for one time: `<name>_timestamp` for people and `<name>_timestamp_ms` for programs."""
    when, _, null = about.partition("; ")
    return (
        Column(f"{name}_timestamp", "timestamp", f"{about}; null outside the years 1 to 9999"),
        Column(f"{name}_timestamp_ms", "int64", f"{when}, in milliseconds since 1970{null and f'; {null}'}"),
    )


GROUP_KINDS: Final = ("classic", "simple", "consumer", "share", "streams")
"""The possible values of a column with the kind of a group."""

LOG_PLACE = (
    Column("log_partition", "int32", "partition of the coordinator's topic that holds the record"),
    Column("log_offset", "int64", "offset of the record in that partition"),
)
"""The position of the record from which a row is made."""
