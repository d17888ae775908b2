"""Reads `share_checks`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.coordinator.records.decoded_records import numbers_of, schemas
from kafka_records_tables.coordinator.shares.share_replay import refused_records
from kafka_records_tables.tables.checking.check_rows import CheckReader, CheckRow
from kafka_records_tables.tables.checking.record_checks import STOPS, RecordChecks
from kafka_records_tables.tables.share_checks import TABLE
from kafka_records_tables.tables.words.check_words import (
    BROKEN,
    CONFLICT,
    STATE,
    UNREADABLE,
)

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords


class Reader(CheckReader):
    def __init__(self, context: Context) -> None:
        super().__init__(context, TABLE.schema)
        known = schemas(context, "share_group_state")
        self._types = numbers_of(known, TABLE.records)
        self._records = RecordChecks(context, known, owner="group_id", stops=STOPS, name_of=_share_partition_keys)
        self._states: dict[str, CheckRow] = {}

    def checked(self, batch: pa.RecordBatch) -> Iterator[CheckRow]:
        found = self._records.decoded(batch)
        if found is None:
            return
        yield from self._records.look_at(found)
        refused = yield from _refused(found, self._types)
        _note_states(found, self._types, refused, self._states)

    def left(self) -> Iterator[CheckRow]:
        yield from self._records.rest()
        yield from self._states.values()


def _share_partition_keys(keys: Any) -> Any:
    """The strings that Kafka hashes (`SharePartitionKey.asCoordinatorKey`, KIP-932)."""
    group, topic_id, partition = (pc.struct_field(keys, name) for name in ("group_id", "topic_id", "partition"))
    return pc.binary_join_element_wise(group, topic_id, partition.cast(pa.string()), ":")


def _refused(found: DecodedRecords, types: tuple[int, ...]) -> Any:
    """Yields records that can be decoded but that no coordinator replays. Returns their rows."""
    refused = refused_records(found, types)
    for row, what in refused.items():
        number = int(found.columns.record_type[row])
        time = None if found.timestamps is None else found.timestamps[row]
        yield CheckRow(
            CONFLICT, BROKEN, f"{what}; {STOPS}", int(found.offsets[row]), time, **_place(found, number, row)
        )
    return set(refused)


def _place(found: DecodedRecords, number: int, row: int) -> dict[str, Any]:
    key: dict[str, Any] = found.columns.records[number].field(0)[row].as_py()
    return key


def _places(found: DecodedRecords, types: tuple[int, ...], rows: list[int]) -> Iterator[dict[str, Any]]:
    """The keys of the given rows of these types."""
    names = found.key_names(types[0])
    chosen = pa.array(rows, pa.int64())
    columns = (found.member(types, "key", name).take(chosen).to_pylist() for name in names)
    return (dict(zip(names, each, strict=True)) for each in zip(*columns, strict=True))


def _last_rows(found: DecodedRecords, types: tuple[int, ...]) -> dict[str, int]:
    """The row of each share partition's last record, a snapshot or an update."""
    last: dict[str, int] = {}
    for number in types:
        records = found.columns.records.get(number)
        if records is None:
            continue
        rows = np.flatnonzero(records.is_valid().to_numpy(zero_copy_only=False))
        keys = _share_partition_keys(records.field(0).take(pa.array(rows))).dictionary_encode()
        of_key = np.zeros(len(keys.dictionary), np.int64)
        np.maximum.at(of_key, keys.indices.to_numpy(), rows)
        for key, row in zip(keys.dictionary.to_pylist(), of_key.tolist(), strict=True):
            last[key] = max(last.get(key, -1), row)
    return last


def _note_states(found: DecodedRecords, types: tuple[int, ...], refused: set[int], states: dict[str, CheckRow]) -> None:
    """Note, for each share partition in a batch, whether its last record leaves a state."""
    last = _last_rows(found, types)
    places = _places(found, types, list(last.values()))
    for (key, row), place in zip(last.items(), places, strict=True):
        is_refused = row in refused or bool(found.has_error[row])
        if found.is_tombstone[row] and not is_refused:
            states.pop(key, None)
            continue
        time = None if found.timestamps is None else found.timestamps[row]
        states[key] = CheckRow(
            log_offset=int(found.offsets[row]),
            log_timestamp_ms=time,
            fact=UNREADABLE if is_refused else STATE,
            **place,
        )
