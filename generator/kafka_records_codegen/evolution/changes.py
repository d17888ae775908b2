"""The results of a comparison: changes as values for programs."""

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
    """The effect of a change on one product: `text` describes it for people, and `kind` for programs.

    `kind` is `same` or `yes` if nothing changes, and `message` if a whole message changes.
    """

    kind: str
    text: str


@dataclass(frozen=True)
class Downstream:
    """How a change affects programs that use decoded messages.

    `python` is about the attribute of the class, and `spark` about the column. `avro_backward` says whether the newer
    Avro schema reads files of the older one, and `avro_forward` the reverse, both by fastavro's resolution rules:
    `yes`, `no`, `partly` if it depends on the values, or `default` if it reads a default instead of what was written.
    `parquet` says how existing files with the column are read.
    """

    python: DownstreamEffect
    spark: DownstreamEffect
    avro_backward: DownstreamEffect
    avro_forward: DownstreamEffect
    parquet: DownstreamEffect


@dataclass(frozen=True)
class Change:
    """One difference between the older and the newer state of a message.

    `message` is its name in the newer state, or in the older one if it is gone. `field` is the path in Kafka's names
    (`Topics.Name`), empty for the message itself. `versions` are the versions of the older state whose bytes show the
    change or, if something was added or left out, the new versions. `older` and `newer` describe the two sides; a side
    that does not exist is empty. If `early_access` is not empty, it says why users could not rely on the older layout,
    and `rank` is the rank of early access.
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
        """The place in the newer state or, if something is gone, in the older one."""
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
    """All changes from one state to the other, the worst first. `left_out` names messages that could not be compared
    because one side could not provide them."""

    older: str
    newer: str
    older_messages: int
    newer_messages: int
    changes: tuple[Change, ...]
    left_out: tuple[str, ...] = ()

    def counts(self) -> dict[Rank, int]:
        """The number of changes of each rank, the worst rank first."""
        counted = Counter(change.rank for change in self.changes)
        return {rank: counted[rank] for rank in Rank}

    def at_least(self, rank: Rank) -> tuple[Change, ...]:
        """The changes that are at least as bad as `rank`."""
        return tuple(change for change in self.changes if change.rank.is_at_least(rank))


def ranges(versions: Iterable[int]) -> tuple[Versions, ...]:
    """Combine single versions into ranges, ascending."""
    found: list[Versions] = []
    for version in sorted(set(versions)):
        if found and found[-1].highest == version - 1:
            found[-1] = Versions(found[-1].lowest, version)
        else:
            found.append(Versions(version, version))
    return tuple(found)
