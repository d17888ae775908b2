"""What a release changes in the folder of our specs: which messages it carries on, adds and drops."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafka_records_codegen.evolution.spec_sets import SpecSet
from kafka_records_codegen.loader import load_with_specs
from kafka_records_codegen.model.resolve import SpecFile
from kafka_records_codegen.spec.attributes import MessageSpec
from tools.compare_specs import WITHOUT_SPECS
from tools.follow.merging import UNWRITTEN, merged
from tools.follow.spec_form import spec_text, split_head

LEFT_OUT: Final = Path(__file__).with_name("left_out.txt")

_RECORDS: Final = {
    "kafka_group_coordinator": "consumer_offsets",
    "kafka_share_coordinator": "share_group_state",
    "kafka_transaction_coordinator": "transaction_state",
}
"""The module of a release → the folder of ours for the records of its coordinator."""

_CLIENTS: Final = "kafka_clients"
_REQUESTS: Final = ("request", "response", "header")
_STORED: Final = ("consumer_offsets", "consumer_protocol", "control", "share_group_state", "transaction_state")
"""The folders of what stands in topics, where bytes outlive the release that wrote them."""


class FollowError(Exception):
    """The release cannot be followed as it stands; the text says what somebody has to decide or write."""


@dataclass(frozen=True)
class Plan:
    """What becomes of the files below the folder of specs, by path: a new text, or None for a file that goes."""

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
    """The messages that are not carried on purpose."""
    lines = LEFT_OUT.read_text(encoding="utf-8").split("\n")
    return frozenset(line for line in lines if line and not line.startswith("#"))


def plan(specs: Path, release: SpecSet, title: str) -> Plan:
    """What has to change in the folder `specs` to hold the messages of `release`, which texts call `title`.

    Raises FollowError where bytes in topics would be given up.
    """
    ours = load_with_specs(specs).files
    theirs = {name: file for name, file in release.loaded.files.items() if not file.spec.is_retired}
    refused = [*_given_up(ours, theirs, release.absent)]
    if refused:
        raise FollowError("\n".join(refused))
    texts: dict[str, str | None] = {}
    for name, file in sorted(theirs.items()):
        mine = ours.get(name)
        if mine is None and not is_wanted(file):
            continue
        path = mine.path if mine else f"{_folder_of(file)}/{name}.json"
        text = _text(specs / path if mine else None, file.spec, mine.spec if mine else None, title)
        if text is not None:
            texts[path] = text
    gone = [mine for name, mine in ours.items() if name not in theirs and _is_followed(mine, release.absent)]
    return Plan(texts | dict.fromkeys((mine.path for mine in gone), None))


def _is_followed(mine: SpecFile, absent: tuple[str, ...]) -> bool:
    """Whether the release should have a message of ours: some have no spec, and some modules could not be had."""
    module = next((theirs for theirs, folder in _RECORDS.items() if folder == mine.folder), _CLIENTS)
    return mine.folder not in WITHOUT_SPECS and module not in absent


def is_wanted(file: SpecFile) -> bool:
    """Whether a message of a release belongs here, as far as its module and its name tell."""
    return _folder_of(file) is not None and file.spec.name not in left_out()


def _folder_of(file: SpecFile) -> str | None:
    """The folder of ours that a new message belongs to; None for modules that hold nothing for us."""
    if file.folder in _RECORDS:
        return _RECORDS[file.folder]
    if file.folder == _CLIENTS:
        return "rpc" if file.spec.type in _REQUESTS else "control"
    is_module = file.folder.startswith("kafka_")
    return None if is_module else file.folder


def _given_up(ours: Mapping[str, SpecFile], theirs: Mapping[str, SpecFile], absent: tuple[str, ...]) -> Iterator[str]:
    """What stands in topics and the release cannot read any more."""
    for name, mine in ours.items():
        if mine.folder not in _STORED or not _is_followed(mine, absent):
            continue
        kept = theirs[name].spec.versions if name in theirs else None
        if kept is None:
            yield f"{mine.path}: the release has no {name}, of which topics hold bytes: delete the spec to give them up"
        elif not set(mine.spec.versions) <= set(kept):
            yield (
                f"{mine.path}: the release has versions {kept} of {name}, and topics hold bytes of "
                f"{mine.spec.versions}: change its validVersions to {kept} to give the others up"
            )


def _text(ours: Path | None, theirs: MessageSpec, spec: MessageSpec | None, title: str) -> str | None:
    """The file of a message as the release has it; None where it is so already."""
    now = merged(theirs, spec)
    if ours is None:
        return spec_text(f"// {UNWRITTEN} what it is, in one line\n//\n// {UNWRITTEN} {title}: new\n", now)
    head, body = split_head(ours.read_text(encoding="utf-8"))
    before = json.loads(body)
    if now == before:
        return None
    return spec_text(f"{head}// {UNWRITTEN} {title}: {_in_short(before, now)}\n", now)


def _in_short(before: Mapping[str, object], now: Mapping[str, object]) -> str:
    if before["validVersions"] != now["validVersions"]:
        return f"versions {now['validVersions']}, before {before['validVersions']}"
    return "other fields"


def unwritten(specs: Path) -> list[str]:
    """The places where words of ours are missing, one line each."""
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
