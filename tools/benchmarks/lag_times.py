#!/usr/bin/env python3
"""Time `lag` over a data directory with and without times. See `--help`.

Both read the same commits and the same ends of logs, in turns. Without times, the source does not report what is left
to read. With times, the headers of the batches after the committed offsets are read. All partitions of topics are links
to the files of one partition, so that the files take space only once.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from struct import Struct
from typing import Any, Final

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the root

from kafka_records.consumer_offsets import encode_record  # noqa: E402
from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue  # noqa: E402
from kafka_records_engine.log.format.crc import crc32c  # noqa: E402
from kafka_records_engine.sources.protocol import Context, LogEnds, LogPartition, LogStarts  # noqa: E402
from kafka_records_engine.sources.segment_files import Segments  # noqa: E402
from kafka_records_runtime.kafka.partitioner import partition_for  # noqa: E402
from kafka_records_tables import read_table  # noqa: E402
from tools.benchmarks._figures import machine, positive, table  # noqa: E402
from tools.segments.pool import varint  # noqa: E402

GOAL: Final = 1.2
_LOGS: Final = 8
"""Partitions of `__consumer_offsets`."""
_TOPIC_PARTITIONS: Final = 10
_BATCHES: Final = 300
_RECORDS: Final = 20
"""The number of records in each batch of a topic."""
_VALUE: Final = bytes(60)
_COMMITS: Final = 200
"""The number of commits in each batch of `__consumer_offsets`."""
_INTERVAL: Final = 4096
_START_MS: Final = 1_700_000_000_000
_HEAD: Final = Struct(">qiibIhiqqqhii")
_INDEX_ENTRY: Final = Struct(">ii")


@dataclass(frozen=True)
class WithoutTimes:
    """The same data directory, as a source that does not report what is left to read."""

    segments: Segments

    @property
    def name(self) -> str:
        """The path."""
        return self.segments.name

    def topics(self) -> list[str]:
        """All topics."""
        return self.segments.topics()

    def known_topics(self) -> Any:
        """The names of topics by id."""
        return self.segments.known_topics()

    def partitions(self, topic: str) -> Sequence[LogPartition]:
        """The log partitions of a topic."""
        return self.segments.partitions(topic)

    def log_starts(self, topics: Sequence[str] | None) -> LogStarts:
        """The starts of logs."""
        return self.segments.log_starts(topics)

    def log_ends(self, topics: Sequence[str], context: Context) -> Iterator[LogEnds]:
        """The ends of logs."""
        return self.segments.log_ends(topics, context)


def write_directory(folder: Path, groups: int, offsets: int, partitions: int, batches: int = _BATCHES) -> None:
    """Write a data directory with the given numbers of groups, of committed offsets, of partitions of topics, and of
    batches in each partition."""
    folder.mkdir()
    end = _write_topics(folder, partitions, batches)
    random = np.random.default_rng([groups, offsets])
    group = np.arange(offsets) % groups
    # Each group consumes consecutive partitions, and no partition twice.
    place = (group * 7 + np.arange(offsets) // groups) % partitions
    committed = end - random.integers(0, end // 2, offsets)
    written: dict[int, list[tuple[bytes, bytes]]] = {number: [] for number in range(_LOGS)}
    for of_group, at, offset in zip(group.tolist(), place.tolist(), committed.tolist(), strict=True):
        name, partition = _place(at)
        group_id = f"group-{of_group:06}"
        value = OffsetCommitValue(offset=offset, metadata="", commit_timestamp=_START_MS)
        key, encoded = encode_record(OffsetCommitKey(group_id, name, partition), value, 3)
        written[partition_for(group_id, _LOGS)].append((key, encoded or b""))
    for number, records in written.items():
        log = folder / f"__consumer_offsets-{number}"
        log.mkdir()
        with (log / f"{0:020}.log").open("wb") as file:
            for start in range(0, len(records), _COMMITS):
                file.write(_batch(start, records[start : start + _COMMITS]))


def _write_topics(folder: Path, partitions: int, batches: int) -> int:
    """Write the logs of topics; returns the end offset of each log."""
    content, index, last_indexed = bytearray(), bytearray(), 0
    for number in range(batches):
        if len(content) - last_indexed > _INTERVAL:
            index += _INDEX_ENTRY.pack((number + 1) * _RECORDS - 1, len(content))
            last_indexed = len(content)
        content += _batch(number * _RECORDS, [(b"key", _VALUE)] * _RECORDS)
    files = {f"{0:020}.log": bytes(content), f"{0:020}.index": bytes(index)}
    for name, data in files.items():
        (folder / name).write_bytes(data)
    for number in range(partitions):
        topic, partition = _place(number)
        log = folder / f"{topic}-{partition}"
        log.mkdir()
        for name in files:
            (log / name).hardlink_to(folder / name)
    for name in files:
        (folder / name).unlink()
    return batches * _RECORDS


def _place(number: int) -> tuple[str, int]:
    return f"topic-{number // _TOPIC_PARTITIONS:04}", number % _TOPIC_PARTITIONS


def _batch(offset: int, records: Sequence[tuple[bytes, bytes]]) -> bytes:
    body = bytearray()
    for number, (key, value) in enumerate(records):
        delta = varint(2 * number)
        record = b"\0" + delta + delta + varint(2 * len(key)) + key + varint(2 * len(value)) + value + b"\0"
        body += varint(2 * len(record)) + record
    last, stamp = len(records) - 1, _START_MS + offset
    head = _HEAD.pack(offset, 49 + len(body), 0, 2, 0, 0, last, stamp, stamp + last, -1, -1, -1, len(records))
    checked = head[21:] + bytes(body)
    return head[:17] + crc32c(checked).to_bytes(4, "big") + checked


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options for the size of `write_directory`, and `--rounds`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    number = positive(int)
    parser.add_argument("--groups", type=number, default=65_000, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--offsets", type=number, default=1_000_000, metavar="N", help="(default: %(default)s)")
    parser.add_argument(
        "--partitions", type=number, default=1_000, metavar="N", help="of topics (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=number, default=5, metavar="N", help="(default: %(default)s)")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 1 if an answer is wrong or the goal is missed."""
    parser = parser_of(__doc__)
    parser.add_argument("--processes", type=positive(int), default=2, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="keep the data directory here (default: a temporary one)")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="lag-") as temporary:
        folder = asked.folder or Path(temporary) / "data"
        if not folder.exists():
            write_directory(folder, asked.groups, asked.offsets, asked.partitions)
        sources = {"without times": WithoutTimes(Segments(folder)), "with times": Segments(folder)}
        taken: dict[str, list[float]] = {name: [] for name in sources}
        for _ in range(asked.rounds):
            for name, source in sources.items():
                started = time.perf_counter()
                found = read_table("lag", source, processes=asked.processes).table
                taken[name].append(time.perf_counter() - started)
                if not _is_right(found, asked.offsets, with_times=name == "with times"):
                    print(f"{name}: the answer is wrong", file=sys.stderr)
                    return 1
    ratio = min(taken["with times"]) / min(taken["without times"])
    rows = [
        ("", "seconds, best / median"),
        *((name, f"{min(each):.2f} / {median(each):.2f}") for name, each in taken.items()),
    ]
    print(machine())
    print(
        f"{asked.groups} groups, {asked.offsets} offsets, {asked.partitions} partitions, {asked.processes} processes\n"
    )
    print(table(rows))
    print(f"\ntime against that without times: {ratio:.2f}, goal {GOAL}: {'met' if ratio <= GOAL else 'missed'}")
    return 0 if ratio <= GOAL else 1


def _is_right(found: Any, offsets: int, *, with_times: bool) -> bool:
    """Whether the answer is right: all remaining records are unread, because there are no transactions."""
    if found.num_rows != offsets:
        return False
    if not with_times:
        return bool(found["unread_timestamp_ms"].null_count == offsets)
    is_same = found["unread"].equals(found["lag"])
    batch = found["offset"].to_numpy() // _RECORDS * _RECORDS
    has = found["lag"].to_numpy() > 0
    stamps = found["unread_timestamp_ms"].combine_chunks().fill_null(0).to_numpy(zero_copy_only=False)
    return bool(is_same and (stamps[has] == _START_MS + batch[has]).all())


if __name__ == "__main__":
    sys.exit(main())
