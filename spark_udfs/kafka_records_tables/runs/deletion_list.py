"""What `delete-offsets` is asked to delete: rows of the table deletable_offsets in a file, or arguments."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from csv import reader
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from kafka_records_engine.sources.group_requests import CommittedOffset, TopicPartition
from kafka_records_tables.runs.endings import CommandError

STANDARD_INPUT: Final = "-"

_NEEDED: Final = ("group_id", "topic", "partition", "offset")
_NUMBERS: Final = ("partition", "offset", "leader_epoch", "commit_timestamp_ms")
_PARQUET: Final = b"PAR1"
_NO_EPOCH: Final = -1


class Expected(NamedTuple):
    """What a list says of an offset; None for what it does not tell. Without an offset nothing is committed."""

    offset: int | None
    leader_epoch: int | None = None
    metadata: str | None = None
    commit_timestamp_ms: int | None = None

    def is_met_by(self, committed: CommittedOffset | None) -> bool:
        """Whether this is what the coordinator holds, as far as the list tells."""
        if committed is None or self.offset is None:
            return committed is None and self.offset is None
        epochs = (committed.leader_epoch, None)
        return (
            self.offset == committed.offset
            and self.leader_epoch in epochs
            and self.metadata in (committed.metadata, None)
        )


@dataclass
class Wanted:
    """What is to be deleted of one group."""

    expected: dict[TopicPartition, Expected] = field(default_factory=dict)
    """The offsets that a list names."""
    places: set[TopicPartition] = field(default_factory=set)
    """Partitions that arguments name."""
    topics: set[str] = field(default_factory=set)
    """Topics all of whose offsets are meant."""
    is_whole: bool = False
    """Whether the group goes with all that it has."""
    has_list: bool = False
    """Whether a list says what there is."""


@dataclass
class DeletionList:
    """What is wanted, by group."""

    wanted: dict[str, Wanted] = field(default_factory=dict)
    passed_over: int = 0
    """Rows that the list itself calls not deletable."""
    groups: int = 0
    """Rows of groups that were let pass, since whole groups are not asked for."""


def of_arguments(groups: Iterable[str], topics: Iterable[str], *, whole: bool) -> DeletionList:
    """What `--group` and `--topic T[:P,…]` name. Raises ValueError for a topic that is written otherwise."""
    places, all_of = set[TopicPartition](), set[str]()
    for text in topics:
        name, colon, numbers = text.partition(":")
        partitions = numbers.split(",")
        if not name or (colon and not all(each.isascii() and each.isdigit() for each in partitions)):
            raise ValueError(f"{text!r} is not TOPIC or TOPIC:PARTITION[,…], as orders:0,1")
        if colon:
            places |= {(name, int(each)) for each in partitions}
        else:
            all_of.add(name)
    return DeletionList({group: Wanted(places=set(places), topics=set(all_of), is_whole=whole) for group in groups})


def of_file(name: str, *, whole: bool) -> DeletionList:
    """The rows of a file of deletable_offsets, JSON lines, CSV or Parquet; `-` is standard input. Raises CommandError.

    With `whole`, groups that the list calls deletable go as a whole.
    """
    shown = "standard input" if name == STANDARD_INPUT else name
    try:
        content = sys.stdin.buffer.read() if name == STANDARD_INPUT else Path(name).read_bytes()
        found = DeletionList()
        for row in _rows(content):
            _add(row, found, whole=whole)
    except OSError as error:
        raise CommandError(f"{shown}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise CommandError(
            f"{shown}: {error}: this is no list of offsets, write one with "
            "`kafka-records table deletable_offsets … --format json`"
        ) from None
    return found


def _add(row: Mapping[str, Any], found: DeletionList, *, whole: bool) -> None:
    missing = [name for name in _NEEDED if name not in row]
    if missing:
        raise ValueError(f"it has no column {missing[0]}")
    is_deletable = row.get("is_deletable", True)
    group = row["group_id"]
    if row.get("kind", "offset") == "group":
        if not whole:
            found.groups += 1
        elif is_deletable:
            found.wanted.setdefault(group, Wanted(has_list=True)).is_whole = True
        return
    if not is_deletable:
        found.passed_over += 1
        return
    epoch = None
    if "leader_epoch" in row:
        epoch = _NO_EPOCH if row["leader_epoch"] is None else row["leader_epoch"]
    metadata = (row["metadata"] or "") if "metadata" in row else None
    place = str(row["topic"]), int(row["partition"])
    expected = Expected(row["offset"], epoch, metadata, row.get("commit_timestamp_ms"))
    found.wanted.setdefault(group, Wanted(has_list=True)).expected[place] = expected


def _rows(content: bytes) -> Iterator[dict[str, Any]]:
    if content.startswith(_PARQUET):
        from pyarrow import parquet

        yield from parquet.read_table(io.BytesIO(content)).to_pylist()
    elif content.lstrip()[:1] == b"{":
        for number, line in enumerate(content.decode().split("\n"), 1):
            if line.strip():
                try:
                    row = json.loads(line)
                except json.JSONDecodeError as error:
                    raise ValueError(f"line {number}: {error}") from None
                yield row
    elif content.strip():
        yield from map(_typed, _of_csv(content))


def _of_csv(content: bytes) -> list[dict[str, Any]]:
    """All columns as texts: an empty field is null, two quotes are the empty text."""
    from pyarrow import csv, string

    header, _, _ = content.partition(b"\n")
    texts = csv.ConvertOptions(
        column_types={name: string() for name in next(reader([header.decode()]))},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    rows: list[dict[str, Any]] = csv.read_csv(
        io.BytesIO(content), parse_options=csv.ParseOptions(newlines_in_values=True), convert_options=texts
    ).to_pylist()
    return rows


def _typed(row: dict[str, Any]) -> dict[str, Any]:
    numbers = {name: int(row[name]) for name in _NUMBERS if row.get(name) is not None}
    truths = {"is_deletable": row["is_deletable"] == "true"} if "is_deletable" in row else {}
    return row | numbers | truths
