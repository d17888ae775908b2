"""Checks single records: whether a coordinator loads them, and whether they are in the right partition."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.findings import DAMAGED_LOG, OTHER_PARTITIONS, Finding, said_of
from kafka_records_runtime.errors import plural
from kafka_records_runtime.kafka.partitioner import partition_for
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords
from kafka_records_tables.tables.checking.check_rows import CheckRow
from kafka_records_tables.tables.checking.release_versions import RELEASES, known_release, unread, unread_type
from kafka_records_tables.tables.words.check_words import (
    BROKEN,
    DAMAGED,
    INFORMATION,
    NOT_LOADED,
    PASSED_OVER,
    READ,
    UNDECODABLE,
    UNKNOWN_TYPE,
    WRONG_PARTITION,
)

if TYPE_CHECKING:
    from kafka_records_engine.numpy_types import FLAGS, INT64
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema

STOPS: Final = "no coordinator can load this log: it stops at this record"
"""How a group or share coordinator reacts to a record that it cannot read (`CoordinatorLoaderImpl`)."""

NameOf = Callable[[pa.StructArray], pa.Array]
"""A function that returns, for some keys, the names that determine their partition of the topic."""


@dataclass(slots=True)
class _Seen:
    """Records of one kind, of which the first is shown."""

    offset: int
    timestamp_ms: int | None
    count: int = 0


def _too_few(context: Context, asked: int) -> Finding:
    what = f"this is partition {context.partition}, but the given number of partitions is {asked}"
    consequence = "that number causes the rows of wrong_partition: it is wrong, or the log belongs to another topic"
    return Finding("note", OTHER_PARTITIONS, what, consequence, context.topic, context.partition)


class RecordChecks:
    """Checks all records of a log partition in order.

    `owner` is the column of CheckRow with the first field of keys: `group_id` or `transactional_id`.
    """

    def __init__(
        self,
        context: Context,
        schemas: Mapping[int, RecordSchema],
        *,
        owner: Literal["group_id", "transactional_id"],
        stops: str,
        name_of: NameOf | None = None,
    ) -> None:
        """`stops` says how a coordinator reacts to a record that it cannot read; `name_of` returns the name that Kafka
        hashes."""
        self._context = context
        self._schemas = schemas
        self._owner = owner
        self._stops = stops
        self._name_of = name_of
        self._asked_release: str | None = context.question.options["loads_in"]
        self._release = known_release(self._asked_release) if self._asked_release else None
        asked: Mapping[str, int] = context.question.options["partitions"] or {}
        self._partitions = asked.get(context.topic, context.log.topics.partition_counts.get(context.topic))
        if context.topic in asked and asked[context.topic] <= (context.partition or 0):
            context.report(_too_few(context, asked[context.topic]))
        self._began_ms = int(time.time() * 1000)
        self._home: dict[str, bool] = {}
        self._unknown: dict[int, _Seen] = {}
        self._strays: dict[tuple[str, str], _Seen] = {}
        self._unread: dict[tuple[str, int, int | None], _Seen] = {}

    def decoded(self, batch: pa.RecordBatch) -> DecodedRecords | None:
        """The records of a batch; None if it has only control rows. Irregularities that were accepted in them are
        counted."""
        control, records = batch.column("control"), batch
        if control.null_count < batch.num_rows:
            records = batch.filter(control.is_null())
        if not records.num_rows:
            return None
        found = DecodedRecords(records, self._schemas, self._context.shared)
        found.report(self._context, lambda row: "", ~found.has_error)
        return found

    def look_at(self, found: DecodedRecords) -> Iterator[CheckRow]:
        """The problems that become separate rows. Other problems are collected, and `rest` returns them."""
        yield from self._undecodable(found)
        self._look_for_unknown_types(found)
        for number, records in found.columns.records.items():
            rows: INT64 = np.flatnonzero(records.is_valid().to_numpy(zero_copy_only=False))
            keys = pc.struct_field(records, "key").take(pa.array(rows))
            self._look_for_strays(found, rows, keys)
            if self._release is not None:
                self._look_for_unread(found, number, rows, keys)

    def rest(self) -> Iterator[CheckRow]:
        """The collected problems and those that the source found. Call this after all batches."""
        context = self._context
        for number, seen in self._unknown.items():
            records = plural(seen.count, "record")
            newest = RELEASES[-1]
            detail = f"{records} of type {number}, which Kafka {newest} does not know: coordinators skip them"
            yield CheckRow(UNKNOWN_TYPE, INFORMATION, detail, seen.offset, seen.timestamp_ms)
            told = unread_type(self._release, context.topic, number) if self._release else None
            if told is not None and told.stops:
                yield self._unread_row(None, number, None, seen)
        for (owner, name), seen in self._strays.items():
            home = partition_for(name, self._partitions or 1)
            detail = (
                f"{plural(seen.count, 'record')} in partition {context.partition}: the coordinator of {name!r} "
                f"reads only partition {home} of {self._partitions}"
            )
            yield self._owned(CheckRow(WRONG_PARTITION, BROKEN, detail, seen.offset, seen.timestamp_ms), owner)
        for (owner, number, version), seen in self._unread.items():
            yield self._unread_row(owner, number, version, seen)
        for finding in context.findings:
            if finding.severity == "damage" and finding.reason == DAMAGED_LOG:
                offset = finding.base_offset if finding.offset is None else finding.offset
                detail = f"{finding.what}; {finding.consequence}. A coordinator may stop here"
                yield CheckRow(DAMAGED, BROKEN, detail, offset)
        yield CheckRow(fact=READ, partition=self._partitions, log_timestamp_ms=self._began_ms)

    def _undecodable(self, found: DecodedRecords) -> Iterator[CheckRow]:
        for row, error in sorted(found.columns.errors.items()):
            owner = None
            if found.has_key[row]:
                number = int(found.columns.record_type[row])
                owner = pc.struct_field(found.columns.records[number], ["key", found.key_names(number)[0]])[row].as_py()
            detail = f"{said_of(error)}: {self._stops}"
            offset, time = int(found.offsets[row]), _time(found, row)
            yield self._owned(CheckRow(UNDECODABLE, BROKEN, detail, offset, time), owner)

    def _look_for_unknown_types(self, found: DecodedRecords) -> None:
        columns = found.columns
        is_unknown: FLAGS = columns.has_type & ~columns.is_known
        for number in np.unique(columns.record_type[is_unknown]).tolist():
            rows = np.flatnonzero(is_unknown & (columns.record_type == number))
            self._gather(self._unknown, number, found, int(rows[0]), len(rows))

    def _look_for_strays(self, found: DecodedRecords, rows: INT64, keys: pa.StructArray) -> None:
        if self._partitions is None:
            return
        owners = keys.field(0)
        names = owners if self._name_of is None else self._name_of(keys)
        for name, first, count in _distinct(names):
            if not self._is_home(name, self._partitions):
                owner = owners[first].as_py()
                self._gather(self._strays, (owner, name), found, int(rows[first]), count)

    def _is_home(self, name: str, partitions: int) -> bool:
        is_home = self._home.get(name)
        if is_home is None:
            is_home = self._home[name] = partition_for(name, partitions) == self._context.partition
        return is_home

    def _look_for_unread(self, found: DecodedRecords, number: int, rows: INT64, keys: pa.StructArray) -> None:
        columns, topic = found.columns, self._context.topic
        if unread_type(str(self._release), topic, number) is not None:
            for owner, first, count in _distinct(keys.field(0)):
                self._gather(self._unread, (owner, number, None), found, int(rows[first]), count)
            return
        versions = np.where(columns.has_version[rows], columns.value_version[rows], -1)
        for version in np.unique(versions).tolist():
            if version < 0 or unread(str(self._release), topic, number, version) is None:
                continue
            chosen = np.flatnonzero(versions == version)
            for owner, first, count in _distinct(keys.field(0).take(pa.array(chosen))):
                row = int(rows[chosen[first]])
                self._gather(self._unread, (owner, number, version), found, row, count)

    def _unread_row(self, owner: str | None, number: int, version: int | None, seen: _Seen) -> CheckRow:
        """The row about collected records that a release does not read: those with values of a `version`, or all
        records of a type."""
        release, topic = str(self._release), self._context.topic
        told = unread_type(release, topic, number) if version is None else unread(release, topic, number, version)
        assert told is not None
        name = f"{self._schemas[number].name} (type {number})" if number in self._schemas else f"of type {number}"
        values = "" if version is None else f" with values of version {version}"
        detail = f"{plural(seen.count, 'record')} {name}{values}: {self._asked_release} {told.why}"
        check, level = (NOT_LOADED, BROKEN) if told.stops else (PASSED_OVER, INFORMATION)
        return self._owned(CheckRow(check, level, detail, seen.offset, seen.timestamp_ms), owner)

    def _owned(self, row: CheckRow, owner: str | None) -> CheckRow:
        if self._owner == "group_id":
            return row._replace(group_id=owner)
        return row._replace(transactional_id=owner)

    def _gather(self, where: dict[Any, _Seen], what: Any, found: DecodedRecords, row: int, count: int) -> None:
        seen = where.get(what)
        if seen is None:
            seen = where[what] = _Seen(int(found.offsets[row]), _time(found, row))
        seen.count += count


def _time(found: DecodedRecords, row: int) -> int | None:
    return None if found.timestamps is None else found.timestamps[row]


def _distinct(names: pa.Array) -> Iterator[tuple[str, int, int]]:
    """Each name, with the row of its first occurrence and its number of occurrences."""
    encoded = names.dictionary_encode()
    numbers, firsts, counts = np.unique(encoded.indices.to_numpy(), return_index=True, return_counts=True)
    texts = encoded.dictionary.to_pylist()
    for number, first, count in zip(numbers.tolist(), firsts.tolist(), counts.tolist(), strict=True):
        yield texts[number], first, count
