"""Checks whether Spark's launcher would find a suitable Java."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import Final

from kafka_records_runtime.errors import KafkaRecordsError

JAVA_NEEDED: Final = 17


class JavaMissing(KafkaRecordsError, RuntimeError):
    """No Java was found on which Spark can start; `detail` is a sentence that says what to do."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    def __str__(self) -> str:
        return self.detail


def check_java() -> None:
    """Raise JavaMissing if there is no Java, or only one that is too old for Spark. It searches in the same places as
    the launcher: in JAVA_HOME if set, otherwise on PATH."""
    needs = f"Spark needs Java {JAVA_NEEDED} or later"
    home = os.environ.get("JAVA_HOME")
    if home:
        java = os.path.join(home, "bin", "java")
        if not os.access(java, os.X_OK):
            raise JavaMissing(
                f"{needs}, but JAVA_HOME is {home} and has no bin/java: set it to an installed JDK or unset it."
            )
    else:
        found = shutil.which("java")
        if found is None:
            raise JavaMissing(f"{needs}, but there is no java on PATH: install a JDK or set JAVA_HOME.")
        java = found
    version = _version(java)
    if version is None:
        raise JavaMissing(f"{needs}, but {java} does not report its version: install a JDK or set JAVA_HOME.")
    # Java 8 reports its version as 1.8.
    major = re.match(r"\d+", version.removeprefix("1."))
    if major is None or int(major[0]) < JAVA_NEEDED:
        raise JavaMissing(f"{needs}, but {java} is Java {version}: install a newer JDK or set JAVA_HOME.")


def _version(java: str) -> str | None:
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    # The quoted version follows the word "version". Notices about JAVA_TOOL_OPTIONS may precede it.
    match = re.search(r' version "([^"]+)"', done.stderr + done.stdout)
    return match[1] if match else None
