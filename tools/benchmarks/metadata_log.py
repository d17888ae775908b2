#!/usr/bin/env python3
"""Time the tables of a metadata log, compared with a bare read of it, in processor time. See `--help`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from struct import pack
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the root

from kafka_records.cluster_metadata import encode_record  # noqa: E402
from kafka_records.cluster_metadata.config_record import ConfigRecord  # noqa: E402
from kafka_records.cluster_metadata.partition_change_record import PartitionChangeRecord  # noqa: E402
from kafka_records.cluster_metadata.partition_record import PartitionRecord  # noqa: E402
from kafka_records.cluster_metadata.topic_record import TopicRecord  # noqa: E402
from kafka_records_engine.log.format.crc import crc32c  # noqa: E402
from kafka_records_engine.sources import Context  # noqa: E402
from kafka_records_engine.sources.segment_files import Segments  # noqa: E402
from kafka_records_runtime.kafka.uuids import Uuid  # noqa: E402
from kafka_records_tables.tables import TABLES  # noqa: E402
from kafka_records_tables.tables.table_reading import rows_of  # noqa: E402
from tools.benchmarks._figures import positive, table  # noqa: E402

_TOPIC: Final = "__cluster_metadata"
_NAMES: Final = ("topics", "partitions", "configs", "brokers", "features")
_GOALS: Final = {"topics": 3.0}
_OF_TOPIC, _IN_BATCH, _BROKERS, _REPLICAS = 10, 200, 9, 3
_EPILOG: Final = """\
The log has a topic for every ten partitions and a config for every fifth topic. Everything runs in one process, the
reader and the tables in turns; cells are the best of the rounds. The bare reader gives all rows with the columns that
the tables need.

exit status: 0 goals are met, 1 a goal is missed
"""


def values(partitions: int, changes: int) -> list[bytes]:
    """The values of the records of a metadata log."""
    random = Random(1)
    made: list[Any] = []
    ids = [Uuid(random.randbytes(16)) for _ in range(partitions // _OF_TOPIC)]
    for number, topic_id in enumerate(ids):
        made.append(TopicRecord(f"topic-{number}", topic_id))
        for partition in range(_OF_TOPIC):
            replicas = tuple(random.sample(range(_BROKERS), _REPLICAS))
            directories = tuple(Uuid(random.randbytes(16)) for _ in replicas)
            made.append(
                PartitionRecord(
                    partition_id=partition,
                    topic_id=topic_id,
                    replicas=replicas,
                    isr=replicas,
                    leader=replicas[0],
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=directories,
                )
            )
        if number % 5 == 0:
            made.append(ConfigRecord(2, f"topic-{number}", "retention.ms", "3600000"))
    for number in range(changes):
        made += [PartitionChangeRecord(part, each, leader=number % 2) for each in ids for part in range(_OF_TOPIC)]
    return [encode_record(None, message)[1] or b"" for message in made]


def zigzag(number: int) -> bytes:
    """A signed varint."""
    rest, out = (number << 1) ^ (number >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes((*out, rest))


def batch(offset: int, some: Sequence[bytes]) -> bytes:
    """A record batch of magic 2."""
    records = b""
    for number, value in enumerate(some):
        parts = (zigzag(0), zigzag(number), zigzag(-1), zigzag(len(value)), value)
        body = b"\0" + b"".join(parts) + zigzag(0)
        records += zigzag(len(body)) + body
    time_ms = 1_700_000_000_000 + offset
    tail = pack(">hiqqqhii", 0, len(some) - 1, time_ms, time_ms, -1, -1, -1, len(some)) + records
    head = pack(">ibI", 1, 2, crc32c(tail)) + tail
    return pack(">qi", offset, len(head)) + head


def write(folder: Path, partitions: int, changes: int) -> int:
    """Write the log; returns its number of records."""
    made = values(partitions, changes)
    place = folder / f"{_TOPIC}-0"
    place.mkdir(parents=True)
    with (place / f"{0:020}.log").open("wb") as file:
        for start in range(0, len(made), _IN_BATCH):
            file.write(batch(start, made[start : start + _IN_BATCH]))
    return len(made)


def read(folder: Path, name: str | None) -> int:
    """Read the log, bare or as a table; returns the number of rows."""
    (log,) = Segments(folder).partitions(_TOPIC)
    context = Context(topic=_TOPIC)
    if name is None:
        return sum(part.num_rows for part in log.batches(context, TABLES["topics"].reads))
    rows = log.batches(context, TABLES[name].reads)
    return sum(part.num_rows for part in rows_of(TABLES[name], rows, context))


def seconds(work: Callable[[], int]) -> float:
    """The processor time of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; returns the exit status."""
    parser = argparse.ArgumentParser(
        description="Time the tables of a metadata log, compared with a bare read of it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--partitions", type=positive(int), default=100_000, help="number of partitions (default 100000)"
    )
    parser.add_argument("--changes", type=int, default=0, help="number of leader changes per partition (default 0)")
    parser.add_argument(
        "--rounds", type=positive(int), default=5, help="number of measurements, of which the best counts (default 5)"
    )
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        count = write(folder, asked.partitions, asked.changes)
        best = dict.fromkeys((None, *_NAMES), float("inf"))
        for _ in range(asked.rounds):
            for name in best:
                best[name] = min(best[name], seconds(lambda name=name: read(folder, name)))  # type: ignore[misc]
        rows = {name: read(folder, name) for name in _NAMES}
    bare = best[None]
    lines = [
        [name, str(rows[name]), f"{best[name]:.3f}", f"{best[name] / bare:.2f}", _judged(name, best[name] / bare)]
        for name in _NAMES
    ]
    print(f"{count} records, read bare in {bare:.3f} s of processor time\n")
    print(table([["table", "rows", "s", "×", "goal"], *lines]))
    return 1 if any(best[name] / bare > goal for name, goal in _GOALS.items()) else 0


def _judged(name: str, ratio: float) -> str:
    goal = _GOALS.get(name)
    return "" if goal is None else f"≤ {goal:g} ×: {'met' if ratio <= goal else 'missed'}"


if __name__ == "__main__":
    sys.exit(main())
