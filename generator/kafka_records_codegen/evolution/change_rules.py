"""The rules for comparing two states of specs. Each has a name, a rank, a source and a sentence.

`RULES` is the whole list, which docs/evolution.md shows. The text of each change names the message or field that it is
about.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Rank(Enum):
    """How bad a change is, the worst rank first. The value is the name in the command and in its JSON."""

    BYTES = "bytes"
    READERS = "readers"
    EARLY_ACCESS = "early-access"
    VERSIONS = "versions"
    NAMES = "names"
    ADDS = "adds"
    WORDS = "words"

    @property
    def title(self) -> str:
        return _TITLES[self]

    def is_at_least(self, other: Rank) -> bool:
        """Whether this rank is at least as bad as `other`."""
        order = list(Rank)
        return order.index(self) <= order.index(other)


_TITLES: Final = {
    Rank.BYTES: "breaks existing bytes",
    Rank.READERS: "breaks readers of the older state",
    Rank.EARLY_ACCESS: "changes a layout that was early access",
    Rank.VERSIONS: "drops versions",
    Rank.NAMES: "changes names, types or defaults of attributes and columns, and no byte",
    Rank.ADDS: "adds",
    Rank.WORDS: "only words",
}


@dataclass(frozen=True)
class Rule:
    """A rule. `source` names its origin: a class of Kafka, or this project."""

    name: str
    rank: Rank
    source: str
    sentence: str


_VERIFIER: Final = "Kafka's EvolutionVerifier"
_UNIFIER: Final = "Kafka's Unifier, which EvolutionVerifier calls"
_ORDER: Final = "Kafka's FieldSpecPairIterator, which EvolutionVerifier calls"
_SERDE: Final = "Kafka's CoordinatorRecordSerde and CoordinatorLoaderImpl"
_WIRE: Final = "Kafka's protocol: the bytes of a field"
_TAGS: Final = "KIP-482: tagged fields"
_CLASSES: Final = "Kafka's MessageDataGenerator: what generated classes do"
_NEGOTIATED: Final = "Kafka's ApiVersions: both sides agree on a version that both have"
_PRODUCTS: Final = "the generator's own products"

MESSAGE_TYPE: Final = Rule("message-type", Rank.BYTES, _VERIFIER, "A message has a different type.")
API_KEY: Final = Rule(
    "api-key",
    Rank.BYTES,
    _VERIFIER,
    "The number that identifies a message, in the header of a request or at the start of a record, has changed.",
)
FLEXIBLE: Final = Rule(
    "flexible",
    Rank.BYTES,
    _VERIFIER,
    "A version in both states is flexible in only one of them: lengths and the end of every struct differ.",
)
FIELD_TYPE: Final = Rule(
    "field-type", Rank.BYTES, _UNIFIER, "The type of a field differs in a version that both states have."
)
FIELD_INSERTED: Final = Rule(
    "field-inserted",
    Rank.BYTES,
    _ORDER,
    "A version in both states gains an untagged field, which existing bytes lack.",
)
FIELD_REMOVED: Final = Rule(
    "field-removed",
    Rank.BYTES,
    _ORDER,
    "A version in both states loses an untagged field, which existing bytes contain.",
)
FIELD_MOVED: Final = Rule("field-moved", Rank.BYTES, _WIRE, "A field has moved, and readers find fields by position.")
FIELD_TAGGED: Final = Rule(
    "field-tagged", Rank.BYTES, _WIRE, "A field is tagged in one state and has a fixed position in the other."
)
TAG_NUMBER: Final = Rule("tag-number", Rank.BYTES, _TAGS, "A tagged field has a different tag.")
TAG_REUSED: Final = Rule("tag-reused", Rank.BYTES, _TAGS, "A tag that was in use now belongs to a different field.")
TAG_REMOVED: Final = Rule(
    "tag-removed", Rank.BYTES, _TAGS, "A tagged field is removed: readers skip it in existing bytes."
)
TAG_DEFAULT: Final = Rule(
    "tag-default",
    Rank.BYTES,
    _UNIFIER,
    "The default of a tagged field differs. Bytes omit a field that has its default, so existing bytes now mean a "
    "different value.",
)
NULL_REFUSED: Final = Rule("null-refused", Rank.BYTES, _UNIFIER, "A version in both states no longer allows null.")
NULL_MARKER: Final = Rule(
    "null-marker",
    Rank.BYTES,
    _WIRE,
    "A struct may be null in one state only: then an extra byte precedes it in every message.",
)
RECORD_VERSION_DROPPED: Final = Rule(
    "record-version-dropped",
    Rank.BYTES,
    _SERDE,
    "The value of a coordinator's record loses a version: a broker that finds such a value stops loading the "
    "partition.",
)
NEWEST_DROPPED: Final = Rule(
    "newest-version-dropped", Rank.BYTES, _VERIFIER, "A stored message loses its newest versions."
)
NULL_ALLOWED: Final = Rule(
    "null-allowed",
    Rank.READERS,
    _UNIFIER,
    "A version in both states now allows null, which readers of the older state reject.",
)
VERSION_UNSTABLE: Final = Rule(
    "version-unstable",
    Rank.READERS,
    _NEGOTIATED,
    "The newest version of a request is no longer stable, so brokers no longer offer it.",
)
VERSIONS_DROPPED: Final = Rule(
    "versions-dropped",
    Rank.VERSIONS,
    _VERIFIER,
    "Versions are removed. The oldest versions may be removed once they are unused.",
)
MESSAGE_REMOVED: Final = Rule("message-removed", Rank.VERSIONS, _WIRE, "A message is removed, with all its versions.")
RECORD_REMOVED: Final = Rule(
    "record-removed",
    Rank.VERSIONS,
    _SERDE,
    "The key or value of a coordinator's record type is removed: brokers skip such records with a warning.",
)
MESSAGE_RETIRED: Final = Rule(
    "message-retired",
    Rank.VERSIONS,
    _CLASSES,
    "A message has no versions left (`validVersions` none), so no class is generated.",
)
MESSAGE_RENAMED: Final = Rule(
    "message-renamed",
    Rank.NAMES,
    _WIRE,
    "A message of the same type and number has a different name; bytes contain no names.",
)
FIELD_RENAMED: Final = Rule(
    "field-renamed",
    Rank.NAMES,
    _WIRE,
    "A field in the same place, or with the same tag, has a different name. If its meaning differs too, bytes break.",
)
STRUCT_RENAMED: Final = Rule(
    "struct-renamed", Rank.NAMES, _UNIFIER, "A struct has a different name, but the same bytes."
)
DEFAULT_CHANGED: Final = Rule(
    "default-changed",
    Rank.NAMES,
    _UNIFIER,
    "The default of a field differs. Messages that do not set the field, and versions that lack it, now have the new "
    "default.",
)
IGNORABLE_CHANGED: Final = Rule(
    "ignorable-changed",
    Rank.NAMES,
    _CLASSES,
    "Encoding a version that lacks the field now drops its value, or now rejects it.",
)
TYPE_ELSEWHERE: Final = Rule(
    "type-in-other-versions",
    Rank.NAMES,
    _PRODUCTS,
    "The type of a field differs, but in no version that both states have. In Python it is one attribute.",
)
FIELD_GONE: Final = Rule(
    "field-gone",
    Rank.NAMES,
    _PRODUCTS,
    "A field and its attribute are removed; no version in both states had the field.",
)
FOLDER_CHANGED: Final = Rule(
    "folder-changed",
    Rank.NAMES,
    _PRODUCTS,
    "A spec is in a different folder, so its classes are in a different package.",
)
MESSAGE_ADDED: Final = Rule("message-added", Rank.ADDS, _NEGOTIATED, "A message is new.")
RECORD_ADDED: Final = Rule(
    "record-added",
    Rank.ADDS,
    _SERDE,
    "A record type of a coordinator is new: a broker of the older state skips such records with a warning.",
)
VERSIONS_ADDED: Final = Rule("versions-added", Rank.ADDS, _NEGOTIATED, "A message has new versions.")
RECORD_VERSION_ADDED: Final = Rule(
    "record-version-added",
    Rank.ADDS,
    _SERDE,
    "The value of a coordinator's record has a new version: a broker of the older state that finds such a value stops "
    "loading the partition. Write it only when all brokers know it.",
)
OLDER_ADDED: Final = Rule(
    "older-versions-added",
    Rank.ADDS,
    _NEGOTIATED,
    "Versions below the lowest are added again.",
)
FIELD_ADDED: Final = Rule("field-added", Rank.ADDS, _UNIFIER, "New versions have a field that no older version has.")
FIELD_LEFT_OUT: Final = Rule(
    "field-left-out", Rank.ADDS, _UNIFIER, "New versions lack a field that the newest version of the older state has."
)
TAG_ADDED: Final = Rule(
    "tag-added",
    Rank.ADDS,
    _TAGS,
    "A version in both states gains a tagged field, which readers of the older state skip. EvolutionVerifier refuses "
    "this, although the comment in its class FieldDomain allows it.",
)
NULL_ELSEWHERE: Final = Rule(
    "null-in-new-versions",
    Rank.ADDS,
    _PRODUCTS,
    "Whether new versions allow null has changed; the attribute is the same.",
)
VERSION_STABLE: Final = Rule(
    "version-stable", Rank.ADDS, _NEGOTIATED, "The newest version of a request is now stable: brokers offer it."
)
SPEC_FORM: Final = Rule(
    "spec-form",
    Rank.WORDS,
    _SERDE,
    "A record that was described as data is now described as coordinator-key or coordinator-value; the bytes are the "
    "same.",
)
RANGE_SPELLED: Final = Rule(
    "range-spelled",
    Rank.WORDS,
    _VERIFIER,
    "A range of versions differs only in versions that the message does not have.",
)
NAME_SPELLED: Final = Rule(
    "name-spelled", Rank.WORDS, _PRODUCTS, "A name is spelled differently, but gives the same attribute and JSON key."
)
ABOUT: Final = Rule("about", Rank.WORDS, _CLASSES, "The description of a field is different.")
COMMENT: Final = Rule("comment", Rank.WORDS, _PRODUCTS, "The comment at the start of a spec is different.")
ATTRIBUTE: Final = Rule(
    "attribute",
    Rank.WORDS,
    _CLASSES,
    "`mapKey`, `entityType`, `zeroCopy` or `listeners` differ. They change what Java classes do with a message, but no "
    "bytes.",
)

RULES: Final = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
"""All rules in the order in which this module declares them, the worst first."""
