"""The compact description of a message that generated packages carry.

Generated modules below `schemas` hold one `MessageSchema` per message. The schema walker, the JSON conversion and the
Spark layer need nothing else. It imports this runtime only, so it works on machines that have neither msgspec nor the
generator.

Version ranges are `(lowest, highest)` pairs, both inclusive and already clipped to the versions the message
has; `None` is the empty range.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from kafka_records_runtime.errors import SchemaFormatError
from kafka_records_runtime.framing_names import COORDINATOR, Framing
from kafka_records_runtime.uuids import ZERO_UUID

FORMAT: Final = 1
"""Raised whenever the meaning of a generated schema changes, so that an old package fails loudly."""

Range = tuple[int, int] | None


class _Marker:
    """A named constant that stays itself across pickling."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name

    def __reduce__(self) -> str:
        return self._name


NATURAL: Final = _Marker("NATURAL")
"""Marks a field whose spec gives no default, so that the default of its type applies."""

EMPTY_STRUCT: Final = _Marker("EMPTY_STRUCT")
"""The default of a struct field: a struct with every member at its own default."""

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
"""The primitive types, as specs spell them."""


def natural_default(type: str) -> object:
    """The value of a field of `type` (as a spec spells it, `[]` included) whose spec gives no default."""
    return () if type.startswith("[]") else _NATURAL_DEFAULTS.get(type, EMPTY_STRUCT)


def covers(versions: Range, version: int) -> bool:
    """Whether `version` lies inside `versions`."""
    return versions is not None and versions[0] <= version <= versions[1]


@dataclass(frozen=True)
class FieldSchema:
    """One field of a struct.

    `name` is the Python name, `json_name` the one Kafka's JSON converter uses. `type` is spelled as in the
    spec (`int32`, `string`, `Member`, `[]Member`). `flexible` lists the versions in which a string, bytes,
    records or array length is a compact one while the field is not tagged; inside a tag everything is
    compact.
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
        """The type of the field or, for an array, of its elements."""
        return self.type.removeprefix("[]")

    @cached_property
    def is_struct(self) -> bool:
        """Whether `base` names a struct."""
        return self.base not in PRIMITIVES

    @property
    def can_be_null(self) -> bool:
        """Whether a value may be None, because a version allows null or because null is the default."""
        return self.nullable is not None or self.default is None


@dataclass(frozen=True)
class StructSchema:
    """A struct or the body of a message: its fields in the order of the spec, tagged ones at their declared
    place."""

    name: str
    fields: tuple[FieldSchema, ...]


@dataclass(frozen=True)
class MessageSchema:
    """A message: `structs` holds every struct it uses and, last, the message body itself.

    `notes` are what decode errors about some versions add, as the end of a sentence: `(lowest, highest, text)`.
    """

    format: int
    name: str
    versions: Range
    flexible: Range
    structs: tuple[StructSchema, ...]
    notes: tuple[tuple[int, int, str], ...] = ()
    _by_name: dict[str, StructSchema] = field(init=False, repr=False, compare=False, default_factory=dict)
    plans: dict[tuple[str, int], object] = field(init=False, repr=False, compare=False, default_factory=dict)
    """What the walker and the JSON conversion have built for a version, kept for the next call; never
    pickled."""

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
        """The text that a decode error about `version` appends; empty if there is none."""
        return next((text for lowest, highest, text in self.notes if lowest <= version <= highest), "")

    def is_flexible(self, version: int) -> bool:
        """Whether structs of this version end in a section of tagged fields."""
        return covers(self.flexible, version)


@dataclass(frozen=True)
class RecordSchema:
    """A record type of a topic: its number, its name, and the schemas of key and value.

    `framing` says where the number is and what else comes before the messages (`kafka_records_runtime.framing`). The
    records of metadata framing have no key, and `type` is their api key.
    """

    type: int
    name: str
    key_or_none: MessageSchema | None
    value: MessageSchema
    framing: Framing = COORDINATOR

    @property
    def key(self) -> MessageSchema:
        """The schema of the key. Raises ValueError for a metadata record, which has none."""
        if self.key_or_none is None:
            raise ValueError(f"{self.name} is a metadata record, and metadata records have no keys")
        return self.key_or_none


class RetiredType(NamedTuple):
    """A record type that no schema describes any more. `why` says in a few words why it is gone."""

    name: str
    why: str
