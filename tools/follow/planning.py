"""What a release changes in the folder of our specs: which messages it carries on, adds and drops."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafka_records_codegen.evolution.spec_sets import SpecSet, read_spec_set
from kafka_records_codegen.model.resolve import SpecFile
from kafka_records_codegen.spec.attributes import MessageSpec
from tools.follow.merging import UNWRITTEN, merged
from tools.follow.refusals import CLIENTS, RECORDS, FollowError, is_followed, refusals
from tools.follow.spec_form import changed_text, spec_text, split_head

LEFT_OUT: Final = Path(__file__).with_name("left_out.txt")

_REQUESTS: Final = ("request", "response", "header")


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

    Raises FollowError where bytes that exist would be given up, and for a folder that lacks messages of ours.
    """
    described = read_spec_set(str(specs), release.title)
    refused = refusals(described, release)
    if refused:
        raise FollowError("\n".join(refused))
    ours = described.loaded.files
    theirs = {name: file for name, file in release.loaded.files.items() if not file.spec.is_retired}
    texts: dict[str, str | None] = {}
    for name, file in sorted(theirs.items()):
        mine = ours.get(name)
        if mine is None and not is_wanted(file):
            continue
        path = mine.path if mine else f"{_folder_of(file)}/{name}.json"
        text = _text(specs / path if mine else None, file.spec, mine.spec if mine else None, title)
        if text is not None:
            texts[path] = text
    gone = [mine for name, mine in ours.items() if name not in theirs and is_followed(mine, release.absent)]
    return Plan(texts | dict.fromkeys((mine.path for mine in gone), None))


def is_wanted(file: SpecFile) -> bool:
    """Whether a message of a release belongs here, as far as its module and its name tell."""
    return _folder_of(file) is not None and file.spec.name not in left_out()


def _folder_of(file: SpecFile) -> str | None:
    """The folder of ours that a new message belongs to; None for modules that hold nothing for us."""
    if file.folder in RECORDS:
        return RECORDS[file.folder]
    if file.folder == CLIENTS:
        return "rpc" if file.spec.type in _REQUESTS else "control"
    is_module = file.folder.startswith("kafka_")
    return None if is_module else file.folder


def _text(ours: Path | None, theirs: MessageSpec, spec: MessageSpec | None, title: str) -> str | None:
    """The file of a message as the release has it; None where it is so already."""
    now = merged(theirs, spec)
    if ours is None:
        return spec_text(f"// {UNWRITTEN} what it is, in one line\n//\n// {UNWRITTEN} {title}: new\n", now)
    head, body = split_head(ours.read_text(encoding="utf-8"))
    before = json.loads(body)
    if now == before:
        return None
    return f"{head}// {UNWRITTEN} {title}: {_in_short(before, now)}\n{changed_text(body, before, now)}"


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
