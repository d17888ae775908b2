"""A run with brokers, proxies, and readers that compare and count."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources.missing_rights import MissingRight
from tools.faults.cluster import ProxiedBroker, proxied
from tools.faults.proxy import Faults
from tools.faults.reads import LIMIT, Difference, Reads, Truth
from tools.faults.served import AGAIN, Served

ANSWER_LIMIT: Final = 1.0
"""The timeout of clients for one answer in seconds."""
RATES: Final = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
"""The shares of answers that are disturbed, used one after another."""
_EACH: Final = 15.0
"""The seconds for which each share is used."""
_SLACK: Final = 15.0
"""The seconds that a read may exceed its limit by, because the machine is busy."""
_AWAY: Final = 6.0
_DEATHS: Final = 60.0
_SETTLES: Final = 60.0

Tell = Callable[[str], None]
EQUAL, TOLD, REFUSED = "equal", "incomplete, and says so", "error that says what happened"


@dataclass
class Outcome:
    """The counts of a run."""

    seconds: float = 0.0
    answers: Counter[str] = field(default_factory=Counter)
    """The number of answers by outcome."""
    by_kind: dict[str, Counter[str]] = field(default_factory=dict)
    """The outcomes by kind of read."""
    faults: Counter[str] = field(default_factory=Counter)
    """The number of faults by kind."""
    moves: int = 0
    created: int = 0
    """How often a topic was deleted and created again."""
    deaths: int = 0
    """How often brokers were killed and started again."""
    differences: list[str] = field(default_factory=list)


class Run:
    """One run with a seed. `tell` gets lines about its progress."""

    def __init__(self, brokers: list[ProxiedBroker], folder: Path, seed: int, tell: Tell = lambda line: None) -> None:
        """The brokers must be running, and nothing else may use them. `folder` is for the files of reads with a
        state."""
        self._brokers, self._folder, self._seed, self._tell = brokers, folder, seed, tell
        self._direct = ",".join(each.bootstrap for each in brokers)
        self.outcome = Outcome()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._faults = Faults(seed, ANSWER_LIMIT)

    def run(self, seconds: float, *, readers: int = 3, deaths: bool = False) -> Outcome:
        """Read for this long. With `deaths`, brokers other than the controller are killed and started again."""
        served = Served(self._direct, self._seed)
        served.fill()
        truth = self._truth()
        self._tell("the cluster is filled")
        with proxied(self._brokers, self._faults) as bootstrap, self._moving(served):
            started = time.monotonic()
            threads = [
                threading.Thread(target=self._read, args=(number, bootstrap, truth, served))
                for number in range(readers)
            ]
            for thread in threads:
                thread.start()
            self._disturb(started + seconds, seconds, deaths)
            self._stopped.set()
            for thread in threads:
                thread.join()
            self.outcome.seconds = time.monotonic() - started
            self._faults.rate = 0.0
            self._all_kinds(bootstrap, truth, served)
        self.outcome.faults = Counter(self._faults.counts)
        self.outcome.moves, self.outcome.created = served.moves, served.again.time - 1
        self.outcome.differences += [f"a client of the brokers ended: {each!r}" for each in served.failures]
        return self.outcome

    def _truth(self) -> Truth:
        deadline = time.monotonic() + _SETTLES
        while True:
            try:
                truth = Truth(self._brokers[0].data, self._direct)
                if truth.is_settled():
                    return truth
            except LogSourceError:
                if time.monotonic() > deadline:
                    raise
            if time.monotonic() > deadline:
                raise TimeoutError(f"for {_SETTLES:g} s: files and brokers do not have the same")
            time.sleep(0.5)

    @contextmanager
    def _moving(self, served: Served) -> Iterator[None]:
        served.start()
        try:
            yield
        finally:
            self._stopped.set()
            served.stop()

    def _disturb(self, until: float, seconds: float, deaths: bool) -> None:
        """Change the rate, and kill brokers. A broker ends with the thread that started it, so this runs in the main
        thread."""
        random = Random(f"rates-{self._seed}")
        each = min(_EACH, seconds / len(RATES))
        next_death = time.monotonic() + _DEATHS
        while (now := time.monotonic()) < until and not self.outcome.differences:
            self._faults.rate = random.choice(RATES)
            self._tell(f"{until - now:.0f} s left: {dict(self.outcome.answers)}, {self._faults.counts.total()} faults")
            if deaths and now > next_death:
                broker = random.choice(self._brokers[1:])
                broker.kill()
                time.sleep(_AWAY)
                broker.start()
                self.outcome.deaths += 1
                next_death = time.monotonic() + _DEATHS
            self._stopped.wait(min(each, max(until - time.monotonic(), 0)))

    def _read(self, number: int, bootstrap: str, truth: Truth, served: Served) -> None:
        random = Random(f"reads-{self._seed}-{number}")
        reads = Reads(bootstrap, truth, served, random, self._folder / f"state-{number}", ANSWER_LIMIT)
        while not self._stopped.is_set() and not self.outcome.differences:
            kind = random.choice([*reads.kinds])
            self._count(kind, *self._outcome_of(reads, kind))

    def _all_kinds(self, bootstrap: str, truth: Truth, served: Served) -> None:
        """Check that every kind of read is complete again without faults."""
        reads = Reads(bootstrap, truth, served, Random(self._seed), self._folder / "state-0", 10 * ANSWER_LIMIT)
        for kind in reads.kinds:
            outcome, told = self._outcome_of(reads, kind)
            self._count(kind, outcome, told)
            if outcome != EQUAL:
                self.outcome.differences.append(f"{kind}, without faults: {outcome}: {told}")

    def _outcome_of(self, reads: Reads, kind: str) -> tuple[str, str]:
        try:
            found = reads.kinds[kind]()
            outcome, told = (TOLD, "; ".join(map(str, found))) if found else (EQUAL, "")
        except (LogSourceError, Difference) as error:
            told = str(error)
            is_true = isinstance(error, LogSourceError) and not isinstance(error, MissingRight) and told.isprintable()
            # Only this topic may ever be missing.
            is_true &= AGAIN in told or ("there is no topic" not in told and "recreated" not in told)
            outcome = REFUSED if is_true else f"{type(error).__name__}"
        except Exception as error:
            outcome, told = f"{type(error).__name__}", f"{error!r}"
        if reads.took > LIMIT + _SLACK:
            outcome, told = "too long", f"{reads.took:.0f} s; {told}"
        return outcome, told

    def _count(self, kind: str, outcome: str, told: str) -> None:
        with self._lock:
            if outcome not in (EQUAL, TOLD, REFUSED):
                recent = "\n    ".join(self._faults.recent)
                self.outcome.differences.append(f"{kind}: {outcome}: {told}\n  faults before it:\n    {recent}")
            self.outcome.answers[outcome] += 1
            self.outcome.by_kind.setdefault(kind, Counter())[outcome] += 1
