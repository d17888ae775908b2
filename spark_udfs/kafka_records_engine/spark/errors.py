"""Errors that the Spark functions raise in addition to those of the runtime."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_records_engine.columns import UnsupportedType as UnsupportedType
from kafka_records_runtime.errors import EncodeError, KafkaRecordsError
from kafka_records_runtime.kafka.config_names import REDACTED
from kafka_records_runtime.text.close_names import close_name


class UnknownRecord(KafkaRecordsError, ValueError):
    """A requested record has an unknown `name`; `known` lists the valid names."""

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
    """Two columns of a decoded row would have the same `name`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"two columns would be called {self.name!r}: decode the records that share it one at a time"


class MissingColumn(KafkaRecordsError, ValueError):
    """A DataFrame has no column `name`, which is required."""

    def __init__(self, name: str, remedy: str) -> None:
        super().__init__(name, remedy)
        self.name = name
        self.remedy = remedy

    def __str__(self) -> str:
        return f"the DataFrame has no column {self.name!r}: {self.remedy}"


class WrongColumnType(KafkaRecordsError, TypeError):
    """The column `name` of a DataFrame has the type `found` instead of `wanted`, the type in raw rows (both in Spark's
    DDL)."""

    def __init__(self, name: str, found: str, wanted: str) -> None:
        super().__init__(name, found, wanted)
        self.name = name
        self.found = found
        self.wanted = wanted

    def __str__(self) -> str:
        return (
            f"the column {self.name!r} has the type {self.found}, but raw rows have {self.wanted}: convert them with "
            "kafka_records_engine.spark.raw.as_raw_rows"
        )


class UndecodableRecord(KafkaRecordsError, ValueError):
    """A record ended a query under FAILFAST. The error contains the place of the record and the text of its error
    (`detail`)."""

    def __init__(self, topic: str | None, partition: int | None, offset: int | None, detail: str) -> None:
        super().__init__(topic, partition, offset, detail)
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} offset {self.offset}: {self.detail}"


class WrongTopic(KafkaRecordsError, ValueError):
    """A row belongs to a topic other than `expected`, the one being decoded."""

    def __init__(self, expected: str) -> None:
        super().__init__(expected)
        self.expected = expected

    def __str__(self) -> str:
        return (
            f"the row is of another topic than {self.expected}, whose records have other types: leave rows of other "
            "topics out, or name the topic that these records came from (topic=…)"
        )


class WorkerPython(KafkaRecordsError, RuntimeError):
    """Workers would run an interpreter (`python`) that cannot import this package."""

    def __init__(self, python: str) -> None:
        super().__init__(python)
        self.python = python

    def __str__(self) -> str:
        return (
            f"Spark's workers would run {self.python}, which cannot import kafka_records_engine, numpy and pyarrow: "
            'set os.environ["PYSPARK_PYTHON"] = sys.executable before the session starts'
        )


class UnsupportedSpark(KafkaRecordsError, RuntimeError):
    """The installed PySpark (`version`) is older than `since` and cannot run `function`; `instead` says what to do."""

    def __init__(self, function: str, version: str, instead: str | None = None, since: str = "4.1") -> None:
        super().__init__(function, version, instead, since)
        self.function = function
        self.version = version
        self.instead = instead
        self.since = since

    def __str__(self) -> str:
        remedy = "" if self.instead is None else f": {self.instead}"
        return f"{self.function} needs PySpark {self.since} or later, but this is {self.version}{remedy}"


class NoJvmFunctions(KafkaRecordsError, RuntimeError):
    """JVM functions were requested, but are not available in this session (`why`)."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"no functions in the JVM: {self.why}; engine='python' decodes without them"


class MissingField(EncodeError):
    """In a struct column, the struct at `path` lacks a `field` that every value of this version has."""

    def __init__(self, message_name: str, version: int | None, path: str, field: str) -> None:
        super().__init__(message_name, version, path, field)
        self.field = field

    @property
    def detail(self) -> str:
        return f"lacks the field {self.field!r}"


class InvalidUuid(EncodeError):
    """The `text` is not a uuid in Kafka's form."""

    def __init__(self, message_name: str, version: int | None, path: str, text: str) -> None:
        super().__init__(message_name, version, path, text)
        self.text = text

    @property
    def detail(self) -> str:
        return f"is {self.text!r}, but a uuid is 22 characters of URL-safe base64"


class RedactedValue(EncodeError):
    """The value to encode contains the replacement for a secret that was hidden by decoding."""

    @property
    def detail(self) -> str:
        return f"is {REDACTED} instead of a secret: decode it with show_secrets"
