"""The histories of tests/data: logs that Kafka's coordinator classes wrote, and what those classes answer."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafka_records_engine.log.raw_rows import RAW_SCHEMA

FOLDER = Path(__file__).resolve().parents[1] / "data" / "histories"

NAMES = sorted(path.name.removesuffix(".log.jsonl.gz") for path in FOLDER.glob("????.log.jsonl.gz"))
"""All histories of the offsets topic."""

SHARE_NAMES = sorted(path.name.removesuffix(".log.jsonl.gz") for path in FOLDER.glob("????-share.log.jsonl.gz"))
"""All histories of the topic of share state, each beside one of the offsets topic."""

Question = dict[str, Any]


@dataclass(frozen=True)
class History:
    """One log: its records and markers in order, and the questions asked about it at each cut."""

    name: str

    @cached_property
    def _lines(self) -> list[dict[str, Any]]:
        return list(_lines(f"{self.name}.log.jsonl.gz"))

    @property
    def settings(self) -> dict[str, str]:
        """The properties of the broker that differ from the defaults."""
        settings: dict[str, str] = self._lines[0]["settings"]
        return settings

    @property
    def records(self) -> list[dict[str, Any]]:
        """As in the file; `control` is there for markers only."""
        return self._lines[1:]

    @cached_property
    def rows(self) -> pa.Table:
        """Raw rows, as a source makes them that tells which records are part of a transaction and not how it ended."""
        return raw_rows(self.records, self._lines[0]["topic"])

    @cached_property
    def cuts(self) -> dict[int, list[Question]]:
        """The questions by the last offset that the coordinator had loaded, which answered them."""
        cuts: dict[int, list[Question]] = {}
        for question in _lines(f"{self.name}.answers.jsonl.gz"):
            cuts.setdefault(question["cut"], []).append(question)
        return cuts

    def up_to(self, cut: int) -> pa.Table:
        """The rows with offsets up to `cut`; offsets count from 0 without gaps."""
        return self.rows.slice(0, cut + 1)


def raw_rows(records: list[dict[str, Any]], topic: str) -> pa.Table:
    """Records and markers, as they stand in a history, as raw rows."""
    return pa.Table.from_pylist([_raw_row(record, topic) for record in records], schema=RAW_SCHEMA)


def _raw_row(record: dict[str, Any], topic: str) -> dict[str, Any]:
    control = record.get("control")
    value: bytes | None
    if control is not None:
        key, value = b"\x00\x00\x00" + (b"\x01" if control == "commit" else b"\x00"), b"\x00" * 6
        transaction = "committed" if control == "commit" else "aborted"
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


@cache
def history(name: str) -> History:
    """The history with that name, read once."""
    return History(name)


def _lines(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(FOLDER / name, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)
