"""Writes raw rows to files, in the ways in which users save them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources import Context, LogPartition, Source
from kafka_records_engine.sources.segment_files import Segments
from tests.log.logs import CAPTURES, TOPICS

Write = Callable[[pa.Table, Path], Path]


def table_of(log: LogPartition, start: int | None = None, end: int | None = None) -> tuple[pa.Table, Context]:
    """The raw rows of a log partition, and the findings."""
    context = Context(log.topic, log.partition)
    batches = [_whole(batch) for batch in log.batches(context, RAW_SCHEMA.names, start, end)]
    return pa.Table.from_batches(batches, RAW_SCHEMA).combine_chunks(), context


def _whole(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, with nulls for the base offset if it has none."""
    there = {name: batch.column(name) for name in batch.schema.names}
    arrays = [there.get(field.name, pa.nulls(batch.num_rows, field.type)) for field in RAW_SCHEMA]
    return pa.record_batch(arrays, schema=RAW_SCHEMA)


def tables_of(source: Source) -> dict[tuple[str, int], pa.Table]:
    """The raw rows of all log partitions that have some."""
    logs = [log for topic in source.topics() for log in source.partitions(topic)]
    tables = {(log.topic, log.partition): table_of(log)[0] for log in logs}
    return {place: rows for place, rows in tables.items() if rows.num_rows}


def segments(capture: str) -> Path:
    """A captured data directory."""
    return TOPICS / capture / "segments"


@cache
def captured(capture: str = CAPTURES[0]) -> pa.Table:
    """All raw rows of a captured data directory."""
    return pa.concat_tables(tables_of(Segments(segments(capture))).values())


def encoded(rows: pa.Table, encode: Callable[[bytes], str], columns: tuple[str, ...] = ("key", "value")) -> pa.Table:
    """The rows with keys and values as texts."""
    for name in columns:
        texts = [None if value is None else encode(value) for value in rows[name].to_pylist()]
        rows = rows.set_column(rows.schema.get_field_index(name), name, pa.array(texts, pa.string()))
    return rows


def in_base64(rows: pa.Table) -> pa.Table:
    """The rows with keys and values in base64."""
    return encoded(rows, lambda value: base64.b64encode(value).decode())


def in_hex(rows: pa.Table) -> pa.Table:
    """The rows with keys and values as hex digits."""
    return encoded(rows, bytes.hex)


# -- formats -----------------------------------------------------------------------------------------------------------


def _parquet(rows: pa.Table, folder: Path) -> Path:
    pq.write_table(rows, folder / "rows.parquet", row_group_size=100)
    return folder / "rows.parquet"


def _hive(rows: pa.Table, folder: Path) -> Path:
    pq.write_to_dataset(rows, folder / "saved", partition_cols=["topic", "partition"])
    (folder / "saved" / "_SUCCESS").write_bytes(b"")
    return folder / "saved"


def _arrow(rows: pa.Table, folder: Path) -> Path:
    with pa.ipc.new_file(folder / "rows.arrow", rows.schema) as writer:
        writer.write_table(rows, 70)
    return folder / "rows.arrow"


def _stream(rows: pa.Table, folder: Path) -> Path:
    with pa.ipc.new_stream(folder / "rows.arrows", rows.schema) as writer:
        writer.write_table(rows, 70)
    return folder / "rows.arrows"


def _feather(rows: pa.Table, folder: Path) -> Path:
    pa.feather.write_feather(rows, folder / "rows.feather")
    return folder / "rows.feather"


AVRO_TYPES: Final[Mapping[Any, str]] = {
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
}


def _avro(rows: pa.Table, folder: Path) -> Path:
    import fastavro

    fields = [{"name": field.name, "type": ["null", AVRO_TYPES[field.type]]} for field in rows.schema]
    schema: Any = {"type": "record", "name": "row", "fields": fields}
    with open(folder / "rows.avro", "wb") as out:
        fastavro.writer(out, schema, rows.to_pylist(), codec="deflate")
    return folder / "rows.avro"


def write_lines(rows: pa.Table, path: Path, codec: str | None = None) -> Path:
    """The rows as a JSON object per line."""
    text = "".join(json.dumps(row) + "\n" for row in rows.to_pylist()).encode()
    path.write_bytes(text if codec is None else pa.compress(text, codec=codec, asbytes=True))
    return path


def write_csv(rows: pa.Table, path: Path, codec: str | None = None) -> Path:
    """The rows as CSV."""
    held = pa.BufferOutputStream()
    pa.csv.write_csv(rows, held)
    text = held.getvalue().to_pybytes()
    path.write_bytes(text if codec is None else pa.compress(text, codec=codec, asbytes=True))
    return path


def _delta(rows: pa.Table, folder: Path) -> Path:
    import deltalake

    deltalake.write_deltalake(folder / "saved", rows.slice(0, 5))
    deltalake.write_deltalake(folder / "saved", rows, mode="overwrite")
    return folder / "saved"


FORMATS: Final[Mapping[str, Write]] = {
    "Parquet": _parquet,
    "Parquet in folders": _hive,
    "Arrow file": _arrow,
    "Arrow stream": _stream,
    "Feather": _feather,
    "Avro": _avro,
    "JSON lines, base64": lambda rows, folder: write_lines(in_base64(rows), folder / "rows.jsonl"),
    "JSON lines, hex, gzip": lambda rows, folder: write_lines(in_hex(rows), folder / "rows.json.gz", "gzip"),
    "CSV, hex": lambda rows, folder: write_csv(in_hex(rows), folder / "rows.csv"),
    "CSV, base64, zstd": lambda rows, folder: write_csv(in_base64(rows), folder / "rows.csv.zst", "zstd"),
    "Delta": _delta,
}
"""Functions that write raw rows into a folder, and give the path to read."""


def shuffled(rows: pa.Table, seed: int = 1) -> pa.Table:
    """The rows in another order, some of them twice."""
    import random

    order = [*range(rows.num_rows), *range(0, rows.num_rows, 17)]
    random.Random(seed).shuffle(order)
    return rows.take(pa.array(order))


def simple_rows(offsets: list[int], partition: int = 0, topic: str = "t") -> pa.Table:
    """Raw rows of one log partition outside of transactions."""
    count = len(offsets)
    columns = {
        "topic": pa.array([topic] * count),
        "partition": pa.array([partition] * count, pa.int32()),
        "offset": pa.array(offsets, pa.int64()),
        "key": pa.array([b"k%d" % offset for offset in offsets], pa.binary()),
        "value": pa.array([b"v%d" % offset for offset in offsets], pa.binary()),
        "transaction": pa.array(["none"] * count),
        "control": pa.array([None] * count, pa.string()),
    }
    return pa.table(columns)


def offsets_of(rows: pa.Table) -> list[int]:
    """The offsets."""
    found: list[int] = rows["offset"].to_pylist()
    return found


def only(rows: pa.Table, partition: int) -> pa.Table:
    """The rows of one partition."""
    return rows.filter(pc.equal(rows["partition"], partition))
