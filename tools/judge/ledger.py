"""Counts of comparisons by table, and a small file that stores them, so that a long run can be continued."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import kafka_records
import kafka_records_engine
import kafka_records_runtime
import kafka_records_tables
from tools.kafka_releases import LATEST

_JUDGED: Final = (kafka_records, kafka_records_engine, kafka_records_runtime, kafka_records_tables)
_HEADS: Final = ("table", "moments", "compared", "differences")


@dataclass
class Tally:
    """The number of comparisons of a table, and how often each rule of `UNTOLD` was needed."""

    moments: int = 0
    compared: int = 0
    differences: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)
    """Other counts of the comparison."""

    def add(self, other: Tally) -> None:
        """Add the counts of other comparisons."""
        self.moments += other.moments
        self.compared += other.compared
        self.differences += other.differences
        self.rules += other.rules
        self.noted += other.noted


@dataclass
class Compared:
    """The counts of comparisons for one or many seeds."""

    counts: Counter[str] = field(default_factory=Counter)
    tables: dict[str, Tally] = field(default_factory=dict)

    def of(self, table: str) -> Tally:
        """The counts of a table."""
        return self.tables.setdefault(table, Tally())

    def add(self, other: Compared) -> None:
        """Add the counts of other comparisons."""
        self.counts += other.counts
        for table, tally in other.tables.items():
            self.of(table).add(tally)

    def lines(self) -> Iterator[str]:
        """A line per table, and one for each rule that it needed."""
        cells = [(name, each.moments, each.compared, each.differences) for name, each in sorted(self.tables.items())]
        widths = [max(len(str(cell)) for cell in column) for column in zip(_HEADS, *cells, strict=True)]
        for row in (_HEADS, *cells):
            name, *numbers = (str(cell) for cell in row)
            right = (number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True))
            yield "  ".join((name.ljust(widths[0]), *right))
            tally = self.tables.get(name)
            yield from () if tally is None else (f"  {rule}: {times}" for rule, times in sorted(tally.rules.items()))


class Ledger:
    """The seeds without a difference, and the counts of their comparisons, for one state of the code.

    Without a `file`, nothing is stored. Comparisons with another state of the code do not count.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._state = _state() if file else ""
        told = _told(file)
        self._seeds: set[int] = set()
        self.compared = Compared()
        if told.get("state") == self._state:
            self._seeds = {seed for first, last in told["seeds"] for seed in range(first, last + 1)}
            counted = ("rules", "noted")
            tables = {
                name: Tally(**each | {part: Counter(each[part]) for part in counted})
                for name, each in told["tables"].items()
            }
            self.compared = Compared(Counter(told["counts"]), tables)

    def left_of(self, seeds: Iterable[int]) -> list[int]:
        """The seeds that are not in the ledger."""
        return [seed for seed in seeds if seed not in self._seeds]

    def __len__(self) -> int:
        return len(self._seeds)

    def add(self, seed: int, compared: Compared) -> None:
        """Add a seed without a difference."""
        self._seeds.add(seed)
        self.compared.add(compared)

    def write(self) -> None:
        """Write the file. If that fails, the old file stays."""
        if self._file is None:
            return
        tables = {name: vars(tally) for name, tally in sorted(self.compared.tables.items())}
        told = {"state": self._state, "seeds": list(_ranges(self._seeds)), "counts": self.compared.counts}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        written = self._file.with_name(self._file.name + ".new")
        written.write_text(json.dumps(told | {"tables": tables}, indent=1) + "\n", encoding="utf-8")
        written.replace(self._file)


def _told(file: Path | None) -> Mapping[str, Any]:
    if file is None or not file.exists():
        return {}
    told: Mapping[str, Any] = json.loads(file.read_text("utf-8"))
    return told


def _ranges(seeds: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The first and last number of each run of consecutive seeds."""
    for _, neighbours in groupby(enumerate(sorted(seeds)), lambda numbered: numbered[1] - numbered[0]):
        found = [seed for _, seed in neighbours]
        yield found[0], found[-1]


def _state() -> str:
    """A digest of the sources of judge and tables, and of the release whose classes answer."""
    folders = [Path(__file__).parent, *(Path(package.__path__[0]) for package in _JUDGED)]
    digest = hashlib.sha256(LATEST.encode())
    for folder in folders:
        for source in sorted([*folder.rglob("*.py"), *folder.rglob("*.java")]):
            digest.update(f"{source.relative_to(folder.parent)}\0".encode() + source.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
