"""The resolved model: what every back end reads.

The loader turns spec files into these values and nothing behind it looks at JSON again. Ranges are already clipped to
the versions in which they can matter, defaults are Python values, names are decided.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_records_codegen.spec.attributes import MessageType
from kafka_records_codegen.spec.versions import Versions


@dataclass(frozen=True)
class Field:
    """One member of a struct.

    `name` is Kafka's spelling, `python_name` and `json_name` what users of the codecs and of the JSON form see.
    `base` is the primitive type or struct name, of the elements when `is_array`. `versions`, `nullable` and `tagged`
    are clipped to the message's valid versions and to the enclosing struct's; `flexible` holds the versions in which
    an untagged length is compact. `default` is a Python value: `None` for null, `()` for the empty array,
    `kafka_records_runtime.schema.EMPTY_STRUCT` for a struct with all members at their defaults.
    `spec_versions` is the text of the spec, for people.
    """

    name: str
    python_name: str
    json_name: str
    base: str
    is_array: bool
    is_struct: bool
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int | None
    flexible: Versions
    default: object
    ignorable: bool
    map_key: bool
    entity_type: str | None
    about: str
    spec_versions: str

    @property
    def type(self) -> str:
        """The type as the spec spells it."""
        return f"[]{self.base}" if self.is_array else self.base


@dataclass(frozen=True)
class Struct:
    """A struct, or the body of a message. `python_name` is the class name, unique inside the generated module."""

    name: str
    python_name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Message:
    """A message with all its structs, leaves first and the body (`root`) last.

    `folder` is the path below the specs directory, `/`-separated and empty for its top; `source` the file's path
    below that directory; `history` the text of the comment that leads the file.
    """

    name: str
    type: MessageType
    api_key: int | None
    versions: Versions
    flexible: Versions
    structs: tuple[Struct, ...]
    folder: str
    source: str
    history: str
    latest_version_unstable: bool = False

    @property
    def root(self) -> Struct:
        return self.structs[-1]

    def struct(self, name: str) -> Struct:
        """The struct that the spec calls `name`."""
        return next(struct for struct in self.structs if struct.name == name)


@dataclass(frozen=True)
class Record:
    """A record type of a topic: a coordinator key and its value, paired by `apiKey`. `name` lacks Key and Value."""

    type: int
    name: str
    key: Message
    value: Message


@dataclass(frozen=True)
class Folder:
    """All that one folder of specs becomes: one subpackage (the package itself when `path` is empty)."""

    path: str
    messages: tuple[Message, ...]
    records: tuple[Record, ...]


@dataclass(frozen=True)
class Model:
    """Every folder with specs, sorted by path."""

    folders: tuple[Folder, ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(message for folder in self.folders for message in folder.messages)
