"""Writes batches (magic 2) with records, many at a time.

Layouts: `DefaultRecordBatch` and `DefaultRecord` (KIP-98); codecs are framed as by Kafka's own writers
(`org.apache.kafka.common.compress`).
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kafka_records_engine.log.format.batches import ENTRY_HEAD, RECORDS_AT
from kafka_records_engine.log.format.compression import CODECS
from kafka_records_engine.log.format.crc import crc32c
from tools.segments.pool import INT64, Pool, varint

TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20

_HEAD: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)
_CRC_AT: Final = 17
_CRC_FROM: Final = 21
_LEADER_EPOCH: Final = 0
"""The first leader epoch. A broker that gets these files leads the partitions in a later one."""
_VARINTS: Final = 1 << 16


class Batches(NamedTuple):
    """The fields of consecutive batches, one element for each batch."""

    base_offset: INT64
    counts: INT64
    attributes: INT64
    """The attributes without the codec."""
    producer_id: INT64
    producer_epoch: INT64
    base_sequence: INT64


class Records(NamedTuple):
    """The records in these batches, one after another."""

    template: INT64
    in_batch: INT64
    """The index of the record in its batch."""
    timestamp: INT64
    committed: INT64
    """The committed offset to put into the template, if it has one."""


def framed(pool: Pool, batches: Batches, records: Records, codec: str) -> tuple[bytes, INT64]:
    """The bytes of all batches, and the end of each batch.

    The timestamps in a batch ascend by one. Control batches are never compressed.
    """
    bodies = _bodies(pool, batches, records)
    if codec != "none":
        bodies = _compressed(bodies, (batches.attributes & CONTROL_BIT) != 0, codec)
    sizes = pc.binary_length(bodies).to_numpy(zero_copy_only=False).astype(np.int64)
    first = np.cumsum(batches.counts) - batches.counts
    heads = np.zeros(len(first), _HEAD)
    heads["base_offset"] = batches.base_offset
    heads["length"] = RECORDS_AT - ENTRY_HEAD + sizes
    heads["leader_epoch"] = _LEADER_EPOCH
    heads["magic"] = 2
    is_control = (batches.attributes & CONTROL_BIT) != 0
    heads["attributes"] = batches.attributes | np.where(is_control, 0, CODECS.index(codec))
    heads["last_offset_delta"] = batches.counts - 1
    heads["base_timestamp"] = records.timestamp[first]
    heads["max_timestamp"] = records.timestamp[first + batches.counts - 1]
    heads["producer_id"] = batches.producer_id
    heads["producer_epoch"] = batches.producer_epoch
    heads["base_sequence"] = batches.base_sequence
    heads["count"] = batches.counts
    joined = pc.binary_join_element_wise(_fixed(heads), bodies, b"")
    ends = np.cumsum(RECORDS_AT + sizes)
    return _with_crcs(_content(joined), ends), ends


def _bodies(pool: Pool, batches: Batches, records: Records) -> Any:
    """The record bytes of each batch, as a binary array."""
    spelled, spelled_sizes = _varints()
    # Offset and timestamp ascend by one within a batch, so their deltas are the same number, a zigzag varint each.
    delta = pa.array(2 * records.in_batch)
    tails = pool.tails.take(pa.array(records.template))
    sizes = 1 + 2 * spelled_sizes[2 * records.in_batch] + pool.sizes[records.template]
    deltas = spelled.take(delta)
    joined = pc.binary_join_element_wise(spelled.take(pa.array(2 * sizes)), b"\0", deltas, deltas, tails, b"")
    content = np.frombuffer(_content(joined), np.uint8).copy()
    ends = np.cumsum(spelled_sizes[2 * sizes] + sizes)
    starts_of_tails = ends - pool.sizes[records.template]
    _put(content, starts_of_tails, pool.offset_at[records.template], records.committed)
    _put(content, starts_of_tails, pool.time_at[records.template], records.timestamp)
    offsets = np.concatenate([[0], ends[np.cumsum(batches.counts) - 1]]).astype(np.int32)
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(batches.counts), [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    )


def _put(content: NDArray[np.uint8], starts: INT64, at: INT64, numbers: INT64) -> None:
    """Write int64 numbers into the templates that have a place for them."""
    has = at >= 0
    everywhere: NDArray[Any] = np.ndarray((len(content) - 7,), ">i8", content.data, 0, (1,))
    everywhere[(starts + at)[has]] = numbers[has]


def _content(joined: Any) -> Any:
    """The bytes of all elements of a new array, whose content starts at offset 0."""
    offsets, data = joined.buffers()[1:]
    end = int(np.frombuffer(offsets, np.int32)[len(joined)])
    return data.slice(0, end)


def _fixed(heads: NDArray[Any]) -> Any:
    data = pa.py_buffer(heads.tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(_HEAD.itemsize), len(heads), [None, data]).cast(pa.binary())


@cache
def _varints() -> tuple[Any, INT64]:
    """All varints that can occur, and their sizes."""
    spelled = [varint(number) for number in range(_VARINTS)]
    return pa.array(spelled, pa.binary()), np.array([len(each) for each in spelled], np.int64)


def _with_crcs(content: Any, ends: INT64) -> bytes:
    data = content.to_pybytes()
    starts = np.concatenate([[0], ends[:-1]])
    crcs = [crc32c(data[at + _CRC_FROM : end]) for at, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    writable = bytearray(data)
    everywhere: NDArray[Any] = np.ndarray((len(writable) - 3,), ">u4", writable, 0, (1,))
    everywhere[starts + _CRC_AT] = crcs
    return bytes(writable)


# ---------------------------------------------------------------------------------------------------------- compression


def _compressed(bodies: Any, is_control: NDArray[np.bool_], codec: str) -> Any:
    compress = _COMPRESSORS[codec]
    pairs = zip(bodies.to_pylist(), is_control.tolist(), strict=True)
    return pa.array([body if plain else compress(body) for body, plain in pairs], pa.binary())


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, compresslevel=6, mtime=0)


def _snappy(body: bytes) -> bytes:
    """Compress as snappy-java's SnappyOutputStream does: a header, then blocks, each after its length."""
    out = [bytes.fromhex("82534e4150505900 00000001 00000001")]
    for at in range(0, len(body), _SNAPPY_BLOCK):
        block = _SNAPPY.compress(body[at : at + _SNAPPY_BLOCK], asbytes=True)
        out += [len(block).to_bytes(4, "big"), block]
    return b"".join(out)


def _lz4(body: bytes) -> bytes:
    """Compress into a frame of independent blocks. Kafka reads only these; pyarrow's own frames have dependent
    blocks."""
    out = [_LZ4_HEAD]
    for at in range(0, len(body), _LZ4_BLOCK):
        plain = body[at : at + _LZ4_BLOCK]
        block = _LZ4.compress(plain, asbytes=True)
        kept, flag = (block, 0) if len(block) < len(plain) else (plain, 1 << 31)
        out += [(len(kept) | flag).to_bytes(4, "little"), kept]
    return b"".join([*out, b"\0\0\0\0"])


def _zstd(body: bytes) -> bytes:
    content: bytes = _ZSTD.compress(body, asbytes=True)
    return content


_SNAPPY: Final = pa.Codec("snappy")
_SNAPPY_BLOCK: Final = 32 * 1024
_LZ4: Final = pa.Codec("lz4_raw")
_LZ4_BLOCK: Final = 64 * 1024
_LZ4_HEAD: Final = bytes.fromhex("04224d18 60 40 82")
"""Magic, independent blocks without checksums, blocks of 64 KiB, checksum of the two bytes before."""
_ZSTD: Final = pa.Codec("zstd", compression_level=3)
_COMPRESSORS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "gzip": _gzip,
    "snappy": _snappy,
    "lz4": _lz4,
    "zstd": _zstd,
}
