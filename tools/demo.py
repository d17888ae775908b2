"""The tables of a captured data directory, tests/data/topics/kafka-4.3, which a Kafka 4.3.1 broker wrote.

    python tools/demo.py local    the command prints the first rows of every table, in its most important columns
    python tools/demo.py spark    PySpark prints the same, and compares all rows with those of the local engine

The exit status is 1 if a table has damage or the engines differ. `make demo` (tools/demo.sh) installs what both parts
need.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka_records_tables import TABLES, read_table
from kafka_records_tables.commands.main import main as kafka_records

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

SEGMENTS: Final = Path(__file__).resolve().parents[1] / "tests" / "data" / "topics" / "kafka-4.3" / "segments"
METADATA_TOPIC: Final = "__cluster_metadata"
METADATA: Final = SEGMENTS.parents[2] / "metadata" / "kafka-4.3"
ROWS_SHOWN: Final = 3
COLUMNS_SHOWN: Final = 6
ROWS_SHOWN_BY_SPARK: Final = 5
COLUMNS_SHOWN_BY_SPARK: Final = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Show one part; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=["local", "spark"])
    source = str(SEGMENTS.relative_to(Path.cwd()) if SEGMENTS.is_relative_to(Path.cwd()) else SEGMENTS)
    return show_local(source) if parser.parse_args(arguments).engine == "local" else show_by_spark(source)


def show_local(source: str) -> int:
    """Run the command once per table; returns the highest of its exit statuses."""
    status = 0
    for name, table in TABLES.items():
        columns = ",".join(table.essential or table.names[:COLUMNS_SHOWN])
        words = ["table", name, _place(name, source), "--limit", str(ROWS_SHOWN), "--columns", columns]
        print(f"\n{name}: {table.about}\n$ kafka-records {' '.join(words)}", flush=True)
        status = max(status, kafka_records(words))
    return status


def show_by_spark(source: str) -> int:
    """Read every table by the data source, and compare its rows with those of the local engine."""
    import pyspark

    from kafka_records_tables.engines.spark_session import local_session
    from kafka_records_tables.spark import register

    print(f"The same by PySpark {pyspark.__version__}, which starts now:", flush=True)
    differ = 0
    with local_session({}) as spark:
        register(spark)
        for name in TABLES:
            place = _place(name, source)
            by_spark = _show_by_spark(spark, name, place)
            problem = difference(read_table(name, place).table, by_spark)
            differ += problem is not None
            equal = f"all {len(by_spark)} rows are equal to those of the local engine"
            print(f"{name}: {problem or equal}", flush=True)
    print(f"\n{differ} of {len(TABLES)} tables differ." if differ else f"\nAll {len(TABLES)} tables are equal.")
    return 1 if differ else 0


def _place(name: str, source: str) -> str:
    """The source of a table: the captured topics have no metadata log, so tables of that log read another directory."""
    if TABLES[name].topic != METADATA_TOPIC:
        return source
    return str(METADATA.relative_to(Path.cwd()) if METADATA.is_relative_to(Path.cwd()) else METADATA)


def _show_by_spark(spark: SparkSession, name: str, source: str) -> pa.Table:
    """Print the first rows; returns all of them, in the order of the table."""
    table = TABLES[name]
    first = table.names[:COLUMNS_SHOWN_BY_SPARK]
    print(f'\n>>> {name} = spark.read.format("kafka-records").option("table", "{name}").load("{source}")')
    order, columns = (", ".join(f'"{each}"' for each in names) for names in (table.sort, first))
    print(f">>> {name}.orderBy({order}).select({columns}).show({ROWS_SHOWN_BY_SPARK})", flush=True)
    frame = spark.read.format("kafka-records").option("table", name).load(source)
    frame.orderBy(*table.sort).select(*first).show(ROWS_SHOWN_BY_SPARK)
    rows: pa.Table = frame.toArrow().cast(table.schema)
    return rows.sort_by([(each, "ascending") for each in table.sort])


def difference(expected: pa.Table, found: pa.Table) -> str | None:
    """How the rows of Spark differ from those of the local engine; None if they are equal."""
    if len(expected) != len(found):
        return f"NOT EQUAL: {len(found)} rows by Spark, {len(expected)} by the local engine"
    if expected.equals(found):
        return None
    pairs = enumerate(zip(expected.to_pylist(), found.to_pylist(), strict=True))
    place, (ours, theirs) = next((place, pair) for place, pair in pairs if pair[0] != pair[1])
    columns = ", ".join(
        f"{each} {theirs[each]!r} by Spark, {ours[each]!r} here" for each in ours if ours[each] != theirs[each]
    )
    return f"NOT EQUAL, first in row {place}: {columns}"


if __name__ == "__main__":
    sys.exit(main())
