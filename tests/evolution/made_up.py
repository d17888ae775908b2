"""Synthetic changes of specs, each with the changes that a comparison must list.

Most are about a metadata record, because Kafka's EvolutionVerifier checks these. tests/data/evolution/verdicts.json has
its verdicts, written by tools/evolution_verdicts.py.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

Json = dict[str, Any]


def account() -> Json:
    """A metadata record with fields of every kind."""
    return {
        "type": "metadata",
        "apiKey": 7,
        "name": "AccountRecord",
        "validVersions": "0-1",
        "flexibleVersions": "1+",
        "fields": [
            {"name": "Id", "type": "uuid", "versions": "0+", "about": "Whose account it is."},
            {"name": "Balance", "type": "int32", "versions": "0+"},
            {"name": "Floor", "type": "int32", "versions": "0+", "default": "-1"},
            {"name": "Note", "type": "string", "versions": "0+", "nullableVersions": "0+"},
            {"name": "Owner", "type": "string", "versions": "0+"},
            {
                "name": "Limits",
                "type": "[]Limit",
                "versions": "0+",
                "fields": [
                    {"name": "Currency", "type": "string", "versions": "0+"},
                    {"name": "Cents", "type": "int64", "versions": "0+"},
                ],
            },
            {"name": "Closed", "type": "Closing", "versions": "1+", "nullableVersions": "1+", "fields": [
                {"name": "By", "type": "string", "versions": "1+"},
                {"name": "At", "type": "int64", "versions": "1+"},
            ]},
            {"name": "Colour", "type": "string", "versions": "1+", "tag": 0, "taggedVersions": "1+", "default": "blue"},
            {"name": "Weight", "type": "int32", "versions": "1+", "tag": 1, "taggedVersions": "1+"},
        ],
    }  # fmt: skip


def ledger() -> Json:
    """A metadata record whose fields are in all versions."""
    fields = [{"name": "Id", "type": "uuid", "versions": "0+"}, {"name": "Sum", "type": "int64", "versions": "0+"}]
    return account() | {"name": "LedgerRecord", "flexibleVersions": "none", "fields": fields}


@dataclass(frozen=True)
class Case:
    """`edit` makes the newer spec out of the older one; `found` are the changes as (rule, field).

    `kafka_differs` says why EvolutionVerifier and the comparison judge the pair differently, if they do.
    """

    name: str
    edit: Callable[[Json], object]
    found: frozenset[tuple[str, str]]
    older: Callable[[], Json] = field(default=account)
    kafka_differs: str = ""

    def specs(self) -> tuple[Json, Json]:
        """The older and the newer spec."""
        older = self.older()
        newer = copy.deepcopy(older)
        self.edit(newer)
        return older, newer


def pair() -> Json:
    """A metadata record with two fields of one struct."""
    struct = {"name": "Part", "versions": "0+", "fields": [{"name": "Size", "type": "int32", "versions": "0+"}]}
    fields = [{"name": name, "type": "Part", "versions": "0+"} for name in ("Left", "Right")]
    return account() | {"name": "PairRecord", "flexibleVersions": "none", "fields": fields, "commonStructs": [struct]}


def of(spec: Json, name: str) -> Json:
    """The field called `name`, in any struct."""
    waiting = list(spec["fields"])
    while waiting:
        found: Json = waiting.pop()
        if found["name"] == name:
            return found
        waiting += found.get("fields", ())
    raise KeyError(name)


def put(name: str, /, **attributes: Any) -> Callable[[Json], object]:
    """Sets attributes of a field."""
    return lambda spec: of(spec, name).update(attributes)


def drop(name: str) -> Callable[[Json], object]:
    """Removes a field of the message."""
    return lambda spec: spec["fields"].remove(of(spec, name))


def insert(place: int, **attributes: Any) -> Callable[[Json], object]:
    """Inserts a field into the message."""
    return lambda spec: spec["fields"].insert(place, attributes)


def swap(first: int, second: int) -> Callable[[Json], object]:
    def edit(spec: Json) -> None:
        fields = spec["fields"]
        fields[first], fields[second] = fields[second], fields[first]

    return edit


def message(**attributes: Any) -> Callable[[Json], object]:
    """Sets attributes of the message."""
    return lambda spec: spec.update(attributes)


def both(*edits: Callable[[Json], object]) -> Callable[[Json], object]:
    def edit(spec: Json) -> None:
        for each in edits:
            each(spec)

    return edit


def drop_attribute(name: str, *attributes: str) -> Callable[[Json], object]:
    def edit(spec: Json) -> None:
        for attribute in attributes:
            del of(spec, name)[attribute]

    return edit


def changes(*found: str) -> frozenset[tuple[str, str]]:
    """`rule` or `rule Field.Inner`, as pairs."""
    return frozenset((text.partition(" ")[0], text.partition(" ")[2]) for text in found)


_TAGS: Final = "readers skip tags they do not know (KIP-482), and Kafka's own releases add them"
_PLACE: Final = "it pairs fields by place and compares types, so names do not count, or the order of what is alike"

_NULLS: Final = "it takes nullableVersions of the two fields crosswise, and sees null come and not go"
_FLEXIBLE: Final = "it asks only that the older flexible versions are among the newer ones"

CASES: Final = (
    Case("nothing", lambda spec: None, changes()),
    # ---- bytes
    Case("another type", put("Balance", type="string"), changes("field-type Balance")),
    Case("a wider type", put("Balance", type="int64"), changes("field-type Balance")),
    Case("a type of the same width", put("Balance", type="uint32"), changes("field-type Balance")),
    Case("an array of it", put("Balance", type="[]int32"), changes("field-type Balance")),
    Case("a type inside of an array", put("Cents", type="int32"), changes("field-type Limits.Cents")),
    Case("bytes for a text", put("Owner", type="bytes"), changes("field-type Owner")),
    Case("a text for bytes", put("Owner", type="string"), changes("field-type Owner"), lambda: _with("Owner", "bytes")),
    Case("an uuid for a text", put("Owner", type="uuid"), changes("field-type Owner")),
    Case(
        "a field in versions that exist",
        insert(1, name="Bank", type="int16", versions="0+"),
        changes("field-inserted Bank"),
    ),
    Case(
        "a field after all others",
        insert(9, name="Bank", type="int16", versions="0+"),
        changes("field-inserted Bank"),
    ),
    Case(
        "a field in the newest version that exists",
        insert(1, name="Bank", type="int16", versions="1+"),
        changes("field-inserted Bank"),
    ),
    Case("a field is gone", drop("Owner"), changes("field-removed Owner")),
    Case("a field leaves a version", put("Owner", versions="0"), changes("field-removed Owner")),
    Case("a field comes to a version", put("Closed", versions="0+", nullableVersions="0+"), changes(
        "field-inserted Closed"
    )),
    Case("two fields change places", swap(1, 3), changes("field-moved Balance", "field-moved Note")),
    Case("two fields of one type change places", swap(1, 2), changes("field-moved Floor")),
    Case(
        "a tag for a field",
        put("Owner", tag=2, taggedVersions="1+"),
        changes("field-tagged Owner"),
        kafka_differs=_PLACE,
    ),
    Case(
        "a field for a tag",
        both(drop_attribute("Weight", "tag", "taggedVersions")),
        changes("field-tagged Weight"),
        kafka_differs=_PLACE,
    ),
    Case(
        "tags change numbers",
        both(put("Colour", tag=1), put("Weight", tag=0)),
        changes("tag-number Colour", "tag-number Weight"),
        kafka_differs=_PLACE,
    ),
    Case("a tag with another type", put("Weight", type="int64"), changes("field-type Weight")),
    Case(
        "a tag that is used again",
        both(drop("Weight"), insert(8, name="Shape", type="string", versions="1+", tag=1, taggedVersions="1+")),
        changes("tag-reused Shape"),
    ),
    Case(
        "a tag that is used again for the same type, with another default",
        put("Weight", name="Shape", default="7"),
        changes("field-renamed Shape", "tag-default Shape"),
    ),
    Case(
        "tags change numbers, and one its type",
        both(put("Colour", tag=1), put("Weight", tag=0, type="int64")),
        changes("tag-number Colour", "tag-number Weight", "field-type Weight"),
    ),
    Case(
        "a tag becomes a field with another type",
        put("Weight", type="int64", tag=None, taggedVersions="none"),
        changes("field-tagged Weight", "field-type Weight"),
    ),
    Case(
        "the type of a field in a struct that is used twice",
        lambda spec: spec["commonStructs"][0]["fields"][0].update(type="int64"),
        changes("field-type Left.Size", "field-type Right.Size"),
        pair,
    ),
    Case("a tag is gone", drop("Weight"), changes("tag-removed Weight"), kafka_differs=_PLACE),
    Case("the default of a tag", put("Colour", default="red"), changes("tag-default Colour")),
    Case("null is refused", drop_attribute("Note", "nullableVersions"), changes("null-refused Note"),
         kafka_differs=_NULLS),
    Case("null is refused in a version", put("Note", nullableVersions="0"), changes("null-refused Note"),
         kafka_differs=_NULLS),
    Case("a struct is never null", drop_attribute("Closed", "nullableVersions"), changes("null-marker Closed")),
    Case("not flexible", both(message(flexibleVersions="none"), _untagged := lambda spec: [
        of(spec, name).pop(attribute) for name in ("Colour", "Weight") for attribute in ("tag", "taggedVersions")
    ]), changes("flexible", "field-tagged Colour", "field-tagged Weight")),
    Case("flexible from the start", message(flexibleVersions="0+"), changes("flexible"), kafka_differs=_FLEXIBLE),
    Case("another number", message(apiKey=8), changes("api-key")),
    Case("another type of message", message(type="data"), changes("message-type")),
    Case("the newest version is gone", message(validVersions="0"), changes("newest-version-dropped"), ledger),
    # ---- readers
    Case("null is allowed", put("Owner", nullableVersions="0+"), changes("null-allowed Owner")),
    Case("null is allowed in a version", put("Owner", nullableVersions="1+"), changes("null-allowed Owner")),
    # ---- versions
    Case("the oldest version is gone", message(validVersions="1"), changes("versions-dropped")),
    # ---- names
    Case("a field has another name", put("Owner", name="Holder"), changes("field-renamed Holder")),
    Case("a tag has another name", put("Weight", name="Mass"), changes("field-renamed Mass")),
    Case(
        "a field has another name, default and description",
        put("Floor", name="Least", default="-2", about="As low as it goes."),
        changes("field-renamed Least", "default-changed Least", "about Least"),
        kafka_differs="as with another default alone",
    ),
    Case("a field inside has another name", put("Cents", name="Money"), changes("field-renamed Limits.Money")),
    Case(
        "a struct has another name",
        put("Limits", type="[]Bound"),
        changes("struct-renamed Limits"),
        kafka_differs="bytes hold no names of structs, and Kafka itself renamed CreateableTopicConfig in 3.9",
    ),
    Case(
        "another default",
        put("Floor", default="-2"),
        changes("default-changed Floor"),
        kafka_differs="bytes that have the field stay as they are; Kafka gave rebalanceTimeout another default in 3.7",
    ),
    Case("ignorable", put("Colour", ignorable=True), changes("ignorable-changed Colour")),
    Case("a name in other letters", put("Owner", name="owner"), changes("name-spelled owner")),
    # ---- adds
    Case("a version", message(validVersions="0-2"), changes("versions-added")),
    Case(
        "a field in a new version",
        both(message(validVersions="0-2"), insert(9, name="Bank", type="int16", versions="2+")),
        changes("versions-added", "field-added Bank"),
    ),
    Case(
        "a field that a new version lacks",
        both(message(validVersions="0-2"), put("Owner", versions="0-1")),
        changes("versions-added", "field-left-out Owner"),
    ),
    Case(
        "a field with another type in a new version",
        both(
            message(validVersions="0-2"),
            put("Balance", name="BalanceBefore", versions="0-1"),
            insert(1, name="Balance", type="int64", versions="2+"),
        ),
        changes(
            "versions-added",
            "field-renamed BalanceBefore",
            "type-in-other-versions Balance",
        ),
    ),
    Case(
        "a tag in a version that exists",
        insert(9, name="Bank", type="int16", versions="1+", tag=2, taggedVersions="1+"),
        changes("tag-added Bank"),
        kafka_differs=_TAGS,
    ),
    Case(
        "null in a new version",
        both(message(validVersions="0-2"), put("Owner", nullableVersions="2+")),
        changes("versions-added", "null-in-new-versions Owner"),
        kafka_differs="it looks at the lowest version with null and not at the versions that both have",
    ),
    Case(
        "older versions are back",
        message(validVersions="0-1"),
        changes("older-versions-added"),
        lambda: account() | {"validVersions": "1"},
        kafka_differs="nothing is written in a version that a reader lacks; Kafka did it to JoinGroup in 4.1",
    ),
    # ---- words
    Case("another description", put("Id", about="Whose it is."), changes("about Id")),
    Case("a key of a map", put("Currency", mapKey=True), changes("attribute Limits.Currency")),
)  # fmt: skip


def _with(name: str, type_: str) -> Json:
    spec = account()
    of(spec, name)["type"] = type_
    return spec
