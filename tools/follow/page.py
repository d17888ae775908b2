"""The page about a release in docs/releases: the changes in the messages that we have, and their effects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Final

from kafka_records_codegen.evolution import change_rules as rules
from kafka_records_codegen.evolution.change_rules import Rank
from kafka_records_codegen.evolution.changes import Change, Downstream, DownstreamEffect
from kafka_records_codegen.evolution.downstream import Attribute
from kafka_records_codegen.model.messages import Field, Message, Struct
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
        "[`kafka-records-codegen compare`](../evolution.md#rules), and their effects on attributes of classes, Spark",
        "columns and existing files. Parquet files from before lack new columns, which are read as null.",
        "",
    ]
    lines += _changes(told) if told else ["Nothing."]
    lines += _new(told, messages)
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
    yield "Of the damaged or unusual messages in `tests/data/vectors/negative.jsonl.gz`,"
    yield ""
    counts = [f"- {told}: {differences.total(verdict)}" for verdict, told in verdicts.items()]
    yield from (f"{line};" for line in counts[:-1])
    yield f"{counts[-1]}."
    yield ""
    if differences.were_whole:
        were, their = ("was", "its") if differences.were_whole == 1 else ("were", "their")
        yield f"{differences.were_whole} of these {were} valid for {since}, and in `messages.jsonl.gz`: {their} unknown"
        yield f"tag has the number of a new field of {title}, but other contents."
        yield ""
    yield "The reasons are the messages of the classes that refuse, with N for numbers, or what differs:"
    yield ""
    yield "| verdict | why | vectors | of messages |"
    yield "|---|---|--:|---|"
    for reason in sorted(differences.reasons, key=lambda each: (list(verdicts).index(each.verdict), -each.lines)):
        names = ", ".join(f"`{name}`" for name in reason.messages)
        yield f"| {text(verdicts[reason.verdict])} | {text(reason.why)} | {reason.lines} | {names} |"
    yield ""
    if is_explained:
        yield f"[strictness.md](../strictness.md#where-releases-differ) describes {title}."
    yield "Apart from the names above, nothing has changed for the other vectors."


def _changes(changes: Sequence[Change]) -> Iterator[str]:
    yield "| message | versions | field | change | rank | Python | column | files |"
    yield "|---|---|---|---|---|---|---|---|"
    ordered = sorted(changes, key=lambda change: (change.message, change.place.line, change.place.column))
    for name, group in groupby(ordered, key=lambda change: change.message):
        for number, change in enumerate(group):
            cells = [
                f"`{name}`" if number == 0 else "",
                ", ".join(map(str, change.versions)),
                f"`{change.field}`" if change.field else "",
                f"{change.rule.name}: {sides(change)}",
                change.rank.value,
                *(_product(each) for each in (change.downstream.python, change.downstream.spark)),
                _files(change.downstream),
            ]
            yield f"| {' | '.join(text(each) for each in cells)} |"


def _product(effect: DownstreamEffect) -> str:
    return "" if effect.kind in _UNSAID else effect.text


def _files(downstream: Downstream) -> str:
    """The effects on Avro and Parquet; the text about a message covers both."""
    effects = {
        "Avro backward": downstream.avro_backward,
        "Avro forward": downstream.avro_forward,
        "Parquet": downstream.parquet,
    }
    told = (
        f"{product} {effect.text}"
        for product, effect in effects.items()
        if effect.kind not in _UNSAID_OF_FILES and effect.text != _OF_EVERY_NEW_COLUMN
    )
    return "; ".join(told)


def _new(changes: Sequence[Change], messages: Mapping[str, Message]) -> Iterator[str]:
    """The fields of new messages, and of structs that come with new fields. Structs with the same name and fields are
    described once."""
    described: set[tuple[str, str]] = set()
    rows = [row for change in changes for row in _fields_of(change, messages.get(change.message), described)]
    if rows:
        yield from ("", "## New fields, in new messages and in new structs", "")
        yield "| message | field | type | versions | attribute and column | Python | Spark |"
        yield "|---|---|---|---|---|---|---|"
        yield from rows


def _fields_of(change: Change, message: Message | None, described: set[tuple[str, str]]) -> Iterator[str]:
    if message is None:
        return
    if change.rule in (rules.MESSAGE_ADDED, rules.RECORD_ADDED):
        yield from _rows(message, message.root, (), described)
    elif change.rule in (rules.FIELD_ADDED, rules.TAG_ADDED) and change.older_place is None:
        around: tuple[Field, ...] = ()
        struct = message.root
        for name in change.field.split("."):
            field = next(each for each in struct.fields if each.name == name)
            around = (*around, field)
            if not field.is_struct:
                return
            struct = message.struct(field.base)
        described.add(_identity(struct))
        yield from _rows(message, struct, around, described)


def _identity(struct: Struct) -> tuple[str, str]:
    """The name and the fields of a struct, for structs that several messages have."""
    return struct.name, " ".join(f"{each.name}: {each.type}" for each in struct.fields)


def _rows(
    message: Message, struct: Struct, around: tuple[Field, ...], described: set[tuple[str, str]]
) -> Iterator[str]:
    for field in struct.fields:
        path = (*around, field)
        attribute = Attribute(message, field, ".".join(each.python_name for each in path))
        cells = [
            f"`{message.name}`",
            f"`{'.'.join(each.name for each in path)}`",
            field.type if field.tag is None else f"{field.type}, tag {field.tag}",
            str(field.versions),
            f"`{attribute.name}`",
            attribute.python,
            attribute.sql,
        ]
        yield f"| {' | '.join(text(each) for each in cells)} |"
        if field.is_struct:
            inner = message.struct(field.base)
            if _identity(inner) not in described:
                described.add(_identity(inner))
                yield from _rows(message, inner, path, described)
