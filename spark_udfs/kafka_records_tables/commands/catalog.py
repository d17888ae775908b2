"""Determines which topics can be read, and where the schemas of their records are: in Kafka's package or another
one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, cast

from kafka_records_tables.console.endings import CommandError, UsageError
from kafka_records_tables.near_names import did_you_mean

if TYPE_CHECKING:
    from kafka_records_runtime.schema import MessageSchema, RecordSchema, RetiredType

KAFKA: Final = "kafka_records"
"""The package of Kafka's own records."""

_COORDINATORS: Final[Mapping[str, str]] = {
    "__consumer_offsets": "consumer_offsets",
    "__share_group_state": "share_group_state",
    "__transaction_state": "transaction_state",
}

_CONTROLLERS: Final[Mapping[str, str]] = {
    "__cluster_metadata": "cluster_metadata",
    "__remote_log_metadata": "remote_log_metadata",
}
"""The topics whose records have no keys."""

_TOPICS: Final[Mapping[str, str]] = {**_COORDINATORS, **_CONTROLLERS}

TOPICS_TEXT: Final = ", ".join([*_COORDINATORS][:-1]) + f" and {[*_COORDINATORS][-1]}"


@dataclass(frozen=True)
class Catalog:
    """The record types of topics, by the schemas of one generated package.

    In Kafka's package, the topics are those of the coordinators, by name. In another package, a topic belongs to the
    folder of specs with its name (`__accounts` and `accounts` to `accounts`, `my-orders` to `my_orders`), unless
    `folder` says that every topic belongs to it. Record types are numbered per folder.
    """

    package: str = KAFKA
    folder: str | None = None

    @property
    def is_kafka(self) -> bool:
        """Whether these are Kafka's own schemas, for records written by brokers."""
        return self.package == KAFKA and self.folder is None

    @property
    def folders(self) -> list[str]:
        """The folders of specs that contain records."""
        if self.is_kafka:
            return [*_TOPICS.values()]
        from pkgutil import iter_modules

        schemas = import_module(f"{self.package}.schemas")
        names = sorted(found.name for found in iter_modules(schemas.__path__))
        return [name for name in names if hasattr(import_module(f"{self.package}.schemas.{name}"), "RECORDS")]

    @property
    def text(self) -> str:
        """The topics that can be read, as text for messages."""
        if self.is_kafka:
            return f"the coordinators' topics {TOPICS_TEXT}"
        return f"the topics of {self.package} ({', '.join(self.folders)})"

    def folder_of(self, topic: str) -> str | None:
        """The folder of specs whose records a topic contains; None for an unknown topic."""
        if self.is_kafka:
            return _TOPICS.get(topic)
        if self.folder is not None:
            return self.folder
        name = topic.lstrip("_").replace("-", "_").replace(".", "_").lower()
        return name if name in self.folders else None

    def checked(self, topic: str) -> str:
        """Return `topic`. Raises a UsageError unless its records are known."""
        if self.folder_of(topic) is None:
            if self.is_kafka:
                close = did_you_mean(topic, _TOPICS)
                raise UsageError(f"{topic} is not a topic of Kafka's coordinators: those are {TOPICS_TEXT}{close}")
            raise UsageError(
                f"{self.package} has no folder named after {topic}, only {', '.join(self.folders)}; choose one with "
                f"--package {self.package}.FOLDER"
            )
        return topic

    def records(self, topic: str) -> Mapping[int, RecordSchema]:
        """The record types of a topic, by number."""
        return self._records(cast(str, self.folder_of(self.checked(topic))))

    def retired(self, topic: str) -> Mapping[int, RetiredType]:
        """The record types of a topic that Kafka no longer uses and that have no schema, by number."""
        return self._retired(cast(str, self.folder_of(self.checked(topic))))

    def _records(self, folder: str) -> Mapping[int, RecordSchema]:
        return cast("Mapping[int, RecordSchema]", self._schemas(folder).RECORDS)

    def _retired(self, folder: str) -> Mapping[int, RetiredType]:
        return cast("Mapping[int, RetiredType]", self._schemas(folder).RETIRED_TYPES)

    def _schemas(self, folder: str) -> Any:
        return import_module(f"{self.package}.schemas.{folder}")

    @property
    def record_names(self) -> set[str]:
        """The names of all record types."""
        folders = [self.folder] if self.folder else self.folders
        known = {record.name for folder in folders for record in self._records(folder).values()}
        return known.union(retired.name for folder in folders for retired in self._retired(folder).values())

    def message(self, name: str) -> MessageSchema:
        """The schema of the message with this name in the specs. Raises a CommandError that suggests similar names."""
        from kafka_records_runtime.schema import MessageSchema

        messages: Mapping[str, tuple[str, str]] = import_module(f"{self.package}.registry").MESSAGES
        if name not in messages:
            close = did_you_mean(name, messages) or f"; there are {', '.join(sorted(messages))}"
            raise CommandError(f"no message is called {name}{close}")
        module = messages[name][0].removeprefix(f"{self.package}.")
        schemas = vars(import_module(f"{self.package}.schemas.{module}")).values()
        return next(each for each in schemas if isinstance(each, MessageSchema) and each.name == name)


def catalog_of(package: str) -> Catalog:
    """The catalog of the option --package. Raises a CommandError if there is no such generated package."""
    if package == KAFKA:
        return Catalog()
    if _is_generated(package):
        return Catalog(package)
    name, _, folder = package.rpartition(".")
    if name and _is_generated(name):
        folders = Catalog(name).folders
        if folder not in folders:
            close = did_you_mean(folder, folders) or f": those are {', '.join(folders) or 'none'}"
            raise CommandError(f"--package {package}: {name} has no records in the folder {folder}{close}")
        return Catalog(name, folder)
    raise CommandError(
        f"--package {package}: Python finds no package of this name generated by kafka-records-codegen: add its "
        "directory to PYTHONPATH"
    )


def _is_generated(package: str) -> bool:
    try:
        return all(find_spec(f"{package}.{part}") is not None for part in ("schemas", "registry"))
    except (ImportError, ValueError):
        return False
