"""The message classes that judge a release: its own; for a folder of specs those that Kafka's generator makes of it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kafka_records_codegen.evolution.kafka_releases import cache_folder
from kafka_records_codegen.evolution.spec_sets import SpecSet
from tools.broker import class_jars, jars_by_maven, java
from tools.follow.planning import FollowError
from tools.follow.vectors import MessageClasses
from tools.java_compiler import compile_java
from tools.kafka_releases import LATEST

_PACKAGE: Final = "followed.generated"
_GENERATOR: Final = (
    *("org.apache.kafka.message.MessageGenerator", "-p", _PACKAGE),
    *("-m", "MessageDataGenerator", "JsonConverterGenerator"),
)


@contextmanager
def message_classes(release: SpecSet, folder: Path, names: Iterable[str]) -> Iterator[MessageClasses]:
    """The classes of a release; `folder` has the specs of a folder, of which those of `names` are made into classes."""
    if release.release is not None:
        yield MessageClasses(class_jars(release.release, print))
        return
    with TemporaryDirectory() as scratch:
        made = _made([release.loaded.files[name].path for name in names], folder, Path(scratch))
        yield MessageClasses(made, class_jars(), packages=[_PACKAGE])


def _made(paths: Iterable[str], folder: Path, scratch: Path) -> Path:
    """Classes of some specs, by Kafka's generator."""
    flat, sources, classes = (scratch / name for name in ("specs", "sources", "classes"))
    for each in (flat, sources, classes):
        each.mkdir()
    for path in paths:
        shutil.copy(folder / path, flat)
    if not any(flat.iterdir()):
        return classes
    jars = jars_by_maven(
        cache_folder() / "generator" / LATEST,
        f"Kafka's generator {LATEST}",
        [("org.apache.kafka", "generator", LATEST)],
    )
    command = [java(), "-cp", f"{jars}/*", *_GENERATOR, "-i", str(flat), "-o", str(sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FollowError(f"Kafka's generator refuses the specs:\n{(done.stdout + done.stderr).strip()}")
    compile_java("the message classes", sorted(sources.rglob("*.java")), [class_jars() / "*"], classes)
    return classes
