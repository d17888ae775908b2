"""The enumerations of the release of Kafka that our specs describe, for tests that compare ours with them."""

from __future__ import annotations

import shutil

import pytest

from tools.broker import class_jars
from tools.kafka_enums import Constant, KafkaEnum, kafka_enums

needs_kafka = [
    pytest.mark.maven,
    pytest.mark.skipif(shutil.which("mvn") is None, reason="Maven fetches Kafka's jars and is not installed"),
    pytest.mark.skipif(shutil.which("javac") is None, reason="a JDK runs Kafka's classes and is not installed"),
]
"""What a test that calls `kafka_enum` is marked with."""


def kafka_enum(java_class: str, field: str) -> list[Constant]:
    """The constants of a Java enum of Kafka, in its order; `field` holds the number."""
    asked = KafkaEnum(java_class, field)
    return kafka_enums(class_jars(), [asked])[asked]
