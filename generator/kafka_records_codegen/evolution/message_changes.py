"""Finds all changes to one message from the older state to the newer one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from kafka_records_codegen.evolution import change_rules as rules
from kafka_records_codegen.evolution import downstream
from kafka_records_codegen.evolution.change_rules import Rank, Rule
from kafka_records_codegen.evolution.changes import Change, Downstream, SpecPlace, ranges
from kafka_records_codegen.evolution.early_access import early_access
from kafka_records_codegen.evolution.field_changes import FieldDifference, FieldDifferences
from kafka_records_codegen.evolution.sides import Side, SidedField
from kafka_records_codegen.evolution.wire_changes import WireDifference, wire_differences
from kafka_records_codegen.model.naming import python_name
from kafka_records_codegen.spec.versions import Versions

_KEYS: Final = ("coordinator-key", "data")
_STORED: Final = ("metadata", "data", "coordinator-key", "coordinator-value")

_ATTRIBUTE_OF: Final = {
    rules.FIELD_TYPE.name: "type",
    rules.STRUCT_RENAMED.name: "type",
    rules.TAG_NUMBER.name: "tag",
    rules.TAG_REUSED.name: "tag",
    rules.FIELD_TAGGED.name: "taggedVersions",
    rules.TAG_DEFAULT.name: "default",
    rules.NULL_ALLOWED.name: "nullableVersions",
    rules.NULL_REFUSED.name: "nullableVersions",
    rules.NULL_MARKER.name: "nullableVersions",
    rules.FIELD_INSERTED.name: "versions",
    rules.FLEXIBLE.name: "flexibleVersions",
}
"""The spec attribute that a rule about bytes refers to; `name` for other rules."""


_MISREAD: Final[Mapping[Rule, str]] = {
    rules.FLEXIBLE: "older bytes of these versions are refused, or read as something else",
    rules.FIELD_MOVED: "{name} gets the value of another field from older bytes, or they are refused",
    rules.FIELD_TAGGED: "older bytes have {name} elsewhere ({older}): they are refused, or it gets another value",
    rules.TAG_NUMBER: "{name} has its default for older bytes, in which it is {older}",
}
"""The effect on existing bytes, for rules about bytes that do not change attributes."""


def prefix(side: Side, version: int) -> int:
    """The int16 at the start of a record's key or value: the record type in a key, and the version in a value."""
    if side.spec.type == "coordinator-key" and side.spec.api_key is not None:
        return side.spec.api_key
    return version


def common_versions(older: Side, newer: Side) -> dict[int, int]:
    """Pairs of an older and a newer version that should have the same bytes. Usually, both have the same number.

    Before 4.1, Kafka described keys as data, with record types as versions.
    """
    are_keys = {older.spec.type, newer.spec.type} == set(_KEYS)
    number = prefix if are_keys else lambda side, version: version
    by_number = {number(newer, version): version for version in newer.spec.versions}
    return {
        version: by_number[number(older, version)]
        for version in older.spec.versions
        if number(older, version) in by_number
    }


class MessageChanges:
    """The changes to a message that both states have. `elsewhere` are the older versions that are separate messages in
    the newer state."""

    def __init__(self, older: Side, newer: Side, elsewhere: Collection[int] = ()) -> None:
        self._older = older
        self._newer = newer
        self._common = common_versions(older, newer)
        self._kept = {*self._common, *elsewhere}

    def all(self) -> Iterator[Change]:
        yield from self._head()
        yield from self._of_versions()
        if self._older.message is not None and self._newer.message is not None:
            yield from self._of_fields()

    # ---- the message

    def _head(self) -> Iterator[Change]:
        older, newer = self._older.spec, self._newer.spec
        if older.name != newer.name:
            names = f"{older.name} is {newer.name}"
            avro = "Avro identifies the records of a union by name, so it reads no file of the older state"
            classes = downstream.of_message(f"the class {names}", f"{names}; {avro}")
            yield self._message(rules.MESSAGE_RENAMED, "name", older.name, newer.name, classes)
        if older.type != newer.type and not self._is_spec_form():
            yield self._message(rules.MESSAGE_TYPE, "type", older.type, newer.type)
        elif older.type != newer.type:
            yield self._message(rules.SPEC_FORM, "type", older.type, newer.type)
        if older.api_key != newer.api_key and not self._is_spec_form():
            texts = _number(older.api_key), _number(newer.api_key)
            numbers = downstream.of_message(
                f"API_KEY is {texts[1]}; it was {texts[0]}",
                f"{texts[0]} belongs to another message or to none, and the older release does not know {texts[1]}",
            )
            yield self._message(rules.API_KEY, "apiKey", *texts, numbers, older.versions)
        kinds = {self._older.specs.kind, self._newer.specs.kind}
        if kinds <= {"folder", "git"} and self._older.file.folder != self._newer.file.folder:
            texts = self._older.file.folder or "the top", self._newer.file.folder or "the top"
            moved = downstream.of_message(f"the package {texts[0]} is {texts[1]}", "its names are in another package")
            yield self._message(rules.FOLDER_CHANGED, "", *texts, moved)
        if older.history != newer.history:
            yield self._message(rules.COMMENT, "", older.history, newer.history)
        if older.listeners != newer.listeners:
            texts = ", ".join(older.listeners), ", ".join(newer.listeners)
            yield self._message(rules.ATTRIBUTE, "listeners", *texts)

    def _is_spec_form(self) -> bool:
        """Whether one state describes a record as data, and the other as a coordinator's record."""
        kinds = {self._older.spec.type, self._newer.spec.type}
        return bool(self._common) and "data" in kinds and kinds & {"coordinator-key", "coordinator-value"} != set()

    def _of_versions(self) -> Iterator[Change]:
        older, newer = self._older.spec, self._newer.spec
        if newer.versions.is_empty:
            if older.versions:
                text = f"versions {older.versions} are gone"
                gone = downstream.of_message("the class is gone", text)
                texts = str(older.versions), "none"
                yield self._message(rules.MESSAGE_RETIRED, "validVersions", *texts, gone, older.versions)
            return
        yield from self._dropped([version for version in older.versions if version not in self._kept])
        added = [version for version in newer.versions if version not in self._common.values()]
        for each in ranges(added):
            yield self._added(each)
        yield from self._stability()
        if older.versions == newer.versions and older.flexible != newer.flexible:
            texts = str(older.flexible), str(newer.flexible)
            if older.flexible.intersect(older.versions) == newer.flexible.intersect(newer.versions):
                yield self._message(rules.RANGE_SPELLED, "flexibleVersions", *texts)

    def _dropped(self, versions: Iterable[int]) -> Iterator[Change]:
        older, newer = self._older.spec, self._newer.spec
        for each in ranges(versions):
            is_newest = each.lowest > max(self._common, default=-1)
            if older.type == "coordinator-value" or newer.type == "coordinator-value":
                rule = rules.RECORD_VERSION_DROPPED
            elif is_newest and older.type in _STORED:
                rule = rules.NEWEST_DROPPED
            else:
                rule = rules.VERSIONS_DROPPED
            gone = downstream.of_message(
                f"VERSIONS lacks {each}: decode refuses it", f"bytes of version {each} cannot be decoded"
            )
            yield self._message(rule, "validVersions", str(older.versions), str(newer.versions), gone, each)

    def _added(self, versions: Versions) -> Change:
        older, newer = self._older.spec, self._newer.spec
        if newer.type == "coordinator-value":
            rule = rules.RECORD_VERSION_ADDED
        elif older.versions and versions.highest < newer.versions.highest and versions.highest < older.versions.lowest:
            rule = rules.OLDER_ADDED
        else:
            rule = rules.VERSIONS_ADDED
        new = downstream.of_message(f"VERSIONS has {versions}", f"bytes of version {versions} can be decoded")
        return self._message(rule, "validVersions", str(older.versions), str(newer.versions), new, versions)

    def _stability(self) -> Iterator[Change]:
        older, newer = self._older.spec, self._newer.spec
        if older.latest_version_unstable == newer.latest_version_unstable:
            return
        newest = newer.versions.highest if newer.latest_version_unstable else older.versions.highest
        if not (older.versions.contains(newest) and newer.versions.contains(newest)):
            return
        rule = rules.VERSION_UNSTABLE if newer.latest_version_unstable else rules.VERSION_STABLE
        texts = _stable(older.latest_version_unstable), _stable(newer.latest_version_unstable)
        offered = "only with unstable.api.versions.enable" if newer.latest_version_unstable else "to every client"
        products = downstream.of_message("decode and encode know it as before", f"brokers offer it {offered}")
        yield self._message(rule, "latestVersionUnstable", *texts, products, Versions(newest, newest))

    # ---- its fields

    def _of_fields(self) -> Iterator[Change]:
        found = wire_differences(self._older, self._newer, self._common.items())
        reported: defaultdict[str, set[str]] = defaultdict(set)
        renamed: dict[str, str] = {}
        for difference, versions in found.found.values():
            if difference.older is not None:
                reported[f"older {difference.older.spec.path}"].add(difference.rule.name)
            if difference.newer is not None:
                reported[f"newer {difference.newer.spec.path}"].add(difference.rule.name)
            if difference.rule in (rules.FIELD_RENAMED, rules.NAME_SPELLED):
                assert difference.older is not None
                assert difference.newer is not None
                renamed[difference.newer.spec.path] = difference.older.spec.path
            yield self._in_bytes(difference, versions)
        for each in FieldDifferences(self._older, self._newer, self._common, reported, renamed).all():
            yield self._beside_bytes(each)

    def _in_bytes(self, difference: WireDifference, versions: list[int]) -> Change:
        attribute = _ATTRIBUTE_OF.get(difference.rule.name, "name")
        older, newer = difference.older, difference.newer
        texts = difference.older_text, difference.newer_text
        products = self._downstream(difference)
        elsewhere = self._in_other_versions(difference)
        if elsewhere is not None:
            # Both sets of specs have the field. Only its versions differ.
            attribute, products = "versions", downstream.of_versions(self._name(elsewhere, difference.path))
            older, newer = older or elsewhere, newer or elsewhere
            texts = texts[0] or _NOT_THERE, texts[1] or _NOT_THERE
        places = self._places(older, newer, attribute)
        return self._change(difference.rule, difference.path, ranges(versions), texts, places, products)

    def _in_other_versions(self, difference: WireDifference) -> SidedField | None:
        """For a field on only one side: the field with that name on the other side, if other versions there have it."""
        for one, other, sided, missing in (
            (self._older, self._newer, difference.older, difference.newer),
            (self._newer, self._older, difference.newer, difference.older),
        ):
            if sided is not None and missing is None:
                around = next(struct.name for struct in one.made.structs if sided.field in struct.fields)
                if any(struct.name == around for struct in other.made.structs):
                    found = (each for each in other.fields(around) if each.field.name == sided.field.name)
                    return next(found, None)
        return None

    def _beside_bytes(self, difference: FieldDifference) -> Change:
        is_word = difference.rule.rank is Rank.WORDS
        return self._change(
            difference.rule,
            difference.path,
            difference.versions,
            (difference.older_text, difference.newer_text),
            self._places(difference.older, difference.newer, difference.attribute),
            downstream.nothing() if is_word else self._downstream(difference),
        )

    def _places(
        self, older: SidedField | None, newer: SidedField | None, attribute: str
    ) -> tuple[SpecPlace | None, SpecPlace | None]:
        if older is None and newer is None:
            return self._older.place(None, attribute), self._newer.place(None, attribute)
        return (
            None if older is None else self._older.place(older.spec, attribute),
            None if newer is None else self._newer.place(newer.spec, attribute),
        )

    def _downstream(self, difference: WireDifference | FieldDifference) -> Downstream:
        older = self._attribute(self._older, difference.older, difference.path)
        newer = self._attribute(self._newer, difference.newer, difference.path)
        if difference.rule in _MISREAD:
            text = _MISREAD[difference.rule].format(name=newer.name if newer else "", older=difference.older_text)
            return downstream.of_misread(older, newer, text)
        if older is not None and newer is not None:
            if difference.rule is rules.TAG_REUSED:
                return downstream.of_reused(older, newer)
            if difference.rule in (rules.TAG_DEFAULT, rules.DEFAULT_CHANGED):
                return downstream.of_default(older, newer)
            if difference.rule is rules.IGNORABLE_CHANGED:
                return downstream.of_ignorable(newer)
        return downstream.of_field(older, newer, stays=self._stays(difference))

    def _attribute(self, side: Side, sided: SidedField | None, path: str) -> downstream.Attribute | None:
        if sided is None:
            return None
        return downstream.Attribute(side.made, sided.field, self._name(sided, path))

    @staticmethod
    def _name(sided: SidedField, path: str) -> str:
        """The name of an attribute, preceded by the names of enclosing ones."""
        return ".".join([*map(python_name, path.split(".")[:-1]), sided.field.python_name])

    def _stays(self, difference: WireDifference | FieldDifference) -> bool:
        """Whether the newer state still has a field with the older name, in addition to the newer field."""
        older, newer = difference.older, difference.newer
        if older is None or newer is None:
            return False
        around = next(struct for struct in self._newer.made.structs if newer.field in struct.fields)
        return any(field.python_name == older.field.python_name for field in around.fields)

    # ---- as a change

    def _message(
        self,
        rule: Rule,
        attribute: str,
        older_text: str,
        newer_text: str,
        products: Downstream | None = None,
        versions: Versions = Versions.NONE,
    ) -> Change:
        return self._change(
            rule,
            "",
            (versions,) if versions else (),
            (older_text, newer_text),
            (self._older.place(None, attribute), self._newer.place(None, attribute)),
            products or downstream.nothing(),
        )

    def _change(
        self,
        rule: Rule,
        path: str,
        versions: tuple[Versions, ...],
        texts: tuple[str, str],
        places: tuple[SpecPlace | None, SpecPlace | None],
        products: Downstream,
    ) -> Change:
        why = ""
        if rule.rank in (Rank.BYTES, Rank.READERS, Rank.VERSIONS):
            why = early_access(self._older, (version for each in versions for version in each))
        rank = Rank.EARLY_ACCESS if why and rule.rank is not Rank.VERSIONS else rule.rank
        return Change(rule, rank, self._newer.name, path, versions, *texts, *places, products, why)


_NOT_THERE: Final = "not in this version"


def _stable(is_unstable: bool) -> str:
    return "unstable" if is_unstable else "stable"


def _number(value: int | None) -> str:
    return "none" if value is None else str(value)
