"""What a comparison gives: changes, as values that a program can act upon."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from kafka_records_codegen.evolution.change_rules import Rank, Rule
from kafka_records_codegen.spec.versions import Versions


@dataclass(frozen=True)
class SpecPlace:
    """A place in a spec: the file, line and column (from 1), and the path inside the JSON (`fields[2].type`)."""

    file: str
    line: int
    column: int
    path: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class DownstreamEffect:
    """What a change does to one product. `kind` is a word for programs, `same` or `yes` for nothing, `message` where a
    whole message changes; `text` is for people."""

    kind: str
    text: str


@dataclass(frozen=True)
class Downstream:
    """How a change affects programs that work with decoded messages.

    `python` is the attribute of the class, `spark` the column. `avro_backward` says whether the newer Avro schema reads
    files of the older one, `avro_forward` the reverse, both by fastavro's rules of resolution: `yes`, `no`, `partly`
    where it depends on the values, or `default` where it reads a default in place of what was written. `parquet` is
    what becomes of the column in files that were written before.
    """

    python: DownstreamEffect
    spark: DownstreamEffect
    avro_backward: DownstreamEffect
    avro_forward: DownstreamEffect
    parquet: DownstreamEffect


@dataclass(frozen=True)
class Change:
    """One thing that differs between the older and the newer state of a message.

    `message` is its name in the newer state, in the older one if it is gone. `field` is the path by Kafka's names
    (`Topics.Name`), empty for the message itself. `versions` are the versions of the older state in whose bytes the
    change shows; for what is added or left out, the new ones. `older` and `newer` are the two sides in words, empty if
    there is none. `early_access` says why nobody could rely on the older layout; `rank` is that of early access then.
    """

    rule: Rule
    rank: Rank
    message: str
    field: str
    versions: tuple[Versions, ...]
    older: str
    newer: str
    older_place: SpecPlace | None
    newer_place: SpecPlace | None
    downstream: Downstream
    early_access: str = ""

    @property
    def place(self) -> SpecPlace:
        """Where to look: in the newer state, or in the older one for what is gone."""
        found = self.newer_place or self.older_place
        assert found is not None
        return found

    def as_json(self) -> dict[str, Any]:
        return {
            "rank": self.rank.value,
            "rule": self.rule.name,
            "source": self.rule.source,
            "message": self.message,
            "field": self.field,
            "versions": [[each.lowest, each.highest] for each in self.versions],
            "older": self.older,
            "newer": self.newer,
            "older_place": None if self.older_place is None else asdict(self.older_place),
            "newer_place": None if self.newer_place is None else asdict(self.newer_place),
            "early_access": self.early_access,
            "downstream": asdict(self.downstream),
        }


@dataclass(frozen=True)
class SpecComparison:
    """All changes from one state to the other, the worst first. `left_out` names what one side could not show."""

    older: str
    newer: str
    older_messages: int
    newer_messages: int
    changes: tuple[Change, ...]
    left_out: tuple[str, ...] = ()

    def counts(self) -> dict[Rank, int]:
        """How many changes of each rank there are, the worst rank first."""
        counted = Counter(change.rank for change in self.changes)
        return {rank: counted[rank] for rank in Rank}

    def at_least(self, rank: Rank) -> tuple[Change, ...]:
        """The changes that are as bad as `rank`, or worse."""
        return tuple(change for change in self.changes if change.rank.is_at_least(rank))


def ranges(versions: Iterable[int]) -> tuple[Versions, ...]:
    """Single versions as ranges, ascending."""
    found: list[Versions] = []
    for version in sorted(set(versions)):
        if found and found[-1].highest == version - 1:
            found[-1] = Versions(found[-1].lowest, version)
        else:
            found.append(Versions(version, version))
    return tuple(found)
