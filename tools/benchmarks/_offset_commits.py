"""Raw rows of committed offsets in Parquet, the input of the benchmarks of columns.

The rows look like those of a busy `__consumer_offsets`: a few hundred groups commit again and again, mostly without
metadata, in versions 3 and 4 of the value. Each file is the same on every machine, and stays in the cache folder. A
smaller number of rows consists of the first files of a larger one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey
from kafka_records_engine.log.reading.segment_files import RAW_SCHEMA

FILE_ROWS: Final = 100_000
_ROW_GROUP: Final = 50_000
"""Half a file, so that even the smallest sets keep two cores busy."""

_FORMAT: Final = 1
"""A part of the folder's name. Change it whenever the rows change."""

_GROUPS: Final = 300
_TOPICS: Final = 5
_PARTITIONS: Final = 12
_STARTED_AT: Final = 1_700_000_000_000
_METADATA: Final = (b"", b"checkpoint=7;node=eu-west-1a", "geprüft".encode())
_METADATA_SHARES: Final = (0.95, 0.04, 0.01)
_WITH_TOPIC_ID: Final = 0.25
_TEAMS: Final = ("payments", "orders", "search", "mail", "fraud", "billing")


@dataclass(frozen=True)
class Mix:
    """The composition of the rows: the share of values in version 4. The others are in version 3."""

    v4: float = 0.5

    @property
    def name(self) -> str:
        return f"v4-{round(100 * self.v4):03d}"


def offset_commits(folder: Path, rows: int, mix: Mix) -> list[Path]:
    """The Parquet files below `folder` that contain `rows` rows of RAW_SCHEMA. Missing files are written."""
    home = folder / f"offset-commits-{_FORMAT}-{mix.name}"
    home.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, start in enumerate(range(0, rows, FILE_ROWS)):
        count = min(FILE_ROWS, rows - start)
        path = home / f"{number:05d}-{count}.parquet"
        if not path.is_file():
            # The file is renamed when it is complete, so that an interrupted run leaves no incomplete file.
            unfinished = path.with_suffix(".unfinished")
            pq.write_table(raw_rows(number, count, mix), unfinished, row_group_size=_ROW_GROUP)
            unfinished.rename(path)
        paths.append(path)
    return paths


def raw_rows(number: int, rows: int, mix: Mix) -> Any:
    """File `number` as a table of RAW_SCHEMA."""
    random = np.random.default_rng([_FORMAT, number])
    first = number * FILE_ROWS
    stamps = _STARTED_AT + first + np.sort(random.integers(0, FILE_ROWS, rows, dtype=np.int64))
    keys = _keys()
    columns = {
        "topic": _repeated("__consumer_offsets", rows),
        "partition": random.integers(0, 50, rows, dtype=np.int32),
        "offset": first + np.arange(rows, dtype=np.int64),
        "timestamp_ms": stamps,
        "timestamp_type": _repeated("create", rows),
        "key": keys.take(pa.array(random.integers(0, len(keys), rows))),
        "value": _values(random, stamps, mix),
        "leader_epoch": random.integers(0, 9, rows, dtype=np.int32),
        "base_offset": first + np.arange(rows, dtype=np.int64) // 8 * 8,
        "producer_id": np.full(rows, -1, np.int64),
        "producer_epoch": np.full(rows, -1, np.int16),
        "transaction": _repeated("none", rows),
        "control": pa.nulls(rows, pa.string()),
    }
    return pa.table({name: pa.array(columns[name], RAW_SCHEMA.field(name).type) for name in RAW_SCHEMA.names})


def _keys() -> Any:
    return pa.array(list(_encoded_keys()), pa.binary())


def _encoded_keys() -> Iterator[bytes]:
    for number in range(_GROUPS):
        group = f"{_TEAMS[number % len(_TEAMS)]}-service-consumer-{number:03d}"
        for topic in range(_TOPICS):
            name = f"{_TEAMS[(number + topic) % len(_TEAMS)]}.eu-west-1.topic-{topic:02d}"
            for partition in range(_PARTITIONS):
                yield OffsetCommitKey.RECORD_TYPE.to_bytes(2, "big") + OffsetCommitKey(group, name, partition).encode(0)


def _values(random: np.random.Generator, stamps: np.ndarray[Any, Any], mix: Mix) -> Any:
    """Values, assembled from pieces for speed. The smoke test decodes and encodes them."""
    rows = len(stamps)
    is_v4 = random.random(rows) < mix.v4
    head = np.empty(rows, np.dtype([("version", ">i2"), ("offset", ">i8"), ("leader_epoch", ">i4")]))
    head["version"] = np.where(is_v4, 4, 3)
    head["offset"] = random.integers(0, 10**9, rows)
    head["leader_epoch"] = random.integers(-1, 40, rows)
    texts = [len(text).to_bytes(2, "big") + text for text in _METADATA]  # string: int16 length
    texts += [bytes([len(text) + 1]) + text for text in _METADATA]  # compact string: a varint with the length plus one
    text = random.choice(len(_METADATA), rows, p=_METADATA_SHARES) + is_v4 * len(_METADATA)
    # After the timestamp: nothing in version 3; in version 4 no tagged field, or tag 0 with the 16 bytes of a topic id.
    tails = [b"", b"\0", *(bytes([1, 0, 16]) + _topic_id(topic) for topic in range(_TOPICS))]
    has_id = random.random(rows) < _WITH_TOPIC_ID
    tail = np.where(is_v4, np.where(has_id, 2 + random.integers(0, _TOPICS, rows), 1), 0)
    return pc.binary_join_element_wise(
        _fixed(head),
        pa.array(texts, pa.binary()).take(pa.array(text)),
        _fixed(stamps.astype(">i8")),
        pa.array(tails, pa.binary()).take(pa.array(tail)),
        b"",
    )


def _topic_id(topic: int) -> bytes:
    return (0x0123_4567_89AB_CDEF * (topic + 1)).to_bytes(16, "big")


def _fixed(values: np.ndarray[Any, Any]) -> Any:
    """The bytes of each element."""
    width, data = values.dtype.itemsize, pa.py_buffer(values.tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(values), [None, data]).cast(pa.binary())


def _repeated(text: str, rows: int) -> Any:
    return pa.repeat(pa.scalar(text, pa.string()), rows)
