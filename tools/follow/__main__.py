"""Bring the specs of this repository, and what is made from them, up to a release of Kafka. See `--help`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafka_records_codegen.evolution import change_rules as rules
from kafka_records_codegen.evolution.change_rules import Rank
from kafka_records_codegen.evolution.changes import Change
from kafka_records_codegen.evolution.comparing import compare
from kafka_records_codegen.evolution.kafka_releases import FetchError, folder_name, release_order
from kafka_records_codegen.evolution.spec_sets import SpecSet, UnusableSpecs, read_spec_set
from kafka_records_codegen.loader import load_with_specs
from kafka_records_codegen.spec.versions import Versions
from kafka_records_codegen.spec.violations import SpecErrors
from kafka_records_runtime.errors import plural
from tools.broker import MissingPrerequisite
from tools.follow import enumerations, kept_lists, vectors
from tools.follow.classes import message_classes
from tools.follow.enumerations import EnumChange, Enumerations
from tools.follow.page import page
from tools.follow.planning import is_wanted, plan, unwritten
from tools.follow.refusals import FollowError
from tools.java_compiler import CompileError
from tools.kafka_enums import EnumsUnread
from tools.kafka_releases import COUNTS, DESCRIBED, SPEC_COUNTS

SPECS: Final = Path("message_specs")
VECTORS: Final = Path("tests/data/vectors")
KEPT: Final = Path("tests/data/kafka/described.json")
PAGES: Final = Path("docs/releases")
STRICTNESS: Final = Path("docs/strictness.md")

_EPILOG: Final = """\
`make follow RELEASE=4.4.0` runs both steps, `make generate` between them, and the tests it concerns after them.

  specs    changes message_specs: versions, fields, tags, new messages, messages that are gone. Words stay ours. Where
           words are missing, `?` is in the spec, and in the comment at its head once for each change, with its rule and
           rank; every such place is listed, and the exit status is 1. Write them and run it again. Fields, structs and
           messages that have another name keep their words. What nobody wants goes into tools/follow/left_out.txt.
           Nothing is changed where bytes that exist would break, by the rules of `kafka-records-codegen compare`, or
           where a folder of specs lacks messages of ours: each is listed with what to do, and the exit status is 1.
  vectors  lets the message classes of the release write messages of new versions and read all others, brings
           tests/data up to it, and writes its page in docs/releases. Error codes, states and releases that ours lack
           are listed, and the exit status is 1.

A folder of specs in place of a release is judged by classes that Kafka's generator makes of it.

examples:
  python -m tools.follow specs 4.4.0                       what a release changes in message_specs
  python -m tools.follow specs ../newer_specs              the same of a folder that holds all messages
  python -m tools.follow vectors 4.4.0                     its vectors and its page, after `make generate`
  python -m tools.follow vectors 4.4.0 --since 4.2.1       a page about all that came after 4.2.1
  python -m tools.follow vectors ../newer_specs --since 4.4.0

exit status: 0 done, 1 words are missing or somebody has to decide, 2 specs or jars that are not to be had
"""


@dataclass(frozen=True)
class Followed:
    """A release, the previous one, and the changes between them in messages that we have."""

    release: SpecSet
    since: SpecSet
    changes: tuple[Change, ...]
    passed_over: tuple[str, ...]

    @property
    def title(self) -> str:
        return self.release.release or Path(self.release.title).name


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one step; returns the exit status."""
    asked = _arguments(arguments)
    try:
        if asked.step == "specs":
            return _specs(read_spec_set(asked.release, str(SPECS), tell=_tell))
        return _vectors(_followed(asked.release, asked.since or _before(asked.release)))
    except (UnusableSpecs, SpecErrors, FetchError, MissingPrerequisite, CompileError, EnumsUnread) as error:
        _tell(str(error))
        return 2
    except FollowError as error:
        _tell(str(error))
        return 1


def _specs(release: SpecSet) -> int:
    number = release.release
    title = ".".join(number.split(".")[:2]) if number else Path(release.title).name
    changed = plan(SPECS, release, title)
    changed.carry_out(SPECS)
    for path, text in sorted(changed.texts.items()):
        print(f"{SPECS / path}: {'gone' if text is None else 'changed'}")
    places = unwritten(SPECS)
    for place in places:
        print(place)
    if places:
        verb = "lacks" if len(places) == 1 else "lack"
        _tell(f"{plural(len(places), 'place')} {verb} words of ours: write them where `?` is, and run this again")
        return 1
    print(f"{SPECS} holds what {release.title} has")
    return 0


def _before(word: str) -> str:
    """The release with which another one is compared: the previous one that was followed; for a folder, the newest."""
    if Path(word).exists():
        return DESCRIBED
    older = [known for known in SPEC_COUNTS if release_order(known) < release_order(word)]
    return max(older, key=release_order, default=DESCRIBED)


def _followed(word: str, since_word: str) -> Followed:
    release = read_spec_set(word, str(SPECS), tell=_tell)
    since = read_spec_set(since_word, str(SPECS), tell=_tell)
    ours = load_with_specs(SPECS).files
    told = [
        change
        for change in compare(since, release).changes
        if change.rank is not Rank.WORDS and change.rule is not rules.FOLDER_CHANGED
    ]
    gone = {name for name, file in since.loaded.files.items() if name not in release.loaded.files and is_wanted(file)}
    new = [change.message for change in told if change.rule in (rules.MESSAGE_ADDED, rules.RECORD_ADDED)]
    return Followed(
        release,
        since,
        tuple(change for change in told if change.message in ours or change.message in gone),
        tuple(name for name in new if name not in ours),
    )


def _vectors(followed: Followed) -> int:
    title = followed.title
    touched = {
        change.message: frozenset(
            version
            for other in followed.changes
            if other.message == change.message and other.rank is Rank.ADDS
            for each in other.versions
            for version in each
        )
        for change in followed.changes
    }
    for name, versions in vectors.unwritten(VECTORS, title, _judged(followed.release)).items():
        touched[name] = touched.get(name, frozenset()) | versions
    newer_names = {change.older: change.message for change in followed.changes if change.rule is rules.MESSAGE_RENAMED}
    with message_classes(followed.release, _tell) as classes:
        odd = vectors.revise(VECTORS, classes, touched, title, newer_names)
    kept_lists.revise(KEPT, SPECS, followed.changes)
    if followed.release.release is not None:
        _count(followed.release)
    differences = vectors.differences(VECTORS, title)
    theirs, enums = _enumerations(followed)
    PAGES.mkdir(parents=True, exist_ok=True)
    messages = {message.name: message for message in followed.release.loaded.model.messages}
    text = page(
        title,
        followed.since.title,
        followed.changes,
        followed.passed_over,
        differences,
        enums,
        messages,
        is_explained=title in STRICTNESS.read_text(encoding="utf-8"),
    )
    (PAGES / f"{title}.md").write_text(text, encoding="utf-8")
    print(text)
    for line in odd:
        print(f"read otherwise than before: {line}")
    if odd:
        raise FollowError(f"read otherwise by {title}, and no change of specs says why: {plural(len(odd), 'message')}")
    left = [] if theirs is None else [*enumerations.by_hand(title, theirs)]
    if left:
        raise FollowError(
            "\n".join([*left, f"kept by hand: {plural(len(left), 'thing')}; write what is missing, and run this again"])
        )
    return 0


def _judged(release: SpecSet) -> dict[str, Versions]:
    """The messages of ours that the release has, with their versions."""
    theirs = {file.spec.name for file in release.loaded.files.values()}
    return {name: file.spec.versions for name, file in load_with_specs(SPECS).files.items() if name in theirs}


def _enumerations(followed: Followed) -> tuple[Enumerations | None, list[EnumChange] | None]:
    """Kafka's error codes and states in the release, and their changes; None for a folder of specs."""
    if followed.release.release is None:
        return None, None
    theirs = enumerations.enumerations(followed.release.release)
    if followed.since.release is None:
        return theirs, None
    return theirs, enumerations.changes(enumerations.enumerations(followed.since.release), theirs)


def _count(release: SpecSet) -> None:
    """Add a release to the file of releases, the oldest first."""
    assert release.release is not None
    folders = [file.folder for file in release.loaded.files.values()]
    modules = {name: folders.count(folder_name(name)) for counts in SPEC_COUNTS.values() for name in counts}
    counts = {**SPEC_COUNTS, release.release: {name: count for name, count in modules.items() if count}}
    ordered = {known: SPEC_COUNTS.get(known, counts[known]) for known in sorted(counts, key=release_order)}
    COUNTS.write_text(json.dumps(ordered, indent=2) + "\n", encoding="utf-8")


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.follow",
        description="Bring the specs of this repository, and what is made from them, up to a release of Kafka.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("step", choices=("specs", "vectors"), help="part of the work; see below")
    parser.add_argument("release", help="such as 4.4.0, fetched by Maven; or a folder of specs")
    parser.add_argument("--since", help="the release or folder that it is compared with (default: the one before it)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
