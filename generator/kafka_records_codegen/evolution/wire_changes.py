"""Finds differences in the bytes of versions that both states have, field by field.

The fields of a version are identified by position, and tagged ones by tag. Names are used only to describe a change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Final

from kafka_records_codegen.evolution import change_rules as rules
from kafka_records_codegen.evolution.change_rules import Rule
from kafka_records_codegen.evolution.sides import FieldInBytes, Side, SidedField, by_name
from kafka_records_runtime.schema.layout import ArrayValue, FixedValue, SizedValue, StructLayout, StructValue, Value


@dataclass(frozen=True)
class WireDifference:
    """A difference at `path` (Kafka's names) between a field in the older state and one in the newer state."""

    rule: Rule
    path: str
    older: SidedField | None
    newer: SidedField | None
    older_text: str
    newer_text: str

    @property
    def key(self) -> tuple[object, ...]:
        """The part of a difference that is the same in several versions.

        Each use of a struct has its own differences, because it has its own attributes and columns.
        """
        return (self.rule.name, self.path, self.older_text, self.newer_text)


@dataclass
class WireDifferences:
    """The differences, each with the versions of the older state in which it occurs."""

    found: dict[tuple[object, ...], tuple[WireDifference, list[int]]] = field(default_factory=dict)
    compared: set[int] = field(default_factory=set)

    def add(self, difference: WireDifference, version: int) -> None:
        versions = self.found.setdefault(difference.key, (difference, []))[1]
        if version not in versions:
            versions.append(version)


def wire_differences(older: Side, newer: Side, versions: Iterable[tuple[int, int]]) -> WireDifferences:
    """All differences between the bytes of pairs of versions that should have the same bytes."""
    differences = WireDifferences()
    for older_version, newer_version in versions:
        differences.compared.add(older_version)
        layouts = older.layout(older_version), newer.layout(newer_version)
        for difference in _OneVersion(older, newer, layouts).differences():
            differences.add(difference, older_version)
    return differences


class _OneVersion:
    def __init__(self, older: Side, newer: Side, layouts: tuple[StructLayout, StructLayout]) -> None:
        self._older = older
        self._newer = newer
        self._layouts = layouts
        self._same_heads = layouts[0].is_flexible == layouts[1].is_flexible

    def differences(self) -> Iterator[WireDifference]:
        older, newer = self._layouts
        if not self._same_heads:
            yield WireDifference(rules.FLEXIBLE, "", None, None, _flexible(older), _flexible(newer))
        yield from self._structs(older, newer, "")

    # ---- structs

    def _structs(self, older: StructLayout, newer: StructLayout, path: str) -> Iterator[WireDifference]:
        olds, news = tuple(self._older.in_bytes(older)), tuple(self._newer.in_bytes(newer))
        yield from self._bodies(olds, news, path)
        yield from self._tags(olds, news, path)

    def _bodies(
        self, olds: Sequence[FieldInBytes], news: Sequence[FieldInBytes], path: str
    ) -> Iterator[WireDifference]:
        old_body = [each for each in olds if not each.is_tagged]
        new_body = [each for each in news if not each.is_tagged]
        old_names, new_names = by_name(olds), by_name(news)
        for old_part, new_part in _parts(old_body, new_body):
            renamed = [
                (old, new)
                for old, new in zip(old_part, new_part, strict=False)
                if old.name == new.name
                or (old.name not in new_names and new.name not in old_names and alike(old.value, new.value))
            ]
            for old, new in renamed:
                yield from self._fields(old, new, path)
            for old in old_part:
                if all(old is not other for other, _ in renamed):
                    yield from self._unmatched(old, new_names.get(old.name), path)
            for new in new_part:
                if new.name not in old_names and all(new is not other for _, other in renamed):
                    yield _come(rules.FIELD_INSERTED, new, path)

    def _unmatched(self, old: FieldInBytes, new: FieldInBytes | None, path: str) -> Iterator[WireDifference]:
        """An untagged field that is not at the same position on the other side; `new` is the field with the same name
        there."""
        if new is None:
            yield _gone(rules.FIELD_REMOVED, old, path)
            return
        if new.is_tagged:
            yield _both(rules.FIELD_TAGGED, old, new, path, _NO_TAG, f"tag {new.tag}")
        else:
            yield _both(rules.FIELD_MOVED, old, new, path, _place(old), _place(new))
        yield from self._fields(old, new, path)

    def _tags(self, olds: Sequence[FieldInBytes], news: Sequence[FieldInBytes], path: str) -> Iterator[WireDifference]:
        old_tags = {each.tag: each for each in olds if each.is_tagged}
        new_tags = {each.tag: each for each in news if each.is_tagged}
        old_names, new_names = by_name(olds), by_name(news)
        for tag in sorted(old_tags.keys() | new_tags.keys()):
            old, new = old_tags.get(tag), new_tags.get(tag)
            if old is not None and new is not None and old.name == new.name:
                yield from self._same_tag(old, new, path)
                continue
            if old is not None and old.name in new_names:
                yield from self._elsewhere(old, new_names[old.name], path)
                old = None
            if new is not None and new.name in old_names:
                new = None  # reported with the older field
            if old is not None and new is not None:
                if alike(old.value, new.value):
                    yield from self._same_tag(old, new, path)
                else:
                    yield _both(rules.TAG_REUSED, old, new, path, _typed(old), _typed(new))
            elif old is not None:
                yield _gone(rules.TAG_REMOVED, old, path)
            elif new is not None:
                yield _come(rules.TAG_ADDED, new, path)

    def _same_tag(self, old: FieldInBytes, new: FieldInBytes, path: str) -> Iterator[WireDifference]:
        """Two corresponding fields. If the tag is omitted, the default is read."""
        yield from self._fields(old, new, path)
        if old.sided.field.default != new.sided.field.default:
            yield _both(rules.TAG_DEFAULT, old, new, path, _default(old), _default(new))

    def _elsewhere(self, old: FieldInBytes, new: FieldInBytes, path: str) -> Iterator[WireDifference]:
        if new.is_tagged:
            yield _both(rules.TAG_NUMBER, old, new, path, f"tag {old.tag}", f"tag {new.tag}")
        else:
            yield _both(rules.FIELD_TAGGED, old, new, path, f"tag {old.tag}", _NO_TAG)
        yield from self._fields(old, new, path)

    # ---- fields

    def _fields(self, old: FieldInBytes, new: FieldInBytes, path: str) -> Iterator[WireDifference]:
        """Two corresponding fields."""
        if old.name != new.name:
            rule = rules.FIELD_RENAMED if _called(old) != _called(new) else rules.NAME_SPELLED
            yield _both(rule, old, new, path, old.name, new.name)
        yield from self._values(old, new, old.value, new.value, path)

    def _values(
        self, old: FieldInBytes, new: FieldInBytes, old_value: Value, new_value: Value, path: str
    ) -> Iterator[WireDifference]:
        if isinstance(old_value, ArrayValue) and isinstance(new_value, ArrayValue):
            yield from self._heads(old, new, old_value, new_value, path)
            yield from self._values(old, new, old_value.element, new_value.element, path)
        elif isinstance(old_value, StructValue) and isinstance(new_value, StructValue):
            if old_value.nullable != new_value.nullable:
                yield _both(rules.NULL_MARKER, old, new, path, _nullable(old_value), _nullable(new_value))
            if old.sided.field.base != new.sided.field.base:
                yield _both(rules.STRUCT_RENAMED, old, new, path, old.sided.field.base, new.sided.field.base)
            yield from self._structs(old_value.layout, new_value.layout, f"{_joined(path, new.name)}.")
        elif isinstance(old_value, SizedValue) and isinstance(new_value, SizedValue):
            if old_value.type != new_value.type:
                yield _both(rules.FIELD_TYPE, old, new, path, old.sided.field.type, new.sided.field.type)
            else:
                yield from self._heads(old, new, old_value, new_value, path)
        elif old_value != new_value:
            yield _both(rules.FIELD_TYPE, old, new, path, old.sided.field.type, new.sided.field.type)

    def _heads(
        self,
        old: FieldInBytes,
        new: FieldInBytes,
        old_value: SizedValue | ArrayValue,
        new_value: SizedValue | ArrayValue,
        path: str,
    ) -> Iterator[WireDifference]:
        if self._same_heads and old_value.head != new_value.head and old.is_tagged == new.is_tagged:
            yield _both(rules.FLEXIBLE, old, new, path, f"length as {old_value.head}", f"length as {new_value.head}")
        if old_value.nullable != new_value.nullable:
            rule = rules.NULL_ALLOWED if new_value.nullable else rules.NULL_REFUSED
            yield _both(rule, old, new, path, _nullable(old_value), _nullable(new_value))


def _parts(
    olds: Sequence[FieldInBytes], news: Sequence[FieldInBytes]
) -> Iterator[tuple[Sequence[FieldInBytes], Sequence[FieldInBytes]]]:
    """Corresponding sections of two bodies. They are compared position by position, unless more fields keep their names
    when added and removed fields are skipped."""
    old_names, new_names = [each.name for each in olds], [each.name for each in news]
    matcher = SequenceMatcher(None, old_names, new_names, False)
    kept = sum(block.size for block in matcher.get_matching_blocks())
    if len(olds) == len(news) and kept <= sum(map(str.__eq__, old_names, new_names)):
        yield from (((old,), (new,)) for old, new in zip(olds, news, strict=True))
    else:
        yield from ((olds[i:end_i], news[j:end_j]) for _, i, end_i, j, end_j in matcher.get_opcodes())


def alike(older: Value, newer: Value) -> bool:
    """Whether two values have the same byte layout, regardless of names."""
    if isinstance(older, StructValue) and isinstance(newer, StructValue):
        return older.marker == newer.marker and _structs_alike(older.layout, newer.layout)
    if isinstance(older, ArrayValue) and isinstance(newer, ArrayValue):
        same = (older.count, older.nullable) == (newer.count, newer.nullable)
        return same and alike(older.element, newer.element)
    if isinstance(older, FixedValue | SizedValue):
        return older == newer
    return False


def _structs_alike(older: StructLayout, newer: StructLayout) -> bool:
    if older.is_flexible != newer.is_flexible or len(older.body) != len(newer.body):
        return False
    if not all(alike(old.value, new.value) for old, new in zip(older.body, newer.body, strict=True)):
        return False
    known = [() if layout.tags is None else layout.tags.known for layout in (older, newer)]
    return len(known[0]) == len(known[1]) and all(
        old.field.tag == new.field.tag and alike(old.value, new.value) for old, new in zip(*known, strict=True)
    )


def _called(each: FieldInBytes) -> tuple[str, str]:
    return each.sided.field.python_name, each.sided.field.json_name


# ---- in words


def _both(
    rule: Rule, old: FieldInBytes, new: FieldInBytes, path: str, older_text: str, newer_text: str
) -> WireDifference:
    return WireDifference(rule, _joined(path, new.name), old.sided, new.sided, older_text, newer_text)


def _gone(rule: Rule, old: FieldInBytes, path: str) -> WireDifference:
    return WireDifference(rule, _joined(path, old.name), old.sided, None, _typed(old), "")


def _come(rule: Rule, new: FieldInBytes, path: str) -> WireDifference:
    return WireDifference(rule, _joined(path, new.name), None, new.sided, "", _typed(new))


_NO_TAG: Final = "without a tag"


def _place(each: FieldInBytes) -> str:
    """The position of a field in its struct, in any version."""
    return f"field {int(each.sided.spec.path.rpartition('[')[2][:-1]) + 1}"


def _joined(path: str, name: str) -> str:
    return f"{path}{name}"


def _typed(each: FieldInBytes) -> str:
    tag = f", tag {each.tag}" if each.is_tagged else ""
    null = " or null" if each.value.nullable else ""
    return f"{each.sided.field.type}{null}{tag}"


def _default(each: FieldInBytes) -> str:
    return default_text(each.sided)


def default_text(sided: SidedField) -> str:
    """The default of a field as a spec would write it."""
    default = sided.field.default
    if default is None:
        return "null"
    return repr(default) if isinstance(default, str | bytes) else sided.spec.default or _empty(default)


def _empty(default: object) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    return "empty" if isinstance(default, tuple) else str(default)


def _nullable(value: Value) -> str:
    return "null allowed" if value.nullable else "never null"


def _flexible(layout: StructLayout) -> str:
    return "flexible" if layout.is_flexible else "not flexible"
