"""Log partitions that fail or never end, for processes that read them; importable and picklable."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from kafka_records_engine.sources import Context
from tests.tables.topic import OFFSETS_TOPIC, Topic


class NotPortableError(Exception):
    """An error that cannot be read back from its pickle."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


@dataclass(frozen=True)
class BadLog:
    """Yields one commit at a time, and after `rows` of them does `what`: is killed, exits, raises, or continues
    forever.

    The process that reads it writes its id into `folder`.
    """

    what: str
    folder: str
    partition: int = 0
    rows: int = 3
    topic: str = OFFSETS_TOPIC
    size: int = 1000
    in_memory: bool = False

    def batches(self, context: Context, columns: Collection[str]) -> Iterator[pa.RecordBatch]:
        """See `protocol.LogPartition.batches`."""
        Path(self.folder, f"pid-{os.getpid()}").touch()
        topic = Topic()
        topic.commit(f"g{self.partition}", 1)
        (batch,) = topic.table().to_batches()
        number = 0
        while number < self.rows or self.what == "goes on":
            yield batch.set_column(2, "offset", pa.array([number]))
            number += 1
            context.progress(number)
            if self.what == "goes on":
                time.sleep(0.001)
        if self.what == "dies":
            os.kill(os.getpid(), 9)
        elif self.what == "exits":
            os._exit(3)
        elif self.what == "raises":
            raise NotPortableError("this", "that")
        elif self.what == "waits":
            logging.getLogger("kafka_records_engine.sources.far").warning("%s: waiting", self.topic)
        elif self.what == "prints":
            print("what a library says on standard output", flush=True)


@dataclass(frozen=True)
class BadLogs:
    """Some of these logs as a source."""

    logs: tuple[BadLog, ...]

    def partitions(self, topic: str) -> tuple[BadLog, ...]:
        """All logs."""
        return self.logs
