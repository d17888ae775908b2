"""Writes committed offsets in the formats of other programs: Kafka's tool that resets offsets, and Spark's own source.
The functions accept rows of `current_offsets` with the columns `NEEDED`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TextIO

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.findings import NOT_WRITTEN, Finding
from kafka_records_tables.query import QueryError
from kafka_records_tables.results.csv_lines import write_rows

if TYPE_CHECKING:
    from kafka_records_engine.findings import OnFinding

NEEDED: Final = ("group_id", "topic", "partition", "offset", "log_partition")

EARLIEST: Final = -2
"""The offset that Spark reads as the start of a log (`ListOffsetsRequest.EARLIEST_TIMESTAMP`)."""


def write_reset_offsets(batches: Iterable[pa.RecordBatch], out: TextIO) -> None:
    """Write a line `group,topic,partition,offset` per row, without a header.

    `kafka-consumer-groups --reset-offsets --from-file FILE` reads the file, with a `--group` for each group
    (`ConsumerGroupCommand.parseResetPlan`). `--all-groups` covers only groups that still exist on the brokers. If an
    offset is not in the log, the tool uses the nearest one that is.

    The rows must come from `without_line_breaks`, because the tool splits the file at line breaks before it handles
    quotes.

    Raises
    ------
    QueryError
        If a group has two offsets for a partition, because it is in two partitions of the log. Nothing is written then.
    """
    rows = list(batches)
    _refuse_copies(rows)
    for batch in rows:
        write_rows([batch.select(NEEDED[:4])], out, "\n")


def _refuse_copies(batches: Sequence[pa.RecordBatch]) -> None:
    if not batches:
        return
    rows = pa.Table.from_batches([batch.select(NEEDED) for batch in batches])
    places = [("log_partition", function) for function in ("count", "min", "max")]
    found = rows.filter(pc.is_valid(rows["offset"])).group_by([*NEEDED[:3]]).aggregate(places)
    twice = found.filter(pc.greater(found["log_partition_count"], 1)).slice(0, 1).to_pylist()
    for row in twice:
        where = f"{row['topic']}-{row['partition']} of the group {row['group_id']!r}"
        raise QueryError(_in_two(where, row["log_partition_min"], row["log_partition_max"]))


def _in_two(where: str, first: int, second: int) -> str:
    return (
        f"the offset of {where} is in log partitions {first} and {second}: choose one with --where "
        "log_partition=N, or pass the moment before partitions were added to __consumer_offsets with --as-of"
    )


def without_line_breaks(batches: Iterable[pa.RecordBatch], on_finding: OnFinding) -> Iterator[pa.RecordBatch]:
    """Drop the rows of groups with a line break in their names, and report each such group as a finding."""
    found: set[str] = set()
    for batch in batches:
        groups = batch.column("group_id")
        is_broken = pc.fill_null(pc.match_substring_regex(groups, r"[\r\n]"), False)
        for group in groups.filter(is_broken).unique().to_pylist():
            if group not in found:
                found.add(group)
                what = (
                    f"the group {group!r} has a line break in its name, which Kafka's tool reads as the end of a line"
                )
                on_finding(Finding("damage", NOT_WRITTEN, what, "its offsets are left out; --format json has them"))
        yield batch.filter(pc.invert(is_broken))


def write_starting_offsets(batches: Iterable[pa.RecordBatch], out: TextIO) -> None:
    """Write the value of `starting_offsets` for the rows, on one line."""
    out.write(f"{starting_offsets(batches)}\n")


def starting_offsets(rows: pa.Table | Iterable[pa.RecordBatch]) -> str:
    """The value for the option `startingOffsets` of Spark's Kafka source: `{"topic":{"0":42}}`.

    A partition without a committed offset (null) begins at its start (-2). Spark requires every partition of the topics
    that it subscribes to.

    Raises
    ------
    QueryError
        If the rows are about several groups or none, if a partition has two offsets (because the group is in two
        partitions of the log), or if an offset is negative, which Spark would read as the end or the start.
    """
    batches = rows.to_batches() if isinstance(rows, pa.Table) else rows
    groups: set[str] = set()
    found: dict[str, dict[int, int]] = {}
    places: dict[tuple[str, int], int] = {}
    for batch in batches:
        for group, topic, partition, offset, place in zip(
            *(batch.column(name).to_pylist() for name in NEEDED), strict=True
        ):
            offsets = found.setdefault(topic, {})
            if offset is None:
                offsets.setdefault(partition, EARLIEST)
                continue
            groups.add(group)
            where = f"{topic}-{partition} of the group {group!r}"
            if (topic, partition) in places and len(groups) == 1:
                first, second = sorted((places[topic, partition], place))
                raise QueryError(_in_two(where, first, second))
            if offset < 0:
                raise QueryError(
                    f"{where} has the offset {offset}, which Spark reads as the end or the start: leave it out with "
                    "--where 'offset>=0'"
                )
            places[topic, partition] = place
            offsets[partition] = offset
    if len(groups) != 1:
        names = ", ".join(sorted(map(repr, groups))[:3])
        about = f"{len(groups)} groups ({names}{', …' if len(groups) > 3 else ''})" if groups else "none"
        raise QueryError(
            f"starting offsets are for one group, but these rows are about {about}: choose one with --group NAME"
        )
    ordered = {
        topic: {str(partition): offset for partition, offset in sorted(offsets.items())}
        for topic, offsets in sorted(found.items())
    }
    return json.dumps(ordered, separators=(",", ":"))
