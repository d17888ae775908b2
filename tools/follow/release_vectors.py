"""Compares the message classes of any release, including older ones, with the kept vectors.

Names in JSON are those of the newest release, so an older release gets the bytes. It must read each message that it
has, in the versions that it has, and write the same bytes. Its JSON must be the same, or `compare` must have a change
that explains the difference. A message is left out if the release had its layout in early access, and that changed
under the same version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kafka_records_codegen.evolution import change_rules as rules
from kafka_records_codegen.evolution.change_rules import Rank
from kafka_records_codegen.evolution.changes import Change
from kafka_records_codegen.evolution.comparing import compare
from kafka_records_codegen.evolution.spec_sets import SpecSet
from tools.broker import broker_jars
from tools.follow.vectors import Line, MessageClasses, in_any_order

_BEFORE_MODULES: Final = ("kafka.internals.generated",)
"""The module that had the classes of the coordinators' records earlier: the jar of the broker, without converters to
JSON."""


@dataclass
class Agreement:
    """The numbers of vectors that a release reads as `the_same` bytes and JSON, with `other_names` (or with an unknown
    tag instead of a field of the newest release), as bytes only (`without_json`), and with a layout of `early_access`.
    `differing` has the differences without such a reason."""

    the_same: int = 0
    other_names: int = 0
    without_json: int = 0
    early_access: int = 0
    differing: list[str] = field(default_factory=list)

    @property
    def told(self) -> str:
        """One line with the numbers that are not zero."""
        parts = (
            (self.the_same, "in bytes and JSON"),
            (self.other_names, "under other names"),
            (self.without_json, "in bytes alone"),
            (self.early_access, "of early access"),
        )
        return "; ".join(f"{count} {what}" for count, what in parts if count)


def agreement(lines: Iterable[Line], release: SpecSet, ours: SpecSet) -> Agreement:
    """Compare the results of the classes of `release` with lines of messages.jsonl.gz, which have messages of `ours`.

    Raises FetchError, MissingPrerequisite, CompileError or FollowError if the classes cannot be run.
    """
    assert release.release is not None
    there = {message.name: message.versions for message in release.loaded.model.messages}
    mine = [line for line in lines if line["message"] in there and line["version"] in there[line["message"]]]
    classes = MessageClasses(broker_jars(release=release.release), packages=_BEFORE_MODULES)
    answers = classes.asked([{name: line[name] for name in ("message", "version", "hex")} for line in mine])
    return compared(mine, answers, compare(release, ours).changes)


def compared(lines: Iterable[Line], answers: Iterable[Line], changes: Iterable[Change]) -> Agreement:
    """Compare the answers of a release with lines, given the changes between it and the release that wrote them."""
    of_message: dict[str, list[Change]] = {}
    for change in changes:
        of_message.setdefault(change.message, []).append(change)
    found = Agreement()
    for line, answer in zip(lines, answers, strict=True):
        _count(found, line, answer, of_message.get(line["message"], ()))
    return found


def _count(found: Agreement, line: Line, answer: Line, changes: Iterable[Change]) -> None:
    if any(change.rank is Rank.EARLY_ACCESS for change in changes):
        found.early_access += 1
    elif not answer.get("ok") or answer["left"] or answer.keys() & {"reencode_hex", "reencode_error"}:
        found.differing.append(f"{line['message']} version {line['version']} is not written as it is read")
    elif "json_error" in answer:
        found.without_json += 1
    elif _said(line) == _said(answer):
        found.the_same += 1
    elif any(_renames(change) for change in changes):
        found.other_names += 1
    else:
        found.differing.append(f"{line['message']} version {line['version']} has another JSON, and no change says why")


def _said(line: Mapping[str, object]) -> Line:
    return in_any_order({"json": line["json"], "tags": line.get("tags")})


def _renames(change: Change) -> bool:
    return change.rank is Rank.NAMES or change.rule is rules.TAG_ADDED
