"""The changes that a release makes in the folder of our specs: messages that it changes, adds and drops."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafka_records_codegen.evolution import change_rules as rules
from kafka_records_codegen.evolution.changes import Change
from kafka_records_codegen.evolution.comparing import compare
from kafka_records_codegen.evolution.spec_sets import SpecSet, read_spec_set
from kafka_records_codegen.model.resolve import SpecFile
from kafka_records_codegen.spec.attributes import MessageSpec
from tools.follow.merging import UNWRITTEN, merged
from tools.follow.refusals import CLIENTS, DATA, RECORDS, FollowError, is_followed, names_of_ours, refusals
from tools.follow.spec_form import changed_text, spec_text, split_head
from tools.follow.wording import sides

LEFT_OUT: Final = Path(__file__).with_name("left_out.txt")

_REQUESTS: Final = ("request", "response", "header")
_UNTOLD: Final = (rules.ABOUT, rules.COMMENT, rules.FOLDER_CHANGED, rules.RANGE_SPELLED)
"""Rules about differences in which our specs stay unchanged."""
_LABELS: Final = {"validVersions": "versions", "mapKey": "mapKey", "listeners": "listeners"}
"""Attributes that must be named so that the change is understood. Of the attributes with the rule `attribute`, our
specs adopt these; the others only matter for Java."""


@dataclass(frozen=True)
class Plan:
    """The changes of files in the folder of specs, by path: a new text, or None for a file to delete."""

    texts: Mapping[str, str | None]

    def carry_out(self, specs: Path) -> None:
        for path, text in self.texts.items():
            file = specs / path
            if text is None:
                file.unlink()
            else:
                file.parent.mkdir(exist_ok=True)
                file.write_text(text, encoding="utf-8")


def left_out() -> frozenset[str]:
    """The names of the messages that are left out on purpose."""
    lines = LEFT_OUT.read_text(encoding="utf-8").split("\n")
    return frozenset(line for line in lines if line and not line.startswith("#"))


def plan(specs: Path, release: SpecSet, title: str) -> Plan:
    """The changes after which the folder `specs` has the messages of `release`, which is called `title` in texts.

    Raises FollowError if existing bytes could no longer be read, or if a folder of specs lacks some of our messages.
    """
    described = read_spec_set(str(specs), release.title)
    changes = compare(described, release).changes
    refused = refusals(described, release, changes)
    if refused:
        raise FollowError("\n".join(refused))
    ours = described.loaded.files
    theirs = {name: file for name, file in release.loaded.files.items() if not file.spec.is_retired}
    older = names_of_ours(theirs, changes)
    gone = [mine for name, mine in ours.items() if name not in older.values() and is_followed(mine, release.absent)]
    texts: dict[str, str | None] = dict.fromkeys((mine.path for mine in gone), None)
    for name, file in sorted(theirs.items()):
        mine = ours.get(older[name])
        if mine is None and not is_wanted(file):
            continue
        of_message = [change for change in changes if change.message == name]
        path = ours[name].path if name in ours else f"{mine.folder if mine else _folder_of(file)}/{name}.json"
        text = _text(specs / mine.path if mine else None, file.spec, mine.spec if mine else None, title, of_message)
        if text is not None:
            texts[path] = text
            if mine is not None and mine.path != path:
                texts[mine.path] = None
    return Plan(texts)


def is_wanted(file: SpecFile) -> bool:
    """Whether a message of a release belongs here, judged by its module and its name."""
    return _folder_of(file) is not None and file.spec.name not in left_out()


def _folder_of(file: SpecFile) -> str | None:
    """Our folder for a new message; None for modules whose messages we do not include."""
    if file.spec.type == "data" and file.folder in DATA:
        return DATA[file.folder]
    if file.folder in RECORDS:
        return RECORDS[file.folder]
    if file.folder == CLIENTS:
        return "rpc" if file.spec.type in _REQUESTS else "control"
    is_module = file.folder.startswith("kafka_")
    return None if is_module else file.folder


def _text(
    ours: Path | None, theirs: MessageSpec, spec: MessageSpec | None, title: str, changes: Iterable[Change]
) -> str | None:
    """The file of a message for the release; None if it is unchanged."""
    now = merged(theirs, spec, changes if spec else ())
    if ours is None:
        return spec_text(f"// {UNWRITTEN} what it is, in one line\n//\n// {UNWRITTEN} {title}: new\n", now)
    head, body = split_head(ours.read_text(encoding="utf-8"))
    before = json.loads(body)
    if now == before:
        return None
    told = list(_told(changes)) or ["written otherwise, and means the same"]
    lines = "".join(f"// {UNWRITTEN} {title}: {line}\n" for line in told)
    return f"{head}{lines}{changed_text(body, before, now)}"


def _told(changes: Iterable[Change]) -> Iterator[str]:
    """A line for each change, with its rank: changes of the message before those of its fields, and one line for all
    uses of a struct."""
    places = set()
    for change in sorted(changes, key=lambda change: (bool(change.field), change.place.line, change.place.column)):
        if (change.rule, change.place) in places:
            continue
        places.add((change.rule, change.place))
        said = {place.path.rpartition(".")[2] for place in (change.older_place, change.newer_place) if place}
        label = next((f"{word} " for attribute, word in _LABELS.items() if attribute in said), "")
        if change.rule not in _UNTOLD and (label or change.rule is not rules.ATTRIBUTE):
            is_name = change.rule in (rules.FIELD_RENAMED, rules.NAME_SPELLED)
            told = f"{change.field}, was {change.older}" if is_name else f"{label}{sides(change)}"
            field = f"{change.field}: " if change.field and not is_name else ""
            yield f"{field}{told} ({change.rule.name}, {change.rank.value})"


def unwritten(specs: Path) -> list[str]:
    """The places where a text of ours is missing, one per line."""
    found = []
    for path in sorted(specs.rglob("*.json")):
        field = ""
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
            if '"name": ' in line:
                field = line.split('"name": "')[1].split('"')[0]
            if line.startswith(f"// {UNWRITTEN}"):
                found.append(f"{path}:{number}: comment: {line.removeprefix(f'// {UNWRITTEN}').strip()}")
            elif line.strip().startswith(f'"about": "{UNWRITTEN}"'):
                found.append(f"{path}:{number}: about of {field}")
    return found
