"""The page about a release below docs/releases: what changed in the messages that we have, and where that shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from kafka_records_codegen.evolution.change_rules import Rank
from kafka_records_codegen.evolution.changes import Change
from kafka_records_codegen.products.markdown import text
from kafka_records_tables.tables import TABLES, tables_read
from tools.follow.enumerations import EnumChange
from tools.follow.vectors import Differences
from tools.follow.wording import sides

_UNSAID = frozenset({"same", "yes"})


def page(
    title: str,
    since: str,
    changes: Iterable[Change],
    passed_over: Sequence[str],
    differences: Differences,
    enums: Sequence[EnumChange] | None = None,
) -> str:
    """The whole page. `passed_over` are new messages that are not carried; `differences` counts vectors; `enums` are
    the changes of error codes and states, None where nobody can tell them."""
    told = [change for change in changes if change.rank is not Rank.WORDS]
    lines = [
        f"# Kafka {title}",
        "",
        f"<!-- Written by `make follow RELEASE={title}`. -->",
        "",
        f"What differs from {since} in the messages of this package, by `kafka-records-codegen compare`, and where it",
        "shows: the attribute of the class, and the Spark column.",
        "",
    ]
    lines += _changes(told) if told else ["Nothing."]
    lines += _tables_concerned({change.message for change in told})
    if enums is not None:
        lines += [
            "",
            "## Error codes and states",
            "",
            *(_enums(enums) if enums else ["None is new, and none is gone."]),
        ]
    lines += ["", "## Bytes", ""]
    lines += _bytes(title, since, differences)
    if passed_over:
        listed = ", ".join(f"`{name}`" for name in passed_over)
        lines += ["", "## Not carried", "", f"New, and about nothing that this package reads: {listed}."]
    return "\n".join([*lines, ""])


def _enums(changes: Sequence[EnumChange]) -> Iterator[str]:
    yield "| enumeration | number | name | |"
    yield "|---|---|---|---|"
    for enum, older, newer in changes:
        found = newer or older
        assert found is not None
        was = "new" if older is None else f"was `{older.name}`{', retriable' if older.retriable else ''}"
        what = was if newer is not None else "gone"
        yield f"| `{enum}` | {found.number} | `{found.name}`{', retriable' if found.retriable else ''} | {what} |"


def _bytes(title: str, since: str, differences: Differences) -> Iterator[str]:
    refused, read, otherwise, were_whole, given_up = differences
    if given_up:
        yield f"{given_up} vectors of versions that {title} no longer has are in `given_up.jsonl.gz` now."
        yield ""
    if not refused + read + otherwise:
        yield "Every vector in `tests/data/vectors` has the verdict that it had, under the names above."
        return
    yield "Of the damaged or unusual messages in `tests/data/vectors/negative.jsonl.gz`,"
    yield ""
    yield f"- read by {since} and refused by {title}: {refused};"
    yield f"- refused by {since} and read by {title}: {read};"
    yield f"- read by both, by {title} with other fields, other unknown tags or other bytes left: {otherwise}."
    yield ""
    if were_whole:
        yield f"Among them, {were_whole} were whole for {since} and stood in `messages.jsonl.gz`: with an unknown tag"
        yield f"whose number {title} gives to a field, and with something else in it."
        yield ""
    yield "[strictness.md](../strictness.md#where-releases-differ) says more. Every other vector has the verdict that"
    yield "it had, under the names above."


def _changes(changes: Sequence[Change]) -> Iterator[str]:
    yield "| message | versions | field | change | Python | column |"
    yield "|---|---|---|---|---|---|"
    ordered = sorted(changes, key=lambda change: (change.message, change.place.line, change.place.column))
    for name, group in groupby(ordered, key=lambda change: change.message):
        for number, change in enumerate(group):
            cells = [
                f"`{name}`" if number == 0 else "",
                ", ".join(map(str, change.versions)),
                f"`{change.field}`" if change.field else "",
                f"{change.rule.name}: {sides(change)}",
                *(_product(each.kind, each.text) for each in (change.downstream.python, change.downstream.spark)),
            ]
            yield f"| {' | '.join(text(each) for each in cells)} |"


def _product(kind: str, text: str) -> str:
    return "" if kind in _UNSAID else text


def _tables_concerned(messages: Iterable[str]) -> Iterator[str]:
    """Where to look by hand: a declaration names the records that a table reads, and not which of their fields."""
    tables = _tables()
    records = {name.removesuffix("Key").removesuffix("Value") for name in messages}
    found = {name: tables[name] for name in sorted(records & tables.keys())}
    if not found:
        return
    yield from ("", "## Tables", "")
    yield "`kafka-records dump` and Spark columns have what is new at once. A table has it when its module takes it up:"
    yield "the tables of each record that changed, of which none does so by itself."
    yield ""
    yield from (f"- `{name}`: {names}" for name, names in found.items())


def _tables() -> Mapping[str, str]:
    """By record, the tables that read it."""
    found: dict[str, list[str]] = {}
    for name, table in TABLES.items():
        for record in sorted({record for read in tables_read(table) for record in read.records}):
            found.setdefault(record, []).append(f"`{name}`")
    return {record: ", ".join(names) for record, names in found.items()}
