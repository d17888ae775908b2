#!/usr/bin/env python3
"""Write log segments of a coordinator topic of any size, with the expected answers of a reader. See `--help`.

written = write_segments(Path("/tmp/log"), Plan(records=3_000_000, keys=50_000))
written.truth["current_offsets"]                # a pyarrow.Table with which to compare a reader's answer
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the one above

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

from kafka_records_engine.log.format.compression import CODECS  # noqa: E402
from tools.segments.damage import Damage, do_damage  # noqa: E402
from tools.segments.partition import Written, write_partition  # noqa: E402
from tools.segments.plan import DAMAGE, DEFAULT_MIX, KINDS, OFFSETS_TOPIC, Plan, PlanError  # noqa: E402
from tools.segments.pool import Subjects, subjects_by_partition  # noqa: E402

__all__ = ["Plan", "PlanError", "WrittenLog", "shares", "write_segments"]


@dataclass(frozen=True)
class WrittenLog:
    """The log that `write_segments` wrote."""

    partitions: tuple[Written, ...]
    truth: Mapping[str, Any]
    """`current_offsets` and `groups`, `transactions`, or `share_partitions`, as `pyarrow.Table`s: the expected answers
    of a reader, apart from damage."""
    damage: tuple[Damage, ...]

    @property
    def records(self) -> int:
        """The number of ordinary records, without the markers of transactions."""
        return sum(each.records for each in self.partitions)

    @property
    def markers(self) -> int:
        return sum(each.markers for each in self.partitions)

    @property
    def batches(self) -> int:
        return sum(each.batches for each in self.partitions)

    @property
    def bytes(self) -> int:
        """The size of all files before they were damaged."""
        return sum(each.bytes for each in self.partitions)

    @property
    def files(self) -> list[Path]:
        return [file for each in self.partitions for file in each.files]


_Done = tuple[Written, dict[str, Any]]


def write_segments(folder: Path, plan: Plan, *, processes: int = 1) -> WrittenLog:
    """Write the log into `folder`, one folder per partition as in a broker's data directory.

    The bytes are the same for any number of `processes`. Raises PlanError for a plan that cannot be carried out, and
    for a folder that already has partitions of that topic.
    """
    there = sorted(path.name for path in folder.glob(f"{plan.topic}-*")) if folder.is_dir() else []
    if there:
        raise PlanError(f"{folder} holds {there[0]} already: choose an empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    subjects = subjects_by_partition(plan)
    shares = _shares(plan.records, [each.weight for each in subjects])
    jobs = [
        (plan, number, about, share, folder / f"{plan.topic}-{number}")
        for number, (about, share) in enumerate(zip(subjects, shares, strict=True))
    ]
    done = _each(jobs, processes)
    partitions = tuple(written for written, _ in done)
    names = done[0][1]
    truth = {name: pa.concat_tables([tables[name] for _, tables in done]) for name in names}
    return WrittenLog(partitions, truth, tuple(do_damage(plan, [each.places for each in partitions])))


def _shares(records: int, weights: Sequence[int]) -> list[int]:
    """`records` divided in proportion to the weights; the parts add up to `records`."""
    total = sum(weights)
    ends = [records * sum(weights[: number + 1]) // total for number in range(len(weights))]
    return [end - begin for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


_Job = tuple[Plan, int, Subjects, int, Path]


def _each(jobs: Sequence[_Job], processes: int) -> list[_Done]:
    if processes <= 1:
        return [_write(job) for job in jobs]
    # Arrow has threads, and a forked process would not have them.
    with ProcessPoolExecutor(min(processes, len(jobs)), multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(_write, jobs))


def _write(job: _Job) -> _Done:
    written, memory = write_partition(*job)
    return written, memory.tables()


# -------------------------------------------------------------------------------------------------------------- command


def _listed(lines: Mapping[str, str]) -> str:
    return "\n".join(f"  {name:<21} {text}" for name, text in lines.items())


_EPILOG: Final = f"""\
kinds of records in __consumer_offsets:
{_listed(KINDS["__consumer_offsets"])}
  unless told otherwise: {",".join(f"{kind}={share:g}" for kind, share in DEFAULT_MIX["__consumer_offsets"].items())}

kinds of records in __share_group_state:
{_listed(KINDS["__share_group_state"])}
  unless told otherwise: {",".join(f"{kind}={share:g}" for kind, share in DEFAULT_MIX["__share_group_state"].items())}

kinds of records in __transaction_state:
{_listed(KINDS["__transaction_state"])}
  unless told otherwise: {",".join(f"{kind}={share:g}" for kind, share in DEFAULT_MIX["__transaction_state"].items())}

damage:
{_listed(DAMAGE)}

The same options give the same bytes on every machine. Groups lie in the partition where Kafka would put them; offsets
and timestamps ascend, CRCs are right, and Kafka's dump tool and brokers read the files. --truth writes what a reader
has to find (damage aside) as Parquet, one file for each table.

examples:
  tools/write_segments.py /tmp/log --records 20000000 --keys 200000       two gigabytes, within a minute
  tools/write_segments.py /tmp/log --records 90000000 --processes 2       ten gigabytes, in minutes
  tools/write_segments.py /tmp/log --codec lz4 --transactions 0.1 --truth /tmp/truth
  tools/write_segments.py /tmp/log --mix commits=90,tombstones=5,group_metadata=5 --records-per-batch 1-8
  tools/write_segments.py /tmp/log --records 50000 --corrupt crc=3 --corrupt truncated=1
  tools/write_segments.py /tmp/log --topic __transaction_state --keys 5000
"""


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="write_segments.py",
        description="Write log segments of a coordinator topic, as a broker's data directory has them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("folder", type=Path, metavar="DIR", help="data directory to write into")
    add("--topic", default=OFFSETS_TOPIC, choices=tuple(KINDS), metavar="TOPIC", help=f"{' or '.join(KINDS)}")
    add("--partitions", type=int, default=Plan.partitions, metavar="N", help="(default: %(default)s)")
    add("--records", type=int, default=Plan.records, metavar="N", help="ordinary records (default: %(default)s)")
    add("--keys", type=int, default=Plan.keys, metavar="N", help="offsets or transactional ids (default: %(default)s)")
    add("--keys-per-group", type=int, default=Plan.keys_per_group, metavar="N", help="(default: %(default)s)")
    add("--mix", type=shares, default={}, metavar="KIND=SHARE[,…]", help="what the records are; see below")
    add("--commit-versions", type=_numbers, default=(4,), metavar="N[,N…]", help="1, 3, 4 of the values (default: 4)")
    add("--records-per-batch", type=_range, default=(1, 40), metavar="LOW-HIGH", help="evenly drawn (default: 1-40)")
    add("--codec", default=Plan.codec, choices=CODECS, help="(default: %(default)s)")
    add("--transactions", type=float, default=0.0, metavar="SHARE", help="batches that are transactions (default: 0)")
    add("--aborted", type=float, default=Plan.aborted, metavar="SHARE", help="of transactions (default: %(default)s)")
    add("--left-open", type=float, default=Plan.left_open, metavar="SHARE", help="likewise (default: %(default)s)")
    add("--segment-bytes", type=int, default=Plan.segment_bytes, metavar="N", help="(default: %(default)s)")
    add("--corrupt", type=counts, action="append", default=[], metavar="KIND=COUNT", help="damage; see below")
    add("--seed", type=int, default=0, metavar="N", help="other records (default: 0)")
    add("--start-ms", type=int, default=Plan.start_ms, metavar="MS", help="time of the first records")
    add("--processes", type=int, default=os.cpu_count() or 1, metavar="N", help="(default: the cores, %(default)s)")
    add("--truth", type=Path, metavar="DIR", help="write what the log says there, as Parquet")
    add("--json", type=Path, metavar="FILE", help="write what was written and damaged there")
    return parser.parse_args(arguments)


def shares(text: str) -> dict[str, float]:
    """A mix of records, parsed from the option: `commits=95,tombstones=5`."""
    return {name: float(number) for name, number in _pairs(text)}


def counts(text: str) -> dict[str, int]:
    return {name: int(number) for name, number in _pairs(text)}


def _pairs(text: str) -> Iterable[tuple[str, str]]:
    for part in text.split(","):
        name, _, number = part.partition("=")
        yield name.strip(), number


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def _range(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def _plan(asked: argparse.Namespace) -> Plan:
    damage = {kind: count for each in asked.corrupt for kind, count in each.items()}
    names = set(Plan.__dataclass_fields__) - {"damage"}
    return Plan(damage=damage, **{name: value for name, value in vars(asked).items() if name in names})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 2 if the log cannot be written."""
    asked = _arguments(arguments)
    start = time.perf_counter()
    try:
        written = write_segments(asked.folder, _plan(asked), processes=asked.processes)
    except (PlanError, OSError) as refused:
        print(refused, file=sys.stderr)
        return 2
    seconds = time.perf_counter() - start
    print("\n".join(_summary(written, seconds)))
    if asked.truth:
        asked.truth.mkdir(parents=True, exist_ok=True)
        for name, table in written.truth.items():
            pq.write_table(table, asked.truth / f"{name}.parquet")
    if asked.json:
        asked.json.write_text(json.dumps(_as_json(written), indent=1) + "\n", encoding="utf-8")
    return 0


def _summary(written: WrittenLog, seconds: float) -> Iterable[str]:
    yield (
        f"{written.records} records and {written.markers} markers in {written.batches} batches, {written.bytes} bytes "
        f"in {len(written.files)} files, {seconds:.1f} s"
    )
    yield ", ".join(f"{name}: {table.num_rows} rows" for name, table in written.truth.items())
    for each in written.damage:
        place = f"{each.file}, byte {each.position}, offset {each.base_offset}"
        yield f"damaged ({each.kind}): {place}, {each.records} records"


def _as_json(written: WrittenLog) -> dict[str, Any]:
    return {
        "records": written.records,
        "markers": written.markers,
        "batches": written.batches,
        "bytes": written.bytes,
        "files": [str(file) for file in written.files],
        "truth": {name: table.num_rows for name, table in written.truth.items()},
        "damage": [asdict(each) for each in written.damage],
    }


if __name__ == "__main__":
    sys.exit(main())
