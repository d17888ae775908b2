"""Reads thousands of damaged files of saved rows, each in a child process that may crash, hang or use too much memory.

    python -m tests.sources.saved_mutants FOLDER FORMAT FIRST COUNT    reads the mutants FIRST to FIRST + COUNT - 1

The mutants of a format are made from its `ORIGINALS` in turn. Each depends only on its number, so a failure can be
repeated. The child writes the number into a file before it reads the mutant, so the last number there is the one that
ended it.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import random
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources.protocol import Context
from kafka_records_engine.sources.saved_rows import SavedRows

ROOT: Final = Path(__file__).resolve().parents[2]

SECONDS: Final = 10.0
"""The maximum seconds for a mutant. All originals are read in a few milliseconds, so a longer time means that it
hangs."""

CHILD: Final = ["-m", "tests.sources.saved_mutants"]
"""The code that the child runs."""

_MOST_MEMORY: Final = 1 << 30
"""The maximum memory of the child in bytes; each file has some kilobytes."""

_ADDRESSES: Final = 16 << 30
"""The maximum address space of the child in bytes: more than that is a MemoryError, and does not slow down the
machine."""

_ROWS: Final = 24

Row = tuple[int, bytes | None, bytes | None]
"""Offset, key and value."""


# -- the files that are damaged ----------------------------------------------------------------------------------------


class Original(NamedTuple):
    """A sound file."""

    ending: str
    write: Callable[[], bytes]
    has: Callable[[bytes], Callable[[Row], bool]] | None
    """Given the bytes of a mutant, a function that tells whether they contain a row. None if bytes are compressed; then
    only a second reading shows bytes from elsewhere."""


def rows() -> pa.Table:
    """Raw rows of two log partitions; no two keys or values are alike, and none is short."""
    half = _ROWS // 2
    numbers = range(_ROWS)
    values: list[bytes | None] = [
        None if number % 7 == 3 else b"value-%07d-%s" % (number, b"v" * (number % 5)) for number in numbers
    ]
    return pa.table(
        {
            "topic": pa.array(["topic"] * _ROWS),
            "partition": pa.array([0] * half + [1] * half, pa.int32()),
            "offset": pa.array([1_000_000 + number for number in numbers], pa.int64()),
            "timestamp_ms": pa.array([1_790_000_000_000 + number for number in numbers], pa.int64()),
            "key": pa.array([b"key-%09d" % number for number in numbers], pa.binary()),
            "value": pa.array(values, pa.binary()),
            "producer_id": pa.array([-1] * _ROWS, pa.int64()),
            "transaction": pa.array(["none"] * _ROWS),
            "control": pa.array([None] * _ROWS, pa.string()),
        }
    )


def _parquet(**options: Any) -> bytes:
    held = io.BytesIO()
    pq.write_table(rows(), held, row_group_size=_ROWS // 2, **options)
    return held.getvalue()


def _with_dictionaries() -> pa.Table:
    table = rows()
    for name in ("topic", "transaction", "key"):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, table[name].dictionary_encode())
    return table


def _nested() -> pa.Table:
    """Columns that are not part of raw rows in addition to those that are, and key and value inside a struct."""
    table = rows()
    record = pa.StructArray.from_arrays([table[name].combine_chunks() for name in ("key", "value")], ["key", "value"])
    headers = pa.array([[{"name": "h", "value": b"x"}]] * _ROWS)
    table = table.drop_columns(["key", "value"]).append_column("headers", headers).append_column("record", record)
    return table.append_column("more", pa.array(["text"] * _ROWS, pa.string_view()))


def _arrow_file(table: Callable[[], pa.Table], codec: str | None = None) -> bytes:
    held, data = io.BytesIO(), table().combine_chunks()
    with pa.ipc.new_file(held, data.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(data, _ROWS // 2)
    return held.getvalue()


def _arrow_stream(table: Callable[[], pa.Table], codec: str | None = None) -> bytes:
    held, data = io.BytesIO(), table().combine_chunks()
    with pa.ipc.new_stream(held, data.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(data, _ROWS // 2)
    return held.getvalue()


def _avro(codec: str) -> bytes:
    import fastavro

    kinds = {pa.string(): "string", pa.binary(): "bytes", pa.int32(): "int", pa.int64(): "long"}
    fields = [{"name": each.name, "type": ["null", kinds[each.type]]} for each in rows().schema]
    held = io.BytesIO()
    schema: Any = {"type": "record", "name": "row", "fields": fields}
    fastavro.writer(held, schema, rows().to_pylist(), codec=codec, sync_interval=600)
    return held.getvalue()


def _texts(encode: Callable[[bytes], str]) -> list[dict[str, Any]]:
    return [
        {name: encode(value) if isinstance(value, bytes) else value for name, value in row.items()}
        for row in rows().to_pylist()
    ]


def _json() -> bytes:
    return "".join(json.dumps(row) + "\n" for row in _texts(lambda value: base64.b64encode(value).decode())).encode()


def _csv() -> bytes:
    held = io.StringIO()
    writer = csv.DictWriter(held, rows().schema.names)
    writer.writeheader()
    writer.writerows(_texts(bytes.hex))
    return held.getvalue().encode()


def _packed(data: bytes, codec: str) -> bytes:
    packed: bytes = pa.compress(data, codec=codec, asbytes=True)
    return packed


def _in_bytes(data: bytes) -> Callable[[Row], bool]:
    """Whether the file has the bytes of key and value, and of the offset as a number."""

    def has(row: Row) -> bool:
        offset, key, value = row
        return offset.to_bytes(8, "little") in data and (key or b"") in data and (value or b"") in data

    return has


def _in_avro(data: bytes) -> Callable[[Row], bool]:
    return lambda row: (row[1] or b"") in data and (row[2] or b"") in data


def _in_text(data: bytes) -> Callable[[Row], bool]:
    """Whether the file has the digits of the offset, and the texts of key and value."""
    # Line ends and white space may be within a text of base64.
    squeezed = b"".join(data.translate(None, b"=\\\"'").replace(b"-", b"+").replace(b"_", b"/").split()).lower()

    def has_bytes(value: bytes | None) -> bool:
        if not value:
            return True
        # The last character of base64 may have unused bits.
        in_base64 = base64.b64encode(value).rstrip(b"=").lower()
        spellings = (in_base64[: len(in_base64) - 1], value.hex().encode(), b"".join(value.split()).lower())
        return any(spelling in squeezed for spelling in spellings)

    return lambda row: str(row[0]).encode() in data and has_bytes(row[1]) and has_bytes(row[2])


ORIGINALS: Final[Mapping[str, Original]] = {
    "parquet": Original(
        ".parquet",
        lambda: _parquet(compression="none", use_dictionary=False, column_encoding="PLAIN", write_page_index=True),
        _in_bytes,
    ),
    "parquet-snappy": Original(".parquet", _parquet, None),
    "parquet-v2-zstd": Original(
        ".parquet", lambda: _parquet(compression="zstd", data_page_version="2.0", write_page_checksum=True), None
    ),
    "arrow": Original(".arrow", lambda: _arrow_file(rows), _in_bytes),
    "arrow-dictionaries": Original(".arrow", lambda: _arrow_file(_with_dictionaries), _in_bytes),
    "arrow-nested": Original(".arrow", lambda: _arrow_file(_nested), _in_bytes),
    "arrow-lz4": Original(".arrow", lambda: _arrow_file(rows, "lz4"), None),
    "arrow-stream": Original(".arrows", lambda: _arrow_stream(rows), _in_bytes),
    "arrow-stream-zstd": Original(".arrows", lambda: _arrow_stream(_with_dictionaries, "zstd"), None),
    "avro": Original(".avro", lambda: _avro("null"), _in_avro),
    "avro-deflate": Original(".avro", lambda: _avro("deflate"), None),
    "json": Original(".jsonl", _json, _in_text),
    "json-gzip": Original(".jsonl.gz", lambda: _packed(_json(), "gzip"), None),
    "csv": Original(".csv", _csv, _in_text),
    "csv-zstd": Original(".csv.zst", lambda: _packed(_csv(), "zstd"), None),
}


@cache
def original(name: str) -> bytes:
    """The bytes of a sound file."""
    return ORIGINALS[name].write()


def names_of(format: str) -> Iterator[str]:
    """The originals of a format."""
    return (name for name in ORIGINALS if name.partition("-")[0] == format)


# -- damage ------------------------------------------------------------------------------------------------------------

_ODD: Final = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    1 << 40,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
)


def original_of(format: str, number: int) -> str:
    """The name of the original that a mutant is made of."""
    names = [*names_of(format)]
    return names[number % len(names)]


def mutant(format: str, number: int) -> bytes:
    """The bytes of a mutant, by its number."""
    choice = random.Random(f"{format} {number}")
    data = bytearray(original(original_of(format, number)))
    for _ in range(choice.choice((1, 1, 1, 1, 1, 2, 3, 8))):
        choice.choice(_DAMAGES)(data, choice)
    return bytes(data)


def _place(data: bytearray, choice: random.Random) -> int:
    """A random place; more often in headers and at the end, which have the positions of everything else."""
    where = choice.random()
    if where < 0.15:
        return choice.randrange(min(len(data), 256))
    if where < 0.5:
        return len(data) - 1 - choice.randrange(min(len(data), 1600))
    return choice.randrange(len(data))


def _flip(data: bytearray, choice: random.Random) -> None:
    if data:
        data[_place(data, choice)] ^= 1 << choice.randrange(8)


def _byte(data: bytearray, choice: random.Random) -> None:
    if data:
        data[_place(data, choice)] = choice.randrange(256)


def _number(data: bytearray, choice: random.Random) -> None:
    """Replace a number at an aligned place by another one, or by a similar one."""
    width = choice.choice((1, 2, 4, 4, 8, 8))
    if len(data) < width:
        return
    at = min(_place(data, choice), len(data) - width)
    at -= at % width
    was = int.from_bytes(data[at : at + width], "little")
    new = choice.choice(
        (*_ODD, len(data), was + choice.randint(-9, 9), was * 2, was << 8, choice.getrandbits(8 * width))
    )
    data[at : at + width] = (new & ((1 << 8 * width) - 1)).to_bytes(width, "little")


def _cut(data: bytearray, choice: random.Random) -> None:
    if data and choice.random() < 0.3:
        del data[_place(data, choice) :]


def _drop(data: bytearray, choice: random.Random) -> None:
    if data:
        at = _place(data, choice)
        del data[at : at + choice.choice((1, 4, 8, 64))]


def _insert(data: bytearray, choice: random.Random) -> None:
    at = _place(data, choice) if data else 0
    data[at:at] = choice.randbytes(choice.choice((1, 4, 8, 64)))


def _copy(data: bytearray, choice: random.Random) -> None:
    """Copy a range of bytes over another one, or insert it."""
    if data:
        start, size = _place(data, choice), choice.choice((1, 4, 8, 16, 64, 512))
        at, stretch = _place(data, choice), data[start : start + size]
        data[at : at + (len(stretch) if choice.random() < 0.7 else 0)] = stretch


def _digits(data: bytearray, choice: random.Random) -> None:
    """Replace characters in texts."""
    if data:
        data[_place(data, choice)] = choice.choice(b'0123456789-+.eE"\\,:{}[]; \n\r\t\0abcNnul')


_DAMAGES: Final = (_flip, _byte, _number, _number, _number, _cut, _drop, _insert, _copy, _digits)


@dataclass
class Seen:
    """The results for the mutants of one original."""

    mutants: int = 0
    read: int = 0
    """The number of mutants with rows; the others were refused."""
    rows: int = 0

    def add(self, other: Seen) -> None:
        """Add the results of another child."""
        self.mutants += other.mutants
        self.read += other.read
        self.rows += other.rows


# -- the child ---------------------------------------------------------------------------------------------------------


def read(path: Path, is_nested: bool) -> list[Row]:
    """All rows that are read from a file. Raises LogSourceError."""
    found: list[Row] = []
    columns = {"key": "record.key", "value": "record.value"} if is_nested else None
    source = SavedRows(path, columns=columns)
    for topic in source.topics():
        for log in source.partitions(topic):
            last = -1
            for batch in log.batches(Context(topic, log.partition), RAW_SCHEMA.names):
                batch.validate(full=True)
                assert set(batch.column("topic").to_pylist()) == {topic}
                assert set(batch.column("partition").to_pylist()) == {log.partition}
                some = [*zip(*(batch.column(name).to_pylist() for name in ("offset", "key", "value")), strict=True)]
                assert all(one[0] < other[0] for one, other in pairwise([(last, None, None), *some]))
                last = some[-1][0]
                found += some
    return found


def _wrong(name: str, path: Path, data: bytes, seen: Seen) -> str | None:
    """The error in the reading of a mutant; None if it is right."""
    path.write_bytes(data)
    seen.mutants += 1
    try:
        found = read(path, name.endswith("nested"))
    except LogSourceError:
        return None
    except BaseException:
        return traceback.format_exc()
    seen.read += 1
    seen.rows += len(found)
    has = ORIGINALS[name].has
    if has is not None:
        is_there = has(data)
        strange = next((row for row in found if not is_there(row)), None)
        return None if strange is None else f"a row that is not in the file: {strange}"
    _soil()
    return None if read(path, False) == found else "two readings gave different rows"


def _soil() -> None:
    """Fill memory that is allocated next with other bytes."""
    for size in (64, 256, 1024, 8192, 1 << 16):
        held = [pa.allocate_buffer(size) for _ in range(8)]
        for each in held:
            memoryview(each).cast("B")[:] = b"\xa5" * size


def main(folder: str, format: str, first: str, count: str) -> None:
    """Read some mutants, and print a JSON object per failure and, at the end, one with the results."""
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seen = {name: Seen() for name in names_of(format)}
    for name in seen:
        path = _path(folder, name)
        path.write_bytes(original(name))
        assert len(read(path, name.endswith("nested"))) == _ROWS, name
    with open(Path(folder) / "number", "wb", buffering=0) as at:
        for number in range(int(first), int(first) + int(count)):
            os.pwrite(at.fileno(), b"%20d" % number, 0)
            name = original_of(format, number)
            # The default action ends the process, in the middle of C too.
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            wrong = _wrong(name, _path(folder, name), mutant(format, number), seen[name])
            signal.setitimer(signal.ITIMER_REAL, 0)
            is_large = _most_memory() > _MOST_MEMORY
            if is_large:
                wrong = f"more than {_MOST_MEMORY} bytes of memory"
            if wrong is not None:
                print(json.dumps({"number": number, "wrong": wrong}), flush=True)
            if is_large:
                break  # memory never decreases: the parent continues with a new process
    for name, found in seen.items():
        print(json.dumps({"name": name, **asdict(found)}), flush=True)


def _most_memory() -> int:
    """The peak memory of this process in bytes. On Linux, `ru_maxrss` starts at the memory of the parent, which may be
    more than a child needs, so /proc is read if it exists."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


def _path(folder: str, name: str) -> Path:
    return Path(folder) / f"{name}{ORIGINALS[name].ending}"


# -- the parent --------------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """The results for some mutants."""

    seen: dict[str, Seen]
    """The results by original, without those of a child that did not complete."""
    wrong: dict[int, str] = field(default_factory=dict)
    """The failures by number of the mutant."""


def run(format: str, first: int, count: int, folder: Path) -> Outcome:
    """Read mutants in child processes."""
    outcome, at, end = Outcome({name: Seen() for name in names_of(format)}), first, first + count
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    number = folder / "number"
    while at < end:
        number.unlink(missing_ok=True)
        arguments = [sys.executable, *CHILD, str(folder), format, str(at), str(end - at)]
        done = subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, check=False)
        for told in map(json.loads, done.stdout.splitlines()):
            if "number" in told:
                outcome.wrong[told["number"]] = told["wrong"]
            else:
                outcome.seen[told.pop("name")].add(Seen(**told))
        if not number.exists():
            raise AssertionError(done.stderr.decode())
        last = int(number.read_bytes())
        if done.returncode:
            outcome.wrong[last] = _ended(done.returncode, done.stderr)
        at = last + 1
    return outcome


def _ended(status: int, said: bytes) -> str:
    if -status == signal.SIGALRM:
        return f"it takes more than {SECONDS:g} seconds"
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
    return f"the process ended with {how}: {said.decode(errors='replace')[-2000:]}"


if __name__ == "__main__":
    main(*sys.argv[1:])
