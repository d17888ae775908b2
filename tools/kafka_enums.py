"""Enumerations of a release of Kafka, which a few lines of Java read from its classes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tools.broker import java

_SOURCE: Final = Path(__file__).with_name("KafkaEnums.java")


class KafkaEnum(NamedTuple):
    """A Java enum by the name of its class; `field` is the field with the number."""

    java_class: str
    field: str


class Constant(NamedTuple):
    """A constant of a Java enum with its number; `retriable` is only meaningful for Errors."""

    name: str
    number: int
    retriable: bool


ENUMS: Final[Mapping[str, KafkaEnum]] = {
    "ErrorCode": KafkaEnum("org.apache.kafka.common.protocol.Errors", "code"),
    "MemberState": KafkaEnum("org.apache.kafka.coordinator.group.modern.MemberState", "value"),
    "StreamsMemberState": KafkaEnum("org.apache.kafka.coordinator.group.streams.MemberState", "value"),
    "DeliveryState": KafkaEnum("org.apache.kafka.server.share.fetch.RecordState", "id"),
    "TransactionState": KafkaEnum("org.apache.kafka.coordinator.transaction.TransactionState", "id"),
}
"""Our enumerations, with the enumerations of Kafka that they follow."""


class EnumsUnread(Exception):
    """Kafka's enumerations could not be read. The text has Java's message."""


def kafka_enums(jars: Path, enums: Iterable[KafkaEnum]) -> dict[KafkaEnum, list[Constant]]:
    """The constants of Java enums in the jars of a release, in declared order. A missing enum has none."""
    found: dict[KafkaEnum, list[Constant]] = {each: [] for each in enums}
    by_class = {each.java_class: each for each in found}
    words = [word for each in found for word in each]
    program = [java(), "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", str(_SOURCE), *words]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if done.returncode:
        raise EnumsUnread(done.stderr.strip())
    for line in done.stdout.splitlines():
        java_class, name, number, retriable = line.split(" ")
        found[by_class[java_class]].append(Constant(name, int(number), retriable == "true"))
    return found
