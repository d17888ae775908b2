"""The compact description of a message that generated packages contain.

Generated modules below `schemas` contain one `MessageSchema` per message. The schema walker, the JSON conversion and
the Spark layer need nothing else. The description imports only this runtime, so it works on machines without msgspec
and the generator.

Version ranges are `(lowest, highest)` pairs, both inclusive and limited to the versions that the message has; `None` is
the empty range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from kafka_records_runtime.errors import SchemaFormatError
from kafka_records_runtime.kafka.framing_names import COORDINATOR, Framing
from kafka_records_runtime.kafka.uuids import ZERO_UUID

FORMAT: Final = 1
"""The number of the schema format. It increases whenever the meaning of a generated schema changes, so that an outdated
package causes an error instead of being misread."""

Range = tuple[int, int] | None


class _Marker:
    """A named constant that remains the same object after pickling."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name

    def __reduce__(self) -> str:
        return self._name


NATURAL: Final = _Marker("NATURAL")
"""Marks a field without a default in the spec, for which the default of its type applies."""

EMPTY_STRUCT: Final = _Marker("EMPTY_STRUCT")
"""The default of a struct field: a struct in which every member has its own default."""

_NATURAL_DEFAULTS: Final[dict[str, object]] = {
    "bool": False,
    "int8": 0,
    "int16": 0,
    "uint16": 0,
    "int32": 0,
    "uint32": 0,
    "int64": 0,
    "float64": 0.0,
    "uuid": ZERO_UUID,
    "string": "",
    "bytes": b"",
    "records": None,
}

PRIMITIVES: Final = _NATURAL_DEFAULTS.keys()
"""The primitive types, as named in specs."""

FIXED_SIZES: Final[Mapping[str, int]] = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}
"""The size in bytes of the types with a fixed size."""


def natural_default(type: str) -> object:
    """The default of a field of `type` (as in a spec, including `[]`) if the spec does not set one."""
    return () if type.startswith("[]") else _NATURAL_DEFAULTS.get(type, EMPTY_STRUCT)


def covers(versions: Range, version: int) -> bool:
    """Whether the range `versions` contains `version`."""
    return versions is not None and versions[0] <= version <= versions[1]


@dataclass(frozen=True)
class FieldSchema:
    """One field of a struct.

    `name` is the Python name; `json_name` is the name in Kafka's JSON converter. `type` is written as in the spec
    (`int32`, `string`, `Member`, `[]Member`). `flexible` is the range of versions in which the length of an untagged
    string, bytes, records or array field is compact. Inside a tag, everything is compact.
    """

    name: str
    json_name: str
    type: str
    versions: Range
    nullable: Range = None
    flexible: Range = None
    tag: int | None = None
    tagged: Range = None
    default: object = NATURAL
    ignorable: bool = False

    def __post_init__(self) -> None:
        if self.default is NATURAL:
            object.__setattr__(self, "default", natural_default(self.type))

    @cached_property
    def is_array(self) -> bool:
        return self.type.startswith("[]")

    @cached_property
    def base(self) -> str:
        """The type of the field; for an array, the type of its elements."""
        return self.type.removeprefix("[]")

    @cached_property
    def is_struct(self) -> bool:
        """Whether `base` is the name of a struct."""
        return self.base not in PRIMITIVES

    @property
    def can_be_null(self) -> bool:
        """Whether a value may be None, because a version allows null or null is the default."""
        return self.nullable is not None or self.default is None


@dataclass(frozen=True)
class StructSchema:
    """A struct or the body of a message: its fields in spec order, with tagged ones at their declared position."""

    name: str
    fields: tuple[FieldSchema, ...]


@dataclass(frozen=True)
class MessageSchema:
    """A message: `structs` contains every struct that it uses and, last, the message body itself.

    `notes` are remarks that are appended to decode errors about some versions: `(lowest, highest, text)`.
    """

    format: int
    name: str
    versions: Range
    flexible: Range
    structs: tuple[StructSchema, ...]
    notes: tuple[tuple[int, int, str], ...] = ()
    _by_name: dict[str, StructSchema] = field(init=False, repr=False, compare=False, default_factory=dict)
    plans: dict[tuple[str, int], object] = field(init=False, repr=False, compare=False, default_factory=dict)
    """The objects that the walker and the JSON conversion have built for each version, cached for later calls. They are
    not pickled."""

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise SchemaFormatError(self.name, self.format, FORMAT)
        self._by_name.update((struct.name, struct) for struct in self.structs)

    def __reduce__(self) -> tuple[type[MessageSchema], tuple[object, ...]]:
        return MessageSchema, (self.format, self.name, self.versions, self.flexible, self.structs, self.notes)

    @property
    def root(self) -> StructSchema:
        return self.structs[-1]

    def struct(self, name: str) -> StructSchema:
        return self._by_name[name]

    def note(self, version: int) -> str:
        """The text to append to a decode error about `version`; empty if there is none."""
        return next((text for lowest, highest, text in self.notes if lowest <= version <= highest), "")

    def is_flexible(self, version: int) -> bool:
        """Whether structs of this version end with a section of tagged fields."""
        return covers(self.flexible, version)


@dataclass(frozen=True)
class RecordSchema:
    """A record type of a topic: its number, its name, and the schemas of key and value.

    `framing` determines where the number is and which other bytes precede the messages
    (`kafka_records_runtime.records.framing`). The records of metadata framing have no key, and `type` is their api key.
    """

    type: int
    name: str
    key_or_none: MessageSchema | None
    value: MessageSchema
    framing: Framing = COORDINATOR

    @property
    def key(self) -> MessageSchema:
        """The schema of the key. Raises ValueError for a metadata record, which has no key."""
        if self.key_or_none is None:
            raise ValueError(f"{self.name} is a metadata record, and metadata records have no keys")
        return self.key_or_none


class RetiredType(NamedTuple):
    """A record type that no schema describes any more. `why` gives the reason in a few words."""

    name: str
    why: str
