"""What the notes of a folder say: `spec.notes` reads them, `note_checks` compares them with the messages."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_records_codegen.spec.versions import Versions


@dataclass(frozen=True)
class VersionNote:
    """What an error about one of these versions of a message adds, as the end of a sentence."""

    versions: Versions
    text: str


@dataclass(frozen=True)
class RetiredType:
    """A record type of a topic that no spec describes any more; `why` says in a few words why it is gone."""

    type: int
    name: str
    why: str


@dataclass(frozen=True)
class EnumValue:
    """A number with a name."""

    name: str
    value: int
    about: str


@dataclass(frozen=True)
class Enum:
    """Names for the numbers that fields of some messages take."""

    name: str
    about: str
    values: tuple[EnumValue, ...]


def one_line(text: str) -> str:
    """`text` of a spec or of notes without its line breaks."""
    return " ".join(text.split())
