"""Reasons to stop before any file is changed: existing bytes could no longer be read, or a folder has only some specs.

No option overrides this: make such a change in message_specs by hand, so that it is reviewed, and run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kafka_records_codegen.evolution import change_rules as rules
from kafka_records_codegen.evolution.change_rules import Rank
from kafka_records_codegen.evolution.changes import Change
from kafka_records_codegen.evolution.spec_sets import SpecSet
from kafka_records_codegen.model.resolve import SpecFile
from kafka_records_codegen.spec.versions import Versions
from tools.compare_specs import WITHOUT_SPECS
from tools.follow.wording import versions_in_words

CLIENTS: Final = "kafka_clients"
RECORDS: Final = {
    "kafka_group_coordinator": "consumer_offsets",
    "kafka_metadata": "cluster_metadata",
    "kafka_share_coordinator": "share_group_state",
    "kafka_storage": "remote_log_metadata",
    "kafka_transaction_coordinator": "transaction_state",
}
"""By module of a release, our folder for the records of its topic."""

DATA: Final = {"kafka_storage": "log_files", "kafka_streams": "streams_protocol"}
"""By module of a release, our folder for its messages that are not records of a topic."""

_STORED: Final = (*RECORDS.values(), *DATA.values(), "consumer_protocol", "control")
"""The folders of messages that are stored in topics, where bytes outlive the release that wrote them."""

_VERSIONS: Final = (rules.RECORD_VERSION_DROPPED, rules.NEWEST_DROPPED)
"""The rule about versions, which `_given_up` covers for stored records."""


class FollowError(Exception):
    """The release cannot be followed yet. The text says what must be decided or written."""


def refusals(ours: SpecSet, release: SpecSet, changes: Iterable[Change]) -> list[str]:
    """The reasons not to follow `release`, one per line; empty if there are none. `changes` lead from our specs to the
    release."""
    files = [file for file in ours.loaded.files.values() if is_followed(file, release.absent)]
    theirs = {name: file for name, file in release.loaded.files.items() if not file.spec.is_retired}
    older = names_of_ours(theirs, changes)
    newer = {name: theirs_name for theirs_name, name in older.items()}
    gone = [] if release.release else [file for file in files if file.spec.name not in newer]
    kept = [
        (file, theirs[newer[file.spec.name]].spec.versions if file.spec.name in newer else Versions.NONE)
        for file in files
        if file not in gone
    ]
    partial = [_is_partial(ours, release.title, gone)] if gone else []
    return [*partial, *_given_up(ours, kept), *_breaks(ours, older, changes)]


def names_of_ours(theirs: Iterable[str], changes: Iterable[Change]) -> dict[str, str]:
    """Our names for messages of the release, which are mostly the same."""
    found = {name: name for name in theirs}
    for change in changes:
        if change.rule is rules.MESSAGE_RENAMED and change.message in found:
            found[change.message] = change.older
    return found


def is_followed(mine: SpecFile, absent: tuple[str, ...]) -> bool:
    """Whether the release should have one of our messages: some have no spec, and some modules were not available."""
    modules = {folder: module for folders in (RECORDS, DATA) for module, folder in folders.items()}
    module = modules.get(mine.folder, CLIENTS)
    return mine.folder not in WITHOUT_SPECS and module not in absent


def _is_partial(ours: SpecSet, title: str, lacking: Iterable[SpecFile]) -> str:
    """The reason to refuse a folder that lacks messages: they may have been removed, or never copied there. With a
    release, this is known."""
    paths = sorted(ours.files[file.path] for file in lacking)
    return (
        f"{title} lacks {len(paths)} of our messages, and the whole folder is followed:\n"
        + "".join(f"  {path}\n" for path in paths)
        + f"Copy those that stay as they are to {title} (cp -rn {ours.title}/. {title} does it with all); delete those "
        f"that are to go from {ours.title}"
    )


def _given_up(ours: SpecSet, files: Iterable[tuple[SpecFile, Versions]]) -> Iterator[str]:
    """Messages in topics that the release can no longer read. `files` come with the versions that the release has."""
    for mine, kept in files:
        name, path = mine.spec.name, ours.files[mine.path]
        if mine.folder not in _STORED or set(mine.spec.versions) <= set(kept):
            continue
        if kept.is_empty:
            yield f"{path}: the release has no {name}, of which topics hold bytes: delete the spec to give them up"
        else:
            yield (
                f"{path}: the release has {versions_in_words(kept)} of {name}, and topics hold bytes of "
                f"{mine.spec.versions}: change its validVersions to {kept} to give the others up"
            )


def _breaks(ours: SpecSet, older: Mapping[str, str], changes: Iterable[Change]) -> Iterator[str]:
    """The changes that `kafka-records-codegen compare` ranks as breaking for existing bytes, except for removed
    versions."""
    for change in changes:
        mine = ours.loaded.files.get(older.get(change.message, change.message))
        if change.rank is not Rank.BYTES or change.rule in _VERSIONS or mine is None or mine.folder in WITHOUT_SPECS:
            continue
        about = f"{change.message} {change.field}" if change.field else change.message
        versions = f" in {versions_in_words(*change.versions)}" if change.versions else ""
        place = change.older_place or change.place
        yield (
            f"{place}: {place.path}: {about}: {change.older or 'nothing'} is {change.newer or 'nothing'} now, which "
            f"breaks existing bytes{versions} (rule {change.rule.name}: "
            f"{change.rule.sentence.rstrip('.')}): make this change in {ours.files[mine.path]} by hand to give them up"
        )
