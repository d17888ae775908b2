"""The changes of a release in Kafka's error codes and states, and which of them ours lack. Ours are edited by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple

from kafka_records_runtime.kafka.error_codes import ErrorCode
from kafka_records_tables.tables.checking.release_versions import RELEASES
from tools.broker import class_jars
from tools.kafka_enums import ENUMS, Constant, kafka_enums

Enumerations = Mapping[str, Sequence[Constant]]
"""The constants of Kafka's enumerations, by the names of our enumerations."""

_KEPT_IN: Final = {"ErrorCode": "generator/kafka_records_runtime/kafka/error_codes.py"}
_STATES_KEPT_IN: Final = "the _notes.json of its folder in message_specs"
_RELEASES_KEPT_IN: Final = "spark_udfs/kafka_records_tables/tables/checking/release_versions.py"


class EnumChange(NamedTuple):
    """A constant of Kafka that differs between two releases; `older` or `newer` is None if there is none."""

    enum: str
    older: Constant | None
    newer: Constant | None


def enumerations(release: str) -> Enumerations:
    """Kafka's constants in a release. Raises as `class_jars`, and EnumsUnread."""
    found = kafka_enums(class_jars(release), ENUMS.values())
    return {name: found[each] for name, each in ENUMS.items()}


def changes(older: Enumerations, newer: Enumerations) -> list[EnumChange]:
    """The differences by number, in Kafka's order."""
    found = []
    for enum in ENUMS:
        before, after = ({each.number: each for each in side[enum]} for side in (older, newer))
        for number in dict.fromkeys([*before, *after]):
            if before.get(number) != after.get(number):
                found.append(EnumChange(enum, before.get(number), after.get(number)))
    return found


def by_hand(release: str, theirs: Enumerations) -> Iterator[str]:
    """The changes to make in our enumerations by hand for a release, one per line."""
    for enum, constants in theirs.items():
        ours = set(_ours(enum))
        for each in constants:
            if each not in ours:
                retriable = ", retriable" if each.retriable else ""
                yield f"{_KEPT_IN.get(enum, _STATES_KEPT_IN)}: {enum} lacks {each.name} = {each.number}{retriable}"
    minor = ".".join(release.split(".")[:2])
    if minor not in RELEASES:
        yield f"{_RELEASES_KEPT_IN}: RELEASES lacks {minor}, and what its coordinators read"


def _ours(enum: str) -> Iterable[Constant]:
    if enum == "ErrorCode":
        return [Constant(code.name, code.value, code.is_retriable) for code in ErrorCode]
    # Imported late, because this run has just written the module.
    states: Any = getattr(import_module("kafka_records.enums"), enum)
    return [Constant(state.name, state.value, False) for state in states]
