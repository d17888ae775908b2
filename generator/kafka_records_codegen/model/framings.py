"""Determines the framing of a folder's records from its notes or, without these, from the types of its specs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, cast

from kafka_records_codegen.spec.attributes import MessageSpec
from kafka_records_codegen.spec.notes import NOTES, NotesSpec
from kafka_records_runtime.records.framing import COORDINATOR, METADATA, Framing

_TYPES: Final[dict[Framing, tuple[str, ...]]] = {
    COORDINATOR: ("coordinator-key", "coordinator-value"),
    METADATA: ("metadata",),
}
"""For each framing, the types of specs that describe its records."""


def framing_of(specs: Iterable[MessageSpec], notes: NotesSpec | None) -> Framing | None:
    """The framing of a folder with these specs and notes; None if it has no records."""
    if notes is not None and notes.framing is not None and notes.is_sound("framing"):
        return None if notes.framing == "none" else cast(Framing, notes.framing)
    types = {spec.type for spec in specs if not spec.is_retired}
    return next((framing for framing, own in _TYPES.items() if not types.isdisjoint(own)), None)


def check_framing(specs: Sequence[MessageSpec], notes: NotesSpec | None, *, complete: bool) -> None:
    """Report a missing framing, or one that does not match the specs of the folder. `specs` are all of its specs if
    `complete`."""
    records = {
        framing: [spec for spec in specs if spec.type in types and not spec.is_retired and spec.is_sound("type")]
        for framing, types in _TYPES.items()
    }
    framing = framing_of(specs, notes)
    if framing == METADATA:
        _check_api_keys(records[METADATA])
    if notes is None or notes.framing is None:
        _check_one(records[COORDINATOR], records[METADATA])
        return
    if not notes.is_sound("framing"):
        return
    if framing is not None and not records[framing] and complete:
        types = " and ".join(_TYPES[framing])
        notes.report("framing", f"{framing} records have specs of type {types}, but this folder has none")
    if framing != COORDINATOR and records[COORDINATOR]:
        spec = records[COORDINATOR][0]
        notes.report("framing", f"{spec.name} is a {spec.type}, so the framing is {COORDINATOR}, not {notes.framing}")


def _check_one(coordinator: Sequence[MessageSpec], metadata: Sequence[MessageSpec]) -> None:
    """Report types that contradict each other. A topic has one framing, so if the types imply two, the notes must say
    which one it is."""
    if coordinator and metadata:
        one, other = metadata[0], coordinator[0]
        one.report(
            "type",
            f"{one.name} is taken for a metadata record, but {other.name} in the same folder is a {other.type}, and "
            f"the two begin with different bytes: move one of them to another folder or, if {one.name} is not a "
            f'metadata record, write "framing": "{COORDINATOR}" into {NOTES}',
        )


def _check_api_keys(specs: Iterable[MessageSpec]) -> None:
    for spec in specs:
        if spec.api_key is not None and spec.api_key < 0 and spec.is_sound("apiKey"):
            spec.report("apiKey", f"the api key of a metadata record must be 0 or more, found {spec.api_key}")
