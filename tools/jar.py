#!/usr/bin/env python3
"""Build the jar with Spark's functions in the JVM. See `--help`."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the root

import pyspark  # noqa: E402

from kafka_records_runtime.kafka.config_names import known_configs  # noqa: E402
from tools.java_compiler import CompileError, compile_java  # noqa: E402

SOURCES: Final = ROOT / "java" / "kafkarecords"
SCHEMAS: Final = ROOT / "generated" / "kafka_records" / "spark" / "jvm_schemas.txt"
JAR: Final = ROOT / "spark_udfs" / "kafka_records_engine" / "spark" / "kafka-records.jar"
JAVA: Final = "8"
"""The oldest version of Java on which the oldest supported Spark, 3.5, runs."""

_MANIFEST: Final = "META-INF/MANIFEST.MF"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)

_EPILOG = """\
The sources are in java/, the schemas are those of the generated package; the classes are compiled against the jars
inside PySpark, for Java 8 and any Spark from 3.5 on. The same sources and the same compiler give the same bytes. The
jar is not committed: a wheel has it, and a clone without it decodes in Python.

exit status: 0 built, or --check and up to date; 1 not; 2 wrong arguments

examples:
  tools/jar.py           write spark_udfs/kafka_records_engine/spark/kafka-records.jar, unless it is of these sources
  tools/jar.py --check   compile, and say whether it is there and has these classes
"""


def digest() -> str:
    """A digest of all inputs of the jar. A jar with another digest must be built again."""
    found = blake2b(pyspark.__version__.encode(), digest_size=16)
    for path in (Path(__file__), *sorted(SOURCES.glob("*.java")), SCHEMAS, ROOT / "LICENSE"):
        found.update(path.name.encode() + b"\0" + blake2b(path.read_bytes()).digest())
    found.update(known_configs().encode())
    return found.hexdigest()


def digest_in(jar: Path) -> str | None:
    """The digest with which the jar was built; None if there is no jar, or it has no digest."""
    try:
        with zipfile.ZipFile(jar) as archive:
            found = re.search(rb"^Made-Of: (\w+)\r$", archive.read(_MANIFEST), re.MULTILINE)
    except (OSError, zipfile.BadZipFile, KeyError):
        return None
    return found and found[1].decode()


def contents(classes: Path) -> dict[str, bytes]:
    """The files of the jar: classes compiled into the folder `classes`, and the schemas. Raises CompileError."""
    spark = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    options = ("--release", JAVA, "-Xlint:-options")
    compile_java("the functions for Spark", sorted(SOURCES.glob("*.java")), spark, classes, options)
    files = {str(path.relative_to(classes)): path.read_bytes() for path in classes.rglob("*.class")}
    files["kafkarecords/jvm_schemas.txt"] = SCHEMAS.read_bytes()
    files["kafkarecords/config_names.txt"] = known_configs().encode()
    files[_MANIFEST] = f"Manifest-Version: 1.0\r\nMade-Of: {digest()}\r\n\r\n".encode()
    files["META-INF/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    return files


def write(files: dict[str, bytes], jar: Path) -> None:
    """Write a jar of `files`, sorted by name and without times. The jar appears only when it is complete."""
    unfinished = jar.with_suffix(".part")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files, key=lambda name: (name != _MANIFEST, name)):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), files[name], zipfile.ZIP_DEFLATED)
    unfinished.replace(jar)


def is_current(files: dict[str, bytes], jar: Path) -> bool:
    """Whether `jar` has exactly these files."""
    if not jar.is_file():
        return False
    with zipfile.ZipFile(jar) as archive:
        return {name: archive.read(name) for name in archive.namelist()} == files


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="jar.py",
        description="Build the jar with Spark's functions in the JVM.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--check", action="store_true", help="only compare")
    options = parser.parse_args(arguments)
    if not options.check and digest_in(JAR) == digest():
        print(f"{JAR.relative_to(ROOT)}: up to date")
        return 0
    try:
        with tempfile.TemporaryDirectory() as folder:
            files = contents(Path(folder))
    except (CompileError, subprocess.SubprocessError) as error:
        print(error, file=sys.stderr)
        return 1
    if is_current(files, JAR):
        print(f"{JAR.relative_to(ROOT)}: up to date")
        return 0
    if options.check:
        print(f"{JAR.relative_to(ROOT)} is not made of these sources: run make jar", file=sys.stderr)
        return 1
    write(files, JAR)
    print(f"{JAR.relative_to(ROOT)}: {len(files)} files, {JAR.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
