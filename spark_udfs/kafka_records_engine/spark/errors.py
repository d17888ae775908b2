"""Errors that the Spark functions raise in addition to those of the runtime."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_records_engine.columns import UnsupportedType as UnsupportedType
from kafka_records_runtime.close_names import close_name
from kafka_records_runtime.config_names import REDACTED
from kafka_records_runtime.errors import EncodeError, KafkaRecordsError


class UnknownRecord(KafkaRecordsError, ValueError):
    """A record asked for by a `name` that is not among the `known` ones."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = tuple(sorted(known))
        super().__init__(name, names)
        self.name = name
        self.known = names

    def __str__(self) -> str:
        meant = close_name(self.name, self.known)
        hint = "the" if meant is None else f"did you mean {meant}? The"
        return f"no record is called {self.name!r}; {hint} records are {', '.join(self.known)}"


class ColumnClash(KafkaRecordsError, ValueError):
    """Two columns of one decoded row that would have the same `name`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"two columns would be called {self.name!r}: decode the records that share it one at a time"


class MissingColumn(KafkaRecordsError, ValueError):
    """A DataFrame without the column `name`, which nothing can are in for."""

    def __init__(self, name: str, remedy: str) -> None:
        super().__init__(name, remedy)
        self.name = name
        self.remedy = remedy

    def __str__(self) -> str:
        return f"the DataFrame has no column {self.name!r}: {self.remedy}"


class WrongColumnType(KafkaRecordsError, TypeError):
    """A DataFrame whose column `name` has the type `found`, where raw rows have `wanted` (both as Spark's DDL)."""

    def __init__(self, name: str, found: str, wanted: str) -> None:
        super().__init__(name, found, wanted)
        self.name = name
        self.found = found
        self.wanted = wanted

    def __str__(self) -> str:
        return (
            f"the column {self.name!r} is {self.found}, that of raw rows {self.wanted}; "
            "kafka_records_engine.spark.raw.as_raw_rows makes raw rows"
        )


class UndecodableRecord(KafkaRecordsError, ValueError):
    """The record that ended a query under FAILFAST: where it is, and the text of the error it met (`detail`)."""

    def __init__(self, topic: str | None, partition: int | None, offset: int | None, detail: str) -> None:
        super().__init__(topic, partition, offset, detail)
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} offset {self.offset}: {self.detail}"


class WrongTopic(KafkaRecordsError, ValueError):
    """A row that names another topic than the one whose records are decoded (`expected`)."""

    def __init__(self, expected: str) -> None:
        super().__init__(expected)
        self.expected = expected

    def __str__(self) -> str:
        return (
            f"the row is of another topic than {self.expected}, whose records have other types: leave rows of other "
            "topics out, or name the topic that these records came from (topic=…)"
        )


class WorkerPython(KafkaRecordsError, RuntimeError):
    """Workers would run an interpreter (`python`) that does not find this package."""

    def __init__(self, python: str) -> None:
        super().__init__(python)
        self.python = python

    def __str__(self) -> str:
        return (
            f"Spark's workers would run {self.python}, which cannot import kafka_records_engine, numpy and pyarrow: "
            'set os.environ["PYSPARK_PYTHON"] = sys.executable before the session starts'
        )


class UnsupportedSpark(KafkaRecordsError, RuntimeError):
    """A `function` that the installed PySpark (`version`) has no means to run, as those from `since` on have; `instead`
    says what to do."""

    def __init__(self, function: str, version: str, instead: str | None = None, since: str = "4.1") -> None:
        super().__init__(function, version, instead, since)
        self.function = function
        self.version = version
        self.instead = instead
        self.since = since

    def __str__(self) -> str:
        remedy = "" if self.instead is None else f": {self.instead}"
        return f"{self.function} needs PySpark {self.since} or later, this is {self.version}{remedy}"


class NoJvmFunctions(KafkaRecordsError, RuntimeError):
    """Functions in the JVM were asked for where a session cannot have them (`why`)."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"no functions in the JVM: {self.why}; engine='python' decodes without them"


class MissingField(EncodeError):
    """A struct column that lacks the `field` of the struct at `path`, which the version writes for every value."""

    def __init__(self, message_name: str, version: int | None, path: str, field: str) -> None:
        super().__init__(message_name, version, path, field)
        self.field = field

    @property
    def detail(self) -> str:
        return f"lacks the field {self.field!r}"


class InvalidUuid(EncodeError):
    """A `text` that is not a uuid as Kafka prints it."""

    def __init__(self, message_name: str, version: int | None, path: str, text: str) -> None:
        super().__init__(message_name, version, path, text)
        self.text = text

    @property
    def detail(self) -> str:
        return f"is {self.text!r}, a uuid is 22 characters of URL-safe base64"


class RedactedValue(EncodeError):
    """A secret of which a text is in its place: decoding has hidden it."""

    @property
    def detail(self) -> str:
        return f"is {REDACTED} in place of a secret: decode it with show_secrets"
