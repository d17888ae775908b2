"""The input rows for every way to run Spark, and the expected results, which come from other readers.

The rows are those of a broker's three coordinator topics, and a partition of broken records. The expected results of
`decode_records` come from the row reader, those of messages inside group members from the codecs, and those of tables
from the broker.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_records.consumer_protocol.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafka_records.consumer_protocol.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_records_engine.log.reading.segment_files import RAW_SCHEMA, find_logs, read_partition
from kafka_records_runtime.errors import DecodeError
from kafka_records_runtime.schema import RecordSchema
from kafka_records_runtime.text.casing import snake_case
from tests.spark.across_releases.reading import Record, decoded_rows

OFFSETS: Final = "__consumer_offsets"
SHARE: Final = "__share_group_state"
TRANSACTIONS: Final = "__transaction_state"
TOPICS: Final = (OFFSETS, SHARE, TRANSACTIONS)

BROKEN_PARTITION: Final = 99
"""The partition of broken records: no captured topic has as many partitions."""

CUT_VALUE: Final = 4
"""The offset there of a record with a valid key and a truncated value."""

_BROKEN: Final = {"unknown_type": 1, "unknown_version": 1, "corrupt": 4, "with_bytes_left": 1, "bytes_left": 2}

COUNTS: Final[Mapping[str, Mapping[str, int]]] = {
    OFFSETS: {"rows": 867, "decoded": 852, "tombstone": 108, "control": 9, **_BROKEN},
    SHARE: {"rows": 92, "decoded": 86, "tombstone": 6, **_BROKEN},
    TRANSACTIONS: {"rows": 53, "decoded": 47, "tombstone": 3, **_BROKEN},
}
"""The expected counts of an observation, without those that are 0."""

FILES: Final = 3
"""The number of files of a topic, and so the number of micro-batches of a stream that reads one file at a time."""


def in_order(rows: Iterable[Record]) -> list[Record]:
    """The rows of any of the queries in the order of the log."""
    return sorted(rows, key=lambda row: (row["partition"], row["offset"], row.get("member_id", "")))


def counts_of(decoded: Iterable[Record], topic: str) -> dict[str, int]:
    """The expected counts of an observation for these rows, without those that are 0."""
    types = schemas_of(topic)
    counts: Counter[str] = Counter()
    for row in decoded:
        bytes_left = row["key_bytes_left"] + row["value_bytes_left"]
        counts.update(["rows", _kind(row, types)])
        if _kind(row, types) == "decoded":
            counts.update(tombstone=row["is_tombstone"], with_bytes_left=bytes_left > 0, bytes_left=bytes_left)
    return {name: count for name, count in counts.items() if count}


def _kind(row: Record, types: Container[int]) -> str:
    if row["is_tombstone"] is None:
        return "control"
    if row["error"] is not None:
        return "unknown_version" if row["error"]["reason"] == "UnsupportedVersion" else "corrupt"
    return "decoded" if row["record_type"] in types else "unknown_type"


def schemas_of(topic: str) -> Mapping[int, RecordSchema]:
    schemas: Mapping[int, RecordSchema] = import_module(f"kafka_records.schemas.{topic.strip('_')}").RECORDS
    return schemas


@dataclass(frozen=True)
class Topic:
    """The raw rows of a topic in the order of the log, and the decoded rows."""

    name: str
    raw: list[Record]
    decoded: list[Record]

    def write(self, folder: Path, *files: int) -> None:
        """Write these files (or all) of the raw rows as Parquet. A stream reads them by age, in this order."""
        folder.mkdir(parents=True, exist_ok=True)
        for number in files or range(FILES):
            # Every partition has rows in each of the files.
            rows = pa.Table.from_pylist(self.raw[number::FILES], RAW_SCHEMA)
            file = folder / f"{number}.parquet"
            pq.write_table(rows, file)
            os.utime(file, (number, number))

    def there_and_back(self) -> list[Record]:
        """The expected result of `queries.there_and_back`: every key and value that could be read, without trailing
        bytes."""
        names = [snake_case(schema.name) for schema in schemas_of(self.name).values()]
        rows = []
        for raw, row in zip(self.raw, self.decoded, strict=True):
            if raw["control"] is None:
                (found,) = [row[name] for name in names if row[name] is not None] or [{"key": None, "value": None}]
                back = {
                    part: None if found[part] is None else raw[part][: len(raw[part]) - row[f"{part}_bytes_left"]]
                    for part in ("key", "value")
                }
                rows.append(_place(raw) | {name: row[name] for name in names} | back)
        return rows

    def markers(self) -> list[Record]:
        """The expected result of `queries.markers`: a marker has its version and the epoch of the coordinator."""
        types = {"abort": 0, "commit": 1}
        return [
            _place(raw)
            | {"type": types[raw["control"]], "epoch": int.from_bytes(raw["value"][2:6], "big")}
            | {"key": raw["key"], "value": raw["value"]}
            for raw in self.raw
            if raw["control"] is not None
        ]

    def members(self) -> list[Record]:
        """The expected result of `queries.members`."""
        return [member for row in self.decoded if row["group_metadata"] is not None for member in _members(row)]


def _place(row: Record) -> Record:
    return {name: row[name] for name in ("partition", "offset")}


def _members(row: Record) -> Iterator[Record]:
    value = row["group_metadata"]["value"]
    if value is None or value["protocol_type"] != "consumer":
        return
    for member in value["members"]:
        subscription = _message(ConsumerProtocolSubscription, member["subscription"])
        assignment = _message(ConsumerProtocolAssignment, member["assignment"])
        yield _place(row) | {
            "member_id": member["member_id"],
            "topics": subscription and list(subscription.topics),
            "generation_id": subscription and subscription.generation_id,
            "assigned": assignment
            and [{"topic": each.topic, "partitions": list(each.partitions)} for each in assignment.assigned_partitions],
            "subscription": member["subscription"] if subscription else None,
            "assignment": member["assignment"] if assignment else None,
        }


def _message(kind: Any, data: bytes) -> Any:
    """The message after an int16 version; None for other bytes: clients may write anything there."""
    try:
        return kind.decode(data[2:], int.from_bytes(data[:2], "big", signed=True))
    except DecodeError:
        return None


def read_topic(name: str, folder: Path) -> Topic:
    """The topic as a broker left it in `folder`, and a partition of broken records."""
    captured = [row for log in find_logs([folder], name) for batch in read_partition(log) for row in batch.to_pylist()]
    raw = [*captured, *_broken(next(row for row in captured if row["value"] is not None))]
    return Topic(name, raw, list(decoded_rows(raw, schemas_of(name))))


def _broken(sound: Record) -> Iterator[Record]:
    """Records for everything that an observation counts separately, made from a valid record."""
    key, value = sound["key"], sound["value"]
    unknown = b"\x7f\xff"
    records = [
        (None, value),
        (b"\x00", value),
        (unknown + key[2:], value),
        (key, unknown + value[2:]),
        (key, value[:3]),
        (key[:3], value),
        (key, value + b"\x00\x00"),
        (key, None),
    ]
    for offset, (broken_key, broken_value) in enumerate(records):
        place = {"partition": BROKEN_PARTITION, "offset": offset}
        yield sound | place | {"key": broken_key, "value": broken_value}


def tables_of_the_broker(capture: Path) -> dict[str, Any]:
    """The broker's answers to requests for all offsets and groups, in the form of `queries.TABLES`."""
    groups = json.loads((capture / "truth.json").read_text(encoding="utf-8"))["groups"]
    return {
        "current_offsets": sorted(
            (group, each["topic"], each["partition"], each["offset"])
            for group, answer in groups.items()
            for each in answer.get("offsets", [])
        ),
        "groups": sorted(
            (
                group,
                "simple" if answer["simple"] else answer["type"].lower(),
                answer["describe"]["groupState"],
                len(answer["describe"]["members"]),
            )
            for group, answer in groups.items()
        ),
    }
