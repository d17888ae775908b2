"""The page about a release below docs/releases: what changed in the messages that we have, and where that shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from kafka_records_codegen.evolution.change_rules import Rank
from kafka_records_codegen.evolution.changes import Change
from kafka_records_codegen.products.markdown import text
from kafka_records_tables.tables import TABLES

_UNSAID = frozenset({"same", "yes"})


def page(title: str, since: str, changes: Iterable[Change], passed_over: Sequence[str], refused: int) -> str:
    """The whole page. `passed_over` are new messages that are not carried; `refused` counts vectors of damaged messages
    that Kafka read before and the release refuses.
    """
    told = [change for change in changes if change.rank is not Rank.WORDS]
    lines = [
        f"# Kafka {title}",
        "",
        f"<!-- Written by `make follow RELEASE={title}`. -->",
        "",
        f"What differs from {since} in the messages of this package, by `kafka-records-codegen compare`, and where it",
        "shows: the attribute of the class, the Spark column, and the tables that read the record and might show it.",
        "",
    ]
    lines += _changes(told) if told else ["Nothing."]
    lines += ["", "## Bytes", ""]
    if refused:
        lines += [
            f"Of the damaged messages in `tests/data/vectors`, {refused} that {since} read are refused by {title}:",
            "[strictness.md](../strictness.md#where-releases-differ) says why. All others are read as before.",
        ]
    else:
        lines += [f"Every vector in `tests/data/vectors` is read by {title} as before."]
    if passed_over:
        listed = ", ".join(f"`{name}`" for name in passed_over)
        lines += ["", "## Not carried", "", f"New, and about nothing that this package reads: {listed}."]
    return "\n".join([*lines, ""])


def _changes(changes: Sequence[Change]) -> Iterator[str]:
    yield "| message | versions | field | change | Python | column | tables |"
    yield "|---|---|---|---|---|---|---|"
    tables = _tables()
    ordered = sorted(changes, key=lambda change: (change.message, change.place.line, change.place.column))
    for name, group in groupby(ordered, key=lambda change: change.message):
        for number, change in enumerate(group):
            cells = [
                f"`{name}`" if number == 0 else "",
                ", ".join(map(str, change.versions)),
                f"`{change.field}`" if change.field else "",
                f"{change.rule.name}: {_sides(change)}",
                *(_product(each.kind, each.text) for each in (change.downstream.python, change.downstream.spark)),
                tables.get(name.removesuffix("Key").removesuffix("Value"), "") if change.field else "",
            ]
            yield f"| {' | '.join(text(each) for each in cells)} |"


def _sides(change: Change) -> str:
    if change.older and change.newer:
        return f"{change.older} is {change.newer}"
    return change.newer or f"{change.older} is gone"


def _product(kind: str, text: str) -> str:
    return "" if kind in _UNSAID else text


def _tables() -> Mapping[str, str]:
    """By record, the tables that read it."""
    found: dict[str, list[str]] = {}
    for name, table in TABLES.items():
        for record in table.records:
            found.setdefault(record, []).append(f"`{name}`")
    return {record: ", ".join(names) for record, names in found.items()}
