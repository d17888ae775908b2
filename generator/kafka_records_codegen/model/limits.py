"""Limits the size of a message, so that Python can parse the generated code and the generator takes minutes at most.

Kafka's generator has no such limits. The largest messages in its releases 2.8 to 4.3 are far below them: structs are 6
levels deep (StreamsGroupDescribeResponse), with 558 fields in all versions together (FetchResponse of 3.9).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafka_records_codegen.model.naming import module_name
from kafka_records_codegen.model.structs import StructDefinition, leaves_first, uses
from kafka_records_codegen.spec.attributes import MessageSpec

MAX_LEVELS: Final = 32
"""The maximum depth of nested structs, counting the body of the message. In its Spark type, an array of structs opens
four brackets, and Python accepts at most 200 nested brackets."""

MAX_FIELDS: Final = 10_000
"""The maximum number of fields in all versions together. Fields of a struct count once for each use, because types,
pages and wire layouts repeat them."""

MAX_NAME: Final = 250
"""The maximum number of characters in a message's module name. On most file systems, a file name has at most 255 bytes,
of which `.avsc` uses 5."""


def check_limits(message: MessageSpec, structs: Mapping[str, StructDefinition]) -> None:
    """Report every part of a message that is too large. Call this only if no struct contains itself."""
    letters = len(module_name(message.name))
    if letters > MAX_NAME:
        message.report(
            "name",
            f"the file names of this message would be {letters} characters long; the limit is {MAX_NAME}, because "
            f"file systems do not accept longer names",
        )
    order = leaves_first(structs[message.name], structs)
    if _check_levels(message, structs, order) and not message.versions.is_open:
        _check_fields(message, structs, order)


def _check_levels(
    message: MessageSpec, structs: Mapping[str, StructDefinition], order: tuple[StructDefinition, ...]
) -> bool:
    levels = {message.name: 1}
    for struct in reversed(order):
        level = levels[struct.name]
        for field, used in uses(struct, structs):
            levels[used.name] = max(levels.get(used.name, 0), level + 1)
            if level == MAX_LEVELS:
                field.report(
                    "type",
                    f"the struct {used.name} would be {level + 1} levels deep; the limit is {MAX_LEVELS}, "
                    "because Python cannot read the Spark type of a deeper struct",
                )
    return max(levels.values()) <= MAX_LEVELS


def _check_fields(
    message: MessageSpec, structs: Mapping[str, StructDefinition], order: tuple[StructDefinition, ...]
) -> None:
    counts: dict[str, int] = {}
    for struct in order:
        counts[struct.name] = len(struct.fields) + sum(counts[used.name] for _, used in uses(struct, structs))
    count, versions = counts[message.name], len(message.versions)
    if count * versions > MAX_FIELDS:
        together = "" if versions == 1 else f", in {versions} versions {count * versions}"
        message.report(
            "fields",
            f"{count} fields, counting those of a struct at each use{together}; the limit is {MAX_FIELDS}, because "
            "Spark types, pages and wire layouts repeat them all",
        )
