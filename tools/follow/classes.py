"""The message classes that judge a release: its own classes, or, for a folder of specs, those that Kafka's generator
makes from it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kafka_records_codegen.evolution.kafka_releases import cache_folder, folder_name
from kafka_records_codegen.evolution.spec_sets import SpecSet
from kafka_records_codegen.spec.attributes import MessageSpec
from tools.broker import class_jars, jars_by_maven, java
from tools.follow.merging import plain
from tools.follow.refusals import FollowError
from tools.follow.vectors import MessageClasses
from tools.java_compiler import compile_java
from tools.kafka_releases import LATEST

_PACKAGE: Final = "followed.generated"
_WITHOUT_CONVERTERS: Final = "kafka-streams"
"""A module whose classes Kafka makes without converters to JSON. For vectors, classes are made from the same specs."""
_GENERATOR: Final = (
    *("org.apache.kafka.message.MessageGenerator", "-p", _PACKAGE),
    *("-m", "MessageDataGenerator", "JsonConverterGenerator"),
)


@contextmanager
def message_classes(release: SpecSet, tell: Callable[[str], None]) -> Iterator[MessageClasses]:
    """The classes of a release, or of a folder of specs. `tell` gets what Maven fetches."""
    files = release.loaded.files.values()
    with TemporaryDirectory() as scratch:
        if release.release is None:
            made = _made([file.spec for file in files], Path(scratch), "classes")
            yield MessageClasses(made, class_jars(LATEST), packages=[_PACKAGE])
            return
        jars = class_jars(release.release, tell)
        specs = [file.spec for file in files if file.folder == folder_name(_WITHOUT_CONVERTERS)]
        places = [_made(specs, Path(scratch), _WITHOUT_CONVERTERS)] if specs else []
        yield MessageClasses(*places, jars, packages=[_PACKAGE])


def _made(specs: Iterable[MessageSpec], scratch: Path, folder: str) -> Path:
    """Kafka's generator makes classes from the specs in a folder. Its code needs the other classes of its release."""
    flat, sources, classes = (scratch / name for name in ("specs", "sources", folder))
    for each in (flat, sources, classes):
        each.mkdir()
    for spec in specs:
        (flat / f"{spec.name}.json").write_text(json.dumps(_without_words(plain(spec.node))), encoding="utf-8")
    jars = jars_by_maven(
        cache_folder() / "generator" / LATEST,
        f"Kafka's generator {LATEST}",
        [("org.apache.kafka", "generator", LATEST)],
    )
    command = [java(), "-cp", f"{jars}/*", *_GENERATOR, "-i", str(flat), "-o", str(sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FollowError(f"Kafka's generator refuses the specs:\n{(done.stdout + done.stderr).strip()}")
    compile_java("the message classes", sorted(sources.rglob("*.java")), [class_jars(LATEST) / "*"], classes)
    return classes


def _without_words(value: object) -> object:
    """A spec without descriptions, because Kafka's generator copies them into Java strings without escaping quotes."""
    if isinstance(value, dict):
        return {name: _without_words(member) for name, member in value.items() if name != "about"}
    return [_without_words(item) for item in value] if isinstance(value, list) else value
