"""Names of topics by their ids, out of the `partition.metadata` files that a broker keeps beside its logs."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from kafka_records_engine.log.opened import FrozenFile
from kafka_records_runtime.uuids import ZERO_UUID, Uuid

_FILE: Final = "partition.metadata"
_FOLDER: Final = re.compile(r"(.+)-[0-9]{1,10}")
_TOPIC_ID: Final = re.compile(r"^topic_id: ([A-Za-z0-9_-]{22})$", re.MULTILINE)
_LARGEST: Final = 1024
_AGAIN_AFTER: Final = 5.0
"""Seconds after which an id that was not there is looked for once more: topics are created while a log is followed."""


class TopicNames:
    """The topics in some data directories (`PartitionMetadataFile`), which are looked at when the first id turns up."""

    def __init__(self, directories: Iterable[str], known: Mapping[str, str] | None = None) -> None:
        """`known` are names by the texts of their ids."""
        self._directories = sorted(set(directories))
        self._names = dict(known or {})
        self._looked: float | None = None

    def of(self, *values: Any) -> dict[str, str]:
        """The names of the topics whose ids stand in `topic_id` fields of decoded values, those that are known."""
        ids = {str(found) for value in values for found in _ids(value)}
        if not ids:
            return {}
        is_due = self._looked is None or time.monotonic() - self._looked > _AGAIN_AFTER
        if is_due and not ids <= self._names.keys():
            self._look()
        return {each: self._names[each] for each in sorted(ids) if each in self._names}

    def _look(self) -> None:
        self._looked = time.monotonic()
        for directory in self._directories:
            topics: set[str] = set()
            for topic, folder in _folders(directory):
                if topic in topics:
                    continue
                number = _topic_id(os.path.join(folder, _FILE))
                if number is not None:
                    topics.add(topic)
                    self._names[number] = topic


def _folders(directory: str) -> Iterator[tuple[str, str]]:
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            match = _FOLDER.fullmatch(entry.name)
            if match:
                yield match[1], entry.path


def _topic_id(path: str) -> str | None:
    try:
        with FrozenFile(path) as file:
            text = file.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return None
    match = _TOPIC_ID.search(text)
    return match[1] if match else None


def _ids(value: Any) -> Iterator[Uuid]:
    if isinstance(value, dict):
        for name, item in value.items():
            if isinstance(item, Uuid):
                if name == "topic_id" and item != ZERO_UUID:
                    yield item
            elif isinstance(item, dict | tuple):
                yield from _ids(item)
    elif isinstance(value, tuple):
        for item in value:
            if isinstance(item, dict):
                yield from _ids(item)
