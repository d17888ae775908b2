"""One seed: its history written, and all tables over it compared with the answers, in every way they may be read."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from kafka_records_tables import read_table
from tools.judge.answers import Difference, Loaded, Read
from tools.judge.cleaner import CleanedLog, cleaned_at_random, table_of
from tools.judge.comparing import differences
from tools.judge.coordinators import Coordinators
from tools.judge.histories import History, write_log

CLEANED = "cleaned"
DOUBLED = 0.3


@dataclass
class Verdict:
    """What came of one seed. `differences` are lines to print; `counts` says how much was compared."""

    seed: int
    differences: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def verdicts(seeds: list[int], workers: int, folder: Path, command: list[str]) -> Iterator[Verdict]:
    """The verdict on each seed, in their order, by so many processes with coordinators of their own."""
    if workers == 1:
        with Coordinators(folder, command) as coordinators:
            yield from (judge(seed, coordinators) for seed in seeds)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=_start, initargs=(folder, command)) as pool:
        yield from pool.map(_judge, seeds, chunksize=4)


_started: list[Coordinators] = []
"""Those of this process, if it is one of several. They end with it, when their input does."""


def _start(folder: Path, command: list[str]) -> None:
    _started.append(Coordinators(folder, command).__enter__())


def _judge(seed: int) -> Verdict:
    return judge(seed, _started[0])


def judge(seed: int, coordinators: Coordinators) -> Verdict:
    """Write the history of a seed and compare; its files stay in the folder of the coordinators only if they differ.

    What is written: records and share state as they came, and both once more as a cleaner leaves them, with the
    answers of coordinators that loaded those.
    """
    verdict = Verdict(seed)
    folder = coordinators.folder
    name = coordinators.write(seed)
    names = [each for each in (name, f"{name}-share") if (folder / f"{each}.log.jsonl.gz").exists()]
    for each in names:
        whole = History(folder, each)
        verdict.counts["logs"] += 1
        _compare(whole, verdict)
        cleaned, active = _cleaned(whole, Random(each))
        if cleaned.records:
            coordinators.answer(cleaned.name)
            _compare_cleaned(cleaned, active, verdict)
    if not verdict.differences:
        for file in folder.glob(f"{name}*.gz"):
            file.unlink()
    return verdict


def _compare(history: History, verdict: Verdict) -> None:
    """At every cut over the rows as they come; at one of them over rows in any order, and as of its time."""
    chance = Random(history.name)
    for cut in history.cuts:
        compare_loaded(verdict, "in order", Loaded(history, cut, _over(history.up_to(cut))))
    cut = chance.choice(list(history.cuts))
    rows = history.up_to(cut)
    once = list(range(rows.num_rows))
    again = [number for number in once if chance.random() < DOUBLED]
    for way, order in (("in any order", once), ("some rows twice", once + again)):
        chance.shuffle(order)
        compare_loaded(verdict, way, Loaded(history, cut, _over(rows.take(order))))
    times = history.rows["timestamp_ms"].to_pylist()
    if cut + 1 == len(times) or times[cut + 1] > times[cut]:
        compare_loaded(verdict, "as of a time", Loaded(history, cut, _over(history.rows, as_of=times[cut])))


def _cleaned(history: History, chance: Random) -> tuple[History, int]:
    """The log as a cleaner leaves it, written as a history of its own, and the offset below which it was cleaned.

    It asks what was asked about the end of the whole log.
    """
    rows, active = cleaned_at_random(history.rows.to_pylist(), chance)
    left = {row["offset"] for row in rows}
    name = f"{history.name}-{CLEANED}"
    header = history.header | {"history": name, "questions": history.header["questions"][-1:]}
    write_log(history.folder, header, [record for record in history.records if record["offset"] in left])
    return History(history.folder, name), active


def _compare_cleaned(history: History, active: int, verdict: Verdict) -> None:
    (cut,) = history.cuts
    source = CleanedLog(table_of(history.rows.to_pylist()), history.topic, active)
    compare_loaded(verdict, CLEANED, Loaded(history, cut, _over(source)))


def _over(source: Any, **always: Any) -> Read:
    """Reads tables over a source, each once."""

    @cache
    def read(table: str, **options: Any) -> pa.Table:
        return read_table(table, source, **always, **options).table

    return read


def compare_loaded(verdict: Verdict, way: str, loaded: Loaded) -> None:
    """Add to the verdict what differs; `way` says how the rows were read."""
    history = loaded.history
    if loaded.questions[0]["question"] == "load":
        # Kafka's coordinator itself cannot load what its cleaner has left.
        verdict.counts["refused"] += 1
        return
    verdict.counts["moments"] += 1
    verdict.counts["answers"] += len(loaded.questions)
    verdict.differences += [
        f"seed {verdict.seed}, {history.name}, cut {loaded.cut}, {way}: {difference}" for difference in _found(loaded)
    ]


def _found(loaded: Loaded) -> Iterator[Difference]:
    """The differences; a table that cannot be read at all is one."""
    try:
        yield from differences(loaded)
    except Exception as error:
        yield Difference("a table", "reading it", "rows", f"{type(error).__name__}: {error}")
