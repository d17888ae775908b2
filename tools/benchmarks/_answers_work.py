#!/usr/bin/env python3
"""One task of `answers.py`, in a separate process: `_answers_work.py KIND FOLDER …` prints one line of JSON.

The measured time is that from the call to its result. It does not include the start of an interpreter, of Arrow or of a
JVM, except for the workers that the local engine starts itself.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the root

import pyarrow as pa  # noqa: E402
import pyarrow.compute as pc  # noqa: E402

from kafka_records.schemas.consumer_offsets import RECORDS  # noqa: E402
from kafka_records_engine.columns import decode_record_columns  # noqa: E402
from kafka_records_engine.log.reading.segment_files import FoundLog, find_logs, read_partition  # noqa: E402

PROCESSES: Final = 2

Outcome = dict[str, float]


def _processor_seconds() -> float:
    """The processor time of this process, and of the processes that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _timed(call: Callable[[], Outcome]) -> Outcome:
    busy, start = _processor_seconds(), time.perf_counter()
    outcome = call()
    return {"seconds": time.perf_counter() - start, "processor": _processor_seconds() - busy, **outcome}


# ---------------------------------------------------------------------------------------------------- the local engine


def local_table(folder: Path, name: str) -> Outcome:
    """A table by the local engine."""
    from kafka_records_tables import read_table

    return _timed(lambda: _of_table(read_table(name, folder, processes=PROCESSES).table))


def counted_table(folder: Path, name: str, options: str) -> Outcome:
    """A table by the local engine. Rows of a history are counted and discarded, because they may be too many for the
    memory."""
    from kafka_records_tables import read_table, stream_table
    from kafka_records_tables.tables import TABLES

    asked = json.loads(options)
    if not TABLES[name].is_history:
        return _timed(lambda: {"rows": read_table(name, folder, processes=PROCESSES, **asked).table.num_rows})
    with stream_table(name, folder, processes=PROCESSES, **asked) as rows:
        return _timed(lambda: {"rows": sum(batch.num_rows for batch in rows)})


def report_tables(folder: Path) -> Outcome:
    """The tables of a report by the local engine. It reads the log once."""
    from kafka_records_tables import read_tables
    from kafka_records_tables.report.making import REPORTED

    return _timed(lambda: {"rows": sum(map(len, read_tables(REPORTED, folder, processes=PROCESSES).values()))})


def report_tables_alone(folder: Path) -> Outcome:
    """The same tables. The log is read again for each of them."""
    from kafka_records_tables import read_table
    from kafka_records_tables.report.making import REPORTED

    return _timed(lambda: {"rows": sum(len(read_table(name, folder, processes=PROCESSES)) for name in REPORTED)})


def _of_table(table: pa.Table) -> Outcome:
    offsets = pc.sum(table["offset"]).as_py() or 0 if "offset" in table.column_names else 0
    return {"rows": table.num_rows, "offsets": offsets}


# ----------------------------------------------------------------------------------------------- readers, two processes


def _by_partition(folder: Path, read: Callable[[FoundLog], tuple[float, int]], topic: str = "") -> Outcome:
    """Read one partition after another with two processes. The measurement starts when both have started."""
    found = [log for log in find_logs([folder]) if topic in ("", log.topic)]
    logs = sorted(found, key=lambda log: -sum(file.stat().st_size for file in _files(folder, log)))
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        pool.map(_nothing, range(PROCESSES), 1)
        start = time.perf_counter()
        done = pool.map(read, logs, 1)
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "processor": sum(busy for busy, _ in done), "rows": sum(rows for _, rows in done)}


def _files(folder: Path, log: FoundLog) -> list[Path]:
    return list((folder / f"{log.topic}-{log.partition}").glob("*.log"))


def _nothing(number: int) -> int:
    return number


def bare_reader(folder: Path, topic: str = "") -> Outcome:
    """Raw rows of one topic or of all topics, with all columns. CRCs are checked."""
    return _by_partition(folder, _read, topic)


def _read(log: FoundLog) -> tuple[float, int]:
    start = time.process_time()
    rows = sum(batch.num_rows for batch in read_partition(log))
    return time.process_time() - start, rows


def decoded(folder: Path) -> Outcome:
    """Raw rows, with the key and value of every record as Arrow columns."""
    return _by_partition(folder, _decode)


def _decode(log: FoundLog) -> tuple[float, int]:
    start = time.process_time()
    rows = 0
    for batch in read_partition(log, columns=("offset", "timestamp_ms", "key", "value"), batch_rows=None, settle=False):
        found = decode_record_columns(RECORDS, batch["key"], batch["value"])
        rows += int(found.is_known.sum()) - len(found.errors)
    return time.process_time() - start, rows


# --------------------------------------------------------------------------------------------------------------- Spark


def spark_table(folder: Path, name: str, warm_up: Path) -> Outcome:
    """A table by Spark, without output. A table over a small log is computed first, as a warm-up."""
    from kafka_records_tables.spark import read_table
    from tools.benchmarks._spark_runs import evaluate, local_session, processor_seconds

    with local_session() as spark:
        evaluate(read_table(spark, name, str(warm_up)))
        busy, start = processor_seconds(), time.perf_counter()
        evaluate(read_table(spark, name, str(folder)))
        seconds, processor = time.perf_counter() - start, processor_seconds() - busy
        rows = read_table(spark, name, str(folder)).count()
    return {"seconds": seconds, "processor": processor, "rows": rows}


KINDS: Final[dict[str, Callable[..., Outcome]]] = {
    "local_table": local_table,
    "counted_table": counted_table,
    "report_tables": report_tables,
    "report_tables_alone": report_tables_alone,
    "bare_reader": bare_reader,
    "decoded": decoded,
    "spark_table": spark_table,
}


def main(kind: str, folder: str, *more: str) -> None:
    """Does the work and prints its figures."""
    others = [Path(each) if Path(each).is_absolute() else each for each in more]
    print(json.dumps(KINDS[kind](Path(folder), *others)))


if __name__ == "__main__":
    main(*sys.argv[1:])
