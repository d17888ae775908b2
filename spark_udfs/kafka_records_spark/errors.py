"""What the Spark functions raise, beside the errors of the runtime."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_records_runtime.errors import KafkaRecordsError


class UnsupportedType(KafkaRecordsError, TypeError):
    """A field (`path`, inside `message_name`) whose type has no column type, for the `reason` given."""

    def __init__(self, message_name: str, path: str, reason: str) -> None:
        super().__init__(message_name, path, reason)
        self.message_name = message_name
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.message_name}: {self.path} {self.reason}"


class UnknownRecord(KafkaRecordsError, ValueError):
    """A record asked for by a `name` that is not among the `known` ones."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = tuple(sorted(known))
        super().__init__(name, names)
        self.name = name
        self.known = names

    def __str__(self) -> str:
        return f"no record is called {self.name!r}; the records are {', '.join(self.known)}"


class ColumnClash(KafkaRecordsError, ValueError):
    """Two columns of one decoded row that would have the same `name`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"two columns would be called {self.name!r}: decode the records that share it one at a time"


class MissingColumn(KafkaRecordsError, ValueError):
    """A DataFrame without the column `name`, which nothing can stand in for."""

    def __init__(self, name: str, remedy: str) -> None:
        super().__init__(name, remedy)
        self.name = name
        self.remedy = remedy

    def __str__(self) -> str:
        return f"the DataFrame has no column {self.name!r}: {self.remedy}"


class UndecodableRecord(KafkaRecordsError, ValueError):
    """The record that ended a query under FAILFAST: where it stands, and the text of the error it met (`reason`)."""

    def __init__(self, topic: str | None, partition: int | None, offset: int | None, reason: str) -> None:
        super().__init__(topic, partition, offset, reason)
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} offset {self.offset}: {self.reason}"


class WorkerPython(KafkaRecordsError, RuntimeError):
    """Workers would run an interpreter (`python`) that does not find this package."""

    def __init__(self, python: str) -> None:
        super().__init__(python)
        self.python = python

    def __str__(self) -> str:
        return (
            f"Spark's workers would run {self.python}, which cannot import kafka_records_spark, numpy and pyarrow: "
            'set os.environ["PYSPARK_PYTHON"] = sys.executable before the session starts'
        )
