"""Reads Spark Structured Streaming checkpoints: how far a query has processed the records of Kafka topics.

For each batch, a checkpoint has a file in `offsets/`, written before the batch, and a file in `commits/`, written after
it (`OffsetSeqLog`, `CommitLog`, both of them an `HDFSMetadataLog`). The query has processed the records up to the
offsets of the last batch in `commits/`. Spark writes a file under another name and then renames it, so a file with a
number as its name is complete. Other files are ignored.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_runtime.text.printable import printable

_BATCH: Final = re.compile("[0-9]{1,18}")
_VERSIONS: Final = ("v1", "v2")
_NO_OFFSET: Final = "-"
"""The text for a missing offset (`OffsetSeqLog.SERIALIZED_VOID_OFFSET`)."""
_MOST_BYTES: Final = 256 * 1024 * 1024

_SUMS: Final = struct.Struct(">4si")
_SUMS_MAGIC: Final = b"crc\0"
_SUM: Final = struct.Struct(">I")

_MOST_PARTITION: Final = 2**31 - 1
_MOST_OFFSET: Final = 2**63 - 1

_COPY: Final = "Copy the checkpoint again, with its hidden files, or leave it out"


class CheckpointError(KafkaRecordsError, ValueError):
    """A checkpoint cannot be used. The text says what is wrong, where, and what to do."""

    def __init__(self, problem: str, place: Path | str, what_to_do: str) -> None:
        super().__init__(f"{problem}: {printable(str(place))}. {what_to_do}.")
        self.problem = problem
        self.place = str(place)
        self.what_to_do = what_to_do

    def __reduce__(self) -> tuple[type[CheckpointError], tuple[str, str, str]]:
        return CheckpointError, (self.problem, self.place, self.what_to_do)


class GivenCheckpoint(NamedTuple):
    """A checkpoint as the user named it."""

    name: str
    """The name of the query; empty to use the id that Spark gave it."""
    path: str


class QueryOffset(NamedTuple):
    """The offset at which a query continues in a partition."""

    topic: str
    partition: int
    offset: int | None
    """The offset of the next record; None if no batch is committed."""


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """The progress of a query according to its checkpoint."""

    query: str
    place: str
    batch: int | None
    """The last committed batch; None if there is none."""
    planned: int | None
    """The last planned batch, if it is not committed."""
    timestamp_ms: int | None
    """When the committed batch was planned, in milliseconds since 1970; None if there is none."""
    offsets: tuple[QueryOffset, ...]
    other_sources: int
    """How many of the query's sources are not Kafka."""


class _Batch(NamedTuple):
    timestamp_ms: int | None
    offsets: dict[tuple[str, int], int]
    other_sources: int


def read_checkpoints(given: Sequence[GivenCheckpoint]) -> tuple[QueryProgress, ...]:
    """Read the current content of the given checkpoints. Raises CheckpointError."""
    found = tuple(map(read_checkpoint, given))
    places: dict[str, str] = {}
    for each in found:
        other = places.setdefault(each.query, each.place)
        if other != each.place:
            raise CheckpointError(
                f"two checkpoints belong to the query {printable(each.query)}",
                f"{other}, {each.place}",
                "Give only one of them, or give them different names: NAME=DIR",
            )
    return found


def read_checkpoint(given: GivenCheckpoint) -> QueryProgress:
    """Read the current content of a checkpoint. Raises CheckpointError."""
    folder = Path(given.path)
    planned_in = folder / "offsets"
    if not folder.exists():
        raise CheckpointError("there is no such directory", folder, "Give the checkpointLocation of a query")
    if not _is_folder(planned_in):
        raise CheckpointError(
            "not a checkpoint of a Spark query: it has no directory 'offsets'",
            folder,
            "Give a local directory, the checkpointLocation of one query",
        )
    query = given.name or _query_id(folder / "metadata")
    committed_in = folder / "commits"
    # Read the commits first, so that a batch that Spark commits in the meantime still counts as planned.
    committed = max(_batches(committed_in), default=None) if _is_folder(committed_in) else None
    planned = max(_batches(planned_in), default=None)
    if planned is not None and (committed is None or planned > committed):
        ahead = _read_offsets(planned_in / str(planned))
    else:
        planned = ahead = None
    if committed is None:
        offsets = [QueryOffset(*place, None) for place in ahead.offsets] if ahead else []
        others = ahead.other_sources if ahead else 0
        return QueryProgress(query, given.path, None, planned, None, tuple(offsets), others)
    _check_commit(committed_in / str(committed))
    file = planned_in / str(committed)
    if not file.exists():
        raise CheckpointError(f"the batch {committed} is committed, but its offsets are missing", file, _COPY)
    done = _read_offsets(file)
    offsets = [QueryOffset(*place, offset) for place, offset in done.offsets.items()]
    return QueryProgress(query, given.path, committed, planned, done.timestamp_ms, tuple(offsets), done.other_sources)


# -- files -------------------------------------------------------------------------------------------------------------


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError as error:
        raise _unreadable(path, error) from None


def _batches(folder: Path) -> Iterator[int]:
    """The numbers of the batches that have a file (`HDFSMetadataLog.batchFilesFilter`)."""
    try:
        names = [each.name for each in folder.iterdir()]
    except OSError as error:
        raise _unreadable(folder, error) from None
    return (int(name) for name in names if _BATCH.fullmatch(name))


def _lines(file: Path) -> list[str]:
    """The lines of a file with correct checksums. The first line must be a known version."""
    content = _content(file)
    _check_sums(file, content)
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError as error:
        raise CheckpointError(f"damaged: byte {error.start} is not UTF-8", file, _COPY) from None
    version = lines[0].strip()
    if version not in _VERSIONS:
        if re.fullmatch("v[0-9]{1,9}", version):
            known = " and ".join(_VERSIONS)
            raise CheckpointError(
                f"unknown format {version}; the known ones are {known}", file, "Use a newer release of kafka-records"
            )
        problem = "damaged: the file does not begin with a version" if content.strip(b"\0 \n") else "empty"
        raise CheckpointError(problem, file, _COPY)
    return lines


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise _unreadable(file, error) from None
    if len(content) > _MOST_BYTES:
        raise CheckpointError(f"larger than {_MOST_BYTES} bytes", file, "Leave the checkpoint out")
    return content


def _unreadable(path: Path, error: OSError) -> CheckpointError:
    return CheckpointError(f"cannot be read ({error.strerror or error})", path, "Give a directory that you may read")


def _check_sums(file: Path, content: bytes) -> None:
    """Check a file against the checksums next to it, if any. Hadoop writes them on local disks (`ChecksumFileSystem`: a
    header, then the CRC-32 of each chunk)."""
    sums_file = file.with_name(f".{file.name}.crc")
    try:
        sums = sums_file.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unreadable(sums_file, error) from None
    chunk = _SUMS.unpack_from(sums)[1] if len(sums) >= _SUMS.size and sums.startswith(_SUMS_MAGIC) else 0
    if chunk <= 0:
        raise CheckpointError("damaged checksums", sums_file, _COPY)
    chunks = [content[start : start + chunk] for start in range(0, len(content), chunk)]
    if sums[_SUMS.size :] != b"".join(_SUM.pack(zlib.crc32(each)) for each in chunks):
        raise CheckpointError(f"the content does not match the checksums in {sums_file.name}", file, _COPY)


# -- content -----------------------------------------------------------------------------------------------------------


def _json(text: str, file: Path, line: int) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise CheckpointError(f"damaged in line {line}, which is not JSON", file, _COPY) from None


def _query_id(file: Path) -> str:
    """The id of the query (`StreamMetadata`). A checkpoint does not contain its name."""
    if not file.exists():
        raise CheckpointError("the file with the id of the query is missing", file, "Name the query: NAME=DIR")
    content = _content(file)
    _check_sums(file, content)
    found = _json(content.decode(errors="replace"), file, 1)
    query = found.get("id") if isinstance(found, dict) else None
    if not isinstance(query, str) or not query:
        raise CheckpointError("the file has no query id", file, _COPY)
    return query


def _check_commit(file: Path) -> None:
    lines = _lines(file)
    if len(lines) > 1 and lines[1].strip():
        _json(lines[1], file, 2)


def _read_offsets(file: Path) -> _Batch:
    """The offsets at which a batch ends. If two sources of the query read the same partition, the lower offset counts,
    because all records before it have been processed."""
    lines = _lines(file)
    if len(lines) < 3:
        raise CheckpointError("cut short: it has no line for any source", file, _COPY)
    metadata = _json(lines[1], file, 2) if lines[1].strip() else {}
    stamp = metadata.get("batchTimestampMs") if isinstance(metadata, dict) else None
    offsets: dict[tuple[str, int], int] = {}
    others = 0
    for number, line in enumerate(lines[2:], 3):
        text = line.strip()
        if lines[0].strip() == "v2":
            source, colon, text = text.partition(":")  # the line starts with the name of the source
            if not colon or not source:
                raise CheckpointError(f"damaged in line {number}, which does not name a source", file, _COPY)
        if text == _NO_OFFSET:
            continue
        of_source = _offsets_of_kafka(_json(text, file, number))
        if of_source is None:
            others += 1
            continue
        for place, offset in of_source.items():
            offsets[place] = min(offset, offsets.get(place, offset))
    is_time = isinstance(stamp, int) and not isinstance(stamp, bool) and 0 < stamp <= _MOST_OFFSET
    return _Batch(stamp if is_time else None, offsets, others)


def _offsets_of_kafka(found: Any) -> dict[tuple[str, int], int] | None:
    """The offsets of a Kafka source, `{"topic": {"0": 123}}` (`KafkaSourceOffset`); None for another kind of source."""
    if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
        return None
    offsets = {}
    for topic, partitions in found.items():
        for partition, offset in partitions.items():
            if not topic or not re.fullmatch("[0-9]{1,10}", partition) or int(partition) > _MOST_PARTITION:
                return None
            if isinstance(offset, bool) or not isinstance(offset, int) or not -1 <= offset <= _MOST_OFFSET:
                return None
            offsets[topic, int(partition)] = offset
    return offsets
