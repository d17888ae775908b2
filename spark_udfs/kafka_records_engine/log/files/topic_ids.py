"""Topic ids from the `partition.metadata` files that brokers write into partition folders (`PartitionMetadataFile`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from kafka_records_engine.log.files.places import Place

_FILE: Final = "partition.metadata"
_FOLDER: Final = re.compile(r"(.+)-[0-9]{1,10}")
_TOPIC_ID: Final = re.compile(r"^topic_id: ([A-Za-z0-9_-]{22})$", re.MULTILINE)
_LARGEST: Final = 1024


def topic_names(directories: Iterable[Place]) -> dict[str, str]:
    """Topic names by topic id, in Kafka's text form, for topics in these data directories that have a file with their
    id."""
    names: dict[str, str] = {}
    for directory in dict.fromkeys(directories):
        topics: set[str] = set()
        for topic, folder in _folders(directory):
            if topic not in topics and (number := topic_id(folder)) is not None:
                topics.add(topic)
                names[number] = topic
    return names


def topic_id(folder: Place) -> str | None:
    """The id of the topic of a partition folder; None if no file contains it."""
    try:
        text = folder.child(_FILE).read_bytes(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return None
    match = _TOPIC_ID.search(text)
    return match[1] if match else None


def _folders(directory: Place) -> Iterator[tuple[str, Place]]:
    with suppress(OSError):
        for entry in directory.listed():
            match = _FOLDER.fullmatch(entry.name)
            if match:
                yield match[1], directory.child(entry.name)
