"""Finds the open transactions in a log from its producer snapshot and the headers of the batches after it.

A broker writes `<offset>.snapshot` when it begins a segment and when it stops. It contains the state of each producer
at that offset (`ProducerStateManager`). Records are not read, except the markers in control batches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from struct import Struct
from typing import Final

from kafka_records_engine.log.files.opened import OpenLog
from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.log.format.batches import LARGEST_OFFSET
from kafka_records_engine.log.format.crc import crc32c
from kafka_records_engine.log.reading.head_walk import NO_MARKER, WalkedHeads, walk
from kafka_records_engine.log.reading.log_end import end_of

_SNAPSHOT: Final = re.compile(r"([0-9]{20})\.snapshot")
_HEAD: Final = Struct(">hIi")
"""Version, CRC-32C of all that follows it, number of entries."""
_CRC_FROM: Final = 6
_ENTRY: Final = Struct(">qhiqiqiq")
"""The fields of `ProducerSnapshot.ProducerEntry`."""
_VERSION: Final = 1
_MOST_ENTRIES: Final = 1 << 20
"""A larger count is treated as damage. A file that is too short for such a count does not count as truncated."""


@dataclass(frozen=True, slots=True)
class OpenProducer:
    """A transaction that is open in a log."""

    producer_id: int
    first_offset: int
    since_ms: int | None
    """The time of its first record, in milliseconds since 1970; None if unknown."""
    last_ms: int | None
    """The time of the last batch of its producer, in milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class OpenProducers:
    """The transactions that are open at the end of a log."""

    producers: tuple[OpenProducer, ...]
    """The open transactions, in ascending order of their first offsets."""
    trouble: str | None = None
    """Why some open transactions may not be listed, and some listed ones may have ended: a batch could not be read.
    None if all batches were read."""
    place: tuple[str, int] | None = None
    """The file and the byte where `trouble` occurred."""


class DamagedSnapshot(Exception):
    """A producer snapshot that cannot be used. The text says why."""


def open_producers(log: OpenLog, folder: Place) -> OpenProducers:
    """The transactions that are open in a log.

    If a snapshot is damaged, an older snapshot or the start of the log is used instead, as brokers do. Raises OSError.
    """
    trouble: tuple[str, tuple[str, int]] | None = None
    found: dict[int, OpenProducer] = {}
    start = log.segments[0].base_offset or 0 if log.segments else 0
    for offset, place in _snapshots(folder):
        try:
            found = {each.producer_id: each for each in read_snapshot(place)}
        except DamagedSnapshot as error:
            trouble = trouble or (str(error), (str(place), 0))
            continue
        start = max(offset, start)
        break
    # Zeros of a pre-allocated file, or an incomplete append, may follow the end of the log. Neither is an error.
    end = end_of(log.segments[-1], folder) if log.segments else None
    _replay(walked := walk(log, folder, start, LARGEST_OFFSET if end is None else end.offset), found)
    if walked.trouble is not None and walked.place is not None:
        trouble = walked.trouble, walked.place
    dated = [_dated(each, log, folder) for each in found.values() if each.first_offset >= log.log_start]
    producers = tuple(sorted(dated, key=lambda each: each.first_offset))
    return OpenProducers(producers) if trouble is None else OpenProducers(producers, *trouble)


def read_snapshot(place: Place) -> list[OpenProducer]:
    """The open transactions in a producer snapshot. Raises DamagedSnapshot and OSError."""
    try:
        data = place.read_bytes()
    except LogSourceError as error:
        raise DamagedSnapshot(error.detail) from None
    if len(data) < _HEAD.size:
        raise DamagedSnapshot(f"the producer snapshot has {len(data)} bytes, but needs at least {_HEAD.size}")
    version, crc, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise DamagedSnapshot(f"the producer snapshot has version {version}, but only {_VERSION} is supported")
    needed = _HEAD.size + count * _ENTRY.size
    if 0 <= count <= _MOST_ENTRIES and len(data) < needed:
        raise DamagedSnapshot(
            f"the producer snapshot ends at byte {len(data)}, but its {count} entries end at byte {needed}"
        )
    if crc != crc32c(data[_CRC_FROM:]):
        raise DamagedSnapshot("the CRC of the producer snapshot is wrong")
    if count < 0 or len(data) < needed:
        raise DamagedSnapshot(f"the producer snapshot has {len(data)} bytes, which do not fit {count} entries")
    entries: Iterable[tuple[int, ...]] = _ENTRY.iter_unpack(data[_HEAD.size : _HEAD.size + count * _ENTRY.size])
    return [
        OpenProducer(producer, first, None, timestamp if timestamp >= 0 else None)
        for producer, _, _, _, _, timestamp, _, first in entries
        if first >= 0
    ]


def _snapshots(folder: Place) -> list[tuple[int, Place]]:
    """The producer snapshots of a log with their offsets, the newest first."""
    names = [(match, each.name) for each in folder.listed() if (match := _SNAPSHOT.fullmatch(each.name))]
    return sorted(((int(match[1]), folder.child(name)) for match, name in names), key=lambda each: -each[0])


def _replay(heads: WalkedHeads, found: dict[int, OpenProducer]) -> None:
    """Begin and end transactions as the batches do."""
    relevant = (heads.is_transactional & ~heads.is_control) | (heads.marker != NO_MARKER)
    for at in relevant.nonzero()[0].tolist():
        producer = int(heads.producer[at])
        if heads.marker[at] != NO_MARKER:
            found.pop(producer, None)
            continue
        first, last = int(heads.first_timestamp[at]), int(heads.max_timestamp[at])
        known = found.get(producer) or OpenProducer(producer, int(heads.base[at]), first if first >= 0 else None, None)
        last_ms = last if last >= 0 else known.last_ms
        found[producer] = OpenProducer(producer, known.first_offset, known.since_ms, last_ms)


def _dated(producer: OpenProducer, log: OpenLog, folder: Place) -> OpenProducer:
    """The producer with the time of its first record. (A snapshot contains only the time of the last batch.)"""
    if producer.since_ms is not None:
        return producer
    heads = walk(log, folder, producer.first_offset, producer.first_offset + 1, most=1)
    since = int(heads.first_timestamp[0]) if len(heads) and heads.producer[0] == producer.producer_id else -1
    since_ms = since if since >= 0 else None
    return OpenProducer(producer.producer_id, producer.first_offset, since_ms, producer.last_ms)
