"""Finds differences between the fields of two states that the bytes of common versions do not show."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass

from kafka_records_codegen.evolution import change_rules as rules
from kafka_records_codegen.evolution.change_rules import Rule
from kafka_records_codegen.evolution.changes import ranges
from kafka_records_codegen.evolution.sides import Side, SidedField
from kafka_records_codegen.evolution.wire_changes import default_text
from kafka_records_codegen.spec.versions import Versions


@dataclass(frozen=True)
class FieldDifference:
    """A difference at `path` (Kafka's names) in the spec's `attribute`, in these `versions`."""

    rule: Rule
    path: str
    attribute: str
    older: SidedField | None
    newer: SidedField | None
    older_text: str
    newer_text: str
    versions: tuple[Versions, ...] = ()


Reported = Mapping[str, Collection[str]]
"""For each field with different bytes, the names of the rules that say so. The key is the JSON path of the field in one
of the two specs, preceded by `older ` or `newer `."""


class FieldDifferences:
    """Compares the fields of both states. Structs are compared at each use, but their descriptions only once.

    `common` are the versions in both states. `renamed` maps the JSON paths of renamed fields, as identified by their
    bytes, to the paths in the older state.
    """

    def __init__(
        self, older: Side, newer: Side, common: Mapping[int, int], reported: Reported, renamed: Mapping[str, str]
    ) -> None:
        self._older = older
        self._newer = newer
        self._common = common
        self._new = [version for version in newer.spec.versions if version not in set(common.values())]
        self._reported = reported
        self._renamed = renamed
        self._seen: set[tuple[str, str]] = set()

    def all(self) -> Iterator[FieldDifference]:
        yield from self._structs(self._older.made.root.name, self._newer.made.root.name, "")

    def _structs(self, older: str, newer: str, path: str) -> Iterator[FieldDifference]:
        is_first = (older, newer) not in self._seen
        self._seen.add((older, newer))
        olds = {each.field.name: each for each in self._older.fields(older)}
        news = {each.field.name: each for each in self._newer.fields(newer)}
        places = {each.spec.path: each for each in olds.values() if each.field.name not in news}
        was = {name: places.get(self._renamed.get(new.spec.path, "")) for name, new in news.items() if name not in olds}
        found = {each.field.name for each in was.values() if each is not None}
        for name in [*news, *(name for name in olds if name not in news and name not in found)]:
            old, new = olds.get(name) or was.get(name), news.get(name)
            yield from self._pair(old, new, f"{path}{name}")
            if is_first and old is not None and new is not None:
                yield from self._words(old, new, f"{path}{name}")

    def _pair(self, old: SidedField | None, new: SidedField | None, path: str) -> Iterator[FieldDifference]:
        told = {
            *(self._reported.get(f"older {old.spec.path}", ()) if old else ()),
            *(self._reported.get(f"newer {new.spec.path}", ()) if new else ()),
        }
        if old is None:
            assert new is not None
            if not told:
                yield FieldDifference(
                    rules.FIELD_ADDED, path, "name", None, new, "", typed(new), ranges(self._only_new(new))
                )
            yield from self._inside_new(new, path)
        elif new is None:
            if not told:
                yield FieldDifference(rules.FIELD_GONE, path, "name", old, None, typed(old), "")
        else:
            yield from self._versions(old, new, path, told)
            yield from self._values(old, new, path, told)
            if old.field.is_struct and new.field.is_struct:
                yield from self._structs(old.field.base, new.field.base, f"{path}.")

    def _inside_new(self, new: SidedField, path: str) -> Iterator[FieldDifference]:
        """Compare the fields inside a new field. The difference for the field itself covers its struct."""
        if new.field.is_struct:
            for struct in (name for name in (new.field.base,) if self._is_known(name)):
                yield from self._structs(struct, struct, f"{path}.")

    def _is_known(self, struct: str) -> bool:
        return any(each.name == struct for each in self._older.made.structs)

    def _versions(self, old: SidedField, new: SidedField, path: str, told: Set[str]) -> Iterator[FieldDifference]:
        """A field that new versions lack, or contain again, unlike the newest version that both states have."""
        if not self._common or not self._new:
            return
        newest = max(self._common)
        had = old.field.versions.contains(newest)
        after = [version for version in self._new if version > self._common[newest]]
        differ = [version for version in after if new.field.versions.contains(version) != had]
        if differ and not told & {rules.FIELD_RENAMED.name}:
            rule = rules.FIELD_LEFT_OUT if had else rules.FIELD_ADDED
            texts = str(old.spec.versions), str(new.spec.versions)
            yield FieldDifference(rule, path, "versions", old, new, *texts, ranges(differ))

    def _values(self, old: SidedField, new: SidedField, path: str, told: Set[str]) -> Iterator[FieldDifference]:
        if old.field.type != new.field.type and not told & {rules.FIELD_TYPE.name, rules.STRUCT_RENAMED.name}:
            yield FieldDifference(rules.TYPE_ELSEWHERE, path, "type", old, new, old.field.type, new.field.type)
        if self._has_other_default(old, new) and rules.TAG_DEFAULT.name not in told:
            texts = default_text(old), default_text(new)
            yield FieldDifference(rules.DEFAULT_CHANGED, path, "default", old, new, *texts)
        nulls = {rules.NULL_ALLOWED.name, rules.NULL_REFUSED.name, rules.NULL_MARKER.name, rules.DEFAULT_CHANGED.name}
        if (
            old.spec.nullable != new.spec.nullable
            and old.field.can_be_null != new.field.can_be_null
            and not told & nulls
        ):
            texts = f"null in {old.spec.nullable}", f"null in {new.spec.nullable}"
            yield FieldDifference(rules.NULL_ELSEWHERE, path, "nullableVersions", old, new, *texts)
        if old.field.ignorable != new.field.ignorable:
            texts = _ignored(old), _ignored(new)
            yield FieldDifference(rules.IGNORABLE_CHANGED, path, "ignorable", old, new, *texts)

    @staticmethod
    def _has_other_default(old: SidedField, new: SidedField) -> bool:
        """Whether the default itself has changed, not just its type."""
        is_of_type = old.field.type != new.field.type and old.spec.default == new.spec.default
        return old.field.default != new.field.default and not is_of_type

    def _words(self, old: SidedField, new: SidedField, path: str) -> Iterator[FieldDifference]:
        if old.spec.about != new.spec.about:
            yield FieldDifference(rules.ABOUT, path, "about", old, new, old.spec.about, new.spec.about)
        values = (
            ("mapKey", _said(old.spec.map_key), _said(new.spec.map_key)),
            ("entityType", old.spec.entity_type or "unknown", new.spec.entity_type or "unknown"),
            ("zeroCopy", _said(old.spec.zero_copy), _said(new.spec.zero_copy)),
        )
        for attribute, old_text, new_text in values:
            if old_text != new_text:
                yield FieldDifference(rules.ATTRIBUTE, path, attribute, old, new, old_text, new_text)

    def _only_new(self, new: SidedField) -> list[int]:
        return [version for version in self._new if new.field.versions.contains(version)]


def typed(sided: SidedField) -> str:
    """The type of a field, and the versions that have it."""
    tag = "" if sided.field.tag is None else f", tag {sided.field.tag}"
    return f"{sided.field.type}, versions {sided.spec.versions}{tag}"


def _ignored(sided: SidedField) -> str:
    return "ignorable" if sided.field.ignorable else "not ignorable"


def _said(value: bool) -> str:
    return str(value).lower()
