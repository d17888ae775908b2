"""Folds findings: determines which cases of one rule are effects of cases of another rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from kafka_records_tables.report.rule import Folds, ReportRule

_SINCE: Final = "since_ms"
Names = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class FoldedCase:
    """A case that is an effect: its kind, and its index among the cases of that kind."""

    kind: str
    place: int


@dataclass(frozen=True, slots=True)
class FoldedCases:
    """The cases of all rules, with effects kept separately."""

    cases: Mapping[str, pa.Table]
    """For each kind, the cases that are separate findings, with a column `effects` of row numbers in
    `FoldedCases.effects`."""
    effects: Sequence[FoldedCase]
    all_cases: Mapping[str, pa.Table]
    """All cases by kind, including the effects."""


def folded(rules: Sequence[ReportRule], cases: Mapping[str, pa.Table]) -> FoldedCases:
    """The cases of rules by kind, with each effect attached to the first case that explains it. If that case is itself
    an effect, its effects move to the case that explains it."""
    parents: dict[tuple[str, int], tuple[str, int]] = {}
    for rule in rules:
        own = cases[rule.kind]
        for fold in rule.folds if own.num_rows else ():
            effects = cases.get(fold.kind)
            if effects is not None and effects.num_rows and fold.kind != rule.kind:
                for place, parent in _pairs(own, effects, fold):
                    child = fold.kind, place
                    # If two findings would explain each other, the first rule wins.
                    if _root((rule.kind, parent), parents) != child:
                        parents.setdefault(child, (rule.kind, parent))
    found: list[FoldedCase] = []
    numbers: dict[tuple[str, int], list[int]] = {}
    for child in parents:
        numbers.setdefault(_root(child, parents), []).append(len(found))
        found.append(FoldedCase(*child))
    left = {}
    for kind, table in cases.items():
        of_rows = [numbers.get((kind, at), []) for at in range(table.num_rows)]
        stays = [(kind, at) not in parents for at in range(table.num_rows)]
        levels = _levels(
            table, [[cases[found[each].kind]["level"][found[each].place] for each in of] for of in of_rows]
        )
        table = table.set_column(table.schema.get_field_index("level"), "level", levels)
        table = table.append_column("effects", pa.array(of_rows, pa.list_(pa.int64())))
        left[kind] = table.filter(pa.array(stays, pa.bool_()))
    return FoldedCases(left, found, cases)


def _levels(cases: pa.Table, of_effects: Sequence[Sequence[Any]]) -> Any:
    """The level of each case, or the worst level of its effects if that is higher."""
    if not any(of_effects):
        return cases["level"]
    worst = pa.array([max((each.as_py() for each in levels), default=0) for levels in of_effects], pa.int8())
    return pc.max_element_wise(cases["level"], worst).cast(pa.int8())


def _root(child: tuple[str, int], parents: Mapping[tuple[str, int], tuple[str, int]]) -> tuple[str, int]:
    """The case at the end of the chain of causes."""
    while child in parents:
        child = parents[child]
    return child


def _pairs(own: pa.Table, effects: pa.Table, fold: Folds) -> Iterator[tuple[int, int]]:
    """Indexes of effects, each with the index of the first case that explains it."""
    explained: dict[Names, int] = {}
    for place, names in enumerate(_names(own, fold.same)):
        for name in names:
            explained.setdefault(name, place)
    if not explained:
        return
    since, later = _since(own), _since(effects)
    for place, names in enumerate(_names(effects, fold.same)):
        parents = sorted({explained[name] for name in names if name in explained})
        for parent in parents:
            first, second = since[parent], later[place]
            if not fold.if_later or first is None or second is None or second >= first:
                yield place, parent
                break


def _since(cases: pa.Table) -> Sequence[int | None]:
    if _SINCE in cases.column_names:
        found: list[int | None] = cases[_SINCE].to_pylist()
        return found
    return [None] * cases.num_rows


def _names(cases: pa.Table, columns: Sequence[str]) -> Iterator[set[Names]]:
    """The names in each case, one per column. Lists of the same length, such as the groups and topics of places, are
    matched element by element; other lists are combined in all ways."""
    lists = [_lists(cases, name) for name in columns]
    for names in zip(*lists, strict=True):
        is_beside = len({len(each) for each in names}) == 1
        yield {each for each in (zip(*names, strict=True) if is_beside else product(*names)) if None not in each}


def _lists(cases: pa.Table, name: str) -> list[list[str | None]]:
    """The column as lists of names: a single name becomes a list of one; empty if cases have no such name."""
    if f"{name}_list" in cases.column_names:
        return [each or [] for each in cases[f"{name}_list"].to_pylist()]
    if name in cases.column_names:
        return [[each] for each in cases[name].to_pylist()]
    return [[] for _ in range(cases.num_rows)]
