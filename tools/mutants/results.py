"""Results of mutants. They are stored between runs, counted, and compared with the reasons for survivors."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tools.mutants.drawing import Mutant

REASONS: Final = Path(__file__).with_name("reasons.json")
"""The file with the mutants that no test can kill, or that are not worth a test."""

_NORMAL_95: Final = 1.959964


@dataclass(frozen=True)
class Result:
    """A mutant, identified by its change, and what killed it."""

    path: str
    line: int
    operator: str
    before: str
    after: str
    killer: str | None
    how: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """A key that identifies a mutant even if its line moves."""
        return self.path, self.operator, self.before, self.after


def reasons(file: Path = REASONS) -> dict[tuple[str, str, str, str], dict[str, str]]:
    """The reasons why mutants survive, by mutant: `kind` is `equivalent` or `accepted`, and `reason` is a sentence."""
    listed: list[dict[str, str]] = json.loads(file.read_text("utf-8"))
    return {(each["path"], each["operator"], each["before"], each["after"]): each for each in listed}


@dataclass(frozen=True)
class Share:
    """A share of a sample, with the 95 % confidence interval of the share of all mutants (Wilson)."""

    part: int
    whole: int

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the confidence interval, from 0 to 1."""
        if not self.whole:
            return 0.0, 1.0
        share, square = self.part / self.whole, _NORMAL_95**2
        middle = share + square / (2 * self.whole)
        reach = _NORMAL_95 * math.sqrt(share * (1 - share) / self.whole + square / (4 * self.whole**2))
        below = 1 + square / self.whole
        return max(0.0, (middle - reach) / below), min(1.0, (middle + reach) / below)

    def __str__(self) -> str:
        low, high = self.interval
        share = self.part / self.whole if self.whole else 0
        return f"{self.part} of {self.whole} ({share:.1%}; 95 % confidence: {low:.1%} to {high:.1%})"


def figures(
    results: Sequence[Result], possible: int, seed: int, listed: Mapping[Any, Mapping[str, str]]
) -> dict[str, str]:
    """The entry of docs/trust.json. Equivalent mutants, which no test can kill, do not count for the share."""
    killers = Counter(result.killer for result in results if result.killer)
    survivors = [result for result in results if result.killer is None]
    kinds = Counter(listed[each.key]["kind"] if each.key in listed else "open" for each in survivors)
    killed = sum(killers.values())
    return {
        "killed": str(Share(killed, len(results) - kinds["equivalent"])),
        "sample": f"{len(results)} mutants, drawn by seed {seed} from {possible} that are possible",
        "killed by histories of Kafka, some tables over whole logs": str(killers["histories"]),
        "killed by our own tests, tried on what that leaves": str(killers["tests"]),
        "killed by logs of the judge in every way, tried on what that leaves": str(killers["judge"]),
        "no end in time, twice, or the process ends; counted as killed": str(killers["time"] + killers["crash"]),
        "equivalent, listed with reasons and not counted": str(kinds["equivalent"]),
        "survivors that are accepted, listed with reasons": str(kinds["accepted"]),
        "survivors without a case or reason": str(kinds["open"]),
    }


class Kept:
    """The results of earlier runs of a seed. A mutant that was killed is not tried again while its module is
    unchanged."""

    def __init__(self, file: Path) -> None:
        self._file = file
        lines = file.read_text("utf-8").splitlines() if file.exists() else []
        self._results = {line["mutant"]: line for line in map(json.loads, lines)}

    def of(self, mutant: Mutant) -> Result | None:
        """The result of a mutant that was killed."""
        line = self._results.get(_name(mutant))
        if line is None or line["result"]["killer"] is None:
            return None
        return Result(**line["result"])

    def add(self, mutant: Mutant, result: Result) -> None:
        """Keep the result of a mutant."""
        line = {"mutant": _name(mutant), "result": asdict(result)}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _name(mutant: Mutant) -> str:
    digest = hashlib.sha256(mutant.file.read_bytes()).hexdigest()[:12]
    return f"{mutant.path}:{mutant.operator}:{mutant.identity}:{digest}"


def survivor_lines(results: Iterable[Result], listed: Mapping[Any, Mapping[str, str]]) -> Iterator[str]:
    """A paragraph for each survivor that has no reason."""
    for each in results:
        if each.killer is None and each.key not in listed:
            yield f"{each.path}:{each.line}: {each.operator}\n  - {each.before}\n  + {each.after}"
