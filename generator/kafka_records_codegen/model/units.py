"""Groups messages: determines which ones share a module, and which share a reference page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kafka_records_codegen.model.messages import Folder, Message, RecordPair
from kafka_records_codegen.model.naming import module_name
from kafka_records_runtime.records.framing import METADATA


@dataclass(frozen=True)
class Unit:
    """The contents of one module: the key and value of a record, or one other message."""

    name: str
    title: str
    messages: tuple[Message, ...]
    record: RecordPair | None = None

    @property
    def is_stored(self) -> bool:
        """Whether its messages are stored in topics, and so have Spark functions."""
        return self.messages[0].is_stored


@dataclass(frozen=True)
class Page:
    """The contents of one reference page: a record, a request with its response, or one other message.

    `path` is the path below the folder of all pages. `record` is None unless the page is about a record.
    """

    path: str
    title: str
    units: tuple[Unit, ...]
    record: RecordPair | None = None

    @property
    def record_type(self) -> int | None:
        """The type number of the record; None if the page is not about a record."""
        return None if self.record is None else self.record.type

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(message for unit in self.units for message in unit.messages)

    @property
    def is_api(self) -> bool:
        """Whether the page is about a request or a response."""
        return self.messages[0].type in ("request", "response")


def units(folder: Folder) -> Iterator[Unit]:
    """The modules of a folder, records first and by type."""
    paired = set()
    for record in folder.records:
        paired |= {message.name for message in record.messages}
        title = f"{record.name}: records of type {record.type}."
        if record.framing == METADATA:
            title = f"{record.name}: metadata records of api key {record.type}."
        yield Unit(module_name(record.name), title, record.messages, record)
    for message in folder.messages:
        if message.name not in paired:
            yield Unit(module_name(message.name), f"{message.name}.", (message,))


def pages(folder: Folder) -> Iterator[Page]:
    """The pages of a folder: records by type, then requests by API key, then other messages by spec name."""
    everything = list(units(folder))
    for unit in everything:
        if unit.record is not None:
            yield Page(_path(folder, unit.name), unit.record.name, (unit,), unit.record)
    yield from _apis(folder, everything)
    for unit in everything:
        if unit.record is None and unit.messages[0].type not in ("request", "response"):
            yield Page(_path(folder, unit.name), unit.messages[0].name, (unit,))


def _apis(folder: Folder, everything: list[Unit]) -> Iterator[Page]:
    taken = {unit.name for unit in everything}
    by_key: dict[int, list[Unit]] = {}
    for unit in everything:
        message = unit.messages[0]
        if message.type in ("request", "response"):
            by_key.setdefault(-1 if message.api_key is None else message.api_key, []).append(unit)
    for _, members in sorted(by_key.items()):
        members.sort(key=lambda unit: unit.messages[0].type)
        title = members[0].messages[0].name.removesuffix("Request")
        if len(members) == 2 and title and module_name(title) not in taken:
            taken.add(module_name(title))
            yield Page(_path(folder, module_name(title)), title, tuple(members))
            continue
        for unit in members:
            yield Page(_path(folder, unit.name), unit.messages[0].name, (unit,))


def _path(folder: Folder, name: str) -> str:
    return f"{folder.path}/{name}.md".lstrip("/")
