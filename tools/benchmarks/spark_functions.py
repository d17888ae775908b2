#!/usr/bin/env python3
"""Time functions in the JVM, compared with Java UDFs that use Kafka's classes, and by number of rows. See `--help`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import log
from pathlib import Path
from random import Random
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the root

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from pyspark.sql import DataFrame, SparkSession  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402, N812 (the name everybody gives it)

from kafka_records.consumer_offsets.group_metadata import GroupMetadataValue, MemberMetadata  # noqa: E402
from kafka_records.share_group_state.share_snapshot import ShareSnapshotValue, StateBatch  # noqa: E402
from kafka_records.spark.consumer_offsets import (  # noqa: E402
    decode_records,
    from_group_metadata_value,
    from_offset_commit_value,
    to_offset_commit_value,
)
from kafka_records.spark.share_group_state import from_share_snapshot_value  # noqa: E402
from kafka_records_codegen.evolution.kafka_releases import cache_folder  # noqa: E402
from kafka_records_engine.spark.spark_types import spark_type  # noqa: E402
from kafka_records_runtime.records.framing import framed  # noqa: E402
from tools.benchmarks._figures import machine, pair, positive, table, three_digits, versions  # noqa: E402
from tools.benchmarks._java_udf import UDF_CLASS, udf_jars  # noqa: E402
from tools.benchmarks._offset_commits import FILE_ROWS, Mix, offset_commits  # noqa: E402
from tools.benchmarks._spark_contenders import register_java_udf  # noqa: E402
from tools.benchmarks._spark_runs import Timing, local_session, measure_in_turn  # noqa: E402

_EPILOG = """\
Each line is a query by functions in the JVM and the same query by a rival: a Java UDF that reads with Kafka's own class
of that record, or the same function in Python. Both give the same rows, which is compared before anything is timed.
Queries read Parquet and write to Spark's `noop` sink on two cores, local[2]; rounds go over all of them in turn. The
ratios are those of the rates by the clock and by processor time, best / median over the rounds.

--growth N,N,… times decode_records over that many rows, multiples of 100000 (hard links to ten files of as many) in
increasing order, and prints the exponent with
which processor time grows between the smallest and the largest number.

examples:
  tools/benchmarks/spark_functions.py                           all queries
  tools/benchmarks/spark_functions.py --rounds 7 --queries filter
  tools/benchmarks/spark_functions.py --growth 1000000,10000000,100000000
"""

_UDFS: Final[dict[str, Any]] = {"DecodeGroupMetadata": GroupMetadataValue, "DecodeShareSnapshot": ShareSnapshotValue}
_MODULES: Final = ("kafka-clients", "kafka-group-coordinator", "kafka-share-coordinator")
_DISTRIBUTIONS: Final = ("kafka-records", "pyspark", "pyarrow")
_MEMBERS: Final = 20
_BATCHES: Final = 10
_THRESHOLD: Final = 1 << 39


@dataclass(frozen=True)
class Query:
    """A query over some rows, with our function and with a rival's. `goal` is our rate divided by the rival's."""

    name: str
    rows: int
    read: Callable[[SparkSession, Path, int], DataFrame]
    ours: Callable[[DataFrame], DataFrame]
    rival: Callable[[DataFrame], DataFrame]
    goal: float


def _written(path: Path, values: Iterator[bytes]) -> str:
    """A Parquet file of values, written once."""
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        pq.write_table(pa.table({"value": pa.array(values, pa.binary())}), unfinished, row_group_size=5_000)
        unfinished.rename(path)
    return str(path)


def group_values(count: int) -> Iterator[bytes]:
    """Classic groups of 20 members."""
    random = Random(count)
    for number in range(count):
        members = tuple(
            MemberMetadata(
                member_id=f"consumer-group-{number}-{index}-{random.getrandbits(128):032x}",
                client_id=f"consumer-group-{number}-{index}",
                client_host=f"/10.0.{index}.{number % 250}",
                rebalance_timeout=300_000,
                session_timeout=45_000,
                subscription=random.randbytes(60),
                assignment=random.randbytes(40),
            )
            for index in range(_MEMBERS)
        )
        leader = members[0].member_id
        value = GroupMetadataValue("consumer", number, "range", leader, 1_700_000_000_000 + number, members)
        yield framed(3, value.encode(3))


def snapshot_values(count: int) -> Iterator[bytes]:
    """Share snapshots of 10 batches."""
    random = Random(count)
    for number in range(count):
        starts = sorted(random.sample(range(1 << 30), _BATCHES))
        batches = tuple(StateBatch(start, start + 50, random.choice((0, 2, 4)), 1) for start in starts)
        value = ShareSnapshotValue(number, 3, 7, starts[0], 5, 1_700_000_000_000, 1_700_000_000_000 + number, batches)
        yield framed(0, value.encode(0))


def _values(
    name: str, make: Callable[[int], Iterator[bytes]], spark: SparkSession, folder: Path, rows: int
) -> DataFrame:
    return spark.read.parquet(_written(folder / f"{name}-{rows}.parquet", make(rows)))


def _commits(spark: SparkSession, folder: Path, rows: int) -> DataFrame:
    return spark.read.parquet(*map(str, offset_commits(folder, rows, Mix())))


def _structs(spark: SparkSession, folder: Path, rows: int) -> DataFrame:
    """Decoded values of committed offsets, in Parquet."""
    path = folder / f"commit-structs-{rows}"
    if not (path / "_SUCCESS").is_file():
        value = from_offset_commit_value("value", engine="jvm").alias("value")
        _commits(spark, folder, rows).select(value).write.mode("overwrite").parquet(str(path))
    return spark.read.parquet(str(path))


def _of_udf(name: str, raw: DataFrame) -> DataFrame:
    return raw.select(F.call_function(name, "value").alias("decoded"))


def _filter_ours(raw: DataFrame) -> DataFrame:
    decoded = decode_records(raw, records=["OffsetCommit"], engine="jvm")
    found = decoded.where(F.col("offset_commit.value.offset") > _THRESHOLD)
    return found.select("offset_commit.key.topic", "offset_commit.value.offset")


def _filter_udf(raw: DataFrame) -> DataFrame:
    decoded = raw.select(F.call_function(UDF_CLASS, "key", "value").alias("record"))
    found = decoded.where(F.col("record.value.offset") > _THRESHOLD)
    return found.select("record.key.topic", "record.value.offset")


def _encoded(engine: Any, structs: DataFrame) -> DataFrame:
    return structs.select(to_offset_commit_value("value", 3, mode="PERMISSIVE", engine=engine).alias("bytes"))


QUERIES: Final = (
    Query(
        "group of 20 members",
        100_000,
        partial(_values, "groups", group_values),
        lambda raw: raw.select(from_group_metadata_value("value", engine="jvm").alias("decoded")),
        partial(_of_udf, "DecodeGroupMetadata"),
        1.2,
    ),
    Query(
        "share snapshot",
        500_000,
        partial(_values, "snapshots", snapshot_values),
        lambda raw: raw.select(from_share_snapshot_value("value", engine="jvm").alias("decoded")),
        partial(_of_udf, "DecodeShareSnapshot"),
        1.2,
    ),
    Query("filter and two fields", 2_000_000, _commits, _filter_ours, _filter_udf, 1.4),
    Query("to_offset_commit_value", 1_000_000, _structs, partial(_encoded, "jvm"), partial(_encoded, "python"), 10.0),
)


class Disagreement(Exception):
    """Two ways return different rows. The text names them."""


def check_agreement(query: Query, raw: DataFrame) -> None:
    """Compare the first rows, and a checksum over all rows. Raises Disagreement."""
    first, second = (build(raw.limit(200)).collect() for build in (query.ours, query.rival))
    if list(map(repr, first)) != list(map(repr, second)):
        raise Disagreement(f"{query.name}: {first[:1]} and {second[:1]}")
    sums = [
        found.agg(F.count(F.lit(1)), F.bit_xor(F.xxhash64(*found.columns))).first()
        for found in (query.ours(raw), query.rival(raw))
    ]
    if sums[0] != sums[1]:
        raise Disagreement(f"{query.name}: {sums[0]} and {sums[1]}")


def compare(spark: SparkSession, folder: Path, chosen: Sequence[Query], rounds: int) -> str:
    timings = []
    for query in chosen:
        raw = query.read(spark, folder, query.rows)
        check_agreement(query, raw)
        timings.append([Timing(query.name, query.rows, partial(build, raw)) for build in (query.ours, query.rival)])
    every = [each for both in timings for each in both]
    measure_in_turn(spark, every, 1, tell)
    for each in every:
        each.forget_first()
    measure_in_turn(spark, every, rounds, tell)
    lines = [["", "rows", "ours, µs/row", "rival, µs/row", "÷ rival, clock", "÷ rival, processor", "goal"]]
    for query, (ours, rival) in zip(chosen, timings, strict=True):
        clock = tuple(mine / other for mine, other in zip(ours.rates, rival.rates, strict=True))
        costs = tuple(other / mine for mine, other in zip(ours.costs, rival.costs, strict=True))
        cells = [pair(ours.costs, 1e6), pair(rival.costs, 1e6), pair((clock[0], clock[1])), pair((costs[0], costs[1]))]
        lines.append([query.name, str(query.rows), *cells, f"{query.goal:g}"])
    return table(lines)


def growth(spark: SparkSession, folder: Path, counts: Sequence[int], rounds: int) -> str:
    """The processor time of decode_records by number of rows, and the exponent of its growth. The shortest round
    counts."""
    files = offset_commits(folder, 10 * FILE_ROWS, Mix())
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        timings = []
        for count in counts:
            links = Path(scratch) / str(count)
            links.mkdir()
            for number in range(count // FILE_ROWS):
                os.link(files[number % len(files)], links / f"{number:05d}.parquet")
            raw = spark.read.parquet(str(links))
            timings.append(Timing(str(count), count, partial(decode_records, raw, ["OffsetCommit"], engine="jvm")))
        measure_in_turn(spark, timings[:1] * 3, 1, tell)
        for _ in range(3):
            timings[0].forget_first()
        measure_in_turn(spark, timings, rounds, tell)
    lines = [["rows", "seconds", "processor µs/row"]]
    lines += [[each.name, three_digits(min(each.clock)), pair(each.costs, 1e6)] for each in timings]
    first, last = timings[0], timings[-1]
    exponent = log(min(last.processor) / min(first.processor)) / log(last.rows / first.rows)
    return f"{table(lines)}\nexponent: {exponent:.3f}, goal at most 1.05"


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _counts(text: str) -> list[int]:
    """Numbers of rows that fill whole files. Raises ArgumentTypeError if no exponent follows from them."""
    try:
        counts = [int(each) for each in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"not numbers of rows: {text!r}") from None
    for count in counts:
        if count < FILE_ROWS or count % FILE_ROWS:
            raise argparse.ArgumentTypeError(f"not a positive multiple of {FILE_ROWS}, the rows of a file: {count}")
    if len(counts) < 2 or sorted(set(counts)) != counts:
        raise argparse.ArgumentTypeError(f"not two or more numbers that increase: {text!r}")
    return counts


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 1 if two ways return different rows."""
    parser = argparse.ArgumentParser(
        description="Time functions in the JVM, compared with Java UDFs on Kafka's classes, and by number of rows.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=positive(int), default=5, help="measurements of each (default: %(default)s)")
    parser.add_argument("--queries", metavar="TEXT", default="", help="only queries with this text in their name")
    parser.add_argument("--growth", type=_counts, metavar="N,N[,N…]", help="time numbers of rows instead")
    parser.add_argument("--data", type=Path, metavar="DIR", help="where the rows are kept (default: the cache folder)")
    options = parser.parse_args(arguments)
    folder = options.data or cache_folder() / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            jars = [] if options.growth else udf_jars(Path(scratch), tell, [UDF_CLASS, *_UDFS], _MODULES)
            with local_session(jars) as spark:
                text = _measured(spark, folder, options)
    except Disagreement as error:
        tell(str(error))
        return 1
    print(machine())
    print(", ".join(f"{name} {number}" for name, number in versions(_DISTRIBUTIONS).items()))
    print(f"local[2], best / median of {options.rounds} rounds\n\n{text}")
    return 0


def _measured(spark: SparkSession, folder: Path, options: argparse.Namespace) -> str:
    if options.growth:
        return growth(spark, folder, options.growth, options.rounds)
    register_java_udf(spark)
    for name, message in _UDFS.items():
        spark.udf.registerJavaFunction(name, name, spark_type(message.CODEC.schema))
    return compare(spark, folder, [each for each in QUERIES if options.queries in each.name], options.rounds)


if __name__ == "__main__":
    sys.exit(main())
