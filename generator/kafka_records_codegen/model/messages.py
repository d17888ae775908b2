"""The resolved model, from which every product is generated.

The loader converts spec files to these values, and no later step reads the JSON again. Ranges are already limited to
the versions in which they can matter, defaults are Python values, and names are final.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from kafka_records_codegen.model.layouts import Layouts
from kafka_records_codegen.model.notes import Enum, RetiredType, VersionNote
from kafka_records_codegen.spec.attributes import NOT_STORED, MessageType
from kafka_records_codegen.spec.versions import Versions
from kafka_records_runtime.records.framing import COORDINATOR, METADATA, Framing
from kafka_records_runtime.schema import FORMAT, FieldSchema, MessageSchema, StructSchema


@dataclass(frozen=True)
class Field:
    """One member of a struct.

    `name` is Kafka's name; `python_name` and `json_name` are the names in codecs and in the JSON form. `base` is the
    primitive type or struct name, for an array that of its elements. `versions`, `nullable` and `tagged` are limited to
    the valid versions of the message and of the enclosing struct; `flexible` contains the versions in which an untagged
    length is compact. `default` is a Python value: `None` for null, `()` for the empty array,
    `kafka_records_runtime.schema.EMPTY_STRUCT` for a struct in which all members have their defaults. `spec_versions`
    is the text in the spec, for people.
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
        """The type as written in the spec."""
        return f"[]{self.base}" if self.is_array else self.base

    @property
    def can_be_null(self) -> bool:
        """Whether a value may be None, because a version allows null or null is the default."""
        return self.schema.can_be_null

    @cached_property
    def schema(self) -> FieldSchema:
        """The field's entry in generated schemas."""
        return FieldSchema(
            name=self.python_name,
            json_name=self.json_name,
            type=self.type,
            versions=self.versions.pair,
            nullable=self.nullable.pair,
            flexible=self.flexible.pair,
            tag=self.tag,
            tagged=self.tagged.pair,
            default=self.default,
            ignorable=self.ignorable,
        )


@dataclass(frozen=True)
class Struct:
    """A struct, or the body of a message. `python_name` is the class name, which is unique in the generated module."""

    name: str
    python_name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Message:
    """A message with all its structs. Each struct follows those that it uses, so the body (`root`) is last.

    `folder` is the path below the specs directory, `/`-separated and empty for the top; `source` is the file's path
    below that directory; `history` is the text of the comment at the start of the file. `notes` are remarks appended to
    errors about a version. If `newer_as_highest` is set, the version before the message may be higher than any known
    one.
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
    notes: tuple[VersionNote, ...] = ()
    newer_as_highest: bool = False

    @property
    def root(self) -> Struct:
        return self.structs[-1]

    @property
    def is_stored(self) -> bool:
        """Whether topics contain such messages. Only stored messages have Spark functions."""
        return self.type not in NOT_STORED

    def struct(self, name: str) -> Struct:
        """The struct with this name in the spec."""
        return next(struct for struct in self.structs if struct.name == name)

    @cached_property
    def schema(self) -> MessageSchema:
        """The compact schema in generated packages. The runtime needs nothing else."""
        structs = tuple(
            StructSchema(struct.name, tuple(field.schema for field in struct.fields)) for struct in self.structs
        )
        notes = tuple((note.versions.lowest, note.versions.highest, note.text) for note in self.notes)
        return MessageSchema(FORMAT, self.name, self.versions.pair, self.flexible.pair, structs, notes)

    @cached_property
    def layouts(self) -> Layouts:
        """The wire layouts of the message and its structs, version by version."""
        return Layouts(self)


@dataclass(frozen=True)
class RecordPair:
    """A record type of a topic: a coordinator key and its value, paired by `apiKey`, or a metadata record without a
    key.

    `name` has no suffix Key or Value. `python_name` is the class of such records, which is unique in its module and in
    its folder's package.
    """

    type: int
    name: str
    python_name: str
    key_or_none: Message | None
    value: Message

    @property
    def key(self) -> Message:
        """The key. Raises ValueError for a metadata record, which has no key."""
        if self.key_or_none is None:
            raise ValueError(f"{self.name} is a metadata record, and metadata records have no keys")
        return self.key_or_none

    @property
    def framing(self) -> Framing:
        """The framing of such records."""
        return METADATA if self.key_or_none is None else COORDINATOR

    @property
    def messages(self) -> tuple[Message, ...]:
        """The key, if any, and the value."""
        return (self.value,) if self.key_or_none is None else (self.key, self.value)


@dataclass(frozen=True)
class Folder:
    """The contents of one folder of specs, which become a subpackage (or the package itself if `path` is empty)."""

    path: str
    messages: tuple[Message, ...]
    records: tuple[RecordPair, ...]
    retired_types: tuple[RetiredType, ...] = ()
    enums: tuple[Enum, ...] = ()

    @property
    def framing(self) -> Framing | None:
        """The framing of the folder's records; None if it has no records."""
        return self.records[0].framing if self.records else None


@dataclass(frozen=True)
class Model:
    """Every folder with specs, sorted by path."""

    folders: tuple[Folder, ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(message for folder in self.folders for message in folder.messages)

    @cached_property
    def stored(self) -> Model:
        """The model with only stored messages, and folders with such messages. Records are always stored."""
        folders = (
            replace(folder, messages=tuple(message for message in folder.messages if message.is_stored))
            for folder in self.folders
        )
        return Model(tuple(folder for folder in folders if folder.messages))
