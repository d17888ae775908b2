"""Where a run stops before it changes a file: bytes that exist would be given up, or a folder holds only some specs.

Nothing here is overruled by a flag: who means it makes the change in message_specs by hand, which a review sees, and
runs again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kafka_records_codegen.evolution import change_rules as rules
from kafka_records_codegen.evolution.change_rules import Rank
from kafka_records_codegen.evolution.comparing import compare
from kafka_records_codegen.evolution.spec_sets import SpecSet
from kafka_records_codegen.model.resolve import SpecFile
from tools.compare_specs import WITHOUT_SPECS

CLIENTS: Final = "kafka_clients"
RECORDS: Final = {
    "kafka_group_coordinator": "consumer_offsets",
    "kafka_share_coordinator": "share_group_state",
    "kafka_transaction_coordinator": "transaction_state",
}
"""The module of a release → the folder of ours for the records of its coordinator."""

_STORED: Final = ("consumer_offsets", "consumer_protocol", "control", "share_group_state", "transaction_state")
"""The folders of what stands in topics, where bytes outlive the release that wrote them."""

_VERSIONS: Final = (rules.RECORD_VERSION_DROPPED, rules.NEWEST_DROPPED)
"""What `_given_up` says of stored records in other words."""


class FollowError(Exception):
    """The release cannot be followed as it stands; the text says what somebody has to decide or write."""


def refusals(ours: SpecSet, release: SpecSet) -> list[str]:
    """What stands against following `release`, a line for each; empty if nothing does."""
    files = ours.loaded.files
    theirs = {name: file for name, file in release.loaded.files.items() if not file.spec.is_retired}
    lacking = [] if release.release else [*_lacking(files, theirs, release.absent)]
    if lacking:
        return [_is_partial(release.title, lacking)]
    return [*_given_up(files, theirs, release.absent), *_breaks(ours, release)]


def is_followed(mine: SpecFile, absent: tuple[str, ...]) -> bool:
    """Whether the release should have a message of ours: some have no spec, and some modules could not be had."""
    module = next((theirs for theirs, folder in RECORDS.items() if folder == mine.folder), CLIENTS)
    return mine.folder not in WITHOUT_SPECS and module not in absent


def _lacking(ours: Mapping[str, SpecFile], theirs: Mapping[str, SpecFile], absent: tuple[str, ...]) -> Iterator[str]:
    return (mine.path for name, mine in sorted(ours.items()) if name not in theirs and is_followed(mine, absent))


def _is_partial(title: str, lacking: list[str]) -> str:
    """Of a folder nobody knows whether a message is gone or was never put there; a release says it."""
    listed = "\n".join(f"  {path}" for path in lacking)
    return (
        f"{title} lacks {len(lacking)} of our messages, and the whole folder is followed:\n{listed}\n"
        f"Copy those that stay as they are to {title} (cp -rn message_specs/. {title} does it with all); delete those "
        "that are to go from message_specs"
    )


def _given_up(ours: Mapping[str, SpecFile], theirs: Mapping[str, SpecFile], absent: tuple[str, ...]) -> Iterator[str]:
    """What stands in topics and the release cannot read any more."""
    for name, mine in ours.items():
        if mine.folder not in _STORED or not is_followed(mine, absent):
            continue
        kept = theirs[name].spec.versions if name in theirs else None
        if kept is None:
            yield f"{mine.path}: the release has no {name}, of which topics hold bytes: delete the spec to give them up"
        elif not set(mine.spec.versions) <= set(kept):
            yield (
                f"{mine.path}: the release has versions {kept} of {name}, and topics hold bytes of "
                f"{mine.spec.versions}: change its validVersions to {kept} to give the others up"
            )


def _breaks(ours: SpecSet, release: SpecSet) -> Iterator[str]:
    """What `kafka-records-codegen compare` ranks as breaking bytes that exist, but for versions that are gone."""
    for change in compare(ours, release).changes:
        mine = ours.loaded.files.get(change.message)
        if change.rank is not Rank.BYTES or change.rule in _VERSIONS or mine is None or mine.folder in WITHOUT_SPECS:
            continue
        about = f"{change.message} {change.field}" if change.field else change.message
        versions = f" in versions {', '.join(map(str, change.versions))}" if change.versions else ""
        place = change.older_place or change.place
        yield (
            f"{place}: {place.path}: {about}: {change.older or 'nothing'} is {change.newer or 'nothing'} now, which "
            f"breaks bytes that exist{versions} (rule {change.rule.name}: {change.rule.sentence.rstrip('.')}): make "
            f"this change in {mine.path} by hand to give them up"
        )
