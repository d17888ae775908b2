"""The programs that `answers.py` runs, and the goals with which it compares their figures."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from tools.benchmarks import _every_table as every_table
from tools.benchmarks import columns
from tools.benchmarks._column_batches import cases as column_cases
from tools.benchmarks._figures import pair, three_digits
from tools.benchmarks._processes import Run
from tools.benchmarks._timing import figures
from tools.broker import broker_jars, java
from tools.segments.plan import Plan
from tools.write_segments import WrittenLog, write_segments

ROOT: Final = Path(__file__).resolve().parents[2]
CAPTURED: Final = ROOT / "tests" / "data" / "topics" / "kafka-4.3" / "segments"
_WORK: Final = str(ROOT / "tools" / "benchmarks" / "_answers_work.py")
_OFFSETS: Final = "__consumer_offsets"
_TRANSACTIONS: Final = "__transaction_state"
_CAPTURED_TABLES: Final = {
    "current_offsets": _OFFSETS,
    "groups": _OFFSETS,
    "offset_commits": _OFFSETS,
    "transactions": _TRANSACTIONS,
}

_BYTES_PER_RECORD: Final = 114
"""The approximate size of a commit record."""
_PARTITIONS: Final = 8
_MIB: Final = 1024 * 1024
_GB: Final = 10**9
_WARM_UP_RECORDS: Final = 2000
_FEW: Final = 500_000
"""The number of records that are written before another process has started."""
_STEPS: Final = (0.01, 0.03, 0.1, 0.3, 1.0)
_SMALLEST_GB: Final = 0.1
_FEWEST_SIZES: Final = 3


@dataclass(frozen=True)
class Sizes:
    """The sizes of the logs that are read."""

    records: int
    keys: int
    dumped: int
    """The number of records that are read by Kafka's dump tool, which is slow."""
    largest_gb: float
    batch_rows: int
    """The number of rows in a batch of `columns.py`."""

    @property
    def growing_gb(self) -> list[float]:
        """The sizes of logs over which cost should grow in proportion: at least three, the largest last."""
        sizes = [self.largest_gb * step for step in _STEPS]
        return [size for size in sizes if size >= _SMALLEST_GB or size in sizes[-_FEWEST_SIZES:]]


class NotEnoughSpace(Exception):
    """The logs do not fit on the disk. The text says how much space they need."""


class WrongAnswer(Exception):
    """A result is not what the writer of the log wrote. The text names the result."""


class Logs:
    """Logs to read. They are written below `folder` when they are first requested."""

    def __init__(self, folder: Path, mix: Mapping[str, float], tell: Callable[[str], None]) -> None:
        self.folder = folder
        self._mix = mix
        self._tell = tell
        self._written: dict[tuple[int, int], tuple[Path, WrittenLog]] = {}

    def of(self, records: int, keys: int) -> tuple[Path, WrittenLog]:
        """A log with the given numbers of records and of keys. Raises NotEnoughSpace."""
        if (records, keys) not in self._written:
            folder = self.folder / f"{records}-records-{keys}-keys"
            self._expect(records)
            self._tell(f"writing {records} records of {keys} keys")
            plan = Plan(partitions=_PARTITIONS, records=records, keys=keys, mix=self._mix)
            self._written[records, keys] = folder, _write(folder, plan)
        return self._written[records, keys]

    def of_every_kind(self, records: int, keys: int) -> Path:
        """A log of every topic, with records of every kind. Raises NotEnoughSpace."""
        folder = self.folder / f"{records}-records-of-every-kind"
        if not folder.exists():
            # The smaller topics need additional space.
            self._expect(2 * records)
            self._tell(f"writing {records} records of every kind")
            for plan in every_table.plans(records, keys, _PARTITIONS):
                _write(folder, plan)
        return folder

    def _expect(self, records: int) -> None:
        needed = records * _BYTES_PER_RECORD
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            raise NotEnoughSpace(
                f"{records} records take {needed} bytes, and {self.folder} has {free}: choose another --folder, "
                "or fewer records"
            )


def _write(folder: Path, plan: Plan) -> WrittenLog:
    return write_segments(folder, plan, processes=2 if plan.records > _FEW else 1)


# ---------------------------------------------------------------------------------------------------------------- works


@dataclass(frozen=True)
class Work:
    """A program to run and time. `expected` is what the program has to print."""

    name: str
    command: tuple[str, ...]
    says_json: bool = True
    expected: Mapping[str, Any] = field(default_factory=dict)

    def check(self, run: Run) -> None:
        """Raises WrongAnswer."""
        for what, number in self.expected.items():
            if run.said[what] != number:
                raise WrongAnswer(f"{self.name}: {what} is {run.said[what]}, and the log holds {number}")


Runs = Mapping[str, Sequence[Run]]
"""The runs by the name of the work."""


def _best(runs: Runs, name: str) -> tuple[float, float]:
    seconds = [run.seconds for run in runs[name]]
    return min(seconds), median(seconds)


def _processor(runs: Runs, name: str) -> float:
    return min(run.processor for run in runs[name])


def _memory(runs: Runs, name: str) -> int | None:
    found = [run.memory for run in runs[name] if run.memory is not None]
    return max(found) if found else None


# ---------------------------------------------------------------------------------------------------------------- goals


@dataclass(frozen=True)
class Judged:
    """A line of the table: a goal and the figure that was measured."""

    what: str
    ours: str
    against: str
    reached: str
    by_processor: str
    goal: str
    met: bool | None
    """Whether the goal was met; None if it could not be measured."""

    @property
    def cells(self) -> list[str]:
        verdict = "-" if self.met is None else "met" if self.met else "missed"
        return [self.what, self.ours, self.against, self.reached, self.by_processor, self.goal, verdict]


HEADS: Final = ("what", "ours", "against", "reached", "by processor", "goal", "verdict")

Goal = Callable[[Runs], Judged]

_SHORT: Final = 0.1


def _time(seconds: tuple[float, float] | None) -> str:
    """The best time and the median with their unit."""
    if seconds is None:
        return "-"
    return f"{pair(seconds, 1000)} ms" if seconds[0] < _SHORT else f"{pair(seconds)} s"


def _no_slower(what: str, work: str, base: str, most: float, runs: Runs) -> Judged:
    """The goal that `work` takes at most `most` times as long as `base`."""
    ours, theirs = _best(runs, work), _best(runs, base)
    ratio = ours[0] / theirs[0], ours[1] / theirs[1]
    by_processor = three_digits(_processor(runs, work) / _processor(runs, base))
    return Judged(what, _time(ours), _time(theirs), pair(ratio), by_processor, f"≤ {most:g} ×", ratio[0] <= most)


def _as_fast(what: str, work: str, base: str, least: float, runs: Runs) -> Judged:
    """The goal that `work` is at least `least` times as fast as `base`."""
    ours, theirs = _best(runs, work), _best(runs, base)
    ratio = theirs[0] / ours[0], theirs[1] / ours[1]
    by_processor = three_digits(_processor(runs, base) / _processor(runs, work))
    return Judged(what, _time(ours), _time(theirs), pair(ratio), by_processor, f"≥ {least:g} ×", ratio[0] >= least)


def _without_start(what: str, work: str, base: str, start: str, least: float, runs: Runs) -> Judged:
    """The goal that `work` is at least `least` times as fast as `base`. The time of `start`, which reads nothing, is
    first subtracted from that of `base`."""
    ours, theirs, none = _best(runs, work), _best(runs, base), _best(runs, start)
    rest = max(theirs[0] - none[0], 0.0), max(theirs[1] - none[1], 0.0)
    ratio = rest[0] / ours[0], rest[1] / ours[1]
    busy = max(_processor(runs, base) - _processor(runs, start), 0.0) / _processor(runs, work)
    return Judged(what, _time(ours), _time(rest), pair(ratio), three_digits(busy), f"≥ {least:g} ×", ratio[0] >= least)


def _memory_below(what: str, work: str, most: int, runs: Runs) -> Judged:
    used = _memory(runs, work)
    reached = "-" if used is None else f"{used / _MIB:.0f} MiB"
    return Judged(what, "", "", reached, "", f"≤ {most / _MIB:.0f} MiB", None if used is None else used <= most)


def _linear(what: str, works: Mapping[float, str], figure: Callable[[Runs, str], float | None], runs: Runs) -> Judged:
    """The goal that a figure grows no faster than the log. `ours` is the figure of the largest log, `against` that of
    the smallest."""
    found = [(size, value) for size, name in works.items() if (value := figure(runs, name)) is not None]
    if len(found) < len(works):
        return Judged(what, "", "", "-", "", f"exponent ≤ {_STEEPEST:g}", None)
    sizes, values = (np.array(each) for each in zip(*found, strict=True))
    exponent = float(np.polyfit(np.log(sizes), np.log(values), 1)[0])
    per_gb, start = (float(each) for each in np.polyfit(sizes, values, 1))
    reached = f"exponent {exponent:.2f} ({three_digits(max(start, 0))} + {three_digits(per_gb)} per GB)"
    first, last = three_digits(values[0]), three_digits(values[-1])
    return Judged(what, last, first, reached, "", f"exponent ≤ {_STEEPEST:g}", exponent <= _STEEPEST)


_STEEPEST: Final = 1.05
"""An exponent of 1 is linear; rounds of one size differ by a few per cent."""


def _columns_beside_rows(batch_rows: int, rounds: int, runs: Runs) -> list[Judged]:
    """The figures of `columns.py` for committed offsets, on one core."""
    found = []
    for case in column_cases(batch_rows)[:2]:
        row = columns.run_case(case, rounds, 0.03, lambda line: None)
        ratio = row.ratios("rows")
        met = None if ratio is None else ratio[0] >= case.goals["rows"]
        ours, theirs = (_time(figures(row.timings, name)) for name in (columns.OURS, "rows"))
        what, goal = f"{case.name} in columns, one core", f"≥ {case.goals['rows']:g} ×"
        found.append(Judged(what, ours, theirs, pair(ratio), "", goal, met))
    return found


# ---------------------------------------------------------------------------------------------------------------- cases


@dataclass(frozen=True)
class Case:
    """One or more rows of the table of goals: programs that take turns, and the text about them."""

    name: str
    works: Sequence[Work] = ()
    goals: Sequence[Goal] = ()
    more: Callable[[Runs], list[Judged]] = lambda runs: []

    def judged(self, runs: Runs) -> list[Judged]:
        return [*(goal(runs) for goal in self.goals), *self.more(runs)]


CASES: Final = ("command", "current_offsets", "groups", "spark", "dump-tool", "columns", "growth", "tables", "report")
"""The names of all cases."""


def make_case(name: str, sizes: Sizes, logs: Logs, rounds: int) -> Case:
    """Write the logs of the case with this name, and return the case. Raises NotEnoughSpace, MissingPrerequisite,
    FetchError."""
    makers: dict[str, Callable[[], Case]] = {
        "command": partial(_command, logs),
        "current_offsets": partial(_local, "current_offsets", 0.8, sizes, logs),
        "groups": partial(_local, "groups", 0.5, sizes, logs),
        "spark": partial(_spark, sizes, logs),
        "dump-tool": partial(_dump_tool, sizes, logs),
        "columns": lambda: Case("columns", more=partial(_columns_beside_rows, sizes.batch_rows, 5 * rounds)),
        "growth": partial(_growth, sizes, logs),
        "tables": partial(_every_table, sizes, logs),
        "report": partial(_report, sizes, logs),
    }
    return makers[name]()


def _python(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, *arguments)


def _child(kind: str, folder: Path, *more: object) -> tuple[str, ...]:
    return _python(_WORK, kind, str(folder), *map(str, more))


def _command(logs: Logs) -> Case:
    """Every table of a captured topic, compared with `dump`; and its report as a page."""
    works, goals = [], []
    for table, topic in _CAPTURED_TABLES.items():
        base = f"dump {topic}"
        command = _python("-m", "kafka_records_tables.commands", "dump", str(CAPTURED), "--topic", topic)
        works.append(Work(base, command, says_json=False))
        command = _python("-m", "kafka_records_tables.commands", "table", table, str(CAPTURED))
        works.append(Work(f"table {table}", command, says_json=False))
        goals.append(partial(_no_slower, f"table {table}, against dump", f"table {table}", base, 2.0))
    page = ("--output", str(logs.folder / "report.html"), "--overwrite")
    command = _python("-m", "kafka_records_tables.commands", "report", str(CAPTURED), *page)
    works.append(Work("report", command, says_json=False))
    goals.append(partial(_within, "report of all topics, as a page", "report", _LONGEST_REPORT))
    return Case("command", works, goals)


_LONGEST_REPORT: Final = 2.0
"""The maximum time for the report of a small topic, in seconds."""


def _within(what: str, work: str, most: float, runs: Runs) -> Judged:
    """The goal that `work` takes at most `most` seconds."""
    seconds = _best(runs, work)
    by_processor = f"{three_digits(_processor(runs, work))} s"
    return Judged(what, _time(seconds), "", _time(seconds), by_processor, f"≤ {most:g} s", seconds[0] <= most)


def _local_work(table: str, folder: Path, written: WrittenLog) -> Work:
    truth = written.truth[table]
    expected = {"rows": truth.num_rows}
    if table == "current_offsets":
        expected["offsets"] = int(truth["offset"].to_numpy().sum())
    return Work(f"{table}, {written.records} records", _child("local_table", folder, table), expected=expected)


def _local(table: str, least: float, sizes: Sizes, logs: Logs) -> Case:
    """A table by two processes, compared with reading alone."""
    folder, written = logs.of(sizes.records, sizes.keys)
    work = _local_work(table, folder, written)
    bare = Work(f"bare reader, {written.records} records", _child("bare_reader", folder), expected=_rows(written))
    return Case(
        table,
        [bare, work],
        [
            partial(_as_fast, f"{work.name}, against reading", work.name, bare.name, least),
            partial(_memory_below, f"{work.name}, memory", work.name, 1024 * _MIB),
        ],
    )


def _rows(written: WrittenLog) -> dict[str, int]:
    return {"rows": written.records + written.markers}


def _spark(sizes: Sizes, logs: Logs) -> Case:
    """Tables by Spark, compared with the local engine."""
    folder, written = logs.of(sizes.records, sizes.keys)
    small, _ = logs.of(_WARM_UP_RECORDS, _WARM_UP_RECORDS // 10)
    works: list[Work] = []
    goals: list[Goal] = []
    for table in ("current_offsets", "groups"):
        local = _local_work(table, folder, written)
        name = f"Spark: {local.name}"
        expected = {"rows": written.truth[table].num_rows}
        works += [local, Work(name, _child("spark_table", folder, table, small.resolve()), expected=expected)]
        goals.append(partial(_as_fast, f"{name}, against the local engine", name, local.name, 0.6))
    return Case("spark", works, goals)


def _dump_tool(sizes: Sizes, logs: Logs) -> Case:
    """Segments to Arrow columns, compared with Kafka's dump tool on the same files, without the tool's start."""
    folder, written = logs.of(sizes.dumped, max(1, sizes.dumped // 100))
    work = Work(f"decoded, {written.records} records", _child("decoded", folder), expected={"rows": written.records})
    full = Work("dump tool", _dump(written.files), says_json=False)
    nothing = folder / "nothing"
    nothing.mkdir(exist_ok=True)
    empty = nothing / f"{0:020}.log"
    empty.touch()
    start = Work("dump tool on nothing", _dump([empty]), says_json=False)
    what = f"{work.name}, against Kafka's dump tool"
    return Case("dump-tool", [work, full, start], [partial(_without_start, what, work.name, full.name, start.name, 40)])


def _dump(files: Iterable[Path]) -> tuple[str, ...]:
    program = (java(), "-cp", str(broker_jars() / "*"), "org.apache.kafka.tools.DumpLogSegments")
    return (*program, "--offsets-decoder", "--print-data-log", "--files", ",".join(map(str, files)))


def _growth(sizes: Sizes, logs: Logs) -> Case:
    """Logs of increasing size with the same number of keys."""
    keys = max(1, sizes.keys // 10)
    works: dict[float, Work] = {}
    for size in sizes.growing_gb:
        folder, written = logs.of(max(1, round(size * _GB / _BYTES_PER_RECORD)), keys)
        works[written.bytes / _GB] = _local_work("current_offsets", folder, written)
    names = {size: work.name for size, work in works.items()}
    span = f"current_offsets over {' to '.join(three_digits(size) for size in (min(names), max(names)))} GB"
    return Case(
        "growth",
        list(works.values()),
        [
            partial(_linear, f"{span}, seconds", names, lambda runs, name: _best(runs, name)[0]),
            partial(_linear, f"{span}, MiB", names, _mebibytes),
        ],
    )


def _every_table(sizes: Sizes, logs: Logs) -> Case:
    """Every table, compared with reading alone, and with smaller logs that have about as many keys."""
    counts = every_table.sizes_of(sizes.records)
    folders = {count: logs.of_every_kind(count, sizes.keys) for count in counts}
    largest = folders[counts[-1]]
    readers = {}
    works: list[Work] = []
    goals: list[Goal] = []
    for asked in every_table.every_table():
        if asked.topic not in readers:
            readers[asked.topic] = Work(f"bare reader, {asked.topic}", _child("bare_reader", largest, asked.topic))
            works.append(readers[asked.topic])
        names = {}
        for count, folder in folders.items():
            command = _child("counted_table", folder, asked.table.name, json.dumps(asked.options))
            works.append(Work(f"{asked.name}, {count} records", command))
            names[float(count)] = works[-1].name
        most = every_table.SLOWEST if asked.has_goal else None
        goals += [
            partial(_beside, works[-1].name, readers[asked.topic].name, most),
            partial(_at_each, f"{asked.name}, s", names, lambda runs, name: _best(runs, name)[0]),
            partial(_at_each, f"{asked.name}, MiB", names, _mebibytes),
        ]
    return Case("tables", works, goals)


def _report(sizes: Sizes, logs: Logs) -> Case:
    """The tables of a report, compared with reading their topics, and with reading each of these tables alone."""
    folder = logs.of_every_kind(sizes.records, sizes.keys)
    bare = Work(f"bare reader, every topic, {sizes.records} records", _child("bare_reader", folder))
    alone = Work(f"report tables one by one, {sizes.records} records", _child("report_tables_alone", folder))
    work = Work(f"report tables, {sizes.records} records", _child("report_tables", folder))
    return Case(
        "report",
        [bare, alone, work],
        [
            partial(_no_slower, f"{work.name}, against reading", work.name, bare.name, every_table.MOST_OF_REPORT),
            partial(_no_slower, f"{work.name}, against one by one", work.name, alone.name, 1),
            partial(_at_each, f"{work.name}, MiB", {float(sizes.records): work.name}, _mebibytes),
        ],
    )


def _beside(work: str, base: str, most: float | None, runs: Runs) -> Judged:
    """The time of `work` as a multiple of that of `base`, and whether it is at most `most`, if that is given."""
    judged = _no_slower(work, work, base, most or 0.0, runs)
    return judged if most else replace(judged, goal="", met=None)


def _at_each(what: str, works: Mapping[float, str], figure: Callable[[Runs, str], float | None], runs: Runs) -> Judged:
    """A figure for each size of log, the smallest first."""
    found = (figure(runs, name) for name in works.values())
    return Judged(what, "", "", " / ".join("-" if each is None else three_digits(each) for each in found), "", "", None)


def _mebibytes(runs: Runs, name: str) -> float | None:
    used = _memory(runs, name)
    return None if used is None else used / _MIB


def environment() -> dict[str, str]:
    """The environment variables of the programs. They import this checkout instead of installed packages, and compiled
    modules, as in an installed package."""
    places = [str(ROOT / name) for name in ("generated", "generator", "spark_udfs", "")]
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**own, "PYTHONPATH": os.pathsep.join(places)}
