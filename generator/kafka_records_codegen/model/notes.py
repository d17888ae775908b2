"""The content of a folder's notes. `spec.notes` reads them, and `note_checks` compares them with the messages."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_records_codegen.spec.versions import Versions


@dataclass(frozen=True)
class VersionNote:
    """A remark appended to errors about these versions of a message."""

    versions: Versions
    text: str


@dataclass(frozen=True)
class RetiredType:
    """A record type of a topic that no spec describes any more. `why` gives the reason in a few words."""

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
    """Names for the numbers in fields of some messages."""

    name: str
    about: str
    values: tuple[EnumValue, ...]


def one_line(text: str) -> str:
    """A text from a spec or notes without line breaks."""
    return " ".join(text.split())
