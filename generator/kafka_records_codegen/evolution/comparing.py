"""Compares two states of specs: pairs their messages, and lists the changes in each pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from kafka_records_codegen.evolution import change_rules as rules
from kafka_records_codegen.evolution import downstream
from kafka_records_codegen.evolution.change_rules import Rank
from kafka_records_codegen.evolution.changes import Change, Downstream, SpecComparison
from kafka_records_codegen.evolution.early_access import early_access
from kafka_records_codegen.evolution.message_changes import MessageChanges, prefix
from kafka_records_codegen.evolution.sides import Side
from kafka_records_codegen.evolution.spec_sets import SpecSet
from kafka_records_codegen.model.resolve import SpecFile
from kafka_records_codegen.spec.versions import Versions

_NUMBERED: Final = ("request", "response", "metadata")
"""Types whose apiKey is unique across all folders. (For coordinator types, it is unique within a folder.)"""


def compare(older: SpecSet, newer: SpecSet) -> SpecComparison:
    """All changes from `older` to `newer`, the worst first, then by message and place."""
    absent = {*older.absent, *newer.absent}
    olds, news = _sides(older, absent), _sides(newer, absent)
    order = {rank: index for index, rank in enumerate(Rank)}
    changes = sorted(
        _changes(olds, news),
        key=lambda each: (order[each.rank], each.message, each.place.line, each.place.column, each.rule.name),
    )
    return SpecComparison(older.title, newer.title, len(olds), len(news), tuple(changes), tuple(sorted(absent)))


def _sides(specs: SpecSet, absent: Iterable[str]) -> dict[str, Side]:
    """The messages by name, except those in folders that one of the two states lacks."""
    messages = {message.name: message for message in specs.loaded.model.messages}
    return {
        name: Side(specs, file, messages.get(name))
        for name, file in sorted(specs.loaded.files.items())
        if file.folder not in absent
    }


def _changes(olds: Mapping[str, Side], news: Mapping[str, Side]) -> Iterator[Change]:
    pairs = {name: name for name in olds if name in news}
    pairs |= _renamed(olds, news, pairs)
    split = _split_keys(olds, news, pairs)
    for old_name, new_name in pairs.items():
        elsewhere = [prefix(new, 0) for old, new in split if old.name == old_name]
        yield from MessageChanges(olds[old_name], news[new_name], elsewhere).all()
    for old, new in split:
        yield from _split_key(old, new)
    for name, side in news.items():
        if name not in pairs.values() and all(new is not side for _, new in split):
            yield _appeared(side)
    for name, side in olds.items():
        if name not in pairs and not side.spec.is_retired:
            yield _disappeared(side)


# ---- pairs


def _renamed(olds: Mapping[str, Side], news: Mapping[str, Side], pairs: Mapping[str, str]) -> dict[str, str]:
    """Messages with a new name but the same type and number."""
    folders = _folders(olds, news, pairs)
    waiting = {_identity(side, side.file.folder): name for name, side in news.items() if name not in pairs.values()}
    found = {}
    for name, side in olds.items():
        if name not in pairs and side.spec.api_key is not None:
            new = waiting.pop(_identity(side, folders.get(side.file.folder, side.file.folder)), None)
            if new is not None:
                found[name] = new
    return found


def _identity(side: Side, folder: str) -> tuple[str, int | None, str]:
    return side.spec.type, side.spec.api_key, "" if side.spec.type in _NUMBERED else folder


def _folders(olds: Mapping[str, Side], news: Mapping[str, Side], pairs: Mapping[str, str]) -> dict[str, str]:
    """For each folder of the older state, the newer folder that now contains most of its messages."""
    counted = Counter((olds[old].file.folder, news[new].file.folder) for old, new in pairs.items())
    return {old: new for (old, new), _ in reversed(counted.most_common())}


def _split_keys(
    olds: Mapping[str, Side], news: Mapping[str, Side], pairs: Mapping[str, str]
) -> list[tuple[Side, Side]]:
    """Keys that used to be versions of a key with another name. In 4.0, OffsetCommitKey covers the types 0 and 1.

    Since 4.1, version 0 has a separate spec, LegacyOffsetCommitKey.
    """
    found = []
    for old_name, new_name in pairs.items():
        old, new = olds[old_name], news[new_name]
        if (old.spec.type, new.spec.type) != ("data", "coordinator-key"):
            continue
        for name, side in news.items():
            is_sibling = side.spec.type == "coordinator-key" and side.file.folder == new.file.folder
            if is_sibling and name not in pairs.values() and prefix(side, 0) in old.spec.versions:
                found.append((old, side))
    return found


def _split_key(old: Side, new: Side) -> Iterator[Change]:
    for change in MessageChanges(old, new).all():
        if change.rule not in (rules.VERSIONS_DROPPED, rules.NEWEST_DROPPED, rules.COMMENT, rules.MESSAGE_RENAMED):
            yield change


# ---- messages that one side lacks


def _appeared(side: Side) -> Change:
    rule = rules.RECORD_ADDED if side.spec.type.startswith("coordinator") else rules.MESSAGE_ADDED
    new = downstream.of_message(f"the class {side.name} is new", f"{side.name} is new")
    return _alone(rule, side, "", _described(side.file), new)


def _disappeared(side: Side) -> Change:
    is_record = side.spec.type.startswith("coordinator")
    rule = rules.RECORD_REMOVED if is_record else rules.MESSAGE_REMOVED
    gone = downstream.of_message(f"the class {side.name} is gone", f"{side.name} cannot be decoded")
    change = _alone(rule, side, _described(side.file), "", gone)
    return replace(change, early_access=early_access(side, side.spec.versions))


def _alone(rule: rules.Rule, side: Side, older: str, newer: str, products: Downstream) -> Change:
    place = side.place(None, "name")
    older_place, newer_place = (None, place) if newer else (place, None)
    versions: tuple[Versions, ...] = (side.spec.versions,) if side.spec.versions else ()
    return Change(rule, rule.rank, side.name, "", versions, older, newer, older_place, newer_place, products)


def _described(file: SpecFile) -> str:
    spec = file.spec
    number = "" if spec.api_key is None else f" {spec.api_key}"
    return f"{spec.type}{number}, versions {spec.versions}"
