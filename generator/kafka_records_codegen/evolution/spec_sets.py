"""The sides of a comparison: a folder of specs, jars, a Kafka release, or a git revision."""

from __future__ import annotations

import io
import os
import re
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from kafka_records_codegen.evolution.kafka_releases import (
    RELEASE,
    FetchError,
    absent_modules,
    cache_folder,
    extract_specs,
    fetch_specs,
    folder_name,
    is_older_dialect,
)
from kafka_records_codegen.loader import LoadedSpecs, load_with_specs
from kafka_records_codegen.spec.violations import SpecErrors, Violation
from kafka_records_runtime.errors import KafkaRecordsError

SpecSetKind = Literal["folder", "jars", "release", "git"]

_OUTSIDE: Final = "not a git repository"
"""Git's English message about a folder that is not in a repository."""

_VERSION_OF_JAR: Final = re.compile(r"-[0-9][^-]*(?:-[A-Za-z0-9]+)?$")
_JAR_OF_KAFKA: Final = re.compile(r"kafka[-_].*?-([0-9]+\.[0-9]+\.[0-9]+)")


class UnusableSpecs(KafkaRecordsError):
    """A side of a comparison cannot be read. The text says why, and what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class SpecSet:
    """One side of a comparison. `title` is the name given by the user. `release` is the number of the Kafka release, if
    the side is one; jar names may also show it.

    `files` maps paths below the specs directory to the names used for these files in messages. `absent` are the folders
    of modules that could not be fetched.
    """

    title: str
    kind: SpecSetKind
    loaded: LoadedSpecs
    files: Mapping[str, str]
    release: str | None = None
    absent: tuple[str, ...] = field(default=())


def read_spec_set(
    word: str, other: str, *, older_dialect: bool = False, tell: Callable[[str], None] = lambda line: None
) -> SpecSet:
    """The specs that `word` refers to. `other` is the other side. If `word` is a git revision, the folder of `other` is
    read at that revision.

    Raises UnusableSpecs, and SpecErrors for rejected specs.
    """
    path = Path(word)
    if path.is_dir():
        return _folder_or_jars(word, path, older_dialect)
    if path.is_file():
        return _jars(word, [path])
    if RELEASE.fullmatch(word):
        return _release(word, tell)
    return _revision(word, other, older_dialect)


def _load(root: Path, name_of: Callable[[str], str], older_dialect: bool) -> tuple[LoadedSpecs, dict[str, str]]:
    """The specs below `root`. Violations and places contain the names from `name_of`, not the names of temporary
    folders."""
    try:
        loaded = load_with_specs(root, older_dialect=older_dialect)
    except SpecErrors as errors:
        start = f"{root}/"
        raise SpecErrors(
            _renamed(violation, name_of(violation.file.removeprefix(start))) for violation in errors.violations
        ) from None
    return loaded, {file.path: name_of(file.path) for file in loaded.files.values()}


def _renamed(violation: Violation, file: str) -> Violation:
    return replace(violation, file=file)


# ---- folders and jars


def _folder_or_jars(word: str, folder: Path, older_dialect: bool) -> SpecSet:
    jars = sorted(folder.glob("*.jar"))
    if jars and not any(folder.rglob("*.json")):
        return _jars(word, jars)
    if not any(folder.rglob("*.json")):
        raise UnusableSpecs(
            f"{word}: no specs in this folder or below it. Give a folder of .json files, or a folder of Kafka's jars"
        )
    loaded, files = _load(folder, lambda path: str(folder / path), older_dialect)
    return SpecSet(word, "folder", loaded, files)


def _jars(word: str, jars: list[Path]) -> SpecSet:
    """The specs in jars, read in the older dialect if Kafka wrote them in it. The jar names contain the release."""
    entries: dict[str, str] = {}
    releases: set[str | None] = set()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "specs"
        for jar in jars:
            module = folder_name(_VERSION_OF_JAR.sub("", jar.stem))
            try:
                inside = extract_specs(jar, root / module)
            except zipfile.BadZipFile:
                raise UnusableSpecs(
                    f"{jar}: not a jar; give a folder of specs, a jar, a release such as 4.3.1 or a git revision"
                ) from None
            if inside:
                named = _JAR_OF_KAFKA.fullmatch(jar.stem)
                releases.add(named[1] if named else None)
            entries |= {f"{module}/{name}": f"{jar}!/{entry}" for name, entry in inside.items()}
        if not entries:
            raise UnusableSpecs(
                f"{word}: contains no specs. Kafka's are in common/message of kafka-clients-….jar, "
                "kafka-group-coordinator-….jar and others; a folder with these jars, such as libs, works too"
            )
        loaded, files = _load(root, lambda path: entries.get(path, path), True)
    return SpecSet(word, "jars", loaded, files, releases.pop() if len(releases) == 1 else None)


# ---- releases


def _release(word: str, tell: Callable[[str], None]) -> SpecSet:
    try:
        root = fetch_specs(word, tell)
    except FetchError as error:
        raise UnusableSpecs(_unfetched(word, error)) from error
    absent = absent_modules(root)
    for module in absent:
        tell(
            f"Maven has no {module} {word}: its messages are left out on both sides (rm -r {root / module} asks again)"
        )
    loaded, files = _load(root, lambda path: str(root / path), is_older_dialect(word))
    return SpecSet(word, "release", loaded, files, word, absent)


def _unfetched(word: str, error: FetchError) -> str:
    cached = sorted(each.name for each in (cache_folder() / "specs").glob("*.*.*") if (each / "kafka_clients").is_dir())
    here = f"; already fetched: {', '.join(cached)}" if cached else ""
    if error.is_absent:
        return (
            f"{word}: Maven knows no such release of Kafka; give another release, a folder, a jar or a "
            f"revision of git{here}"
        )
    lines = str(error).splitlines()
    said = next((line for line in lines[1:] if line.strip()), "")
    return f"{word}: {lines[0]} {said}".rstrip() + f"\nWithout a network, give a folder or jars instead{here}"


# ---- revisions


def _revision(word: str, other: str, older_dialect: bool) -> SpecSet:
    revision, colon, inside = word.partition(":")
    folder = Path(inside or ".") if colon else Path(other)
    if not colon and not folder.is_dir():
        raise UnusableSpecs(
            f"{word}: not a folder, a jar, or a release such as 4.3.1. If it is a git revision, give a folder in "
            f"it, as {word}:message_specs; without a folder in it, the other set must be a folder, and {other} is not "
            "one"
        )
    start = folder if folder.is_dir() else Path()
    top = _git(start, word, "rev-parse", "--show-toplevel").decode().rstrip("\n")
    commit = _git(start, word, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    absolute = folder.resolve()
    try:
        below = absolute.relative_to(Path(top).resolve()).as_posix()
    except ValueError:
        raise UnusableSpecs(f"{word}: {folder} is outside the repository {top}") from None
    tree = f"{commit.decode().strip()}:{'' if below == '.' else below}"
    archive = _git(start, word, "-C", top, "archive", "--format=tar", tree)
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "specs"
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(root, filter="data")
        if not any(root.rglob("*.json")):
            raise UnusableSpecs(f"{word}: {folder} contained no specs at that revision")
        loaded, files = _load(root, lambda path: f"{revision}:{below}/{path}".replace(":./", ":"), older_dialect)
    return SpecSet(word, "git", loaded, files)


def _git(folder: Path, word: str, *arguments: str) -> bytes:
    try:
        command = ["git", "-C", str(folder), *arguments]
        done = subprocess.run(command, env={**os.environ, "LC_ALL": "C"}, capture_output=True, check=False)
    except FileNotFoundError:
        raise UnusableSpecs(f"{word}: git revisions need git, which is not installed; give a folder or a jar") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip() or "there is no such revision"
        if _OUTSIDE in said:
            raise UnusableSpecs(
                f"{word}: not a folder, a jar, or a release such as 4.3.1; it cannot be a git revision, because "
                f"{folder} is not in a git repository: clone the repository, or give a second folder"
            )
        raise UnusableSpecs(
            f"{word}: not a folder, a jar, a release such as 4.3.1, or a git revision in {folder}: {said}"
        )
    return done.stdout
