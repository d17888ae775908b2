"""The page about a release in docs/releases: the changes in the messages that we have, and their effects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Final

from kafka_records_codegen.evolution.change_rules import Rank
from kafka_records_codegen.evolution.changes import Change, Downstream
from kafka_records_codegen.model.messages import Message
from kafka_records_codegen.products.markdown import text
from kafka_records_runtime.errors import plural
from tools.follow.concerned import tables_concerned
from tools.follow.enumerations import EnumChange
from tools.follow.vectors import Differences
from tools.follow.wording import sides

_UNSAID: Final = frozenset({"same", "yes"})
_UNSAID_OF_FILES: Final = _UNSAID | {"message"}
_OF_EVERY_NEW_COLUMN: Final = "files lack the column: null"
"""The effect on Parquet that the head of the page describes."""

_MANY: Final = 5
"""The page counts the messages above this number, and does not name them."""


def page(
    title: str,
    since: str,
    changes: Iterable[Change],
    passed_over: Sequence[str],
    differences: Differences,
    enums: Sequence[EnumChange] | None = None,
    messages: Mapping[str, Message] = MappingProxyType({}),
    *,
    is_explained: bool = False,
) -> str:
    """The page. `passed_over` are new messages that are not included; `differences` are those of vectors; `enums`
    are the changes of error codes and states, None if they are unknown; `messages` are those of the release;
    `is_explained` says whether the page about strictness names it."""
    told = [change for change in changes if change.rank is not Rank.WORDS]
    lines = [
        f"# Kafka {title}",
        "",
        f"<!-- Written by `make follow RELEASE={title}`. -->",
        "",
        f"Changes since {since} in the messages of this package, with the rules and ranks of",
        "[`kafka-records-codegen compare`](../evolution.md#rules). What has the rank `adds` gives new classes,",
        "attributes and columns, which are null in Parquet files from before; [the",
        "reference](../reference/README.md) has all new fields. Other changes affect attributes of classes, Spark",
        "columns or existing files as shown.",
        "",
    ]
    lines += _changes(told) if told else ["Nothing."]
    lines += tables_concerned(told, messages)
    if enums is not None:
        lines += [
            "",
            "## Error codes and states",
            "",
            *(_enums(enums) if enums else ["No changes."]),
        ]
    lines += ["", "## Bytes", ""]
    lines += _bytes(title, since, differences, is_explained)
    if passed_over:
        listed = ", ".join(f"`{name}`" for name in passed_over)
        lines += ["", "## Left out", "", f"New messages about things that this package does not read: {listed}."]
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


def _bytes(title: str, since: str, differences: Differences, is_explained: bool) -> Iterator[str]:
    if differences.given_up:
        given_up = plural(differences.given_up, "vector")
        yield f"{given_up} of versions that {title} no longer has: in `given_up.jsonl.gz` now."
        yield ""
    if not differences.reasons:
        yield "Apart from the names above, nothing has changed for the vectors in `tests/data/vectors`."
        return
    verdicts = {
        "refused": f"read by {since}, refused by {title}",
        "read": f"refused by {since}, read by {title}",
        "otherwise": f"read by both, differently by {title}",
    }
    yield "Damaged or unusual messages in `tests/data/vectors/negative.jsonl.gz`. The reasons are the messages of the"
    yield "classes that refuse, with N for numbers, or what differs."
    yield ""
    for verdict, told in verdicts.items():
        yield f"- {text(told)}: {differences.total(verdict)}"
        for reason in sorted(differences.reasons, key=lambda each: -each.lines):
            if reason.verdict == verdict:
                names = _names(reason.messages)
                yield f"    - {text(reason.why)}: {reason.lines} ({names})"
    yield ""
    if differences.were_whole:
        were, their = ("was", "its") if differences.were_whole == 1 else ("were", "their")
        yield f"{differences.were_whole} of these {were} valid for {since}, and in `messages.jsonl.gz`: {their} unknown"
        yield f"tag has the number of a new field of {title}, but other contents."
        yield ""
    if is_explained:
        yield f"[strictness.md](../strictness.md#where-releases-differ) describes {title}."
    yield "Apart from the names above, nothing has changed for the other vectors."


def _names(messages: Sequence[str]) -> str:
    """The names of some messages, or the number of many."""
    return plural(len(messages), "message") if len(messages) > _MANY else ", ".join(f"`{name}`" for name in messages)


def _changes(changes: Sequence[Change]) -> Iterator[str]:
    """A table of the changes that affect what exists, and a list of what is new."""
    ordered = sorted(changes, key=lambda change: (change.message, change.place.line, change.place.column))
    others = [change for change in ordered if change.rank is not Rank.ADDS]
    if others:
        yield "| message | versions | field | change | rank | effects |"
        yield "|---|---|---|---|---|---|"
    for name, group in groupby(others, key=lambda change: change.message):
        for number, change in enumerate(group):
            cells = [
                f"`{name}`" if number == 0 else "",
                ", ".join(map(str, change.versions)),
                f"`{change.field}`" if change.field else "",
                f"{change.rule.name}: {sides(change)}",
                change.rank.value,
                _effects(change.downstream),
            ]
            yield f"| {' | '.join(text(each) for each in cells)} |"
    added = [change for change in ordered if change.rank is Rank.ADDS]
    if added:
        yield from ([""] if others else [])
        yield "What has the rank `adds`:"
        yield ""
    for name, group in groupby(added, key=lambda change: change.message):
        listed = "; ".join(
            f"{f'`{change.field}` ' if change.field else ''}{change.rule.name}: {sides(change)}" for change in group
        )
        yield f"- `{name}`: {text(listed)}"


def _effects(downstream: Downstream) -> str:
    """The effects on attributes, columns and files; the text about a message covers both file formats."""
    effects = {
        "Python": downstream.python,
        "Spark": downstream.spark,
        "Avro backward": downstream.avro_backward,
        "Avro forward": downstream.avro_forward,
        "Parquet": downstream.parquet,
    }
    products: dict[str, list[str]] = {}
    for product, effect in effects.items():
        unsaid = _UNSAID if product in ("Python", "Spark") else _UNSAID_OF_FILES
        if effect.kind not in unsaid and effect.text != _OF_EVERY_NEW_COLUMN:
            products.setdefault(effect.text, []).append(product)
    return "; ".join(f"{', '.join(named)}: {effect}" for effect, named in products.items())
