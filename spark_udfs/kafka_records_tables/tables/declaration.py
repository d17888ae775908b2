"""What a table says about itself: enough for `--help`, pages, column comments and the Arrow schema.

Nothing here loads numpy, pyarrow or Spark, so that a command can list its tables at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

from kafka_records_tables.tables.reader import TableReader

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

Helper = Literal["latest", "fold", "facts", "history", "ends", "view"]
"""latest: the last record of each key decides. fold: the last records of each key one after another, as a coordinator
replays them. facts: every record is a row. history: all records one after another, and rows tell what happened. ends:
no records are read, but where logs begin and end. view: it joins rows of other tables."""

EVERY_TOPIC: Final = ""
"""The topic of a table that is about the logs of all topics, and of a view."""

READERS: Final = "kafka_records_tables.tables.readers"
"""The package with the readers of our own tables, each in a module called as the table's."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    `type` is `string`, `bool`, `binary`, `int8`, `int16`, `int32`, `int64`, `float64`, `timestamp` (an instant,
    microseconds in UTC), `list<T>` or `struct<name: T, …>`. Any column may be null.
    """

    name: str
    type: str
    about: str
    """One line: what it means, its unit, and when it is null."""
    words: tuple[str, ...] = ()
    """The words that it has, where these are known; a value may be several of them with ` or ` between."""
    stopping: tuple[str, ...] = ()
    """The `words` that mean that a coordinator does not load the record. They count as damage, as a finding does
    elsewhere."""


@dataclass(frozen=True, slots=True)
class Option:
    """A question that one table answers and others have no answer to.

    `kind` says what a value is: a `moment`, a `duration`, a duration `ahead` of the moment that is asked about, one of
    some `words`, `partitions`: how many of them topics have, a `release` of Kafka, a `flag`, or `checkpoints`: where
    queries of Spark keep their offsets. Two tables that have an option of the same name mean the same by it.
    """

    name: str
    """As an argument in Python: `some_name`. The command has `--some-name`, Spark the option `someName`."""
    kind: Literal["moment", "duration", "ahead", "word", "partitions", "release", "flag", "checkpoints"]
    about: str
    """One line: what it does to the rows."""
    default: str | None = None
    """What it is where nothing is said, as people would write it."""
    words: tuple[str, ...] = ()
    not_with: tuple[str, ...] = ()
    """The options that do not go with it."""
    least_ms: int = 0
    """The shortest duration there is."""
    instead_of: tuple[str, ...] = ()
    """Of a view, the inputs whose topics need not be there if the option is given."""
    adds: tuple[str, ...] = ()
    """Of a view, the inputs that are read only if the option is given."""

    @property
    def argument(self) -> str:
        """What the command calls it, without the two hyphens in front."""
        return self.name.replace("_", "-")

    @property
    def spark_option(self) -> str:
        """What Spark's reader calls it."""
        first, *others = self.name.split("_")
        return first + "".join(word.capitalize() for word in others)


RETENTION: Final = Option(
    "retention", "duration", "offsets.retention.minutes of the brokers", default="7d", least_ms=60_000
)
"""Brokers take whole minutes, at least one (`OffsetConfig`)."""

USUAL_DELETE_RETENTION: Final = "1d"
"""What brokers have unless somebody says otherwise (`log.cleaner.delete.retention.ms`)."""

SHOW_SECRETS: Final = Option("show_secrets", "flag", "show passwords and what else may be a secret")

DELETE_RETENTION: Final = Option(
    "delete_retention", "duration", "delete.retention.ms of the topic", default=USUAL_DELETE_RETENTION
)
"""Asked of streams of any table."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table by its `name`, over the records of one `topic`.

    What engines have to know beside it follows from these fields, and from the class that reads the table
    (`reader.TableReader`).
    """

    name: str
    topic: str
    about: str
    """One line, for a list of tables."""
    helper: Helper
    records: tuple[str, ...]
    """Names of the records that are looked at."""
    reads: tuple[str, ...]
    """The columns of raw rows that it needs."""
    columns: tuple[Column, ...]
    sort: tuple[str, ...]
    """The columns that sort the rows for people."""
    group: str | None
    """The column that names the group, or what the first field of every key names instead."""
    rules: str
    """Paragraphs: which row there is, by which rule of Kafka's, and what the log cannot know."""
    module: str
    """The module of this declaration, where it is called TABLE. A table of a user's own has the class `Reader` there,
    too (`reader.TableReader`)."""
    details: tuple[str, ...] = ("log_partition", "log_offset")
    """The columns that a terminal too narrow for all does without first."""
    essential: tuple[str, ...] = ()
    """The columns without which a row is no answer: a terminal too narrow for these gets a line for each value."""
    inputs: tuple[str, ...] = ()
    """Of a view, the names of the tables whose rows it joins. An input that has an option of the view's is asked the
    same."""
    optional_inputs: tuple[str, ...] = ()
    """The `inputs` whose topic may be missing: the view then says what its answer lacks."""
    needed_without_details: bool = False
    """Whether a source that does not tell `log_details` has to have the topics of `optional_inputs`."""
    join_keys: tuple[str, ...] = ()
    """Of a view, the columns that all of its inputs have, and by which their rows belong together; none where all rows
    do."""
    group_inputs: tuple[str, ...] = ()
    """The inputs of a view from which it needs only rows of the groups that are asked for. All rows of the other inputs
    are read, and groups are chosen after the join."""
    options: tuple[Option, ...] = ()
    """What can be asked of this table beside what can be asked of every table; `Context.question` has the values."""
    follows_clock: bool = False
    """Whether rows change as time goes by, although no log does."""

    @property
    def is_history(self) -> bool:
        """Whether rows tell what happened and not what is: a cleaner takes some of them away in time."""
        return self.helper in ("facts", "history")

    def not_asked(self, options: Mapping[str, Any]) -> frozenset[str]:
        """Of a view, the inputs that are not read with these values of options."""
        left = (option for option in self.options if options.get(option.name) is None)
        return frozenset(name for option in left for name in option.adds)

    @property
    def needs_transactions(self) -> bool:
        """Whether rows depend on how transactions ended, so that a source has to tell: it reads who wrote a record, and
        in which transaction. A view depends on what its inputs do."""
        return {"producer_id", "transaction"} <= {*self.reads}

    @property
    def code(self) -> Any:
        """The module with the class `Reader`, or with the function `joined` of a view."""
        package, _, name = self.module.rpartition(".")
        is_ours = f"{package}.readers" == READERS and not self.inputs
        return import_module(f"{READERS}.{name}" if is_ours else self.module)

    @property
    def reader(self) -> type[TableReader]:
        """The class that reads it. No log is read for a view itself."""
        reader: type[TableReader] = TableReader if self.inputs else self.code.Reader
        return reader

    @property
    def names_earlier(self) -> bool:
        """Whether a row depends on the state before its record, and on some earlier records whose places the function
        `named_later` beside its reader knows, and on nothing that comes later."""
        return not self.inputs and hasattr(self.code, "named_later")

    def joined(self, parts: Mapping[str, Any], context: Context) -> Iterator[Any]:
        """The rows of a view as `pyarrow.RecordBatch`es of `schema`, in no particular order.

        `parts` has a `pyarrow.Table` for each of `inputs`: all of its rows, or those with some values of `join_keys`
        and all that other inputs have with these values. So the rule of a view looks at rows that are equal there, and
        at no others. Of the context it may ask for the moment and for options. What it reports is found where an engine
        hands over all rows at once.
        """
        yield from self.code.joined(parts, context)

    @property
    def folder(self) -> str:
        """The folder of schemas, in the generated package, that has the records of the topic."""
        return self.topic.strip("_")

    @property
    def schema(self) -> Any:
        """The `pyarrow.Schema` of the rows; every field has its meaning as the metadata `comment`."""
        from kafka_records_tables.tables.column_types import arrow_schema

        return arrow_schema(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that identify a row: the columns that sort the rows, and the log partition, as a group may be in
        two."""
        of_log = ("log_partition",) if "log_partition" in self.names else ()
        return tuple(dict.fromkeys((*self.sort, *of_log)))


def is_of_last_records(table: Table) -> bool:
    """Whether the last records of each key are all that a table needs of a log, and nothing of what was before."""
    return table.reader.last_of_key and not table.names_earlier


def can_go_on(table: Table) -> bool:
    """Whether a table can go on with the rows that come next, having kept some of those before (`carried_rows`), or
    what it has made of them."""
    is_by_rows = table.helper == "facts" or table.reader.last_of_key or table.names_earlier
    return is_by_rows or table.reader.form_of_kept is not None


def timestamps(name: str, about: str) -> tuple[Column, Column]:
    """An instant as people and as programs want it: `<name>_timestamp` and `<name>_timestamp_ms`."""
    when, _, null = about.partition("; ")
    return (
        Column(f"{name}_timestamp", "timestamp", f"{about}; null outside the years 1 to 9999"),
        Column(f"{name}_timestamp_ms", "int64", f"{when}, in milliseconds since 1970{null and f'; {null}'}"),
    )


GROUP_KINDS: Final = ("classic", "simple", "consumer", "share", "streams")
"""The words of a column that says what kind a group is."""

LOG_PLACE = (
    Column("log_partition", "int32", "partition of the topic that the record is in"),
    Column("log_offset", "int64", "offset of the record in that partition"),
)
"""The place of the record from which a row is made."""
