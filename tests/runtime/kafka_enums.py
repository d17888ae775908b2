"""The enumerations of the release of Kafka that our specs describe, read by a few lines of Java from its jars."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tools.broker import class_jars

_JAVA = """\
import java.lang.reflect.*;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

public class ShowEnum {
    public static void main(String[] arguments) throws Exception {
        Class<?> type = Class.forName(arguments[0]);
        Field number = type.getDeclaredField(arguments[1]);
        number.setAccessible(true);
        for (Object each : type.getEnumConstants()) {
            boolean retriable = each instanceof Errors && ((Errors) each).exception() instanceof RetriableException;
            System.out.println(((Enum<?>) each).name() + " " + number.get(each) + " " + retriable);
        }
    }
}
"""

needs_kafka = [
    pytest.mark.maven,
    pytest.mark.skipif(shutil.which("mvn") is None, reason="Maven fetches Kafka's jars and is not installed"),
    pytest.mark.skipif(shutil.which("javac") is None, reason="a JDK runs Kafka's classes and is not installed"),
]
"""What a test that calls `kafka_enum` is marked with."""


class Constant(NamedTuple):
    """A constant of a Java enum with its number; `retriable` means something for Errors only."""

    name: str
    number: int
    retriable: bool


def kafka_enum(folder: Path, java_class: str, field: str) -> list[Constant]:
    """The constants of a Java enum of Kafka, in its order; `field` holds the number. `folder` is for scratch files."""
    source = folder / "ShowEnum.java"
    source.write_text(_JAVA, encoding="utf-8")
    program = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{class_jars()}/*", str(source), java_class, field]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split(" ") for line in done.stdout.splitlines()]
    return [Constant(name, int(number), retriable == "true") for name, number, retriable in rows]
