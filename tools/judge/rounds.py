"""Judges a seed: its history is written, and all tables over it are compared with the answers, in every way to read
them."""

from __future__ import annotations

import multiprocessing
import signal
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from kafka_records_engine.sources import LogPartition
from kafka_records_engine.sources.arrow_rows import ArrowRows
from kafka_records_tables import read_table
from tools.judge.answers import COMPARISONS_MADE, Difference, Loaded, Read
from tools.judge.cleaner import CleanedLog, cleaned_at_random, table_of
from tools.judge.compared_checks import is_refused, of_both_topics, refusals
from tools.judge.comparing import COMPARISONS, HAPPENED, Comparison
from tools.judge.coordinators import Coordinators
from tools.judge.decoded_once import DecodedOnce
from tools.judge.histories import CLEANED, History, write_log
from tools.judge.ledger import Compared, Tally
from tools.judge.lossy import LOSSY, with_losses

DOUBLED = 0.3


@dataclass
class Verdict:
    """The result of one seed. `differences` has lines to print."""

    seed: int
    tables: Collection[str] | None = None
    """The tables that are compared; None for all."""
    differences: list[str] = field(default_factory=list)
    compared: Compared = field(default_factory=Compared)


def verdicts(seeds: list[int], workers: int, folder: Path, command: list[str], features: str = "") -> Iterator[Verdict]:
    """The verdicts on seeds, in order. Each of the `workers` processes has its own coordinators.

    `features` replaces what the seeds draw (`Coordinators.write`).
    """
    if workers == 1:
        with Coordinators(folder, command) as coordinators:
            yield from (judge(seed, coordinators, features) for seed in seeds)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=_start, initargs=(folder, command)) as pool:
        yield from pool.map(partial(_judge, features=features), seeds)


_started: list[Coordinators] = []
"""The coordinators of this process, if it is one of several. They end when their input ends, with this process."""


def _start(folder: Path, command: list[str]) -> None:
    # A terminal sends the signal to every process, but only the first process decides when the run ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # There is one process per core, and a few hundred rows are too few for several threads.
    pa.set_cpu_count(1)
    _started.append(Coordinators(folder, command).__enter__())


def _judge(seed: int, features: str) -> Verdict:
    return judge(seed, _started[0], features)


def judge(seed: int, coordinators: Coordinators, features: str = "") -> Verdict:
    """Write the history of a seed and compare it. Its files stay in the folder of the coordinators only if there is a
    difference.

    These logs are written: records and share state as they are, and both after a cleaner, each with the answers of
    coordinators that loaded them; and both with lost records, with only the answer whether a coordinator loads them.
    Each difference has the features of the history.
    """
    verdict = Verdict(seed)
    wholes = []
    for log in written(seed, coordinators, features):
        wholes.append(log.whole)
        verdict.compared.counts["logs"] += 1
        with DecodedOnce(log.whole.rows).used():
            compare_log(log, verdict)
    if len(wholes) > 1:
        _compare_both(wholes[0], wholes[1], verdict)
    on = wholes[0].header["features"]
    verdict.differences = [f"{difference}\n  features {on}" for difference in verdict.differences]
    if not verdict.differences:
        for file in coordinators.folder.glob(f"{wholes[0].name}*.gz"):
            file.unlink()
    return verdict


@dataclass(frozen=True)
class Written:
    """One log of a seed. Each of its forms comes with the answers about it, unless it has no records."""

    whole: History
    cleaned: History
    active: int
    """The offset below which the log was cleaned."""
    lossy: History


def written(seed: int, coordinators: Coordinators, features: str = "") -> Iterator[Written]:
    """Write the history of a seed: that of groups, and that of share state if there is any."""
    folder = coordinators.folder
    name = coordinators.write(seed, features)
    for each in (name, f"{name}-share"):
        if (folder / f"{each}.log.jsonl.gz").exists():
            whole = History(folder, each)
            cleaned, active = _cleaned(whole, Random(each))
            lossy = with_losses(whole, Random(f"{each} {LOSSY}"))
            for less in (cleaned, lossy):
                if less.records:
                    coordinators.answer(less.name)
            yield Written(whole, cleaned, active, lossy)


def compare_log(log: Written, verdict: Verdict) -> None:
    """Compare one log of a seed in every way: whole, cleaned, and with records lost."""
    _compare(log.whole, verdict)
    if log.cleaned.records:
        _compare_cleaned(log.cleaned, log.active, verdict)
    if log.lossy.records:
        _compare_lossy(log.lossy, verdict)


def compare_last_cut(history: History, verdict: Verdict) -> None:
    """Compare only the whole, unchanged log, which is the quickest comparison."""
    cut = max(history.cuts)
    compare_loaded(verdict, "in order", Loaded(history, cut, _over(_Log(history.up_to(cut), history.topic))))


def _compare(history: History, verdict: Verdict) -> None:
    """Compare at every cut over rows in order; at one cut also over shuffled rows, and as of its time."""
    chance = Random(history.name)
    logs = {cut: _Log(history.up_to(cut), history.topic) for cut in history.cuts}
    for cut, log in logs.items():
        compare_loaded(verdict, "in order", Loaded(history, cut, _over(log)))
    cut = chance.choice(list(history.cuts))
    rows = history.up_to(cut)
    once = list(range(rows.num_rows))
    again = [number for number in once if chance.random() < DOUBLED]
    for way, order in (("in any order", once), ("some rows twice", once + again)):
        chance.shuffle(order)
        shuffled = _Log(rows.take(order), history.topic)
        # A source sorts rows and removes duplicates, so every table gets the same rows as before.
        if shuffled.rows.equals(logs[cut].rows):
            verdict.compared.counts["moments"] += 1
        else:
            compare_loaded(verdict, way, Loaded(history, cut, _over(shuffled)))
    _compare_end(history, chance, verdict)
    times = history.rows["timestamp_ms"].to_pylist()
    # If the clock went back, the rows up to a time differ from the rows up to a cut.
    if max(times[: cut + 1]) == times[cut] < min(times[cut + 1 :], default=times[cut] + 1):
        whole = _Log(history.rows, history.topic)
        compare_loaded(verdict, "as of a time", Loaded(history, cut, _over(whole, as_of=times[cut])))


def _compare_end(history: History, chance: Random, verdict: Verdict) -> None:
    """Compare tables about the past over the end of the log alone."""
    cut, first = max(history.cuts), chance.randrange(history.rows.num_rows)
    for table, comparison in HAPPENED[history.topic].items():
        loaded = Loaded(history, cut, _over(_Log(history.rows.slice(first), history.topic)), first=first)
        for difference in _found(verdict, f"{table}, end of a log", table, comparison, loaded):
            verdict.differences.append(f"seed {verdict.seed}, {history.name}, from {first} on: {difference}")


def _compare_both(groups: History, states: History, verdict: Verdict) -> None:
    """Compare groups and share state together, at the end and as of the time of a record."""
    times = groups.rows["timestamp_ms"].to_pylist()
    some_time = Random(groups.name).choice(times)
    # If the clock went back, a time does not divide the logs into two parts.
    is_clear = all(_is_ascending(log.rows["timestamp_ms"].to_pylist()) for log in (groups, states))
    moments = (None, some_time) if is_clear else (None,)
    tally, made = Tally(len(moments)), COMPARISONS_MADE["checks"]
    for as_of in moments:
        for difference in of_both_topics(groups, states, as_of, tally.rules):
            verdict.differences.append(f"seed {verdict.seed}, {groups.name} and its share state: {difference}")
            tally.differences += 1
    tally.compared = COMPARISONS_MADE["checks"] - made
    verdict.compared.of("checks, both topics").add(tally)


def _is_ascending(times: list[int]) -> bool:
    return all(earlier <= later for earlier, later in pairwise(times))


def _cleaned(history: History, chance: Random) -> tuple[History, int]:
    """The log after a cleaner, written as a separate history, and the offset below which it was cleaned.

    It has the questions about the end of the whole log.
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


def _compare_lossy(history: History, verdict: Verdict) -> None:
    (cut,) = history.cuts
    loaded = Loaded(history, cut, _over(_Log(history.rows, history.topic)))
    for difference in _found(verdict, "checks, records lost", "checks", refusals, loaded):
        verdict.differences.append(f"seed {verdict.seed}, {history.name}, {LOSSY}: {difference}")


class _Log:
    """A log in memory as a source. Its rows are examined once, not for every table."""

    def __init__(self, rows: pa.Table, topic: str) -> None:
        self._source = ArrowRows(rows)
        (self._log,) = self._source.partitions(topic)

    @property
    def rows(self) -> pa.Table:
        """The rows for tables."""
        return self._log.rows

    @property
    def name(self) -> str:
        """The name of the rows."""
        return self._source.name

    def topics(self) -> list[str]:
        """The topic of this log."""
        return [self._log.topic]

    def partitions(self, topic: str) -> Sequence[LogPartition]:
        """This partition."""
        return [self._log] if topic == self._log.topic else self._source.partitions(topic)


def _over(source: Any, **always: Any) -> Read:
    """A function that reads tables over a source, each only once."""

    @cache
    def read(table: str, **options: Any) -> pa.Table:
        return read_table(table, source, **always, **options).table

    return read


def compare_loaded(verdict: Verdict, way: str, loaded: Loaded) -> None:
    """Add the differences to the verdict; `way` says how the rows were read."""
    history = loaded.history
    comparisons = COMPARISONS[history.topic]
    if is_refused(loaded):
        verdict.compared.counts["refused"] += 1
        comparisons = {"checks": comparisons["checks"]}
    else:
        verdict.compared.counts["moments"] += 1
        verdict.compared.counts["answers"] += len(loaded.questions)
    for table, comparison in comparisons.items():
        for difference in _found(verdict, table, table, comparison, loaded):
            verdict.differences.append(f"seed {verdict.seed}, {history.name}, cut {loaded.cut}, {way}: {difference}")


def _found(verdict: Verdict, name: str, table: str, comparison: Comparison, loaded: Loaded) -> list[Difference]:
    """The differences, counted under `name`. A table that cannot be read counts as a difference."""
    if verdict.tables is not None and table not in verdict.tables:
        return []
    tally = verdict.compared.of(name)
    used, made = Counter(loaded.used), COMPARISONS_MADE[table]
    try:
        found = list(comparison(loaded))
    except Exception as error:
        found = [Difference(table, "reading it", "rows", f"{type(error).__name__}: {error}")]
    tally.add(Tally(1, COMPARISONS_MADE[table] - made, len(found), loaded.used - used, loaded.noted))
    loaded.noted = Counter()
    return found
