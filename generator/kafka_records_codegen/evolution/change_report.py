"""A comparison as text for people, and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

from kafka_records_codegen.evolution.change_rules import Rank
from kafka_records_codegen.evolution.changes import Change, DownstreamEffect, SpecComparison
from kafka_records_codegen.evolution.downstream import nothing
from kafka_records_runtime.errors import plural
from kafka_records_runtime.text.printable import printable

_LONGEST: Final = 60
"""The maximum length of a description or comment to show."""

_BREAKS: Final = frozenset({Rank.BYTES, Rank.READERS, Rank.EARLY_ACCESS})

_QUIET: Final = frozenset({"same", "yes"})


def as_text(comparison: SpecComparison, show: Rank = Rank.WORDS) -> Iterator[str]:
    """The lines of the report: a heading for each rank, followed by each change with its place, its rule and its
    downstream effects."""
    explained: set[str] = set()
    for rank, changes in groupby(comparison.at_least(show), key=lambda change: change.rank):
        listed = list(changes)
        yield f"{rank.title.upper()} ({len(listed)})"
        for change in listed:
            yield from _change(change, change.rule.name not in explained)
            explained.add(change.rule.name)
        yield ""
    yield summary(comparison)


def summary(comparison: SpecComparison) -> str:
    """One line with the number of changes of each rank."""
    counts = [f"{count} {rank.value}" for rank, count in comparison.counts().items() if count]
    found = ", ".join(counts) if counts else "no change"
    sides = (
        f"{printable(comparison.older)} ({plural(comparison.older_messages, 'message')})",
        f"{printable(comparison.newer)} ({plural(comparison.newer_messages, 'message')})",
    )
    return f"{' to '.join(sides)}: {found}"


def as_json(comparison: SpecComparison, show: Rank, fail_on: Rank) -> str:
    """One JSON object: both sides, the number of changes per rank, whether a change is as bad as `fail_on`, and the
    changes."""
    document: dict[str, Any] = {
        "older": {"specs": comparison.older, "messages": comparison.older_messages},
        "newer": {"specs": comparison.newer, "messages": comparison.newer_messages},
        "left_out": list(comparison.left_out),
        "counts": {rank.value: count for rank, count in comparison.counts().items()},
        "fail_on": fail_on.value,
        "fails": bool(comparison.at_least(fail_on)),
        "changes": [change.as_json() for change in comparison.at_least(show)],
    }
    return json.dumps(document, indent=2)


def _change(change: Change, explain: bool) -> Iterator[str]:
    """The lines for a change. `explain` adds the sentence of the rule, which is shown only once."""
    versions = ", ".join(map(str, change.versions))
    about = change.message if not change.field else f"{change.message} {change.field}"
    in_versions = f", version{'' if _is_one(change) else 's'} {versions}" if versions else ""
    place = change.place
    yield printable(f"{place}: {place.path}: {about}{in_versions}: {_differs(change)}")
    if change.newer_place is not None and change.older_place is not None:
        yield printable(f"    was      {change.older_place}: {change.older_place.path}")
    yield f"    rule     {change.rule.name} ({change.rule.source})"
    if explain:
        yield f"             {change.rule.sentence}"
    if change.early_access:
        yield printable(f"    early    {change.early_access}")
    for label, effect in _effects(change):
        yield printable(f"    {label:<8} {effect}")


def _is_one(change: Change) -> bool:
    return len(change.versions) == 1 and len(change.versions[0]) == 1


def _differs(change: Change) -> str:
    if not change.older_place:
        return f"new, {_short(change.newer)}"
    if not change.newer_place:
        return f"gone, {_short(change.older)}"
    older, newer = (" ".join(text.split()) for text in (change.older, change.newer))
    start = _first_difference(older, newer)
    return f"was {_short(older, start) or 'nothing'}, now {_short(newer, start) or 'nothing'}"


def _first_difference(older: str, newer: str) -> int:
    """The position where the texts begin to differ, if it would be cut off; otherwise 0."""
    if max(len(older), len(newer)) <= _LONGEST:
        return 0
    pairs = enumerate(zip(older, newer, strict=False))
    common = next((at for at, (one, other) in pairs if one != other), min(len(older), len(newer)))
    return older.rfind(" ", 0, common) + 1


def _short(text: str, start: int = 0) -> str:
    """The text on one line. It begins at `start` if the text before it is too long to show."""
    one_line = " ".join(text.split())
    if start > _LONGEST // 2:
        one_line = f"…{one_line[start:]}"
    return one_line if len(one_line) <= _LONGEST else f"{one_line[: _LONGEST - 1]}…"


def _effects(change: Change) -> Iterator[tuple[str, str]]:
    """The downstream effects, except those on unaffected products."""
    products = change.downstream
    if change.rank in _BREAKS and products == nothing():
        yield "products", "as before: attribute, column, Avro schema"
    if products.spark.kind == "message":
        yield "Python", products.python.text
        yield "others", products.spark.text
        return
    if products.python == products.spark and products.python.kind not in _QUIET:
        yield "products", products.python.text
    else:
        for label, effect in (("Python", products.python), ("Spark", products.spark)):
            if effect.kind not in _QUIET:
                yield label, effect.text
    if any(_speaks(effect) for effect in (products.avro_backward, products.avro_forward)):
        yield "Avro", f"backward {products.avro_backward.text}; forward {products.avro_forward.text}"
    if products.parquet.kind not in _QUIET:
        yield "Parquet", products.parquet.text


def _speaks(effect: DownstreamEffect) -> bool:
    return effect.kind != "yes" or effect.text != "yes"
