"""Histories: logs that Kafka's coordinator classes wrote, and the answers of these classes after they loaded a part of
one.

`tests/data/README.md` describes their files.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafka_records.consumer_offsets import decode_record
from kafka_records_codegen.evolution.kafka_releases import release_order
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA

Question = dict[str, Any]

CLEANED = "cleaned"
"""The suffix of the name of a history from which a cleaner has removed a part."""

COMMITS = ("0000", "0001")
"""The first bytes of the keys of records of types 0 and 1."""

_OUTCOMES = {"commit": (b"\x00\x00\x00\x01", "committed"), "abort": (b"\x00\x00\x00\x00", "aborted")}


@dataclass(frozen=True)
class History:
    """One log of a folder: its records and markers in order, and the questions about it at each cut."""

    folder: Path
    name: str

    @cached_property
    def _lines(self) -> list[dict[str, Any]]:
        return list(_read(self.folder / f"{self.name}.log.jsonl.gz"))

    @property
    def header(self) -> dict[str, Any]:
        """The header: the topic of the log, and the questions about it."""
        return self._lines[0]

    @property
    def settings(self) -> dict[str, str]:
        """The properties of the broker that differ from the defaults."""
        settings: dict[str, str] = self.header["settings"]
        return settings

    def is_before(self, release: str) -> bool:
        """Whether an older release of Kafka wrote and answered it."""
        return release_order(self.header["kafka"]) < release_order(release)

    @property
    def topic(self) -> str:
        """The topic whose partition this is."""
        topic: str = self.header["topic"]
        return topic

    @property
    def records(self) -> list[dict[str, Any]]:
        """The records as in the file; only markers have `control`."""
        return self._lines[1:]

    @cached_property
    def rows(self) -> pa.Table:
        """Raw rows as from a source that knows which records are in transactions, but not how these ended."""
        return raw_rows(self.records, self.topic)

    @cached_property
    def cuts(self) -> dict[int, list[Question]]:
        """The questions by the last offset that the coordinator had loaded when it answered them."""
        cuts: dict[int, list[Question]] = {}
        for question in _read(self.folder / f"{self.name}.answers.jsonl.gz"):
            cuts.setdefault(question["cut"], []).append(question)
        return cuts

    @cached_property
    def why(self) -> Mapping[int, dict[str, Any]]:
        """By offset: the `call` that wrote a record, and for a tombstone also `why`."""
        name = self.name.removesuffix(f"-{CLEANED}")
        own = self.folder / f"{name.removesuffix('-share')}.why.jsonl.gz"
        lines = _read(own if own.exists() else self.folder / "why.jsonl.gz")
        return {line["offset"]: line for line in lines if line["history"] == name}

    @cached_property
    def merged(self) -> frozenset[int]:
        """The offsets of records that share their batch and their millisecond with those of another write."""
        writes: dict[tuple[int, int], set[int]] = {}
        for record in self.records:
            moment = record["batch"], record["timestamp_ms"]
            writes.setdefault(moment, set()).add(self.why[record["offset"]].get("write", record["batch"]))
        return frozenset(
            record["offset"] for record in self.records if len(writes[record["batch"], record["timestamp_ms"]]) > 1
        )

    @cached_property
    def smaller(self) -> frozenset[int]:
        """The offsets of tombstones for a deleted topic, if an earlier topic with its name had more partitions and the
        coordinator is older than 4.3: it then leaves the offsets of the other partitions."""
        if not self.is_before("4.3.0") or self.topic != "__consumer_offsets":
            return frozenset()
        most: dict[str, int] = {}
        deleted: dict[tuple[int, str], dict[int, int]] = {}
        for record in self.records:
            if "control" in record or not record["key"].startswith(COMMITS):
                continue
            key: Any = decode_record(bytes.fromhex(record["key"]), None).key
            if record["value"] is not None:
                most[key.topic] = max(key.partition, most.get(key.topic, 0))
            elif self.why[record["offset"]]["why"] == "topic_deleted":
                deleted.setdefault((record["batch"], key.topic), {})[record["offset"]] = key.partition
        return frozenset(
            offset
            for (_, topic), partitions in deleted.items()
            if max(partitions.values()) < most.get(topic, 0)
            for offset in partitions
        )

    def up_to(self, cut: int) -> pa.Table:
        """The rows with offsets up to `cut`."""
        return self.rows.slice(0, sum(offset <= cut for offset in self.rows["offset"].to_pylist()))


def raw_rows(records: list[dict[str, Any]], topic: str) -> pa.Table:
    """The records and markers of a history as raw rows."""
    return pa.Table.from_pylist([_raw_row(record, topic) for record in records], schema=RAW_SCHEMA)


def _raw_row(record: dict[str, Any], topic: str) -> dict[str, Any]:
    control = record.get("control")
    value: bytes | None
    if control is not None:
        (key, transaction), value = _OUTCOMES[control], b"\x00" * 6
    else:
        key = bytes.fromhex(record["key"])
        value = None if record["value"] is None else bytes.fromhex(record["value"])
        transaction = "pending" if record["transactional"] else "none"
    return {
        "topic": topic,
        "partition": 0,
        "offset": record["offset"],
        "timestamp_ms": record["timestamp_ms"],
        "timestamp_type": "create",
        "key": key,
        "value": value,
        "leader_epoch": 0,
        "base_offset": record["batch"],
        "producer_id": record["producer_id"],
        "producer_epoch": record["producer_epoch"],
        "transaction": transaction,
        "control": control,
    }


def write_log(folder: Path, header: Mapping[str, Any], records: Iterable[Mapping[str, Any]]) -> None:
    """Write the log of a history, under the name in the header."""
    with gzip.open(folder / f"{header['history']}.log.jsonl.gz", "wt", compresslevel=1, encoding="utf-8") as file:
        for line in (header, *records):
            file.write(json.dumps(line) + "\n")


def _read(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)
